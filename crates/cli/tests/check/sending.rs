//! What holds a sender: its buffer, its settings, its program, its peer.

use std::os::fd::AsRawFd as _;
use std::process;
use std::thread;
use std::time::Duration;

use crate::space::{
    A_SECOND, APART, PIECE, ROUND_TRIP, all, behind, checked, connection, ends, found, nothing_of,
    reads, says, script, set, setting, write_scripts, writes,
};

#[test]
fn a_send_buffer_that_a_program_locked_is_told_and_a_large_one_is_not() {
    behind(ROUND_TRIP, all, |_, far, _| {
        let [here, there] = connection(far, |socket| socket.set_send_buffer_size(16_384));
        let busy = (writes(&here, PIECE, APART), reads(&there, PIECE, Duration::ZERO));
        found("SEND_BUFFER_LOCKED", &ends(&here), &A_SECOND);
        let asked = format!("{}:{}", process::id(), here.as_raw_fd());
        let told = found("SEND_BUFFER_LOCKED", &ends(&here), &["--for", "1s", "--socket", &asked]);
        assert_eq!(told["confidence"], "high", "{told:#}");
        drop((busy, here, there));

        let [here, there] = connection(far, |socket| socket.set_send_buffer_size(4 << 20));
        let _busy = (writes(&here, PIECE, APART), reads(&there, PIECE, Duration::ZERO));
        thread::sleep(Duration::from_secs(1));
        let large = checked(&A_SECOND);
        assert!(!large.contains_key("SEND_BUFFER_LOCKED"), "{large:#?}");
    });
}

#[test]
fn a_program_that_writes_little_is_not_held_by_its_send_buffer() {
    behind(ROUND_TRIP, all, |_, far, _| {
        let locked = connection(far, |socket| socket.set_send_buffer_size(65_536));
        let tuned = connection(far, |_| Ok(()));
        let _busy: Vec<_> = [&locked, &tuned]
            .iter()
            .map(|[here, there]| {
                (writes(here, 1 << 14, ROUND_TRIP), reads(there, PIECE, Duration::ZERO))
            })
            .collect();
        thread::sleep(Duration::from_secs(1));
        for _ in 0..5 {
            nothing_of(&checked(&A_SECOND), &["SEND_BUFFER_LOCKED", "SEND_BUFFER_CEILING"]);
        }
    });
}

#[test]
fn a_small_ceiling_of_send_buffers_is_told_cured_and_brought_back() {
    const KEY: &str = "net.ipv4.tcp_wmem";
    const SMALL: &str = "4096 16384 32768";
    behind(ROUND_TRIP, all, |folder, far, _| {
        set(KEY, SMALL);
        let [here, there] = connection(far, |_| Ok(()));
        let _busy = (writes(&here, PIECE, APART), reads(&there, PIECE, Duration::ZERO));
        let told = found("SEND_BUFFER_CEILING", &ends(&here), &A_SECOND);
        assert!(says(&told, SMALL), "{told:#}");
        write_scripts(folder, &A_SECOND);
        script(folder, "fix.sh");
        assert_ne!(setting(KEY), SMALL);
        thread::sleep(Duration::from_secs(1));
        nothing_of(
            &checked(&A_SECOND),
            &["SEND_BUFFER_CEILING", "SEND_BUFFER_LOCKED", "BUFFER_SIZES"],
        );
        script(folder, "rollback.sh");
        assert_eq!(setting(KEY), SMALL);
    });
}

#[test]
fn a_peer_that_reads_slowly_is_the_receivers_and_no_buffer_of_ours() {
    behind(ROUND_TRIP, all, |_, far, _| {
        let [here, there] = connection(far, |_| Ok(()));
        let _busy = (writes(&here, PIECE, APART), reads(&there, 1 << 14, ROUND_TRIP));
        found("RECEIVER_LIMITED", &ends(&here), &["--for", "3s"]);
        nothing_of(&checked(&A_SECOND), &["SEND_BUFFER_CEILING", "SEND_BUFFER_LOCKED"]);
    });
}
