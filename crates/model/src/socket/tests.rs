//! Tapes: segments and calls in, segments out.

use super::*;
use crate::profile::{KernelProfile, Version};
use crate::segment::{Flags, Options, Stamps};

const MS: u64 = 1_000_000;

fn config() -> Config {
    Config::of(KernelProfile::of(Version::new(6, 1)))
}

/// A SYN as a Linux peer sends it.
fn syn() -> Segment {
    Segment {
        seq: 999,
        flags: Flags::SYN,
        window: 64_240,
        options: Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            stamps: Some(Stamps { value: 1, echo: 0 }),
            ..Options::default()
        },
        ..Segment::default()
    }
}

/// A server's socket, established at 10 ms over a round trip of 10 ms.
fn server(config: Config) -> Socket {
    let mut out = Vec::new();
    let mut socket = Socket::accept(config, 0, &syn(), &mut out).expect("a known controller");
    socket.on_segment(10 * MS, &ack(1, 10), &mut out);
    assert_eq!(socket.state(), State::Established);
    socket
}

/// An acknowledgment of everything before `ack`, with a window of 64,128 bytes.
fn ack(ack: u32, at_ms: u32) -> Segment {
    Segment {
        seq: 1000,
        ack,
        flags: Flags::ACK,
        window: 501,
        options: Options { stamps: Some(Stamps { value: at_ms, echo: 1 }), ..Options::default() },
        ..Segment::default()
    }
}

fn lens(out: &mut Vec<Segment>) -> Vec<u32> {
    out.drain(..).map(|segment| segment.len).collect()
}

#[test]
fn a_syn_is_answered_with_what_both_can() {
    let mut out = Vec::new();
    Socket::accept(config(), 0, &syn(), &mut out).expect("a known controller");
    let answer = out[0];
    assert_eq!(answer.flags, Flags::SYN.with(Flags::ACK));
    assert_eq!((answer.ack, answer.window), (1000, 65_160));
    assert_eq!(answer.options.mss, Some(1460));
    assert_eq!(answer.options.window_scale, Some(7));
    assert!(answer.options.sack_permitted);
    assert_eq!(answer.options.stamps.map(|stamps| stamps.echo), Some(1));
}

#[test]
fn an_unanswered_syn_is_sent_again_with_doubled_pauses() {
    let mut out = Vec::new();
    let mut socket = Socket::connect(config(), 0, &mut out).expect("a known controller");
    let mut seconds = Vec::new();
    while let Some(at) = socket.next_timer() {
        out.clear();
        socket.on_timer(at, &mut out);
        // The timer wheel's grain makes each up to an eighth late.
        seconds.push(at / 1_000_000_000);
        assert_eq!(out.is_empty(), socket.state() == State::Closed);
    }
    assert_eq!(seconds[..3], [1, 3, 7]);
    assert_eq!(seconds.len(), 7);
    assert!((127..140).contains(&seconds[6]), "{seconds:?}");
}

#[test]
fn since_6_5_the_first_four_repeats_of_a_syn_are_a_second_apart() {
    let mut out = Vec::new();
    let config = Config::of(KernelProfile::of(Version::new(6, 6)));
    let mut socket = Socket::connect(config, 0, &mut out).expect("a known controller");
    let mut seconds = Vec::new();
    while let Some(at) = socket.next_timer() {
        out.clear();
        socket.on_timer(at, &mut out);
        seconds.push((at as f64 / 1e9).round() as u64);
    }
    assert_eq!(seconds[..7], [1, 2, 3, 4, 5, 7, 11]);
    assert_eq!(seconds.len(), 11);
}

#[test]
fn the_first_flight_is_ten_segments() {
    let mut socket = server(config());
    let mut out = Vec::new();
    socket.write(10 * MS, 100_000, &mut out);
    assert_eq!(lens(&mut out).iter().sum::<u32>(), 14_480);
    assert_eq!(socket.wait(), Wait::Cwnd);
    assert_eq!(socket.info().cwnd, 10);
}

#[test]
fn an_initial_window_of_its_own_goes_out_whole() {
    let mut config = config();
    config.route.initcwnd = Some(30);
    let mut socket = server(config);
    let mut out = Vec::new();
    socket.write(10 * MS, 43_440, &mut out);
    assert_eq!(lens(&mut out).iter().sum::<u32>(), 43_440);
}

#[test]
fn each_acknowledged_packet_makes_the_window_larger_by_one() {
    let mut socket = server(config());
    let mut out = Vec::new();
    socket.write(10 * MS, 100_000, &mut out);
    out.clear();
    socket.on_segment(20 * MS, &ack(1 + 2 * 1448, 20), &mut out);
    assert_eq!(socket.info().cwnd, 12);
    assert_eq!(lens(&mut out).iter().sum::<u32>(), 4 * 1448);
}

#[test]
fn the_first_data_is_acknowledged_at_once_and_an_interactive_peers_later() {
    let mut socket = server(config());
    let mut out = Vec::new();
    let data = Segment { len: 100, flags: Flags::ACK.with(Flags::PSH), ..ack(1, 10) };
    socket.on_segment(10 * MS, &data, &mut out);
    assert_eq!(out.len(), 1, "quick at first");
    out.clear();
    socket.read(10 * MS, 100, &mut out);
    socket.write(10 * MS, 100, &mut out);
    out.clear();
    let more = Segment { seq: 1100, ack: 101, ..data };
    socket.on_segment(20 * MS, &more, &mut out);
    assert!(out.is_empty(), "it goes to and fro: the answer will carry the acknowledgment");
    let due = socket.next_timer().expect("a delayed acknowledgment");
    assert!((60 * MS..=68 * MS).contains(&due), "{due}");
    socket.on_timer(due, &mut out);
    assert_eq!(out[0].ack, 1200);
}

#[test]
fn a_small_segment_waits_while_another_is_out_but_not_with_nodelay() {
    for (nodelay, sent) in [(false, vec![100]), (true, vec![100, 100])] {
        let mut config = config();
        config.options.nodelay = nodelay;
        let mut socket = server(config);
        let mut out = Vec::new();
        socket.write(10 * MS, 100, &mut out);
        socket.write(10 * MS, 100, &mut out);
        assert_eq!(lens(&mut out), sent);
    }
}

#[test]
fn three_sacked_packets_mark_the_hole_lost_and_it_is_sent_again() {
    let mut socket = server(config());
    let mut out = Vec::new();
    socket.write(10 * MS, 14_480, &mut out);
    out.clear();
    for packet in 2..=4 {
        let mut duplicate = ack(1, 20);
        duplicate.options.sack.push(1 + 1448, 1 + packet * 1448);
        socket.on_segment(20 * MS, &duplicate, &mut out);
    }
    assert_eq!(socket.info().ca_state, CaState::Recovery);
    assert_eq!(out.iter().map(|s| (s.seq, s.len)).collect::<Vec<_>>(), [(1, 1448)]);
    // CUBIC: 717/1024 of ten.
    assert_eq!(socket.info().ssthresh, 7);
}

#[test]
fn a_timeout_leaves_a_window_of_one() {
    let mut socket = server(config());
    let mut out = Vec::new();
    socket.write(10 * MS, 14_480, &mut out);
    out.clear();
    // First a probe of the tail, then the timeout.
    for _ in 0..2 {
        let due = socket.next_timer().expect("a timer");
        socket.on_timer(due, &mut out);
    }
    assert_eq!(out.iter().map(|s| s.seq).collect::<Vec<_>>(), [1 + 9 * 1448, 1]);
    assert_eq!(socket.info().ca_state, CaState::Loss);
    assert_eq!(socket.info().cwnd, 1);
}
