//! What a thread follows connections at: who analyses there, and room from connections that ended.
//!
//! Both are the thread's and not the connections', for what was analysed last is still in the caches of who
//! analysed it: the next connection that begins there is written over it.

use std::collections::VecDeque;

use crate::analysis::{Analyst, Begun, Content, Part, bring};
use crate::flow::connection::Flow;
use crate::flow::gathered::Gathered;
use crate::wire::Segment;

/// Connections that ended kept for new ones, and the longest buffer that they keep (in events). Ours: 6 MB of a thread at most;
/// where threads share the analysis, some thousand connections are under way.
const SPARE: usize = 1024;
const SPARE_EVENTS: usize = 64;
/// Longer ones kept for parts of long connections. Ours: 4 MB of a thread.
const SPARE_LARGE: usize = 16;
/// Events that a connection has room for from the start. Ours: a request and its answer on a connection of their own are
/// ten packets. Where the room grew from four, two threads often waited for each other in the allocator.
const SHORT: usize = 12;

/// What a thread works at.
// Two of different threads share no pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Bench {
    pub(super) desk: Desk,
    /// Room for many events, from parts that were analysed.
    large: Vec<Gathered>,
    /// Room for new connections, from ended ones.
    #[expect(clippy::vec_box, reason = "they move to their slots and back, and are large")]
    rooms: Vec<Box<Flow>>,
}

/// Where parts of connections are analysed.
#[derive(Debug)]
pub(super) enum Desk {
    /// At once.
    Here(Box<Analyst>),
    /// By whoever fetches them.
    Elsewhere(VecDeque<Part>),
}

impl Default for Desk {
    fn default() -> Self {
        Self::Elsewhere(VecDeque::new())
    }
}

impl Bench {
    /// Where `analyst` takes what is gathered.
    pub fn of(analyst: Analyst) -> Self {
        Self { desk: Desk::Here(Box::new(analyst)), ..Self::default() }
    }

    /// Who analyses here.
    pub fn analyst(&self) -> Option<&Analyst> {
        match &self.desk {
            Desk::Here(analyst) => Some(analyst),
            Desk::Elsewhere(_) => None,
        }
    }

    /// Takes connections in one part each, as [`Bench::take`] does.
    pub fn take_all(&mut self, parts: &mut [Part]) {
        if let Desk::Here(analyst) = &mut self.desk {
            analyst.take_all(parts);
        }
    }

    /// Takes a part of a connection that somebody else follows ([`Analyst::take`]).
    pub fn take(&mut self, part: &mut Part, begun: Option<Begun>) -> Option<Begun> {
        match &mut self.desk {
            Desk::Here(analyst) => analyst.take(part, begun),
            Desk::Elsewhere(_) => None,
        }
    }

    /// Who analysed here, which ends it.
    pub fn into_analyst(self) -> Option<Analyst> {
        match self.desk {
            Desk::Here(analyst) => Some(*analyst),
            Desk::Elsewhere(_) => None,
        }
    }

    /// The connection that `segment` begins.
    pub(super) fn open(&mut self, segment: &Segment<'_>) -> Box<Flow> {
        let mut flow = match self.rooms.pop() {
            Some(mut room) => {
                room.renew(segment);
                room
            }
            None => Box::new(Flow::new(segment)),
        };
        flow.gathered.reserve(SHORT);
        flow
    }

    /// Room for what a long connection gathers next.
    pub(super) fn room(&mut self) -> Gathered {
        self.large.pop().unwrap_or_default()
    }

    /// Brings what ends next into the caches, where it is analysed here.
    pub(super) fn bring<'a>(&self, flows: impl Iterator<Item = &'a Flow>) {
        if let Desk::Here(_) = self.desk {
            bring(flows.map(|flow| (&flow.facts, &flow.gathered)));
        }
    }

    pub(super) fn take_back(&mut self, part: Part) {
        match part.into_content() {
            Content::Whole(flow) => self.put_away(flow),
            Content::Piece(piece) => self.reuse(piece.gathered),
        }
    }

    /// Keeps the room of a connection for one to come.
    pub(super) fn put_away(&mut self, mut flow: Box<Flow>) {
        if flow.gathered.capacity() > SPARE_EVENTS {
            self.reuse(core::mem::take(&mut flow.gathered));
        }
        if self.rooms.len() < SPARE {
            self.rooms.push(flow);
        }
    }

    /// Keeps room for many events for parts of long connections.
    fn reuse(&mut self, mut room: Gathered) {
        if self.large.len() < SPARE_LARGE {
            room.clear();
            self.large.push(room);
        }
    }
}
