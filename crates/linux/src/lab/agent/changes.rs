//! Changes a host while a run goes on: its settings, and what its kernel remembers of peers.

use std::path::PathBuf;

use clap::Args;
use tcpwhy_model::scenario::plan::HostChange;

use super::log::Side;
use crate::lab::changing::{forget_peers, set};
use crate::lab::folder;
use crate::sys::{Clock, Stop};

/// Which changes, and when they begin.
#[derive(Args)]
pub(super) struct Asked {
    /// The plan, as JSON.
    #[arg(long, default_value = folder::PLAN)]
    plan: PathBuf,
    /// Which host this is.
    #[arg(long)]
    side: Side,
    /// When the first application of the run starts: ns since 1970; absent means now.
    #[arg(long, value_name = "NS")]
    start: Option<u64>,
}

/// Carries out all changes in turn; a signal to end leaves out those that are not due yet.
pub(super) fn run(asked: &Asked, stop: &Stop, ready: impl FnOnce()) -> Result<(), String> {
    let plan = super::read_plan(&asked.plan)?;
    let host = if asked.side == Side::Server { plan.server } else { plan.client };
    let start = asked.start.unwrap_or_else(|| Clock::Real.now());
    ready();
    for change in &host.changes {
        let left = start.saturating_add(change.at_ns).saturating_sub(Clock::Real.now());
        let is_over =
            stop.within(Some(left)).map_err(|e| format!("cannot wait for a change: {e}"))?;
        if is_over {
            break;
        }
        carry_out(change)?;
    }
    Ok(())
}

fn carry_out(change: &HostChange) -> Result<(), String> {
    for (name, value) in &change.sysctl {
        set(name, value)?;
    }
    if change.flush_metrics {
        forget_peers().map_err(|e| format!("cannot flush the metrics of TCP: {e}"))?;
    }
    Ok(())
}
