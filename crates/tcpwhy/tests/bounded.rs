//! What one connection takes of memory does not grow with its packets, whatever they are.
//!
//! An allocator counts what is in use. Each kind of traffic comes twice as long as it takes every list to fill; in the
//! second half the most that is in use must be what it was in the first. `of_twenty_million_packets`, which takes
//! minutes, prints what as many packets take (`cargo test -p tcpwhy --test bounded -- --ignored --nocapture`).

use core::cell::Cell;
use core::net::{Ipv4Addr, SocketAddr};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Write as _};

use tcpwhy::report::Connection;
use tcpwhy::tracker::{Config, Tracker};
use tcpwhy::units::{Seq, Time};
use tcpwhy::wire::{Flags, IpInfo, LinkInfo, Options, Segment};

/// Most bytes that one connection may take.
const MOST: isize = 32 << 20;
/// Packets in which every list of a connection fills.
const WARM_UP: u64 = 160_000;

thread_local! {
    /// Bytes in use by this thread, and the most there were since that was last asked.
    static IN_USE: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, and what it gave out.
struct Counting;

fn count(by: isize) {
    // A thread that ends gives things back when its counter is gone.
    let _ = IN_USE.try_with(|cell| {
        let (now, most) = cell.get();
        cell.set((now + by, most.max(now + by)));
    });
}

#[expect(unsafe_code, reason = "an allocator is; it hands all on to the system's")]
// SAFETY: everything is the system's allocator's, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as of the caller.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old room is in use until all is moved.
        count(size as isize);
        // SAFETY: as of the caller.
        let moved = unsafe { System.realloc(at, layout, size) };
        count(-(layout.size() as isize));
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes that this thread has in use, and the most it had since it was last asked.
fn in_use() -> (isize, isize) {
    IN_USE.with(|cell| {
        let (now, most) = cell.get();
        cell.set((now, now));
        (now, most)
    })
}

/// A packet as a kind of traffic says it: all else is the same of all.
#[derive(Clone, Copy)]
struct Packet {
    by_client: bool,
    seq: u32,
    ack: u32,
    len: u32,
    window: u16,
    sack: &'static [(u32, u32)],
    /// Sack blocks lie so far behind what their lists say.
    sack_from: u32,
    /// Microseconds since the packet before it.
    after: i64,
    flags: Flags,
}

const DATA: Packet = Packet {
    by_client: true,
    seq: 1,
    ack: 1,
    len: 1000,
    window: 60_000,
    sack: &[],
    sack_from: 0,
    after: 100,
    flags: Flags::ACK,
};
const ANSWER: Packet = Packet { by_client: false, len: 0, ..DATA };

/// A kind of traffic: its packets by their numbers.
type Kind = fn(u64) -> Packet;

/// A number that looks drawn.
fn drawn(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The `n`-th thousand bytes of the client's stream.
fn thousand(n: u64) -> u32 {
    (n.wrapping_mul(1000) as u32).wrapping_add(1)
}

/// Ten segments for ever, and an ACK of the first of them each `each` packets; of more by `more`.
fn ten_again(n: u64, each: u64, ack: u32) -> Packet {
    if n % each == each - 1 {
        Packet { seq: 1, ack, ..ANSWER }
    } else {
        Packet { seq: thousand(n % 10), ..DATA }
    }
}

const KINDS: &[(&str, Kind)] = &[
    ("ten segments again, never acknowledged", |n| ten_again(n, u64::MAX, 0)),
    ("ten segments again, the first acknowledged", |n| ten_again(n, 3, 1001)),
    ("ten segments again, all acknowledged", |n| ten_again(n, 3, 10_001)),
    ("ten segments again, duplicate ACKs", |n| ten_again(n, 2, 1)),
    ("ten segments again, a second between", |n| Packet {
        after: 1_000_000,
        ..ten_again(n, 3, 1001)
    }),
    ("ten segments again, the window opens and shuts", |n| Packet {
        window: if drawn(n / 3).is_multiple_of(2) { 0 } else { 60_000 },
        ..ten_again(n, 3, 1001)
    }),
    ("ten segments again, and a SACK", |n| Packet {
        sack: if n % 3 == 2 { &[(2001, 3001), (4001, 5001), (6001, 7001)] } else { &[] },
        ..ten_again(n, 3, 1001)
    }),
    ("ten segments again, a D-SACK each", |n| Packet {
        sack: if n % 2 == 1 { &[(1, 1001)] } else { &[] },
        ..ten_again(n, 2, 1001)
    }),
    ("ten segments again, and pings of the peer", |n| {
        if n % 5 == 4 {
            Packet { seq: 1 + (n / 5) as u32, ack: 1001, len: 1, ..ANSWER }
        } else {
            Packet { ack: 1 + (n / 5) as u32, ..ten_again(n, 3, 1001) }
        }
    }),
    ("the same segment again, acknowledged", |n| ten_again(n, 2, 1001)),
    ("one byte each, acknowledged", |n| {
        let (sent, is_ack) = ((n / 2) as u32, n % 2 == 1);
        if is_ack {
            Packet { ack: sent + 2, ..ANSWER }
        } else {
            Packet { seq: sent + 1, len: 1, ..DATA }
        }
    }),
    ("one byte each, never acknowledged", |n| Packet { seq: n as u32 + 1, len: 1, ..DATA }),
    ("one byte each, backwards", |n| Packet { seq: 0_u32.wrapping_sub(n as u32), len: 1, ..DATA }),
    ("one byte each, every other missing", |n| Packet {
        seq: (2 * n) as u32 + 1,
        len: 1,
        after: 10,
        ..DATA
    }),
    ("every other missing, all acknowledged late", |n| match n % 1000 {
        999 => Packet { ack: thousand(n - n % 1000), after: 20_000, ..ANSWER },
        _ => Packet { seq: thousand(n + n % 2), ..DATA },
    }),
    ("a transfer", |n| match n % 3 {
        2 => Packet { ack: thousand(n - 1 - n / 3), ..ANSWER },
        _ => Packet { seq: thousand(n - n / 3), ..DATA },
    }),
    ("a hole that fills in every other byte", |n| match n {
        0 => Packet { seq: 1 << 28, ..DATA },
        _ => Packet { seq: (2 * n) as u32, len: 1, ..DATA },
    }),
    ("large segments, around all numbers", |n| match n % 2 {
        1 => Packet { ack: ((n / 2 + 1) * 60_000) as u32, ..ANSWER },
        _ => Packet { seq: (n / 2 * 60_000) as u32, len: 60_000, ..DATA },
    }),
    ("large segments, never acknowledged", |n| Packet {
        seq: (n * 60_000) as u32,
        len: 60_000,
        ..DATA
    }),
    ("each segment twice", |n| match n % 4 {
        3 => Packet { ack: thousand(n / 4 + 1), ..ANSWER },
        2 => Packet { ack: thousand(n / 4 + 1), seq: 1, len: 0, ..DATA },
        _ => Packet { seq: thousand(n / 4), ..DATA },
    }),
    ("each segment lost and repaired", |n| {
        let (turn, from) = (n / 12, thousand(n / 12 * 10));
        match n % 12 {
            10 => Packet { seq: from, after: 30_000, ..DATA },
            11 => Packet { ack: thousand((turn + 1) * 10), after: 30_000, ..ANSWER },
            0 => Packet { ack: from, sack: &[(1000, 9000)], sack_from: from, ..ANSWER },
            step => Packet { seq: from.wrapping_add(1000 * step as u32), ..DATA },
        }
    }),
    ("SACKs of everything else", |n| match n % 2 {
        1 => Packet {
            sack: &[(1000, 2000), (3000, 4000), (5000, 6000)],
            sack_from: thousand(n / 2 / 3 * 6),
            ..ANSWER
        },
        _ => Packet { seq: thousand(n / 2), ..DATA },
    }),
    ("SACKs of anything", |n| match n % 2 {
        1 => Packet {
            sack: &[(1000, 2000), (3000, 4000), (5000, 6000)],
            sack_from: drawn(n) as u32,
            ..ANSWER
        },
        _ => Packet { seq: thousand(n / 2), ..DATA },
    }),
    ("D-SACKs of all that was sent", |n| match n % 2 {
        1 => Packet {
            ack: thousand(n / 2 + 1),
            sack: &[(0, 1000)],
            sack_from: thousand(n / 2),
            ..ANSWER
        },
        _ => Packet { seq: thousand(n / 2), ..DATA },
    }),
    ("a window that shuts each time", |n| match n % 4 {
        0 => Packet { seq: thousand(n / 4), ..DATA },
        1 => Packet { ack: thousand(n / 4 + 1), window: 0, ..ANSWER },
        2 => Packet { seq: thousand(n / 4 + 1).wrapping_sub(1), len: 0, ..DATA },
        _ => Packet { ack: thousand(n / 4 + 1), after: 5000, ..ANSWER },
    }),
    ("probes into a shut window", |n| match n % 2 {
        0 => Packet { seq: 0, len: 0, after: 500_000, ..DATA },
        _ => Packet { window: 0, ..ANSWER },
    }),
    ("a byte into a shut window", |n| match n % 2 {
        0 => Packet { len: 1, after: 500_000, ..DATA },
        _ => Packet { window: 0, ..ANSWER },
    }),
    ("bare ACKs, of one kind", |_| ANSWER),
    ("bare ACKs, both ways", |n| Packet { by_client: n % 2 == 0, len: 0, ..DATA }),
    ("bare ACKs, windows as drawn", |n| Packet { window: drawn(n) as u16, ..ANSWER }),
    ("bare ACKs that advance", |n| Packet { ack: thousand(n), ..ANSWER }),
    ("questions and answers", |n| {
        let turn = thousand(n / 2);
        match n % 2 {
            0 => Packet { seq: turn, ack: turn, after: 1000, ..DATA },
            _ => Packet { seq: turn, ack: turn.wrapping_add(1000), len: 1000, ..ANSWER },
        }
    }),
    ("both ways at once", |n| {
        let (at, by_client) = (n / 2, n % 2 == 0);
        Packet { by_client, seq: thousand(at), ack: thousand(at.saturating_sub(5)), ..DATA }
    }),
    ("both ways, the same again", |n| Packet {
        by_client: n % 2 == 0,
        seq: thousand(n % 10),
        ..DATA
    }),
    ("pauses", |n| match n % 2 {
        1 => Packet { ack: thousand(n / 2 + 1), after: 3_000_000, ..ANSWER },
        _ => Packet { seq: thousand(n / 2), after: 3_000_000, ..DATA },
    }),
    ("marks of congestion", |n| match n % 2 {
        1 => Packet { ack: thousand(n / 2 + 1), flags: Flags::ACK.with(Flags::ECE), ..ANSWER },
        _ => Packet { seq: thousand(n / 2), flags: Flags::ACK.with(Flags::CWR), ..DATA },
    }),
    ("the end again and again", |n| Packet {
        by_client: n % 2 == 0,
        len: 0,
        after: 1,
        flags: Flags::ACK.with(Flags::FIN),
        ..DATA
    }),
    ("anything", |n| {
        let x = drawn(n);
        let within = |of: u64, shift: u32| (x >> shift) % of;
        Packet {
            by_client: within(2, 0) == 0,
            seq: thousand(n / 8).wrapping_add((within(40, 4) * 500) as u32),
            ack: thousand(n / 8).wrapping_sub((within(40, 12) * 500) as u32),
            len: (within(4, 20) * 500) as u32,
            window: [0, 500, 60_000, x as u16][within(4, 24) as usize],
            sack: [&[][..], &[(0, 500)], &[(500, 700), (0, 1000)], &[(9000, 9500)]]
                [within(4, 28) as usize],
            sack_from: thousand(n / 8),
            after: [0, 10, 1000, 90_000][within(4, 32) as usize],
            flags: Flags::ACK,
        }
    }),
    ("anything anywhere", |n| {
        let x = drawn(n);
        Packet {
            by_client: x & 1 == 0,
            seq: drawn(x) as u32,
            ack: drawn(x ^ 5) as u32,
            len: ((x >> 8) % 1500) as u32,
            window: (x >> 24) as u16,
            sack: &[(0, 500), (900, 2000)],
            sack_from: drawn(x ^ 9) as u32,
            after: ((x >> 40) % 2000) as i64,
            flags: Flags::ACK,
        }
    }),
];

fn segment(packet: Packet, now: i64, frame: u64) -> Segment<'static> {
    let ends = [1_u32, 2].map(|host| SocketAddr::from((Ipv4Addr::from_bits(host), 5000)));
    let at = usize::from(!packet.by_client);
    let mut options = Options { sack_count: packet.sack.len() as u8, ..Options::default() };
    if packet.flags.has(Flags::SYN) {
        options = Options { mss: Some(1000), sack_permitted: true, ..options };
    }
    let moved = |edge: u32| Seq(edge.wrapping_add(packet.sack_from));
    for (block, edges) in options.sack.iter_mut().zip(packet.sack) {
        *block = (moved(edges.0), moved(edges.1));
    }
    Segment {
        time: Time(now),
        frame,
        network: 0,
        source: ends[at],
        destination: ends[1 - at],
        seq: Seq(packet.seq),
        ack: Seq(packet.ack),
        flags: packet.flags,
        window: packet.window,
        payload_len: packet.len,
        payload: &[],
        options,
        ip: IpInfo { id: Some(frame as u16), ttl: Some(64), ecn: None },
        link: LinkInfo::default(),
    }
}

/// What `packets` of a kind take, in each half: the most bytes in use at once. And what came of them.
fn taken(kind: Kind, packets: u64, config: Config) -> ([isize; 2], Vec<Connection>) {
    let (before, _) = in_use();
    let mut tracker = Tracker::new(config);
    let opening = [
        Packet { seq: 0, len: 0, flags: Flags::SYN, ..DATA },
        Packet { seq: 0, flags: Flags::SYN.with(Flags::ACK), ..ANSWER },
    ];
    let mut now = 0;
    let mut frame = 0;
    let mut push = |packet: Packet| {
        now += packet.after * 1000;
        frame += 1;
        tracker.push(&segment(packet, now, frame));
    };
    opening.into_iter().for_each(&mut push);
    let halves = [0, 1].map(|half| {
        let from = half * packets / 2;
        (from..from + packets / 2).for_each(|n| push(kind(n)));
        in_use().1 - before
    });
    (halves, tracker.finish().0)
}

/// Everything kept that can be, but for the marks of graphs: their lists fill only in 130,000 packets of a kind, and what
/// holds them below that is tested where they are (`report::trail`).
const ALL: Config =
    Config { detail: true, passed: true, predicts: true, trails: false, keep: None, scales: None };

/// Kinds whose lists fill only in more packets: at 400,000 to 800,000 all but the last two stand still.
const SLOW: [&str; 6] = [
    "ten segments again, and pings of the peer",
    "ten segments again, the window opens and shuts",
    "each segment lost and repaired",
    "both ways at once",
    "anything",
    "anything anywhere",
];

/// Holds every fourth kind from `first` on to what it took before.
fn none_grows(first: usize) {
    let mut grown = Vec::new();
    for (name, kind) in KINDS.iter().skip(first).step_by(4) {
        let ([before, then], connections) = taken(*kind, 2 * WARM_UP, ALL);
        assert_eq!(connections.len(), 1, "{name}");
        let has_grown = then > before + 65_536 && !SLOW.contains(name);
        if has_grown || before.max(then) > MOST {
            grown.push(format!("{name}: {before} bytes, then {then}"));
        }
    }
    assert!(grown.is_empty(), "{grown:#?}");
}

#[test]
fn memory_does_not_grow_with_packets() {
    none_grows(0);
}

#[test]
fn nor_with_packets_of_other_kinds() {
    none_grows(1);
}

#[test]
fn nor_with_packets_of_more_kinds() {
    none_grows(2);
}

#[test]
fn nor_with_packets_of_all_kinds() {
    none_grows(3);
}

#[test]
#[ignore = "takes minutes"]
fn of_twenty_million_packets() {
    for (name, kind) in KINDS {
        let ([first, second], _) = taken(*kind, 20_000_000, ALL);
        writeln!(io::stderr(), "{name}: {first} bytes, then {second}").expect("somebody reads");
        assert!(first.max(second) < MOST, "{name}");
    }
}
