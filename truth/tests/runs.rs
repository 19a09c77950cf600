//! The truth of five recorded runs (`tests/README.md`), with all of their records and with those
//! alone that a stock kernel leaves.

use std::fs;
use std::io::Read;
use std::path::Path;

use proptest::prelude::*;
use truth::stock::{Held, hold};
use truth::{Interval, Source, State, Truth, of_folder};

/// A run's records, without the events that only an observed kernel has if `stock`.
fn run(name: &str, stock: bool) -> Truth {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs").join(name);
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::copy(from.join("plan.json"), folder.path().join("plan.json")).expect("the plan");
    for file in ["kernel.jsonl", "applications.jsonl"] {
        let packed = fs::File::open(from.join(format!("{file}.gz"))).expect("a record");
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("it unpacks");
        if stock {
            let only_observed =
                |line: &&str| !line.contains("\"tcp_truth\"") && !line.contains("\"tcp_segment\"");
            text = text.lines().filter(only_observed).flat_map(|line| [line, "\n"]).collect();
        }
        fs::write(folder.path().join(file), text).expect("written");
    }
    of_folder(folder.path()).expect("a truth")
}

fn ms(truth: &Truth, state: State) -> u64 {
    let rows = truth.time_in(1);
    rows.iter().find(|row| row.0 == state).map_or(0, |row| row.1 / 1_000_000)
}

#[test]
fn a_download_waits_for_a_window_that_doubles() {
    let truth = run("slowstart-rtt6", false);
    let server = truth.connections[0].directions[1].as_ref().expect("the server sent");
    assert_eq!((server.source, server.unrecorded_ns), (Source::Observed, 0));
    let waits =
        |i: &&Interval| i.state == State::CwndSlowStart && i.end_ns - i.start_ns > 5_000_000;
    let wait = server.intervals.iter().find(waits).expect("it waits");
    let window_at = |t| server.windows.iter().rev().find(|window| window.t < t).map(|w| w.cwnd);
    let rounds = (1..=5).map(|round| window_at(wait.start_ns + round * 6_000_000 - 1_000_000));
    assert_eq!(rounds.flatten().collect::<Vec<_>>(), [10, 20, 40, 80, 160]);
    assert_eq!(server.retransmitted, Some(0));
    assert!(server.srtt.iter().all(|sample| (6_000_000..6_200_000).contains(&sample.1)));
}

#[test]
fn intervals_have_no_gap_and_end_with_the_connection() {
    for name in [
        "slowstart-rtt6",
        "loss-tail-rto",
        "idle-restart-500ms",
        "zero-window-8192",
        "reqresp-think50",
    ] {
        for stock in [false, true] {
            let truth = run(name, stock);
            let connection = &truth.connections[0];
            for direction in connection.directions.iter().flatten() {
                let first = direction.intervals.first().map(|i| i.start_ns);
                let last = direction.intervals.last().map(|i| i.end_ns);
                assert_eq!((first, last), (Some(connection.start_ns), Some(connection.end_ns)));
                assert!(
                    direction.intervals.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns)
                );
            }
        }
    }
}

#[test]
fn a_lost_tail_waits_for_its_timer() {
    let truth = run("loss-tail-rto", false);
    assert!(
        ms(&truth, State::RtoWait) + ms(&truth, State::TlpWait) >= 200,
        "{:?}",
        truth.time_in(1)
    );
}

#[test]
fn a_pause_between_downloads_is_the_servers_own() {
    let truth = run("idle-restart-500ms", false);
    assert!((470..500).contains(&ms(&truth, State::IdleAppThink)), "{:?}", truth.time_in(1));
}

#[test]
fn a_stopped_reader_shuts_the_window() {
    for stock in [false, true] {
        let truth = run("zero-window-8192", stock);
        assert!((3000..3600).contains(&ms(&truth, State::ZeroWindow)), "{:?}", truth.time_in(1));
    }
}

#[test]
fn the_servers_work_is_its_own() {
    let truth = run("reqresp-think50", false);
    // 20 times 50 ms.
    assert!((995..1005).contains(&ms(&truth, State::IdleAppThink)), "{:?}", truth.time_in(1));
}

#[test]
fn stock_tracepoints_leave_out_but_do_not_lie() {
    let mut all = Held::default();
    for name in [
        "slowstart-rtt6",
        "loss-tail-rto",
        "idle-restart-500ms",
        "zero-window-8192",
        "reqresp-think50",
    ] {
        let (exact, stock) = (run(name, false), run(name, true));
        let side = stock.connections[0].directions[1].as_ref().expect("the server sent");
        assert_eq!(side.source, Source::Tracepoints);
        let held = hold(&exact, &stock, &[1]);
        // A call of write takes some time, for which no record says what it has written yet.
        assert!(held.against_ns * 1000 <= held.told_ns, "{name}: {held:?}");
        all.add(&held);
    }
    assert!(all.told_ns * 2 > all.whole_ns, "{all:?}");
}

/// Pieces of lines that keep random records near the real ones.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "{\"t\":1,\"event\":\"tcp_probe\",\"src\":\"a:8000\",\"dest\":\"b:5000\",\"snd_nxt\":9,\"snd_una\":4,\"snd_cwnd\":1,\"snd_wnd\":3}\n",
        "{\"t\":18446744073709551615,\"event\":\"tcp_truth\",\"sport\":8000,\"dport\":5000,\"where\":\"xmit\",\"why\":\"cwnd\",\"una\":4294967295,\"nxt\":5,\"end\":9,\"wnd\":0,\"cwnd\":0,\"ssthresh\":0}\n",
        "{\"t\":7,\"event\":\"tcp_truth\",\"sport\":8000,\"dport\":5000,\"where\":\"timer\",\"why\":\"rto\",\"una\":1,\"nxt\":5,\"end\":5,\"wnd\":1,\"cwnd\":\"0x10\",\"ssthresh\":1}\n",
        "{\"t\":9,\"event\":\"tcp_segment\",\"sport\":8000,\"dport\":5000,\"seq\":1,\"end_seq\":2,\"flags\":25}\n",
        "{\"t\":3,\"event\":\"tcp_retransmit_skb\",\"sport\":8000,\"dport\":5000}\n",
        "{\"who\":\"server\",\"flow\":0,\"connection\":1,\"step\":\"accept\",\"from\":0,\"to\":1,\"socket\":{\"local\":\"a:8000\",\"peer\":\"b:5000\",\"mss\":18446744073709551615}}\n",
        "{\"who\":\"server\",\"flow\":0,\"connection\":1,\"step\":\"write\",\"from\":9,\"to\":1,\"bytes\":18446744073709551615,\"sleeps\":1}\n",
        "{\"who\":\"server\",\"flow\":0,\"connection\":1,\"step\":\"read\",\"from\":9,\"to\":1,\"bytes\":0}\n",
        "{\"t\":",
        "}",
        "\n",
        "\"",
        "[",
        "null",
    ];
    prop_oneof![
        6 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,8}",
    ]
}

proptest! {
    #[test]
    fn no_record_panics(pieces in prop::collection::vec(piece(), 0..30)) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("plan.json"), r#"{"flows":[{"port":8000}]}"#).expect("written");
        for file in ["kernel.jsonl", "applications.jsonl"] {
            fs::write(folder.path().join(file), pieces.concat()).expect("written");
        }
        if let Ok(truth) = of_folder(folder.path()) {
            let _ = truth.time_in(1);
        }
    }
}
