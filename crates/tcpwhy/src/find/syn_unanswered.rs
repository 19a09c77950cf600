//! The connection was never opened: the SYN found no answer.
//!
//! # What it says
//! A client asked for a connection, perhaps several times, and nothing came back, or a reset did.
//! No byte of data could be sent.
//!
//! # How we know
//! The capture holds SYNs of this connection, no SYN-ACK and no data. Where the capture was taken
//! (on the server's host or elsewhere) decides what that means: there the SYN did arrive. An ICMP error that came
//! back says why; then `UNREACHABLE` tells what to do.
//!
//! # What it is not
//! Not a request that takes long: the server's program never learns of such a connection. But one that accepts
//! too slowly lets its queue fill, and then SYNs are dropped. A reset is an answer: nobody listens, or a firewall
//! says so. A capture that stopped too early, or sees one direction only, looks alike.
//!
//! # What to do
//! On the server's host, in this order: `nstat -az TcpExtListenOverflows TcpExtListenDrops` and `ss
//! -ltn` (accept queue full: Recv-Q above Send-Q of the listener), `TcpExtTCPReqQFullDrop` (SYN
//! queue), `TcpExtIPReversePathFilter` (the reverse path filter drops what came in by another
//! interface than the answer would take), `conntrack -S` and the firewall's counters, then `ip
//! route get CLIENT`: an answer that leaves by another interface is not in a capture of one. If the
//! SYNs never reach that host, look for them along the way.
//!
//! # Sources
//! Linux `tcp_conn_request`, `ip_rcv_finish_core`, `fib_validate_source` (v6.1,
//! `net/ipv4/tcp_input.c`, `ip_input.c`, `fib_frontend.c`); RFC 9293 section 3.5.

use super::case::filter;
use super::{Rule, remedies, unreachable};
use crate::icmp::said;
use crate::report::{Connection, End, Evidence, Finding, Remedy, Severity, Vantage};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "SYN_UNANSWERED",
    severity: Severity::Broken,
    file: include_str!("syn_unanswered.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    let [Some(syn), None] = &connection.syns else { return Vec::new() };
    if connection.directions.iter().any(Option::is_some) {
        return Vec::new();
    }
    let refused = connection.end == End::Rst;
    let at_server = connection.vantage == Vantage::Server;
    let times = said::times(u64::from(syn.sent));
    let after = match connection.duration_ns {
        0 => String::new(),
        waited => format!(" within {}", said::time(waited)),
    };
    let turned_back = unreachable::refusal(connection);
    let where_seen = match (refused, at_server, turned_back) {
        (true, ..) => "a reset came back".to_owned(),
        (.., Some(error)) => format!("an error came back: {}", said(error)),
        (_, true, _) => "it reached the server's host, and nothing left there".to_owned(),
        _ => "nothing came back to where this was captured".to_owned(),
    };
    let frames = connection.frames;
    vec![Finding {
        code: RULE.code.to_owned(),
        // One SYN may just be the capture's last packet.
        severity: if refused || (syn.sent > 1 && turned_back.is_none()) { RULE.severity } else { Severity::Note },
        title: if refused {
            "the connection was refused".to_owned()
        } else if turned_back.is_some() {
            "the SYN found no answer but an ICMP error".to_owned()
        } else {
            "the SYN found no answer".to_owned()
        },
        why: format!("the SYN was sent {times}{after}; {where_seen}."),
        not: match turned_back {
            Some(_) => "not the server's program: no request reached it",
            None => "no request reached the server's application; but where it accepts too slowly, SYNs are dropped",
        }
        .to_owned(),
        evidence: vec![Evidence {
            from_ns: 0,
            to_ns: connection.duration_ns,
            frames,
            filter: format!("{} && tcp.flags.syn == 1", filter(frames)),
            text: format!("SYN sent {times}, no SYN-ACK, no data"),
        }],
        cost_ns: connection.duration_ns,
        of_ns: connection.duration_ns,
        remedies: match turned_back {
            Some(_) if !refused => Vec::new(),
            _ => vec![help(connection, refused)],
        }, ..Finding::default() }]
}

fn help(connection: &Connection, refused: bool) -> Remedy {
    let port = connection.server.port();
    if refused {
        return remedies::host(
            remedies::SERVER,
            format!("see whether anything listens on port {port}, and the firewall"),
            format!("ss -ltnp '( sport = :{port} )'"),
        );
    }
    let client = match connection.client_name {
        Some(_) => "ADDRESS_OF_THE_CLIENT".to_owned(),
        None => connection.client.ip().to_string(),
    };
    remedies::host(
        remedies::SERVER,
        "see which counter grows (accept queue, SYN queue, reverse path filter, connection tracking), then where \
         the answer would leave",
        format!(
            "ss -ltn '( sport = :{port} )'; nstat -az TcpExtListenOverflows TcpExtListenDrops \
             TcpExtTCPReqQFullDrop TcpExtIPReversePathFilter; conntrack -S; ip route get {client}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::Syn;

    /// A client that sent this many SYNs.
    fn asked(times: u32) -> Connection {
        let mut connection = sample::download();
        connection.directions = [None, None];
        (connection.transfers, connection.exchanges) = (Vec::new(), Vec::new());
        connection.syns = [Some(Syn { sent: times, ..Syn::default() }), None];
        connection.end = End::Open;
        connection
    }

    #[test]
    fn syns_without_an_answer_are_told_with_the_counters_to_look_at() {
        insta::assert_snapshot!(sample::shown(&find(&asked(4))));
        assert_eq!(super::super::findings(&asked(4))[0].code, RULE.code);
    }

    #[test]
    fn a_single_syn_may_be_the_captures_end_and_two_are_an_error() {
        let severity = |times| find(&asked(times))[0].severity;
        assert_eq!([severity(1), severity(2)], [Severity::Note, Severity::Broken]);
    }

    #[test]
    fn a_reset_is_a_refusal() {
        let refused = Connection { end: End::Rst, ..asked(1) };
        assert!(find(&refused)[0].title.contains("refused"));
    }

    #[test]
    fn an_answered_syn_is_no_such_thing() {
        assert!(find(&sample::download()).is_empty());
    }
}
