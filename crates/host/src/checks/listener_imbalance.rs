//! Of several listeners on one port one is full while the others are empty.
//!
//! # What it says
//! With `SO_REUSEPORT` each worker has a listener of its own and the kernel deals connections out by a hash, whether or not the
//! worker is busy. One that is stuck keeps its share of the clients waiting.
//!
//! # How we know
//! Of the listeners on one address one holds at least three quarters of what it may, in every look, and most of the others less than
//! a quarter.
//!
//! # What it is not
//! Not too little capacity: the others have room.
//!
//! # What to do
//! Look at what that worker does. `tcp_migrate_req=1` hands the queue of a listener that closes to the others (Linux 5.14), which
//! helps when it is started anew.
//!
//! # Sources
//! Linux `reuseport_select_sock`, `reuseport_migrate_sock` (v6.1, `net/core/sock_reuseport.c`). Quarters: ours, not measured.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};
use crate::snapshot::Listener;

pub(super) const CHECK: Check = Check {
    code: "LISTENER_IMBALANCE",
    file: include_str!("listener_imbalance.rs"),
    group: Group::Connecting,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut groups: BTreeMap<SocketAddr, Vec<&Listener>> = BTreeMap::new();
    for listener in seen.listeners()? {
        groups.entry(listener.local).or_default().push(listener);
    }
    let earlier: BTreeMap<u64, &Listener> = seen
        .before
        .and_then(|look| look.listeners.as_ref())
        .into_iter()
        .flatten()
        .map(|listener| (listener.inode, listener))
        .collect();
    let stays_full = |listener: &Listener| {
        is_full(listener)
            && (seen.before.is_none()
                || earlier.get(&listener.inode).is_some_and(|then| is_full(then)))
    };
    let found =
        groups.into_iter().filter(|(_, group)| group.len() > 1).filter_map(|(local, group)| {
            let full = group.iter().find(|listener| stays_full(listener))?;
            let empty = group.iter().filter(|listener| is_empty(listener)).count();
            (empty * 2 >= group.len()).then(|| finding(seen, local, full, &group, empty))
        });
    Ok(found.take(words::WORST).collect())
}

/// A queue of less than four fills by one connection and tells nothing.
fn is_full(listener: &Listener) -> bool {
    listener.accept_queue >= 3
        && u64::from(listener.accept_queue) * 4 >= u64::from(listener.accept_max) * 3
}

fn is_empty(listener: &Listener) -> bool {
    u64::from(listener.accept_queue) * 4 < u64::from(listener.accept_max).max(1)
}

fn finding(
    seen: &Seen<'_>,
    local: SocketAddr,
    full: &Listener,
    group: &[&Listener],
    empty: usize,
) -> Finding {
    const KEY: &str = "net.ipv4.tcp_migrate_req";
    let who = words::program(seen, full.owner);
    let mut fixes =
        vec![words::advise(format!("look at what {who} does: its stack, its locks, its disk"), "")];
    if seen.number(KEY).ok().flatten() == Some(0) {
        fixes.push(words::set(
            seen,
            KEY,
            &1,
            "let the others take over the queue of a worker that is started anew",
            words::AT_ONCE,
            "workers that treat connections differently get those of others",
        ));
    }
    Finding {
        severity: Severity::Warning,
        confidence: if seen.before.is_some() { Confidence::High } else { Confidence::Low },
        scope: Scope::Listener(local.to_string()),
        title: format!(
            "one of {} listeners on {local} is full, {empty} are not: {who}",
            group.len()
        ),
        why: format!(
            "the kernel deals connections out by a hash, so one of {} clients waits for {who} while others have room.",
            group.len()
        ),
        not: "not too little capacity: the others have room".to_owned(),
        evidence: vec![Evidence::new(
            format!("ss -ltnp 'sport = :{}'", local.port()),
            format!("Recv-Q {} Send-Q {} of {who}", full.accept_queue, full.accept_max),
        )],
        fixes,
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{host, judged, listener, missing, shown};
    use super::*;
    use crate::snapshot::{Snapshot, Source};

    fn workers(before: &[u32], now: &[u32]) -> Snapshot {
        each_look(host(&[("net.ipv4.tcp_migrate_req", "0")]), |nth, look| {
            let queues = if nth == 0 { before } else { now };
            let each = (1..)
                .zip(queues)
                .map(|(inode, queue)| Listener { inode, ..listener(*queue, 100, 0) });
            look.listeners = Some(each.collect());
        })
    }

    #[test]
    fn one_worker_that_is_stuck_is_told() {
        insta::assert_snapshot!(shown(&CHECK, &workers(&[0, 75, 0, 0], &[0, 101, 3, 0])));
    }

    #[test]
    fn all_full_one_alone_or_one_that_empties_are_nothing() {
        assert_eq!(judged(&CHECK, &workers(&[101, 101, 101], &[101, 101, 101])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &workers(&[101], &[101])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &workers(&[0, 74], &[0, 101])), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &workers(&[25, 101], &[24, 101])).expect("seen").len(), 1);
        assert_eq!(judged(&CHECK, &workers(&[25, 101], &[25, 101])), Ok(Vec::new()));
    }

    #[test]
    fn without_listeners_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
