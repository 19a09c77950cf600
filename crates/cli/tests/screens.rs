//! First screens of real situations, as people see them at 80 columns: the cause and what to do, on 24 lines.
//!
//! The pages stand in `tests/screens`. `SCREENS=write` writes them anew; read each whole before it is committed.

mod common;

use std::fs;

use common::{finish, in_repository, tcpwhy};

/// What is known of each situation, and a word that the screen must not lack.
const SITUATIONS: [(&str, &str, &[&str]); 16] = [
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
    (
        "post",
        "cases/half-a-megabyte-posted/capture.pcap.gz",
        &["The client sent 10, 20, 40", "initcwnd 45"],
    ),
    ("tls", "cases/tls-1-3-slow-server/capture.pcap", &["TLS handshake", "reuse the connection"]),
    (
        "idle-program",
        "kernel/app-paced-100k-100ms.server.pcap.gz",
        &["was silent", "See what that program"],
    ),
    (
        "two-connections",
        "cases/two-downloads-one-link/capture.pcap.gz",
        &["full", "twice as fast (1, 0)"],
    ),
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

/// What `ss` printed, and words that the head of the answer must not lack: a pager shows that first.
const PASTES: [(&str, &str, &[&str]); 3] = [
    ("pasted-buffer", "cases/database-socket-looked-at-once/ss.txt", &["send buffer", "SO_SNDBUF"]),
    ("pasted-window", "cases/media-server-stops/ss.txt", &["zero window", "instead of reading"]),
    (
        "pasted-timeout",
        "cases/storage-server-socket/ss.txt",
        &["retransmission timeout", "still answers"],
    ),
];

#[test]
fn a_paste_is_told_in_the_first_lines() {
    let writes = std::env::var("SCREENS").is_ok_and(|value| value == "write");
    let mut wrong = Vec::new();
    for (name, paste, words) in PASTES {
        let now: String =
            screen(paste).lines().take(23).map(|line| line.to_owned() + "\n").collect();
        let page = in_repository("crates/cli/tests/screens").join(format!("{name}.txt"));
        if writes {
            fs::write(&page, &now).expect("a page can be written");
        }
        // Above all that was checked besides.
        let head = now.lines().take_while(|line| !line.starts_with("as pasted"));
        let flat = head.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
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
