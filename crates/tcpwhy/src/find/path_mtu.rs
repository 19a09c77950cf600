//! A device on the way said that segments are too large for its next link, and they had to be retransmitted.
//!
//! # What it says
//! A link on the way carries less than the sender's full segments. The device before it dropped them and told the
//! sender how much fits. The time is that of sending them again, long where the sender does not heed what it was told.
//!
//! # How we know
//! An ICMP "fragmentation needed" or an `ICMPv6` "packet too big" that quotes this connection, and data that was sent
//! again after it. A packet longer than the MTU that was told cannot pass, whatever its luck. Some routers quote a
//! length that they cut themselves: then a segment that did not fit shows where it is retransmitted in several pieces.
//! That the sender heeds it shows in the size of what it sends then.
//!
//! # What it is not
//! Not a full queue and not chance: the device says why it drops. Losses of one episode that began with such an error
//! appear here alone. An error whose quoted packets fit the MTU that it names proves nothing (RFC 5927), nor does one
//! after which nothing was retransmitted. Where the device says nothing, it is `BLACK_HOLE`.
//!
//! # What to do
//! Make the sender know before it sends: clamp the MSS of SYNs where the narrow link begins, or give the hosts the
//! path's MTU. Where it does not heed the errors, let them in to its host: the firewall there, and each NAT or load
//! balancer before it, must hand them to whom they quote.
//!
//! # Sources
//! RFC 1191, RFC 8201 (path MTU discovery), RFC 5927 section 7 (what to believe); Linux `tcp_v4_mtu_reduced`,
//! `tcp_simple_retransmit` (v6.1, `net/ipv4/tcp_ipv4.c`, `tcp_input.c`).

use std::collections::BTreeSet;

use super::case::{Case, Held, Told, in_each};
use super::{Rule, remedies};
use crate::icmp::{Reaction, fits, is_behind, reaction, reaction_in_words, said};
use crate::report::{Connection, Finding, IcmpErrors, Remedy, Retransmission, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "PATH_MTU", severity: Severity::Wrong, file: include_str!("path_mtu.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let error = error(case)?;
        let held = held(case, error);
        if held.limits.is_empty() {
            return None;
        }
        Some(held.finding(RULE.code, told(case, error)))
    })
}

/// What was said first of packets of this direction that were too large, if data was retransmitted then.
pub(super) fn error<'a>(case: &Case<'a>) -> Option<&'a IcmpErrors> {
    let about = |each: &&IcmpErrors| {
        each.kind == "too_big"
            && each.about.as_deref() == Some(case.sender())
            && is_proven(case, each)
    };
    let told = case.connection.icmp.iter().filter(about);
    let error = told.min_by_key(|each| each.first_ns)?;
    let mut again = case.direction.retransmissions.iter();
    let harmed = |each: &Retransmission| is_behind(error, each.frame, each.at_ns) && !each.spurious;
    again.any(harmed).then_some(error)
}

/// Whether a packet did not fit: a quoted one, as far as its length is known, or one retransmitted in pieces.
fn is_proven(case: &Case<'_>, error: &IcmpErrors) -> bool {
    let Some(mtu) = error.mtu else { return true };
    let mut known = error.quoted.iter().filter_map(|each| each.bytes).peekable();
    known.peek().is_none() || known.any(|bytes| bytes > mtu) || was_cut_in_pieces(case, error)
}

/// Whether a segment from before the error, which did not fit, was retransmitted in several pieces that do.
///
/// Pieces that follow one another hold no more bytes than the segments that they repeat: where these are more for each
/// segment than the next hop takes, one of the segments did not fit. (Linux `__tcp_retransmit_skb` cuts the first segment
/// and joins what is left of it to the next one, so that a piece may repeat the end of one and the beginning of another.)
fn was_cut_in_pieces(case: &Case<'_>, error: &IcmpErrors) -> bool {
    let Some(fits) = fits(error) else { return false };
    // Of a frame that a network card cuts nobody knows what was too large.
    if case.mss().is_none_or(|mss| mss <= fits) {
        return false;
    }
    let is_piece = |each: &&Retransmission| {
        let is_known = (1..MOST_ORIGINALS).contains(&each.originals.len());
        let told_before = is_behind(error, each.frame, each.at_ns);
        is_known && told_before && each.bytes <= fits && !each.spurious
    };
    let mut pieces: Vec<_> = case.direction.retransmissions.iter().filter(is_piece).collect();
    pieces.sort_by_key(|each| (each.seq, each.frame));
    let mut run = Pieces::default();
    pieces.into_iter().any(|each| {
        run.take(each);
        run.is_before(error) && run.bytes > fits.saturating_mul(run.originals.len() as u64)
    })
}

/// A list of originals that is no longer has all of them.
const MOST_ORIGINALS: usize = 64;

/// Retransmitted pieces, each from where the one before ended.
#[derive(Debug, Default)]
struct Pieces {
    end: i64,
    bytes: u64,
    /// Frames whose bytes they repeat.
    originals: BTreeSet<u64>,
}

impl Pieces {
    fn take(&mut self, piece: &Retransmission) {
        let end = piece.seq.saturating_add_unsigned(piece.bytes);
        let goes_on = piece.originals.iter().any(|frame| self.originals.contains(frame));
        if !goes_on || piece.seq > self.end {
            *self = Self { end: piece.seq, ..Self::default() };
        }
        // Of what is sent once more only what is new counts.
        self.bytes += u64::try_from(end.saturating_sub(self.end)).unwrap_or(0);
        self.end = self.end.max(end);
        self.originals.extend(&piece.originals);
    }

    /// Whether the first segment that they repeat was sent before the error.
    fn is_before(&self, error: &IcmpErrors) -> bool {
        self.originals.first().is_some_and(|frame| *frame < error.frames.first)
    }
}

/// Whether all that was lost in this direction was too large for a link: one episode, begun by such an error.
pub(super) fn explains(case: &Case<'_>) -> bool {
    let Some(error) = error(case) else { return false };
    let mut again = case.direction.retransmissions.iter().filter(|each| !each.spurious);
    let one = case.direction.loss_pattern.as_deref().is_none_or(|known| known.episodes <= 1);
    one && !case.connection.truncated && again.all(|each| is_behind(error, each.frame, each.at_ns))
}

/// The repairs and timers from the error on; all of them only where nothing else was lost.
fn held<'a>(case: &Case<'a>, error: &IcmpErrors) -> Held<'a> {
    let mut held = case.held(|state| {
        matches!(
            state,
            State::SilenceNoAck
                | State::RecoveryLoss
                | State::RecoveryReorderSpurious
                | State::RtoWait
                | State::TlpWait
        )
    });
    let (first, last) = (error.first_ns.unwrap_or(0), error.last_ns.unwrap_or(0));
    let all = explains(case);
    // Intervals lie on the sender's timeline and errors on that of the capture: frames have one order.
    held.limits.retain(|each| {
        let frames = each.evidence.frames;
        let is_behind = each.end_ns > first || frames.last > error.frames.first;
        let began = each.start_ns <= last || (1..=error.frames.last).contains(&frames.first);
        is_behind && (all || began)
    });
    held
}

fn told(case: &Case<'_>, error: &IcmpErrors) -> Told {
    let sender = case.sender();
    let reaction = reaction(case.connection, error);
    let how = match reaction {
        Some(Reaction::Smaller(_)) => format!(", and the {sender} sent them again smaller"),
        Some(Reaction::AsLarge(..)) => format!(", and the {sender} did not heed what it was told"),
        Some(Reaction::Late(..)) => format!(", and the {sender} heeded late what it was told"),
        Some(Reaction::Cut) | None => String::new(),
    };
    let mut why = said(error);
    if let Some(reaction) = reaction {
        why = format!("{why}; {}", reaction_in_words(reaction, sender));
    }
    if let Some(after) = first_that_fits(case, error) {
        why = format!("{why}, first {} after it was told", said::time(after));
    }
    Told {
        title: format!("segments were too large for a link on the way{how}"),
        why: format!("{why}."),
        not: "not a full queue and not chance: the device says why it dropped them".to_owned(),
        remedies: help(case, reaction),
    }
}

/// How long after the error the first segment that fits was retransmitted.
fn first_that_fits(case: &Case<'_>, error: &IcmpErrors) -> Option<i64> {
    let (fits, first) = (fits(error)?, error.first_ns?);
    let mut again = case.direction.retransmissions.iter();
    let is_such =
        |each: &&Retransmission| is_behind(error, each.frame, each.at_ns) && each.bytes <= fits;
    let after = again.find(is_such)?.at_ns - first;
    // Seen from elsewhere the sender's clock may be ahead.
    (after > 0).then_some(after)
}

fn help(case: &Case<'_>, reaction: Option<Reaction>) -> Vec<Remedy> {
    let clamp = remedies::path(
        "lower the MSS of SYNs where the narrow link begins (a tunnel, a VPN), so that no segment is too large for it",
    );
    let ignored = matches!(reaction, Some(Reaction::AsLarge(..) | Reaction::Late(..)));
    let mut all = vec![clamp];
    if ignored {
        let let_in = "let these ICMP errors in, and see whether the host has learned the MTU (a line with mtu); NAT and \
                      load balancers before it must hand them on, too";
        let peer = match case.receiver_address() {
            Some(peer) => peer.to_string(),
            None => format!("ADDRESS_OF_THE_{}", case.receiver().to_uppercase()),
        };
        all.insert(
            0,
            remedies::host(case.at, let_in, format!("ip route get {peer}; nft list ruleset")),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::super::sample::{self, held_by};
    use super::*;
    use crate::report::{FrameRange, QuotedPacket};

    const MS: i64 = 1_000_000;

    /// A download whose server was told of an MTU of 1,320 bytes, and sent segments of these sizes again.
    fn told_of(again: &[u64]) -> Connection {
        let mut connection = held_by(State::RecoveryLoss, 5_000);
        let held = connection.directions[1].as_mut().expect("data");
        let limits = held.limits.iter().filter(|each| each.state == State::RecoveryLoss);
        let at = limits.map(|each| each.start_ns).min().expect("held");
        held.retransmissions = again
            .iter()
            .zip(1..)
            .map(|(&bytes, n)| Retransmission {
                at_ns: at + n * MS,
                bytes,
                ..Retransmission::default()
            })
            .collect();
        let quoted = QuotedPacket { bytes: Some(1_500), ..QuotedPacket::default() };
        connection.icmp = vec![IcmpErrors {
            kind: "too_big".into(),
            about: Some("server".into()),
            from: IpAddr::from([10, 0, 0, 254]),
            mtu: Some(1_320),
            count: 2,
            first_ns: Some(at),
            last_ns: Some(at),
            quoted: vec![quoted],
            ..sample::icmp_errors()
        }];
        connection
    }

    fn title(again: &[u64]) -> String {
        find(&told_of(again)).first().map_or_else(String::new, |found| found.title.clone())
    }

    #[test]
    fn what_the_device_said_and_what_the_sender_made_of_it_is_told() {
        insta::assert_snapshot!(sample::shown(&find(&told_of(&[1_268, 180]))));
        assert!(title(&[1_448, 1_448]).ends_with("did not heed what it was told"));
        assert!(title(&[1_448, 1_268]).ends_with("heeded late what it was told"));
    }

    #[test]
    fn nothing_sent_again_is_no_harm() {
        assert_eq!(title(&[]), "");
        let mut before = told_of(&[1_268]);
        before.directions[1].as_mut().expect("data").retransmissions[0].at_ns = 0;
        assert!(find(&before).is_empty());
    }

    #[test]
    fn a_packet_that_fits_was_not_too_large() {
        let of = |bytes| {
            let mut connection = told_of(&[1_268]);
            connection.icmp[0].quoted[0].bytes = Some(bytes);
            find(&connection).len()
        };
        assert_eq!([of(1_321), of(1_320)], [1, 0]);
    }

    /// The same where the router quotes a length of its own, and a segment of frame 2 is retransmitted in these
    /// pieces: where each begins, and its bytes.
    fn cut(pieces: &[(i64, u64)]) -> Connection {
        let mut connection = told_of(&vec![0; pieces.len()]);
        connection.mss = Some(1_448);
        connection.icmp[0].quoted[0].bytes = Some(548);
        connection.icmp[0].frames = FrameRange { first: 7, last: 9 };
        let held = connection.directions[1].as_mut().expect("data");
        for (each, &(seq, bytes)) in held.retransmissions.iter_mut().zip(pieces) {
            // On the sender's timeline, which is ahead of the capture's.
            (each.at_ns, each.frame) = (0, 10);
            (each.seq, each.bytes, each.originals) = (seq, bytes, vec![2]);
        }
        connection
    }

    #[test]
    fn a_segment_sent_again_in_pieces_was_too_large_whatever_length_is_quoted() {
        let fires = |pieces: &[(i64, u64)]| find(&cut(pieces)).len();
        assert_eq!(fires(&[(0, 1_268), (1_268, 180)]), 1);
        assert_eq!(fires(&[(0, 1_268)]), 0, "one that fits may be the whole");
        assert_eq!(fires(&[(0, 1_100), (1_100, 180)]), 0, "1,280 bytes fit");
        assert_eq!(fires(&[(0, 1_100), (1_100, 181)]), 1);
        let mut before = cut(&[(0, 1_268), (1_268, 180)]);
        let held = before.directions[1].as_mut().expect("data");
        held.retransmissions.iter_mut().for_each(|each| each.frame = 6);
        assert!(find(&before).is_empty(), "retransmitted before it was told");
        let mut small = cut(&[(0, 1_268), (1_268, 180)]);
        small.mss = Some(1_280);
        assert!(find(&small).is_empty(), "the card cuts into segments that fit");
    }

    #[test]
    fn a_piece_may_end_one_segment_and_begin_the_next() {
        let fires = |pieces: &[(i64, u64, &[u64])]| {
            let plain: Vec<_> = pieces.iter().map(|each| (each.0, each.1)).collect();
            let mut connection = cut(&plain);
            let held = connection.directions[1].as_mut().expect("data");
            for (each, (.., originals)) in held.retransmissions.iter_mut().zip(pieces) {
                each.originals = originals.to_vec();
            }
            find(&connection).len()
        };
        // Three segments of 1,448 bytes in pieces of 1,268, and the rest.
        let joined: [(i64, u64, &[u64]); 4] = [
            (0, 1_268, &[2]),
            (1_268, 1_268, &[2, 3]),
            (2_536, 1_268, &[3, 4]),
            (3_804, 540, &[4]),
        ];
        assert_eq!(fires(&joined), 1);
        assert_eq!(fires(&joined[..3]), 0, "3,804 bytes fit in three segments");
        assert_eq!(fires(&[joined[0], joined[0], (0, 1_000, &[2])]), 0, "sent again and again");
        assert_eq!(fires(&[joined[0], (1_268, 1_268, &[3])]), 0, "two segments that fit");
    }

    #[test]
    fn what_the_card_cuts_and_needs_no_more_is_told_with_no_size() {
        let why_of = |sent: &[(i64, u64)]| {
            let mut connection = cut(sent);
            connection.icmp[0].quoted[0].bytes = Some(7_292);
            find(&connection).first().map_or_else(String::new, |found| found.why.clone())
        };
        let once = why_of(&[(0, 7_240), (7_240, 7_240)]);
        assert!(once.contains("which its network card cuts, and nothing a second time"), "{once}");
        let twice = why_of(&[(0, 7_240), (0, 7_240)]);
        assert!(!twice.is_empty() && !twice.contains("card"), "{twice}");
    }

    #[test]
    fn the_client_is_told_nothing_of_the_servers_packets_and_others_errors_are_not_this() {
        let mut connection = told_of(&[1_268]);
        connection.icmp[0].about = Some("client".into());
        assert!(find(&connection).is_empty());
        let mut connection = told_of(&[1_268]);
        connection.icmp[0].kind = "host_unreachable".into();
        assert!(find(&connection).is_empty());
    }

    #[test]
    fn one_episode_after_the_error_is_explained_and_two_are_not() {
        let explained =
            |connection: &Connection| Case::of(connection, 1).is_some_and(|case| explains(&case));
        let mut connection = told_of(&[1_268]);
        let mut pattern = sample::pattern("random", 1);
        connection.directions[1].as_mut().expect("data").loss_pattern =
            Some(Box::new(pattern.clone()));
        assert!(explained(&connection));
        pattern.episodes = 2;
        connection.directions[1].as_mut().expect("data").loss_pattern = Some(Box::new(pattern));
        assert!(!explained(&connection));
    }
}
