//! Connections that are not taken in: accept queues, queues of SYNs, cookies, ports.

use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::common::path::{CLIENT, Place, apart};
use crate::space::{
    A_SECOND, ONCE, all, behind, checked, found, says, script, set, setting, shell, snapshot,
    write_scripts,
};

#[test]
fn an_accept_queue_that_overflows_is_its_listeners() {
    apart(|folder| {
        set("net.core.somaxconn", "2");
        let busy = TcpListener::bind("127.0.0.1:0").expect("a port");
        let idle = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = busy.local_addr().expect("an address");
        let clients: Vec<_> = (0..12)
            .map(|_| {
                thread::Builder::new()
                    .spawn(move || TcpStream::connect_timeout(&to, Duration::from_secs(3)))
                    .expect("a thread")
            })
            .collect();
        let found = checked(&["--for", "2s"]);
        let full = &found["ACCEPT_QUEUE"];
        assert_eq!(full.len(), 1, "{full:#?}");
        assert_eq!(full[0]["severity"], "error");
        assert_eq!(full[0]["scope"]["name"], to.to_string());
        assert_ne!(full[0]["scope"]["name"], idle.local_addr().expect("an address").to_string());
        drop(clients.into_iter().map(thread::JoinHandle::join).collect::<Vec<_>>());
        write_scripts(folder, &A_SECOND);
        script(folder, "fix.sh");
        assert_eq!(setting("net.core.somaxconn"), "4096");
        script(folder, "rollback.sh");
        assert_eq!(setting("net.core.somaxconn"), "2");
    });
}

#[test]
fn ports_that_run_out_towards_one_peer_are_told() {
    apart(|_| {
        set("net.ipv4.ip_local_port_range", "40000 40019");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let one = |to: SocketAddr| {
            let client = TcpStream::connect(to).expect("a connection");
            let server = listener.accept().expect("a connection").0;
            (client, server)
        };
        let few: Vec<_> = (0..10).map(|_| one(to)).collect();
        assert!(!checked(&ONCE).contains_key("EPHEMERAL_PORTS"), "half of them are free");
        let many: Vec<_> = (0..9).map(|_| one(to)).collect();
        assert!(checked(&ONCE).contains_key("EPHEMERAL_PORTS"));
        drop((few, many));
    });
}

#[test]
fn a_queue_of_syns_that_is_full_is_its_listeners_and_gone_when_it_is_longer() {
    behind(Duration::ZERO, all, |folder, far, path| {
        set("net.ipv4.tcp_syncookies", "1");
        set("net.core.somaxconn", "5");
        let busy = Listens::with(4096);
        let idle = Listens::with(4096);
        let few = syns(4, path, busy.to);
        assert!(!checked(&A_SECOND).contains_key(SYN_QUEUE), "they have room");
        drop(few);

        let _flood = syns(200, path, busy.to);
        let told = found(SYN_QUEUE, &busy.name(), &A_SECOND);
        assert!(!says(&told, &idle.name()), "{told:#}");
        assert_eq!(told["severity"], "warning", "cookies help");
        assert!(reaches(far, busy.to, PATIENCE));
        write_scripts(folder, &A_SECOND);
        script(folder, "fix.sh");
        assert_eq!(setting("net.core.somaxconn"), "4096");
        busy.socket.listen(4096).expect("it listens already");
        assert!(!checked(&A_SECOND).contains_key(SYN_QUEUE), "the fix cures it");
        script(folder, "rollback.sh");
        assert_eq!(setting("net.core.somaxconn"), "5");
    });
}

#[test]
fn syns_that_are_dropped_for_want_of_cookies_are_told_cured_and_brought_back() {
    const KEY: &str = "net.ipv4.tcp_syncookies";
    behind(Duration::ZERO, all, |folder, far, path| {
        set(KEY, "0");
        let busy = Listens::with(5);
        assert!(reaches(far, busy.to, PATIENCE));
        let _flood = syns(200, path, busy.to);
        let told = found(SYN_QUEUE, &busy.name(), &A_SECOND);
        assert_eq!(told["severity"], "error");
        assert!(!checked(&A_SECOND).contains_key("ACCEPT_QUEUE"), "it is empty");
        assert!(!reaches(far, busy.to, Duration::from_millis(500)));
        write_scripts(folder, &A_SECOND);
        script(folder, "fix.sh");
        assert_eq!(setting(KEY), "1");
        assert!(reaches(far, busy.to, PATIENCE), "the fix cures it");
        assert_ne!(found(SYN_QUEUE, &busy.name(), &A_SECOND)["severity"], "error");
        script(folder, "rollback.sh");
        assert_eq!(setting(KEY), "0");
    });
}

#[test]
fn cookies_for_everybody_are_a_setting_and_no_full_queue() {
    const KEY: &str = "net.ipv4.tcp_syncookies";
    behind(Duration::ZERO, all, |folder, far, path| {
        set(KEY, "2");
        let listens = Listens::with(4096);
        let _few = syns(4, path, listens.to);
        assert!(reaches(far, listens.to, PATIENCE));
        let told = checked(&A_SECOND);
        assert!(!told.contains_key(SYN_QUEUE) && !told.contains_key("SYN_COOKIES"));
        assert!(says(&told["SYN_COOKIES_SETTING"][0], KEY));
        write_scripts(folder, &ONCE);
        script(folder, "fix.sh");
        assert!(!checked(&ONCE).contains_key("SYN_COOKIES_SETTING"));
        script(folder, "rollback.sh");
        assert_eq!(setting(KEY), "2");
    });
}

#[test]
fn a_reserve_for_known_peers_drops_syns_while_no_queue_is_full() {
    const KEY: &str = "net.ipv4.tcp_syncookies";
    behind(Duration::ZERO, all, |folder, far, path| {
        set(KEY, "0");
        set("net.ipv4.tcp_max_syn_backlog", "8");
        let busy = Listens::with(100);
        assert!(reaches(far, busy.to, PATIENCE));
        assert!(!checked(&A_SECOND).contains_key("ACCEPT_QUEUE"));
        let _flood = syns(50, path, busy.to);
        let told = found("ACCEPT_QUEUE", "no accept queue was full", &A_SECOND);
        assert_eq!(told["scope"]["name"], busy.to.to_string());
        assert!(says(&told, "room for new peers while SYN cookies are off"), "{told:#}");
        write_scripts(folder, &A_SECOND);
        script(folder, "fix.sh");
        assert_eq!(setting(KEY), "1");
        assert!(reaches(far, busy.to, PATIENCE), "the fix cures it");
        script(folder, "rollback.sh");
        assert_eq!(setting(KEY), "0");
    });
}

#[test]
fn connections_that_lost_their_options_to_cookies_are_told_and_keep_them_after_the_fix() {
    const STAMPS: &str = "net.ipv4.tcp_timestamps";
    behind(Duration::ZERO, all, |folder, far, path| {
        set("net.ipv4.tcp_syncookies", "1");
        set(STAMPS, "0");
        let busy = Listens::with(5);
        let to = busy.to;
        // Whether a connection that comes in has its window scale.
        let scaled = || {
            let client = far.does(move || TcpStream::connect_timeout(&to.into(), PATIENCE));
            let client = client.expect("it listens");
            let remote = client.local_addr().expect("connected");
            let taken = busy.socket.accept().expect("it came");
            let seen = snapshot(folder);
            let mut sockets = seen.looks[0].sockets.iter().flatten();
            let socket = sockets.find(|socket| socket.remote == remote).expect("it is open");
            drop((client, taken));
            socket.info.as_ref().expect("seen").rcv_wscale.is_some()
        };
        assert!(scaled(), "there is room for its SYN");
        let crowded = Listens::with(5);
        let _floods = [&busy, &crowded].map(|listens| syns(200, path, listens.to));
        found(SYN_QUEUE, &busy.name(), &A_SECOND);
        assert!(!scaled(), "its options went with the cookie");
        let _clients = clients(far, crowded);
        let told = found("SYN_COOKIES", "timestamps are off", &["--for", "2s"]);
        assert_eq!(told["severity"], "warning");
        write_scripts(folder, &["--for", "2s"]);
        script(folder, "fix.sh");
        assert!(scaled(), "the fix cures it");
        script(folder, "rollback.sh");
        assert_eq!(setting(STAMPS), "0");
    });
}

const SYN_QUEUE: &str = "SYN_QUEUE";
/// Ours: some tries of a SYN.
const PATIENCE: Duration = Duration::from_secs(15);

/// A listener on the path that asked for so long a queue.
struct Listens {
    socket: Socket,
    to: SocketAddrV4,
}

impl Listens {
    fn with(backlog: i32) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let here: Ipv4Addr = CLIENT.parse().expect("an address");
        socket.bind(&SocketAddrV4::new(here, 0).into()).expect("a port");
        socket.listen(backlog).expect("bound");
        let to = socket.local_addr().expect("bound").as_socket_ipv4().expect("of IPv4");
        Self { socket, to }
    }

    /// As findings name it.
    fn name(&self) -> String {
        format!("sport = :{}", self.to.port())
    }
}

fn reaches(far: &Place, to: SocketAddrV4, within: Duration) -> bool {
    far.does(move || TcpStream::connect_timeout(&to.into(), within).is_ok())
}

/// What goes on until this is dropped.
struct Ongoing(Arc<AtomicBool>);

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

impl Ongoing {
    fn does(pause: Duration, step: impl Fn() + Send + 'static) -> Self {
        let goes_on = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&goes_on);
        thread::spawn(move || {
            while asked.load(Relaxed) {
                step();
                thread::sleep(pause);
            }
        });
        Self(goes_on)
    }
}

/// SYNs of this many clients that never answer, again and again.
fn syns(clients: u16, path: &File, to: SocketAddrV4) -> Ongoing {
    shell("ip", &["route", "replace", "198.51.100.0/24", "dev", "path0"]);
    let path = path.try_clone().expect("a descriptor");
    Ongoing::does(Duration::from_millis(100), move || {
        for port in 1..=clients {
            (&path).write_all(&syn(port, to)).expect("the device takes it");
        }
    })
}

/// Clients that come and go, and are taken in.
fn clients(far: &Place, listens: Listens) -> Ongoing {
    let to = listens.to;
    thread::spawn(move || while listens.socket.accept().is_ok() {});
    far.does(move || {
        Ongoing::does(Duration::from_millis(20), move || {
            drop(TcpStream::connect_timeout(&to.into(), PATIENCE));
        })
    })
}

/// A SYN without options, from that port of a host that does not exist.
fn syn(port: u16, to: SocketAddrV4) -> Vec<u8> {
    let ends = [[198, 51, 100, 7], to.ip().octets()].concat();
    let mut tcp: Vec<u8> = [port.to_be_bytes(), to.port().to_be_bytes()].concat();
    tcp.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0]);
    let pseudo = [&ends[..], &[0, 6, 0, tcp.len() as u8], &tcp].concat();
    tcp[16..18].copy_from_slice(&checksum(&pseudo));
    let mut ip = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
    ip.extend(ends);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum);
    [ip, tcp].concat()
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes()
}
