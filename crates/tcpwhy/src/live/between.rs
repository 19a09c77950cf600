//! What a socket did between two looks at it.
//!
//! The kernel's account grows by what held the sender in between, so its time is told apart without a look at each instant:
//! held by the window, held by the buffer, busy with the rest, and nothing in flight. What held the rest is what the looks at its
//! ends say, half of it each.

use tcpwhy_words::said::time;
use tcpwhy_words::units::Duration;

use super::{Account, Held, Reader, moment};
use crate::host::snapshot::{Info, Socket, State as Tcp};
use crate::report::{State, Sure, TimeIn};

/// Time of one state in what lies between two looks from which on it is what held the sender, in per cent. Ours: half is most of
/// it.
const MOSTLY_PERCENT: u64 = 50;

/// The longest tick of the kernel's accounts (`tcp_jiffies32`, `CONFIG_HZ` 100).
const TICK_NS: u64 = 10_000_000;

/// Two looks at one socket.
#[derive(Clone, Copy)]
pub(super) struct Between<'a> {
    pub(super) before: &'a Socket,
    pub(super) now: &'a Socket,
    pub(super) span_ns: u64,
    /// What the receiver's socket says, where it was seen.
    pub(super) peer: Option<&'a Reader>,
    /// Its window was shut before, or is much smaller than it was.
    pub(super) has_lagged: bool,
}

/// What it did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Did {
    /// What holds it now.
    pub(super) held: Option<Held>,
    /// Where the time went.
    pub(super) times: TimeIn,
}

impl Between<'_> {
    fn infos(&self) -> Option<(&Info, &Info)> {
        self.before.info.as_deref().zip(self.now.info.as_deref())
    }

    /// How much one of its counters grew; `None` where it was not seen twice.
    pub(super) fn grew(&self, counter: fn(&Info) -> Option<u64>) -> Option<u64> {
        let (before, now) = self.infos()?;
        Some(counter(now)?.saturating_sub(counter(before)?))
    }

    /// Bytes that were sent or acknowledged in between.
    fn sent(&self) -> bool {
        let queued = self.before.send_queue > 0 || self.now.send_queue > 0;
        let acked = self.grew(|info| info.bytes_acked).unwrap_or(0);
        // A handshake's SYN counts as a byte (`tcp_ack`, `snd_una` grows by it).
        queued || acked > 1
    }

    fn received(&self) -> bool {
        self.grew(|info| info.bytes_received).unwrap_or(0) > 0
    }

    /// Time with something in flight; by the queues where the kernel keeps no account. The account counts ticks: where something
    /// was in flight at both looks, less than a tick without is none.
    fn busy_ns(&self) -> u64 {
        let is_busy = [self.before, self.now].map(|socket| socket.send_queue > 0);
        let by_queues = self.span_ns / 2 * is_busy.iter().filter(|busy| **busy).count() as u64;
        let busy = self.grew(|info| info.busy_ns).map_or(by_queues, |busy| busy.min(self.span_ns));
        if is_busy == [true; 2] && self.span_ns - busy < TICK_NS { self.span_ns } else { busy }
    }

    pub(super) fn did(&self) -> Did {
        let mut did = Did { held: self.moment(self.now), times: TimeIn::default() };
        if is_opening(self.before) {
            // What it was until it opened: the SYN is no data of a program.
            let state = moment::held(self.before).map_or(State::Handshake, |held| held.state);
            did.times.add(state, Duration(self.span_ns.cast_signed()));
        } else if self.sent() {
            self.sender(&mut did);
        } else {
            let state = if self.received() { State::Receiving } else { self.silent() };
            // What is opened or closed has no other time.
            let state = did.held.as_ref().map_or(state, |held| held.state);
            did.times.add(state, Duration(self.span_ns.cast_signed()));
        }
        did
    }

    /// What holds it at one of the looks. A queue in the path shuts no window, and takes none back: one that was shut or is much
    /// smaller than it was is full of what the receiver's program has not read.
    fn moment(&self, socket: &Socket) -> Option<Held> {
        let held = moment::with_peer(moment::held(socket)?, self.peer);
        let is_open = is_path(&held)
            || matches!((held.state, held.sure), (State::RwndReader, Sure::Possible));
        if !self.has_lagged || !is_open || !moment::is_window_full(socket) {
            return Some(held);
        }
        let by = format!("{}; before that the window was shut or larger", held.by);
        Some(Held { state: State::RwndReader, sure: Sure::Likely, by })
    }

    /// Who is to speak: the side that spoke last waits for the other.
    fn silent(&self) -> State {
        let Some(info) = self.now.info.as_deref() else { return State::Unknown };
        match (info.last_data_sent_ns, info.last_data_recv_ns) {
            (Some(sent), Some(received)) if sent < received => State::IdlePeerThink,
            _ => State::IdleAppThink,
        }
    }

    fn sender(&self, did: &mut Did) {
        let busy = self.busy_ns();
        let rwnd = self.window_ns(busy);
        let sndbuf = self.grew(|info| info.sndbuf_limited_ns).unwrap_or(0).min(busy - rwnd);
        let mut add = |state, ns: u64| did.times.add(state, Duration(ns.cast_signed()));
        add(self.window(), rwnd);
        add(State::Sndbuf, sndbuf);
        let rest = busy - rwnd - sndbuf;
        for (state, share) in self.rest(rest) {
            add(state, share);
        }
        let idle = self.span_ns - busy;
        // A sender that goes on has only paused; one that waits for its peer asks and answers.
        add(if self.received() { self.silent() } else { State::App }, idle);
        did.held = self.held(did.held.take(), rwnd, sndbuf);
    }

    /// Time that the peer's window held, of `busy`. The account counts ticks, and begins anew with each ACK: where both looks find
    /// the window full, and it had most of the time, it had all of it.
    fn window_ns(&self, busy: u64) -> u64 {
        let counted = self.grew(|info| info.rwnd_limited_ns).unwrap_or(0).min(busy);
        let is_full = |socket: &Socket| {
            self.moment(socket).is_some_and(|held| moment::WINDOW.contains(&held.state))
        };
        let is_all =
            counted * 100 >= busy * MOSTLY_PERCENT && is_full(self.before) && is_full(self.now);
        if is_all { busy } else { counted }
    }

    /// Which of the states of a full window.
    fn window(&self) -> State {
        let at_ends = [self.now, self.before].into_iter().find_map(|socket| {
            let held = self.moment(socket)?;
            moment::WINDOW.contains(&held.state).then_some(held.state)
        });
        let reads = matches!(self.peer, Some(Reader::Reads { .. }));
        at_ends.unwrap_or(if reads { State::RwndCap } else { State::RwndReader })
    }

    /// What held the rest of its busy time: where the account tells the window's time, that was not the window. Between looks at
    /// which nothing was in flight all that was sent waited for its ACK.
    fn rest(&self, ns: u64) -> [(State, u64); 2] {
        let has_account = self.grew(|info| info.rwnd_limited_ns).is_some();
        let of = |socket: &Socket| {
            let held = self.moment(socket)?;
            let is_told = has_account && moment::WINDOW.contains(&held.state) && !is_path(&held);
            Some(match held.state {
                _ if is_told => State::Unknown,
                // All was in flight, and nothing more was sent: its last ACK was waited for.
                State::App if self.grew(|info| info.bytes_sent) == Some(0) => State::LastFlight,
                state => state,
            })
        };
        let (before, now) = (of(self.before), of(self.now));
        let first = before.or(now).unwrap_or(State::LastFlight);
        let second = now.or(before).unwrap_or(State::LastFlight);
        [(first, ns / 2), (second, ns - ns / 2)]
    }

    /// What holds it now, with what the kernel counted since the look before.
    fn held(&self, now: Option<Held>, rwnd: u64, sndbuf: u64) -> Option<Held> {
        let is_mostly = |ns: u64| ns * 100 >= self.span_ns * MOSTLY_PERCENT && self.span_ns > 0;
        let counted = |what: &str, ns: u64| {
            let [ns, span] = [ns, self.span_ns].map(|ns| time(ns.cast_signed()));
            format!("its kernel counts {ns} of the last {span} as held by {what}")
        };
        if now.as_ref().is_some_and(|held| super::is_standstill(held.state)) {
            return now;
        }
        if is_mostly(rwnd) {
            let by = counted("the receiver's window", rwnd);
            return Some(match now {
                // It counts the window's time, and does not tell whose fault that is.
                Some(held) if moment::WINDOW.contains(&held.state) => {
                    Held { by: format!("{}; {by}", held.by), ..held }
                }
                _ => moment::with_peer(
                    Held { state: self.window(), sure: Sure::Possible, by },
                    self.peer,
                ),
            });
        }
        if is_mostly(sndbuf) {
            let by = counted("its send buffer", sndbuf);
            return Some(Held { state: State::Sndbuf, sure: Sure::Shown, by });
        }
        now
    }

    /// What the kernel's account grew by.
    pub(super) fn account(&self) -> Option<Account> {
        let (before, now) = (Account::of(self.before).unwrap_or_default(), Account::of(self.now)?);
        Some(Account {
            busy_ns: now.busy_ns.saturating_sub(before.busy_ns),
            rwnd_ns: now.rwnd_ns.saturating_sub(before.rwnd_ns),
            sndbuf_ns: now.sndbuf_ns.saturating_sub(before.sndbuf_ns),
        })
    }
}

const fn is_opening(socket: &Socket) -> bool {
    matches!(socket.state, Tcp::SynSent | Tcp::SynRecv)
}

/// Behind a standing queue a full window is the path's.
const fn is_path(held: &Held) -> bool {
    matches!(held.state, State::BandwidthSelfQueue)
}
