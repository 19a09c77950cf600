//! The settings of the network and of descriptors: `/proc/sys/net`, and of `/proc/sys/fs` two.
//!
//! The kernel shows each namespace its own below the same names. The values of secrets are left
//! out, not their names. Left out as well is what can only be written.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tcpwhy::host::snapshot::{Settings, Source};

use super::blind::{Blind, read, shown};

/// Those of the namespace of this thread.
pub(super) fn settings(blind: &mut Blind) -> Option<Settings> {
    of(Path::new("/proc/sys"), blind)
}

fn of(root: &Path, blind: &mut Blind) -> Option<Settings> {
    let settings = Settings { complete: true, ..Settings::default() };
    let mut walk = Walk { settings, refused: None, blind };
    if let Err(error) = walk.folder(&root.join("net"), "net", 0) {
        walk.blind.refused(Source::Settings, Some("/proc/sys/net"), &error);
        return None;
    }
    for name in ["file-max", "nr_open"] {
        walk.file(&root.join("fs").join(name), format!("fs.{name}"));
    }
    walk.tell_refused();
    Some(walk.settings)
}

struct Walk<'a> {
    settings: Settings,
    /// The first that was refused, why, and how many were.
    refused: Option<(String, io::Error, u32)>,
    blind: &'a mut Blind,
}

impl Walk<'_> {
    fn tell_refused(&mut self) {
        let Some((name, error, count)) = self.refused.take() else { return };
        let of = if count == 1 { name } else { format!("{name} and {} more", count - 1) };
        self.blind.refused(Source::Settings, Some(&of), &error);
    }

    fn folder(&mut self, path: &Path, name: &str, depth: usize) -> io::Result<()> {
        let is_of_interfaces = INTERFACES.contains(&name);
        let mut interfaces = 0;
        for entry in fs::read_dir(path)? {
            let Ok(entry) = entry else { break };
            // sysctl(8) writes the dot of a name (`eth0.100`) as a slash.
            let own = shown(entry.file_name().as_bytes()).replace('.', "/");
            let name = format!("{name}.{own}");
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.file(&entry.path(), name);
                continue;
            }
            if is_of_interfaces && !matches!(own.as_str(), "all" | "default") {
                interfaces += 1;
            }
            if interfaces > MOST_INTERFACES || depth > DEEPEST {
                self.settings.complete = false;
                let why = format!("more than {MOST_INTERFACES} interfaces: some were left out");
                self.blind.say(Source::Settings, Some(name.as_str()), why);
                break;
            }
            // Gone with its interface.
            let _ = self.folder(&entry.path(), &name, depth + 1);
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: String) {
        if SECRETS.iter().any(|end| name.ends_with(end)) {
            self.settings.unread.insert(name);
            return;
        }
        match read(path) {
            Ok(text) => {
                let value = text.split_whitespace().collect::<Vec<_>>().join(" ");
                self.settings.values.insert(name, value);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                // What starts something when it is written has no value (`route.flush`).
                let mode = fs::metadata(path).map_or(0, |meta| meta.permissions().mode());
                if mode & 0o444 != 0 {
                    self.refused.get_or_insert_with(|| (name.clone(), error, 0)).2 += 1;
                    self.settings.unread.insert(name);
                }
            }
        }
    }
}

/// Folders that hold one for each interface.
const INTERFACES: [&str; 4] =
    ["net.ipv4.conf", "net.ipv6.conf", "net.ipv4.neigh", "net.ipv6.neigh"];

/// Ours: an interface has about 150 settings at 5 us each (Linux 6.18), so these are 200 ms.
const MOST_INTERFACES: usize = 256;

/// Deeper than any folder of Linux 6.18 (`net.ipv4.conf.all`).
const DEEPEST: usize = 8;

/// Keys of Fast Open cookies, of stable addresses, and of the hash that spreads packets over queues.
const SECRETS: [&str; 3] = ["tcp_fastopen_key", "stable_secret", "netdev_rss_key"];

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (name, value) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("has one")).expect("folders");
            fs::write(path, value).expect("a file");
        }
        root
    }

    #[test]
    fn names_are_those_of_sysctl_and_secrets_stay_where_they_are() {
        let root = tree(&[
            ("net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            ("net/ipv4/conf/eth0.100/rp_filter", "1\n"),
            ("net/ipv4/tcp_fastopen_key", "c0ffee\n"),
            ("fs/file-max", "9223372036854775807\n"),
        ]);
        let mut blind = Blind::default();
        let settings = of(root.path(), &mut blind).expect("a tree");
        let values: Vec<_> =
            settings.values.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            values,
            [
                ("fs.file-max", "9223372036854775807"),
                ("net.ipv4.conf.eth0/100.rp_filter", "1"),
                ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ]
        );
        assert!(settings.complete);
        assert!(settings.unread.contains("net.ipv4.tcp_fastopen_key"));
    }

    #[test]
    fn without_proc_nothing_is_known() {
        let mut blind = Blind::default();
        assert_eq!(of(Path::new("/nonexistent"), &mut blind), None);
        assert_eq!(blind.into_unseen()[0].source, "settings");
    }

    #[test]
    fn folders_of_too_many_interfaces_are_cut_and_that_is_said() {
        let names: Vec<String> =
            (0..=MOST_INTERFACES).map(|n| format!("net/ipv4/conf/v{n}/forwarding")).collect();
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), "0\n")).collect();
        let root = tree(&files);
        let mut blind = Blind::default();
        let settings = of(root.path(), &mut blind).expect("a tree");
        assert!(!settings.complete);
        assert_eq!(settings.values.len(), MOST_INTERFACES);
        assert_eq!(blind.into_unseen().len(), 1);
    }

    #[test]
    fn this_machine_has_the_settings_that_every_linux_has() {
        let mut blind = Blind::default();
        let settings = settings(&mut blind).expect("/proc is mounted");
        for name in ["net.ipv4.tcp_rmem", "net.core.somaxconn", "net.ipv4.conf.lo.rp_filter"] {
            assert!(settings.values.contains_key(name), "{name}");
        }
    }
}
