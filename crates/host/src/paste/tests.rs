mod json;
mod lines;
mod pasted;
mod proc;
mod settings;
mod sockets;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::judge;
use crate::seen::{Missing, Seen};
use crate::snapshot::{Bbr, Info, Link, Look, Memory, Owner, Socket, Source, State, Timer};

const NEW: &str = include_str!("../../../../testdata/host/pasted/iproute2-6.1.txt");
const OLD: &str = include_str!("../../../../testdata/host/pasted/rhel6.txt");
const TICKET: &str = include_str!("../../../../testdata/host/pasted/ticket.txt");
const FILES: &str = include_str!("../../../../testdata/host/pasted/proc-net.txt");
const SENTENCES: &str = include_str!("../../../../testdata/host/pasted/netstat-s-2.10.txt");
const NSTAT: &str = include_str!("../../../../testdata/host/pasted/nstat-6.1.txt");

fn last(text: &str) -> Look {
    read(text).snapshot.looks.pop().expect("a look")
}

fn link(look: &Look, name: &str) -> Link {
    let links = look.links.as_deref().unwrap_or_default();
    links.iter().find(|link| link.name == name).cloned().unwrap_or_else(|| panic!("no {name}"))
}

fn socket(look: &Look, local: &str, remote: &str) -> Socket {
    let ends = (local.parse().expect("an end"), remote.parse().expect("an end"));
    let all = look.sockets.as_deref().unwrap_or_default();
    let found = all.iter().find(|socket| (socket.local, socket.remote) == ends);
    found.cloned().unwrap_or_else(|| panic!("no {local} {remote}"))
}

fn unread(text: &str) -> Vec<String> {
    read(text).notes.first.into_iter().map(|note| note.text).collect()
}

#[test]
fn every_line_of_the_tools_is_understood() {
    for text in [NEW, OLD, FILES, SENTENCES, NSTAT] {
        assert_eq!(unread(text), Vec::<String>::new());
        assert!(read(text).snapshot.pasted);
    }
}

#[test]
fn sentences_are_the_counters_that_the_kernel_names() {
    let counters = |text| last(text).counters.expect("counters");
    let (sentences, files, nstat) = (counters(SENTENCES), counters(FILES), counters(NSTAT));
    for group in ["Tcp", "TcpExt", "IpExt"] {
        for (name, value) in &sentences[group] {
            assert_eq!(files[group].get(name), Some(value), "{group} {name}");
        }
        let missing: Vec<&String> =
            files[group].keys().filter(|name| !sentences[group].contains_key(*name)).collect();
        let not_printed: &[&str] = match group {
            "Tcp" => &["MaxConn", "RtoAlgorithm", "RtoMax", "RtoMin"],
            _ => &[],
        };
        assert_eq!(missing, not_printed, "{group}");
        for (name, value) in &nstat[group] {
            assert_eq!(files[group].get(name), Some(value), "{group} {name}");
        }
        assert!(nstat[group].len() >= 10, "{group}");
    }
}

#[test]
fn sentences_of_old_versions_are_the_same_counters() {
    let counters = last(OLD).counters.expect("counters");
    for (group, name, value) in [
        ("Tcp", "ActiveOpens", 64),
        ("Tcp", "OutSegs", 203_629_500),
        ("Tcp", "RetransSegs", 4_241_408),
        ("Tcp", "InErrs", 0),
        ("TcpExt", "PAWSEstab", 285),
        ("TcpExt", "ListenOverflows", 54_977),
        ("TcpExt", "ListenDrops", 54_977),
        ("TcpExt", "TCPHPHits", 16_925_947),
        ("TcpExt", "TCPSackRecovery", 21_680),
        ("TcpExt", "TCPLossUndo", 3),
        ("TcpExt", "TCPTimeouts", 373_473),
        ("TcpExt", "IPReversePathFilter", 35_428),
        ("IpExt", "InMcastPkts", 2),
    ] {
        assert_eq!(counters[group].get(name), Some(&value), "{name}");
    }
}

#[test]
fn a_counter_twice_is_two_looks_with_their_times() {
    let looks = read(TICKET).snapshot.looks;
    let filtered: Vec<_> = looks
        .iter()
        .map(|look| look.counters.as_ref().map(|all| all["TcpExt"]["IPReversePathFilter"]))
        .collect();
    assert_eq!(filtered, [Some(35_428), Some(35_435)]);
    let apart = looks[1].t_ns.zip(looks[0].t_ns).map(|(now, then)| now - then);
    assert_eq!(apart, Some(10_000_000_000));
}

#[test]
fn what_grew_since_it_was_asked_last_is_made_a_count() {
    let text = "#kernel\nTcpInSegs 900 0.0\nTcpOutSegs 10 0.0\n\
        #kernel\nTcpInSegs 50 0.0\nTcpOutSegs 12 0.0\n";
    let looks = read(text).snapshot.looks;
    let of = |look: &Look, name| look.counters.as_ref().map(|all| all["Tcp"][name]);
    assert_eq!((of(&looks[0], "InSegs"), of(&looks[1], "InSegs")), (Some(900), Some(950)));
    assert_eq!(of(&looks[1], "OutSegs"), Some(22));
}

#[test]
fn what_a_whole_reading_left_out_was_zero_and_a_shortened_one_proves_nothing() {
    let lines: Vec<String> = (0..30).map(|at| format!("TcpExtCounter{at} 7 0.0\n")).collect();
    let whole = lines.concat();
    let later = format!("{whole}TcpExtListenOverflows 12 0.0\n");
    let looks = read(&format!("{whole}{later}")).snapshot.looks;
    let of = |look: &Look| look.counters.as_ref()?["TcpExt"].get("ListenOverflows").copied();
    assert_eq!(looks.iter().map(of).collect::<Vec<_>>(), [Some(0), Some(12)]);
    let shortened = "TcpExtCounter1 7 0.0\n";
    let looks = read(&format!("{shortened}{later}")).snapshot.looks;
    assert_eq!(looks.iter().map(of).collect::<Vec<_>>(), [None, Some(12)]);
}

#[test]
fn counters_that_were_chosen_or_are_few_prove_nothing_of_others() {
    let many: Vec<String> =
        (0..MANY_LINES).map(|at| format!("TcpExtCounter{at} 7 0.0\n")).collect();
    let many = many.concat();
    let growth = |text: &str| {
        let snapshot = read(text).snapshot;
        let seen = Seen::new(&snapshot).expect("a look");
        seen.growth("TcpExt", "PruneCalled").map(|growth| growth.is_some())
    };
    let unseen = Err(Missing::part(Source::Counters, "PruneCalled"));
    assert_eq!(
        growth(&format!("$ nstat -az\n{many}")),
        Ok(false),
        "the kernel has no such counter"
    );
    assert_eq!(growth(&format!("$ nstat -az | grep -i tcpext\n{many}")), unseen);
    assert_eq!(growth("TcpExtListenOverflows 0 0.0\n"), unseen);
    let named = format!("$ nstat -az | grep -i tcpext\n{many}TcpExtPruneCalled 3 0.0\n");
    assert_eq!(growth(&named), Ok(true));
}

const MANY_LINES: usize = 20;

#[test]
fn prompts_tell_whose_output_it_is() {
    let hosts = |text: &str| Vec::from_iter(read(text).notes.hosts);
    let two = "[root@web-1 ~]# nstat -az\nTcpInSegs 9 0.0\nada@db-2.example:~/x$ nstat\nTcpInSegs 8 0.0\n";
    assert_eq!(hosts(two), ["db-2", "web-1"]);
    let one =
        "root@web-1:~# nstat\nTcpInSegs 9 0.0\n[ada@web-1.example src]$ sudo nstat\n$ nstat\n";
    assert_eq!(hosts(one), ["web-1"]);
}

#[test]
fn settings_are_those_that_run_and_files_only_set_them() {
    let snapshot = read(TICKET).snapshot;
    let settings = snapshot.settings.expect("settings");
    assert!(!settings.complete);
    let expected = [
        ("net.core.rmem_default", "212992"),
        ("net.core.wmem_default", "212992"),
        ("net.ipv4.tcp_adv_win_scale", "1"),
        ("net.ipv4.tcp_mem", "88560 118080 177120"),
        ("net.ipv4.tcp_rmem", "4096 87380 6291456"),
        ("net.ipv4.tcp_sack", "1"),
        ("net.ipv4.tcp_window_scaling", "1"),
    ];
    let expected: BTreeMap<_, _> =
        expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    assert_eq!(settings.values, expected, "and not the last line, which may be cut");
    let set_in = snapshot.set_in.expect("files");
    let of = |key: &str| -> Vec<String> {
        set_in[key].iter().map(|set| format!("{}:{} {}", set.file, set.line, set.value)).collect()
    };
    assert_eq!(
        of("net.ipv4.tcp_rmem"),
        [
            "/etc/sysctl.conf:12 4096 87380 4194304",
            "/etc/sysctl.d/99-web.conf:3 4096 87380 6291456"
        ]
    );
    assert_eq!(of("net.core.somaxconn"), ["/etc/sysctl.d/50-queues.conf:2 4096"]);
    assert_eq!(of("net.ipv4.tcp_max_syn_backlog"), ["/etc/sysctl.d/50-queues.conf:3 8192"]);
}

#[test]
fn secrets_are_not_kept() {
    let text = "net.ipv4.tcp_fastopen_key = 1-2-3-4\nnet.ipv6.conf.all.stable_secret = fe80::1\n\
        net/ipv4/conf/eth0.100/rp_filter = 1\n";
    let settings = read(text).snapshot.settings.expect("settings").values;
    assert_eq!(settings.keys().collect::<Vec<_>>(), ["net.ipv4.conf.eth0/100.rp_filter"]);
}

#[test]
fn ethtool_s_outputs_are_put_to_their_device() {
    let look = last(TICKET);
    let nic = link(&look, "ens192");
    let ring = nic.ring.expect("rings");
    assert_eq!(
        (ring.rx, ring.rx_max, ring.tx, ring.tx_max),
        (Some(1024), Some(4096), Some(512), Some(4096))
    );
    assert_eq!(nic.pause, Some([false, true]));
    assert_eq!(nic.driver_counters.expect("counters")["rx_missed_errors"], 17);
    assert_eq!((nic.speed, nic.full_duplex), (Some(100_000_000), Some(false)));
    assert_eq!(nic.speed_max, Some(1_000_000_000), "of what both ends advertise");
    assert_eq!((nic.up, nic.carrier, nic.flags_unseen), (true, true, false));

    let look = last(NEW);
    let veth = link(&look, "eth0");
    let features = veth.features.expect("features");
    assert!(features.on.iter().any(|name| name == "tx-tcp-segmentation"));
    assert!(features.off.iter().any(|name| name == "rx-gro"));
    assert!(features.fixed_off.iter().any(|name| name == "rx-lro"));
    let queues = veth.queues.expect("queues");
    assert_eq!((queues.rx, queues.tx, queues.combined), (Some(1), Some(1), None));
    assert_eq!(veth.speed, Some(10_000_000_000));
    let unseen = read(NEW).snapshot.unseen;
    assert_eq!((unseen.len(), unseen[0].of.as_deref()), (1, Some("eth0")));

    let old = link(&last(OLD), "eth0").features.expect("features");
    assert_eq!(old.off, ["tx-tcp-segmentation", "tx-udp-fragmentation", "rx-gro", "rx-lro"]);
}

#[test]
fn statistics_without_their_device_are_of_an_interface_without_a_name() {
    let look = last("NIC statistics:\n     rx_missed_errors: 17\n");
    let links = look.links.expect("links");
    assert_eq!(links[0].name, "an interface without a name");
    assert_eq!(
        links[0].driver_counters.as_ref().and_then(|all| all.get("rx_missed_errors")),
        Some(&17)
    );
    let look = last(
        "qdisc fq_codel 0: root refcnt 2 limit 10240p\n Sent 1 bytes 1 pkt (dropped 5, \
        overlimits 0 requeues 0)\n",
    );
    let qdisc = &look.qdiscs.expect("a qdisc")[0];
    assert_eq!((qdisc.dev.as_str(), qdisc.drops), ("an interface without a name", 5));
}

#[test]
fn some_statistics_of_an_interface_are_its_own_and_not_all() {
    let text = "[root@web-1 ~]# ethtool -S eth0 | grep -E 'missed|no_buffer'\n     rx_missed_errors: 17\n     \
        rx_no_buffer_count: 0\n[root@web-1 ~]# sleep 10; ethtool -S eth0 | grep -E 'missed|no_buffer'\n     \
        rx_missed_errors: 19\n     rx_no_buffer_count: 0\n";
    assert_eq!(unread(text), Vec::<String>::new());
    let missed = |look: &Look| {
        let link = link(look, "eth0");
        (link.driver_counters.expect("counters")["rx_missed_errors"], link.driver_counters_cut)
    };
    let snapshot = read(text).snapshot;
    assert_eq!(snapshot.looks.iter().map(missed).collect::<Vec<_>>(), [(17, true), (19, true)]);
    let judged = judge(&snapshot);
    let codes = judged.findings.iter().map(|found| &*found.code);
    assert!(codes.into_iter().any(|code| code == "RING_OVERRUN"), "what is shown grew");
    for check in ["PAUSE_FRAMES", "CLOUD_ALLOWANCE", "LINK_ERRORS"] {
        let missing = judged.unseen.iter().find(|(code, _)| *code == check);
        let missing = missing.map(|(_, missing)| missing.to_string());
        let told = "ethtool (driver counters (only some were pasted))";
        assert_eq!(missing.as_deref(), Some(told), "{check} is not well");
    }

    let nothing = "$ ethtool -S eth0 | grep drop\n$ ethtool -g eth0 | grep RX\nRX: 4096\n";
    assert!(
        read(nothing).snapshot.looks[0].links.is_none(),
        "no statistics, and rings are not counted"
    );
    let whole = link(&last(TICKET), "ens192");
    assert!(whole.driver_counters.is_some() && !whole.driver_counters_cut);
}

#[test]
fn counters_of_interfaces_keep_what_a_tool_adds_up() {
    let by_ip = link(&last(NEW), "eth0");
    let counters = by_ip.counters.expect("ip -s -s shows all, and ifconfig less");
    assert_eq!((counters.tx_packets, counters.rx_bytes), (7, 516));
    assert_eq!(by_ip.carrier_changes, Some(2));
    let old = link(&last(OLD), "eth0");
    let some = old.some_counters.expect("some");
    assert_eq!((some["rx_packets"], some["rx_dropped+rx_missed_errors"]), (9_301_887, 40));
    assert_eq!((some["rx_fifo_errors"], some["tx_bytes"]), (7, 5_123_456_789));
    assert_eq!((old.mtu, old.txqlen, old.up), (Some(1500), Some(1000), true));
    assert_eq!(
        old.addresses,
        [
            ("10.20.0.5".parse().expect("an address"), 24),
            ("fe80::21b:21ff:feaa:1".parse().expect("an address"), 64)
        ]
    );
    let old = link(&last(OLD), "eth1");
    let some = old.some_counters.expect("some");
    assert_eq!((some["rx_over_errors"], some["tx_carrier_errors"]), (1, 4), "by the head above");
    assert_eq!(some.get("rx_missed_errors"), None);
    assert_eq!((old.index, old.master.as_deref(), old.mtu), (3, Some("bond0"), Some(9000)));
}

#[test]
fn qdiscs_have_their_parameters_and_what_only_they_count() {
    let qdiscs = last(NEW).qdiscs.expect("qdiscs");
    let tbf = qdiscs.iter().find(|qdisc| qdisc.kind == "tbf").expect("tbf");
    assert_eq!((tbf.dev.as_str(), tbf.handle, tbf.parent), ("eth0", 0x1_0000, u32::MAX));
    assert_eq!((tbf.rate, tbf.options["burst"].as_str()), (Some(5_000_000), "5Kb"));
    assert_eq!((tbf.bytes, tbf.packets, tbf.uncounted), (486, 5, false));
    let fq = &last(OLD).qdiscs.expect("qdiscs")[0];
    assert_eq!((fq.handle, fq.drops, fq.requeues), (0x8001_0000, 11, 4));
    assert_eq!((fq.backlog, fq.qlen), (12 * 1024, 8));
    assert_eq!((fq.own["throttled"], fq.own["flows_plimit"], fq.own["flows"]), (77, 11, 8));
    assert_eq!((fq.own["inactive_flows"], fq.own["throttled_flows"]), (7, 1));
    let fq_codel = &last(TICKET).qdiscs.expect("qdiscs")[0];
    assert!(fq_codel.uncounted, "without -s nothing is counted");
    assert_eq!((fq_codel.dev.as_str(), fq_codel.options["target"].as_str()), ("ens192", "5.0ms"));
    assert_eq!(fq_codel.options["ecn"], "");
}

#[test]
fn classes_are_not_taken_for_their_qdisc() {
    let text = "qdisc htb 1: dev eth0 root refcnt 3 r2q 10 default 0x10 direct_packets_stat 4 direct_qlen 1000\n \
        Sent 10 bytes 1 pkt (dropped 2, overlimits 0 requeues 0)\n backlog 0b 0p requeues 0\n\
        class htb 1:10 parent 1:1 prio 0 rate 5Mbit ceil 10Mbit burst 1600b cburst 1600b\n \
        Sent 90 bytes 9 pkt (dropped 9, overlimits 0 requeues 0)\n lended: 0 borrowed: 0 giants: 0\n\
        qdisc fq_codel 10: dev eth0 parent 1:10 limit 300p flows 1024\n";
    let qdiscs = last(text).qdiscs.expect("qdiscs");
    assert_eq!((qdiscs[0].packets, qdiscs[0].drops), (1, 2));
    assert_eq!(qdiscs[0].options["direct_qlen"], "1000");
    assert_eq!((qdiscs[1].parent, qdiscs[1].uncounted), (0x1_0010, true));
    assert_eq!(unread(text), Vec::<String>::new());
}

#[test]
fn routes_keep_the_line_that_sets_them() {
    let routes = read(TICKET).snapshot.routes.expect("routes");
    assert_eq!(routes.len(), 4, "those of the host itself are left out");
    assert_eq!(routes[0].metrics["initcwnd"], 10);
    assert_eq!(
        (routes[0].metrics["ssthresh"], routes[0].metric, routes[0].table),
        (10_000, 100, 254)
    );
    assert!(routes[1].line.ends_with("nexthop via 10.0.0.4 dev ens192 weight 1"));
    assert_eq!((routes[2].kind.as_str(), routes[2].table), ("unreachable", 100));
    assert!(routes[3].ipv6);
    assert_eq!(
        routes[3].line,
        "default via fe80::1 dev ens192 proto ra metric 1024 hoplimit 64 pref medium"
    );
    let routes = read(NEW).snapshot.routes.expect("routes");
    assert_eq!(routes[0].metrics["rto_min"], 40_000_000);
    assert_eq!(routes[0].locked, ["mtu", "rto_min"]);
    assert_eq!(routes[0].metrics["mtu"], 1400);
}

#[test]
fn the_rest_of_the_host_is_read() {
    let snapshot = read(TICKET).snapshot;
    assert_eq!(snapshot.kernel.as_deref(), Some("5.10.0-30-amd64"));
    let peers = snapshot.tcp_metrics.expect("peers");
    assert_eq!(
        (peers[0].ssthresh, peers[0].cwnd, peers[0].rtt_ns),
        (Some(361), Some(40), Some(1_000_000))
    );
    let look = snapshot.looks.last().expect("a look");
    assert_eq!(look.uptime_ns, Some(((3 * 24 + 2) * 60 + 11) * 60_000_000_000));
    let sockstat = &look.sockstat.as_ref().expect("ss -s")["TCP"];
    assert_eq!((sockstat["orphan"], sockstat["tw"], sockstat["inuse"]), (7771, 77_237, 37_938));
    let interrupts = look.interrupts.as_deref().expect("interrupts");
    assert_eq!(interrupts.len(), 2, "a clock is no network device");
    assert_eq!(
        (interrupts[0].dev.as_str(), &interrupts[0].counts[..]),
        ("ens192", &[9_000_123, 17][..])
    );
    assert_eq!(read(OLD).snapshot.kernel.as_deref(), Some("2.6.32-754.el6.x86_64"));
    let softnet = last(OLD).softnet.expect("softnet");
    assert_eq!((softnet[0].time_squeeze, softnet[1].dropped, softnet[1].cpu), (2, 5, 1));
    assert_eq!((softnet[1].flow_limit, softnet[1].backlog), (None, None));
}

#[test]
fn what_is_not_understood_is_counted_with_its_line() {
    let notes = read(TICKET).notes;
    let begins =
        |note: &Note| format!("{} {}", note.line, note.text.split(' ').next().unwrap_or(""));
    let cut = TICKET.lines().count();
    let expected = [
        "1 Hi,".to_owned(),
        "34 (and".to_owned(),
        format!("{} What", cut - 2),
        format!("{cut} net.ipv4.tcp_limit_output_bytes"),
    ];
    assert_eq!(notes.first.iter().map(begins).collect::<Vec<_>>(), expected);
    assert_eq!(notes.unknown, 3);
    assert_eq!(notes.first[3].why.as_deref(), Some(CUT));
}

#[test]
fn a_source_that_was_read_less_often_belongs_to_the_last_look() {
    let text = "TcpInSegs 1 0.0\nESTAB 0 0 10.0.0.1:80 10.0.0.2:4000\nTcpInSegs 5 0.0\n";
    let looks = read(text).snapshot.looks;
    assert_eq!(
        (looks.len(), looks[0].sockets.is_some(), looks[1].sockets.is_some()),
        (2, false, true)
    );
}

/// All lines that a snapshot shows, to find them again in that of a longer text.
fn facts(snapshot: &Snapshot) -> Vec<String> {
    let last = snapshot.looks.last().expect("a look");
    let mut facts = Vec::new();
    let settings = snapshot.settings.iter().flat_map(|settings| &settings.values);
    facts.extend(settings.map(|(key, _)| format!("setting {key}")));
    facts.extend(snapshot.routes.iter().flatten().map(|route| format!("route {:?}", route.to)));
    for (group, names) in snapshot.looks.iter().flat_map(|look| look.counters.iter().flatten()) {
        facts.extend(names.keys().map(|name| format!("counter {group} {name}")));
    }
    facts.extend(last.sockets.iter().flatten().map(|s| format!("socket {} {}", s.local, s.remote)));
    facts.extend(last.links.iter().flatten().map(|link| format!("link {}", link.name)));
    facts.extend(last.qdiscs.iter().flatten().map(|q| format!("qdisc {} {}", q.dev, q.kind)));
    facts
}

#[test]
fn a_text_cut_anywhere_keeps_what_was_read_before_the_cut() {
    for text in [TICKET, OLD] {
        let mut before = Vec::new();
        for (at, _) in text.match_indices('\n') {
            let now = facts(&read(&text[..=at]).snapshot);
            let lost: Vec<&String> = before.iter().filter(|fact| !now.contains(fact)).collect();
            assert!(lost.is_empty(), "{lost:?} is lost in front of {:?}", &text[at..]);
            before = now;
        }
    }
}

#[test]
fn a_cut_line_adds_nothing_that_the_whole_one_would_not() {
    let text = "net.ipv4.tcp_rmem = 4096 87380 6291456\n";
    for cut in 0..text.len() {
        let settings = read(&text[..cut]).snapshot.settings;
        let value = settings.and_then(|settings| settings.values.into_values().next());
        // A blank at the end says that the number before it is whole, not that the line is.
        assert!(
            value.is_none() || text[..cut].ends_with(' ') || text[..cut].ends_with('='),
            "{cut}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cut_and_any_flip_is_read_without_a_panic(
        which in 0_usize..6, from in 0_usize..20_000, to in 0_usize..20_000, flip in 0_usize..20_000, with in any::<u8>(),
    ) {
        let text = [NEW, OLD, TICKET, FILES, SENTENCES, NSTAT][which];
        let mut bytes = text.as_bytes().to_vec();
        let len = bytes.len();
        bytes[flip % len] = with;
        let (from, to) = ((from % len).min(to % len), (from % len).max(to % len));
        let pasted = read(&String::from_utf8_lossy(&bytes[from..to]));
        prop_assert!(!pasted.snapshot.looks.is_empty());
        prop_assert!(pasted.notes.first.len() <= KEPT);
    }

    #[test]
    fn any_lines_in_any_order_are_read(order in proptest::collection::vec(0_usize..400, 0..120)) {
        let all: Vec<&str> = [NEW, OLD, TICKET, SENTENCES].iter().flat_map(|text| text.lines()).collect();
        let text = order.iter().map(|at| all[at * 3 % all.len()]).collect::<Vec<_>>().join("\n");
        prop_assert!(!read(&text).snapshot.looks.is_empty());
    }
}

#[test]
fn what_was_pasted_once_beside_counters_pasted_twice_is_of_one_look() {
    let text = "TcpExtListenOverflows 5 0.0\nLISTEN 0 128 0.0.0.0:80 0.0.0.0:*\n\tskmem:(r0,rb1,d3)\n\
        TcpExtListenOverflows 9 0.0\n";
    let snapshot = read(text).snapshot;
    let seen = Seen::new(&snapshot).expect("looks");
    let growth = seen.growth("TcpExt", "ListenOverflows").expect("seen").expect("there");
    assert_eq!((growth.by, growth.since_start), (4, false));
    assert!(seen.before.is_none(), "the listener would seem new");
    assert!(seen.growth_of(3, None).expect("a growth").since_start);
}

#[test]
fn what_nstat_counts_may_be_younger_than_the_host() {
    let told = |text: &str| {
        let snapshot = read(text).snapshot;
        let seen = Seen::new(&snapshot).expect("a look");
        seen.growth("Tcp", "RetransSegs").expect("seen").expect("counted").or_since_nstat
    };
    assert!(told("#kernel\nTcpRetransSegs                  7                  0.0\n"));
    assert!(!told("Tcp:\n    7 segments retransmitted\n"));
    assert!(!told("Tcp: OutSegs RetransSegs\nTcp: 100 7\n"));
}
