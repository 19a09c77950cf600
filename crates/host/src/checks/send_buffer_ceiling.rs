//! Connections wait for room in a send buffer that may not grow any further.
//!
//! # What it says
//! What a program writes stays in the send buffer until the peer has acknowledged it. The kernel lets the buffer
//! grow with the congestion window up to the third number of `tcp_wmem`; some connections here have arrived
//! there, and their programs wait for room though the windows would admit more.
//!
//! # How we know
//! `sndbuf` has the third number of `tcp_wmem`, and at least 20 % of the busy time was limited by it
//! (`sndbuf_limited`). Or, less sure, it was full of data in flight while congestion window and peer's window had
//! room, at least three quarters of the times that it was seen (sixteen, with those between the looks), and took no write at
//! one of them: the kernel books the wait only in part of the cases.
//!
//! # What it is not
//! A large send buffer does not overload the network: what is in flight is bounded by the windows. It
//! costs memory, and the data waits longer on this host.
//!
//! # What to do
//! Raise the third number of `tcp_wmem`: at least twice the bandwidth-delay product, for the kernel counts
//! the memory of packets and wants room for twice the congestion window.
//!
//! # Sources
//! Linux `tcp_sndbuf_expand`, `tcp_chrono_start`, `sk_stream_is_writeable` (v6.12). 20 % of at least a second: ours;
//! that the kernel may book nothing was seen in our lab on 6.18. At most 64 MiB are proposed: ours.

use super::flows::{self, bytes_in, time};
use super::sent::{Held, amount, by_buffer};
use super::{Check, buffers, words};
use crate::finding::{Confidence, Finding, Fix, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;
use tcpwhy_words::said::{bytes, percent};

pub(super) const CHECK: Check = Check {
    code: "SEND_BUFFER_CEILING",
    file: include_str!("send_buffer_ceiling.rs"),
    group: Group::Sending,
    judge,
};

const KEY: &str = "net.ipv4.tcp_wmem";
const LARGEST: u64 = 64 << 20;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let Some([least, first, most]) = seen.numbers::<3>(KEY)? else { return Ok(Vec::new()) };
    let ceiling = most.unsigned_abs();
    let capped = flows::measured(seen)?.into_iter().filter_map(|(flow, _, memory)| {
        let is_there = u64::from(memory.sndbuf) == ceiling
            && flow.now.locks.and_then(|locks| locks.sndbuf) != Some(true);
        (is_there && by_buffer(flow, seen).is_some()).then_some(flow)
    });
    let capped = flows::worst(capped.collect(), amount);
    let Some(worst) = capped.first() else { return Ok(Vec::new()) };
    let is_booked = capped.iter().any(|flow| by_buffer(flow, seen).is_some_and(Held::is_booked));
    let (severity, confidence) = match (seen.before, is_booked) {
        (Some(_), true) => (Severity::Error, Confidence::High),
        (Some(_), false) => (Severity::Warning, Confidence::Medium),
        (None, _) => (Severity::Warning, Confidence::Low),
    };
    let [low, begin, high] = buffers::mended(seen, KEY, [least, first, most]);
    let to = wanted(seen, worst, ceiling).max(high.unsigned_abs());
    let mut evidence = vec![words::setting(KEY, &format_args!("{least} {first} {most}"))];
    evidence.extend(flows::evidence(seen, &capped, |flow| says(flow, seen)));
    Ok(vec![Finding {
        severity,
        confidence,
        scope: Scope::Netns,
        title: format!(
            "{} wait{} for room in the largest send buffer that tcp_wmem allows",
            flows::counted(seen, &capped),
            flows::verb_s(capped.len())
        ),
        why: format!(
            "no write is taken while {} or more are queued, with overhead, until two thirds of that are left; the \
             programs wait for ACKs though both windows have room.",
            bytes(ceiling)
        ),
        not: "not that the path carries more: that shows when the buffer is larger".to_owned(),
        evidence,
        fixes: vec![raise(
            seen,
            &format!("{low} {begin} {to}"),
            ceiling,
            [low, begin] != [least, first],
        )],
        unseen: second_look(seen),
        ..Finding::default()
    }])
}

/// A remark where there is one look only.
fn second_look(seen: &Seen<'_>) -> Vec<String> {
    match seen.before {
        Some(_) => Vec::new(),
        None => vec![Missing::all(Source::SecondLook).to_string()],
    }
}

fn raise(seen: &Seen<'_>, set: &str, ceiling: u64, mends_all: bool) -> Fix {
    if ceiling >= LARGEST {
        return words::advise(
            "spread the transfer over several connections: the ceiling is as high as we would set it",
            "",
        );
    }
    words::set(
        seen,
        KEY,
        &set,
        if mends_all {
            "let send buffers grow further, with the first two numbers mended (BUFFER_SIZES)"
        } else {
            "let send buffers grow further"
        },
        words::AT_ONCE,
        "more memory for each fast connection, and more data that waits in it",
    )
}

/// What a link of known speed needs at this round trip, else four times what there is.
fn wanted(seen: &Seen<'_>, flow: &Flow<'_>, ceiling: u64) -> u64 {
    let most = ceiling.saturating_mul(4).min(LARGEST);
    let need = || {
        let product = bytes_in(flows::link(seen, flow)?.speed? / 8, flow.info()?.min_rtt_ns?);
        Some(product.saturating_mul(2))
    };
    need().filter(|need| *need > ceiling).map_or(most, |need| need.min(most))
}

/// How a sender that its buffer held looks.
pub(super) fn says(flow: &Flow<'_>, seen: &Seen<'_>) -> String {
    let (Some(info), Some(memory)) = (flow.info(), flow.memory()) else { return String::new() };
    let rtt = time(info.rtt_ns.unwrap_or(0));
    let held = match by_buffer(flow, seen) {
        Some(Held::Booked(held, busy)) => {
            let share = percent(held.cast_signed(), busy.cast_signed());
            format!("sndbuf_limited {share} of {} busy", time(busy))
        }
        Some(Held::Full(full, seen)) => format!(
            "full {full} of {seen} times, at last w{}, unacked {} of cwnd {}",
            memory.wqueued,
            info.unacked.unwrap_or(0),
            info.snd_cwnd.unwrap_or(0)
        ),
        None => String::new(),
    };
    format!("tb{}, rtt {rtt}, {held}", memory.sndbuf)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Glimpse, Info, Memory, Snapshot};

    const SECOND: u64 = 1_000_000_000;

    /// Ten seconds of upload; this many hundredths of them were booked, with this many segments of 20 in flight.
    fn uploading(sndbuf: u32, hundredths: u64, unacked: u32) -> Snapshot {
        let info = |seconds: u64| Info {
            busy_ns: Some(seconds * SECOND),
            sndbuf_limited_ns: Some(seconds * SECOND / 100 * hundredths),
            bytes_acked: Some(seconds << 20),
            notsent_bytes: Some(0),
            unacked: Some(unacked),
            snd_cwnd: Some(20),
            snd_mss: Some(1448),
            snd_wnd: Some(1 << 20),
            rtt_ns: Some(30_000_000),
            ..Info::default()
        };
        let memory = Memory { sndbuf, wqueued: 70_000, ..Memory::default() };
        let at = |seconds| vec![socket(0, &info(seconds), memory)];
        connected(&[(KEY, "4096 16384 65536")], at(5), at(15))
    }

    /// The same, seen with this much queued between the looks.
    fn glimpsed(mut host: Snapshot, wqueued: &[u32]) -> Snapshot {
        let socket = &mut host.looks[1].sockets.as_mut().expect("seen")[0];
        let now = socket.glimpse().expect("a sender");
        socket.between = wqueued.iter().map(|&wqueued| Glimpse { wqueued, ..now }).collect();
        host
    }

    #[test]
    fn a_buffer_at_its_ceiling_that_the_kernel_booked_waits_for() {
        insta::assert_snapshot!(shown(&CHECK, &uploading(65_536, 60, 20)));
    }

    #[test]
    fn a_fifth_of_the_busy_time_is_the_border_and_below_the_ceiling_it_is_none() {
        let number = |host| judged(&CHECK, &host).expect("seen").len();
        assert_eq!(number(uploading(65_536, 20, 20)), 1);
        assert_eq!(number(uploading(65_536, 19, 20)), 0);
        assert_eq!(number(uploading(65_535, 60, 20)), 0);
    }

    #[test]
    fn a_full_buffer_in_flight_while_windows_have_room_is_less_sure() {
        let swinging = [&[70_000; 7][..], &[44_000, 20_000, 0]].concat();
        let held = glimpsed(uploading(65_536, 0, 19), &swinging);
        insta::assert_snapshot!(shown(&CHECK, &held));
        let found = judged(&CHECK, &held).expect("seen");
        assert_eq!((found[0].severity, found[0].confidence), {
            (Severity::Warning, Confidence::Medium)
        });
        let full = glimpsed(uploading(65_536, 0, 20), &[70_000; 10]);
        assert_eq!(judged(&CHECK, &full), Ok(Vec::new()), "the congestion window has no room");
    }

    #[test]
    fn one_that_is_full_by_chance_or_that_always_takes_a_write_holds_nobody() {
        let number = |wqueued: &[u32]| {
            let host = glimpsed(uploading(65_536, 0, 19), wqueued);
            judged(&CHECK, &host).expect("seen").len()
        };
        assert_eq!([number(&[70_000; 10]), number(&[70_000; 9])], [1, 0], "twelve times at least");
        let full =
            |times: usize, bytes| [&vec![70_000; times][..], &vec![bytes; 10 - times]].concat();
        assert_eq!([number(&full(7, 0)), number(&full(6, 0))], [1, 0], "nine of twelve");
        assert_eq!([number(&full(6, 43_691)), number(&full(6, 43_690))], [1, 0], "two thirds");
        let mut below = glimpsed(uploading(65_536, 0, 19), &[65_535; 10]);
        for socket in below.looks.iter_mut().flat_map(|look| look.sockets.iter_mut().flatten()) {
            socket.memory.as_mut().expect("seen").wqueued = 65_535;
        }
        assert_eq!(judged(&CHECK, &below), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &once(uploading(65_536, 0, 19))), Ok(Vec::new()));
    }

    #[test]
    fn without_settings_or_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[(KEY, "1 2 3")])).source, Source::Sockets);
        assert_eq!(
            missing(&CHECK, &Snapshot { settings: None, ..host(&[]) }).source,
            Source::Settings
        );
    }
}
