//! From intervals to help: what was found, why we say so, what it is not, and what would help.
//!
//! Each finding is one file: its rule, its words, its constants, its tests, and its page of the
//! manual, which is the head of that file ([`doc`] cuts it out). [`RULES`] lists them; to add one
//! is to add its file and its line there. A rule is a pure function over the plain data of the
//! report: it sees what a reader of the JSON sees, so a finding can always be checked by hand.
//!
//! The cost of a finding is the time of the intervals it names. Findings may name the same
//! intervals and are never added up. They come in the order of cost, whatever their severity; the
//! shares are of the connection's *active* time ([`case::active_ns`]), for a connection kept open over
//! night is not slow. Silence between requests is not in it: its share is that of the lifetime.
//!
//! Severity is whether something is wrong, not how long it took ([`Severity`]). Each rule has its own; what was
//! seen for less than a millisecond is a note, and what is only possible is no more than a limit.
//!
//! A finding that rests on time is made from a tenth of the working time on.

mod case;
pub mod doc;
mod precedence;
mod remedies;
mod states;

mod accept_queue;
mod ack_path;
mod app_window;
mod black_hole;
mod body_on_its_way;
mod bottleneck;
mod bottleneck_shared;
mod capture_gap;
mod cold_connection;
mod damaged;
mod dns_unanswered;
mod duplicated;
mod ecn;
mod failed;
mod fast_open;
mod handshake_refused;
mod http_error;
mod idle_restart;
mod initial_window;
mod local_qdisc;
mod long_round_trip;
mod loss_congestion;
mod loss_local;
mod loss_periodic;
mod loss_random;
mod loss_unclear;
mod losses;
mod nagle_delayed_ack;
mod neighbours;
mod never_acknowledged;
mod never_arrived;
mod no_answer;
mod not_tcp;
mod options_refused;
mod options_stripped;
mod others;
mod others_queue;
mod pacing;
mod path_mtu;
mod policer;
mod reordering;
mod requests_in_turn;
mod reset;
mod scale_lost;
mod send_buffer;
mod slow_handshake;
mod slow_reader;
mod slow_start;
mod slow_start_ended_early;
mod slow_writer;
mod small_mss;
mod stood_still;
mod syn_retry;
mod syn_unanswered;
mod think_client;
mod think_server;
mod thinned_acks;
mod timeout;
mod tls_alert;
mod tls_round_trips;
mod token_bucket;
mod unreachable;
mod variable_rate;
mod window_cap;
mod window_growth;
mod window_scale;
mod windows;
pub(crate) use windows::takes_segments;
mod zero_window;
mod zero_window_hole;

#[cfg(test)]
pub(crate) mod sample;

use core::cmp::Reverse;

pub(crate) use remedies::VIA_AND_DEV;

pub(crate) use failed::fill as fill_failures;

use crate::gain;
use crate::report::{Connection, Finding, Report, Severity, Sure};

/// One finding: its code, the file that holds it, and its rule.
struct Rule {
    code: &'static str,
    file: &'static str,
    /// What it tells of, unless it took too little.
    severity: Severity,
    find: fn(&Connection) -> Vec<Finding>,
}

/// All findings, in the order of the manual.
const RULES: [Rule; 64] = [
    dns_unanswered::RULE,
    unreachable::RULE,
    syn_unanswered::RULE,
    handshake_refused::RULE,
    never_acknowledged::RULE,
    never_arrived::RULE,
    no_answer::RULE,
    tls_alert::RULE,
    http_error::RULE,
    accept_queue::RULE,
    syn_retry::RULE,
    slow_handshake::RULE,
    long_round_trip::RULE,
    fast_open::RULE,
    cold_connection::RULE,
    tls_round_trips::RULE,
    small_mss::RULE,
    options_refused::RULE,
    options_stripped::RULE,
    path_mtu::RULE,
    black_hole::RULE,
    slow_start::RULE,
    initial_window::RULE,
    idle_restart::RULE,
    slow_start_ended_early::RULE,
    window_cap::RULE,
    window_scale::RULE,
    scale_lost::RULE,
    window_growth::RULE,
    slow_reader::RULE,
    zero_window::RULE,
    zero_window_hole::RULE,
    send_buffer::RULE,
    app_window::RULE,
    nagle_delayed_ack::RULE,
    loss_congestion::RULE,
    loss_random::RULE,
    loss_periodic::RULE,
    loss_unclear::RULE,
    loss_local::RULE,
    damaged::RULE,
    policer::RULE,
    timeout::RULE,
    stood_still::RULE,
    reordering::RULE,
    duplicated::RULE,
    ecn::RULE,
    thinned_acks::RULE,
    local_qdisc::RULE,
    pacing::RULE,
    ack_path::RULE,
    bottleneck::RULE,
    bottleneck_shared::RULE,
    others_queue::RULE,
    variable_rate::RULE,
    token_bucket::RULE,
    requests_in_turn::RULE,
    think_server::RULE,
    think_client::RULE,
    slow_writer::RULE,
    body_on_its_way::RULE,
    not_tcp::RULE,
    reset::RULE,
    capture_gap::RULE,
];

/// What did not work at all, in the order in which it is printed: before everything that only took its time.
const FAILURES: [Rule; 8] = [
    unreachable::RULE,
    syn_unanswered::RULE,
    handshake_refused::RULE,
    never_acknowledged::RULE,
    never_arrived::RULE,
    no_answer::RULE,
    tls_alert::RULE,
    http_error::RULE,
];

/// The place of a finding among those of a connection: one of a failure comes first, unless it is a plain fact.
fn failure(finding: &Finding) -> Option<usize> {
    let at = FAILURES.iter().position(|rule| rule.code == finding.code);
    at.filter(|_| finding.severity != Severity::Note)
}

/// Whether a finding tells of something that did not work.
pub(crate) fn is_failure(finding: &Finding) -> bool {
    failure(finding).is_some()
}

/// What failed in `connection`, as far as its findings tell.
pub(crate) fn failed(connection: &Connection) -> impl Iterator<Item = &Finding> {
    connection.findings.iter().filter(|finding| failure(finding).is_some())
}

/// What is found in `connection`, the most costly first. Nothing where its intervals were not kept;
/// one that was never opened has none.
pub fn findings(connection: &Connection) -> Vec<Finding> {
    let mut directions = connection.directions.iter().flatten();
    // What failed needs no intervals.
    let rules = if directions.all(|direction| direction.limits.is_empty()) {
        &FAILURES[..]
    } else {
        &RULES[..]
    };
    let mut found: Vec<Finding> = rules.iter().flat_map(|rule| (rule.find)(connection)).collect();
    not_tcp::say_whose(&mut found);
    finish(connection, &mut found);
    found
}

/// Fills the findings of all connections of a report: those that each shows by itself, and those that
/// need the others.
pub fn fill(connections: &mut [Connection]) {
    let mut untold = 0;
    for at in 0..connections.len() {
        let (earlier, rest) = connections.split_at_mut(at);
        let Some(connection) = rest.first_mut() else { continue };
        // The first SYNs of a flood tell of all of it, and so do the first failures of connections whose intervals
        // were not kept: a million texts tell no more.
        let is_bare = connection.directions.iter().flatten().all(|d| d.limits.is_empty());
        if is_bare && untold >= NEAR {
            continue;
        }
        let mut found = findings(connection);
        untold += usize::from(is_bare && (!found.is_empty() || !connection.carried_data()));
        // Of very many the last ones are enough: an open connection is used again soon or not.
        let near = &earlier[earlier.len().saturating_sub(NEAR)..];
        if !found.is_empty() || !is_bare {
            found.extend(cold_connection::among(connection, near));
        }
        finish(connection, &mut found);
        // Findings are large, and a report may hold those of 100,000 connections.
        found.shrink_to_fit();
        connection.findings = found;
    }
    handshake_refused::among(connections);
    requests_in_turn::unless_side_by_side(connections);
    neighbours::fill(connections);
    connections.iter_mut().for_each(gain::fill);
    connections.iter_mut().for_each(precedence::fill);
}

/// Fills in what was found in a whole report, apart from its connections.
pub(crate) fn fill_whole(report: &mut Report) {
    let both_ways = report.command.is_some();
    report.findings = dns_unanswered::among(&report.lookups, &report.connections, both_ways);
    report.findings.iter_mut().for_each(|each| each.seen_in_ns = each.cost_ns);
}

/// Earlier connections that are looked at, and connections without data that are. Ours: bounds the work,
/// not measured.
const NEAR: usize = 64;

/// Puts the most costly first, and leaves out what the hosts' systems do not know.
fn finish(connection: &Connection, findings: &mut [Finding]) {
    put_in_order(findings);
    for finding in findings {
        // A transfer whose last ACK never came ends before its waits do.
        finding.of_ns = finding.of_ns.max(finding.cost_ns);
        remedies::for_these_systems(connection, &mut finding.remedies);
    }
}

/// The time that most costs are a share of: that in which somebody waited for this connection.
pub(crate) fn active_ns(connection: &Connection) -> i64 {
    case::active_ns(connection)
}

/// Makes the findings of a connection that was cut to a part, their costs with them, those of the part:
/// their shares, no more severe than these, and in order. `before` was the active time of the whole. What
/// the sentences say stays that of the whole connection: on it the verdicts rest.
pub(crate) fn recut(connection: &mut Connection, before: i64) {
    let (active, length) = (active_ns(connection), connection.duration_ns);
    for finding in &mut connection.findings {
        finding.of_ns = if finding.of_ns == before { active } else { finding.of_ns.min(length) };
        let most = case::severity(&finding.code, finding.cost_ns, Sure::Shown);
        finding.severity = finding.severity.min(most);
    }
    put_in_order(&mut connection.findings);
    gain::fill(connection);
}

/// What failed comes first, then the most costly.
fn put_in_order(findings: &mut [Finding]) {
    let place = |finding: &Finding| failure(finding).unwrap_or(usize::MAX);
    findings.sort_by_key(|finding| (place(finding), Reverse(finding.cost_ns)));
}

#[cfg(test)]
mod tests {
    use super::sample::Sim;
    use super::*;

    #[test]
    fn what_kept_no_intervals_gives_no_findings() {
        let mut connection = sample::download();
        assert!(!findings(&connection).is_empty());
        for direction in connection.directions.iter_mut().flatten() {
            direction.limits.clear();
        }
        assert!(findings(&connection).is_empty());
    }

    #[test]
    fn the_most_costly_comes_first() {
        let slow = Sim { think: 30_000_000, ..Sim::default() }.run();
        let costs: Vec<i64> = findings(&slow).iter().map(|finding| finding.cost_ns).collect();
        assert!(costs.len() > 1 && costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
    }

    #[test]
    fn every_finding_has_frames_a_filter_and_somebody_who_changes_something() {
        for finding in findings(&sample::download()) {
            assert!(!finding.evidence.is_empty(), "{}", finding.code);
            for evidence in &finding.evidence {
                assert!(evidence.frames.first > 0, "{}: {evidence:?}", finding.code);
                assert!(!evidence.filter.is_empty(), "{}: {evidence:?}", finding.code);
            }
            for remedy in &finding.remedies {
                let known = ["sender", "receiver", "client", "server", "application", "path"];
                assert!(known.contains(&remedy.who.as_str()), "{remedy:?}");
            }
        }
    }
}
