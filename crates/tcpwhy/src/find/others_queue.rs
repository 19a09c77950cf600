//! Another connection of the capture fills the link, and this one waits in its queue.
//!
//! # What it says
//! The round trips of this connection are far longer than the least between the same two hosts, while another
//! connection between them fills the link: small requests and answers wait behind its data. The other one is
//! named.
//!
//! # How we know
//! Three facts that do not depend on each other. Connections between the same two addresses travel the same way, and
//! one of them shows what a round trip takes without a queue: the least of all is half of this one's median or less,
//! and 5 ms less. For at least four fifths of this one's time others had a full path or a queue on their
//! host (`bandwidth.self_queue`, `bandwidth.external`, `bandwidth.variable`, `local_qdisc`), or rounds that took
//! twice the least and more, as they do while losses of a queue are repaired; and they carried ten times as much. And
//! their round trips were as long as this one's at that time, within a factor of two: a packet that joins a queue waits
//! for what waits in it, whosever it is.
//!
//! # What it is not
//! Not distance: a host that is far is far for all its connections. Not this connection's window, and not its
//! program. A neighbour that was idle in that time, or that goes to another host, is not named.
//!
//! # What to do
//! A queue that gives each connection its turn (`fq_codel`, CAKE, `fq`) at the narrowest link: the small connection
//! then waits for one packet of the large one instead of for all. On the sender's own host it is the device's qdisc; on
//! the path it is the router before the slow link. Or let the large transfer send more slowly (a rate limit, another
//! time).
//!
//! # Sources
//! RFC 8290 (`fq_codel`) section 1; RFC 7567 section 2; Gettys and Nichols, Bufferbloat (2011). Ours: the bounds, not
//! measured beyond the runs in `testdata/cases`.

use super::case::{Case, severity};
use super::others::{EXCESS_NS, Others};
use super::{Rule, active_ns, remedies};
use crate::report::{Connection, Evidence, Finding, Severity, State, Sure};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "OTHERS_QUEUE",
    severity: Severity::Limit,
    file: include_str!("others_queue.rs"),
    find,
};

/// Others carry this many times as much: they are not in the same place. Ours.
const TIMES_AS_MUCH: u64 = 10;

/// One connection shows nothing of this: see [`beside`].
const fn find(_: &Connection) -> Vec<Finding> {
    Vec::new()
}

/// The finding for `connection`, beside these `others` between its hosts.
pub(super) fn beside(connection: &Connection, others: &Others<'_>) -> Option<Finding> {
    let case = [1, 0].into_iter().filter_map(|at| Case::of(connection, at));
    let case = case.max_by_key(|case| case.direction.bytes)?;
    // Each round trip crosses both ways, so the queue is in that of either direction; where the tap is at one end,
    // only data from there is timed as a whole.
    let median = connection.present().filter_map(|(_, each)| each.rtt.median_ns).max()?;
    let least = others.least_rtt_ns?;
    let excess = median.checked_sub(least)?;
    let fills_itself = case.path_full_percent() >= 10.0;
    if excess < EXCESS_NS || excess < median / 2 || fills_itself {
        return None;
    }
    let span = (others.start_ns, others.start_ns.saturating_add(connection.duration_ns));
    let named: Vec<_> = others
        .fillers()
        .filter(|filler| filler.bytes_in(span) / TIMES_AS_MUCH >= connection.bytes())
        .filter(|filler| filler.rtt_ns.is_some_and(|rtt| rtt <= 2 * median && median <= 2 * rtt))
        .collect();
    let covered = named.iter().map(|filler| filler.filled_in(span)).max()?;
    if i128::from(covered) * 5 < i128::from(connection.duration_ns) * 4 {
        return None;
    }
    // What waits for an answer waits for the queue: the sender's last flights and the opening.
    let waits: i64 = [State::LastFlight, State::Handshake]
        .iter()
        .map(|state| case.direction.time_in.get(*state).0)
        .sum();
    let cost = (i128::from(waits) * i128::from(excess) / i128::from(median.max(1))) as i64;
    let active = active_ns(connection);
    let filler = named.iter().max_by_key(|filler| filler.filled_in(span))?;
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: severity(RULE.code, cost, Sure::Shown),
        title: format!("its packets wait behind the data of connection {}", filler.id),
        why: format!(
            "a round trip takes {} here, and {} at the least between the same hosts; connection {} filled the link \
             for {} of this one's {}, with {} sent in that time.",
            said::time(median),
            said::time(least),
            filler.id,
            said::time(covered),
            said::time(connection.duration_ns),
            said::bytes(filler.bytes_in(span))
        ),
        not: "not distance; not this connection's windows or programs".to_owned(),
        evidence: vec![Evidence {
            from_ns: 0,
            to_ns: connection.duration_ns,
            frames: connection.frames,
            filter: super::case::filter(connection.frames),
            text: format!(
                "round trips of {} beside a least of {}",
                said::time(median),
                said::time(least)
            ),
        }],
        cost_ns: cost,
        of_ns: active,
        remedies: vec![remedies::path(
            "a queue that gives each connection its turn (fq_codel, CAKE, fq) at the narrowest link, or a slower pace for \
             the large transfer",
        )],
        ..Finding::default()
    })
}
