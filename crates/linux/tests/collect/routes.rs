//! Routes, their lines, and peers.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use tcpwhy::host::snapshot::Route;

use crate::space::{inside, json, look, run, try_to};

const ROUTES: [&str; 14] = [
    "default via 192.0.2.9 metric 100 proto static",
    "198.51.100.0/24 via 192.0.2.9 dev w0 mtu lock 1400 window 20000 rtt 30ms rttvar 12ms rto_min 250ms \
     ssthresh lock 30 cwnd lock 20 advmss 1300 reordering 5 hoplimit 60 initcwnd 20 initrwnd 30 quickack 1 \
     congctl lock cubic features ecn",
    "203.0.113.0/25 dev w0 initcwnd 3",
    "203.0.113.128/25 dev w0 scope global src 192.0.2.1",
    "blackhole 198.18.0.0/16",
    "unreachable 198.19.0.0/24 metric 7",
    "prohibit 198.19.1.0/24",
    "throw 198.19.2.0/24 table 100",
    "10.1.0.0/16 via 192.0.2.9 table 100 proto 77 realms 3/4",
    "10.2.0.0/16 nexthop via 192.0.2.9 dev w0 weight 3 nexthop via 192.0.2.8 dev w0 weight 1",
    "10.3.0.0/16 via 10.99.0.1 dev w0 onlink",
    "10.4.0.0/16 tos 0x10 via 192.0.2.9",
    "10.5.0.0/16 via inet6 2001:db8::9 dev w0",
    "10.6.0.1 rtt 17 rttvar 5 dev w0",
];
const ROUTES_6: [&str; 6] = [
    "default via 2001:db8::9 dev w0 metric 50",
    "2001:db8:1::/48 via 2001:db8::9 dev w0 mtu lock 1300 initcwnd 30 hoplimit 44 pref high",
    "unreachable 2001:db8:2::/48",
    "2001:db8:3::/48 nexthop via 2001:db8::9 dev w0 weight 2 nexthop via 2001:db8::8 dev w0",
    "2001:db8:4::/48 dev w0 table 500 metric 9",
    "2001:db8:5::1 dev w0 expires 100000",
];

fn told(mut routes: Vec<Route>) -> Vec<Route> {
    for route in &mut routes {
        // It comes nearer while we look.
        route.line = without_expiry(&route.line);
    }
    routes.sort_by(|a, b| a.line.cmp(&b.line));
    routes
}

fn without_expiry(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let place = words.iter().position(|word| *word == "expires").unwrap_or(words.len());
    let kept = |index: usize| index != place && index != place + 1;
    words
        .iter()
        .enumerate()
        .filter(|(index, _)| kept(*index))
        .map(|(_, word)| *word)
        .collect::<Vec<_>>()
        .join(" ")
}

/// As `ip route show` prints them, each on one line, without what the kernel makes for itself and without
/// the state of their interfaces.
fn shown(family: &str) -> Vec<String> {
    let text = run(&format!("ip {family} route show table all")).replace("\n\t", " ");
    let kernels = ["local ", "broadcast ", "anycast ", "multicast "];
    text.lines()
        .filter(|line| !kernels.iter().any(|kind| line.starts_with(kind)))
        .map(|line| without_expiry(line).replace(" linkdown", "").replace(" dead", ""))
        .collect()
}

#[test]
fn routes_are_told_as_ip_tells_them_and_their_lines_set_them_again() {
    inside(|| {
        run("ip nexthop add id 5 via 192.0.2.9 dev w0");
        run("ip route add 10.7.0.0/16 nhid 5");
        for line in ROUTES {
            run(&format!("ip route add {line}"));
        }
        for line in ROUTES_6 {
            run(&format!("ip -6 route add {line}"));
        }
        let before = told(look().routes.expect("seen"));
        // ip rounds these times, and does not print the scope without which it would set another.
        let as_ip = |line: &str| {
            line.replace("rtt 17 rttvar 5", "rtt 2ms rttvar 1ms").replace(" scope global", "")
        };
        let mut lines: Vec<String> = before.iter().map(|route| as_ip(&route.line)).collect();
        let mut ips = [shown("-4"), shown("-6")].concat();
        // ip prints what a shared next hop says behind its number, and then does not take it.
        for line in &mut ips {
            *line = line.replace("nhid 5 via 192.0.2.9 dev w0", "nhid 5");
            *line = line.replace("rto_min lock", "rto_min");
            // And names of kinds of service, if it knows some.
            *line = line.replace("tos lowdelay", "tos 0x10");
        }
        // Those of both interfaces; `replace` would take the first of them.
        lines.retain(|line| !line.is_empty());
        ips.retain(|line| !line.starts_with("fe80::/64 "));
        lines.retain(|line| !line.starts_with("fe80::/64 "));
        lines.sort();
        ips.sort();
        similar(&lines, &ips);
        for route in before.iter().filter(|route| !route.line.is_empty()) {
            let family = if route.ipv6 { "-6" } else { "-4" };
            let set = try_to(&format!("ip {family} route replace {}", route.line));
            assert_eq!(set, Ok(String::new()), "{}", route.line);
        }
        assert_eq!(told(look().routes.expect("seen")), before, "they are as they were");
        let metrics = before.iter().find(|route| route.congestion.is_some()).expect("is there");
        assert_eq!(metrics.locked, ["mtu", "ssthresh", "cwnd", "rto_min", "congctl"]);
        assert_eq!((metrics.metrics["rto_min"], metrics.metrics["rtt"]), (250_000_000, 30_000_000));
    });
}

/// Equal, or shows what only one side has.
fn similar(ours: &[String], ips: &[String]) {
    let only = |a: &[String], b: &[String]| -> Vec<String> {
        a.iter().filter(|line| !b.contains(line)).cloned().collect()
    };
    assert_eq!(
        (only(ours, ips), only(ips, ours)),
        (Vec::new(), Vec::new()),
        "ours alone, ip's alone"
    );
    assert_eq!(ours.len(), ips.len());
}

#[test]
fn a_line_takes_back_what_was_changed() {
    inside(|| {
        run("ip route add 198.51.100.0/24 via 192.0.2.9 dev w0 initcwnd 20 ssthresh lock 30");
        let saved = look().routes.expect("seen");
        let saved =
            saved.iter().find(|route| route.metrics.contains_key("initcwnd")).expect("is there");
        run("ip route replace 198.51.100.0/24 dev w0");
        run(&format!("ip route replace {}", saved.line));
        let now = look().routes.expect("seen");
        assert_eq!(now.iter().find(|route| route.to == saved.to), Some(saved));
    });
}

#[test]
fn rules_are_those_of_ip() {
    inside(|| {
        run("ip rule add from 10.0.0.0/8 lookup 100 pref 7");
        run("ip rule add lookup main suppress_prefixlength 0 pref 8");
        run("ip rule add fwmark 3 blackhole pref 9");
        let ours = look().rules.expect("seen");
        let v4: Vec<_> = ours
            .iter()
            .filter(|rule| !rule.ipv6)
            .map(|rule| (rule.preference, rule.table, rule.selects))
            .collect();
        assert_eq!(
            v4,
            [
                (0, 255, false),
                (7, 100, true),
                (8, 254, true),
                (9, 0, true),
                (32766, 254, false),
                (32767, 253, false)
            ]
        );
    });
}

#[test]
fn peers_are_remembered_as_ip_tells_them() {
    inside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let server = thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a client");
            peer.write_all(&vec![0; 100_000]).expect("it reads");
        });
        let mut client = TcpStream::connect(address).expect("it listens");
        client.read_to_end(&mut Vec::new()).expect("it writes");
        drop(client);
        server.join().expect("well");
        let ours = look().tcp_metrics.expect("seen");
        let ips = json("ip -j tcp_metrics show");
        assert_eq!(ours.len(), ips.len());
        assert!(!ours.is_empty());
        for peer in &ours {
            let to = peer.to.to_string();
            let ip = ips.iter().find(|ip| ip["dst"] == to.as_str()).expect("ip knows it");
            // Seconds with a fraction.
            let ns = |name: &str| ip[name].as_f64().map(|s| (s * 1e9).round() as u64);
            assert_eq!(
                (peer.rtt_ns.map(micros), peer.rttvar_ns.map(micros)),
                (ns("rtt").map(micros), ns("rttvar").map(micros))
            );
            assert_eq!(peer.cwnd.map(u64::from), ip["cwnd"].as_u64());
            assert_eq!(peer.ssthresh.map(u64::from), ip["ssthresh"].as_u64());
            assert_eq!(peer.from.map(|from| from.to_string()).as_deref(), ip["source"].as_str());
        }
    });
}

/// ip tells whole microseconds.
fn micros(ns: u64) -> u64 {
    ns / 1000
}
