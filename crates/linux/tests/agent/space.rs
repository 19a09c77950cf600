//! A network of one's own for a test: a fresh namespace without a name, its loopback up.
//!
//! Only the thread of [`inside`] enters it, and what it starts; the machine's own network is not
//! touched, and the namespace ends with them.

#![expect(unsafe_code, reason = "namespaces have no other way in")]

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tcpwhy_model::scenario::plan::{Flow, Plan, Step};

/// Runs a test in a namespace of its own; where that is not allowed, says so and runs nothing,
/// unless `TCPWHY_REQUIRE_ALL` is set: then that is a failure.
pub(crate) fn inside(test: impl FnOnce(&Path) + Send + 'static) {
    let done = thread::spawn(move || {
        if let Err(error) = enter() {
            let why = format!("no network namespace: {error}; run as root");
            assert!(std::env::var_os("TCPWHY_REQUIRE_ALL").is_none(), "{why}");
            skipped(&why);
            return;
        }
        let folder = tempfile::tempdir().expect("a folder for the test");
        test(folder.path());
    });
    if let Err(panic) = done.join() {
        std::panic::resume_unwind(panic);
    }
}

#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

fn enter() -> io::Result<()> {
    // SAFETY: only this thread changes its namespaces.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    up("lo")
}

fn up(name: &str) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let mut request = interface(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: the kernel reads one `ifreq`.
    let set =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn interface(name: &str) -> libc::ifreq {
    // SAFETY: all zeros is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// A TUN device of this network, up; packets written to it are received by the kernel.
pub(crate) fn tun(name: &str) -> File {
    let device = File::options().read(true).write(true).open("/dev/net/tun").expect("TUN");
    let mut request = interface(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    // SAFETY: the kernel reads and writes one `ifreq`.
    let set = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    assert_eq!(set, 0, "{}", io::Error::last_os_error());
    up(name).expect("a device of ours");
    device
}

/// Drops this share of what a connected socket receives, in percent, before TCP sees it.
pub(crate) fn lossy(socket: &std::net::TcpStream, percent: u32) {
    let threshold = (u64::from(u32::MAX) * u64::from(percent) / 100) as u32;
    let instruction = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let program = [
        // A = a random number (`SKF_AD_RANDOM`).
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, -0x1000_i32 as u32 + 56),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, threshold),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies four instructions.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    assert_eq!(set, 0, "{}", io::Error::last_os_error());
}

/// Folders of the tracing system's instances that a process of this number made.
pub(crate) fn instances_of(process: u32) -> Vec<String> {
    // SAFETY: a thread's own mount namespace, made private before anything is mounted in it.
    unsafe {
        assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0, "{}", io::Error::last_os_error());
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        let none = std::ptr::null();
        libc::mount(none, c"/".as_ptr(), none, flags, none.cast());
        let (kind, place) = (c"tracefs".as_ptr(), c"/mnt".as_ptr());
        assert_eq!(libc::mount(kind, place, kind, 0, none.cast()), 0);
    }
    let prefix = format!("tcpwhy-{process}-");
    let folders = std::fs::read_dir("/mnt/instances").expect("tracefs has instances");
    folders
        .map(|folder| folder.expect("a folder").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

/// A `tcpwhy-agent` under way; killed if the test ends before it.
pub(crate) struct Agent {
    child: Option<Child>,
}

impl Agent {
    /// Starts it and waits until it says that it is ready.
    pub(crate) fn ready(arguments: &[&str]) -> Self {
        let mut agent = Self::start(arguments);
        let mut said = [0; 6];
        let out = agent.child().stdout.as_mut().expect("a pipe");
        let well = out.read_exact(&mut said);
        assert!(well.is_ok(), "not ready: {}", agent.end_by_itself().1);
        assert_eq!(&said, b"ready\n");
        agent
    }

    /// Starts it.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_tcpwhy-agent"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent was built");
        Self { child: Some(child) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: a child of ours that was not waited for, so its number is its own.
        unsafe { libc::kill(self.id() as i32, signal) };
    }

    /// Asks it to end: what it printed, and its complaints.
    pub(crate) fn stop(self) -> (String, String) {
        self.signal(libc::SIGTERM);
        let (output, complaints) = self.finish();
        assert!(output.status.success(), "{:?} {complaints}", output.status);
        (String::from_utf8_lossy(&output.stdout).into_owned(), complaints)
    }

    /// Waits until it ends: whether with success, and its complaints.
    pub(crate) fn end_by_itself(self) -> (bool, String) {
        let (output, complaints) = self.finish();
        (output.status.success(), complaints)
    }

    /// Waits until it ends with success: what it printed.
    pub(crate) fn output(self) -> String {
        let (output, complaints) = self.finish();
        assert!(output.status.success(), "{:?} {complaints}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn finish(mut self) -> (Output, String) {
        let late = Instant::now() + Duration::from_secs(30);
        while self.child().try_wait().expect("a child of ours").is_none() {
            assert!(Instant::now() < late, "the agent does not end");
            thread::sleep(Duration::from_millis(5));
        }
        let output = self.child.take().expect("not waited for").wait_with_output();
        let output = output.expect("a child of ours");
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, complaints)
    }

    fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("not waited for")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A plan of one flow, written to the folder; its path.
pub(crate) fn plan(folder: &Path, flow: Flow) -> String {
    let plan = Plan { flows: vec![flow], limit_ns: 20_000_000_000, ..Plan::default() };
    let path = folder.join("plan.json");
    std::fs::write(&path, serde_json::to_vec(&plan).expect("plans are JSON")).expect("a folder");
    path.display().to_string()
}

/// A download: a head, then this many bytes, then the end.
pub(crate) fn download(port: u16, bytes: u64) -> Flow {
    Flow {
        port,
        connections: 1,
        client: vec![
            Step::WriteHead(78),
            Step::ReadHead,
            Step::ReadToEnd { chunk: 0, pause_ns: 0 },
        ],
        server: vec![
            Step::ReadHead,
            Step::WriteHead(100),
            Step::Write { bytes, chunk: 0, pause_ns: 0 },
            Step::EndWriting,
            Step::Drain,
        ],
        ..Flow::default()
    }
}

/// Plays both ends of the first flow; the log.
pub(crate) fn play(folder: &Path, flow: Flow, address: &str) -> Vec<serde_json::Value> {
    let plan = plan(folder, flow);
    let log = folder.join("applications.jsonl");
    let path = log.display().to_string();
    let of = |side| {
        ["app", "--plan", &plan, "--side", side, "--address", address, "--log", &path]
            .map(str::to_owned)
    };
    let (server, client) = (of("server"), of("client"));
    let server = Agent::ready(&server.each_ref().map(String::as_str));
    let client = Agent::ready(&client.each_ref().map(String::as_str));
    assert_eq!(client.end_by_itself(), (true, String::new()));
    assert_eq!(server.end_by_itself(), (true, String::new()));
    lines(&log)
}

/// The objects of a file with one a line.
pub(crate) fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("a record");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A port that only this test uses: tracepoints see all namespaces of the machine.
pub(crate) fn port(test: u16) -> u16 {
    20_000 + (std::process::id() % 2000) as u16 * 20 + test
}
