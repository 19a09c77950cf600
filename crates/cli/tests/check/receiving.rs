//! What holds a receiver: its program, its buffer, its settings.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process;
use std::thread;
use std::time::Duration;

use crate::common::path::apart;
use crate::space::{
    A_SECOND, APART, PIECE, ROUND_TRIP, all, behind, checked, connection, ends, found, nothing_of,
    reads, says, script, set, setting, write_scripts, writes,
};

#[test]
fn a_program_that_does_not_read_is_told_and_one_that_does_is_not() {
    apart(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let mut writer = TcpStream::connect(to).expect("a connection");
        let (reader, _) = listener.accept().expect("a connection");
        assert!(!checked(&A_SECOND).contains_key("RECEIVE_QUEUE_FULL"));
        writer.set_nonblocking(true).expect("it takes it");
        let piece = vec![0; 1 << 16];
        // Until both buffers are full, and stay so while the window is probed.
        for _ in 0..50 {
            while writer.write(&piece).is_ok() {}
            thread::sleep(Duration::from_millis(10));
        }
        let found = checked(&A_SECOND);
        assert!(found.contains_key("RECEIVE_QUEUE_FULL"), "{:?}", found.keys());
        drop(reader);
    });
}

#[test]
fn a_receive_buffer_that_a_program_locked_is_told_and_a_large_one_is_not() {
    behind(ROUND_TRIP, all, |_, far, _| {
        let [here, there] = connection(far, |socket| socket.set_recv_buffer_size(30_000));
        let busy = (writes(&there, PIECE, APART), reads(&here, PIECE, Duration::ZERO));
        found("RECEIVE_BUFFER_LOCKED", &ends(&here), &A_SECOND);
        let asked = format!("{}:{}", process::id(), here.as_raw_fd());
        let told =
            found("RECEIVE_BUFFER_LOCKED", &ends(&here), &["--for", "1s", "--socket", &asked]);
        assert_eq!(told["confidence"], "high", "{told:#}");
        assert!(!checked(&A_SECOND).contains_key("RECEIVE_QUEUE_FULL"), "it is read");
        drop((busy, here, there));

        for bytes in [None, Some(4 << 20)] {
            let [here, there] = connection(far, |socket| {
                bytes.map_or(Ok(()), |bytes| socket.set_recv_buffer_size(bytes))
            });
            let _busy = (writes(&there, PIECE, APART), reads(&here, PIECE, Duration::ZERO));
            thread::sleep(Duration::from_secs(1));
            nothing_of(&checked(&A_SECOND), &["RECEIVE_BUFFER_LOCKED", "RECEIVE_BUFFER_CEILING"]);
        }
    });
}

#[test]
fn a_small_ceiling_of_receive_buffers_is_told_cured_and_brought_back() {
    const KEY: &str = "net.ipv4.tcp_rmem";
    const SMALL: &str = "4096 32768 65536";
    behind(ROUND_TRIP, all, |folder, far, _| {
        set(KEY, SMALL);
        let transfer = || {
            let [here, there] = connection(far, |_| Ok(()));
            (writes(&there, PIECE, APART), reads(&here, PIECE, Duration::ZERO), here)
        };
        let open = transfer();
        let told = found("RECEIVE_BUFFER_CEILING", &ends(&open.2), &A_SECOND);
        assert!(says(&told, SMALL), "{told:#}");
        write_scripts(folder, &A_SECOND);
        script(folder, "fix.sh");
        assert_ne!(setting(KEY), SMALL);
        drop(open);
        let _new = transfer();
        thread::sleep(Duration::from_secs(1));
        nothing_of(
            &checked(&A_SECOND),
            &["RECEIVE_BUFFER_CEILING", "RECEIVE_BUFFER_LOCKED", "BUFFER_SIZES"],
        );
        script(folder, "rollback.sh");
        assert_eq!(setting(KEY), SMALL);
    });
}

#[test]
fn a_slow_reader_is_told_and_not_its_locked_buffer() {
    behind(ROUND_TRIP, all, |_, far, _| {
        let [here, there] = connection(far, |socket| socket.set_recv_buffer_size(8192));
        let _busy = (writes(&there, PIECE, APART), reads(&here, 1000, Duration::from_millis(200)));
        found("RECEIVE_QUEUE_FULL", &ends(&here), &["--for", "2s"]);
        assert!(!checked(&A_SECOND).contains_key("RECEIVE_BUFFER_LOCKED"));
    });
}
