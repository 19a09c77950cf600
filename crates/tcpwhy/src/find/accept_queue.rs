//! The server did not take the connection, though the client had done its part: its accept queue was full.
//!
//! # What it says
//! The client's last ACK of the handshake and its data arrived on the server's host, and the server's TCP took neither:
//! the queue of connections that its program has not accepted yet was full. The client repeats what it sent until there
//! is room, which looks like loss.
//!
//! # How we know
//! After the client's ACK the server sent nothing but SYN-ACKs, while data of the client came again. A TCP that has the
//! connection answers at once what it gets twice, and sends no SYN-ACK any more. In a capture of the server's own host
//! every copy is seen to arrive: nothing was lost on the way. Elsewhere only a SYN-ACK that comes again, a round trip
//! after ACK and data, shows it, and then all of these may have been lost on the way, too: the finding names both.
//!
//! # What it is not
//! Not loss in the network, as far as the server's own capture tells. Not `TCP_DEFER_ACCEPT`, which waits for data and
//! takes them at once. A firewall on the server's host that drops what the capture still sees looks alike.
//!
//! # What to do
//! See whether the program accepts too slowly (one thread, a full pool of workers, a pause), and whether its backlog is
//! small: the queue holds the least of the `listen()` call's number and `net.core.somaxconn`. `ss -ltn` shows both in one
//! line: Recv-Q connections wait, Send-Q may. `nstat -az TcpExtListenOverflows` counts each refused ACK.
//!
//! # Sources
//! Linux `sk_acceptq_is_full`, `tcp_v4_syn_recv_sock`, `tcp_check_req` with `tcp_abort_on_overflow` 0, `reqsk_timer_handler`
//! (v6.1, `include/net/sock.h`, `net/ipv4/tcp_ipv4.c`, `tcp_minisocks.c`, `inet_connection_sock.c`); RFC 9293 section
//! 3.10.7.4 (what comes twice is acknowledged). Ours: 200 ms, the longest delayed ACK of Linux (`TCP_DELACK_MAX`).

use super::case::{Case, active_ns, filter, severity};
use super::{Rule, remedies};
use crate::report::{
    Connection, Evidence, Finding, FrameRange, NotTaken, Remedy, Severity, State, Sure, Untaken,
};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "ACCEPT_QUEUE",
    severity: Severity::Wrong,
    file: include_str!("accept_queue.rs"),
    find,
};

/// How sure it is in the server's own capture, and elsewhere.
const SURE: [Sure; 2] = [Sure::Shown, Sure::Likely];

fn find(connection: &Connection) -> Vec<Finding> {
    let found = connection
        .untaken
        .as_ref()
        .and_then(|untaken| Some(told(connection, untaken, shown(connection)?)));
    found.into_iter().collect()
}

fn shown(connection: &Connection) -> Option<NotTaken> {
    let Connection { vantage, handshake_rtt_ns, duration_ns, .. } = *connection;
    connection.untaken?.shows(vantage, handshake_rtt_ns, duration_ns)
}

/// When the server took the connection, or the end of the capture.
fn until(connection: &Connection, untaken: &Untaken) -> i64 {
    untaken.to_ns.unwrap_or(connection.duration_ns)
}

fn told(connection: &Connection, untaken: &Untaken, shows: NotTaken) -> Finding {
    let had_arrived = shows == NotTaken::Arrived;
    let until = until(connection, untaken);
    let cost_ns = (until - untaken.from_ns).max(0);
    let of_ns = active_ns(connection).max(cost_ns);
    let mut seen = Vec::new();
    if untaken.repeats > 0 {
        seen.push(format!(
            "the client's data passed {}",
            said::count(untaken.repeats, "more time")
        ));
    }
    if untaken.syn_acks > 0 {
        seen.push(format!("the server's SYN-ACK {}", said::count(untaken.syn_acks, "more time")));
    }
    let taken = match untaken.to_ns {
        Some(_) => format!("Only {} after the client's ACK", said::time(cost_ns)),
        None => "Up to the last packet nothing shows that".to_owned(),
    };
    let place = if had_arrived { "All of it arrived on the server's host. " } else { "" };
    let severity = if untaken.to_ns.is_none() && had_arrived {
        Severity::Broken
    } else {
        severity(RULE.code, cost_ns, SURE[usize::from(!had_arrived)])
    };
    let frames = connection.frames;
    Finding {
        code: RULE.code.to_owned(),
        severity,
        title: if had_arrived {
            "the server's TCP did not take the connection: its accept queue was full"
        } else {
            "the server did not take the connection at once: its accept queue was full, or the client's ACK was lost"
        }
        .to_owned(),
        why: format!(
            "after the handshake {}. {place}{taken} the server took the connection.",
            said::listed(&seen)
        ),
        not: if had_arrived {
            "not loss in the network: every copy is in this capture of the server; a firewall of that host that drops them \
             behind the capture looks alike"
        } else {
            "likely not the network: for that the ACK and every copy of the data had to be lost; the server's own capture \
             tells, or its counter"
        }
        .to_owned(),
        evidence: vec![Evidence {
            from_ns: untaken.from_ns,
            to_ns: until,
            frames: FrameRange { first: frames.first, last: frames.last },
            filter: filter(frames),
            text: format!("{}, before the server took the connection", said::listed(&seen)),
        }],
        cost_ns,
        of_ns,
        remedies: help(connection), ..Finding::default() }
}

fn help(connection: &Connection) -> Vec<Remedy> {
    let port = connection.server.port();
    vec![
        remedies::host(
            remedies::SERVER,
            "see how many connections wait to be accepted (Recv-Q of the listener) and how many may (Send-Q), and whether \
             the counter grows",
            format!(
                "ss -ltn '( sport = :{port} )'; nstat -az TcpExtListenOverflows TcpExtListenDrops; sysctl net.core.somaxconn"
            ),
        ),
        remedies::program(
            remedies::SERVER,
            "accept sooner (more workers, no work in the thread that accepts) and listen with a larger backlog: it is cut \
             to net.core.somaxconn",
        ),
    ]
}

/// Whether all time in `state` of the client lies in the wait for the server to take the connection.
pub(super) fn holds_all(case: &Case<'_>, wanted: impl Fn(State) -> bool) -> bool {
    let untaken = case.connection.untaken.as_ref().filter(|_| case.at == remedies::CLIENT);
    let Some(untaken) = untaken.filter(|_| shown(case.connection).is_some()) else { return false };
    // The client's own time line is a little behind that of the tap.
    let slack = case.rtt().or(case.connection.handshake_rtt_ns).unwrap_or(0);
    let until = until(case.connection, untaken).saturating_add(slack);
    let mut limits = case.direction.limits.iter().filter(|limit| wanted(limit.state));
    limits.all(|limit| limit.end_ns <= until)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::Vantage;

    const MS: i64 = 1_000_000;

    /// A download of whose opening this is known.
    fn untaken(vantage: Vantage, untaken: Untaken) -> Connection {
        Connection { vantage, untaken: Some(untaken), ..sample::download() }
    }

    /// Data passed at 21 ms and again, and the server took it at `to`.
    fn again(repeats: u64, to: i64) -> Untaken {
        Untaken {
            from_ns: 20 * MS,
            data_ns: Some(21 * MS),
            to_ns: Some(to * MS),
            repeats,
            ..Untaken::default()
        }
    }

    #[test]
    fn data_that_came_again_and_was_not_taken_is_told_on_the_servers_host() {
        insta::assert_snapshot!(sample::shown(&find(&untaken(Vantage::Server, again(3, 3_700)))));
        assert!(
            find(&untaken(Vantage::Client, again(3, 3_700))).is_empty(),
            "lost, for all we know"
        );
    }

    #[test]
    fn a_delayed_ack_may_take_as_long_and_no_longer() {
        assert!(find(&untaken(Vantage::Server, again(1, 220))).is_empty());
        assert_eq!(find(&untaken(Vantage::Server, again(1, 221))).len(), 1);
    }

    #[test]
    fn elsewhere_a_syn_ack_that_comes_again_tells_of_both() {
        let at = |syn_ack: i64| Untaken {
            syn_acks: 1,
            last_syn_ack_ns: Some(syn_ack),
            ..again(1, 3_700)
        };
        let rtt = sample::download().handshake_rtt_ns.expect("seen");
        let found = |at| find(&untaken(Vantage::Unknown, at));
        assert!(found(at(21 * MS + rtt)).is_empty(), "it may have left before the data came");
        let told = found(at(21 * MS + rtt + 1));
        assert!(told[0].title.contains("or the client's ACK was lost"), "{told:?}");
    }

    #[test]
    fn a_listener_that_waits_for_data_is_no_such_thing() {
        let waits = Untaken {
            from_ns: 20 * MS,
            data_ns: None,
            to_ns: Some(5_000 * MS),
            syn_acks: 2,
            last_syn_ack_ns: Some(3_000 * MS),
            ..Untaken::default()
        };
        assert!(find(&untaken(Vantage::Server, waits)).is_empty());
        assert!(find(&sample::download()).is_empty());
    }
}
