//! Which process holds which socket, and how it is doing.
//!
//! The kernel tells a socket's inode, and `/proc/PID/fd` what a process has open, so every descriptor of
//! every process may have to be read: some microseconds each. The search ends as soon as all sockets are
//! found, begins with processes that held some before, looks for what is new only, and gives up after
//! [`BUDGET_NS`] of processor time, and says so. Of several that hold a socket it names the first.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::path::Path;

use tcpwhy::host::snapshot::{Limits, Look, Owner, Process, Source};

use super::blind::{Blind, name, read};
use super::{groups, sys};
use crate::sys::taken_by_this_thread;

/// What is known of holders from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    known: HashMap<u64, Owner>,
    /// Sockets that nobody was found to hold though everyone was asked.
    nobodys: HashSet<u64>,
}

/// Who holds a socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Holder {
    /// It was not looked for, or the search was ended before.
    NotAsked,
    /// Nobody was found.
    Nobody,
    /// This process.
    Is(Owner),
}

impl Owners {
    /// Joins the sockets of a look to those who hold them, and tells how these are doing.
    pub(super) fn join(&mut self, look: &mut Look, blind: &mut Blind) {
        let inodes = inodes(look);
        self.known.retain(|inode, _| inodes.contains(inode));
        self.nobodys.retain(|inode| inodes.contains(inode));
        let mut wanted: HashSet<u64> = inodes
            .into_iter()
            .filter(|inode| !self.known.contains_key(inode) && !self.nobodys.contains(inode))
            .collect();
        if !wanted.is_empty() {
            let _ = self.search(&mut wanted, blind);
        }
        let owner = |inode: u64| self.known.get(&inode).copied();
        for socket in look.sockets.iter_mut().flatten() {
            socket.owner = owner(socket.inode);
        }
        for listener in look.listeners.iter_mut().flatten() {
            listener.owner = owner(listener.inode);
        }
        let holders: BTreeSet<u32> = self.known.values().map(|owner| owner.pid).collect();
        if holders.len() > MOST_PROCESSES {
            let why = format!("more than {MOST_PROCESSES} hold sockets: some are not described");
            blind.say(Source::Processes, None, why);
        }
        let described = holders.into_iter().take(MOST_PROCESSES);
        look.processes = Some(described.filter_map(|pid| Some((pid, describe(pid)?))).collect());
    }

    /// Who holds the socket of this inode, as far as that was looked for.
    pub(crate) fn holder(&self, inode: u64) -> Holder {
        match self.known.get(&inode) {
            Some(owner) => Holder::Is(*owner),
            None if self.nobodys.contains(&inode) => Holder::Nobody,
            None => Holder::NotAsked,
        }
    }

    /// Looks for those who hold `wanted`. Whoever is not found now is not looked for again.
    pub(crate) fn look_for(&mut self, mut wanted: HashSet<u64>, blind: &mut Blind) {
        if self.search(&mut wanted, blind) {
            self.nobodys.extend(wanted);
        }
    }

    /// How many sockets it knows about.
    pub(crate) fn count(&self) -> usize {
        self.known.len() + self.nobodys.len()
    }

    /// Forgets all sockets but these.
    pub(crate) fn keep(&mut self, inodes: &HashSet<u64>) {
        self.known.retain(|inode, _| inodes.contains(inode));
        self.nobodys.retain(|inode| inodes.contains(inode));
    }

    /// Whether everyone was asked, as far as that was allowed.
    fn search(&mut self, wanted: &mut HashSet<u64>, blind: &mut Blind) -> bool {
        let (began, all) = (taken_by_this_thread(), wanted.len());
        let first: BTreeSet<u32> = self.known.values().map(|owner| owner.pid).collect();
        let others = numbers().filter(|pid| !first.contains(pid));
        let mut refused = 0_u64;
        for pid in first.iter().copied().chain(others) {
            // Another error says that it has gone.
            let searched = self.search_in(pid, wanted, began);
            if searched.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
                refused += 1;
            }
            if wanted.is_empty() {
                return true;
            }
            if taken_by_this_thread() - began > BUDGET_NS {
                let ms = BUDGET_NS / 1_000_000;
                let why = format!(
                    "the search for holders was stopped after {ms} ms of processor time: {} of {all} sockets \
                     have none yet",
                    wanted.len()
                );
                blind.say(Source::Processes, Some("holders of sockets"), why);
                return false;
            }
        }
        if refused > 0 {
            let denied = io::Error::from(ErrorKind::PermissionDenied);
            let of = format!("{refused} processes");
            blind.refused(Source::Processes, Some(&of), &denied);
            return true;
        }
        self.nobodys.extend(wanted.iter());
        true
    }

    fn search_in(&mut self, pid: u32, wanted: &mut HashSet<u64>, began: u64) -> io::Result<()> {
        let folder = File::open(format!("/proc/{pid}/fd"))?;
        let mut place = [0; LONGEST_LINK];
        for (count, entry) in fs::read_dir(format!("/proc/{pid}/fd"))?.enumerate() {
            let entry = entry?.file_name();
            let Ok(link) = sys::read_link(folder.as_fd(), &entry, &mut place) else { continue };
            let Some(inode) = socket_of(link) else { continue };
            let Some(fd) = entry.to_str().and_then(|fd| fd.parse().ok()) else { continue };
            if wanted.remove(&inode) {
                self.known.insert(inode, Owner { pid, fd: Some(fd) });
            }
            let is_time_to_look = count % 1024 == 1023;
            if wanted.is_empty() || is_time_to_look && taken_by_this_thread() - began > BUDGET_NS {
                break;
            }
        }
        Ok(())
    }
}

/// The inodes that sockets of a look have; 0 is none.
fn inodes(look: &Look) -> HashSet<u64> {
    let sockets = look.sockets.iter().flatten().map(|socket| socket.inode);
    let listeners = look.listeners.iter().flatten().map(|listener| listener.inode);
    sockets.chain(listeners).filter(|&inode| inode != 0).collect()
}

/// The number in `socket:[N]`.
fn socket_of(link: &[u8]) -> Option<u64> {
    let number = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

fn numbers() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// How a process is doing; `None` if it has gone.
fn describe(pid: u32) -> Option<Process> {
    let folder = format!("/proc/{pid}");
    let own = fs::read(format!("{folder}/comm")).ok()?;
    let group = read(Path::new(&format!("{folder}/cgroup"))).ok();
    let limits = read(Path::new(&format!("{folder}/limits"))).ok();
    Some(Process {
        name: name(own.strip_suffix(b"\n").unwrap_or(&own)),
        state: worst_state(&folder),
        group: group.as_deref().and_then(groups::path).map(str::to_owned),
        files: open_files(&folder),
        limits: limits.and_then(|text| soft_files(&text)).map(|files| Limits { files }),
    })
}

/// Since Linux 6.2 the folder's size is the number of descriptors (`proc_fd_getattr`); before it is 0.
fn open_files(folder: &str) -> Option<u64> {
    let path = format!("{folder}/fd");
    match fs::metadata(&path).ok()?.len() {
        0 => fs::read_dir(&path).ok().map(|entries| entries.take(MOST_FILES).count() as u64),
        size => Some(size),
    }
}

/// The soft limit of `Max open files` in `/proc/PID/limits`.
fn soft_files(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The worst of its threads' states, in the order of [`WORST`].
fn worst_state(folder: &str) -> Option<char> {
    let threads = fs::read_dir(format!("{folder}/task")).ok()?.flatten().take(MOST_THREADS);
    let states = threads.filter_map(|thread| {
        let stat = fs::read(thread.path().join("stat")).ok()?;
        state(&stat)
    });
    states.min_by_key(|state| WORST.find(*state).unwrap_or(WORST.len()))
}

/// The third field of `/proc/PID/stat`, behind a name that may hold anything.
fn state(stat: &[u8]) -> Option<char> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let state = *stat.get(end + 2)?;
    state.is_ascii_alphabetic().then(|| char::from(state))
}

/// Programs that run and change settings or interrupts by themselves.
pub(super) fn agents(blind: &mut Blind) -> Option<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut any = false;
    for pid in numbers() {
        let Ok(own) = fs::read(format!("/proc/{pid}/comm")) else { continue };
        any = true;
        let own = own.strip_suffix(b"\n").unwrap_or(&own);
        found.extend(AGENTS.iter().copied().filter(|agent| agent.as_bytes() == own));
    }
    if !any {
        blind.say(Source::Processes, None, "no process can be seen in /proc");
        return None;
    }
    if !Path::new("/proc/1").exists() {
        // `hidepid` of proc(5).
        let (of, why) = (Some("those of others"), "/proc hides them");
        blind.say_with(Source::Processes, of, why, "run as root");
        return None;
    }
    Some(found.into_iter().map(str::to_owned).collect())
}

/// Waiting for a disk, stopped by somebody, dead and not buried, running, at rest.
const WORST: &str = "DTtZXRSIP";

const AGENTS: [&str; 4] = ["bpftune", "irqbalance", "tuned", "tuned-ppd"];

/// Ours: 10,000 sockets of one process take 20 ms (Linux 6.18, `bench/check`).
const BUDGET_NS: u64 = 150_000_000;
/// Ours: eight files each.
const MOST_PROCESSES: usize = 2000;
/// Ours: a Java server has some hundred.
const MOST_THREADS: usize = 1000;
/// Ours: kernels before 6.2 have to be asked for each.
const MOST_FILES: usize = 100_000;
/// Longer than any `socket:[N]`; of another link only the beginning is read.
const LONGEST_LINK: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd as _;
    use std::os::linux::fs::MetadataExt as _;

    use tcpwhy::host::snapshot::Listener;

    use super::*;

    #[test]
    fn this_process_holds_the_socket_that_it_opened() {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let inode =
            fs::metadata(format!("/proc/self/fd/{}", socket.as_raw_fd())).expect("ours").st_ino();
        let local = socket.local_addr().expect("bound");
        let listener = Listener {
            local,
            accept_queue: 0,
            accept_max: 0,
            drops: None,
            inode,
            inode_unseen: false,
            owner: None,
        };
        let mut look = Look { listeners: Some(vec![listener]), ..Look::default() };
        let (mut owners, mut blind) = (Owners::default(), Blind::default());
        owners.join(&mut look, &mut blind);
        let owner = Owner { pid: std::process::id(), fd: Some(socket.as_raw_fd() as u32) };
        assert_eq!(look.listeners.expect("there")[0].owner, Some(owner));
        let process = &look.processes.expect("there")[&owner.pid];
        assert!(process.files.is_some_and(|files| files > 3) && process.limits.is_some());
        assert!(process.state.is_some() && !process.name.is_empty());
    }

    #[test]
    fn names_may_hold_anything() {
        assert_eq!(state(b"7 (a) R (b\nc) D 1 2"), Some('D'));
        assert_eq!((state(b"7 (a)"), state(b""), state(b"7 (a) 5")), (None, None, None));
        assert_eq!(socket_of(b"socket:[12]"), Some(12));
        assert_eq!((socket_of(b"socket:[x]"), socket_of(b"/socket:[1]")), (None, None));
        assert_eq!(soft_files("Max open files            1024    4096    files\n"), Some(1024));
    }

    #[test]
    fn one_thread_that_waits_for_a_disk_is_the_worst() {
        let worst = |states: &str| states.chars().min_by_key(|state| WORST.find(*state));
        assert_eq!([worst("SSDS"), worst("RS"), worst("SI")], [Some('D'), Some('R'), Some('S')]);
    }
}
