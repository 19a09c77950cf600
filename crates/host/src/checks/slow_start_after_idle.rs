//! Connections that pause begin slowly again after each pause.
//!
//! # What it says
//! With `net.ipv4.tcp_slow_start_after_idle=1` a connection that sent nothing for longer than its
//! retransmission timeout gives up its congestion window: it is halved once for each such timeout, down to the
//! initial window. The next burst needs round trips to win it back, though nothing was lost.
//!
//! # How we know
//! The setting is 1; connections over more than 10 ms that sent between the looks are silent now for longer than
//! their timeout, with a window above the initial one that their next burst will not have.
//!
//! # What it is not
//! Not that the pauses are wrong, nor that each next burst is large enough to feel it. BBR does not do this.
//!
//! # What to do
//! Set it to 0 where connections are kept open on purpose. The first burst after a pause then leaves at once, in
//! full: with `fq` as queueing discipline it is spread out.
//!
//! # Sources
//! Linux `tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`, `TCP_INIT_CWND` (v6.12); RFC 5681 section 4.1.
//! 10 ms: ours, not measured.

use super::flows::{self, time};
use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Info, Source};
use tcpwhy_words::said::count;

pub(super) const CHECK: Check = Check {
    code: "SLOW_START_AFTER_IDLE",
    file: include_str!("slow_start_after_idle.rs"),
    group: Group::Sending,
    judge,
};

const KEY: &str = "net.ipv4.tcp_slow_start_after_idle";
/// `TCP_INIT_CWND`, Linux v6.12 `include/net/tcp.h`.
const INITIAL: u32 = 10;
const LONG_NS: u64 = 10_000_000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    if seen.number(KEY)? != Some(1) {
        return Ok(Vec::new());
    }
    let default = seen.setting("net.ipv4.tcp_congestion_control").ok().flatten();
    let paused = flows::known(seen)?.into_iter().filter(|(flow, info)| {
        let controller = flow.now.congestion.as_deref().or(default);
        // BBR of any version does its own restarts: it has `cong_control`.
        let restarts = controller.is_some_and(|controller| !controller.starts_with("bbr"));
        let is_bursty = flow.before.is_none()
            || flow.grew(|info| info.bytes_acked).is_some_and(|acked| acked > 0);
        restarts && is_bursty && restart(info).is_some()
    });
    let paused = flows::worst(paused.map(|(flow, _)| flow).collect(), lost_round_trips);
    let Some(worst) = paused.first() else { return Ok(Vec::new()) };
    let rounds = lost_round_trips(worst);
    let rtt = worst.info().and_then(|info| info.min_rtt_ns).unwrap_or(0);
    Ok(vec![Finding {
        severity: if seen.before.is_some() { Severity::Warning } else { Severity::Info },
        confidence: if seen.before.is_some() { Confidence::High } else { Confidence::Low },
        scope: Scope::Netns,
        title: format!("{} will begin slowly after this pause", flows::counted(seen, &paused)),
        why: format!(
            "a window that is not used for longer than the retransmission timeout is given up; the worst \
             needs {} of {} to win it back when it retransmits.",
            count(rounds.into(), "round trip"),
            time(rtt)
        ),
        not: "not that the next burst is large enough to feel it".to_owned(),
        evidence: core::iter::once(words::setting(KEY, &1))
            .chain(flows::evidence(seen, &paused, says))
            .collect(),
        fixes: vec![words::set(
            seen,
            KEY,
            &0,
            "let connections keep their window over a pause",
            words::AT_ONCE,
            "a burst of a whole window at once after a pause; the queueing discipline fq spreads it out",
        )],
        unseen: match seen.before {
            Some(_) => Vec::new(),
            None => vec![Missing::all(Source::SecondLook).to_string()],
        },
        ..Finding::default()
    }])
}

/// The window that its next burst will have, where that is less than it has now.
fn restart(info: &Info) -> Option<u32> {
    let (idle, rto) = (info.last_data_sent_ns?, info.rto_ns?.max(1));
    let cwnd = info.snd_cwnd?;
    if info.unacked? > 0 || idle <= rto || info.min_rtt_ns? <= LONG_NS {
        return None;
    }
    // `tcp_cwnd_restart`: a pause in (n, n + 1] timeouts halves n times.
    let halvings = u32::try_from((idle - 1) / rto).unwrap_or(u32::MAX);
    let restarted = cwnd.checked_shr(halvings).unwrap_or(0).max(INITIAL);
    (restarted < cwnd).then_some(restarted)
}

/// In slow start the window doubles each round trip.
fn lost_round_trips(flow: &Flow<'_>) -> u32 {
    let rounds = || {
        let info = flow.info()?;
        let times = info.snd_cwnd?.div_ceil(restart(info)?);
        Some(times.checked_next_power_of_two()?.trailing_zeros())
    };
    rounds().unwrap_or(0)
}

fn says(flow: &Flow<'_>) -> String {
    let Some(info) = flow.info() else { return String::new() };
    format!(
        "silent for {}, rto {}, cwnd {} -> {}",
        time(info.last_data_sent_ns.unwrap_or(0)),
        time(info.rto_ns.unwrap_or(0)),
        info.snd_cwnd.unwrap_or(0),
        restart(info).unwrap_or(0)
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Memory, Snapshot};

    const MS: u64 = 1_000_000;

    /// A window of 160 segments, silent for so long; the timeout is 250 ms.
    fn paused(idle_ms: u64, min_rtt_ms: u64, controller: &str) -> Snapshot {
        let info = |acked| Info {
            snd_cwnd: Some(160),
            unacked: Some(0),
            rto_ns: Some(250 * MS),
            min_rtt_ns: Some(min_rtt_ms * MS),
            last_data_sent_ns: Some(idle_ms * MS),
            bytes_acked: Some(acked),
            ..Info::default()
        };
        let at = |acked| {
            let mut socket = socket(0, &info(acked), Memory::default());
            socket.congestion = Some(controller.to_owned());
            vec![socket]
        };
        connected(&[(KEY, "1")], at(1000), at(900_000))
    }

    #[test]
    fn a_pause_of_seconds_costs_the_next_burst_its_window() {
        insta::assert_snapshot!(shown(&CHECK, &paused(3000, 40, "cubic")));
    }

    #[test]
    fn one_timeout_is_the_border_and_each_further_one_halves() {
        let says = |idle| {
            let found = judged(&CHECK, &paused(idle, 40, "cubic")).expect("seen");
            found.first().map(|found| found.evidence[1].value.clone())
        };
        assert_eq!([says(250), says(251).map(|_| String::new())], [None, Some(String::new())]);
        assert!(says(500).expect("paused").ends_with("cwnd 160 -> 80"));
        assert!(says(501).expect("paused").ends_with("cwnd 160 -> 40"));
    }

    #[test]
    fn bbr_and_short_paths_and_a_switch_that_is_off_are_none() {
        assert_eq!(judged(&CHECK, &paused(3000, 40, "bbr")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &paused(3000, 10, "cubic")), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &host(&[(KEY, "0")])), Ok(Vec::new()));
    }

    #[test]
    fn one_look_is_worth_knowing_and_none_is_missing() {
        let found = judged(&CHECK, &once(paused(3000, 40, "cubic"))).expect("seen");
        assert_eq!(found[0].severity, Severity::Info);
        assert_eq!(missing(&CHECK, &host(&[(KEY, "1")])).source, Source::Sockets);
    }
}
