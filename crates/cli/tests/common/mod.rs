//! What the tests of the binary share: running it, and captures written by hand.

#![allow(dead_code, reason = "each test file uses its own part of this one")]

pub(crate) mod expected;
pub(crate) mod path;
pub(crate) mod report;
pub(crate) mod schema;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run of the binary left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The binary under test, with none of the caller's colour settings.
pub(crate) fn tcpwhy() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").stdin(Stdio::null());
    command
}

/// Runs the binary with these arguments.
pub(crate) fn run<S: AsRef<OsStr>>(args: &[S]) -> Run {
    finish(tcpwhy().args(args).output().expect("the binary starts"))
}

/// Runs the binary with these arguments and this on standard input.
pub(crate) fn run_with_stdin(args: &[&str], stdin: &[u8]) -> Run {
    let mut command = tcpwhy();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("stdin is piped");
    let stdin = stdin.to_vec();
    let writer = std::thread::spawn(move || {
        // It may stop reading early; that is its right.
        let _ = pipe.write_all(&stdin);
    });
    let output = child.wait_with_output().expect("the binary ends");
    writer.join().expect("the writer ends");
    finish(output)
}

pub(crate) fn finish(output: std::process::Output) -> Run {
    Run {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
    }
}

/// A file in `testdata/` or elsewhere in the repository.
pub(crate) fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// All captures below `testdata/`.
pub(crate) fn all_captures() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![in_repository("testdata")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if ["pcap", "pcapng", "tcpdump.txt", ".gz", ".zst", ".lz4"]
                .iter()
                .any(|ending| name.ends_with(ending))
                && !name.ends_with(".txt.gz")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A classic capture of raw IPv4 packets (`LINKTYPE_RAW`, 101), microseconds, little endian.
#[derive(Clone, Debug)]
pub(crate) struct Pcap(pub(crate) Vec<u8>);

impl Pcap {
    /// Without packets.
    pub(crate) fn new() -> Self {
        Self::with_link_type(101)
    }

    pub(crate) fn with_link_type(link_type: u32) -> Self {
        let mut bytes = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(65_535_u32.to_le_bytes());
        bytes.extend(link_type.to_le_bytes());
        Self(bytes)
    }

    /// Adds a record.
    pub(crate) fn record(mut self, at_us: u64, data: &[u8]) -> Self {
        let length = u32::try_from(data.len()).expect("short");
        for field in [(at_us / 1_000_000) as u32, (at_us % 1_000_000) as u32, length, length] {
            self.0.extend(field.to_le_bytes());
        }
        self.0.extend(data);
        self
    }

    /// Adds a TCP segment of `payload` bytes between 10.0.0.`hosts.0` and 10.0.0.`hosts.1`.
    pub(crate) fn segment(
        self,
        at_us: u64,
        ends: [(u8, u16); 2],
        flags: u8,
        numbers: [u32; 2],
        payload: usize,
    ) -> Self {
        let mut tcp = Vec::new();
        tcp.extend(ends[0].1.to_be_bytes());
        tcp.extend(ends[1].1.to_be_bytes());
        tcp.extend(numbers[0].to_be_bytes());
        tcp.extend(numbers[1].to_be_bytes());
        tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(vec![b'x'; payload]);
        self.record(at_us, &ipv4(6, [ends[0].0, ends[1].0], &tcp))
    }

    /// Adds a whole small connection from `client` to 10.0.0.2 port `port`, from `at_us` on.
    pub(crate) fn connection(self, at_us: u64, client: (u8, u16), port: u16) -> Self {
        let to = [client, (2, port)];
        let back = [to[1], to[0]];
        let (syn, ack, push_ack, fin_ack) = (0x02, 0x10, 0x18, 0x11);
        self.segment(at_us, to, syn, [1_000, 0], 0)
            .segment(at_us + 10_000, back, syn | ack, [5_000, 1_001], 0)
            .segment(at_us + 10_050, to, ack, [1_001, 5_001], 0)
            .segment(at_us + 10_100, to, push_ack, [1_001, 5_001], 100)
            .segment(at_us + 20_200, back, push_ack, [5_001, 1_101], 1_000)
            .segment(at_us + 20_250, to, fin_ack, [1_101, 6_001], 0)
            .segment(at_us + 30_300, back, fin_ack, [6_001, 1_102], 0)
            .segment(at_us + 30_350, to, ack, [1_102, 6_002], 0)
    }
}

/// Packets of one [`Pcap::connection`].
pub(crate) const PACKETS: u64 = 8;

/// An IPv4 packet from 10.0.0.`hosts[0]` to 10.0.0.`hosts[1]`; checksums are left zero.
pub(crate) fn ipv4(protocol: u8, hosts: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let total = u16::try_from(20 + payload.len()).expect("short");
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend([10, 0, 0, hosts[0], 10, 0, 0, hosts[1]]);
    packet.extend(payload);
    packet
}
