//! Texts of several commands, files and hosts: which of them are of one host, and what each host shows.
//!
//! Prompts name their host, within a text as well: it is cut there. A text without prompts is of the host whose
//! addresses it shows. Texts that nothing ties are of one host unless something says otherwise: other names, kernels
//! or addresses, settings of TCP that differ, counters that partly went on and partly went back. Where something
//! does, a text that nothing ties is left alone.

use core::net::{IpAddr, SocketAddr};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::command::{Command, Runs};
use super::elsewhere;
use super::marks::{harmless, unquoted};
use super::{IsPacket, Note, Notes, Pasted, read_all, read_beside};
use crate::snapshot::{Look, Snapshot};

/// What the texts show of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// As its prompts or `uname -a` name it.
    pub name: Option<String>,
    /// What of the texts is of it, in the order in which it was read.
    pub parts: Vec<Part>,
    /// All of it together.
    pub snapshot: Snapshot,
    /// Nothing says that the parts are of one host, and nothing that they are not.
    pub is_supposed: bool,
}

/// What of a text is of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Which text, from 0.
    pub text: usize,
    /// How it was read.
    pub notes: Notes,
    /// The text is of several hosts, and this is what is above the first prompt.
    pub is_above_prompts: bool,
}

/// Reads texts, and gives their hosts in the order in which they are met.
pub fn hosts(texts: &[&str], is_packet: IsPacket) -> Vec<Host> {
    let pieces: Vec<Piece<'_>> = texts
        .iter()
        .enumerate()
        .flat_map(|(number, text)| pieces(number, text, is_packet))
        .collect();
    let (groups, are_supposed) = grouped(&pieces);
    let told = |group: Vec<usize>| together(&pieces, &group, are_supposed, is_packet);
    groups.into_iter().flat_map(told).collect()
}

/// What of a text is of one host, read by itself.
struct Piece<'a> {
    part: Part,
    name: Option<String>,
    text: Cow<'a, str>,
    snapshot: Snapshot,
    addresses: BTreeSet<IpAddr>,
    /// Hosts that it went to, and so is none of.
    others: BTreeSet<String>,
}

impl<'a> Piece<'a> {
    fn new(part: Part, name: Option<String>, text: Cow<'a, str>, snapshot: Snapshot) -> Self {
        let name = name.or_else(|| text.lines().find_map(named_by_uname));
        let addresses = snapshot.addresses();
        Self { part, name, text, snapshot, addresses, others: BTreeSet::new() }
    }

    /// Hosts of connections by the names that were printed, with their ports.
    fn ends_by_name(&self) -> BTreeSet<(String, String)> {
        let name = |end: SocketAddr| {
            let name = self.snapshot.named.get(&end.ip())?;
            Some(format!("{name}:{}", end.port()))
        };
        let sockets = self.snapshot.looks.iter().filter_map(|look| look.sockets.as_ref()).flatten();
        sockets.filter_map(|socket| Some((name(socket.local)?, name(socket.remote)?))).collect()
    }

    /// Nothing was read.
    const fn is_empty(&self) -> bool {
        self.part.notes.read == 0
    }
}

/// `Linux web-1.example 6.1.0-28-amd64 #1 SMP ..`: the name without its domain.
fn named_by_uname(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("Linux ")?.split_whitespace();
    let (name, release, build) = (words.next()?, words.next()?, words.next()?);
    let is_release = release.starts_with(|c: char| c.is_ascii_digit()) && release.contains('.');
    let name = name.split('.').next().filter(|name| !name.is_empty() && *name != "localhost")?;
    (is_release && build.starts_with('#')).then(|| name.to_owned())
}

/// The pieces of a text: one, unless its prompts and commands name several hosts.
fn pieces(number: usize, text: &str, is_packet: IsPacket) -> Vec<Piece<'_>> {
    if let Some(hosts) = elsewhere::prefixed(text) {
        let each = hosts.into_iter().map(|(name, said)| {
            let Pasted { snapshot, notes } = read_beside(&said, is_packet);
            let part = Part { text: number, notes, is_above_prompts: false };
            Piece::new(part, Some(name), Cow::Owned(said), snapshot)
        });
        return each.collect();
    }
    let Pasted { snapshot, notes } = read_beside(text, is_packet);
    let several = (!notes.hosts.is_empty()).then(|| split(text)).flatten();
    let Some(mut several) = several else {
        let name = notes.hosts.first().cloned();
        let part = Part { text: number, notes, is_above_prompts: false };
        return vec![Piece::new(part, name, Cow::Borrowed(text), snapshot)];
    };
    let mut all = Vec::new();
    for (name, own) in several.parts {
        let Pasted { snapshot, mut notes } = read_beside(&own, is_packet);
        if notes.read > 0 {
            notes.first.extend(several.unread.take());
        }
        let is_above_prompts = name.is_none() && !several.has_own;
        let part = Part { text: number, notes, is_above_prompts };
        let mut piece = Piece::new(part, name, Cow::Owned(own), snapshot);
        if piece.name.is_none() && several.has_own {
            piece.others.clone_from(&several.names);
        }
        // A prompt without output says nothing.
        if !piece.is_empty() {
            all.push(piece);
        }
    }
    all
}

/// The most hosts of one text. Ours: more than anybody pastes; what is of others is not read.
const MOST: usize = 100;
const TOO_MANY: &str = "this host and later ones are not read: give their text alone";

/// A text by its hosts.
#[derive(Debug, Default)]
struct Split {
    /// Of each host its lines, each in its place: the lines of others are empty. First what no host is named for.
    parts: Vec<(Option<String>, String)>,
    /// The first line of a host for which there is no room.
    unread: Option<Note>,
    /// The hosts.
    names: BTreeSet<String>,
    /// Commands without a host stand among the lines of none: they are of the host that ran the others.
    has_own: bool,
}

/// A text by the hosts of its prompts and commands; `None` if it is of one.
fn split(text: &str) -> Option<Split> {
    let mut unread = None;
    let mut all: Vec<(Option<String>, String, usize)> = vec![(None, String::new(), 0)];
    let (mut open, mut has_own, mut went) = (Some(0), false, false);
    // The host of prompts without a name, and their host before a shell was opened elsewhere.
    let (mut here, mut before) = (Some(0), Some(0));
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let shown = harmless(line.trim_end());
        let shown = unquoted(&shown).trim();
        if let Some(command) = Command::of(shown) {
            open = match command.host {
                None => here,
                Some(host) => {
                    let known = all.iter().position(|(name, ..)| name.as_ref() == Some(&host));
                    known.or_else(|| {
                        let has_room = all.len() <= MOST;
                        if !has_room && unread.is_none() {
                            let why = Some(TOO_MANY.to_owned());
                            unread = Some(Note::new(number as u64 + 1, line, why));
                        }
                        has_room.then(|| {
                            all.push((Some(host), String::new(), 0));
                            all.len() - 1
                        })
                    })
                }
            };
            match command.runs {
                Runs::Here => (here, has_own) = (open, has_own || open == Some(0)),
                Runs::Elsewhere => went = true,
                Runs::Within => (before, here, went) = (here, open, true),
            }
        } else if elsewhere::leaves(shown) {
            (here, open) = (before, before);
        }
        if let Some((_, own, lines)) = open.and_then(|open| all.get_mut(open)) {
            own.extend(core::iter::repeat_n('\n', number - *lines));
            own.push_str(line);
            *lines = number + 1;
        }
    }
    let parts: Vec<_> = all.into_iter().map(|(name, own, _)| (name, own)).collect();
    has_own &= went;
    let names = parts.iter().filter_map(|(name, _)| name.clone()).collect();
    (parts.len() > 2 || has_own).then_some(Split { parts, unread, names, has_own })
}

/// Which pieces are of one host; whether that is supposed, for nothing ties them.
fn grouped(pieces: &[Piece<'_>]) -> (Vec<Vec<usize>>, bool) {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let clash = |one: &[usize], other: &[usize]| {
        one.iter().any(|a| other.iter().any(|b| are_of_two(&pieces[*a], &pieces[*b])))
    };
    for (at, piece) in pieces.iter().enumerate() {
        let mut own = vec![at];
        let mut others = Vec::new();
        for group in groups {
            let is_tied = group.iter().any(|other| are_tied(&pieces[*other], piece));
            if is_tied && !clash(&group, &own) {
                own.splice(0..0, group);
            } else {
                others.push(group);
            }
        }
        others.push(own);
        groups = others;
    }
    groups.sort();
    let is_any = |group: &Vec<usize>| group.iter().any(|at| !pieces[*at].is_empty());
    let (told, empty): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_any);
    let mut pairs =
        told.iter().enumerate().flat_map(|(at, one)| told[at + 1..].iter().map(move |b| (one, b)));
    if told.len() < 2 || pairs.any(|(one, other)| clash(one, other)) {
        return (told.into_iter().chain(empty).collect(), false);
    }
    let mut all: Vec<usize> = told.into_iter().flatten().collect();
    all.sort_unstable();
    (core::iter::once(all).chain(empty).collect(), true)
}

fn are_tied(one: &Piece<'_>, other: &Piece<'_>) -> bool {
    let names = one.name.as_ref().zip(other.name.as_ref());
    names.is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
        || !one.addresses.is_disjoint(&other.addresses)
}

/// Whether something says that they are of two hosts.
fn are_of_two(one: &Piece<'_>, other: &Piece<'_>) -> bool {
    if let Some((one, other)) = one.name.as_ref().zip(other.name.as_ref()) {
        return !one.eq_ignore_ascii_case(other);
    }
    let is_of = |piece: &Piece<'_>, others: &BTreeSet<String>| {
        piece.name.as_ref().is_some_and(|name| others.contains(name))
    };
    if is_of(one, &other.others) || is_of(other, &one.others) || are_both_ends(one, other) {
        return true;
    }
    let (a, b) = (&one.snapshot, &other.snapshot);
    let kernels = a.kernel.as_ref().zip(b.kernel.as_ref());
    let has_addresses = !one.addresses.is_empty() && !other.addresses.is_empty();
    let by_link = b.addresses_by_link();
    let differs_at = |(name, own): (&str, BTreeSet<IpAddr>)| {
        let there = by_link.get(name).filter(|there| !there.is_empty() && !own.is_empty());
        there.is_some_and(|there| there.is_disjoint(&own))
    };
    kernels.is_some_and(|(one, other)| one != other)
        || (has_addresses && one.addresses.is_disjoint(&other.addresses))
        || a.addresses_by_link().into_iter().any(differs_at)
        || settings_differ(a, b)
        || (!goes_on(a, b) && !goes_on(b, a))
}

/// Whether each has an end of one connection, by name: addresses are compared apart.
fn are_both_ends(one: &Piece<'_>, other: &Piece<'_>) -> bool {
    let ends = one.ends_by_name();
    let turned =
        |(local, remote): (String, String)| local != remote && ends.contains(&(remote, local));
    other.ends_by_name().into_iter().any(turned)
}

/// Settings that nothing but a person or a tool changes.
fn settings_differ(one: &Snapshot, other: &Snapshot) -> bool {
    let Some((one, other)) = one.settings.as_ref().zip(other.settings.as_ref()) else {
        return false;
    };
    let is_kept = |key: &str| key.starts_with("net.ipv4.tcp_") || key.starts_with("net.core.");
    let mut kept = one.values.iter().filter(|(key, _)| is_kept(key));
    kept.any(|(key, value)| other.values.get(key).is_some_and(|there| there != value))
}

/// Whether `later` can be of the host of `first`, after it: counters only grow, and time as well. Those of `nstat` may
/// be what grew since it was last run: they tell nothing.
fn goes_on(first: &Snapshot, later: &Snapshot) -> bool {
    let (Some(last), Some(next)) = (first.looks.last(), later.looks.first()) else { return true };
    if last.t_ns.zip(next.t_ns).is_some_and(|(last, next)| next < last) {
        return false;
    }
    let Some((before, after)) = last.counters.as_ref().zip(next.counters.as_ref()) else {
        return true;
    };
    if last.counters_of_nstat || next.counters_of_nstat {
        return true;
    }
    let grows = |group: &str, name: &str| {
        matches!(group, "Tcp" | "TcpExt" | "IpExt" | "Ip") && !GAUGES.contains(&name)
    };
    before.iter().all(|(group, names)| {
        let there: Option<&BTreeMap<String, i64>> = after.get(group);
        names.iter().filter(|(name, _)| grows(group, name)).all(|(name, value)| {
            let now = there.and_then(|there| there.get(name));
            now.is_none_or(|now| now >= value)
        })
    })
}

/// What `/proc/net/snmp` shows among its counters and is none (RFC 4022, RFC 4293).
const GAUGES: [&str; 8] = [
    "CurrEstab",
    "RtoAlgorithm",
    "RtoMin",
    "RtoMax",
    "MaxConn",
    "Forwarding",
    "DefaultTTL",
    "ReasmTimeout",
];

/// A host of its pieces; each alone where their times cannot be put in order.
fn together(
    pieces: &[Piece<'_>],
    group: &[usize],
    is_supposed: bool,
    is_packet: IsPacket,
) -> Vec<Host> {
    let mut members: Vec<&Piece<'_>> = group.iter().map(|at| &pieces[*at]).collect();
    // What was seen later is read later, in whatever order the files were named.
    for end in 1..members.len() {
        let mut at = end;
        while at > 0 && !goes_on(&members[at - 1].snapshot, &members[at].snapshot) {
            members.swap(at - 1, at);
            at -= 1;
        }
    }
    if let [only] = members[..] {
        return vec![alone(only)];
    }
    let Pasted { snapshot, notes } = read_all(members.iter().map(|piece| &*piece.text), is_packet);
    if notes.backwards || !all_looks_go_on(&snapshot.looks) {
        return members.into_iter().map(alone).collect();
    }
    vec![Host {
        name: members.iter().find_map(|piece| piece.name.clone()),
        parts: members.iter().map(|piece| piece.part.clone()).collect(),
        snapshot,
        is_supposed,
    }]
}

fn all_looks_go_on(looks: &[Look]) -> bool {
    let times: Vec<u64> = looks.iter().filter_map(|look| look.t_ns).collect();
    times.is_sorted()
}

fn alone(piece: &Piece<'_>) -> Host {
    Host {
        name: piece.name.clone(),
        parts: vec![piece.part.clone()],
        snapshot: piece.snapshot.clone(),
        is_supposed: false,
    }
}

#[cfg(test)]
mod tests;
