//! The same plan in the model of the kernel that ran it, under the settings that its hosts had.
//!
//! Where chance decides, other dice are thrown as well, and the model's answer is the range of all.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::{fs, io};

use serde::Serialize;
use tcpwhy_linux::lab::backend::{Backend, Manifest};
use tcpwhy_linux::lab::model::Model;
use tcpwhy_model::predict::Prediction;
use tcpwhy_model::profile::{KernelProfile, Sysctl, Version};
use tcpwhy_model::scenario::plan::{Host, Plan};
use tcpwhy_model::world::Kernels;

use super::outcome::{Outcome, judge};
use super::spread::Spread;

/// What the model says of a variant.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Modelled {
    /// The kernel whose model it is, as `6.12`.
    pub(super) kernel: String,
    /// As of the runs; over several throws of the dice where chance decides. `null` if the model cannot run it.
    pub(super) time_ns: Option<Spread>,
    /// The time of the first throw.
    #[serde(skip)]
    pub(super) first_ns: Option<i64>,
    /// Time in each state by the model's own account, of the first throw.
    pub(super) states_ns: BTreeMap<String, u64>,
    /// Why it cannot.
    pub(super) refused: Option<String>,
}

/// Runs `plan`, which was carried out as `manifest` says, in the model; its records lie below `root` meanwhile.
///
/// # Errors
/// They cannot be written or read.
pub(super) fn modelled(
    plan: &Plan,
    manifest: &Manifest,
    root: &Path,
    stop: &AtomicBool,
) -> anyhow::Result<Modelled> {
    let version = version_of(&manifest.kernel);
    let plan = as_it_was(plan, manifest);
    let model = Model::new(Some(&version.to_string()));
    let mut told = Modelled { kernel: version.to_string(), ..Modelled::default() };
    if let Err(refusal) = model.check(&plan) {
        told.refused = Some(refusal.why);
        return Ok(told);
    }
    let folder = root.join("model");
    let done = run(&model, &plan, &folder, stop);
    let swept = fs::remove_dir_all(&folder);
    let (manifest, outcome) = done?;
    swept?;
    if let Some(problem) = manifest.problems.first() {
        told.refused = Some(problem.clone());
        return Ok(told);
    }
    told.time_ns = Some(thrown(&plan, Kernels::both(KernelProfile::of(version)), outcome.time_ns));
    told.first_ns = Some(outcome.time_ns);
    told.states_ns = outcome.kernel.unwrap_or_default();
    Ok(told)
}

/// The time of a run and, where chance decides, of others with other dice: longer or shorter by as much as the model
/// predicts for their last byte.
fn thrown(plan: &Plan, kernels: Kernels, time_ns: i64) -> Spread {
    let throws = if plan.path.is_by_chance() { THROWS } else { 1 };
    let predicted = |throw| {
        let plan = Plan { seed: plan.seed.wrapping_add(throw), ..plan.clone() };
        let run = Prediction::of(&plan, kernels).ok()?;
        run.unfinished.is_empty().then(|| i64::try_from(run.time_ns).ok()).flatten()
    };
    let Some(first) = predicted(0) else { return Spread::of([time_ns]) };
    let others = (1..throws).filter_map(predicted).map(|other| time_ns + other - first);
    Spread::of(others.chain([time_ns]))
}

fn run(
    model: &Model,
    plan: &Plan,
    folder: &Path,
    stop: &AtomicBool,
) -> anyhow::Result<(Manifest, Outcome)> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir(folder)?,
    }
    let manifest = model.run(plan, folder)?;
    let outcome = judge(plan, folder, stop)?;
    Ok((manifest, outcome))
}

/// The version that the model has of a kernel's, as `uname -r` writes it: the nearest one it knows.
fn version_of(kernel: &str) -> Version {
    let [oldest, .., newest] = KernelProfile::KNOWN;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let mut parts = kernel.split('.').map(|part| digits(part).parse::<u16>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => Version::new(major, minor).clamp(oldest, newest),
        _ => newest,
    }
}

/// The plan with the settings that its hosts had, as far as the model knows them.
fn as_it_was(plan: &Plan, manifest: &Manifest) -> Plan {
    let host = |name: &str, host: &Host| {
        let mut host = host.clone();
        let prefix = format!("{name}.");
        let mut known = Sysctl::of(&KernelProfile::of(version_of(&manifest.kernel)));
        for (knob, value) in &manifest.knobs {
            let Some(knob) = knob.strip_prefix(&prefix) else { continue };
            if known.set(knob, value).is_ok() {
                host.sysctl.entry(knob.to_owned()).or_insert_with(|| value.clone());
            }
        }
        for (knob, value) in [RMEM_MAX, WMEM_MAX].into_iter().filter_map(of_this_kernel(manifest)) {
            host.sysctl.entry(knob).or_insert(value);
        }
        host
    };
    Plan {
        client: host("client", &plan.client),
        server: host("server", &plan.server),
        ..plan.clone()
    }
}

/// Limits that no namespace has of its own: of the kernel that runs, they can be read where they are.
fn of_this_kernel(manifest: &Manifest) -> impl Fn(&str) -> Option<(String, String)> {
    let is_running = matches!(manifest.backend.as_str(), "tun" | "netem");
    move |name: &str| {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        let value = is_running.then(|| fs::read_to_string(path).ok()).flatten()?;
        Some((name.to_owned(), value.trim().to_owned()))
    }
}

const RMEM_MAX: &str = "net.core.rmem_max";
const WMEM_MAX: &str = "net.core.wmem_max";

/// Ours: as many as `predict` throws.
const THROWS: u64 = tcpwhy_model::chance::THROWS as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_kernel_that_the_model_knows_is_taken() {
        for (kernel, version) in [
            ("6.18.44-fc-v657", "6.18"),
            ("6.1.192", "6.1"),
            ("3.10.0-el7", "4.18"),
            ("9.0", "6.18"),
            ("6.12-rc1", "6.12"),
            ("what", "6.18"),
        ] {
            assert_eq!(version_of(kernel).to_string(), version, "{kernel}");
        }
    }

    #[test]
    fn settings_of_the_hosts_are_the_models_but_for_those_it_does_not_know() {
        let knobs = [
            ("server.net.ipv4.tcp_rmem", "4096 131072 33554432"),
            ("server.net.ipv4.tcp_sack", "0"),
            ("server.net.ipv4.tcp_nonsense", "1"),
        ];
        let knobs = knobs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let manifest = Manifest { kernel: "6.1.1".to_owned(), knobs, ..Manifest::default() };
        let mut plan = Plan::default();
        plan.server.sysctl.insert("net.ipv4.tcp_sack".to_owned(), "1".to_owned());
        let plan = as_it_was(&plan, &manifest);
        assert_eq!(plan.server.sysctl["net.ipv4.tcp_rmem"], "4096 131072 33554432");
        assert_eq!(plan.server.sysctl["net.ipv4.tcp_sack"], "1", "the plan said so");
        assert_eq!((plan.server.sysctl.len(), plan.client.sysctl.len()), (2, 0));
    }
}
