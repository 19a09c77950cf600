//! Backends by the name that `--backend` takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use tcpwhy_linux::lab::backend::Backend;
use tcpwhy_linux::lab::live::{self, Again, Live};
use tcpwhy_linux::lab::model::Model;
use tcpwhy_linux::lab::uml::{self, Uml};

/// A name that [`open`] knows.
///
/// # Errors
/// There is no backend of that name; the words say which there are.
pub(super) fn known(name: &str) -> Result<String, String> {
    let is_one = matches!(name, "tun" | "netem" | "uml" | "model")
        || name.starts_with("uml:")
        || name.starts_with("model:");
    let known = "there are tun and netem (the running kernel), uml and uml:VERSION (a kernel in \
                 simulated time), model and model:VERSION (no kernel)";
    is_one.then(|| name.to_owned()).ok_or_else(|| known.to_owned())
}

/// The backend of that [`known`] name; without one, what works here.
pub(super) fn open(name: Option<&str>) -> Box<dyn Backend> {
    // Simulated time needs no right and no quiet machine.
    let is_built = || uml::cache().is_some_and(|cache| uml::choose(&cache, None).is_some());
    match name {
        Some("netem") => Box::new(Live::netem(again())),
        Some(name) if name.starts_with("model") => {
            Box::new(Model::new(name.strip_prefix("model:")))
        }
        Some(name) if name.starts_with("uml") => Box::new(Uml::new(name.strip_prefix("uml:"))),
        None if is_built() => Box::new(Uml::new(None)),
        _ => Box::new(Live::tun(again())),
    }
}

/// What this executable does when a backend has started it again; `None` if a user did.
pub fn inner(words: &[OsString]) -> Option<ExitCode> {
    let (first, rest) = words.get(1..)?.split_first()?;
    (first == INNER).then(|| live::inner(&again(), rest))
}

/// How this program is started again, where it is not an executable of its own.
static AROUND: OnceLock<(PathBuf, Vec<OsString>)> = OnceLock::new();

/// Says that this program runs inside `program`, which runs it if these words come first. Once said, it stays.
pub fn runs_inside(program: PathBuf, lead: Vec<OsString>) {
    AROUND.get_or_init(|| (program, lead));
}

pub(super) fn again() -> Again {
    let Some((program, lead)) = AROUND.get().cloned() else { return Again::same(&[INNER]) };
    let lead = lead.into_iter().chain([OsString::from(INNER)]).collect();
    Again { program, lead }
}

/// Brings this executable to what it starts again of itself.
const INNER: &str = "lab-inner";
