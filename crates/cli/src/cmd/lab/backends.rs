//! Backends by the name that `--backend` takes.

use std::ffi::OsString;
use std::process::ExitCode;

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
    let again = || Again::same(&[INNER]);
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
pub fn inner() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let is_inner = words.next().is_some_and(|word| word == INNER);
    is_inner.then(|| live::inner(&Again::same(&[INNER]), &words.collect::<Vec<OsString>>()))
}

/// Brings this executable to what it starts again of itself.
const INNER: &str = "lab-inner";
