//! A lid on the flight that is not the congestion window: the send buffer, an application's window, one write a round
//! trip.

use super::Verdict;
use crate::limits::near::Near;
use crate::limits::round::Phase;
use crate::limits::sense::{LEAST_BUFFER_SEGMENTS, PACED_PAUSE};
use crate::limits::wait::Wait;
use crate::report::State::{
    App, AppWindow, CwndAvoidance, CwndClamp, LocalQdisc, Pacing, RwndCap, Sndbuf,
};

/// What keeps flights as little as few buffers do, as seen away from the sender: a program that writes no more, a
/// clamped window, or Linux's pace, of two segments at least (`tcp_tso_autosize`, v6.1). Whether an ACK let them go
/// does not show there.
pub(super) fn little_from_afar(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    let round = near.this();
    let is_little = !wait.by_data
        && !round.tap_at_sender
        && round.flight_segments <= LEAST_BUFFER_SEGMENTS
        && near.is_under_lid(wait);
    let pulses = near.pulses();
    match () {
        () if !is_little => None,
        () if pulses.all_end_short() => Some(Verdict::likely(App, &[Sndbuf, AppWindow])),
        () => pulses.are_even_and_whole().then_some(Verdict::unknown(super::pace::ANY_CLOCK)),
    }
}

/// These packets do not tell the send buffer, an application's window and one write a round trip apart.
pub(super) fn lid(wait: &Wait, near: &Near<'_>) -> Option<Verdict> {
    if !near.is_under_lid(wait) {
        return None;
    }
    let (round, edge) = (near.this(), wait.edge());
    let below_window = near.is_below_window(wait);
    let tap_at_sender = round.tap_at_sender;
    // A pace keeps a flight as still, but a full window pauses.
    let has_no_pause = PACED_PAUSE.is_kept(round.tap_gap, round.end - round.start);
    // ACKs that a pace spread come as evenly: it may seem that they let the next ones out.
    let may_be_paced = round.is_smooth() || near.pulses().are_even_and_whole() && has_no_pause;
    Some(match (wait.by_data, below_window) {
        (true, _) => Verdict::likely(AppWindow, &[Sndbuf]),
        // From afar a flight that fills the receiver's window seems smaller by what stands in queues.
        (_, _) if !tap_at_sender && has_no_pause => {
            Verdict::possible(Sndbuf, &[Pacing, LocalQdisc, AppWindow, App, CwndClamp, RwndCap])
        }
        (_, true) if !tap_at_sender => {
            Verdict::likely(Sndbuf, &[AppWindow, App, CwndClamp, RwndCap])
        }
        (_, false) if !tap_at_sender => {
            Verdict::possible(Sndbuf, &[CwndClamp, AppWindow, App, RwndCap])
        }
        _ if edge.may_be_near() && may_be_paced => {
            Verdict::possible(Sndbuf, &[Pacing, LocalQdisc, RwndCap, AppWindow, App, CwndClamp])
        }
        _ if edge.may_be_near() => Verdict::possible(Sndbuf, &[RwndCap, AppWindow, App, CwndClamp]),
        (_, true) if may_be_paced => {
            Verdict::likely(Sndbuf, &[Pacing, LocalQdisc, AppWindow, App, CwndClamp])
        }
        _ if may_be_paced => {
            Verdict::likely(Sndbuf, &[Pacing, LocalQdisc, AppWindow, App, CwndClamp, CwndAvoidance])
        }
        (_, true) => Verdict::likely(Sndbuf, &[AppWindow, App, CwndClamp]),
        // The window of a controller that watches delays may stand by itself.
        (_, false) if round.phase == Phase::Uncut => {
            Verdict::likely(Sndbuf, &[CwndClamp, AppWindow, App, CwndAvoidance])
        }
        (_, false) => Verdict::likely(Sndbuf, &[CwndClamp, AppWindow, App]),
    })
}
