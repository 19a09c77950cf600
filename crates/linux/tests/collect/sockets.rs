//! Connections and listeners beside ss(8).

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use std::{process, thread};

use tcpwhy::host::snapshot::{Info, Memory, Socket, State};

use crate::space::{inside, look, run};

/// What ss prints of one socket: its columns, and `name:value` words behind them.
#[derive(Debug)]
struct Shown {
    columns: Vec<String>,
    words: BTreeMap<String, String>,
    all: String,
}

fn ss(options: &str) -> Vec<Shown> {
    let text = run(&format!("ss -H -O {options}"));
    let shown = |line: &str| {
        let all: Vec<&str> = line.split_whitespace().collect();
        let words = all.iter().filter_map(|word| word.split_once(':'));
        Shown {
            columns: all.iter().map(|word| (*word).to_owned()).collect(),
            words: words.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            all: line.to_owned(),
        }
    };
    text.lines().map(shown).collect()
}

/// `skmem:(r0,rb131072,t0,...)`.
fn memory(shown: &Shown) -> Memory {
    let list = shown.words["skmem"].trim_matches(['(', ')']);
    let values: Vec<u32> = list
        .split(',')
        .map(|value| {
            value
                .trim_start_matches(|letter: char| letter.is_alphabetic())
                .parse()
                .expect("a number")
        })
        .collect();
    let [rmem, rcvbuf, wmem, sndbuf, forward, wqueued, optmem, backlog, drops] =
        values.try_into().expect("nine");
    Memory { rmem, rcvbuf, wmem, sndbuf, forward, wqueued, optmem, backlog, drops }
}

/// As ss writes an address: that of a mapped one in brackets.
fn ends(socket: &Socket, of: &Shown, column: usize) -> bool {
    let plain = |text: &str| text.replace("[::ffff:", "").replace([']', '['], "");
    let told = |end: std::net::SocketAddr| plain(&end.to_string());
    plain(&of.columns[column]) == told(socket.local)
        && plain(&of.columns[column + 1]) == told(socket.remote)
}

#[test]
fn connections_are_told_as_ss_tells_them() {
    inside(|| {
        let mut kept = Vec::new();
        for (bind, connect) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::]:0", "127.0.0.1"),
            ("[::1]:0", "[::1]"),
            ("192.0.2.1:0", "192.0.2.1"),
        ] {
            let listener = TcpListener::bind(bind).expect("a port");
            let port = listener.local_addr().expect("bound").port();
            let mut client = TcpStream::connect(format!("{connect}:{port}")).expect("it listens");
            let (server, _) = listener.accept().expect("a client");
            // Something that is not read, and a peer that has closed its half.
            client.write_all(&[7; 5000]).expect("there is room");
            server.shutdown(std::net::Shutdown::Write).expect("open");
            kept.push((listener, client, server));
        }
        // Until delayed ACKs are out and nothing moves any more.
        thread::sleep(Duration::from_millis(300));
        let snapshot = look();
        let sockets = snapshot.looks[0].sockets.as_ref().expect("seen");
        let shown = ss("-tinma state connected");
        assert_eq!((sockets.len(), shown.len()), (8, 8), "{shown:#?}");
        for socket in sockets {
            let twin = shown
                .iter()
                .find(|shown| ends(socket, shown, 3))
                .unwrap_or_else(|| panic!("{socket:?} {shown:#?}"));
            compare(socket, twin);
            let owner = socket.owner.expect("it is ours");
            assert_eq!(owner.pid, process::id());
        }
        let processes = snapshot.looks[0].processes.as_ref().expect("seen");
        assert!(processes.contains_key(&process::id()));
    });
}

fn compare(socket: &Socket, shown: &Shown) {
    let number = |name: &str| {
        shown
            .words
            .get(name)
            .map(|value| value.trim_end_matches("bps").parse::<f64>().expect("a number"))
    };
    let whole = |name: &str| number(name).map(|value| value as u64);
    let queues = [socket.receive_queue, socket.send_queue].map(|queue| queue.to_string());
    assert_eq!(queues, shown.columns[1..3], "{}", shown.all);
    let state = match socket.state {
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        other => panic!("{other:?} is not one of those we made"),
    };
    assert_eq!(state, shown.columns[0]);
    assert_eq!(socket.memory, Some(memory(shown)));
    let congestion = socket.congestion.as_deref().expect("told");
    assert!(shown.columns.iter().any(|word| word == congestion), "{}", shown.all);
    let Info { rto_ns, snd_mss, rcv_mss, advmss, pmtu, snd_cwnd, rcv_space, rcv_ssthresh, .. } =
        **socket.info.as_ref().expect("told");
    let ms = |name: &str| number(name).map(|ms| (ms * 1e6) as u64);
    assert_eq!(rto_ns.map(|ns| ns / 1_000_000), ms("rto").map(|ns| ns / 1_000_000));
    for (ours, name) in [
        (snd_mss, "mss"),
        (rcv_mss, "rcvmss"),
        (advmss, "advmss"),
        (pmtu, "pmtu"),
        (snd_cwnd, "cwnd"),
        (rcv_space, "rcv_space"),
        (rcv_ssthresh, "rcv_ssthresh"),
    ] {
        assert_eq!(ours.map(u64::from), whole(name), "{name}: {}", shown.all);
    }
    let info = socket.info.as_ref().expect("told");
    // ss leaves out what is 0.
    let counted = |value: Option<u64>| value.filter(|&value| value != 0);
    assert_eq!(counted(info.bytes_sent), whole("bytes_sent"), "{}", shown.all);
    assert_eq!(counted(info.bytes_received), whole("bytes_received"), "{}", shown.all);
    assert_eq!(counted(info.snd_wnd.map(u64::from)), whole("snd_wnd"), "{}", shown.all);
    let scale = info.snd_wscale.zip(info.rcv_wscale).map(|(snd, rcv)| format!("{snd},{rcv}"));
    assert_eq!(scale.as_ref(), shown.words.get("wscale"));
    let rtt = shown
        .words
        .get("rtt")
        .and_then(|both| both.split_once('/'))
        .map(|(rtt, _)| rtt.parse::<f64>().expect("ms"));
    assert_eq!(info.rtt_ns, rtt.map(|ms| (ms * 1e6).round() as u64));
}

#[test]
fn a_full_listener_has_its_queue_and_its_drops() {
    inside(|| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .expect("a socket");
        let address: std::net::SocketAddr = "127.0.0.1:7001".parse().expect("an address");
        socket.bind(&address.into()).expect("free");
        socket.listen(2).expect("bound");
        let mut clients = Vec::new();
        for _ in 0..6 {
            let client = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
                .expect("a socket");
            client.set_nonblocking(true).expect("ours");
            let _ = client.connect(&address.into());
            clients.push(client);
        }
        let listener = until(|| {
            let look = look();
            let found =
                look.looks[0].listeners.clone()?.into_iter().find(|one| one.local == address)?;
            found.drops.is_some_and(|drops| drops > 0).then_some(found)
        });
        let shown = ss("-ltnm")
            .into_iter()
            .find(|one| one.columns[3] == "127.0.0.1:7001")
            .expect("it listens");
        assert_eq!(
            [listener.accept_queue, listener.accept_max].map(|n| n.to_string()),
            shown.columns[1..3]
        );
        assert_eq!(
            (listener.accept_queue, listener.accept_max),
            (3, 2),
            "it holds one more than asked for"
        );
        // Clients go on trying.
        assert!(listener.drops.is_some_and(|drops| drops <= memory(&shown).drops));
        assert_eq!(listener.owner.map(|owner| owner.pid), Some(process::id()));
    });
}

/// Tries until there is an answer, 10 s at most.
fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let late = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < late, "nothing came of it");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn connections_in_time_wait_are_counted_by_whom_they_occupy() {
    inside(|| {
        let listener = TcpListener::bind("127.0.0.1:7002").expect("free");
        for closes_first in [true, true, false] {
            let client = TcpStream::connect("127.0.0.1:7002").expect("it listens");
            let (server, _) = listener.accept().expect("a client");
            if closes_first {
                drop(client);
                thread::sleep(Duration::from_millis(20));
                drop(server);
            } else {
                drop(server);
                thread::sleep(Duration::from_millis(20));
                drop(client);
            }
        }
        let found = until(|| {
            let found = look().looks[0].time_wait.clone()?;
            (found.iter().map(|one| one.count).sum::<u32>() == 3).then_some(found)
        });
        let told: Vec<_> =
            found.iter().map(|one| (one.local_port, one.remote.port(), one.count)).collect();
        assert_eq!(told, [(None, 7002, 2), (Some(7002), 0, 1)]);
        assert_eq!(run("ss -H -tan state time-wait").lines().count(), 3);
    });
}
