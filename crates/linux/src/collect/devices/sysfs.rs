//! Interfaces in `/sys/class/net`: driver, place in the machine, queues.
//!
//! What a mounted `/sys` shows belongs to the namespace that mounted it, which need not be the one that is
//! looked at. So one is mounted nowhere for that (Linux 5.2, needs a right); without it `/sys` is taken if
//! it has the same interfaces.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use tcpwhy::host::snapshot::{ByteQueue, Link, Queues, Source};

use crate::collect::blind::{Blind, read};
use crate::sys::detached_mount;

/// A `/sys` of the namespace of this thread.
#[derive(Debug)]
pub(in crate::collect) struct Sysfs {
    root: PathBuf,
    /// Goes when it is closed.
    _mount: Option<OwnedFd>,
}

impl Sysfs {
    /// Opens one that has these interfaces; says so if there is none.
    pub(in crate::collect) fn open(links: &[Link], blind: &mut Blind) -> Option<Self> {
        let own = match detached_mount(c"sysfs") {
            Ok(mount) => {
                let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
                let own = Self { root, _mount: Some(mount) };
                if own.has(links) {
                    return Some(own);
                }
                io::Error::from(ErrorKind::NotFound)
            }
            Err(error) => error,
        };
        let mounted = Self { root: PathBuf::from("/sys"), _mount: None };
        if mounted.has(links) && mounted.count() == Some(links.len()) {
            return Some(mounted);
        }
        blind.say_with(
            Source::ByteQueues,
            Some("drivers, queues and interrupts of interfaces"),
            format!("/sys shows another namespace, and this one's cannot be mounted: {own}"),
            "run as root, or grant CAP_SYS_ADMIN",
        );
        None
    }

    fn has(&self, links: &[Link]) -> bool {
        let index = |link: &Link| number::<u32>(&self.of(&link.name).join("ifindex"));
        // A name that had to be escaped is none of a folder, and one may have gone since.
        let plain = || links.iter().filter(|link| !link.name.contains('\\'));
        let same = plain().filter(|link| index(link) == Some(link.index)).count();
        same * 10 >= plain().count() * 9
    }

    fn count(&self) -> Option<usize> {
        Some(fs::read_dir(self.root.join("class/net")).ok()?.count())
    }

    fn of(&self, name: &str) -> PathBuf {
        self.root.join("class/net").join(name)
    }

    /// Where the device of an interface is, if it is hardware; above it what it sits on (a `virtio` device
    /// on one of PCI).
    pub(super) fn device(&self, name: &str) -> Option<[PathBuf; 2]> {
        let device = self.of(name).join("device");
        device.exists().then(|| [device.clone(), device.join("..")])
    }

    /// What stays.
    pub(super) fn describe(&self, link: &mut Link) {
        if let Some(places) = self.device(&link.name) {
            let driver = fs::read_link(places[0].join("driver")).ok();
            link.driver = driver.as_deref().and_then(Path::file_name).map(text);
            let node = |place: &PathBuf| number::<i32>(&place.join("numa_node"));
            // -1 is none.
            link.numa_node = places.iter().find_map(node).and_then(|node| u32::try_from(node).ok());
            link.pcie = places.iter().find_map(|place| pcie(place));
        }
        self.queues(link);
        // Drivers without the newer question.
        let of = self.of(&link.name);
        if link.speed.is_none() {
            let speed = number::<i64>(&of.join("speed")).filter(|&speed| speed > 0);
            link.speed = speed.and_then(|speed| speed.unsigned_abs().checked_mul(1_000_000));
        }
    }

    fn queues(&self, link: &mut Link) {
        let Some([receive, send]) = self.folders(&link.name) else { return };
        let combined = link.queues.take().and_then(|queues| queues.combined);
        let line = |path: PathBuf| read(&path).ok().map(|text| text.trim().to_owned());
        let lines = |folders: &[PathBuf], name: &str| {
            folders.iter().map_while(|folder| line(folder.join(name))).collect::<Vec<_>>()
        };
        let flows = lines(&receive, "rps_flow_cnt");
        link.queues = Some(Queues {
            rx: u32::try_from(receive.len()).ok(),
            tx: u32::try_from(send.len()).ok(),
            combined,
            rps_cpus: lines(&receive, "rps_cpus"),
            rps_flow_cnt: flows.iter().map_while(|flows| flows.parse().ok()).collect(),
            xps_cpus: lines(&send, "xps_cpus"),
            tx_timeout: None,
        });
    }

    /// Folders of the queues in their order: for receiving, for sending.
    fn folders(&self, name: &str) -> Option<[Vec<PathBuf>; 2]> {
        let mut found = [Vec::new(), Vec::new()];
        for entry in fs::read_dir(self.of(name).join("queues")).ok()?.flatten() {
            let own = entry.file_name();
            let Some((way, number)) = own.to_str().and_then(|own| own.split_once('-')) else {
                continue;
            };
            let (Some(way), Ok(number)) =
                (["rx", "tx"].iter().position(|w| *w == way), number.parse::<u32>())
            else {
                continue;
            };
            found[way].push((number, entry.path()));
        }
        Some(found.map(|mut queues| {
            queues.sort();
            queues.into_iter().map(|(_, path)| path).collect()
        }))
    }

    /// What changes: limits and timeouts of send queues.
    pub(super) fn look(&self, link: &mut Link) {
        let Some([_, send]) = self.folders(&link.name) else { return };
        let timeouts: Vec<u64> =
            send.iter().map_while(|queue| number(&queue.join("tx_timeout"))).collect();
        if let Some(queues) = &mut link.queues {
            let all = timeouts.len() == send.len() && !send.is_empty();
            queues.tx_timeout = all.then(|| timeouts.iter().sum());
        }
        link.byte_queues = Some(send.iter().map_while(|queue| byte_queue(queue)).collect());
    }
}

/// `byte_queue_limits` of a send queue; `None` where its driver has none.
fn byte_queue(queue: &Path) -> Option<ByteQueue> {
    let folder = queue.join("byte_queue_limits");
    let at = |name: &str| number(&folder.join(name));
    Some(ByteQueue {
        limit: at("limit")?,
        limit_min: at("limit_min")?,
        limit_max: at("limit_max")?,
        inflight: at("inflight")?,
    })
}

/// Speed and width, now and at most.
fn pcie(place: &Path) -> Option<[String; 2]> {
    let told = |which: &str| {
        let part = |what: &str| read(&place.join(format!("{which}_link_{what}"))).ok();
        let (speed, width) = (part("speed")?, part("width")?);
        let known = |text: &str| !text.is_empty() && !text.starts_with("Unknown");
        let (speed, width) = (speed.trim(), width.trim());
        (known(speed) && known(width) && width != "0").then(|| format!("{speed} x{width}"))
    };
    Some([told("current")?, told("max")?])
}

/// A number alone in a file; some files refuse to be read while an interface is down.
fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    read(path).ok()?.trim().parse().ok()
}

fn text(name: &OsStr) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    crate::collect::blind::shown(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().expect("a folder");
        for (name, value) in files {
            let path = root.path().join("class/net").join(name);
            fs::create_dir_all(path.parent().expect("has one")).expect("folders");
            fs::write(path, value).expect("a file");
        }
        let sysfs = Sysfs { root: root.path().to_owned(), _mount: None };
        (root, sysfs)
    }

    #[test]
    fn queues_are_counted_in_their_order() {
        let (_root, sysfs) = tree(&[
            ("e/ifindex", "2\n"),
            ("e/queues/rx-0/rps_cpus", "0\n"),
            ("e/queues/rx-10/rps_cpus", "3\n"),
            ("e/queues/rx-2/rps_cpus", "f\n"),
            ("e/queues/tx-0/tx_timeout", "4\n"),
            ("e/queues/tx-0/byte_queue_limits/limit", "300\n"),
            ("e/queues/tx-0/byte_queue_limits/limit_min", "0\n"),
            ("e/queues/tx-0/byte_queue_limits/limit_max", "1879048192\n"),
            ("e/queues/tx-0/byte_queue_limits/inflight", "100\n"),
            ("e/queues/odd", ""),
            ("e/device/numa_node", "-1\n"),
            ("e/device/current_link_speed", "8.0 GT/s PCIe\n"),
            ("e/device/current_link_width", "4\n"),
            ("e/device/max_link_speed", "16.0 GT/s PCIe\n"),
            ("e/device/max_link_width", "8\n"),
            ("e/speed", "-1\n"),
        ]);
        let mut link = Link { name: "e".to_owned(), index: 2, ..Link::default() };
        assert!(sysfs.has(&[link.clone()]));
        sysfs.describe(&mut link);
        sysfs.look(&mut link);
        let queues = link.queues.expect("told");
        assert_eq!((queues.rx, queues.tx, queues.tx_timeout), (Some(3), Some(1), Some(4)));
        assert_eq!(queues.rps_cpus, ["0", "f", "3"]);
        assert_eq!(link.byte_queues.expect("told")[0].limit, 300);
        assert_eq!((link.numa_node, link.speed), (None, None));
        assert_eq!(
            link.pcie,
            Some(["8.0 GT/s PCIe x4".to_owned(), "16.0 GT/s PCIe x8".to_owned()])
        );
    }

    #[test]
    fn interfaces_of_another_namespace_are_noticed() {
        let (_root, sysfs) = tree(&[("lo/ifindex", "1\n"), ("eth0/ifindex", "2\n")]);
        let named = |name: &str, index| Link { name: name.to_owned(), index, ..Link::default() };
        assert!(sysfs.has(&[named("lo", 1)]));
        assert!(!sysfs.has(&[named("lo", 1), named("eth0", 5)]));
        assert!(!sysfs.has(&[named("eth1", 2)]));
        assert!(sysfs.has(&[named("lo", 1), named(r"a\u{1b}", 7)]), "a hostile name");
        assert_eq!(sysfs.count(), Some(2));
    }
}
