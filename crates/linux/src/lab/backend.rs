//! What carries out a plan: the shape every backend has, and what it says of a run.
//!
//! A backend first says what it cannot do ([`Backend::check`], before anything starts), then runs
//! and leaves a folder ([`super::folder`]) with a [`Manifest`]. A run that was carried out but
//! cannot be trusted is no error: its manifest says `valid: false` and why. An error means that
//! nothing more will come; what was written until then stays and the error names it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tcpwhy_model::scenario::plan::Plan;

use super::folder;

/// Something that carries out plans.
pub trait Backend {
    /// Its name as `--backend` takes it, as `tun` or `uml:6.1`.
    fn name(&self) -> String;

    /// Says, before anything starts, whether it can do all of the plan.
    ///
    /// # Errors
    /// What it cannot do, why, and what would do.
    fn check(&self, plan: &Plan) -> Result<(), Refusal>;

    /// Carries the plan out and leaves its records in `folder`, which exists and is empty.
    ///
    /// The manifest is written there too ([`Manifest::write`]).
    ///
    /// # Errors
    /// The run ended early: nothing of it runs any more, and what was recorded is in `folder`.
    fn run(&self, plan: &Plan, folder: &Path) -> Result<Manifest, LabError>;
}

/// What a plan asks and a backend cannot do: said before anything starts.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{backend} cannot do {what}: {why}; {instead}")]
pub struct Refusal {
    /// Which backend.
    pub backend: String,
    /// What was asked, in the scenario's words, as `path.loss = "burst ..."`.
    pub what: String,
    /// Why it cannot.
    pub why: String,
    /// What would do: another backend, a module, a right.
    pub instead: String,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The backend cannot do it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A right, device or kernel feature is missing, or was taken away.
    #[error("cannot {doing}: {why}; {advice}")]
    Missing {
        /// What was tried, as `open a TUN device`.
        doing: String,
        /// What the system said.
        why: String,
        /// What to try.
        advice: String,
    },
    /// A file of the run cannot be written or read.
    #[error("cannot {doing} {}: {source}; {}", path.display(), advice_for(source))]
    File {
        /// `write` or `read`.
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An application, recorder or guest failed or took longer than the plan allows.
    #[error("the run ended early: {why}; {advice}")]
    Ended {
        /// Who failed and how.
        why: String,
        /// What to try, and what of the records is saved.
        advice: String,
    },
    /// The user stopped it.
    #[error("stopped; what was recorded until then is kept if --keep was given")]
    Interrupted,
}

impl LabError {
    /// A file of the run that cannot be written.
    pub fn writing(path: &Path, source: io::Error) -> Self {
        Self::File { doing: "write", path: path.to_owned(), source }
    }

    /// A file of the run that cannot be read.
    pub fn reading(path: &Path, source: io::Error) -> Self {
        Self::File { doing: "read", path: path.to_owned(), source }
    }
}

fn advice_for(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full: free some space or name another folder with --keep"
        }
        io::ErrorKind::NotFound => "a part of the run left no record: its log may say why",
        io::ErrorKind::PermissionDenied => "name a folder that you may write with --keep",
        io::ErrorKind::InvalidData => "the record is damaged: repeat the run",
        _ => "the records written so far are kept",
    }
}

/// What a recorder of the kernel's tracepoints says where it could not keep all.
pub(super) const KERNEL_GAP: &str = "records of the kernel were lost";

/// What a run says of itself; as JSON in [`folder::MANIFEST`].
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Manifest {
    /// The backend's name.
    pub backend: String,
    /// The kernel that spoke TCP, as `uname -r` has it.
    pub kernel: String,
    /// Whether what was asked is what happened: nothing was late, lost from the records or cut.
    pub valid: bool,
    /// Why not, and what else the reader should know; whole sentences.
    pub problems: Vec<String>,
    /// How late packets left the emulator; none where time is simulated.
    pub lateness: Option<Lateness>,
    /// How the kernel's clock maps to that of the records.
    pub clock: Option<ClockMap>,
    /// Settings of each host as they were while it ran, by `client.net.ipv4.tcp_rmem` and alike.
    pub knobs: BTreeMap<String, String>,
    /// Versions of what took part, by name.
    pub tools: BTreeMap<String, String>,
}

impl Manifest {
    /// Notes why the run cannot be trusted.
    pub fn distrust(&mut self, why: String) {
        self.valid = false;
        self.problems.push(why);
    }

    /// That the kernel's account of itself lacks some of its records, if it does: what it tells then need not be true.
    pub fn gap_of_kernel(&self) -> Option<&str> {
        self.problems.iter().map(String::as_str).find(|problem| problem.contains(KERNEL_GAP))
    }

    /// Writes it into a run's folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), LabError> {
        let path = folder.join(folder::MANIFEST);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| LabError::writing(&path, error.into()))?;
        std::fs::write(&path, text).map_err(|source| LabError::writing(&path, source))
    }

    /// Reads that of a run's folder.
    ///
    /// # Errors
    /// The file cannot be read, or is no manifest.
    pub fn read(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join(folder::MANIFEST);
        let text = std::fs::read(&path).map_err(|source| LabError::reading(&path, source))?;
        serde_json::from_slice(&text).map_err(|error| LabError::reading(&path, error.into()))
    }
}

/// How late packets left the emulator, against when they were due, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Lateness {
    /// Half of them were later.
    pub p50_ns: u64,
    /// One in a hundred was.
    pub p99_ns: u64,
    /// The latest.
    pub max_ns: u64,
}

/// Maps `CLOCK_MONOTONIC` to `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClockMap {
    /// To be added to a monotonic stamp.
    pub mono_to_real_ns: i64,
    /// Half the tightest bracket of readings: the sum is right to so much.
    pub error_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_with_gaps_is_told_from_one_with_other_problems() {
        let mut manifest = Manifest::default();
        manifest.problems.push("the capture lost 3 packets".to_owned());
        assert_eq!(manifest.gap_of_kernel(), None);
        manifest.problems.push(format!("warning: 4 {KERNEL_GAP} and 0 were odd"));
        assert_eq!(manifest.gap_of_kernel(), Some(&*manifest.problems[1]));
    }

    #[test]
    fn a_refusal_reads_as_one_sentence() {
        let refusal = Refusal {
            backend: "netem".to_owned(),
            what: "`path.loss = \"exact 3\"`".to_owned(),
            why: "netem counts no packets".to_owned(),
            instead: "use --backend tun".to_owned(),
        };
        assert_eq!(
            LabError::from(refusal).to_string(),
            "netem cannot do `path.loss = \"exact 3\"`: netem counts no packets; use --backend tun"
        );
    }

    #[test]
    fn a_full_disk_is_named_with_what_to_do() {
        let error =
            LabError::writing(Path::new("run/client.pcapng"), io::ErrorKind::StorageFull.into());
        let text = error.to_string();
        assert!(text.starts_with("cannot write run/client.pcapng: "), "{text}");
        assert!(text.contains("free some space"), "{text}");
    }

    #[test]
    fn a_manifest_survives_its_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut manifest =
            Manifest { backend: "uml:6.1".to_owned(), valid: true, ..Manifest::default() };
        manifest.distrust("the capture lost 3 packets".to_owned());
        manifest.write(folder.path()).expect("written");
        let read = Manifest::read(folder.path()).expect("read");
        assert_eq!(read, manifest);
        assert!(!read.valid);
    }

    #[test]
    fn a_manifest_without_a_field_can_still_be_read() {
        let manifest: Manifest = serde_json::from_str(r#"{"backend":"tun"}"#).expect("parses");
        assert!(!manifest.valid, "what does not say so is not trusted");
    }
}
