//! Connections wait for retransmission timers that were doubled again and again.
//!
//! # What it says
//! What was sent is not acknowledged, and neither were its repeats: each waits twice as long as the one before, up to two
//! minutes. Until it is answered nothing moves, and the program sees a connection that hangs.
//!
//! # How we know
//! Something is in flight, the retransmission timer runs, and it was doubled at least three times: by `backoff` of
//! `ss -i`, or by the number in `timer:(on,..,N)`, which `netstat -o` writes `on (../N/0)`; or `rto` is eight seconds or more while the round trip is less than a
//! second: no path of such a round trip makes a timer that long by itself.
//!
//! # What it is not
//! Not that the peer is gone: it may drop what comes, for want of memory or by a firewall.
//!
//! # What to do
//! See whether the peer answers at all (ping, another connection), look at the same socket there (its skmem and drops), and
//! capture at both ends.
//!
//! # Sources
//! RFC 6298 section 5.5; Linux `tcp_retransmit_timer` (`icsk_backoff`, `icsk_rto` up to `TCP_RTO_MAX` of 120 s), v6.12. Three
//! doublings, eight seconds and one: ours.

use core::fmt::Write as _;

use super::flows::{self, time};
use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Seen};
use crate::snapshot::State;

pub(super) const CHECK: Check = Check {
    code: "BACKED_OFF_TIMER",
    file: include_str!("backed_off_timer.rs"),
    group: Group::Losses,
    judge,
};

/// The retransmission timer (`sock_diag(7)`).
const RETRANSMISSION: u8 = 1;
const DOUBLED: u8 = 3;
const LONG_NS: u64 = 8_000_000_000;
const NEAR_NS: u64 = 1_000_000_000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let known = flows::known(seen).map(|known| known.into_iter().map(|(flow, _)| flow).collect());
    let timed = timed(seen)?;
    let known: Vec<_> = if timed.is_empty() { known? } else { known.unwrap_or_default() };
    let all = known.into_iter().chain(timed).filter(|flow| is_backed_off(flow));
    let waiting = flows::worst(all.collect(), rto);
    let Some(worst) = waiting.first() else { return Ok(Vec::new()) };
    Ok(vec![Finding {
        severity: Severity::Error,
        confidence: Confidence::High,
        scope: Scope::Netns,
        title: format!(
            "{} wait{} for a retransmission timer {}",
            flows::counted(seen, &waiting),
            flows::verb_s(waiting.len()),
            match rto(worst) {
                0 => format!("that was doubled {} times", doubled(worst)),
                rto => format!("of {}", time(rto)),
            }
        ),
        why: "what was retransmitted got no answer, and each wait is twice as long as the one before: nothing moves \
              meanwhile."
            .to_owned(),
        not: "not that the peer is gone: it may drop what comes, for want of memory or by a firewall".to_owned(),
        evidence: flows::evidence(seen, &waiting, says),
        fixes: vec![words::advise(
            "look at the same connection on the peer (ss -tinm there: skmem, d), and capture at both ends",
            "",
        )],
        ..Finding::default()
    }])
}

/// Connections to other hosts that show a timer and no `TCP_INFO`.
fn timed<'s, 'a>(seen: &'s Seen<'a>) -> Asked<Vec<&'s Flow<'a>>> {
    let is_timed = |flow: &&Flow<'_>| {
        let opens = matches!(flow.now.state, State::SynSent | State::SynRecv);
        flow.info().is_none() && flow.now.timer.is_some() && !opens && !flow.is_within_host()
    };
    Ok(seen.flows()?.iter().filter(is_timed).collect())
}

fn doubled(flow: &Flow<'_>) -> u8 {
    let timer = flow.now.timer.filter(|timer| timer.kind == RETRANSMISSION);
    timer.map_or(0, |timer| timer.retransmits)
}

fn is_backed_off(flow: &Flow<'_>) -> bool {
    let Some(info) = flow.info() else {
        return flow.now.send_queue > 0 && doubled(flow) >= DOUBLED;
    };
    // Only the timer's absence is known where ss was not asked for it.
    let (runs, fired) = match flow.now.timer {
        Some(timer) => (timer.kind == RETRANSMISSION, timer.retransmits),
        None => (true, 0),
    };
    let is_doubled = info.backoff.unwrap_or(0).max(fired) >= DOUBLED;
    let is_long = rto(flow) >= LONG_NS && info.rtt_ns.is_some_and(|rtt| rtt < NEAR_NS);
    runs && info.unacked.is_some_and(|unacked| unacked > 0) && (is_doubled || is_long)
}

fn rto(flow: &Flow<'_>) -> u64 {
    flow.info().and_then(|info| info.rto_ns).unwrap_or(0)
}

/// In the kernel's words.
fn says(flow: &Flow<'_>) -> String {
    let Some(info) = flow.info() else {
        let until = flow.now.timer.map_or(0, |timer| u64::from(timer.expires_ms) * 1_000_000);
        let (queue, repeats) = (flow.now.send_queue, doubled(flow));
        return format!(
            "Send-Q {queue}, retransmitted {repeats} times, the next in {}",
            time(until)
        );
    };
    let mut said = format!("rto {}", time(rto(flow)));
    said +=
        &info.rtt_ns.map_or_else(String::new, |rtt| format!(" at a round trip of {}", time(rtt)));
    let timer = flow.now.timer.filter(|timer| timer.kind == RETRANSMISSION);
    for (name, value) in [
        ("backoff", info.backoff.map(u32::from)),
        ("retransmitted", timer.map(|timer| timer.retransmits.into())),
        ("unacked", info.unacked),
        ("lost", info.lost),
    ] {
        if let Some(value) = value.filter(|value| *value > 0) {
            let _ = write!(said, ", {name} {value}");
        }
    }
    if let Some(ago) = info.last_data_sent_ns {
        let _ = write!(said, ", last sent {} ago", time(ago));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot, Source, Timer};

    fn waiting(kind: u8, fired: u8, change: impl Fn(&mut Info)) -> Snapshot {
        let mut info = Info {
            rto_ns: Some(120_000_000_000),
            rtt_ns: Some(66_000),
            unacked: Some(32),
            lost: Some(1),
            ..Info::default()
        };
        change(&mut info);
        let mut socket = socket(0, &info, Memory::default());
        socket.timer = Some(Timer { kind, retransmits: fired, expires_ms: 35_000 });
        once(connected(&[], Vec::new(), vec![socket]))
    }

    #[test]
    fn two_minutes_on_a_path_of_microseconds() {
        insta::assert_snapshot!(shown(&CHECK, &waiting(RETRANSMISSION, 0, |_| ())));
    }

    #[test]
    fn borders() {
        let number = |host: Snapshot| judged(&CHECK, &host).expect("seen").len();
        let rto =
            |ns, rtt| move |info: &mut Info| (info.rto_ns, info.rtt_ns) = (Some(ns), Some(rtt));
        assert_eq!(number(waiting(RETRANSMISSION, 0, rto(LONG_NS, NEAR_NS - 1))), 1);
        assert_eq!(number(waiting(RETRANSMISSION, 0, rto(LONG_NS - 1, NEAR_NS - 1))), 0);
        assert_eq!(number(waiting(RETRANSMISSION, 0, rto(LONG_NS, NEAR_NS))), 0);
        assert_eq!(number(waiting(RETRANSMISSION, 3, rto(1, 1))), 1);
        assert_eq!(number(waiting(RETRANSMISSION, 2, rto(1, 1))), 0);
    }

    #[test]
    fn a_timer_of_netstat_tells_as_much() {
        let number = |queue, timer| {
            let row = format!("tcp 0 {queue} 10.0.0.5:8080 10.0.0.9:51235 ESTABLISHED {timer}\n");
            let text =
                row + "tcp 0 0 10.0.0.5:8080 10.0.0.9:51236 ESTABLISHED keepalive (7189.21/0/0)\n";
            judged(&CHECK, &crate::paste::read(&text).snapshot).map(|found| found.len())
        };
        assert_eq!(number(912_222, "on (25.60/9/0)"), Ok(1));
        assert_eq!(number(912_222, "712/nginx: on (1.60/3/0)"), Ok(1));
        assert_eq!(number(912_222, "on (0.20/2/0)"), Ok(0));
        assert_eq!(number(0, "on (25.60/9/0)"), Ok(0));
        assert_eq!(number(912_222, "probe (25.60/0/9)"), Ok(0));
        assert_eq!(number(912_222, "keepalive (25.60/9/0)"), Ok(0));
    }

    #[test]
    fn nothing_in_flight_or_another_timer_is_none() {
        let number = |host: Snapshot| judged(&CHECK, &host).expect("seen").len();
        assert_eq!(number(waiting(RETRANSMISSION, 9, |info| info.unacked = Some(0))), 0);
        assert_eq!(number(waiting(4, 9, |_| ())), 0);
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
