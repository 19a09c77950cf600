//! After a pause the congestion window was cut, and slow start began again.
//!
//! # What it says
//! Linux takes an open window for stale when nothing was sent for longer than the retransmission
//! timeout: the window is halved for each timeout that went by, down to the initial window (RFC 5681
//! goes there at once). The transfer after the pause pays for slow start as on a new connection. A stall at a
//! shut window is such a pause, too: what counts is how long nothing was sent.
//!
//! # How we know
//! Intervals in the state `cwnd.after_idle`, after a pause whose first flight stopped at what the
//! halvings allow although the flight before it was at least twice the initial window, and not at the end of
//! the receiver's window. They hold at least a tenth of the working time.
//!
//! # What it is not
//! Not slow start of a new connection. Not the pause itself, which is the application's. Not a timeout, after
//! which one segment goes out at first. A controller that paces itself (BBR) does not restart so.
//!
//! # What to do
//! On the sender's host: `net.ipv4.tcp_slow_start_after_idle=0` keeps the window; the cost is a
//! burst of a whole window at once after each pause, into a path that may have changed (`fq` spaces
//! it out). It is a setting for all connections of the host. Or let the application pause for less
//! than the timeout (at least 200 ms more than the round trip).
//!
//! # Sources
//! RFC 5681 section 4.1, RFC 2861; Linux `tcp_cwnd_restart`, `tcp_slow_start_after_idle_check`
//! (v6.1, `net/ipv4/tcp_output.c`, `include/net/tcp.h`). Ours: the lab's `idle-restart` scenario.

use super::case::{Case, Told, in_each};
use super::slow_start::{count_rounds, least_time};
use super::{Rule, remedies};
use crate::report::{
    Connection, Finding, IdleRestart, Prediction, Remedy, Severity, State, Transfer,
};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "IDLE_RESTART",
    severity: Severity::Limit,
    file: include_str!("idle_restart.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::CwndAfterIdle);
        let restarts = case.direction.idle_restarts.iter().filter(|each| each.verdict == "on");
        let worst = restarts.clone().max_by_key(|each| each.cwnd_before)?;
        if !held.is_worth_naming() {
            return None;
        }
        let before = worst.cwnd_before.map_or_else(String::new, |before| {
            format!(" instead of the {before} or more that the window had allowed before")
        });
        let told = Told {
            title: format!(
                "after {} the congestion window was cut and had to grow again",
                said::count(restarts.count() as u64, "pause")
            ),
            why: format!(
                "after {} without a send, {} went out at first{before}; {}.",
                said::time(worst.idle_ns),
                said::count(worst.segments, "segment"),
                worst.reason
            ),
            not: "not the pause itself, and not a new connection's slow start".to_owned(),
            remedies: help(case),
        };
        Some(held.finding(RULE.code, told))
    })
}

fn help(case: &Case<'_>) -> Vec<Remedy> {
    if !case.sender_is_linux() {
        return vec![remedies::program(
            case.at,
            "pause for less than the retransmission timeout, or send all of it at once",
        )];
    }
    let mut keep = remedies::sysctl(
        case,
        case.at,
        "net.ipv4.tcp_slow_start_after_idle",
        "0",
        "keep the window over pauses (for all connections of the host; each pause then ends with a burst of a \
         whole window)"
            .to_owned(),
    );
    if let Some((pause, transfer)) = longest_after_pause(case) {
        let took = transfer.end_ns - transfer.start_ns;
        let predicted = kept(case, pause, transfer).filter(|predicted| predicted.best < took);
        if predicted.is_some() {
            keep.what =
                format!("{}; for the transfer of {}", keep.what, said::bytes(transfer.bytes));
        }
        keep.predicted_ns = predicted;
    }
    vec![keep]
}

/// The longest transfer that began with a restart.
fn longest_after_pause<'a>(case: &Case<'a>) -> Option<(&'a IdleRestart, &'a Transfer)> {
    let restarts = case.direction.idle_restarts.iter().filter(|each| each.verdict == "on");
    restarts
        .filter_map(|each| {
            let begun = case.transfers().find(|t| (t.start_ns..t.end_ns).contains(&each.at_ns))?;
            Some((each, begun))
        })
        .max_by_key(|(_, transfer)| transfer.end_ns - transfer.start_ns)
}

/// Its duration if the window had been kept: the rounds that fall away, times the round trip; none
/// if the receiver's window or the path had held it instead.
fn kept(case: &Case<'_>, pause: &IdleRestart, transfer: &Transfer) -> Option<Prediction> {
    let (mss, rtt) = (case.mss()?, case.rtt()?);
    if case.lost_something() {
        return None;
    }
    let took = transfer.end_ns - transfer.start_ns;
    let open = |_| u64::MAX;
    let bytes = transfer.bytes;
    let rounds = transfer.rounds.map(|range| range.last + 1 - range.first)?;
    let told = count_rounds(pause.segments * mss, bytes, open);
    if told.abs_diff(rounds) > 1 {
        return None;
    }
    let saved = told.saturating_sub(count_rounds(pause.cwnd_before? * mss, bytes, open));
    let least = least_time(case, bytes)?;
    let best = (took - rtt.checked_mul(i64::try_from(saved).ok()?)?).max(least).min(took);
    Some(Prediction { low: best, best, high: took, now: took, ..Prediction::default() })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, held_by};
    use super::*;

    fn restarted(share: i64) -> Connection {
        let mut connection = held_by(State::CwndAfterIdle, share);
        let start = connection.transfers[1].start_ns;
        let direction = connection.directions[1].as_mut().expect("data");
        direction.idle_restarts.push(IdleRestart {
            at_ns: start,
            idle_ns: 2_000_000_000,
            verdict: "on".to_owned(),
            reason: "after 9 halvings Linux allows 11".to_owned(),
            segments: 10,
            bytes: 14_480,
            cwnd_before: Some(160),
        });
        connection
    }

    #[test]
    fn a_window_cut_by_a_pause_is_told_with_what_keeping_it_brings() {
        let connection = restarted(5_000);
        let found = find(&connection);
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
        let kept = found[0].remedies[0].predicted_ns.expect("arithmetic");
        // 10, 20, 40, 80, 58 against 160 and 48: three rounds of 20 ms.
        let took = sample::transfer_ns(&connection);
        assert!((took - kept.best).abs_diff(60_000_000) < 1_000_000, "{kept:?}");
    }

    #[test]
    fn no_window_is_faster_than_the_path() {
        let mut connection = restarted(5_000);
        let bytes = connection.transfers[1].bytes;
        let took = sample::transfer_ns(&connection);
        // The bytes alone take all but 25 ms, and a round trip of 20 ms comes to that.
        let rate =
            u128::from(bytes) * 8_000_000_000 / u128::from((took - 25_000_000).unsigned_abs());
        let direction = connection.directions[1].as_mut().expect("data");
        direction.bottleneck_rate_bps = Some(rate as u64);
        let kept = find(&connection)[0].remedies[0].predicted_ns.expect("arithmetic");
        assert!((took - kept.best).abs_diff(5_000_000) < 100_000, "{kept:?} of {took}");
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        assert_eq!(find(&restarted(1_000)).len(), 1);
        assert!(find(&restarted(999)).is_empty());
    }

    #[test]
    fn a_pause_that_cut_nothing_is_not_told() {
        let mut connection = restarted(5_000);
        let direction = connection.directions[1].as_mut().expect("data");
        direction.idle_restarts[0].verdict = "off".to_owned();
        assert!(find(&connection).is_empty());
    }
}
