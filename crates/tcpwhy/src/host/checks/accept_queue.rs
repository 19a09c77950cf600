//! Connections wait to be accepted, or were dropped because the queue for that was full.
//!
//! # What it says
//! A connection whose handshake is complete waits in its listener's accept queue until the program calls
//! `accept`. When the queue is full the kernel drops the client's SYN or its last ACK, and the client
//! tries again after a second or more: slow requests without any packet lost on the path.
//!
//! # How we know
//! The listener's own count of drops grew (`SK_MEMINFO_DROPS`), or its queue holds at least three quarters of
//! what it may in every look. Each listener counts for itself; `ListenDrops` counts for all of them and other
//! causes too, so it is shown and never judged alone.
//!
//! # What it is not
//! Not that the backlog is too small: a program that accepts slowly fills any queue. SYN cookies do not
//! help here: since Linux 4.10 the SYN is dropped before they are thought of.
//!
//! # What to do
//! Find out first why the program does not accept: its threads, its processor, its descriptors. Then let
//! it ask for a larger backlog, with `net.core.somaxconn` at least as large; both count only when it calls
//! `listen` again. A deep queue holds requests whose clients have long given up.
//!
//! # Sources
//! Linux `sk_acceptq_is_full` (full when the queue is longer than its limit), `tcp_conn_request`,
//! `tcp_v4_syn_recv_sock`, `tcp_listendrop` (v6.1). Three quarters: ours, not measured.

use super::{Check, words};
use crate::host::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::host::seen::{Asked, Growth, Seen};
use crate::host::snapshot::{Listener, Look};

pub(super) const CHECK: Check = Check {
    code: "ACCEPT_QUEUE",
    file: include_str!("accept_queue.rs"),
    group: Group::Connecting,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let found = seen.listeners()?.iter().filter_map(|listener| of_listener(seen, listener));
    Ok(found.collect())
}

fn of_listener(seen: &Seen<'_>, listener: &Listener) -> Option<Finding> {
    let dropped = dropped(seen, listener).filter(|growth| growth.by > 0);
    let is_full = is_filling(listener)
        && seen.before.is_none_or(|look| same(look, listener).is_some_and(is_filling));
    if dropped.is_none() && !is_full {
        return None;
    }
    let who = words::program(seen, listener.owner);
    let (queue, most) = (listener.accept_queue, listener.accept_max);
    let mut evidence = vec![Evidence::new(
        format!("ss -ltn 'sport = :{}'", listener.local.port()),
        format!("Recv-Q {queue} Send-Q {most}"),
    )];
    evidence.extend(dropped.map(|drops| Evidence::new("ss -ltm, skmem d", words::grown(drops))));
    let total = seen.growth("TcpExt", "ListenOverflows").ok().flatten();
    evidence.extend(total.map(|total| words::counter("TcpExt", "ListenOverflows", total)));
    let title = match dropped {
        Some(drops) => {
            format!("{who} drops connections on {}: {}", listener.local, words::grown(drops))
        }
        None => format!("{queue} connections wait for {who} to accept them on {}", listener.local),
    };
    Some(Finding {
        severity: if dropped.is_some_and(|drops| !drops.since_start) {
            Severity::Error
        } else {
            Severity::Warning
        },
        confidence: dropped.map_or(Confidence::Medium, words::sure),
        scope: Scope::Listener(listener.local.to_string()),
        title,
        why: format!(
            "its accept queue holds {queue} and may hold {}; a client whose SYN or last ACK is dropped tries \
             again after a second, then two, then four.",
            most.saturating_add(1)
        ),
        not: "not that the backlog is too small: a program that accepts slowly fills any queue"
            .to_owned(),
        evidence,
        fixes: fixes(seen, listener, &who),
        ..Finding::default()
    })
}

/// Drops of this listener; those of one that was not there before count from its start.
fn dropped(seen: &Seen<'_>, listener: &Listener) -> Option<Growth> {
    let before =
        seen.before.map(|look| same(look, listener).and_then(|then| then.drops).unwrap_or(0));
    seen.growth_of(u64::from(listener.drops?), before.map(u64::from))
}

fn same<'a>(look: &'a Look, listener: &Listener) -> Option<&'a Listener> {
    let key = |each: &Listener| (each.local, each.inode);
    look.listeners.as_ref()?.iter().find(|each| key(each) == key(listener))
}

/// Three quarters. A queue of less than four fills by one connection and tells nothing.
fn is_filling(listener: &Listener) -> bool {
    listener.accept_queue >= 3
        && u64::from(listener.accept_queue) * 4 >= u64::from(listener.accept_max) * 3
}

fn fixes(seen: &Seen<'_>, listener: &Listener, who: &str) -> Vec<Fix> {
    let mut fixes = vec![words::advise(
        format!(
            "find out why {who} does not accept: its threads, its processor time, its descriptors"
        ),
        "",
    )];
    let most = seen.number("net.core.somaxconn").ok().flatten();
    let larger = u64::from(listener.accept_max).saturating_mul(4).min(LARGEST);
    let larger = larger.max(DEFAULT);
    if most.is_some_and(|most| most >= 0 && most.unsigned_abs() < larger) {
        fixes.push(words::set(
            seen,
            "net.core.somaxconn",
            &larger,
            format!("allow longer queues, and have {who} ask for one"),
            words::NEW_LISTENERS,
            "requests wait longer in a deep queue, some until their clients have given up",
        ));
    } else {
        fixes.push(words::advise(
            format!("have {who} ask for a longer queue: listen(fd, {larger})"),
            "requests wait longer in a deep queue, some until their clients have given up",
        ));
    }
    fixes
}

/// The kernel's default of `somaxconn` since Linux 5.4.
const DEFAULT: u64 = 4096;
/// The most that we propose. Ours, not measured.
const LARGEST: u64 = 65_535;

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, listener, missing, once, shown};
    use super::*;
    use crate::host::snapshot::{Snapshot, Source};

    fn listening(before: Listener, now: Listener) -> Snapshot {
        let mut host = host(&[("net.core.somaxconn", "128")]);
        host.looks[0].listeners = Some(vec![before]);
        host.looks[1].listeners = Some(vec![now]);
        host
    }

    #[test]
    fn drops_of_a_listener_are_its_own_and_an_error() {
        let host = listening(listener(129, 128, 3), listener(129, 128, 40));
        let host = counted(host, "TcpExt", "ListenOverflows", [100, 150]);
        insta::assert_snapshot!(shown(&CHECK, &host));
    }

    #[test]
    fn drops_of_before_the_first_look_and_a_queue_that_empties_are_nothing() {
        let host = listening(listener(129, 128, 40), listener(0, 128, 40));
        assert_eq!(judged(&CHECK, &host), Ok(Vec::new()));
    }

    #[test]
    fn a_queue_that_stays_at_three_quarters_is_a_warning_and_below_it_is_not() {
        let at = |queue| listening(listener(queue, 128, 0), listener(queue, 128, 0));
        let found = judged(&CHECK, &at(96)).expect("seen");
        assert_eq!(found[0].severity, Severity::Warning);
        assert_eq!(judged(&CHECK, &at(95)), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &listening(listener(0, 128, 0), listener(96, 128, 0))),
            Ok(Vec::new())
        );
    }

    #[test]
    fn one_look_tells_of_drops_at_some_time() {
        let found =
            judged(&CHECK, &once(listening(listener(0, 9, 0), listener(0, 9, 3)))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
