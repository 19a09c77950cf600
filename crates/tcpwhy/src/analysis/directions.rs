//! One direction of the report's account of a connection, from its sender's walker.

use crate::clocks::{StackTime, TapTime};
use crate::offsets::Offset;
use crate::segments::Segments;
use std::collections::{BTreeMap, VecDeque};

use super::doubles;
use crate::flow::facts::Facts;
use crate::flow::peers::Counts;
use crate::limits::account::ledger::Interval;
use crate::limits::sender::growth::ExitCause;
use crate::limits::sender::jumps::Jump;
use crate::limits::sender::listed::ListedRound;
use crate::limits::sender::tally::Tally;
use crate::limits::walk::Walker;
use crate::measure::clock::{NearMap, SideClock};
use crate::measure::{self, link::Busy, link::Place};
use crate::report::{
    CongestionControl, Direction, Events, FrameRange, InFlightAtLoss, InitialWindow, Limit,
    LimitEvidence, Link, LinkRate, LossPattern, LostAt, Rate, Retransmission, Retransmitted, Round,
    Rtt, RttJump, ShutWithHole, SlowStartExit, State, StuckSegment, TakenBack, Vantage,
};
use tcpwhy_words::units::{BitRate, Duration};

/// What the outline of a connection says of a direction.
pub(super) fn outline(facts: &Facts, walker: &Walker) -> Direction {
    let tally = &walker.sender.tally;
    let bytes = walker.sender.flight.nxt - walker.sender.transfers.first_offset;
    Direction {
        bytes: bytes.max(0) as u64,
        // What passed unseen was sent, too.
        bytes_sent: tally.bytes_sent.max(bytes.max(0) as u64),
        segments: tally.segments.get(),
        frames: tally.frames,
        retransmitted: retransmitted(tally),
        events: events(
            &facts.peers.counts[walker.sender.terms.side],
            tally,
            doubles::by_path(&facts.sides[walker.sender.terms.side], walker),
        ),
        max_in_flight_bytes: if walker.sender.terms.unanswered {
            0
        } else {
            tally.max_in_flight.max(0) as u64
        },
        time_in: walker.ledger.time_in.clone(),
        ..Direction::default()
    }
}

/// Fills in what the outline of a direction lacks.
pub(super) fn fill(
    direction: &mut Direction,
    vantage: Vantage,
    (walker, peer): (&Walker, &SideClock),
    facts: &Facts,
) {
    let (lifetime, outline) = (facts.lifetime(), core::mem::take(direction));
    let at = |t: StackTime| walker.sender.told_at(t).clamp(0, lifetime);
    let rounds = walker.sender.book.listed.iter().map(|r| round(r, walker.sender.least_rtt(), &at));
    let rounds: Vec<Round> = rounds.collect();
    let delivered = rates(walker);
    let path_rate =
        walker.sender.book.path_rates.quantile(500).map(|bytes| BitRate(bytes as u64 * 8));
    // A link that brought through more than this in half of the rounds is not that narrow.
    let path_rate =
        path_rate.filter(|rate| delivered.is_none_or(|d| d.median <= rate.0 + rate.0 / 10));
    let policed = walker.sender.repairs.losses.policed_rate();
    let path_rate = policed.map(|bytes| BitRate(bytes as u64 * 8)).or(path_rate);
    // A moment that seems shared does not make the link a wider one.
    let spent = |state| walker.ledger.time_in.get(state);
    let is_shared = spent(State::BandwidthExternal) >= spent(State::BandwidthSelfQueue);
    let shared_link = walker.sender.book.shared_links.quantile(500).filter(|_| is_shared);
    let restarts = walker.sender.pauses.watch.reported.iter();
    let repeats = walker.sender.retransmissions.iter();
    *direction = Direction {
        rtt: Rtt {
            min_ns: walker.sender.trips.spans.min(),
            median_ns: walker.sender.trips.spans.quantile(500),
            p95_ns: walker.sender.trips.spans.quantile(950),
            method: rtt_method(vantage, walker.sender.terms.side).into(),
            samples: walker.sender.trips.spans.len(),
        },
        delivery_rate_bps: delivered,
        bottleneck_rate_bps: path_rate.map(|rate| rate.0),
        shared_link_rate_bps: shared_link.map(|bytes| bytes as u64 * 8),
        bdp_bytes: path_rate.map(|rate| rate.bytes_in(Duration(walker.sender.least_rtt())).0),
        limits: limits(walker),
        strip: walker.ledger.strip(lifetime),
        initial_window: initial_window(walker, &rounds, facts),
        rounds,
        slow_start_exit: slow_start_exit(walker, &at).map(Box::new),
        congestion_control: congestion_control(walker),
        idle_restarts: restarts
            .map(|r| crate::report::IdleRestart { at_ns: at(StackTime(r.at_ns)), ..r.clone() })
            .collect(),
        in_flight_at_loss: in_flight_at_loss(walker, &at),
        loss_pattern: loss_pattern(walker).map(Box::new),
        retransmissions: repeats
            .map(|r| Retransmission { at_ns: at(StackTime(r.at_ns)), ..r.clone() })
            .collect(),
        burst_proven_bytes: burst_proven(walker),
        stuck_segment: stuck_segment(walker, &at).map(Box::new),
        window_taken_back: taken_back(walker),
        shut_with_hole: shut_with_hole(walker),
        rtt_jumps: walker
            .sender
            .trips
            .jumps
            .found
            .iter()
            .map(|jump| rtt_jump(jump, peer, &at))
            .collect(),
        ..outline
    };
    if walker.sender.terms.unanswered {
        hide_untold(direction);
    }
}

/// Takes out what rests on flights and rounds: without an ACK nobody knows where one ends.
fn hide_untold(direction: &mut Direction) {
    *direction = Direction {
        rounds: Vec::new(),
        initial_window: None,
        slow_start_exit: None,
        congestion_control: None,
        idle_restarts: Vec::new(),
        in_flight_at_loss: Vec::new(),
        loss_pattern: None,
        burst_proven_bytes: None,
        stuck_segment: None,
        ..core::mem::take(direction)
    };
}

/// Of an original that was sent during a repair its flight counts what SACK had reported by then, too: it was
/// no more than was ever in flight.
fn in_flight_at_loss(walker: &Walker, at: &impl Fn(StackTime) -> i64) -> Vec<InFlightAtLoss> {
    let most = walker.sender.tally.max_in_flight.max(0) as u64;
    let told = |loss: &InFlightAtLoss| InFlightAtLoss {
        at_ns: at(StackTime(loss.at_ns)),
        bytes: loss.bytes.min(most),
        ..*loss
    };
    walker.sender.repairs.losses.flights.iter().map(told).collect()
}

/// A burst into a flight with holes is no more than what was in flight at once.
fn burst_proven(walker: &Walker) -> Option<u64> {
    let burst = walker.sender.book.burst_proven.min(walker.sender.tally.max_in_flight);
    (burst > 0).then_some(burst as u64)
}

fn initial_window(walker: &Walker, rounds: &[Round], facts: &Facts) -> Option<InitialWindow> {
    let first = walker.sender.initial.filter(|_| !walker.sender.initial_hidden)?;
    let cut_by_syns = was_cut_by_syns(walker, rounds, facts);
    Some(InitialWindow {
        segments: first.segments.get(),
        bytes: first.bytes.max(0) as u64,
        full: first.full == Some(true) || cut_by_syns,
        cut_by_syns,
    })
}

/// Whether the SYN or SYN-ACK was sent so often that the congestion window began with one segment, which shows by
/// flights of 1 and 2 whatever the first one's size (RFC 5681 section 3.1; Linux `tcp_init_transfer`: more than one
/// retransmission, unless a time stamp shows them needless). BBR goes on with 4, its least window
/// (`bbr_cwnd_min_target`). At the client's tap answers that were lost before it count, too: the timer repeated one,
/// and so did the client's next SYN (`tcp_check_req`).
fn was_cut_by_syns(walker: &Walker, rounds: &[Round], facts: &Facts) -> bool {
    let waited = |round: &Round| round.limited_by == State::CwndSlowStart;
    let repeated =
        walker.sender.tally.syn > 1 || (walker.sender.terms.side == 1 && facts.has_lost_answers());
    match rounds {
        [first, second, ..] if repeated => {
            first.segments == 1 && waited(first) && second.segments <= 4 && waited(second)
        }
        _ => false,
    }
}

fn taken_back(walker: &Walker) -> Option<TakenBack> {
    let (bytes, window) = walker.sender.window.taken_back;
    (bytes > 0).then_some(TakenBack {
        bytes: bytes as u64,
        window_bytes: window.max(0) as u64,
        over_bytes: walker.sender.silence.shut.over.max(0) as u64,
    })
}

fn shut_with_hole(walker: &Walker) -> Option<ShutWithHole> {
    let shut = walker.sender.silence.shut;
    (shut.with_hole > 0).then_some(ShutWithHole {
        acks: shut.acks,
        with_hole: shut.with_hole,
        missing_bytes: shut.missing.max(0) as u64,
        held_bytes: shut.held.max(0) as u64,
    })
}

fn stuck_segment(walker: &Walker, at: &impl Fn(StackTime) -> i64) -> Option<StuckSegment> {
    let head = walker.sender.repairs.heads.worst()?;
    let bytes = |bytes: i64| bytes.max(0) as u64;
    Some(StuckSegment {
        bytes: bytes(head.size),
        sent: head.sent,
        from_ns: at(head.from),
        to_ns: at(head.to),
        arrived_bytes: bytes(walker.sender.repairs.heads.largest_arrived),
        passed_bytes: head.smaller.filter(|_| head.passed).map(bytes),
        peer_heard: head.peer_heard,
        frames: FrameRange { first: head.frames.0, last: head.frames.1 },
    })
}

/// `peer` is the clock of the side that acknowledged: it tells when the ACK left that side's TCP.
fn rtt_jump(jump: &Jump, peer: &SideClock, at: &impl Fn(StackTime) -> i64) -> RttJump {
    let latest = jump.ack.tap.left(peer.floor().unwrap_or(0));
    let tick = peer.tick_of(&jump.ack, jump.ack.tap, &mut NearMap::default());
    RttJump {
        at_ns: at(jump.at),
        rtt_ns: jump.rtt,
        before_ns: jump.before,
        data_late_ns: jump.lag_of_data,
        ack_late_ns: tick.map(|(_, end)| (latest - end).max(0)),
        frame: jump.ack.frame,
    }
}

fn slow_start_exit(walker: &Walker, at: &impl Fn(StackTime) -> i64) -> Option<SlowStartExit> {
    // Whether it ended in a hole of the capture is not known.
    let exit = walker.sender.growth.exit.filter(|exit| exit.2 != ExitCause::Unseen);
    let (when, ssthresh, cause) = exit?;
    let cause = exit_cause(cause).to_owned();
    Some(SlowStartExit {
        at_ns: at(when),
        cause,
        ssthresh: ssthresh.map(Segments::get),
        measured_by: None,
    })
}

fn congestion_control(walker: &Walker) -> Option<CongestionControl> {
    let (name, rounds) = walker.sender.avoidance.controller()?;
    Some(CongestionControl { name: name.to_owned(), rounds })
}

fn retransmitted(tally: &Tally) -> Retransmitted {
    Retransmitted {
        fast: tally.fast.get(),
        rto: tally.rto.get(),
        tlp: tally.tlp.get(),
        spurious: tally.spurious.get(),
        unnecessary: tally.unnecessary.get(),
        syn: tally.syn,
    }
}

fn events(counts: &Counts, tally: &Tally, doubled: u64) -> Events {
    Events {
        zero_window: counts.zero_window,
        zero_window_probe: counts.zero_window_probe,
        window_full: counts.window_full,
        window_update: counts.window_update,
        keep_alive: counts.keep_alive,
        duplicate_ack: counts.duplicate_ack,
        partial_ack: tally.partial_acks,
        out_of_order: tally.out_of_order.get(),
        ecn_echo: counts.ecn_echo,
        lost: tally.lost.get(),
        damaged: tally.damaged.get(),
        doubled,
        not_captured: tally.not_captured.get(),
    }
}

/// The narrowest link that the packets of `walker`'s side passed; `repeats` get to know where what they repeat was lost.
pub(super) fn link(
    busy: Busy,
    (walker, lifetime): (&Walker, i64),
    repeats: &mut [Retransmission],
) -> Link {
    place_losses(repeats, &busy.places);
    let [lost_before, lost_behind, lost_elsewhere] =
        busy.lost.map(|packets| packets.round() as u64);
    let [low, best, high] = busy.rate_bps.map(|bits| bits.round() as u64);
    let at = |tap: TapTime| walker.sender.on_own_time(tap).clamp(0, lifetime);
    let on_time = |spans: Vec<_>| spans.into_iter().map(|(from, to)| (at(from), at(to))).collect();
    Link {
        before_tap: busy.is_before_tap,
        proven: busy.is_proven,
        rate_bps: LinkRate { low, best, high },
        varies: busy.varies,
        busy_ns: busy.worked_ns,
        whole_ns: busy.whole_ns,
        floor_ns: busy.floor_ns,
        full_ns: busy.full_ns,
        lost_before,
        lost_full: busy.lost_full.round() as u64,
        lost_behind,
        lost_elsewhere,
        busy: on_time(busy.at_work),
        full: on_time(busy.full),
    }
}

/// Tells each of `repeats` where the data that it begins with was lost.
fn place_losses(repeats: &mut [Retransmission], places: &[(Offset, Place)]) {
    let mut lost: BTreeMap<i64, VecDeque<Place>> = BTreeMap::new();
    for (seq, place) in places {
        lost.entry(seq.get()).or_default().push_back(*place);
    }
    for repeat in repeats {
        let place = lost.get_mut(&repeat.seq).and_then(VecDeque::pop_front);
        repeat.lost = place.map(|place| match place {
            Place::Before => LostAt::BeforeLink,
            Place::Behind => LostAt::BehindLink,
            Place::Elsewhere => LostAt::EmptyQueue,
        });
    }
}

fn exit_cause(cause: ExitCause) -> &'static str {
    match cause {
        ExitCause::Loss => "loss",
        ExitCause::HystartDelay => "hystart_delay",
        ExitCause::Cached => "cached_ssthresh",
        ExitCause::HystartTrain => "hystart_train",
        ExitCause::Unknown | ExitCause::Unseen => "unknown",
    }
}

fn rtt_method(vantage: Vantage, side: usize) -> &'static str {
    let at_sender = matches!((vantage, side), (Vantage::Client, 0) | (Vantage::Server, 1));
    if at_sender {
        "data to its ACK at the sender's host, from the stack's own clock"
    } else {
        "data to its ACK on the sender's timeline, rebuilt from the round trips on both sides of the tap"
    }
}

fn rates(walker: &Walker) -> Option<Rate> {
    let (median, max) =
        (walker.sender.book.rates.quantile(500)?, walker.sender.book.rates.quantile(1000)?);
    // The sketch holds bytes per second.
    Some(Rate { median: median as u64 * 8, max: max as u64 * 8 })
}

fn round(r: &ListedRound, least_rtt: i64, at: &impl Fn(StackTime) -> i64) -> Round {
    let rate = r.rate.map(|bytes| BitRate(bytes * 8));
    Round {
        start_ns: at(r.start),
        bytes: r.bytes.max(0) as u64,
        segments: r.segments.get(),
        rtt_ns: r.rtt_min,
        window_room_bytes: (r.room < i64::MAX).then_some(r.room),
        cwnd: r.cwnd,
        cwnd_measured_by: None,
        limited_by: r.limited_by,
        in_flight_bytes: r.in_flight.max(0) as u64,
        delivery_rate_bps: rate.map(|rate| rate.0),
        bdp_bytes: rate.filter(|_| least_rtt > 0).map(|rate| rate.bytes_in(Duration(least_rtt)).0),
        frames: FrameRange { first: r.first_frame, last: r.last_frame },
    }
}

fn limits(walker: &Walker) -> Vec<Limit> {
    walker
        .ledger
        .intervals
        .iter()
        .map(|i| {
            let frames = i.evidence.frames();
            let filter = match (frames.first, frames.last) {
                (0, _) => String::new(),
                (first, last) if first == last => format!("frame.number == {first}"),
                (first, last) => format!("frame.number >= {first} && frame.number <= {last}"),
            };
            Limit {
                start_ns: i.start,
                end_ns: i.end,
                state: i.state,
                confidence: i.sure,
                alternative: i.alternative.to_vec(),
                evidence: LimitEvidence { text: evidence(walker, i), frames, filter },
            }
        })
        .collect()
}

fn evidence(walker: &Walker, interval: &Interval) -> String {
    match interval.state {
        State::Unknown => walker.sender.why_untold(interval.alternative).to_owned(),
        state => interval.evidence.words(state, walker.sender.terms.shift_guessed),
    }
}

fn loss_pattern(walker: &Walker) -> Option<LossPattern> {
    measure::loss::pattern(
        &walker.sender.repairs.losses.lost,
        &walker.sender.samples.kept,
        walker.sender.repairs.episodes.count,
        walker.sender.terms.mss,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_is_told_where_what_it_repeats_was_lost() {
        let repeat = |seq| Retransmission { seq, ..Retransmission::default() };
        let mut repeats = [repeat(10), repeat(20), repeat(10), repeat(30)];
        let places = [(10, Place::Before), (20, Place::Behind), (10, Place::Elsewhere)];
        let places = places.map(|(seq, place)| (Offset::at(seq), place));
        place_losses(&mut repeats, &places);
        let told = repeats.map(|repeat| repeat.lost);
        let [queue, behind, empty] = [LostAt::BeforeLink, LostAt::BehindLink, LostAt::EmptyQueue];
        assert_eq!(told, [Some(queue), Some(behind), Some(empty), None]);
    }
}
