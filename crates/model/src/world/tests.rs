//! Whole runs: what was measured on kernels comes out of the model.

use super::*;
use crate::profile::{KernelProfile, Version};
use crate::scenario::Scenario;

/// The plan of a scenario's only variant.
pub(super) fn plan(toml: &str) -> Plan {
    let scenario = Scenario::read("test", toml, &[]).expect("a scenario");
    scenario.plans(1).next().expect("a plan")
}

pub(super) fn run(plan: &Plan, version: (u16, u16)) -> (Outcome, Trace) {
    let kernel = KernelProfile::of(Version::new(version.0, version.1));
    let keep =
        Keep { segments: true, handed_down: true, states: true, limits: true, ..Keep::default() };
    World::new(plan, Kernels::both(kernel), keep).expect("a world").run()
}

/// Payload of the server's flights: what leaves without a millisecond's pause.
fn flights(trace: &Trace) -> Vec<u32> {
    let mut flights = Vec::new();
    let mut last = 0;
    for seen in &trace.handed_down {
        if seen.from != Side::Server || seen.segment.len == 0 {
            continue;
        }
        if flights.is_empty() || seen.at_ns - last > 1_000_000 {
            flights.push(0);
        }
        last = seen.at_ns;
        *flights.last_mut().expect("one was pushed") += seen.segment.len;
    }
    flights
}

/// Time of the last acknowledgment of data at the server's tap, from the first SYN.
fn last_ack_ms(trace: &Trace) -> f64 {
    let last = trace
        .segments
        .iter()
        .rfind(|s| s.tap == Tap::Server && s.from == Side::Server && s.segment.len > 0)
        .map(|s| s.segment.end_seq())
        .expect("data");
    let ack = trace
        .segments
        .iter()
        .find(|s| s.tap == Tap::Server && s.from == Side::Client && s.segment.ack == last)
        .expect("its acknowledgment");
    ack.at_ns as f64 / 1e6
}

const DOWNLOAD: &str = r#"
[server.route]
congctl = "cubic"
[path]
rtt = "6ms"
rate = "1gbit"
[application]
download = "512KiB"
head = "43B"
"#;

#[test]
fn slow_start_of_512_kib_doubles_each_round_trip() {
    // docs/simulated-kernels.md's kernels: 6.1, 5.10 and 6.12 send just these.
    for version in [(5, 10), (6, 1), (6, 12)] {
        let (outcome, trace) = run(&plan(DOWNLOAD), version);
        assert!(outcome.done, "{version:?}");
        assert_eq!(
            flights(&trace),
            [13_075, 28_960, 57_920, 115_840, 231_680, 76_856],
            "{version:?}"
        );
        let ms = last_ack_ms(&trace);
        assert!((45.9..46.2).contains(&ms), "{version:?}: {ms}");
    }
}

#[test]
fn the_same_plan_gives_the_same_run() {
    let plan = plan(DOWNLOAD);
    let (a, b) = (run(&plan, (6, 1)).1, run(&plan, (6, 1)).1);
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
}

/// The same download with more lines of the scenario.
fn download(more: &str) -> Plan {
    let scenario = Scenario::read("test", &format!("{DOWNLOAD}{more}"), &[]);
    scenario.expect("a scenario").plans(1).next().expect("a plan")
}

/// Bytes that the server sends before the first of them is acknowledged.
fn first_flight(trace: &Trace) -> u32 {
    flights(trace)[0]
}

#[test]
fn a_hundred_segments_go_out_at_once_if_the_receiver_lets_them() {
    let plan = download(
        "[variants.x]\nserver.route.initcwnd = 100\n\
         client.sysctl.net.ipv4.tcp_rmem = \"6291456 6291456 6291456\"\n",
    );
    // Measured on a running 6.18; before v6.12 the first window ends at 64 KiB all the same.
    assert_eq!(flights(&run(&plan, (6, 18)).1), [143_395, 289_600, 91_336]);
    assert!(flights(&run(&plan, (6, 1)).1)[0] < 65_536);
}

#[test]
fn by_default_the_receivers_first_window_holds_a_hundred_segments_back() {
    let plan = download("[variants.x]\nserver.route.initcwnd = 100\n");
    let first = first_flight(&run(&plan, (6, 1)).1);
    // 64,256 bytes less what does not fill a segment; on a running kernel 63,755.
    assert!((62_000..=64_256).contains(&first), "{first}");
}

#[test]
fn a_receive_buffer_of_4_kib_lets_little_through_in_a_round_trip() {
    let plan = download(
        "[variants.x]\nclient.sysctl.net.ipv4.tcp_rmem = \"4096 4096 4096\"\n\
         application.download = \"64KiB\"\n",
    );
    let (outcome, trace) = run(&plan, (6, 1));
    assert!(outcome.done);
    // Measured on a running kernel: 1408 bytes a round trip, 0.227 MB/s.
    let rate = 64.0 * 1024.0 / last_ack_ms(&trace) / 1000.0;
    assert!((0.15..0.30).contains(&rate), "{rate} MB/s");
}

/// Two writes of 512 KiB with a pause; the flights after it.
fn after_idle(idle: &str, more: &str) -> Vec<u32> {
    let text = format!(
        "{more}[server.route]\ncongctl = \"cubic\"\n[path]\nrtt = \"6ms\"\nrate = \"1gbit\"\n\
         [application]\nserver = [\"write 512KiB\", \"drain\", \"sleep {idle}\", \"write 512KiB\", \
         \"drain\"]\nclient = [\"read 1MiB\", \"read to end\"]\n"
    );
    let (outcome, trace) = run(&plan(&text), (6, 1));
    assert!(outcome.done, "{:?}", outcome.waiting);
    let mut sent = 0;
    let flights = flights(&trace);
    let first = flights.iter().position(|flight| {
        sent += flight;
        sent >= 512 << 10
    });
    flights[first.expect("the first write") + 1..].to_vec()
}

#[test]
fn an_idle_connection_begins_again_with_ten_segments() {
    assert_eq!(after_idle("2s", "")[0], 14_480);
    // Halved about once for each timeout; measured on a running kernel: 134664.
    let half_a_second = after_idle("500ms", "")[0];
    assert!((100_000..180_000).contains(&half_a_second), "{half_a_second}");
}

#[test]
fn a_pause_shorter_than_the_timeout_costs_nothing() {
    assert!(after_idle("100ms", "")[0] > 400_000);
}

#[test]
fn without_the_restart_the_whole_window_goes_out_at_once() {
    let off = "[server.sysctl]\nnet.ipv4.tcp_slow_start_after_idle = 0\n";
    assert!(after_idle("2s", off)[0] > 400_000);
}

#[test]
fn a_reader_that_sleeps_closes_the_window_and_is_probed() {
    let plan = plan(
        "[path]\nrtt = \"6ms\"\nrate = \"1gbit\"\n[client.socket]\nrcvbuf = \"8192B\"\n\
         [application]\ndownload = \"64KiB\"\nstall = \"3.5s\"\nstall_after = \"1000B\"\n",
    );
    let (outcome, trace) = run(&plan, (6, 12));
    assert!(outcome.done, "{:?}", outcome.waiting);
    let probes = trace.handed_down.iter().filter(|s| {
        s.from == Side::Server
            && s.segment.len == 0
            && (300..3_500).contains(&(s.at_ns / 1_000_000))
    });
    // Measured on a running kernel: `TCPWinProbe` 4.
    assert!((3..=5).contains(&probes.count()));
}

#[test]
fn a_transfer_that_cannot_end_stops_and_says_what_it_waits_for() {
    let mut plan = plan(
        "limit = \"5s\"\n[path]\nrtt = \"6ms\"\ndown.loss = \"100%\"\n[application]\n\
         download = \"64KiB\"\n",
    );
    plan.limit_ns = 5_000_000_000;
    let (outcome, _) = run(&plan, (6, 1));
    assert!(!outcome.done);
    assert_eq!(outcome.end_ns, 5_000_000_000);
    assert!(outcome.waiting[0].contains("SYN-SENT"), "{:?}", outcome.waiting);
}

/// Time in each state of the server's sending, in microseconds, in order of time.
fn limits(trace: &Trace, until_ns: u64) -> Vec<(Limit, u64)> {
    let of_server: Vec<_> = trace.limits.iter().filter(|l| l.side == Side::Server).collect();
    let ends = of_server.iter().skip(1).map(|l| l.at_ns).chain([until_ns]);
    let spans = of_server.iter().zip(ends).map(|(l, end)| (l.limit, (end - l.at_ns) / 1000));
    spans.filter(|(_, us)| *us > 0).collect()
}

fn time_in(limits: &[(Limit, u64)], limit: Limit) -> u64 {
    limits.iter().filter(|(l, _)| *l == limit).map(|(_, us)| us).sum()
}

#[test]
fn the_waits_of_slow_start_are_told_as_such() {
    let (outcome, trace) = run(&plan(DOWNLOAD), (6, 1));
    let limits = limits(&trace, outcome.end_ns);
    // Five waits of a round trip each, less what TSO holds back at their ends.
    let waited = time_in(&limits, Limit::SlowStart);
    assert!((28_000..31_000).contains(&waited), "{limits:?}");
    assert!((5_000..8_000).contains(&time_in(&limits, Limit::LastFlight)), "{limits:?}");
}

#[test]
fn a_small_send_buffer_is_what_limits() {
    let plan = plan(
        "[path]\nrtt = \"20ms\"\nrate = \"100mbit\"\n[server.socket]\nsndbuf = \"16KiB\"\nnodelay = true\n\
         [application]\ndownload = \"1MiB\"\nwrite = \"1400B\"\n",
    );
    let (outcome, trace) = run(&plan, (6, 1));
    let limits = limits(&trace, outcome.end_ns);
    let all: u64 = limits.iter().map(|(_, us)| us).sum();
    assert!(time_in(&limits, Limit::SendBuffer) > all * 9 / 10, "{limits:?}");
}

#[test]
fn bbr_fills_a_link_and_keeps_its_queue_short() {
    let queue = |controller: &str| {
        let text = format!(
            "[server.route]\ncongctl = \"{controller}\"\n[path]\nrtt = \"20ms\"\n\
             rate = \"50mbit\"\n[application]\ndownload = \"16MiB\"\n"
        );
        let (outcome, trace) = run(&plan(&text), (6, 12));
        assert!(outcome.done);
        let ms = last_ack_ms(&trace);
        assert!((2_680.0..3_200.0).contains(&ms), "{controller}: {ms} ms");
        let last = trace.samples.iter().rfind(|s| s.side == Side::Server && s.info.in_flight > 0);
        last.expect("a sample").info.srtt_us
    };
    let (bbr, cubic) = (queue("bbr"), queue("cubic"));
    assert!(bbr < 45_000, "{bbr}");
    assert!(cubic > 2 * bbr, "{cubic} {bbr}");
}

#[test]
fn a_policer_costs_retransmissions_and_a_shaper_none() {
    let lost = |queue: &str| {
        let text = format!(
            "[path]\nrtt = \"20ms\"\n[path.bucket]\nrate = \"20mbit\"\nburst = \"60kB\"\n\
             queue = \"{queue}\"\n[application]\ndownload = \"1MiB\"\n"
        );
        let (outcome, trace) = run(&plan(&text), (6, 12));
        assert!(outcome.done);
        let last = trace.samples.iter().rfind(|s| s.side == Side::Server);
        last.expect("a sample").info.total_retrans
    };
    assert!(lost("0") > 10);
    assert_eq!(lost("2MB"), 0);
}

#[test]
fn fq_spreads_what_would_leave_at_once() {
    let gaps = |egress: &str| {
        let text = format!(
            "[server]\nroute.congctl = \"cubic\"\n{egress}\n[path]\nrtt = \"50ms\"\n\
             rate = \"1gbit\"\n[application]\ndownload = \"512KiB\"\n"
        );
        let (outcome, trace) = run(&plan(&text), (6, 12));
        assert!(outcome.done, "{:?}", outcome.waiting);
        let mut last = 0;
        let mut gaps = 0;
        for seen in trace
            .segments
            .iter()
            .filter(|s| s.tap == Tap::Server && s.from == Side::Server && s.segment.len > 0)
        {
            gaps += u32::from((200_000..20_000_000).contains(&(seen.at_ns - last)));
            last = seen.at_ns;
        }
        gaps
    };
    assert!(gaps("egress = \"fq\"") > 20);
    assert!(gaps("") < 10);
}

/// Scenarios with everything that may go wrong on a path, small and odd buffers, all controllers.
fn rough(seed: u64) -> String {
    let mut dice = crate::path::Chance::new(seed);
    let mut pick = |choices: &[&str]| choices[dice.below(choices.len() as u64) as usize].to_owned();
    let path = [
        pick(&["rtt = \"1ms\"", "rtt = \"20ms\"", "rtt = \"150ms\""]),
        pick(&["rate = \"2mbit\"", "rate = \"100mbit\"", "rate = \"unlimited\""]),
        pick(&["queue = \"20 packets\"", "queue = \"40kB\"", "queue = \"endless\""]),
        pick(&["", "down.loss = \"3%\"", "loss = \"burst 1% 40%\"", "up.loss = \"10%\""]),
        pick(&["", "down.reorder = \"5% by 3ms\"", "jitter = \"2ms\"", "duplicate = \"2%\""]),
    ];
    let server = [
        pick(&["cubic", "reno", "bbr"]),
        pick(&["", "sysctl.net.ipv4.tcp_sack = 0", "sysctl.net.ipv4.tcp_timestamps = 0"]),
        pick(&["", "socket.sndbuf = \"3KiB\"", "socket.cork = true", "egress = \"fq\""]),
        pick(&["", "route.initcwnd = 1", "route.initcwnd = 200", "route.mtu = 600"]),
    ];
    let client = pick(&["", "socket.rcvbuf = \"3KiB\"", "sysctl.net.ipv4.tcp_window_scaling = 0"]);
    let application = pick(&[
        "download = \"200KiB\"",
        "post = \"100KiB\"",
        "exchange = \"3KiB\"\ntimes = 5\nidle = \"300ms\"",
        "download = \"100KiB\"\nread = \"900B\"\nread_pause = \"1ms\"",
        "send = \"60KiB\"\nwrite = \"700B\"\npause = \"3ms\"",
    ]);
    format!(
        "seed = {seed}\nlimit = \"30min\"\n[path]\n{}\n[server]\nroute.congctl = \"{}\"\n{}\n\
         [client]\n{client}\n[application]\n{application}\n",
        path.join("\n"),
        server[0],
        server[1..].join("\n")
    )
}

#[test]
fn every_byte_arrives_whatever_the_path_does() {
    for seed in 0..150 {
        let text = rough(seed);
        let version = [(4, 18), (5, 10), (6, 1), (6, 12), (6, 18)][seed as usize % 5];
        let (outcome, trace) = run(&plan(&text), version);
        assert!(outcome.done, "{:?}\n{version:?}\n{text}", outcome.waiting);
        counts_hold(&trace, &text);
    }
}

/// Counts never part from the queue: nothing is left where nothing is under way.
pub(super) fn counts_hold(trace: &Trace, text: &str) {
    for sample in &trace.samples {
        let info = &sample.info;
        let idle = info.snd_una == info.snd_nxt && info.snd_una != 0;
        let counts = (info.unacked, info.sacked, info.lost, info.retrans);
        assert!(!idle || counts == (0, 0, 0, 0), "{info:?}\n{text}");
        assert!(info.sacked + info.lost <= info.unacked, "{info:?}\n{text}");
    }
}

/// When the server had the first byte of each connection, in whole milliseconds since its SYN.
fn first_bytes_ms(trace: &Trace) -> Vec<u64> {
    let seen = |connection, tap, data: bool| {
        let of = trace.segments.iter().filter(move |s| s.connection == connection && s.tap == tap);
        let mut from_client = of.filter(|s| s.from == Side::Client);
        from_client.find(|s| !data || s.segment.len > 0).map(|s| s.at_ns)
    };
    (0..)
        .map_while(|connection| {
            let (syn, data) =
                (seen(connection, Tap::Client, false)?, seen(connection, Tap::Server, true)?);
            Some((data - syn) / 1_000_000)
        })
        .collect()
}

#[test]
fn fast_open_spares_a_round_trip_from_the_second_connection_on() {
    let scenario = |server: &str| {
        format!(
            "client.socket.fast_open = true\nserver.socket.fast_open = {server}\n\
             server.sysctl.net.ipv4.tcp_fastopen = 3\npath.rtt = \"20ms\"\n\
             [application]\nclient = [\"write 500\", \"read to end\"]\n\
             server = [\"read 500\", \"write 20KB\"]\nconnections = 3"
        )
    };
    let (outcome, trace) = run(&plan(&scenario("true")), (6, 1));
    assert!(outcome.done);
    assert_eq!(first_bytes_ms(&trace), [30, 10, 10]);
    // Without a listener that knows of it there is never a cookie.
    let (outcome, trace) = run(&plan(&scenario("false")), (6, 1));
    assert!(outcome.done);
    assert_eq!(first_bytes_ms(&trace), [30, 30, 30]);
}

#[test]
fn a_threshold_is_kept_for_the_next_connection_if_that_is_asked_for() {
    let scenario = |saves: u8| {
        format!(
            "server.sysctl.net.ipv4.tcp_no_ssthresh_metrics_save = {saves}\n\
             path.rtt = \"20ms\"\npath.rate = \"100mbit\"\npath.down.loss = \"exact 60\"\n\
             [application]\ndownload = \"400KB\"\nhead = \"43B\"\nconnections = 2\ngap = \"1s\""
        )
    };
    let first_threshold = |saves| {
        let (outcome, trace) = run(&plan(&scenario(saves)), (6, 1));
        assert!(outcome.done);
        let mut samples = trace.samples.iter();
        let second = samples.find(|s| s.connection == 1 && s.side == Side::Server);
        second.map(|sample| sample.info.ssthresh)
    };
    assert_eq!(first_threshold(1), Some(crate::socket::INFINITE_SSTHRESH));
    let kept = first_threshold(0).expect("a second connection");
    assert!((20..60).contains(&kept), "{kept} packets, after a loss among the first sixty");
}

#[test]
fn a_host_that_forgets_its_peer_keeps_no_threshold() {
    let first_threshold = |at: &str| {
        let scenario = format!(
            "server.sysctl.net.ipv4.tcp_no_ssthresh_metrics_save = 0\n\
             server.changes = [{{ at = \"{at}\", metrics = \"flush\" }}]\n\
             path.rtt = \"20ms\"\npath.rate = \"100mbit\"\npath.down.loss = \"exact 60\"\n\
             [application]\ndownload = \"400KB\"\nhead = \"43B\"\nconnections = 2\ngap = \"1s\""
        );
        let (outcome, trace) = run(&plan(&scenario), (6, 1));
        assert!(outcome.done);
        let mut samples = trace.samples.iter();
        let second = samples.find(|s| s.connection == 1 && s.side == Side::Server);
        second.map(|sample| sample.info.ssthresh)
    };
    assert_eq!(first_threshold("1s"), Some(crate::socket::INFINITE_SSTHRESH));
    let kept = first_threshold("100ms").expect("a second connection");
    assert!((20..60).contains(&kept), "{kept} packets: the first one ended behind the change");
}

#[test]
fn on_short_round_trips_older_kernels_take_two_rounds_for_one_train() {
    // 5.10.262 in simulated time leaves slow start at 20 packets over 2 ms, in every packet alike.
    let threshold = |rtt: &str, version| {
        let scenario = DOWNLOAD.replace("6ms", rtt);
        let (outcome, trace) = run(&plan(&scenario), version);
        assert!(outcome.done);
        let servers = trace.samples.iter().filter(|s| s.side == Side::Server);
        let mut thresholds = servers.map(|s| s.info.ssthresh);
        thresholds.find(|t| *t < crate::socket::INFINITE_SSTHRESH)
    };
    for (rtt, version, found) in [
        ("2ms", (5, 10), Some(20)),
        ("2ms", (4, 18), Some(20)),
        ("2ms", (5, 15), Some(20)),
        // Before 5.6 the clock has milliseconds, and 2.9 of them are 2.
        ("2.8ms", (5, 4), Some(20)),
    ] {
        assert_eq!(threshold(rtt, version), found, "{rtt} {version:?}");
    }
    for (rtt, version) in [("2.8ms", (5, 15)), ("2ms", (6, 1)), ("6ms", (5, 10)), ("6ms", (4, 18))]
    {
        let found = threshold(rtt, version);
        assert!(found.is_none_or(|found| found > 100), "{rtt} {version:?}: {found:?}");
    }
}

/// What a run kept, and what it took, of this many events at most.
fn within(plan: &Plan, events: u64) -> (Outcome, Trace) {
    let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
    let keep = Keep { segments: true, ..Keep::default() };
    World::new(plan, kernels, keep).expect("a world").at_most(events).run()
}

#[test]
fn many_packets_of_one_instant_are_no_more_than_a_run_may_take() {
    let plan = plan(
        "[path]\nrtt = \"100ms\"\nrate = \"unlimited\"\n\
         [client.sysctl]\nnet.ipv4.tcp_rmem = \"4096 131072 268435456\"\n\
         [server.sysctl]\nnet.ipv4.tcp_wmem = \"4096 16384 268435456\"\n\
         [application]\ndownload = \"64GiB\"\n",
    );
    let (outcome, trace) = within(&plan, 20_000);
    assert!(!outcome.done && outcome.events >= 20_000, "{outcome:?}");
    assert!(trace.segments.len() < 4 * 20_000, "{}", trace.segments.len());
}

#[test]
fn calls_that_move_a_byte_each_are_no_more_than_a_run_may_take() {
    let plan = plan(
        "[path]\nrtt = \"6ms\"\n[server.socket]\nsndbuf = \"64MiB\"\n\
         [application]\ndownload = \"1024GiB\"\nwrite = \"1B\"\n",
    );
    let (outcome, _) = within(&plan, 10_000);
    assert!(!outcome.done && (10_000..60_000).contains(&outcome.events), "{outcome:?}");
}

#[test]
fn all_that_is_written_by_single_bytes_arrives() {
    let plan = plan(
        "[path]\nrtt = \"6ms\"\n[server.socket]\nsndbuf = \"1MiB\"\n\
         [application]\ndownload = \"150kB\"\nwrite = \"1B\"\n",
    );
    let (outcome, trace) = within(&plan, u64::MAX);
    assert!(outcome.done, "{outcome:?}");
    let data = trace.segments.iter().filter(|s| s.tap == Tap::Client && s.from == Side::Server);
    assert_eq!(data.map(|s| u64::from(s.segment.len)).sum::<u64>(), 150_200);
}

#[test]
fn a_sender_with_many_steps_left_is_done_writing_after_the_last_that_writes() {
    let plan = plan(
        "limit = \"1h\"\n[path]\nrtt = \"6ms\"\n[application]\nserver = [\"read to end\"]\n\
         client = [\"write 1000\", { repeat = 100000, steps = [\"sleep 1ms\"] }, \"write 1\"]\n",
    );
    let (outcome, trace) = run(&plan, (6, 1));
    assert!(outcome.done, "{outcome:?}");
    let own = trace.limits.iter().filter(|since| since.side == Side::Client);
    let of: Vec<_> = own.map(|since| since.limit).collect();
    assert_eq!(
        of,
        [
            Limit::Handshake,
            Limit::ApplicationInFlight,
            Limit::Application,
            Limit::LastFlight,
            Limit::Closed
        ]
    );
}

#[test]
fn only_the_tap_that_is_asked_for_is_kept() {
    let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
    let keep = Keep { segments: true, only: Some(Tap::Client), ..Keep::default() };
    let (_, one) = World::new(&plan(DOWNLOAD), kernels, keep).expect("a world").run();
    let (_, both) = within(&plan(DOWNLOAD), u64::MAX);
    let at_client = both.segments.iter().filter(|seen| seen.tap == Tap::Client);
    assert!(at_client.eq(&one.segments));
}

#[test]
fn a_path_on_which_nothing_takes_time_is_refused() {
    let plan = plan("[path]\nrtt = 0\nrate = \"unlimited\"\n[application]\nsend = \"1kB\"\n");
    let kernels = Kernels::both(KernelProfile::of(Version::new(6, 1)));
    let error = World::new(&plan, kernels, Keep::default()).err().expect("refused").to_string();
    assert!(error.starts_with("path.rtt: 0 ") && error.contains("1ns and 60s"), "{error}");
}
