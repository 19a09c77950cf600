//! Fast code against its twin: runs of packets are taken a short way, and the same must come out as
//! when each is taken by itself.

mod ends;
mod holed;
mod joined;
mod opening;
mod overtaken;
mod paced;
mod tails;
mod talk;
mod tapes;
mod turns;
mod unseen;
mod upload;
mod windows;
mod writers;

use core::net::Ipv4Addr;

use proptest::prelude::*;

use super::Sums;
use crate::report::{Connection, State, Vantage};
use crate::view::{self, Sort};
use crate::wire::{Checksum, Direction, Flags, Options, Segment};
use talk::{Act, MSS, Talk};
use tcpwhy_words::units::{Seq, Time};

fn acts() -> impl Strategy<Value = Vec<(usize, i64, Act)>> {
    let act = prop_oneof![
        6 => (1u32..20).prop_map(Act::Burst),
        2 => Just(Act::Short),
        4 => (0u16..600).prop_map(Act::Ack),
        4 => Just(Act::Ack(500)),
        1 => (0u16..600).prop_map(Act::Repeat),
        1 => Just(Act::Resend),
        1 => Just(Act::Unseen),
    ];
    let gaps = [0, 1_000, 12_000, 60_000, 900_000, 8_000_000, 20_000_000, 300_000_000];
    let gap = proptest::sample::select(gaps.to_vec());
    // Mostly one side sends, as in most connections.
    let side = prop_oneof![1 => Just(0_usize), 3 => Just(1)];
    proptest::collection::vec((side, gap, act), 1..120)
}

/// Something about a segment that is not as of its neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) enum Odd {
    Flags(Flags),
    Hops(u8),
    Interface(u32),
    Checksum(Checksum),
    Window(u16),
    Sacked,
    AfterGap,
    SwappedWithNext,
}

pub(super) fn odd() -> impl Strategy<Value = Odd> {
    let flags = [Flags::PSH, Flags::FIN, Flags::RST, Flags::ECE, Flags::SYN].map(Odd::Flags);
    let sums = [Checksum::Good, Checksum::Offloaded, Checksum::Bad].map(Odd::Checksum);
    let others = [
        Odd::Hops(63),
        Odd::Interface(2),
        Odd::Window(0),
        Odd::Window(77),
        Odd::Sacked,
        Odd::AfterGap,
        Odd::SwappedWithNext,
    ];
    proptest::sample::select([&flags[..], &sums, &others].concat())
}

impl Talk {
    /// Makes the segment at `at`, which is not the last, odd.
    pub(super) fn spoil(&mut self, at: usize, odd: Odd) {
        let segment = &mut self.segments[at];
        match odd {
            Odd::Flags(flags) => segment.flags = segment.flags.with(flags),
            Odd::Hops(left) => segment.ip.ttl = Some(left),
            Odd::Interface(number) => segment.link.interface = number,
            Odd::Checksum(sum) => segment.link.checksum = Some(sum),
            Odd::Window(window) => segment.window = window,
            Odd::Sacked => {
                segment.options.sack_count = 1;
                segment.options.sack[0] = (Seq(segment.ack.0 + 100), Seq(segment.ack.0 + 200));
            }
            Odd::AfterGap => self.gaps.push(at),
            // The capture stores it behind its successor, and tells both times.
            Odd::SwappedWithNext => self.segments.swap(at, at + 1),
        }
    }
}

proptest! {
    #[test]
    fn a_copy_is_found_wherever_a_chunk_ends(acts in acts(), chunk in 1_usize..20) {
        let mut talk = Talk::default();
        talk.open();
        for (side, gap, act) in acts {
            talk.act(side, gap + 2_000, act);
        }
        talk.segments = talk.segments.iter().flat_map(|segment| {
            let again = Segment { time: Time(segment.time.0 + 1_000), ..segment.clone() };
            [segment.clone(), again]
        }).collect();
        let (small, large) = (talk.account(chunk, false), talk.account(1 << 20, false));
        prop_assert_eq!(small.duplicates, large.duplicates);
        prop_assert!(large.duplicates >= 2, "at least those of the SYNs");
    }

    #[test]
    fn the_short_ways_lead_where_the_long_way_does(
        acts in acts(),
        chunk in 5_usize..400,
        odd in proptest::collection::vec((any::<proptest::sample::Index>(), odd()), 0..16),
    ) {
        let mut talk = Talk::default();
        talk.open();
        for (side, gap, act) in acts {
            talk.act(side, gap, act);
        }
        for (at, odd) in odd {
            talk.spoil(at.index(talk.segments.len() - 1), odd);
        }
        let (short, long) = (talk.account(chunk, false), talk.account(chunk, true));
        prop_assert_eq!(short, long);
    }
}

proptest! {
    #[test]
    fn an_outline_counts_and_is_put_in_order_as_the_account(acts in acts()) {
        let mut talk = Talk::default();
        talk.open();
        for (side, gap, act) in acts {
            talk.act(side, gap, act);
        }
        prop_assert_eq!(counts_of(&talk.outline()), counts_of(&talk.account(1 << 20, false)));
    }
}

/// What `connection` counts, and what it is put in order by.
pub(super) fn counts_of(connection: &Connection) -> (String, [i64; 5]) {
    let mut sums = Sums::default();
    sums.add(connection);
    let all = [Sort::Worst, Sort::Duration, Sort::Bytes, Sort::Rate, Sort::Retransmissions];
    (format!("{sums:?}"), all.map(|sort| (view::keep(sort, 1).worth)(connection)))
}

#[test]
fn a_syn_that_comes_late_changes_nothing_of_the_handshake() {
    let mut talk = Talk::default();
    talk.open();
    talk.act(1, 10_000, Act::Burst(3));
    let late = Segment { time: Time(talk.now + 4_000_000_000), ..talk.segments[0].clone() };
    let before = talk.account(1 << 20, false).handshake_rtt_ns;
    talk.segments.push(late);
    assert_eq!(talk.account(1 << 20, false).handshake_rtt_ns, before);
    assert!(before.is_some());
}

#[test]
fn the_first_data_of_a_client_is_seen_on_the_short_way_too() {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    let again = Segment { time: Time(talk.now + 1_000_000_000), ..talk.segments[1].clone() };
    talk.segments.push(again);
    let [short, long] = [false, true].map(|long| talk.account(1 << 20, long).untaken);
    assert_eq!(short, long);
    assert!(long.expect("a SYN-ACK came again").data_ns.is_some());
}

/// Time that the server waits for Nagle's algorithm if its response begins with `head` bytes, goes
/// on with six segments and ends with 1,000 bytes, for which it waits until the head is acknowledged
/// after `ms`.
fn held_by_nagle(head: u32, ms: i64) -> i64 {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 100_000, Act::Ack(500));
    talk.data(1, head);
    (0..6).for_each(|_| talk.data(1, MSS));
    talk.now += ms * 1_000_000;
    talk.acked[0] = 1 + head;
    talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
    // The server answers within 100 us, as it did before.
    talk.now += 100_000;
    talk.data(1, 1000);
    talk.act(0, 20_000_000, Act::Ack(500));
    let account = talk.account(1 << 20, false);
    account.directions[1].as_ref().expect("it sent").time_in.get(State::NagleDelack).0
}

#[test]
fn a_short_segment_waits_for_the_ack_of_the_short_one_before_it() {
    let held = held_by_nagle(200, 20);
    assert!((19_000_000..21_000_000).contains(&held), "{held}");
    assert_eq!(held_by_nagle(MSS, 20), 0, "a full segment holds nothing back");
    assert!(held_by_nagle(999, 20) > 19_000_000);
    assert_eq!(held_by_nagle(1000, 20), 0, "one write like the other: the application's own pace");
    assert!(held_by_nagle(1000, 60) > 59_000_000, "but for an ACK that its receiver delayed");
}

/// Time that the server waits for Nagle's algorithm at the end of a response. The first 72 units of the response
/// (128 bytes each) end with a short segment. The client's window has `window` units.
fn held_at_the_edge(window: u16) -> i64 {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    for segment in &mut talk.segments {
        if segment.source.ip() == Ipv4Addr::new(10, 0, 0, 1) && !segment.flags.has(Flags::SYN) {
            segment.window = window;
        }
    }
    talk.window[0] = window;
    talk.act(1, 100_000, Act::Ack(500));
    (0..6).for_each(|_| talk.data(1, MSS));
    talk.data(1, 72 * 128 - 6 * MSS);
    talk.act(0, 20_000_000, Act::Ack(9000));
    talk.now += 100_000;
    talk.data(1, 1000);
    talk.act(0, 20_000_000, Act::Ack(9000));
    let account = talk.account(1 << 20, false);
    account.directions[1].as_ref().expect("it sent").time_in.get(State::NagleDelack).0
}

#[test]
fn a_segment_that_the_window_cut_short_holds_the_next_one_too() {
    assert!(held_at_the_edge(500) > 19_000_000, "one that the application ended");
    assert!(held_at_the_edge(72) > 19_000_000, "Linux remembers each short one (`snd_sml`)");
}

/// Time that the server waits for Nagle's algorithm. Each flight is acknowledged in 20 ms. On its ACK a short
/// segment of another length comes, with `full` full segments right behind.
fn behind_short_ones(full: u32) -> i64 {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 50_000, Act::Ack(500));
    for round in 0..12 {
        talk.now += 50_000;
        talk.data(1, 700 + round);
        (0..full).for_each(|_| talk.data(1, MSS));
        talk.act(0, 20_000_000, Act::Ack(5000));
    }
    let account = talk.account(1 << 20, false);
    account.directions[1].as_ref().expect("it sent").time_in.get(State::NagleDelack).0
}

#[test]
fn what_nagles_algorithm_holds_is_all_that_was_written() {
    assert!(behind_short_ones(0) > 200_000_000);
    assert_eq!(behind_short_ones(12), 0, "more was there");
}

/// Where a capture was taken that marks the client's packets, with `hops` left, as sent.
fn marked_as_sent(hops: u8) -> Vantage {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 10_000_000, Act::Ack(500));
    for segment in &mut talk.segments {
        let from_client = segment.source.ip() == Ipv4Addr::new(10, 0, 0, 1);
        let way = if from_client { Direction::Outgoing } else { Direction::Incoming };
        (segment.ip.ttl, segment.link.direction) = (Some(hops), Some(way));
    }
    talk.account(1 << 20, false).vantage
}

#[test]
fn a_router_sends_packets_of_others() {
    assert_eq!(marked_as_sent(64), Vantage::Client);
    assert_eq!(marked_as_sent(63), Vantage::Middle);
}

/// Where a capture was taken of a client that answers within 1 us and sends frames of five segments, which are
/// acknowledged `way` later; what the checksums of each side's packets say, and of the server's first.
fn large_frames(sums: [Checksum; 2], first: Checksum, way: i64) -> Vantage {
    let mut talk = Talk::default();
    talk.open();
    for _ in 0..4 {
        talk.now += 1_000_000;
        talk.data(0, 5 * MSS);
        talk.act(1, 100 * way, Act::Ack(500));
    }
    for segment in &mut talk.segments {
        let side = usize::from(segment.source.ip() != Ipv4Addr::new(10, 0, 0, 1));
        segment.link.checksum = Some(sums[side]);
        segment.time = Time(segment.time.0 / 100);
    }
    talk.segments[1].link.checksum = Some(first);
    talk.account(1 << 20, false).vantage
}

#[test]
fn frames_longer_than_a_segment_tell_nothing_where_both_ends_answer_at_once_on_one_computer() {
    use Checksum::{Good, Offloaded};
    let within = |way| large_frames([Offloaded; 2], Offloaded, way);
    assert_eq!(within(4_000), Vantage::Unknown);
    assert_eq!(within(100_000), Vantage::Client, "something delays them on the way");
    assert_eq!(large_frames([Offloaded; 2], Good, 4_000), Vantage::Client, "one was for a wire");
    assert_eq!(large_frames([Good; 2], Good, 4_000), Vantage::Client);
}

/// Segments of the server that the capture is said to miss, of three it does not hold, if the client's
/// packets are captured or not.
fn missed(one_way: bool) -> u64 {
    let mut talk = Talk::default();
    if one_way {
        talk.acked = [1; 2];
        talk.next = [1; 2];
    } else {
        talk.open();
    }
    talk.act(1, 1_000, Act::Burst(4));
    (0..3).for_each(|_| talk.act(1, 1_000, Act::Unseen));
    talk.act(1, 1_000, Act::Burst(4));
    let account = talk.account(1 << 20, false);
    account.directions.iter().flatten().map(|direction| direction.events.not_captured).sum()
}

#[test]
fn what_never_came_in_a_capture_of_one_direction_was_missed() {
    assert_eq!((missed(true), missed(false)), (3, 0), "an ACK or a repeat may tell in the other");
}

/// Time that the server waits for its timer and for its application, if it does `act` 1.2 s after its burst.
/// The tap saw that the client acknowledged the whole burst.
fn after_an_acknowledged_burst(act: Act) -> (i64, i64) {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    for _ in 0..3 {
        talk.act(1, 20_000_000, Act::Burst(8));
        talk.act(0, 100_000, Act::Ack(500));
    }
    talk.act(1, 1_200_000_000, act);
    talk.act(0, 100_000, Act::Ack(500));
    let account = talk.account(1 << 20, false);
    let time_in = &account.directions[1].as_ref().expect("it sent").time_in;
    (time_in.get(State::RtoWait).0, time_in.get(State::IdleAppThink).0)
}

#[test]
fn what_was_acknowledged_is_sent_again_after_a_timer() {
    let (timer, application) = after_an_acknowledged_burst(Act::Resend);
    assert!(timer > 1_000_000_000 && application < 100_000_000, "{timer} {application}");
    let (timer, application) = after_an_acknowledged_burst(Act::Short);
    assert!(timer == 0 && application > 1_000_000_000, "{timer} {application}");
}

#[test]
fn the_repair_of_a_tail_is_no_wait_for_its_last_ack() {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 100_000, Act::Ack(500));
    let first = talk.next[1];
    (0..8).for_each(|_| talk.data(1, MSS));
    // The first two are lost. Each round trip one of them is retransmitted, and nothing new is left.
    talk.now += 20_000_000;
    (0..6).for_each(|_| talk.act(0, 1_000, Act::Repeat(500)));
    talk.now += 100_000;
    talk.push(1, Flags::ACK, first, MSS, Options::default());
    talk.now += 20_000_000;
    talk.acked[0] = first + MSS;
    talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
    talk.now += 100_000;
    talk.push(1, Flags::ACK, first + MSS, MSS, Options::default());
    talk.act(0, 20_000_000, Act::Ack(500));
    let account = talk.account(1 << 20, false);
    let time_in = &account.directions[1].as_ref().expect("it sent").time_in;
    assert!(time_in.get(State::RecoveryLoss).0 > 39_000_000, "{time_in:?}");
    assert!(time_in.get(State::LastFlight).0 < 21_000_000, "{time_in:?}");
}

#[test]
fn time_stamps_that_one_side_refused_take_no_room_in_segments() {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 100_000, Act::Ack(500));
    (0..4).for_each(|_| talk.data(1, 1460));
    assert_eq!(talk.account(1 << 20, false).mss, Some(1448));
    for segment in &mut talk.segments[1..] {
        segment.options.timestamps = None;
    }
    assert_eq!(talk.account(1 << 20, false).mss, Some(1460));
}

/// A flight of ten whose first is lost: the first sign comes a round trip later and lets out one
/// more, the repeat follows `doubt` after it, its ACK a round trip later; then ten more.
fn first_lost(doubt: i64) -> Connection {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 100_000, Act::Ack(500));
    let first = talk.next[1];
    (0..10).for_each(|_| talk.data(1, MSS));
    talk.act(0, 20_000_000, Act::Repeat(500));
    talk.now += 100_000;
    talk.data(1, MSS);
    talk.act(0, doubt, Act::Repeat(500));
    talk.act(0, 1000, Act::Repeat(500));
    talk.now += 100_000;
    talk.push(1, Flags::ACK, first, MSS, Options::default());
    talk.act(0, 20_000_000, Act::Ack(500));
    talk.act(1, 100_000, Act::Burst(10));
    talk.act(0, 20_000_000, Act::Ack(500));
    talk.account(1 << 20, false)
}

#[test]
fn before_a_loss_is_known_the_sender_waits_for_what_it_waited_for() {
    let account = first_lost(5_000_000);
    let time_in = &account.directions[1].as_ref().expect("it sent").time_in;
    let slow_start = time_in.get(State::CwndSlowStart).0;
    assert!((25_000_000..26_000_000).contains(&slow_start), "{time_in:?}");
    assert_eq!(time_in.get(State::CwndPostLoss).0, 0, "{time_in:?}");
    let repair = |account: &Connection| {
        account.directions[1].as_ref().expect("it sent").time_in.get(State::RecoveryLoss).0
    };
    // Doubt is no repair as long as new data goes out; what a hole holds back is.
    assert_eq!(repair(&account), repair(&first_lost(1_000)), "{time_in:?}");
}

/// 44 segments fill the window of 64,000 bytes. The first two are lost, and one is retransmitted each round trip.
/// The ACK between the two retransmissions leaves a window of `between`.
fn repaired_at_the_edge(between: u16) -> Connection {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 100_000, Act::Ack(500));
    let first = talk.next[1];
    (0..44).for_each(|_| talk.data(1, MSS));
    talk.now += 20_000_000;
    (0..3).for_each(|_| talk.act(0, 1_000, Act::Repeat(500)));
    talk.now += 100_000;
    talk.push(1, Flags::ACK, first, MSS, Options::default());
    talk.now += 20_000_000;
    (talk.acked[0], talk.window[0]) = (first + MSS, between);
    talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
    talk.now += 100_000;
    talk.push(1, Flags::ACK, first + MSS, MSS, Options::default());
    talk.act(0, 20_000_000, Act::Ack(500));
    talk.act(1, 100_000, Act::Burst(8));
    talk.act(0, 20_000_000, Act::Ack(500));
    talk.account(1 << 20, false)
}

#[test]
fn a_window_that_stays_full_in_a_repair_is_what_is_waited_for() {
    let rwnd_and_repair = |between| {
        let account = repaired_at_the_edge(between);
        let time_in = &account.directions[1].as_ref().expect("it sent").time_in;
        let rwnd = [State::RwndCap, State::RwndAutotune, State::RwndReader];
        let rwnd: i64 = rwnd.iter().map(|state| time_in.get(*state).0).sum();
        (rwnd / 10_000_000, time_in.get(State::RecoveryLoss).0 / 10_000_000)
    };
    // In units of 128 bytes: its edge stays where it was, or moves on by a segment.
    assert_eq!(rwnd_and_repair(488), (6, 0));
    assert_eq!(rwnd_and_repair(500), (4, 2), "room for one, and the repair goes on");
}
