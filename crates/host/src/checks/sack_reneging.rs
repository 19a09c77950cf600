//! Peers threw away data that they had acknowledged selectively.
//!
//! # What it says
//! A receiver may drop what it reported beyond a hole when it runs out of memory. The sender then has to send all of
//! it again, after a wait. That is rare; a device on the way that rewrites acknowledgments looks the same.
//!
//! # How we know
//! `TCPSACKReneging` grew.
//!
//! # What it is not
//! Not a loss on the path, and nothing that this host can mend.
//!
//! # What to do
//! See which peers it concerns, and look at their memory (`RECEIVE_QUEUE_PRUNED` there) or at firewalls that change
//! sequence numbers and forget the SACK option.
//!
//! # Sources
//! RFC 2018 section 8; Linux `tcp_check_sack_reneging` (v6.12).

use super::{Check, counters, words};
use crate::finding::{Finding, Group, Scope, Severity};
use crate::seen::{Asked, Seen};

pub(super) const CHECK: Check = Check {
    code: "SACK_RENEGING",
    file: include_str!("sack_reneging.rs"),
    group: Group::Losses,
    judge,
};

const NAME: &str = "TCPSACKReneging";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some(reneged) = counters::grew(seen, counters::TCP_EXT, NAME)? else {
        return Ok(Vec::new());
    };
    Ok(vec![Finding {
        severity: counters::severity(reneged, Severity::Info),
        confidence: words::sure(reneged),
        scope: Scope::Netns,
        title: format!("peers threw away what they had acknowledged: {}", words::grown(reneged)),
        why: "it has to be retransmitted after a wait; the peers ran out of memory, or something between rewrites \
              acknowledgments."
            .to_owned(),
        not: "not a loss on the path, and nothing that this host can mend".to_owned(),
        evidence: vec![words::counter(counters::TCP_EXT, NAME, reneged)],
        fixes: vec![words::advise("look at the memory of the peers, and at firewalls between", "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Source;

    #[test]
    fn peers_that_took_back_what_they_had() {
        insta::assert_snapshot!(shown(&CHECK, &counted(host(&[]), "TcpExt", NAME, [3, 5])));
    }

    #[test]
    fn none_between_the_looks_is_well_and_no_counters_are_missing() {
        assert_eq!(judged(&CHECK, &counted(host(&[]), "TcpExt", NAME, [3, 3])), Ok(Vec::new()));
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Counters);
    }
}
