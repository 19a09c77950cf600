//! Segments are small: what each packet carries is less than half of what an Ethernet carries.
//!
//! # What it says
//! One side offered a small maximum segment size, or a device on the way lowered it. Each segment
//! pays for its headers and its handling, and windows counted in segments (slow start, the initial
//! window) hold fewer bytes.
//!
//! # How we know
//! The MSS option of the side that receives: below 730 bytes, half of an Ethernet's 1,460, and the other
//! side sent more than an initial window. Where the sender's segments are small because the peer's window is (Linux sends at most
//! half of the largest window it was ever offered), that is the window's doing and not told here.
//!
//! # What it is not
//! Not a black hole: these segments arrive. Not the offloads of a network card, which cut segments
//! of this size too.
//!
//! # What to do
//! Look at the MTU of both hosts' interfaces and routes (`ip link`, `ip route get PEER`: mtu,
//! advmss), and at rules that clamp the MSS (tunnels, `tcp option maxseg size set`). Behind a
//! tunnel some 1,300 to 1,400 bytes are normal, 536 is what a host takes when no MSS was offered.
//!
//! # Sources
//! RFC 9293 section 3.7.1 (536 by default), RFC 6691; Linux `tcp_bound_to_half_wnd` (v6.1,
//! `net/ipv4/tcp_output.c`). Ours: half of 1,460.

use super::case::{active_ns, filter, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, Severity};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "SMALL_MSS", severity: Severity::Wrong, file: include_str!("small_mss.rs"), find };

/// Less than half of what an Ethernet of 1,500 bytes carries without options. Ours.
const SMALL: u16 = 730;
/// Fewer segments than this hardly matter. Ours: an initial window.
const FEW: u64 = 10;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        // What a side offers is what the other one may send (RFC 9293 section 3.7.1).
        let offer = |at: usize| connection.syns[at].and_then(|syn| syn.mss);
        let (mss, other) = (offer(1 - case.at)?, offer(case.at)?);
        if mss >= SMALL || case.direction.segments <= FEW {
            return None;
        }
        let (sender, receiver) = (case.sender(), case.receiver());
        let frames = connection.frames;
        Some(Finding {
            code: RULE.code.to_owned(),
            severity: Severity::Note,
            title: format!(
                "the {sender}'s segments carry no more than {}",
                said::bytes(u64::from(mss))
            ),
            why: format!(
                "the {receiver}'s SYN offered a maximum segment size of {mss} (the {sender}'s {other}), or a device \
                 on the way wrote it there."
            ),
            not: "not a black hole: these segments arrive".to_owned(),
            evidence: vec![Evidence {
                from_ns: 0,
                to_ns: connection.handshake_rtt_ns.unwrap_or(0),
                frames,
                filter: format!("{} && tcp.options.mss_val == {mss}", filter(frames)),
                text: format!("MSS {mss} of the {receiver}, {other} of the {sender}"),
            }],
            cost_ns: 0,
            of_ns: active_ns(connection),
            remedies: vec![remedies::look(
                1 - case.at,
                "look at the MTU of interface and route, and for rules that clamp the MSS",
                "ip link; ip route; nft list ruleset",
            )],
            ..Finding::default()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn offered(mss: u16, bytes: u64) -> Vec<Finding> {
        let mut connection = sample::Sim { bytes, ..sample::Sim::default() }.run();
        connection.syns[0].as_mut().expect("SYN").mss = Some(mss);
        find(&connection)
    }

    #[test]
    fn a_small_offer_is_told() {
        insta::assert_snapshot!(sample::shown(&offered(536, 100_000)));
    }

    #[test]
    fn half_an_ethernet_is_enough_and_less_is_small() {
        assert!(offered(730, 100_000).is_empty());
        assert_eq!(offered(729, 100_000).len(), 1);
    }

    #[test]
    fn each_direction_is_bound_by_the_offer_of_the_side_that_receives() {
        let mut connection = sample::download();
        connection.syns[1].as_mut().expect("SYN-ACK").mss = Some(536);
        assert!(find(&connection).is_empty(), "the server, who sends, offered it");
    }

    #[test]
    fn a_few_segments_hardly_matter() {
        assert!(offered(536, 5_000).is_empty());
    }
}
