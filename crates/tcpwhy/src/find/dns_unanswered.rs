//! A name server did not answer, and nothing else could begin.
//!
//! # What it says
//! A host asked for a name and asked again, and no question for that name was answered: how many
//! questions, to whom, and how long it went on asking.
//!
//! # How we know
//! The capture holds the questions (DNS over UDP) and no answer to any of them, of whatever type, from
//! whatever server. The host itself shows that none came: it repeated a question under its number, which a
//! resolver does only while it waits. A question under a new number counts as a repeat where the capture
//! shows that it holds both directions (other answers, or connections).
//!
//! # What it is not
//! Not a name that does not exist: that is an answer (NXDOMAIN). Not a question that the second server or the
//! retry answered. Not a missing AAAA beside an A that was answered. A question asked once, right before the
//! capture ends, is none.
//!
//! # What to do
//! On the host that asked: `resolvectl status` or `/etc/resolv.conf` names the servers, `dig @SERVER NAME` asks
//! one. Then ask whether the server runs, and whether a firewall drops UDP to port 53. A second server in the
//! list, and `options timeout:1 attempts:2`, shorten the wait.
//!
//! # Sources
//! RFC 1035 section 4.2.1 (retransmission over UDP); resolv.conf(5); glibc `res_send.c` and musl `res_msend.c`,
//! which send the same message again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, FrameRange, Lookup, Severity};
use tcpwhy_words::said;
use tcpwhy_words::units::Time;

pub(super) const RULE: Rule = Rule {
    code: "DNS_UNANSWERED",
    severity: Severity::Broken,
    file: include_str!("dns_unanswered.rs"),
    find,
};

/// A new number within this time is taken for a retry. Ours: resolv.conf(5) has 5 s, and resolvers double it
/// once.
const RETRY_NS: i64 = 10_000_000_000;
/// Names told one by one.
const NAMES: usize = 3;

/// One connection shows nothing of this: see [`among`].
const fn find(_: &Connection) -> Vec<Finding> {
    Vec::new()
}

/// The findings over all questions, one for each host that asked; `both_ways` tells that the packets of
/// both directions are here.
pub(super) fn among(
    lookups: &[Lookup],
    connections: &[Connection],
    both_ways: bool,
) -> Vec<Finding> {
    let mut asked: BTreeMap<(IpAddr, &str), Vec<&Lookup>> = BTreeMap::new();
    for lookup in lookups {
        asked.entry((lookup.client.ip(), &lookup.name)).or_default().push(lookup);
    }
    let both_ways = both_ways
        || lookups.iter().any(|each| each.duration_ns.is_some())
        || connections.iter().any(|each| each.syns.iter().all(Option::is_some));
    let mut silent: BTreeMap<IpAddr, Vec<&Lookup>> = BTreeMap::new();
    for ((client, _), questions) in asked {
        if questions.iter().all(|each| each.duration_ns.is_none())
            && is_retried(&questions, both_ways)
        {
            silent.entry(client).or_default().extend(questions);
        }
    }
    let told = |(client, mut questions): (IpAddr, Vec<&Lookup>)| {
        questions.sort_by_key(|each| each.frame);
        told(&questions, goes_on(client, &questions, lookups, connections))
    };
    silent.into_iter().filter_map(told).collect()
}

/// Whether somebody waited for an answer and asked again.
fn is_retried(questions: &[&Lookup], both_ways: bool) -> bool {
    let follows = |first: &Lookup, then: &Lookup| {
        let from_to = Time::from_rfc3339(&first.start).zip(Time::from_rfc3339(&then.start));
        let later = from_to.map_or(0, |(from, to)| to.since(from).0);
        first.kind == then.kind
            && later > 0
            && (first.id == then.id || both_ways && later <= RETRY_NS)
    };
    questions.iter().any(|each| each.asked > 1)
        || questions.iter().any(|first| questions.iter().any(|then| follows(first, then)))
}

/// Whether the host did anything else after these questions that packets show.
fn goes_on(
    client: IpAddr,
    questions: &[&Lookup],
    lookups: &[Lookup],
    connections: &[Connection],
) -> bool {
    let Some(from) = questions.first().and_then(|each| Time::from_rfc3339(&each.start)) else {
        return true;
    };
    let later = |start: &str| Time::from_rfc3339(start).is_none_or(|start| start > from);
    lookups
        .iter()
        .any(|each| each.client.ip() == client && each.duration_ns.is_some() && later(&each.start))
        || connections.iter().any(|each| each.client.ip() == client && later(&each.start))
}

/// The finding on questions of one host, in their order.
fn told(questions: &[&Lookup], goes_on: bool) -> Option<Finding> {
    let first = questions.first()?;
    let from = Time::from_rfc3339(&first.start)?;
    let last_of = |each: &&Lookup| {
        Some(Time::from_rfc3339(&each.start)?.since(from).0.saturating_add(each.last_asked_ns))
    };
    let waited = questions.iter().filter_map(last_of).max()?.max(0);
    let asked = questions.iter().map(|each| each.asked).fold(0, u64::saturating_add);
    let servers: BTreeSet<IpAddr> = questions.iter().map(|each| each.resolver.ip()).collect();
    let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
    let mut seen = BTreeSet::new();
    let names: Vec<&str> =
        questions.iter().map(|each| &*each.name).filter(|name| seen.insert(*name)).collect();
    let mut listed: Vec<String> = names.iter().take(NAMES).map(|name| (*name).to_owned()).collect();
    if names.len() > NAMES {
        listed.push(said::count((names.len() - NAMES) as u64, "more name"));
    }
    let frames =
        FrameRange { first: first.frame, last: questions.last().map_or(first.frame, |q| q.frame) };
    let rest = if goes_on {
        "What the host did afterwards did not need that name, or had it from elsewhere."
    } else {
        "The host did nothing else that these packets show: it had no address to connect to."
    };
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: if goes_on { Severity::Wrong } else { RULE.severity },
        title: format!(
            "{} answered none of {} for {}",
            said::listed(&servers),
            said::count(asked, "DNS question"),
            said::listed(&listed)
        ),
        why: format!(
            "{} asked for {}, from the first question to the last, and got no answer. {rest}",
            first.client.ip(),
            said::time(waited)
        ),
        not: "not a name that does not exist: that would be an answer; not TCP".to_owned(),
        evidence: vec![Evidence {
            from_ns: 0,
            to_ns: waited,
            frames,
            filter: format!("dns && ip.addr == {}", first.client.ip())
                .replace("ip.addr", if first.client.is_ipv6() { "ipv6.addr" } else { "ip.addr" }),
            text: format!("{} without an answer", said::count(asked, "question")),
        }],
        cost_ns: waited,
        of_ns: waited,
        remedies: vec![remedies::host(
            remedies::CLIENT,
            "see which name servers it asks, and ask one; then whether a firewall drops UDP to port 53",
            format!(
                "cat /etc/resolv.conf; dig @{} {}",
                servers.first()?,
                in_shell(names.first().copied().unwrap_or_default())
            ),
        )],
        ..Finding::default()
    })
}

/// A name as a word of a command: names in packets are anybody's text.
fn in_shell(name: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_word = !name.is_empty() && !name.starts_with('-') && name.bytes().all(is_plain);
    if is_word { name } else { "NAME" }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const MS: i64 = 1_000_000;

    /// A question for an address, asked once at `ms` milliseconds.
    fn question(ms: i64, id: u16, kind: &'static str) -> Lookup {
        Lookup {
            name: "upload.example".to_owned(),
            kind: kind.into(),
            client: "192.0.2.1:40000".parse().expect("an address"),
            resolver: "192.0.2.53:53".parse().expect("an address"),
            start: Time(ms * MS).rfc3339(),
            id,
            asked: 1,
            last_asked_ns: 0,
            duration_ns: None,
            answer: None,
            addresses: Vec::new(),
            frame: ms as u64 + 1,
        }
    }

    fn again(ms: i64, lookup: Lookup) -> Lookup {
        Lookup { asked: 2, last_asked_ns: ms * MS, ..lookup }
    }

    fn answered(lookup: Lookup, code: &'static str) -> Lookup {
        Lookup { duration_ns: Some(MS), answer: Some(code.into()), ..lookup }
    }

    fn found(lookups: &[Lookup]) -> Vec<Finding> {
        among(lookups, &[], false)
    }

    #[test]
    fn questions_that_were_repeated_and_never_answered_are_told_with_the_time() {
        let two = [again(2_500, question(0, 7, "A")), again(2_500, question(1, 8, "AAAA"))];
        let found = found(&two);
        insta::assert_snapshot!(sample::shown(&found));
        assert_eq!((found.len(), found[0].cost_ns), (1, 2_501 * MS));
        assert_eq!(found[0].severity, Severity::Broken);
    }

    #[test]
    fn the_same_number_from_another_port_is_a_retry_and_a_new_number_only_where_answers_would_be_seen()
     {
        let pair = |id| [question(0, 7, "A"), question(3_000, id, "A")];
        assert_eq!(found(&pair(7)).len(), 1);
        assert!(found(&pair(9)).is_empty(), "a capture of one direction looks so");
        assert_eq!(among(&pair(9), &[], true).len(), 1);
        let late = [question(0, 7, "A"), question(10_001, 9, "A")];
        assert!(among(&late, &[], true).is_empty(), "that is another question");
    }

    #[test]
    fn what_was_answered_in_any_way_is_no_such_thing() {
        let first = again(5_000, question(0, 7, "A"));
        let by_the_second = answered(question(10_000, 8, "A"), "NOERROR");
        assert!(found(&[first.clone(), by_the_second]).is_empty());
        let beside = answered(question(1, 8, "A"), "NOERROR");
        assert!(found(&[again(5_000, question(0, 7, "AAAA")), beside]).is_empty());
        assert!(found(&[answered(first, "NXDOMAIN")]).is_empty());
    }

    #[test]
    fn a_question_asked_once_may_be_the_captures_end() {
        assert!(found(&[question(0, 7, "A"), question(1, 8, "AAAA")]).is_empty());
    }

    #[test]
    fn where_the_host_went_on_it_is_a_warning() {
        let other = Lookup { name: "b.example".to_owned(), ..question(9_000, 8, "A") };
        let all = [again(5_000, question(0, 7, "A")), answered(other, "NOERROR")];
        assert_eq!(found(&all)[0].severity, Severity::Wrong);
    }

    #[test]
    fn a_name_that_is_no_word_of_a_shell_is_not_put_into_one() {
        assert_eq!(in_shell("a-b.example"), "a-b.example");
        assert_eq!([in_shell("a;reboot"), in_shell("-f"), in_shell("")], ["NAME"; 3]);
    }
}
