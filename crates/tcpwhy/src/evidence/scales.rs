//! By how much the windows of connections are shifted whose handshake was not captured: the kernel of either end knows,
//! and says so with each sample of the socket (`TCP_INFO`, `wscale:` of ss).
//!
//! The packets have to be read again with it: what a window held is decided while they are read.

use std::collections::BTreeMap;

use super::sample::Sample;
use super::{Content, Evidence};
use tcpwhy_words::printed::address::Ends;

use super::ends::ends_at;
use crate::report::{Connection, Report, WindowScaling};
use crate::tracker::Scales;

/// The shifts that `evidence` tells of connections of `report` that lack them. Where two samples of the same ends differ
/// they are of two connections, and the scale stays unknown.
pub fn scales<'a>(report: &Report, evidence: impl Iterator<Item = &'a Evidence>) -> Scales {
    let lacks = |connection: &&Connection| {
        connection.window_scaling == WindowScaling::HandshakeNotSeen && connection.carried_data()
    };
    let lacking = report.connections.iter().filter(lacks);
    let mut wanted: BTreeMap<Ends, Option<[u8; 2]>> = lacking
        .flat_map(|one| [ends_at(one, 0), ends_at(one, 1)])
        .map(|ends| (ends, None))
        .collect();
    if wanted.is_empty() {
        return Scales::new();
    }
    let mut unclear = Vec::new();
    for sample in evidence.flat_map(samples) {
        let (Some(own), Some(peer)) = (sample.own_scale, sample.peer_scale) else { continue };
        let Some(told) = wanted.get_mut(&sample.ends) else { continue };
        if told.is_some_and(|told| told != [own, peer]) {
            unclear.push(sample.ends);
        }
        *told = Some([own, peer]);
    }
    for ends in &unclear {
        wanted.remove(ends);
    }
    wanted.into_iter().filter_map(|(ends, told)| Some(([ends.local, ends.peer], told?))).collect()
}

fn samples(evidence: &Evidence) -> &[Sample] {
    match &evidence.content {
        Content::Sockets { samples, .. } => samples,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use core::fmt::Write as _;

    use super::*;
    use crate::view::sample;

    fn told(lines: &[(&str, &str, u8, u8)], scaling: WindowScaling) -> Scales {
        let mut connection = sample::connection(0, "10.0.0.7:4000", "10.0.0.8:80", 1_000_000_000);
        connection.window_scaling = scaling;
        connection.directions[1] = Some(Box::default());
        let report = Report { connections: vec![connection], ..Report::default() };
        let mut text = String::new();
        for (local, peer, snd, rcv) in lines {
            let _ = writeln!(
                text,
                "{{\"local\":\"{local}\",\"peer\":\"{peer}\",\"snd_cwnd\":10,\"snd_wscale\":{snd},\"rcv_wscale\":{rcv}}}"
            );
        }
        let evidence = super::super::read("info.jsonl", text.as_bytes()).expect("samples");
        scales(&report, core::iter::once(&evidence))
    }

    #[test]
    fn the_socket_of_either_end_tells_both_shifts() {
        let unseen = WindowScaling::HandshakeNotSeen;
        let (client, server) = ("10.0.0.7:4000", "10.0.0.8:80");
        let ends =
            |one: &str, other: &str| [one.parse().expect("one"), other.parse().expect("other")];
        let of_client = told(&[(client, server, 10, 7)], unseen);
        assert_eq!(of_client.get(&ends(client, server)), Some(&[7, 10]));
        let of_server = told(&[(server, client, 7, 10)], unseen);
        assert_eq!(of_server.get(&ends(server, client)), Some(&[10, 7]));
    }

    #[test]
    fn nothing_is_told_where_the_handshake_was_seen_or_samples_differ_or_are_of_others() {
        let (client, server) = ("10.0.0.7:4000", "10.0.0.8:80");
        let unseen = WindowScaling::HandshakeNotSeen;
        assert!(told(&[(client, server, 10, 7)], WindowScaling::Used).is_empty());
        assert!(told(&[(client, server, 10, 7), (client, server, 9, 7)], unseen).is_empty());
        assert!(told(&[(client, "10.0.0.9:80", 10, 7)], unseen).is_empty());
    }
}
