//! The pictures in README and docs are those that the program draws of these captures now. `PICTURES=write` writes them.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// A picture, the graph that it is, and the capture.
const PICTURES: [(&str, &str, &str); 7] = [
    ("slow-start", "sequence", "articles/download-512k-rtt7ms.tcpdump.txt"),
    ("losses", "sequence", "cases/two-percent-loss-at-40-ms/capture.pcap.gz"),
    ("full-link", "rtt", "kernel/grid-2mbit-rtt50-q1.server.pcap.gz"),
    ("full-window", "sequence", "kernel/rwnd-cap-64k-rtt20.server.pcap.gz"),
    ("standstill", "rtt", "middlebox/data-path-stands-still.server.pcap.gz"),
    ("small-window", "flight", "windows/small-buffer.server.pcap.gz"),
    ("slow-reader", "flight", "cases/reader-12-kib-each-15-ms-ipv6/capture.pcapng.gz"),
];

#[test]
fn pictures_are_drawn_as_now() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let work = tempfile::tempdir().expect("a folder");
    for (name, graph, capture) in PICTURES {
        let folder = work.path().join(name);
        let run = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .arg(root.join("testdata").join(capture))
            .arg("--svg")
            .arg(&folder)
            .output()
            .expect("it runs");
        assert!(run.status.success(), "{name}");
        let drawn =
            fs::read_to_string(folder.join(format!("0-server-{graph}.svg"))).expect("drawn");
        let there = root.join("docs/pictures").join(format!("{name}.svg"));
        if env::var_os("PICTURES").is_some_and(|value| value == "write") {
            fs::write(&there, &drawn).expect("written");
        }
        let known = fs::read_to_string(&there).unwrap_or_default();
        assert!(
            known == drawn,
            "docs/pictures/{name}.svg is not what is drawn now; PICTURES=write writes it"
        );
    }
}
