//! What the applications wrote, and when: the steps of both ends.

use core::fmt::Write as _;
use serde::{Deserialize, Serialize};

use tcpwhy::report::{Connection, Direction, State, Transfer};

use super::closing::Closing;
use super::{Unfit, direction, trace};
use crate::world::Side;

/// Turns that are repeated at most. Ours: a scenario that can be read.
const MOST_TURNS: usize = 2000;

/// A pause that long is worth a step. Ours: what a processor takes to be woken.
const LEAST_PAUSE_NS: i64 = 50_000;

/// What a host takes at most from an acknowledgment to what that lets go. Ours: four times a pause that
/// counts; half and twice as much change nothing (`whatif::search`).
const AT_ONCE_NS: i64 = 4 * LEAST_PAUSE_NS;

/// Segments that a receiver may leave unacknowledged for a while (`__tcp_ack_snd_check`: more than one full
/// one is answered at once).
const DELAYED: u64 = 2;

/// A write of this size does not wait for room (`tcp_wmem` grows to twice the window; 16 KiB is its default at the
/// start, 85 KiB after the first flight of ten segments).
const NEVER_BLOCKS: u64 = 64 << 10;

/// One step of an application.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Step {
    Write(u64),
    Read(u64),
    Sleep(i64),
    Drain,
}

/// How an application reads or writes what is more than one piece: one piece at once, and then a pause.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Pieces {
    pub(super) bytes: u64,
    pub(super) pause_ns: u64,
}

/// How the steps are carried out.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Manner {
    /// How the receiver of the data reads; as much as there is, if nothing is known.
    pub(super) reads: Option<Pieces>,
    /// How its sender writes; all at once, if nothing is known.
    pub(super) writes: Option<Pieces>,
    /// The receiver stops once, after this many bytes of the longest read, for this long.
    pub(super) stall: Option<(u64, u64)>,
    /// When the sender closes.
    pub(super) closing: Closing,
}

/// `[application]` of the scenario, with these steps of both ends repeated `times` times.
pub(super) fn text(steps: &[Vec<Step>; 2], times: u32, sender: Side, manner: Manner) -> String {
    let list = |side: Side| {
        let steps = &steps[side.index()];
        let manner = if side == sender {
            Manner { writes: manner.writes, closing: manner.closing, ..Manner::default() }
        } else {
            Manner { writes: None, ..manner }
        };
        let longest = steps.iter().filter_map(Step::read).max();
        let words = steps.iter().flat_map(|step| step.words(manner, longest));
        let lines = words.fold(String::new(), |mut lines, words| {
            let _ = writeln!(lines, "  \"{words}\",");
            lines
        });
        let last = manner.closing.steps()[usize::from(side != sender)];
        if times == 1 {
            format!("[\n{lines}{last}]\n")
        } else {
            format!("[{{ repeat = {times}, steps = [\n{lines}] }},\n{last}]\n")
        }
    };
    format!("\n[application]\nclient = {}server = {}", list(Side::Client), list(Side::Server))
}

impl Step {
    fn read(&self) -> Option<u64> {
        if let Self::Read(bytes) = self { Some(*bytes) } else { None }
    }

    /// As the language of scenarios has it; `longest` is the longest read of its side.
    fn words(&self, manner: Manner, longest: Option<u64>) -> Vec<String> {
        match *self {
            Self::Read(bytes) => match manner.stall {
                Some((after, ns)) if Some(bytes) == longest && after < bytes => vec![
                    in_pieces("read", after, manner.reads),
                    format!("sleep {ns}ns"),
                    in_pieces("read", bytes - after, manner.reads),
                ],
                _ => vec![in_pieces("read", bytes, manner.reads)],
            },
            Self::Write(bytes) => {
                vec![in_pieces("write", bytes, manner.writes.filter(|each| each.bytes < bytes))]
            }
            Self::Sleep(ns) => vec![format!("sleep {ns}ns")],
            Self::Drain => vec!["drain".to_owned()],
        }
    }
}

/// The same with neighbouring writes, and the pauses between them, made one write; a head that is a small part
/// of them stays.
pub(super) fn joined(steps: &[Step]) -> Vec<Step> {
    let mut joined: Vec<Step> = Vec::new();
    let mut pauses: Vec<Step> = Vec::new();
    for step in steps {
        match (step, joined.last_mut()) {
            (Step::Write(bytes), Some(Step::Write(sum))) => {
                *sum += bytes;
                pauses.clear();
            }
            (Step::Sleep(_) | Step::Drain, Some(Step::Write(_))) => pauses.push(*step),
            _ => {
                joined.append(&mut pauses);
                joined.push(*step);
            }
        }
    }
    joined.append(&mut pauses);
    joined
}

fn in_pieces(verb: &str, bytes: u64, pieces: Option<Pieces>) -> String {
    match pieces {
        None => format!("{verb} {bytes}B"),
        Some(Pieces { bytes: by, pause_ns: 0 }) => format!("{verb} {bytes}B by {by}B"),
        Some(Pieces { bytes: by, pause_ns }) => {
            format!("{verb} {bytes}B by {by}B pause {pause_ns}ns")
        }
    }
}

/// The steps of the client and the server, by what packets tell one by one or by rounds alone.
pub(super) fn of(
    connection: &Connection,
    rtt_ns: i64,
    by_packets: bool,
) -> Result<[Vec<Step>; 2], Unfit> {
    let mut transfers: Vec<&Transfer> = connection.transfers.iter().collect();
    transfers.sort_by_key(|transfer| transfer.start_ns);
    if transfers.is_empty() {
        return Err(Unfit::NoData);
    }
    if transfers.len() > MOST_TURNS {
        return Err(Unfit::TooLarge);
    }
    let mss = u64::from(connection.mss.unwrap_or(super::path::DEFAULT_MSS)).max(1);
    let ends = [Side::Client, Side::Server].map(|side| {
        let sent = direction(connection, side).filter(|_| by_packets);
        let ends = sent.map(|sent| trace::write_ends(sent, mss)).unwrap_or_default();
        if ends.len() > MOST_TURNS { Vec::new() } else { ends }
    });
    let steps = [Vec::new(), Vec::new()];
    let mut writing = Writing { connection, rtt_ns, steps, before: [0, 0], ends, by_packets };
    let mut before = None;
    for transfer in transfers {
        writing.turn(before, transfer)?;
        before = Some(transfer);
    }
    Ok(writing.steps)
}

/// Where the peer's turns began: behind these bytes of a side, and at their end.
pub(super) fn turns(connection: &Connection, side: Side) -> Vec<u64> {
    let mut transfers: Vec<&Transfer> = connection.transfers.iter().collect();
    transfers.sort_by_key(|transfer| transfer.start_ns);
    let (mut bytes, mut turns) = (0, Vec::new());
    for of_one in transfers.chunk_by(|a, b| a.from == b.from) {
        if side_of(of_one[0]) == side {
            bytes += of_one.iter().map(|transfer| transfer.bytes).sum::<u64>();
            turns.push(bytes);
        }
    }
    turns
}

struct Writing<'a> {
    connection: &'a Connection,
    rtt_ns: i64,
    steps: [Vec<Step>; 2],
    /// Bytes of each side before the transfer.
    before: [u64; 2],
    /// Where each side's writes ended.
    ends: [Vec<u64>; 2],
    /// What packets tell one by one is used.
    by_packets: bool,
}

impl Writing<'_> {
    /// One side writes, the other reads.
    fn turn(&mut self, before: Option<&Transfer>, transfer: &Transfer) -> Result<(), Unfit> {
        let side = side_of(transfer);
        if let Some(before) = before.filter(|before| side_of(before) != side)
            && transfer.start_ns < self.last_send(before)
        {
            return Err(Unfit::BothAtOnce);
        }
        match before {
            Some(before) if side_of(before) == side => {
                self.pause_between(side, before, transfer);
            }
            _ => self.pause(side, self.thought(before, transfer)),
        }
        let writes = self.writes(side, transfer);
        self.steps[side.index()].extend(writes);
        self.steps[side.peer().index()].push(Step::Read(transfer.bytes));
        self.before[side.index()] += transfer.bytes;
        Ok(())
    }

    fn pause(&mut self, side: Side, ns: i64) {
        if ns >= LEAST_PAUSE_NS {
            self.steps[side.index()].push(Step::Sleep(ns));
        }
    }

    /// The same side writes again after a pause of its own.
    fn pause_between(&mut self, side: Side, before: &Transfer, transfer: &Transfer) {
        if before.bytes <= NEVER_BLOCKS {
            self.pause(side, transfer.start_ns - before.start_ns);
        } else {
            self.steps[side.index()].push(Step::Drain);
            self.pause(side, transfer.start_ns - before.end_ns);
        }
    }

    /// How long the writer took after it had what it answers: from the passing of that at the
    /// capture point to the passing of its first byte, less the way to it and back.
    fn thought(&self, before: Option<&Transfer>, transfer: &Transfer) -> i64 {
        let side = side_of(transfer);
        let begun = transfer.start_ns + self.to_tap(side);
        let Some(before) = before else { return begun - self.opened_ns(side) };
        if let Some(ns) = self.thought_by_packets(side, before, transfer) {
            return ns;
        }
        let passed = self.last_send(before) + self.to_tap(side.peer());
        let way = match self.captured() {
            Some(captured) if captured == side => 0,
            Some(_) => self.rtt_ns,
            None => tap_rtt(self.connection, side),
        };
        begun - passed - way
    }

    /// The same where each packet's time is known: at the writer's own host from the arrival of the last
    /// byte; elsewhere from the acknowledgment of the last byte, or of all but so little that the
    /// acknowledgment may have waited for the answer.
    fn thought_by_packets(
        &self,
        side: Side,
        before: &Transfer,
        transfer: &Transfer,
    ) -> Option<i64> {
        if !self.by_packets {
            return None;
        }
        let (own, peers) =
            (direction(self.connection, side)?, direction(self.connection, side.peer())?);
        let begun = trace::passed_at(own, self.before[side.index()] + 1)?;
        let asked = self.before[side.peer().index()];
        if begun.abs_diff(transfer.start_ns + self.to_tap(side)) > LEAST_PAUSE_NS.unsigned_abs() {
            return None;
        }
        if self.captured() == Some(side) {
            return Some(begun - trace::passed_at(peers, asked)?);
        }
        let (answered, acked) = trace::answered_before(peers, begun)?;
        let mss = u64::from(self.connection.mss?);
        // An older answer tells nothing of what was answered here.
        let tells =
            acked + DELAYED * mss >= asked && acked + before.bytes > asked && acked <= asked;
        // What passed the tap last cannot have been answered sooner.
        let soonest = trace::passed_at(peers, asked)? + self.rtt_ns;
        tells.then_some(begun - answered.max(soonest))
    }

    /// When the handshake was over for a side, as the capture point saw it.
    fn opened_ns(&self, side: Side) -> i64 {
        let of = direction(self.connection, side).into_iter();
        let ends = of.flat_map(|direction| &direction.limits);
        let ends = ends.filter(|each| matches!(each.state, State::Handshake | State::SynRetry));
        ends.map(|each| each.end_ns).max().unwrap_or(0) + self.to_tap(side)
    }

    /// When a transfer's last byte was sent, on its sender's clock.
    fn last_send(&self, transfer: &Transfer) -> i64 {
        let limits = direction(self.connection, side_of(transfer)).map_or(&[][..], |d| &d.limits);
        let inside = limits.iter().filter(|each| {
            each.state == State::LastFlight
                && each.end_ns > transfer.start_ns
                && each.start_ns < transfer.end_ns
        });
        let last = inside.map(|each| each.start_ns).max();
        last.unwrap_or(transfer.end_ns - self.rtt_ns).max(transfer.start_ns)
    }

    fn captured(&self) -> Option<Side> {
        trace::captured(self.connection)
    }

    /// From a host to the capture point.
    fn to_tap(&self, side: Side) -> i64 {
        tap_rtt(self.connection, side) / 2
    }

    /// A transfer's writes: it is cut where its application had nothing to send for a while, and where
    /// segments that are not full show that it wrote in pieces.
    fn writes(&self, side: Side, transfer: &Transfer) -> Vec<Step> {
        let Some(sent) = direction(self.connection, side) else { return Vec::new() };
        let mut steps = Vec::new();
        let (mut from, mut begun) = (0, transfer.start_ns);
        for cut in self.cuts(side, sent, transfer) {
            let chunk = cut.bytes - from;
            steps.push(Step::Write(chunk));
            if let Some(at_ns) = cut.late_ns {
                if chunk > NEVER_BLOCKS {
                    steps.push(Step::Drain);
                } else if at_ns - begun >= LEAST_PAUSE_NS {
                    steps.push(Step::Sleep(at_ns - begun));
                }
                begun = at_ns;
            }
            from = cut.bytes;
        }
        steps.push(Step::Write(transfer.bytes - from));
        steps
    }

    /// When what follows byte `end` was sent, if the capture at its sender shows that no acknowledgment let
    /// it go: then it was just written.
    fn unasked(&self, side: Side, sent: &Direction, end: u64) -> Option<i64> {
        if self.captured() != Some(side) {
            return None;
        }
        let lag_ns = self.connection.egress_delay_ns.map_or(0, |lag| lag.high.max(0));
        let at_ns = trace::passed_at(sent, end + 1)?;
        let waited = at_ns - trace::passed_at(sent, end)?;
        let answered =
            trace::answered_before(sent, at_ns + 1).map_or(i64::MAX, |last| at_ns - last.0);
        (waited.min(answered) > lag_ns + AT_ONCE_NS).then_some(at_ns)
    }

    /// Where a transfer's writes ended, in bytes from its first.
    fn cuts(&self, side: Side, sent: &Direction, transfer: &Transfer) -> Vec<Cut> {
        let mut passed = 0;
        let late = rounds_of(sent, transfer).windows(2).filter_map(|pair| {
            passed += pair[0].bytes;
            let is_late = matches!(pair[0].limited_by, State::App | State::IdleAppThink);
            is_late.then_some(Cut { bytes: passed, late_ns: Some(pair[1].start_ns) })
        });
        let mut cuts: Vec<Cut> = late.collect();
        let first = self.before[side.index()];
        let ends = &self.ends[side.index()];
        let ends = &ends[ends.partition_point(|end| *end <= first)..];
        let ends = ends.iter().take_while(|end| **end < first + transfer.bytes);
        cuts.extend(
            ends.map(|end| Cut { bytes: end - first, late_ns: self.unasked(side, sent, *end) }),
        );
        cuts.sort_by_key(|cut| (cut.bytes, cut.late_ns.is_none()));
        cuts.dedup_by_key(|cut| cut.bytes);
        cuts.retain(|cut| 0 < cut.bytes && cut.bytes < transfer.bytes);
        cuts
    }
}

/// From the capture point to a host and back; 0 where that is not known.
fn tap_rtt(connection: &Connection, side: Side) -> i64 {
    trace::tap_rtt(connection, side).unwrap_or(0)
}

/// The end of a write, and when the next one came if that was late.
#[derive(Clone, Copy, Debug)]
struct Cut {
    bytes: u64,
    late_ns: Option<i64>,
}

fn rounds_of<'a>(direction: &'a Direction, transfer: &Transfer) -> &'a [tcpwhy::report::Round] {
    let range = transfer.rounds.map(|range| range.first as usize..=range.last as usize);
    range.and_then(|range| direction.rounds.get(range)).unwrap_or_default()
}

fn side_of(transfer: &Transfer) -> Side {
    if transfer.from == "client" { Side::Client } else { Side::Server }
}
