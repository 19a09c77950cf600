//! Opening the connection took a repeated SYN or SYN-ACK.
//!
//! # What it says
//! A SYN or its answer got lost or was not answered, and the timer for it is long: one second at
//! first in Linux, then twice as long each time (from 6.5 on only after some of one second). The
//! application sees a connect that takes whole seconds: 1, 3 or 7, or from 6.5 on 1, 2, 3 or 4.
//!
//! One that is repeated more than once costs twice: its sender then begins with a congestion window of
//! one segment instead of ten, and its first flights double from there.
//!
//! # How we know
//! Intervals in the state `syn_retry`: the time between a SYN (or SYN-ACK) and its repeat. They
//! hold at least a tenth of the working time. A capture at the server that first sees a repeated
//! SYN cannot know of those before. That they cut the window is said where the flights show it, too:
//! one segment and then two, each waiting for ACKs.
//!
//! # What it is not
//! Not a request that takes long: the server's program has not seen the connection yet. But one that accepts too
//! slowly lets its queue fill, and then SYNs are dropped. Whether the SYN or its answer
//! was lost shows at the server: a SYN that its host answered has arrived, and the answer was lost. At the client
//! both look the same.
//!
//! # What to do
//! At the responder, in this order, each with its counter: the accept queue (`nstat -az
//! TcpExtListenOverflows TcpExtListenDrops`, `ss -ltn`: Recv-Q against Send-Q of the listener; the
//! program accepts too slowly, or its backlog is small), the SYN queue (`TcpExtTCPReqQFullDrop`,
//! `TcpExtTCPReqQFullDoCookies`), the reverse path filter (`TcpExtIPReversePathFilter`), connection
//! tracking (`conntrack -S`: drop and `insert_failed`) and firewalls, an answer that leaves by another
//! interface (`ip route get CLIENT` there). With none of them counting, the path lost it.
//!
//! # Sources
//! RFC 6298 sections 2.1 (one second) and 5.7, RFC 5681 section 3.1, Linux `tcp_init_transfer`, `TCP_TIMEOUT_INIT`, `tcp_conn_request` (v6.1,
//! `include/net/tcp.h`, `net/ipv4/tcp_input.c`), from 6.5 on `tcp_syn_linear_timeouts`.

use super::case::{Case, Told};
use super::{Rule, initial_window, remedies};
use crate::report::{Connection, Finding, Severity, State, Vantage};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "SYN_RETRY", severity: Severity::Wrong, file: include_str!("syn_retry.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    let cases = [0, 1].into_iter().filter_map(|at| Case::of(connection, at));
    let retries = cases.map(|case| case.held(|state| state == State::SynRetry));
    let Some(mut held) = retries.max_by_key(super::case::Held::time_ns) else { return Vec::new() };
    held.limits.retain(|limit| limit.end_ns > limit.start_ns);
    if !held.is_worth_naming() {
        return Vec::new();
    }
    let [syns, answers] = [0, 1]
        .map(|at| Case::of(connection, at).map_or(0, |case| case.direction.retransmitted.syn));
    let repeated: Vec<String> = [(syns, "SYN"), (answers, "SYN-ACK")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} was repeated {}", what, said::count(number, "time")))
        .collect();
    let repeated = if repeated.is_empty() {
        "a SYN or SYN-ACK was repeated".to_owned()
    } else {
        format!("the {}", said::listed(&repeated))
    };
    let arrived = at_the_server(connection.vantage, syns, answers);
    let told = Told {
        title: "opening the connection waited for a repeated SYN or SYN-ACK".to_owned(),
        why: format!(
            "{repeated}; each waits for a timer of a second or more, {} in all.{arrived}{}",
            said::time(held.time_ns()),
            cut(connection)
        ),
        not: "no request was under way yet; but where the server's program accepts too slowly, SYNs are dropped"
            .to_owned(),
        remedies: vec![
            remedies::host(
                remedies::SERVER,
                "see which counter grows: accept queue, SYN queue, reverse path filter, connection tracking; \
                 none: the path lost it",
                "nstat -az TcpExtListenOverflows TcpExtListenDrops TcpExtTCPReqQFullDrop \
                 TcpExtIPReversePathFilter; ss -ltn; conntrack -S",
            ),
            remedies::program(
                remedies::CLIENT,
                "keep connections open and use them again: fewer SYNs can be lost",
            ),
        ],
    };
    vec![held.finding(RULE.code, told)]
}

/// What the server's own tap adds: a SYN that passes it has arrived, and an answer that passes it was sent.
///
/// A client that repeats its SYN has no answer, so where each SYN was answered the answers were lost. Where only some
/// were, the counts do not tell which.
fn at_the_server(vantage: Vantage, syns: u64, answers: u64) -> &'static str {
    if vantage != Vantage::Server || syns == 0 {
        ""
    } else if answers == 0 {
        " Each SYN that was captured had reached the server's host, which did not answer: its accept queue or SYN queue \
         was full, or a firewall there dropped it."
    } else if answers >= syns {
        " The server's host answered each SYN that was captured: its answers were lost on the way to the client, or \
         dropped at the client."
    } else {
        ""
    }
}

/// Whose congestion window the repeats cut, too.
fn cut(connection: &Connection) -> String {
    let cases = [0, 1].into_iter().filter_map(|at| Case::of(connection, at));
    let cut = cases.filter_map(|case| initial_window::cut_by_syns(&case));
    cut.fold(String::new(), |told, sentence| told + " " + &sentence)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    #[test]
    fn a_repeated_syn_is_told() {
        let found = find(&held_by(State::SynRetry, 5_000));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn a_server_that_answered_each_syn_is_not_said_to_have_dropped_them() {
        assert!(at_the_server(Vantage::Server, 3, 0).contains("did not answer"));
        assert!(at_the_server(Vantage::Server, 3, 3).contains("answers were lost"));
        assert_eq!(
            at_the_server(Vantage::Server, 3, 1),
            "",
            "which of them it answered is not counted"
        );
        assert_eq!(at_the_server(Vantage::Server, 0, 3), "");
        assert_eq!(at_the_server(Vantage::Client, 3, 0), "");
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&held_by(State::SynRetry, 1_000)).len(), 1);
        assert!(find(&held_by(State::SynRetry, 999)).is_empty());
    }

    #[test]
    fn a_download_that_only_slow_start_held_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
