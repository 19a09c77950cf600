//! A host's snapshot beside a capture: what a remedy would change, with the value that it has there.
//!
//! The snapshot is of one end of the connections. A remedy for that end names the setting's value and the file
//! that sets it, and its commands are whole: from what was seen to what is proposed, and back.

use core::net::IpAddr;

use tcpwhy_host::snapshot::{SetIn, Snapshot};
use tcpwhy_host::{Change, Seen, target};

use crate::find::VIA_AND_DEV;
use crate::report::{Connection, Remedy, Report};

/// Lays the snapshot of `host`, `client` or `server`, beside the findings of a report; how many remedies name
/// a value now.
pub fn lay_beside(report: &mut Report, host: &str, snapshot: &Snapshot) -> usize {
    lay_where(report, host, snapshot, |_| true)
}

/// Lays a snapshot beside those connections that have its host as an end, by one of its addresses: which end it is,
/// and by which address. It is `host` where it is the client of some and the server of others.
pub fn lay_by_address(report: &mut Report, snapshot: &Snapshot) -> Option<(&'static str, IpAddr)> {
    let addresses = snapshot.addresses();
    let is_own = |end: IpAddr| addresses.contains(&end.to_canonical());
    let ends =
        |of: fn(&Connection) -> IpAddr| report.connections.iter().map(of).find(|ip| is_own(*ip));
    let client = ends(|connection| connection.client.ip());
    let server = ends(|connection| connection.server.ip());
    for (host, end) in [("client", client), ("server", server)] {
        if end.is_some() {
            lay_where(report, host, snapshot, is_own);
        }
    }
    match (client, server) {
        (Some(address), Some(_)) => Some(("host", address)),
        (Some(address), None) => Some(("client", address)),
        (None, Some(address)) => Some(("server", address)),
        (None, None) => None,
    }
}

fn lay_where(
    report: &mut Report,
    host: &str,
    snapshot: &Snapshot,
    is_of: impl Fn(IpAddr) -> bool,
) -> usize {
    let Some(seen) = Seen::new(snapshot) else { return 0 };
    let mut named = 0;
    for connection in &mut report.connections {
        let (client, server) = (connection.client.ip(), connection.server.ip());
        let (own, peer) = if host == "client" { (client, server) } else { (server, client) };
        if !is_of(own) {
            continue;
        }
        let remedies = connection.findings.iter_mut().flat_map(|finding| &mut finding.remedies);
        for remedy in remedies.filter(|remedy| remedy.on.as_deref() == Some(host)) {
            named += usize::from(name_setting(remedy, &seen) || name_route(remedy, &seen, peer));
        }
    }
    named
}

fn name_setting(remedy: &mut Remedy, seen: &Seen<'_>) -> bool {
    let Some(key) = remedy.knob.as_deref().filter(|knob| knob.starts_with("net.")) else {
        return false;
    };
    let Ok(Some(value)) = seen.setting(key) else { return false };
    let [from, to] = [value, value].map(str::to_owned);
    let back = Change::Sysctl { key: key.to_owned(), from, to };
    if !back.is_sayable(None) {
        return false;
    }
    let files = seen.snapshot.set_in.as_ref().and_then(|files| files.get(key));
    let file = files.and_then(|files| files.last());
    let set_in = file.map_or_else(String::new, |SetIn { file, line, .. }| {
        format!(", set in {file} line {line}")
    });
    let show_first = format!("sysctl {key}; ");
    remedy.what = format!("{}; there it is {value} now{set_in}", remedy.what);
    let whole =
        |command: String| command.strip_prefix(&*show_first).map_or(command.clone(), str::to_owned);
    remedy.command = remedy.command.take().map(whole);
    remedy.rollback = back.commands().undo;
    true
}

/// Gateway and device of the remedy become those of the route that leads to the peer; where that has its line for the
/// peer alone, it is changed.
fn name_route(remedy: &mut Remedy, seen: &Seen<'_>, peer: IpAddr) -> bool {
    let (Some(metric), Some(command)) = (&remedy.knob, &remedy.command) else { return false };
    let Some((_, set)) = command.split_once(VIA_AND_DEV) else { return false };
    let Ok(Some(taken)) = target::route(seen, peer) else { return false };
    // Rules may choose another, and a route without a line cannot be put back.
    if taken.may_differ || taken.route.line.is_empty() {
        return false;
    }
    let line = &taken.route.line;
    // A line of several gateways is no route that another could be like.
    if line.split_whitespace().any(|word| matches!(word, "nexthop" | "nhid")) {
        return false;
    }
    let is_its_own = line.split(' ').next() == Some(&*peer.to_string());
    let left_out: &[&str] =
        if is_its_own { &[metric] } else { &[metric, "proto", "metric", "pref"] };
    let Some(kept) = taken.route.line_without(left_out) else { return false };
    let Some((_, way)) = kept.split_once(' ') else { return false };
    let (from, ipv6) = (line.clone(), peer.is_ipv6());
    let change = Change::Route { from, to: format!("{peer} {way}{set}"), ipv6 };
    if !change.is_sayable(None) {
        return false;
    }
    let commands = change.commands();
    remedy.what = format!("{}; there that is `{line}` now", remedy.what);
    (remedy.command, remedy.rollback) = if is_its_own {
        (Some(commands.apply), commands.undo)
    } else {
        let ip = if ipv6 { "ip -6" } else { "ip" };
        let add = format!("{ip} route add {peer} {way}{set}");
        (Some(add), Some(format!("{ip} route del {peer} {way}")))
    };
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::sample::held_by;
    use crate::report::{Finding, State};
    use tcpwhy_host::snapshot::{Look, Route, Settings};

    fn report() -> Report {
        let remedy = |knob: &str, command: &str| Remedy {
            on: Some("server".to_owned()),
            what: "do it".to_owned(),
            command: Some(command.to_owned()),
            rollback: Some("as before".to_owned()),
            knob: Some(knob.to_owned()),
            ..Remedy::default()
        };
        let key = "net.ipv4.tcp_slow_start_after_idle";
        let route = "ip route get 10.0.0.1; ip route add 10.0.0.1 VIA_AND_DEV_SHOWN initcwnd 44";
        let remedies = vec![
            remedy(key, &format!("sysctl {key}; sysctl -w {key}=0")),
            remedy("initcwnd", route),
        ];
        let mut connection = held_by(State::CwndAfterIdle, 5_000);
        connection.findings = vec![Finding { remedies, ..Finding::default() }];
        Report { connections: vec![connection], ..Report::default() }
    }

    fn snapshot(line: &str) -> Snapshot {
        let key = "net.ipv4.tcp_slow_start_after_idle".to_owned();
        let set_in =
            SetIn { file: "/etc/sysctl.d/9.conf".to_owned(), line: 3, value: "1".to_owned() };
        Snapshot {
            settings: Some(Settings {
                complete: true,
                values: [(key.clone(), "1".to_owned())].into(),
                ..Settings::default()
            }),
            set_in: Some([(key, vec![set_in])].into()),
            routes: Some(vec![Route { line: line.to_owned(), table: 254, ..Route::default() }]),
            looks: vec![Look::default()],
            ..Snapshot::default()
        }
    }

    fn commands(report: &Report) -> Vec<[&str; 3]> {
        let remedies = &report.connections[0].findings[0].remedies;
        remedies
            .iter()
            .map(|r| {
                [&*r.what, r.command.as_deref().unwrap_or(""), r.rollback.as_deref().unwrap_or("")]
            })
            .collect()
    }

    #[test]
    fn a_remedy_names_the_value_of_its_host_and_the_way_back_to_it() {
        let mut report = report();
        assert_eq!(
            lay_beside(
                &mut report,
                "server",
                &snapshot("default via 10.0.0.9 dev eth0 initcwnd 4")
            ),
            2
        );
        insta::assert_debug_snapshot!(commands(&report));
    }

    /// What the second remedy becomes where the peer's route has this line.
    fn of_route(line: &str) -> [String; 2] {
        let mut report = report();
        lay_beside(&mut report, "server", &snapshot(line));
        let [_, apply, undo] = commands(&report)[1];
        [apply, undo].map(str::to_owned)
    }

    #[test]
    fn a_route_to_the_peer_alone_is_changed_and_another_gets_one_beside_it() {
        assert_eq!(
            of_route("10.0.0.1 via 10.0.0.9 dev eth0 initcwnd 4 mtu 1400"),
            [
                "ip route replace 10.0.0.1 via 10.0.0.9 dev eth0 mtu 1400 initcwnd 44",
                "ip route replace 10.0.0.1 via 10.0.0.9 dev eth0 initcwnd 4 mtu 1400"
            ]
        );
        assert_eq!(
            of_route("default via 10.0.0.9 dev eth0 proto dhcp src 10.0.0.2 metric 100"),
            [
                "ip route add 10.0.0.1 via 10.0.0.9 dev eth0 src 10.0.0.2 initcwnd 44",
                "ip route del 10.0.0.1 via 10.0.0.9 dev eth0 src 10.0.0.2"
            ]
        );
        let several =
            of_route("default nexthop via 10.0.0.9 dev eth0 nexthop via 10.0.0.8 dev eth0");
        assert!(several[0].contains(VIA_AND_DEV), "{several:?}");
    }

    #[test]
    fn a_snapshot_is_laid_beside_the_connections_of_its_address_alone() {
        let at = |address: IpAddr| {
            let mut snapshot = snapshot("default dev eth0");
            let routes = snapshot.routes.get_or_insert_default();
            routes[0].src = Some(address);
            snapshot
        };
        let ends = held_by(State::CwndAfterIdle, 5_000);
        let mut told = report();
        let server = ends.server.ip();
        assert_eq!(lay_by_address(&mut told, &at(server)), Some(("server", server)));
        assert!(commands(&told)[0][0].contains("there it is 1 now"));
        let mut told = report();
        assert_eq!(
            lay_by_address(&mut told, &at(ends.client.ip())).map(|end| end.0),
            Some("client")
        );
        assert_eq!(lay_by_address(&mut told, &at([192, 0, 2, 99].into())), None);
        assert_eq!(told, report());
    }

    #[test]
    fn the_other_host_and_a_route_that_cannot_be_put_back_stay_as_they_are() {
        let mut report = report();
        let before = report.clone();
        assert_eq!(lay_beside(&mut report, "client", &snapshot("default dev eth0")), 0);
        assert_eq!(report, before);
        assert_eq!(lay_beside(&mut report, "server", &snapshot("")), 1);
    }
}
