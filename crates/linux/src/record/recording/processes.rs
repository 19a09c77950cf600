//! A process, its descendants, and the sockets they hold: from `/proc`, as often as asked.
//!
//! Who once was a descendant stays one when its parent ends; of this process's own all do, for it adopts them.
//! Children come from the kernel's own list (`/proc/PID/task/TID/children`), or, where it keeps none, from the parent that each process
//! names. A process that starts and ends between two looks is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::sys;

/// A process and its descendants.
#[derive(Debug)]
pub(super) struct Tree {
    members: BTreeSet<u32>,
    /// Whose children belong to it, and itself not.
    adopts: Option<u32>,
    /// The sockets they held when last asked, and whether each may be one of TCP.
    held: BTreeMap<u64, bool>,
    /// The program that was first seen to hold each socket.
    programs: BTreeMap<u64, String>,
}

impl Tree {
    /// With this process at its root.
    pub(super) fn of(root: u32) -> Self {
        Self {
            members: BTreeSet::from([root]),
            adopts: None,
            held: BTreeMap::new(),
            programs: BTreeMap::new(),
        }
    }

    /// Of all that this process starts from now on, however far down and whatever becomes of the parents.
    pub(super) fn of_children() -> Self {
        sys::adopt_orphans();
        let own = std::process::id();
        Self { adopts: Some(own), ..Self::of(own) }
    }

    /// Takes in new descendants, and lets go of those that have ended.
    pub(super) fn update(&mut self) {
        let mut open: Vec<u32> = self.members.iter().copied().collect();
        while let Some(process) = open.pop() {
            match children(process) {
                Ok(children) => {
                    open.extend(children.into_iter().filter(|child| self.members.insert(*child)));
                }
                Err(_) => {
                    self.members.remove(&process);
                }
            }
        }
    }

    /// Numbers of the sockets that they hold, as far as these may be of TCP.
    pub(super) fn sockets(&mut self) -> BTreeSet<u64> {
        let members = self.members.iter().filter(|process| self.has(**process));
        let sockets: Vec<(u32, u64, PathBuf)> = members
            .flat_map(|&process| {
                sockets_of(process).into_iter().map(move |(s, at)| (process, s, at))
            })
            .collect();
        for (process, socket, _) in &sockets {
            if !self.programs.contains_key(socket)
                && let Some(program) = program(*process)
            {
                self.programs.insert(*socket, program);
            }
        }
        self.held = sockets
            .into_iter()
            .map(|(_, socket, place)| {
                let known = self.held.get(&socket).copied();
                (socket, known.unwrap_or_else(|| may_be_tcp(&place)))
            })
            .collect();
        self.held.iter().filter(|(_, is_tcp)| **is_tcp).map(|(socket, _)| *socket).collect()
    }

    /// The program that was first seen to hold this socket.
    pub(super) fn program(&self, socket: u64) -> Option<&str> {
        self.programs.get(&socket).map(String::as_str)
    }

    /// Whether it is one of them.
    pub(super) fn has(&self, process: u32) -> bool {
        self.members.contains(&process) && self.adopts != Some(process)
    }
}

/// What a process runs, as its kernel names it: 15 bytes at most (Linux `TASK_COMM_LEN`).
fn program(process: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{process}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// Which process holds each socket of this machine, as far as we may look. Of several the first.
pub(super) fn holders() -> BTreeMap<u64, u32> {
    let mut holders = BTreeMap::new();
    for process in processes() {
        for (socket, _) in sockets_of(process) {
            holders.entry(socket).or_insert(process);
        }
    }
    holders
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Children of all threads of a process; an error if it has gone.
fn children(process: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => {
                found.extend(list.split_whitespace().filter_map(|one| one.parse::<u32>().ok()));
            }
            // A kernel without CONFIG_PROC_CHILDREN; or the thread has ended.
            Err(_) if thread.path().exists() => return Ok(children_by_parent(process)),
            Err(_) => {}
        }
    }
    Ok(found)
}

fn children_by_parent(process: u32) -> Vec<u32> {
    processes().filter(|&child| parent(child) == Some(process)).collect()
}

/// The fourth field of `/proc/PID/stat`; the second is a name that may hold anything.
fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Numbers and places of the sockets that a process holds; none if we may not look.
fn sockets_of(process: u32) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let place = entry.path();
            let link = fs::read_link(&place).ok()?;
            let socket =
                link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
            Some((socket, place))
        })
        .collect()
}

/// `TCP`, `TCPv6` and `MPTCP` (whose subflows have its number) by the name that the kernel gives a socket's
/// protocol (`sockfs_xattr_get`, Linux `net/socket.c`); whatever it does not name may be.
fn may_be_tcp(place: &Path) -> bool {
    sys::attribute(place, c"system.sockprotoname")
        .map_or(true, |name| name.windows(3).any(|part| part == b"TCP"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn this_process_holds_the_socket_it_opens() {
        let mut tree = Tree::of(std::process::id());
        let before = tree.sockets();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let new: Vec<u64> = tree.sockets().difference(&before).copied().collect();
        // Other tests of this process may open some, too.
        assert!(!new.is_empty());
        let holders = holders();
        assert!(new.iter().any(|socket| holders.get(socket) == Some(&std::process::id())));
        drop(listener);
    }

    #[test]
    fn sockets_that_are_not_of_tcp_are_no_candidates() {
        let mut tree = Tree::of(std::process::id());
        let tcp6 = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0"));
        let (tcp, udp) = (tcp6.expect("a port"), UdpSocket::bind("127.0.0.1:0").expect("a port"));
        let pair = UnixStream::pair().expect("two sockets");
        let number = |fd: BorrowedFd<'_>| {
            let place = format!("/proc/self/fd/{}", fd.as_raw_fd());
            fs::metadata(place).expect("open").ino()
        };
        for _ in 0..2 {
            let held = tree.sockets();
            assert!(held.contains(&number(tcp.as_fd())));
            for other in [udp.as_fd(), pair.0.as_fd(), pair.1.as_fd()] {
                assert!(!held.contains(&number(other)));
            }
        }
        assert!(may_be_tcp(Path::new("/proc/self/fd")), "nothing is named: it may be");
    }

    #[test]
    fn a_grandchild_whose_parent_has_ended_belongs_to_it_and_this_process_does_not() {
        let mut tree = Tree::of_children();
        let of_its_own = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut shell = Command::new("sh")
            .args(["-c", "(sleep 60 & echo $!)"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let mut said = String::new();
        let mut out = BufReader::new(shell.stdout.take().expect("piped"));
        out.read_line(&mut said).expect("a number");
        let orphan: u32 = said.trim().parse().expect("a number");
        shell.wait().expect("ours");
        tree.update();
        assert!(tree.has(orphan) && !tree.has(shell.id()) && !tree.has(std::process::id()));
        let place = format!("/proc/self/fd/{}", of_its_own.as_raw_fd());
        assert!(!tree.sockets().contains(&fs::metadata(place).expect("open").ino()));
        Command::new("kill").arg(said.trim()).status().expect("kill");
    }

    #[test]
    fn a_child_belongs_to_the_tree_and_one_that_ended_does_not() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        let mut tree = Tree::of(std::process::id());
        tree.update();
        assert!(tree.has(child.id()));
        assert!(children_by_parent(std::process::id()).contains(&child.id()));
        child.kill().expect("ours");
        child.wait().expect("ours");
        tree.update();
        assert!(!tree.has(child.id()));
    }
}
