//! From the walkers to the report's plain data.

use super::Analysis;
use super::exchanges;
use crate::flow::facts::Facts;
use crate::flow::peers::Counts;
use crate::flow::side::SideInfo;
use crate::limits::growth::ExitCause;
use crate::limits::jumps::Jump;
use crate::limits::ledger::Interval;
use crate::limits::listed::ListedRound;
use crate::limits::turns::Turns;
use crate::limits::walker::{Tally, Walker};
use crate::measure::clock::{NearMap, SideClock};
use crate::measure::stack;
use crate::report::{
    CongestionControl, Connection, Direction, End, Events, Exchange, FrameRange, InFlightAtLoss,
    InitialWindow, Limit, LimitEvidence, LossPattern, LowHigh, Rate, Retransmitted, Round, Rtt,
    RttJump, ScalingRefusedBy, SenderStack, SlowStartExit, State, StuckSegment, Syn, TakenBack,
    Transfer, Vantage, WindowScaling,
};
use crate::units::{BitRate, Duration};

/// What the account of a connection counts in the totals and is put in order by: its data, its transfers
/// and their times. The rest is empty.
pub(crate) fn outline(facts: &Facts, analysis: &Analysis) -> Connection {
    let lifetime = facts.last_tap;
    let walkers = analysis.walkers.as_ref();
    let directions = [0, 1].map(|side| {
        let walker = walkers.map(|walkers| &walkers[side])?;
        (walker.tally.frames > 0).then(|| Box::new(direction_outline(facts, walker)))
    });
    let exchanges = match walkers {
        // What came early is no answer, and the wait goes on.
        Some(walkers) if facts.tls.early().is_some() => pairs(facts, analysis, walkers),
        _ => Vec::new(),
    };
    Connection {
        vantage: analysis.place.vantage,
        tap_to_client_rtt_ns: analysis.clocks[0].floor(),
        tap_to_server_rtt_ns: analysis.clocks[1].floor(),
        directions,
        transfers: walkers.map_or_else(Vec::new, |walkers| exchanges::transfers(walkers, lifetime)),
        exchanges,
        ..blank(facts)
    }
}

fn pairs(facts: &Facts, analysis: &Analysis, walkers: &[Walker; 2]) -> Vec<Exchange> {
    let floors = [0, 1].map(|side| analysis.clocks[side].floor().unwrap_or_default());
    let clear = exchanges::Clear {
        early: facts.tls.early(),
        fin_at: facts.tls.report().and(facts.sides[0].fin_at),
    };
    exchanges::pairs(walkers, floors, clear)
}

/// Lays down in `outline` what [`outline`] counts of a connection whose sides talked in `turns`.
pub(crate) fn outline_turns(outline: &mut Connection, facts: &Facts, turns: &[Turns; 2]) {
    outline.id = facts.ordinal;
    outline.duration_ns = facts.last_tap;
    outline.duplicates = facts.duplicates;
    let count = turns.iter().map(|turns| turns.done.len()).sum();
    outline.transfers.resize_with(count, Transfer::default);
    outline.handshake_rtt_ns = facts.handshake_rtt();
    for (turns, direction) in turns.iter().zip(&mut outline.directions) {
        if turns.done.is_empty() {
            *direction = None;
        } else {
            let bytes = turns.done.iter().map(|turn| u64::from(turn.bytes)).sum();
            direction.get_or_insert_default().bytes = bytes;
        }
    }
    let mut next = [0, 0];
    for transfer in &mut outline.transfers {
        let [of_client, of_server] = [0, 1].map(|side| {
            let turn = turns[side].done.get(next[side]);
            turn.map_or(i64::MAX, |turn| turn.start + turns[side].shift_in)
        });
        let side = usize::from(of_server < of_client);
        let Some(turn) = turns[side].done.get(next[side]) else { break };
        next[side] += 1;
        let [start, end] =
            [turn.start, turn.end].map(|at| (at + turns[side].shift_in).clamp(0, facts.last_tap));
        transfer.from = ["client", "server"][side].into();
        (transfer.start_ns, transfer.end_ns) = (start, end);
        transfer.bytes = u64::from(turn.bytes);
        transfer.time_in.clear();
        transfer.time_in.add(State::LastFlight, Duration(end - start));
    }
}

/// An account without data and words.
pub(crate) fn blank(facts: &Facts) -> Connection {
    let no_stack = || SenderStack { name: "".into(), evidence: "".into(), timestamp_tick_ns: None };
    Connection {
        id: facts.ordinal,
        stream: Some(facts.ordinal),
        client: facts.endpoints[0],
        server: facts.endpoints[1],
        client_name: None,
        server_name: None,
        start: String::new(),
        duration_ns: facts.last_tap,
        part: None,
        packets: facts.packets,
        frames: FrameRange { first: facts.first_frame, last: facts.last_frame },
        vantage: Vantage::Unknown,
        vantage_evidence: String::new(),
        tap_to_client_rtt_ns: None,
        tap_to_server_rtt_ns: None,
        egress_delay_ns: None,
        handshake_rtt_ns: facts.handshake_rtt(),
        mss: None,
        window_scaling: WindowScaling::HandshakeNotSeen,
        window_scaling_refused_by: None,
        window_scaling_note: None,
        syns: [None; 2],
        sender_stack: [no_stack(), no_stack()],
        end: if facts.end == End::Fin && !facts.is_closed() { End::Open } else { facts.end },
        reset: facts.reset.as_deref().cloned(),
        directions: [None, None],
        transfers: Vec::new(),
        exchanges: Vec::new(),
        tls: None,
        findings: Vec::new(),
        beside: Vec::new(),
        duplicates: facts.duplicates,
        truncated: false,
    }
}

/// The report's account of a connection, of which there is the `outline`; `analysis` is done but for its
/// words, which go into it.
pub(crate) fn in_full(outline: Connection, facts: &Facts, analysis: &mut Analysis) -> Connection {
    let floors = [0, 1].map(|side| analysis.clocks[side].floor());
    let walkers = analysis.walkers.as_ref();
    let truncated = walkers.into_iter().flatten().any(Walker::is_truncated);
    let exchanges = walkers.map(|walkers| pairs(facts, analysis, walkers)).unwrap_or_default();
    let mut passed = analysis.passed.take().unwrap_or_default();
    let Connection { directions: [client, server], .. } = outline;
    let directions = [(0, client), (1, server)].map(|(side, direction)| {
        let (walker, mut direction) = (&walkers?[side], direction?);
        fill_direction(
            &mut direction,
            outline.vantage,
            (walker, &analysis.clocks[1 - side]),
            facts,
        );
        (direction.passed, direction.answers) = core::mem::take(&mut passed[side]);
        Some(direction)
    });
    let (window_scaling, refused) = scaling(facts, floors);
    let (window_scaling_refused_by, window_scaling_note) = refused.unzip();
    Connection {
        start: facts.start.rfc3339(),
        vantage_evidence: super::terms::vantage_in_words(facts, &analysis.clocks),
        egress_delay_ns: egress(analysis),
        mss: facts
            .sides
            .iter()
            .any(|s| s.syn.is_some() || s.data_frames > 0)
            .then(|| super::terms::mss(facts)),
        window_scaling,
        window_scaling_refused_by,
        window_scaling_note,
        syns: [0, 1].map(|side| syn(&facts.sides[side])),
        sender_stack: [0, 1]
            .map(|side| stack::name(&facts.sides[side], analysis.clocks[side].tick())),
        directions,
        exchanges,
        tls: facts.tls.report(),
        truncated,
        ..outline
    }
}

fn syn(info: &SideInfo) -> Option<Syn> {
    let options = info.syn.as_ref()?;
    Some(Syn {
        sent: info.syns,
        seq: info.isn?.0,
        mss: options.mss,
        window_scale: options.window_scale,
        window: info.syn_window,
        sack: options.sack_permitted,
        timestamps: options.timestamps.is_some(),
        ecn: info.syn_ece,
        fast_open: options.fast_open,
        payload: info.syn_payload,
        fillers: fillers(&options.order),
    })
}

/// The longest run of NOPs in the order of a SYN's options (RFC 9293 section 3.1: kind 1).
fn fillers(order: &[u8]) -> u8 {
    let runs = order.split(|kind| *kind != 1).map(<[u8]>::len);
    runs.max().unwrap_or(0) as u8
}

fn egress(analysis: &Analysis) -> Option<LowHigh> {
    let side = match analysis.place.vantage {
        Vantage::Client => 0,
        Vantage::Server => 1,
        Vantage::Middle | Vantage::Unknown => return None,
    };
    let low = analysis.clocks[side].floor()?;
    Some(LowHigh { low, high: low + analysis.clocks[side].spread() })
}

fn scaling(
    facts: &Facts,
    floors: [Option<i64>; 2],
) -> (WindowScaling, Option<(ScalingRefusedBy, String)>) {
    let [Some(client), Some(server)] = [0, 1].map(|side| facts.sides[side].syn) else {
        return (WindowScaling::HandshakeNotSeen, None);
    };
    if facts.window_shift(0).is_none() {
        return (WindowScaling::HandshakeNotSeen, None);
    }
    match (client.window_scale, server.window_scale) {
        (Some(_), Some(_)) => (WindowScaling::Used, None),
        (Some(shift), None) => (WindowScaling::NotNegotiated, Some(refused(facts, shift, floors))),
        (None, _) => {
            let note = "the client did not offer scaling".to_owned();
            (WindowScaling::NotNegotiated, Some((ScalingRefusedBy::Client, note)))
        }
    }
}

/// Who refused the scaling that the client offered: the server, or a nearer device that answers
/// in its name. The evidence for a device is data acknowledged much sooner than the SYN was.
fn refused(facts: &Facts, shift: u8, floors: [Option<i64>; 2]) -> (ScalingRefusedBy, String) {
    let offer = format!("the client offered scaling (shift {shift}), the SYN-ACK refused it");
    let (Some(handshake), Some(nearest)) = (facts.syn_ack_delay(), floors[1]) else {
        return (ScalingRefusedBy::Server, offer);
    };
    if nearest * 4 < handshake && handshake - nearest > 500_000 {
        let note = format!(
            "{offer}; later packets are answered within {:.3} ms although the SYN-ACK took {:.3} ms: a device nearer than the server answers in its name",
            nearest as f64 / 1e6,
            handshake as f64 / 1e6
        );
        (ScalingRefusedBy::Device, note)
    } else {
        (ScalingRefusedBy::Server, offer)
    }
}

fn direction_outline(facts: &Facts, walker: &Walker) -> Direction {
    let tally = &walker.tally;
    let bytes = walker.flight.nxt - walker.transfers.first_offset;
    Direction {
        bytes: bytes.max(0) as u64,
        // What passed unseen was sent, too.
        bytes_sent: tally.bytes_sent.max(bytes.max(0) as u64),
        segments: tally.segments,
        frames: tally.frames,
        retransmitted: retransmitted(tally),
        events: events(&facts.peers.counts[walker.terms.side], tally),
        max_in_flight_bytes: if walker.terms.unanswered {
            0
        } else {
            tally.max_in_flight.max(0) as u64
        },
        time_in: walker.ledger.time_in.clone(),
        ..Direction::default()
    }
}

/// Fills in what the outline of a direction lacks.
fn fill_direction(
    direction: &mut Direction,
    vantage: Vantage,
    (walker, peer): (&Walker, &SideClock),
    facts: &Facts,
) {
    let (lifetime, outline) = (facts.last_tap, core::mem::take(direction));
    let at = |t: i64| (t + walker.shift_in).clamp(0, lifetime);
    let rounds = walker.book.listed.iter().map(|r| round(r, walker.least_rtt(), &at));
    let path_rate = walker.book.path_rates.quantile(500).map(|bytes| BitRate(bytes as u64 * 8));
    let restarts = walker.pauses.watch.reported.iter();
    let repeats = walker.retransmissions.iter();
    *direction = Direction {
        rtt: Rtt {
            min_ns: walker.trips.spans.min(),
            median_ns: walker.trips.spans.quantile(500),
            p95_ns: walker.trips.spans.quantile(950),
            method: rtt_method(vantage, walker.terms.side).into(),
            samples: walker.trips.spans.len(),
        },
        delivery_rate_bps: rates(walker),
        bottleneck_rate_bps: path_rate.map(|rate| rate.0),
        bdp_bytes: path_rate.map(|rate| rate.bytes_in(Duration(walker.least_rtt())).0),
        rounds: rounds.collect(),
        limits: limits(walker),
        strip: walker.ledger.strip(lifetime),
        initial_window: initial_window(walker),
        slow_start_exit: slow_start_exit(walker, &at).map(Box::new),
        congestion_control: congestion_control(walker),
        idle_restarts: restarts
            .map(|r| crate::report::IdleRestart { at_ns: at(r.at_ns), ..r.clone() })
            .collect(),
        in_flight_at_loss: in_flight_at_loss(walker, &at),
        loss_pattern: loss_pattern(walker).map(Box::new),
        retransmissions: repeats
            .map(|r| crate::report::Retransmission { at_ns: at(r.at_ns), ..r.clone() })
            .collect(),
        burst_proven_bytes: burst_proven(walker),
        stuck_segment: stuck_segment(walker, &at).map(Box::new),
        window_taken_back: taken_back(walker),
        rtt_jumps: walker.trips.jumps.found.iter().map(|jump| rtt_jump(jump, peer, &at)).collect(),
        ..outline
    };
    if walker.terms.unanswered {
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
fn in_flight_at_loss(walker: &Walker, at: &impl Fn(i64) -> i64) -> Vec<InFlightAtLoss> {
    let most = walker.tally.max_in_flight.max(0) as u64;
    let told = |loss: &InFlightAtLoss| InFlightAtLoss {
        at_ns: at(loss.at_ns),
        bytes: loss.bytes.min(most),
        ..*loss
    };
    walker.repairs.flights_at_loss.iter().map(told).collect()
}

/// A burst into a flight with holes is no more than what was in flight at once.
fn burst_proven(walker: &Walker) -> Option<u64> {
    let burst = walker.book.burst_proven.min(walker.tally.max_in_flight);
    (burst > 0).then_some(burst as u64)
}

fn initial_window(walker: &Walker) -> Option<InitialWindow> {
    let first = walker.initial.filter(|_| !walker.initial_hidden)?;
    Some(InitialWindow {
        segments: first.segments,
        bytes: first.bytes.max(0) as u64,
        full: first.full == Some(true),
    })
}

fn taken_back(walker: &Walker) -> Option<TakenBack> {
    let (bytes, window) = walker.window.taken_back;
    (bytes > 0).then_some(TakenBack { bytes: bytes as u64, window_bytes: window.max(0) as u64 })
}

fn stuck_segment(walker: &Walker, at: &impl Fn(i64) -> i64) -> Option<StuckSegment> {
    let head = walker.repairs.heads.worst()?;
    let bytes = |bytes: i64| bytes.max(0) as u64;
    Some(StuckSegment {
        bytes: bytes(head.size),
        sent: head.sent,
        from_ns: at(head.from),
        to_ns: at(head.to),
        arrived_bytes: bytes(walker.repairs.heads.largest_arrived),
        passed_bytes: head.smaller.filter(|_| head.passed).map(bytes),
        peer_heard: head.peer_heard,
        frames: FrameRange { first: head.frames.0, last: head.frames.1 },
    })
}

/// `peer` is the clock of the side that acknowledged: it tells when the ACK left that side's TCP.
fn rtt_jump(jump: &Jump, peer: &SideClock, at: &impl Fn(i64) -> i64) -> RttJump {
    let latest = jump.ack.tap - peer.floor().unwrap_or(0);
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

fn slow_start_exit(walker: &Walker, at: &impl Fn(i64) -> i64) -> Option<SlowStartExit> {
    let (when, ssthresh, cause) = walker.growth.exit?;
    let cause = exit_cause(cause).to_owned();
    Some(SlowStartExit { at_ns: at(when), cause, ssthresh, measured_by: None })
}

fn congestion_control(walker: &Walker) -> Option<CongestionControl> {
    let (name, rounds) = walker.avoidance.controller()?;
    Some(CongestionControl { name: name.to_owned(), rounds })
}

fn retransmitted(tally: &Tally) -> Retransmitted {
    Retransmitted {
        fast: tally.fast,
        rto: tally.rto,
        tlp: tally.tlp,
        spurious: tally.spurious,
        unnecessary: tally.unnecessary,
        syn: tally.syn,
    }
}

fn events(counts: &Counts, tally: &Tally) -> Events {
    Events {
        zero_window: counts.zero_window,
        zero_window_probe: counts.zero_window_probe,
        window_full: counts.window_full,
        window_update: counts.window_update,
        keep_alive: counts.keep_alive,
        duplicate_ack: counts.duplicate_ack,
        partial_ack: tally.partial_acks,
        out_of_order: tally.out_of_order,
        ecn_echo: counts.ecn_echo,
        lost: tally.lost,
        not_captured: tally.not_captured,
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
    let (median, max) = (walker.book.rates.quantile(500)?, walker.book.rates.quantile(1000)?);
    // The sketch holds bytes per second.
    Some(Rate { median: median as u64 * 8, max: max as u64 * 8 })
}

fn round(r: &ListedRound, least_rtt: i64, at: &impl Fn(i64) -> i64) -> Round {
    let rate = r.rate.map(|bytes| BitRate(bytes * 8));
    Round {
        start_ns: at(r.start),
        bytes: r.bytes.max(0) as u64,
        segments: r.segments,
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
                confidence: i.confidence,
                alternative: i.alternative.to_vec(),
                evidence: LimitEvidence { text: evidence(walker, i), frames, filter },
            }
        })
        .collect()
}

fn evidence(walker: &Walker, interval: &Interval) -> String {
    match interval.state {
        State::Unknown => walker.why_untold(interval.alternative).to_owned(),
        state => interval.evidence.words(state, walker.terms.shift_guessed),
    }
}

fn loss_pattern(walker: &Walker) -> Option<LossPattern> {
    crate::measure::loss::pattern(
        &walker.repairs.lost,
        &walker.samples.kept,
        walker.repairs.episodes,
    )
}
