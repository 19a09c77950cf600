//! The simulated-time backend: a real Linux kernel that runs as an ordinary process.
//!
//! User-Mode Linux with time travel: the guest's clock stops while it computes and jumps
//! while it waits, so a transfer takes the same simulated time on every machine, however busy,
//! and its waits cost nothing. The whole experiment lies inside: hosts and routers as network
//! namespaces ([`layout`]), applications and recorders as processes of one static program
//! ([`crate::lab::agent`]). No privilege is needed and nothing of the host is touched but the
//! run's folder.
//!
//! What it is not: processes and packets take no time of the processor, so there is no lateness,
//! no interrupt coalescing, no slow reader but one that sleeps; links without a rate are
//! infinitely fast. For those there is the running kernel's backend.
//!
//! `make uml` or `tcpwhy lab setup --build` builds the kernels; none is part of this repository.

mod boot;
mod check;
mod kernel;
mod verify;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tcpwhy_model::scenario::plan::{Egress, Host, Plan};

use self::boot::End;
pub use self::kernel::{Kernel, cache, choose, kernels};
use super::backend::{Backend, ClockMap, LabError, Manifest, Refusal};
use super::folder;
use super::init::{COMPLAINTS, OUT, REPORT, Report};
use super::layout::Layout;

/// Runs plans in a simulated kernel.
#[derive(Clone, Debug)]
pub struct Uml {
    cache: Option<PathBuf>,
    version: Option<String>,
    stock: bool,
    limit: Duration,
}

impl Uml {
    /// The kernel of this name in the user's cache, as `6.12` or `6.1-hz1000`; with none, the one
    /// that `make uml` builds if not told otherwise, or else the newest there is.
    pub fn new(version: Option<&str>) -> Self {
        Self { cache: cache(), version: version.map(str::to_owned), stock: false, limit: LONGEST }
    }

    /// The same with the kernel that has no observation points: to see that they change nothing.
    #[must_use]
    pub fn stock(self) -> Self {
        Self { stock: true, ..self }
    }

    /// The same with another limit to the time of the host that a run may take.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    fn kernel(&self) -> Result<Kernel, Refusal> {
        let found = self.cache.as_deref().and_then(|c| choose(c, self.version.as_deref()));
        found.ok_or_else(|| {
            let built: Vec<_> =
                self.cache.iter().flat_map(|c| kernels(c)).map(|k| k.name).collect();
            let why = match built.as_slice() {
                [] => "no simulated kernel is built on this machine".to_owned(),
                some => format!("only {} are built on this machine", some.join(", ")),
            };
            let version = self.version.as_deref().unwrap_or(kernel::DEFAULT);
            let instead = format!("run `tcpwhy lab setup --build {version}`");
            self.refusal("any run", why, instead)
        })
    }

    fn agent(&self) -> Result<PathBuf, Refusal> {
        let found = self.cache.as_deref().ok_or_else(|| "there is no HOME".to_owned());
        found
            .and_then(kernel::agent)
            .map_err(|why| self.refusal("any run", why, "run `make uml` in the sources".to_owned()))
    }

    fn refusal(&self, what: &str, why: String, instead: String) -> Refusal {
        Refusal { backend: self.name(), what: what.to_owned(), why, instead }
    }
}

impl Backend for Uml {
    fn name(&self) -> String {
        self.version.as_ref().map_or_else(|| "uml".to_owned(), |version| format!("uml:{version}"))
    }

    fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        check::plan(plan).map_err(|doubt| self.refusal(&doubt.what, doubt.why, doubt.instead))?;
        self.kernel()?;
        self.agent().map(drop)
    }

    fn run(&self, plan: &Plan, folder: &Path) -> Result<Manifest, LabError> {
        self.check(plan)?;
        let (kernel, agent) = (self.kernel()?, self.agent()?);
        write(&folder.join(folder::PLAN), &serde_json::to_vec_pretty(plan).unwrap_or_default())?;
        let guest = Guest::prepare(folder, &agent, plan)?;
        let image = if self.stock { &kernel.stock } else { &kernel.observing };
        let end = boot::boot(image, &guest.root, &guest.console, self.limit).map_err(|e| {
            LabError::Missing {
                doing: format!("start {}", image.display()),
                why: e.to_string(),
                advice: "build it again: remove its folder and run `tcpwhy lab setup --build`"
                    .to_owned(),
            }
        })?;
        let report = guest.collect(folder, &end, self.limit)?;
        let manifest = self.manifest(plan, folder, &kernel, report)?;
        manifest.write(folder)?;
        Ok(manifest)
    }
}

impl Uml {
    /// Judges a run that came to its end.
    fn manifest(
        &self,
        plan: &Plan,
        folder: &Path,
        kernel: &Kernel,
        report: Report,
    ) -> Result<Manifest, LabError> {
        let mut manifest = Manifest {
            backend: self.name(),
            kernel: report.kernel,
            valid: true,
            // One clock: the guest's monotonic time began with its boot.
            clock: Some(ClockMap::default()),
            knobs: report.knobs,
            ..Manifest::default()
        };
        let tools = &mut manifest.tools;
        tools.insert("tcpwhy".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        tools.insert("linux".to_owned(), kernel.full.clone());
        tools.insert("hz".to_owned(), kernel.hz.to_string());
        if let Some(package) = &kernel.package {
            tools.insert("package".to_owned(), package.clone());
        }
        let points = if self.stock { "none" } else { "observing" };
        tools.insert("observation points".to_owned(), points.to_owned());
        for complaint in report.complaints {
            manifest.distrust(complaint);
        }
        let layout = Layout::of(plan).map_err(|e| self.refusal(&e.what, e.why, String::new()))?;
        let last = &layout.links[layout.links.len() - 1].far;
        let hosts =
            [("server", &plan.server, &layout.links[0].near), ("client", &plan.client, last)];
        for (name, host, port) in hosts {
            if drops_before_tap(host) {
                continue;
            }
            let path = folder.join(format!("{name}.pcapng"));
            let address = match port.address(plan.ipv6) {
                IpAddr::V4(a) => a.octets().to_vec(),
                IpAddr::V6(a) => a.octets().to_vec(),
            };
            let seen = verify::retransmitted(&path, &address)
                .map_err(|source| LabError::reading(&path, source))?;
            let counted = report.retransmitted.get(name).copied().unwrap_or_default();
            if seen != counted {
                manifest.distrust(format!(
                    "the {name}'s capture has {seen} retransmitted segments, its kernel counted {counted}"
                ));
            }
        }
        Ok(manifest)
    }
}

fn drops_before_tap(host: &Host) -> bool {
    matches!(host.egress, Some(Egress::TokenBucket(_)))
}

/// The folder that is a guest's whole world.
struct Guest {
    root: PathBuf,
    console: PathBuf,
}

impl Guest {
    fn prepare(folder: &Path, agent: &Path, plan: &Plan) -> Result<Self, LabError> {
        let root = folder.join("guest");
        for sub in ["dev", "proc", "sys", OUT, "uml"] {
            let path = root.join(sub);
            fs::create_dir_all(&path).map_err(|source| LabError::writing(&path, source))?;
        }
        // Linked where that is possible: it is the same for every run.
        let own = root.join("agent");
        if fs::hard_link(agent, &own).is_err() {
            fs::copy(agent, &own).map_err(|source| LabError::writing(&own, source))?;
        }
        write(&root.join(folder::PLAN), &serde_json::to_vec(plan).unwrap_or_default())?;
        Ok(Self { console: folder.join("console.txt"), root })
    }

    /// Brings the records home, or says why there is nothing to trust.
    fn collect(&self, folder: &Path, end: &End, limit: Duration) -> Result<Report, LabError> {
        let out = self.root.join(OUT);
        let text = fs::read(out.join(REPORT)).unwrap_or_default();
        let complaints = fs::read_to_string(out.join(COMPLAINTS)).unwrap_or_default();
        let moved = self.move_records(folder);
        let ended = |why: String, advice: String| Err(LabError::Ended { why, advice });
        let console = format!("its console is in {}", self.console.display());
        let report: Result<Report, _> = serde_json::from_slice(&text);
        let last = boot::last_words(&self.console);
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        match (end, report) {
            // The guest writes through to this folder: its disk is ours.
            (_, Err(_)) if last.contains(&full.to_string()) => Err(LabError::writing(folder, full)),
            (End::Late, _) => {
                let why = format!(
                    "the simulated machine took longer than {} s and was ended; it said last: {last}",
                    limit.as_secs()
                );
                ended(why, format!("a loop without a wait never ends in simulated time; {console}"))
            }
            (_, Ok(Report { failed: Some(why), .. })) => ended(why, console),
            (End::Off, Ok(mut report)) => {
                moved?;
                report.complaints = complaints.lines().map(str::to_owned).collect();
                remove(&self.console)?;
                Ok(report)
            }
            (End::Broken(status), _) => ended(
                format!("the simulated machine broke down ({status}); it said last: {last}"),
                console,
            ),
            (End::Off, Err(error)) => ended(
                format!("the simulated machine left no report ({error}); it said last: {last}"),
                console,
            ),
        }
    }

    fn move_records(&self, folder: &Path) -> Result<(), LabError> {
        let out = self.root.join(OUT);
        let entries = fs::read_dir(&out).map_err(|source| LabError::reading(&out, source))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name != REPORT && name != COMPLAINTS {
                let to = folder.join(&name);
                fs::rename(entry.path(), &to).map_err(|source| LabError::writing(&to, source))?;
            }
        }
        fs::remove_dir_all(&self.root).map_err(|source| LabError::writing(&self.root, source))
    }
}

fn write(path: &Path, text: &[u8]) -> Result<(), LabError> {
    fs::write(path, text).map_err(|source| LabError::writing(path, source))
}

fn remove(path: &Path) -> Result<(), LabError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(LabError::writing(path, e)),
        _ => Ok(()),
    }
}

/// Ours: a hundred times what a run takes on a quiet machine.
const LONGEST: Duration = Duration::from_mins(3);
