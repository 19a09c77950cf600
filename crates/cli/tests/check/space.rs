//! A network of one's own for a test of `tcpwhy check`, and what it does there as users do.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, Socket, Type};
use tcpwhy::host::snapshot::Snapshot;

use crate::common::path::{Passes, Place, SERVER, apart, join, skipped};
use crate::common::schema::assert_is_as_promised;
use crate::common::{finish, run, tcpwhy};

/// Runs a test in a namespace of its own, with another place at the end of a path on which `passes` says what arrives. What is written to
/// the file comes in by that path.
pub(crate) fn behind(
    round_trip: Duration,
    passes: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    test: impl FnOnce(&Path, &Place, &File) + Send + 'static,
) {
    let passes: Arc<Passes> = Arc::new(passes);
    apart(move |folder| {
        let path = Place::new().and_then(|far| Ok((join(&far, round_trip, &passes)?, far)));
        match path {
            Ok((path, far)) => test(folder, &far, &path),
            Err(error) => skipped(&format!("no TUN: {error}")),
        }
    });
}

pub(crate) fn all(_: &[u8]) -> bool {
    true
}

/// A cable from here to a place, with an address at each end.
pub(crate) fn cable(far: &Place, [here, there]: [(&'static str, &'static str); 2]) {
    let words =
        ["link", "add", here.0, "type", "veth", "peer", "name", there.0, "netns", &far.file];
    shell("ip", &words);
    let up = |(dev, address): (&'static str, &'static str)| {
        shell("ip", &["addr", "add", address, "dev", dev]);
        shell("ip", &["link", "set", dev, "up"]);
    };
    up(here);
    far.does(move || up(there));
}

/// A connection from here to a place, made by a socket that `options` were given; and its end there.
pub(crate) fn connection(
    far: &Place,
    options: impl FnOnce(&Socket) -> io::Result<()>,
) -> [TcpStream; 2] {
    let listener = far.does(|| TcpListener::bind((SERVER, 0)).expect("a port"));
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    options(&socket).expect("it takes them");
    let to = listener.local_addr().expect("an address");
    socket.connect(&to.into()).expect("it listens");
    [socket.into(), listener.accept().expect("a client").0]
}

/// What a program does with a connection until this is dropped.
pub(crate) struct Busy(TcpStream);

impl Drop for Busy {
    fn drop(&mut self) {
        // It may be closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Writes pieces of this many bytes, as far apart as `pause` at least.
pub(crate) fn writes(stream: &TcpStream, bytes: usize, pause: Duration) -> Busy {
    busy(stream, move |mut stream| stream.write_all(&vec![0; bytes]).map(|()| thread::sleep(pause)))
}

/// Reads at most this many bytes at once, as far apart as `pause` at least.
pub(crate) fn reads(stream: &TcpStream, bytes: usize, pause: Duration) -> Busy {
    busy(stream, move |mut stream| {
        if stream.read(&mut vec![0; bytes])? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        thread::sleep(pause);
        Ok(())
    })
}

fn busy(stream: &TcpStream, step: impl Fn(&TcpStream) -> io::Result<()> + Send + 'static) -> Busy {
    let own = stream.try_clone().expect("a descriptor");
    thread::spawn(move || while step(&own).is_ok() {});
    Busy(stream.try_clone().expect("a descriptor"))
}

/// What the first check says about `code` that finds it and names `whose`: what was begun may take its time.
pub(crate) fn found(code: &str, whose: &str, words: &[&str]) -> Value {
    let mut last = BTreeMap::new();
    for _ in 0..15 {
        last = checked(words);
        if let Some(all) = last.get(code).filter(|all| says(&all[0], whose)) {
            assert_eq!(all.len(), 1, "{all:#?}");
            return all[0].clone();
        }
    }
    panic!("{code} of {whose} is not in {:?}: {:#?}", last.keys(), last.get(code));
}

/// What is seen here now.
pub(crate) fn snapshot(folder: &Path) -> Snapshot {
    let saved = folder.join("snap.json");
    let words = ["check", "--for", "0", "--save", saved.to_str().expect("UTF-8"), "--force"];
    assert_eq!(run(&words).status, Some(0));
    serde_json::from_str(&fs::read_to_string(&saved).expect("a snapshot")).expect("JSON")
}

/// Whether a finding's title, evidence and reasons have these words.
pub(crate) fn says(finding: &Value, words: &str) -> bool {
    finding.to_string().contains(words)
}

/// As findings name a connection, by its end here.
pub(crate) fn ends(here: &TcpStream) -> String {
    let [local, remote] = [here.local_addr(), here.peer_addr()].map(|end| end.expect("connected"));
    format!("src {local} and dst {remote}")
}

/// What a check says, by code.
pub(crate) fn checked(words: &[&str]) -> BTreeMap<String, Vec<Value>> {
    let mut command = tcpwhy();
    let run = finish(command.arg("check").arg("--json").args(words).output().expect("it starts"));
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let told: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_is_as_promised(&told);
    let mut by_code: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for finding in told["findings"].as_array().expect("findings") {
        by_code
            .entry(finding["code"].as_str().expect("a code").to_owned())
            .or_default()
            .push(finding.clone());
    }
    by_code
}

/// None of these is said.
pub(crate) fn nothing_of(told: &BTreeMap<String, Vec<Value>>, codes: &[&str]) {
    for code in codes {
        assert!(!told.contains_key(*code), "{:#?}", told[*code]);
    }
}

/// Of the path behind which buffers are filled.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(20);
/// 64 KiB each 5 ms: a quarter of a megabyte in a round trip, which needs a buffer of twice that.
pub(crate) const PIECE: usize = 1 << 16;
/// See [`PIECE`].
pub(crate) const APART: Duration = Duration::from_millis(5);

pub(crate) const ONCE: [&str; 2] = ["--for", "0"];
pub(crate) const A_SECOND: [&str; 2] = ["--for", "1s"];

pub(crate) fn setting(key: &str) -> String {
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    fs::read_to_string(path).expect("a setting").split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn set(key: &str, value: &str) {
    fs::write(format!("/proc/sys/{}", key.replace('.', "/")), value).expect("it takes it");
}

pub(crate) fn shell(program: &str, words: &[&str]) -> String {
    let done = Command::new(program).args(words).output().expect("it starts");
    assert!(
        done.status.success(),
        "{program} {words:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// Runs one of the scripts; what it keeps goes into a file beside it.
pub(crate) fn script(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    let mut command = Command::new("sh");
    command.arg(&path).env("KEPT_IN", folder.join("kept.conf"));
    let done = command.output().expect("it starts");
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{name}: {told}{}", String::from_utf8_lossy(&done.stderr));
    told
}

pub(crate) fn write_scripts(folder: &Path, words: &[&str]) {
    let mut all = vec!["check", "--script", folder.to_str().expect("UTF-8")];
    all.extend(words);
    assert_eq!(run(&all).status, Some(0));
}
