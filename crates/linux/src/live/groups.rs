//! Containers and pods by the names of their control groups, which hold the id or UID whatever the engine.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::collect::blind::read;
use crate::collect::groups::mounted_at;

/// The groups of a container or a pod.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Their inodes, which are what the kernel tells of a socket.
    pub(super) ids: HashSet<u64>,
    /// One of its processes, in whose network namespace its sockets are.
    pub(super) process: Option<u32>,
}

/// Why a container or pod cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// There are no groups of version 2.
    #[error(
        "control groups of version 2 are not mounted here, by which containers are found; give a process of it: --netns PID"
    )]
    None,
    /// It is not there.
    #[error(
        "no control group's name below {} holds {wanted}; give the id of a container (`docker ps --no-trunc`, `crictl ps`) or \
         the UID of a pod, on the host itself", root.display()
    )]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// It is several.
    #[error(
        "{wanted} is in the names of several control groups: {first} and {second}; give more of it"
    )]
    Several {
        /// What was asked for.
        wanted: String,
        /// One of them.
        first: String,
        /// Another.
        second: String,
    },
    /// What was given is too short to be an id.
    #[error("give at least {SHORTEST} letters of the id")]
    Short,
}

/// The groups whose name holds `wanted`, and all below them.
pub(super) fn find(wanted: &str, is_pod: bool) -> Result<Found, GroupError> {
    let mounts = read(Path::new("/proc/thread-self/mountinfo")).unwrap_or_default();
    let root = mounted_at(&mounts).ok_or(GroupError::None)?;
    find_below(&root, wanted, is_pod)
}

fn find_below(root: &Path, wanted: &str, is_pod: bool) -> Result<Found, GroupError> {
    if wanted.len() < SHORTEST {
        return Err(GroupError::Short);
    }
    // systemd has `_` for the `-` of a UID.
    let names = [wanted.to_owned(), wanted.replace('-', "_")];
    let mut tops = Vec::new();
    walk(root, 0, &mut |folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let is_it = names.iter().any(|wanted| name.contains(&**wanted))
            && (!is_pod || name.contains("pod"));
        if is_it {
            tops.push(folder.to_owned());
        }
        !is_it
    });
    // An engine's helper beside a container has its id, too (`libpod-conmon-ID.scope`).
    tops.retain(|top| !top.file_name().unwrap_or_default().to_string_lossy().contains("conmon"));
    match &tops[..] {
        [] => {
            return Err(GroupError::NotFound { wanted: wanted.to_owned(), root: root.to_owned() });
        }
        [first, second, ..] if is_pod || first.file_name() != second.file_name() => {
            let name = |path: &PathBuf| path.display().to_string();
            return Err(GroupError::Several {
                wanted: wanted.to_owned(),
                first: name(first),
                second: name(second),
            });
        }
        _ => {}
    }
    let mut found = Found::default();
    for top in &tops {
        found.add(top);
        walk(top, 0, &mut |folder| {
            found.add(folder);
            true
        });
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, folder: &Path) {
        self.ids.extend(fs::metadata(folder).map(|group| group.st_ino()));
        if self.process.is_none() {
            let processes = read(&folder.join("cgroup.procs")).unwrap_or_default();
            self.process =
                processes.lines().find_map(|line| line.parse().ok()).filter(|pid| *pid != 0);
        }
    }
}

/// Calls `each` with every folder below; it says whether to go further down. What cannot be read is passed over.
fn walk(folder: &Path, depth: usize, each: &mut impl FnMut(&Path) -> bool) {
    if depth > DEEPEST {
        return;
    }
    let entries: io::Result<Vec<_>> = fs::read_dir(folder).and_then(Iterator::collect);
    for entry in entries.unwrap_or_default() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && each(&entry.path()) {
            walk(&entry.path(), depth + 1, each);
        }
    }
}

/// Ours: four letters of an id may be anything's.
const SHORTEST: usize = 6;
/// Ours: a pod's containers are five below the root.
const DEEPEST: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folders: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for folder in folders {
            fs::create_dir_all(root.path().join(folder)).expect("room");
        }
        root
    }

    const POD: &str =
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_4e5f_6789.slice";

    #[test]
    fn a_pod_is_all_of_its_containers() {
        let [one, two] = ["cri-containerd-aaaaaa111.scope", "cri-containerd-bbbbbb222.scope"]
            .map(|name| format!("{POD}/{name}"));
        let root = tree(&[&one, &two, "system.slice/cron.service"]);
        let ids = |wanted: &str, is_pod| {
            find_below(root.path(), wanted, is_pod).map(|found| found.ids.len())
        };
        assert_eq!(ids("0a1b2c3d-4e5f-6789", true).expect("found"), 3);
        assert_eq!(ids("aaaaaa111", false).expect("found"), 1);
        assert!(matches!(ids("aaaaaa111", true), Err(GroupError::NotFound { .. })));
        assert!(matches!(ids("cri-containerd", false), Err(GroupError::Several { .. })));
        assert!(matches!(ids("aaa", false), Err(GroupError::Short)));
    }

    #[test]
    fn a_process_of_it_is_known() {
        let root = tree(&["docker/aaaaaa111"]);
        fs::write(root.path().join("docker/aaaaaa111/cgroup.procs"), "4711\n4712\n").expect("room");
        let found = find_below(root.path(), "aaaaaa", false).expect("found");
        assert_eq!(found.process, Some(4711));
    }
}
