//! A path of the tests' own: two network namespaces without names, and a delay between them.
//!
//! ```text
//! client's namespace           this process              server's namespace
//! 10.9.0.1 -- TUN device -- waits half the round trip -- TUN device -- 10.9.0.2
//! ```
//!
//! A [`Place`] is such a namespace that carries out orders. [`join`] lays the path to it from here. The test says
//! what passes that path.
//!
//! Namespaces and devices go with the threads that hold them. Only threads of ours enter them; the
//! machine's own network is not touched.

#![expect(unsafe_code, reason = "namespaces and TUN devices have no other way in")]

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const CLIENT: &str = "10.9.0.1";
pub(crate) const SERVER: &str = "10.9.0.2";

/// Builds the path, runs `server` on a thread behind it until it returns, and `client` before it.
/// `Err` if this machine does not let us.
pub(crate) fn with_path<T: Send + 'static>(
    round_trip: Duration,
    server: impl FnOnce() + Send + 'static,
    client: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (far, far_end) = mpsc::channel();
    thread::spawn(move || {
        let device = enter_with_device(SERVER);
        let is_there = device.is_ok();
        // Nobody waits any more if the near side failed.
        let _ = far.send(device);
        if is_there {
            server();
        }
    });
    let near = thread::spawn(move || -> io::Result<T> {
        let near = enter_with_device(CLIENT)?;
        let far = far_end.recv().map_err(|_| io::ErrorKind::BrokenPipe)??;
        carry(&near, &far, round_trip, &Arc::new(|_: &[u8]| true))?;
        Ok(client())
    });
    match near.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A network namespace of its own, for as long as this lives or a thread that was started in it.
pub(crate) struct Place {
    work: mpsc::Sender<Box<dyn FnOnce() + Send>>,
    /// As ip(8) takes a namespace that has no name.
    pub(crate) file: String,
}

impl Place {
    /// A new one, in which loopback is up.
    pub(crate) fn new() -> io::Result<Self> {
        let (work, asked) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let (entered, file) = mpsc::channel();
        thread::spawn(move || {
            let file = enter().and_then(|()| std::fs::read_link("/proc/thread-self"));
            let is_there = file.is_ok();
            // Whoever made this place waits for it.
            let _ = entered.send(file);
            if is_there {
                for work in asked {
                    work();
                }
            }
        });
        let thread = file.recv().map_err(|_| io::ErrorKind::BrokenPipe)??;
        Ok(Self { work, file: format!("/proc/{}/ns/net", thread.display()) })
    }

    /// Does something there, and hands back what came of it.
    pub(crate) fn does<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, outcome) = mpsc::channel();
        let work = move || {
            let _ = done.send(work());
        };
        self.work.send(Box::new(work)).expect("the place is there");
        outcome.recv().expect("it did not panic")
    }
}

/// What passes a path, by a packet's bytes.
pub(crate) type Passes = dyn Fn(&[u8]) -> bool + Send + Sync;

/// Lays a path from the namespace of this thread, which is [`CLIENT`] on it, to a place, which is [`SERVER`].
/// What is written to the file comes in here as if by that path.
pub(crate) fn join(far: &Place, round_trip: Duration, passes: &Arc<Passes>) -> io::Result<File> {
    let near = device(CLIENT)?;
    let far = far.does(|| device(SERVER))?;
    carry(&near, &far, round_trip, passes)?;
    Ok(near)
}

fn carry(
    near: &File,
    far: &File,
    round_trip: Duration,
    passes: &Arc<impl Fn(&[u8]) -> bool + Send + Sync + ?Sized + 'static>,
) -> io::Result<()> {
    for (from, to) in [(near, far), (far, near)] {
        let (from, to, passes) = (from.try_clone()?, to.try_clone()?, Arc::clone(passes));
        thread::spawn(move || forward(from, to, round_trip / 2, &*passes));
    }
    Ok(())
}

/// Moves packets that pass, each so long after it came.
fn forward(
    mut from: File,
    mut to: File,
    delay: Duration,
    passes: &(impl Fn(&[u8]) -> bool + ?Sized),
) {
    let (send, received) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut waiting = VecDeque::new();
        loop {
            let next = waiting.pop_front().or_else(|| received.recv().ok());
            let Some((due, packet)): Option<(Instant, Vec<u8>)> = next else { break };
            thread::sleep(due.saturating_duration_since(Instant::now()));
            // A packet that the device refuses is lost, as on any path.
            let _ = to.write_all(&packet);
            waiting.extend(received.try_iter());
        }
    });
    let mut packet = vec![0; 65_536];
    while let Ok(length) = from.read(&mut packet) {
        if !passes(&packet[..length]) {
            continue;
        }
        if send.send((Instant::now() + delay, packet[..length].to_vec())).is_err() {
            break;
        }
    }
}

/// Puts this thread into a network namespace of its own, with a TUN device of this address.
fn enter_with_device(address: &str) -> io::Result<File> {
    enter()?;
    device(address)
}

/// A TUN device of this address in the namespace of this thread.
fn device(address: &str) -> io::Result<File> {
    let device = tun()?;
    // The machine's own may pace (BBR), and a recording would rightly say so. Of all others Reno is
    // the only one that every namespace may choose.
    std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno")?;
    for words in [
        vec!["addr", "add", &format!("{address}/24"), "dev", "path0"],
        vec!["link", "set", "path0", "up", "txqueuelen", "5000"],
    ] {
        ip(&words)?;
    }
    Ok(device)
}

/// Runs `test` in a network namespace of its own, in which loopback is up. `Err` if this machine does not let us.
pub(crate) fn alone(test: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let done = thread::spawn(move || enter().map(|()| test())).join();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs a test in a namespace of its own; where this machine has none to give, says so.
pub(crate) fn apart(test: impl FnOnce(&Path) + Send + 'static) {
    let done = alone(|| test(tempfile::tempdir().expect("a folder").path()));
    if let Err(error) = done {
        skipped(&format!("no namespaces: {error}"));
    }
}

#[expect(clippy::print_stderr, reason = "why a test was skipped")]
pub(crate) fn skipped(why: &str) {
    let required = std::env::var_os("TCPWHY_REQUIRE_ALL").is_some_and(|v| v == "1");
    assert!(!required, "{why}");
    eprintln!("skipped: {why}; run as root");
}

/// Puts this thread into a network namespace of its own.
fn enter() -> io::Result<()> {
    // SAFETY: only this thread changes its namespaces.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    ip(&["link", "set", "lo", "up"])
}

fn ip(words: &[&str]) -> io::Result<()> {
    let done = Command::new("ip").args(words).status()?;
    assert!(done.success(), "ip {words:?}");
    Ok(())
}

fn tun() -> io::Result<File> {
    // SAFETY: all zeros is a valid `ifreq`; the kernel reads and writes one. Descriptors are ours.
    unsafe {
        let fd = libc::open(c"/dev/net/tun".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let device = File::from_raw_fd(fd);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"path0") {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
        if libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(device)
    }
}

/// Gives this thread, and what it starts, a file of its own at `place`.
pub(crate) fn put_file(place: &str, content: &str) -> io::Result<()> {
    // SAFETY: a mount namespace of this thread's own, private before anything is mounted in it.
    unsafe {
        let none = std::ptr::null();
        // Threads share their root folder unless they say otherwise, and then cannot leave it.
        if libc::unshare(libc::CLONE_FS | libc::CLONE_NEWNS) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast());
    }
    let folder = tempfile::tempdir()?.keep();
    let file = folder.join("file");
    std::fs::write(&file, content)?;
    let done = Command::new("mount").arg("--bind").arg(&file).arg(place).status()?;
    assert!(done.success(), "mount over {place}");
    std::fs::remove_dir_all(&folder).or(Ok(()))
}
