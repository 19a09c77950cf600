//! What the applications wrote, and when: the steps of both ends.

use tcpwhy::report::{Connection, Direction, State, Transfer, Vantage};

use super::{Unfit, direction};
use crate::world::Side;

/// Turns that are repeated at most. Ours: a scenario that can be read.
const MOST_TURNS: usize = 2000;

/// A pause that long is worth a step. Ours: what a processor takes to be woken.
const LEAST_PAUSE_NS: i64 = 50_000;

/// A write of so much does not wait for room (`tcp_wmem` grows to twice the window; 16 KiB is its
/// default at the start, 85 KiB after the first flight of ten segments).
const NEVER_BLOCKS: u64 = 64 << 10;

/// `[application]` of the scenario, with these steps of both ends so many times; the side that reads so
/// much at once is told.
pub(super) fn text(steps: &[Vec<String>; 2], times: u32, reads: Option<(Side, u64)>) -> String {
    let line = |side: Side, step: &String| match reads {
        Some((reader, bytes)) if reader == side && step.starts_with("read ") => {
            format!("  \"{step} by {bytes}B\",\n")
        }
        _ => format!("  \"{step}\",\n"),
    };
    let list = |side: Side| {
        let lines: String = steps[side.index()].iter().map(|step| line(side, step)).collect();
        if times == 1 {
            format!("[\n{lines}]\n")
        } else {
            format!("[{{ repeat = {times}, steps = [\n{lines}] }}]\n")
        }
    };
    format!("\n[application]\nclient = {}server = {}", list(Side::Client), list(Side::Server))
}

/// The steps of the client and the server.
pub(super) fn of(connection: &Connection, rtt_ns: i64) -> Result<[Vec<String>; 2], Unfit> {
    let mut transfers: Vec<&Transfer> = connection.transfers.iter().collect();
    transfers.sort_by_key(|transfer| transfer.start_ns);
    if transfers.is_empty() {
        return Err(Unfit::NoData);
    }
    if transfers.len() > MOST_TURNS {
        return Err(Unfit::TooLarge);
    }
    let mut writing = Writing { connection, rtt_ns, steps: [Vec::new(), Vec::new()] };
    let mut before = None;
    for transfer in transfers {
        writing.turn(before, transfer)?;
        before = Some(transfer);
    }
    Ok(writing.steps)
}

struct Writing<'a> {
    connection: &'a Connection,
    rtt_ns: i64,
    steps: [Vec<String>; 2],
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
        for step in self.writes(side, transfer) {
            self.steps[side.index()].push(step);
        }
        self.steps[side.peer().index()].push(format!("read {}B", transfer.bytes));
        Ok(())
    }

    fn pause(&mut self, side: Side, ns: i64) {
        if ns >= LEAST_PAUSE_NS {
            self.steps[side.index()].push(format!("sleep {ns}ns"));
        }
    }

    /// The same side writes again after a pause of its own.
    fn pause_between(&mut self, side: Side, before: &Transfer, transfer: &Transfer) {
        if before.bytes <= NEVER_BLOCKS {
            self.pause(side, transfer.start_ns - before.start_ns);
        } else {
            self.steps[side.index()].push("drain".to_owned());
            self.pause(side, transfer.start_ns - before.end_ns);
        }
    }

    /// How long the writer took after it had what it answers: from the passing of that at the
    /// capture point to the passing of its first byte, less the way to it and back.
    fn thought(&self, before: Option<&Transfer>, transfer: &Transfer) -> i64 {
        let side = side_of(transfer);
        let begun = transfer.start_ns + self.to_tap(side);
        let Some(before) = before else { return begun - self.opened_ns(side) };
        let passed = self.last_send(before) + self.to_tap(side.peer());
        let way = match self.captured() {
            Some(captured) if captured == side => 0,
            Some(_) => self.rtt_ns,
            None => self.tap_rtt(side),
        };
        begun - passed - way
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
        match self.connection.vantage {
            Vantage::Client => Some(Side::Client),
            Vantage::Server => Some(Side::Server),
            Vantage::Middle | Vantage::Unknown => None,
        }
    }

    /// From a host to the capture point; times of the captured host are its own already.
    fn to_tap(&self, side: Side) -> i64 {
        if self.captured() == Some(side) { 0 } else { self.tap_rtt(side) / 2 }
    }

    fn tap_rtt(&self, side: Side) -> i64 {
        let there = match side {
            Side::Client => self.connection.tap_to_client_rtt_ns,
            Side::Server => self.connection.tap_to_server_rtt_ns,
        };
        there.unwrap_or(0)
    }

    /// A transfer's writes: it is cut where its application had nothing to send for a while.
    fn writes(&self, side: Side, transfer: &Transfer) -> Vec<String> {
        let rounds = direction(self.connection, side).map_or(&[][..], |d| rounds_of(d, transfer));
        let mut steps = Vec::new();
        let (mut left, mut chunk, mut begun) = (transfer.bytes, 0, transfer.start_ns);
        for pair in rounds.windows(2) {
            chunk += pair[0].bytes.min(left - chunk);
            let is_late = matches!(pair[0].limited_by, State::App | State::IdleAppThink);
            if !is_late || chunk == 0 || chunk == left {
                continue;
            }
            steps.push(format!("write {chunk}B"));
            if chunk > NEVER_BLOCKS {
                steps.push("drain".to_owned());
            } else if pair[1].start_ns - begun >= LEAST_PAUSE_NS {
                steps.push(format!("sleep {}ns", pair[1].start_ns - begun));
            }
            left -= chunk;
            (chunk, begun) = (0, pair[1].start_ns);
        }
        steps.push(format!("write {left}B"));
        steps
    }
}

fn rounds_of<'a>(direction: &'a Direction, transfer: &Transfer) -> &'a [tcpwhy::report::Round] {
    let range = transfer.rounds.map(|range| range.first as usize..=range.last as usize);
    range.and_then(|range| direction.rounds.get(range)).unwrap_or_default()
}

fn side_of(transfer: &Transfer) -> Side {
    if transfer.from == "client" { Side::Client } else { Side::Server }
}
