//! Queueing disciplines and interfaces beside tc(8) and ip(8).

use std::net::UdpSocket;

use serde_json::Value;
use tcpwhy::host::snapshot::{Look, Qdisc};

use crate::space::{inside, json, look, run, skipped, try_to};

/// Sends some packets into the cable.
fn send() {
    run("ip neigh replace 192.0.2.9 lladdr 02:00:00:00:00:09 dev w0");
    let socket = UdpSocket::bind("192.0.2.1:0").expect("an address of ours");
    for _ in 0..50 {
        let _ = socket.send_to(&[0; 1000], "192.0.2.9:9");
    }
}

fn handle(number: u32) -> String {
    let (major, minor) = (number >> 16, number & 0xffff);
    if minor == 0 { format!("{major:x}:") } else { format!("{major:x}:{minor:x}") }
}

fn compare(qdisc: &Qdisc, tcs: &Value) {
    let number = |name: &str| tcs[name].as_u64().unwrap_or(0);
    assert_eq!(tcs["kind"], qdisc.kind.as_str());
    assert_eq!(tcs["handle"], handle(qdisc.handle).as_str());
    assert_eq!(tcs["root"] == true, qdisc.parent == u32::MAX);
    let ours = [qdisc.bytes, qdisc.packets, qdisc.drops, qdisc.overlimits, qdisc.requeues];
    assert_eq!(ours, ["bytes", "packets", "drops", "overlimits", "requeues"].map(number), "{tcs}");
    assert_eq!([qdisc.backlog, qdisc.qlen], ["backlog", "qlen"].map(number), "{tcs}");
}

/// A look, and what a program says before and after it: packets pass at any instant (shapers let them out,
/// IPv6 greets its neighbours), so both are asked until nothing moved between.
fn at_rest(words: &str) -> (Look, Vec<Value>) {
    for _ in 0..200 {
        let before = json(words);
        let look = look().looks.remove(0);
        let after = json(words);
        if before == after {
            return (look, after);
        }
    }
    panic!("{words}: never the same before and after a look");
}

/// Words of tc, and of its options what ours must say.
const KINDS: [(&str, &[(&str, &str)]); 9] = [
    ("pfifo limit 7", &[("limit", "7p")]),
    ("bfifo limit 2048", &[("limit", "2Kb")]),
    (
        "tbf rate 1mbit burst 3000b limit 5000b",
        &[("rate", "1Mbit"), ("burst", "3000b"), ("limit", "5000b")],
    ),
    (
        "fq limit 20 flow_limit 10 maxrate 2mbit",
        &[("limit", "20p"), ("flow_limit", "10p"), ("maxrate", "2Mbit")],
    ),
    ("fq_codel limit 100 flows 64 target 5ms", &[("limit", "100p"), ("flows", "64"), ("ecn", "")]),
    ("codel limit 90 noecn", &[("limit", "90p")]),
    (
        "netem delay 100ms 10ms loss 25% rate 1mbit limit 30",
        &[("limit", "30"), ("delay", "100ms 10ms"), ("loss", "25%"), ("rate", "1Mbit")],
    ),
    ("sfq quantum 1600 perturb 10", &[("quantum", "1600b"), ("perturb", "10sec")]),
    (
        "cake bandwidth 3mbit overhead 38 besteffort",
        &[("bandwidth", "3Mbit"), ("overhead", "38"), ("diffserv", "besteffort")],
    ),
];

#[test]
fn disciplines_have_the_statistics_that_tc_shows() {
    inside(|| {
        let mut seen = 0;
        for (words, wanted) in KINDS {
            if let Err(complaint) =
                try_to(&format!("tc qdisc replace dev w0 root handle 8: {words}"))
            {
                skipped(&format!("{words}: {complaint}"));
                continue;
            }
            send();
            let (look, tcs) = at_rest("tc -s -j qdisc show dev w0");
            let ours: Vec<_> =
                look.qdiscs.expect("seen").into_iter().filter(|qdisc| qdisc.dev == "w0").collect();
            assert_eq!((ours.len(), tcs.len()), (1, 1), "{words}");
            compare(&ours[0], &tcs[0]);
            for (name, value) in wanted {
                assert_eq!(ours[0].options.get(*name).map(String::as_str), Some(*value), "{words}");
            }
            assert!(ours[0].packets + ours[0].drops + ours[0].qlen > 0, "{words}");
            run("tc qdisc del dev w0 root");
            seen += 1;
        }
        assert!(seen > 2);
    });
}

#[test]
fn classes_have_their_rates_and_what_passed_unclassified_is_counted() {
    inside(|| {
        if let Err(complaint) = try_to("tc qdisc add dev w0 root handle 1: htb default 0") {
            return skipped(&format!("htb: {complaint}"));
        }
        run("tc class add dev w0 parent 1: classid 1:10 htb rate 10mbit ceil 20mbit");
        send();
        let look = look().looks.remove(0);
        let root =
            look.qdiscs.expect("seen").into_iter().find(|one| one.kind == "htb").expect("set");
        // IPv6 greets its neighbours, too.
        assert!((50..60).contains(&root.own["direct_packets_stat"]), "{root:?}");
        assert_eq!(root.options["default"], "0x0");
        let [class] = look.classes.expect("seen").try_into().expect("one");
        assert_eq!(
            (class.handle, class.parent, class.rate),
            (0x1_0010, u32::MAX, Some(10_000_000))
        );
        assert_eq!(class.options["ceil"], "20Mbit");
    });
}

#[test]
fn interfaces_are_those_of_ip() {
    inside(|| {
        send();
        run("ip link set w0 txqueuelen 77");
        let (look, ips) = at_rest("ip -s -d -j link");
        let links = look.links.expect("seen");
        assert_eq!(links.len(), ips.len());
        for (link, ip) in links.iter().zip(&ips) {
            assert_eq!(
                (ip["ifname"].as_str(), ip["ifindex"].as_u64()),
                (Some(link.name.as_str()), Some(u64::from(link.index)))
            );
            assert_eq!(ip["mtu"].as_u64(), link.mtu.map(u64::from));
            assert_eq!(ip["txqlen"].as_u64(), link.txqlen.map(u64::from));
            assert_eq!(ip["linkinfo"]["info_kind"].as_str(), link.kind.as_deref());
            let counters = link.counters.expect("told");
            let [rx, tx] = ["rx", "tx"].map(|way| ip["stats64"][way]["packets"].as_u64());
            assert_eq!((rx, tx), (Some(counters.rx_packets), Some(counters.tx_packets)));
            assert_eq!(ip["gso_max_size"].as_u64(), link.gso_max_size.map(u64::from));
        }
        let a = links.iter().find(|link| link.name == "w0").expect("made");
        assert_eq!((a.txqlen, a.up, a.carrier), (Some(77), true, true));
        let features = a.features.as_ref().expect("asked");
        for (name, is_on) in kept_of_ethtool() {
            assert_eq!(features.on.contains(&name), is_on, "{name}");
        }
        let queues = a.queues.as_ref().expect("this namespace's /sys was seen");
        assert!(queues.rx.is_some_and(|queues| queues > 0));
    });
}

#[test]
fn a_hostile_name_is_escaped_and_hides_nobody_else() {
    inside(|| {
        run("ip link add name x\u{1b}[2J;reboot type veth peer name y");
        run("ip link set x\u{1b}[2J;reboot up");
        run("ip route add 10.9.0.0/16 dev x\u{1b}[2J;reboot");
        let snapshot = look();
        let links = snapshot.looks[0].links.as_ref().expect("seen");
        assert!(links.iter().any(|link| link.name == r"x\u{1b}[2J;reboot"));
        let w0 = links.iter().find(|link| link.name == "w0").expect("made");
        assert!(w0.queues.as_ref().is_some_and(|queues| queues.rx.is_some()));
        let routes = snapshot.routes.expect("seen");
        let odd = routes.iter().find(|route| route.dev.as_deref() == Some(r"x\u{1b}[2J;reboot"));
        assert_eq!(odd.expect("set").line, "", "nobody shall paste it into a shell");
    });
}

/// Names as the kernel has them, for ethtool groups some under names of its own.
fn kept_of_ethtool() -> Vec<(String, bool)> {
    let Ok(text) = try_to("ethtool -k w0") else { return Vec::new() };
    let line = |line: &str| {
        let (name, value) = line.trim().split_once(": ")?;
        let is_kernels =
            ["tx-tcp-segmentation", "tx-checksum-ip-generic", "rx-gro-list", "tx-nocache-copy"];
        is_kernels.contains(&name).then(|| (name.to_owned(), value.starts_with("on")))
    };
    text.lines().filter_map(line).collect()
}
