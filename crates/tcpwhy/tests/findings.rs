//! Are findings named right on real captures whose cause is known by how they were set up?
//!
//! Each row names a capture, the finding that its setup provokes, and findings that the setup excludes. Captures of
//! both hosts of one run must name the same. The tap's place changes what can be seen, not what was. The READMEs
//! beside the captures describe the setups.

#[expect(dead_code, reason = "other tests use the rest of it")]
mod common;

use common::read::{explain, testdata};
use common::sheet::Sheet;

/// A capture (or the two of one run), what must be found, and what must not.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

const NETWORK: &[&str] = &[
    "SLOW_START",
    "WINDOW_CAP",
    "WINDOW_GROWTH",
    "SLOW_READER",
    "ZERO_WINDOW",
    "SEND_BUFFER",
    "LOSS",
    "LOSS_CONGESTION",
    "LOSS_RANDOM",
    "BOTTLENECK",
    "TIMEOUT",
];
const LOSSES: &[&str] =
    &["LOSS", "LOSS_CONGESTION", "LOSS_RANDOM", "LOSS_PERIODIC", "LOSS_LOCAL", "TIMEOUT"];
const WINDOWS: &[&str] =
    &["WINDOW_CAP", "WINDOW_GROWTH", "WINDOW_SCALE", "SLOW_READER", "ZERO_WINDOW", "SEND_BUFFER"];

/// Runs of `testdata/kernel`, each with a capture of both hosts.
const RUNS: [Row; 29] = [
    ("slowstart-rtt6", &["SLOW_START"], WINDOWS),
    ("slowstart-rtt6-reno", &["SLOW_START"], LOSSES),
    ("slowstart-rtt6-3906k", &["SLOW_START"], LOSSES),
    ("slowstart-rtt20", &["SLOW_START"], WINDOWS),
    ("slowstart-router-rtt20", &["SLOW_START"], LOSSES),
    ("slowstart-router-gro", &["SLOW_START"], LOSSES),
    ("ipv6-512k", &["SLOW_START"], WINDOWS),
    ("mss-536", &["SLOW_START", "SMALL_MSS"], WINDOWS),
    ("notimestamps-4m", &["SLOW_START"], LOSSES),
    ("initcwnd100", &["WINDOW_GROWTH"], &["WINDOW_CAP", "SLOW_READER", "SEND_BUFFER"]),
    ("idle-restart-on", &["IDLE_RESTART", "NOT_TCP"], LOSSES),
    ("idle-restart-500ms", &["IDLE_RESTART", "NOT_TCP"], LOSSES),
    ("idle-restart-off", &["NOT_TCP"], &["IDLE_RESTART", "TIMEOUT", "LOSS"]),
    ("keepalive-think500", &["IDLE_RESTART", "THINK_CLIENT"], &["THINK_SERVER", "TIMEOUT"]),
    ("reqresp-think50", &["THINK_SERVER", "NOT_TCP"], NETWORK),
    ("app-slow-cpu", &["SLOW_WRITER"], NETWORK),
    ("rwnd-cap-64k-rtt20", &["WINDOW_CAP"], &["SEND_BUFFER", "SLOW_READER", "WINDOW_SCALE"]),
    ("rwnd-cap-64k-rtt100", &["WINDOW_CAP"], &["SEND_BUFFER", "SLOW_READER", "WINDOW_SCALE"]),
    ("rwnd-cap-rmem4096", &["WINDOW_CAP"], &["SEND_BUFFER", "SLOW_READER", "WINDOW_SCALE"]),
    ("lag-rwnd-cap", &["WINDOW_CAP"], &["SEND_BUFFER", "SLOW_READER"]),
    ("nowscale-4m", &["WINDOW_SCALE"], &["WINDOW_CAP", "SEND_BUFFER", "WINDOW_GROWTH"]),
    ("rwnd-reader-slow-rcvbuf", &["SLOW_READER"], &["SEND_BUFFER", "LOSS", "BOTTLENECK"]),
    ("lag-zero-window", &["ZERO_WINDOW"], &["TIMEOUT", "NOT_TCP", "SEND_BUFFER"]),
    ("lag-sndbuf", &["SEND_BUFFER"], &["WINDOW_CAP", "SLOW_WRITER", "LOSS"]),
    ("sndbuf-wmem4096", &["SEND_BUFFER"], &["WINDOW_CAP", "SLOW_WRITER", "LOSS"]),
    ("nagle-delack", &["NAGLE_DELAYED_ACK"], &["TIMEOUT", "LOSS", "WINDOW_CAP"]),
    ("loss-tail-rto", &["TIMEOUT"], &["NOT_TCP", "LOSS_CONGESTION", "LOSS_RANDOM"]),
    ("loss-tail-tlp", &["TIMEOUT"], &["NOT_TCP", "LOSS_CONGESTION", "LOSS_RANDOM"]),
    ("loss-one-early", &["LOSS"], &["LOSS_CONGESTION", "LOSS_RANDOM", "SLOW_START_ENDED_EARLY"]),
];

/// Captures of one host only, or where the hosts see different things.
const SINGLE: [Row; 18] = [
    ("kernel/local-tbf-8mbit.server", &["LOCAL_QDISC"], &["SEND_BUFFER", "WINDOW_CAP"]),
    ("kernel/local-tbf-8mbit.client", &["BOTTLENECK"], &["SEND_BUFFER", "WINDOW_CAP"]),
    ("waits/1m-rtt40-rcvbuf64k", &["WINDOW_CAP", "SLOW_START"], LOSSES),
    ("waits/1m-rtt12-iw10", &["SLOW_START"], LOSSES),
    ("waits/300k-twice-idle1s", &["IDLE_RESTART", "SLOW_START"], LOSSES),
    ("waits/4m-rtt12-100mbit", &["BOTTLENECK"], &["WINDOW_CAP", "SEND_BUFFER"]),
    // The server stops in the middle of its answer.
    ("resets/answer-cut-off.server", &["RESET"], LOSSES),
    ("resets/answer-cut-off.client", &["RESET"], LOSSES),
    // Closed in order.
    ("waits/200k-rtt3-iw10", &[], &["RESET"]),
    // Lost at random: the flight is no cause, whatever a test says of it by chance.
    ("truth/lossy-sender", &[], &["LOSS_CONGESTION", "BOTTLENECK", "POLICER"]),
    ("truth/lossy-receiver", &["LOSS_RANDOM"], &["LOSS_CONGESTION", "BOTTLENECK", "POLICER"]),
    ("openings/tls12.server", &["TLS_ROUND_TRIPS"], &["THINK_SERVER", "NOT_TCP", "SLOW_START"]),
    ("openings/tls12.client", &["TLS_ROUND_TRIPS"], &["THINK_SERVER", "NOT_TCP", "SLOW_START"]),
    ("openings/filtered-reverse-path.server", &["SYN_UNANSWERED"], &["SYN_RETRY", "NOT_TCP"]),
    ("openings/filtered-reverse-path.client", &["SYN_UNANSWERED"], &["SYN_RETRY", "NOT_TCP"]),
    // Beside another download that began before.
    (
        "openings/shared-link.server",
        &["BOTTLENECK_SHARED"],
        &["BOTTLENECK", "WINDOW_CAP", "SEND_BUFFER"],
    ),
    (
        "openings/shared-link.client",
        &["BOTTLENECK_SHARED"],
        &["BOTTLENECK", "WINDOW_CAP", "SEND_BUFFER"],
    ),
    ("truth/only-data", &[], &["LOSS", "LOSS_CONGESTION", "LOSS_RANDOM", "WINDOW_CAP"]),
];

/// Runs through a device that does one thing wrong (`testdata/middlebox`), as each host sees it.
const MIDDLEBOX: [Row; 20] = [
    ("plain.server", &["SLOW_START"], DEVICES),
    ("plain.client", &["SLOW_START"], DEVICES),
    // Only full segments were sent, and of the client only a FIN came: the way there may be dead for all.
    (
        "black-hole.server",
        &["NEVER_ACKNOWLEDGED"],
        &["TIMEOUT", "BLACK_HOLE", "LOSS", "NOT_TCP", "STOOD_STILL"],
    ),
    // Of what the device drops only the server's numbers tell behind it.
    ("black-hole.client", &["NEVER_ARRIVED"], &["NO_ANSWER", "BLACK_HOLE", "LOSS", "SLOW_READER"]),
    ("black-hole-probed.server", &["BLACK_HOLE"], &["TIMEOUT", "NOT_TCP", "STOOD_STILL"]),
    (
        "black-hole-probed.client",
        &[],
        &["BLACK_HOLE", "SLOW_READER", "STOOD_STILL", "THINK_SERVER", "NOT_TCP"],
    ),
    // 64 KiB over 21 ms are 24.7 Mbit/s, and the device lets 20 through: the window is no limit.
    (
        "scale-stripped-for-server.server",
        &["BOTTLENECK", "OPTIONS_STRIPPED"],
        &["SCALE_LOST", "WINDOW_CAP", "WINDOW_SCALE"],
    ),
    (
        "scale-stripped-for-server.client",
        &["BOTTLENECK"],
        &["SCALE_LOST", "WINDOW_CAP", "WINDOW_SCALE", "OPTIONS_STRIPPED"],
    ),
    (
        "scale-lost-on-the-answer.server",
        &["SCALE_LOST"],
        &["NOT_TCP", "THINK_CLIENT", "OPTIONS_STRIPPED"],
    ),
    (
        "scale-lost-on-the-answer.client",
        &["SCALE_LOST", "OPTIONS_STRIPPED"],
        &["NOT_TCP", "WINDOW_CAP"],
    ),
    ("options-stripped.server", &["OPTIONS_STRIPPED"], &["SCALE_LOST", "WINDOW_SCALE"]),
    // The server, whom nothing was offered, offered nothing: its answer has no hole.
    (
        "options-stripped.client",
        &["OPTIONS_REFUSED"],
        &["OPTIONS_STRIPPED", "SCALE_LOST", "WINDOW_SCALE"],
    ),
    ("thinned-acks.server", &["THINNED_ACKS"], &["STOOD_STILL", "LOSS", "SLOW_READER"]),
    // The client sent them all.
    ("thinned-acks.client", &[], &["THINNED_ACKS", "STOOD_STILL"]),
    ("marked.server", &["ECN"], &["LOSS", "SLOW_START_ENDED_EARLY", "STOOD_STILL"]),
    ("marked.client", &["ECN"], &["LOSS", "SLOW_START_ENDED_EARLY", "STOOD_STILL"]),
    ("answer-path-stands-still.server", &["STOOD_STILL"], &["LOSS", "SLOW_READER", "BLACK_HOLE"]),
    // Nothing was late between the data and its ACK here: what stood still lies behind the server's silence.
    ("answer-path-stands-still.client", &[], &["STOOD_STILL", "LOSS", "SLOW_READER"]),
    ("data-path-stands-still.server", &["STOOD_STILL"], &["LOSS", "SLOW_READER", "BLACK_HOLE"]),
    ("data-path-stands-still.client", &["STOOD_STILL"], &["LOSS", "SLOW_READER", "BLACK_HOLE"]),
];
const DEVICES: &[&str] = &[
    "BLACK_HOLE",
    "SCALE_LOST",
    "OPTIONS_STRIPPED",
    "OPTIONS_REFUSED",
    "THINNED_ACKS",
    "ECN",
    "STOOD_STILL",
];

/// Real runs in `testdata/cases`, whose setups stand there: the capture, which of its connections, what must be found,
/// and what must not.
const CASES: [(&str, usize, &[&str], &[&str]); 38] = [
    // Routers with a smaller MTU behind them, and one that drops without a word.
    ("download-through-a-smaller-hop/capture.pcap", 0, &["PATH_MTU"], &["BLACK_HOLE", "TIMEOUT"]),
    ("large-segments-over-ipv6-at-1294/capture.pcap", 0, &["PATH_MTU"], &["BLACK_HOLE", "LOSS"]),
    ("full-frames-dropped/capture.pcap", 0, &[], &["PATH_MTU"]),
    // A router without a way to the host, one that prohibits it, and hosts that are silent.
    ("hosts-that-a-router-cannot-reach/capture.pcap", 0, &["UNREACHABLE"], &["SYN_RETRY"]),
    ("prohibited-over-ipv6/capture.pcap", 0, &["UNREACHABLE"], &["SYN_RETRY"]),
    ("hosts-that-a-router-cannot-reach/capture.pcap", 1, &["SYN_UNANSWERED"], &["UNREACHABLE"]),
    ("download-with-copies/capture.pcap.gz", 0, &["DUPLICATED"], LOSSES),
    ("upload-with-copies/capture.pcapng.gz", 0, &["DUPLICATED"], LOSSES),
    ("download-with-damage/capture.pcap.gz", 0, &["DAMAGED"], &["LOSS_RANDOM", "DUPLICATED"]),
    ("upload-with-damage-over-ipv6/capture.pcapng.gz", 0, &["DAMAGED"], &["LOSS_RANDOM"]),
    ("certificate-nobody-trusts/capture.pcap", 0, &["TLS_ALERT"], &["HTTP_ERROR", "RESET"]),
    ("old-client-new-server/capture.pcap", 0, &["TLS_ALERT"], &["HTTP_ERROR"]),
    ("tls-closed-in-order/capture.pcap", 0, &[], &["TLS_ALERT"]),
    ("proxy-without-backend/capture.pcap", 0, &["HTTP_ERROR"], &["TLS_ALERT", "NOT_TCP"]),
    ("download-of-a-log/capture.pcap", 0, &[], &["HTTP_ERROR"]),
    // Addresses rewritten one way only, and both ways.
    ("rewritten-one-way/capture.pcap", 1, &["HANDSHAKE_REFUSED"], &["SYN_RETRY"]),
    ("rewritten-both-ways/capture.pcap", 0, &[], &["HANDSHAKE_REFUSED"]),
    ("accept-queue-of-one/capture.pcap", 2, &["ACCEPT_QUEUE"], LOSSES),
    ("backlog-of-two-at-the-client/capture.pcap", 3, &["ACCEPT_QUEUE"], LOSSES),
    ("accept-queue-of-one/capture.pcap", 0, &["THINK_SERVER"], &["ACCEPT_QUEUE"]),
    // A path that holds first packets, as each host sees it, and one that is long.
    ("first-packets-held-up/capture.pcap.gz", 0, &["SLOW_HANDSHAKE"], &["SYN_RETRY"]),
    ("first-packets-held-up-over-ipv6/capture.pcap.gz", 0, &["SLOW_HANDSHAKE"], &["SYN_RETRY"]),
    ("first-packets-held-up-before-the-server/capture.pcap.gz", 0, &[], &["SLOW_HANDSHAKE"]),
    ("handshakes-on-a-long-path/capture.pcap.gz", 0, &["LONG_ROUND_TRIP"], &["SLOW_HANDSHAKE"]),
    ("requests-over-a-satellite/capture.pcap", 0, &["LONG_ROUND_TRIP"], &["SLOW_HANDSHAKE"]),
    // Small exchanges behind the queue that a download fills, and the download.
    (
        "exchanges-behind-a-download-at-the-client/capture.pcapng.gz",
        1,
        &["OTHERS_QUEUE"],
        &["THINK_SERVER", "LONG_ROUND_TRIP"],
    ),
    (
        "exchanges-behind-a-download-at-the-client/capture.pcapng.gz",
        0,
        &["BOTTLENECK"],
        &["OTHERS_QUEUE"],
    ),
    ("small-exchanges-without-a-download/capture.pcapng.gz", 1, &[], &["OTHERS_QUEUE"]),
    ("second-request-with-fast-open/capture.pcap", 1, &["FAST_OPEN"], LOSSES),
    ("upload-by-bbr-after-lost-syns/capture.pcapng.gz", 0, &["SYN_RETRY"], &["SYN_UNANSWERED"]),
    ("server-thinks-300-ms/capture.pcap.gz", 0, &["THINK_SERVER"], LOSSES),
    // A server that does not answer, or not to the end; frames that are dropped, and a path that is cut.
    ("request-and-six-seconds/capture.pcap", 0, &["NO_ANSWER"], &["NEVER_ARRIVED", "NOT_TCP"]),
    ("third-answer-stops/capture.pcap", 0, &["NO_ANSWER"], &["THINK_SERVER", "NOT_TCP"]),
    ("page-that-never-starts/capture.pcap", 0, &["NEVER_ARRIVED"], &["NO_ANSWER"]),
    ("page-tail-only-six-segments/capture.pcap", 0, &["NEVER_ARRIVED"], &["BODY_ON_ITS_WAY"]),
    ("ticker-without-listener/capture.pcap", 0, &["NEVER_ACKNOWLEDGED"], LOSSES),
    ("peer-with-a-shut-window/capture.pcap", 0, &["ZERO_WINDOW"], &["NO_ANSWER", "TIMEOUT"]),
    ("storage-peer-stuck-at-zero/listing.txt", 0, &["ZERO_WINDOW_HOLE"], &["ZERO_WINDOW"]),
];

/// Who stood still, as each host can tell.
const STILL: [(&str, &str); 3] = [
    ("answer-path-stands-still.server", "the way back from the client"),
    ("data-path-stands-still.server", "the way to the client, or its host,"),
    ("data-path-stands-still.client", "the way from the server to the capture point"),
];

fn check(sheet: &mut Sheet, capture: &str, wanted: &[&str], excluded: &[&str]) {
    check_one(sheet, &format!("{capture}.pcap.gz"), 0, wanted, excluded);
}

fn check_one(sheet: &mut Sheet, capture: &str, nth: usize, wanted: &[&str], excluded: &[&str]) {
    let report = explain(&testdata(capture));
    let connection = &report.connections[nth];
    let found: Vec<&str> = connection.findings.iter().map(|each| each.code.as_str()).collect();
    let all = found.join(", ");
    for code in wanted {
        sheet.holds(capture, "is found", code, &all, found.contains(code));
    }
    for code in excluded {
        sheet.holds(capture, "is not found", code, &all, !found.contains(code));
    }
    for finding in &connection.findings {
        let shows = finding.evidence.iter().all(|e| e.frames.first > 0 && !e.filter.is_empty());
        let fact = finding.severity == tcpwhy::report::Severity::Note;
        let good = shows
            && !finding.evidence.is_empty()
            && (finding.cost_ns > 0 || fact || finding.code == "RESET");
        sheet.holds(capture, "has evidence and cost", &finding.code, "none", good);
        let predicted = finding.remedies.iter().filter_map(|remedy| remedy.predicted_ns);
        for p in predicted {
            let ordered = 0 < p.low && p.low <= p.best && p.best <= p.high;
            sheet.holds(capture, "predicts in order", &finding.code, &format!("{p:?}"), ordered);
        }
    }
}

#[test]
fn what_a_kernel_waited_for_is_found_from_both_ends() {
    let mut sheet = Sheet::default();
    for (name, wanted, excluded) in RUNS {
        for host in ["client", "server"] {
            check(&mut sheet, &format!("kernel/{name}.{host}"), wanted, excluded);
        }
    }
    sheet.settle();
}

#[test]
fn what_a_device_did_is_found_where_it_can_be_seen() {
    let mut sheet = Sheet::default();
    for (capture, wanted, excluded) in MIDDLEBOX {
        check(&mut sheet, &format!("middlebox/{capture}"), wanted, excluded);
    }
    for (capture, who) in STILL {
        let report = explain(&testdata(&format!("middlebox/{capture}.pcap.gz")));
        let mut found = report.connections[0].findings.iter();
        let title = found.find(|each| each.code == "STOOD_STILL").map_or("", |each| &each.title);
        sheet.holds(capture, "stood still", who, title, title.starts_with(who));
    }
    sheet.settle();
}

#[test]
fn what_went_wrong_in_a_case_is_found() {
    let mut sheet = Sheet::default();
    for (capture, nth, wanted, excluded) in CASES {
        check_one(&mut sheet, &format!("cases/{capture}"), nth, wanted, excluded);
    }
    // No name server answered, so there is no connection.
    let report = explain(&testdata("cases/name-server-silent-capture/capture.pcap"));
    let codes: Vec<&str> = report.findings.iter().map(|each| each.code.as_str()).collect();
    let is_found = codes.contains(&"DNS_UNANSWERED");
    sheet.holds("silent name server", "is found", "DNS_UNANSWERED", &codes.join(", "), is_found);
    sheet.settle();
}

#[test]
fn what_was_configured_is_found() {
    let mut sheet = Sheet::default();
    for (capture, wanted, excluded) in SINGLE {
        check(&mut sheet, capture, wanted, excluded);
    }
    sheet.settle();
}

#[test]
fn what_a_listing_left_out_is_found_and_is_no_loss() {
    let listing = "articles/download-512k-rtt3ms-abridged.tcpdump.txt";
    let report = explain(&testdata(listing));
    let codes: Vec<&str> =
        report.connections[0].findings.iter().map(|each| each.code.as_str()).collect();
    assert!(codes.contains(&"CAPTURE_GAP"), "{codes:?}");
    assert!(!codes.iter().any(|code| LOSSES.contains(code)), "{codes:?}");
}
