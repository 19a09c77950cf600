//! What `ss -i` says of a connection: the kernel's `TCP_INFO` in words.
//!
//! `ss` leaves out what is zero and a threshold that is infinite (iproute2 6.1 `misc/ss.c`, `tcp_stats_print`):
//! [`finish`] puts back those zeros that it has left out since `-i` prints the field at all. Rates are rounded by `ss`
//! to a tenth of their unit.

use crate::snapshot::{Bbr, Info, Socket};
use tcpwhy_words::printed::{controllers, stamp};

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
                || controllers::NAMES.contains(&word)
                || bytes_per_second(word.split('/').next().unwrap_or_default()).is_some()
        }
    }
}

/// Whether a line has nothing but words that stand below a socket.
pub(in crate::paste) fn is_details(text: &str) -> bool {
    // Where the first words are, the others are those of a version not known here.
    let mut words = text.split_whitespace().take(3).peekable();
    words.peek().is_some() && words.all(is_detail)
}

/// Whether it is the line of `ss -i` itself, and of a connection: listeners have a few words only.
pub(in crate::paste) fn is_info(text: &str) -> bool {
    is_details(text) && text.contains("cwnd:") && text.split_whitespace().count() >= 6
}

/// A word and its value after a colon.
pub(super) fn figure(info: &mut Info, name: &str, value: &str) {
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
        "bbr" => info.bbr = bbr(value),
        _ => {}
    }
}

/// A word without a colon, and the word behind it.
pub(super) fn rate(info: &mut Info, name: &str, value: &str) {
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
pub(in crate::paste) fn finish(sockets: &mut [Socket]) {
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
            // Linux 4.9 and iproute2 4.9 tell rates, and both have told this since 4.6.
            info.notsent_bytes.get_or_insert(0);
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

/// `(bw:15.8Mbps,mrtt:20.1,pacing_gain:1.25,cwnd_gain:2)`; a gain of 0 is left out (`misc/ss.c`, `tcp_stats_print`).
fn bbr(value: &str) -> Option<Bbr> {
    let mut told = Bbr::default();
    for field in value.strip_prefix('(')?.strip_suffix(')')?.split(',') {
        let (name, value) = field.split_once(':')?;
        // As milliseconds a hundredth of a gain is ten microseconds.
        let percent = || Some(u32::try_from(millis(value)? / 10_000).unwrap_or(u32::MAX));
        match name {
            "bw" => told.bw = bytes_per_second(value)?,
            "mrtt" => told.min_rtt_ns = millis(value)?,
            "pacing_gain" => told.pacing_percent = percent()?,
            "cwnd_gain" => told.cwnd_percent = percent()?,
            _ => {}
        }
    }
    Some(told)
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
