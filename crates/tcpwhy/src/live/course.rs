//! Connections from look to look: what holds each, since when, and where its time went.
//!
//! A connection is its kernel's cookie where that was seen, else its two ends; one whose counters shrink is another with the same
//! ends. Bounded by the sockets of a look: those that are not in the next one have ended, and are handed out once.

use core::net::SocketAddr;
use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use super::between::{Between, Did};
use super::growth::Growth;
use super::key::Key;
use super::pause::Pause;
use super::{Account, Held, Reader, is_standstill, moment, rank};
use crate::host::snapshot::{Info, Socket};
use crate::report::{State, TimeIn};

type Ends = (SocketAddr, SocketAddr);

/// The connections of a host, over time.
#[derive(Clone, Debug)]
pub struct Course {
    /// Boxed: a table that grows has room for what it holds three times over.
    connections: HashMap<Key, Box<Connection>, FixedState>,
    /// Sockets of this look with something to send.
    senders: Vec<Socket>,
    /// Those that have ended in this look, by the kernel's own word.
    told: HashSet<Key, FixedState>,
    ended: Vec<Connection>,
    /// Those that the last look lacked: the kernel may tell of their end only now.
    gone: HashSet<Key, FixedState>,
    strip: usize,
    /// Which look it is.
    look: u64,
}

/// A connection that was seen in one look or more.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// As it was seen last.
    pub socket: Socket,
    /// What holds it now; `None` where it has nothing to send.
    pub held: Option<Held>,
    /// Since when that is so, as far as was looked.
    pub since_ns: u64,
    /// Where its time went since it was first seen.
    pub times: TimeIn,
    /// When it was first and last seen, on the clock of the looks.
    pub first_ns: u64,
    /// See [`Self::first_ns`].
    pub last_ns: u64,
    /// What its own receiving side says.
    pub reader: Option<Reader>,
    /// Of the time that was looked at, what the kernel's account says.
    pub account: Option<Account>,
    /// Bits a second that were acknowledged since the look before; `None` after one look.
    pub sent_bps: Option<u64>,
    /// Bits a second that were received since the look before.
    pub received_bps: Option<u64>,
    /// Segments retransmitted since it was first seen.
    pub retransmitted: u64,
    /// The last looks at it, from the first on at which something held it; empty where none was asked for.
    pub strip: VecDeque<Cell>,
    growth: Growth,
    pause: Pause,
    look: u64,
}

/// A look at a connection: what its graphs are drawn of. What was not seen is 0.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cell {
    /// When, on the clock of the looks.
    pub t_ns: u64,
    /// What held it.
    pub state: Option<State>,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Threshold of slow start in segments; 0 also while it is infinite.
    pub ssthresh: u32,
    /// Smoothed round trip in microseconds.
    pub rtt_us: u32,
    /// Segments in flight; `None` where it is not told, as in what follows.
    pub unacked: Option<u32>,
    /// The peer's window in bytes.
    pub peer_window: Option<u32>,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Bits per second that were acknowledged since the look before.
    pub sent_bps: Option<u64>,
}

impl Course {
    /// `strip` is how many looks each connection's [`Connection::strip`] keeps.
    pub fn new(strip: usize) -> Self {
        Self {
            connections: HashMap::with_hasher(FixedState::default()),
            senders: Vec::new(),
            told: HashSet::with_hasher(FixedState::default()),
            ended: Vec::new(),
            gone: HashSet::with_hasher(FixedState::default()),
            strip,
            look: 1,
        }
    }

    /// Takes in all sockets of a look at `t_ns`; connections that are not among them have ended.
    pub fn take(&mut self, t_ns: u64, sockets: Vec<Socket>) {
        for socket in sockets {
            self.add(t_ns, socket);
        }
        self.end(t_ns);
    }

    /// Takes in one socket of a look at `t_ns`, which [`Self::end`] ends.
    pub fn add(&mut self, t_ns: u64, socket: Socket) {
        // What the peer of a sender says is known only then. Few sockets of a host have something in flight.
        if socket.send_queue > 0 {
            self.senders.push(socket);
        } else {
            self.see(t_ns, socket, None);
        }
    }

    /// Ends a look: connections that were not among its sockets have ended.
    pub fn end(&mut self, t_ns: u64) {
        let mut senders = core::mem::take(&mut self.senders);
        senders.retain(|socket| !self.told.contains(&Key::of(socket)));
        self.told.clear();
        let readers = self.readers(&senders);
        for socket in senders {
            let peer = readers.get(&(socket.remote, socket.local));
            self.see(t_ns, socket, peer);
        }
        let look = self.look;
        self.gone.clear();
        for (key, each) in self.connections.extract_if(|_, each| each.look != look) {
            self.gone.insert(key);
            self.ended.push(*each);
        }
        self.look += 1;
    }

    /// What the peers of senders say, by the peers' own ends, where they are among the sockets of this look.
    fn readers(&self, senders: &[Socket]) -> HashMap<Ends, Reader, FixedState> {
        let mut readers = HashMap::with_hasher(FixedState::default());
        let peers = senders.iter().map(|socket| (socket.remote, socket.local));
        let peers: HashSet<Ends, FixedState> = peers.collect();
        if peers.is_empty() {
            return readers;
        }
        let seen = self.connections.values().filter(|each| each.look == self.look);
        for socket in seen.map(|each| &each.socket).chain(senders) {
            let ends = (socket.local, socket.remote);
            if peers.contains(&ends)
                && let Some(reader) = Reader::of(socket)
            {
                readers.insert(ends, reader);
            }
        }
        readers
    }

    /// A connection that has ended, with its last state (`SKNLGRP_INET_TCP_DESTROY`).
    pub fn ended(&mut self, t_ns: u64, socket: Socket) {
        let key = Key::of(&socket);
        if self.gone.contains(&key) {
            return;
        }
        self.told.insert(key);
        self.see(t_ns, socket, None);
        self.ended.extend(self.connections.remove(&key).map(|each| *each));
    }

    fn see(&mut self, t_ns: u64, socket: Socket, peer: Option<&Reader>) {
        let (key, strip, look) = (Key::of(&socket), self.strip, self.look);
        match self.connections.get_mut(&key) {
            Some(known) if known.is_of(&socket) => known.go_on(t_ns, socket, peer),
            Some(known) => {
                let new = Connection::first(t_ns, socket, peer);
                self.ended.push(core::mem::replace(&mut **known, new));
            }
            None => {
                let new = Box::new(Connection::first(t_ns, socket, peer));
                self.connections.insert(key, new);
            }
        }
        if let Some(known) = self.connections.get_mut(&key) {
            known.look = look;
            known.remember(t_ns, strip);
        }
    }

    /// Those that are open, in no order.
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.connections.values().map(|each| &**each)
    }

    /// Those that are open, what stands still first, then what is held, then by bytes and ends.
    pub fn ranked(&self) -> Vec<&Connection> {
        let mut all: Vec<&Connection> = self.connections().collect();
        all.sort_by_cached_key(|each| {
            let rank = rank(&each.socket, each.held.as_ref(), each.reader);
            (core::cmp::Reverse(rank), each.socket.remote, each.socket.local)
        });
        all
    }

    /// Those that have ended since this was last asked.
    pub fn take_ended(&mut self) -> Vec<Connection> {
        core::mem::take(&mut self.ended)
    }
}

impl Connection {
    /// Whether its own program lags, or cannot read.
    pub fn lags(&self) -> bool {
        self.reader.is_some_and(Reader::is_full)
    }

    /// Whether nothing moves in it.
    pub fn stands_still(&self) -> bool {
        self.held.as_ref().is_some_and(|held| is_standstill(held.state))
    }

    fn first(t_ns: u64, socket: Socket, peer: Option<&Reader>) -> Self {
        let held = moment::held(&socket).map(|held| moment::with_peer(held, peer));
        let account = Account::of(&socket);
        let held = match &account {
            Some(account) => account.over(held, peer),
            None => held,
        };
        let mut growth = Growth::default();
        growth.see_window(&socket);
        Self {
            held,
            since_ns: t_ns,
            times: TimeIn::default(),
            first_ns: t_ns,
            last_ns: t_ns,
            reader: Reader::of(&socket),
            account,
            sent_bps: None,
            received_bps: None,
            retransmitted: 0,
            strip: VecDeque::new(),
            growth,
            pause: Pause::default(),
            look: 0,
            socket,
        }
    }

    /// Whether `socket` may be the same connection: nothing that only grows has shrunk.
    fn is_of(&self, socket: &Socket) -> bool {
        let shrank = |counter: fn(&Info) -> Option<u64>| {
            let of = |socket: &Socket| socket.info.as_deref().and_then(counter);
            of(&self.socket).zip(of(socket)).is_some_and(|(before, now)| now < before)
        };
        !shrank(|info| info.bytes_acked) && !shrank(|info| info.bytes_received)
    }

    fn go_on(&mut self, t_ns: u64, socket: Socket, peer: Option<&Reader>) {
        let busy =
            |socket: &Socket| socket.info.as_deref().and_then(|info| info.busy_ns).unwrap_or(0);
        let span_ns = match t_ns.saturating_sub(self.last_ns) {
            // Looks without a date: it was busy at least for so long.
            0 => busy(&socket).saturating_sub(busy(&self.socket)),
            span => span,
        };
        let has_lagged = self.growth.has_lagged(&socket);
        let between = Between { before: &self.socket, now: &socket, span_ns, peer, has_lagged };
        let Did { held, times } = between.did();
        let rate = |bytes: Option<u64>| {
            let bits = u128::from(bytes?) * 8 * 1_000_000_000;
            u64::try_from(bits.checked_div(u128::from(span_ns))?).ok()
        };
        self.sent_bps = rate(between.grew(|info| info.bytes_acked));
        self.received_bps = rate(between.grew(|info| info.bytes_received));
        self.account = between.account();
        let again = between.grew(|info| info.total_retrans.map(u64::from)).unwrap_or(0);
        self.retransmitted += again;
        self.growth.see(&self.socket, &socket, again);
        self.growth.see_window(&socket);
        let held = held.map(|held| self.growth.named(held, &socket));
        let sndbuf_counted = between.grew(|info| info.sndbuf_limited_ns).unwrap_or(0);
        let has_grown = |counter: fn(&Info) -> Option<u64>| between.grew(counter).unwrap_or(0) > 0;
        let (sends, hears) =
            (has_grown(|info| info.bytes_sent), has_grown(|info| info.bytes_received));
        self.pause.see(&socket, sends, hears, &mut self.times);
        self.pause.add(&times, sndbuf_counted);
        self.times.add_all(times.iter().map(|(state, span)| (self.growth.state(state), span)));
        if held.as_ref().map(|held| held.state) != self.held.as_ref().map(|held| held.state) {
            self.since_ns = t_ns;
        }
        (self.held, self.reader) = (held, Reader::of(&socket));
        (self.last_ns, self.socket) = (t_ns, socket);
    }

    fn remember(&mut self, t_ns: u64, strip: usize) {
        let state = self.held.as_ref().map(|held| held.state);
        // Most connections of a host are idle all the time: they take no room.
        if strip == 0 || state.is_none() && self.strip.is_empty() {
            return;
        }
        while self.strip.len() >= strip {
            self.strip.pop_front();
        }
        let info = self.socket.info.as_deref().copied().unwrap_or_default();
        self.strip.push_back(Cell {
            t_ns,
            state,
            cwnd: info.snd_cwnd.unwrap_or(0),
            ssthresh: info.snd_ssthresh.unwrap_or(0),
            rtt_us: info.rtt_ns.map_or(0, |ns| u32::try_from(ns / 1_000).unwrap_or(u32::MAX)),
            unacked: info.unacked,
            peer_window: info.snd_wnd,
            mss: info.snd_mss.unwrap_or(0),
            sent_bps: self.sent_bps,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::paste;
    use crate::report::Sure;

    const MS: u64 = 1_000_000;

    /// One sender with these words of `ss`, and what `send_queue` says.
    fn socket(send_queue: u32, words: &str) -> Socket {
        let text = format!(
            "ESTAB 0 {send_queue} 192.0.2.1:80 192.0.2.2:4000\n\t cubic wscale:7,7 rto:220 rtt:20/1 mss:1000 {words} minrtt:19\n"
        );
        let look = paste::read(&text).snapshot.looks.pop().expect("a look");
        look.sockets.and_then(|mut all| all.pop()).expect("a socket")
    }

    /// Looks each 100 ms; the connection that is open at the end.
    fn course(looks: &[(u32, &str)]) -> Connection {
        let mut course = Course::new(10);
        for (at, (queue, words)) in looks.iter().enumerate() {
            course.take(at as u64 * 100 * MS, vec![socket(*queue, words)]);
        }
        course.connections().next().expect("an open connection").clone()
    }

    fn times(connection: &Connection) -> Vec<(State, i64)> {
        let all = connection.times.ranked();
        all.iter().map(|(state, span)| (*state, span.0 / 1_000_000)).collect()
    }

    #[test]
    fn a_full_buffer_that_runs_empty_was_waited_for_by_nobody() {
        let full = "skmem:(r0,rb131072,t0,tb90000,f0,w80000,o0,bl0,d0) cwnd:90 unacked:60 snd_wnd:900000 bytes_acked:1 bytes_sent:60001";
        let more =
            full.replace("bytes_acked:1", "bytes_acked:60001").replace("sent:60001", "sent:120001");
        let empty = "skmem:(r0,rb131072,t0,tb90000,f0,w0,o0,bl0,d0) cwnd:90 snd_wnd:900000 bytes_acked:60001 bytes_sent:60001";
        let waited = course(&[(60_000, full), (60_000, &more), (60_000, &more)]);
        assert_eq!(times(&waited), [(State::Sndbuf, 200)]);
        let drained = course(&[(60_000, full), (60_000, full), (0, empty), (0, empty)]);
        assert_eq!(drained.times.get(State::Sndbuf).0, 0, "{:?}", times(&drained));
        assert!(drained.times.get(State::LastFlight).0 >= 100_000_000, "{:?}", times(&drained));
    }

    #[test]
    fn who_goes_on_without_a_word_of_the_peer_has_paused() {
        let words = |sent: u32| {
            format!(
                "cwnd:90 lastsnd:100 lastrcv:900 bytes_acked:{sent} bytes_sent:{sent} bytes_received:9"
            )
        };
        let silent = course(&[(0, &words(9)), (0, &words(9))]);
        assert_eq!(times(&silent), [(State::IdlePeerThink, 100)]);
        let paused = course(&[(0, &words(9)), (0, &words(9)), (0, &words(4000))]);
        assert_eq!(paused.times.get(State::IdlePeerThink).0, 0, "{:?}", times(&paused));
        assert!(paused.times.get(State::IdleAppThink).0 >= 100_000_000, "{:?}", times(&paused));
    }

    #[test]
    fn time_is_told_apart_by_what_the_kernel_counts() {
        let seen = course(&[
            (90_000, "cwnd:90 bytes_acked:1 busy:1000ms unacked:30 notsent:60000 snd_wnd:30000"),
            (
                90_000,
                "cwnd:90 bytes_acked:90001 busy:1080ms rwnd_limited:70ms(10%) unacked:30 notsent:60000 snd_wnd:30000",
            ),
        ]);
        let held = seen.held.as_ref().expect("held");
        assert_eq!((held.state, held.sure), (State::RwndReader, Sure::Possible));
        assert_eq!(seen.sent_bps, Some(7_200_000));
        let times = times(&seen);
        // Both looks found the window full: the ticks that the account misses are the window's, too.
        assert_eq!(times[0], (State::RwndReader, 80), "{times:?}");
        assert!(times.contains(&(State::App, 20)), "nothing in flight: {times:?}");
        assert_eq!(times.iter().map(|each| each.1).sum::<i64>(), 100, "each instant has one state");
    }

    #[test]
    fn a_threshold_met_without_a_loss_was_remembered() {
        let at = |cwnd: u32, ssthresh: u32| {
            format!("cwnd:{cwnd} ssthresh:{ssthresh} unacked:{cwnd} notsent:90000")
        };
        let grown = [at(40, 361), at(155, 361), at(362, 361), at(364, 361)];
        let looks: Vec<_> = grown.iter().map(|words| (500_000, &**words)).collect();
        assert_eq!(course(&looks).held.expect("held").state, State::CwndCachedSsthresh);
        assert_eq!(course(&looks[..2]).held.expect("held").state, State::CwndSlowStart);
        // HyStart sets the threshold where the window is.
        let grown = [at(40, 361).replace("ssthresh:361 ", ""), at(155, 155), at(157, 155)];
        let looks: Vec<_> = grown.iter().map(|words| (500_000, &**words)).collect();
        assert_eq!(course(&looks).held.expect("held").state, State::CwndAvoidance);
        // A loss sets it, too.
        let grown = [at(40, 361), format!("{} retrans:0/9", at(362, 361))];
        let looks: Vec<_> = grown.iter().map(|words| (500_000, &**words)).collect();
        assert_eq!(course(&looks).held.expect("held").state, State::CwndPostLoss);
    }

    #[test]
    fn a_window_that_a_pause_cut_grows_back() {
        let at = |cwnd: u32| format!("cwnd:{cwnd} unacked:{cwnd} notsent:90000");
        let all = [at(80), at(10), at(40), at(80)];
        let looks: Vec<_> = all.iter().map(|words| (90_000, &**words)).collect();
        assert_eq!(course(&looks[..3]).held.expect("held").state, State::CwndAfterIdle);
        assert_eq!(course(&looks).held.expect("held").state, State::CwndSlowStart, "grown back");
    }

    #[test]
    fn a_full_window_behind_a_long_round_trip_is_a_readers_where_it_was_shut_or_larger() {
        let at = |window: u32| {
            format!(
                "cwnd:90 unacked:{0} notsent:60000 snd_wnd:{window} bytes_acked:9",
                window / 1_000
            )
            .replace("cwnd:90", "rtt:60/1 cwnd:90")
        };
        let held = |windows: &[u32]| {
            let words: Vec<String> = windows.iter().map(|window| at(*window)).collect();
            let looks: Vec<_> = words
                .iter()
                .zip(windows)
                .map(|(words, window)| (60_000 + window, &**words))
                .collect();
            let held = course(&looks).held.expect("held");
            (held.state, held.sure)
        };
        assert_eq!(held(&[30_000, 30_000]), (State::BandwidthSelfQueue, Sure::Possible));
        assert_eq!(held(&[59_000, 30_000]), (State::BandwidthSelfQueue, Sure::Possible));
        assert_eq!(held(&[61_000, 30_000]), (State::RwndReader, Sure::Likely));
        assert_eq!(held(&[30_000, 0, 30_000]), (State::RwndReader, Sure::Likely));
    }

    #[test]
    fn one_that_is_gone_is_handed_out_once_and_ends_taken_again_are_another() {
        let mut course = Course::new(0);
        course.take(0, vec![socket(0, "cwnd:10 bytes_acked:500")]);
        course.take(100 * MS, vec![socket(0, "cwnd:10 bytes_acked:40")]);
        assert_eq!(course.take_ended().len(), 1, "its counters shrank");
        course.take(200 * MS, Vec::new());
        assert_eq!(course.take_ended().len(), 1);
        assert_eq!((course.take_ended().len(), course.connections().count()), (0, 0));
    }

    #[test]
    fn a_socket_that_is_destroyed_ends_with_its_last_state() {
        let mut course = Course::new(0);
        course.take(0, vec![socket(0, "cwnd:10 bytes_acked:500")]);
        course.ended(50 * MS, socket(0, "cwnd:10 bytes_acked:900"));
        let ended = course.take_ended();
        assert_eq!(ended[0].last_ns, 50 * MS);
        course.take(100 * MS, Vec::new());
        assert!(course.take_ended().is_empty());
    }

    #[test]
    fn one_whose_end_is_told_after_the_look_that_lacked_it_has_ended_once() {
        let mut course = Course::new(0);
        course.take(0, vec![socket(0, "cwnd:10 bytes_acked:500")]);
        course.take(100 * MS, Vec::new());
        course.ended(150 * MS, socket(0, "cwnd:10 bytes_acked:500"));
        assert_eq!(course.take_ended().len(), 1);
    }

    #[test]
    fn a_strip_keeps_the_last_looks_of_what_was_held() {
        let held = (90_000, "cwnd:10 unacked:10 notsent:80000");
        assert_eq!(course(&[held; 14]).strip.len(), 10);
        let idle = (0, "cwnd:10 bytes_acked:5");
        assert!(course(&[idle; 4]).strip.is_empty());
        let strip = course(&[idle, held, idle]).strip;
        let states: Vec<_> = strip.iter().map(|cell| cell.state).collect();
        assert_eq!(states, [Some(State::CwndSlowStart), None]);
    }
}
