//! A program does not read what has come: its receive buffer is full, and the peer has to wait.
//!
//! # What it says
//! What arrives waits in the socket until the program reads it. When the buffer is full the kernel announces
//! a window of 0, and the sender stands still until the program has read: the network is not the cause.
//!
//! # How we know
//! More than three quarters of `rcvbuf` hold data that nobody has read, in every look, and at the pace of the program
//! that waits for at least 10 ms and two round trips: a small buffer of a fast reader is full at moments, too. Or
//! windows of 0 were announced (`TCPToZeroWindowAdv`) at least once in ten seconds between the looks. Where only the
//! queue was seen (`netstat`, `ss` without `-m`), 128 KiB in it are a finding.
//!
//! # What it is not
//! Not that the buffer is too small: a larger one only fills later. A probe of a zero window is no keepalive:
//! the sender's persist timer sends it, and counts it as `TCPWinProbe`.
//!
//! # What to do
//! Look at the program: what is the thread that reads this socket doing? A state of `D` is a disk or another
//! device; pressure on disk, memory or processors is listed beside it.
//!
//! # Sources
//! RFC 9293 section 3.8.6.1; Linux `tcp_select_window` (counts both), `tcp_probe_timer` (v6.12). Three
//! quarters, 10 ms, once in ten seconds: ours, not measured.

use super::flows::{self, time};
use super::received::{is_read, wait_ns};
use super::{Check, counters, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Growth, Missing, Seen};
use crate::snapshot::{Socket, Source, State};
use tcpwhy_words::said::bytes;

pub(super) const CHECK: Check = Check {
    code: "RECEIVE_QUEUE_FULL",
    file: include_str!("receive_queue_full.rs"),
    group: Group::Receiving,
    judge,
};

const ZERO: &str = "TCPToZeroWindowAdv";

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let zero = counters::grew(seen, counters::TCP_EXT, ZERO);
    // One look of a counter tells nothing of the sockets of now.
    let often =
        zero.clone().ok().flatten().filter(|zero| !zero.since_start && zero.per_second() >= 0.1);
    let full = full(seen);
    let found = match (&full, often) {
        (Ok(full), _) if !full.is_empty() => Ok(vec![of_sockets(seen, full, often)]),
        (_, Some(often)) => Ok(vec![of_counter(&full, often)]),
        _ => full.and(zero).map(|_| Vec::new()),
    };
    let unread = unread(seen);
    if unread.is_empty() {
        return found;
    }
    let mut all = found.unwrap_or_default();
    all.push(of_unread(seen, &unread));
    Ok(all)
}

/// This much waits unread only where a program is behind: all that a buffer of the kernel's default size takes in
/// (`tcp_rmem`, 131,072; half of it is payload).
const MUCH: u32 = 1 << 17;

/// Sockets whose queue is seen, in every look, and not the buffer.
fn unread<'s, 'a>(seen: &'s Seen<'a>) -> Vec<&'s Flow<'a>> {
    let is_behind = |socket: &Socket| socket.memory.is_none() && socket.receive_queue >= MUCH;
    let flows = seen.flows().unwrap_or_default().iter();
    let unread = flows.filter(|flow| {
        matches!(flow.now.state, State::Established | State::FinWait1 | State::FinWait2)
            && flow.always(is_behind)
    });
    flows::worst(unread.collect(), |flow| flow.now.receive_queue)
}

fn of_unread(seen: &Seen<'_>, unread: &[&Flow<'_>]) -> Finding {
    let mut missing = vec![Missing::part(Source::Sockets, "SKMEMINFO: ss -m").to_string()];
    if seen.before.is_none() {
        missing.push(Missing::all(Source::SecondLook).to_string());
    }
    Finding {
        severity: Severity::Warning,
        confidence: if seen.before.is_some() { Confidence::Medium } else { Confidence::Low },
        scope: Scope::Netns,
        title: format!(
            "{} hold{} data that the program has not read",
            flows::counted(seen, unread),
            flows::verb_s(unread.len())
        ),
        why: format!(
            "{} wait in the fullest; when its buffer is full the sender is told to stop, and stands still until the \
             program has read.",
            bytes(u64::from(unread[0].now.receive_queue))
        ),
        not: "not that the buffer is full: its size was not seen; and a fast reader is behind at moments, too"
            .to_owned(),
        evidence: flows::evidence(seen, unread, |flow| {
            format!("Recv-Q {}", flow.now.receive_queue)
        }),
        fixes: vec![words::advise("look again (ss -tmn): does Recv-Q stay? then see what the program does", "")],
        unseen: missing,
        ..Finding::default()
    }
}

/// Sockets on this host count, too: a reader that stops is one for each sender.
fn full<'s, 'a>(seen: &'s Seen<'a>) -> Asked<Vec<&'s Flow<'a>>> {
    let flows = seen.flows()?;
    if !flows.is_empty() && flows.iter().all(|flow| flow.memory().is_none()) {
        return Err(Missing::part(Source::Sockets, "SKMEMINFO: ss -m"));
    }
    let full = flows.iter().filter(|flow| {
        matches!(flow.now.state, State::Established | State::FinWait1 | State::FinWait2)
            && flow.always(is_full)
            && (wait_ns(seen, flow).is_none() || !is_read(seen, flow))
    });
    Ok(flows::worst(full.collect(), |flow| flow.now.receive_queue))
}

pub(super) fn is_full(socket: &Socket) -> bool {
    socket.receive_queue > 0
        && socket
            .memory
            .is_some_and(|memory| u64::from(memory.rmem) * 4 > u64::from(memory.rcvbuf) * 3)
}

fn of_sockets(seen: &Seen<'_>, full: &[&Flow<'_>], zero: Option<Growth>) -> Finding {
    let disk = full.iter().filter(|flow| waits_for_disk(seen, flow)).count();
    let disk = match disk {
        0 => "",
        _ => "; a thread of the program waits for a disk or another device (state D)",
    };
    let pace = match wait_ns(seen, full[0]) {
        None => String::new(),
        Some(u64::MAX) => ", and nothing was read between the looks".to_owned(),
        Some(wait) => format!(", {} at the pace of the program", time(wait)),
    };
    let mut evidence = flows::evidence(seen, full, says);
    evidence.extend(zero.map(|zero| words::counter(counters::TCP_EXT, ZERO, zero)));
    let mut found = Finding {
        severity: if zero.is_some() { Severity::Error } else { Severity::Warning },
        confidence: match (seen.before, zero) {
            (Some(_), Some(_)) => Confidence::High,
            (Some(_), None) if wait_ns(seen, full[0]).is_some() => Confidence::Medium,
            _ => Confidence::Low,
        },
        scope: Scope::Netns,
        title: match wait_ns(seen, full[0]) {
            None | Some(u64::MAX) => {
                format!(
                    "{} hold{} data that nobody reads",
                    flows::counted(seen, full),
                    flows::verb_s(full.len())
                )
            }
            Some(_) => {
                format!("{} received data that waits long to be read", flows::counted(seen, full))
            }
        },
        why: format!(
            "{} wait in the fullest{pace}; when a buffer is full its sender is told to stop, and waits \
             until the program has read{disk}.",
            bytes(u64::from(full[0].now.receive_queue))
        ),
        not: "not that the buffer is too small: a larger one only fills later".to_owned(),
        evidence,
        fixes: vec![words::advise(
            "find out what the program does instead of reading: its threads' stacks, its disk, its processor",
            "",
        )],
        ..Finding::default()
    };
    if seen.before.is_none() {
        found.unseen.push(Missing::all(Source::SecondLook).to_string());
    }
    found
}

fn of_counter(full: &Asked<Vec<&Flow<'_>>>, often: Growth) -> Finding {
    Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!("receivers on this host closed their windows: {}", words::grown(often)),
        why: "each time a sender had to stand still until a program here had read; none of the sockets was \
              full at both looks."
            .to_owned(),
        not: "which program it was: it reads again".to_owned(),
        evidence: vec![words::counter(counters::TCP_EXT, ZERO, often)],
        fixes: vec![words::advise("look again while it happens: `ss -tm` shows whose Recv-Q grows", "")],
        unseen: full.as_ref().err().map(ToString::to_string).into_iter().collect(),
        ..Finding::default()
    }
}

fn waits_for_disk(seen: &Seen<'_>, flow: &Flow<'_>) -> bool {
    let process = || seen.processes().ok()?.get(&flow.now.owner?.pid);
    process().is_some_and(|process| process.state == Some('D'))
}

fn says(flow: &Flow<'_>) -> String {
    let memory = flow.now.memory.unwrap_or_default();
    format!("Recv-Q {}, r{} of rb{}", flow.now.receive_queue, memory.rmem, memory.rcvbuf)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{counted, host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot};

    /// Memory that is in use in the first and the second look, half of it payload; and what came meanwhile.
    fn receiving(before: u32, now: u32, came: u64) -> Snapshot {
        let at = |rmem, received| {
            let memory = Memory { rmem, rcvbuf: 400_000, ..Memory::default() };
            let info = Info { bytes_received: Some(received), ..Info::default() };
            vec![Socket { receive_queue: rmem / 2, ..socket(0, &info, memory) }]
        };
        connected(&[], at(before, 1_000_000), at(now, 1_000_000 + came))
    }

    fn reading(before: u32, now: u32) -> Snapshot {
        receiving(before, now, u64::from(now.saturating_sub(before)) / 2)
    }

    fn zeros(host: Snapshot, grown: i64) -> Snapshot {
        counted(host, "TcpExt", ZERO, [7, 7 + grown])
    }

    #[test]
    fn a_queue_that_stays_full_while_zero_windows_go_out() {
        insta::assert_snapshot!(shown(&CHECK, &zeros(reading(310_000, 390_000), 4)));
    }

    #[test]
    fn a_queue_that_was_or_will_be_empty_or_is_three_quarters_full_is_none() {
        for (before, now) in [(0, 390_000), (390_000, 0), (300_000, 300_000)] {
            assert_eq!(judged(&CHECK, &zeros(reading(before, now), 0)), Ok(Vec::new()));
        }
        let found = judged(&CHECK, &zeros(reading(300_001, 300_001), 0)).expect("seen");
        assert_eq!(found[0].severity, Severity::Warning);
    }

    #[test]
    fn a_program_that_reads_fast_fills_a_small_buffer_at_moments() {
        // 160,000 bytes wait at both looks: ten milliseconds of 160 MB in ten seconds.
        let number = |came| {
            judged(&CHECK, &zeros(receiving(320_000, 320_000, came), 0)).expect("seen").len()
        };
        assert_eq!([number(160_000_000), number(160_000_001), number(900_000_000)], [1, 0, 0]);
    }

    #[test]
    fn zero_windows_alone_are_told_from_one_in_ten_seconds_on() {
        insta::assert_snapshot!(shown(&CHECK, &zeros(reading(0, 0), 1)));
        assert_eq!(judged(&CHECK, &zeros(reading(0, 0), 0)), Ok(Vec::new()));
    }

    #[test]
    fn a_long_queue_is_told_without_its_buffer() {
        let number = |queue: u32| {
            let text = format!("tcp {queue} 0 10.0.0.5:8080 10.0.0.9:51235 ESTABLISHED\n");
            judged(&CHECK, &crate::paste::read(&text).snapshot).map(|found| found.len())
        };
        assert_eq!(number(MUCH), Ok(1));
        assert!(number(MUCH - 1).is_err());
    }

    #[test]
    fn without_sockets_only_the_counter_is_judged() {
        assert_eq!(missing(&CHECK, &zeros(host(&[]), 0)).source, Source::Sockets);
        assert_eq!(judged(&CHECK, &zeros(host(&[]), 9)).expect("seen")[0].unseen, ["sockets"]);
    }
}
