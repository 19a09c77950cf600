//! Ctrl-C, and what asks politely to end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

/// A flag that the first Ctrl-C (or SIGTERM) sets; the second ends the process.
pub(crate) fn stop_on_signals() -> std::io::Result<Arc<AtomicBool>> {
    let (stop, again) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        // Order matters: a signal that comes in between is not lost, and on the first one `again` is still unset
        // when it is looked at.
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&again))?;
        signal_hook::flag::register(signal, Arc::clone(&again))?;
    }
    Ok(stop)
}
