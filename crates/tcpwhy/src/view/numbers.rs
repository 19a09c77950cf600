//! The numbers of a direction that people look for by name: round trip, first flight, slow start,
//! retransmissions, losses, events, rates. A number the report does not know has no line.

use core::fmt::Write as _;

use super::link;
use super::page::Page;
use super::words;
use crate::report::{
    Connection, Direction, IdleRestart, InFlightAtLoss, LossPattern, LossToldBy, RepeatCause,
    Retransmission, Retransmitted, SlowStartExit, State,
};

/// Pauses that get a line of their own.
const IDLE_RESTARTS: usize = 3;

/// Retransmissions that are named by frame.
const REPEATS: usize = 3;

/// All numbers of one direction of `connection`.
pub(super) fn write(page: &mut Page, connection: &Connection, at: usize, direction: &Direction) {
    let ends = words::ends(at);
    let of = if connection.part.is_some() { " of the whole connection" } else { "" };
    page.heading(&format!("Numbers{of}, {} to {}", ends.sender, ends.receiver));
    page.item("sent", &sent(direction));
    page.item("round trip", &round_trip(direction));
    path(page, connection);
    start(page, direction);
    for restart in direction.idle_restarts.iter().take(IDLE_RESTARTS) {
        page.item("pause", &idle_restart(restart));
    }
    if direction.idle_restarts.len() > IDLE_RESTARTS {
        let more = direction.idle_restarts.len() - IDLE_RESTARTS;
        page.item("", &format!("and {}", words::count(more as u64, "more pause")));
    }
    losses(page, direction);
    page.item_if("events", events(direction));
    page.item_if("rate", rates(direction));
    page.item_if("link", direction.link.as_deref().map(link::narrowest));
}

fn sent(direction: &Direction) -> String {
    let bytes = words::exact_bytes(direction.bytes);
    let mut text = format!("{bytes} in {}", words::count(direction.segments, "segment"));
    if direction.max_in_flight_bytes > 0 {
        let flight = words::exact_bytes(direction.max_in_flight_bytes);
        let _ = write!(text, ", at most {flight} in flight");
    }
    if direction.bytes_sent > direction.bytes {
        let again = direction.bytes_sent - direction.bytes;
        let _ = write!(text, "; {} of it retransmitted", words::exact_bytes(again));
    }
    if direction.frames != direction.segments && direction.frames > 0 {
        let _ = write!(text, "; captured as {}", words::count(direction.frames, "frame"));
    }
    text
}

fn round_trip(direction: &Direction) -> String {
    let rtt = &direction.rtt;
    let figures: Vec<String> =
        [("least", rtt.min_ns), ("median", rtt.median_ns), ("95th percentile", rtt.p95_ns)]
            .into_iter()
            .filter_map(|(name, ns)| Some(format!("{name} {}", words::time(ns?))))
            .collect();
    let mut text = if figures.is_empty() { "unknown".to_owned() } else { figures.join(", ") };
    if rtt.samples > 0 {
        let _ = write!(text, ", from {}", words::count(rtt.samples, "sample"));
    }
    if !rtt.method.is_empty() {
        let _ = write!(text, " ({})", rtt.method);
    }
    text
}

fn path(page: &mut Page, connection: &Connection) {
    let parts: Vec<String> = [
        ("handshake took", connection.handshake_rtt_ns),
        ("capture point to client", connection.tap_to_client_rtt_ns),
        ("to server", connection.tap_to_server_rtt_ns),
    ]
    .into_iter()
    .filter_map(|(name, ns)| Some(format!("{name} {}", words::time(ns?))))
    .collect();
    if !parts.is_empty() {
        page.item("", &parts.join(", "));
    }
}

fn start(page: &mut Page, direction: &Direction) {
    let first = direction.initial_window.map(|window| {
        let waited =
            direction.rounds.first().is_some_and(|round| round.limited_by == State::CwndSlowStart);
        let meaning = if window.cut_by_syns {
            "with more to send: the repeated SYN or SYN-ACK cut the congestion window to 1 segment"
        } else if window.full {
            "with more to send: this is the initial congestion window"
        } else if waited {
            "and the next one waited for an ACK"
        } else {
            "not held by the congestion window, which may be larger"
        };
        let segments = words::count(window.segments, "segment");
        format!("{segments}, {}, {meaning}", words::exact_bytes(window.bytes))
    });
    page.item_if("first flight", first);
    page.item_if("slow start", direction.slow_start_exit.as_deref().map(slow_start_exit));
    let controller = direction.congestion_control.as_ref().map(|control| {
        let rounds = words::count(control.rounds, "round");
        match control.name.as_str() {
            "reno" => format!("Reno: {rounds} after losses grew from half, by one segment each"),
            "cubic" => format!("CUBIC: {rounds} after losses grew from 0.7 along its curve"),
            name => format!("{name}: {rounds} after losses"),
        }
    });
    page.item_if("controller", controller);
    let proven = direction.burst_proven_bytes;
    let proven =
        proven.map(|bytes| format!("up to {} passed without loss or queue", words::bytes(bytes)));
    page.item_if("bursts", proven);
}

fn slow_start_exit(exit: &SlowStartExit) -> String {
    let cause = match exit.cause.as_str() {
        "loss" => "by a loss",
        "hystart_delay" => "because the round trip grew (HyStart, delay)",
        "hystart_train" => "because the ACKs' train grew long (HyStart, train)",
        "cached_ssthresh" => "at a threshold remembered from earlier connections",
        "rwnd" => "because the receiver's window ended the growth",
        "app" => "because the application sent less than the window allowed",
        "" | "unknown" => "for an unknown reason",
        other => other,
    };
    let threshold = exit.ssthresh.map_or_else(String::new, |segments| {
        format!(", threshold {}", words::count(segments, "segment"))
    });
    format!("ended at {} {cause}{threshold}", words::time(exit.at_ns))
}

fn idle_restart(restart: &IdleRestart) -> String {
    let verdict = match restart.verdict.as_str() {
        "on" => "the congestion window was cut back (idle restart on)",
        "off" => {
            "the congestion window was kept (idle restart off, or a controller such as BBR that has none)"
        }
        "not_applicable" => "an idle restart would make no difference here",
        _ => "whether the congestion window was cut back is unknown",
    };
    let before = restart.cwnd_before.map_or_else(String::new, |segments| {
        format!(" where at least {} were allowed before", words::grouped(segments))
    });
    let reason =
        if restart.reason.is_empty() { String::new() } else { format!(": {}", restart.reason) };
    format!(
        "nothing in flight for {} until {}, then {} ({}) at once{before}; {verdict}{reason}",
        words::time(restart.idle_ns),
        words::time(restart.at_ns),
        words::count(restart.segments, "segment"),
        words::exact_bytes(restart.bytes),
    )
}

fn losses(page: &mut Page, direction: &Direction) {
    page.item_if("retransmitted", retransmitted(direction));
    page.item_if("", repeats(direction));
    let lost = direction.events.lost;
    let lost = (lost > 0).then(|| {
        let segments = words::count(lost, "segment");
        format!("{segments} in the network, as far as retransmissions tell")
    });
    page.item_if("lost", lost);
    page.item_if("loss pattern", direction.loss_pattern.as_deref().map(loss_pattern));
    page.item_if("congestion point", congestion_point(direction));
}

fn retransmitted(direction: &Direction) -> Option<String> {
    let Retransmitted { fast, rto, tlp, spurious, unnecessary, syn } = direction.retransmitted;
    let total = direction.retransmitted.total();
    let is_answered = direction.rtt.samples > 0;
    let causes: Vec<String> = [
        (
            fast,
            if is_answered {
                "after SACK or duplicate ACKs"
            } else {
                "for reasons that no ACK tells"
            },
        ),
        (rto, "after the retransmission timer"),
        (tlp, "as tail loss probes"),
        (unnecessary, "although already acknowledged here"),
        (syn, "SYN or SYN-ACK"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, cause)| format!("{} {cause}", words::grouped(number)))
    .collect();
    // What was acknowledged already is needless anyhow, and told among the causes.
    let listed = direction.retransmissions.iter();
    let told = if direction.retransmissions.is_empty() {
        unnecessary
    } else {
        listed.filter(|each| each.spurious && each.cause == RepeatCause::Unnecessary).count() as u64
    };
    let needless = spurious.saturating_sub(told);
    let needless = (needless > 0).then(|| {
        format!("; {} proved needless (nothing was lost there)", words::grouped(needless))
    });
    if total == 0 && needless.is_none() {
        return None;
    }
    let data = total - syn;
    let share = (data > 0 && direction.segments > 0).then(|| {
        let share = data as f64 * 100.0 / direction.segments as f64;
        format!(" ({share:.2}\u{a0}%)")
    });
    Some(format!(
        "{}{}: {}{}",
        words::count(total, "segment"),
        share.unwrap_or_default(),
        words::listed(&causes),
        needless.unwrap_or_default()
    ))
}

/// Which frames repeat which: the first few, to be looked up.
fn repeats(direction: &Direction) -> Option<String> {
    let all = &direction.retransmissions;
    let first = &all[..all.len().min(REPEATS)];
    let unseen = first.iter().all(|each| each.originals.is_empty() && !was_acknowledged(each));
    let mut shown: Vec<String> = if unseen {
        // Behind the loss no original was captured.
        let frames: Vec<String> = first.iter().map(|each| each.frame.to_string()).collect();
        let (noun, verb) = if first.len() == 1 { ("frame", "is") } else { ("frames", "are") };
        let frames = words::listed(&frames);
        vec![format!("{noun}\u{a0}{frames} {verb} new here: the originals were not captured")]
    } else {
        first.iter().map(repeat).collect()
    };
    if first.is_empty() {
        return None;
    }
    if all.len() > first.len() {
        shown.push(format!("{} more", words::grouped((all.len() - first.len()) as u64)));
    }
    Some(shown.join("; "))
}

/// Whether what it repeats was acknowledged: the originals are not looked for any more.
fn was_acknowledged(each: &Retransmission) -> bool {
    each.cause == RepeatCause::Unnecessary
}

/// `frame 26 repeats 16`
fn repeat(each: &Retransmission) -> String {
    let originals: Vec<String> = each.originals.iter().take(REPEATS).map(u64::to_string).collect();
    let of = match originals.len() {
        0 if was_acknowledged(each) => "what was acknowledged before it".to_owned(),
        0 => "what this capture does not hold".to_owned(),
        _ => words::listed(&originals),
    };
    format!("frame\u{a0}{} repeats {of}", each.frame)
}

fn loss_pattern(pattern: &LossPattern) -> String {
    let kind = match (pattern.kind.as_str(), pattern.told_by) {
        ("congestion", LossToldBy::Link) => {
            "lost segments found the narrowest link's queue full: it overflows"
        }
        ("random", LossToldBy::Link) => {
            "as if random: no segment was lost to a full queue of the narrowest link"
        }
        ("unknown", LossToldBy::Link) => {
            "unknown: not the narrowest link's queue, and too many at once for chance"
        }
        ("congestion", _) => {
            "losses depend on how much was in flight: a queue overflows, or a rate is exceeded"
        }
        ("random", _) if pattern.depends_on_flight() => {
            "as if random: far more in flight had passed than what losses began with"
        }
        ("random", _) => "as if random: nothing shows that losses depend on how much was in flight",
        _ => "unknown: the flights at losses do not tell congestion from chance",
    };
    let mut text = kind.to_owned();
    if let Some(p) = pattern.p_value.filter(|p| p.is_finite()) {
        let shown = if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") };
        let _ = write!(text, " ({shown})");
    }
    let _ = write!(text, "; {}", words::count(pattern.episodes, "episode"));
    let bursts: Vec<String> = ["1", "2", "3 to 5", "6 to 10", "more than 10"]
        .into_iter()
        .zip(pattern.bursts)
        .filter(|(_, number)| *number > 0)
        .map(|(length, number)| match number {
            1 => format!("{length} (once)"),
            _ => format!("{length} ({} times)", words::grouped(number)),
        })
        .collect();
    if !bursts.is_empty() {
        let _ = write!(text, "; lost in a row: {}", bursts.join(", "));
    }
    if let Some(period) = pattern.period_ns {
        let _ = write!(text, "; they come every {}", words::time(period));
    }
    if let Some(period) = pattern.period_segments {
        let _ = write!(text, "; they come every {}", words::count(period, "segment"));
    }
    text
}

/// The flight at which losses begin; random losses have no such point.
fn congestion_point(direction: &Direction) -> Option<String> {
    let random = direction.loss_pattern.as_ref().is_some_and(|pattern| pattern.kind == "random");
    if random {
        return Some("none shown: losses came with little in flight, too".to_owned());
    }
    let mut flights: Vec<u64> =
        direction.in_flight_at_loss.iter().map(|at: &InFlightAtLoss| at.bytes).collect();
    flights.sort_unstable();
    let (least, most) = (flights.first()?, flights.last()?);
    let median = flights[(flights.len() - 1) / 2];
    if flights.len() == 1 {
        return Some(format!("{} in flight at the only loss episode", words::bytes(median)));
    }
    Some(format!(
        "{} in flight at losses (median of {}; {} to {})",
        words::bytes(median),
        words::grouped(flights.len() as u64),
        words::bytes(*least),
        words::bytes(*most)
    ))
}

fn events(direction: &Direction) -> Option<String> {
    let events = direction.events;
    let shown: Vec<String> = [
        (events.zero_window, "zero window"),
        (events.zero_window_probe, "zero window probe"),
        (events.window_full, "window full"),
        (events.window_update, "window update"),
        (events.keep_alive, "keep-alive"),
        (events.duplicate_ack, "duplicate ACK"),
        (events.partial_ack, "partial ACK"),
        (events.out_of_order, "out of order"),
        (events.ecn_echo, "ECN echo"),
        (events.damaged, "damaged segment"),
        (events.doubled, "segment doubled on the path"),
        (events.not_captured, "missing in the capture only"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, name)| words::tie(&format!("{name} {}", words::grouped(number))))
    .collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

fn rates(direction: &Direction) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(rate) = direction.delivery_rate_bps {
        let (median, most) = (words::rate(rate.median), words::rate(rate.max));
        parts.push(format!("delivered at {median} (median round), {most} at most"));
    }
    if let Some(bps) = direction.shared_link_rate_bps.or(direction.bottleneck_rate_bps) {
        parts.push(format!("narrowest link about {}", words::rate(bps)));
    }
    if let Some(bytes) = direction.bdp_bytes {
        let what =
            if direction.shared_link_rate_bps.is_some() { "its share holds" } else { "it holds" };
        parts.push(format!("{what} {} in flight without a queue (BDP)", words::bytes(bytes)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of these retransmissions among ten segments.
    fn said(retransmitted: Retransmitted, list: &[(RepeatCause, bool)]) -> Option<String> {
        let row = |(cause, spurious): &(RepeatCause, bool)| Retransmission {
            cause: *cause,
            spurious: *spurious,
            ..Retransmission::default()
        };
        let retransmissions = list.iter().map(row).collect();
        let direction =
            Direction { segments: 10, retransmitted, retransmissions, ..Direction::default() };
        super::retransmitted(&direction).map(|text| text.replace('\u{a0}', " "))
    }

    #[test]
    fn a_needless_retransmission_is_told_once() {
        let counts = Retransmitted { unnecessary: 2, spurious: 2, ..Retransmitted::default() };
        let once = Some("2 segments (20.00 %): 2 although already acknowledged here".to_owned());
        assert_eq!(
            said(counts, &[(RepeatCause::Unnecessary, true), (RepeatCause::Unnecessary, true)]),
            once
        );
        assert_eq!(said(counts, &[]), once, "the list was not kept");
        let counts = Retransmitted { fast: 1, unnecessary: 1, spurious: 1, ..counts };
        let both = said(counts, &[(RepeatCause::Unnecessary, false), (RepeatCause::Fast, true)])
            .expect("two");
        assert!(both.ends_with("; 1 proved needless (nothing was lost there)"), "{both}");
    }

    #[test]
    fn a_link_that_is_shared_is_as_wide_as_all_of_it() {
        let alone = Direction {
            bottleneck_rate_bps: Some(5_000_000),
            bdp_bytes: Some(12_500),
            ..Direction::default()
        };
        let shared = Direction { shared_link_rate_bps: Some(20_000_000), ..alone.clone() };
        let said = |direction| rates(&direction).map(|text| text.replace('\u{a0}', " "));
        let narrowest = |rate, what| {
            Some(format!(
                "narrowest link about {rate} Mbit/s; {what} 12.2 KiB in flight without a queue (BDP)"
            ))
        };
        assert_eq!(said(alone), narrowest("5.00", "it holds"));
        assert_eq!(said(shared), narrowest("20.0", "its share holds"));
    }

    #[test]
    fn a_repeated_syn_is_no_share_of_the_data() {
        let syn = Retransmitted { syn: 1, ..Retransmitted::default() };
        assert_eq!(said(syn, &[]).as_deref(), Some("1 segment: 1 SYN or SYN-ACK"));
    }

    #[test]
    fn originals_that_were_not_captured_are_said_so_in_one_go() {
        let retransmissions = [7, 9].map(|frame| Retransmission { frame, ..Default::default() });
        let direction =
            Direction { retransmissions: retransmissions.to_vec(), ..Default::default() };
        assert_eq!(
            repeats(&direction).map(|text| text.replace('\u{a0}', " ")).as_deref(),
            Some("frames 7 and 9 are new here: the originals were not captured")
        );
    }

    #[test]
    fn the_originals_of_what_was_acknowledged_were_there() {
        let cause = RepeatCause::Unnecessary;
        let needless = Retransmission { frame: 7, cause, ..Default::default() };
        let direction = Direction { retransmissions: vec![needless], ..Default::default() };
        assert_eq!(
            repeats(&direction).map(|text| text.replace('\u{a0}', " ")).as_deref(),
            Some("frame 7 repeats what was acknowledged before it")
        );
    }
}
