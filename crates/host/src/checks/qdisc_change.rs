//! Another root queueing discipline in the place of one, so that it can be taken back.

use super::devices::{has_children, tc_words};
use super::words;
use crate::finding::{Change, Fix};
use crate::seen::Seen;
use crate::snapshot::Qdisc;

/// It sends in the order in which packets came, whosever they are. `pfifo_fast` has three such bands.
pub(super) fn is_fifo(qdisc: &Qdisc) -> bool {
    matches!(qdisc.kind.as_str(), "pfifo_fast" | "pfifo" | "bfifo" | "pfifo_head_drop")
}

/// `fq_codel` for a FIFO.
pub(super) fn keep_flows_apart(seen: &Seen<'_>, root: &Qdisc) -> Option<Fix> {
    let set = is_fifo(root).then(|| replace(seen, root, "fq_codel")).flatten()?;
    Some(Fix {
        what: format!("keep flows apart on {}: fq_codel instead of {}", root.dev, root.kind),
        risk: "some processor time for each packet; what waits in the old queue is lost".to_owned(),
        set: Some(set),
        applies: words::AT_ONCE.to_owned(),
    })
}

/// The kernel does not tell by which table netem spreads a jitter (`netem_dump`, Linux v6.1 `net/sched/sch_netem.c`).
fn is_wholly_read(root: &Qdisc) -> bool {
    let has_jitter = || root.options.get("delay").is_some_and(|delay| delay.contains(' '));
    !(root.partly_read || root.kind == "netem" && has_jitter())
}

/// None at all, so that the kernel's default for this interface comes back.
pub(super) fn remove(seen: &Seen<'_>, root: &Qdisc) -> Option<Change> {
    replace(seen, root, "")
}

/// `None` where classes and filters would be lost, or what was there could not be put back.
fn replace(seen: &Seen<'_>, root: &Qdisc, to: &str) -> Option<Change> {
    (!has_children(seen, root) && is_wholly_read(root)).then(|| Change::Qdisc {
        dev: root.dev.clone(),
        from: tc_words(root),
        handle: root.handle,
        to: to.to_owned(),
    })
}
