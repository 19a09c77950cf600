//! `--metrics`: looks go on until the end, and a scrape gets what they add up to.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use tcpwhy_linux::collect::{Beside, GroupPaths, Netns};
use tcpwhy_linux::live::confine;
use tcpwhy_linux::record::Stop;

use super::flags::LiveFlags;
use super::watch::{Pace, Watch};
use crate::complain;
use crate::metrics::{Metrics, Rules, Seen, Server};

/// Serves until a signal or the end of its time; `netns` is where the sockets are.
pub(super) fn serve(
    mut watch: Watch,
    (address, netns): (&str, Option<Netns>),
    flags: &LiveFlags,
    stop: &Stop,
) -> anyhow::Result<()> {
    let rules = flags.metrics_rules.as_deref().map(read_rules).transpose()?.unwrap_or_default();
    let server = Server::open(address)?;
    // The threads that answer are confined with this one.
    if flags.capture_when.is_none() {
        confine_to_kernel(netns.as_ref());
    }
    server.answer()?;
    complain(&format!("metrics at http://{}/metrics", server.local()));
    let mut metrics = Metrics::new(rules);
    let (mut groups, mut beside, mut read_ns) = (GroupPaths::default(), Beside::default(), None);
    let mut pace = Pace::new(flags.interval, flags.duration);
    while watch.look()? {
        watch.said.iter().for_each(|said| complain(said));
        watch.caught.iter().for_each(|each| complain(&each.line()));
        if read_ns.is_none_or(|at| watch.t_ns >= at + BESIDE_NS) {
            read_ns = Some(watch.t_ns);
            // A namespace that has gone has no sockets either.
            beside = Beside::read(netns.as_ref()).unwrap_or_default();
        }
        let ids = watch.course.connections().filter_map(|each| each.socket.cgroup);
        metrics.take(&Seen {
            listeners: &watch.listeners,
            time_wait: Some(watch.time_wait),
            cgroups: Some(groups.of(ids)),
            ephemeral: beside.ephemeral,
            counters: beside.counters.as_ref(),
            links: &beside.links,
            ..Seen::new(&watch.course, &watch.ended, watch.t_ns)
        });
        server.publish(metrics.totals().clone());
        if !pace.wait(stop) {
            break;
        }
    }
    watch.end().iter().for_each(|each| complain(&each.line()));
    Ok(())
}

/// Who serves others needs only what the kernel tells. The files of other processes are shut to who is confined, and a namespace
/// that is named by a process is one of them.
fn confine_to_kernel(netns: Option<&Netns>) {
    let folder = match netns {
        Some(Netns::Pid(_)) => return,
        Some(Netns::Path(path)) => path.as_path(),
        Some(Netns::Name(_)) | None => Path::new("/run/netns"),
    };
    match confine(&[Path::new("/proc"), Path::new("/sys"), folder]) {
        Ok(true) => {}
        Ok(false) => complain(
            "this kernel has no Landlock: nothing keeps this process from files that it does not need",
        ),
        Err(error) => {
            complain(&format!("Landlock refuses to keep this process from files: {error}"));
        }
    }
}

fn read_rules(path: &Path) -> anyhow::Result<Rules> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    Rules::read(&text).with_context(|| format!("cannot read {name}"))
}

/// Between two readings of the kernel's counters. Ours: Prometheus scrapes each 15 s mostly, and a driver may take milliseconds.
const BESIDE_NS: u64 = 5_000_000_000;
