//! SYNs found the queue of half-open connections full.
//!
//! # What it says
//! A listener remembers each SYN until the handshake is complete. When as many are remembered as its accept
//! queue may hold, the kernel drops the next SYN, or answers it with a cookie and remembers nothing.
//!
//! # How we know
//! `TCPReqQFullDrop` (dropped) or `TCPReqQFullDoCookies` (cookie) grew; the latter counts every SYN with `tcp_syncookies=2`
//! and is not looked at then. The half-open connections of each
//! listener are counted beside it. The kernel's log says so once for each listener.
//!
//! # What it is not
//! Not an attack for certain: clients whose last ACK is lost, or a backlog that is too small for a distant crowd,
//! fill the queue too. `tcp_max_syn_backlog` is not its limit while SYN cookies are on.
//!
//! # What to do
//! Give the listener a longer backlog, and `net.core.somaxconn` the same room. Leave SYN cookies at 1: a cookie
//! is better than a drop.
//!
//! # Sources
//! Linux `inet_csk_reqsk_queue_is_full`, `tcp_syn_flood_action`, `tcp_conn_request` (v6.12,
//! `net/ipv4/tcp_input.c`).

use std::collections::BTreeMap;

use super::{Check, counters, kernel_log, words};
use crate::finding::{Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Growth, Seen};
use crate::snapshot::{Event, Listener, State};

pub(super) const CHECK: Check = Check {
    code: "SYN_QUEUE",
    file: include_str!("syn_queue.rs"),
    group: Group::Connecting,
    judge,
};

const COOKIES: &str = "net.ipv4.tcp_syncookies";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    kernel_log::beside(seen, Event::SynQueueFull, counted(seen), |said| {
        Finding {
        scope: Scope::Netns,
        title: format!("the kernel says that the queue of SYNs was full on {}", kernel_log::whose(said)),
        why: "it says so once for each listener: a client whose SYN was dropped tries again after a second; one that \
              got a cookie may lose window scaling and SACK."
            .to_owned(),
        fixes: fixes(seen, &[], false),
        ..Finding::default()
    }
    })
}

fn counted(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let grown = counters::grown(seen, &["TCPReqQFullDrop", "TCPReqQFullDoCookies"])?;
    let of = |name| grown.iter().find(|(each, _)| *each == name).map(|(_, growth)| *growth);
    let dropped: Option<Growth> = of("TCPReqQFullDrop");
    // With 2 each SYN is counted there, whether or not the queue is full.
    let always = seen.number(COOKIES).ok().flatten() == Some(2);
    let cookies: Option<Growth> = of("TCPReqQFullDoCookies").filter(|_| !always);
    let Some(growth) = dropped.or(cookies) else { return Ok(Vec::new()) };
    let mut evidence: Vec<Evidence> = Vec::new();
    evidence.extend(dropped.map(|grown| words::counter("TcpExt", "TCPReqQFullDrop", grown)));
    evidence.extend(cookies.map(|grown| words::counter("TcpExt", "TCPReqQFullDoCookies", grown)));
    let fullest = fullest(seen);
    evidence.extend(fullest.iter().map(|(listener, half_open)| {
        Evidence::new(
            format!("ss -tn state syn-recv 'sport = :{}'", listener.local.port()),
            format!("{half_open} half-open, {} may be", listener.accept_max.saturating_add(1)),
        )
    }));
    let title = match dropped {
        Some(grown) => format!("SYNs are dropped, their queue is full: {}", words::grown(grown)),
        None => {
            format!("SYNs are answered with cookies, their queue is full: {}", words::grown(growth))
        }
    };
    Ok(vec![Finding {
        severity: dropped.map_or(Severity::Warning, words::of_drops),
        confidence: words::sure(growth),
        scope: Scope::Netns,
        title,
        why: "a listener remembers no more half-open connections than its accept queue may hold. A client \
              whose SYN is dropped tries again after a second; one that got a cookie may lose window \
              scaling and SACK."
            .to_owned(),
        not: "not whether it is an attack, lost ACKs or a crowd of distant clients".to_owned(),
        evidence,
        fixes: fixes(seen, &fullest, dropped.is_some()),
        unseen: seen.sockets().err().map(|missing| missing.to_string()).into_iter().collect(),
        ..Finding::default()
    }])
}

/// Listeners with half-open connections, those with the most first.
fn fullest<'a>(seen: &Seen<'a>) -> Vec<(&'a Listener, u64)> {
    let mut half_open: BTreeMap<u16, u64> = BTreeMap::new();
    for socket in seen.sockets().unwrap_or_default() {
        if socket.state == State::SynRecv {
            *half_open.entry(socket.local.port()).or_default() += 1;
        }
    }
    let listeners = seen.listeners().unwrap_or_default().iter();
    let mut all: Vec<_> = listeners
        .filter_map(|listener| Some((listener, *half_open.get(&listener.local.port())?)))
        .collect();
    all.sort_by_key(|(listener, count)| (core::cmp::Reverse(*count), listener.local));
    all.truncate(words::WORST);
    all
}

fn fixes(seen: &Seen<'_>, fullest: &[(&Listener, u64)], are_dropped: bool) -> Vec<Fix> {
    let mut fixes = Vec::new();
    if are_dropped && seen.number(COOKIES).ok().flatten() == Some(0) {
        fixes.push(words::set(
            seen,
            COOKIES,
            &1,
            "answer with cookies instead of dropping",
            words::AT_ONCE,
            "a connection made from a cookie has fewer options when the client sends no timestamps",
        ));
    }
    let most = seen.number("net.core.somaxconn").ok().flatten();
    if most.is_some_and(|most| most < DEFAULT) {
        fixes.push(words::set(
            seen,
            "net.core.somaxconn",
            &DEFAULT,
            "allow longer queues, and have the program ask for one",
            words::NEW_LISTENERS,
            "more memory while a flood of SYNs lasts",
        ));
    }
    let whose = fullest.first().map_or_else(
        || "the program".to_owned(),
        |(listener, _)| words::program(seen, listener.owner),
    );
    fixes.push(words::advise(
        format!("have {whose} ask for a longer queue: listen(fd, {DEFAULT})"),
        "more memory while a flood of SYNs lasts",
    ));
    fixes
}

/// The kernel's default of `somaxconn` since Linux 5.4.
const DEFAULT: i64 = 4096;

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, peers, socket};
    use super::super::sample::{counted, host, judged, listener, missing, once, shown};
    use super::*;
    use crate::finding::Confidence;
    use crate::snapshot::{Snapshot, Source};

    fn counters(dropped: [i64; 2], cookies: [i64; 2]) -> Snapshot {
        let settings = [("net.core.somaxconn", "128"), ("net.ipv4.tcp_syncookies", "0")];
        let host = counted(host(&settings), "TcpExt", "TCPReqQFullDrop", dropped);
        counted(host, "TcpExt", "TCPReqQFullDoCookies", cookies)
    }

    #[test]
    fn dropped_syns_are_told_with_the_listener_that_has_most_half_open_connections() {
        let host = each_look(counters([7, 60], [0, 0]), |_, look| {
            look.listeners = Some(vec![listener(0, 128, 0)]);
            look.sockets = Some(peers(129, |peer| socket(State::SynRecv, "10.0.0.1:80", &peer)));
        });
        insta::assert_snapshot!(shown(&CHECK, &host));
    }

    #[test]
    fn cookies_are_a_warning_and_one_look_tells_of_some_time() {
        let found = judged(&CHECK, &counters([7, 7], [0, 1])).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::High));
        let found = judged(&CHECK, &once(counters([7, 60], [0, 0]))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
    }

    #[test]
    fn cookies_for_all_tell_nothing_of_a_queue() {
        let mut always = counters([7, 7], [0, 9]);
        let settings = always.settings.as_mut().expect("settings");
        settings.values.insert(COOKIES.to_owned(), "2".to_owned());
        assert_eq!(judged(&CHECK, &always), Ok(Vec::new()));
    }

    #[test]
    fn counters_that_stand_still_and_kernels_without_them_are_nothing() {
        assert_eq!(judged(&CHECK, &counters([7, 7], [3, 3])), Ok(Vec::new()));
        let without = counted(host(&[]), "TcpExt", "SyncookiesSent", [0, 9]);
        assert_eq!(judged(&CHECK, &without), Ok(Vec::new()));
    }

    #[test]
    fn without_counters_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
