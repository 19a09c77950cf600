//! How a window came to be what it is: what one look does not tell.
//!
//! A threshold that was there before the window reached it, without a loss, was remembered: from an earlier connection to this peer
//! or from a route (Linux `tcp_init_metrics`). A window that fell without a loss was restarted after a pause
//! (`tcp_cwnd_restart`); until it has grown back, the pause is what holds it. Where more in flight only made the round trip longer,
//! the link gives no more ([`link`](super::link)): as long as it gives that much, the link holds the sender, not its window.

use super::link::Link;
use super::{Held, moment};
use crate::host::snapshot::{Info, Socket};
use crate::report::{State, Sure};

/// What was seen of a connection's window so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Growth {
    /// A threshold above the window, before anything was lost.
    remembered: Option<u32>,
    /// The window before a pause cut it.
    before_pause: Option<u32>,
    /// The peer's largest window.
    most_window: u32,
    /// It was shut.
    was_shut: bool,
    link: Link,
}

impl Growth {
    /// Whether the peer's window was shut before, or is less than half of what it was: a receiver's buffer only grows, so that it is
    /// full of what was not read.
    pub(super) fn has_lagged(&self, now: &Socket) -> bool {
        let window = now.info.as_deref().and_then(|info| info.snd_wnd);
        self.was_shut || window.is_some_and(|window| window < self.most_window / 2)
    }

    /// A look at the peer's window.
    pub(super) fn see_window(&mut self, now: &Socket) {
        let Some(window) = now.info.as_deref().and_then(|info| info.snd_wnd) else { return };
        self.most_window = self.most_window.max(window);
        self.was_shut |= window == 0 && now.send_queue > 0;
    }

    /// Two looks in a row; `again` segments were retransmitted in between.
    pub(super) fn see(&mut self, before: &Socket, now: &Socket, again: u64) {
        let has_link = moment::has_link(now);
        let (Some(before), Some(now)) = (before.info.as_deref(), now.info.as_deref()) else {
            return;
        };
        let (Some(was), Some(cwnd)) = (before.snd_cwnd, now.snd_cwnd) else { return };
        let has_lost = again > 0 || now.lost.unwrap_or(0) > 0;
        if has_link {
            self.link.see(now, has_lost);
        }
        if has_lost {
            (self.remembered, self.before_pause) = (None, None);
            return;
        }
        if cwnd < was {
            self.before_pause = Some(self.before_pause.unwrap_or(0).max(was));
        }
        self.before_pause = self.before_pause.filter(|grown| cwnd < *grown);
        if self.before_pause.is_none() && is_remembered(before, was) {
            self.remembered = before.snd_ssthresh;
        }
        self.remembered = self.remembered.filter(|met| now.snd_ssthresh == Some(*met));
    }

    /// The state of a full window, as its past names it.
    pub(super) fn state(&self, state: State) -> State {
        match state {
            State::CwndSlowStart | State::CwndAvoidance | State::CwndPostLoss
                if self.link.is_full() =>
            {
                State::BandwidthSelfQueue
            }
            State::CwndSlowStart if self.before_pause.is_some() => State::CwndAfterIdle,
            State::CwndAvoidance if self.remembered.is_some() => State::CwndCachedSsthresh,
            state => state,
        }
    }

    /// The same with what shows it.
    pub(super) fn named(&self, held: Held, now: &Socket) -> Held {
        let state = self.state(held.state);
        let info = now.info.as_deref().copied().unwrap_or_default();
        let (unacked, cwnd) = (info.unacked.unwrap_or(0), info.snd_cwnd.unwrap_or(0));
        if state == State::BandwidthSelfQueue && state != held.state {
            let by = format!("{}; {}", held.by, self.link.words());
            return Held { state, sure: Sure::Possible, by };
        }
        let by = match (state, self.before_pause, self.remembered) {
            _ if state == held.state => return held,
            (State::CwndAfterIdle, Some(was), _) => {
                format!("{}; a pause cut it from {was} segments", held.by)
            }
            (State::CwndCachedSsthresh, _, Some(met)) => {
                format!(
                    "{unacked} segments in flight fill the congestion window of {cwnd}; ssthresh {met} was there before the window reached it"
                )
            }
            _ => held.by,
        };
        Held { state, by, ..held }
    }
}

/// A finite threshold above the window where nothing was ever lost.
fn is_remembered(info: &Info, cwnd: u32) -> bool {
    info.total_retrans.unwrap_or(0) == 0
        && info.snd_ssthresh.is_some_and(|ssthresh| cwnd < ssthresh)
}
