//! A device on the way took options out of a SYN.
//!
//! # What it says
//! Firewalls and proxies that do not know an option, or were told to remove it, overwrite it by fillers.
//! Both ends then do without: no selective acknowledgements, no timestamps, no window scaling, or whatever
//! was there.
//!
//! # How we know
//! The SYN or the SYN-ACK holds three fillers (NOP) in a row or more. Stacks use fillers to align the next
//! option, one or two at a time; a device that removes an option must fill its two to ten bytes, for the
//! length of the header stays.
//!
//! # What it is not
//! Not a host with the option switched off: that leaves no hole (`OPTIONS_REFUSED`). A device that writes
//! the header anew leaves none either: then only captures at both ends tell. Which side of the capture point
//! the device is on follows from whose SYN has the hole: it is between that host and the capture.
//!
//! # What to do
//! Find the device between that host and the place of this capture (a second capture further along tells
//! where the fillers first appear) and let it pass options on: on Cisco ASA a `tcp-map`, on others "TCP
//! normalization" or "option stripping".
//!
//! # Sources
//! RFC 9293 section 3.1 (kind 1, alignment); Honda et al., Is it Still Possible to Extend TCP?, IMC 2011.
//! Ours: three; Linux, Windows, macOS and the BSDs send at most two (`tcp_options_write`, v6.1,
//! `net/ipv4/tcp_output.c`, for Linux).

use super::case::{active_ns, syns};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, Syn};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "OPTIONS_STRIPPED",
    severity: Severity::Wrong,
    file: include_str!("options_stripped.rs"),
    find,
};

/// No stack sends this many fillers in a row. Ours: see the sources.
const FEWEST_FILLERS: u8 = 3;

fn find(connection: &Connection) -> Vec<Finding> {
    let stripped = |at: usize| {
        let syn = connection.syns[at].filter(|syn| syn.fillers >= FEWEST_FILLERS)?;
        Some((["client", "server"][at], missing(&syn)))
    };
    let found: Vec<(&str, String)> = [0, 1].into_iter().filter_map(stripped).collect();
    let Some((host, _)) = found.first() else { return Vec::new() };
    let holes: Vec<String> = found
        .iter()
        .map(|(host, missing)| {
            let syn = if *host == "client" { "SYN" } else { "SYN-ACK" };
            format!("the {host}'s {syn} has fillers where options stood{missing}")
        })
        .collect();
    vec![Finding {
        code: RULE.code.to_owned(),
        // What it costs shows in what else is found.
        severity: Severity::Note,
        title: "a device on the way took options out of the opening".to_owned(),
        why: format!("{}; no host fills these places.", said::listed(&holes)),
        not: "not a host that has them switched off: that leaves no hole".to_owned(),
        evidence: vec![syns(connection)],
        cost_ns: 0,
        of_ns: active_ns(connection),
        remedies: vec![remedies::path(format!(
            "find the device between the {host} and the place of this capture, and let it pass TCP options on \
             (normalization, option stripping)"
        ))],
        ..Finding::default()
    }]
}

/// What it may have been, to follow other words.
fn missing(syn: &Syn) -> String {
    let absent: Vec<String> = [
        (syn.sack, "selective acknowledgements"),
        (syn.timestamps, "timestamps"),
        (syn.window_scale.is_some(), "window scaling"),
    ]
    .into_iter()
    .filter(|(there, _)| !there)
    .map(|(_, name)| name.to_owned())
    .collect();
    if absent.is_empty() {
        String::new()
    } else {
        format!(" (not in it: {})", said::listed(&absent))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn filled(at: usize, fillers: u8) -> Connection {
        let mut connection = sample::download();
        let syn = connection.syns[at].as_mut().expect("a SYN");
        (syn.fillers, syn.sack) = (fillers, false);
        connection
    }

    #[test]
    fn a_hole_in_the_syn_is_told_with_what_is_missing() {
        insta::assert_snapshot!(sample::shown(&find(&filled(0, 4))));
        let why = find(&filled(1, 7))[0].why.clone();
        assert!(why.contains("the server's SYN-ACK"), "{why}");
    }

    #[test]
    fn three_fillers_are_a_hole_and_two_align() {
        assert_eq!([find(&filled(0, 3)).len(), find(&filled(0, 2)).len()], [1, 0]);
    }

    #[test]
    fn a_host_without_an_option_leaves_no_hole() {
        assert!(find(&filled(0, 0)).is_empty());
    }
}
