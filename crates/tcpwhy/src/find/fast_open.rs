//! TCP Fast Open was tried; how far it got.
//!
//! # What it says
//! With Fast Open a client sends its request with the SYN and saves a round trip. It needs a cookie
//! from an earlier connection to the same server. The stages: a cookie was asked for, given, used
//! with data.
//!
//! # How we know
//! The options of the SYN and the SYN-ACK (kind 34, or 254 with the experiment's magic) and the
//! payload that the SYN carried. A SYN-ACK that answers a cookie by a new one may have refused the old
//! one, or have taken it while the server changes its key; which, its acknowledgement would tell.
//!
//! # What it is not
//! Not a cost by itself: where it fails the connection opens as any other. Middleboxes that drop
//! SYNs with this option show as SYNs sent again without it.
//!
//! # What to do
//! If the cookie was asked for and none came: switch it on at the server (`net.ipv4.tcp_fastopen`
//! has bit 2 set and the program sets `TCP_FASTOPEN` on its listener). If it was refused, compare
//! `TcpExtTCPFastOpenPassiveFail` and `TcpExtTCPFastOpenListenOverflow` there. Only requests that
//! may be repeated should go with a SYN.
//!
//! # Sources
//! RFC 7413 sections 3.1 and 4.1; Linux `tcp_fastopen.c` (v6.1); `net.ipv4.tcp_fastopen` is a
//! bitmap: 1 client, 2 server.

use super::case::{active_ns, syns};
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Remedy, Syn};
use crate::words;

pub(super) const RULE: Rule = Rule { code: "FAST_OPEN", file: include_str!("fast_open.rs"), find };

fn find(connection: &Connection) -> Vec<Finding> {
    let [Some(client), Some(server)] = &connection.syns else { return Vec::new() };
    let Some((title, remedies)) = stage(client, server) else { return Vec::new() };
    let cookie = client.fast_open.unwrap_or(0);
    vec![Finding {
        code: RULE.code.to_owned(),
        // A fact about the opening; what it costs or saves is a round trip at most.
        severity: "info".to_owned(),
        title: title.to_owned(),
        why: format!(
            "the SYN carried a cookie of {} and {} of data.",
            words::bytes(u64::from(cookie)),
            words::bytes(u64::from(client.payload))
        ),
        not: "not a cost by itself: where it fails the connection opens as any other".to_owned(),
        evidence: vec![syns(connection)],
        cost_ns: 0,
        of_ns: active_ns(connection),
        remedies,
    }]
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
    let new_cookie = server.fast_open.is_some_and(|cookie| cookie > 0);
    Some(match (client.fast_open?, new_cookie) {
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
        let mut connection = sample::download();
        let [client, server] = &mut connection.syns;
        let (client, server) = (client.as_mut().expect("SYN"), server.as_mut().expect("SYN-ACK"));
        (client.fast_open, client.payload, server.fast_open) = (cookie, payload, answer);
        find(&connection)
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
    fn without_the_option_nothing_is_said() {
        assert!(opened(None, 0, None).is_empty());
    }
}
