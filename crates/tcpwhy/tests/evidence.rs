//! Real evidence beside real captures: what was measured, what disagrees, which call explains a wait.

#[path = "common/read.rs"]
#[expect(dead_code, reason = "the other tests use the rest of it")]
mod read;

use std::fs;

use read::{explain_with, testdata};
use tcpwhy::evidence::{self, Evidence};
use tcpwhy::report::{Beside, Capture, Connection, Direction, Report, State};
use tcpwhy::tracker::Config;

/// The report on a capture of `testdata/evidence`, with what evidence needs.
fn report(capture: &str) -> Report {
    let config = Config { detail: true, passed: true, ..Config::default() };
    explain_with(&testdata("evidence").join(capture), config)
}

fn text(name: &str) -> String {
    fs::read_to_string(testdata("evidence").join(name)).expect("evidence")
}

fn evidence(name: &str) -> Evidence {
    evidence::read(name, text(name).as_bytes()).expect("evidence")
}

/// The report on `capture` with these files beside it.
fn with(capture: &str, files: &[&str]) -> Report {
    let mut report = report(capture);
    let files: Vec<Evidence> = files.iter().map(|file| evidence(file)).collect();
    evidence::apply(&mut report, &files);
    report
}

fn only(report: &Report) -> &Connection {
    assert_eq!(report.connections.len(), 1);
    &report.connections[0]
}

fn server_sends(connection: &Connection) -> &Direction {
    connection.directions[1].as_deref().expect("the server sent data")
}

/// What was said of a quantity on a side.
fn said<'a>(connection: &'a Connection, side: &str, quantity: &str) -> Vec<&'a Beside> {
    let about = |each: &&Beside| each.side == side && each.quantity == quantity;
    connection.beside.iter().filter(about).collect()
}

fn contradictions(report: &Report) -> Vec<&str> {
    let all = report.connections.iter().flat_map(|connection| &connection.beside);
    all.filter(|each| each.verdict == "contradicts").map(|each| each.text.as_str()).collect()
}

#[test]
fn the_replay_of_a_simulated_kernel_is_what_the_kernel_had() {
    let capture = "uml-slow-start.server.pcapng.gz";
    let report =
        with(capture, &["uml-slow-start.tcp_probe.jsonl", "uml-slow-start.tcp_info.jsonl"]);
    assert_eq!(contradictions(&report), [""; 0]);
    let direction = server_sends(only(&report));
    let windows: Vec<_> =
        direction.rounds.iter().map(|round| (round.cwnd_measured_by, round.cwnd.best)).collect();
    let kernel = [10, 20, 40, 80, 160].map(|segments| (Some(0), Some(segments)));
    assert_eq!(&windows[..5], &kernel);
    let trip = said(only(&report), "server", "min_rtt")[0];
    assert_eq!((&*trip.verdict, trip.measured), ("agrees", Some(6_002_000)));
}

#[test]
fn what_a_recording_has_attached_is_evidence() {
    let mut report = report("uml-slow-start.server.pcapng.gz");
    let attach = |(name, bytes): (&str, Vec<u8>)| ((0, name.to_owned()), bytes);
    let attachments = [
        ("host.json", b"{}".to_vec()),
        ("tcp_info.jsonl", text("uml-slow-start.tcp_info.jsonl").into_bytes()),
        ("tcp_probe.jsonl", Vec::new()),
    ];
    report.attachments = attachments.map(attach).into();
    let evidence = evidence::attached(&report);
    evidence::apply(&mut report, &evidence);
    let named: Vec<_> = report.with.iter().map(|file| (&*file.source, file.connections)).collect();
    assert_eq!(named, [("tcp_info.jsonl", 1)]);
}

#[test]
fn each_of_two_recordings_has_its_own_samples() {
    let mut report = report("uml-slow-start.server.pcapng.gz");
    report.captures.push(Capture { source: "b/second.pcapng".to_owned(), ..Capture::default() });
    report.captures[0].source = "first.pcapng".to_owned();
    let samples = text("uml-slow-start.tcp_info.jsonl").into_bytes();
    let other =
        b"{\"local\":\"192.0.2.9:1\",\"peer\":\"192.0.2.8:2\",\"info\":{\"snd_cwnd\":10}}".to_vec();
    for (capture, bytes) in [(0, samples), (1, other)] {
        report.attachments.insert((capture, "tcp_info.jsonl".to_owned()), bytes);
    }
    let evidence = evidence::attached(&report);
    evidence::apply(&mut report, &evidence);
    let named: Vec<_> = report.with.iter().map(|file| (&*file.source, file.connections)).collect();
    assert_eq!(
        named,
        [("first.pcapng: tcp_info.jsonl", 1), ("b/second.pcapng: tcp_info.jsonl", 0)]
    );
}

#[test]
fn a_window_that_was_replayed_wrongly_is_told_with_both_values() {
    let mut report = report("uml-slow-start.server.pcapng.gz");
    let direction = report.connections[0].directions[1].as_deref_mut().expect("data");
    let round = &mut direction.rounds[2].cwnd;
    (round.low, round.high, round.best) = (Some(72), Some(80), Some(72));
    evidence::apply(&mut report, &[evidence("uml-slow-start.tcp_probe.jsonl")]);
    let told = contradictions(&report);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("in round 3 (40 segments, replayed 72)"), "{told:?}");
}

#[test]
fn every_tool_s_samples_of_a_running_kernel_agree_with_the_packets() {
    for (capture, files) in [
        ("ss.server.pcap.gz", &["ss.txt", "trace_pipe.txt"][..]),
        ("probe.server.pcap.gz", &["perf-script.txt"]),
    ] {
        let report = with(capture, files);
        // A second file finds each round measured already.
        let first = said(only(&report), "server", "cwnd")[0];
        assert_eq!((first.source, &*first.verdict), (0, "agrees"), "{capture}: {}", first.text);
        for (at, file) in report.with.iter().enumerate() {
            assert_eq!((file.connections, &file.error), (1, &None), "{}", file.source);
            let of_file = only(&report).beside.iter().filter(|each| each.source == at as u64);
            let windows = of_file.filter(|each| each.quantity == "cwnd" && each.side == "server");
            assert_eq!(windows.count(), 1, "{}", file.source);
        }
        let rounds = &server_sends(only(&report)).rounds;
        let measured = rounds.iter().filter(|round| round.cwnd_measured_by.is_some()).count();
        assert!(measured * 10 >= rounds.len() * 9, "{measured} of {}", rounds.len());
    }
}

/// What is said of `quantity` where the server's kernel had these figures.
fn with_figures(capture: &str, figures: &str, quantity: &str) -> Option<Beside> {
    let mut report = report(capture);
    let (server, client) = (only(&report).server, only(&report).client);
    let text = format!("ESTAB 0 0 {server} {client}\n\t cubic {figures}\n");
    let read = evidence::read("figures", text.as_bytes()).expect("a sample");
    evidence::apply(&mut report, &[read]);
    said(only(&report), "server", quantity).first().copied().cloned()
}

#[test]
fn a_window_that_nothing_was_compared_with_does_not_agree() {
    let figures = "cwnd:999 ssthresh:500 bytes_sent:171170 bytes_acked:154936";
    let told = with_figures("ss.server.pcap.gz", figures, "cwnd").expect("of a round");
    assert_eq!((&*told.verdict, told.measured), ("measured", Some(999)), "{}", told.text);
    assert!(!told.text.contains("replayed"), "{}", told.text);
}

#[test]
fn a_threshold_of_later_is_not_the_one_that_ended_slow_start() {
    let capture = "../middlebox/thinned-acks.client.pcap.gz";
    let sends = report(capture);
    let bytes = server_sends(only(&sends)).bytes;
    let exit = server_sends(only(&sends)).slow_start_exit.as_deref().expect("it ended");
    let later = format!("cwnd:300 ssthresh:225 bytes_sent:{bytes} bytes_acked:{bytes}");
    let told = with_figures(capture, &later, "ssthresh").expect("told");
    assert_eq!((&*told.verdict, told.measured), ("measured", Some(225)), "{}", told.text);
    assert!(told.text.contains("had a slow start threshold"), "{} {exit:?}", told.text);
}

#[test]
fn a_kernel_s_least_round_trip_may_be_the_handshake_s_or_of_another_time() {
    let capture = "ss.server.pcap.gz";
    let report = report(capture);
    let (opened, least) = (only(&report).handshake_rtt_ns, server_sends(only(&report)).rtt.min_ns);
    let ours = opened.expect("seen").min(least.expect("seen"));
    let verdict = |ns: i64| {
        let figures = format!("cwnd:10 minrtt:{:.3}", ns as f64 / 1e6);
        let told = with_figures(capture, &figures, "min_rtt").expect("told");
        (told.verdict.to_string(), told.estimated)
    };
    assert_eq!(verdict(ours), ("agrees".to_owned(), Some(ours)));
    assert_eq!(verdict(3 * ours).0, "measured", "it may have been forgotten");
    assert_eq!(verdict(ours / 3).0, "contradicts");
}

#[test]
fn the_kernel_s_time_at_the_receiver_s_window_stands_beside_ours() {
    let report = with("ss.server.pcap.gz", &["ss.txt"]);
    let connection = only(&report);
    let told = said(connection, "server", "rwnd_limited")[0];
    assert_eq!(told.measured, Some(176_000_000), "{}", told.text);
    let of_window = |state: State| state.name().starts_with("rwnd.") || state == State::ZeroWindow;
    let rows = server_sends(connection).time_in.iter().filter(|row| of_window(row.0));
    let ours: i64 = rows.map(|row| row.1.0).sum();
    assert_eq!(told.estimated, Some(ours), "the last sample is of the end");
    assert!(told.text.contains("176 ms of 308 ms busy (57 %)"), "{}", told.text);
}

#[test]
fn another_verdict_than_the_kernel_s_is_a_contradiction() {
    let mut report = report("ss.server.pcap.gz");
    for limit in &mut report.connections[0].directions[1].as_deref_mut().expect("data").limits {
        if limit.state.name().starts_with("rwnd.") || limit.state == State::ZeroWindow {
            limit.state = State::CwndAvoidance;
        }
    }
    evidence::apply(&mut report, &[evidence("ss.txt")]);
    let told = contradictions(&report);
    assert!(told.iter().any(|text| text.contains("the packets show 0 (0 %)")), "{told:?}");
}

/// The waits that were looked up, by what was said of them.
fn waits<'a>(connection: &'a Connection, verdict: &str) -> Vec<&'a Beside> {
    let calls = said(connection, "client", "calls");
    calls.into_iter().filter(|each| each.verdict == verdict).collect()
}

#[test]
fn a_nap_explains_its_wait_and_computing_is_no_call() {
    // The window was full a while after the nap began, and in two runs right through to the computing.
    for (name, by) in [
        ("strace-ttt", "no_call"),
        ("strace-tt", "explains"),
        ("strace-r", "no_call"),
        ("perf-trace", "explains"),
    ] {
        let report = with(&format!("{name}.client.pcap.gz"), &[&format!("{name}.txt")]);
        let connection = only(&report);
        let clock = said(connection, "client", "clock");
        assert_eq!(clock.len(), 1, "{name}: {:?}", report.with);
        assert_ne!(clock[0].verdict, "unclear", "{name}: {}", clock[0].text);
        let naps = waits(connection, by);
        assert!(naps.iter().any(|nap| nap.text.contains("clock_nanosleep")), "{name}: {naps:#?}");
        for each in said(connection, "client", "calls") {
            let calls = each.calls.as_ref().expect("calls");
            let sum = calls.waiting_ns + calls.working_ns + calls.outside_ns + calls.left_out_ns;
            assert_eq!(Some(sum), each.measured, "{name}: {}", each.text);
        }
    }
}

#[test]
fn a_clock_is_believed_only_as_far_as_the_bytes_bear_it_out() {
    let capture = "strace-ttt.client.pcap.gz";
    let same = with(capture, &["strace-ttt.txt"]);
    let clock = said(only(&same), "client", "clock")[0];
    assert_eq!((&*clock.verdict, clock.measured), ("agrees", Some(0)), "{}", clock.text);

    // 2.5 s later by the trace's clock, which strace prints in microseconds.
    let later = shifted(&text("strace-ttt.txt"), 2_500_000);
    let mut ahead = report(capture);
    let read = evidence::read("late", later.as_bytes()).expect("a trace");
    evidence::apply(&mut ahead, &[read]);
    let clock = said(only(&ahead), "client", "clock")[0];
    let apart = clock.measured.expect("both count from 1970");
    assert!((apart - 2_500_000_000).abs() < 1_000_000, "{}", clock.text);
    let verdicts = |report: &Report| -> Vec<String> {
        said(only(report), "client", "calls").iter().map(|each| each.verdict.to_string()).collect()
    };
    assert_eq!(verdicts(&ahead), verdicts(&same), "the same calls are found");
}

/// The lines of a trace with their times `by_us` microseconds later.
fn shifted(trace: &str, by_us: u64) -> String {
    let line = |line: &str| {
        let (pid, rest) = line.split_once(' ').expect("a thread");
        let (time, rest) = rest.trim_start().split_once(' ').expect("a time");
        let us: u64 = time.replace('.', "").parse().expect("microseconds");
        let us = us + by_us;
        format!("{pid} {}.{:06} {rest}\n", us / 1_000_000, us % 1_000_000)
    };
    trace.lines().map(line).collect()
}

#[test]
fn a_trace_of_another_run_is_not_laid_beside_the_packets() {
    let other = with("strace-ttt.client.pcap.gz", &["strace-tt.txt"]);
    assert!(said(only(&other), "client", "calls").is_empty());
    let clock = said(only(&other), "client", "clock");
    assert!(clock.iter().all(|each| each.verdict == "unclear"), "{clock:#?}");
    let named = with("ss.server.pcap.gz", &["strace-ttt.txt"]);
    assert_eq!(named.with[0].connections, 0);
    assert_eq!(named.with[0].notes[0], "none of its sockets is one of this report");
}

#[test]
fn no_call_explains_the_gap_of_the_article() {
    for name in ["articles/strace-excerpt.txt", "articles/strace-recvfrom.txt"] {
        let mut report = Report::default();
        evidence::apply(&mut report, &[evidence(name)]);
        let notes = &report.with[0].notes;
        let gap = notes.iter().find(|note| note.contains("10.5 ms without data"));
        let gap = gap.unwrap_or_else(|| panic!("{name}: {notes:#?}"));
        assert!(gap.contains("no call explains it"), "{gap}");
        assert!(gap.contains("from 21:16:06.208943 on"), "{gap}");
    }
    let mut report = Report::default();
    evidence::apply(&mut report, &[evidence("articles/strace-excerpt.txt")]);
    let notes = report.with[0].notes.join("\n");
    assert!(notes.contains("write to /root/rcv.dat, took 140 us"), "{notes}");
    assert!(notes.contains("7.41 ms are lines that the file leaves out"), "{notes}");
}

#[test]
fn a_socket_of_no_capture_is_named() {
    let report = with("ss.server.pcap.gz", &["articles/ss-case1.txt"]);
    let notes = &report.with[0].notes;
    let expected = "none of its 2 sockets is a connection of this report; it has \
                    172.16.58.146:59178 - 172.16.58.147:8000 and 172.16.58.147:8000 - 172.16.58.146:59178";
    assert_eq!(notes, &[expected]);
}

#[test]
fn samples_are_of_the_connection_that_lived_then() {
    let mut report = report("ss.server.pcap.gz");
    let mut later = report.connections[0].clone();
    later.id = 1;
    let day = later.start.find('T').expect("a date");
    later.start.replace_range(day - 2..day, "30");
    report.connections.push(later);
    evidence::apply(&mut report, &[evidence("ss.txt")]);
    assert_eq!(report.with[0].connections, 1, "{:?}", report.with[0].notes);
    assert!(!report.connections[0].beside.is_empty());
    assert_eq!(report.connections[1].beside, []);
}

#[test]
fn evidence_of_connections_that_are_not_shown_is_not_called_foreign() {
    let mut report = report("ss.server.pcap.gz");
    report.totals.connections += 9;
    evidence::apply(&mut report, &[evidence("ss.txt")]);
    let notes = report.with[0].notes.join("\n");
    assert!(
        notes.contains("looked for among the 1 connection of this report; 9 others"),
        "{notes}"
    );
}

#[test]
fn counters_that_stood_rule_causes_out() {
    for (before, after) in
        [("nstat-before.txt", "nstat-after.txt"), ("netstat-before.txt", "netstat-after.txt")]
    {
        let report = with("nstat.server.pcap.gz", &[before, after]);
        let whys: Vec<&str> =
            only(&report).findings.iter().map(|finding| finding.why.as_str()).collect();
        let ruled_out = "TcpInCsumErrors did not grow: no TCP checksum failed on the host";
        assert!(whys.iter().any(|why| why.contains(ruled_out)), "{whys:#?}");
        let grown = report.with[1].notes.join(" ");
        assert!(grown.contains("TcpRetransSegs by "), "{grown}");
        let turned = with("nstat.server.pcap.gz", &[after, before]);
        let notes = turned.with[1].notes.join(" ");
        assert!(notes.contains("was it the first?") && !notes.contains("what grew"), "{notes}");
    }
}

#[test]
fn what_is_named_twice_is_told_once() {
    let once = with("ss.server.pcap.gz", &["ss.txt", "iperf3.json"]);
    let twice = with("ss.server.pcap.gz", &["ss.txt", "ss.txt", "iperf3.json", "iperf3.json"]);
    assert_eq!(only(&twice).beside.len(), only(&once).beside.len());
    let notes = |report: &Report, at: usize| report.with[at].notes.join(" ");
    assert_eq!(notes(&twice, 1), "it holds just what ss.txt does, and is not told again");
    assert_eq!(twice.with[1].connections, 1);
    let readings = with("nstat.server.pcap.gz", &["nstat-before.txt", "nstat-before.txt"]);
    assert!(notes(&readings, 0).contains("one reading tells nothing but what is zero"));
    assert!(notes(&readings, 1).contains("the same reading"), "{}", notes(&readings, 1));
    let stood = only(&readings).findings.iter().any(|each| each.why.contains("did not grow"));
    let alone = with("nstat.server.pcap.gz", &["nstat-before.txt"]);
    let alone = only(&alone).findings.iter().any(|each| each.why.contains("did not grow"));
    assert_eq!(stood, alone, "one reading proves no more for being named twice");
}

#[test]
fn whose_counters_they_are_is_said_to_be_unknown() {
    let report = with("nstat.server.pcap.gz", &["nstat-before.txt", "nstat-after.txt"]);
    let notes = report.with[1].notes.join(" ");
    let unknown = "whose host's counters these are is not in the file, and by the count of segments they may \
                   be either side's";
    assert!(notes.contains(unknown), "{notes}");
}

#[test]
fn a_rate_is_a_share_or_a_contradiction() {
    let report = with("ss.server.pcap.gz", &["iperf3.json"]);
    let told = said(only(&report), "path", "path_rate");
    assert_eq!((told.len(), &*told[0].verdict), (1, "agrees"));
    assert!(told[0].text.contains(" % of the path's 4"), "{}", told[0].text);
    let mut slow = self::report("ss.server.pcap.gz");
    evidence::apply(&mut slow, &[Evidence::of_rate("--rate 1mbit", 1_000_000)]);
    let told = contradictions(&slow);
    assert!(told[0].contains("faster than the path's 1.00 Mbit/s (--rate 1mbit)"), "{told:?}");
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_goes_on() {
    let mut report = report("ss.server.pcap.gz");
    let unread = Evidence::unread("x.txt", "it is empty".to_owned());
    evidence::apply(&mut report, &[unread, evidence("ss.txt")]);
    assert_eq!(report.with[0].error.as_deref(), Some("it is empty"));
    assert_eq!((report.with[1].connections, &report.with[1].error), (1, &None));
    assert!(only(&report).beside.iter().all(|each| each.source == 1));
}
