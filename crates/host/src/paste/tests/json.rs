//! JSON of ip(8).

use super::*;

/// iproute2 6.1.
const ADDR: &str = r#"[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"qdisc":"noqueue","operstate":"UNKNOWN","group":"default","txqlen":1000,"link_type":"loopback","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host"}],"stats64":{"rx":{"bytes":6673,"packets":92,"errors":0,"dropped":0,"over_errors":0,"multicast":0},"tx":{"bytes":6673,"packets":92,"errors":0,"dropped":0,"carrier_errors":0,"collisions":0}}},{},{"ifindex":2,"ifname":"eth0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":9000,"qdisc":"fq_codel","master":"bond0","operstate":"UP","group":"default","txqlen":500,"link_type":"ether","addr_info":[{"family":"inet","local":"10.0.0.5","prefixlen":24},{"family":"inet6","local":"fe80::1","prefixlen":64}],"linkinfo":{"info_kind":"veth"},"gso_max_size":65536,"stats64":{"rx":{"bytes":5,"packets":4,"errors":0,"dropped":3,"over_errors":0,"multicast":0,"length_errors":0,"crc_errors":7,"frame_errors":0,"fifo_errors":0,"missed_errors":6},"tx":{"bytes":9,"packets":8,"errors":0,"dropped":2,"carrier_errors":1,"collisions":0,"aborted_errors":0,"fifo_errors":0,"window_errors":0,"heartbeat_errors":0,"carrier_changes":2}}}]
"#;

#[test]
fn interfaces_addresses_and_counters_are_those_of_the_plain_output() {
    assert_eq!(unread(ADDR), Vec::<String>::new());
    let look = last(ADDR);
    let eth0 = link(&look, "eth0");
    assert_eq!((eth0.index, eth0.mtu, eth0.txqlen), (2, Some(9000), Some(500)));
    assert_eq!((eth0.master.as_deref(), eth0.kind.as_deref()), (Some("bond0"), Some("veth")));
    assert_eq!((eth0.up, eth0.carrier, eth0.flags_unseen, eth0.xdp), (true, true, false, Some(0)));
    let address = |text: &str| text.parse().expect("an address");
    assert_eq!(eth0.addresses, [(address("10.0.0.5"), 24), (address("fe80::1"), 64)]);
    let counters = eth0.counters.expect("all of them");
    assert_eq!((counters.rx_dropped, counters.rx_crc_errors, counters.rx_missed_errors), (3, 7, 6));
    assert_eq!((counters.tx_dropped, counters.tx_carrier_errors), (2, 1));
    assert_eq!(eth0.carrier_changes, Some(2));
    let lo = link(&look, "lo");
    assert!(lo.loopback && lo.counters.is_none(), "without the second -s some are missing");
    assert_eq!(lo.some_counters.expect("some")["rx_packets"], 92);
    let later = ADDR.replacen("92", "93", 1);
    assert_ne!(later, ADDR);
    assert_eq!(read(&format!("{ADDR}{later}")).snapshot.looks.len(), 2, "twice is two looks");
    assert_eq!(read(&format!("{ADDR}{ADDR}")).snapshot.looks.len(), 1, "quoted twice");
}

#[test]
fn a_line_of_many_interfaces_is_read_and_other_json_is_named() {
    let one = |nth: usize| {
        format!(r#"{{"ifindex":{nth},"ifname":"veth{nth}","mtu":1500,"flags":["UP"]}}"#)
    };
    let all = (1..2_000).map(one).collect::<Vec<_>>().join(",");
    assert!(all.len() > LONGEST_LINE);
    assert_eq!(last(&format!("[{all}]\n")).links.expect("interfaces").len(), 1_999);
    for other in [
        r#"[{"dst":"default","gateway":"10.0.0.1","dev":"eth0","metric":100,"flags":[]}]"#,
        r#"[{"kind":"fq_codel","handle":"0:","root":true}]"#,
        r#"{"kernel":{"TcpInSegs":9}}"#,
        "[ {",
    ] {
        let Pasted { snapshot, notes } = read(&format!("{other}\n"));
        assert_eq!((notes.read, snapshot.looks[0].links.is_none()), (0, true), "{other}");
        assert!(notes.first[0].why.as_deref().is_some_and(|why| why.contains("JSON")), "{other}");
    }
    let hostile = "[{\"ifindex\":3,\"ifname\":\"a\\u001b[2Jb\",\"mtu\":1500}]\n";
    assert!(last(hostile).links.is_none(), "no such name is shown by the plain output either");
}
