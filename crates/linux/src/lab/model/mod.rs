//! The backend without a kernel: the model of Linux TCP carries a plan out.
//!
//! Its records are those of an observed kernel ([`records`]), so that whatever judges kernels judges
//! it, too. There is no tap in the middle; captures hold headers as the network device sends them,
//! before any offload of the receiver.

mod records;

use std::path::Path;

use tcpwhy_model::profile::{KernelProfile, Version};
use tcpwhy_model::scenario::plan::Plan;
use tcpwhy_model::world::{Keep, Kernels, Tap, World};

use super::backend::{Backend, ClockMap, LabError, Manifest, Refusal};
use super::folder;

/// Runs plans in the model.
#[derive(Clone, Debug)]
pub struct Model {
    version: Option<String>,
}

impl Model {
    /// The model of this version of Linux, as `6.1`; with none, of the one that `make uml` builds.
    pub fn new(version: Option<&str>) -> Self {
        Self { version: version.map(str::to_owned) }
    }

    fn kernels(&self) -> Result<Kernels, Refusal> {
        let typed = self.version.as_deref().unwrap_or(DEFAULT);
        let known = typed.parse::<Version>().ok().and_then(KernelProfile::known);
        known.map(Kernels::both).ok_or_else(|| {
            let [oldest, .., newest] = KernelProfile::KNOWN;
            let why = format!("the model knows {oldest} to {newest}");
            self.refusal(format!("Linux {typed}"), why, "name another version".to_owned())
        })
    }

    fn world(&self, plan: &Plan, keep: Keep) -> Result<World, Refusal> {
        World::new(plan, self.kernels()?, keep).map_err(|error| {
            let instead = "use --backend uml".to_owned();
            self.refusal("this plan".to_owned(), error.to_string(), instead)
        })
    }

    fn refusal(&self, what: String, why: String, instead: String) -> Refusal {
        Refusal { backend: self.name(), what, why, instead }
    }
}

impl Backend for Model {
    fn name(&self) -> String {
        self.version
            .as_ref()
            .map_or_else(|| "model".to_owned(), |version| format!("model:{version}"))
    }

    fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        self.world(plan, Keep::default()).map(drop)
    }

    fn run(&self, plan: &Plan, folder: &Path) -> Result<Manifest, LabError> {
        let keep =
            Keep { segments: true, handed_down: true, notes: true, links: true, ..Keep::default() };
        let (outcome, trace) = self.world(plan, keep)?.run();
        let write = |name: &str, content: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, content).map_err(|source| LabError::writing(&path, source))
        };
        write(folder::PLAN, &serde_json::to_vec_pretty(plan).unwrap_or_default())?;
        let [client, server, _] = folder::CAPTURES;
        write(client, &trace.pcapng(Tap::Client, plan.ipv6))?;
        write(server, &trace.pcapng(Tap::Server, plan.ipv6))?;
        write(folder::KERNEL, records::kernel(&trace).as_bytes())?;
        write(folder::APPLICATIONS, records::applications(&trace).as_bytes())?;
        write(folder::LINKS, records::links(&trace).as_bytes())?;
        let mut manifest = Manifest {
            backend: self.name(),
            kernel: format!("model of {}", self.version.as_deref().unwrap_or(DEFAULT)),
            valid: true,
            clock: Some(ClockMap::default()),
            ..Manifest::default()
        };
        manifest.tools.insert("tcpwhy".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        outcome.waiting.into_iter().for_each(|waiting| manifest.distrust(waiting));
        manifest.write(folder)?;
        Ok(manifest)
    }
}

/// What `make uml` builds if it is not told otherwise.
const DEFAULT: &str = "6.1";

#[cfg(test)]
mod tests {
    use tcpwhy_model::scenario::Scenario;

    use super::*;

    fn plan(text: &str) -> Plan {
        let scenario = Scenario::read("test", text, &[]).expect("a scenario");
        scenario.plans(1).next().expect("a plan")
    }

    #[test]
    fn a_run_leaves_captures_and_the_senders_account() {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = plan("[path]\nrtt = \"20ms\"\n[application]\ndownload = \"200kB\"\n");
        let manifest = Model::new(Some("6.12")).run(&plan, folder.path()).expect("it runs");
        assert!(manifest.valid, "{:?}", manifest.problems);
        let size = |name: &str| std::fs::metadata(folder.path().join(name)).map_or(0, |m| m.len());
        for name in [
            folder::CAPTURES[0],
            folder::CAPTURES[1],
            folder::APPLICATIONS,
            folder::LINKS,
            folder::PLAN,
        ] {
            assert!(size(name) > 0, "{name}");
        }
        let kernel = std::fs::read_to_string(folder.path().join(folder::KERNEL)).expect("records");
        for said in ["\"why\":\"cwnd\"", "\"where\":\"ack\"", "\"event\":\"tcp_segment\""] {
            assert!(kernel.contains(said), "{said}");
        }
    }

    #[test]
    fn what_the_model_lacks_is_refused_before_anything_starts() {
        let odd =
            plan("[server]\nsocket.congestion = \"vegas\"\n[application]\ndownload = \"1kB\"\n");
        let refusal = Model::new(None).check(&odd).expect_err("no such algorithm");
        assert!(refusal.to_string().contains("vegas"), "{refusal}");
        let looked = "records.sockets = [\"1s\"]\n[application]\ndownload = \"1kB\"\n";
        let refusal = Model::new(None).check(&plan(looked)).expect_err("no such states");
        assert!(refusal.to_string().contains("no sockets in TIME-WAIT"), "{refusal}");
        let kept = "[application]\nclient = [\"drain\"]\nserver = [\"keep open\"]\n";
        let refusal = Model::new(None).check(&plan(kept)).expect_err("it closes them");
        assert!(refusal.to_string().contains("`keep open`"), "{refusal}");
        let refusal = Model::new(Some("2.6")).check(&odd).expect_err("no such kernel");
        assert!(refusal.to_string().contains("4.18 to 6.18"), "{refusal}");
    }
}
