//! What the model makes of a path with today's settings, and with what is proposed.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde::Serialize;
use tcpwhy::host::Change;
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy::host::target::{Needs, Target};
use tcpwhy::units::Bytes;
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

/// Both directions; why not, where the model does not have such a path or such settings.
pub(super) fn foreseen(
    target: &Target,
    needs: &Needs,
    snapshot: &Snapshot,
    kernel: KernelProfile,
) -> Result<Vec<Foreseen>, String> {
    let all =
        [("receiving", "client", "net.ipv4.tcp_wmem"), ("sending", "server", "net.ipv4.tcp_rmem")];
    let each = all.map(|(direction, host, other)| {
        let is_of_it = |change: &&Change| change.subject() != other;
        let changes: Vec<Change> = needs.changes.iter().filter(is_of_it).cloned().collect();
        let took = |bytes, changes: &[Change]| took(target, bytes, host, snapshot, changes, kernel);
        let mut bytes = size(target);
        while bytes >= LEAST {
            let today = took(bytes, &[])?;
            let proposed =
                if changes.is_empty() { Some(None) } else { took(bytes, &changes)?.map(Some) };
            if let (Some(today_ns), Some(proposed_ns)) = (today, proposed) {
                return Ok(Foreseen { direction, bytes, today_ns, proposed_ns, changes });
            }
            // It did not end within the time that a scenario is given: less does.
            bytes /= 8;
        }
        anyhow::bail!(
            "not even {} come through in the two minutes that the model waits",
            Bytes(LEAST)
        )
    });
    each.into_iter().collect::<anyhow::Result<_>>().map_err(|why| format!("{why:#}"))
}

/// What fills the path for two seconds and at least fifty round trips: the start does not count for much then. At
/// most 500 MB, which the model takes a second or two for. Ours.
fn size(target: &Target) -> u64 {
    let time_ns = u128::from(target.rtt_ns.saturating_mul(50).max(2_000_000_000));
    let bytes = u128::from(target.rate) * time_ns / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX).clamp(1 << 16, 500_000_000)
}

/// Less says nothing of buffers. Ours.
const LEAST: u64 = 1 << 14;

/// `None` where the transfer did not end in the time that a scenario is given.
fn took(
    target: &Target,
    bytes: u64,
    host: &str,
    snapshot: &Snapshot,
    changes: &[Change],
    kernel: KernelProfile,
) -> anyhow::Result<Option<u64>> {
    let text = scenario(target, bytes, host, snapshot, changes);
    // Where in a text that nobody wrote it is wrong helps nobody.
    let scenario = Scenario::read("path", &text, &[]).map_err(|error| {
        anyhow::anyhow!("the model has no such path: {}", reason(&error.to_string()))
    })?;
    let plan = scenario.plans(1).next().context("the model has no such path")?;
    let prediction = Prediction::of(&plan, Kernels::both(kernel));
    let prediction = prediction.context("the model cannot run these settings")?;
    Ok(prediction.unfinished.is_empty().then_some(prediction.time_ns))
}

/// A fault of a scenario without its place.
fn reason(error: &str) -> &str {
    error.find('`').and_then(|at| error.get(at..)).unwrap_or(error)
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
    let queue = target.bdp_bytes().clamp(64 * 1514, 4 << 30);
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
        if !changes.contains(&change) && change.is_sayable(None) {
            changes.push(change);
        }
    }
    changes
}
