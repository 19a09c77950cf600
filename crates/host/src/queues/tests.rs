use super::*;
use crate::paste;
use crate::snapshot::{ByteQueue, Features, Look, Queues as Channels, Ring, Snapshot};

const MBIT: u64 = 1_000_000;

/// An interface of 1500 bytes with rings, and nothing else.
fn nic(rx: u32, tx: u32) -> Link {
    Link {
        name: "eth0".to_owned(),
        mtu: Some(1500),
        txqlen: Some(1000),
        ring: Some(Ring { rx: Some(rx), tx: Some(tx), ..Ring::default() }),
        ..Link::default()
    }
}

fn host(link: Link) -> Snapshot {
    Snapshot {
        looks: vec![Look { links: Some(vec![link]), ..Look::default() }],
        ..Snapshot::default()
    }
}

fn path(snapshot: &Snapshot, rate: Option<u64>) -> Queues {
    queues(&Seen::new(snapshot).expect("a look"), "eth0", rate).expect("an interface")
}

fn stage(snapshot: &Snapshot, way: Way, name: &str, rate: u64) -> Stage {
    let found = path(snapshot, Some(rate)).stages.into_iter();
    let mut found = found.filter(|stage| stage.way == way && stage.name.starts_with(name));
    found.next().unwrap_or_else(|| panic!("no {name}"))
}

/// The first stage of a qdisc as tc prints it, on `eth0` with 1500 bytes and a `txqueuelen` of 1000.
fn qdisc(printed: &str, rate: u64) -> Stage {
    let link = "2: eth0: <UP,LOWER_UP> mtu 1500 qdisc x state UP qlen 1000\n";
    let statistics =
        " Sent 1 bytes 1 pkt (dropped 7, overlimits 0 requeues 3)\n backlog 3000b 2p requeues 3\n";
    let text = format!("{link}qdisc {printed}\n{statistics}");
    let pasted = paste::read(&text);
    assert_eq!(pasted.notes.first, []);
    stage(&pasted.snapshot, Way::Sending, "qdisc", rate)
}

#[test]
fn the_last_of_128_packets_waits_for_127_of_1500_bytes() {
    let mut without = nic(256, 128);
    without.byte_queues = Some(Vec::new());
    let ring = stage(&host(without), Way::Sending, "ring", 5 * MBIT);
    assert_eq!(ring.limit, Some(Amount::Packets(128)));
    assert_eq!(ring.longest_wait_ns, Some(304_800_000));
}

#[test]
fn a_ring_of_256_slots_stands_at_384_kilobytes_and_at_two_frames_with_limits() {
    let mut link = nic(512, 256);
    link.byte_queues = Some(vec![ByteQueue::default()]);
    let ring = stage(&host(link.clone()), Way::Sending, "ring", 100 * MBIT);
    assert!(ring.notes.iter().any(|note| note.contains("384,000 B")), "{:?}", ring.notes);
    assert!(ring.notes.iter().any(|note| note.contains("no byte queue limits")));
    link.byte_queues =
        Some(vec![ByteQueue { limit: 3012, inflight: 1506, ..ByteQueue::default() }]);
    let ring = stage(&host(link.clone()), Way::Sending, "ring", 100 * MBIT);
    assert_eq!((ring.limit, ring.now), (Some(Amount::Bytes(3012)), Some(Amount::Bytes(1506))));
    assert_eq!(ring.longest_wait_ns, Some(240_960));
    assert!(ring.notes.iter().any(|note| note.contains("384,000 B")), "{:?}", ring.notes);
    link.byte_queues = None;
    let ring = stage(&host(link), Way::Sending, "ring", 100 * MBIT);
    assert!(ring.unseen.iter().any(|what| what.starts_with("byte queue limits")));
}

#[test]
fn waits_need_a_rate_and_an_mtu_and_this_is_said() {
    let mut link = nic(256, 256);
    link.byte_queues = Some(Vec::new());
    let ring = |link: Link, rate| {
        let all = path(&host(link), rate).stages;
        all.into_iter().find(|stage| stage.name == "ring").expect("a ring")
    };
    let without = ring(link.clone(), None);
    assert_eq!(
        (without.longest_wait_ns, without.unseen),
        (None, vec!["the rate of the link".to_owned()])
    );
    link.speed = Some(1_000 * MBIT);
    assert_eq!(ring(link.clone(), None).longest_wait_ns, Some(255 * 12_000));
    assert_eq!(path(&host(link.clone()), None).rate_of, RateOf::Link);
    assert_eq!(path(&host(link.clone()), Some(5)).rate_of, RateOf::Given);
    link.mtu = None;
    let without = ring(link.clone(), None);
    assert_eq!((without.longest_wait_ns, without.unseen), (None, vec!["the MTU".to_owned()]));
    link.ring = None;
    let without = ring(link, None);
    assert_eq!(without.limit, None, "a ring that was not seen is not empty");
    assert!(without.unseen.iter().any(|what| what.starts_with("its length")));
}

#[test]
fn each_kind_of_qdisc_has_its_own_limit() {
    let packets = |count| Some(Amount::Packets(count));
    let bytes = |count| Some(Amount::Bytes(count));
    for (printed, limit, wait_ns) in [
        (
            "pfifo_fast 0: dev eth0 root refcnt 2 bands 3 priomap 1 2 2",
            packets(1000),
            Some(999 * 120_000),
        ),
        ("pfifo 1: dev eth0 root refcnt 2 limit 200p", packets(200), Some(199 * 120_000)),
        ("bfifo 1: dev eth0 root refcnt 2 limit 30000b", bytes(30_000), Some(2_400_000)),
        (
            "fq 8001: dev eth0 root limit 10000p flow_limit 100p buckets 1024",
            packets(10_000),
            Some(9_999 * 120_000),
        ),
        (
            "sfq 1: dev eth0 root limit 127p quantum 1514b depth 127",
            packets(127),
            Some(126 * 120_000),
        ),
        (
            "htb 1: dev eth0 root r2q 10 default 0x10 direct_packets_stat 4 direct_qlen 1000",
            packets(1000),
            Some(999 * 120_000),
        ),
        ("noqueue 0: dev eth0 root refcnt 2", None, None),
        ("mq 0: dev eth0 root", None, None),
        ("newfangled 1: dev eth0 root limit 64Kb", bytes(65_536), Some(5_242_880)),
    ] {
        let stage = qdisc(printed, 100 * MBIT);
        assert_eq!((stage.limit, stage.longest_wait_ns), (limit, wait_ns), "{printed}");
        assert_eq!((stage.dropped, stage.now), (Some(7), packets(2)), "{printed}");
        assert_eq!(
            stage.unseen.is_empty(),
            !printed.starts_with("htb"),
            "{printed}: {:?}",
            stage.unseen
        );
        assert!(stage.notes.iter().any(|note| note == "the ring was full 3 times"), "{printed}");
    }
}

#[test]
fn fq_codel_says_what_it_does_long_before_its_limit() {
    let stage = qdisc(
        "fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5.0ms interval \
         100.0ms memory_limit 32Mb ecn",
        10 * MBIT,
    );
    assert_eq!(stage.limit, Some(Amount::Packets(10_240)));
    assert_eq!(stage.longest_wait_ns, Some(10_239 * 1_200_000));
    assert!(stage.notes.iter().any(|note| note.contains("target of 5.0ms")), "{:?}", stage.notes);
    assert!(
        stage.notes.iter().any(|note| note.contains("32.0 MiB of memory")),
        "{:?}",
        stage.notes
    );
}

#[test]
fn one_flow_of_fq_has_less_than_all_of_it() {
    let stage = qdisc("fq 8001: dev eth0 root limit 10000p flow_limit 100p", 100 * MBIT);
    assert!(
        stage.notes.contains(&"one flow holds 100 packets at most: 11.9 ms alone".to_owned()),
        "{:?}",
        stage.notes
    );
    let stage = qdisc("fq 8001: dev eth0 root limit 10000p", 100 * MBIT);
    assert_eq!(stage.unseen, ["its flow_limit"]);
}

#[test]
fn a_shaper_empties_at_its_own_rate_and_so_does_what_hangs_below_it() {
    // 50 ms at 5 Mbit/s are 31,250 bytes, and the bucket's 5 KiB.
    let stage = qdisc("tbf 1: dev eth0 root refcnt 2 rate 5Mbit burst 5Kb lat 50ms", 1_000 * MBIT);
    assert_eq!(
        (stage.limit, stage.longest_wait_ns),
        (Some(Amount::Bytes(36_370)), Some(58_192_000))
    );
    assert!(stage.notes.contains(&"it empties at 5.00 Mbit/s".to_owned()), "{:?}", stage.notes);
    let text = "2: eth0: <UP> mtu 1500 qdisc tbf state UP qlen 1000\n\
        qdisc tbf 1: dev eth0 root refcnt 2 rate 5Mbit burst 5Kb lat 50ms\n\
        qdisc pfifo 10: dev eth0 parent 1:1 limit 128p\n";
    let snapshot = paste::read(text).snapshot;
    let all = path(&snapshot, Some(1_000 * MBIT)).stages;
    let below = all.iter().find(|stage| stage.name == "qdisc pfifo 10:").expect("a child");
    assert_eq!(below.longest_wait_ns, Some(304_800_000));
    assert!(below.unseen.iter().any(|what| what.contains("tc -s qdisc")), "nothing was counted");
    assert_eq!((below.now, below.dropped), (None, None));
}

#[test]
fn queues_of_a_device_that_are_alike_are_one_stage() {
    let one = |minor: u32| {
        format!(
            "qdisc pfifo_fast 0: dev eth0 parent :{minor:x} bands 3 priomap 1 2 2\n \
             Sent 1 bytes 1 pkt (dropped {minor}, overlimits 0 requeues 0)\n backlog 0b 1p requeues 0\n"
        )
    };
    let text = format!(
        "2: eth0: <UP> mtu 1500 qdisc mq state UP qlen 1000\nqdisc mq 0: dev eth0 root\n \
         Sent 1 bytes 1 pkt (dropped 6, overlimits 0 requeues 0)\n backlog 0b 3p requeues 0\n{}{}{}\
         qdisc ingress ffff: dev eth0 parent ffff:fff1 ----------------\n",
        one(1),
        one(2),
        one(3)
    );
    let snapshot = paste::read(&text).snapshot;
    let all = path(&snapshot, Some(100 * MBIT)).stages;
    let qdiscs: Vec<&Stage> = all.iter().filter(|stage| stage.name.starts_with("qdisc")).collect();
    assert_eq!(qdiscs.len(), 2, "mq itself, its three queues, and nothing of ingress: {qdiscs:#?}");
    assert_eq!(qdiscs[1].each, "each of 3 queues");
    assert_eq!((qdiscs[1].dropped, qdiscs[1].now), (Some(6), Some(Amount::Packets(3))));
}

#[test]
fn a_tun_s_queue_is_its_program_s_and_a_veth_has_none() {
    let mut link = nic(0, 0);
    (link.ring, link.kind, link.txqlen) = (None, Some("tun".to_owned()), Some(500));
    let ring = stage(&host(link.clone()), Way::Sending, "ring", 100 * MBIT);
    assert_eq!(
        (ring.limit, ring.parameter.as_deref()),
        (Some(Amount::Packets(500)), Some("txqueuelen"))
    );
    assert_eq!(ring.when_full, "packets are dropped");
    link.kind = Some("veth".to_owned());
    let ring = stage(&host(link), Way::Sending, "ring", 100 * MBIT);
    assert_eq!((ring.limit, ring.longest_wait_ns), (None, None));
    assert!(ring.unseen.is_empty(), "nothing is missing: there is none");
}

#[test]
fn buffers_queues_and_counters_of_the_host_have_their_places() {
    let pasted = include_str!("../../../../testdata/host/pasted/iproute2-6.1.txt");
    let more = "net.ipv4.tcp_wmem = 4096 16384 4194304\nnet.ipv4.tcp_rmem = 4096 131072 6291456\n\
        net.core.netdev_max_backlog = 1000\nnet.ipv4.tcp_limit_output_bytes = 4194304\n\
        00f8ca28 00000000 00000004 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002 00000000 00000000 00000000\n\
        TcpExtTCPRcvQDrop 3 0.0\nTcpExtTCPBacklogDrop 4 0.0\n";
    let mut snapshot = paste::read(&format!("{pasted}{more}")).snapshot;
    let links = snapshot.looks.last_mut().and_then(|look| look.links.as_mut()).expect("links");
    let eth0 = links.iter_mut().find(|link| link.name == "eth0").expect("eth0");
    eth0.queues = Some(Channels { tx: Some(1), ..Channels::default() });
    let buffer = stage(&snapshot, Way::Sending, "send buffer", 1_000 * MBIT);
    assert_eq!(
        buffer.longest_wait_ns,
        Some(4_194_304 * 1_600),
        "it empties no faster than the shaper below"
    );
    assert_eq!(buffer.limit, Some(Amount::Bytes(4_194_304)));
    assert_eq!(buffer.now, Some(Amount::Bytes(0)), "what 10.0.0.1 sends does not leave by eth0");
    let received = stage(&snapshot, Way::Receiving, "receive buffer", 5 * MBIT);
    assert_eq!((received.now, received.dropped), (Some(Amount::Bytes(128_512)), Some(7)));
    let backlog = stage(&snapshot, Way::Receiving, "backlog", 5 * MBIT);
    assert_eq!(
        (backlog.limit, backlog.now),
        (Some(Amount::Packets(1000)), Some(Amount::Packets(2)))
    );
    assert_eq!(backlog.longest_wait_ns, None, "no rate empties it");
    insta::assert_snapshot!(text(&path(&snapshot, None)));
}

#[test]
fn packets_that_are_cut_later_are_told_where_that_is_on() {
    let mut link = nic(256, 256);
    link.gso_max_size = Some(65_536);
    let cuts = || vec!["tx-tcp-segmentation".to_owned()];
    let tells = |link: &Link, way| {
        let ring = stage(&host(link.clone()), way, "ring", MBIT);
        ring.notes.iter().any(|note| note.contains("64.0 KiB"))
    };
    assert!(!tells(&link, Way::Sending), "not seen whether it cuts");
    link.features = Some(Features { on: cuts(), ..Features::default() });
    assert!(tells(&link, Way::Sending));
    assert!(!tells(&link, Way::Receiving), "what arrives is whole");
    link.features = Some(Features { off: cuts(), ..Features::default() });
    assert!(!tells(&link, Way::Sending));
}

#[test]
fn nothing_seen_is_said_stage_by_stage() {
    let bare = Link { name: "eth0".to_owned(), ..Link::default() };
    let shown = text(&path(&host(bare), None));
    insta::assert_snapshot!(shown);
    assert!(!shown.contains(" 0 "), "nothing is taken for 0");
    let none = Snapshot { looks: vec![Look::default()], ..Snapshot::default() };
    let error = queues(&Seen::new(&none).expect("a look"), "eth9", None).expect_err("no interface");
    assert_eq!(error, Missing::part(Source::Links, "eth9"));
}

#[test]
fn no_line_is_wider_than_a_terminal_and_names_command_none() {
    let mut link = nic(256, 256);
    link.name = "e\u{1b}[31mth0".to_owned();
    let snapshot = host(link);
    let seen = Seen::new(&snapshot).expect("a look");
    let queues = queues(&seen, "e\u{1b}[31mth0", Some(MBIT)).expect("an interface");
    let shown = text(&queues);
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    assert!(!shown.contains('\u{1b}'));
    let saved = serde_json::to_string(&queues).expect("plain data");
    assert_eq!(serde_json::from_str::<Queues>(&saved).expect("what was saved"), queues);
}
