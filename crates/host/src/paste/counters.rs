//! Counters: `nstat`, `/proc/net/snmp` and `netstat` themselves, and what `netstat -s` says in words.
//!
//! The three forms are read apart and put together at the end, so that `nstat` beside `netstat -s` is no
//! second look. A name that comes again in its form begins the next reading of it. Two of the forms leave
//! zeros out ([`MANY`]). `nstat` without `-a` shows what grew since it was last asked, and the text does
//! not say so; two readings do ([`Growth::between`]).

use std::collections::BTreeMap;

use super::Taken;
use super::collected::{Collected, Counts, Form, Readings};
use tcpwhy_words::printed::counters::{self as lines, Growth, Kind};

impl Collected {
    /// Takes down a counter; a name that the open reading has begins the next.
    pub(super) fn count(&mut self, form: Form, group: &str, name: &str, value: i64) {
        let now = self.now;
        let Some(readings) = self.counts.get_mut(form as usize) else { return };
        let is_there = readings.last().is_some_and(|counts| {
            counts.by_group.get(group).is_some_and(|all| all.contains_key(name))
        });
        if is_there {
            readings.push(now, Counts::default());
        }
        let open = readings.open(now);
        open.is_chosen |= self.shows_some_lines;
        let into = open.by_group.entry(group.to_owned()).or_default();
        into.insert(name.to_owned(), value);
    }
}

/// Groups of the kernel by which nstat's names begin, the longer first.
const GROUPS: [&str; 13] = [
    "MPTcpExt", "UdpLite6", "UdpLite", "TcpExt", "IcmpMsg", "Icmp6", "IpExt", "Udp6", "Icmp",
    "Ip6", "Tcp", "Udp", "Ip",
];

/// `TcpExtTCPTimeouts               3                  0.0`, and the same in `/proc/net/snmp6`.
pub(super) fn nstat(text: &str, collected: &mut Collected) -> bool {
    if text.starts_with("#kernel") || text.starts_with("#extras") {
        return true;
    }
    let Some((name, value)) = lines::counter(text) else { return false };
    let Some((group, name)) =
        GROUPS.iter().find_map(|group| Some((*group, name.strip_prefix(group)?)))
    else {
        return false;
    };
    collected.count(Form::Nstat, group, name, value);
    true
}

/// Names of a protocol's counters, above their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Heads {
    protocol: String,
    names: Vec<String>,
}

/// `TcpExt: SyncookiesSent SyncookiesRecv ..` and the values under it.
pub(super) fn pairs(
    text: &str,
    heads: Option<&mut Heads>,
    collected: &mut Collected,
) -> Option<(Heads, Taken)> {
    let (protocol, rest) = text.split_once(": ")?;
    if !GROUPS.contains(&protocol) {
        return None;
    }
    let heads = heads.map(core::mem::take).unwrap_or_default();
    let mut words = rest.split_whitespace();
    if words.clone().next()?.parse::<i64>().is_err() {
        let names = words.map(str::to_owned).collect();
        return Some((Heads { protocol: protocol.to_owned(), names }, Taken::Read));
    }
    if heads.protocol != protocol {
        return Some((Heads::default(), Taken::Useless("its names are not above it".to_owned())));
    }
    for name in &heads.names {
        match words.next().map(str::parse) {
            Some(Ok(value)) => collected.count(Form::Files, protocol, name, value),
            Some(Err(_)) => {}
            None => {
                return Some((Heads::default(), Taken::Useless("values are missing".to_owned())));
            }
        }
    }
    Some((Heads::default(), Taken::Read))
}

/// Turns growth into counts, and puts zeros where a form leaves them out.
pub(super) fn complete(counts: &mut [Readings<Counts>; Form::ALL.len()]) {
    for (form, readings) in Form::ALL.into_iter().zip(counts) {
        let mut before: Option<&mut Counts> = None;
        for counts in readings.iter_mut() {
            if let Some(before) = before {
                match form {
                    Form::Files => {}
                    Form::Nstat => {
                        counts.add_to(before);
                        before.zeros_of(counts);
                    }
                    Form::Sentences => before.zeros_of(counts),
                }
            }
            before = Some(counts);
        }
    }
}

/// A reading that has many counters and lacks few of the next is whole, and what it lacks was zero; one that
/// lacks more was shortened by a person. Ours, not measured: `netstat -s` of a busy host prints some 60
/// counters of `TcpExt`, and few begin to count between two looks.
const MANY: usize = 20;
/// See [`MANY`].
const FEW: usize = 5;

impl Counts {
    /// What it lacks may well have been counted.
    pub(super) fn is_cut(&self) -> bool {
        self.is_chosen || self.each().count() < MANY
    }

    /// If this is what grew since `before`: turns it into counts.
    fn add_to(&mut self, before: &Self) {
        let old = |group: &str, name: &str| before.by_group.get(group)?.get(name).copied();
        let (mut then, mut now) = (BTreeMap::new(), BTreeMap::new());
        for (group, name, value) in self.each() {
            if let Some(old) = old(group, name) {
                then.insert(format!("{group}{name}"), old);
                now.insert(format!("{group}{name}"), value);
            }
        }
        if Growth::between(&then, &now).kind != Kind::Growth {
            return;
        }
        for (group, all) in &mut self.by_group {
            for (name, value) in all {
                *value = value.saturating_add(old(group, name).unwrap_or(0));
            }
        }
    }

    /// Puts zeros for what only `next` has.
    fn zeros_of(&mut self, next: &Self) {
        for (group, names) in &next.by_group {
            let Some(mine) = self.by_group.get_mut(group) else { continue };
            let lacking: Vec<&String> =
                names.keys().filter(|name| !mine.contains_key(*name)).collect();
            if mine.len() >= MANY && lacking.len() <= FEW {
                mine.extend(lacking.into_iter().map(|name| (name.clone(), 0)));
            }
        }
    }

    fn each(&self) -> impl Iterator<Item = (&str, &str, i64)> {
        self.by_group.iter().flat_map(|(group, all)| {
            all.iter().map(move |(name, value)| (group.as_str(), name.as_str(), *value))
        })
    }
}
