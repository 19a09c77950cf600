//! The scenario language as its users meet it: what they write, and what becomes of it.

mod errors;
mod files;
mod random;

use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::scenario::plan::{
    Cross, Egress, HostChange, Loss, Overhead, Plan, Queue, Socket, Step, TokenBucket,
};

const MINIMAL: &str = "[application]\ndownload = \"512KiB\"\n";

fn read(text: &str) -> Scenario {
    with(text, &[])
}

fn with(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::read("x", text, &overrides).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn only(text: &str) -> Plan {
    let mut scenario = read(text);
    assert_eq!(scenario.variants.len(), 1);
    scenario.variants.remove(0)
}

/// What is said about a scenario whose `lines` stand above a download.
fn said(lines: &str) -> String {
    let text = format!("{lines}\n{MINIMAL}");
    Scenario::read("x", &text, &[]).expect_err(lines).to_string()
}

#[test]
fn two_lines_make_a_scenario() {
    let plan = only(MINIMAL);
    assert_eq!((plan.path.down.delay_ns, plan.path.up.delay_ns), (10_000_000, 10_000_000));
    assert_eq!(plan.path.down.rate, 1_000_000_000);
    assert_eq!(plan.flows[0].client[..2], [Step::WriteHead(78), Step::ReadHead]);
    assert_eq!(
        plan.flows[0].server,
        [
            Step::ReadHead,
            Step::WriteHead(200),
            Step::Write { bytes: 524_288, chunk: 65_536, pause_ns: 0 },
            Step::Drain,
            Step::EndWriting,
            Step::ReadToEnd { chunk: 65_536, pause_ns: 0 },
        ]
    );
}

#[test]
fn everything_about_the_hosts_reaches_the_plan() {
    let plan = only(
        r#"
        [client]
        sysctl."net.ipv4.tcp_rmem" = "4096 4096 4096"
        sysctl.net.ipv4.tcp_sack = 0
        tap_delay = "1ms"
        [server]
        route = { initcwnd = 100, congctl = "reno", quickack = true, cwnd = "lock 30" }
        egress = { rate = "8mbit", burst = "3028B", queue = "60kB" }
        offload = true
        second_nic = true
        [server.socket]
        sndbuf = "16KiB"
        max_pacing = "10MB/s"
        [application]
        download = "1MB"
        server_socket.nodelay = true
        "#,
    );
    assert_eq!(plan.client.sysctl["net.ipv4.tcp_rmem"], "4096 4096 4096");
    assert_eq!(plan.client.sysctl["net.ipv4.tcp_sack"], "0");
    assert_eq!(plan.client.stack_to_tap_ns, 1_000_000);
    assert_eq!(plan.server.route["initcwnd"], "100");
    assert_eq!(plan.server.route["quickack"], "1");
    assert_eq!(plan.server.route["cwnd"], "lock 30");
    let bucket = TokenBucket { rate: 8_000_000, burst: 3028, queue: 60_000 };
    assert_eq!(plan.server.egress, Some(Egress::TokenBucket(bucket)));
    assert!(plan.server.offload && !plan.client.offload);
    assert!(plan.server.second_nic && !plan.client.second_nic);
    let socket = Socket {
        sndbuf: Some(16_384),
        max_pacing: Some(10_000_000),
        nodelay: true,
        ..Socket::default()
    };
    assert_eq!(plan.flows[0].server_socket, socket);
    assert_eq!(plan.flows[0].client_socket, Socket::default());
}

#[test]
fn one_way_stands_above_both() {
    let plan = only(
        r#"
        path = { rtt = "7ms", rate = "100mbit", loss = "1%", down.delay = "1ms", up.loss = "none" }
        application.download = "1MB"
        "#,
    );
    assert_eq!((plan.path.down.delay_ns, plan.path.up.delay_ns), (1_000_000, 3_500_000));
    assert_eq!((&plan.path.down.loss, &plan.path.up.loss), (&Loss::Random(10_000), &Loss::None));
}

#[test]
fn every_loss_and_queue_has_its_words() {
    for (text, loss) in [
        ("0.5%", Loss::Random(5000)),
        ("burst 0.2% 25%", Loss::Gilbert { enter: 2000, leave: 250_000, bad: 1_000_000 }),
        ("burst 0.2% 25% 80%", Loss::Gilbert { enter: 2000, leave: 250_000, bad: 800_000 }),
        ("exact 8, 3 7", Loss::Exact(vec![3, 7, 8])),
        ("0%", Loss::None),
    ] {
        let plan = only(&format!("path.down.loss = \"{text}\"\n{MINIMAL}"));
        assert_eq!(plan.path.down.loss, loss, "{text}");
        assert_eq!(plan.path.up.loss, Loss::None);
    }
    for (text, queue) in [
        ("30kB", Queue::Bytes(30_000)),
        ("50 packets", Queue::Packets(50)),
        ("endless", Queue::Endless),
        // 20 Mbit/s times 20 ms is 50,000 B; the taps' delay counts.
        ("1.5 bdp", Queue::Bytes(75_000)),
    ] {
        let plan = only(&format!(
            "client.tap_delay = \"1ms\"\npath = {{ rtt = \"18ms\", rate = \"20mbit\", queue = \"{text}\" }}\n{MINIMAL}"
        ));
        assert_eq!(plan.path.down.queue, queue, "{text}");
    }
}

#[test]
fn devices_disciplines_and_links_have_their_words() {
    let plan = only(
        r#"
        [server]
        egress = "fifo 30kB"
        device = { rate = "5mbit", ring = 64, limit_max = "3000B" }
        [client]
        egress = "pfifo_fast"
        [path]
        overhead = "22B atm"
        mtu = "1400B"
        black_hole = true
        down = { queue = "fq_codel", cross = "5mbit by 200B" }
        [application]
        download = "1MB"
        "#,
    );
    assert_eq!(plan.server.egress, Some(Egress::Fifo(Queue::Bytes(30_000))));
    assert_eq!(plan.client.egress, Some(Egress::Fifo(Queue::Packets(1000))));
    let device = plan.server.device.expect("it was said");
    assert_eq!((device.rate, device.ring, device.bql), (5_000_000, 64, true));
    assert_eq!((device.limit_min, device.limit_max), (0, Some(3000)));
    assert_eq!(plan.client.device, None);
    let (down, up) = (&plan.path.down, &plan.path.up);
    assert_eq!((down.queue, up.queue), (Queue::FqCodel, Queue::Endless));
    assert_eq!(down.overhead, Overhead { bytes: 22, atm: true });
    assert_eq!((down.mtu, up.black_hole), (Some(1400), true));
    assert_eq!((down.cross, up.cross), (Some(Cross { rate: 5_000_000, bytes: 200 }), None));
    // What nobody asked for is not written, so that older programs read it.
    let bare = serde_json::to_string(&only(MINIMAL)).expect("JSON");
    assert!(!["device", "overhead", "mtu", "cross"].iter().any(|word| bare.contains(word)));
    for (lines, word) in [
        ("path.overhead = \"lots\"", "8B atm"),
        ("path.cross = \"fast\"", "5mbit by 200B"),
        ("server.egress = \"fifo 1\"", "fifo 30kB"),
        ("server.egress = \"red\"", "fq_codel"),
        ("server.device = { limit_min = \"9kB\", limit_max = \"8kB\" }", "limit_max"),
        ("path.mtu = \"60B\"", "68B"),
    ] {
        assert!(said(lines).contains(word), "{lines}: {}", said(lines));
    }
}

#[test]
fn changes_start_from_the_path_as_it_is_then() {
    let plan = only(
        r#"
        [path]
        rate = "20mbit"
        queue = "1 bdp"
        [[path.changes]]
        at = "1s"
        rate = "5mbit"
        [[path.changes]]
        at = "2s"
        down.loss = "100%"
        [application]
        download = "1MB"
        "#,
    );
    let [first, second] = plan.path.changes.as_slice() else { panic!("two changes") };
    let (down, up) =
        (first.down.as_ref().expect("it changes"), first.up.as_ref().expect("it changes"));
    assert_eq!((first.at_ns, down.rate, up.rate), (1_000_000_000, 5_000_000, 5_000_000));
    assert_eq!(down.queue, Queue::Bytes(50_000), "a router's memory does not shrink");
    let down = second.down.as_ref().expect("it changes");
    assert_eq!((down.rate, &down.loss), (5_000_000, &Loss::Random(1_000_000)));
    assert_eq!(second.up, None, "the other way goes on");
}

#[test]
fn a_host_changes_its_settings_and_forgets_its_peers() {
    let plan = only(
        r#"
        [[server.changes]]
        at = "1s"
        sysctl.net.ipv4.tcp_sack = 0
        [[server.changes]]
        at = "1s"
        metrics = "flush"
        [application]
        download = "1MB"
        "#,
    );
    let settings = [("net.ipv4.tcp_sack".to_owned(), "0".to_owned())];
    let change = HostChange { at_ns: 1_000_000_000, ..HostChange::default() };
    assert_eq!(
        plan.server.changes,
        [
            HostChange { sysctl: settings.into(), ..change.clone() },
            HostChange { flush_metrics: true, ..change },
        ]
    );
    assert_eq!(plan.client.changes, []);
}

#[test]
fn a_warm_connection_repeats_and_a_stalled_reader_stops_once() {
    let plan = only(
        r#"
        [application]
        download = "100kB"
        times = 3
        idle = "2s"
        think = "50ms"
        stall = "3s"
        stall_after = "40kB"
        "#,
    );
    let flow = &plan.flows[0];
    let all = |bytes| Step::Read { bytes, chunk: 65_536, pause_ns: 0 };
    assert_eq!(flow.client[2..5], [all(40_000), Step::Sleep(3_000_000_000), all(60_000)]);
    let Step::Repeat { times: 2, steps } = &flow.client[5] else { panic!("{:?}", flow.client[5]) };
    assert_eq!(
        *steps,
        [Step::Sleep(2_000_000_000), Step::WriteHead(78), Step::ReadHead, all(100_000)]
    );
    assert_eq!(flow.server[1], Step::Sleep(50_000_000));
}

#[test]
fn free_steps_say_the_same_in_other_words() {
    let plan = only(
        r#"
        [application]
        client = ["write head 78", "read head", "read 100 by 10 pause 1ms", "read to end"]
        server = [
          "read head", "sleep 20ms", "write head 200B",
          { repeat = 5, steps = ["write 8KiB by 1400 pause 10ms", "drain"] },
          "end writing",
        ]
        "#,
    );
    let flow = &plan.flows[0];
    assert_eq!(flow.client[2], Step::Read { bytes: 100, chunk: 10, pause_ns: 1_000_000 });
    let write = Step::Write { bytes: 8192, chunk: 1400, pause_ns: 10_000_000 };
    assert_eq!(flow.server[3], Step::Repeat { times: 5, steps: vec![write, Step::Drain] });
}

#[test]
fn a_variant_changes_what_it_says_and_no_more() {
    let scenario = read(
        r#"
        path.rtt = "6ms"
        [application]
        download = "512KiB"
        [variants."z first"]
        [variants."RTT 2.5 ms"]
        path.rtt = "2.5ms"
        [variants."a.post"]
        application.post = "1MB"
        "#,
    );
    let names: Vec<_> = scenario.variants.iter().map(|plan| plan.variant.as_str()).collect();
    assert_eq!(names, ["z first", "RTT 2.5 ms", "a.post"], "as written");
    assert_eq!(scenario.variants[1].path.down.delay_ns, 1_250_000);
    assert_eq!(scenario.variants[1].flows, scenario.variants[0].flows);
    assert!(matches!(
        scenario.variants[2].flows[0].client[1],
        Step::Write { bytes: 1_000_000, .. }
    ));
}

#[test]
fn an_override_wins_over_file_and_variants() {
    let text = format!("path.down.loss = \"1%\"\n{MINIMAL}[variants.a]\npath.rtt = \"6ms\"\n");
    let scenario =
        with(&text, &["path.rtt=20ms", "path.loss=0", "server.route.initcwnd=30", "repeats=7"]);
    let plan = &scenario.variants[0];
    assert_eq!(plan.path.down.delay_ns, 10_000_000);
    assert_eq!(plan.path.down.loss, Loss::None, "what is said for both ways holds for each");
    assert_eq!(plan.server.route["initcwnd"], "30");
    assert_eq!(scenario.repeats, 7);
}

#[test]
fn repeats_meet_the_same_chances_in_all_variants() {
    let scenario = read(&format!("seed = 5\n{MINIMAL}[variants.a]\n[variants.b]\n"));
    let plans: Vec<_> = scenario.plans(2).collect();
    let order: Vec<_> = plans.iter().map(|p| (p.repeat, p.variant.as_str())).collect();
    assert_eq!(order, [(0, "a"), (0, "b"), (1, "a"), (1, "b")]);
    assert_eq!((plans[0].seed, plans[1].seed), (5, 5));
    assert_eq!(plans[2].seed, plans[3].seed);
    assert_ne!(plans[0].seed, plans[2].seed);
}
