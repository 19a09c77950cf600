//! The scenario language as its users meet it: what they write, and what becomes of it.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tcpwhy_model::scenario::plan::{
    Cross, Egress, Loss, Overhead, Plan, Queue, Socket, Step, TokenBucket,
};
use tcpwhy_model::scenario::{Scenario, manual};

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

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
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

#[test]
fn errors_name_line_column_and_what_was_meant() {
    for (lines, error) in [
        ("path.rtt = 6", "line 1, column 12: `path.rtt`: 6 has no unit; write it as \"6ms\""),
        (
            "[path]\nqeue = \"1kB\"",
            "line 2, column 1: `path` has no key `qeue`; did you mean `queue`?",
        ),
        (
            "rtt = \"6ms\"",
            "line 1, column 1: a scenario has no key `rtt`; known are name, about, ipv6, repeats, seed, limit, tail, client, server, path, application, applications, records, variants",
        ),
        (
            "path.rtt = \"2min\"",
            "line 1, column 12: `path.rtt`: 2min is out of range; it goes from 0 to 1min",
        ),
        (
            "path = { rate = \"1mbit\", bucket = { rate = \"1mbit\", burst = \"3kB\" } }",
            "line 1, column 26: a link has a `rate` or a `bucket`, not both: the bucket has its own rate",
        ),
        (
            "server.route.initcwd = 10",
            "line 1, column 14: unknown word of a route `initcwd`; did you mean `initcwnd`?",
        ),
        (
            "client.sysctl.\"kernel.panic\" = 1",
            "line 1, column 15: `client.sysctl.kernel.panic` cannot be set: only names below `net.` belong to one host alone; leave it out",
        ),
        (
            "client.sysctl.net.ipv4.tcp_mem = 1",
            "line 1, column 24: `client.sysctl.net.ipv4.tcp_mem` holds for the whole machine, which no experiment may touch; leave it out",
        ),
        (
            "server.egress = \"fqcodel\"",
            "line 1, column 17: unknown queueing discipline `fqcodel`; did you mean `fq_codel`?",
        ),
        (
            "path.loss = \"often\"",
            "line 1, column 13: `path.loss`: `often` is no share; write it as \"1%\", \"burst 0.2% 25%\", \"exact 3 7 8\" or \"none\"",
        ),
        ("repeats = 0", "line 1, column 11: `repeats`: 0 is out of range; it goes from 1 to 10000"),
        (
            "repeats = \"three\"",
            "line 1, column 11: `repeats`: `three` is not a whole number; write one from 1 to 10000",
        ),
        (
            "path.loss = \"120%\"",
            "line 1, column 13: `path.loss`: `120%` is more than all; write it as \"1%\", \"burst 0.2% 25%\", \"exact 3 7 8\" or \"none\"",
        ),
        (
            "[path]\nrtt = \"1ms\"\nrtt = \"2ms\"",
            "line 3, column 1: `rtt` is written twice; keep one of them",
        ),
        ("ipv6 = \"yes\"", "line 1, column 8: `ipv6`: write true or false, without quotes"),
    ] {
        assert_eq!(said(lines), error, "{lines}");
    }
    let broken = said("path = [\"a\"");
    assert!(broken.starts_with("line 2, column 1: "), "{broken}");
}

#[test]
fn a_variant_that_changes_nothing_was_meant_otherwise() {
    let said = |variant: &str, sets: &[&str]| {
        let text =
            format!("path.rtt = \"40ms\"\n{MINIMAL}[variants.same]\n{variant}\n[variants.b]\n");
        let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
        Scenario::read("x", &text, &sets).map(drop).map_err(|error| error.to_string())
    };
    let error = said("path.rtt = \"0.04s\"", &[]).expect_err("nothing changes");
    assert!(error.starts_with("line 4, column 11: the variant `same` changes nothing"), "{error}");
    assert_eq!(said("", &[]), Ok(()), "without keys it is the scenario as it is");
    assert_eq!(said("path.rtt = \"41ms\"", &[]), Ok(()));
    assert_eq!(said("path.rtt = \"41ms\"", &["path.rtt=7ms"]), Ok(()), "the user wants it so");
}

#[test]
fn what_an_application_ignores_is_an_error() {
    let said = |keys: &str| {
        let text = format!("[application]\n{keys}\n");
        Scenario::read("x", &text, &[]).expect_err(keys).to_string()
    };
    assert!(said("send = \"1MB\"\nrequest = \"78B\"").contains("means nothing to send"));
    assert!(said("download = \"1MB\"\npost = \"1MB\"").contains("does more than one thing"));
    assert!(said("download = \"1MB\"\nidle = \"1s\"").contains("needs `times`"));
    assert!(said("client = [\"drain\"]").contains("both ends"));
    assert!(
        said("client = [\"jump\"]\nserver = []")
            .starts_with("line 2, column 11: `jump` is no step")
    );
    assert!(said("").contains("does nothing"));
}

#[test]
fn an_override_that_is_wrong_is_quoted() {
    let error =
        |text: &str| Scenario::read("x", MINIMAL, &[text.to_owned()]).expect_err(text).to_string();
    assert_eq!(
        error("path.rat=5"),
        "in `--set path.rat=5`: `path` has no key `rat`; did you mean `rate`?"
    );
    assert_eq!(
        error("path.rtt"),
        "in `--set path.rtt`: there is no `=`; write it as `path.rtt=20ms`"
    );
}

#[test]
fn the_shipped_scenarios_can_be_read() {
    let mut names = Vec::new();
    for entry in fs::read_dir(root("scenarios")).expect("there are scenarios") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("readable");
        let scenario = Scenario::read(&name, &text, &[])
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!scenario.about.is_empty(), "{name} says what it shows");
        names.push(name);
    }
    names.sort();
    assert_eq!(
        names,
        [
            "idle-restart",
            "initcwnd",
            "random-loss",
            "slow-start",
            "sndbuf",
            "textbook",
            "zero-window"
        ]
    );
}

#[test]
fn the_manual_has_every_key() {
    let text = fs::read_to_string(root("docs/scenarios.md")).expect("the manual");
    assert!(
        text.contains(manual().trim_end()),
        "docs/scenarios.md lacks a key, or has an old one; its tables should be:\n{}",
        manual()
    );
}

#[test]
fn what_the_manual_shows_can_be_read() {
    let text = fs::read_to_string(root("docs/scenarios.md")).expect("the manual");
    let blocks: Vec<_> = text.split("```toml\n").skip(1).collect();
    assert!(blocks.len() >= 3, "it has examples");
    for block in blocks {
        let toml = block.split("```").next().expect("an end");
        Scenario::read("x", toml, &[]).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    }
}

/// Pieces that keep random text near the language.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "[path]",
        "[application]",
        "[variants.a]",
        "[[path.changes]]",
        "at = \"1s\"",
        "rtt = \"6ms\"",
        "rate = \"1mbit\"",
        "queue = \"1 bdp\"",
        "loss = \"exact 1 2\"",
        "download = \"1MB\"",
        "client = [",
        "{ repeat = 3, steps = [\"drain\"] }",
        "]",
        "\n",
        "\n",
        "=",
        "\"",
        "path.down",
        ".",
        "server.egress = \"fq\"",
        "-1",
        "99999999999999999999",
        "1e9",
        "1979-05-27",
        "{",
        "}",
        "#",
        "\u{e9}",
    ];
    prop_oneof![
        4 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,8}",
    ]
}

proptest! {
    #[test]
    fn no_text_panics(text: String) {
        let _ = Scenario::read("x", &text, &[]);
    }

    #[test]
    fn no_text_near_the_language_panics(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        let _ = Scenario::read("x", &text, &[]);
        let _ = Scenario::read("x", MINIMAL, &[text]);
    }

    #[test]
    fn numbers_reach_the_plan_exactly(
        rtt in 0_u64..60_000_000_000,
        rate in 8_u64..1_000_000_000_000,
        queue in 1514_u64..4_000_000_000,
        loss in 1_u32..1_000_000,
        bytes in 1_u64..1_000_000_000_000,
    ) {
        let plan = only(&format!(
            "[path]\nrtt = \"{rtt}ns\"\nrate = \"{rate}bit\"\nqueue = \"{queue}B\"\nloss = \"{loss}ppm\"\n[application]\nsend = {bytes}\n"
        ));
        let way = &plan.path.up;
        prop_assert_eq!(plan.path.down.delay_ns + way.delay_ns, rtt);
        prop_assert_eq!((way.rate, way.queue), (rate, Queue::Bytes(queue)));
        prop_assert_eq!(&way.loss, &Loss::Random(loss));
        let sent = matches!(plan.flows[0].server[0], Step::Write { bytes: b, .. } if b == bytes);
        prop_assert!(sent);
        let json = serde_json::to_string(&plan).expect("a plan is data");
        prop_assert_eq!(serde_json::from_str::<Plan>(&json).expect("reads back"), plan);
    }
}
