//! The colours of files: those of the page on light ground (`page/src/colors.ts`).

use crate::report::State;
use crate::view::family::Family;

pub(super) const GROUND: &str = "#ffffff";
pub(super) const TEXT: &str = "#1d232a";
pub(super) const FAINT: &str = "#5a6570";
pub(super) const GRID: &str = "#e3e7eb";

/// Letters on the strip.
pub(super) const LETTER: &str = "#101418";

/// The colour of a series.
pub(super) fn of(ink: &str) -> &'static str {
    match ink {
        "ack" | "bdp" => "#00835f",
        "edge" | "window" => "#2f8fc9",
        "sack" => "#b45c90",
        "fast" | "stack" => "#d55e00",
        "rto" | "lost" => "#a80f0f",
        "tlp" | "cwnd" | "queue" => "#e69f00",
        "needless" | "buffer" => "#8a5fbf",
        "late" => "#7d8790",
        "round" => "#9aa3ab",
        "rate" | "rtt" => "#2f6fb0",
        "least" => FAINT,
        _ => TEXT,
    }
}

/// The colour of a state's family.
pub(super) const fn state(state: State) -> &'static str {
    match Family::of(state) {
        Family::Round => "#cc79a7",
        Family::Loss => "#d55e00",
        Family::Window => "#56b4e9",
        Family::Sender => "#e8d400",
        Family::Path => "#009e73",
        Family::Congestion => "#e69f00",
        Family::Program => "#9aa3ab",
        Family::Unknown => GRID,
    }
}
