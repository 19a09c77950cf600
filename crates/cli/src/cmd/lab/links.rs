//! What a report says of the narrowest link, held against the log of that link's own queue.

use core::fmt::Write;
use std::path::Path;

use anyhow::Context;
use tcpwhy::report::{Direction, Report};
use tcpwhy::units::Time;
use tcpwhy_linux::lab::{folder, queue};
use tcpwhy_model::scenario::plan::{Egress, Host, Plan};
use truth::compare::share;
use truth::link::{Held, Log, Said, Span};

use super::outcome::{capture_at, direction};
use crate::cmd::columns::percent;

/// The log of the narrowest link that the data passed, if one was kept; a bucket at its sender counts if it `may_be_own`.
///
/// # Errors
/// The records of the `run` cannot be read.
pub(super) fn log(plan: &Plan, run: &Path, may_be_own: bool) -> anyhow::Result<Option<Log>> {
    let work = queue::work(plan, run, direction(plan) == 1, may_be_own);
    let work =
        work.with_context(|| format!("cannot read the records of queues in {}", run.display()))?;
    // A report tells times as if the link stood at the sender's stack.
    let from_stack = |host: &Host| host.stack_to_tap_ns;
    let own = from_stack([&plan.client, &plan.server][direction(plan)]);
    let stacks = from_stack(&plan.client) + from_stack(&plan.server);
    let trip = plan.path.down.delay_ns + plan.path.up.delay_ns + 2 * stacks;
    Ok(work.map(|work| Log::new(work.rate, &work.spans, work.dropped.len(), trip).earlier_by(own)))
}

/// Adds what `report` says of the link that the data of a run passed. Behind a bucket at the sender its own capture shows no
/// narrower link: such runs are left out there.
///
/// # Errors
/// The records of the run cannot be read.
pub(super) fn hold(
    held: &mut Held,
    report: &Report,
    (plan, run): (&Plan, &Path),
    capture: &str,
) -> anyhow::Result<()> {
    let side = direction(plan);
    let sender = [&plan.client, &plan.server][side];
    if capture == capture_at(side) && matches!(sender.egress, Some(Egress::TokenBucket(_))) {
        return Ok(());
    }
    let Some(mut log) = log(plan, run, true)? else { return Ok(()) };
    let [.., middle] = folder::CAPTURES;
    if capture == middle {
        // All the distance between the sender and the middle lies on the way of the ACKs; half of it is taken for the other's.
        let back = [&plan.path.down, &plan.path.up][side];
        log = log.earlier_by(back.delay_ns / 2);
    }
    let sent = |connection: &&tcpwhy::report::Connection| {
        connection.directions[side].as_deref().map_or(0, |direction| direction.bytes)
    };
    let Some(connection) = report.connections.iter().max_by_key(sent) else { return Ok(()) };
    let start = Time::from_rfc3339(&connection.start).map_or(0, |time| time.0);
    let at = |ns: i64| u64::try_from(start.saturating_add(ns)).unwrap_or(0);
    let life = (at(0), at(connection.duration_ns));
    let Some(direction) = connection.directions[side].as_deref() else { return Ok(()) };
    let r = direction.retransmitted;
    let resent = r.fast + r.rto + r.tlp + r.unnecessary;
    held.add(&log, said(direction, at).as_ref(), resent, life);
    Ok(())
}

fn said(direction: &Direction, at: impl Fn(i64) -> u64) -> Option<Said> {
    let link = direction.link.as_deref()?;
    let on_clock = |spans: &[(i64, i64)]| -> Vec<Span> {
        spans.iter().map(|(from, to)| (at(*from), at(*to))).collect()
    };
    Some(Said {
        rate: link.rate_bps.best,
        busy: on_clock(&link.busy),
        full: on_clock(&link.full),
        lost: [link.lost_before, link.lost_behind, link.lost_elsewhere],
    })
}

/// A table of all runs.
pub(super) fn render(links: &[(&'static str, Held)], text: &mut String) {
    type Figure = fn(&Held) -> String;
    if links.iter().all(|(_, held)| held.runs == 0) {
        return;
    }
    text.push_str("\nthe narrowest link, held against the log of its own queue\n");
    let rows: [(&str, Figure); 7] = [
        ("named, of runs", |h| format!("{} of {}", h.named, h.runs)),
        ("rate within 1 %", |h| format!("{} of {}", h.rates_right, h.named)),
        ("busy: rightly said, found", |h| pair(h.busy)),
        ("  in truth", |h| format!("{:.1} s", h.busy[2] as f64 / 1e9)),
        ("full: rightly said, found", |h| pair(h.full)),
        ("  in truth", |h| format!("{:.1} s", h.full[2] as f64 / 1e9)),
        ("most losses placed right", |h| format!("{} of {}", h.placed[1], h.placed[0])),
    ];
    for (title, figure) in rows {
        let _ = write!(text, "{title:<32}");
        for (_, held) in links {
            let _ = write!(text, "{:>18}", figure(held));
        }
        text.push('\n');
    }
}

/// Precision and recall.
fn pair([said, right, due, found]: [u64; 4]) -> String {
    let of = |part, whole| percent(share(part, whole));
    format!("{}, {}", of(right, said), of(found, due))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_precision_and_recall_by_vantage() {
        let held = Held {
            runs: 9,
            named: 8,
            rates_right: 7,
            busy: [200, 198, 400, 100],
            placed: [5, 4],
            ..Held::default()
        };
        let mut text = String::new();
        render(&[("sender", held), ("receiver", Held::default())], &mut text);
        for line in [
            "named, of runs                              8 of 9            0 of 0\n",
            "busy: rightly said, found           99.0 %, 25.0 %              -, -\n",
            "most losses placed right                    4 of 5            0 of 0\n",
        ] {
            assert!(text.contains(line), "{line}\nis not in\n{text}");
        }
    }
}
