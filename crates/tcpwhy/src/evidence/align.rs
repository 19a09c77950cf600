//! Whose clock is a trace's? The offset from a trace of system calls to the capture, by the stream.
//!
//! What a call moved bounds the offset: bytes are read after they arrived, and sent after they were
//! written; a read that got less than it asked for came before the next byte arrived; `connect` sends the
//! SYN before it returns. With `o` the offset, `tap(n)` when byte `n` first passed the capture point and
//! `way` the round trip from there to the host:
//!
//! ```text
//! read of the bytes before R, returned at r:       o >= tap(R) - r
//! the same, begun at s, and there was no more:     o <= tap(R + 1) + way - s
//! write of the bytes from W on, begun at s:        o <= tap(W) - s
//! connect, begun at s, returned at r:              -way - r <= o <= -s      (the SYN passed at 0)
//! ```
//!
//! The bounds of hundreds of calls leave little between them. A trace of the capture's own host mostly
//! has its clock: that is checked by the same bounds, not believed.

use crate::report::{Connection, Passed};
use tcpwhy_words::said;
use tcpwhy_words::units::Time;

use tcpwhy_words::printed::calls::{Calls, Clock, Moved};

/// Bounds may miss each other by this much. Ours: what a packet takes from the tap to the socket on a busy
/// machine, not measured.
const SLACK_NS: i64 = 1_000_000;

/// What to add to a trace's times to get those of the connection, since its first packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Offset {
    pub(super) ns: i64,
    /// How far off it may be; `None` where nothing bounds it.
    pub(super) error_ns: Option<i64>,
    /// The trace's clock less the capture's, where both count from 1970.
    pub(super) apart_ns: Option<i64>,
    /// Calls that bound it.
    pub(super) calls: usize,
}

impl Offset {
    /// In words, to follow "its clock".
    pub(super) fn told(&self) -> String {
        let calls = said::count(self.calls as u64, "call");
        let within = |error| format!("to within {} by the bytes of {calls}", said::time(error));
        match (self.apart_ns, self.error_ns) {
            (Some(0), None) => {
                "is taken for that of the capture: no bytes tell otherwise".to_owned()
            }
            (Some(0), Some(error)) => format!("is that of the capture {}", within(error)),
            (Some(apart), error) => {
                let way = if apart > 0 { "ahead of" } else { "behind" };
                let error = error.map(|error| format!(" ({})", within(error))).unwrap_or_default();
                format!("is {} {way} the capture's{error}", said::time(apart.saturating_abs()))
            }
            (None, Some(error)) => format!("is fitted to the capture {}", within(error)),
            (None, None) => format!("is fitted to the capture by the bytes of {calls}"),
        }
    }
}

/// The offset of the trace for its socket `socket`, which side `side` of `connection` has.
pub(super) fn align(
    trace: &Calls,
    socket: u32,
    connection: &Connection,
    side: usize,
) -> Result<Offset, String> {
    let start = Time::from_rfc3339(&connection.start).filter(|_| trace.clock == Clock::Unix);
    let nominal = start.map(|start| -start.0);
    let Some(bounds) = Bounds::of(trace, socket, connection, side) else {
        return match nominal {
            Some(ns) => Ok(Offset { ns, error_ns: None, apart_ns: Some(0), calls: 0 }),
            None => Err("it began before the trace, and its bytes cannot be counted".to_owned()),
        };
    };
    let Bounds { low, high, calls } = bounds;
    if low.saturating_sub(high) > SLACK_NS {
        return Err(format!(
            "its bytes do not fit those of the capture at any time: one says the clock is off by {} more \
             than another allows; is it another run?",
            said::time(low.saturating_sub(high))
        ));
    }
    // Bounds that miss each other by little have the truth about between them.
    let (low, high) = (low.min(high), low.max(high));
    if let Some(nominal) = nominal
        && nominal >= low.saturating_sub(SLACK_NS)
        && nominal <= high.saturating_add(SLACK_NS)
    {
        let error = high.saturating_sub(nominal).max(nominal.saturating_sub(low)).max(0);
        let error_ns = (low > i64::MIN && high < i64::MAX).then_some(error);
        return Ok(Offset { ns: nominal, error_ns, apart_ns: Some(0), calls });
    }
    let (ns, error_ns) = match (low > i64::MIN, high < i64::MAX) {
        (true, true) => {
            let width = high.saturating_sub(low);
            (low.saturating_add(width / 2), Some(width / 2))
        }
        (true, false) => (low, None),
        (false, true) => (high, None),
        (false, false) => return Err("no call of it moved bytes".to_owned()),
    };
    // The trace is ahead if less must be added than its own epoch says.
    let apart_ns = nominal.map(|nominal| nominal.saturating_sub(ns));
    Ok(Offset { ns, error_ns, apart_ns, calls })
}

struct Bounds {
    low: i64,
    high: i64,
    calls: usize,
}

impl Bounds {
    /// What the calls on the socket allow; `None` where its first byte is not known.
    fn of(trace: &Calls, socket: u32, connection: &Connection, side: usize) -> Option<Self> {
        let facts = trace.sockets.get(socket as usize)?;
        let held = |at: usize| connection.directions[at].as_deref().map_or(0, |each| each.bytes);
        if !facts.is_whole && trace.moved(socket) != (held(side), held(1 - side)) {
            return None;
        }
        let passed = [0, 1].map(|at| connection.directions[at].as_deref().map(|each| &each.passed));
        let (inward, outward) = (passed[1 - side], passed[side]);
        let distance = [connection.tap_to_client_rtt_ns, connection.tap_to_server_rtt_ns][side];
        let way = distance.or(connection.handshake_rtt_ns).unwrap_or(0);
        let mut bounds = Self { low: i64::MIN, high: i64::MAX, calls: 0 };
        let (mut got, mut put) = (0_u64, 0_u64);
        for call in trace.of(socket) {
            match call.moved {
                Moved::Read { got: bytes, drained } => {
                    got = got.saturating_add(bytes);
                    if bytes > 0 {
                        bounds.at_least(inward.and_then(|p| p.not_before(got)), call.end());
                    }
                    if drained {
                        let next = inward.and_then(|p| p.not_after(got.saturating_add(1)));
                        bounds.at_most(next.map(|at| at.saturating_add(way)), call.start);
                    }
                }
                Moved::Wrote(bytes) => {
                    bounds.at_most(
                        outward.and_then(|p| p.not_after(put.saturating_add(1))),
                        call.start,
                    );
                    put = put.saturating_add(bytes);
                }
                Moved::Nothing if trace.word(call.name) == "connect" => {
                    if connection.syns[0].is_some_and(|syn| syn.sent == 1) && side == 0 {
                        bounds.at_most(Some(0), call.start);
                        bounds.at_least(Some(-way), call.end());
                    }
                }
                Moved::Nothing => {}
            }
        }
        (bounds.calls > 0).then_some(bounds)
    }

    fn at_least(&mut self, passed: Option<i64>, call: i64) {
        if let Some(passed) = passed {
            self.low = self.low.max(passed.saturating_sub(call));
            self.calls += 1;
        }
    }

    fn at_most(&mut self, passed: Option<i64>, call: i64) {
        if let Some(passed) = passed {
            self.high = self.high.min(passed.saturating_sub(call));
            self.calls += 1;
        }
    }
}

impl Passed {
    /// Byte `n` (from 1) passed not earlier than this.
    fn not_before(&self, n: u64) -> Option<i64> {
        let at = self.points.partition_point(|point| point.1 < n);
        // Of thinned points the byte may be any between two.
        match at.checked_sub(1) {
            Some(before) if self.is_thinned => self.points.get(before).map(|point| point.0),
            _ => self.points.get(at).map(|point| point.0),
        }
    }

    /// And not later than this.
    fn not_after(&self, n: u64) -> Option<i64> {
        let at = self.points.partition_point(|point| point.1 < n);
        self.points.get(at).map(|point| point.0)
    }
}
