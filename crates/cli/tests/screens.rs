//! First screens of real situations, as people see them at 80 columns: the cause and what to do, on 24 lines.
//!
//! The pages stand in `tests/screens`. `SCREENS=write` writes them anew; read each whole before it is committed.

mod common;

use std::fs;

use common::{finish, in_repository, tcpwhy};

/// What is known of each situation, and a word that the screen must not lack.
const SITUATIONS: [(&str, &str, &[&str]); 12] = [
    ("slow-start", "articles/download-512k-rtt7ms.tcpdump.txt", &["Slow start", "initcwnd 44"]),
    ("random-loss", "cases/two-percent-loss-at-40-ms/capture.pcap.gz", &["[LOSS_RANDOM]"]),
    ("think-time", "cases/server-thinks-300-ms/capture.pcap.gz", &["The server thinks 301 ms"]),
    ("refused", "cases/port-closed/capture.pcap", &["refused", "ss -ltnp"]),
    ("full-link", "cases/big-queue-2-point-9-seconds/capture.pcap.gz", &["The link is full"]),
    ("dead-hosts", "cases/twelve-connections-no-data/capture.pcap", &["6 of 12", "9 SYNs"]),
    ("slow-reader", "cases/reader-4k-5ms/capture.pcap.gz", &["reads too slowly", "at once"]),
    ("answer-stops", "cases/third-answer-stops/capture.pcap", &["stopped after 5,042 B"]),
    ("nagle", "cases/two-small-writes/capture.pcap", &["small writes", "TCP_NODELAY"]),
    ("zero-window", "cases/reader-stalls-two-seconds/capture.pcap.gz", &["2.15 s"]),
    ("small-window", "cases/small-buffer-stopped/capture.pcap.gz", &["too small", "larger"]),
    ("no-dns", "cases/name-server-silent-recorded/recording.pcapng", &["answered none of 4"]),
];

#[test]
fn each_situation_is_told_on_one_screen() {
    let writes = std::env::var("SCREENS").is_ok_and(|value| value == "write");
    let mut wrong = Vec::new();
    for (name, capture, words) in SITUATIONS {
        let now = screen(capture);
        let page = in_repository("crates/cli/tests/screens").join(format!("{name}.txt"));
        if writes {
            fs::write(&page, &now).expect("a page can be written");
        }
        let lines = now.lines().count();
        let widest = now.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        if lines > 24 || widest > 80 {
            wrong.push(format!("{name} takes {lines} lines and {widest} columns"));
        }
        let flat = now.split_whitespace().collect::<Vec<_>>().join(" ");
        let lacking = words.iter().filter(|word| !flat.contains(**word));
        wrong.extend(lacking.map(|word| format!("{name} lacks {word:?}")));
        if fs::read_to_string(&page).unwrap_or_default() != now {
            wrong.push(format!("{name} differs (SCREENS=write writes it anew):\n{now}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn screen(capture: &str) -> String {
    let mut command = tcpwhy();
    command.arg(capture).args(["--width", "80", "--color", "never"]);
    finish(command.current_dir(in_repository("testdata")).output().expect("it starts")).stdout
}
