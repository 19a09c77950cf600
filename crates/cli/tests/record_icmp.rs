//! `tcpwhy record` on a host to which a router says that it cannot deliver. The test is the router.

mod common;
#[path = "common/web.rs"]
mod web;

use std::fs::File;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use common::path::{Place, SERVER, apart, join, skipped};
use common::{finish, tcpwhy};
use serde_json::Value;
use web::respond;

const ROUND_TRIP: Duration = Duration::from_millis(12);
/// What the router's next link takes.
const MTU: usize = 1_340;
const ROUTER: [u8; 4] = [10, 9, 0, 254];
/// A host that is not there, and another.
const NOBODY: &str = "10.9.0.66";
const NOBODY_ELSE: &str = "10.9.0.77";

/// RFC 1071.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair[1]);
    let mut sum: u32 = bytes.chunks_exact(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// What the router says of a packet: its header and eight bytes behind it are quoted (RFC 792).
fn error(code: u8, mtu: usize, packet: &[u8]) -> Vec<u8> {
    let mut message = vec![3, code, 0, 0, 0, 0];
    message.extend((mtu as u16).to_be_bytes());
    message.extend(&packet[..28]);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    let mut header = vec![0x45, 0, 0, 20 + message.len() as u8, 0, 1, 0, 0, 64, 1, 0, 0];
    header.extend(ROUTER);
    header.extend(&packet[12..16]);
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    [header, message].concat()
}

/// Whether the router passes a packet on; if not, it says so.
fn passes(packet: &[u8], back: &OnceLock<File>) -> bool {
    let is_there = [SERVER, common::path::CLIENT].contains(&&*destination(packet));
    let told = match (packet.len() > MTU, is_there) {
        (_, false) => error(1, 0, packet),
        (true, true) => error(4, MTU, packet),
        (false, true) => return true,
    };
    if let Some(mut back) = back.get() {
        // A packet that the device refuses is lost, as on any path.
        let _ = back.write_all(&told);
    }
    false
}

fn destination(packet: &[u8]) -> String {
    let [a, b, c, d] = [16, 17, 18, 19].map(|at| packet[at]);
    format!("{a}.{b}.{c}.{d}")
}

/// Runs a test before the router. A web server that reads all is behind the router.
fn before_a_router(test: impl FnOnce(&Path) + Send + 'static) {
    apart(|folder| {
        let back = Arc::new(OnceLock::new());
        let known = Arc::clone(&back);
        let passes: Arc<common::path::Passes> = Arc::new(move |packet| passes(packet, &known));
        let laid = Place::new().and_then(|far| Ok((join(&far, ROUND_TRIP, &passes)?, far)));
        let (near, far) = match laid {
            Ok(laid) => laid,
            Err(error) => return skipped(&format!("no TUN: {error}")),
        };
        back.set(near).expect("set once");
        far.does(|| {
            let web = TcpListener::bind((SERVER, 80)).expect("a port");
            thread::spawn(move || web.incoming().flatten().for_each(|stream| respond(&stream, "")));
        });
        test(folder);
    });
}

/// The report of what `words` recorded.
fn recorded(folder: &Path, words: &[&str]) -> Value {
    let file = folder.join("x.pcapng");
    let mut command = tcpwhy();
    command.current_dir(folder).args(["record", "--force", "-o", "x.pcapng"]).args(words);
    let run = finish(command.output().expect("starts"));
    let told = finish(tcpwhy().arg("--json").arg(&file).output().expect("starts"));
    assert_eq!(told.status, Some(0), "{} {}", run.stderr, told.stderr);
    serde_json::from_str(&told.stdout).expect("JSON")
}

/// Texts under `what` of each in the list `of`.
fn texts(one: &Value, of: &str, what: &str) -> Vec<String> {
    let all = one[of].as_array().into_iter().flatten();
    all.filter_map(|each| each[what].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_command_s_upload_meets_a_narrow_link_and_the_recording_says_so() {
    before_a_router(|folder| {
        std::fs::write(folder.join("body"), vec![b'x'; 60_000]).expect("a file");
        let url = format!("http://{SERVER}/");
        let upload = ["-H", "Expect:", "--data-binary", "@body", &url];
        let report = recorded(folder, &[&["--", "curl", "-sS"][..], &upload].concat());
        let connection = &report["connections"][0];
        assert_eq!(texts(connection, "icmp", "from"), ["10.9.0.254"], "{report}");
        assert_eq!(texts(connection, "icmp", "kind"), ["too_big"]);
        assert_eq!(connection["icmp"][0]["mtu"], MTU);
        let codes = texts(connection, "findings", "code");
        assert!(codes.iter().any(|code| code == "PATH_MTU"), "{codes:?}");
        assert_eq!(report["captures"][0]["skipped"].as_array().map(Vec::len), Some(0));

        let words = ["--", "curl", "-sS", &format!("http://{NOBODY}/")];
        let report = recorded(folder, &words);
        let connection = &report["connections"][0];
        assert_eq!(texts(connection, "icmp", "kind"), ["host_unreachable"], "{report}");
        assert_eq!(texts(connection, "findings", "code")[0], "UNREACHABLE");
    });
}

#[test]
fn errors_about_others_are_left_out_in_the_kernel() {
    before_a_router(|folder| {
        let all = [(NOBODY, 80), (NOBODY, 81), (NOBODY_ELSE, 81)];
        for (words, wanted) in [
            (&[][..], &all[..]),
            (&["--port", "80"], &all[..1]),
            (&["--host", NOBODY], &all[..2]),
            (&["--host", NOBODY_ELSE, "--port", "81"], &all[2..]),
            (&["--port", "82"], &[]),
            (&["--host", "10.9.0.254"], &[]),
        ] {
            let own = [words, &["--for", "1s"]].concat();
            let report = thread::scope(|scope| {
                let recording = scope.spawn(|| recorded(folder, &own));
                while !recording.is_finished() {
                    for (host, port) in all {
                        let _ = TcpStream::connect((host, port));
                    }
                    thread::sleep(Duration::from_millis(100));
                }
                recording.join().expect("no panic")
            });
            let connections = report["connections"].as_array().expect("a list");
            let mut told: Vec<_> = connections
                .iter()
                .map(|one| (one["server"].as_str().expect("an end"), texts(one, "icmp", "kind")))
                .filter(|(_, kinds)| kinds == &["host_unreachable"])
                .map(|(server, _)| server.to_owned())
                .collect();
            told.sort();
            told.dedup();
            let wanted: Vec<_> =
                wanted.iter().map(|(host, port)| format!("{host}:{port}")).collect();
            assert_eq!(told, wanted, "{words:?}");
            // Of a SYN from before the recording there may be one.
            for error in report["icmp"].as_array().expect("a list") {
                let of = |what: &str| error[what].to_string().replace('"', "");
                let end = format!("{}:{}", of("destination"), of("destination_port"));
                assert!(wanted.contains(&end), "{words:?}: {end}");
            }
        }
    });
}
