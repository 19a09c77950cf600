//! A snapshot of this host.

use std::time::Duration;

use anyhow::Context as _;
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy_linux::collect::{Netns, Options, take};
use tcpwhy_linux::record::Stop;

use super::CheckFlags;
use crate::complain;
use crate::options::Surroundings;

/// Default of `--for`. Ours: long enough for a counter that grows once in some seconds, and still waited for.
const APART: Duration = Duration::from_secs(10);

/// This host, as far as it can be seen.
pub(super) fn this_host(flags: &CheckFlags, around: &Surroundings) -> anyhow::Result<Snapshot> {
    // A path asks for settings: nothing of them grows.
    let default = if flags.path.is_some() { Duration::ZERO } else { APART };
    let apart = Some(flags.apart.unwrap_or(default)).filter(|apart| !apart.is_zero());
    let stop = Stop::listen().context("cannot listen for Ctrl-C")?;
    if let Some(apart) = apart.filter(|_| around.stderr_is_terminal) {
        complain(&format!(
            "looking at this host for {} s; Ctrl-C ends it sooner",
            apart.as_secs_f64()
        ));
    }
    looked_at(flags, apart, Some(stop))
}

/// This host, looked at once, or twice so long apart.
pub(super) fn looked_at(
    flags: &CheckFlags,
    apart: Option<Duration>,
    stop: Option<Stop>,
) -> anyhow::Result<Snapshot> {
    let options = Options {
        netns: flags.netns.as_deref().map(Netns::parse),
        apart,
        processes: true,
        locks: flags.socket,
        drops: flags.drops,
        stop,
    };
    let taken = take(&options);
    // What comes now may take a while, too.
    if let Some(stop) = options.stop {
        stop.release();
    }
    Ok(taken?)
}
