//! May an anonymised report be shared?

mod common;

use common::report::full;
use tcpwhy_cli::anonymize::anonymized;

#[test]
fn no_address_of_the_report_is_left() {
    let mut report = full();
    report.connections[0].directions[1].as_mut().expect("data").limits[0].evidence.filter =
        "ip.addr==192.168.247.130 && ipv6.addr==2001:db8::129".to_owned();
    let text = serde_json::to_string(&anonymized(&report)).expect("serialises");
    assert!(!text.contains("192.168.247.130"), "{text}");
    assert!(!text.contains("2001:db8::129"), "{text}");
    assert!(!text.contains("download.pcap"), "a file's name may hold a host's");
    assert!(text.contains("ip.addr==198.18.0.1 && ipv6.addr==2001:db8::1\""), "{text}");
}

#[test]
fn nothing_else_changes() {
    let before = full();
    let mut after = anonymized(&before);
    after.captures[0].source.clone_from(&before.captures[0].source);
    after.connections[0].client = before.connections[0].client;
    after.connections[0].server = before.connections[0].server;
    after.connections[0].vantage_evidence.clone_from(&before.connections[0].vantage_evidence);
    assert_eq!(after, before);
}
