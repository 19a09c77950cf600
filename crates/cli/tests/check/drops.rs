//! `tcpwhy check --drops`: what the kernel drops while it is looked at, by its own reasons.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::path::apart;
use crate::common::run;
use crate::common::schema::assert_is_as_promised;
use serde_json::Value;

fn dropped(told: &Value, reason: &str) -> u64 {
    let by = told["drops"]["by"].as_array().expect("they were counted");
    let of = by.iter().filter(|each| each["reason"] == reason);
    of.map(|each| each["packets"].as_u64().expect("a number")).sum()
}

#[test]
fn connections_to_a_port_where_nobody_listens_are_told_by_the_kernels_word() {
    apart(|_| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let nobody = listener.local_addr().expect("bound");
        drop(listener);
        let done = Arc::new(AtomicBool::new(false));
        // Runs within the namespace of this thread.
        let knocking = thread::spawn({
            let done = Arc::clone(&done);
            move || {
                let mut tries = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    assert!(TcpStream::connect(nobody).is_err(), "nobody listens");
                    tries += 1;
                    thread::sleep(Duration::from_millis(10));
                }
                tries
            }
        });
        let told = run(&["check", "--drops", "--for", "1s", "--json"]);
        done.store(true, Ordering::Relaxed);
        let tries = knocking.join().expect("it knocked");
        assert_eq!(told.status, Some(0), "{}", told.stderr);
        let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
        assert_is_as_promised(&told);
        let packets = dropped(&told, "NO_SOCKET");
        assert!(packets > 0 && tries > 0, "{tries}: {}", told["drops"]);
    });
    assert_eq!(run(&["check", "--drops", "--for", "0"]).status, Some(2));
    assert_eq!(run(&["check", "--drops", "x.json"]).status, Some(2));
}
