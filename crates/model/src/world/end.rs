//! One end of a connection: its socket, its application, and what is planned for it.

use std::sync::Arc;

use super::Limit;
use super::app::App;
use super::program::Program;
use crate::socket::{CaState, Socket, State, Wait};

/// One end of a connection.
pub(super) struct End {
    pub(super) socket: Socket,
    pub(super) app: App,
    /// When an event for its timers is planned; they may be due later, for most are put off.
    pub(super) due: u64,
    /// When its application's pause is planned to end.
    pub(super) pause: u64,
    pub(super) limit: Option<Limit>,
    /// Packets that have left its host, as IPv4's identification counts them.
    pub(super) packets: u16,
    pub(super) window: Option<(u32, u32, CaState)>,
}

impl End {
    pub(super) fn new(socket: Socket, program: Arc<Program>) -> Self {
        let app = App::new(program);
        Self { socket, app, due: u64::MAX, pause: u64::MAX, limit: None, packets: 0, window: None }
    }

    /// What its sender waits for.
    pub(super) fn limit(&self) -> Limit {
        match self.socket.state() {
            State::Closed | State::TimeWait => return Limit::Closed,
            State::SynSent | State::SynReceived => return Limit::Handshake,
            _ => {}
        }
        match self.socket.wait() {
            Wait::Nothing if self.socket.unacked() == 0 => {
                if self.app.writes_no_more() {
                    Limit::Closed
                } else {
                    Limit::Application
                }
            }
            Wait::Nothing if self.app.waits_for_room() => Limit::SendBuffer,
            Wait::Nothing if self.app.writes_no_more() => Limit::LastFlight,
            Wait::Nothing => Limit::ApplicationInFlight,
            Wait::Cwnd => match self.socket.ca_state() {
                CaState::Loss => Limit::Timeout,
                CaState::Cwr | CaState::Recovery => Limit::Recovery,
                _ if self.socket.in_slow_start() => Limit::SlowStart,
                _ => Limit::Avoidance,
            },
            // One that has room for a part of a segment holds it as well, until its timer runs out.
            Wait::ReceiveWindow
                if self.socket.packets_out() == 0 && self.socket.info().snd_wnd == 0 =>
            {
                Limit::ZeroWindow
            }
            Wait::ReceiveWindow => Limit::ReceiveWindow,
            Wait::Nagle => Limit::Nagle,
            Wait::Defer | Wait::DeferCwnd | Wait::DeferWindow => Limit::Deferral,
            Wait::SmallQueue => Limit::SmallQueue,
            Wait::Pacing => Limit::Pacing,
        }
    }
}
