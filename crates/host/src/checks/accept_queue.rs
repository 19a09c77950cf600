//! Connections wait to be accepted, or were dropped because the queue for that was full.
//!
//! # What it says
//! A connection whose handshake is complete waits in its listener's accept queue until the program calls
//! `accept`. When the queue is full the kernel drops the client's SYN or its last ACK, and the client
//! tries again after a second or more: slow requests without any packet lost on the path.
//!
//! # How we know
//! The listener's own count of drops grew (`SK_MEMINFO_DROPS`) and `ListenDrops` with it, or its queue holds at least three
//! quarters of what it may in every look. Each listener counts for itself, whatever the cause: ACKs that
//! `TCP_DEFER_ACCEPT` waits past (`TCPDeferAcceptDrop`) are taken off, and while `ListenOverflows` stands still no accept
//! queue was full, and its drops had another one (memory, the route back, the queue of SYNs). Where `ListenOverflows` alone
//! was seen, no listener is named.
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
//! `tcp_v4_syn_recv_sock`, `tcp_listendrop`, `tcp_check_req` (v6.1). Three quarters: ours, not measured.

use core::cmp::Reverse;
use core::fmt::Write as _;
use core::net::SocketAddr;
use std::collections::BTreeMap;

use super::{Check, counters, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Seen};
use crate::snapshot::Listener;

pub(super) const CHECK: Check = Check {
    code: "ACCEPT_QUEUE",
    file: include_str!("accept_queue.rs"),
    group: Group::Connecting,
    judge,
};

type Earlier<'a> = BTreeMap<(SocketAddr, u64), &'a Listener>;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let first = seen.before.and_then(|look| look.listeners.as_ref());
    let earlier: Option<Earlier<'_>> =
        first.map(|all| all.iter().map(|listener| (key(listener), listener)).collect());
    let listeners = match (seen.listeners(), of_counters(seen)) {
        (Err(_), Some(found)) => return Ok(vec![found]),
        (listeners, _) => listeners?,
    };
    let mut found: Vec<(u64, Finding)> = listeners
        .iter()
        .filter_map(|listener| of_listener(seen, listener, earlier.as_ref()))
        .collect();
    if found.is_empty() {
        return Ok(of_counters(seen).into_iter().collect());
    }
    found.sort_by_key(|(drops, _)| Reverse(*drops));
    let more = found.len().saturating_sub(words::WORST);
    found.truncate(words::WORST);
    if let Some((_, worst)) = found.first_mut().filter(|_| more > 0) {
        let _ = write!(worst.why, " {} more are so.", words::count(more as u64, "listener"));
    }
    Ok(found.into_iter().map(|(_, finding)| finding).collect())
}

/// A queue was full, and the listener is not known: sockets were not seen, or it is gone.
fn of_counters(seen: &Seen<'_>) -> Option<Finding> {
    let full = grew(seen, "ListenOverflows").filter(|full| full.by > 0)?;
    Some(Finding {
        severity: counters::severity(full, Severity::Warning),
        confidence: words::sure(full).min(Confidence::Medium),
        scope: Scope::Netns,
        title: format!("an accept queue was full: {}", words::grown(full)),
        why: format!("a program accepted slower than its clients came; {LATER}"),
        not: "not which listener: the counter is that of all".to_owned(),
        evidence: vec![words::counter(counters::TCP_EXT, "ListenOverflows", full)],
        fixes: vec![words::advise(
            "look with `ss -ltn` for the listener whose Recv-Q is near its Send-Q, and why its program does not accept",
            "",
        )],
        unseen: seen.listeners().err().iter().map(ToString::to_string).collect(),
        ..Finding::default()
    })
}

fn of_listener(
    seen: &Seen<'_>,
    listener: &Listener,
    earlier: Option<&Earlier<'_>>,
) -> Option<(u64, Finding)> {
    let then = earlier.and_then(|all| all.get(&key(listener)));
    let dropped = dropped(seen, listener, earlier).filter(|growth| growth.by > 0);
    let is_full = is_filling(listener)
        && (seen.before.is_none() || then.is_some_and(|then| is_filling(then)));
    let total = grew(seen, "ListenOverflows");
    // Where no accept queue was full the listener dropped for another reason.
    let is_other = !is_full && total.is_some_and(|total| total.by == 0);
    if (dropped.is_none() && !is_full) || (is_other && of_syn_queue(seen)) {
        return None;
    }
    let who = words::program(seen, listener.owner);
    let (queue, most) = (listener.accept_queue, listener.accept_max);
    let mut evidence = vec![Evidence::new(
        format!("ss -ltn 'sport = :{}'", listener.local.port()),
        format!("Recv-Q {queue} Send-Q {most}"),
    )];
    evidence.extend(dropped.map(|drops| Evidence::new("ss -ltm, skmem d", words::grown(drops))));
    evidence.extend(total.map(|total| words::counter("TcpExt", "ListenOverflows", total)));
    let title = match dropped {
        Some(drops) => {
            format!("{who} drops connections on {}: {}", listener.local, words::grown(drops))
        }
        None => format!("{queue} connections wait for {who} to accept them on {}", listener.local),
    };
    let finding = Finding {
        severity: dropped.map_or(Severity::Warning, words::of_drops),
        confidence: dropped.map_or(Confidence::Medium, words::sure),
        scope: Scope::Listener(listener.local.to_string()),
        title,
        why: why(listener, is_other),
        not: if is_other {
            "not that the program is slow to accept: its queue had room"
        } else {
            "not that the backlog is too small: a program that accepts slowly fills any queue"
        }
        .to_owned(),
        evidence,
        fixes: if is_other { vec![other_reasons()] } else { fixes(seen, listener, &who) },
        ..Finding::default()
    };
    Some((dropped.map_or(0, |drops| drops.by), finding))
}

const LATER: &str =
    "a client whose SYN or last ACK is dropped tries again after a second, then two, then four.";

fn why(listener: &Listener, is_other: bool) -> String {
    if is_other {
        return format!(
            "no accept queue was full meanwhile: SYNs or ACKs were dropped for want of memory, of a route back, or of \
             room for new peers while SYN cookies are off; {LATER}"
        );
    }
    format!(
        "its accept queue holds {} and may hold {}; {LATER}",
        listener.accept_queue,
        listener.accept_max.saturating_add(1)
    )
}

fn other_reasons() -> Fix {
    words::advise(
        "look at net.ipv4.tcp_syncookies and tcp_max_syn_backlog, at free memory, and at the route back to the clients",
        "",
    )
}

/// SYNs were dropped because their own queue was full: `SYN_QUEUE` tells it.
fn of_syn_queue(seen: &Seen<'_>) -> bool {
    grew(seen, "TCPReqQFullDrop").is_some_and(|growth| growth.by > 0)
}

fn grew(seen: &Seen<'_>, name: &str) -> Option<Growth> {
    seen.growth(counters::TCP_EXT, name).ok().flatten()
}

/// Drops of this listener that delayed or refused a connection, as far as that is sure; those of one that was not
/// there before count from its start. Its own count has ACKs that it waits past, too; `tcp_listendrop` counts all
/// others in `ListenDrops`.
fn dropped(seen: &Seen<'_>, listener: &Listener, earlier: Option<&Earlier<'_>>) -> Option<Growth> {
    let before =
        earlier.map(|all| all.get(&key(listener)).and_then(|then| then.drops).unwrap_or(0));
    let all = seen.growth_of(u64::from(listener.drops?), before.map(u64::from))?;
    let deferred = grew(seen, "TCPDeferAcceptDrop").map_or(0, |deferred| deferred.by);
    let most = grew(seen, "ListenDrops").map_or(u64::MAX, |drops| drops.by);
    Some(Growth { by: all.by.saturating_sub(deferred).min(most), ..all })
}

const fn key(listener: &Listener) -> (SocketAddr, u64) {
    (listener.local, listener.inode)
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
    use crate::snapshot::{Snapshot, Source};

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
    fn drops_while_no_accept_queue_was_full_had_another_reason() {
        let dropping = || listening(listener(0, 128, 3), listener(0, 128, 40));
        let host = counted(dropping(), "TcpExt", "ListenOverflows", [150, 150]);
        let found = judged(&CHECK, &host).expect("seen");
        assert!(found[0].why.contains("no accept queue was full"), "{}", found[0].why);
        let syns = counted(host, "TcpExt", "TCPReqQFullDrop", [0, 37]);
        assert_eq!(judged(&CHECK, &syns), Ok(Vec::new()));
    }

    #[test]
    fn acks_that_a_deferring_listener_waits_past_are_no_drops() {
        let number = |deferred: i64| {
            let host = listening(listener(0, 128, 3), listener(0, 128, 40));
            let host = counted(host, "TcpExt", "ListenOverflows", [5, 6]);
            let host = counted(host, "TcpExt", "TCPDeferAcceptDrop", [1, 1 + deferred]);
            let found = judged(&CHECK, &counted(host, "TcpExt", "ListenDrops", [5, 6]));
            found.expect("seen")[0].scope.clone()
        };
        assert_eq!(number(36), Scope::Listener("0.0.0.0:80".to_owned()));
        assert_eq!(number(37), Scope::Netns);
        let still = listening(listener(0, 128, 3), listener(0, 128, 40));
        let still = counted(still, "TcpExt", "ListenDrops", [5, 5]);
        assert_eq!(judged(&CHECK, &still), Ok(Vec::new()));
    }

    #[test]
    fn a_counter_alone_names_no_listener_and_asks_for_them() {
        let of = |to| counted(host(&[]), "TcpExt", "ListenOverflows", [5, to]);
        insta::assert_snapshot!(shown(&CHECK, &of(9)));
        let found = judged(&CHECK, &once(of(9))).expect("seen");
        assert_eq!(found[0].confidence, Confidence::Low);
        assert_eq!(missing(&CHECK, &of(5)).source, Source::Sockets);
    }

    #[test]
    fn of_many_listeners_five_are_told_and_the_others_counted() {
        let mut host = listening(listener(9, 9, 0), listener(9, 9, 0));
        for look in &mut host.looks {
            look.listeners =
                Some((1..=8).map(|inode| Listener { inode, ..listener(9, 9, 0) }).collect());
        }
        let found = judged(&CHECK, &host).expect("seen");
        assert_eq!(found.len(), 5);
        assert!(found[0].why.ends_with("3 listeners more are so."), "{}", found[0].why);
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
