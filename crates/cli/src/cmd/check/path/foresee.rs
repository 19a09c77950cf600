//! What the model makes of a path with today's settings, and with what is proposed.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde::Serialize;
use tcpwhy::host::Change;
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy::host::target::{Needs, Target};
use tcpwhy_model::predict::Prediction;
use tcpwhy_model::profile::{KernelProfile, Version};
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::world::Kernels;

/// The kernel that the model takes for this one: the newest that it knows and that is not newer.
pub(super) fn kernel(snapshot: &Snapshot) -> KernelProfile {
    let newest = KernelProfile::KNOWN[KernelProfile::KNOWN.len() - 1];
    let mut numbers = snapshot.kernel.as_deref().unwrap_or_default().split(['.', '-']);
    let number = |text: Option<&str>| text?.parse::<u16>().ok();
    let ran = number(numbers.next()).zip(number(numbers.next()));
    let version = ran.map_or(newest, |(major, minor)| {
        Version::new(major, minor).clamp(KernelProfile::KNOWN[0], newest)
    });
    KernelProfile::of(version)
}

/// What the model says of one direction.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Foreseen {
    /// `receiving` or `sending`.
    pub(super) direction: &'static str,
    pub(super) bytes: u64,
    pub(super) today_ns: u64,
    /// With the changes; `None` where nothing of this direction is to be changed.
    pub(super) proposed_ns: Option<u64>,
    #[serde(skip)]
    changes: Vec<Change>,
}

impl Foreseen {
    /// The changes bring what can be felt: a twentieth. Ours.
    pub(super) fn gains(&self) -> bool {
        self.proposed_ns.is_some_and(|ns| ns <= self.today_ns / 20 * 19)
    }

    pub(super) fn rate(&self, ns: u64) -> u64 {
        let rate = u128::from(self.bytes) * 8_000_000_000 / u128::from(ns.max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// Both directions.
pub(super) fn foreseen(
    target: &Target,
    needs: &Needs,
    snapshot: &Snapshot,
    kernel: KernelProfile,
) -> anyhow::Result<Vec<Foreseen>> {
    let bytes = size(target);
    let mut all = Vec::new();
    for (direction, host, other) in
        [("receiving", "client", "net.ipv4.tcp_wmem"), ("sending", "server", "net.ipv4.tcp_rmem")]
    {
        let is_of_it = |change: &&Change| change.subject() != other;
        let changes: Vec<Change> = needs.changes.iter().filter(is_of_it).cloned().collect();
        let took = |changes: &[Change]| took(target, bytes, host, snapshot, changes, kernel);
        let proposed_ns = (!changes.is_empty()).then(|| took(&changes)).transpose()?;
        all.push(Foreseen { direction, bytes, today_ns: took(&[])?, proposed_ns, changes });
    }
    Ok(all)
}

/// What fills the path for five seconds and at least fifty round trips: the start does not count for much then. Ours.
fn size(target: &Target) -> u64 {
    let time_ns = u128::from(target.rtt_ns.saturating_mul(50).max(5_000_000_000));
    let bytes = u128::from(target.rate) * time_ns / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX).clamp(1 << 16, 2_000_000_000)
}

fn took(
    target: &Target,
    bytes: u64,
    host: &str,
    snapshot: &Snapshot,
    changes: &[Change],
    kernel: KernelProfile,
) -> anyhow::Result<u64> {
    let text = scenario(target, bytes, host, snapshot, changes);
    let scenario = Scenario::read("path", &text, &[]).context("the path cannot be modelled")?;
    let plan = scenario.plans(1).next().context("the path cannot be modelled")?;
    let prediction = Prediction::of(&plan, Kernels::both(kernel));
    Ok(prediction.context("the model cannot run these settings")?.time_ns)
}

/// Settings that decide how fast a transfer of ours goes, as far as the model has them.
const SETTINGS: [&str; 10] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_limit_output_bytes",
    "net.core.rmem_max",
    "net.core.wmem_max",
];

/// A transfer between this host, which is `host`, and a peer whose buffers have room for the path.
fn scenario(
    target: &Target,
    bytes: u64,
    host: &str,
    snapshot: &Snapshot,
    changes: &[Change],
) -> String {
    let queue = target.bdp_bytes().max(64 * 1514);
    let mut text = format!(
        "[path]\nrtt = \"{}ns\"\nrate = \"{}bit\"\nqueue = \"{queue}B\"\n[application]\ndownload = \"{bytes}B\"\n",
        target.rtt_ns, target.rate
    );
    let peer = if host == "client" { "server" } else { "client" };
    let room = target.bdp_bytes().saturating_mul(8).clamp(16 << 20, 1 << 30);
    let _ = writeln!(text, "[{peer}.sysctl.net.ipv4]\ntcp_rmem = \"4096 131072 {room}\"");
    let _ = writeln!(text, "tcp_wmem = \"4096 16384 {room}\"");
    let mut own = format!("[{host}.sysctl]\n");
    let settings = snapshot.settings.as_ref().map(|settings| &settings.values);
    for key in SETTINGS {
        let changed = changes.iter().find_map(|change| match change {
            Change::Sysctl { key: of, to, .. } if of == key => Some(to),
            _ => None,
        });
        if let Some(value) = changed.or_else(|| settings?.get(key)) {
            let _ = writeln!(own, "{key} = \"{value}\"");
        }
    }
    text + &own
}

/// The changes that bring something, each once.
pub(super) fn gained(foreseen: &[Foreseen]) -> Vec<&Change> {
    let gained = foreseen.iter().filter(|each| each.gains());
    let mut changes: Vec<&Change> = Vec::new();
    for change in gained.flat_map(|each| &each.changes) {
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    changes
}
