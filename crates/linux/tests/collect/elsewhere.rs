//! Another namespace than one's own.

use std::fs;
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tcpwhy::host::snapshot::Snapshot;
use tcpwhy_linux::collect::{Netns, NetnsError, Options, take};

use crate::space::{inside, look};

#[test]
fn another_namespace_has_its_own_links_settings_and_sockets() {
    let (tell, told) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let other = thread::spawn(move || {
        inside(move || {
            fs::write("/proc/sys/net/core/somaxconn", "77").expect("ours");
            let listener = TcpListener::bind("127.0.0.1:7003").expect("free");
            let path = format!("/proc/{}/task/{}/ns/net", std::process::id(), thread_id());
            tell.send((path, listener.local_addr().expect("bound"), look())).expect("waited for");
            let _ = ended.recv();
        });
    });
    // Nothing comes where there is no such thing.
    if let Ok((path, local, inner)) = told.recv() {
        let options =
            Options { netns: Some(Netns::parse(&path)), processes: true, ..Options::default() };
        let asked = take(&options).expect("root may enter");
        assert_eq!(asked.netns.as_deref(), Some(path.as_str()));
        assert_eq!(asked.initial_netns, Some(false));
        let settings = asked.settings.as_ref().expect("seen");
        assert_eq!(settings.values["net.core.somaxconn"], "77");
        assert!(!settings.values.contains_key("net.core.netdev_max_backlog"));
        // The tests may themselves run in a container that does not see the host's.
        let is_blind =
            asked.unseen.iter().any(|one| one.of.as_deref() == Some("the namespace of process 1"));
        let hosts = asked.host_settings.as_ref().map(|hosts| hosts["net.core.somaxconn"] != "77");
        assert!(is_blind || hosts == Some(true), "{:?}", asked.unseen);
        let names = |snapshot: &Snapshot| -> Vec<String> {
            snapshot.looks[0].links.iter().flatten().map(|link| link.name.clone()).collect()
        };
        assert_eq!(names(&asked), ["lo", "w1", "w0"]);
        assert_eq!(names(&asked), names(&inner));
        let links = asked.looks[0].links.as_ref().expect("seen");
        assert!(
            links.iter().all(|link| link.queues.as_ref().is_some_and(|queues| queues.rx.is_some()))
        );
        let [found] = asked.looks[0].listeners.clone().expect("seen").try_into().expect("one");
        assert_eq!(found.local, local);
        assert_eq!(found.owner.map(|owner| owner.pid), Some(std::process::id()));
    }
    drop(end);
    other.join().expect("well");
}

fn thread_id() -> String {
    let link = fs::read_link("/proc/thread-self").expect("/proc is mounted");
    link.file_name().expect("a number").to_string_lossy().into_owned()
}

#[test]
fn one_that_is_not_there_is_an_error() {
    let options = Options { netns: Some(Netns::Name("no-such".to_owned())), ..Options::default() };
    assert!(matches!(take(&options), Err(NetnsError::Open { .. })));
}

#[test]
fn what_was_seen_is_saved_and_read_again() {
    inside(|| {
        let _listener = TcpListener::bind("127.0.0.1:7004").expect("free");
        let snapshot = look();
        let text = serde_json::to_string(&snapshot).expect("plain data");
        let again: Snapshot = serde_json::from_str(&text).expect("its own text");
        assert_eq!(again, snapshot);
    });
}

#[test]
fn two_looks_are_apart() {
    inside(|| {
        let options = Options { apart: Some(Duration::from_millis(300)), ..Options::default() };
        let snapshot = take(&options).expect("our own namespace");
        let [first, second] = snapshot.looks.as_slice() else { panic!("two looks") };
        let apart = second.t_ns.expect("told") - first.t_ns.expect("told");
        assert!((250_000_000..2_000_000_000).contains(&apart), "{apart}");
        assert!(second.counters.is_some() && second.links.is_some());
    });
}
