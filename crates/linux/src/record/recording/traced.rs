//! Of the tracepoints' records those of the recorded connections: tracepoints see the whole machine's,
//! and name no process.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::Value;

use super::Scope;
use super::owners::Owners;

/// What is known of the recorded connections when the file is made.
pub(super) struct Known<'a> {
    pub(super) scope: &'a Scope,
    /// Those whose packets are in the file, smaller end first; `None` where no packets were captured.
    pub(super) connections: Option<&'a BTreeSet<[SocketAddr; 2]>>,
    pub(super) owners: &'a Owners,
}

impl Known<'_> {
    /// The lines of `text` that belong to them.
    pub(super) fn records_in(&self, text: &str) -> String {
        let lines = text.split_inclusive('\n');
        lines.filter(|line| ends_of(line).is_some_and(|ends| self.has(ends))).collect()
    }

    /// Here a connection that nobody saw is a stranger's: there are no packets that miss its records.
    fn has(&self, ends: [SocketAddr; 2]) -> bool {
        if matches!(self.scope, Scope::Ends { .. }) {
            return self.scope.chooses(ends);
        }
        let mut key = ends;
        key.sort_unstable();
        self.connections.map_or_else(|| self.owners.are_ours(ends), |some| some.contains(&key))
    }
}

fn ends_of(line: &str) -> Option<[SocketAddr; 2]> {
    let record: Value = serde_json::from_str(line).ok()?;
    let end = |name: &str| {
        let end: SocketAddr = record.get(name)?.as_str()?.parse().ok()?;
        Some(SocketAddr::new(end.ip().to_canonical(), end.port()))
    };
    Some([end("saddr")?, end("daddr")?])
}

#[cfg(test)]
mod tests {
    use super::super::owners::Whose;
    use super::*;

    const HERE: &str = "192.0.2.1:40000";
    const SERVER: &str = "198.51.100.7:443";
    const STRANGER: &str = "192.0.2.1:40001";

    fn ends(a: &str, b: &str) -> [SocketAddr; 2] {
        [a, b].map(|end| end.parse().expect("an address"))
    }

    fn record(from: &str, to: &str) -> String {
        format!("{{\"saddr\":\"{from}\",\"daddr\":\"{to}\"}}\n")
    }

    /// Ours twice, once by its mapped address, and a stranger's; the last line was cut off.
    fn trace() -> String {
        let mapped = record("[::ffff:192.0.2.1]:40000", "[::ffff:198.51.100.7]:443");
        let all = [record(HERE, SERVER), record(STRANGER, SERVER), mapped];
        all.concat() + "{\"saddr\":\"192."
    }

    fn ours() -> String {
        trace().split_inclusive('\n').step_by(2).take(2).collect()
    }

    #[test]
    fn ends_choose_records_as_they_choose_packets() {
        let owners = Owners::default();
        // The kernel was asked for all: its filter of records knows no addresses.
        let records = |ports: &[u16], hosts: &[&str]| {
            let hosts = hosts.iter().map(|host| host.parse().expect("an address")).collect();
            let scope = Scope::Ends { ports: ports.to_vec(), hosts };
            Known { scope: &scope, connections: None, owners: &owners }.records_in(&trace())
        };
        assert_eq!(records(&[40000], &[]), ours());
        assert_eq!(records(&[40000], &["198.51.100.7"]), ours());
        assert_eq!(records(&[443], &["203.0.113.5"]), "");
        assert_eq!(records(&[], &["198.51.100.7"]).lines().count(), 3);
    }

    #[test]
    fn processes_have_the_records_of_connections_in_the_file() {
        let owners = Owners::default();
        let stranger = ends(STRANGER, SERVER);
        assert!(owners.want(stranger), "packets of what nobody saw stay in");
        let connections = BTreeSet::from([ends(HERE, SERVER)]);
        let known =
            Known { scope: &Scope::Command, connections: Some(&connections), owners: &owners };
        assert_eq!(known.records_in(&trace()), ours());
    }

    #[test]
    fn without_packets_processes_have_the_records_of_sockets_they_held() {
        let mut owners = Owners::default();
        owners.learn(ends(HERE, SERVER), Whose::Ours, false);
        let known = Known { scope: &Scope::Process(1), connections: None, owners: &owners };
        assert_eq!(known.records_in(&trace()), ours());
    }
}
