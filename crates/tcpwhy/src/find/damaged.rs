//! Segments arrived damaged: their TCP checksum does not fit their bytes.
//!
//! # What it says
//! Bits of some segments changed on the way. The receiver's TCP drops such a segment without a word, and
//! the sender has to send it again, as if it had been lost; it cuts its congestion window for that, too.
//!
//! # How we know
//! The capture holds the segments whole, with a checksum that is wrong by RFC 9293 section 3.1, and the sender sent
//! their bytes again before they were acknowledged. Both have to be so: a segment that looks wrong and is
//! acknowledged all the same was not damaged when it arrived. A side's wrong checksums are no damage either
//! where they are not rare, or where some were left to a network card. Where captures are cut (a snap
//! length) nothing can be checked.
//!
//! # What it is not
//! Not a queue that overflows, which drops whole packets. Not checksum offload: that fills the field with the sum of
//! the pseudo header, on packets that the capturing host sends, and nothing is retransmitted for it. Damage
//! behind the capture point does not show here; it looks like loss.
//!
//! # What to do
//! Ethernet and Wi-Fi drop frames with a wrong check of their own before TCP sees them (`ethtool -S`, words with
//! `crc`, `fcs` or `error`). What reaches TCP was damaged and then given a right one: by a device between that
//! writes frames anew (a router, a switch, an address translator, a tunnel, a network card or its memory), or on a link
//! without a check. The receiver counts them (`nstat -az TcpInCsumErrors`). Look from which hop on they are wrong
//! (a capture on each side of it), and replace that device, its memory, cable or optics. Offloads of a card
//! can be switched off for a trial (`ethtool -K DEV rx off tx off`).
//!
//! # Sources
//! RFC 9293 section 3.1; Linux `tcp_checksum_complete`, `TCP_MIB_CSUMERRORS` (v6.1, `net/ipv4/tcp_ipv4.c`: the packet
//! is dropped); J. Stone, C. Partridge, "When the CRC and TCP checksum disagree", SIGCOMM 2000.

use super::case::{Case, Held, Told, active_ns, filter, in_each};
use super::losses::after_losses;
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "DAMAGED", severity: Severity::Wrong, file: include_str!("damaged.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let damaged = case.direction.events.damaged;
        if damaged == 0 {
            return None;
        }
        let held = held(case);
        let others = case.direction.events.lost.saturating_sub(damaged);
        let told = Told {
            title: format!("{} arrived damaged", said::count(damaged, "segment")),
            why: why(case, damaged, &held),
            not: if others == 0 {
                "not a full queue and not checksum offload: the other checksums of this side are right"
                    .to_owned()
            } else {
                format!(
                    "not checksum offload; {} more were lost, and the capture holds no damaged copy of them",
                    said::grouped(others)
                )
            },
            remedies: help(case),
        };
        if held.limits.is_empty() {
            return Some(without_time(connection, told));
        }
        Some(held.finding(RULE.code, told))
    })
}

/// Whether most of what was lost is known to be damaged: then the losses have their cause.
pub(super) fn explains(case: &Case<'_>) -> bool {
    let events = case.direction.events;
    events.damaged > 0 && events.damaged.saturating_mul(2) >= events.lost
}

/// Its repairs, and the window cut for them where the damage is why.
fn held<'a>(case: &Case<'a>) -> Held<'a> {
    let repairs = |state| state == State::RecoveryCorrupt;
    if explains(case) { after_losses(case, repairs) } else { case.held(repairs) }
}

fn why(case: &Case<'_>, damaged: u64, held: &Held<'_>) -> String {
    let segments = case.direction.segments;
    let share = said::percent(
        i64::try_from(damaged).unwrap_or(i64::MAX),
        i64::try_from(segments).unwrap_or(i64::MAX),
    );
    let cost = match held.time_ns() {
        0 => String::new(),
        time => format!(" Repairs, and the window cut for them, took {}.", said::time(time)),
    };
    format!(
        "{damaged} of {} ({share}) from the {} had a wrong TCP checksum when they passed the capture point; the {}'s \
         TCP drops such segments, and the {} had to send them again.{cost}",
        said::count(segments, "segment"),
        case.sender(),
        case.receiver(),
        case.sender(),
    )
}

fn help(case: &Case<'_>) -> Vec<crate::report::Remedy> {
    vec![
        remedies::host(
            1 - case.at,
            "see which counter grows: the card's (cable, optics, port), or only TCP's own: then a device between \
             damages frames and gives them a right check again",
            "nstat -az TcpInCsumErrors; ethtool -S DEVICE | grep -iE 'crc|fcs|err'; ip -s link show dev DEVICE",
        ),
        remedies::path(
            "capture on both sides of each hop to find where checksums turn wrong; replace that device, its memory, \
             cable or optics",
        ),
    ]
}

/// A finding that no interval shows.
fn without_time(connection: &Connection, told: Told) -> Finding {
    let frames = connection.frames;
    Finding {
        code: RULE.code.to_owned(),
        severity: Severity::Note,
        title: told.title,
        why: told.why,
        not: told.not,
        evidence: vec![Evidence {
            from_ns: 0,
            to_ns: connection.duration_ns,
            frames,
            filter: format!("{} && tcp.checksum.status == 0", filter(frames)),
            text: "segments with a wrong checksum (Wireshark checks them if asked to: tcp.check_checksum)"
                .to_owned(),
        }],
        cost_ns: 0,
        of_ns: active_ns(connection),
        remedies: told.remedies, ..Finding::default() }
}

#[cfg(test)]
mod tests {
    use super::super::loss_unclear;
    use super::super::sample::{self, lossy};
    use super::*;

    /// A download with three segments lost; this many of them arrived damaged.
    fn with(damaged: u64) -> Connection {
        let mut connection = lossy(sample::pattern("unknown", 3), 5_000);
        let direction = connection.directions[1].as_mut().expect("data");
        direction.events.damaged = damaged;
        for limit in &mut direction.limits {
            if limit.state == State::RecoveryLoss && damaged > 0 {
                limit.state = State::RecoveryCorrupt;
            }
        }
        connection
    }

    #[test]
    fn damaged_segments_are_told_and_are_the_cause_of_the_losses() {
        let found = find(&with(3));
        assert_eq!(found.len(), 1);
        assert!((loss_unclear::RULE.find)(&with(3)).is_empty(), "their cause is known");
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn one_of_three_does_not_explain_the_others() {
        let connection = with(1);
        let case = Case::of(&connection, 1).expect("data");
        assert!(!explains(&case));
        assert!(find(&connection)[0].not.contains("2 more"));
    }

    #[test]
    fn losses_without_a_wrong_checksum_are_none() {
        assert!(find(&with(0)).is_empty());
        assert_eq!((loss_unclear::RULE.find)(&with(0)).len(), 1);
    }

    #[test]
    fn without_an_interval_it_is_a_fact() {
        let mut connection = sample::download();
        connection.directions[1].as_mut().expect("data").events.damaged = 1;
        let found = find(&connection);
        assert_eq!((found[0].severity, found[0].cost_ns), (Severity::Note, 0));
    }
}
