//! `ss` with any of `-a -e -i -l -m -n -o -O -p -t`, a line at a time; `sockets` makes tables of them.
//!
//! A socket is a line with its state, its queues and its two ends; what the kernel says of it follows on the
//! same line or on those indented below. `ss` leaves out what is zero and a threshold that is infinite
//! (iproute2 6.1 `misc/ss.c`, `tcp_stats_print`): [`finish`] puts back those zeros that it has left out since
//! `-i` prints the field at all.
//!
//! Rates are rounded by `ss` to a tenth of their unit.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::evidence::{address, controller, stamp};
use crate::host::snapshot::{Info, Listener, Memory, Owner, Process, Socket, State, Timer};

/// States as `ss` prints them (`misc/ss.c`, `sstate_name`).
pub(crate) const STATES: [(&str, Option<State>); 11] = [
    ("ESTAB", Some(State::Established)),
    ("SYN-SENT", Some(State::SynSent)),
    ("SYN-RECV", Some(State::SynRecv)),
    ("FIN-WAIT-1", Some(State::FinWait1)),
    ("FIN-WAIT-2", Some(State::FinWait2)),
    ("TIME-WAIT", None),
    ("UNCONN", None),
    ("CLOSE-WAIT", Some(State::CloseWait)),
    ("LAST-ACK", Some(State::LastAck)),
    ("LISTEN", None),
    ("CLOSING", Some(State::Closing)),
];

fn is_state(word: &str) -> bool {
    STATES.iter().any(|(name, _)| *name == word)
}

/// Whether the line is a socket's, or the head of a table of sockets.
pub(crate) fn is_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("State" | "Netid") => line.contains("Recv-Q"),
        Some("tcp") => words.next().is_some_and(is_state),
        Some(word) => is_state(word),
        None => false,
    }
}

/// How it is said that a row lacks something.
pub(super) const TOO_SHORT: &str = "it ends before";

/// Names in front of a colon in what `ss` tells of a socket (iproute2 6.1 `misc/ss.c`, `tcp_stats_print`,
/// `print_skmeminfo`, `tcp_show_info`).
const FIGURES: [&str; 48] = [
    "wscale",
    "rto",
    "backoff",
    "rtt",
    "ato",
    "mss",
    "pmtu",
    "rcvmss",
    "advmss",
    "cwnd",
    "ssthresh",
    "bytes_sent",
    "bytes_retrans",
    "bytes_acked",
    "bytes_received",
    "segs_out",
    "segs_in",
    "data_segs_out",
    "data_segs_in",
    "lastsnd",
    "lastrcv",
    "lastack",
    "delivered",
    "delivered_ce",
    "busy",
    "rwnd_limited",
    "sndbuf_limited",
    "unacked",
    "retrans",
    "lost",
    "sacked",
    "fackets",
    "reordering",
    "reord_seen",
    "rcv_rtt",
    "rcv_space",
    "rcv_ssthresh",
    "notsent",
    "minrtt",
    "rcv_ooopack",
    "snd_wnd",
    "rcv_wnd",
    "rehash",
    "dsack_dups",
    "skmem",
    "timer",
    "bbr",
    "dctcp",
];
/// Words without one.
const FLAGS: [&str; 11] = [
    "ts",
    "sack",
    "ecn",
    "ecnseen",
    "fastopen",
    "app_limited",
    "send",
    "pacing_rate",
    "delivery_rate",
    "max_pacing_rate",
    "bidir",
];

fn is_detail(word: &str) -> bool {
    match word.split_once(':') {
        Some((name, _)) => FIGURES.contains(&name),
        None => {
            FLAGS.contains(&word)
                || controller::NAMES.contains(&word)
                || bytes_per_second(word.split('/').next().unwrap_or_default()).is_some()
        }
    }
}

/// Whether a line has nothing but words that stand below a socket.
pub(super) fn is_details(text: &str) -> bool {
    // Where the first words are, the others are those of a version not known here.
    let mut words = text.split_whitespace().take(3).peekable();
    words.peek().is_some() && words.all(is_detail)
}

/// Whether it is the line of `ss -i` itself, and of a connection: listeners have a few words only.
pub(super) fn is_info(text: &str) -> bool {
    is_details(text) && text.contains("cwnd:") && text.split_whitespace().count() >= 6
}

/// A socket's line in its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(super) state: &'a str,
    receive_queue: u32,
    send_queue: u32,
    pub(super) local: &'a str,
    pub(super) remote: &'a str,
    /// What follows.
    pub(super) rest: &'a str,
}

impl<'a> Row<'a> {
    /// `ESTAB 0 17160 172.16.58.147:8000 172.16.58.146:41276 users:(...) ...`
    pub(crate) fn of(line: &'a str) -> Result<Self, String> {
        let (mut state, mut rest) = word(line).unwrap_or_default();
        if state == "tcp" {
            (state, rest) = word(rest).unwrap_or_default();
        }
        Self::behind_state(state, rest)
    }

    pub(crate) fn behind_state(state: &'a str, rest: &'a str) -> Result<Self, String> {
        let mut rest = rest;
        let mut field = |what: &str| {
            let (field, behind) = word(rest).ok_or_else(|| format!("{TOO_SHORT} {what}"))?;
            rest = behind;
            Ok::<_, String>(field)
        };
        let (receive, send) = (field("its queues")?, field("its queues")?);
        let (local, remote) = (field("its address")?, field("its peer")?);
        let queue = |word: &str| word.parse().map_err(|_| format!("{word:?} is no queue"));
        Ok(Self {
            state,
            receive_queue: queue(receive)?,
            send_queue: queue(send)?,
            local,
            remote,
            rest,
        })
    }

    /// The socket, with what its line says; its state is [`State::Established`] where it has none of a
    /// connection's.
    pub(crate) fn socket(&self) -> Result<Socket, String> {
        self.socket_at(address::read)
    }

    /// The same, its ends read by `end`.
    pub(super) fn socket_at(
        &self,
        mut end: impl FnMut(&str) -> Option<SocketAddr>,
    ) -> Result<Socket, String> {
        let mut end = |word: &str| {
            end(word).ok_or_else(|| {
                format!("{word:?} is no address with a port; ss prints numbers with -n")
            })
        };
        let state =
            STATES.iter().find(|(name, _)| *name == self.state).and_then(|(_, state)| *state);
        let ends = [end(self.local)?, end(self.remote)?];
        let queues = [self.receive_queue, self.send_queue];
        let mut socket = bare(state.unwrap_or_default(), ends, queues);
        details(&mut socket, self.rest);
        Ok(socket)
    }

    pub(super) fn listener(&self, star_is_v4: bool) -> Option<Listener> {
        let mut listener = Listener {
            local: listening_at(self.local, star_is_v4)?,
            accept_queue: self.receive_queue,
            accept_max: self.send_queue,
            drops: None,
            inode: 0,
            inode_unseen: true,
            owner: None,
        };
        listener_details(&mut listener, self.rest);
        Some(listener)
    }
}

/// A socket of which no more is known than its state, its ends and its queues: received, sent.
pub(super) fn bare(state: State, [local, remote]: [SocketAddr; 2], queues: [u32; 2]) -> Socket {
    let [receive_queue, send_queue] = queues;
    Socket {
        state,
        local,
        remote,
        receive_queue,
        send_queue,
        inode: 0,
        uid: 0,
        inode_unseen: true,
        owner: None,
        timer: None,
        memory: None,
        congestion: None,
        info: None,
        shutdown: None,
        locks: None,
        between: Vec::new(),
    }
}

/// Whether `*` is all of IPv4 in this text: old versions of `ss` print `:::80` for all of IPv6 beside it. Newer
/// ones print `0.0.0.0:80`, `[::]:80`, and `*:80` for both at once.
pub(super) fn star_is_v4(text: &str) -> bool {
    text.contains(" :::")
}

/// `*:80`, `[::]:80`, `0.0.0.0:80`, `:::80`.
pub(super) fn listening_at(text: &str, star_is_v4: bool) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    match host.split('%').next() {
        Some("*") if star_is_v4 => {
            Some(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), super::names::port(port)?))
        }
        Some("*") => Some(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), super::names::port(port)?)),
        _ => address::read(&format!("{host}:{}", super::names::port(port)?)),
    }
}

/// Takes down what words behind a socket's ends, or on the lines under them, say of it.
pub(crate) fn details(socket: &mut Socket, text: &str) {
    let (owner, rest) = users(text);
    socket.owner = owner.map(|(owner, _)| owner).or(socket.owner);
    let mut words = rest.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if let Some((name, value)) = word.split_once(':') {
            match name {
                "skmem" => socket.memory = memory(value),
                "timer" => socket.timer = timer(value),
                "ino" => {
                    socket.inode_unseen = false;
                    socket.inode = value.parse().unwrap_or_default();
                }
                "uid" => socket.uid = value.parse().unwrap_or_default(),
                _ => figure(socket.info.get_or_insert_default(), name, value),
            }
        } else if controller::NAMES.contains(&word) {
            socket.congestion = Some(word.to_owned());
        } else {
            let next = words.peek().copied().unwrap_or_default();
            rate(socket.info.get_or_insert_default(), word, next);
        }
    }
    // Words of other options alone (`ino:7 <->`) are nothing of TCP's.
    socket.info = socket.info.take().filter(|info| **info != Info::default());
}

pub(super) fn listener_details(listener: &mut Listener, text: &str) {
    let (owner, rest) = users(text);
    listener.owner = owner.map(|(owner, _)| owner).or(listener.owner);
    for word in rest.split_whitespace() {
        if let Some(value) = word.strip_prefix("skmem:") {
            // Before iproute2 4.19 the drops were not among them.
            let drops = memory(value).filter(|_| value.contains(",d")).map(|memory| memory.drops);
            listener.drops = drops.or(listener.drops);
        } else if let Some(inode) = word.strip_prefix("ino:").and_then(|word| word.parse().ok()) {
            (listener.inode, listener.inode_unseen) = (inode, false);
        }
    }
}

/// The first process in `users:(("nginx",pid=7,fd=6),..)` (or `("nginx",7,6)`, before iproute2 4.0), and
/// the words around.
fn users(text: &str) -> (Option<(Owner, &str)>, String) {
    let Some((before, behind)) = text.split_once("users:((") else {
        return (None, text.to_owned());
    };
    let (inside, after) = behind.split_once("))").unwrap_or((behind, ""));
    (owner(inside), format!("{before} {after}"))
}

fn owner(inside: &str) -> Option<(Owner, &str)> {
    let (name, rest) = inside.strip_prefix('"')?.split_once("\",")?;
    let mut numbers = rest
        .split([',', ')'])
        .map(|word| word.trim_start_matches("pid=").trim_start_matches("fd=").parse::<u32>().ok());
    let owner = Owner { pid: numbers.next()??, fd: Some(numbers.next()??) };
    Some((owner, name))
}

/// The first process that a line names.
pub(super) fn process(text: &str) -> Option<(u32, Process)> {
    let (_, behind) = text.split_once("users:((")?;
    let (owner, name) = owner(behind)?;
    Some((owner.pid, Process { name: name.to_owned(), ..Process::default() }))
}

/// A word and its value after a colon.
fn figure(info: &mut Info, name: &str, value: &str) {
    let number = || value.parse::<u32>().ok();
    let big = || value.parse::<u64>().ok();
    match name {
        "wscale" => {
            let (theirs, ours) = value.split_once(',').unwrap_or((value, ""));
            (info.snd_wscale, info.rcv_wscale) = (theirs.parse().ok(), ours.parse().ok());
            *info.options.get_or_insert_default() |= 4;
        }
        "rto" => info.rto_ns = millis(value),
        "backoff" => info.backoff = value.parse().ok(),
        "rtt" => info.rtt_ns = value.split_once('/').and_then(|(rtt, _)| millis(rtt)),
        "minrtt" => info.min_rtt_ns = millis(value),
        "rcv_rtt" => info.rcv_rtt_ns = millis(value),
        "mss" => info.snd_mss = number(),
        "rcvmss" => info.rcv_mss = number(),
        "advmss" => info.advmss = number(),
        "pmtu" => info.pmtu = number(),
        "cwnd" => info.snd_cwnd = number(),
        // Linux keeps 2^31-1 where there is none (`TCP_INFINITE_SSTHRESH`, `include/net/tcp.h`).
        "ssthresh" => info.snd_ssthresh = number().filter(|segments| *segments < 0x7fff_ffff),
        "bytes_sent" => info.bytes_sent = big(),
        "bytes_retrans" => info.bytes_retrans = big(),
        "bytes_acked" => info.bytes_acked = big(),
        "bytes_received" => info.bytes_received = big(),
        "lastsnd" => info.last_data_sent_ns = millis(value),
        "lastrcv" => info.last_data_recv_ns = millis(value),
        "lastack" => info.last_ack_recv_ns = millis(value),
        "busy" => info.busy_ns = span(value),
        "rwnd_limited" => info.rwnd_limited_ns = span(value),
        "sndbuf_limited" => info.sndbuf_limited_ns = span(value),
        "unacked" => info.unacked = number(),
        "retrans" => {
            info.total_retrans = value.split_once('/').and_then(|(_, all)| all.parse().ok());
        }
        "lost" => info.lost = number(),
        "dsack_dups" => info.dsack_dups = number(),
        "rcv_ooopack" => info.rcv_ooopack = number(),
        "reordering" => info.reordering = number(),
        "rcv_space" => info.rcv_space = number(),
        "rcv_ssthresh" => info.rcv_ssthresh = number(),
        "notsent" => info.notsent_bytes = big(),
        "snd_wnd" => info.snd_wnd = number(),
        "rcv_wnd" => info.rcv_wnd = number(),
        _ => {}
    }
}

/// A word without a colon, and the word behind it.
fn rate(info: &mut Info, name: &str, value: &str) {
    let mut option = |bit: u8| *info.options.get_or_insert_default() |= bit;
    match name {
        "ts" => option(1),
        "sack" => option(2),
        "ecn" => option(8),
        "ecnseen" => option(16),
        "fastopen" => option(32),
        "pacing_rate" => {
            let (now, most) = value.split_once('/').unwrap_or((value, ""));
            (info.pacing_rate, info.max_pacing_rate) =
                (bytes_per_second(now), bytes_per_second(most));
        }
        "delivery_rate" => info.delivery_rate = bytes_per_second(value),
        "app_limited" => info.delivery_rate_app_limited = Some(true),
        _ => {}
    }
}

/// Puts back what is not printed because it is zero, or three for reordering.
///
/// What newer versions print besides is known to be zero only where another socket of the table has it: then
/// this `ss` and this kernel do tell it. So a peer's window that is shut is seen.
pub(super) fn finish(sockets: &mut [Socket]) {
    let mut infos: Vec<&mut Info> = sockets
        .iter_mut()
        .filter_map(|socket| socket.info.as_deref_mut())
        .filter(|info| info.snd_cwnd.is_some())
        .collect();
    fill(&mut infos, |info| &mut info.bytes_sent);
    fill(&mut infos, |info| &mut info.bytes_acked);
    fill(&mut infos, |info| &mut info.bytes_received);
    fill(&mut infos, |info| &mut info.busy_ns);
    fill(&mut infos, |info| &mut info.notsent_bytes);
    fill(&mut infos, |info| &mut info.snd_wnd);
    fill(&mut infos, |info| &mut info.rcv_wnd);
    for info in infos {
        info.options.get_or_insert(0);
        info.unacked.get_or_insert(0);
        info.lost.get_or_insert(0);
        info.total_retrans.get_or_insert(0);
        info.backoff.get_or_insert(0);
        info.reordering.get_or_insert(3);
        if info.busy_ns.is_some() {
            info.rwnd_limited_ns.get_or_insert(0);
            info.sndbuf_limited_ns.get_or_insert(0);
        }
        if info.bytes_sent.is_some() {
            info.bytes_retrans.get_or_insert(0);
        }
        if info.delivery_rate.is_some() {
            info.delivery_rate_app_limited.get_or_insert(false);
        }
    }
}

/// Zero where only others have the field.
fn fill<T: Default>(infos: &mut [&mut Info], field: impl Fn(&mut Info) -> &mut Option<T>) {
    if infos.iter_mut().any(|info| field(info).is_some()) {
        for info in infos.iter_mut() {
            field(info).get_or_insert_default();
        }
    }
}

/// `15.8Mbps`: decimal units of bits, to a tenth of them (`misc/ss.c`, `sprint_bw`).
fn bytes_per_second(text: &str) -> Option<u64> {
    let number = text.strip_suffix("bps")?;
    let (number, tenths) = match number.char_indices().next_back()? {
        (at, 'K') => (number.get(..at)?, 100),
        (at, 'M') => (number.get(..at)?, 100_000),
        (at, 'G') => (number.get(..at)?, 100_000_000),
        (at, 'T') => (number.get(..at)?, 100_000_000_000),
        // A few bits a second may have a fraction: it is no byte.
        _ => return Some(number.split('.').next()?.parse::<u64>().ok()? / 8),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = fraction.get(..1)?.parse().ok()?;
    Some(whole.checked_mul(10)?.checked_add(fraction)?.checked_mul(tenths)? / 8)
}

/// Milliseconds with a fraction, in nanoseconds; the kernel has none finer than micro-.
fn millis(value: &str) -> Option<u64> {
    u64::try_from(stamp::decimal(value)? / 1_000).ok()
}

/// `5372ms(92.8%)`, in nanoseconds.
fn span(value: &str) -> Option<u64> {
    let (number, _) = value.split_once("ms")?;
    number.parse::<u32>().ok().map(|ms| u64::from(ms) * 1_000_000)
}

/// `(r0,rb131072,t0,tb87040,f2040,w59400,o0,bl0,d0)`; before iproute2 4.19 without `d`.
fn memory(value: &str) -> Option<Memory> {
    let mut memory = Memory::default();
    let mut any = false;
    for part in value.trim_matches(['(', ')']).split(',') {
        let name = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let Ok(bytes) = part.get(name.len()..).unwrap_or_default().parse() else { continue };
        let field = match name {
            "r" => &mut memory.rmem,
            "rb" => &mut memory.rcvbuf,
            "t" => &mut memory.wmem,
            "tb" => &mut memory.sndbuf,
            "f" => &mut memory.forward,
            "w" => &mut memory.wqueued,
            "o" => &mut memory.optmem,
            "bl" => &mut memory.backlog,
            "d" => &mut memory.drops,
            _ => continue,
        };
        (*field, any) = (bytes, true);
    }
    any.then_some(memory)
}

/// `(keepalive,109min,0)`, `(on,204ms,3)`, `(persist,9.8sec,2)`.
fn timer(value: &str) -> Option<Timer> {
    let mut parts = value.trim_matches(['(', ')']).split(',');
    let kind = match parts.next()? {
        "on" => 1,
        "keepalive" => 2,
        "timewait" => 3,
        "persist" => 4,
        _ => return None,
    };
    Some(Timer {
        kind,
        expires_ms: until(parts.next()?)?,
        retransmits: parts.next()?.parse().ok()?,
    })
}

/// `109min`, `9.876sec`, `1min2sec`, `204ms`, in milliseconds.
fn until(text: &str) -> Option<u32> {
    let (mut rest, mut total) = (text, 0_i64);
    for (unit, ms) in [("min", 60_000), ("ms", 1), ("sec", 1_000)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            total = total.checked_add(stamp::decimal(number)?.checked_mul(ms)?)?;
            rest = behind;
        }
    }
    rest.is_empty().then(|| u32::try_from(total / 1_000_000_000).ok()).flatten()
}

/// The first word, and the rest.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}
