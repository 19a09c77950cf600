//! A lid on the flight that is not the congestion window: the send buffer, an application's window, one write a round
//! trip.

use super::Verdict;
use super::rivals::Seen;
use crate::limits::near::Near;
use crate::limits::round::Phase;
use crate::limits::sense::{LEAST_BUFFER_SEGMENTS, PACED_PAUSE};
use crate::limits::wait::Wait;
use crate::report::State::{App, AppWindow, Sndbuf};

/// What keeps flights as little as few buffers do, as seen away from the sender: a program that writes no more, a
/// clamped window, or Linux's pace, of two segments at least (`tcp_tso_autosize`, v6.1). Whether an ACK let them go
/// does not show there. It stays though `make ablation` has none: writes of 1400 bytes each 20 ms at 37 ms are `sndbuf` at
/// the receiver without it.
pub(super) fn little_from_afar(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let round = near.this();
    let is_little = !wait.by_data
        && !round.tap_at_sender
        && round.flight_segments <= LEAST_BUFFER_SEGMENTS
        && near.is_under_lid(wait);
    let pulses = near.pulses();
    match () {
        () if !is_little => None,
        () if pulses.all_end_short() => {
            Some(Verdict::likely(App).seen(Seen::LittleFromAfar { ends_short: true }))
        }
        () => pulses
            .are_even_and_whole()
            .then_some(Verdict::unknown().seen(Seen::LittleFromAfar { ends_short: false })),
    }
}

/// Flights stand still below the congestion window. These packets do not tell the send buffer, an application's window and
/// one write a round trip apart.
pub(super) fn lid(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    if !near.is_under_lid(wait) {
        return None;
    }
    let (round, edge) = (near.this(), wait.edge());
    let tap_at_sender = round.tap_at_sender;
    // A pace keeps a flight as still, but a full window pauses.
    let has_no_pause = PACED_PAUSE.is_kept(round.tap_gap, round.end - round.start);
    // ACKs that a pace spread come as evenly: it may seem that they let the next ones out.
    let may_be_paced = round.is_smooth() || near.pulses().are_even_and_whole() && has_no_pause;
    let below = near.is_below_window(wait);
    let little_room = edge.may_be_near();
    Some(match () {
        () if wait.by_data => Verdict::likely(AppWindow).seen(Seen::ByData),
        () if !tap_at_sender && has_no_pause => {
            Verdict::possible(Sndbuf).seen(Seen::LidFromAfarWithoutPause)
        }
        () if !tap_at_sender => {
            let told = if below { Verdict::likely(Sndbuf) } else { Verdict::possible(Sndbuf) };
            told.seen(Seen::LidFromAfar { below })
        }
        () if little_room => {
            Verdict::possible(Sndbuf).seen(Seen::LidLittleRoom { paced: may_be_paced })
        }
        () if !below && !may_be_paced && round.phase == Phase::Uncut => {
            Verdict::likely(Sndbuf).seen(Seen::LidInAvoidance)
        }
        () => Verdict::likely(Sndbuf).seen(Seen::Lid { below, paced: may_be_paced }),
    })
}
