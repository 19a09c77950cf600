//! What is read beside sockets by who looks at them for long: counters of the kernel and of network cards, and names of control groups.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tcpwhy::host::snapshot::Link;

use super::blind::{Blind, read};
use super::devices::driver_counters;
use super::groups::mounted_at;
use super::look;
use super::namespace::{Netns, NetnsError, within};
use super::{links, tables};
use crate::netlink::Netlink;

/// Counters of a network namespace at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beside {
    /// As in [`tcpwhy::host::snapshot::Look::counters`].
    pub counters: Option<BTreeMap<String, BTreeMap<String, i64>>>,
    /// Network cards, with their drivers' counters; no virtual interfaces.
    pub links: Vec<Link>,
    /// `net.ipv4.ip_local_port_range`.
    pub ephemeral: Option<[u16; 2]>,
}

impl Beside {
    /// Reads them. What cannot be read is not there.
    ///
    /// # Errors
    /// The namespace is not there any more, or may not be entered.
    pub fn read(netns: Option<&Netns>) -> Result<Self, NetnsError> {
        netns.map_or_else(|| Ok(here()), |netns| within(netns, here))
    }
}

fn here() -> Beside {
    let mut blind = Blind::default();
    let cards = |route: &mut Netlink| {
        let all = links::links(route, &mut Blind::default()).unwrap_or_default();
        let mut cards: Vec<Link> =
            all.into_iter().filter(|link| link.kind.is_none() && !link.loopback).collect();
        for card in &mut cards {
            card.driver_counters = driver_counters(&card.name);
        }
        cards
    };
    let range = read(Path::new("/proc/sys/net/ipv4/ip_local_port_range"));
    Beside {
        counters: look::counters(&mut blind),
        links: Netlink::open(libc::NETLINK_ROUTE)
            .map(|mut route| cards(&mut route))
            .unwrap_or_default(),
        ephemeral: range.ok().and_then(|text| tables::range(&text)),
    }
}

/// Paths of control groups by the numbers that the kernel tells of sockets (`INET_DIAG_CGROUP_ID`), which are their inodes.
#[derive(Debug)]
pub struct GroupPaths {
    root: Option<PathBuf>,
    known: BTreeMap<u64, String>,
    walked: Option<Instant>,
}

impl Default for GroupPaths {
    fn default() -> Self {
        let mounts = read(Path::new("/proc/thread-self/mountinfo")).unwrap_or_default();
        Self::below(mounted_at(&mounts))
    }
}

impl GroupPaths {
    const fn below(root: Option<PathBuf>) -> Self {
        Self { root, known: BTreeMap::new(), walked: None }
    }

    /// Those that are known, which are all of `wanted` that are there, unless they are younger than the last walk.
    pub fn of(&mut self, mut wanted: impl Iterator<Item = u64>) -> &BTreeMap<u64, String> {
        let is_due = self.walked.is_none_or(|walked| walked.elapsed() >= APART);
        if let Some(root) = self
            .root
            .as_deref()
            .filter(|_| is_due && !wanted.all(|id| self.known.contains_key(&id)))
        {
            let mut known = BTreeMap::new();
            walk(root, "", 0, &mut known);
            self.known = known;
            self.walked = Some(Instant::now());
        }
        &self.known
    }
}

fn walk(folder: &Path, path: &str, depth: usize, known: &mut BTreeMap<u64, String>) {
    let Ok(about) = fs::metadata(folder) else { return };
    let shown = if path.is_empty() { "/" } else { path };
    known.insert(about.ino(), shown.to_owned());
    if depth >= DEEPEST || known.len() >= MOST {
        return;
    }
    let Ok(inside) = fs::read_dir(folder) else { return };
    for entry in inside.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let name = super::blind::name(entry.file_name().as_encoded_bytes());
            walk(&entry.path(), &format!("{path}/{name}"), depth + 1, known);
        }
    }
}

/// Between two walks. Ours: a walk over a thousand groups takes some milliseconds.
const APART: Duration = Duration::from_secs(5);

/// Groups and levels at most. Ours: ten times what a host of 250 pods has.
const MOST: usize = 20_000;
const DEEPEST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_counts_segments_and_has_a_range_of_ports() {
        let beside = here();
        let counters = beside.counters.expect("counters");
        assert!(counters["Tcp"].contains_key("RetransSegs") && counters.contains_key("TcpExt"));
        assert!(beside.ephemeral.is_some_and(|[low, high]| low < high));
        assert!(beside.links.iter().all(|link| link.name != "lo"));
    }

    #[test]
    fn groups_are_found_by_their_inodes() {
        let root = tempfile::tempdir().expect("a folder");
        let inside = root.path().join("a.slice/b.service");
        fs::create_dir_all(&inside).expect("folders");
        let id = |path: &Path| fs::metadata(path).expect("it is there").ino();
        let mut paths = GroupPaths::below(Some(root.path().to_owned()));
        let known = paths.of([id(&inside)].into_iter());
        assert_eq!(known[&id(&inside)], "/a.slice/b.service");
        assert_eq!(known[&id(root.path())], "/");
        let late = root.path().join("late");
        fs::create_dir(&late).expect("a folder");
        assert!(!paths.of([id(&late)].into_iter()).contains_key(&id(&late)), "too soon");
    }
}
