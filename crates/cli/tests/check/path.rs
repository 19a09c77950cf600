//! `tcpwhy check --path`: what a path asks of this host.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use crate::common::path::apart;
use crate::common::schema::assert_is_as_promised;
use crate::common::{in_repository, run};
use serde_json::{Value, json};

/// A capture of 512 KiB from 192.168.10.60 at a round trip of 7 ms.
fn captured() -> PathBuf {
    in_repository("testdata/articles/download-512k-rtt7ms.tcpdump.txt")
}

#[test]
fn it_is_told_with_and_without_its_figures() {
    let told = run(&["check", "--path", "203.0.113.9", "--rate", "100mbit", "--rtt", "20ms"]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    for words in
        ["244 KiB fill it", "(as was said)", "Predicted by a model", "receiving", "sending"]
    {
        assert!(told.stdout.contains(words), "{words}: {}", told.stdout);
    }
    for lacking in
        [&["--rate", "100mbit"][..], &["--rtt", "20ms"], &["--rate", "1gbit", "--rtt", "0ms"]]
    {
        let told = run(&[&["check", "--path", "203.0.113.9"][..], lacking].concat());
        let says = told.stderr.contains("--rate 1gbit --rtt 20ms");
        assert!(told.status == Some(2) && says, "{lacking:?}: {}", told.stderr);
    }
}

#[test]
fn a_capture_says_what_the_path_is_like() {
    let file = captured();
    let file = file.to_str().expect("UTF-8");
    let told = run(&["check", "--path", "192.168.247.130", "--capture", file, "--json"]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
    assert_is_as_promised(&told);
    // Nothing filled the path: what was delivered is the least that it carries.
    assert_eq!((&told["rate_from"], &told["rtt_from"]), (&json!("capture"), &json!("capture")));
    let rtt_ns = told["rtt_ns"].as_u64().expect("a time");
    assert!((6_000_000..7_000_000).contains(&rtt_ns), "{rtt_ns}");
    let words = run(&["check", "--path", "192.168.247.130", "--capture", file]);
    assert!(words.stdout.contains("It may carry more"), "{}", words.stdout);
    let said = ["--rate", "1gbit", "--rtt", "7ms"];
    let words =
        run(&[&["check", "--path", "192.168.247.130", "--capture", file][..], &said].concat());
    assert!(
        words.stdout.contains("1.00 Gbit/s (as was said), round trip 7.00 ms"),
        "{}",
        words.stdout
    );

    let stranger = run(&["check", "--path", "192.0.2.1", "--capture", file]);
    let is_told = stranger.stderr.contains("no connection with 192.0.2.1")
        && stranger.stderr.contains("192.168.247.129, 192.168.247.130");
    assert!(stranger.status == Some(2) && is_told, "{}", stranger.stderr);
    assert_eq!(run(&["check", "--capture", file]).status, Some(2), "of no path");
    let none = run(&["check", "--path", "192.0.2.1", "--capture", "no-such.pcap"]);
    assert_eq!(none.status, Some(3), "{}", none.stderr);
}

#[test]
fn open_connections_show_what_they_asked_for_and_what_they_got() {
    apart(|_| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let _accepted = listener.accept().expect("a connection");
        socket2::SockRef::from(&stream).set_send_buffer_size(20_000).expect("set");
        let of = format!("{}:{}", std::process::id(), stream.as_raw_fd());
        let port = stream.local_addr().expect("bound").port();
        let path = ["check", "--path", "127.0.0.1", "--rate", "1gbit", "--rtt", "1ms"];
        let told = run(&[&path[..], &["--socket", &of, "--json"]].concat());
        assert_eq!(told.status, Some(0), "{}", told.stderr);
        let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
        assert_is_as_promised(&told);
        let open = told["open"].as_array().expect("sockets");
        let mine = open.iter().find(|it| it["port"] == port).expect("the connection");
        assert_eq!((&mine["sndbuf"], &mine["sndbuf_asked"]), (&json!(40_000), &json!(20_000)));
        assert_eq!(mine["rcvbuf_asked"], Value::Null);
        let words = run(&[&path[..], &["--socket", &of]].concat()).stdout;
        assert!(words.contains("asked for 19.5 KiB with SO_SNDBUF"), "{words}");
    });
}
