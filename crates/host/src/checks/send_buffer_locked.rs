//! A program set the size of its send buffer, and waits for room in it.
//!
//! # What it says
//! `SO_SNDBUF` fixes a socket's buffer: the kernel doubles what was asked for (at most `wmem_max`) and never lets
//! it grow, whatever `tcp_wmem` says. A write waits while that much is queued, with overhead: 16 KiB over 20 ms
//! are about a megabyte a second if the program writes in small pieces without Nagle's algorithm.
//!
//! # How we know
//! The kernel booked at least 20 % of the busy time on the buffer (`sndbuf_limited`), or it was full of data in flight while
//! both windows had room, at least three quarters of the times that it was seen (sixteen, with those between the looks), and
//! took no write at one of them; and it did not grow and is below the third number of `tcp_wmem`. From one look, half of
//! the busy time has to be booked, and the buffer has to be smaller than autotuning makes it for the congestion window:
//! twice that, which it does with each ACK while the window is not filled. It is
//! certain where the socket was asked (`SO_BUF_LOCK`); likely where the buffer is twice `net.core.wmem_max` or
//! smaller than autotuning makes any; else one explanation.
//!
//! # What it is not
//! No bound to the byte: the buffer is looked at before a packet of up to 64 KiB is begun, and not when a small write
//! is added to one that waits (Nagle's algorithm): 900 kB were seen queued at a bound of 32 KiB.
//!
//! # What to do
//! Remove `SO_SNDBUF` (buffer sizes of database drivers, `sndbuf=` of nginx, `socket options` of Samba). If it
//! must stay, ask for the bandwidth-delay product, and raise `net.core.wmem_max`, which bounds it.
//!
//! # Sources
//! socket(7); Linux `sk_setsockopt`, `tcp_sndbuf_expand` (`SOCK_SNDBUF_LOCK`; at least twice ten segments;
//! v6.12); `SO_BUF_LOCK` since 5.15. 20 % of at least a second: ours, not measured.

use super::flows;
use super::send_buffer_ceiling::says;
use super::sent::{self, Held, amount, by_buffer};
use super::{Check, buffer_lock, counters, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Socket, Source};
use tcpwhy_words::said::{bytes, percent};

pub(super) const CHECK: Check = Check {
    code: "SEND_BUFFER_LOCKED",
    file: include_str!("send_buffer_locked.rs"),
    group: Group::Sending,
    judge,
};

const MOST: &str = "net.core.wmem_max";
/// What we propose for `wmem_max`: the third number of `tcp_wmem` by default. Ours.
const ENOUGH: i64 = 4 << 20;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let sizes = seen.numbers::<3>(SIZES);
    let ceiling = sizes.clone().ok().map(|sizes| sizes.unwrap_or_default()[2]);
    let bound = seen.number(MOST);
    let most = bound.clone().ok().flatten();
    let measured = match flows::measured(seen) {
        Err(missing) => return of_shares(seen, missing),
        Ok(measured) => measured,
    };
    let held = measured.into_iter().filter_map(|(flow, _, memory)| {
        let is_below = ceiling.is_none_or(|ceiling| i64::from(memory.sndbuf) < ceiling);
        let is_fixed = if seen.before.is_some() {
            ceiling.is_some() && bound.is_ok() && stays(flow)
        } else {
            is_outgrown(flow) && is_mostly(flow, seen)
        };
        let may_be = locked(flow).unwrap_or(is_fixed && is_below);
        (may_be && by_buffer(flow, seen).is_some()).then_some(flow)
    });
    let held = flows::worst(held.collect(), amount);
    let Some(worst) = held.iter().max_by_key(|flow| sure(flow, most)) else {
        return sizes.and(bound).map(|_| Vec::new());
    };
    let (severity, confidence) = how_bad(seen, worst, most, ceiling.is_some());
    let mut found = Finding {
        severity,
        confidence,
        scope: Scope::Netns,
        title: format!(
            "{} wait{} for room in a send buffer that does not grow",
            flows::counted(seen, &held),
            flows::verb_s(held.len())
        ),
        why: why(worst, most),
        not: match ceiling {
            Some(_) => NOT.to_owned(),
            None => format!(
                "{NOT}; nor that it is the program: a small third number of tcp_wmem does the same"
            ),
        },
        evidence: flows::evidence(seen, &held, |flow| says(flow, seen)),
        fixes: buffer_lock::fixes(
            seen,
            "SO_SNDBUF",
            MOST,
            most.filter(|most| *most < ENOUGH && is_bound(worst, *most)).map(|_| ENOUGH),
        ),
        ..Finding::default()
    };
    found.evidence.extend(most.map(|most| words::setting(MOST, &most)));
    if locked(worst).is_none() {
        found.unseen.push(Missing::part(Source::Locks, "SO_BUF_LOCK: --socket PID:FD").to_string());
    }
    found.unseen.extend(sizes.err().map(|missing| missing.to_string()));
    if seen.before.is_none() {
        found.unseen.push(Missing::all(Source::SecondLook).to_string());
    }
    Ok(vec![found])
}

/// How bad it is, and how sure: one look tells it of the time since the connection began.
fn how_bad(
    seen: &Seen<'_>,
    worst: &Flow<'_>,
    most: Option<i64>,
    is_bounded: bool,
) -> (Severity, Confidence) {
    match seen.before {
        None if is_bounded => (Severity::Warning, Confidence::Medium),
        None => (Severity::Warning, Confidence::Low),
        Some(_) => {
            let (is_booked, confidence) =
                (by_buffer(worst, seen).is_some_and(Held::is_booked), sure(worst, most));
            let is_sure = is_booked && confidence > Confidence::Low;
            (if is_sure { Severity::Error } else { Severity::Warning }, confidence)
        }
    }
}

const SIZES: &str = "net.ipv4.tcp_wmem";
const NOT: &str = "not that the path carries more: that shows when the buffer is larger";

/// What the kernel booked, where the sizes of buffers were not seen.
fn of_shares(seen: &Seen<'_>, missing: Missing) -> Asked<Vec<Finding>> {
    let known = flows::known(seen).unwrap_or_default().into_iter().map(|(flow, _)| flow);
    let held = flows::worst(known.filter(|flow| is_mostly(flow, seen)).collect(), amount);
    if held.is_empty() {
        return Err(missing);
    }
    let says = |flow: &Flow<'_>| {
        let (held, busy) =
            sent::held(flow, seen, |info| info.sndbuf_limited_ns).unwrap_or_default();
        let share = percent(held.cast_signed(), busy.cast_signed());
        format!("sndbuf_limited {share} of {} busy", flows::time(busy))
    };
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::Low,
        scope: Scope::Netns,
        title: format!(
            "{} wait{} for room in the send buffer",
            flows::counted(seen, &held),
            flows::verb_s(held.len())
        ),
        why: "the kernel booked that time: all that was written was in flight, both windows had room, and the \
              program could write no more."
            .to_owned(),
        not: "not whether the program fixed it with SO_SNDBUF or tcp_wmem bounds it: `tb` of ss -m and the \
              setting tell"
            .to_owned(),
        evidence: flows::evidence(seen, &held, says),
        fixes: buffer_lock::fixes(seen, "SO_SNDBUF", MOST, None),
        unseen: vec![missing.to_string()],
        ..Finding::default()
    }])
}

/// Half of its busy time and more was booked on the buffer.
fn is_mostly(flow: &Flow<'_>, seen: &Seen<'_>) -> bool {
    sent::held(flow, seen, |info| info.sndbuf_limited_ns)
        .is_some_and(|(held, busy)| counters::is_share(held, busy, 50))
}

/// It is smaller than autotuning makes it for this congestion window: twice as large (`tcp_sndbuf_expand`, from
/// `tcp_new_space`, Linux v6.12).
fn is_outgrown(flow: &Flow<'_>) -> bool {
    let wanted = || {
        let info = flow.info()?;
        Some(2 * u64::from(info.snd_cwnd?.max(10)) * u64::from(info.snd_mss?))
    };
    let sndbuf = flow.memory().map(|memory| u64::from(memory.sndbuf));
    sndbuf.zip(wanted()).is_some_and(|(sndbuf, wanted)| sndbuf < wanted)
}

/// It did not grow between the looks.
fn stays(flow: &Flow<'_>) -> bool {
    let sndbuf = |socket: &Socket| socket.memory.map(|memory| memory.sndbuf);
    let now = sndbuf(flow.now);
    flow.before.is_some_and(|before| sndbuf(before) == now)
        && flow.glimpses().all(|glimpse| Some(glimpse.sndbuf) == now)
}

fn locked(flow: &Flow<'_>) -> Option<bool> {
    flow.now.locks?.sndbuf
}

fn sure(flow: &Flow<'_>, most: Option<i64>) -> Confidence {
    let sndbuf = flow.memory().map_or(0, |memory| i64::from(memory.sndbuf));
    match locked(flow) {
        Some(_) => Confidence::High,
        None if is_small(flow) || most.and_then(|most| most.checked_mul(2)) == Some(sndbuf) => {
            Confidence::Medium
        }
        None => Confidence::Low,
    }
}

/// Autotuning gives room for twice ten segments with their overhead at once.
fn is_small(flow: &Flow<'_>) -> bool {
    let segments =
        || Some(u64::from(flow.memory()?.sndbuf) / u64::from(flow.info()?.snd_mss?.max(1)));
    segments().is_some_and(|segments| segments < 20)
}

fn why(worst: &Flow<'_>, most: Option<i64>) -> String {
    let how = match sure(worst, most) {
        Confidence::High => "the program fixed it with SO_SNDBUF",
        Confidence::Medium if is_small(worst) => "autotuning makes none so small: SO_SNDBUF does",
        Confidence::Medium => "it is twice wmem_max, as SO_SNDBUF makes it",
        Confidence::Low if is_outgrown(worst) => {
            "autotuning makes it twice the congestion window, unless memory for TCP is short: SO_SNDBUF fixes one"
        }
        Confidence::Low => {
            "autotuning would have made it larger, unless memory for TCP is short or the wait was too brief"
        }
    };
    let sndbuf = worst.memory().map_or(0, |memory| u64::from(memory.sndbuf));
    format!(
        "the worst takes no write while {} or more are queued, with overhead, until two thirds of that are left; \
         {how}.",
        bytes(sndbuf)
    )
}

/// The kernel cut what the program asked for: raising the bound gives it more.
fn is_bound(flow: &Flow<'_>, most: i64) -> bool {
    flow.memory().is_some_and(|memory| i64::from(memory.sndbuf) >= most.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Locks, Memory, Snapshot};

    const SETTINGS: &[(&str, &str)] =
        &[("net.ipv4.tcp_wmem", "4096 16384 4194304"), (MOST, "212992")];

    /// Ten seconds of upload, all of it limited by the buffer.
    fn uploading(sndbuf: u32, lock: Option<bool>) -> Snapshot {
        let info = |seconds: u64| Info {
            busy_ns: Some(seconds * 1_000_000_000),
            sndbuf_limited_ns: Some(seconds * 900_000_000),
            bytes_acked: Some(seconds << 20),
            rtt_ns: Some(20_000_000),
            snd_mss: Some(1448),
            ..Info::default()
        };
        let at = |seconds| {
            let memory = Memory { sndbuf, ..Memory::default() };
            let mut socket = socket(0, &info(seconds), memory);
            socket.locks = lock.map(|lock| Locks { sndbuf: Some(lock), ..Locks::default() });
            vec![socket]
        };
        connected(SETTINGS, at(0), at(10))
    }

    #[test]
    fn sixteen_kilobytes_are_less_than_autotuning_makes() {
        insta::assert_snapshot!(shown(&CHECK, &uploading(32_768 - 10_000, None)));
    }

    #[test]
    fn how_sure_it_is_hangs_on_the_lock_or_the_size() {
        let sure = |sndbuf, lock| {
            judged(&CHECK, &uploading(sndbuf, lock)).expect("seen").first().map(|it| it.confidence)
        };
        assert_eq!(sure(100_000, Some(true)), Some(Confidence::High));
        assert_eq!(sure(425_984, None), Some(Confidence::Medium));
        assert_eq!(sure(20 * 1448, None), Some(Confidence::Low));
        assert_eq!(sure(20 * 1448 - 1, None), Some(Confidence::Medium));
    }

    /// One look at a sender with `tb` of 32 KiB, a congestion window of 40, and `booked_ms` of nine seconds booked.
    fn seen_once(
        settings: &[(&str, &str)],
        booked_ms: u64,
        change: impl Fn(&mut Info),
    ) -> Snapshot {
        let mut info = Info {
            busy_ns: Some(9_000_000_000),
            sndbuf_limited_ns: Some(booked_ms * 1_000_000),
            snd_mss: Some(1448),
            snd_cwnd: Some(40),
            ..Info::default()
        };
        change(&mut info);
        let memory = Memory { sndbuf: 32_768, ..Memory::default() };
        let mut host = once(connected(settings, Vec::new(), vec![socket(0, &info, memory)]));
        if let Some(settings) = &mut host.settings {
            settings.complete = false;
        }
        host
    }

    #[test]
    fn one_look_tells_it_where_half_of_the_time_was_booked_and_the_buffer_was_outgrown() {
        let number = |booked, cwnd| {
            let host = seen_once(SETTINGS, booked, |info| info.snd_cwnd = Some(cwnd));
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!([number(4_500, 40), number(4_499, 40)], [1, 0]);
        assert_eq!([number(8_000, 12), number(8_000, 11)], [1, 0], "24 and 22 segments of 22.6");
        let found = judged(&CHECK, &seen_once(SETTINGS, 8_000, |_| ())).expect("seen");
        assert_eq!(
            (found[0].severity, found[0].confidence),
            (Severity::Warning, Confidence::Medium)
        );
    }

    #[test]
    fn one_look_without_the_setting_or_the_memory_is_less_sure() {
        let found = judged(&CHECK, &seen_once(&[], 8_000, |_| ())).expect("seen");
        assert_eq!(found[0].confidence, Confidence::Low);
        assert!(found[0].not.contains("tcp_wmem"), "{}", found[0].not);
        let mut blind = seen_once(SETTINGS, 8_000, |_| ());
        for socket in blind.looks[0].sockets.iter_mut().flatten() {
            socket.memory = None;
        }
        assert!(judged(&CHECK, &blind).expect("seen")[0].not.contains("SO_SNDBUF"));
    }

    #[test]
    fn a_buffer_without_lock_or_at_its_ceiling_is_another_finding() {
        assert_eq!(judged(&CHECK, &uploading(100_000, Some(false))), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &uploading(4_194_304, None)), Ok(Vec::new()));
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(SETTINGS)).source, Source::Sockets);
    }
}
