//! Devices, addresses and routes of a layout, by netlink and the few ioctls that are left.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use super::system;
use crate::lab::layout::Port;
use crate::netlink::{Netlink, Request};

/// Makes a veth pair: one end in this namespace, the other in `there`.
pub(super) fn join(
    netlink: &mut Netlink,
    near: &Port,
    far: &Port,
    there: &OwnedFd,
) -> io::Result<()> {
    let mut request = Request::new(RTM_NEWLINK, CREATE, &link_head(0, 0));
    device(&mut request, near);
    request.nest(IFLA_LINKINFO, &[], |r| {
        r.name(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, &[], |r| {
            r.nest(VETH_INFO_PEER, &link_head(0, 0), |r| {
                device(r, far);
                r.number(IFLA_NET_NS_FD, there.as_raw_fd() as u32);
            });
        });
    });
    netlink.carry_out(&request)
}

fn device(request: &mut Request, port: &Port) {
    request.name(IFLA_IFNAME, &port.device).attribute(IFLA_ADDRESS, &port.hardware());
    request.number(IFLA_TXQLEN, TX_QUEUE);
}

/// Gives a port its addresses and that of its only neighbour, sets its offloads and puts it up.
pub(super) fn put_up(netlink: &mut Netlink, port: &Port, peer: &Port) -> io::Result<()> {
    let index = system::index(&port.device)?;
    system::offload(&port.device, port.offload)?;
    netlink.carry_out(&Request::new(RTM_NEWLINK, 0, &link_head(index, IFF_UP)))?;
    for (ipv6, prefix) in [(false, 24), (true, 64)] {
        let flags = if ipv6 { IFA_F_NODAD } else { 0 };
        let head = [&[family(ipv6), prefix, flags, 0][..], &index.to_ne_bytes()].concat();
        let own = octets(port.address(ipv6));
        let mut request = Request::new(RTM_NEWADDR, CREATE, &head);
        request.attribute(IFA_LOCAL, &own).attribute(IFA_ADDRESS, &own);
        netlink.carry_out(&request)?;

        let mut head = vec![family(ipv6), 0, 0, 0];
        head.extend(index.to_ne_bytes());
        head.extend(NUD_PERMANENT.to_ne_bytes());
        head.extend([0, 0]);
        let mut request = Request::new(RTM_NEWNEIGH, CREATE_OR_REPLACE, &head);
        request
            .attribute(NDA_DST, &octets(peer.address(ipv6)))
            .attribute(NDA_LLADDR, &peer.hardware());
        netlink.carry_out(&request)?;
    }
    Ok(())
}

/// Puts the loopback device up.
pub(super) fn put_loopback_up(netlink: &mut Netlink) -> io::Result<()> {
    netlink.carry_out(&Request::new(RTM_NEWLINK, 0, &link_head(system::index("lo")?, IFF_UP)))
}

/// Adds a route to the network of number `net` through the neighbour at the end of `port`; what is sent by it is from
/// `source`, if that is another port.
pub(super) fn route(
    netlink: &mut Netlink,
    net: u8,
    (port, via): (&Port, &Port),
    source: Option<&Port>,
    metrics: &[Metric],
) -> io::Result<()> {
    for (ipv6, prefix) in [(false, 24), (true, 64)] {
        let network = Port { net, host: 0, ..Port::default() };
        let head =
            [family(ipv6), prefix, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST, 0, 0, 0, 0];
        let mut request = Request::new(RTM_NEWROUTE, CREATE, &head);
        request
            .attribute(RTA_DST, &octets(network.address(ipv6)))
            .attribute(RTA_GATEWAY, &octets(via.address(ipv6)))
            .number(RTA_OIF, system::index(&port.device)?);
        if let Some(source) = source {
            request.attribute(RTA_PREFSRC, &octets(source.address(ipv6)));
        }
        if !metrics.is_empty() {
            request.nest(RTA_METRICS, &[], |r| {
                for metric in metrics {
                    match &metric.value {
                        Value::Number(n) => r.number(metric.kind, *n),
                        Value::Name(name) => r.name(metric.kind, name),
                    };
                }
            });
        }
        netlink.carry_out(&request)?;
    }
    Ok(())
}

/// One metric of a route, in the kernel's terms.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Metric {
    kind: u16,
    value: Value,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Value {
    Number(u32),
    Name(String),
}

/// Understands the words of a route as ip-route(8) has them.
///
/// # Errors
/// A sentence on the word that is not understood.
pub(crate) fn metrics(words: &BTreeMap<String, String>) -> Result<Vec<Metric>, String> {
    let mut metrics = Vec::new();
    let mut locked = 0;
    for (word, text) in words {
        let Some((_, kind, scale)) = METRICS.iter().find(|(name, ..)| name == word) else {
            let known: Vec<_> = METRICS.iter().map(|(name, ..)| *name).collect();
            return Err(format!(
                "`{word}` is no metric of a route; there are {}",
                known.join(", ")
            ));
        };
        let text = text.trim();
        let value = text.strip_prefix("lock ").map_or(text, str::trim);
        if value != text {
            locked |= 1 << kind;
        }
        let value = match scale {
            Scale::Name => Value::Name(value.to_owned()),
            Scale::Ecn => Value::Number(RTAX_FEATURE_ECN),
            Scale::Plain => Value::Number(
                value.parse().map_err(|_| format!("`{word}` wants a number, not `{text}`"))?,
            ),
            Scale::Time(per_ms) => Value::Number(
                milliseconds(value)
                    .and_then(|ms| u32::try_from((ms * f64::from(*per_ms)).round() as u64).ok())
                    .ok_or_else(|| format!("`{word}` wants a time as 200ms, not `{text}`"))?,
            ),
        };
        metrics.push(Metric { kind: *kind, value });
    }
    if locked != 0 {
        metrics.push(Metric { kind: RTAX_LOCK, value: Value::Number(locked) });
    }
    Ok(metrics)
}

/// A time as ip-route(8) takes it: `0.2s`, `200ms`; a bare number is milliseconds.
fn milliseconds(text: &str) -> Option<f64> {
    let (number, scale) = if let Some(number) = text.strip_suffix("ms") {
        (number, 1.0)
    } else if let Some(number) = text.strip_suffix("us") {
        (number, 0.001)
    } else if let Some(number) = text.strip_suffix('s') {
        (number, 1000.0)
    } else {
        (text, 1.0)
    };
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * scale)
}

/// How a metric's word is understood.
enum Scale {
    Plain,
    /// This many to a millisecond.
    Time(u32),
    Name,
    Ecn,
}

/// Words of ip-route(8), `RTAX_*` of linux/rtnetlink.h, and their units (`rtt` is in eighths of a
/// millisecond, `rttvar` in quarters, as `tcp_metrics` had them).
const METRICS: [(&str, u16, Scale); 16] = [
    ("mtu", 2, Scale::Plain),
    ("window", 3, Scale::Plain),
    ("rtt", 4, Scale::Time(8)),
    ("rttvar", 5, Scale::Time(4)),
    ("ssthresh", 6, Scale::Plain),
    ("cwnd", 7, Scale::Plain),
    ("advmss", 8, Scale::Plain),
    ("reordering", 9, Scale::Plain),
    ("hoplimit", 10, Scale::Plain),
    ("initcwnd", 11, Scale::Plain),
    ("features", 12, Scale::Ecn),
    ("rto_min", 13, Scale::Time(1)),
    ("initrwnd", 14, Scale::Plain),
    ("quickack", 15, Scale::Plain),
    ("congctl", 16, Scale::Name),
    ("fastopen_no_cookie", 17, Scale::Plain),
];

fn family(ipv6: bool) -> u8 {
    (if ipv6 { libc::AF_INET6 } else { libc::AF_INET }) as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

/// `struct ifinfomsg`: any family, index, flags and which of them to change.
fn link_head(index: u32, flags: u32) -> Vec<u8> {
    [[0; 4], index.to_ne_bytes(), flags.to_ne_bytes(), flags.to_ne_bytes()].concat()
}

/// Ours: longer than any burst, and within what v6.12 takes (`txqlen_range`).
const TX_QUEUE: u32 = 10_000;

// linux/rtnetlink.h, if_link.h, if_addr.h, neighbour.h, veth.h
const CREATE: u16 = 0x400 | 0x200;
const CREATE_OR_REPLACE: u16 = 0x400 | 0x100;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const IFF_UP: u32 = 1;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTAX_LOCK: u16 = 1;
const RTAX_FEATURE_ECN: u32 = 1;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RTN_UNICAST: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(word: &str, value: &str) -> Result<Vec<Metric>, String> {
        metrics(&BTreeMap::from([(word.to_owned(), value.to_owned())]))
    }

    fn number(kind: u16, value: u32) -> Metric {
        Metric { kind, value: Value::Number(value) }
    }

    #[test]
    fn words_become_the_kernels_numbers() {
        assert_eq!(understood("initcwnd", "100"), Ok(vec![number(11, 100)]));
        assert_eq!(understood("rto_min", "200ms"), Ok(vec![number(13, 200)]));
        assert_eq!(understood("rtt", "0.05s"), Ok(vec![number(4, 400)]));
        let reno = Metric { kind: 16, value: Value::Name("reno".to_owned()) };
        assert_eq!(understood("congctl", "reno"), Ok(vec![reno]));
    }

    #[test]
    fn a_locked_metric_says_which() {
        assert_eq!(
            understood("cwnd", "lock 30"),
            Ok(vec![number(7, 30), number(RTAX_LOCK, 1 << 7)])
        );
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert!(understood("initcwmd", "10").expect_err("a typo").contains("initcwnd"));
        assert!(understood("rto_min", "soon").expect_err("no time").contains("`soon`"));
        assert!(understood("initcwnd", "-1").expect_err("no number").contains("`-1`"));
    }
}
