//! What each rule is worth: one at a time can be taken out, for measurements (`make ablation`).

use core::sync::atomic::{AtomicUsize, Ordering};

use super::{ORDER, QUIET};

/// The place of the rule that is out.
static OUT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The names of all rules.
pub fn names() -> impl Iterator<Item = &'static str> {
    ORDER.iter().chain(QUIET).map(|rule| rule.name)
}

/// Takes the rule of this place among [`names`] out, and puts back what was out.
pub fn take_out(place: Option<usize>) {
    OUT.store(place.unwrap_or(usize::MAX), Ordering::Relaxed);
}

pub(super) fn is_out(name: &str) -> bool {
    match OUT.load(Ordering::Relaxed) {
        usize::MAX => false,
        place => names().nth(place) == Some(name),
    }
}
