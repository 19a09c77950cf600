//! Whole runs through queues: at a host, in its device, before a link; other traffic, cells, an MTU,
//! damage.

use super::tests::{counts_hold, plan, run};
use super::*;
use crate::path::Chance;
use crate::socket::CaState;

/// A download with lines of a scenario above it.
fn download(size: &str, lines: &str) -> (Outcome, Trace) {
    run(&plan(&format!("{lines}\n[application]\ndownload = \"{size}\"\n")), (6, 1))
}

/// Packets that the server retransmitted.
fn resent(trace: &Trace) -> u32 {
    let last = trace.samples.iter().rfind(|sample| sample.side == Side::Server);
    last.expect("a sample").info.total_retrans
}

/// The longest round trip that the server measured, smoothed.
fn longest_srtt_ms(trace: &Trace) -> u32 {
    let of_server = trace.samples.iter().filter(|sample| sample.side == Side::Server);
    of_server.map(|sample| sample.info.srtt_us / 1000).max().expect("a sample")
}

#[test]
fn fq_codel_keeps_a_link_s_queue_short_by_drops_or_by_marks() {
    let path = "[path]\nrtt = \"20ms\"\ndown.rate = \"20mbit\"\n";
    let (_, endless) = download("6MB", path);
    let codel = format!("{path}down.queue = \"fq_codel\"\n");
    let (_, dropped) = download("6MB", &codel);
    let ecn = "[server.sysctl]\nnet.ipv4.tcp_ecn = 1\n[client.sysctl]\nnet.ipv4.tcp_ecn = 1\n";
    let (outcome, marked) = download("6MB", &format!("{codel}{ecn}"));
    assert!(outcome.done);
    assert!(longest_srtt_ms(&endless) > 3 * longest_srtt_ms(&dropped));
    assert_eq!(resent(&endless), 0);
    assert!((1..60).contains(&resent(&dropped)), "{}", resent(&dropped));
    assert_eq!(resent(&marked), 0, "what is marked need not be retransmitted");
    assert!(longest_srtt_ms(&marked) < 60);
}

#[test]
fn what_a_host_s_own_queue_refuses_is_no_loss() {
    for bucket in ["queue = \"6kB\"", "queue = \"0\""] {
        let egress = format!("egress = {{ rate = \"5mbit\", burst = \"3028B\", {bucket} }}");
        let lines = format!("[path]\nrtt = \"20ms\"\n[server]\n{egress}\n");
        let (outcome, trace) = download("400kB", &lines);
        assert!(outcome.done, "{bucket}");
        assert_eq!(resent(&trace), 0, "{bucket}");
        let reduced = trace.samples.iter().any(|s| s.info.ca_state == CaState::Cwr);
        assert!(reduced, "{bucket}: the window was reduced for it");
    }
}

/// The longest time from TCP to the wire of a small response, while ten others send what they can
/// at 5 Mbit/s.
fn longest_wait_ms(server: &str) -> u64 {
    let bulk = |name| format!("[applications.bulk{name}]\nsend = \"150kB\"\n");
    let bulk: Vec<_> = (0..10).map(bulk).collect();
    let text = format!(
        "[path]\nrtt = \"10ms\"\nrate = \"1gbit\"\n[server]\n{server}\n{}[applications.chat]\n\
         exchange = \"200B\"\ntimes = 8\nidle = \"100ms\"\nstart = \"500ms\"\n",
        bulk.concat()
    );
    let (outcome, trace) = run(&plan(&text), (6, 1));
    assert!(outcome.done);
    let chat = trace.segments.iter().map(|seen| seen.connection).max().expect("there are some");
    let of_chat = |seen: &&Seen| {
        seen.connection == chat && seen.from == Side::Server && seen.segment.len == 200
    };
    let down = trace.handed_down.iter().filter(of_chat).map(|seen| seen.at_ns);
    let up = trace.segments.iter().filter(of_chat).filter(|seen| seen.tap == Tap::Client);
    // Half of the round trip is the distance.
    let waits = down.zip(up).map(|(down, up)| (up.at_ns - down) / 1_000_000 - 5);
    waits.max().expect("it answered")
}

#[test]
fn limits_and_a_fair_discipline_together_keep_an_answer_s_wait_short() {
    let without = longest_wait_ms("device = { rate = \"5mbit\", bql = false }");
    let limits_alone = longest_wait_ms("device = { rate = \"5mbit\" }");
    let fair_alone =
        longest_wait_ms("egress = \"fq_codel\"\ndevice = { rate = \"5mbit\", bql = false }");
    let both = longest_wait_ms("egress = \"fq_codel\"\ndevice = { rate = \"5mbit\" }");
    let capped = longest_wait_ms(
        "egress = \"fq_codel\"\ndevice = { rate = \"5mbit\", limit_max = \"3000B\" }",
    );
    // Small queues leave each of the ten two pieces of two frames: 40 frames of 2.4 ms. Without
    // limits they stand in the ring, where no discipline sorts them; limits alone move them to a queue
    // that does not sort either.
    for alone in [without, limits_alone, fair_alone] {
        assert!((90..105).contains(&alone), "{without} {limits_alone} {fair_alone}");
    }
    // Three frames in the ring, and what is left of a super-segment that was cut before it.
    assert!(both < 20, "{both}");
    assert!(capped <= both, "{capped}");
}

#[test]
fn other_traffic_takes_its_share_of_a_link() {
    let ms = |cross: &str| {
        let lines =
            format!("[path]\nrtt = \"20ms\"\nrate = \"20mbit\"\ndown.cross = \"{cross}\"\n");
        let (outcome, trace) = download("2MB", &lines);
        assert!(outcome.done);
        assert!(trace.segments.iter().all(|seen| seen.connection == 0), "it is seen nowhere");
        outcome.end_ns / 1_000_000
    };
    let (alone, shared) = (ms("none"), ms("10mbit by 1000B"));
    // 2 MB at 20 Mbit/s are 800 ms.
    assert!((800..1_050).contains(&alone), "{alone}");
    assert!((1_600..2_100).contains(&shared), "{shared}");
}

#[test]
fn a_sender_that_is_told_of_a_smaller_packet_sends_smaller_ones() {
    let lines = "[path]\nrtt = \"20ms\"\nmtu = 1400\n";
    let (outcome, trace) = download("100kB", lines);
    assert!(outcome.done);
    let arrived = trace.segments.iter().filter(|seen| seen.tap == Tap::Client);
    let longest = arrived.filter(|s| s.from == Side::Server).map(|s| s.segment.len).max();
    // 1400 less 20 of IP, 20 of TCP and 12 of timestamps.
    assert_eq!(longest, Some(1348));
    let (outcome, _) = download("100kB", &format!("limit = \"10s\"\n{lines}black_hole = true\n"));
    assert!(!outcome.done, "nothing tells it");
}

#[test]
fn damaged_packets_are_seen_and_sent_again() {
    let (outcome, trace) = download("1MB", "[path]\nrtt = \"20ms\"\ndown.corrupt = \"1%\"\n");
    assert!(outcome.done);
    assert!(resent(&trace) > 3);
    let data = |tap| {
        let at = trace.segments.iter().filter(move |seen| seen.tap == tap && seen.segment.len > 0);
        at.filter(|seen| seen.from == Side::Server).count()
    };
    assert_eq!(data(Tap::Server), data(Tap::Client), "all of them arrive");
}

#[test]
fn cells_take_a_tenth_and_more_of_a_line() {
    let ms = |overhead: &str| {
        let lines =
            format!("[path]\nrtt = \"20ms\"\nrate = \"8mbit\"\noverhead = \"{overhead}\"\n");
        download("1MB", &lines).0.end_ns / 1_000_000
    };
    // 1514 bytes are 32 cells of 53: 12 % more.
    let (plain, cells) = (ms("none"), ms("atm"));
    assert!((110..115).contains(&(cells * 100 / plain)), "{cells} {plain}");
}

/// Everything that a host's way out and a link may be, and what that may do to TCP.
fn any(dice: &mut Chance) -> String {
    let mut pick = |choices: &[&str]| choices[dice.below(choices.len() as u64) as usize].to_owned();
    let path = [
        pick(&["rtt = \"1ms\"", "rtt = \"30ms\""]),
        pick(&["rate = \"5mbit\"", "rate = \"50mbit\""]),
        pick(&["queue = \"fq_codel\"", "queue = \"15 packets\"", "queue = \"endless\""]),
        pick(&["", "overhead = \"10B atm\"", "cross = \"2mbit\"", "mtu = 1000"]),
        pick(&["", "loss = \"1%\"", "corrupt = \"1%\"", "jitter = \"1ms\""]),
    ];
    let server = [
        pick(&["cubic", "reno", "bbr", "textbook-reno", "textbook-tahoe", "stop-and-wait"]),
        pick(&["", "offload = true"]),
        pick(&[
            "egress = \"fq\"",
            "egress = \"fq_codel\"",
            "egress = \"fifo 3 packets\"",
            "egress = \"fifo 5000B\"",
            "egress = { rate = \"3mbit\", burst = \"5kB\", queue = \"8kB\" }",
            "egress = { rate = \"3mbit\", burst = \"80kB\" }",
            "",
        ]),
        pick(&[
            "",
            "device = { rate = \"4mbit\" }",
            "device = { rate = \"20mbit\", bql = false, ring = 2 }",
            "device = { rate = \"4mbit\", limit_max = \"1000B\" }",
        ]),
        pick(&["", "sysctl.net.ipv4.tcp_ecn = 1", "sysctl.net.ipv4.tcp_sack = 0"]),
    ];
    format!(
        "limit = \"30min\"\n[path]\n{}\n[server]\nroute.congctl = \"{}\"\n{}\n[client]\n\
         sysctl.net.ipv4.tcp_ecn = 1\n[applications.one]\ndownload = \"80KiB\"\n\
         [applications.two]\npost = \"30KiB\"\nstart = \"20ms\"\n",
        path.join("\n"),
        server[0],
        server[1..].join("\n")
    )
}

#[test]
fn every_byte_arrives_through_whatever_queues() {
    let mut dice = Chance::new(11);
    for round in 0..200 {
        let text = any(&mut dice);
        let version = [(4, 18), (5, 10), (6, 1), (6, 12), (6, 18)][round % 5];
        let (outcome, trace) = run(&plan(&text), version);
        assert!(outcome.done, "{:?}\n{version:?}\n{text}", outcome.waiting);
        counts_hold(&trace, &text);
    }
}
