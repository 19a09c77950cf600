//! A host's snapshot beside a capture: what a remedy would change, with the value that it has there.
//!
//! The snapshot is of one end of the connections. A remedy for that end names the setting's value and the file
//! that sets it, and its commands are whole: from what was seen to what is proposed, and back.

use core::net::IpAddr;

use super::finding::Change;
use super::seen::Seen;
use super::snapshot::{SetIn, Snapshot};
use super::target;
use crate::report::{Remedy, Report};

/// Lays the snapshot of `host`, `client` or `server`, beside the findings of a report; how many remedies name
/// a value now.
pub fn lay_beside(report: &mut Report, host: &str, snapshot: &Snapshot) -> usize {
    let Some(seen) = Seen::new(snapshot) else { return 0 };
    let mut named = 0;
    for connection in &mut report.connections {
        let peer = if host == "client" { connection.server } else { connection.client }.ip();
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

/// `LINE_WITH_THAT_DEV` of the remedy becomes the route that leads to the peer.
fn name_route(remedy: &mut Remedy, seen: &Seen<'_>, peer: IpAddr) -> bool {
    let (Some(metric), Some(command)) = (&remedy.knob, &remedy.command) else { return false };
    let Some((_, set)) = command.split_once(" route change LINE_WITH_THAT_DEV ") else {
        return false;
    };
    let Ok(Some(taken)) = target::route(seen, peer) else { return false };
    // Rules may choose another, and a route without a line cannot be put back.
    if taken.may_differ || taken.route.line.is_empty() {
        return false;
    }
    let line = &taken.route.line;
    let Some(without) = taken.route.line_without(&[metric]) else { return false };
    let change =
        Change::Route { from: line.clone(), to: format!("{without} {set}"), ipv6: peer.is_ipv6() };
    if !change.is_sayable(None) {
        return false;
    }
    let commands = change.commands();
    remedy.what = format!("{}; there that is `{line}` now", remedy.what);
    (remedy.command, remedy.rollback) = (Some(commands.apply), commands.undo);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::sample::held_by;
    use crate::host::snapshot::{Look, Route, Settings};
    use crate::report::{Finding, State};

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
        let route = "ip route get 10.0.0.1; ip route show match 10.0.0.1; ip route change LINE_WITH_THAT_DEV initcwnd 44";
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

    #[test]
    fn the_other_host_and_a_route_that_cannot_be_put_back_stay_as_they_are() {
        let mut report = report();
        let before = report.clone();
        assert_eq!(lay_beside(&mut report, "client", &snapshot("default dev eth0")), 0);
        assert_eq!(report, before);
        assert_eq!(lay_beside(&mut report, "server", &snapshot("")), 1);
    }
}
