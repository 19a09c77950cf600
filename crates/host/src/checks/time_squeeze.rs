//! Processors had to stop taking packets before they were done, and packets were dropped.
//!
//! # What it says
//! A processor takes at most `netdev_budget` packets, for at most `netdev_budget_usecs`, before it lets others run. Cut short often while rings
//! or backlogs overrun, it is too slow or allowed too little.
//!
//! # How we know
//! The third column of `/proc/net/softnet_stat` grew by more than 10 a second, and `RING_OVERRUN` or `BACKLOG_DROPS` saw drops in the same time.
//!
//! # What it is not
//! Cut short alone means little: the rest is taken a moment later. It is not told then.
//!
//! # What to do
//! Spread the work first; then double both budgets.
//!
//! # Sources
//! Linux `net_rx_action` (v6.1, `net/core/dev.c`); Documentation/admin-guide/sysctl/net.rst. 10 a second: ours, not measured.

use super::backlog_drops::dropped;
use super::{Check, ring_overrun, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "TIME_SQUEEZE",
    file: include_str!("time_squeeze.rs"),
    group: Group::Host,
    judge,
};

const A_SECOND: f64 = 10.0;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let squeezed = dropped(seen, |row| Some(row.time_squeeze))?;
    seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let Some((_, first)) = squeezed.first() else { return Ok(Vec::new()) };
    let all = Growth { by: squeezed.iter().map(|(_, growth)| growth.by).sum(), ..*first };
    let backlog = !dropped(seen, |row| Some(row.dropped))?.is_empty();
    let ring = (ring_overrun::CHECK.judge)(seen)?.into_iter().next();
    if all.per_second() <= A_SECOND || (ring.is_none() && !backlog) {
        return Ok(Vec::new());
    }
    let mut evidence =
        vec![Evidence::new("/proc/net/softnet_stat column 3, all processors", words::grown(all))];
    evidence.extend(ring.and_then(|ring| ring.evidence.into_iter().next()));
    let found = Finding {
        severity: Severity::Warning,
        confidence: Confidence::Low,
        scope: Scope::Host,
        title: format!(
            "processors stop taking packets before they are done: {}",
            words::grown(all)
        ),
        why: "packets are dropped meanwhile; with a larger budget more are taken at a time."
            .to_owned(),
        not: "not that the budget is the cause: a processor without time left stops the same way"
            .to_owned(),
        evidence,
        fixes: ["net.core.netdev_budget", "net.core.netdev_budget_usecs"]
            .into_iter()
            .filter_map(|key| twice(seen, key))
            .collect(),
        ..Finding::default()
    };
    Ok(vec![found.all_together()])
}

fn twice(seen: &Seen<'_>, key: &str) -> Option<Fix> {
    let now = seen.number(key).ok().flatten().filter(|now| *now > 0)?;
    Some(words::set(
        seen,
        key,
        &now.saturating_mul(2),
        "let a processor take more at a time",
        words::AT_ONCE,
        "programs on it wait longer; it is one value for the whole host",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, link};
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Softnet};

    fn squeezed(by: u32, drops: u32) -> Snapshot {
        let settings =
            [("net.core.netdev_budget", "300"), ("net.core.netdev_budget_usecs", "8000")];
        each_look(host(&settings), |nth, look| {
            let nth = nth as u32;
            look.softnet = Some(vec![Softnet {
                time_squeeze: 5 + by * nth,
                dropped: drops * nth,
                ..Softnet::default()
            }]);
            look.links = Some(vec![link("eth0")]);
        })
    }

    #[test]
    fn a_budget_that_runs_out_while_packets_drop_is_told() {
        insta::assert_snapshot!(shown(&CHECK, &squeezed(500, 7)));
    }

    #[test]
    fn ten_a_second_or_no_drops_are_nothing() {
        assert_eq!(judged(&CHECK, &squeezed(100, 7)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &squeezed(101, 7)).expect("seen").len(), 1);
        assert_eq!(judged(&CHECK, &squeezed(500, 0)), Ok(Vec::new()));
    }

    #[test]
    fn without_softnet_stat_interfaces_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Softnet);
        assert_eq!(missing(&CHECK, &once(squeezed(500, 7))).source, Source::SecondLook);
        let mut unseen = squeezed(500, 7);
        unseen.looks[1].links = None;
        assert_eq!(missing(&CHECK, &unseen).source, Source::Links);
    }
}
