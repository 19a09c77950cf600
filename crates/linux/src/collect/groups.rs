//! Control groups of version 2: what memory and processor time they have, and how often they met a limit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tcpwhy::host::snapshot::{Group, Source};

use super::blind::{Blind, read};
use super::tables;

/// Those of these paths; `None` where version 2 is not mounted.
pub(super) fn groups(paths: &BTreeSet<&str>, blind: &mut Blind) -> Option<BTreeMap<String, Group>> {
    let mounts = blind.file(Source::Groups, "/proc/thread-self/mountinfo")?;
    let Some(root) = mounted_at(&mounts) else {
        blind.say(Source::Groups, None, "version 2 of control groups is not mounted");
        return None;
    };
    if paths.len() > MOST {
        blind.say(Source::Groups, None, format!("there are more than {MOST}"));
    }
    let own = paths.iter().take(MOST).filter_map(|path| {
        let inside = path.trim_start_matches('/');
        // That of a process outside our own root of groups, whose files we cannot name.
        if inside.split('/').any(|part| part == "..") {
            return None;
        }
        Some(((*path).to_owned(), group(&root.join(inside))?))
    });
    Some(own.collect())
}

/// The mount point of version 2 (`proc_pid_mountinfo(5)`); on hosts that have both versions it is below
/// that of the first.
pub(crate) fn mounted_at(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        // Its own blanks would be octal numbers; nobody has such a path.
        kind.starts_with("cgroup2 ").then(|| PathBuf::from(point))
    })
}

/// What the files of a group say; `None` if it is gone.
fn group(folder: &Path) -> Option<Group> {
    if !folder.is_dir() {
        return None;
    }
    // A file is missing where its controller is off.
    let text = |name: &str| read(&folder.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse().ok();
    let field = |name: &str, key: &str| field(&text(name)?, key);
    let avg10 = |name: &str| Some(tables::pressure(&text(name)?)?.some_avg10);
    Some(Group {
        sock_bytes: field("memory.stat", "sock"),
        memory_bytes: number("memory.current"),
        memory_max: number("memory.max"),
        memory_high: number("memory.high"),
        memory_events_max: field("memory.events", "max"),
        memory_events_high: field("memory.events", "high"),
        cpu_throttled: field("cpu.stat", "nr_throttled"),
        cpu_throttled_ns: field("cpu.stat", "throttled_usec").map(|us| us.saturating_mul(1000)),
        memory_some_avg10: avg10("memory.pressure"),
        io_some_avg10: avg10("io.pressure"),
    })
}

/// A line of a name and a number.
fn field(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// The path in `/proc/PID/cgroup`: version 2 has no number and no controllers.
pub(crate) fn path(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// Ours: nine files each, 100 us.
const MOST: usize = 500;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn version_2_is_found_beside_the_first() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mounted_at(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mounted_at("30 24 0:26 / /x rw - tmpfs cgroup2 rw\n"), None);
        assert_eq!(path("4:memory:/a\n0::/b/c\n"), Some("/b/c"));
    }

    #[test]
    fn a_group_without_a_limit_or_a_controller_says_nothing_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let write =
            |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        write("memory.current", "4096\n");
        write("memory.max", "max\n");
        write("memory.stat", "anon 1\nsock 77\nsocket 3\n");
        write("memory.high", "8192\n");
        write("memory.events", "low 0\nhigh 3\nmax 5\n");
        write("io.pressure", "some avg10=1.50 avg60=0.00 avg300=0.00 total=9\n");
        let found = group(folder.path()).expect("it is there");
        assert_eq!((found.memory_bytes, found.memory_max), (Some(4096), None));
        assert_eq!((found.sock_bytes, found.memory_events_max), (Some(77), Some(5)));
        assert_eq!((found.memory_high, found.memory_events_high), (Some(8192), Some(3)));
        assert_eq!((found.cpu_throttled, found.io_some_avg10), (None, Some(150)));
        assert_eq!(group(&folder.path().join("gone")), None);
    }
}
