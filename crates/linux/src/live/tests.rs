//! Looks at sockets of this process, over the loopback interface.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::*;

fn sampler(ends: Vec<Ends>) -> Sampler {
    Sampler::open(&Options { ends, processes: true, ..Options::default() })
        .expect("sockets can be seen")
}

#[test]
fn a_connection_of_ours_is_seen_with_its_listener_and_its_holder() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    client.write_all(b"some bytes").expect("room");
    let mut sampler = sampler(vec![Ends::Ports(port, port)]);
    assert!(!sampler.program.is_empty());
    let first = sampler.sample().expect("a look");
    assert_eq!((first.sockets.len(), first.listeners.len()), (2, 1), "{first:?}");
    assert_eq!(first.listeners[0].accept_queue, 1, "nobody has accepted it");
    let ours =
        first.sockets.iter().find(|socket| socket.remote.port() == port).expect("the client's");
    assert_eq!(ours.owner.map(|owner| owner.pid), Some(std::process::id()));
    assert!(first.processes.contains_key(&std::process::id()));
    assert!(ours.cookie != 0 && ours.info.is_some() && ours.memory.is_some());
    let again = sampler.sample().expect("a look");
    assert!(again.t_ns > first.t_ns);
    assert!(again.sockets.iter().any(|socket| socket.cookie == ours.cookie));
    let text = serde_json::to_string(&again).expect("plain data");
    assert_eq!(serde_json::from_str::<Sample>(&text).expect("its own text"), again);
}

#[test]
fn others_are_left_out_by_the_kernel_and_by_us() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let _client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    for ends in [Ends::Ports(port, port), Ends::Net("127.0.0.1".parse().expect("an address"), 32)] {
        let mut sampler = sampler(vec![ends]);
        let by_kernel = sampler.sample().expect("a look").sockets;
        sampler.program.clear();
        let is_ours =
            |socket: &&Socket| [socket.local, socket.remote].iter().any(|end| end.port() == port);
        let by_us = sampler.sample().expect("a look").sockets;
        let count = |sockets: &[Socket]| sockets.iter().filter(is_ours).count();
        assert_eq!((count(&by_kernel), count(&by_us)), (2, 2), "{ends:?}");
        if matches!(ends, Ends::Ports(..)) {
            assert_eq!((by_kernel.len(), by_us.len()), (2, 2));
        }
    }
}

#[test]
fn one_that_is_destroyed_is_told_with_its_last_figures() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let mut sampler = sampler(vec![Ends::Ports(port, port)]);
    if sampler.destroyed.is_none() {
        // To this user it is not told.
        return;
    }
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    client.write_all(b"some bytes").expect("room");
    let mut server = listener.accept().expect("one waits").0;
    let seen = sampler.sample().expect("a look").sockets;
    server.read_exact(&mut [0; 10]).expect("they came");
    let cookie =
        seen.iter().find(|socket| socket.local.port() != port).expect("the client's").cookie;
    drop((client, server));
    // The kernel tells it from a queue of work.
    for _ in 0..100 {
        let sample = sampler.sample().expect("a look");
        if let Some(ended) = sample.ended.iter().find(|socket| socket.cookie == cookie) {
            let info = ended.info.as_deref().expect("its figures");
            // Its SYN and its FIN count as a byte each.
            assert!(info.bytes_acked.is_some_and(|bytes| bytes >= 10), "{info:?}");
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("it was destroyed, and nothing told so");
}
