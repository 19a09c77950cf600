//! A sender's own account of a run: why it stopped each time, what arrived, which timer fired, what
//! its application waits for. It is what the observing kernel of `docs/simulated-kernels.md` records.

use super::{Side, World};
use crate::socket::{Info, Purpose, Wait};

/// One line of the account. What happens at one instant is in the order in which it happened.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Note {
    /// When.
    pub at_ns: u64,
    /// Its connection.
    pub connection: u32,
    /// Whose.
    pub side: Side,
    /// Upon what.
    pub upon: Upon,
    /// State of the socket, before a timer does its work, and after anything else.
    pub info: Info,
    /// Why the sender waits.
    pub wait: Wait,
    /// Its application is blocked in a write.
    pub blocked: bool,
    /// Its application waits in a read.
    pub reads: bool,
}

/// Upon what something is noted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Upon {
    /// The socket had its turn, whatever for.
    Turn,
    /// A segment has arrived.
    Arrival,
    /// The sender's timer fires.
    Timer(Purpose),
}

impl World {
    pub(super) fn note(&mut self, connection: u32, side: Side, upon: Upon) {
        if !self.trace.keep.notes {
            return;
        }
        let at_ns = self.now;
        if let Some(end) = self.end(connection, side) {
            let note = Note {
                at_ns,
                connection,
                side,
                upon,
                info: end.socket.info(),
                wait: end.socket.wait(),
                blocked: end.app.waits_for_room(),
                reads: end.app.waits_for_data(),
            };
            self.trace.notes.push(note);
        }
    }

    pub(super) fn note_timer(&mut self, connection: u32, side: Side) {
        let now = self.now;
        let due = self.end(connection, side).and_then(|end| end.socket.timer_due(now));
        if let Some(purpose) = due {
            self.trace.timer(now, connection, side, purpose);
            self.note(connection, side, Upon::Timer(purpose));
        }
    }
}
