//! What lies between the hosts while a run goes on: our emulator, or the kernel's own parts.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tcpwhy_model::scenario::plan::{Loss, Plan, Way};

use super::emulator::{Emulator, own_taps};
use super::journal::Tap;
use super::netem;
use super::pump::End;
use super::setup::{Act, Node};
use super::stage::{Stage, Trouble};
use super::sys;
use crate::lab::backend::Manifest;

/// What lies between the hosts.
pub(super) enum Between {
    /// Our emulator.
    Emulator(Emulator),
    /// Routers, and what changes them.
    Routers(Changer),
}

impl Between {
    /// Starts what has to run: an emulator if there are ends for it.
    pub(super) fn start(
        plan: &Plan,
        folder: &Path,
        stage: &Arc<Stage>,
        ends: Option<[End; 2]>,
    ) -> Result<Self, Trouble> {
        Ok(match ends {
            Some(ends) => Self::Emulator(Emulator::start(plan, folder, ends)?),
            None => Self::Routers(Changer::start(plan, stage)?),
        })
    }

    /// The captures that it takes itself.
    pub(super) fn own_taps(&self, plan: &Plan) -> Vec<Tap> {
        match self {
            Self::Emulator(_) => own_taps(plan),
            Self::Routers(_) => Vec::new(),
        }
    }

    /// Says when the first application starts, on `CLOCK_MONOTONIC`.
    pub(super) fn begin(&self, origin_ns: u64) {
        match self {
            Self::Emulator(emulator) => emulator.begin(origin_ns),
            // If it is gone, `alive` says so.
            Self::Routers(changer) => drop(changer.origin.send(origin_ns)),
        }
    }

    /// Whether it can still do its work.
    pub(super) fn alive(&self) -> bool {
        match self {
            Self::Emulator(emulator) => emulator.alive(),
            Self::Routers(changer) => !changer.thread.is_finished(),
        }
    }

    /// Ends it; what it has to say goes into the manifest.
    pub(super) fn stop(self, plan: &Plan, manifest: &mut Manifest) -> Result<(), Trouble> {
        match self {
            Self::Emulator(emulator) => emulator.stop(manifest),
            Self::Routers(changer) => {
                if is_random(plan) {
                    manifest.problems.push(
                        "netem's losses and delays follow no seed: no run is like another"
                            .to_owned(),
                    );
                }
                manifest.clock = Some(super::clock::Clocks::new().finish());
                changer.stop()
            }
        }
    }
}

fn is_random(plan: &Plan) -> bool {
    let random = |way: &Way| way.loss != Loss::None || way.jitter_ns > 0 || way.duplicate > 0;
    random(&plan.path.down) || random(&plan.path.up)
}

/// Carries out the plan's changes at their instants.
pub(super) struct Changer {
    /// Told the start; its end is the end.
    origin: Sender<u64>,
    thread: JoinHandle<Result<(), Trouble>>,
}

impl Changer {
    fn start(plan: &Plan, stage: &Arc<Stage>) -> Result<Self, Trouble> {
        let (origin, told) = channel();
        let (changes, stage) = (netem::changes(plan), Arc::clone(stage));
        let thread = thread::Builder::new()
            .name("changes".to_owned())
            .spawn(move || change(&changes, &stage, &told))
            .map_err(|error| Trouble::Missing {
                doing: "start a thread".to_owned(),
                why: error.to_string(),
                advice: "free some memory or raise the limit on processes".to_owned(),
            })?;
        Ok(Self { origin, thread })
    }

    fn stop(self) -> Result<(), Trouble> {
        drop(self.origin);
        self.thread.join().unwrap_or_else(|_| {
            Err(Trouble::Ended {
                why: "what changes the path failed in itself".to_owned(),
                advice: "this is an error in tcpwhy, please report it".to_owned(),
            })
        })
    }
}

/// Runs until nobody is there any more to tell the start.
fn change(
    changes: &[(u64, Vec<(Node, Act)>)],
    stage: &Stage,
    told: &Receiver<u64>,
) -> Result<(), Trouble> {
    let Ok(origin) = told.recv() else { return Ok(()) };
    for (at_ns, acts) in changes {
        let left = origin.saturating_add(*at_ns).saturating_sub(sys::monotonic_ns());
        if told.recv_timeout(Duration::from_nanos(left)) == Err(RecvTimeoutError::Disconnected) {
            return Ok(());
        }
        for (node, act) in acts {
            stage.carry_out(*node, std::slice::from_ref(act))?;
        }
    }
    // Nothing more changes; to end now would look like a failure.
    let _ = told.recv();
    Ok(())
}
