//! A captured connection becomes a script, and the script is about that connection.

mod common;

use common::{in_repository, run};
use tcpwhy_drill::{Setup, Verdict};
use tcpwhy_model::profile::Version;

/// The script of a capture in `testdata`.
fn script(capture: &str, more: &[&str]) -> String {
    let file = in_repository(&format!("testdata/{capture}"));
    let mut arguments = vec!["repro", file.to_str().expect("a name")];
    arguments.extend(more);
    let told = run(&arguments);
    assert_eq!((told.status, told.stderr.as_str()), (Some(0), ""), "{capture}");
    told.stdout
}

/// What the model of the kernel that was captured makes of a script.
fn verdict(script: &str) -> Verdict {
    let setup = Setup { version: Version::new(6, 1), hz: 250, ..Setup::default() };
    tcpwhy_drill::run(script, &setup)
}

/// Captures of real kernels (6.1, testdata/kernel/README.md) whose packets tell all of what the
/// application wrote: it wrote rarely, or was held back at each write.
const TOLD_WHOLLY: [&str; 8] = [
    "app-paced-100k-100ms",
    "keepalive-think500",
    "lag-sndbuf",
    "loss-tail-tlp",
    "reqresp-think50",
    "rwnd-cap-64k-rtt100",
    "rwnd-cap-rmem4096",
    "sndbuf-wmem4096",
];

#[test]
fn the_model_sends_what_the_captured_kernels_sent() {
    for name in TOLD_WHOLLY {
        let script = script(&format!("kernel/{name}.server.pcap.gz"), &[]);
        assert_eq!(verdict(&script), Verdict::Pass, "{name}");
    }
}

#[test]
fn a_packet_that_was_not_sent_is_missed() {
    let script = script("kernel/loss-tail-tlp.server.pcap.gz", &[]);
    let last_sent =
        script.lines().rev().find(|line| line.contains(" > ")).expect("something was sent");
    let other = script.replace(last_sent, &last_sent.replace(" > ", " > R"));
    assert!(matches!(verdict(&other), Verdict::Fail { .. } | Verdict::Broken(_)));
    let early = script.replacen("bind(3", "listen(3, 1) = 0\n+0 bind(3", 1);
    assert_eq!(verdict(&early), Verdict::Pass, "what does not matter changes nothing");
}

#[test]
fn either_host_can_be_the_one_under_test() {
    let of_server = script("kernel/reqresp-think50.server.pcap.gz", &[]);
    assert!(
        of_server.contains("listen(3, 1) = 0") && of_server.contains("accept(3, ..., ...) = 4")
    );
    let of_client = script("kernel/reqresp-think50.client.pcap.gz", &["--of", "client"]);
    assert!(of_client.contains("connect(3, ..., ...) = -1 EINPROGRESS"), "{of_client}");
    assert!(of_client.contains(" > S 0:0(0) win 64240 <mss 1460,sackOK,TS val "), "{of_client}");
}

#[test]
fn what_makes_no_script_is_told() {
    let midway = in_repository("testdata/truth/midway.pcap.gz");
    let told = run(&["repro", midway.to_str().expect("a name")]);
    assert_eq!((told.status, told.stdout.as_str()), (Some(3), ""));
    assert!(told.stderr.contains("lacks its SYN or SYN-ACK"), "{}", told.stderr);
    let told = run(&["repro", "-"]);
    assert_eq!(told.status, Some(2));
    assert!(told.stderr.contains("read twice"), "{}", told.stderr);
    let told = run(&["repro", "/no/such/file"]);
    assert_eq!(told.status, Some(3));
    assert!(told.stderr.contains("there is no such file"), "{}", told.stderr);
}
