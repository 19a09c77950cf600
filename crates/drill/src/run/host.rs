//! The host under test: its sockets, its clock, its tap.
//!
//! As in packetdrill one connection at a time is under test: the newest that was connected or that
//! a SYN opened. What comes in goes to it; to the listener if it is gone; else a RST answers, as
//! the kernel sends it (`tcp_v4_send_reset`).

use std::collections::BTreeMap;

use super::call::Arguments;
use super::cookies::Cookies;
use super::end::{End, Role, Wire};
use super::epoll::Epoll;
use super::info;
use super::port::Reuse;
use super::sent::Sent;
use super::settings::Settings;
use super::zero_copy::ZeroCopy;
use crate::script::Icmp;
use tcpwhy_model::profile::KnobError;
use tcpwhy_model::segment::{Flags, Segment};
use tcpwhy_model::socket::{Config, Counters, Link, Metrics, Socket, State};

/// What is behind a descriptor.
#[derive(Clone, Debug)]
pub(super) enum File {
    Socket(usize),
    Epoll(Epoll),
    /// A file: its size, and how much of it was read.
    Plain {
        size: u64,
        read: u64,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) now_ns: u64,
    pub(super) files: BTreeMap<i64, File>,
    pub(super) ends: Vec<End>,
    pub(super) wire: Wire,
    /// What every new socket starts from.
    config: Config,
    /// The connection under test.
    current: Option<usize>,
    /// The socket that listens.
    listener: Option<usize>,
    /// What is remembered of the peer, and how often that was thrown away.
    kept: Option<Metrics>,
    flushes: u32,
    pub(super) cookies: Cookies,
    /// The remote and the local address.
    addresses: Vec<u8>,
    /// When a client may have a port again.
    pub(super) reuse: Reuse,
    /// The size of files by their names.
    pub(super) sizes: BTreeMap<String, u64>,
}

/// Where a script's start lies on the host's clock: in the middle of a tick at 250 and at 1000 Hz,
/// as packetdrill begins well within one (`schedule_start_time_usecs` of run.c).
pub(super) const START_NS: u64 = 1_000_000_500_000;

impl Host {
    pub(super) fn new(settings: &Settings) -> Host {
        let mut host = Host {
            now_ns: 0,
            files: BTreeMap::new(),
            ends: Vec::new(),
            wire: Wire::default(),
            config: Config { clock_ns: START_NS, ..Config::of(settings.kernel) },
            current: None,
            listener: None,
            kept: None,
            flushes: 0,
            cookies: Cookies::default(),
            addresses: Vec::new(),
            reuse: Reuse::default(),
            sizes: BTreeMap::new(),
        };
        host.configure(settings);
        host
    }

    /// Settings have changed; sockets that exist keep theirs.
    pub(super) fn configure(&mut self, settings: &Settings) {
        if self.config.route.mtu != settings.route.mtu {
            for socket in self.ends.iter_mut().filter_map(End::socket_mut) {
                socket.set_route_mtu(settings.route.mtu);
            }
        }
        for socket in self.ends.iter_mut().filter_map(End::socket_mut) {
            socket.set_refused(settings.refuses);
        }
        self.config.sysctl = settings.sysctl.clone();
        self.config.route = settings.route.clone();
        self.config.link = Link {
            mtu: settings.mtu,
            ipv6: settings.ipv6,
            paces: settings.paces,
            holds: settings.paces,
            refuses: settings.refuses,
            ..Link::default()
        };
        self.addresses = settings.address_bytes();
        self.config.cookie = self.cookies.of_server(&settings.key, &self.addresses);
        if std::mem::replace(&mut self.flushes, settings.flushes) != settings.flushes {
            self.kept = None;
        }
        self.wire.paces = settings.paces;
        self.wire.refuses = settings.refuses;
        self.wire.offload = settings.offload;
        self.reuse = settings.reuse;
        self.sizes.clone_from(&settings.files);
    }

    /// What every new socket starts from.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The next segment on the tap that no event has taken. What is left of connections before the
    /// one under test is passed over.
    pub(super) fn take_sent(&mut self) -> Option<Sent> {
        loop {
            let sent = self.wire.sent.pop_front()?;
            if sent.owner.is_none() || sent.owner == self.current {
                return Some(sent);
            }
        }
    }

    /// Puts a segment back on the tap.
    pub(super) fn untake(&mut self, sent: Sent) {
        self.wire.sent.push_front(sent);
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.current.is_some_and(|at| self.ends[at].state() == State::SynSent)
    }

    /// When something happens by itself.
    pub(super) fn next_due(&self) -> Option<u64> {
        let timers = self.ends.iter().filter_map(|end| end.socket()?.next_timer());
        timers.chain(self.wire.next_due()).min()
    }

    /// Lets this instant come, at which something is due.
    pub(super) fn advance(&mut self, at: u64) {
        self.now_ns = self.now_ns.max(at);
        while let Some((owner, segment)) = self.wire.take_due(self.now_ns) {
            self.wire.put(owner, self.now_ns, &segment);
            if let Some(owner) = owner {
                self.with(owner, |socket, now, out| socket.on_departed(now, segment.truesize, out));
            }
        }
        for index in 0..self.ends.len() {
            let due = self.ends[index]
                .socket()
                .and_then(Socket::next_timer)
                .is_some_and(|due| due <= self.now_ns);
            if due {
                self.with(index, Socket::on_timer);
                self.on_failure(index, "ETIMEDOUT");
            }
        }
    }

    /// Does something with an endpoint.
    pub(super) fn with<T>(
        &mut self,
        index: usize,
        action: impl FnOnce(&mut Socket, u64, &mut Vec<Segment>) -> T,
    ) -> Option<T> {
        let now = self.now_ns;
        let kept = &mut self.kept;
        self.ends[index].act(&mut self.wire, Some(index), now, |socket, out| {
            socket.share_metrics(kept);
            let value = action(socket, now, out);
            socket.share_metrics(kept);
            value
        })
    }

    /// A connection that ended by itself leaves an error behind.
    fn on_failure(&mut self, index: usize, error: &'static str) {
        let end = &mut self.ends[index];
        if std::mem::take(&mut end.failed) {
            end.error = Some(error);
        }
    }

    /// A segment comes in; a large one consists of pieces of this size.
    pub(super) fn receive(&mut self, segment: Segment, piece: u16) {
        let segment = Segment { piece, ..segment };
        let alive = self.current.filter(|at| self.ends[*at].state() != State::Closed);
        let flags = segment.flags;
        match (alive, self.listener) {
            (Some(at), _) => self.receive_at(at, &segment),
            (None, Some(listener))
                if flags.has(Flags::SYN) && !flags.has(Flags::ACK.with(Flags::RST)) =>
            {
                self.open(listener, &segment);
            }
            _ if flags.has(Flags::RST) => {}
            _ => self.wire.put(None, self.now_ns, &reset(&segment)),
        }
    }

    /// An ICMP error comes in, about a packet whose first sequence number is `seq`; what it is, if the
    /// host does not know it.
    pub(super) fn receive_error(&mut self, icmp: &Icmp, seq: u32) -> Result<(), String> {
        let Some(at) = self.current else { return Ok(()) };
        let code = icmp.code.as_deref().unwrap_or("net_unreachable");
        let error = match (icmp.kind.as_str(), code) {
            ("unreachable", "frag_needed") | ("packet_too_big", _) => {
                let mtu = icmp.mtu.unwrap_or(0);
                self.with(at, |socket, now, out| socket.on_mtu(now, mtu, seq, out));
                let told = self.ends[at].socket().and_then(|socket| socket.config().path_mtu);
                self.config.path_mtu = told.or(self.config.path_mtu);
                return Ok(());
            }
            ("unreachable", "net_unreachable") => "ENETUNREACH",
            ("unreachable", "host_unreachable") => "EHOSTUNREACH",
            ("unreachable", "port_unreachable") => "ECONNREFUSED",
            ("unreachable", "proto_unreachable") => "ENOPROTOOPT",
            (kind, code) => return Err(format!("ICMP ({kind} {code})")),
        };
        // Once accepted it is treated as one whose handshake is done.
        let accepted =
            self.files.values().any(|file| matches!(file, File::Socket(of) if *of == at));
        let early = self.ends[at].socket().is_some_and(Socket::is_open_early);
        if !(early && accepted)
            && self.with(at, |socket, now, _| socket.on_unreachable(now, seq)) == Some(true)
        {
            self.on_failure(at, error);
        }
        Ok(())
    }

    fn receive_at(&mut self, at: usize, segment: &Segment) {
        let before = self.ends[at].state();
        let was_early = self.ends[at].is_ready();
        let next = |end: &End| end.socket().map(|socket| socket.info().rcv_nxt);
        let next_before = next(&self.ends[at]);
        self.with(at, |socket, now, out| socket.on_segment(now, segment, out));
        let end = &mut self.ends[at];
        if segment.flags.has(Flags::SYN) && before == State::SynSent {
            end.remote_isn = segment.seq;
        }
        let is_made = before == State::SynReceived && end.state() != before;
        if is_made && end.failed && !was_early {
            self.forget_request(at);
            return;
        }
        if next(end) != next_before || is_made {
            end.grown_ns = self.now_ns;
        }
        if end.state() == State::TimeWait {
            end.over_ns = self.now_ns;
        }
        let error = match before {
            State::SynSent => "ECONNREFUSED",
            State::CloseWait => "EPIPE",
            _ => "ECONNRESET",
        };
        self.on_failure(at, error);
    }

    /// A handshake was given up: no program hears of it.
    fn forget_request(&mut self, at: usize) {
        self.ends[at].failed = false;
        if let Some(listener) = self.ends[at].listener
            && let Role::Listener(waiting) = &mut self.ends[listener].role
        {
            waiting.retain(|child| *child != at);
        }
    }

    /// How many connections of a listener are open before their handshake is done.
    fn early_count(&self, listener: usize) -> usize {
        let early = |end: &&End| end.socket().is_some_and(Socket::is_open_early);
        let own = self.ends.iter().filter(|end| end.listener == Some(listener));
        own.filter(early).count()
    }

    /// A SYN opens a connection that waits to be accepted.
    fn open(&mut self, listener: usize, syn: &Segment) {
        let parent = &self.ends[listener];
        let mut config = Config { metrics: self.kept, ..parent.config(&self.config) };
        config.options.fast_open &= self.early_count(listener) < parent.early_most;
        if let Some(key) = parent.key {
            config.cookie = self.cookies.of_server(&key, &self.addresses);
        }
        let mut out = Vec::new();
        // What a listener is configured with is checked when it begins to listen.
        let Ok(socket) = Socket::accept(config, self.now_ns, syn, &mut out) else { return };
        let child = End {
            role: Role::Connection(socket),
            options: parent.options.clone(),
            used: true,
            remote_isn: syn.seq,
            grown_ns: self.now_ns,
            tells_queue: parent.tells_queue,
            listener: Some(listener),
            zero_copy: ZeroCopy::inherited(parent.zero_copy.on),
            ..End::default()
        };
        self.ends.push(child);
        let at = self.ends.len() - 1;
        self.current = Some(at);
        self.with(at, |socket, _, sent| {
            socket.set_waiting(true);
            sent.append(&mut out);
        });
        if let Role::Listener(waiting) = &mut self.ends[listener].role {
            waiting.push(at);
        }
    }

    /// Makes a descriptor stand for something new.
    pub(super) fn open_file(&mut self, descriptor: i64, file: File) {
        self.files.insert(descriptor, file);
    }

    pub(super) fn new_end(&mut self, end: End) -> usize {
        self.ends.push(end);
        self.ends.len() - 1
    }

    /// The socket of a descriptor.
    pub(super) fn end_of(&self, descriptor: i64) -> Option<usize> {
        match self.files.get(&descriptor) {
            Some(File::Socket(at)) => Some(*at),
            _ => None,
        }
    }

    pub(super) fn listen(&mut self, at: usize) -> Result<(), String> {
        let syn = Segment { flags: Flags::SYN, ..Segment::default() };
        let trial =
            Socket::accept(self.ends[at].config(&self.config), self.now_ns, &syn, &mut Vec::new());
        trial.map_err(|error| error.to_string())?;
        self.ends[at].role = Role::Listener(Vec::new());
        self.listener = Some(at);
        self.current = None;
        Ok(())
    }

    /// Begins a connection from this socket.
    pub(super) fn connect(&mut self, at: usize) -> Result<(), String> {
        self.begin(at, |config, now_ns, out| {
            Socket::connect(config, now_ns, out).map(|socket| (socket, 0))
        })?;
        Ok(())
    }

    /// The same by a write; what the SYN took of it.
    pub(super) fn connect_writing(&mut self, at: usize, bytes: u64) -> Result<u64, String> {
        self.begin(at, |config, now_ns, out| Socket::connect_writing(config, now_ns, bytes, out))
    }

    fn begin(
        &mut self,
        at: usize,
        open: impl FnOnce(Config, u64, &mut Vec<Segment>) -> Result<(Socket, u64), KnobError>,
    ) -> Result<u64, String> {
        let config = Config { metrics: self.kept, ..self.ends[at].config(&self.config) };
        let mut out = Vec::new();
        let (socket, taken) =
            open(config, self.now_ns, &mut out).map_err(|error| error.to_string())?;
        self.ends[at].role = Role::Connection(socket);
        self.ends[at].used = true;
        self.current = Some(at);
        self.with(at, |_, _, sent| sent.append(&mut out));
        Ok(taken)
    }

    /// A connection is reset, and its socket is as good as new (`connect` to `AF_UNSPEC`).
    pub(super) fn disconnect(&mut self, at: usize) {
        self.with(at, Socket::reset);
        let end = &mut self.ends[at];
        *end = End {
            role: std::mem::take(&mut end.role),
            options: end.options.clone(),
            nonblocking: end.nonblocking,
            ..End::default()
        };
    }

    /// The first connection that can be accepted.
    pub(super) fn take_connection(&mut self, listener: usize) -> Option<usize> {
        let ends = &self.ends;
        let Role::Listener(waiting) = &ends[listener].role else { return None };
        let position = waiting.iter().position(|at| ends[*at].is_ready())?;
        let Role::Listener(waiting) = &mut self.ends[listener].role else { return None };
        let child = waiting.remove(position);
        self.with(child, |socket, _, _| socket.set_waiting(false));
        Some(child)
    }

    /// The last descriptor of a socket is closed.
    pub(super) fn close(&mut self, at: usize) {
        self.ends[at].closed = true;
        if let Role::Listener(waiting) = &self.ends[at].role {
            // Who waits to be accepted is reset; requests just end (`inet_csk_listen_stop`).
            for child in waiting.clone() {
                if self.ends[child].is_ready() {
                    self.with(child, Socket::reset);
                } else {
                    self.ends[child].role = Role::Fresh;
                }
            }
            self.listener = self.listener.filter(|listener| *listener != at);
        }
        if self.ends[at].resets {
            self.with(at, Socket::reset);
        }
        self.with(at, Socket::close);
    }

    /// Counters of the host that scripts look at, by the names of `nstat`.
    pub(super) fn counters(&self) -> BTreeMap<&'static str, u64> {
        let sockets = self.ends.iter().filter_map(End::socket);
        let all = sockets.map(Socket::counters).fold(Counters::default(), |sum, one| sum + one);
        BTreeMap::from([
            ("TcpExtBeyondWindow", all.beyond_window),
            ("TcpExtTCPRcvQDrop", all.no_memory),
            ("TcpExtTCPZeroWindowDrop", all.zero_window),
            ("TcpExtOutOfWindowIcmps", all.strange_errors),
        ])
    }

    /// What `TCP_INFO` says of the connection under test.
    pub(super) fn known_to_code(&self) -> Option<BTreeMap<&'static str, i128>> {
        let end = &self.ends[self.current?];
        let info = end.socket()?.info();
        let mut names = info::names(&info);
        names.extend(info::counts(&end.socket()?.traffic()));
        let (busy, window, buffer) = end.socket()?.limited_us(self.now_ns);
        names.insert("tcpi_busy_time", busy.into());
        names.insert("tcpi_rwnd_limited", window.into());
        names.insert("tcpi_sndbuf_limited", buffer.into());
        names.insert("tcpi_last_data_recv", ((self.now_ns - end.grown_ns) / 1_000_000).into());
        // A FIN counts (`tcp_rcv_nxt_update`), a SYN does not.
        let received = info.rcv_nxt.wrapping_sub(end.remote_isn).saturating_sub(1);
        names.insert("tcpi_bytes_received", received.into());
        Some(names)
    }
}

/// The answer to what belongs to no connection.
fn reset(to: &Segment) -> Segment {
    if to.flags.has(Flags::ACK) {
        return Segment { seq: to.ack, flags: Flags::RST, ..Segment::default() };
    }
    Segment { ack: to.end_seq(), flags: Flags::RST.with(Flags::ACK), ..Segment::default() }
}

impl Arguments<'_> {
    /// The socket whose descriptor comes first.
    pub(super) fn end(&self, host: &Host) -> Result<usize, String> {
        let descriptor = self.number(0)?;
        host.end_of(descriptor).ok_or_else(|| format!("{} of what is no socket", self.call.name))
    }
}
