//! What holds a sender at the instant of a look, asked in the order of `ORDER`.
//!
//! What is in flight is `Send-Q` without what was not sent (`write_seq - snd_una`, `tcpi_notsent_bytes`): exact to the byte, where
//! segments times their size is not. A window, a buffer and the congestion window are full if they have no room for a segment.

use tcpwhy_words::said::{bytes, time};

use super::{Held, Reader, pace};
use crate::host::snapshot::{Info, Memory, Socket, State as Tcp};
use crate::report::{State, Sure};

/// What one look has of a sender.
struct Sender<'a> {
    socket: &'a Socket,
    info: &'a Info,
    memory: Option<&'a Memory>,
    mss: u64,
    /// Bytes sent and not acknowledged, and bytes that wait to be sent; of these 0 where they were not seen.
    flight: u64,
    waiting: u64,
}

type Rule = fn(&Sender<'_>) -> Option<Held>;

/// Which cause is asked when: what stands still, then what has no room, then what is left.
const ORDER: [Rule; 6] = [shut, timed_out, repairs, window_full, buffer_full, cwnd_full];

/// The states of a full receive window.
pub(super) const WINDOW: [State; 5] = [
    State::ZeroWindow,
    State::RwndCap,
    State::RwndAutotune,
    State::RwndReader,
    State::BandwidthSelfQueue,
];

/// Timers of `sock_diag(7)`.
const RETRANSMISSION: u8 = 1;
const PROBE: u8 = 4;

/// The least that Linux waits before a timeout, in nanoseconds (`TCP_RTO_MIN`).
const RTO_MIN: u64 = 200_000_000;

/// A timeout of this many times what the round trip makes of it was backed off (`tcp_retransmit_timer` doubles it each time).
const BACKED_OFF: u64 = 4;

/// The most that a super-segment holds (`GSO_LEGACY_MAX_SIZE`).
const SUPER_SEGMENT: u64 = 65_536;

/// What a sender lets lie below it: the part of a second of its pace, as a shift (`sk_pacing_shift`, `sk_init_common`), and at least
/// two of its segments (`tcp_small_queue_check`).
const SMALL_QUEUE: (u32, u64) = (10, 2);

/// A round trip of this many times the least one has a queue in it, or its ACKs are held. Ours, as of the checks.
const QUEUED: u64 = 2;

/// What holds `socket`; `None` if it has nothing to send, or that was not seen.
pub(super) fn held(socket: &Socket) -> Option<Held> {
    if socket.state == Tcp::SynSent {
        return Some(opening(socket));
    }
    let info = socket.info.as_deref()?;
    let has_closed = matches!(socket.state, Tcp::FinWait1 | Tcp::Closing | Tcp::LastAck);
    // A FIN takes one number (RFC 9293 section 3.4).
    if has_closed && socket.send_queue == 1 {
        return Some(held_by(State::Closing, Sure::Shown, "its FIN is on the way".to_owned()));
    }
    let (queue, waiting) = (u64::from(socket.send_queue), info.notsent_bytes.unwrap_or(0));
    if queue == 0 {
        return None;
    }
    let sender = Sender {
        socket,
        info,
        memory: socket.memory.as_ref(),
        // Old versions of ss do not show it.
        mss: u64::from(info.snd_mss.unwrap_or(0)).max(1),
        flight: queue.saturating_sub(waiting),
        waiting,
    };
    Some(ORDER.iter().find_map(|rule| rule(&sender)).unwrap_or_else(|| rest(&sender)))
}

/// Whether the peer's window has no room for a segment.
pub(super) fn is_window_full(socket: &Socket) -> bool {
    let Some(info) = socket.info.as_deref() else { return false };
    let (Some(window), Some(mss)) = (info.snd_wnd, info.snd_mss) else { return false };
    let flight = u64::from(socket.send_queue).saturating_sub(info.notsent_bytes.unwrap_or(0));
    u64::from(window) < flight + u64::from(mss)
}

/// Whether a link lies between the ends. The loopback device has none whose rate could make a queue: what waits there waits for
/// a processor.
pub(super) const fn has_link(socket: &Socket) -> bool {
    !socket.remote.ip().to_canonical().is_loopback()
}

const fn held_by(state: State, sure: Sure, by: String) -> Held {
    Held { state, sure, by }
}

/// A connection that is not open yet.
fn opening(socket: &Socket) -> Held {
    let again = socket.info.as_deref().and_then(|info| info.total_retrans).unwrap_or(0);
    let again = again.max(socket.timer.map_or(0, |timer| u32::from(timer.retransmits)));
    let (state, by) = if again > 0 {
        (State::SynRetry, format!("its SYN was sent {again} times more, and nothing answers"))
    } else {
        (State::Handshake, "its SYN is on the way".to_owned())
    };
    Held { state, sure: Sure::Shown, by }
}

impl Sender<'_> {
    fn timer(&self, kind: u8) -> bool {
        self.socket.timer.is_some_and(|timer| timer.kind == kind)
    }

    /// Whether its send buffer takes more from a program that waits: it is woken when half as much is free as is used
    /// (`sk_stream_write_space`, `sk_stream_is_writeable`).
    fn has_room(&self) -> Option<bool> {
        let memory = self.memory.filter(|memory| memory.sndbuf > 0)?;
        let free = memory.sndbuf.saturating_sub(memory.wqueued);
        Some(free >= memory.wqueued / 2)
    }

    /// Segments that are smaller than the path takes because of so small a window (`tcp_bound_to_half_wnd`).
    fn halved(&self, window: u64) -> String {
        let pmtu = u64::from(self.info.pmtu.unwrap_or(0));
        let is_halved = window / 2 == self.mss && self.mss * 2 <= pmtu;
        if !is_halved {
            return String::new();
        }
        format!(", and its segments are half of that ({})", bytes(self.mss))
    }

    /// Whether the congestion window has no room that is used: room of less than a third of it, and of less than a super-segment,
    /// waits for more (`tcp_tso_should_defer`, `tcp_tso_win_divisor` 3), but for BBR, whose pace says when it sends.
    fn is_cwnd_full(&self, unacked: u32, cwnd: u32) -> bool {
        let room = u64::from(cwnd.saturating_sub(unacked));
        let used = if pace::is_bbr(self.socket) {
            1
        } else {
            u64::from(cwnd / 3).min(SUPER_SEGMENT / self.mss)
        };
        room < used.max(1)
    }

    /// Segments retransmitted that the peer did not report to have twice (D-SACK): each repaired a loss, and cut the window.
    fn repaired(&self) -> u32 {
        let again = self.info.total_retrans.unwrap_or(0);
        again.saturating_sub(self.info.dsack_dups.unwrap_or(0))
    }

    /// How many times the round trip is the least there was, if both are known.
    fn is_queued(&self) -> Option<String> {
        let (rtt, least) = (self.info.rtt_ns?, self.info.min_rtt_ns?);
        (rtt >= QUEUED * least && has_link(self.socket)).then(|| {
            let [rtt, least] = [rtt, least].map(|ns| time(ns.cast_signed()));
            format!("a round trip of {rtt} where {least} is the least")
        })
    }
}

/// The peer's window is shut: the persist timer runs (RFC 9293 section 3.8.6.1).
fn shut(sender: &Sender<'_>) -> Option<Held> {
    let is_shut = sender.info.snd_wnd == Some(0) && sender.waiting > 0;
    if !sender.timer(PROBE) && !is_shut {
        return None;
    }
    let waiting = bytes(sender.waiting.max(sender.flight));
    Some(held_by(
        State::ZeroWindow,
        Sure::Shown,
        format!("the receiver's window is shut, and {waiting} wait for it to open"),
    ))
}

/// Nothing is acknowledged, and the retransmission timer has run out before.
fn timed_out(sender: &Sender<'_>) -> Option<Held> {
    let (info, rto) = (sender.info, sender.info.rto_ns.unwrap_or(0));
    let fired =
        sender.socket.timer.map_or(0, |timer| timer.retransmits).max(info.backoff.unwrap_or(0));
    let usual = info.rtt_ns.unwrap_or(0).saturating_mul(2).max(RTO_MIN);
    let is_backed_off = info.lost.unwrap_or(0) > 0 && rto >= BACKED_OFF * usual;
    if !sender.timer(RETRANSMISSION) || fired == 0 && !is_backed_off {
        return None;
    }
    let times = if fired > 0 { format!(", {fired} times in a row by now") } else { String::new() };
    let rto = time(rto.cast_signed());
    Some(held_by(
        State::RtoWait,
        Sure::Shown,
        format!("what it sends is not acknowledged; it retransmits each {rto}{times}"),
    ))
}

/// Some of what is in flight counts as lost.
fn repairs(sender: &Sender<'_>) -> Option<Held> {
    let lost = sender.info.lost.filter(|lost| *lost > 0)?;
    let unacked = sender.info.unacked.unwrap_or(lost);
    Some(held_by(
        State::RecoveryLoss,
        Sure::Shown,
        format!("{lost} of {unacked} segments in flight count as lost"),
    ))
}

/// The peer's window has no room for a segment. Behind a standing queue a larger one would only lengthen that.
fn window_full(sender: &Sender<'_>) -> Option<Held> {
    let window = u64::from(sender.info.snd_wnd?);
    if sender.waiting == 0 || window >= sender.flight + sender.mss {
        return None;
    }
    let full = format!(
        "{} in flight fill the receiver's window of {}",
        bytes(sender.flight),
        bytes(window)
    );
    let full = full + &sender.halved(window);
    match sender.is_queued() {
        Some(queued) => {
            Some(held_by(State::BandwidthSelfQueue, Sure::Possible, format!("{full}, at {queued}")))
        }
        None => Some(held_by(State::RwndReader, Sure::Possible, full)),
    }
}

/// All that was written is in flight, and the buffer wakes no program that waits to write more.
fn buffer_full(sender: &Sender<'_>) -> Option<Held> {
    let memory = sender.memory.filter(|memory| memory.sndbuf > 0)?;
    let is_full = sender.has_room() == Some(false) && sender.waiting < sender.mss;
    let is_cwnd = sender.info.unacked >= sender.info.snd_cwnd && sender.info.snd_cwnd.is_some();
    if !is_full || is_cwnd {
        return None;
    }
    // The last piece is taken whole: Linux asks for room before it, and not for how much (`tcp_sendmsg_locked`, v6.1).
    let (used, size) = (bytes(u64::from(memory.wqueued)), bytes(u64::from(memory.sndbuf)));
    let used = if memory.wqueued > memory.sndbuf {
        format!("{used} are used of {size}, as one write may go beyond it")
    } else {
        format!("{used} of {size} are used")
    };
    let flight = bytes(sender.flight);
    // Below that a program may write that does not wait.
    let sure = if memory.wqueued >= memory.sndbuf { Sure::Likely } else { Sure::Possible };
    Some(held_by(
        State::Sndbuf,
        sure,
        format!("{flight} in flight are all that its send buffer takes: {used}"),
    ))
}

/// The congestion window is full; with a standing queue it is the path's rate that holds it.
fn cwnd_full(sender: &Sender<'_>) -> Option<Held> {
    let (unacked, cwnd) = (sender.info.unacked?, sender.info.snd_cwnd?);
    let is_unseen = sender.info.notsent_bytes.is_none();
    let waits = match sender.has_room() {
        Some(has_room) => !has_room || sender.waiting > 0,
        None => is_unseen || sender.waiting > 0,
    };
    if !waits || !sender.is_cwnd_full(unacked, cwnd) {
        return None;
    }
    let sure = if is_unseen { Sure::Possible } else { Sure::Likely };
    let full = format!("{unacked} segments in flight fill the congestion window of {cwnd}");
    if let Some(queued) = sender.is_queued() {
        return Some(held_by(
            State::BandwidthSelfQueue,
            sure,
            format!("{full}, at {queued}: there is a queue in the path"),
        ));
    }
    if pace::is_bbr(sender.socket) {
        return Some(pace::full_window(sender.info, &full));
    }
    match sender.info.snd_ssthresh {
        Some(ssthresh) if cwnd >= ssthresh => {
            let by = format!("{full}, which grows slowly beyond ssthresh {ssthresh}");
            Some(match sender.repaired() {
                0 => held_by(State::CwndAvoidance, sure, by),
                again => held_by(
                    State::CwndPostLoss,
                    sure,
                    format!("{by}, cut by a loss: {again} segments were retransmitted"),
                ),
            })
        }
        _ => Some(held_by(
            State::CwndSlowStart,
            sure,
            format!("{full}, which doubles each round trip"),
        )),
    }
}

/// The host's own queue: TCP hands on no more while what it handed on lies there (`tcp_small_queue_check`). That has this size where
/// a segment waits for no window and no pace.
fn own_queue(sender: &Sender<'_>, wait: &str) -> Option<Held> {
    let below = sender.memory.map_or(0, |memory| u64::from(memory.wmem));
    let of_pace = sender.info.pacing_rate.unwrap_or(0) >> SMALL_QUEUE.0;
    let least = of_pace.max(SMALL_QUEUE.1 * sender.mss);
    let is_seen = sender.info.snd_wnd.is_some() && sender.info.unacked.is_some();
    if !is_seen || sender.waiting < sender.mss || below < least {
        return None;
    }
    Some(held_by(
        State::LocalQdisc,
        Sure::Likely,
        format!(
            "{wait} though the windows have room: {} of it lie in this host's own queue, and TCP adds no more",
            bytes(below)
        ),
    ))
}

/// What is left: all that was written is sent though there was room for more, so the program has not written it; else what
/// was seen does not tell.
fn rest(sender: &Sender<'_>) -> Held {
    if sender.waiting > 0 {
        let wait = format!("{} wait to be sent", bytes(sender.waiting));
        if let Some(held) = pace::held(sender.socket, sender.info, &wait) {
            return held;
        }
        if let Some(held) = own_queue(sender, &wait) {
            return held;
        }
        let by = if sender.info.snd_wnd.is_some() && sender.info.unacked.is_some() {
            "though the windows have room: pacing, Nagle's algorithm or the host's own queue"
        } else {
            "and the windows were not seen: newer versions of ss show snd_wnd"
        };
        return held_by(State::Unknown, Sure::Possible, format!("{wait}, {by}"));
    }
    if sender.info.notsent_bytes.is_none() && sender.memory.is_none() {
        let by =
            "what was written and waits to be sent was not seen: newer versions of ss show notsent";
        return held_by(State::Unknown, Sure::Possible, by.to_owned());
    }
    let all = format!("all that was written is in flight ({})", bytes(sender.flight));
    match sender.has_room() {
        Some(true) => {
            held_by(State::App, Sure::Possible, format!("{all}, and there is room for more"))
        }
        _ => {
            held_by(State::Unknown, Sure::Possible, format!("{all}; `ss -m` shows its send buffer"))
        }
    }
}

/// The same with what the receiver's own socket says: it knows whose fault a full window is.
pub(super) fn with_peer(held: Held, peer: Option<&Reader>) -> Held {
    let Some(reader) = peer.filter(|_| WINDOW.contains(&held.state)) else { return held };
    let by = format!("{}; at the receiver {}", held.by, reader.words("its program"));
    match reader {
        Reader::Lags { .. } if held.state == State::ZeroWindow => Held { by, ..held },
        Reader::Lags { .. } => Held { state: State::RwndReader, sure: Sure::Shown, by },
        Reader::Hole { .. } => Held { state: State::RecoveryLoss, sure: Sure::Shown, by },
        Reader::Reads { .. } if held.state == State::RwndReader => {
            Held { state: State::RwndCap, sure: Sure::Likely, by }
        }
        Reader::Reads { .. } => Held { by, ..held },
    }
}
