//! Tapes: segments and calls in, segments out.

use super::*;
use crate::profile::{KernelProfile, ReceiveCharge, Version};
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
        // It echoes what was sent a round trip of 10 ms ago.
        options: Options {
            stamps: Some(Stamps { value: at_ms, echo: at_ms.saturating_sub(10).max(1) }),
            ..Options::default()
        },
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

/// An acknowledgment that tells of ranges, too.
fn sacking(number: u32, at_ms: u32, ranges: &[(u32, u32)]) -> Segment {
    let mut segment = ack(number, at_ms);
    for (from, to) in ranges {
        segment.options.sack.push(*from, *to);
    }
    segment
}

/// A server that has sent its first ten segments at 10 ms, and has more to send.
fn ten_out(config: Config) -> Socket {
    let mut socket = server(config);
    socket.write(10 * MS, 40_000, &mut Vec::new());
    assert_eq!(socket.info().unacked, 10);
    socket
}

const fn packet(number: u32) -> u32 {
    1 + (number - 1) * 1448
}

#[test]
fn the_first_two_duplicates_let_new_segments_out() {
    let mut socket = ten_out(config());
    let mut out = Vec::new();
    // Limited transmit (RFC 3042): what was sacked has left the network.
    socket.on_segment(20 * MS, &sacking(1, 20, &[(packet(2), packet(4))]), &mut out);
    assert_eq!(out.iter().map(|s| (s.seq, s.len)).collect::<Vec<_>>(), [(packet(11), 2896)]);
    assert_eq!(socket.info().ca_state, CaState::Disorder);
}

/// How many segments fewer are charged to the send buffer after each of these, before anything is sent.
fn merged_by(tape: &[&[(u32, u32)]]) -> Vec<u32> {
    let mut socket = ten_out(config());
    let before = socket.info().wmem_queued;
    let mut merged = |blocks: &&[(u32, u32)]| {
        let blocks: Vec<_> = blocks.iter().map(|(from, to)| (packet(*from), packet(*to))).collect();
        let mut ack = known::Ack { number: 1, prior_una: 1, ..known::Ack::default() };
        socket.mark_sacked(&sacking(1, 20, &blocks), &mut ack);
        (before - socket.info().wmem_queued) / config().kernel.memory.empty()
    };
    tape.iter().map(&mut merged).collect()
}

#[test]
fn marked_neighbours_become_one_segment() {
    // Segments of two packets each: the second, then the third with it, then the fourth by halves.
    assert_eq!(merged_by(&[&[(3, 5)], &[(3, 7)], &[(3, 8)], &[(3, 9)]]), [0, 1, 1, 2]);
}

#[test]
fn a_hole_that_is_filled_joins_both_sides() {
    assert_eq!(merged_by(&[&[(7, 9), (3, 5)], &[(3, 9)]]), [0, 2]);
}

#[test]
fn what_was_acknowledged_of_merged_segments_is_no_more_under_way() {
    let mut out = Vec::new();
    let mut socket = ten_out(config());
    socket.on_segment(20 * MS, &sacking(1, 20, &[(packet(3), packet(9))]), &mut out);
    socket.on_segment(21 * MS, &ack(packet(6), 21), &mut out);
    assert_eq!((socket.info().snd_una, socket.info().sacked), (packet(6), 3));
    socket.on_segment(22 * MS, &ack(packet(11), 22), &mut out);
    assert_eq!((socket.info().sacked, socket.info().lost), (0, 0));
}

#[test]
fn a_duplicate_told_later_undoes_the_reduction() {
    let mut socket = ten_out(config());
    let mut out = Vec::new();
    socket.on_segment(20 * MS, &sacking(1, 20, &[(packet(2), packet(5))]), &mut out);
    assert_eq!(socket.info().ca_state, CaState::Recovery);
    assert!(socket.info().ssthresh < 10);
    // The original arrives late, and then its copy: D-SACK (RFC 2883).
    out.clear();
    socket.on_segment(21 * MS, &ack(packet(5), 21), &mut out);
    socket.on_segment(31 * MS, &sacking(packet(11), 31, &[(1, packet(2))]), &mut out);
    assert_eq!(socket.info().ca_state, CaState::Open);
    assert!(socket.info().ssthresh > 1_000_000, "{}", socket.info().ssthresh);
}

#[test]
fn a_timeout_that_was_spurious_is_taken_back() {
    let mut socket = ten_out(config());
    let mut out = Vec::new();
    while socket.info().ca_state != CaState::Loss {
        let due = socket.next_timer().expect("a timer");
        socket.on_timer(due, &mut out);
    }
    let at = socket.next_timer().expect("the next timeout") - 100 * MS;
    // Everything had only been held up: what was never retransmitted is acknowledged (F-RTO).
    socket.on_segment(at, &ack(packet(9), 100), &mut out);
    assert_eq!(socket.info().ca_state, CaState::Open);
    assert!(socket.info().cwnd >= 10, "{}", socket.info().cwnd);
}

#[test]
fn without_sack_three_duplicates_send_the_head_again() {
    let mut config = config();
    config.sysctl.sack = false;
    let mut socket = ten_out(config);
    let mut out = Vec::new();
    for _ in 0..2 {
        socket.on_segment(20 * MS, &ack(1, 20), &mut out);
    }
    assert!(out.iter().all(|s| s.seq != 1));
    socket.on_segment(20 * MS, &ack(1, 20), &mut out);
    assert!(out.iter().any(|s| s.seq == 1 && s.len == 1448));
    assert_eq!(socket.info().ca_state, CaState::Recovery);
    // A partial acknowledgment shows the next hole (RFC 6582).
    out.clear();
    socket.on_segment(30 * MS, &ack(packet(4), 30), &mut out);
    assert_eq!(out[0].seq, packet(4));
}

#[test]
fn each_timeout_doubles_the_next_and_at_last_it_gives_up() {
    let mut socket = ten_out(config());
    let mut out = Vec::new();
    let mut timeouts: Vec<u64> = Vec::new();
    while let Some(at) = socket.next_timer() {
        out.clear();
        socket.on_timer(at, &mut out);
        timeouts.push(at / MS);
    }
    let gaps: Vec<u64> = timeouts.windows(2).skip(1).map(|w| w[1] - w[0]).take(6).collect();
    for pair in gaps.windows(2).skip(1) {
        let ratio = pair[1] as f64 / pair[0] as f64;
        assert!((1.7..2.3).contains(&ratio), "{gaps:?}");
    }
    // `tcp_retries2` = 15: about 924.6 s after the first retransmission, at the next timeout.
    let seconds = timeouts.last().expect("the end") / 1000;
    assert!((920..1_100).contains(&seconds), "{seconds}");
    assert!(socket.take_events().failed);
}

#[test]
fn a_closed_window_is_probed_at_doubled_pauses_until_it_opens() {
    let mut socket = server(Config::of(KernelProfile::of(Version::new(6, 12))));
    let mut out = Vec::new();
    socket.on_segment(10 * MS, &Segment { window: 0, ..ack(1, 10) }, &mut out);
    socket.write(10 * MS, 5_000, &mut out);
    assert!(out.is_empty());
    let mut probes = Vec::new();
    for _ in 0..4 {
        let at = socket.next_timer().expect("a probe");
        socket.on_timer(at, &mut out);
        probes.push(at / MS);
        socket.on_segment(at + 10 * MS, &Segment { window: 0, ..ack(1, 10) }, &mut out);
    }
    assert_eq!(out.len(), 4);
    assert!(out.iter().all(|probe| probe.len == 0 && probe.seq == 0), "{out:?}");
    let gaps: Vec<u64> = probes.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps[1] > gaps[0] * 3 / 2 && gaps[2] > gaps[1] * 3 / 2, "{gaps:?}");
    out.clear();
    let now = socket.next_timer().expect("a probe") - MS;
    socket.on_segment(now, &ack(1, 200), &mut out);
    assert_eq!(out.iter().map(|s| s.len).sum::<u32>(), 5_000);
}

/// The client's next full segments from `number` on, which came and were read.
fn full(number: u32) -> Segment {
    Segment { seq: 1000 + number * 1448, len: 1448, ..ack(1, 20) }
}

/// Has read 20 segments, so that the quick acknowledgments of the beginning are used up; its window stays.
fn reader() -> Socket {
    reader_on(Version::new(6, 1))
}

fn reader_on(version: Version) -> Socket {
    let mut config = Config::of(KernelProfile::of(version));
    config.sysctl.moderate_rcvbuf = false;
    let mut socket = server(config);
    for number in 0..20 {
        socket.on_segment(20 * MS, &full(number), &mut Vec::new());
        socket.read(20 * MS, 1448, &mut Vec::new());
    }
    socket
}

#[test]
fn many_duplicates_are_told_at_once_after_the_third() {
    let (mut socket, mut out) = (reader(), Vec::new());
    for number in 21..=28 {
        socket.on_segment(31 * MS - 1, &full(number), &mut out);
    }
    assert_eq!(out.len(), 3);
    let due = socket.next_timer().expect("the compressed one");
    assert!((31 * MS..32 * MS + 100_000).contains(&due), "{due}");
    socket.on_timer(due, &mut out);
    let next = full(20).seq;
    assert_eq!(out[3].options.sack.as_slice(), [(next + 1448, next + 9 * 1448)]);
    assert_eq!(out[3].options.stamps, out[2].options.stamps, "its timer reads no clock");
}

#[test]
fn the_timer_of_held_back_acknowledgments_reads_the_clock_since_6_13() {
    let stamps = |version| {
        let (mut socket, mut out) = (reader_on(version), Vec::new());
        for number in 21..=28 {
            socket.on_segment(31 * MS - 1, &full(number), &mut out);
        }
        let told = out.len();
        let due = socket.next_timer().expect("the compressed one");
        socket.on_timer(due, &mut out);
        assert_eq!(out.len(), told + 1);
        [told - 1, told].map(|at| out[at].options.stamps.expect("stamps").value)
    };
    assert_eq!(stamps(Version::new(6, 12)), [30, 30]);
    assert_eq!(stamps(Version::new(6, 18)), [30, 31]);
}

#[test]
fn the_timer_of_an_acknowledgment_that_left_early_sends_what_is_held_back_then() {
    let (mut socket, mut out) = (reader(), Vec::new());
    socket.on_segment(30 * MS, &full(20), &mut out);
    socket.read(30 * MS, 1448, &mut out);
    let due = socket.next_timer().expect("a delayed one");
    assert!(out.is_empty() && due >= 70 * MS, "{due}");
    socket.on_segment(31 * MS, &full(21), &mut out);
    assert_eq!(out.len(), 1, "the second calls for it");
    out.clear();
    for number in 23..=39 {
        socket.on_segment(due - MS / 2, &full(number), &mut out);
    }
    assert_eq!(socket.next_timer(), Some(due));
    let (told, last) = (out.len(), out.last().map(|ack| ack.options.stamps));
    socket.on_timer(due, &mut out);
    assert_eq!(out.len(), told + 1);
    assert_eq!(out[told].options.sack.as_slice(), [(full(23).seq, full(40).seq)]);
    assert_ne!(Some(out[told].options.stamps), last, "it reads the clock");
    out.clear();
    socket.on_segment(due + MS / 4, &full(40), &mut out);
    assert!(out.is_empty(), "held back anew");
    let next = socket.next_timer().expect("the compressed one");
    assert!(next > due + MS / 2, "with a time of its own: {next}");
}

#[test]
fn data_that_echoes_what_an_ack_did_before_it_measures_no_round_trip() {
    let measured = |acked_before: bool| {
        let mut socket = server(config());
        let mut out = Vec::new();
        if acked_before {
            socket.on_segment(20 * MS, &ack(1, 20), &mut out);
        }
        socket.on_segment(21 * MS, &Segment { len: 1448, ..ack(1, 20) }, &mut out);
        socket.info().rcv_rtt_us
    };
    assert_eq!((measured(true), measured(false)), (0, 11_000));
}

#[test]
fn a_packet_takes_the_piece_of_memory_that_its_driver_gave_it() {
    let left = |packets: u32| {
        let mut config = config();
        config.kernel.memory.receive = ReceiveCharge::Pages { buffer: 256, packet: 1920 };
        let (mut socket, mut out) = (server(config), Vec::new());
        let merged = Segment { len: packets * 1448, piece: 1448, ..ack(1, 20) };
        socket.on_segment(20 * MS, &merged, &mut out);
        socket.info().rcv_wnd
    };
    // Half of 131,072 B, less the packets; a buffer holds 18 of them.
    assert_eq!((left(10), left(20)), (55_808, 46_080));
}

#[test]
fn a_hole_that_is_filled_is_acknowledged_at_once() {
    let mut socket = server(config());
    let mut out = Vec::new();
    let data = |seq| Segment { seq, len: 1448, ..ack(1, 20) };
    socket.on_segment(20 * MS, &data(1000 + 1448), &mut out);
    assert_eq!(out[0].options.sack.as_slice(), [(2448, 3896)]);
    out.clear();
    socket.on_segment(21 * MS, &data(1000), &mut out);
    assert_eq!(out.iter().map(|s| s.ack).collect::<Vec<_>>(), [1000 + 2 * 1448]);
    assert!(out[0].options.sack.is_empty());
    assert_eq!(socket.readable(), 2896);
}

#[test]
fn what_came_twice_is_told_as_a_duplicate() {
    let mut socket = server(config());
    let mut out = Vec::new();
    let data = Segment { seq: 1000, len: 1448, ..ack(1, 20) };
    socket.on_segment(20 * MS, &data, &mut out);
    out.clear();
    socket.on_segment(21 * MS, &data, &mut out);
    assert_eq!(out[0].options.sack.as_slice(), [(1000, 2448)]);
    assert_eq!(out[0].ack, 2448);
}

#[test]
fn both_ends_close_and_one_of_them_waits() {
    let mut socket = server(config());
    let mut out = Vec::new();
    socket.close(10 * MS, &mut out);
    assert_eq!(out[0].flags, Flags::FIN.with(Flags::ACK));
    assert_eq!(socket.state(), State::FinWait1);
    socket.on_segment(20 * MS, &ack(2, 20), &mut out);
    assert_eq!(socket.state(), State::FinWait2);
    out.clear();
    let fin = Segment { flags: Flags::FIN.with(Flags::ACK), ..ack(2, 30) };
    socket.on_segment(30 * MS, &fin, &mut out);
    assert_eq!((socket.state(), out[0].ack), (State::TimeWait, 1001));
}

#[test]
fn closing_with_unread_data_resets() {
    let mut socket = server(config());
    let mut out = Vec::new();
    socket.on_segment(20 * MS, &Segment { len: 100, ..ack(1, 20) }, &mut out);
    out.clear();
    socket.close(20 * MS, &mut out);
    assert!(out[0].flags.has(Flags::RST));
    assert_eq!(socket.state(), State::Closed);
}

#[test]
fn congestion_that_is_told_reduces_the_window_once_a_round_trip() {
    let mut config = config();
    config.sysctl.ecn = 1;
    let mut out = Vec::new();
    let asking = Segment { flags: Flags::SYN.with(Flags::ECE).with(Flags::CWR), ..syn() };
    let mut socket = Socket::accept(config, 0, &asking, &mut out).expect("a known controller");
    assert!(out[0].flags.has(Flags::ECE) && !out[0].flags.has(Flags::CWR));
    socket.on_segment(10 * MS, &ack(1, 10), &mut out);
    out.clear();
    socket.write(10 * MS, 40_000, &mut out);
    assert!(out.iter().all(|s| s.ecn == crate::segment::Ecn::Ect0));
    out.clear();
    for number in 2..=4 {
        let mut echo = ack(packet(number), 20);
        echo.flags = echo.flags.with(Flags::ECE);
        socket.on_segment(20 * MS, &echo, &mut out);
    }
    assert_eq!(socket.info().ca_state, CaState::Cwr);
    assert_eq!(socket.info().ssthresh, 7);
    let told = out.iter().filter(|s| s.flags.has(Flags::CWR)).count();
    assert_eq!(told, 1);
}
