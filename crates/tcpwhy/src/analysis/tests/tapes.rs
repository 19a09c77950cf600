//! Windows that something else cut than a repair, paths that become longer, repeats that were not
//! needed: what the sender waits for after them.

use core::net::{IpAddr, Ipv4Addr};

use super::talk::{Act, MSS, Talk};
use crate::report::{Connection, State};
use crate::wire::{Direction, Flags, Options};
use tcpwhy_words::units::Seq;

const MS: i64 = 1_000_000;

pub(super) fn server(account: &Connection) -> &crate::report::Direction {
    account.directions[1].as_deref().expect("the server sent data")
}

pub(super) fn time(account: &Connection, states: &[State]) -> i64 {
    states.iter().map(|state| server(account).time_in.get(*state).0).sum()
}

const PATH: [State; 3] =
    [State::BandwidthSelfQueue, State::BandwidthExternal, State::BandwidthVariable];

impl Talk {
    /// A connection of 20 ms, on which the client has asked for something large.
    pub(super) fn asked() -> Self {
        let mut talk = Self::default();
        talk.open();
        talk.segments.iter_mut().for_each(|syn| syn.options.sack_permitted = true);
        talk.act(0, 10_000, Act::Short);
        talk.act(1, 100_000, Act::Ack(500));
        talk
    }

    /// All of it was captured at the server.
    fn mark_at_server(&mut self) {
        for segment in &mut self.segments {
            let is_own = segment.source.ip() == IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
            let direction = if is_own { Direction::Outgoing } else { Direction::Incoming };
            segment.link.direction = Some(direction);
        }
    }

    /// The server sends this many segments at once. They arrive and are acknowledged `rtt` later.
    fn flight(&mut self, segments: u32, rtt: i64) {
        (0..segments).for_each(|_| self.data(1, MSS));
        self.act(0, rtt, Act::Ack(5000));
        self.now += 100_000;
    }

    /// Flights of these numbers of segments, 20 ms apart.
    pub(super) fn flights(&mut self, segments: &[u32]) {
        for segments in segments {
            self.flight(*segments, 20 * MS);
        }
    }

    /// The server's packets count up in their identification. At segment `jump` it goes up by `more` extra.
    pub(super) fn count(&mut self, jump: usize, more: u16) {
        let mut id = 60_000_u16;
        for (number, segment) in self.segments.iter_mut().enumerate() {
            if segment.source.ip() == IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)) {
                id = id.wrapping_add(if number == jump { 1 + more } else { 1 });
                segment.ip.id = Some(id);
            }
        }
    }

    /// The client reports what lies between `from` and `to`.
    fn report(&mut self, from: u32, to: u32) {
        let mut options = Options { sack_count: 1, ..Options::default() };
        options.sack[0] = (Seq(from), Seq(to));
        self.push(0, Flags::ACK, self.next[0], 0, options);
    }
}

/// Slow start to 80 segments, then flights of 112. A probe retransmits the last of the 80. The client reports that
/// segment twice, or did not get it at first.
fn probed(twice: bool) -> Connection {
    let mut talk = Talk::asked();
    talk.flights(&[10, 20, 40]);
    (0..80).for_each(|_| talk.data(1, MSS));
    let last = talk.next[1] - MSS;
    talk.now += 20 * MS;
    talk.acked[0] = last;
    talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
    talk.now += 250 * MS;
    talk.push(1, Flags::ACK, last, MSS, Options::default());
    talk.now += 20 * MS;
    talk.acked[0] = last + MSS;
    if twice {
        talk.report(last, last + MSS);
    } else {
        talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
    }
    talk.act(0, 5 * MS, Act::Short);
    talk.now += 100_000;
    talk.flight(160, 20 * MS);
    (0..6).for_each(|_| talk.flight(112, 20 * MS));
    talk.account(1 << 20, false)
}

#[test]
fn a_probe_that_repaired_the_tail_has_cut_the_window() {
    let (lost, doubled) = (probed(false), probed(true));
    let buffer = |account| time(account, &[State::Sndbuf]) / MS;
    let window = |account| time(account, &[State::CwndPostLoss, State::CwndAvoidance]) / MS;
    assert!(buffer(&lost) == 0 && window(&lost) >= 100, "{:?}", server(&lost).time_in);
    assert!(buffer(&doubled) >= 100 && window(&doubled) == 0, "{:?}", server(&doubled).time_in);
    assert_eq!(server(&lost).retransmitted.tlp, 1);
}

/// Two flights of twenty are sent 5 ms apart, and the repair lets out four more segments. The first segment of each
/// is lost, and the client reports it. Those of the flights are retransmitted at once. That of the four is, too, if
/// `known`.
fn twice_lost(known: bool) -> Connection {
    let mut talk = Talk::asked();
    talk.flights(&[10, 20]);
    let first = talk.next[1];
    (0..20).for_each(|_| talk.data(1, MSS));
    talk.now += 5 * MS;
    let second = talk.next[1];
    (0..20).for_each(|_| talk.data(1, MSS));
    let end = talk.next[1];
    talk.acked[0] = first;
    talk.now += 15 * MS;
    talk.report(first + MSS, second);
    talk.now += 100_000;
    talk.push(1, Flags::ACK, first, MSS, Options::default());
    // What is new meanwhile is no part of the first repair.
    let third = talk.next[1];
    (0..4).for_each(|_| talk.data(1, MSS));
    talk.now += 5 * MS;
    talk.report(second + MSS, end);
    talk.now += 100_000;
    let again = |talk: &mut Talk, from| talk.push(1, Flags::ACK, from, MSS, Options::default());
    again(&mut talk, second);
    talk.now += 2 * MS;
    talk.report(third + MSS, talk.next[1]);
    talk.now += 100_000;
    if known {
        again(&mut talk, third);
    }
    talk.now += 18 * MS;
    talk.acked[0] = third;
    talk.report(third + MSS, talk.next[1]);
    talk.now += 100_000;
    (0..2).for_each(|_| talk.data(1, MSS));
    talk.act(0, 19 * MS, Act::Ack(5000));
    talk.account(1 << 20, false)
}

#[test]
fn the_next_repair_begins_at_once_where_its_loss_is_known() {
    let told = |known| {
        let account = twice_lost(known);
        time(&account, &[State::RecoveryLoss]) / MS
    };
    assert!(told(true) >= 40, "{}", told(true));
    assert!(told(false) <= 30, "{}", told(false));
}

/// Ten segments arrive, then nothing for 480 ms. Then one arrives, and after its ACK another. The identification of
/// the first of these two jumps by `missing` more.
fn after_silence(missing: u16) -> Connection {
    let mut talk = Talk::asked();
    talk.flight(10, 20 * MS);
    talk.now += 460 * MS;
    let jump = talk.segments.len();
    talk.flight(1, 20 * MS);
    talk.flight(1, 20 * MS);
    talk.count(jump, missing);
    talk.account(1 << 20, false)
}

#[test]
fn a_timeouts_repair_lasts_as_long_as_the_tail_it_repeats() {
    let told = |missing| {
        let account = after_silence(missing);
        let states = [State::RtoWait, State::RecoveryLoss, State::IdleAppThink];
        let [waited, repaired, paused] = states.map(|state| time(&account, &[state]) / MS);
        assert_eq!((waited > 200, paused > 400), (missing > 1, missing < 2));
        (server(&account).retransmitted.rto, repaired, account.transfers.len())
    };
    assert_eq!(told(0), (0, 0, 3), "an application's pause");
    assert_eq!(told(2), (1, 20, 2), "a probe that was lost, too, and one segment");
    assert_eq!(told(3), (2, 40, 2), "two segments");
    assert_eq!(told(4), (2, 40, 2), "one that is not seen retransmitted");
}

/// Twelve writes of 2,500 bytes, each so long after the ACK of the one before.
/// Time of the application and of last flights, in round trips of 20 ms.
fn written_in_pieces(pause: i64, at_server: bool) -> [i64; 2] {
    let mut talk = Talk::asked();
    for _ in 0..12 {
        talk.data(1, MSS);
        talk.data(1, 2500 - MSS);
        talk.act(0, 20 * MS, Act::Ack(640));
        talk.now += pause;
    }
    if at_server {
        talk.mark_at_server();
    }
    let account = talk.account(1 << 20, false);
    [State::App, State::LastFlight].map(|state| time(&account, &[state]) / (20 * MS))
}

#[test]
fn between_two_writes_of_a_transfer_its_flight_is_not_the_last() {
    assert_eq!(written_in_pieces(5 * MS, true), [11, 1]);
    assert_eq!(written_in_pieces(300 * MS, true), [0, 12], "each is a transfer");
    assert_eq!(
        written_in_pieces(5 * MS, false),
        [0, 12],
        "each may be a tail that was lost before"
    );
}

/// Slow start to 80 segments, then flights of 112. The identification jumps by `more` extra in the first of these.
fn refused(more: u16) -> Connection {
    let mut talk = Talk::asked();
    talk.flights(&[10, 20, 40, 80]);
    let jump = talk.segments.len() + 100;
    (0..8).for_each(|_| talk.flight(112, 20 * MS));
    talk.count(jump, more);
    talk.account(1 << 20, false)
}

#[test]
fn what_the_senders_own_host_refused_has_cut_the_window() {
    let times = |more| {
        let account = refused(more);
        let window = time(&account, &[State::CwndPostLoss, State::CwndAvoidance]);
        (time(&account, &[State::Sndbuf]) / (20 * MS), window / (20 * MS))
    };
    assert_eq!(times(0), (7, 0), "flights that stand still below the window");
    assert_eq!(times(1), (0, 6), "all but the one in which it was refused");
    assert_eq!(times(40), (0, 6), "a super-segment");
}

/// What the report says of the first flight, and how many rounds have a rate, if a gap of the capture comes
/// before segment `gap`.
fn with_gap(gap: usize) -> (Option<u64>, usize) {
    let mut talk = Talk::asked();
    (0..5).for_each(|_| talk.flight(10, 20 * MS));
    talk.gaps.push(gap);
    let account = talk.account(1 << 20, false);
    let rated = server(&account).rounds.iter().filter(|r| r.delivery_rate_bps.is_some());
    (server(&account).initial_window.map(|window| window.segments), rated.count())
}

#[test]
fn what_a_capture_misses_has_no_figures() {
    let first = Talk::asked().segments.len();
    assert_eq!(with_gap(first + 3), (None, 4), "in the first flight");
    assert_eq!(with_gap(first + 11 + 3), (Some(10), 4), "in the second");
    let mut whole = Talk::asked();
    (0..5).for_each(|_| whole.flight(10, 20 * MS));
    let account = whole.account(1 << 20, false);
    assert_eq!(server(&account).rounds.iter().filter_map(|r| r.delivery_rate_bps).count(), 5);
}

#[test]
fn an_interval_before_the_first_send_has_the_frames_that_bound_it() {
    let mut talk = Talk::asked();
    talk.flight(10, 20 * MS);
    let account = talk.account(1 << 20, false);
    let frames = server(&account).limits.iter().map(|l| (l.state, l.evidence.frames));
    let frames: Vec<_> = frames.take(2).map(|(state, f)| (state, f.first, f.last)).collect();
    assert_eq!(frames, [(State::Handshake, 1, 3), (State::IdlePeerThink, 3, 4)]);
}

/// A window of 40 segments after a loss: 20 rounds of 20 ms, then 40 rounds of `rtt`, in which the ACKs come
/// together or a link spreads them out.
fn longer_path(rtt: i64, spread: bool) -> Connection {
    let mut talk = Talk::asked();
    talk.flights(&[10, 20, 40]);
    let first = talk.next[1];
    (0..57).for_each(|_| talk.data(1, MSS));
    talk.now += 20 * MS;
    (0..4).for_each(|_| talk.act(0, 1_000, Act::Repeat(5000)));
    talk.now += 100_000;
    talk.push(1, Flags::ACK, first, MSS, Options::default());
    talk.act(0, 20 * MS, Act::Ack(5000));
    talk.now += 100_000;
    (0..20).for_each(|_| talk.flight(40, 20 * MS));
    if spread {
        (0..40).for_each(|_| talk.data(1, MSS));
        let mut answered = talk.next[1] - 40 * MSS;
        talk.now += rtt - 100_000;
        for _ in 0..800 {
            answered += 2 * MSS;
            talk.acked[0] = answered;
            talk.now += rtt / 20 - 100_000;
            talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
            talk.now += 100_000;
            (0..2).for_each(|_| talk.data(1, MSS));
        }
    } else {
        (0..40).for_each(|_| talk.flight(40, rtt));
    }
    talk.account(1 << 20, false)
}

#[test]
fn on_a_path_that_became_longer_the_window_is_still_what_is_waited_for() {
    let account = longer_path(40 * MS, false);
    assert_eq!(time(&account, &PATH), 0, "{:?}", server(&account).time_in);
    let window = time(&account, &[State::CwndPostLoss, State::CwndAvoidance]);
    assert!(window > 1900 * MS, "{:?}", server(&account).time_in);
}

#[test]
fn a_link_that_is_busy_throughout_has_a_queue_however_long_that_stands() {
    let account = longer_path(40 * MS, true);
    assert!(time(&account, &PATH) > 1000 * MS, "{:?}", server(&account).time_in);
}

/// Two segments of a flight seem lost and are retransmitted. The client reports the segments `reported` as got twice.
/// The original or its retransmission fills the first hole.
fn two_repeated(reported: &[u32], by_original: bool, then: &[u32]) -> Connection {
    let mut talk = Talk::asked();
    talk.flight(10, 20 * MS);
    let first = talk.next[1];
    (0..20).for_each(|_| talk.data(1, MSS));
    talk.now += 20 * MS;
    (0..4).for_each(|_| talk.act(0, 1_000, Act::Repeat(5000)));
    talk.now += 5 * MS;
    talk.push(1, Flags::ACK, first, MSS, Options::default());
    talk.push(1, Flags::ACK, first + 5 * MSS, MSS, Options::default());
    let repeated = (talk.now / MS) as u32;
    talk.now += 20 * MS;
    talk.acked[0] = talk.next[1];
    talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
    let filled = talk.segments.last_mut().expect("it was pushed");
    filled.options.timestamps = Some((repeated + 20, repeated - 20 * u32::from(by_original)));
    for number in reported {
        let from = first + number * MSS;
        talk.now += 1_000;
        talk.report(from, from + MSS);
    }
    talk.now += 100_000;
    talk.flights(then);
    talk.account(1 << 20, false)
}

#[test]
fn a_repair_was_needless_only_if_each_of_its_repeats_was() {
    let told = |reported: &[u32], by_original| {
        let account = two_repeated(reported, by_original, &[20; 4]);
        let needless = time(&account, &[State::RecoveryReorderSpurious]) > 0;
        let repair = time(&account, &[State::RecoveryLoss]) > 0;
        assert_ne!(needless, repair, "{:?}", server(&account).time_in);
        (needless, server(&account).retransmitted.spurious)
    };
    assert_eq!(told(&[], false), (false, 0));
    assert_eq!(told(&[0], false), (false, 1));
    assert_eq!(told(&[0, 5], false), (true, 2));
    assert_eq!(told(&[], true), (false, 1), "the echo tells of the first hole alone");
    assert_eq!(told(&[0], true), (false, 1), "both tell of the same");
    assert_eq!(told(&[5], true), (true, 2));
    assert_eq!(told(&[3, 7], false), (false, 0), "what was sent once was doubled on the way");
}

#[test]
fn slow_start_goes_on_behind_a_repair_that_was_not_needed() {
    let phases = [State::CwndSlowStart, State::CwndPostLoss, State::CwndAvoidance];
    let after = |reported: &[u32], then: &[u32]| {
        let account = two_repeated(reported, false, then);
        phases.map(|phase| time(&account, &[phase]) / (20 * MS))
    };
    assert_eq!(after(&[0, 5], &[20, 40, 80, 160]), [5, 0, 0], "the cut was taken back");
    assert_eq!(after(&[0], &[20, 40, 80, 160])[0], 2, "one of the two was needed");
    let crept = after(&[0, 5], &[20, 21, 22, 23, 24, 25]);
    assert!(crept[0] < crept[2], "flights that creep are in no slow start: {crept:?}");
}

/// Whether round trips show for segments sent `gap` apart. Each is acknowledged 60 ms later, on a path of 20 ms.
fn acknowledged_one_by_one(gap: i64) -> bool {
    let mut talk = Talk::asked();
    talk.flights(&[10, 20]);
    let mut acts: Vec<(i64, usize)> =
        (0..40).flat_map(|n| [(n * gap, 1), (n * gap + 60 * MS, 0)]).collect();
    acts.sort_unstable();
    let (from, mut answered) = (talk.now, talk.next[1]);
    for (at, side) in acts {
        talk.now = from + at;
        if side == 1 {
            talk.data(1, MSS);
        } else {
            answered += MSS;
            talk.acked[0] = answered;
            talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
        }
    }
    let account = talk.account(1 << 20, false);
    let mut rounds = server(&account).rounds.iter().skip(4);
    rounds.any(|round| round.rtt_ns.is_some())
}

#[test]
fn an_ack_that_the_next_segment_drew_waited_for_no_timer() {
    assert!(acknowledged_one_by_one(6 * MS), "a queue of 40 ms");
    assert!(acknowledged_one_by_one(34 * MS));
    assert!(!acknowledged_one_by_one(35 * MS), "the timer may have run out before");
}

/// Pairs of segments so long behind the last pair's ACK, and before their own, which echo the ACK before the last so
/// many. How long the sender's own queue held it, in tenths of all.
fn paired(stale: usize, (behind, before): (i64, i64)) -> i64 {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.act(1, 50_000, Act::Ack(500));
    let (mut ends, mut stamps) = (Vec::new(), vec![talk.stamps[0]; 8]);
    for pair in 0..80 {
        talk.now += behind;
        for _ in 0..2 {
            let stamp = (talk.now / MS) as u32;
            talk.data(1, MSS);
            let sent = talk.segments.last_mut().expect("it was pushed");
            sent.options.timestamps = Some((stamp, stamps[stamps.len() - 1 - stale]));
        }
        ends.push(talk.next[1]);
        talk.now += before;
        if pair > 0 {
            talk.acked[0] = ends[pair - 1];
            talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
            stamps.push(talk.stamps[0]);
        }
    }
    talk.mark_at_server();
    let account = talk.account(1 << 20, false);
    time(&account, &[State::LocalQdisc]) * 10 / account.duration_ns
}

#[test]
fn an_echo_older_than_what_had_arrived_tells_of_the_senders_own_queue() {
    let rare = (3 * MS, MS);
    assert_eq!(paired(0, rare), 0, "it left when it was stamped");
    assert!(paired(1, rare) >= 8, "before the last ACK came, 3 ms earlier");
    assert!(paired(3, rare) >= 8);
}

#[test]
fn what_stands_in_the_senders_own_queue_was_let_in_as_something_left_it() {
    let close = (MS * 6 / 10, MS * 6 / 10);
    assert_eq!(paired(0, close), 0, "it left when it was stamped");
    assert!(paired(1, close) >= 8, "1.2 ms ago, though the echo alone proves but 0.6 ms");
}

#[test]
fn packets_of_one_time_are_taken_as_the_capture_has_them() {
    let mut talk = Talk::asked();
    talk.flights(&[10, 20, 40]);
    let flights = |account: &Connection| {
        let told = server(account);
        (told.bytes, told.retransmitted, told.segments)
    };
    let fine = flights(&talk.account(1 << 20, false));
    talk.segments.iter_mut().for_each(|segment| segment.time.0 -= segment.time.0 % (50 * MS));
    assert_eq!(flights(&talk.account(1 << 20, false)), fine, "by a clock of 50 ms");
}
