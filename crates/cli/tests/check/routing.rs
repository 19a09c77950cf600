//! Routes, and what is known of peers.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use crate::common::path::{Place, SERVER, apart};
use crate::space::{
    A_SECOND, ONCE, behind, cable, checked, connection, found, says, script, set, setting, shell,
    snapshot, write_scripts,
};

#[test]
fn a_route_with_a_small_initial_window_is_told_cured_and_brought_back() {
    apart(|folder| {
        shell("ip", &["route", "add", "203.0.113.0/24", "dev", "lo", "initcwnd", "2"]);
        let routes = || shell("ip", &["route", "show", "203.0.113.0/24"]);
        let was = routes();
        let found = checked(&ONCE);
        assert!(found.contains_key("INITIAL_WINDOWS_OF_ROUTES"), "{:?}", found.keys());
        write_scripts(folder, &ONCE);
        script(folder, "fix.sh");
        assert!(!routes().contains("initcwnd 2"), "{}", routes());
        assert!(!checked(&ONCE).contains_key("INITIAL_WINDOWS_OF_ROUTES"));
        script(folder, "rollback.sh");
        assert_eq!(routes(), was);
    });
}

/// Two cables to one place, whose own address lies behind the first: what it sends from there by the second
/// comes in where the answer would not leave.
#[test]
fn packets_that_come_in_where_their_answer_does_not_leave_are_told_with_the_interface() {
    apart(|folder| {
        let far = Place::new().expect("another");
        cable(&far, [("e0", "192.0.2.1/25"), ("f0", "192.0.2.2/25")]);
        cable(&far, [("e1", "192.0.2.129/25"), ("f1", "192.0.2.130/25")]);
        shell("ip", &["route", "add", "default", "via", "192.0.2.2"]);
        // What is set for all counts for each.
        for (dev, strict) in [("all", "1"), ("e0", "0"), ("e1", "0")] {
            set(&format!("net.ipv4.conf.{dev}.rp_filter"), strict);
        }
        far.does(|| {
            shell("ip", &["addr", "add", "198.51.100.7/32", "dev", "lo"]);
            for dev in ["all", "f0", "f1"] {
                set(&format!("net.ipv4.conf.{dev}.rp_filter"), "0");
            }
        });
        let listener = TcpListener::bind("192.0.2.129:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let reached = |within| far.does(move || TcpStream::connect_timeout(&to, within).is_ok());
        assert!(reached(PATIENCE), "from the subnet of that interface");
        assert!(!checked(&A_SECOND).contains_key(FILTERED));

        far.does(|| {
            shell("ip", &["route", "replace", "192.0.2.128/25", "dev", "f1", "src", "198.51.100.7"])
        });
        // Its SYNs go on while it is looked.
        far.does(move || drop(thread::spawn(move || TcpStream::connect_timeout(&to, PATIENCE))));
        let told = found(FILTERED, "rp_filter of e1", &["--for", "3s"]);
        assert_eq!(told["severity"], "error", "{told:#}");
        assert!(!reached(Duration::from_millis(500)));
        write_scripts(folder, &["--for", "3s"]);
        script(folder, "fix.sh");
        assert!(reached(PATIENCE), "the fix cures it");
        assert!(!checked(&A_SECOND).contains_key(FILTERED));
        script(folder, "rollback.sh");
        assert_eq!(setting("net.ipv4.conf.e1.rp_filter"), "0");
        assert!(!reached(Duration::from_millis(500)));
    });
}

const FILTERED: &str = "REVERSE_PATH_FILTER";
/// Ours: some tries of a SYN.
const PATIENCE: Duration = Duration::from_secs(15);

/// A transfer that loses one packet in slow start leaves its threshold behind; the next one to that peer gets it
/// if the switch says so.
#[test]
fn a_threshold_that_is_remembered_holds_the_next_connection_until_the_fix() {
    let sent = AtomicUsize::new(0);
    // One segment of the first transfer, when some eighty are in flight.
    let passes = move |packet: &[u8]| packet.len() < 1000 || sent.fetch_add(1, Relaxed) != 100;
    behind(Duration::from_millis(30), passes, |folder, far, _| {
        set(SWITCH, "0");
        let transfer = |bytes| {
            let [mut here, mut there] = connection(far, |_| Ok(()));
            let reader = thread::spawn(move || {
                let bytes = io::copy(&mut there, &mut io::sink());
                (there, bytes.expect("open"))
            });
            here.write_all(&vec![0; bytes]).expect("open");
            here.shutdown(Shutdown::Write).expect("open");
            let (there, came) = reader.join().expect("it reads");
            assert_eq!(came, bytes as u64);
            let threshold = threshold_of(folder, &here);
            drop(there);
            assert_eq!(here.read(&mut [0]).expect("open"), 0);
            threshold
        };
        transfer(1_000_000);
        let told = found("CACHED_SSTHRESH", &format!("ip tcp_metrics show {SERVER}"), &ONCE);
        let held = transfer(1000).expect("it was given one");
        assert!(held < 100 && says(&told, &format!("ssthresh {held},")), "{held}: {told:#}");
        write_scripts(folder, &ONCE);
        script(folder, "fix.sh");
        assert!(!checked(&ONCE).contains_key("CACHED_SSTHRESH"));
        assert_eq!(transfer(1000), None, "it doubles on");
        script(folder, "rollback.sh");
        assert_eq!(setting(SWITCH), "0");
        assert_eq!(transfer(1000), Some(held));
    });
}

const SWITCH: &str = "net.ipv4.tcp_no_ssthresh_metrics_save";

/// As a snapshot has it; `None` while it is infinite.
fn threshold_of(folder: &Path, here: &TcpStream) -> Option<u64> {
    let local = here.local_addr().expect("connected");
    let seen = snapshot(folder);
    let mut sockets = seen.looks[0].sockets.iter().flatten();
    let socket = sockets.find(|socket| socket.local == local).expect("it is open");
    socket.info.as_ref().expect("seen").snd_ssthresh.map(u64::from)
}
