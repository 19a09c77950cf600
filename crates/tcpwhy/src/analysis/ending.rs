//! What a connection waited for to its end.
//!
//! What never came explains the time after the last progress: an ACK of data that was retransmitted several times, data
//! that its sender's own numbers prove, an answer, the rest of one. Only if nothing is missing was the connection kept
//! open. Only behind a FIN or RST was it closed. Each needs a proof in the packets of both sides:
//!
//! - **never acknowledged**: the oldest data was sent three times or more (RFC 6298 section 5: the timer doubles), and a
//!   second later no ACK of it had come. Not while the window is 0: then repeats are probes.
//! - **never arrived**: away from the sender data is missing before what came, before its FIN, or before the numbers of
//!   its bare ACKs (RFC 9293 section 3.4: they are those of the next byte); the receiver says that it lacks them, and for a second
//!   no repair comes.
//! - **no answer**: as [`super::failed`] tells.
//! - **cut short**: the answer's head announced more ([`crate::flow::failures`]). All of what came is acknowledged and the
//!   window is open, so that the next byte is the server's to send. The server closed first, or was silent for a second.
//!
//! Left out: captures of one direction, which lack the other side's word.

use super::exchanges;
use super::failed::{self, LONG_NS};
use crate::clocks::StackTime;
use crate::flow::event::Side;
use crate::flow::facts::Facts;
use crate::limits::sender::silence::Tail;
use crate::limits::walk::Walker;
use crate::measure::flight::UNSEEN;
use crate::offsets::Offset;
use crate::report::{Ending, EndingKind, FailureKind, FrameRange, State};

/// Sends of the oldest data that show that nobody acknowledges it. Ours: the original, and two repeats by timers.
const FEWEST_SENDS: u64 = 3;
/// Sends of a FIN that show that nobody hears it: a host acknowledges one at once (RFC 9293 section 3.10.7.4), whatever its
/// program does. Ours: the original, and a repeat by a timer.
const FEWEST_FINS: u64 = 2;
/// The shortest pause before the closing in which the connection was kept open. Ours: what a person may notice.
const KEPT_NS: i64 = 100_000_000;

const SIDES: [&str; 2] = ["client", "server"];

/// Decides what the end of a connection was waited for, tells the walkers, and returns it.
pub(super) fn of(facts: &Facts, walkers: &mut [Walker; 2]) -> Option<Ending> {
    if facts.is_one_way() {
        return None;
    }
    let ended = ended(facts);
    let ending = in_vain(facts, walkers, ended);
    let until = ended.unwrap_or(facts.lifetime());
    let done = walkers.each_ref().map(|walker: &Walker| walker.sender.done_at());
    for side in [0, 1] {
        let own = ending.as_ref().filter(|ending| &*ending.from == SIDES[side]);
        let tail = match (own, &ending, done[side]) {
            // What is under way is so until the last packet.
            (Some(own), _, None) => Some((own.since_ns, facts.lifetime(), state(own.kind))),
            (_, Some(any), Some(done)) => Some((done.max(any.since_ns), until, state(any.kind))),
            (_, None, Some(done)) if walkers[side].sender.is_probing_shut() => {
                Some((done, until, State::ZeroWindow))
            }
            (_, None, Some(own)) => {
                let quiet = done.iter().flatten().fold(own, |last, each| last.max(*each));
                (until - quiet >= KEPT_NS).then_some((own, until, State::IdleKeptOpen))
            }
            _ => None,
        };
        walkers[side].sender.tail = tail
            .filter(|(from, until, _)| from < until)
            .map(|(from, until, state)| Tail { from, until, state });
    }
    ending
}

const fn state(kind: EndingKind) -> State {
    match kind {
        EndingKind::NeverAcknowledged => State::SilenceNoAck,
        EndingKind::NeverArrived => State::SilenceHole,
        EndingKind::NoAnswer => State::SilenceNoAnswer,
        EndingKind::CutShort => State::SilenceCutShort,
    }
}

/// When the first FIN or RST passed.
fn ended(facts: &Facts) -> Option<i64> {
    let closed = facts.sides.iter().filter_map(|side| Some(side.fin_tap?.0));
    closed.chain(facts.reset.as_ref().map(|reset| reset.at_ns)).min()
}

fn in_vain(facts: &Facts, walkers: &mut [Walker; 2], ended: Option<i64>) -> Option<Ending> {
    let asked = walkers[0].sender.done_at();
    let [client, server] = walkers;
    let found = never_arrived(facts, server, asked)
        .or_else(|| never_arrived(facts, client, None))
        .or_else(|| never_acknowledged(facts, server))
        .or_else(|| never_acknowledged(facts, client))
        .or_else(|| cut_short(facts, server, ended))
        .or_else(|| no_answer(facts, walkers, ended))?;
    let repeated = walkers[1].sender.tally.unnecessary.get();
    let is_lost = !walkers[1].sender.terms.tap_at_sender && repeated >= FEWEST_SENDS;
    Some(Ending {
        open: ended.is_none(),
        nothing_missing: shows_numbers(facts, &walkers[1], found.since_ns),
        unheard_fins: Some(facts.unheard_fins(0)).filter(|fins| *fins >= FEWEST_FINS).unwrap_or(0),
        repeated: if is_lost { repeated } else { 0 },
        ..found
    })
}

/// Whether the server's numbers, a while after `since`, count nothing as sent that is missing here.
fn shows_numbers(facts: &Facts, server: &Walker, since: i64) -> bool {
    let info = &facts.sides[1];
    server.sender.terms.tap_at_sender
        || info.fin_tap.is_some_and(|at| at.0 > since)
        || info.bare_tap.is_some_and(|at| is_long(since, at.0))
}

/// Whether the time from `since` to `until` is a silence.
fn is_long(since: i64, until: i64) -> bool {
    until.saturating_sub(since) >= LONG_NS
}

/// Data of `walker`'s sender that never passed here, though it was sent. `asked`: when all that the receiver sent was
/// acknowledged.
fn never_arrived(facts: &Facts, walker: &mut Walker, asked: Option<i64>) -> Option<Ending> {
    let side = walker.sender.terms.side;
    let (una, nxt) = (walker.sender.flight.una, walker.sender.flight.nxt);
    if walker.sender.terms.tap_at_sender {
        return None;
    }
    let shift = walker.sender.shift_in;
    let (mut bytes, mut later) = (0, None);
    if una < nxt && walker.sender.flight.is_unseen(una, una + 1) {
        for entry in walker.sender.flight.overlapping(una, nxt) {
            if entry.flags & UNSEEN != 0 {
                bytes += entry.end - entry.start;
            } else if later.is_none() {
                later = Some((entry.at.in_report(shift), entry.frame));
            }
        }
    } else if una == nxt && facts.sides.iter().all(|side| side.syn.is_some()) {
        bytes = sent_to(facts, side).since(nxt);
    }
    let since = match later {
        Some((at, _)) => at,
        None if una < nxt => facts.sides[side].fin_tap?.0,
        None => asked?,
    };
    if bytes <= 0 || !is_long(since, facts.lifetime()) {
        return None;
    }
    let heard_ns =
        walker.sender.silence.told_since(una, StackTime::of_report(since, shift))?.in_report(shift);
    Some(Ending {
        kind: EndingKind::NeverArrived,
        from: SIDES[side].into(),
        since_ns: since,
        until_ns: facts.lifetime(),
        bytes: bytes as u64,
        heard_ns: Some(heard_ns),
        arrived_bytes: u64::from(facts.sides[side].longest_frame),
        later_came: later.is_some(),
        frames: FrameRange {
            first: later.map_or(facts.last_frame, |(_, frame)| frame),
            last: facts.last_frame,
        },
        ..Ending::default()
    })
}

/// How far `side` has sent by its own numbers, if those of its bare ACKs are ahead of its data. Those of a reset may be a
/// device's guess.
pub(super) fn sent_to(facts: &Facts, side: Side) -> Offset {
    let info = &facts.sides[side];
    info.bare_to.min(info.fin_at.unwrap_or(Offset::MAX))
}

/// Data of `walker`'s sender that was sent again and again.
fn never_acknowledged(facts: &Facts, walker: &Walker) -> Option<Ending> {
    let (silence, una) = (&walker.sender.silence, walker.sender.flight.una);
    let sent = silence.sends(una);
    if walker.sender.flight.outstanding() == 0 || sent < FEWEST_SENDS || walker.sender.is_at_zero()
    {
        return None;
    }
    let shift = walker.sender.shift_in;
    let since = silence.first.0.max(silence.advanced).in_report(shift);
    if !is_long(since, facts.lifetime()) {
        return None;
    }
    let bytes = walker.sender.flight.outstanding() - walker.sender.flight.sacked_bytes();
    Some(Ending {
        kind: EndingKind::NeverAcknowledged,
        from: SIDES[walker.sender.terms.side].into(),
        since_ns: since,
        until_ns: facts.lifetime(),
        bytes: bytes.max(0) as u64,
        sent,
        last_sent_ns: Some(silence.last.0.in_report(shift)),
        heard_ns: silence.told_since(una, silence.first.0).map(|at| at.in_report(shift)),
        arrived_bytes: walker.sender.repairs.heads.largest_arrived.max(0) as u64,
        later_came: walker.sender.flight.sacked_bytes() > 0,
        frames: FrameRange { first: silence.first.1, last: silence.last.1 },
        ..Ending::default()
    })
}

/// The server's last answer, if it announced more than came.
fn cut_short(facts: &Facts, server: &Walker, ended: Option<i64>) -> Option<Ending> {
    let promise = facts.failures.promise()?;
    let (came, since) = (server.sender.flight.nxt, server.sender.done_at()?);
    let is_open = !server.sender.is_at_zero() && server.sender.window.room(came) > 0;
    let is_part = (promise.from + 1..promise.to).contains(&came);
    let until = ended.unwrap_or(facts.lifetime());
    let by_server = ended.is_some()
        && (facts.sides[1].fin_tap.map(|at| at.0) == ended
            || facts.reset.as_ref().is_some_and(|r| Some(r.at_ns) == ended && &*r.by == SIDES[1]));
    let is_silent = is_long(since, until);
    // The client may have had enough of it.
    if !is_open || !is_part || !is_silent && !by_server {
        return None;
    }
    Some(Ending {
        kind: EndingKind::CutShort,
        from: SIDES[1].into(),
        since_ns: since,
        until_ns: until.max(since),
        bytes: (came - promise.from) as u64,
        announced_bytes: Some((promise.to - promise.from) as u64),
        frames: FrameRange { first: facts.first_frame, last: facts.last_frame },
        ..Ending::default()
    })
}

/// The last request, if no answer came.
fn no_answer(facts: &Facts, walkers: &mut [Walker; 2], ended: Option<i64>) -> Option<Ending> {
    let since = walkers[0].sender.done_at()?;
    let until = ended.unwrap_or(facts.lifetime());
    if !is_long(since, until) {
        return None;
    }
    for walker in walkers.iter_mut() {
        let at = walker.sender.gone_on_at();
        walker.sender.transfers.last_until(at);
    }
    let transfers = exchanges::transfers(walkers, facts.lifetime());
    let failure = failed::of(facts, &transfers)?;
    let last = transfers.last()?;
    if failure.kind != FailureKind::RequestUnanswered
        || !failed::is_long(&transfers, failure.waited_ns)
    {
        return None;
    }
    Some(Ending {
        kind: EndingKind::NoAnswer,
        from: SIDES[1].into(),
        since_ns: since,
        until_ns: until,
        bytes: last.bytes,
        frames: FrameRange { first: facts.first_frame, last: facts.last_frame },
        ..Ending::default()
    })
}
