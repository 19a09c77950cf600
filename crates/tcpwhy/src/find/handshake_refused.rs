//! The client refused the server's SYN-ACK: it answered with a reset.
//!
//! # What it says
//! The server answered a SYN, and the client's host sent a reset instead of an ACK: it knows of no connection to that
//! address and port. No byte of data could be sent. Where the same SYN was captured on its way to another address, the
//! finding says so: an address was rewritten on the way there and not on the way back.
//!
//! # How we know
//! A SYN-ACK, and a reset of the client as the first answer to it. A host sends one for what no socket of its asked for.
//! A SYN to another address with the same client, port and sequence number is the same SYN: the number has 32 bits and is
//! chosen at random.
//!
//! # What it is not
//! Not a server that refuses: it agreed. Without that other SYN the client may also have given up before the SYN-ACK came
//! (a timeout, or another address that answered first), or be a scanner that only looks whether the port is open.
//!
//! # What to do
//! Where an address is rewritten (a Kubernetes service, a load balancer in direct mode, NAT), make the answers pass the
//! device that did it: it alone can put the first address back. In Kubernetes a client and a pod on one node or one
//! network often reach each other directly: look at `br_netfilter` (`net.bridge.bridge-nf-call-iptables` 1) and at
//! hairpin or masquerade settings. Or let the client ask for the address that answers.
//!
//! # Sources
//! RFC 9293 sections 3.5.2 and 3.10.7.3 (a reset for what does not exist), RFC 6528 (random sequence numbers), RFC 3022
//! section 2.2 (both ways have to pass the translator); Linux `tcp_v4_send_reset` (v6.1, `net/ipv4/tcp_ipv4.c`).

use std::collections::BTreeMap;

use core::net::SocketAddr;

use super::case::filter;
use super::{Rule, remedies};
use crate::report::{Connection, Evidence, Finding, FrameRange, Reset, Severity};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "HANDSHAKE_REFUSED",
    severity: Severity::Broken,
    file: include_str!("handshake_refused.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    refusal(connection).map(|(reset, _)| alone(connection, reset)).into_iter().collect()
}

/// The client's reset, and the number of the SYN that it denies.
fn refusal(connection: &Connection) -> Option<(&Reset, u32)> {
    let reset = connection.reset.as_ref().filter(|_| !connection.carried_data())?;
    Some((reset, reset.refused_syn?))
}

fn alone(connection: &Connection, reset: &Reset) -> Finding {
    let frames = FrameRange { first: reset.frame, last: reset.frame };
    let (client, server) = (connection.client_shown(), connection.server_shown());
    let waited = match connection.syns[0] {
        Some(_) => format!(", {} after its SYN", said::time(reset.at_ns)),
        None => String::new(),
    };
    Finding {
        code: RULE.code.to_owned(),
        severity: RULE.severity,
        title: "the client refused the SYN-ACK with a reset (RST)".to_owned(),
        why: format!(
            "{server} answered, and the host of {client} sent a reset{waited}: no socket there waited for an answer of \
             this address and port."
        ),
        not: "not a refusal of the server; a client that gave up before, or only looked whether the port is open, does \
              the same"
            .to_owned(),
        evidence: vec![Evidence {
            from_ns: reset.at_ns,
            to_ns: reset.at_ns,
            frames,
            filter: filter(frames),
            text: "RST of the client, the answer to a SYN-ACK".to_owned(),
        }],
        cost_ns: connection.duration_ns,
        of_ns: connection.duration_ns,
        remedies: vec![remedies::path(
            "see whether an address is rewritten on one way only (NAT, a load balancer, a service's address): then the \
             answer comes from an address that the client did not ask",
        )], ..Finding::default() }
}

/// Tells of SYNs that one address was asked with and another one answered, in both connections.
pub(super) fn among(connections: &mut [Connection]) {
    let mut asked: BTreeMap<(SocketAddr, u32), usize> = BTreeMap::new();
    for (at, connection) in connections.iter().enumerate() {
        if let [Some(syn), None] = connection.syns
            && !connection.carried_data()
        {
            asked.entry((connection.client, syn.seq)).or_insert(at);
        }
    }
    if asked.is_empty() {
        return;
    }
    for at in 0..connections.len() {
        let refused = &connections[at];
        let first = refusal(refused).and_then(|(_, isn)| asked.get(&(refused.client, isn)));
        let Some(&first) =
            first.filter(|first| **first != at && connections[**first].server != refused.server)
        else {
            continue;
        };
        let rewritten = rewritten(&connections[first], refused);
        for at in [first, at] {
            let own = &mut connections[at];
            own.findings
                .retain(|each| !matches!(&*each.code, "HANDSHAKE_REFUSED" | "SYN_UNANSWERED"));
            let frames = own.frames;
            let evidence = Evidence {
                from_ns: 0,
                to_ns: own.duration_ns,
                frames,
                filter: filter(frames),
                text: rewritten.title.clone(),
            };
            let (cost_ns, of_ns) = (own.duration_ns, own.duration_ns);
            own.findings.insert(
                0,
                Finding { evidence: vec![evidence], cost_ns, of_ns, ..rewritten.clone() },
            );
        }
    }
}

/// The same SYN was sent to the address of `asked` and, rewritten, to that of `refused`, which answered as itself.
fn rewritten(asked: &Connection, refused: &Connection) -> Finding {
    let [service, pod, client] =
        [asked.server_shown(), refused.server_shown(), refused.client_shown()];
    Finding {
        code: RULE.code.to_owned(),
        severity: RULE.severity,
        title: format!(
            "the client asked {service} and got its answer from {pod}: it reset that (RST)"
        ),
        why: format!(
            "the SYN of {client} to {service} (connection {}) also passed with the address {pod} (connection {}), with the \
             same sequence number: it was rewritten on the way there. The SYN-ACK came back from {pod} itself, which the \
             client never asked.",
            asked.id, refused.id
        ),
        not: "not loss, and not a refusal of the server: it agreed".to_owned(),
        remedies: vec![
            remedies::path(format!(
                "send the answers of {pod} back through the device that rewrites {service} (NAT, a load balancer, \
                 kube-proxy): only that one can put the address back; in Kubernetes see \
                 net.bridge.bridge-nf-call-iptables and hairpin or masquerade rules"
            )),
            remedies::program(remedies::CLIENT, format!("or ask for {pod} itself")),
        ],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::{End, Syn};

    const MS: i64 = 1_000_000;

    /// A connection to `server` without data. The client's SYN had this number. If it was answered, the connection was
    /// reset.
    fn opened(server: &str, seq: u32, answered: bool) -> Connection {
        let mut connection = sample::download();
        connection.directions = [None, None];
        (connection.transfers, connection.exchanges) = (Vec::new(), Vec::new());
        connection.server = server.parse().expect("an address");
        let syn = Some(Syn { sent: 1, seq, ..Syn::default() });
        connection.syns = [syn, syn.filter(|_| answered)];
        connection.duration_ns = MS;
        connection.end = if answered { End::Rst } else { End::Open };
        let reset =
            Reset { by: "client".into(), at_ns: MS, refused_syn: Some(seq), ..Reset::default() };
        connection.reset = Some(reset).filter(|_| answered);
        connection
    }

    fn filled(mut connections: Vec<Connection>) -> Vec<Vec<Finding>> {
        for (at, each) in connections.iter_mut().enumerate() {
            each.id = at as u64;
        }
        super::super::fill(&mut connections);
        connections.into_iter().map(|each| each.findings).collect()
    }

    const SERVICE: &str = "10.9.0.29:80";
    const POD: &str = "10.0.1.9:8080";

    #[test]
    fn an_address_that_is_rewritten_one_way_only_is_told_in_both_connections() {
        let found = filled(vec![opened(SERVICE, 7, false), opened(POD, 7, true)]);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(found[0][0].title, found[1][0].title);
        insta::assert_snapshot!(sample::shown(&found[1]));
    }

    #[test]
    fn another_number_is_another_syn() {
        let found = filled(vec![opened(SERVICE, 7, false), opened(POD, 8, true)]);
        assert_eq!(found[0][0].code, "SYN_UNANSWERED");
        assert!(found[1][0].title.contains("refused the SYN-ACK"), "{:?}", found[1]);
    }

    #[test]
    fn a_reset_of_the_server_or_after_data_is_no_such_thing() {
        let mut connection = opened(POD, 7, true);
        connection.reset.as_mut().expect("one").refused_syn = None;
        assert!(find(&connection).is_empty());
        let mut download = sample::download();
        download.reset = opened(POD, 7, true).reset;
        assert!(find(&download).is_empty());
    }
}
