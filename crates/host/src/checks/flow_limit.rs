//! Packets of large flows were dropped from a backlog to leave room for small ones.
//!
//! # What it says
//! Where a flow limit is set for processors (`flow_limit_cpu_bitmap`), a flow that makes up more than half of the last packets is
//! dropped from a backlog that is half full: the large transfer slows down.
//!
//! # How we know
//! The flow limit's count in `/proc/net/softnet_stat` grew.
//!
//! # What it is not
//! Not a fault: someone chose it to protect small flows.
//!
//! # What to do
//! Spread the load (`ONE_CPU`), lengthen `net.core.netdev_max_backlog`, or clear the bitmap.
//!
//! # Sources
//! Linux `skb_flow_limit` (v6.1, `net/core/dev.c`); Documentation/networking/scaling.rst.

use super::backlog_drops::dropped;
use super::{Check, words};
use crate::finding::{Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Seen};

pub(super) const CHECK: Check =
    Check { code: "FLOW_LIMIT", file: include_str!("flow_limit.rs"), group: Group::Host, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let limited = dropped(seen, |row| row.flow_limit)?;
    let Some((_, first)) = limited.first() else { return Ok(Vec::new()) };
    let all = Growth { by: limited.iter().map(|(_, growth)| growth.by).sum(), ..*first };
    let mut evidence =
        vec![Evidence::new("/proc/net/softnet_stat column 11, all processors", words::grown(all))];
    let bitmap = seen.setting("net.core.flow_limit_cpu_bitmap").ok().flatten();
    evidence.extend(bitmap.map(|bitmap| words::setting("net.core.flow_limit_cpu_bitmap", &bitmap)));
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: words::sure(all),
        scope: Scope::Host,
        title: format!("packets of large flows were dropped by the flow limit: {}", words::grown(all)),
        why: "a flow with more than half of the last packets loses some when a backlog is half full: its transfer slows down."
            .to_owned(),
        not: "not a fault: it protects small flows, and someone switched it on".to_owned(),
        evidence,
        fixes: vec![words::advise("spread packets over more processors, or clear flow_limit_cpu_bitmap", "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Softnet, Source};

    fn limited(counts: [Option<u32>; 2]) -> Snapshot {
        each_look(host(&[("net.core.flow_limit_cpu_bitmap", "f")]), |nth, look| {
            look.softnet =
                Some(vec![Softnet { flow_limit: counts[nth as usize], ..Softnet::default() }]);
        })
    }

    #[test]
    fn drops_of_large_flows_are_told() {
        insta::assert_snapshot!(shown(&CHECK, &limited([Some(4), Some(9)])));
    }

    #[test]
    fn a_count_that_stands_still_and_a_kernel_without_it_are_well() {
        assert_eq!(judged(&CHECK, &limited([Some(9), Some(9)])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &limited([None, None])), Ok(Vec::new()));
    }

    #[test]
    fn without_softnet_stat_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Softnet);
    }
}
