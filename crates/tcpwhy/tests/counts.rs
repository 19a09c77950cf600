//! Counts inside one report agree, for every capture that there is.

#[path = "common/counts.rs"]
#[expect(dead_code, reason = "the rest is for streams made up")]
mod counts;
#[path = "common/read.rs"]
#[expect(dead_code, reason = "the other tests use the rest of it")]
mod read;

use std::fs;

use read::{explain_with, testdata};
use tcpwhy::tracker::Config;

#[test]
fn no_report_on_a_capture_contradicts_itself() {
    let mut connections = 0;
    for folder in ["articles", "evidence", "kernel", "links", "middlebox", "truth", "waits"] {
        for entry in fs::read_dir(testdata(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if ![".pcap", ".pcap.gz", ".pcapng.gz", ".tcpdump.txt"]
                .iter()
                .any(|end| name.ends_with(end))
            {
                continue;
            }
            let report = explain_with(&path, Config { detail: true, ..Config::default() });
            connections += report.connections.len();
            let odd: Vec<String> = report.connections.iter().flat_map(counts::odd).collect();
            assert_eq!(odd, [""; 0], "{name}");
        }
    }
    assert!(connections > 150, "{connections}");
}
