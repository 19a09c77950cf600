//! All connections of a capture.
//!
//! Packets come in one order, and are followed in it. Their connections live in 64 shards by a hash of their addresses.
//! Each shard sees only its own packets; [`shard`] says which are kept. What a connection has gathered is analysed in
//! parts ([`Part`]), here or by whoever fetches them. That is the larger half of the work, and several threads may
//! share it. The result is the same on any number of threads. A part holds all that its analysis depends on, except
//! what the part before it left.

mod batch;
mod bench;
mod key;
mod lanes;
mod piece;
mod shard;
mod starts;

pub use batch::Batch;
pub(crate) use batch::Follow;
pub use bench::Bench;
use bench::Desk;
pub(crate) use key::Key;
pub use lanes::{Batches, LANES, Lane};
pub use piece::{Cutter, Odd};
use shard::Shard;

pub use crate::analysis::{Analyst, Begun, Keep, Part, Sums};

use crate::analysis::Detail;
pub use shard::Forgotten;

use core::cmp::Reverse;
use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::capture::Frame;
use crate::flow::connection::Flow;
use crate::flow::facts::Facts;
use crate::flow::run::Follower;
use crate::flow::usual::Streaming;
pub(crate) use crate::flow::usual::WentOn;
use crate::report::Connection;
use crate::wire::{IcmpError, Mould, Segment, Usual};

/// Fixed, whatever the number of threads (design: same input, same bytes out).
const SHARDS: usize = 64;

/// This many of the first connections keep their intervals anyhow, and this many of the first with data. A capture of a
/// few is shown in full, and of many these tell what is to be found. Ours: a page of a browser opens fewer.
pub const DETAILED: u64 = 64;

/// Connections that have not ended in a provisional report. Ours: more than its table shows, and a
/// hundredth of a second's work.
const STANDING: usize = 16;

/// What the caller wants kept beyond totals.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for apart")]
pub struct Config {
    /// Keep rounds, intervals and retransmissions of every connection, not of the first few only.
    pub detail: bool,
    /// Keep when each byte passed and what was answered, so that system calls can be laid beside the packets
    /// and a scenario fitted to them.
    pub passed: bool,
    /// Keep the same of those connections that keep rounds anyhow, while they are short enough for the model to repeat
    /// them.
    pub predicts: bool,
    /// Keep what passed the tap of those connections that keep rounds, for pictures.
    pub trails: bool,
    /// The connections whose accounts are kept; `None`: all.
    pub keep: Option<Keep>,
    /// By how much windows are shifted of connections whose handshake was not captured, where something else tells.
    pub scales: Option<Arc<Scales>>,
}

impl Config {
    /// What is kept of a connection with or without rounds.
    fn detail_of(&self, rounds: bool) -> Detail {
        Detail { rounds, passed: self.passed_of(rounds), trail: self.trails && rounds }
    }

    /// How many points of each kind are kept of a connection with or without rounds, if any are.
    fn passed_of(&self, rounds: bool) -> Option<usize> {
        match () {
            () if self.passed => Some(usize::MAX),
            () if self.predicts && rounds => Some(REPEATED),
            () => None,
        }
    }
}

/// A connection with more segments than these is not repeated by the model while a report waits for it. Ours: what
/// `whatif::advise` has the time for.
const REPEATED: usize = 1 << 15;

/// Of two ends the shifts of the windows that each announces.
pub type Scales = BTreeMap<[SocketAddr; 2], [u8; 2]>;

/// What all shards use.
#[derive(Debug)]
struct Common {
    config: Config,
    /// How many connections began, and with which frame the first that is not among the first of these.
    connections: u64,
    first_until: u64,
    /// How many are the first that carry data, and keep their intervals.
    detailed: u64,
    bench: Bench,
    /// What the parts so far left of connections that are analysed in several here, by the frames that they began with.
    begun: HashMap<u64, Begun, FixedState>,
}

/// Shard and slot of a connection.
type Place = (usize, u32);

/// Follows all connections of a capture.
#[derive(Debug)]
pub struct Tracker {
    shards: Vec<Shard>,
    common: Common,
    /// Shards whose connections were all handed on, at the end.
    closed: usize,
    /// What the last packet's frame has in common with those like it, and what went on in them, if it
    /// just went on with its data; and where its connection is.
    streaming: Option<(Place, Mould, Streaming)>,
    /// Room for what goes on.
    followers: Vec<Follower>,
    /// Segments whose connections had to be looked for.
    looked_for: u64,
}

impl Tracker {
    /// A tracker that has seen nothing, and analyses what it gathers at once.
    pub fn new(config: Config) -> Self {
        let bench = Bench::of(Analyst::new(config.keep));
        Self::with(config, bench)
    }

    /// A tracker that has seen nothing. Whoever calls it fetches what it gathered
    /// ([`Tracker::next_part`]) after each push and gives it to an analyst.
    pub fn handing_on(config: Config) -> Self {
        Self::with(config, Bench::default())
    }

    fn with(config: Config, bench: Bench) -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        let common = Common::new(config, bench);
        Self { shards, common, closed: 0, streaming: None, followers: Vec::new(), looked_for: 0 }
    }

    /// How many segments came whose connections had to be looked for: all but those that go on in few
    /// connections.
    pub const fn looked_for(&self) -> u64 {
        self.looked_for
    }

    /// Takes what was gathered, which comes before all else.
    pub(crate) fn catch_up(&mut self) {
        let Self { shards, common, streaming, .. } = self;
        if let Some(((at, slot), mould, streaming)) = streaming {
            shards[*at].go_on(*slot, streaming, mould.direction(), common);
        }
    }

    /// What comes next does not go on.
    #[inline]
    fn end_stream(&mut self) {
        if self.streaming.is_some() {
            self.catch_up();
            self.followers = self.streaming.take().map_or_else(Vec::new, |s| s.2.into_room());
        }
    }

    /// Takes the segment in a usual frame, next in capture order; those in frames like it are gathered then, if
    /// `frame` is here.
    #[expect(clippy::inline_always, reason = "it is most of the work, once for each way here")]
    #[inline(always)]
    fn take_usual(&mut self, usual: &Usual<'_>, frame: Option<&Frame<'_>>) {
        self.end_stream();
        let at = shard_of(usual.ends.mixed());
        let shard = &mut self.shards[at];
        match shard.goes_on(usual, &mut self.common) {
            Some((_, false, _)) => {}
            Some((side, true, slot)) => {
                let Some(frame) = frame else { return };
                let streaming = shard.streaming(slot, side, &mut self.followers);
                self.streaming = streaming.and_then(|s| Some(((at, slot), usual.mould(frame)?, s)));
            }
            None => self.look_for(&usual.segment()),
        }
    }

    /// Takes the next segment in capture order.
    pub fn push(&mut self, segment: &Segment<'_>) {
        self.end_stream();
        self.look_for(segment);
    }

    /// Takes a segment of a connection that has to be looked for.
    #[inline(never)]
    fn look_for(&mut self, segment: &Segment<'_>) {
        self.looked_for += 1;
        let key = Key::of(segment);
        self.shards[shard_of(key.mixed())].take(&key, segment, &mut self.common);
    }

    /// Packets are missing here that the capture saw (a listing's dots).
    pub fn gap(&mut self) {
        self.end_stream();
        self.shards.iter_mut().for_each(Shard::gap);
    }

    /// A device said of a segment that is quoted that it is too large for the next hop.
    pub(crate) fn too_big(&mut self, error: &IcmpError) {
        self.end_stream();
        let Some(ends) = error.quoted.ends() else {
            // A listing that shows no ports: any connection of its hosts may be meant.
            self.shards.iter_mut().for_each(|shard| shard.too_big_of_hosts(error));
            return;
        };
        let key = Key::between(ends).within(error.network);
        self.shards[shard_of(key.mixed())].too_big(&key, ends[0], error.time);
    }

    /// The next part of a connection to be analysed, where that is done elsewhere.
    pub fn next_part(&mut self) -> Option<Part> {
        match &mut self.common.bench.desk {
            Desk::Here(_) => None,
            Desk::Elsewhere(parts) => parts.pop_front(),
        }
    }

    /// Takes back a part that was analysed, for its room.
    pub fn take_back(&mut self, part: Part) {
        self.common.bench.take_back(part);
    }

    /// Hands on what is left of some connections; `false` if there were none any more.
    pub fn close_some(&mut self) -> bool {
        let Some(shard) = self.shards.get_mut(self.closed) else { return false };
        shard.finish(&mut self.common);
        self.closed += 1;
        true
    }

    /// What is left of the busiest connections that have not ended, if they should end here.
    pub fn standing(&self) -> Vec<Part> {
        let mut live: Vec<&Flow> = self.shards.iter().flat_map(Shard::live).collect();
        live.retain(|flow| !flow.is_half_open());
        live.sort_by_key(|flow| (Reverse(flow.facts.packets), flow.facts.first_frame));
        live.truncate(STANDING);
        let rounds = self.common.config.detail || live.len() as u64 <= DETAILED;
        let detail = Detail { rounds, ..Detail::default() };
        live.into_iter().map(|flow| Part::standing(flow, detail)).collect()
    }

    /// The accounts so far: of connections that ended, and of the busiest that have not.
    pub fn provisional(&self) -> (Vec<Connection>, Sums) {
        let Some(analyst) = self.common.bench.analyst() else { return Default::default() };
        let standing = self.standing().into_iter().map(|part| {
            let begun = self.common.begun.get(&part.connection());
            part.account(begun)
        });
        self.together([analyst.so_far()], standing)
    }

    /// The account of every connection, in the order of their first packets, what they add up to,
    /// and how many were forgotten.
    pub fn finish(self) -> (Vec<Connection>, Sums, Forgotten) {
        self.finish_with([])
    }

    /// The same where `analysts` took the parts, all of them.
    pub fn finish_with(
        mut self,
        analysts: impl IntoIterator<Item = Analyst>,
    ) -> (Vec<Connection>, Sums, Forgotten) {
        while self.close_some() {}
        let mut forgotten = Forgotten::default();
        for shard in &self.shards {
            forgotten.half_open += shard.forgotten.half_open;
            forgotten.slight += shard.forgotten.slight;
        }
        let here = self.common.bench.into_analyst();
        let all = here.into_iter().chain(analysts).reduce(Analyst::joined);
        let (mut accounts, sums) = all.map(Analyst::finish).unwrap_or_default();
        starts::number(&mut accounts, self.shards.iter().map(|shard| &shard.starts));
        (accounts, sums, forgotten)
    }

    /// Accounts of connections that ended, and of some that have not, in the order of their first
    /// packets.
    pub fn together(
        &self,
        ended: impl IntoIterator<Item = (Vec<Connection>, Sums)>,
        standing: impl IntoIterator<Item = Connection>,
    ) -> (Vec<Connection>, Sums) {
        let (mut accounts, mut sums) = <(Vec<Connection>, Sums)>::default();
        for (some, theirs) in ended {
            accounts.extend(some);
            sums.join(&theirs);
        }
        for account in standing {
            sums.add(&account);
            accounts.push(account);
        }
        accounts.sort_by_cached_key(|account| account.id);
        starts::number(&mut accounts, self.shards.iter().map(|shard| &shard.starts));
        (accounts, sums)
    }
}

/// The shard of connections whose ends are mixed to this.
const fn shard_of(mixed: u32) -> usize {
    (mixed >> (u32::BITS - SHARDS.ilog2())) as usize
}

impl Follow for Tracker {
    #[expect(clippy::inline_always, reason = "the frames are then never written to memory")]
    #[inline(always)]
    fn gather<'a>(
        &mut self,
        frames: &mut (impl Iterator<Item = Frame<'a>> + Clone),
        before: u64,
    ) -> Option<WentOn> {
        let (_, mould, streaming) = self.streaming.as_mut()?;
        Some(streaming.gather(mould, frames, before))
    }

    #[inline]
    fn push_usual(&mut self, usual: &Usual<'_>, frame: &Frame<'_>) {
        self.take_usual(usual, Some(frame));
    }

    fn push(&mut self, segment: &Segment<'_>) {
        self.push(segment);
    }

    fn gap(&mut self) {
        self.gap();
    }

    fn too_big(&mut self, error: &IcmpError) {
        self.too_big(error);
    }
}

impl Common {
    fn new(config: Config, bench: Bench) -> Self {
        Self {
            config,
            connections: 0,
            first_until: u64::MAX,
            detailed: 0,
            bench,
            begun: HashMap::default(),
        }
    }

    /// The connection that `segment` begins.
    fn open(&mut self, segment: &Segment<'_>) -> Box<Flow> {
        if self.connections == DETAILED {
            self.first_until = segment.frame;
        }
        self.connections += 1;
        let mut flow = self.bench.open(segment);
        if let Some(scales) = &self.config.scales {
            flow.facts.learn_shifts(scales);
        }
        flow
    }

    /// Whether the analysis of `flow` is to keep its intervals. Nothing of `flow` was handed on yet.
    fn wants_detail(&self, flow: &Flow) -> bool {
        self.config.detail || flow.facts.is_chosen || flow.facts.first_frame < self.first_until
    }

    /// Chooses a connection if it is one of the first that carry data.
    #[inline]
    fn choose(&mut self, facts: &mut Facts) {
        let is_one = self.detailed < DETAILED && !facts.is_chosen && facts.carries_data();
        facts.is_chosen |= is_one;
        self.detailed += u64::from(is_one);
    }

    /// Hands on what `flow` has gathered so far.
    fn hand_on(&mut self, flow: &mut Flow) {
        let rounds = !flow.handed_on && self.wants_detail(flow);
        let detail = self.config.detail_of(rounds);
        let part = Part::of(flow, self.bench.room(), detail);
        self.send(part);
    }

    /// Ends a connection. Most are short and are handed on only here.
    fn settle(&mut self, flow: Box<Flow>) {
        let rounds = !flow.handed_on && self.wants_detail(&flow);
        let detail = self.config.detail_of(rounds);
        self.send(Part::last_of(flow, detail));
    }

    fn send(&mut self, mut part: Part) {
        match &mut self.bench.desk {
            Desk::Elsewhere(parts) => parts.push_back(part),
            Desk::Here(analyst) => {
                let number = part.connection();
                let earlier = if part.is_first() { None } else { self.begun.remove(&number) };
                if let Some(now) = analyst.take(&mut part, earlier) {
                    self.begun.insert(number, now);
                }
                self.bench.take_back(part);
            }
        }
    }
}
