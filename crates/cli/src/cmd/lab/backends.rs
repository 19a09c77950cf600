//! Backends by the name that `--backend` takes.

use std::ffi::OsString;
use std::process::ExitCode;

use tcpwhy_linux::lab::backend::{Backend, Refusal};
use tcpwhy_linux::lab::live::{self, Again, Live};
use tcpwhy_linux::lab::uml::{self, Uml};

/// The backend of that name; without one, what works here.
///
/// # Errors
/// There is none of that name.
pub(super) fn open(name: Option<&str>) -> Result<Box<dyn Backend>, Refusal> {
    let again = || Again::same(&[INNER]);
    match name {
        Some("tun") => Ok(Box::new(Live::tun(again()))),
        Some("netem") => Ok(Box::new(Live::netem(again()))),
        Some("uml") => Ok(Box::new(Uml::new(None))),
        Some(other) => match other.strip_prefix("uml:") {
            Some(version) => Ok(Box::new(Uml::new(Some(version)))),
            None => Err(Refusal {
                backend: format!("`{other}`"),
                what: "anything".to_owned(),
                why: "there is no such backend".to_owned(),
                instead: "known are tun, netem, uml and uml:VERSION".to_owned(),
            }),
        },
        // Simulated time needs no right and no quiet machine.
        None if uml::cache().is_some_and(|cache| uml::choose(&cache, None).is_some()) => {
            Ok(Box::new(Uml::new(None)))
        }
        None => Ok(Box::new(Live::tun(again()))),
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
