//! From the walkers to the report's plain data.

use super::{Analysis, directions, doubles, exchanges, failed};
use crate::flow::facts::Facts;
use crate::flow::failures::{Failed, What, alert_name, status_phrase};
use crate::flow::hello;
use crate::flow::side::SideInfo;
use crate::limits::quick::turns::Turns;
use crate::limits::walk::Walker;
use crate::measure::{loss, stack};
use crate::report::{
    ClearError, Connection, Direction, End, Exchange, FrameRange, Link, LowHigh, Names,
    ScalingRefusedBy, SenderStack, State, Syn, Transfer, Vantage, WindowScaling,
};
use crate::segments::Segments;
use tcpwhy_words::units::Duration;

/// What the account of a connection counts in the totals and is put in order by: its data, its transfers
/// and their times. The rest is empty.
pub(crate) fn outline(facts: &Facts, analysis: &Analysis) -> Connection {
    let lifetime = facts.lifetime();
    let walkers = analysis.walkers.as_ref();
    let directions = [0, 1].map(|side| {
        let walker = walkers.map(|walkers| &walkers[side])?;
        // What was acknowledged was sent, though the capture holds none of it.
        (walker.sender.tally.frames > 0 || walker.sender.tally.not_captured > Segments::NONE)
            .then(|| Box::new(directions::outline(facts, walker)))
    });
    let exchanges = match walkers {
        // What came early is no answer, and the wait goes on.
        Some(walkers) if facts.tls.early().is_some() => pairs(facts, analysis, walkers),
        _ => Vec::new(),
    };
    let transfers =
        walkers.map_or_else(Vec::new, |walkers| exchanges::transfers(walkers, lifetime));
    Connection {
        failure: analysis.failure(facts, &transfers).map(Box::new),
        ending: analysis.ending.clone(),
        vantage: analysis.place.vantage,
        tap_to_client_rtt_ns: analysis.clocks[0].floor(),
        tap_to_server_rtt_ns: analysis.clocks[1].floor(),
        directions,
        transfers,
        exchanges,
        duplicates: doubles::by_capture(facts, walkers),
        ..blank(facts)
    }
}

fn pairs(facts: &Facts, analysis: &Analysis, walkers: &[Walker; 2]) -> Vec<Exchange> {
    let floors = [0, 1].map(|side| analysis.clocks[side].floor().unwrap_or_default());
    let clear = exchanges::Clear {
        early: facts.tls.early(),
        fin_at: facts.tls.report().and(facts.sides[0].fin_at),
        requests: facts.failures.requests().all(),
    };
    exchanges::pairs(walkers, floors, clear)
}

/// Lays down in `outline` what [`outline`] counts of a connection whose sides talked in `turns`.
pub(crate) fn outline_turns(outline: &mut Connection, facts: &Facts, turns: &[Turns; 2]) {
    outline.id = facts.first_frame;
    outline.duration_ns = facts.lifetime();
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
            turn.map_or(i64::MAX, |turn| turn.start.in_report(turns[side].shift_in))
        });
        let side = usize::from(of_server < of_client);
        let Some(turn) = turns[side].done.get(next[side]) else { break };
        next[side] += 1;
        let [start, end] = [turn.start, turn.end]
            .map(|at| at.in_report(turns[side].shift_in).clamp(0, facts.lifetime()));
        transfer.from = ["client", "server"][side].into();
        (transfer.start_ns, transfer.end_ns) = (start, end);
        transfer.bytes = u64::from(turn.bytes);
        transfer.time_in.clear();
        transfer.time_in.add(State::LastFlight, Duration(end - start));
    }
    outline.failure = failed::of(facts, &outline.transfers).map(Box::new);
}

/// An account without data and words; its number is that of its first frame, until all have begun that come
/// before it (`tracker::starts`).
pub(crate) fn blank(facts: &Facts) -> Connection {
    let no_stack = || SenderStack { name: "".into(), evidence: "".into(), timestamp_tick_ns: None };
    Connection {
        id: facts.first_frame,
        stream: Some(facts.first_frame),
        client: facts.endpoints[0],
        server: facts.endpoints[1],
        network: facts.network,
        client_name: None,
        server_name: None,
        names: None,
        start: String::new(),
        duration_ns: facts.lifetime(),
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
        failure: None,
        ending: None,
        icmp: Vec::new(),
        directions: [None, None],
        transfers: Vec::new(),
        exchanges: Vec::new(),
        tls: None,
        clear_errors: Vec::new(),
        answer: String::new(),
        untaken: None,
        findings: Vec::new(),
        beside: Vec::new(),
        duplicates: facts.duplicates,
        truncated: false,
    }
}

/// The losses of `direction` by its link. One that was slower for a while drops what its queue had room for before.
fn ask_link(direction: &mut Direction, link: Option<&Link>) {
    let link = link.filter(|_| direction.time_in.get(State::BandwidthVariable) == Duration::ZERO);
    if let Some((pattern, link)) = direction.loss_pattern.as_deref_mut().zip(link) {
        loss::ask_link(pattern, link, direction.events.lost);
    }
}

/// The report's account of a connection, made from its `outline`. `analysis` is done but for its words, which
/// go into the account.
pub(crate) fn in_full(outline: Connection, facts: &Facts, analysis: &mut Analysis) -> Connection {
    let floors = [0, 1].map(|side| analysis.clocks[side].floor());
    let mut links = core::mem::take(&mut analysis.busy);
    let walkers = analysis.walkers.as_ref();
    let truncated = walkers.into_iter().flatten().any(Walker::is_truncated);
    let exchanges = walkers.map(|walkers| pairs(facts, analysis, walkers)).unwrap_or_default();
    let mut passed = analysis.passed.take().unwrap_or_default();
    let mut trails = analysis.trails.take().map(|trails| trails.take().map(Some));
    let Connection { directions: [client, server], .. } = outline;
    let mut directions = [(0, client), (1, server)].map(|(side, direction)| {
        let (walker, mut direction) = (&walkers?[side], direction?);
        directions::fill(
            &mut direction,
            outline.vantage,
            (walker, &analysis.clocks[1 - side]),
            facts,
        );
        let link = links[side].take().map(|busy| {
            let repeats = &mut direction.retransmissions;
            directions::link(busy, (walker, facts.lifetime()), repeats)
        });
        ask_link(&mut direction, link.as_ref());
        direction.link = link.map(Box::new);
        (direction.passed, direction.answers) = core::mem::take(&mut passed[side]);
        direction.trail = trails.as_mut().and_then(|both| both[side].take()).map(Box::new);
        Some(direction)
    });
    if let Some(direction) = &mut directions[0] {
        forget_what_was_not_taken(direction, facts, outline.vantage);
    }
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
        names: names(facts).map(Box::new),
        directions,
        exchanges,
        tls: facts.tls.report(),
        untaken: facts.untaken(),
        clear_errors: facts.failures.all().iter().map(clear_error).collect(),
        answer: String::new(),
        truncated,
        ..outline
    }
}

/// What the ends call each other in clear. What name servers said is added where all is known.
fn names(facts: &Facts) -> Option<Names> {
    let told = facts.tls.told().map(|told| *told).unwrap_or_default();
    let host = facts.failures.requests().host().map(|host| (host.to_owned(), "http_host"));
    let sni = told.server_name.map(|name| (String::from(name), "sni"));
    let (server, server_by) = sni.or(host).unzip();
    let names = Names {
        server,
        server_by: server_by.map(Into::into),
        service: None,
        tls_version: told.version.and_then(hello::version_name).map(Into::into),
        alpn: told.chosen,
        alpn_offered: told.offered,
        programs: [None, None],
    };
    (names != Names::default()).then_some(names)
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
        acked: info.syn_acked,
        fillers: fillers(&options.order),
    })
}

/// What the server's host got and its TCP did not take was not lost, and elsewhere nothing shows that it was.
fn forget_what_was_not_taken(direction: &mut Direction, facts: &Facts, vantage: Vantage) {
    let untaken = facts.untaken();
    let shown = untaken.filter(|untaken| {
        untaken.shows(vantage, facts.handshake_rtt(), facts.lifetime()).is_some()
    });
    let Some(untaken) = shown else { return };
    let lost = &mut direction.events.lost;
    *lost = lost.saturating_sub(untaken.repeats);
    if *lost == 0 {
        direction.loss_pattern = None;
        direction.in_flight_at_loss.clear();
    }
}

fn clear_error(failed: &Failed) -> ClearError {
    let (kind, code, name, level) = match failed.what {
        What::Alert { code, fatal } => {
            let level = if fatal { "fatal" } else { "warning" };
            ("tls_alert", u16::from(code), alert_name(code).unwrap_or_default(), level)
        }
        What::Status(status) => {
            let level = if status < 500 { "client_error" } else { "server_error" };
            ("http_status", status, status_phrase(status), level)
        }
    };
    ClearError {
        kind: kind.into(),
        by: ["client", "server"][failed.by].into(),
        at_ns: failed.tap.0,
        frame: failed.frame,
        code,
        name: name.into(),
        level: level.into(),
        times: u64::from(failed.times),
    }
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
    let syns = [0, 1].map(|side| facts.sides[side].syn);
    // Without the SYNs only the sockets' kernels tell, of both windows at once.
    let are_told =
        [0, 1].iter().any(|side| facts.window_shift(*side).is_some_and(|shift| shift > 0));
    if are_told && syns.iter().all(Option::is_none) {
        return (WindowScaling::Used, None);
    }
    let [Some(client), Some(server)] = syns else {
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
