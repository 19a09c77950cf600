//! By how much the counters of both hosts' kernels moved during a run (`counters.json`), by the names that `nstat` has.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use tcpwhy_linux::lab::folder;

/// Every counter of a host and by how much it moved, none included.
pub(super) type Moved = BTreeMap<String, u64>;

#[derive(Deserialize)]
struct Hosts {
    client: Host,
    server: Host,
}

#[derive(Deserialize)]
struct Host {
    before: Look,
    after: Look,
}

#[derive(Deserialize)]
struct Look {
    /// By protocol and name; some count below nothing.
    counters: BTreeMap<String, BTreeMap<String, i64>>,
}

/// Client's and server's; none where nobody counted.
pub(super) fn read(folder: &Path) -> Option<[Moved; 2]> {
    let text = fs::read(folder.join(folder::COUNTERS)).ok()?;
    let Hosts { client, server } = serde_json::from_slice(&text).ok()?;
    Some([client, server].map(|host| host.moved()))
}

impl Host {
    fn moved(&self) -> Moved {
        let before = |protocol: &String, name: &String| {
            self.before.counters.get(protocol).and_then(|names| names.get(name)).copied()
        };
        let each = self.after.counters.iter().flat_map(|(protocol, names)| {
            names.iter().map(move |(name, after)| {
                let before = before(protocol, name).unwrap_or(0);
                (format!("{protocol}{name}"), u64::try_from(after - before).unwrap_or(0))
            })
        });
        each.collect()
    }
}

/// Those that moved and tell more than that something was sent.
pub(super) fn telling(moved: &Moved) -> Vec<(&str, u64)> {
    let told =
        moved.iter().filter(|(name, by)| **by > 0 && !COUNTS_TRAFFIC.contains(&name.as_str()));
    told.map(|(name, by)| (name.as_str(), *by)).collect()
}

/// What moves whenever a packet does, or a connection is opened and closed (`Documentation/networking/snmp_counter.rst`).
const COUNTS_TRAFFIC: &[&str] = &[
    "IpExtInECT0Pkts",
    "IpExtInNoECTPkts",
    "IpExtInOctets",
    "IpExtOutOctets",
    "IpInDelivers",
    "IpInReceives",
    "IpOutRequests",
    "IpOutTransmits",
    "Ip6InDelivers",
    "Ip6InNoECTPkts",
    "Ip6InOctets",
    "Ip6InReceives",
    "Ip6OutOctets",
    "Ip6OutRequests",
    "Ip6OutTransmits",
    "TcpActiveOpens",
    "TcpInSegs",
    "TcpOutSegs",
    "TcpPassiveOpens",
    "TcpExtTCPAutoCorking",
    "TcpExtTCPBacklogCoalesce",
    "TcpExtTCPDelivered",
    "TcpExtTCPHPAcks",
    "TcpExtTCPHPHits",
    "TcpExtTCPOrigDataSent",
    "TcpExtTCPPureAcks",
    "TcpExtTCPRcvCoalesce",
    "TcpExtTW",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moved_is_told_and_what_counts_packets_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let look = |resent: i64, segments: i64| {
            format!(
                r#"{{"t":1,"counters":{{"Tcp":{{"MaxConn":-1,"RetransSegs":{resent},"InSegs":{segments}}},"TcpExt":{{"TCPTimeouts":4}}}}}}"#
            )
        };
        let host = format!(r#"{{"before":{},"after":{}}}"#, look(2, 10), look(5, 90));
        let text = format!(r#"{{"client":{host},"server":{host}}}"#);
        fs::write(folder.path().join(folder::COUNTERS), text).expect("written");
        let [client, server] = read(folder.path()).expect("counted");
        assert_eq!(client, server);
        assert_eq!(client["TcpExtTCPTimeouts"], 0, "known, and did not move");
        assert_eq!(client["TcpMaxConn"], 0);
        assert_eq!(telling(&client), [("TcpRetransSegs", 3)]);
        assert_eq!(read(Path::new("/nowhere")), None);
    }
}
