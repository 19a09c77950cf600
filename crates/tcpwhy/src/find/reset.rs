//! One side ended the connection with a reset (RST), not with a FIN.
//!
//! # What it says
//! A FIN says "that was all"; a reset says "forget this connection". What was still on its way, or had
//! arrived and was not read, is lost, and the other program gets an error ("connection reset by peer", a
//! response that is too short). The finding says who sent the reset, and after how many bytes of what.
//!
//! # How we know
//! A segment with RST, and no FIN of the side whose data it ended. It is a warning where data was cut
//! off: bytes not acknowledged yet; a reset by the sender of the last data within a second of it; a server
//! that resets what it did not answer. Else it is a plain fact: after an idle time, after a last word of less
//! than a segment (as TLS sends one), or when all was acknowledged, nothing need be missing. The cost is the time of the transfer that was cut off, or until the
//! reset that was its answer.
//!
//! # What it is not
//! No finding: a reset after the FIN of the side that sent last, as of a client that has all it wants;
//! one that answers a last short message behind its own FIN, as TLS sends. Whether a response was whole
//! the packets do not say; the program that got it knows. A device on the way may send resets in a host's name:
//! then their hop limit (TTL) mostly differs from that of the host's other packets.
//!
//! # What to do
//! On the host that sent it see why its program ended so: it exited or was killed, it closed the socket with
//! data unread (Linux counts `TCPAbortOnClose`), it set `SO_LINGER` to 0 or data came after it had closed
//! (`TCPAbortOnData`), or keepalive probes or `TCP_USER_TIMEOUT` found no answer (`TCPAbortOnTimeout`). A proxy or load balancer does it when its time for a request or an idle connection is
//! over: compare the time with its timeouts.
//!
//! # Sources
//! RFC 9293 sections 3.5.2 and 3.10.7 (reset generation), RFC 2525 section 2.17 (reset when unread data is
//! closed); Linux `__tcp_close`, `tcp_rcv_state_process`, `tcp_keepalive_timer`
//! (v6.1, `net/ipv4/tcp.c`, `tcp_input.c`, `tcp_timer.c`). Ours: a second, and a segment behind a FIN, not measured.

use super::case::{active_ns, filter};
use super::{Rule, remedies};
use crate::icmp::said;
use crate::report::{
    Connection, Evidence, Finding, FrameRange, IcmpErrors, Reset, Severity, Transfer,
};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "RESET", severity: Severity::Note, file: include_str!("reset.rs"), find };

/// Who resets its own data so soon after the last of it did not wait for more. Ours, not measured: programs that
/// give up do so at once, timeouts of idle connections are seconds.
const SOON_NS: i64 = 1_000_000_000;

const SIDES: [&str; 2] = ["client", "server"];

/// What a reset ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ended {
    /// Data on its way.
    UnderWay,
    /// The resetting side's own data, which had all arrived.
    OwnData,
    /// A request that the server had not answered.
    Unanswered,
    /// Perhaps nothing.
    Perhaps,
}

fn find(connection: &Connection) -> Vec<Finding> {
    let found = connection.reset.as_ref().and_then(|reset| {
        let (last, ended) = ended(connection, reset)?;
        Some(told(connection, reset, last, ended))
    });
    found.into_iter().collect()
}

fn side(name: &str) -> Option<usize> {
    SIDES.iter().position(|each| *each == name)
}

/// The transfer that `reset` ended, and how.
fn ended<'a>(connection: &'a Connection, reset: &Reset) -> Option<(&'a Transfer, Ended)> {
    let by = side(&reset.by)?;
    let of = |at: usize| connection.transfers.iter().rev().find(move |t| t.from == SIDES[at]);
    // What a side goes on sending after it was no end: a reset that nobody believed.
    if of(by).is_some_and(|own| own.start_ns > reset.at_ns) {
        return None;
    }
    let last = connection.transfers.iter().max_by_key(|each| each.start_ns)?;
    let from = side(&last.from)?;
    let mss = u64::from(connection.mss.unwrap_or(1));
    // A last word of the side that resets, as TLS sends one: there is nothing in it to cut off.
    let is_last_word = |own: &Transfer| own.from == SIDES[by] && own.bytes < mss;
    for at in [from, 1 - from] {
        let behind_fin = reset.after_fin[by] && at != by;
        let least = if behind_fin { mss } else { 1 };
        if !reset.after_fin[at]
            && reset.unacked_bytes[at] >= least
            && let Some(cut) = of(at)
            && !is_last_word(cut)
        {
            return Some((cut, Ended::UnderWay));
        }
    }
    if reset.after_fin[from] || reset.after_fin[by] {
        return None;
    }
    let ended = match () {
        () if (from, by) == (0, 1) => Ended::Unanswered,
        () if from == by
            && !is_last_word(last)
            && reset.at_ns.saturating_sub(last.end_ns) <= SOON_NS =>
        {
            Ended::OwnData
        }
        () => Ended::Perhaps,
    };
    Some((last, ended))
}

fn told(connection: &Connection, reset: &Reset, last: &Transfer, ended: Ended) -> Finding {
    let (by, from) = (&*reset.by, &*last.from);
    let at = side(by).unwrap_or(0);
    // What was not answered was waited for in vain. A reset at the end of data made nothing slow.
    let cost_ns = match ended {
        Ended::Unanswered => reset.at_ns.saturating_sub(last.start_ns).max(0),
        Ended::UnderWay | Ended::OwnData | Ended::Perhaps => 0,
    };
    let title = match ended {
        Ended::UnderWay if by == from => {
            format!("the {by} reset the connection (RST) while its own data was under way")
        }
        Ended::UnderWay => {
            format!("the {by} reset the connection (RST) while the {from} was still sending")
        }
        Ended::OwnData => format!("the {by} ended its data with a reset (RST), without a FIN"),
        Ended::Unanswered => {
            format!("the {by} reset the connection (RST) instead of answering")
        }
        Ended::Perhaps => format!("the {by} ended the connection with a reset (RST)"),
    };
    let unacked = side(from).map_or(0, |from| reset.unacked_bytes[from]);
    let left = match unacked {
        0 => "all of it acknowledged".to_owned(),
        some => format!("{} of it not acknowledged", said::bytes(some.min(last.bytes))),
    };
    let since = match reset.at_ns.saturating_sub(last.end_ns) {
        idle if idle > 0 && unacked == 0 => format!(", {} after its last ACK", said::time(idle)),
        _ => String::new(),
    };
    let frames = FrameRange { first: reset.frame, last: reset.frame };
    Finding {
        code: RULE.code.to_owned(),
        severity: if ended == Ended::Perhaps { Severity::Note } else { Severity::Wrong },
        title,
        why: format!(
            "it came after {} of the {from}'s last transfer, {left}{since}; the {from} had sent no FIN, so whether \
             that was all it had to send the packets do not say.{}",
            said::bytes(last.bytes),
            heard(connection, reset)
        ),
        not: "not loss: a host sends it on purpose, or a device in its name".to_owned(),
        evidence: vec![Evidence {
            from_ns: reset.at_ns,
            to_ns: reset.at_ns,
            frames,
            filter: filter(frames),
            text: format!("RST of the {by}"),
        }],
        cost_ns,
        of_ns: active_ns(connection),
        remedies: vec![remedies::host(
            at,
            "see why its program ended so: it exited or was killed, closed with data unread (TCPAbortOnClose), or with \
             SO_LINGER 0 or before all had come (TCPAbortOnData), or its keepalive or user timeout ran out \
             (TCPAbortOnTimeout); of a proxy compare its timeouts",
            "nstat -az TcpExtTCPAbortOnClose TcpExtTCPAbortOnData TcpExtTCPAbortOnTimeout TcpOutRsts",
        )],
        ..Finding::default()
    }
}

/// What a device had said before: a program may have given up for it.
fn heard(connection: &Connection, reset: &Reset) -> String {
    let before = |each: &&IcmpErrors| each.first_ns.is_some_and(|at| at <= reset.at_ns);
    let mut such = connection.icmp.iter().filter(|each| super::unreachable::is_such(each));
    such.find(before).map_or_else(String::new, |error| format!(" Before it {}.", said(error)))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    const MS: i64 = 1_000_000;

    /// A download that a side resets so long after its last ACK.
    fn reset(by: &'static str, after_ns: i64, unacked: [u64; 2], fins: [bool; 2]) -> Connection {
        let mut connection = sample::download();
        let last = connection.transfers.iter().map(|each| each.end_ns).max().expect("data");
        connection.reset = Some(Reset {
            by: by.into(),
            at_ns: last + after_ns,
            frame: 300,
            after_fin: fins,
            unacked_bytes: unacked,
            refused_syn: None,
        });
        connection
    }

    fn severities(connection: &Connection) -> Vec<Severity> {
        find(connection).into_iter().map(|finding| finding.severity).collect()
    }

    const OPEN: [bool; 2] = [false; 2];

    #[test]
    fn a_server_that_cuts_its_answer_off_is_told() {
        let found = find(&reset("server", -MS, [0, 20_000], OPEN));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_client_that_lets_the_server_talk_to_nobody_is_told() {
        let found = find(&reset("client", -MS, [0, 20_000], OPEN));
        assert!(found[0].title.contains("while the server was still sending"), "{found:?}");
        // It had closed, and what still came was answered with a reset.
        assert_eq!(
            severities(&reset("client", -MS, [0, 20_000], [true, false])),
            [Severity::Wrong]
        );
    }

    #[test]
    fn a_reset_soon_behind_own_data_is_no_close_and_one_after_a_second_may_be() {
        assert_eq!(severities(&reset("server", SOON_NS, [0, 0], OPEN)), [Severity::Wrong]);
        assert_eq!(severities(&reset("server", SOON_NS + 1, [0, 0], OPEN)), [Severity::Note]);
    }

    #[test]
    fn a_client_that_has_it_all_may_reset() {
        assert_eq!(severities(&reset("client", MS, [0, 0], OPEN)), [Severity::Note]);
        assert_eq!(
            severities(&reset("client", MS, [0, 1], OPEN)),
            [Severity::Wrong],
            "but not before"
        );
    }

    #[test]
    fn behind_the_senders_fin_a_reset_cuts_nothing_off() {
        for fins in [[true, true], [false, true]] {
            for by in SIDES {
                assert!(find(&reset(by, MS, [0, 0], fins)).is_empty(), "{by} {fins:?}");
            }
        }
    }

    #[test]
    fn a_last_short_message_behind_a_close_is_not_missed() {
        let left = |bytes| severities(&reset("server", MS, [bytes, 0], [false, true]));
        let mss = u64::from(sample::download().mss.expect("known"));
        assert!(left(31).is_empty() && left(mss - 1).is_empty());
        assert_eq!(left(mss), [Severity::Wrong]);
    }

    #[test]
    fn a_last_word_before_a_reset_is_not_missed_either() {
        let mut connection = reset("server", -MS, [0, 31], OPEN);
        let mss = u64::from(connection.mss.expect("known"));
        for (bytes, severity) in [(mss - 1, Severity::Note), (mss, Severity::Wrong)] {
            for unacked in [0, 31] {
                connection.reset.as_mut().expect("one").unacked_bytes[1] = unacked;
                connection.transfers.iter_mut().for_each(|each| each.bytes = bytes);
                assert_eq!(severities(&connection), [severity], "{bytes} {unacked}");
            }
        }
    }

    #[test]
    fn a_request_that_gets_a_reset_was_not_answered() {
        let mut connection = Sim { upload: true, ..Sim::default() }.run();
        connection.transfers.retain(|each| each.from == "client");
        connection.reset = reset("server", 0, [0, 0], OPEN).reset;
        let found = find(&connection);
        assert!(found[0].title.ends_with("instead of answering"), "{found:?}");
    }

    #[test]
    fn what_went_on_was_not_ended() {
        let mut connection = reset("server", 0, [0, 20_000], OPEN);
        connection.reset.as_mut().expect("one").at_ns = 0;
        assert!(find(&connection).is_empty());
        assert!(find(&sample::download()).is_empty(), "no reset at all");
    }
}
