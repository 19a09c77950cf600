//! Names that no packet of a connection tells: what name servers said of its server, and what its port is for.
//!
//! A name that was asked for before the connection began, and whose answer has the server's address, is what the client
//! meant: the last such question, the client's own before that of others (a resolver on the host asks on for it). What the
//! connection itself says (`flow::hello`, `flow::requests`) comes before that.
//!
//! Left out: names learnt before the capture began; reverse lookups.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use crate::flow::said::safe;
use crate::report::{Connection, Lookup};
use crate::units::Time;

/// Characters of a name (RFC 1035 section 2.3.4).
const NAME: usize = 253;
/// Questions for an address that are looked at, the last ones. Ours: bounds the work.
const ASKED: usize = 16;

/// Adds the names of `lookups` and the names of ports.
pub(crate) fn fill(connections: &mut [Connection], lookups: &[Lookup]) {
    let mut by_address: BTreeMap<IpAddr, Vec<&Lookup>> = BTreeMap::new();
    for lookup in lookups {
        for address in &lookup.addresses {
            by_address.entry(*address).or_default().push(lookup);
        }
    }
    for connection in connections {
        let is_named = connection.names.as_ref().is_some_and(|names| names.server.is_some());
        if !is_named
            && let Some(asked) = by_address.get(&connection.server.ip())
            && let Some(lookup) = meant(connection, asked)
        {
            let names = connection.names.get_or_insert_default();
            names.server = Some(safe(lookup.name.as_bytes(), NAME));
            names.server_by = Some("dns".into());
        }
        if let Some(service) = service(connection.server.port()) {
            connection.names.get_or_insert_default().service = Some(service.into());
        }
    }
}

/// Letters of a program's name (Linux `TASK_COMM_LEN`, less the end).
const PROGRAM: usize = 15;

/// Names the ends of connections by the programs that hold their sockets, each given with its local end and its peer, as
/// a recording says.
pub fn name_programs<'a>(
    connections: &mut [Connection],
    holders: impl IntoIterator<Item = (SocketAddr, SocketAddr, &'a str)>,
) {
    let mut by_ends = BTreeMap::new();
    for (local, peer, program) in holders {
        by_ends.entry([local, peer]).or_insert(program);
    }
    for connection in connections {
        let ends = [connection.client, connection.server];
        for (at, local) in ends.into_iter().enumerate() {
            let program = by_ends.get(&[local, ends[1 - at]]).filter(|name| !name.is_empty());
            if let Some(program) = program {
                let names = connection.names.get_or_insert_default();
                names.programs[at] = Some(safe(program.as_bytes(), PROGRAM));
            }
        }
    }
}

/// The last of these questions that `connection` may have been opened for.
fn meant<'a>(connection: &Connection, asked: &[&'a Lookup]) -> Option<&'a Lookup> {
    let began = Time::from_rfc3339(&connection.start)?;
    let was_before =
        |lookup: &&&Lookup| Time::from_rfc3339(&lookup.start).is_some_and(|at| at <= began);
    let last = || asked.iter().rev().take(ASKED).filter(was_before);
    let own = |lookup: &&&Lookup| lookup.client.ip() == connection.client.ip();
    last().find(own).or_else(|| last().next()).copied()
}

/// What a server's port is registered for (IANA's register of service names, read 2026), or known to be used for.
pub(crate) const fn service(port: u16) -> Option<&'static str> {
    Some(match port {
        20 => "ftp-data",
        21 => "ftp",
        22 => "ssh",
        25 => "smtp",
        53 => "dns",
        80 | 8080 => "http",
        110 => "pop3",
        143 => "imap",
        179 => "bgp",
        389 => "ldap",
        443 | 8443 => "https",
        445 => "smb",
        465 | 587 => "submission",
        636 => "ldaps",
        853 => "dns-over-tls",
        873 => "rsync",
        993 => "imaps",
        995 => "pop3s",
        1433 => "ms-sql",
        1521 => "oracle",
        1883 => "mqtt",
        2049 => "nfs",
        3260 => "iscsi",
        3306 => "mysql",
        3389 => "rdp",
        5060 => "sip",
        5201 => "iperf3",
        5432 => "postgresql",
        5672 => "amqp",
        5900 => "vnc",
        6379 => "redis",
        6443 => "kubernetes",
        8883 => "mqtts",
        9042 => "cassandra",
        9092 => "kafka",
        9200 => "elasticsearch",
        11211 => "memcached",
        27017 => "mongodb",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample;

    const SERVER: &str = "192.0.2.9:5432";

    fn lookup(name: &str, client: &str, start: &str) -> Lookup {
        Lookup {
            name: name.to_owned(),
            kind: "A".into(),
            client: client.parse().expect("an address"),
            resolver: "192.0.2.53:53".parse().expect("an address"),
            start: start.to_owned(),
            id: 0,
            asked: 1,
            last_asked_ns: 0,
            duration_ns: Some(1),
            answer: Some("NOERROR".into()),
            addresses: vec!["192.0.2.9".parse().expect("an address")],
            frame: 1,
        }
    }

    #[test]
    fn a_connection_has_the_programs_that_hold_its_sockets() {
        let client = "10.0.0.1:4000";
        let mut two = [
            sample::connection(0, client, SERVER, 1),
            sample::connection(1, "10.0.0.1:4001", SERVER, 1),
        ];
        let [own, peer] = [client, SERVER].map(|end| end.parse().expect("an address"));
        let told = [(own, peer, "cu\u{1b}rl"), (own, peer, "sh"), (peer, own, "")];
        name_programs(&mut two, told);
        let programs = |at: usize| two[at].names.as_ref().map(|names| names.programs.clone());
        assert_eq!(
            programs(0),
            Some([Some("cu%1Brl".to_owned()), None]),
            "the first, made harmless"
        );
        assert_eq!(programs(1), None);
    }

    /// The name that a connection gets by these questions, which began at :10.
    fn name(lookups: &[Lookup]) -> Option<String> {
        let mut connection = sample::connection(0, "10.0.0.1:4000", SERVER, 1);
        connection.start = "2026-11-21T10:45:10.000000000Z".to_owned();
        fill(core::slice::from_mut(&mut connection), lookups);
        let names = connection.names.expect("its port has a name");
        assert_eq!(names.service.as_deref(), Some("postgresql"));
        names.server
    }

    #[test]
    fn the_last_question_before_it_names_it() {
        let asked = |name, second| {
            lookup(name, "10.0.0.1:999", &format!("2026-11-21T10:45:{second:02}.000000000Z"))
        };
        let some = [asked("old.example", 1), asked("db.example", 9), asked("late.example", 11)];
        assert_eq!(name(&some).as_deref(), Some("db.example"));
        assert_eq!(name(&some[2..]), None, "it was asked for later");
        let mut elsewhere = asked("db.example", 9);
        elsewhere.addresses = vec!["192.0.2.10".parse().expect("an address")];
        assert_eq!(name(&[elsewhere]), None);
    }

    #[test]
    fn its_own_client_s_question_comes_first() {
        let at = "2026-11-21T10:45:09.000000000Z";
        let own = lookup("own.example", "10.0.0.1:999", at);
        let others = lookup("others.example", "10.0.0.2:999", at);
        assert_eq!(name(&[own, others.clone()]).as_deref(), Some("own.example"));
        assert_eq!(name(&[others]).as_deref(), Some("others.example"), "a resolver's");
    }
}
