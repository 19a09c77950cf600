//! Listeners have short accept queues for the rate at which connections come.
//!
//! # What it says
//! While the program does not call `accept`, new connections wait in the listener's queue. A short queue is full after a
//! stall of a few milliseconds, and clients then wait a second or more.
//!
//! # How we know
//! A listener may hold 128 connections or less, and more than 100 a second were accepted here (`PassiveOpens`). How many of
//! them came to that listener is not counted: with several listeners the time until it is full is a lower bound. Where
//! listeners were not seen, tcpwhy reports a `somaxconn` of 128 or less: no listener can ask for more.
//!
//! # What it is not
//! Not that anything was dropped: `ACCEPT_QUEUE` tells that.
//!
//! # What to do
//! Let the program ask for more (nginx `backlog=`, Apache `ListenBackLog`, Go takes `somaxconn`), and allow it with
//! `net.core.somaxconn`. Containers have their own value of it and do not inherit the host's.
//!
//! # Sources
//! listen(2); Linux `inet_csk_listen_start`, `__sys_listen` (the smaller of backlog and `somaxconn`), its default 4096 since
//! 5.4 and 128 before. 128 and 100 a second: ours, not measured.

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Listener, Source};

pub(super) const CHECK: Check = Check {
    code: "BACKLOG_SMALL",
    file: include_str!("backlog_small.rs"),
    group: Group::Connecting,
    judge,
};

const KEY: &str = "net.core.somaxconn";
const SHORT: u32 = 128;
const PER_SECOND: f64 = 100.0;
/// The kernel's default since Linux 5.4.
const DEFAULT: i64 = 4096;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let most = seen.number(KEY).ok().flatten();
    let short = most.filter(|most| (0..=i64::from(SHORT)).contains(most));
    match (of_listeners(seen), short) {
        (Err(_), Some(most)) => Ok(vec![of_setting(seen, most)]),
        (judged, _) => judged,
    }
}

/// The bound of all queues.
fn of_setting(seen: &Seen<'_>, most: i64) -> Finding {
    Finding {
        severity: Severity::Info,
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!("{KEY} is {most}: no accept queue holds more than {}", most + 1),
        why: "whatever a program asks for in listen(), its queue is cut to that; when it is full, a client waits a \
              second or more."
            .to_owned(),
        not: "not that a queue was ever full: that is ACCEPT_QUEUE".to_owned(),
        evidence: vec![words::setting(KEY, &most)],
        fixes: fixes(seen, &[]),
        unseen: vec![Missing::part(Source::Sockets, "listeners: ss -ltn").to_string()],
        ..Finding::default()
    }
}

fn of_listeners(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let reachable = seen.listeners()?.iter().filter(|listener| !listener.local.ip().is_loopback());
    let reachable: Vec<&Listener> = reachable.collect();
    let Some(opened) = seen.growth("Tcp", "PassiveOpens")? else { return Ok(Vec::new()) };
    if opened.since_start {
        return Err(Missing::all(Source::SecondLook));
    }
    let mut short: Vec<&Listener> =
        reachable.iter().copied().filter(|listener| listener.accept_max <= SHORT).collect();
    if opened.per_second() <= PER_SECOND || short.is_empty() {
        return Ok(Vec::new());
    }
    short.sort_by_key(|listener| (listener.accept_max, listener.local));
    let full_after_ms = (f64::from(short[0].accept_max) + 1.0) * 1000.0 / opened.per_second();
    let names: Vec<String> = short
        .iter()
        .map(|listener| match listener.owner {
            Some(owner) => format!("{} on {}", words::program(seen, Some(owner)), listener.local),
            None => listener.local.to_string(),
        })
        .collect();
    let mut evidence: Vec<Evidence> = short
        .iter()
        .take(words::WORST)
        .map(|listener| {
            Evidence::new(
                format!("ss -ltn 'sport = :{}'", listener.local.port()),
                format!("Send-Q {}", listener.accept_max),
            )
        })
        .collect();
    evidence.push(words::counter("Tcp", "PassiveOpens", opened));
    let is_alone = reachable.len() == 1;
    Ok(vec![Finding {
        severity: if is_alone { Severity::Warning } else { Severity::Info },
        confidence: if is_alone { Confidence::Medium } else { Confidence::Low },
        scope: Scope::Netns,
        title: format!(
            "a short accept queue for {:.0} connections a second: {}",
            opened.per_second(),
            words::named(&names)
        ),
        why: format!(
            "if all came to {} its queue of {} would be full after a stall of {full_after_ms:.0} ms; a client that is dropped \
             then waits a second.",
            names[0],
            short[0].accept_max.saturating_add(1)
        ),
        not: "not that connections were dropped, nor which listener they came to".to_owned(),
        evidence,
        fixes: fixes(seen, &short),
        ..Finding::default()
    }])
}

fn fixes(seen: &Seen<'_>, short: &[&Listener]) -> Vec<Fix> {
    const RISK: &str =
        "requests wait longer in a deep queue, some until their clients have given up";
    let most = seen.number(KEY).ok().flatten();
    let mut fixes = Vec::new();
    if most.is_some_and(|most| most < DEFAULT) {
        fixes.push(words::set(
            seen,
            KEY,
            &DEFAULT,
            "allow longer queues: this is the kernel's default since 5.4",
            words::NEW_LISTENERS,
            RISK,
        ));
    }
    if short.is_empty()
        || !short.iter().all(|listener| Some(i64::from(listener.accept_max)) == most)
    {
        fixes
            .push(words::advise("let the program ask for a longer queue, and start it anew", RISK));
    }
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::parts::each_look;
    use super::super::sample::{counted, host, judged, listener, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn accepting(most: u32, opened: i64) -> Snapshot {
        let host = each_look(host(&[(KEY, "128")]), |_, look| {
            look.listeners = Some(vec![listener(0, most, 0)]);
        });
        counted(host, "Tcp", "PassiveOpens", [7, 7 + opened])
    }

    #[test]
    fn a_short_queue_is_told_with_the_stall_that_fills_it() {
        insta::assert_snapshot!(shown(&CHECK, &accepting(128, 8600)));
    }

    #[test]
    fn a_hundred_a_second_or_a_longer_queue_are_nothing() {
        assert_eq!(judged(&CHECK, &accepting(128, 1000)), Ok(Vec::new()));
        assert_eq!(
            judged(&CHECK, &accepting(128, 1001)).expect("seen")[0].severity,
            Severity::Warning
        );
        assert_eq!(judged(&CHECK, &accepting(129, 8600)), Ok(Vec::new()));
    }

    #[test]
    fn one_of_several_listeners_is_only_told() {
        let several = each_look(accepting(128, 8600), |_, look| {
            let other =
                Listener { local: "[::]:443".parse().expect("an address"), ..listener(0, 4096, 0) };
            look.listeners.get_or_insert_default().push(other);
        });
        assert_eq!(judged(&CHECK, &several).expect("seen")[0].severity, Severity::Info);
    }

    #[test]
    fn without_listeners_counters_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
        let mut once = once(accepting(128, 0));
        once.settings.as_mut().expect("settings").values.clear();
        assert_eq!(missing(&CHECK, &once).source, Source::SecondLook);
    }

    #[test]
    fn of_settings_alone_the_bound_of_all_queues_is_told() {
        let titles = |most| {
            let found = judged(&CHECK, &host(&[(KEY, most)])).ok()?;
            Some(found[0].title.clone())
        };
        let told = "net.core.somaxconn is 128: no accept queue holds more than 129";
        assert_eq!(titles("128").as_deref(), Some(told));
        assert_eq!(titles("129"), None);
    }
}
