//! Two hosts that talk, packet by packet, for tests to read like a tape.

use core::net::{Ipv4Addr, SocketAddr};

use crate::analysis::{Analysis, Detail, summary};
use crate::flow::connection::Flow;
use crate::flow::facts::Facts;
use crate::flow::gathered::Gathered;
use crate::flow::usual::Streaming;
use crate::report::Connection;
use crate::wire::{Alike, Flags, Head, IpInfo, LinkInfo, Options, Segment};
use tcpwhy_words::units::{Seq, Time};

pub(super) const MSS: u32 = 1448;

/// What one side does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Sends this many full segments.
    Burst(u32),
    /// Sends a short segment.
    Short,
    /// Acknowledges all it got, with this value in the window field.
    Ack(u16),
    /// Acknowledges what it did before, with this value in the window field.
    Repeat(u16),
    /// Sends its last segment again.
    Resend,
    /// Sends a segment that the capture does not see.
    Unseen,
}

/// Two hosts whose packets a capture sees.
#[derive(Default)]
pub(super) struct Talk {
    pub(super) now: i64,
    pub(super) next: [u32; 2],
    pub(super) acked: [u32; 2],
    pub(super) window: [u16; 2],
    /// The time stamp that each side sent last.
    pub(super) stamps: [u32; 2],
    pub(super) segments: Vec<Segment<'static>>,
    /// Before which segments the capture misses some.
    pub(super) gaps: Vec<usize>,
}

impl Talk {
    pub(super) fn push(&mut self, side: usize, flags: Flags, seq: u32, len: u32, options: Options) {
        let ends = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 5000)));
        self.stamps[side] = (self.now / 1_000_000) as u32;
        self.segments.push(Segment {
            time: Time(self.now),
            frame: self.segments.len() as u64 + 1,
            network: 0,
            source: ends[side],
            destination: ends[1 - side],
            seq: Seq(seq),
            ack: Seq(self.acked[side]),
            flags,
            window: self.window[side],
            payload_len: len,
            payload: &[],
            options: Options {
                timestamps: Some((self.stamps[side], self.stamps[1 - side])),
                ..options
            },
            ip: IpInfo { id: None, ttl: Some(64), ecn: None },
            link: LinkInfo::default(),
        });
    }

    /// Opens the connection: 20 ms of round trip, most of it behind the tap.
    pub(super) fn open(&mut self) {
        // As Linux writes them: the identifications are the socket's own.
        let order = [2, 4, 8, 1, 3, 0, 0, 0];
        let (mss, window_scale) = (Some(1460), Some(7));
        let options = Options { mss, window_scale, order, ..Options::default() };
        self.window = [500; 2];
        self.push(0, Flags::SYN, 0, 0, options);
        (self.now, self.acked[1]) = (20_000_000, 1);
        self.push(1, Flags::SYN.with(Flags::ACK), 0, 0, options);
        (self.now, self.acked[0], self.next) = (20_100_000, 1, [1; 2]);
        self.push(0, Flags::ACK, 1, 0, Options::default());
    }

    pub(super) fn act(&mut self, side: usize, gap: i64, act: Act) {
        let none = Options::default();
        let times = if let Act::Burst(times) = act { times } else { 1 };
        for _ in 0..times {
            self.now += gap;
            let next = self.next[side];
            match act {
                Act::Burst(_) => self.data(side, MSS),
                Act::Short => self.data(side, 100),
                Act::Ack(window) => {
                    (self.acked[side], self.window[side]) = (self.next[1 - side], window);
                    self.push(side, Flags::ACK, next, 0, none);
                }
                Act::Repeat(window) => {
                    self.window[side] = window;
                    self.push(side, Flags::ACK, next, 0, none);
                }
                Act::Resend => {
                    self.push(side, Flags::ACK, next.saturating_sub(MSS).max(1), MSS, none);
                }
                Act::Unseen => self.next[side] += MSS,
            }
        }
    }

    pub(super) fn data(&mut self, side: usize, len: u32) {
        let flags = if self.segments.len().is_multiple_of(5) { Flags::PSH } else { Flags(0) };
        self.push(side, Flags::ACK.with(flags), self.next[side], len, Options::default());
        self.next[side] += len;
    }

    /// The account, with the events processed in chunks of `chunk`.
    pub(super) fn account(&self, chunk: usize, long_way: bool) -> Connection {
        let (facts, mut analysis) = self.analysed(chunk, long_way);
        summary::in_full(summary::outline(&facts, &analysis), &facts, &mut analysis)
    }

    /// Its outline.
    pub(super) fn outline(&self) -> Connection {
        let (facts, analysis) = self.analysed(1 << 20, false);
        summary::outline(&facts, &analysis)
    }

    /// The same as it is counted without a walk, if both sides talk in turns.
    pub(super) fn counted(&self) -> Option<Connection> {
        let mut flow = Flow::new(&self.segments[0]);
        (0..self.segments.len()).for_each(|at| {
            self.take_alone(&mut flow, at);
        });
        let Flow { facts, gathered, .. } = &mut flow;
        let mut analysis = Analysis::new(Detail::default());
        analysis.study(facts, gathered);
        let turns = analysis.turns(facts, gathered)?;
        let mut outline = summary::blank(facts);
        summary::outline_turns(&mut outline, facts, turns);
        Some(outline)
    }

    pub(super) fn analysed(&self, chunk: usize, long_way: bool) -> (Facts, Analysis) {
        let mut flow = Flow::new(&self.segments[0]);
        flow.long_way = long_way;
        let mut analysis =
            Analysis { long_way, ..Analysis::new(Detail { rounds: true, ..Detail::default() }) };
        let mut stream: Option<Streaming> = None;
        for (at, segment) in self.segments.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &self.segments[before]);
            let direction = before.and_then(|before| before.link.direction);
            let alike = before.filter(|_| !self.gaps.contains(&at)).and_then(|b| alike(b, segment));
            let goes_on = alike.zip(stream.as_mut()).is_some_and(|(one, stream)| stream.take(&one));
            let is_chunk = (at + 1) % chunk == 0;
            // What is gathered may be taken at any time, as where a capture's bytes end for now.
            if let Some(stream) = stream.as_mut().filter(|_| !goes_on || is_chunk || at % 7 == 0) {
                flow.go_on(stream, direction);
            }
            if !goes_on {
                stream = self.take_alone(&mut flow, at);
            }
            if is_chunk {
                stream = None;
                let mut gathered = flow.hand_on(Gathered::default());
                analysis.process(&flow.facts, &mut gathered, false);
            }
        }
        if let (Some(stream), Some(last)) = (&mut stream, self.segments.last()) {
            flow.go_on(stream, last.link.direction);
        }
        analysis.process(&flow.facts, &mut flow.gathered, true);
        (flow.facts, analysis)
    }
}

impl Talk {
    /// Lets `flow` take the segment at `at` by itself; what may go on from it.
    fn take_alone(&self, flow: &mut Flow, at: usize) -> Option<Streaming> {
        let segment = &self.segments[at];
        if self.gaps.contains(&at) {
            flow.gap();
        }
        let side = flow.side_of(segment);
        if segment.options.sack_count == 0 && flow.goes_on(side, &Head::of(segment)) {
            flow.streaming(side, (Time(i64::MAX), usize::MAX), &mut Vec::new())
        } else {
            flow.push(side, segment);
            None
        }
    }
}

/// What the frame of `segment` says if it is like the one of `before`, behind which it came.
fn alike(before: &Segment<'_>, segment: &Segment<'_>) -> Option<Alike> {
    let said = |segment: &Segment<'_>| {
        let headers =
            (segment.source, segment.ack, segment.flags.0 & !Flags::PSH.0, segment.window);
        let options = (segment.options.timestamps, segment.options.sack_count);
        let met = (segment.ip.ttl, segment.link.interface, segment.link.direction);
        (headers, segment.payload_len, options, met, segment.link.checksum)
    };
    let is_plain = segment.options.sack_count == 0 && segment.link.checksum.is_none();
    let is_alike = segment.payload_len > 0 && is_plain && said(before) == said(segment);
    let (time, frame, seq) = (segment.time, segment.frame, segment.seq);
    let (id, is_pushed) = (segment.ip.id.unwrap_or_default(), segment.flags.has(Flags::PSH));
    is_alike.then_some(Alike { time, frame, seq, id, is_pushed })
}
