//! What to do, in words that several findings share, and commands that start from what the user has.
//!
//! No command here changes a default for a whole host if a narrower one would do, and each comes
//! with what takes it back: the values saved before, never "the default".

use super::case::Case;
use crate::report::{Prediction, Remedy};

/// Somebody changes a program.
pub(super) fn application(what: impl Into<String>) -> Remedy {
    Remedy { who: "application".to_owned(), what: what.into(), ..Remedy::default() }
}

/// The same with the command that shows what the program does.
pub(super) fn look(what: impl Into<String>, command: impl Into<String>) -> Remedy {
    Remedy { command: Some(command.into()), ..application(what) }
}

/// Somebody changes a device between the hosts.
pub(super) fn path(what: impl Into<String>) -> Remedy {
    Remedy { who: "path".to_owned(), ..application(what) }
}

/// A metric of the sender's route to its peer. The line to change is that of the routes shown which has
/// the gateway and the device that `ip route get` names; `change` wants it whole, or what it leaves out
/// is lost.
pub(super) fn route(case: &Case<'_>, metric: &str, value: u64, what: String) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        who: "sender".to_owned(),
        what,
        command: Some(format!(
            "{ip} route get {peer}; {ip} route show match {peer}; {ip} route change LINE_WITH_THAT_DEV {metric} {value}"
        )),
        rollback: Some(format!("{ip} route change LINE_WITH_THAT_DEV")),
        knob: Some(metric.to_owned()),
        predicted_ns: None,
    }
}

/// The command and the address by which the sender finds its route to the receiver.
fn peer(case: &Case<'_>) -> (&'static str, String) {
    let peer = case.receiver_address();
    let ip = if peer.is_some_and(|peer| peer.is_ipv6()) { "ip -6" } else { "ip" };
    let unknown = || format!("ADDRESS_OF_THE_{}", case.receiver().to_uppercase());
    (ip, peer.map_or_else(unknown, |peer| peer.to_string()))
}

/// A kernel setting of one host, whose old value is shown first.
pub(super) fn sysctl(who: &str, key: &str, value: &str, what: String) -> Remedy {
    Remedy {
        who: who.to_owned(),
        what,
        command: Some(format!("sysctl {key}; sysctl -w {key}={value}")),
        rollback: Some(format!("sysctl -w {key}='VALUE_SHOWN_BEFORE'")),
        knob: Some(key.to_owned()),
        predicted_ns: None,
    }
}

/// The remedy with what it may bring, if anything; without gain it is none.
pub(super) fn if_it_gains(
    remedy: Remedy,
    predicted: Option<Prediction>,
    now_ns: i64,
) -> Option<Remedy> {
    let predicted = predicted.filter(|each| each.best < now_ns)?;
    Some(Remedy { predicted_ns: Some(predicted), ..remedy })
}

/// Somebody looks at what the receiving program does instead of reading.
pub(super) fn reader(case: &Case<'_>) -> Remedy {
    look(
        format!(
            "see what the {}'s program does instead of reading (Recv-Q shows what it left; its system calls \
             show where it is)",
            case.receiver()
        ),
        "ss -tmip; strace -f -ttt -T -e trace=read,recvfrom,recvmsg,epoll_wait,poll -p PID",
    )
}

/// Somebody looks at the queues of the sender's host.
pub(super) fn queues(case: &Case<'_>) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        who: "sender".to_owned(),
        ..look(
            format!(
                "on the {}'s host, see which queue the route's device has: a shaper (tbf, htb, cake) names its \
                 rate; a netem is a forgotten test",
                case.sender()
            ),
            format!("{ip} route get {peer}; tc -s qdisc show dev DEVICE_SHOWN"),
        )
    }
}

/// A trial of BBR on the sender's route.
pub(super) fn bbr(case: &Case<'_>) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        who: "sender".to_owned(),
        what: format!(
            "try BBR on the {}'s route to this peer: it measures the path's rate instead of waiting for losses (it \
             must be available, and takes from others what they leave)",
            case.sender()
        ),
        command: Some(format!(
            "modprobe tcp_bbr; {ip} route get {peer}; {ip} route show match {peer}; {ip} route change LINE_WITH_THAT_DEV congctl bbr"
        )),
        rollback: Some(format!("{ip} route change LINE_WITH_THAT_DEV")),
        knob: Some("congctl".to_owned()),
        predicted_ns: None,
    }
}

/// What the sender's host remembers of its peer.
pub(super) fn metrics(case: &Case<'_>) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        who: "sender".to_owned(),
        what: format!(
            "on the {}'s host, see whether it remembers a threshold for this peer and drop it (it is learnt anew; \
             kernels from 5.6 on keep none by default); `{ip} route show match {peer}` may hold one too",
            case.sender()
        ),
        command: Some(format!("{ip} tcp_metrics show {peer}; {ip} tcp_metrics delete {peer}")),
        rollback: Some(
            "none: round trip, threshold and Fast Open cookie of this peer are learnt anew"
                .to_owned(),
        ),
        knob: Some("tcp_metrics".to_owned()),
        predicted_ns: None,
    }
}

/// Where losses are counted, seen from the sender.
pub(super) fn counters(case: &Case<'_>, what: &str) -> Remedy {
    let (ip, peer) = peer(case);
    Remedy {
        who: "path".to_owned(),
        ..look(
            what,
            format!(
                "{ip} route get {peer}; ip -s link show dev DEVICE_SHOWN; ethtool -S DEVICE_SHOWN"
            ),
        )
    }
}
