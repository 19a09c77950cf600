//! TCP Fast Open was tried; how far it got.
//!
//! # What it says
//! With Fast Open a client sends its request with the SYN and saves a round trip. It needs a cookie
//! from an earlier connection to the same server. The stages: a cookie was asked for, given, used
//! with data, and the data taken or not. Where they were taken the finding says so and names the round trip saved.
//!
//! # How we know
//! The options of the SYN and the SYN-ACK (kind 34, or 254 with the experiment's magic) and the
//! payload that the SYN carried. A SYN-ACK that acknowledges more than the SYN's own number says that the
//! server took that payload; one that acknowledges the SYN alone says that it did not, and the client
//! sends it again behind the handshake.
//!
//! # What it is not
//! Not a cost by itself: where it fails the connection opens as any other. Middleboxes that drop
//! SYNs with this option show as SYNs retransmitted without it.
//!
//! # What to do
//! If the cookie was asked for and none came: switch it on at the server (`net.ipv4.tcp_fastopen`
//! has bit 2 set and the program sets `TCP_FASTOPEN` on its listener). If it was refused, compare
//! `TcpExtTCPFastOpenPassiveFail` and `TcpExtTCPFastOpenListenOverflow` there. Only requests that
//! may be repeated should go with a SYN.
//!
//! # Sources
//! RFC 7413 sections 3.1, 4.1 and 4.2.2; Linux `tcp_fastopen.c` (v6.1); `net.ipv4.tcp_fastopen` is a
//! bitmap: 1 client, 2 server.

use super::case::{active_ns, syns};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Remedy, Severity, Syn};
use tcpwhy_words::said;

pub(super) const RULE: Rule =
    Rule { code: "FAST_OPEN", severity: Severity::Note, file: include_str!("fast_open.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    let [Some(client), Some(server)] = &connection.syns else { return Vec::new() };
    let Some((title, remedies)) = stage(client, server) else { return Vec::new() };
    let cookie = match client.fast_open {
        Some(cookie) => format!("a cookie of {}", said::bytes(u64::from(cookie))),
        None => "no cookie".to_owned(),
    };
    vec![Finding {
        code: RULE.code.to_owned(),
        // A fact about the opening; what it costs or saves is a round trip at most.
        severity: Severity::Note,
        title: title.to_owned(),
        why: format!(
            "the SYN carried {cookie} and {} of data.{}",
            said::bytes(u64::from(client.payload)),
            acknowledged(connection, client, server)
        ),
        not: if is_taken(connection) {
            "no round trip was spent on opening before the request went out".to_owned()
        } else {
            "not a cost by itself: where it fails the connection opens as any other".to_owned()
        },
        evidence: vec![syns(connection)],
        cost_ns: 0,
        of_ns: active_ns(connection),
        remedies,
        ..Finding::default()
    }]
}

/// Whether the server took data that came with the SYN: then the request did not wait for the handshake.
pub(super) fn is_taken(connection: &Connection) -> bool {
    let [client, server] = &connection.syns;
    client.is_some_and(|syn| syn.payload > 0)
        && server.is_some_and(|syn| syn.acked.is_some_and(|acked| acked > 0))
}

/// What the SYN-ACK said of the data, and what that saved or cost.
fn acknowledged(connection: &Connection, client: &Syn, server: &Syn) -> String {
    let Some(acked) = server.acked.filter(|_| client.payload > 0) else { return String::new() };
    let trip = connection
        .handshake_rtt_ns
        .map_or_else(String::new, |rtt| format!(" ({})", said::time(rtt)));
    match acked {
        0 => format!(
            " The SYN-ACK acknowledged the SYN alone: the data were retransmitted, and the handshake's round trip{trip} \
             was paid."
        ),
        acked if acked >= client.payload => format!(
            " The SYN-ACK acknowledged all of it: the request did not wait for the handshake, which saved a round \
             trip{trip}."
        ),
        acked => format!(
            " The SYN-ACK acknowledged {} of it, which did not wait for the handshake's round trip{trip}.",
            said::bytes(u64::from(acked))
        ),
    }
}

/// How far it got, and what would bring it further.
fn stage(client: &Syn, server: &Syn) -> Option<(&'static str, Vec<Remedy>)> {
    let at_server = |what: &str| {
        vec![remedies::host(
            remedies::SERVER,
            what,
            "sysctl net.ipv4.tcp_fastopen; nstat -az TcpExtTCPFastOpenPassiveFail \
             TcpExtTCPFastOpenListenOverflow",
        )]
    };
    let refused = client.payload > 0 && server.acked == Some(0);
    let taken = client.payload > 0 && server.acked.is_some_and(|acked| acked > 0);
    let new_cookie = server.fast_open.is_some_and(|cookie| cookie > 0);
    if client.fast_open.is_none() && !taken {
        return None;
    }
    Some(match (client.fast_open.unwrap_or(0), new_cookie) {
        _ if taken => {
            ("Fast Open: the request went with the SYN, and a round trip was saved", vec![])
        }
        (1.., _) if refused => (
            "Fast Open: data went with the SYN, and the server did not take them",
            at_server(
                "see why the server refused: its counter of failed cookies, or its queue of Fast Open \
                 requests; several hosts behind one address need one key",
            ),
        ),
        (0, true) => {
            ("Fast Open: a cookie was asked for and given, the next connection can use it", vec![])
        }
        (0, false) => (
            "Fast Open: a cookie was asked for and none was given",
            at_server(
                "see whether Fast Open is on for servers (bit 2) and the program asks for it",
            ),
        ),
        (_, true) => (
            "Fast Open: the server answered the cookie with a new one",
            at_server(
                "if that goes on, see why cookies expire: several hosts behind one address \
                 need one key",
            ),
        ),
        (_, false) if client.payload > 0 => ("Fast Open: data went with the SYN", vec![]),
        (_, false) => ("Fast Open: a cookie was there, but no data went with the SYN", vec![]),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// A download whose SYN carried a cookie and payload of these lengths, and the SYN-ACK a cookie.
    fn opened(cookie: Option<u8>, payload: u32, answer: Option<u8>) -> Vec<Finding> {
        find(&with(cookie, payload, answer, None))
    }

    /// The same connection, whose SYN-ACK acknowledged this much of the payload.
    fn with(
        cookie: Option<u8>,
        payload: u32,
        answer: Option<u8>,
        acked: Option<u32>,
    ) -> Connection {
        let mut connection = sample::download();
        let [client, server] = &mut connection.syns;
        let (client, server) = (client.as_mut().expect("SYN"), server.as_mut().expect("SYN-ACK"));
        (client.fast_open, client.payload, server.fast_open) = (cookie, payload, answer);
        server.acked = acked;
        connection
    }

    #[test]
    fn each_stage_has_its_name() {
        let title = |cookie, payload, answer| opened(cookie, payload, answer)[0].title.clone();
        assert!(title(Some(0), 0, Some(8)).contains("asked for and given"));
        assert!(title(Some(0), 0, None).contains("none was given"));
        assert!(title(Some(8), 147, None).contains("data went with the SYN"));
        assert!(title(Some(8), 147, Some(8)).contains("with a new one"));
        assert!(title(Some(8), 0, None).contains("no data"));
        insta::assert_snapshot!(sample::shown(&opened(Some(0), 0, None)));
    }

    #[test]
    fn what_the_syn_ack_acknowledged_was_saved_and_what_it_did_not_was_paid() {
        let told = |cookie, payload, acked| {
            let connection = with(cookie, payload, None, Some(acked));
            (is_taken(&connection), find(&connection).first().map(|found| found.why.clone()))
        };
        let says = |(taken, why): (bool, Option<String>), words: &str| {
            (taken, why.is_some_and(|why| why.contains(words)))
        };
        assert_eq!(says(told(Some(8), 147, 147), "saved a round trip"), (true, true));
        assert_eq!(says(told(Some(8), 147, 0), "was paid"), (false, true));
        assert_eq!(says(told(Some(0), 0, 0), "saved"), (false, false), "a cookie was asked for");
        assert_eq!(says(told(None, 147, 147), "no cookie"), (true, true));
        assert_eq!(
            told(None, 147, 0),
            (false, None),
            "data on a SYN are no Fast Open by themselves"
        );
    }

    #[test]
    fn without_the_option_nothing_is_said() {
        assert!(opened(None, 0, None).is_empty());
    }
}
