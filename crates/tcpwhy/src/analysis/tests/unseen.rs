//! Captures that lack what the receiver sent, or by how much its windows are scaled: what is not told
//! is not named.

use core::net::Ipv4Addr;

use super::talk::{Act, MSS, Talk};
use crate::report::{Connection, Direction, State, WindowScaling};
use crate::wire::{Flags, Options};

const MS: i64 = 1_000_000;
const RWND: [State; 3] = [State::RwndCap, State::RwndAutotune, State::RwndReader];

fn side(account: &Connection, at: usize) -> &Direction {
    account.directions[at].as_deref().expect("it sent data")
}

fn time(direction: &Direction, states: &[State]) -> i64 {
    states.iter().map(|state| direction.time_in.get(*state).0).sum()
}

impl Talk {
    /// The client asks 20 ms away; both windows are `window` units of 128 bytes.
    fn asked_with(window: u16) -> Self {
        let mut talk = Self::default();
        talk.open();
        talk.window[0] = window;
        talk.act(0, 10_000, Act::Short);
        talk.act(1, 100_000, Act::Ack(500));
        talk
    }

    /// Flights of these numbers of segments, each acknowledged with `window` a round trip later.
    fn flights_into(&mut self, window: u16, flights: &[u32]) {
        for segments in flights {
            (0..*segments).for_each(|_| self.data(1, MSS));
            self.act(0, 20 * MS, Act::Ack(window));
            self.now += 100_000;
        }
    }

    /// The server writes `len` bytes.
    fn write(&mut self, len: u32) {
        self.push(1, Flags::ACK.with(Flags::PSH), self.next[1], len, Options::default());
        self.next[1] += len;
    }

    /// Only what the host with this last number sent was captured.
    fn keep_host(&mut self, host: u8) {
        let kept = Ipv4Addr::new(10, 0, 0, host);
        self.segments.retain(|segment| segment.source.ip() == kept);
    }

    /// The capture begins behind the handshake.
    fn forget_handshake(&mut self) {
        self.segments.drain(..3);
    }

    fn explained(&self) -> Connection {
        self.account(1 << 20, false)
    }
}

/// A transfer with a repair, a pause and the peer's data. Only one host's packets were captured.
fn one_sided(host: u8) -> Connection {
    let mut talk = Talk::asked_with(500);
    talk.flights_into(5000, &[10, 20, 40]);
    talk.act(1, 0, Act::Burst(10));
    talk.act(1, 300 * MS, Act::Resend);
    talk.act(0, 20 * MS, Act::Ack(5000));
    talk.act(1, 900 * MS, Act::Burst(10));
    talk.act(0, 20 * MS, Act::Short);
    talk.act(1, 50 * MS, Act::Short);
    talk.act(0, 20 * MS, Act::Ack(5000));
    talk.keep_host(host);
    talk.explained()
}

#[test]
fn without_the_receivers_packets_no_wait_is_named() {
    let account = one_sided(2);
    let server = side(&account, 1);
    assert_eq!(time(server, &[State::Unknown]), account.duration_ns, "{:?}", server.time_in);
    assert!(server.limits.iter().all(|limit| limit.evidence.text.contains("no ACK tells")));
    assert!(server.limits.iter().all(|limit| limit.confidence == crate::report::Sure::Possible));
    assert_eq!((server.rtt.min_ns, server.initial_window.is_none()), (None, true));
    assert!(account.directions[0].is_none(), "none of its data was captured");
    assert!(account.findings.is_empty(), "{:?}", account.findings);
}

#[test]
fn a_client_alone_tells_of_its_handshake() {
    let account = one_sided(1);
    let client = side(&account, 0);
    assert_eq!(time(client, &[State::Handshake]), 20_100_000, "from its SYN to its ACK");
    let untold = account.duration_ns - 20_100_000;
    assert_eq!(time(client, &[State::Unknown]), untold, "{:?}", client.time_in);
    assert!(account.directions[1].is_none());
}

#[test]
fn a_repeat_alone_names_the_repairs_that_it_may_be() {
    let account = one_sided(2);
    let named = |limit: &&crate::report::Limit| limit.alternative.contains(&State::RecoveryLoss);
    let untold: Vec<_> = side(&account, 1).limits.iter().filter(named).collect();
    assert!(untold.iter().all(|limit| limit.alternative.contains(&State::RtoWait)));
    assert_eq!(side(&account, 1).retransmissions.len(), 1, "it is listed all the same");
}

#[test]
fn a_repeated_syn_waits_for_its_timer_whoever_was_captured() {
    let mut talk = Talk::default();
    talk.open();
    let again = talk.segments[1].clone();
    talk.segments.insert(1, again);
    talk.segments[1].time.0 -= 15 * MS;
    talk.segments[1].options.timestamps = Some((5, 0));
    talk.act(1, 5 * MS, Act::Burst(10));
    talk.keep_host(2);
    let account = talk.explained();
    assert_eq!(time(side(&account, 1), &[State::SynRetry]), 15 * MS);
    assert_eq!(time(side(&account, 1), &[State::Handshake]), 0, "it may have ended long before");
}

/// Time in states of a server whose flights the capture meets behind the handshake.
fn midway(window: u16, flights: &[u32]) -> (i64, i64, Vec<State>) {
    let mut talk = Talk::asked_with(window);
    talk.flights_into(window, flights);
    talk.forget_handshake();
    let account = talk.explained();
    let server = side(&account, 1);
    let named = server.limits.iter().filter(|limit| limit.state == State::Unknown);
    let others = named.flat_map(|limit| limit.alternative.clone()).collect();
    (time(server, &RWND) / (20 * MS), time(server, &[State::Unknown]) / (20 * MS), others)
}

#[test]
fn a_flight_that_fills_the_least_window_that_can_be_may_have_had_room() {
    // 724 units are at least 46,336 bytes, for 32 segments were sent at once: these just fill them.
    let (rwnd, unknown, others) = midway(724, &[12, 24, 32, 16, 8]);
    assert_eq!((rwnd, unknown), (0, 1));
    assert!(others.contains(&State::RwndCap) && others.contains(&State::CwndAvoidance));
    let (rwnd, unknown, _) = midway(724, &[12, 24, 30, 16, 8]);
    assert_eq!((rwnd, unknown), (0, 0), "room for two more: it was no window");
}

#[test]
fn flights_that_end_where_the_window_does_again_and_again_are_held_by_it() {
    let mut flights = vec![8, 16, 32];
    flights.extend([32; 8]);
    let (rwnd, unknown, _) = midway(724, &flights);
    assert!(rwnd >= 6 && unknown <= 3, "{rwnd} {unknown}");
    let small: Vec<u32> = flights.iter().map(|segments| segments / 2).collect();
    assert_eq!(midway(362, &small).0, 0, "one of sixteen is met by chance");
}

#[test]
fn what_fits_into_the_least_window_did_not_wait_for_it() {
    // Nagle's algorithm, at a window of 12 units, which are at least 384 bytes.
    let mut talk = Talk::asked_with(12);
    for _ in 0..5 {
        talk.write(200);
        talk.act(0, 60 * MS, Act::Ack(12));
        talk.now += 100_000;
        talk.write(150);
        talk.act(0, 20 * MS, Act::Ack(12));
        talk.now += 100_000;
    }
    talk.forget_handshake();
    let account = talk.explained();
    assert_eq!(time(side(&account, 1), &RWND), 0, "{:?}", side(&account, 1).time_in);
    assert!(
        time(side(&account, 1), &[State::NagleDelack]) >= 5 * 60 * MS,
        "{:?}",
        side(&account, 1).limits
    );
}

#[test]
fn a_window_that_falls_by_what_arrived_tells_its_scale() {
    // The reader reads nothing: each flight takes from the window what it holds, 128 bytes a unit.
    let mut talk = Talk::asked_with(724);
    talk.flights_into(724, &[8]);
    for left in [634, 543, 453, 362, 272, 181] {
        talk.flights_into(left, &[8]);
    }
    talk.flights_into(91, &[8]);
    (0..8).for_each(|_| talk.data(1, MSS));
    talk.act(0, 200 * MS, Act::Ack(0));
    talk.act(0, 500 * MS, Act::Repeat(724));
    talk.act(1, 100_000, Act::Burst(8));
    talk.forget_handshake();
    let account = talk.explained();
    assert!(time(side(&account, 1), &[State::ZeroWindow]) >= 499 * MS);
    let told = side(&account, 1).limits.iter().map(|limit| limit.evidence.text.as_str());
    assert!(told.clone().all(|text| !text.contains("at least")), "{:?}", told.collect::<Vec<_>>());
}

/// The scale that is guessed of windows of 64 segments, in units of 128 bytes, that are full throughout. Two ACKs with
/// one time stamp let out half of them each: the first in 50 us or a little more, the second in `second`.
fn scale_of_windows_filled(second: i64) -> u8 {
    let mut talk = Talk::asked_with(724);
    let burst = |talk: &mut Talk, after: i64| {
        talk.now += after;
        (0..32).for_each(|_| talk.data(1, MSS));
    };
    burst(&mut talk, 50_000);
    burst(&mut talk, 0);
    for round in 0..12 {
        talk.now += 20 * MS;
        talk.acked[0] = talk.next[1] - 32 * MSS;
        talk.act(0, 0, Act::Repeat(724));
        let before = talk.next[1];
        burst(&mut talk, 50_000 + 10_000 * (round % 2));
        talk.acked[0] = before;
        talk.act(0, 10_000, Act::Repeat(724));
        burst(&mut talk, second);
    }
    talk.forget_handshake();
    talk.analysed(1 << 20, false).1.guessed_shift[0]
}

#[test]
fn a_send_may_follow_the_ack_that_lets_it_out_sooner_than_others_do() {
    assert_eq!(scale_of_windows_filled(50_000), 7);
    assert_eq!(scale_of_windows_filled(42_000), 7, "others differ by as much");
}

#[test]
fn cut_options_are_no_refusal() {
    let mut talk = Talk::asked_with(724);
    talk.flights_into(724, &[10, 20, 40]);
    let scaled = talk.explained().window_scaling;
    for segment in &mut talk.segments {
        segment.options = Options { incomplete: true, ..Options::default() };
    }
    let cut = talk.explained();
    assert_eq!(scaled, WindowScaling::Used);
    assert_eq!(cut.window_scaling, WindowScaling::HandshakeNotSeen);
    assert_eq!(time(side(&cut, 1), &RWND), 0, "the window may be larger than its field says");
    talk.segments[1].options.incomplete = false;
    assert_eq!(
        talk.explained().window_scaling,
        WindowScaling::NotNegotiated,
        "the answer lacks it"
    );
    assert!(talk.segments[1].flags.has(Flags::SYN));
}

/// How many round trips slow start and a silent application take if the ACK of a flight is missing, and the next
/// flight came so long after it.
fn without_an_ack(late: i64) -> (i64, i64) {
    let mut talk = Talk::asked_with(500);
    talk.flights_into(5000, &[10, 20, 40]);
    let missing = talk.segments.len() - 1;
    talk.now += late;
    talk.flights_into(5000, &[80, 160]);
    talk.segments.remove(missing);
    let account = talk.explained();
    let trips = |state| time(side(&account, 1), &[state]) / (20 * MS);
    (trips(State::CwndSlowStart), trips(State::App))
}

#[test]
fn data_that_echoes_what_the_capture_lacks_was_released_by_it() {
    assert_eq!(without_an_ack(0), (4, 0));
    assert_eq!(without_an_ack(MS), (4, 0));
    assert_eq!(without_an_ack(30 * MS), (3, 2), "written long after it");
}

/// Least round trip of a server 20 ms away whose flights the client's capture begins in the midst of.
fn midway_at_the_client(begun: usize) -> i64 {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.now += 20 * MS;
    for _ in 0..6 {
        (0..10).for_each(|_| talk.data(1, MSS));
        talk.act(0, 10_000, Act::Ack(500));
        talk.now += 20 * MS;
    }
    talk.segments.drain(..begun);
    let account = talk.explained();
    // Without a SYN whoever is met first counts as the client.
    let sent = account.directions.iter().flatten().max_by_key(|direction| direction.bytes);
    sent.and_then(|direction| direction.rtt.min_ns).expect("answers") / MS
}

#[test]
fn what_a_capture_begins_with_left_its_sender_before_that() {
    assert_eq!(midway_at_the_client(0), 20);
    assert_eq!(midway_at_the_client(6), 20, "not the half that lies within the capture");
}
