//! From a captured connection to a scenario that repeats it.
//!
//! ```text
//! Connection --steps--> what the applications wrote, and when   \
//!            --hosts--> settings that its packets show           > scenario (TOML), Recorded
//!            --path --> round trip, rate, queue, losses         /
//! ```
//!
//! Flights and send times are never taken over: the model has to find them itself
//! (`docs/reference/limits-method.md` section 9).

mod account;
mod closing;
mod guess;
mod hosts;
mod path;
mod progress;
mod reader;
mod steps;
mod trace;

use core::fmt::{self, Write};
use serde::{Deserialize, Serialize};

use tcpwhy::report::{Connection, Direction, State, Vantage};

pub use account::Account;
pub use guess::Guess;
pub(crate) use guess::{STORIES, Story};
pub use path::Bucket;
pub use progress::Progress;

use crate::world::{Recorded, Side, Tap};
use closing::Closing;

/// A scenario that represents a captured connection.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Fit {
    ipv6: bool,
    path: path::Path,
    /// The path without what the spacing of packets tells.
    of_rounds: path::Path,
    hosts: [hosts::Settings; 2],
    steps: [Vec<steps::Step>; 2],
    /// The same without what packets tell one by one.
    steps_of_rounds: [Vec<steps::Step>; 2],
    manner: steps::Manner,
    /// When the sender closed, where its FIN tells.
    closing: Option<Closing>,
    /// The sender's buffer, where one was guessed.
    sndbuf: Option<u64>,
    /// The receiver's, likewise.
    rcvbuf: Option<u64>,
    /// What may be tried for what the capture shows by its effects only.
    hints: guess::Hints,
    /// What the capture recorded besides: windows and losses.
    pub recorded: Recorded,
    /// Whose data it is about: the side that sent more.
    pub sender: Side,
    /// Where the capture was taken; at the sender if it was at neither host.
    pub tap: Tap,
    /// What the capture says of that direction.
    pub seen: Account,
    /// When its bytes were acknowledged.
    pub progress: Progress,
    /// What each side's SYN offered as its first window.
    pub first_windows: [u16; 2],
    /// Payload of a full segment.
    pub mss: u64,
    /// Segments of both sides, as captured.
    packets: u64,
    /// Share of the sender's segments that were lost, in parts of a million.
    pub loss: u32,
    /// Room that the path has shown: the fastest rate (bits per second on layer 2), and what may wait
    /// for it.
    pub proven: Option<(u64, u64)>,
    /// Losses came of a full queue or a policer.
    pub(crate) losses_follow_load: bool,
    /// Nothing filled the link: its rate is a guess by which the replay comes nearer.
    pub rate_is_guessed: bool,
}

/// Why a connection cannot be repeated.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Unfit {
    /// It carried no data.
    NoData,
    /// The capture lacks the SYN or its answer.
    NoHandshake,
    /// Its sender's packets are of another system.
    NotLinux(String),
    /// The account has no rounds, or is of a part.
    NoDetail,
    /// Both sides sent at once.
    BothAtOnce,
    /// The capture lacks too many of its packets.
    Gaps,
    /// It moved more than a model is run for.
    TooLarge,
    /// The rate of its path changed.
    VariableRate,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            Self::NoData => "it carried no data",
            Self::NoHandshake => {
                "the capture lacks its SYN or the answer to it, and with them what both sides agreed on"
            }
            Self::NotLinux(system) => {
                return write!(f, "its sender runs {system}, and the model is of Linux");
            }
            Self::NoDetail => "its rounds were not kept",
            Self::BothAtOnce => {
                "both sides sent at the same time, which cannot be told apart in steps yet"
            }
            Self::Gaps => "the capture lacks more than one in twenty of its packets",
            Self::VariableRate => {
                "the rate of its path changed for more than a tenth of the time, and the model's keeps its rate"
            }
            Self::TooLarge => "it moved more than 256 MiB, or took turns more than 2,000 times",
        };
        f.write_str(why)
    }
}

impl std::error::Error for Unfit {}

/// Payload of a packet that a run may need. Ours: it may send shorter ones than the capture had.
const SHORT_PACKET: u64 = 500;

/// Events of the model for a packet. Ours: two to four are usual, its acknowledgment included.
const EVENTS_A_PACKET: u64 = 16;

/// The part of the time for which the path's rate may change. Ours: a cause is named from a tenth on.
const VARIES: i64 = 10;

/// Most bytes that are repeated. Ours: a few seconds of work.
const MOST_BYTES: u64 = 256 << 20;

impl Fit {
    /// The scenario of a connection.
    ///
    /// # Errors
    /// The capture does not show what is needed, or the model does not have it.
    pub fn of(connection: &Connection) -> Result<Self, Unfit> {
        let sender = main_side(connection).ok_or(Unfit::NoData)?;
        let direction = connection.directions[sender.index()].as_deref().ok_or(Unfit::NoData)?;
        let [Some(syn), Some(answer)] = connection.syns else { return Err(Unfit::NoHandshake) };
        let system = &*connection.sender_stack[sender.index()].name;
        if !matches!(system, "linux" | "unknown" | "") {
            return Err(Unfit::NotLinux(system.to_owned()));
        }
        if direction.rounds.is_empty() || connection.part.is_some() || connection.truncated {
            return Err(Unfit::NoDetail);
        }
        if connection.directions.iter().flatten().any(|each| has_gaps(each)) {
            return Err(Unfit::Gaps);
        }
        if connection.bytes() > MOST_BYTES {
            return Err(Unfit::TooLarge);
        }
        let seen = Account::of(direction);
        if seen.time_in.get(State::BandwidthVariable).0 * VARIES > seen.busy_ns() {
            return Err(Unfit::VariableRate);
        }
        let path = path::Path::of(connection, direction, sender);
        let of_rounds = path.of_rounds(connection, direction);
        let closing = Closing::of(connection, sender);
        Ok(Self {
            ipv6: connection.client.is_ipv6(),
            hosts: [Side::Client, Side::Server].map(|side| hosts::Settings::of(connection, side)),
            steps: steps::of(connection, path.rtt_ns, true)?,
            steps_of_rounds: steps::of(connection, of_rounds.rtt_ns, false)?,
            manner: steps::Manner { closing: closing.unwrap_or_default(), ..Default::default() },
            closing,
            sndbuf: None,
            rcvbuf: None,
            hints: guess::Hints::of(&path, direction, connection),
            recorded: recorded(connection),
            sender,
            tap: tap(connection.vantage, sender),
            seen,
            progress: Progress::of(direction),
            first_windows: [syn.window, answer.window],
            mss: u64::from(connection.mss.unwrap_or(path::DEFAULT_MSS)).max(1),
            packets: connection.directions.iter().flatten().map(|each| each.segments).sum(),
            loss: path::loss(direction),
            proven: path.proven(direction),
            losses_follow_load: path::losses_follow_load(direction),
            rate_is_guessed: false,
            of_rounds,
            path,
        })
    }

    /// The same, with a receiver that reads this many bytes at once.
    pub(crate) fn reading(&self, reads: Option<u64>) -> Self {
        let mut fit = self.clone();
        fit.manner.reads = reads.map(|bytes| steps::Pieces { bytes, pause_ns: 0 });
        fit
    }

    /// The scenario, as a file of the language of `docs/scenarios.md`, with the conversation
    /// repeated `times` times on one connection.
    pub fn scenario(&self, times: u32) -> String {
        let [client, server] = &self.hosts;
        let own = self.path.bucket.filter(|_| self.path.is_own);
        let own =
            own.map(|bucket| format!("\n[{}]\negress = {}\n", self.sender.name(), bucket.text()));
        let mut text = "about = \"fitted to a capture\"\nlimit = \"1h\"\n".to_owned();
        let _ = write!(text, "ipv6 = {}\n{}", self.ipv6, self.path.text(self.sender));
        text + &own.unwrap_or_default()
            + &client.text("client")
            + &server.text("server")
            + &steps::text(&self.steps, times, self.sender, self.manner)
    }

    /// The same over the path that the rounds show, without what the spacing of packets tells.
    pub(crate) fn over_rounds(&self) -> Self {
        Self { path: self.of_rounds.clone(), steps: self.steps_of_rounds.clone(), ..self.clone() }
    }

    /// Losses are those of the capture, byte by byte.
    pub(crate) fn repeats_losses(&self) -> bool {
        !self.recorded.lost[self.sender.index()].is_empty()
    }

    /// Events that a run may take: many times what its packets need.
    pub(crate) const fn most_events(&self) -> u64 {
        let packets = self.packets + self.seen.bytes / SHORT_PACKET;
        20_000 + packets * EVENTS_A_PACKET
    }

    /// Segments that the receiver's first window lets in.
    pub fn first_flight_at_most(&self) -> u64 {
        let offered = self.recorded.offered[self.sender.peer().index()].as_ref();
        offered.map_or(0, |offered| offered.window(0)) / self.mss
    }
}

/// Whether the capture lacks so much that the rest of it tells too little.
const fn has_gaps(direction: &Direction) -> bool {
    direction.events.not_captured > direction.segments / 20
}

/// The side that sent more; of equals the server.
fn main_side(connection: &Connection) -> Option<Side> {
    let bytes = |at: usize| connection.directions[at].as_ref().map(|direction| direction.bytes);
    match (bytes(0), bytes(1)) {
        (None, None) => None,
        (client, server) if client > server => Some(Side::Client),
        _ => Some(Side::Server),
    }
}

fn tap(vantage: Vantage, sender: Side) -> Tap {
    match vantage {
        Vantage::Client => Tap::Client,
        Vantage::Server => Tap::Server,
        Vantage::Middle | Vantage::Unknown => sender.into(),
    }
}

fn recorded(connection: &Connection) -> Recorded {
    let of = |at: usize| connection.directions[at].as_deref();
    Recorded {
        // What a side offered belongs to the account of the other's data.
        offered: [1, 0].map(|at| of(at).map(path::offered)),
        lost: [0, 1].map(|at| of(at).map(path::lost).unwrap_or_default()),
    }
}

/// The directions that carried data.
fn direction(connection: &Connection, side: Side) -> Option<&Direction> {
    connection.directions[side.index()].as_deref()
}
