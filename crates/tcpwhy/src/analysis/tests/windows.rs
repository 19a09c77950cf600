//! Receive windows that stop a flight, and what the sender waits for behind them.

use super::talk::{Act, MSS, Talk};
use super::tapes::{server, time};
use crate::report::{Connection, State};
use crate::wire::{Flags, Options};

const MS: i64 = 1_000_000;

/// Slow start to 40 segments, after which the client shuts its window; a second later it opens that by
/// `window` (in units of 128 B), and takes a first flight of 10 segments, then 20 and 40.
fn after_a_stall(window: u16) -> Connection {
    let mut talk = Talk::asked();
    for (segments, left) in [(10, 678), (20, 452), (40, 0)] {
        (0..segments).for_each(|_| talk.data(1, MSS));
        talk.act(0, 20 * MS, Act::Ack(left));
        talk.now += 100_000;
    }
    talk.act(0, 1000 * MS, Act::Repeat(window));
    talk.now += 100_000;
    talk.flights(&[10, 20, 40, 80]);
    talk.account(1 << 20, false)
}

#[test]
fn a_stall_at_a_shut_window_cuts_the_congestion_window_as_a_pause_does() {
    let told = |window| {
        let account = after_a_stall(window);
        let restart = time(&account, &[State::CwndAfterIdle]) / (20 * MS);
        (restart, server(&account).idle_restarts[0].verdict.clone())
    };
    assert_eq!(told(5000), (3, "on".to_owned()));
    assert_eq!(
        told(114),
        (0, "unknown".to_owned()),
        "the receiver's window ended the first flight"
    );
}

/// Slow start to 160 segments; one of them is lost if `lost`, which leaves a window of 80 that grows by a segment a round. After a
/// second without data the sender begins with 10 segments, and its flights double up to the threshold that is left.
fn paused_after_a_loss(lost: bool) -> Connection {
    let mut talk = Talk::asked();
    talk.flights(&[10, 20, 40, 80]);
    let first = talk.next[1];
    (0..160).for_each(|_| talk.data(1, MSS));
    talk.now += 20 * MS;
    if lost {
        (0..4).for_each(|_| talk.act(0, 1_000, Act::Repeat(5000)));
        talk.now += 100_000;
        talk.push(1, Flags::ACK, first, MSS, Options::default());
        talk.now += 20 * MS;
    }
    talk.act(0, 0, Act::Ack(5000));
    talk.now += 100_000;
    talk.flights(if lost { &[80, 81, 82] } else { &[] });
    talk.now += 1000 * MS;
    talk.flights(&[10, 20, 40]);
    talk.flights(if lost { &[63, 64, 65, 66, 67, 68, 69] } else { &[80, 160, 160] });
    talk.account(1 << 20, false)
}

#[test]
fn a_pause_is_told_for_what_it_took_and_not_for_what_a_loss_had_taken() {
    let restart = |lost| {
        let account = paused_after_a_loss(lost);
        assert_eq!(server(&account).idle_restarts[0].verdict, "on");
        time(&account, &[State::CwndAfterIdle]) / (20 * MS)
    };
    assert_eq!(restart(true), 4, "up to three quarters of 82, the threshold that is left");
    assert_eq!(restart(false), 5, "without a loss the window had been 160");
}

/// Slow start, then a flight of this many segments into a window of 81,920 bytes. The client does not read, and
/// leaves `left` of the window (in units of 128 B). 1,024 bytes more come 280 ms after its ACK. Then the client has
/// read all. Returns the time of the application and of the window, in round trips of 20 ms.
fn before_a_late_segment(segments: u32, left: u16) -> [i64; 2] {
    let mut talk = Talk::asked();
    for flight in [10, 20, 40] {
        (0..flight).for_each(|_| talk.data(1, MSS));
        talk.act(0, 20 * MS, Act::Ack(640));
        talk.now += 100_000;
    }
    (0..segments).for_each(|_| talk.data(1, MSS));
    talk.act(0, 20 * MS, Act::Ack(left));
    talk.now += 280 * MS;
    talk.data(1, 1024);
    talk.act(0, 20 * MS, Act::Ack(640));
    talk.flights(&[40, 40]);
    let account = talk.account(1 << 20, false);
    [
        time(&account, &[State::App]) / (20 * MS),
        time(&account, &[State::RwndCap, State::RwndReader, State::ZeroWindow]) / (20 * MS),
    ]
}

#[test]
fn a_window_that_is_shut_behind_the_flight_that_filled_it_was_not_open_between() {
    let full = 640 * 128 / MSS;
    let [app, window] = before_a_late_segment(full, 8);
    assert_eq!((app, window), (0, 16));
    let [app, window] = before_a_late_segment(40, 640 - (40 * MSS / 128) as u16);
    assert_eq!((app, window), (0, 0), "there was room for more: two transfers, and a pause");
}

/// At the client, 20 ms from the server: flights of 44 and then of about 30 segments. The window is 44 of them.
/// Before the last flights one segment is lost if `lost`.
fn once_filled(lost: bool) -> Connection {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.now += 20 * MS;
    let flight = |talk: &mut Talk, segments: u32| {
        (0..segments).for_each(|_| talk.data(1, MSS));
        talk.act(0, 100_000, Act::Ack(500));
        talk.now += 20 * MS;
    };
    for segments in [10, 20, 30, 44, 44, 44] {
        flight(&mut talk, segments);
    }
    if lost {
        let first = talk.next[1];
        (0..44).for_each(|_| talk.data(1, MSS));
        (0..4).for_each(|_| talk.act(0, 1_000, Act::Repeat(500)));
        talk.now += 20 * MS;
        talk.push(1, Flags::ACK, first, MSS, Options::default());
        talk.act(0, 100_000, Act::Ack(500));
        talk.now += 20 * MS;
    }
    for round in 0..8 {
        flight(&mut talk, 30 + round % 3);
    }
    talk.account(1 << 20, false)
}

#[test]
fn a_window_once_filled_is_the_limit_until_the_congestion_window_is_cut() {
    let rwnd = |account: &Connection| {
        time(account, &[State::RwndCap, State::RwndAutotune, State::RwndReader]) / MS
    };
    let (whole, cut) = (once_filled(false), once_filled(true));
    assert_eq!(whole.tap_to_server_rtt_ns.map(|ns| ns / MS), Some(20));
    assert!(rwnd(&whole) >= 200, "{:?}", server(&whole).time_in);
    assert!(rwnd(&cut) < 130, "{:?}", server(&cut).time_in);
}

/// A flight that fills a window of 64,000 bytes.
fn fill_window(talk: &mut Talk) {
    (0..43).for_each(|_| talk.data(1, MSS));
    talk.data(1, 500 * 128 - 43 * MSS);
}

/// At the client: flights that fill a window of 64,000 bytes. The client answers all but the last `behind` segments
/// `late`, though the round trip is 20.1 ms. It answers the rest another 0.1 ms later. After one flight of four the
/// server lets a `pause` pass. Returns what held it most, and for how many flights of 40 ms it waited for the last
/// ACK.
fn answered(behind: u32, late: i64, pause: i64) -> (State, i64) {
    answered_in(10, behind, late, pause)
}

/// The same for this many flights.
fn answered_in(flights: u32, behind: u32, late: i64, pause: i64) -> (State, i64) {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.now += 20 * MS;
    for flight in 0..flights {
        fill_window(&mut talk);
        talk.now += 100_000 + late;
        if behind > 0 {
            talk.acked[0] = talk.next[1] - behind * MSS;
            talk.window[0] = (500 - (behind * MSS).div_ceil(128)) as u16;
            talk.push(0, Flags::ACK, talk.next[0], 0, Options::default());
        }
        talk.act(0, 100_000, Act::Ack(500));
        talk.now += 20 * MS + if flight % 4 == 3 { pause } else { 0 };
    }
    let account = talk.account(1 << 20, false);
    let held = [State::RwndCap, State::RwndReader, State::ZeroWindow];
    let most = held.into_iter().max_by_key(|state| time(&account, &[*state])).expect("three");
    (most, time(&account, &[State::LastFlight]) / (40 * MS))
}

#[test]
fn a_full_window_that_is_answered_late_and_at_once_waits_for_its_reader() {
    let most = |behind, late| answered(behind, late, 0).0;
    assert_eq!(most(0, 0), State::RwndCap, "as soon as it came");
    assert_eq!(most(0, 19 * MS), State::RwndCap, "sooner than a round trip after that");
    assert_eq!(most(0, 21 * MS), State::RwndReader);
    assert_eq!(most(4, 21 * MS), State::RwndCap, "a queue lets it through in parts");
    assert_eq!(answered(0, 21 * MS, 2 * MS), (State::RwndReader, 0), "the server is a little late");
    assert_eq!(answered(0, 21 * MS, 3 * MS), (State::RwndReader, 2), "it had no more then");
}

#[test]
fn full_windows_that_are_answered_as_late_each_time_wait_for_their_reader() {
    let most = |flights, behind, late| answered_in(flights, behind, late, 0).0;
    assert_eq!(most(30, 0, 4 * MS), State::RwndReader);
    assert_eq!(most(10, 0, 4 * MS), State::RwndCap, "too few to tell for most of the time");
    assert_eq!(most(30, 0, 2 * MS), State::RwndCap, "less than an eighth of a round trip");
    assert_eq!(
        most(30, 4, 4 * MS),
        State::RwndCap,
        "a queue behind the tap lets it through in parts"
    );
}

/// At the client, 20 ms from the server: flights that fill a window of 64,000 bytes. From the fourth on, 24 ms pass
/// behind each flight's ACK instead of 20 ms. Returns how long the window held them and the application did, in
/// flights.
fn longer_way_of_acks() -> [i64; 2] {
    let mut talk = Talk::default();
    talk.open();
    talk.act(0, 10_000, Act::Short);
    talk.now += 20 * MS;
    for flight in 0..20 {
        fill_window(&mut talk);
        talk.act(0, 100_000, Act::Ack(500));
        talk.now += if flight < 3 { 20 * MS } else { 24 * MS };
    }
    let account = talk.account(1 << 20, false);
    let window = [State::RwndCap, State::RwndReader, State::RwndAutotune];
    let application = [State::App, State::IdleAppThink];
    [time(&account, &window), time(&account, &application)].map(|held| held / (24 * MS))
}

#[test]
fn a_way_of_acks_that_became_longer_is_no_pause_of_the_application() {
    let [window, application] = longer_way_of_acks();
    assert!(window >= 16 && application == 0, "{window} {application}");
}
