//! The namespaces of a run, and what is carried out inside them.
//!
//! They have no names: nothing is mounted, and they are gone when the processes that are in them
//! and the descriptors here are. The process that builds them leaves its own network first and
//! never comes back to it, so that no mistake in what follows can touch the host's.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::setup::{Act, Deed, Node, is_setting};
use super::sys::{self, Own};
use crate::lab::changing::forget_peers;

/// Why nothing could be built, or what is to be told to whoever asked.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
pub(super) enum Trouble {
    /// The plan asks for what this kernel cannot do.
    #[error("cannot do {what}: {why}; {instead}")]
    Refused { what: String, why: String, instead: String },
    /// A right, a device or a program is missing.
    #[error("cannot {doing}: {why}; {advice}")]
    Missing { doing: String, why: String, advice: String },
    /// A file of the run cannot be written.
    #[error("cannot write {path}: {why}")]
    File { path: String, why: String, errno: Option<i32> },
    /// A part of the run failed while it ran.
    #[error("{why}; {advice}")]
    Ended { why: String, advice: String },
}

impl Trouble {
    /// What went wrong, without what to do about it.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Refused { why, .. }
            | Self::Missing { why, .. }
            | Self::File { why, .. }
            | Self::Ended { why, .. } => why,
        }
    }
}

/// Namespaces, each held open.
#[derive(Debug)]
pub(super) struct Stage {
    nodes: BTreeMap<Node, OwnedFd>,
    /// Where this thread stays when it does nothing in a node.
    nowhere: OwnedFd,
}

impl Stage {
    /// Leaves the host's network and makes a namespace for each node.
    pub(super) fn build(nodes: &[Node]) -> Result<Self, Trouble> {
        let made = || -> io::Result<OwnedFd> {
            sys::unshare(Own::Network)?;
            sys::own_network()
        };
        let build = || -> io::Result<Self> {
            let nowhere = made()?;
            let nodes = nodes.iter().map(|node| Ok((*node, made()?)));
            let nodes = nodes.collect::<io::Result<_>>()?;
            sys::enter_network(nowhere.as_fd())?;
            Ok(Self { nodes, nowhere })
        };
        build().map_err(|error| Trouble::Missing {
            doing: "make a network namespace".to_owned(),
            why: error.to_string(),
            advice: namespace_advice(&error),
        })
    }

    /// A node's namespace; all that were asked for are there.
    pub(super) fn namespace(&self, node: Node) -> BorrowedFd<'_> {
        self.nodes.get(&node).unwrap_or(&self.nowhere).as_fd()
    }

    /// A path by which other programs of ours find a node's namespace.
    pub(super) fn path_of(&self, node: Node) -> String {
        // By the number that `/proc` knows us by, which in a process namespace is not our own.
        let own = fs::read_link("/proc/self").unwrap_or_default();
        format!("/proc/{}/fd/{}", own.display(), self.namespace(node).as_raw_fd())
    }

    /// Does something inside a node's namespace, on this thread.
    pub(super) fn inside<T>(&self, node: Node, act: impl FnOnce() -> T) -> io::Result<T> {
        sys::enter_network(self.namespace(node))?;
        let done = act();
        sys::enter_network(self.nowhere.as_fd())?;
        Ok(done)
    }

    /// Carries acts out in a node, until one fails.
    pub(super) fn carry_out(&self, node: Node, acts: &[Act]) -> Result<(), Trouble> {
        self.inside(node, || acts.iter().try_for_each(carry_out)).map_err(|error| {
            Trouble::Missing {
                doing: format!("enter the {}'s namespace", node.name()),
                why: error.to_string(),
                advice: namespace_advice(&error),
            }
        })?
    }

    /// Settings of a node as they are, by their names; what is not there is left out.
    pub(super) fn settings<'a>(
        &self,
        node: Node,
        names: impl Iterator<Item = &'a str>,
    ) -> BTreeMap<String, String> {
        let read = || {
            names
                .filter(|name| is_setting(name))
                .filter_map(|name| {
                    let value = fs::read_to_string(path_of(name)).ok()?;
                    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                    Some((format!("{}.{name}", node.name()), value))
                })
                .collect()
        };
        self.inside(node, read).unwrap_or_default()
    }
}

fn carry_out(act: &Act) -> Result<(), Trouble> {
    match &act.deed {
        Deed::Sysctl(name, value) => set(act, name, value),
        Deed::SysctlIfThere(name, value) => match set(act, name, value) {
            Err(_) if !path_of(name).exists() => Ok(()),
            done => done,
        },
        Deed::Run(words) => run(act, words),
        Deed::ForgetPeers => forget_peers().map_err(|error| Trouble::Refused {
            what: act.blame.clone().unwrap_or_else(|| "to flush tcp_metrics".to_owned()),
            why: format!("the kernel refuses ({error})"),
            instead: match error.kind() {
                io::ErrorKind::PermissionDenied => "run it as root, or use --backend uml",
                _ => "use --backend uml",
            }
            .to_owned(),
        }),
        Deed::PlainSegments(device) => {
            sys::plain_segments(device).map_err(|error| Trouble::Missing {
                doing: format!("turn the offloads of {device} off"),
                why: error.to_string(),
                advice: "use --backend tun".to_owned(),
            })
        }
    }
}

fn set(act: &Act, name: &str, value: &str) -> Result<(), Trouble> {
    let refused = |why: String, instead: String| Trouble::Refused {
        what: act.blame.clone().unwrap_or_else(|| format!("the setting {name}")),
        why,
        instead,
    };
    if !is_setting(name) {
        let why = "only settings below `net.` belong to a host of the lab".to_owned();
        return Err(refused(why, "leave it out".to_owned()));
    }
    fs::write(path_of(name), value).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if name == CONGESTION => refused(
            "this kernel has no such congestion control, or does not allow it here".to_owned(),
            "name it on the route (`congctl`) or at the socket".to_owned(),
        ),
        io::ErrorKind::NotFound => refused(
            "this kernel has no such setting in a network namespace".to_owned(),
            "look for its name in ip-sysctl, or leave it out".to_owned(),
        ),
        io::ErrorKind::PermissionDenied if path_of(name).exists() => refused(
            "it belongs to the whole machine, which the lab leaves alone".to_owned(),
            "leave it out, or use --backend uml, whose kernel is its own".to_owned(),
        ),
        _ => refused(
            format!("the kernel does not take \"{value}\" ({error})"),
            "look up its values in ip-sysctl".to_owned(),
        ),
    })
}

fn run(act: &Act, words: &[String]) -> Result<(), Trouble> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let line = words.join(" ");
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", search_path()).stdin(Stdio::null());
    let done = command.output().map_err(|error| Trouble::Missing {
        doing: format!("run `{line}`"),
        why: error.to_string(),
        advice: "install iproute2".to_owned(),
    })?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = said.collect::<Vec<_>>().join(", ");
    Err(match &act.blame {
        Some(what) => Trouble::Refused {
            what: what.clone(),
            why: format!("`{line}` says: {said}"),
            instead: alternative(words),
        },
        None => Trouble::Missing {
            doing: format!("run `{line}`"),
            why: said,
            advice: "the kernel may lack a part of its network stack; try --backend uml".to_owned(),
        },
    })
}

/// Where programs are looked for: also where `tc` is, which ordinary users of Debian do not search.
fn search_path() -> OsString {
    let own = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let all = env::split_paths(&own).filter(|folder| !folder.as_os_str().is_empty()).chain(more);
    env::join_paths(all).unwrap_or(own)
}

/// What would do in place of what this kernel did not take.
fn alternative(words: &[String]) -> String {
    let asks = |word: &str| words.iter().any(|one| one == word);
    let module = ["fq", "fq_codel", "tbf", "netem", "police"].into_iter().find(|word| asks(word));
    match module {
        Some("netem") => "load sch_netem, or use --backend tun".to_owned(),
        Some("police") => {
            "load act_police and cls_matchall, or put the bucket on the path".to_owned()
        }
        Some("tbf") => "load sch_tbf, or put the bucket on the path".to_owned(),
        Some(module) => format!("load sch_{module}, or use --backend uml"),
        None => "see ip-route(8) for what a route may carry".to_owned(),
    }
}

/// What to try when namespaces are refused.
pub(super) fn namespace_advice(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "run it as root, or allow user namespaces (kernel.unprivileged_userns_clone=1, \
             kernel.apparmor_restrict_unprivileged_userns=0), or use --backend uml"
        }
        Some(libc::ENOSPC | libc::EUSERS) => {
            "raise user.max_net_namespaces and user.max_user_namespaces"
        }
        Some(libc::EINVAL | libc::ENOSYS) => {
            "this kernel has no such namespaces (CONFIG_NET_NS, CONFIG_USER_NS); use --backend uml"
        }
        _ => "use --backend uml",
    }
    .to_owned()
}

fn path_of(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

const CONGESTION: &str = "net.ipv4.tcp_congestion_control";
