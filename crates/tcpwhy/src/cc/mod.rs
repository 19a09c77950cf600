//! Congestion-control arithmetic, the only place that holds any: `limits` replays it against a
//! capture, the model runs it.

pub mod slow_start;
