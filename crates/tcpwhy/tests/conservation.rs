//! Conservation of time, whatever the packets say.
//!
//! Streams of segments are made up: well-behaved transfers with losses, repeats and window
//! updates, and in between anything at all (absurd numbers, clocks that jump by centuries,
//! copies, swapped packets, gaps). For every connection the naive twin adds up what was booked;
//! the same stream gives the same report each time.

#[path = "common/counts.rs"]
#[expect(dead_code, reason = "the rest holds for sane streams alone")]
mod counts;
#[path = "common/twin.rs"]
mod twin;

use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use tcpwhy::report::Connection;
use tcpwhy::tracker::{Config, Tracker};
use tcpwhy::units::{Seq, Time};
use tcpwhy::wire::{Flags, IpInfo, LinkInfo, NOBODY, Options, Segment};
use twin::conserved;

/// What happens next on one of the connections.
#[derive(Clone, Debug)]
enum Step {
    /// SYN, SYN-ACK and ACK, with the SYN sent this often.
    Handshake { syns: u8 },
    /// New data in segments of equal length; every `lost`-th never passes the tap.
    Data { side: usize, segments: u16, len: u32, lost: u16 },
    /// The peer acknowledges all but `behind` bytes, with a SACK block above the hole.
    Ack { side: usize, behind: u32, sack: bool },
    /// The last `back` bytes again.
    Repeat { side: usize, back: u32, len: u32 },
    /// Another window; 0 shuts it.
    Window { side: usize, window: u16 },
    /// One byte beyond the window, or the last byte again.
    Probe { side: usize, old: bool },
    /// FIN, or RST.
    End { side: usize, reset: bool },
    /// The clock moves: forward mostly, now and then anywhere.
    Clock { ns: i64 },
    /// The previous packet once more.
    Copy,
    /// Numbers, flags and lengths out of thin air.
    Wild { seq: u32, ack: u32, flags: u16, len: u32, window: u16 },
    /// Packets are missing here.
    Gap,
}

/// One connection's numbers, as the maker of the stream keeps them.
#[derive(Clone, Debug)]
struct Talk {
    ends: [SocketAddr; 2],
    next: [u32; 2],
    window: [u16; 2],
    scale: Option<u8>,
    timestamps: bool,
    mss: Option<u16>,
    delay: i64,
    ident: u16,
}

/// The whole stream as it is made up.
struct Maker {
    talks: Vec<Talk>,
    now: i64,
    segments: Vec<Option<Segment<'static>>>,
}

impl Maker {
    fn segment(&mut self, talk: usize, side: usize, flags: Flags, len: u32) -> Segment<'static> {
        let talk = &mut self.talks[talk];
        talk.ident = talk.ident.wrapping_add(1);
        let ticks = (self.now / 1_000_000) as u32;
        Segment {
            time: Time(self.now),
            frame: self.segments.len() as u64 + 1,
            network: 0,
            source: talk.ends[side],
            destination: talk.ends[1 - side],
            seq: Seq(talk.next[side]),
            ack: Seq(talk.next[1 - side]),
            flags,
            window: talk.window[side],
            payload_len: len,
            payload: &[],
            options: Options {
                timestamps: talk.timestamps.then_some((ticks, ticks.wrapping_sub(20))),
                ..Options::default()
            },
            ip: IpInfo { id: Some(talk.ident), ttl: Some(64), ecn: Some(0) },
            link: LinkInfo::default(),
        }
    }

    fn send(&mut self, segment: Segment<'static>) {
        self.segments.push(Some(segment));
    }

    fn take(&mut self, talk: usize, step: &Step) {
        match *step {
            Step::Handshake { syns } => self.handshake(talk, syns),
            Step::Data { side, segments, len, lost } => self.data(talk, side, segments, len, lost),
            Step::Ack { side, behind, sack } => {
                self.pass(talk);
                let mut ack = self.segment(talk, side, Flags::ACK, 0);
                ack.ack = Seq(ack.ack.0.wrapping_sub(behind));
                if sack {
                    let left = Seq(ack.ack.0.wrapping_add(1448));
                    ack.options.sack[0] = (left, Seq(left.0.wrapping_add(behind)));
                    ack.options.sack_count = 1;
                }
                self.send(ack);
            }
            Step::Repeat { side, back, len } => {
                let mut again = self.segment(talk, side, Flags::ACK, len);
                again.seq = Seq(again.seq.0.wrapping_sub(back));
                self.send(again);
            }
            Step::Window { side, window } => {
                self.talks[talk].window[side] = window;
                let update = self.segment(talk, side, Flags::ACK, 0);
                self.send(update);
            }
            Step::Probe { side, old } => {
                let mut probe = self.segment(talk, side, Flags::ACK, 1);
                probe.seq = Seq(probe.seq.0.wrapping_sub(u32::from(old)));
                self.send(probe);
            }
            Step::End { side, reset } => {
                let flag = if reset { Flags::RST } else { Flags::FIN };
                let end = self.segment(talk, side, Flags::ACK.with(flag), 0);
                self.send(end);
                let next = &mut self.talks[talk].next[side];
                *next = next.wrapping_add(u32::from(!reset));
            }
            Step::Clock { ns } => self.now = self.now.saturating_add(ns),
            Step::Copy => {
                if let Some(last) = self.segments.last().cloned().flatten() {
                    self.send(last);
                }
            }
            Step::Wild { seq, ack, flags, len, window } => {
                let side = usize::from(seq & 1 == 1);
                let wild = self.segment(talk, side, Flags(flags), len);
                self.send(Segment { seq: Seq(seq), ack: Seq(ack), window, ..wild });
            }
            Step::Gap => self.segments.push(None),
        }
    }

    /// The way from one end to the other.
    fn pass(&mut self, talk: usize) {
        self.now = self.now.saturating_add(self.talks[talk].delay);
    }

    fn handshake(&mut self, talk: usize, syns: u8) {
        let options = |own: &Talk| Options {
            mss: own.mss,
            window_scale: own.scale,
            sack_permitted: true,
            ..Options::default()
        };
        let offered = options(&self.talks[talk]);
        for number in 0..=syns {
            let mut syn = self.segment(talk, 0, Flags::SYN, 0);
            syn.options = Options { timestamps: syn.options.timestamps, ..offered };
            self.send(syn);
            if number < syns {
                self.now = self.now.saturating_add(1_000_000_000 << number);
            }
        }
        self.pass(talk);
        self.talks[talk].next[0] = self.talks[talk].next[0].wrapping_add(1);
        let mut answer = self.segment(talk, 1, Flags::SYN.with(Flags::ACK), 0);
        answer.options = Options { timestamps: answer.options.timestamps, ..offered };
        self.send(answer);
        self.talks[talk].next[1] = self.talks[talk].next[1].wrapping_add(1);
        self.pass(talk);
        let ack = self.segment(talk, 0, Flags::ACK, 0);
        self.send(ack);
    }

    fn data(&mut self, talk: usize, side: usize, segments: u16, len: u32, lost: u16) {
        for number in 1..=segments {
            let data = self.segment(talk, side, Flags::ACK, len);
            if lost == 0 || number % lost != 0 {
                self.send(data);
            }
            let next = &mut self.talks[talk].next[side];
            *next = next.wrapping_add(len);
            self.now = self.now.saturating_add(12_000);
            if number % 2 == 0 {
                let ack = self.segment(talk, 1 - side, Flags::ACK, 0);
                self.send(ack);
            }
        }
    }
}

fn talk() -> impl Strategy<Value = Talk> {
    let scale = prop_oneof![Just(None), (0_u8..=14).prop_map(Some), any::<u8>().prop_map(Some)];
    let mss = prop_oneof![Just(None), Just(Some(1460)), any::<u16>().prop_map(Some)];
    let first = prop_oneof![any::<u32>(), u32::MAX - 100_000..=u32::MAX];
    let delay = prop_oneof![0_i64..100_000, 1_000_000_i64..200_000_000];
    (1_u16..5, [first.clone(), first], any::<[u16; 2]>(), scale, any::<bool>(), mss, delay)
        .prop_map(|(port, next, window, scale, timestamps, mss, delay)| {
            let end = |port: u16| SocketAddr::new(NOBODY.ip(), port);
            let ends = [end(40_000 + port), end(80)];
            Talk { ends, next, window, scale, timestamps, mss, delay, ident: 1 }
        })
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![
        8 => Just(1448_u32),
        3 => 1_u32..1448,
        1 => 1449_u32..600_000,
        1 => any::<u32>(),
    ];
    let back = prop_oneof![4 => 0_u32..20_000, 1 => any::<u32>()];
    let clock = prop_oneof![
        8 => 0_i64..5_000_000,
        4 => 0_i64..3_000_000_000,
        2 => -2_000_000_i64..0,
        1 => Just(-3_600_000_000_000_i64),
        1 => any::<i64>(),
    ];
    prop_oneof![
        2 => (0_u8..3).prop_map(|syns| Step::Handshake { syns }),
        12 => (0..2_usize, 0_u16..30, len.clone(), 0_u16..9)
            .prop_map(|(side, segments, len, lost)| Step::Data { side, segments, len, lost }),
        12 => (0..2_usize, back.clone(), any::<bool>())
            .prop_map(|(side, behind, sack)| Step::Ack { side, behind, sack }),
        6 => (0..2_usize, back, len.clone())
            .prop_map(|(side, back, len)| Step::Repeat { side, back, len }),
        3 => (0..2_usize, prop_oneof![Just(0), any::<u16>()])
            .prop_map(|(side, window)| Step::Window { side, window }),
        2 => (0..2_usize, any::<bool>()).prop_map(|(side, old)| Step::Probe { side, old }),
        1 => (0..2_usize, any::<bool>()).prop_map(|(side, reset)| Step::End { side, reset }),
        10 => clock.prop_map(|ns| Step::Clock { ns }),
        2 => Just(Step::Copy),
        2 => (any::<u32>(), any::<u32>(), 0_u16..512, len, any::<u16>())
            .prop_map(|(seq, ack, flags, len, window)| Step::Wild { seq, ack, flags, len, window }),
        1 => Just(Step::Gap),
    ]
}

/// Steps of up to three connections. Most of them begin with a handshake.
fn steps(count: usize) -> impl Strategy<Value = Vec<(usize, Step)>> {
    let opening = vec((0..3_usize, Just(Step::Handshake { syns: 0 })), 0..4);
    (opening, vec((0..3_usize, step()), 0..count))
        .prop_map(|(opening, rest)| opening.into_iter().chain(rest).collect())
}

/// The stream; pairs of packets at `swaps` change places. `None` is a gap.
fn stream(
    talks: Vec<Talk>,
    start: i64,
    steps: &[(usize, Step)],
    swaps: &[usize],
) -> Vec<Option<Segment<'static>>> {
    let mut maker = Maker { talks, now: start, segments: Vec::new() };
    for (talk, step) in steps {
        maker.take(talk % maker.talks.len(), step);
    }
    let mut segments = maker.segments;
    for at in swaps {
        if segments.len() > 1 {
            let at = at % (segments.len() - 1);
            segments.swap(at, at + 1);
        }
    }
    segments
}

fn track(stream: &[Option<Segment<'_>>], detail: bool) -> Vec<Connection> {
    let mut tracker = Tracker::new(Config { detail, ..Config::default() });
    for packet in stream {
        match packet {
            Some(segment) => tracker.push(segment),
            None => tracker.gap(),
        }
    }
    tracker.finish().0
}

/// All that holds for any stream.
fn check(stream: &[Option<Segment<'_>>]) -> Result<(), TestCaseError> {
    let connections = track(stream, true);
    let captured = stream.iter().flatten().count() as u64;
    let counted: u64 = connections.iter().map(|c| c.packets + c.duplicates).sum();
    prop_assert!(counted <= captured, "{counted} packets of {captured}");
    for connection in &connections {
        if let Some(odd) = counts::odd_in_any_stream(connection).first() {
            return Err(TestCaseError::fail(odd.clone()));
        }
        if let Err(fault) = conserved(connection) {
            return Err(TestCaseError::fail(fault));
        }
    }
    prop_assert!(connections == track(stream, true), "the same stream, another report");
    // What is kept changes nothing in the sums.
    for (full, short) in connections.iter().zip(track(stream, false)) {
        prop_assert_eq!(full.duration_ns, short.duration_ns);
        for (full, short) in full.directions.iter().zip(&short.directions) {
            let times = [full, short].map(|d| d.as_ref().map(|d| &d.time_in));
            prop_assert_eq!(times[0], times[1], "times with and without detail");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_nanosecond_is_booked_once(
        talks in vec(talk(), 1..4),
        start in prop_oneof![Just(1_700_000_000_000_000_000_i64), any::<i64>()],
        steps in steps(60),
        swaps in vec(any::<usize>(), 0..5),
    ) {
        check(&stream(talks, start, &steps, &swaps))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Longer than the engine's chunks and twice its patience: borders between chunks show.
    #[test]
    fn long_transfers_are_booked_once_too(
        talks in vec(talk(), 1..3),
        before in steps(30),
        bulk in vec((0_u16..9_000, 0_u16..200, steps(20)), 1..3),
        swaps in vec(any::<usize>(), 0..20),
    ) {
        let mut all = before;
        for (segments, lost, after) in bulk {
            let data = Step::Data { side: 1, segments, len: 1448, lost };
            all.push((0, data));
            all.extend(after);
        }
        check(&stream(talks, 1_700_000_000_000_000_000, &all, &swaps))?;
    }
}

#[test]
fn a_plain_transfer_fills_its_lifetime_in_both_directions() {
    let end = |port: u16| SocketAddr::new(NOBODY.ip(), port);
    let talk = Talk {
        ends: [end(40_000), end(80)],
        next: [u32::MAX - 10, u32::MAX - 20_000],
        window: [60_000; 2],
        scale: Some(7),
        timestamps: true,
        mss: Some(1460),
        delay: 5_000_000,
        ident: 1,
    };
    let steps = [
        (0, Step::Handshake { syns: 1 }),
        (0, Step::Data { side: 0, segments: 1, len: 100, lost: 0 }),
        (0, Step::Data { side: 1, segments: 12_000, len: 1448, lost: 50 }),
        (0, Step::End { side: 0, reset: false }),
        (0, Step::End { side: 1, reset: false }),
    ];
    let packets = stream(vec![talk], 0, &steps, &[]);
    assert!(packets.len() > 10_000, "long enough to cross chunks");
    let connections = track(&packets, true);
    assert_eq!(connections.len(), 1);
    let last = packets.iter().flatten().last().expect("packets").time;
    assert_eq!(connections[0].duration_ns, last.0, "first to last packet");
    assert_eq!(conserved(&connections[0]), Ok(()));
    for direction in &connections[0].directions {
        let direction = direction.as_ref().expect("both sides sent data");
        assert_eq!(direction.limits.last().map(|l| l.end_ns), Some(last.0));
    }
}

/// Small streams that once broke the books or the arithmetic.
#[test]
fn what_broke_the_books_before_does_so_no_more() {
    let end = |port: u16| SocketAddr::new(NOBODY.ip(), port);
    let silent = Talk {
        ends: [end(40_001), end(80)],
        next: [0; 2],
        window: [0; 2],
        scale: None,
        timestamps: false,
        mss: None,
        delay: 24_308_001,
        ident: 1,
    };
    let open = Step::Handshake { syns: 0 };
    let data = |side, segments, lost| Step::Data { side, segments, len: 1448, lost };
    let clock = |ns| Step::Clock { ns };
    let streams = [
        // Two chunks with losses, and a request between.
        vec![open.clone(), data(1, 5_479, 183), data(0, 1, 2), data(1, 5_968, 82)],
        // The SYN thrice, data, then a jump of centuries each way.
        vec![
            open.clone(),
            open.clone(),
            open.clone(),
            data(0, 17, 0),
            clock(i64::MAX),
            data(0, 3, 0),
        ],
        vec![
            open.clone(),
            data(1, 9, 0),
            clock(i64::MIN),
            data(1, 9, 4),
            clock(i64::MAX),
            data(0, 5, 0),
        ],
        // A repeat that reaches over the end of what is repaired; its ACK passes before the last data.
        vec![
            Step::Probe { side: 1, old: false },
            Step::Ack { side: 0, behind: 1448, sack: true },
            Step::Repeat { side: 1, back: 306, len: 1448 },
            Step::Data { side: 1, segments: 2, len: 2, lost: 2 },
            data(0, 1, 2),
        ],
    ];
    for (number, steps) in streams.into_iter().enumerate() {
        let swaps: &[usize] = if number == 3 { &[3] } else { &[] };
        let steps: Vec<(usize, Step)> = steps.into_iter().map(|step| (0, step)).collect();
        let packets = stream(vec![silent.clone()], 1_700_000_000_000_000_000, &steps, swaps);
        let fault = check(&packets).err().map(|fault| fault.to_string());
        assert_eq!(fault, None, "stream {number}");
    }
}
