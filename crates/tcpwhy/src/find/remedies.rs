//! What to do, in words that several findings share, and commands that start from what the user has.
//!
//! No command here changes a default for a whole host if a narrower one would do, and each comes
//! with what takes it back: the values saved before, never "the default". A remedy says whose host it
//! is for. The commands are Linux's: where a host's packets show another system they are left out,
//! and so is a remedy that is nothing but a setting of Linux ([`for_these_systems`]).

use super::case::Case;
use crate::report::{Connection, Prediction, Remedy};

/// The hosts by their places in a report.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// Somebody changes a program.
pub(super) fn application(what: impl Into<String>) -> Remedy {
    Remedy { who: "application".to_owned(), what: what.into(), ..Remedy::default() }
}

/// Somebody changes the program on host `side`.
pub(super) fn program(side: usize, what: impl Into<String>) -> Remedy {
    on(side, application(what))
}

/// Somebody looks at host `side` with a command that shows what the program there does.
pub(super) fn look(side: usize, what: impl Into<String>, command: impl Into<String>) -> Remedy {
    Remedy { command: Some(command.into()), ..program(side, what) }
}

/// The same where no direction's sender or receiver is meant, but the host itself.
pub(super) fn host(side: usize, what: impl Into<String>, command: impl Into<String>) -> Remedy {
    Remedy { who: HOSTS[side].to_owned(), ..look(side, what, command) }
}

/// Somebody changes a device between the hosts.
pub(super) fn path(what: impl Into<String>) -> Remedy {
    Remedy { who: "path".to_owned(), ..application(what) }
}

const HOSTS: [&str; 2] = ["client", "server"];

fn on(side: usize, remedy: Remedy) -> Remedy {
    Remedy { on: Some(HOSTS[side].to_owned()), ..remedy }
}

/// A metric of the sender's route to its peer.
pub(super) fn route(case: &Case<'_>, metric: &str, value: u64, what: String) -> Remedy {
    Remedy {
        set: Some(format!("{}.route.{metric}={value}", HOSTS[case.at])),
        ..own_route(case, metric, &value.to_string(), what)
    }
}

/// Placeholder for gateway and device, as `ip route get` shows them.
pub(crate) const VIA_AND_DEV: &str = "VIA_AND_DEV_SHOWN";

/// A route to the peer alone, beside that which it takes now: that one, mostly the default route, may be of several
/// gateways, of a router's advertisements or of rules, and others use it.
fn own_route(case: &Case<'_>, metric: &str, value: &str, what: impl Into<String>) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        command: Some(format!(
            "{ip} route get {peer}; {ip} route add {peer} {VIA_AND_DEV} {metric} {value}"
        )),
        rollback: Some(format!("{ip} route del {peer} {VIA_AND_DEV}")),
        knob: Some(metric.to_owned()),
        ..sender(case, what)
    }
}

/// The sender's host does it.
fn sender(case: &Case<'_>, what: impl Into<String>) -> Remedy {
    Remedy { who: "sender".to_owned(), ..program(case.at, what) }
}

/// The command and the address by which the sender finds its route to the receiver.
fn peer(case: &Case<'_>) -> (&'static str, String) {
    let peer = case.receiver_address();
    let ip = if peer.is_some_and(|peer| peer.is_ipv6()) { "ip -6" } else { "ip" };
    let unknown = || format!("ADDRESS_OF_THE_{}", case.receiver().to_uppercase());
    (ip, peer.map_or_else(unknown, |peer| peer.to_string()))
}

/// A kernel setting of host `side`, whose part for this direction `case` names; the old value is shown
/// first.
pub(super) fn sysctl(case: &Case<'_>, side: usize, key: &str, value: &str, what: String) -> Remedy {
    let who = if side == case.at { "sender" } else { "receiver" };
    Remedy {
        who: who.to_owned(),
        command: Some(format!("sysctl {key}; sysctl -w {key}={value}")),
        rollback: Some(format!("sysctl -w {key}='VALUE_SHOWN_BEFORE'")),
        knob: Some(key.to_owned()),
        ..program(side, what)
    }
}

/// The remedy of host `side`, whose command leaves a value open, with one that has it predicted.
pub(super) fn predicted_with(remedy: Remedy, side: usize, setting: &str) -> Remedy {
    Remedy { set: Some(format!("{}.sysctl.{setting}", HOSTS[side])), ..remedy }
}

/// The remedy with what it may bring, if anything; without gain it is none.
pub(super) fn if_it_gains(remedy: Remedy, predicted: Option<Prediction>) -> Option<Remedy> {
    let predicted = predicted.filter(|each| each.best < each.now)?;
    Some(Remedy { predicted_ns: Some(predicted), ..remedy })
}

/// Somebody looks at what the receiving program does instead of reading.
pub(super) fn reader(case: &Case<'_>) -> Remedy {
    look(
        1 - case.at,
        "see what the program does instead of reading: Recv-Q shows what it left, its system calls show \
         where it is (strace slows it down: do not time it meanwhile)",
        "ss -tmip; strace -f -ttt -T -p PID",
    )
}

/// The same where the transfer waited for that program: what it takes when it reads at once.
pub(super) fn reads_at_once(case: &Case<'_>) -> Remedy {
    Remedy { set: Some("reads=at-once".to_owned()), ..reader(case) }
}

/// Somebody looks at the queues of the sender's host.
pub(super) fn queues(case: &Case<'_>) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        command: Some(format!("{ip} route get {peer}; tc -s qdisc show dev DEVICE_SHOWN")),
        ..sender(
            case,
            "see which queue the route's device has: a shaper (tbf, htb, cake, fq with maxrate) names its rate; a netem \
             is a forgotten test",
        )
    }
}

/// Somebody looks at what drops packets on the sender's host.
pub(super) fn drops(case: &Case<'_>) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        command: Some(format!(
            "{ip} route get {peer}; tc -s qdisc show dev DEVICE_SHOWN; ip -s link show dev DEVICE_SHOWN"
        )),
        ..sender(
            case,
            "see what drops between TCP and that device: a queue (a netem is a forgotten test), a filter (nft list \
             ruleset), a container's own device",
        )
    }
}

/// A trial of BBR on a route to the peer.
pub(super) fn bbr(case: &Case<'_>) -> Remedy {
    let remedy = own_route(
        case,
        "congctl",
        "bbr",
        "try BBR on a route of its own to this peer, for new connections: it measures the path's rate instead of \
         waiting for losses (it must be available; where queues are short it loses more and can starve others)",
    );
    Remedy {
        command: remedy.command.map(|command| format!("modprobe tcp_bbr; {command}")),
        ..remedy
    }
}

/// The sockets of the connection's service on host `side`: the client's next connection has another port.
pub(super) fn sockets(case: &Case<'_>, side: usize) -> String {
    let at = if side == CLIENT { "dport" } else { "sport" };
    format!("ss -tmi '( {at} = :{} )'", case.connection.server.port())
}

/// What the sender's host remembers of its peer.
pub(super) fn metrics(case: &Case<'_>) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        command: Some(format!(
            "sysctl net.ipv4.tcp_no_ssthresh_metrics_save; {ip} tcp_metrics show {peer}; {ip} route show match {peer}"
        )),
        knob: Some("tcp_metrics".to_owned()),
        ..sender(
            case,
            format!(
                "only where that setting is 0 or missing (kernels before 5.6), a threshold that is shown counts: `{ip} \
                 tcp_metrics delete {peer}` drops it, with the round trip and the Fast Open cookie, which are learnt \
                 anew"
            ),
        )
    }
}

/// Where losses are counted, seen from the sender.
pub(super) fn counters(case: &Case<'_>, what: &str) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        who: "path".to_owned(),
        ..look(
            case.at,
            what,
            format!(
                "{ip} route get {peer}; ip -s link show dev DEVICE_SHOWN; ethtool -S DEVICE_SHOWN"
            ),
        )
    }
}

/// Leaves out what the hosts' systems do not know: settings of Linux on another system, and commands
/// of Linux there. A system that its packets do not show may be Linux.
pub(super) fn for_these_systems(connection: &Connection, remedies: &mut Vec<Remedy>) {
    let is_other = |remedy: &Remedy| {
        let side = HOSTS.iter().position(|host| remedy.on.as_deref() == Some(host));
        side.is_some_and(|side| {
            !matches!(&*connection.sender_stack[side].name, "linux" | "unknown" | "")
        })
    };
    remedies.retain(|remedy| remedy.knob.is_none() || !is_other(remedy));
    for remedy in remedies.iter_mut().filter(|remedy| is_other(remedy)) {
        (remedy.command, remedy.rollback) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// The remedies that are left when the server runs `name`: a setting, a command, and words.
    fn left(name: &'static str) -> Vec<Remedy> {
        let mut connection = sample::download();
        connection.sender_stack[SERVER].name = name.into();
        let case = Case::of(&connection, SERVER).expect("data");
        let mut remedies = vec![bbr(&case), queues(&case), application("write less")];
        for_these_systems(&connection, &mut remedies);
        remedies
    }

    #[test]
    fn another_system_gets_no_command_of_linux() {
        let of = |name| left(name).iter().map(|each| each.command.is_some()).collect::<Vec<_>>();
        assert_eq!(of("linux"), [true, true, false]);
        assert_eq!(of("unknown"), [true, true, false], "it may be Linux");
        assert_eq!(of("windows"), [false, false], "and the setting goes");
    }
}
