//! What a sender that has room waits for: its own pace, by its program's limit or by BBR's view of the path.
//!
//! BBR paces always, at a gain times the rate that it has measured of the path (Linux `net/ipv4/tcp_bbr.c`). The gain tells what
//! it is about: more than twice in its startup, which doubles the rate each round trip; less than one where it empties a queue
//! that it made, at which the link works all the while; else its estimate is the pace. But for startup the path may be full.

use tcpwhy_words::units::BitRate;

use super::Held;
use crate::host::snapshot::{Bbr, Info, Socket};
use crate::report::{State, Sure};

/// From this gain on BBR doubles its rate each round trip, in per cent: startup has 2.89, the cycle of later at most 1.25
/// (`bbr_high_gain`, `bbr_pacing_gain`).
const DOUBLES: u64 = 200;

/// Below this one it empties a queue: 0.75 in the cycle, 0.35 behind startup; cruising is 1, less 1 %
/// (`bbr_drain_gain`, `bbr_pacing_margin_percent`).
const DRAINS: u64 = 90;

/// What BBR lets into flight while it measures the least round trip: its window for that is four segments
/// (`bbr_cwnd_min_target`, `BBR_PROBE_RTT`), and both gains are 1.
const MEASURES: u32 = 4;

/// BBR always paces (`bbr_init`, `SK_PACING_NEEDED`).
pub(super) fn is_bbr(socket: &Socket) -> bool {
    socket.congestion.as_deref().is_some_and(|name| name.starts_with("bbr"))
}

/// What `wait` waits for, if it is a pace; `wait` is what waits, as the begin of a sentence.
pub(super) fn held(socket: &Socket, info: &Info, wait: &str) -> Option<Held> {
    if let (Some(pace), Some(most)) = (info.pacing_rate, info.max_pacing_rate)
        && pace >= most
    {
        let by = format!(
            "{wait} though the windows have room: its program lets no more out than {} (SO_MAX_PACING_RATE)",
            rate(most)
        );
        return Some(Held { state: State::Pacing, sure: Sure::Likely, by });
    }
    is_bbr(socket).then(|| {
        let (state, sure, by) = of_bbr(info);
        Held { state, sure, by: format!("{wait} though the windows have room: {by}") }
    })
}

/// What a full congestion window of BBR is for; `full` is the window, as the begin of a sentence.
pub(super) fn full_window(info: &Info, full: &str) -> Held {
    if info.snd_cwnd == Some(MEASURES) {
        let by =
            format!("{full}: BBR sends so little for a moment, to measure the least round trip");
        return Held { state: State::Pacing, sure: Sure::Likely, by };
    }
    let (state, sure, by) = of_bbr(info);
    Held { state, sure, by: format!("{full}: {by}") }
}

fn of_bbr(info: &Info) -> (State, Sure, String) {
    let estimate = info.bbr.map(|bbr| bbr.bw).or(info.delivery_rate).filter(|bw| *bw > 0);
    let estimate = estimate.map_or_else(String::new, |bw| format!(" ({})", rate(bw)));
    let estimate = format!("what it takes for the path's rate{estimate}");
    match gain(info) {
        Some(DOUBLES..) => (
            State::CwndSlowStart,
            Sure::Likely,
            format!("BBR starts up, and doubles {estimate} each round trip"),
        ),
        Some(gain) if info.delivery_rate_app_limited != Some(true) => {
            let (how, why) = match gain {
                0..DRAINS => ("slower than", ", to empty the queue that it made there"),
                _ => ("at", ""),
            };
            let by = format!("BBR lets them out {how} {estimate}{why}");
            (State::BandwidthSelfQueue, Sure::Possible, by)
        }
        _ => (State::Pacing, Sure::Likely, "BBR lets them out at its pace".to_owned()),
    }
}

/// In per cent: as BBR tells it, else its pace over the rate at which its data arrived last.
fn gain(info: &Info) -> Option<u64> {
    match info.bbr {
        Some(Bbr { pacing_percent, .. }) if pacing_percent > 0 => Some(u64::from(pacing_percent)),
        _ => {
            let (pace, arrived) = (info.pacing_rate?, info.delivery_rate?);
            pace.checked_mul(100)?.checked_div(arrived)
        }
    }
}

fn rate(bytes: u64) -> BitRate {
    BitRate(bytes.saturating_mul(8))
}
