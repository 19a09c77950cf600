//! Hosts to test checks with.

use std::collections::BTreeMap;

use super::Check;
use crate::finding::{Evidence, Finding};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Listener, Look, Settings, Snapshot};

/// A host that was looked at twice, ten seconds apart, with these settings, and no others.
pub(super) fn host(settings: &[(&str, &str)]) -> Snapshot {
    let values = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let look = |t_ns| Look { t_ns: Some(t_ns), uptime_ns: Some(t_ns), ..Look::default() };
    Snapshot {
        settings: Some(Settings {
            complete: true,
            values: values.collect(),
            ..Settings::default()
        }),
        looks: vec![look(1_000_000_000), look(11_000_000_000)],
        ..Snapshot::default()
    }
}

/// The same with a counter that went from one value to another.
pub(super) fn counted(
    mut snapshot: Snapshot,
    group: &str,
    name: &str,
    from_to: [i64; 2],
) -> Snapshot {
    for (look, value) in snapshot.looks.iter_mut().zip(from_to) {
        let counters = look.counters.get_or_insert_default();
        counters.entry(group.to_owned()).or_default().insert(name.to_owned(), value);
    }
    snapshot
}

/// The same where only some counters were pasted.
pub(super) fn cut(mut snapshot: Snapshot) -> Snapshot {
    snapshot.looks.iter_mut().for_each(|look| look.counters_cut = true);
    snapshot
}

/// The same seen once only.
pub(super) fn once(mut snapshot: Snapshot) -> Snapshot {
    snapshot.looks.remove(0);
    snapshot
}

/// A listener on port 80.
pub(super) fn listener(accept_queue: u32, accept_max: u32, drops: u32) -> Listener {
    let local = "0.0.0.0:80".parse().expect("an address");
    Listener {
        local,
        accept_queue,
        accept_max,
        drops: Some(drops),
        inode: 7,
        inode_unseen: false,
        owner: None,
    }
}

/// What a check says of a host.
pub(super) fn judged(check: &Check, snapshot: &Snapshot) -> Asked<Vec<Finding>> {
    (check.judge)(&Seen::new(snapshot).expect("a look"))
}

/// The findings as a reader sees them, for snapshots.
pub(super) fn shown(check: &Check, snapshot: &Snapshot) -> String {
    let found = judged(check, snapshot).expect("all was seen");
    let evidence = |all: &[Evidence]| -> BTreeMap<String, String> {
        all.iter().map(|each| (each.source.clone(), each.value.clone())).collect()
    };
    let each = found.iter().map(|found| {
        format!(
            "{:?} {:?} {:?}: {}\nwhy: {}\nnot: {}\nseen: {:?}\nfixes: {:#?}\n",
            found.severity,
            found.confidence,
            found.scope,
            found.title,
            found.why,
            found.not,
            evidence(&found.evidence),
            found.fixes
        )
    });
    each.collect()
}

/// What was missing for a check.
pub(super) fn missing(check: &Check, snapshot: &Snapshot) -> Missing {
    judged(check, snapshot).expect_err("not seen")
}
