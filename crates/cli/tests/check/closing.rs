//! Connections that are not closed: kinds of `CLOSE_WAIT`, and ends that nobody acknowledges.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use crate::common::path::{SERVER, apart};
use crate::space::{A_SECOND, behind, checked, found, says, set};

#[test]
fn connections_that_a_program_forgets_to_close_are_told_with_its_name() {
    apart(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let held: Vec<TcpStream> = (0..120)
            .map(|_| {
                drop(TcpStream::connect(to).expect("a connection"));
                listener.accept().expect("a connection").0
            })
            .collect();
        let found = checked(&A_SECOND);
        let told = found["CLOSE_WAIT"][0]["title"].as_str().expect("a title");
        let pid = std::process::id().to_string();
        assert!(told.contains("120") && told.contains(&pid), "{told}");
        drop(held);
        assert!(!checked(&A_SECOND).contains_key("CLOSE_WAIT"));
    });
}

#[test]
fn clients_that_gave_up_in_the_accept_queue_are_told_with_its_port() {
    apart(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let clients: Vec<_> = (0..20).map(|_| TcpStream::connect(to).expect("room")).collect();
        assert!(!checked(&A_SECOND).contains_key("CLOSE_WAIT"), "they still wait");
        drop(clients);
        let told = found("CLOSE_WAIT", "20 connections gave up", &A_SECOND);
        assert!(says(&told["title"], &format!("on port {}", to.port())), "{told:#}");
        for _ in 0..20 {
            drop(listener.accept().expect("it waits"));
        }
        assert!(!checked(&A_SECOND).contains_key("CLOSE_WAIT"));
    });
}

#[test]
fn handlers_that_close_later_than_their_peers_are_told_apart_from_a_forgotten_close() {
    apart(|_| {
        let served = |at_once: usize, goes_on: Arc<AtomicBool>| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let to = listener.local_addr().expect("an address");
            let mut held = VecDeque::new();
            thread::spawn(move || {
                while goes_on.load(Relaxed) {
                    drop(TcpStream::connect(to).expect("room"));
                    held.push_back(listener.accept().expect("a client").0);
                    if held.len() > at_once {
                        held.pop_front();
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            })
        };
        let goes_on = Arc::new(AtomicBool::new(true));
        let quick = served(5, Arc::clone(&goes_on));
        assert!(!checked(&A_SECOND).contains_key("CLOSE_WAIT"), "a few, and others each time");
        let slow = served(150, Arc::clone(&goes_on));
        found("CLOSE_WAIT", "closes later than its peers", &["--for", "2s"]);
        goes_on.store(false, Relaxed);
        drop((quick.join(), slow.join()));
    });
}

#[test]
fn ends_that_no_peer_acknowledges_are_told_with_the_peer() {
    let vanished = Arc::new(AtomicBool::new(false));
    let is_gone = Arc::clone(&vanished);
    // Once the peer has vanished nothing but SYNs and bare ACKs arrives there.
    let passes = move |packet: &[u8]| {
        let (head, flags) = (20 + usize::from(packet[32] >> 4) * 4, packet[33]);
        !is_gone.load(Relaxed) || (packet.len() == head && flags & 1 == 0)
    };
    behind(Duration::ZERO, passes, move |_, far, _| {
        let listener = far.does(|| {
            set("net.core.somaxconn", "4096");
            TcpListener::bind((SERVER, 0)).expect("a port")
        });
        let to = listener.local_addr().expect("an address");
        let served = listener.try_clone().expect("a descriptor");
        thread::spawn(move || for _client in served.incoming() {});
        let closed = || {
            for _ in 0..1010 {
                let mut client = TcpStream::connect(to).expect("it listens");
                client.write_all(b"the end").expect("room");
            }
            checked(&A_SECOND)
        };
        assert!(!closed().contains_key("UNACKED_CLOSE"), "they are acknowledged");
        vanished.store(true, Relaxed);
        let told = &closed()["UNACKED_CLOSE"][0];
        assert!(says(told, "1010 connections") && says(told, SERVER), "{told:#}");
    });
}
