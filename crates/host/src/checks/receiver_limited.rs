//! Senders on this host wait for their peers' windows.
//!
//! # What it says
//! The data is there, the network would take it, and the peer's window does not admit more: the peer's
//! program reads too slowly, or its receive buffer is too small for the path. Nothing on this host mends it.
//!
//! # How we know
//! At least 20 % of the time with something in flight was limited by the receiver's window (`rwnd_limited`); one look tells that
//! of the whole connection. Where the round trip is twice the least one or more, a queue may stand in the path, which a larger
//! window would only lengthen, or the peer holds its ACKs: then it is a remark. A window of 0 at both looks, with nothing
//! acknowledged between them, is a program that does not read. Where the peer's own socket is in the same text, its Recv-Q
//! tells which of the two it is.
//!
//! # What it is not
//! Not which of the two it is: a window that goes to 0 is a program that does not read, one that stays at its
//! most is a buffer. `tcpwhy explain` of a capture tells them apart.
//!
//! # What to do
//! Run `tcpwhy check` on the peer, too.
//!
//! # Sources
//! Linux `tcp_chrono_start` (`TCP_CHRONO_RWND_LIMITED`), since 4.10. 20 % of at least a second, and twice the round trip: ours,
//! not measured.

use super::flows::{self, time};
use super::peer_window_shut::probes;
use super::receive_queue_full::is_full;
use super::sent::{amount, held};
use super::{Check, counters, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Info, Socket, Source};
use tcpwhy_words::said::{bytes, percent};

pub(super) const CHECK: Check = Check {
    code: "RECEIVER_LIMITED",
    file: include_str!("receiver_limited.rs"),
    group: Group::Sending,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let known = flows::known(seen)?;
    if !known.is_empty() && known.iter().all(|(_, info)| info.busy_ns.is_none()) {
        return Err(Missing::part(Source::Sockets, "busy and rwnd_limited: ss -i, Linux 4.10"));
    }
    let waits = |flow: &&Flow<'_>| held(flow, seen, |info| info.rwnd_limited_ns).is_some();
    let waiting =
        flows::worst(known.into_iter().map(|(flow, _)| flow).filter(waits).collect(), amount);
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let evidence = flows::evidence(seen, &waiting, |flow| {
        let (held, busy) = held(flow, seen, |info| info.rwnd_limited_ns).unwrap_or_default();
        let window = flow.info().and_then(|info| info.snd_wnd);
        let window = window.map_or_else(String::new, |window| {
            format!(", the peer's window {}", bytes(u64::from(window)))
        });
        let share = percent(held.cast_signed(), busy.cast_signed());
        let there = other_end(seen, flow).map_or_else(String::new, unread_there);
        format!("rwnd_limited {share} of {} busy{window}{there}", time(busy))
    });
    let (severity, confidence) = how_bad(seen, &waiting);
    let queued = waiting.iter().find(|flow| may_be_queued(seen, flow)).and_then(|flow| flow.info());
    let unread = waiting.iter().filter(|flow| is_unread(flow)).count();
    Ok(vec![Finding {
        severity,
        confidence,
        scope: Scope::Netns,
        title: format!(
            "{} wait{} for the peer's window",
            flows::counted(seen, &waiting),
            flows::verb_s(waiting.len())
        ),
        why: "the data is written, and the peers admit no more of it. Nothing on this host \
              mends that."
            .to_owned()
            + &queued.map_or_else(String::new, lengthened),
        not: if unread == 0 {
            undecided(seen, &waiting)
        } else {
            format!(
                "not that a buffer is too small where the window stayed at 0 ({}): there the peer's program does not read",
                words::count(unread as u64, "connection")
            )
        },
        evidence,
        fixes: vec![words::advise(remedy(seen, &waiting), "")],
        ..Finding::default()
    }])
}

/// The peer's own socket, where a text has both ends.
fn other_end<'a>(seen: &Seen<'a>, flow: &Flow<'_>) -> Option<&'a Socket> {
    let ends =
        |socket: &&Socket| (socket.local, socket.remote) == (flow.now.remote, flow.now.local);
    seen.snapshot.pasted.then(|| seen.sockets().ok()?.iter().find(ends)).flatten()
}

fn unread_there(socket: &Socket) -> String {
    let of = socket
        .memory
        .map_or_else(String::new, |memory| format!(", r{} of rb{}", memory.rmem, memory.rcvbuf));
    format!("; at the peer Recv-Q {}{of}", socket.receive_queue)
}

/// What is left open of it.
fn undecided(seen: &Seen<'_>, waiting: &[&Flow<'_>]) -> String {
    if waiting.iter().all(|flow| other_end(seen, flow).is_some()) {
        return "not this end's buffers or program, and not the path".to_owned();
    }
    "whether the peer's program reads too slowly or its buffer is too small".to_owned()
}

/// What to do at the peers, by their sockets where all of them are here.
fn remedy(seen: &Seen<'_>, waiting: &[&Flow<'_>]) -> &'static str {
    let there: Option<Vec<&Socket>> = waiting.iter().map(|flow| other_end(seen, flow)).collect();
    match there {
        Some(there) if there.iter().all(|socket| is_full(socket)) => {
            "find out what the program at the other end does instead of reading"
        }
        Some(there) if there.iter().all(|socket| socket.receive_queue == 0) => {
            "let the receive buffer at the other end grow: its program has read all that came"
        }
        Some(_) => "look again at the other end (ss -tinm): does its Recv-Q stay?",
        None => "run `tcpwhy check` on the peers",
    }
}

/// How bad it is, and how sure: one look tells it of the time since the connection began.
fn how_bad(seen: &Seen<'_>, waiting: &[&Flow<'_>]) -> (Severity, Confidence) {
    let is_mostly = |flow: &&Flow<'_>| {
        held(flow, seen, |info| info.rwnd_limited_ns)
            .is_some_and(|(held, busy)| counters::is_share(held, busy, 50))
            && !may_be_queued(seen, flow)
    };
    let is_plain = |flow: &&Flow<'_>| !may_be_queued(seen, flow);
    match seen.before {
        Some(_) if waiting.iter().any(is_plain) => (Severity::Warning, Confidence::High),
        None if waiting.iter().any(is_mostly) => (Severity::Warning, Confidence::Medium),
        Some(_) => (Severity::Info, Confidence::Medium),
        None => (Severity::Info, Confidence::Low),
    }
}

/// What a round trip above the least one means here.
fn lengthened(info: &Info) -> String {
    let (rtt, least) = (info.rtt_ns.unwrap_or(0), info.min_rtt_ns.unwrap_or(0));
    format!(
        " A round trip of {} where {} is the least is a queue in the path, which a larger window would only \
         lengthen, or a peer that holds its ACKs.",
        time(rtt),
        time(least)
    )
}

/// A queue may stand in the path. It does not where the window is shut and probed: nothing is in flight then. Nor is it what
/// holds the sender of a receiver whose buffer is seen to be full.
fn may_be_queued(seen: &Seen<'_>, flow: &Flow<'_>) -> bool {
    let times = || flow.info().and_then(|info| info.rtt_ns.zip(info.min_rtt_ns));
    let is_unread = other_end(seen, flow).is_some_and(is_full);
    probes(flow) == 0
        && !is_unread
        && times().is_some_and(|(rtt, least)| rtt >= least.saturating_mul(2))
}

/// Its peer's window stayed shut.
fn is_unread(flow: &Flow<'_>) -> bool {
    let is_shut =
        |socket: &Socket| socket.info.as_ref().is_some_and(|info| info.snd_wnd == Some(0));
    flow.before.is_some() && flow.always(is_shut) && flow.grew(|info| info.bytes_acked) == Some(0)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Memory, Snapshot};

    /// This many milliseconds of limited and of busy time between the looks, after a second of both.
    fn uploading(limited_ms: u64, busy_ms: u64) -> Snapshot {
        let info = |limited: u64, busy: u64| Info {
            busy_ns: Some(busy * 1_000_000),
            rwnd_limited_ns: Some(limited * 1_000_000),
            snd_wnd: Some(65_535),
            ..Info::default()
        };
        let at = |limited, busy| vec![socket(0, &info(limited, busy), Memory::default())];
        connected(&[], at(1000, 1000), at(1000 + limited_ms, 1000 + busy_ms))
    }

    #[test]
    fn a_peer_that_holds_its_sender() {
        insta::assert_snapshot!(shown(&CHECK, &uploading(9000, 9900)));
    }

    #[test]
    fn a_fifth_of_a_second_at_least_is_the_border() {
        let number = |limited, busy| judged(&CHECK, &uploading(limited, busy)).expect("seen").len();
        assert_eq!([number(200, 1000), number(199, 1000), number(900, 999)], [1, 0, 0]);
    }

    fn changed(change: impl Fn(&mut Info)) -> Snapshot {
        let mut host = uploading(9000, 9900);
        for socket in host.looks.iter_mut().flat_map(|look| look.sockets.iter_mut().flatten()) {
            change(socket.info.as_mut().expect("info"));
        }
        host
    }

    #[test]
    fn behind_a_queue_of_a_round_trip_a_larger_window_would_only_lengthen_it() {
        let judged = |rtt| {
            let host = changed(|info| (info.rtt_ns, info.min_rtt_ns) = (Some(rtt), Some(10_000)));
            let found = judged(&CHECK, &host).expect("seen").remove(0);
            (found.severity, found.why.contains("lengthen"))
        };
        assert_eq!(judged(19_999), (Severity::Warning, false));
        assert_eq!(judged(20_000), (Severity::Info, true));
    }

    #[test]
    fn a_window_that_stayed_shut_is_a_program_that_does_not_read() {
        let not = |window| {
            let shut = changed(|info| {
                (info.snd_wnd, info.bytes_acked) = (Some(window), Some(7));
            });
            judged(&CHECK, &shut).expect("seen")[0].not.clone()
        };
        assert!(not(0).contains("does not read"), "{}", not(0));
        assert!(!not(1).contains("does not read"), "{}", not(1));
    }

    #[test]
    fn one_look_tells_of_the_whole_connection() {
        let found = judged(&CHECK, &once(uploading(0, 5000))).expect("seen");
        assert_eq!(found, Vec::new());
        // The second before the looks counts, too: 50 and 49 % of six seconds.
        for (limited, told) in [
            (2000, (Severity::Warning, Confidence::Medium)),
            (1940, (Severity::Info, Confidence::Low)),
        ] {
            let found = judged(&CHECK, &once(uploading(limited, 5000))).expect("seen");
            assert_eq!((found[0].severity, found[0].confidence), told, "{limited}");
        }
    }

    #[test]
    fn the_other_end_in_the_same_text_tells_which_it_is() {
        let told = |unread: u32| {
            let text = format!(
                "ESTAB 0 90000 10.0.0.1:80 10.0.0.2:5000\n\t cubic rto:204 rtt:2/1 mss:1448 cwnd:90 busy:5000ms \
                 rwnd_limited:4500ms(90.0%) unacked:20 minrtt:0.2 snd_wnd:30000\n\
                 ESTAB {unread} 0 10.0.0.2:5000 10.0.0.1:80\n\t \
                 skmem:(r{unread},rb100000,t0,tb87040,f0,w0,o0,bl0,d0) cubic rto:204 rtt:2/1 mss:1448 cwnd:10\n"
            );
            judged(&CHECK, &crate::paste::read(&text).snapshot).expect("seen").remove(0)
        };
        let [late, small] = [told(90_000), told(0)];
        assert_eq!(late.severity, Severity::Warning);
        assert!(!late.why.contains("queue in the path"), "{}", late.why);
        assert!(late.fixes[0].what.contains("instead of reading"), "{:?}", late.fixes);
        let seen = format!("{:?}", late.evidence);
        assert!(seen.contains("at the peer Recv-Q 90000, r90000 of rb100000"), "{seen}");
        assert_eq!(small.severity, Severity::Info);
        assert!(small.fixes[0].what.contains("buffer"), "{:?}", small.fixes);
    }

    #[test]
    fn without_the_times_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
        let at = || vec![socket(0, &Info::default(), Memory::default())];
        assert!(missing(&CHECK, &connected(&[], at(), at())).to_string().contains("rwnd_limited"));
    }
}
