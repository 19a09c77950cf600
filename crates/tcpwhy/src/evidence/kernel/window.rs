//! The kernel's congestion window and threshold, in the place of the replayed ones.

use crate::report::{Beside, Cwnd, Direction};
use tcpwhy_words::said;

use super::place::{Placed, Rounds};
use super::{CONTRADICTS, Case, ERROR_PERCENT, MEASURED, verdict};

/// Rounds named one by one. Ours: more do not help a reader.
const NAMED: usize = 3;

/// Puts the kernel's window into each round that a sample shows, and says where the replay was wrong.
///
/// A sample shows a round's window if it was taken between the round's last send and the first ACK of
/// it; out of slow start, anywhere in the round: there it grows by about one segment a round (RFC 5681
/// §3.1). A sample in the midst of slow start would show what the window was on its way.
pub(super) fn cwnd(
    case: &Case<'_>,
    direction: &mut Direction,
    rounds: &Rounds,
    placed: &[Placed<'_>],
) -> Option<Beside> {
    let measured = of_rounds(rounds, placed, direction.rounds.len());
    let mut wrong = Vec::new();
    let (mut count, mut compared, mut last) = (0, 0, None);
    for (at, (round, found)) in direction.rounds.iter_mut().zip(&measured).enumerate() {
        let Some(Seen { cwnd, stopped }) = *found else { continue };
        count += 1;
        // What a file before this one measured was compared then.
        if round.cwnd_measured_by.is_some() {
            last = last.or(Some((cwnd, None)));
            continue;
        }
        let replayed = round.cwnd;
        let outside = stopped.is_some_and(|(low, high)| {
            replayed.low.is_some_and(|least| high < least && is_far(high, least))
                || replayed.high.is_some_and(|most| low > most && is_far(low, most))
        });
        // Where something else stopped the sender, the replay tells what the window had come to later.
        if round.limited_by.is_congestion_window() {
            compared += u64::from(stopped.is_some() && replayed.low.or(replayed.high).is_some());
            if outside {
                wrong.push((at, cwnd, replayed));
            }
        }
        last = Some((cwnd, replayed.best));
        round.cwnd = Cwnd { low: Some(cwnd), high: Some(cwnd), best: Some(cwnd) };
        round.cwnd_measured_by = u32::try_from(case.source).ok();
    }
    let (cwnd, best) = last?;
    let of = format!("{count} of {}", said::count(direction.rounds.len() as u64, "round"));
    let (value, estimate) =
        wrong.first().map_or((cwnd, best), |(_, cwnd, r)| (*cwnd, r.best.or(r.low)));
    let text = if wrong.is_empty() {
        let same = match compared {
            0 => String::new(),
            all if all == count => ", and is as replayed there".to_owned(),
            some => format!(", and is as replayed in {some} that it held"),
        };
        format!("the {}'s congestion window is measured in {of}{same}", case.who())
    } else {
        let named: Vec<String> = wrong.iter().take(NAMED).map(differing).collect();
        let more = wrong.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!(
            "the {}'s congestion window is measured in {of}; it is another than replayed in {}{more}",
            case.who(),
            said::listed(&named)
        )
    };
    Some(Beside {
        unit: "segments".into(),
        measured: i64::try_from(value).ok(),
        estimated: estimate.and_then(|best| i64::try_from(best).ok()),
        ..case.entry(
            "cwnd",
            if compared == 0 { MEASURED } else { verdict(!wrong.is_empty()) },
            text,
        )
    })
}

/// Whether a kernel's figure and the replay's are too far apart to be the same. A flight shows a window to
/// a segment or two: a send is 2 segments or more (`tcp_tso_autosize` in `tcp_output.c`).
fn is_far(kernel: u64, replayed: u64) -> bool {
    let apart = kernel.abs_diff(replayed);
    apart > 2 && apart.saturating_mul(100) > kernel.saturating_mul(ERROR_PERCENT as u64)
}

/// A round's window as samples show it.
#[derive(Clone, Copy)]
struct Seen {
    /// When the round had just stopped, or at the last sample in it.
    cwnd: u64,
    /// While it was stopped; `None` if no sample shows that.
    stopped: Option<(u64, u64)>,
}

/// The window of each round that a sample shows.
fn of_rounds(rounds: &Rounds, placed: &[Placed<'_>], number: usize) -> Vec<Option<Seen>> {
    let mut seen: Vec<Option<Seen>> = vec![None; number];
    for sample in placed {
        let Some(cwnd) = sample.sample.cwnd else { continue };
        if let Some(at) = rounds.stopped_in(sample) {
            // Later ones show what the last ACKs of the round before made of it.
            seen[at] = Some(match seen[at] {
                Some(Seen { cwnd: first, stopped: Some((low, high)) }) => {
                    Seen { cwnd: first, stopped: Some((low.min(cwnd), high.max(cwnd))) }
                }
                _ => Seen { cwnd, stopped: Some((cwnd, cwnd)) },
            });
        } else if let Some(at) = rounds.sending_in(sample)
            && sample.sample.ssthresh.flatten().is_some_and(|ssthresh| cwnd >= ssthresh)
            && seen[at].is_none_or(|seen| seen.stopped.is_none())
        {
            seen[at] = Some(Seen { cwnd, stopped: None });
        }
    }
    seen
}

/// `round 3 (40 segments, replayed 72)`
fn differing((at, cwnd, replayed): &(usize, u64, Cwnd)) -> String {
    let replayed = match (replayed.low, replayed.high, replayed.best) {
        (_, _, Some(best)) => best.to_string(),
        (Some(low), Some(high), None) => format!("{low} to {high}"),
        (Some(low), None, None) => format!("at least {low}"),
        _ => "at most ".to_owned() + &replayed.high.unwrap_or_default().to_string(),
    };
    format!("round {} ({}, replayed {replayed})", at + 1, said::count(*cwnd, "segment"))
}

/// The kernel's threshold beside the place where slow start was found to end.
pub(super) fn ssthresh(
    case: &Case<'_>,
    direction: &mut Direction,
    rounds: &Rounds,
    placed: &[Placed<'_>],
) -> Option<Beside> {
    let known = |sample: &&Placed<'_>| sample.sample.ssthresh.is_some();
    let last = placed.iter().rev().find(known)?;
    let first = placed.iter().find(|sample| sample.sample.ssthresh.flatten().is_some());
    let starts: Vec<i64> = direction.rounds.iter().map(|round| round.start_ns).collect();
    let losses = direction.in_flight_at_loss.len();
    let who = case.who();
    let entry = |verdict, measured: Option<u64>, estimated: Option<u64>, text| Beside {
        unit: "segments".into(),
        measured: measured.and_then(|value| i64::try_from(value).ok()),
        estimated: estimated.and_then(|value| i64::try_from(value).ok()),
        ..case.entry("ssthresh", verdict, text)
    };
    let Some(exit) = direction.slow_start_exit.as_deref_mut() else {
        let kernel = first?.sample.ssthresh.flatten()?;
        let text = format!("the {who}'s kernel has a slow start threshold of {kernel} segments");
        return Some(entry(MEASURED, Some(kernel), None, text));
    };
    let Some(kernel) = first.and_then(|sample| sample.sample.ssthresh.flatten()) else {
        // Slow start ends by what sets the threshold, or by what only fills another window first.
        let sets = !matches!(&*exit.cause, "rwnd" | "app" | "unknown");
        let later = rounds.sending_in(last).and_then(|at| starts.get(at)).copied()? > exit.at_ns;
        let text = format!(
            "slow start is said to have ended ({}), but the {who}'s kernel has no threshold later on: \
             it was still in slow start",
            exit.cause
        );
        return (sets && later).then(|| entry(CONTRADICTS, None, exit.ssthresh, text));
    };
    // A later loss sets it anew, as idle times and congestion marks do: only what is certain to be the first is compared.
    let ended = starts.partition_point(|start| *start <= exit.at_ns);
    let is_first = first.and_then(|sample| rounds.sending_in(sample)).is_some_and(|at| at <= ended);
    if losses > 1 || !is_first {
        let text = format!("the {who}'s kernel had a slow start threshold of {kernel} segments");
        return Some(entry(MEASURED, Some(kernel), None, text));
    }
    // What another file measured is no estimate.
    let estimate = exit.ssthresh.filter(|_| exit.measured_by.is_none());
    exit.ssthresh = Some(kernel);
    exit.measured_by = u32::try_from(case.source).ok();
    let Some(ours) = estimate else {
        let text = format!("slow start of the {who} ended at a threshold of {kernel} segments");
        return Some(entry(MEASURED, Some(kernel), None, text));
    };
    let off = is_far(kernel, ours);
    let text = format!(
        "slow start of the {who} ended at a threshold of {kernel} segments by its kernel, {ours} by the \
         replay"
    );
    Some(entry(verdict(off), Some(kernel), estimate, text))
}
