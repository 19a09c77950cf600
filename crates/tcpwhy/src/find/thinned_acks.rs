//! Far fewer ACKs come back than the receiver sends: something thins them.
//!
//! # What it says
//! Cable modems, radio links and some proxies drop ACKs that a later one covers. Each ACK that is left
//! acknowledges a lot, and what it releases leaves as one burst.
//!
//! # How we know
//! A receiver acknowledges every second segment, or one aggregate of them where its card or its kernel
//! merges what comes close together (GRO). A full path of at most 50 Mbit/s sets segments 0.24 ms apart or
//! more, too far to merge; where a path was full for a fifth of the working time, over a hundred segments or
//! more, eight or more for each bare ACK are a finding. On faster paths, and where bursts arrive as they were
//! sent, fewer ACKs are usual, and nothing is said.
//!
//! # What it is not
//! Not delayed ACKs, which hold one back for at most two segments. Not by itself slow: Linux grows its window
//! by what ACKs cover, not by their number. Whether a device drops them or the receiver sends few shows
//! only in a capture on the receiver's host: taken there, it is the receiver itself.
//!
//! # What to do
//! Mostly nothing. Where bursts are lost, let the sender space them out (`fq` on its device, BBR). Where the
//! uplink is so full that a device must drop ACKs, see what fills it.
//!
//! # Sources
//! RFC 9293 section 3.8.6.3 (every second segment), RFC 3449 section 5.2 (ACK filtering); Linux
//! `__tcp_ack_snd_check`, `tcp_slow_start` (v6.1, `net/ipv4/tcp_input.c`, `tcp_cong.c`). Ours: eight, and
//! 50 Mbit/s, not measured.

use super::case::{Case, active_ns, filter, in_each};
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, Severity, Vantage};
use tcpwhy_words::said;
use tcpwhy_words::units::BitRate;

pub(super) const RULE: Rule = Rule {
    code: "THINNED_ACKS",
    severity: Severity::Note,
    file: include_str!("thinned_acks.rs"),
    find,
};

/// Segments for each ACK, at least. Ours: four times what RFC 9293 asks for.
const FEWEST_FOR_EACH: u64 = 8;
/// Fewer segments prove nothing. Ours.
const FEWEST_SEGMENTS: u64 = 100;
/// The path was full for this share of the time. Ours, not measured.
const FULL_PERCENT: f64 = 20.0;
/// On faster paths receivers merge segments. Ours: 0.24 ms between full segments.
const FASTEST_BPS: u64 = 50_000_000;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let direction = case.direction;
        // Only a path that was full spaces what arrives.
        let full = case.path_full_percent() >= FULL_PERCENT;
        let rate = direction.bottleneck_rate_bps.filter(|_| full)?;
        let acks = bare_acks(case)?;
        let few = direction.segments >= FEWEST_SEGMENTS
            && direction.segments >= acks.saturating_mul(FEWEST_FOR_EACH);
        if !few || rate > FASTEST_BPS || direction.events.not_captured > 0 {
            return None;
        }
        let receiver = case.receiver();
        let at_receiver = [Vantage::Server, Vantage::Client][case.at] == connection.vantage;
        let by = if at_receiver {
            format!("the {receiver} sends few ACKs")
        } else {
            format!("few of the {receiver}'s ACKs come back")
        };
        let segments = said::count(direction.segments, "segment");
        Some(Finding {
            code: RULE.code.to_owned(),
            // Windows grow by what is covered; what bursts cost is found as loss.
            severity: Severity::Note,
            title: format!("{by}: each covers {} segments", direction.segments / acks.max(1)),
            why: format!(
                "{} for {segments} at {}, where every second one is usual; each lets a burst go.",
                said::count(acks, "bare ACK"),
                BitRate(rate)
            ),
            not: "not slow by itself: Linux grows its window by what ACKs cover".to_owned(),
            evidence: vec![Evidence {
                from_ns: 0,
                to_ns: connection.duration_ns,
                frames: connection.frames,
                filter: format!("{} && tcp.len == 0", filter(connection.frames)),
                text: format!("{acks} bare ACKs, {segments}"),
            }],
            cost_ns: 0,
            of_ns: active_ns(connection),
            remedies: vec![remedies::path(
                "nothing, unless bursts are lost: then see what fills the way back so that a device drops ACKs there",
            )],
            ..Finding::default()
        })
    })
}

/// ACKs without data from the receiver, at most: all packets that carry none, the handshake's last left
/// in. `None` where the receiver sends much itself, for its data acknowledges too.
fn bare_acks(case: &Case<'_>) -> Option<u64> {
    let connection = case.connection;
    let other = connection.directions[1 - case.at].as_ref().map_or(0, |other| other.frames);
    let syns: u64 = connection.syns.iter().flatten().map(|syn| u64::from(syn.sent)).sum();
    (other * 10 <= case.direction.frames)
        .then(|| connection.packets.saturating_sub(case.direction.frames + other + syns))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::State;

    /// A transfer of these segments at `mbit` Mbit/s with these bare ACKs.
    fn acked(segments: u64, acks: u64, mbit: u64) -> Connection {
        on_a_path_full_for(5_000, segments, acks, mbit)
    }

    fn on_a_path_full_for(full: i64, segments: u64, acks: u64, mbit: u64) -> Connection {
        let mut connection = sample::held_by(State::BandwidthSelfQueue, full);
        let other = connection.directions[0].as_ref().map_or(0, |other| other.frames);
        let direction = connection.directions[1].as_mut().expect("data");
        (direction.segments, direction.frames) = (segments, segments);
        direction.bottleneck_rate_bps = Some(mbit * 1_000_000);
        connection.packets = segments + other + 2 + acks;
        connection
    }

    #[test]
    fn an_ack_for_sixteen_segments_of_a_slow_path_is_told() {
        insta::assert_snapshot!(sample::shown(&find(&acked(1_600, 100, 20))));
    }

    #[test]
    fn eight_for_each_are_few_and_less_is_usual() {
        assert_eq!(find(&acked(800, 100, 20)).len(), 1);
        assert!(find(&acked(799, 100, 20)).is_empty());
    }

    #[test]
    fn on_a_fast_path_receivers_merge_segments() {
        assert_eq!(find(&acked(1_600, 100, 50)).len(), 1);
        assert!(find(&acked(1_600, 100, 51)).is_empty());
    }

    #[test]
    fn a_path_that_was_full_for_a_fifth_of_the_time_spaces_segments_and_others_do_not() {
        assert_eq!(find(&on_a_path_full_for(2_000, 1_600, 100, 20)).len(), 1);
        assert!(find(&on_a_path_full_for(1_999, 1_600, 100, 20)).is_empty());
    }

    #[test]
    fn a_hundred_segments_are_enough_and_less_prove_nothing() {
        assert_eq!(find(&acked(100, 10, 20)).len(), 1);
        assert!(find(&acked(99, 10, 20)).is_empty());
    }
}
