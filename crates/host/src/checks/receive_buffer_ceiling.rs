//! Connections fill the largest window that receive autotuning may give them.
//!
//! # What it says
//! The kernel lets a receive buffer grow with what the program reads, up to the third number of `tcp_rmem`.
//! Some connections here have arrived there, and as much comes in each round trip as their window admits:
//! window / round trip is their rate, however fast the path.
//!
//! # How we know
//! `rcvbuf` is the third number of `tcp_rmem`; what comes is read within 10 ms or two round trips (with one look:
//! less than half of the buffer waits); and what came between the looks, in the receiver's round trip, is at least 70 % of the window. With one look
//! `rcv_space` stands for it: the most that was read in a round trip at any time. The round trip is less
//! than twice the least one: no queue is in the path that a larger window would only lengthen.
//!
//! # What it is not
//! Not that the path carries more: the sender may be at its own limit, too. Raising `net.core.rmem_max`
//! does nothing here: it bounds `SO_RCVBUF` only.
//!
//! # What to do
//! Raise the third number of `tcp_rmem`. The window is a part of the buffer, about half where nothing better
//! is known, so that twice the bandwidth-delay product is needed, not once. New connections choose their
//! window scale by it; open ones grow as far as theirs reaches.
//!
//! # Sources
//! Linux `tcp_rcv_space_adjust`, `tcp_win_from_space`, `tcp_select_initial_window` (v6.12). 70 %, half of
//! the buffer, 10 ms and twice the round trip: ours, not measured. At most 64 MiB are proposed: ours.

use super::flows::{self, bits, bytes_in, rate, time};
use super::received::{amount, fills, is_queued, is_read, window};
use super::{Check, buffers, words};
use crate::finding::{Confidence, Finding, Fix, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;
use tcpwhy_words::said::bytes;

pub(super) const CHECK: Check = Check {
    code: "RECEIVE_BUFFER_CEILING",
    file: include_str!("receive_buffer_ceiling.rs"),
    group: Group::Receiving,
    judge,
};

const KEY: &str = "net.ipv4.tcp_rmem";
/// Ours: as much as guides for paths of 10 Gbit/s and 50 ms ask for.
const LARGEST: u64 = 64 << 20;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some([least, first, most]) = seen.numbers::<3>(KEY)? else { return Ok(Vec::new()) };
    let ceiling = most.unsigned_abs();
    let capped = flows::measured(seen)?.into_iter().filter_map(|(flow, info, memory)| {
        let is_there =
            u64::from(memory.rcvbuf) == ceiling && !is_locked(flow) && is_read(seen, flow);
        (is_there && fills(seen, flow, info)? && !is_queued(info)).then_some(flow)
    });
    let capped = flows::worst(capped.collect(), amount);
    let Some(worst) = capped.first() else { return Ok(Vec::new()) };
    let Some((info, memory)) = worst.info().zip(worst.memory()) else { return Ok(Vec::new()) };
    let (window, rtt) = (window(info).unwrap_or(0), info.rcv_rtt_ns.unwrap_or(0));
    let is_sure = seen.before.is_some() && info.min_rtt_ns.is_some();
    let [low, begin, high] = buffers::mended(seen, KEY, [least, first, most]);
    let set = format!("{low} {begin} {}", wanted(seen, worst, ceiling).max(high.unsigned_abs()));
    let mut found = Finding {
        severity: if seen.before.is_some() { Severity::Error } else { Severity::Warning },
        confidence: if is_sure { Confidence::Medium } else { Confidence::Low },
        scope: Scope::Netns,
        title: format!(
            "{} fill{} the largest window that tcp_rmem allows",
            flows::counted(seen, &capped),
            flows::verb_s(capped.len())
        ),
        why: format!(
            "a buffer of {} gives a window of {}; over a round trip of {} that is {}, however fast the path.",
            bytes(u64::from(memory.rcvbuf)),
            bytes(window),
            time(rtt),
            bits(rate(window, rtt).unwrap_or(0))
        ),
        not: "not that the path carries more: the sender may be at a limit of its own, too"
            .to_owned(),
        evidence: flows::evidence(seen, &capped, says),
        fixes: vec![raise(seen, &set, ceiling, [low, begin] != [least, first])],
        ..Finding::default()
    };
    found.evidence.insert(0, words::setting(KEY, &format_args!("{least} {first} {most}")));
    if seen.before.is_none() {
        found.unseen.push(Missing::all(Source::SecondLook).to_string());
    }
    Ok(vec![found])
}

/// Then it is the program's size, by chance the same.
fn is_locked(flow: &Flow<'_>) -> bool {
    flow.now.locks.and_then(|locks| locks.rcvbuf) == Some(true)
}

fn says(flow: &Flow<'_>) -> String {
    let Some((info, memory)) = flow.info().zip(flow.memory()) else { return String::new() };
    let came = flow
        .grew(|info| info.bytes_received)
        .map_or_else(String::new, |came| format!(", {} received between the looks", bytes(came)));
    format!(
        "rb{}, window {}, rcv_rtt {}{came}",
        memory.rcvbuf,
        bytes(window(info).unwrap_or(0)),
        time(info.rcv_rtt_ns.unwrap_or(0))
    )
}

/// What a link of known speed needs at this round trip, else four times what there is.
fn wanted(seen: &Seen<'_>, flow: &Flow<'_>, ceiling: u64) -> u64 {
    let most = ceiling.saturating_mul(4).min(LARGEST);
    let need = || {
        let (info, memory) = flow.info().zip(flow.memory())?;
        let product = bytes_in(flows::link(seen, flow)?.speed? / 8, info.rcv_rtt_ns?);
        product.saturating_mul(u64::from(memory.rcvbuf)).checked_div(window(info)?)
    };
    need().filter(|need| *need > ceiling).map_or(most, |need| need.min(most))
}

fn raise(seen: &Seen<'_>, set: &str, ceiling: u64, mends_all: bool) -> Fix {
    if ceiling >= LARGEST {
        return words::advise(
            "spread the transfer over several connections: the ceiling is as high as we would set it",
            "",
        );
    }
    words::set(
        seen,
        KEY,
        &set,
        if mends_all {
            "let receive buffers grow further, with the first two numbers mended (BUFFER_SIZES)"
        } else {
            "let receive buffers grow further"
        },
        "for open connections as far as their window scale reaches, for new ones in full",
        "more memory for each fast connection; longer pauses when a full queue is tidied up",
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot};

    const MS: u64 = 1_000_000;

    /// A download: 3 MiB of window, this many bytes in ten seconds.
    fn downloading(came: u64, rcvbuf: u32, min_rtt_ns: u64) -> Snapshot {
        let info = |received| Info {
            bytes_received: Some(received),
            rcv_ssthresh: Some(3 << 20),
            rcv_rtt_ns: Some(80 * MS),
            min_rtt_ns: Some(min_rtt_ns),
            rcv_space: Some(3 << 20),
            ..Info::default()
        };
        let memory = Memory { rcvbuf, rmem: 10_000, ..Memory::default() };
        let at = |received| vec![socket(0, &info(received), memory)];
        connected(&[(KEY, "4096 131072 6291456")], at(30 << 20), at((30 << 20) + came))
    }

    /// What fills a window of 3 MiB each 80 ms for ten seconds to 70 %.
    const FILLS: u64 = (3 << 20) * 125 * 7 / 10;

    #[test]
    fn a_window_at_its_ceiling_that_is_full_each_round_trip() {
        insta::assert_snapshot!(shown(&CHECK, &downloading(FILLS + 100, 6 << 20, 79 * MS)));
    }

    #[test]
    fn below_the_ceiling_or_with_room_in_the_window_or_behind_a_queue_it_is_not_the_ceiling() {
        assert_eq!(judged(&CHECK, &downloading(FILLS + 100, (6 << 20) - 1, 79 * MS)), Ok(vec![]));
        assert_eq!(judged(&CHECK, &downloading(FILLS - 1000, 6 << 20, 79 * MS)), Ok(vec![]));
        assert_eq!(judged(&CHECK, &downloading(FILLS + 100, 6 << 20, 40 * MS)), Ok(vec![]));
    }

    #[test]
    fn one_look_rests_on_what_was_once_read_in_a_round_trip() {
        let found = judged(&CHECK, &once(downloading(0, 6 << 20, 79 * MS))).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Low));
        let mut young = once(downloading(0, 6 << 20, 79 * MS));
        for socket in young.looks[0].sockets.iter_mut().flatten() {
            socket.info.as_mut().expect("info").bytes_received = Some((30 << 20) - 1);
        }
        assert_eq!(judged(&CHECK, &young), Ok(Vec::new()));
    }

    #[test]
    fn what_was_not_seen_is_named() {
        assert_eq!(missing(&CHECK, &host(&[(KEY, "1 2 3")])).source, Source::Sockets);
        let mut bare = downloading(FILLS, 6 << 20, 79 * MS);
        for socket in bare.looks.iter_mut().flat_map(|look| look.sockets.iter_mut().flatten()) {
            socket.memory = None;
        }
        assert!(missing(&CHECK, &bare).to_string().contains("SKMEMINFO"));
    }
}
