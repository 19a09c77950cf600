//! What of this host decides how TCP behaves: kernel, settings, interfaces, routes to the peers.
//!
//! From `/proc` and by netlink (rtnetlink(7)); nothing is changed and no packet is sent. Left out: the
//! host's name and its interfaces' addresses, which are private, and `tcp_fastopen_key`,
//! which is a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::net::IpAddr;
use std::path::Path;
use std::{fs, io};

use serde_json::{Map, Value, json};

use crate::netlink::{Answer, Netlink, address, attributes, number};
use crate::sys::Clock;

/// This host as it is now, with the routes to `peers`.
pub fn snapshot(peers: &BTreeSet<IpAddr>) -> Value {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut route = Netlink::open(libc::NETLINK_ROUTE).ok();
    let names = route.as_mut().and_then(|route| interface_names(route).ok()).unwrap_or_default();
    let interfaces = route.as_mut().and_then(|route| interfaces(route).ok()).unwrap_or_default();
    let routes: Vec<Value> = peers
        .iter()
        .take(MOST_ROUTES)
        .filter_map(|peer| route_to(route.as_mut()?, *peer, &names))
        .collect();
    json!({
        "t": Clock::Real.now(),
        "kernel": kernel.trim(),
        "settings": settings(Path::new("/proc/sys/net")),
        "interfaces": interfaces,
        "routes": routes,
    })
}

/// The addresses of this host's interfaces.
pub(super) fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut found = Vec::new();
    Netlink::open(libc::NETLINK_ROUTE)?.list(libc::RTM_GETADDR, &[0; 8], |message| {
        let facts = || attributes(message.get(8..).unwrap_or_default());
        let of = |wanted: u16| facts().find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
        // On a link with two ends `IFA_ADDRESS` is the other one's.
        found.extend(of(libc::IFA_LOCAL).or_else(|| of(libc::IFA_ADDRESS)).and_then(address));
    })?;
    Ok(found)
}

/// `net.ipv4.tcp_*`, and what of `net.core` sizes buffers and queues.
fn settings(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut add = |name: String, path: &Path| {
        if let Ok(value) = fs::read_to_string(path) {
            found.insert(name, value.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    };
    for entry in fs::read_dir(root.join("ipv4")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("tcp_") && !name.ends_with("_key") {
            add(format!("net.ipv4.{name}"), &entry.path());
        }
    }
    for name in CORE {
        add(format!("net.core.{name}"), &root.join("core").join(name));
    }
    found
}

fn interface_names(route: &mut Netlink) -> io::Result<BTreeMap<u32, String>> {
    let mut names = BTreeMap::new();
    each_interface(route, |index, facts| {
        let name = facts.iter().find(|(kind, _)| *kind == libc::IFLA_IFNAME);
        names.insert(index, name.map_or_else(String::new, |(_, value)| text(value)));
    })?;
    Ok(names)
}

/// Interfaces that are up: name, MTU, queueing discipline.
fn interfaces(route: &mut Netlink) -> io::Result<Vec<Value>> {
    let mut found = Vec::new();
    each_interface(route, |_, facts| {
        let mut told = Map::new();
        for (kind, value) in facts {
            match *kind {
                libc::IFLA_IFNAME => drop(told.insert("name".into(), text(value).into())),
                libc::IFLA_MTU => drop(told.insert("mtu".into(), number(value, 0, 4).into())),
                libc::IFLA_QDISC => drop(told.insert("qdisc".into(), text(value).into())),
                libc::IFLA_TXQLEN => drop(told.insert("txqlen".into(), number(value, 0, 4).into())),
                _ => {}
            }
        }
        found.push(Value::Object(told));
    })?;
    Ok(found)
}

/// Calls `each` with the number and the attributes of interfaces that are up.
fn each_interface(
    route: &mut Netlink,
    mut each: impl FnMut(u32, &[(u16, &[u8])]),
) -> io::Result<Answer> {
    // `ifinfomsg`: family, type, index, flags, change.
    route.list(libc::RTM_GETLINK, &[0; 16], |message| {
        let (Some(index), Some(flags)) = (number(message, 4, 4), number(message, 8, 4)) else {
            return;
        };
        if flags & libc::IFF_UP as u64 != 0 {
            let facts: Vec<_> = attributes(message.get(16..).unwrap_or_default()).collect();
            each(index as u32, &facts);
        }
    })
}

/// What `ip route get` would say.
fn route_to(route: &mut Netlink, peer: IpAddr, names: &BTreeMap<u32, String>) -> Option<Value> {
    let (family, octets) = match peer {
        IpAddr::V4(peer) => (libc::AF_INET, peer.octets().to_vec()),
        IpAddr::V6(peer) => (libc::AF_INET6, peer.octets().to_vec()),
    };
    // `rtmsg`: family, length of the destination, and ten bytes that are not asked by.
    let mut body = vec![0; RTMSG];
    (body[0], body[1]) = (family as u8, 8 * octets.len() as u8);
    body.extend((4 + octets.len() as u16).to_ne_bytes());
    body.extend(libc::RTA_DST.to_ne_bytes());
    body.extend(octets);
    let answer = route.one(libc::RTM_GETROUTE, &body).ok()??;
    let mut told = Map::from_iter([("to".to_owned(), Value::from(peer.to_string()))]);
    for (kind, value) in attributes(answer.get(RTMSG..)?) {
        match kind {
            libc::RTA_OIF => {
                let index = number(value, 0, 4)? as u32;
                told.insert("dev".into(), names.get(&index).cloned().into());
            }
            libc::RTA_GATEWAY => {
                told.insert("via".into(), address(value).map(|via| via.to_string()).into());
            }
            libc::RTA_METRICS => {
                for (metric, value) in attributes(value) {
                    let name = METRICS.iter().find(|(number, _)| *number == metric);
                    if let Some(&(number_of, name)) = name {
                        let value = match number_of {
                            CC_ALGO => Value::from(text(value)),
                            _ => number(value, 0, 4).into(),
                        };
                        told.insert(name.into(), value);
                    }
                }
            }
            _ => {}
        }
    }
    Some(Value::Object(told))
}

fn text(value: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(value).map_or(value, CStr::to_bytes);
    String::from_utf8_lossy(text).into_owned()
}

/// Ours: a recording of more peers is no recording of one transfer.
const MOST_ROUTES: usize = 100;

/// Length of an `rtmsg` (Linux `include/uapi/linux/rtnetlink.h`).
pub(crate) const RTMSG: usize = 12;

/// Metrics of a route (`RTAX_*`) by the names of ip-route(8). Times are as the kernel keeps them:
/// `rtt` in eighths and `rttvar` in quarters of a millisecond, `rto_min` in milliseconds.
pub(crate) const METRICS: [(u16, &str); 14] = [
    (2, "mtu"),
    (3, "window"),
    (4, "rtt"),
    (5, "rttvar"),
    (6, "ssthresh"),
    (7, "cwnd"),
    (8, "advmss"),
    (9, "reordering"),
    (11, "initcwnd"),
    (12, "features"),
    (13, "rto_min"),
    (14, "initrwnd"),
    (15, "quickack"),
    (CC_ALGO, "congctl"),
];
pub(crate) const CC_ALGO: u16 = 16;

const CORE: [&str; 7] = [
    "rmem_default",
    "rmem_max",
    "wmem_default",
    "wmem_max",
    "default_qdisc",
    "netdev_max_backlog",
    "somaxconn",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_loopback_interface_with_its_route_and_settings() {
        let peer = IpAddr::from([127, 0, 0, 1]);
        let host = snapshot(&BTreeSet::from([peer]));
        assert!(!host["kernel"].as_str().expect("a text").is_empty());
        assert!(host["settings"]["net.ipv4.tcp_rmem"].is_string(), "{host}");
        assert_eq!(host["routes"][0]["to"], "127.0.0.1");
        assert_eq!(host["routes"][0]["dev"], "lo");
        let interfaces = host["interfaces"].as_array().expect("a list");
        let lo = interfaces.iter().find(|one| one["name"] == "lo").expect("is up");
        assert!(lo["mtu"].as_u64().is_some_and(|mtu| mtu > 0));
        assert!(addresses().expect("netlink").contains(&peer));
    }

    #[test]
    fn secrets_are_no_settings() {
        let folder = tempfile::tempdir().expect("a folder");
        let ipv4 = folder.path().join("ipv4");
        fs::create_dir(&ipv4).expect("a folder");
        for (name, value) in [("tcp_rmem", "4096\t131072\t6291456\n"), ("tcp_fastopen_key", "x")] {
            fs::write(ipv4.join(name), value).expect("a file");
        }
        let found = settings(folder.path());
        let only = ("net.ipv4.tcp_rmem".to_owned(), "4096 131072 6291456".to_owned());
        assert_eq!(found, BTreeMap::from([only]));
    }
}
