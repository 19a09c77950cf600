//! From an observed kernel's records to what the sender waited for, exact to the nanosecond.
//!
//! The last answer of `tcp_write_xmit` holds until the next record. Where it had nothing to send,
//! the applications' log and the blocked writes say whose turn it was. What a timer ended is known
//! only afterwards: the time from the last progress to a timer that sent is given to that timer.
//!
//! Left out: what the network did. A bottleneck's queue shows as `cwnd.*` or `recovery`.

use crate::records::{End, Observed, Place, Why};
use crate::spans::{Span, Timeline, cut};
use crate::states::State;

/// What an end waited for, from `first` to `last`.
pub(crate) fn spans(end: &End, first: u64, last: u64) -> Vec<Span<State>> {
    let mut sender = Sender {
        line: Timeline::new(first, last, At::Sure(State::Handshake)),
        why: Why::Nothing,
        blocked: false,
        probed: false,
        written: end.observed.last().map_or(0, |record| record.end),
        fin: end.fin,
    };
    let mut changed = 0;
    for (at, record) in end.observed.iter().enumerate() {
        // A timer that changes `ca_state` is recorded before it does.
        changed += end.ca[changed..].partition_point(|change| change.0 < record.t);
        if let Some(before) = at.checked_sub(1).map(|at| end.observed[at])
            && let Some(&(t, ca)) = changed.checked_sub(1).map(|last| &end.ca[last])
            && (t >= before.t && ca != before.ca)
        {
            sender.take(&Observed { t, ca, ..before });
        }
        sender.take(record);
    }
    let silent_since = end.observed.last().map_or(first, |record| record.t);
    if let Some(eof) = end.eof.filter(|eof| *eof > silent_since)
        && sender.line.now() == At::Sure(State::LastFlight)
    {
        // The peer's FIN acknowledged the rest; a socket on its way to TIME-WAIT records no more.
        sender.line.change(eof, At::Sure(State::Closing));
    }
    let waits = timer_waits(end);
    let spans = cut(&sender.line.finish(), &waits, |_, wait| At::Sure(wait));
    let spans = cut(&spans, &end.reads, |at, ()| match at {
        At::Idle => At::Sure(State::IdlePeer),
        At::Between => At::Sure(State::AppPeer),
        At::Held => At::Sure(State::Nagle),
        At::Sure(_) => at,
    });
    spans.into_iter().map(|(from, to, at)| (from, to, at.outside_read())).collect()
}

/// What a sender waits for, as long as it is open what its application does meanwhile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    Sure(State),
    /// Everything is acknowledged, and more will be written.
    Idle,
    /// Everything is sent, and more will be written.
    Between,
    /// Nagle holds what would not wait if the application went on writing.
    Held,
}

impl At {
    const fn outside_read(self) -> State {
        match self {
            Self::Sure(state) => state,
            Self::Idle => State::IdleAppThink,
            Self::Between | Self::Held => State::App,
        }
    }
}

struct Sender {
    line: Timeline<At>,
    why: Why,
    blocked: bool,
    /// The last segment or timer was a tail loss probe's.
    probed: bool,
    /// Where the data ends that will ever be written (`write_seq`).
    written: u32,
    /// The number of the FIN: when that is the oldest without an ACK, all data has one.
    fin: Option<u32>,
}

impl Sender {
    fn take(&mut self, record: &Observed) {
        match record.place {
            Place::Xmit => self.why = record.why,
            Place::Write => self.blocked = record.why == Why::Blocked,
            Place::Ack | Place::Timer => self.probed = record.why == Why::Tlp,
        }
        let unsent = record.end.wrapping_sub(record.nxt);
        let unacked = record.nxt.wrapping_sub(record.una);
        // The FIN takes one number: the data may end one before the last.
        let done = self.written.wrapping_sub(record.end) <= 1;
        let at = if unsent > 0 {
            self.with_data(record, unacked, done)
        } else if unacked > 0 {
            match record.ca {
                _ if done && self.fin == Some(record.una) => At::Sure(State::Closing),
                LOSS => At::Sure(State::Loss),
                RECOVERY => At::Sure(State::Recovery),
                _ if self.blocked => At::Sure(State::Sndbuf),
                _ if done => At::Sure(State::LastFlight),
                _ => At::Between,
            }
        } else if done {
            At::Sure(State::Closing)
        } else {
            At::Idle
        };
        self.line.change(record.t, at);
    }

    /// While data waits to be sent.
    fn with_data(&self, record: &Observed, unacked: u32, done: bool) -> At {
        if record.ca == LOSS {
            return At::Sure(State::Loss);
        }
        At::Sure(match self.why {
            Why::Cwnd if matches!(record.ca, CWR | RECOVERY) => State::Recovery,
            Why::Cwnd if record.cwnd < record.ssthresh => State::CwndSlowStart,
            Why::Cwnd => State::CwndAvoidance,
            Why::Rwnd => {
                let probes = record.place == Place::Timer && record.why == Why::Probe0;
                let shut = record.wnd == 0 || probes || unacked == 0;
                if shut { State::ZeroWindow } else { State::Rwnd }
            }
            // Nothing but the tail of a full buffer is held back.
            Why::Nagle if self.blocked => State::Sndbuf,
            Why::Nagle if !done => return At::Held,
            Why::Nagle => State::Nagle,
            Why::Defer => State::Defer,
            Why::Tsq => State::Tsq,
            Why::Pacing => State::Pacing,
            _ if self.probed => State::TlpWait,
            _ => State::Busy,
        })
    }
}

/// From the last progress to a timer that sent.
fn timer_waits(end: &End) -> Vec<Span<State>> {
    let mut waits = Vec::new();
    let mut progress = None;
    for record in &end.observed {
        let timer = match (record.place, record.why) {
            (Place::Ack, _) => {
                progress = Some(record.t);
                continue;
            }
            (Place::Timer, Why::Tlp) => State::TlpWait,
            (Place::Timer, Why::Rto) => State::RtoWait,
            (Place::Xmit, _) if record.amount > 0 && record.flight == record.amount => {
                // Sent onto an empty path: the timer runs from here.
                progress = progress.map(|_| record.t);
                continue;
            }
            _ => continue,
        };
        let next = end.sends.partition_point(|sent| *sent < record.t);
        let sent = end.sends.get(next).is_some_and(|sent| sent - record.t < TIMER_SENDS_NS);
        if let Some(since) = progress
            && record.nxt != record.una
            // A FIN alone is retransmitted: all data has its ACK.
            && end.fin != Some(record.una)
            && sent
        {
            waits.push((since, record.t, timer));
            progress = Some(record.t);
        }
    }
    waits
}

/// `enum tcp_ca_state` (Linux v6.12 `include/uapi/linux/tcp.h`).
const CWR: u8 = 2;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// Ours: a timer's own call sends within microseconds; the next ACK is a path away.
const TIMER_SENDS_NS: u64 = 20_000;
