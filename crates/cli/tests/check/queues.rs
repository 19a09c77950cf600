//! Queues on the way out.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::common::path::apart;
use crate::common::run;
use crate::common::schema::assert_is_as_promised;
use crate::space::{A_SECOND, all, behind, checked, connection, found, reads, says, shell, writes};

#[test]
fn a_shaper_that_drops_is_told_with_its_rate() {
    apart(|_| {
        let shaped = [
            "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "10kb", "limit",
            "20kb",
        ];
        shell("tc", &shaped);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let mut writer = TcpStream::connect(to).expect("a connection");
        let (mut reader, _) = listener.accept().expect("a connection");
        thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        thread::spawn(move || while writer.write_all(&[0; 1 << 14]).is_ok() {});
        let found = checked(&["--for", "3s"]);
        let of_it: BTreeSet<&str> = ["SHAPER", "QDISC_DROPS"].into();
        assert!(found.keys().any(|code| of_it.contains(code.as_str())), "{:?}", found.keys());
    });
}

#[test]
fn the_path_inside_the_host_is_shown_with_the_delay_of_a_full_queue() {
    apart(|_| {
        let fifo = ["qdisc", "add", "dev", "lo", "root", "pfifo", "limit", "127"];
        shell("tc", &fifo);
        shell("ip", &["link", "set", "lo", "mtu", "1500"]);
        let told = run(&["check", "--queues", "lo", "--rate", "5mbit", "--for", "0"]);
        assert_eq!(told.status, Some(0), "{}", told.stderr);
        // The last of 127 packets waits for 126 of 1500 bytes at 5 Mbit/s.
        assert!(told.stdout.contains("pfifo") && told.stdout.contains("302 ms"), "{}", told.stdout);
        let told = run(&["check", "--queues", "lo", "--rate", "5mbit", "--for", "0", "--json"]);
        assert_is_as_promised(&serde_json::from_str(&told.stdout).expect("JSON"));
    });
    let told = run(&["check", "--queues", "no-such-dev", "--for", "0"]);
    assert!(told.status == Some(3) && told.stderr.contains("no-such-dev"), "{}", told.stderr);
}

#[test]
fn a_short_queue_that_drops_is_told_with_its_interface_and_a_long_one_is_not() {
    behind(Duration::from_millis(5), all, |_, far, _| {
        let limit = |bytes| {
            let words = [
                "qdisc", "replace", "dev", "path0", "root", "handle", "7:", "bfifo", "limit", bytes,
            ];
            shell("tc", &words);
        };
        limit("1000000");
        let [here, there] = connection(far, |_| Ok(()));
        let pause = Duration::from_millis(20);
        let _busy = (writes(&here, 1 << 17, pause), reads(&there, 1 << 16, Duration::ZERO));
        assert!(!checked(&A_SECOND).contains_key("QDISC_DROPS"));
        // Less than a full packet.
        limit("1000");
        let told = found("QDISC_DROPS", "bfifo", &A_SECOND);
        assert!(says(&told["title"], "path0"), "{told:#}");
    });
}
