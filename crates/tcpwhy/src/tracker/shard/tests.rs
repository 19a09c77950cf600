use core::net::{Ipv4Addr, SocketAddr};

use super::super::{Analyst, Bench, Config, starts};
use super::*;
use crate::report::{Connection, End};
use crate::wire::{Flags, Head, IpInfo, LinkInfo, Options};
use tcpwhy_words::units::{Seq, Time};

/// A segment of client `client` at `ms`, or of the server to it.
fn segment(ms: i64, client: u32, from_client: bool, flags: Flags, len: u32) -> Segment<'static> {
    let client = SocketAddr::from((Ipv4Addr::from_bits(client), 40_000));
    let server = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 80));
    let (source, destination) = if from_client { (client, server) } else { (server, client) };
    Segment {
        time: Time(ms * 1_000_000),
        frame: 1,
        network: 0,
        source,
        destination,
        seq: Seq(len * u32::from(from_client)),
        ack: Seq(1),
        flags,
        window: 500,
        payload_len: len,
        payload: &[],
        options: Options::default(),
        ip: IpInfo { id: None, ttl: Some(64), ecn: None },
        link: LinkInfo::default(),
    }
}

/// One shard with everything in it, and how many segments it took.
struct Only(Shard, Common, u64);

impl Only {
    fn new() -> Self {
        let bench = Bench::of(Analyst::new(None));
        Self(Shard::default(), Common::new(Config::default(), bench), 0)
    }

    fn push(&mut self, segment: &Segment<'_>) {
        self.2 += 1;
        let segment = Segment { frame: self.2, ..segment.clone() };
        self.0.take(&Key::of(&segment), &segment, &mut self.1);
    }

    /// The accounts of those that left.
    fn accounts(&self) -> Vec<Connection> {
        let mut accounts = self.1.bench.analyst().expect("they are analysed here").so_far().0;
        starts::number(&mut accounts, [&self.0.starts].into_iter());
        accounts
    }

    /// A request and its response: no slight connection.
    fn dialogue(&mut self, ms: i64, client: u32) {
        for (from_client, len) in [(true, 10), (false, 20), (true, 0), (false, 20)] {
            self.push(&segment(ms, client, from_client, Flags::ACK, len));
        }
    }
}

#[test]
fn stray_resets_are_counted_and_forgotten_beyond_the_bound() {
    let mut only = Only::new();
    for client in 0..5000 {
        only.push(&segment(i64::from(client), client, true, Flags::RST, 0));
    }
    assert!(only.0.live.len() <= MAX_LINGERING + 2, "{} are live", only.0.live.len());
    only.0.finish(&mut only.1);
    assert_eq!(only.accounts().len() as u64, MAX_SLIGHT);
    assert_eq!(only.0.forgotten.slight, 5000 - MAX_SLIGHT);
}

#[test]
fn half_open_connections_are_forgotten_and_others_are_not() {
    let mut only = Only::new();
    only.dialogue(0, 1 << 30);
    for client in 0..3000 {
        only.push(&segment(1, client, true, Flags::SYN, 0));
    }
    assert!(only.0.live.len() <= MAX_YOUNG + 2, "{} are live", only.0.live.len());
    only.0.finish(&mut only.1);
    // The newest is let in before the oldest goes.
    assert_eq!(only.0.forgotten.half_open, 3000 - (MAX_YOUNG as u64 + 1));
    assert!(only.accounts().iter().any(|c| c.id == 0), "the dialogue stays");
}

#[test]
fn of_connections_that_never_close_the_most_silent_leave_first() {
    let mut only = Only::new();
    let clients = MAX_LIVE as u32 + 500;
    for client in 0..clients {
        only.dialogue(i64::from(client), client);
        // The first one is never silent for long.
        only.push(&segment(i64::from(client), 0, true, Flags::ACK, 0));
    }
    assert_eq!(only.0.live.len(), MAX_LIVE);
    let left: Vec<u64> = only.accounts().iter().map(|c| c.id).collect();
    assert_eq!(left, (1..=500).collect::<Vec<_>>());
    assert!(only.accounts().iter().all(|c| c.end == End::Open));
    only.0.finish(&mut only.1);
    assert_eq!(only.accounts().len(), clients as usize, "each has its account");
}

#[test]
fn the_queue_of_grown_connections_does_not_grow_with_the_capture() {
    let mut only = Only::new();
    for client in 0..20_000 {
        only.dialogue(i64::from(client), client);
        only.push(&segment(i64::from(client), client, true, Flags::RST, 0));
    }
    assert!(only.0.grown.len() <= 2 * MAX_LIVE, "{}", only.0.grown.len());
    assert!(only.0.slots.len() <= MAX_LIVE + 2, "{}", only.0.slots.len());
}

#[test]
fn a_frame_of_another_connection_retires_nothing() {
    let mut only = Only::new();
    only.dialogue(0, 1);
    only.push(&segment(1, 1, true, Flags::RST, 0));
    let late = segment(60_000, 2, true, Flags::ACK, 0);
    let ends = Ends::of(&late.source, &late.destination).expect("IPv4");
    let usual = Usual { head: Head::of(&late), ends, payload: &[] };
    assert_eq!(only.0.goes_on(&usual, &mut only.1), None);
    assert!(only.accounts().is_empty(), "it still lingers");
    only.push(&late);
    assert_eq!(only.accounts().len(), usize::from(only.0.lingering.is_empty()));
}

#[test]
fn the_first_that_carry_data_are_kept_in_detail_however_many_do_not() {
    let mut only = Only::new();
    for client in 0..80 {
        only.push(&segment(0, client, true, Flags::SYN, 0));
    }
    for client in 80..160 {
        for (ms, from_client, len) in [(1, true, 10), (5, false, 20), (9, true, 0)] {
            only.push(&segment(ms, client, from_client, Flags::ACK, len));
        }
    }
    only.0.finish(&mut only.1);
    let is_detailed = |id: u64| {
        let account = only.accounts().into_iter().find(|c| c.id == id).expect("an account");
        account.directions.iter().flatten().any(|direction| !direction.limits.is_empty())
    };
    let detailed: Vec<u64> = (80..160).filter(|id| is_detailed(*id)).collect();
    assert_eq!(detailed, (80..144).collect::<Vec<_>>());
}
