//! The window is not scaled, so no more than 64 KiB can be in flight.
//!
//! # What it says
//! The window field of TCP has 16 bits. Only if both SYNs carry the window scale option can a window
//! exceed 65,535 bytes. Here one of them did not, and the window stood at that ceiling and was full.
//!
//! # How we know
//! Both SYNs were captured, at least one without the option; intervals in `rwnd.cap` or
//! `rwnd.autotune` hold at least a tenth of the working time, and the window that stopped the sender
//! was within two segments of 65,535 bytes. Where data is acknowledged much sooner than the SYN was
//! answered, a nearer device answers in the server's name, and we say so instead of blaming the server.
//!
//! # What it is not
//! Not a small receive buffer: a window well below 64 KiB has another reason (`WINDOW_CAP`).
//! An option that a device removes beyond this capture point is not seen here: both ends may believe
//! different things. A capture at the other end tells.
//!
//! # What to do
//! Whoever left the option out: `net.ipv4.tcp_window_scaling` must be 1 on both hosts; SYN proxies
//! and load balancers must pass the option on; Linux drops it when it answers with SYN cookies and the
//! client sends no timestamps (look for `SyncookiesSent`). No buffer setting helps meanwhile. The
//! option is agreed on once: only new connections gain.
//!
//! # Sources
//! RFC 7323 section 2.2 (both SYNs), RFC 9293 section 3.1 (16 bits); Linux `tcp_synack_options` and
//! `cookie_timestamp_decode` (v6.1).

use super::case::{Case, Told, in_each};
use super::windows::{at_most, largest_window};
use super::{Rule, remedies};
use crate::report::{
    Connection, Finding, Remedy, ScalingRefusedBy, Severity, State, WindowScaling,
};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "WINDOW_SCALE",
    severity: Severity::Wrong,
    file: include_str!("window_scale.rs"),
    find,
};

/// The largest window without scaling (RFC 9293 section 3.1).
const CEILING: u64 = 65_535;

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| matches!(state, State::RwndCap | State::RwndAutotune));
        if !explains(case) || !held.is_worth_naming() {
            return None;
        }
        let note = connection.window_scaling_note.as_deref().unwrap_or("a SYN lacks the option");
        let told = Told {
            title: "windows are not scaled: at most 64 KiB in flight".to_owned(),
            why: format!(
                "{note}; the {} waited {} at that ceiling{}.",
                case.sender(),
                said::time(held.time_ns()),
                at_most(case, CEILING)
            ),
            not: "not the receive buffer: no setting of it raises this ceiling".to_owned(),
            remedies: help(case),
        };
        Some(held.finding(RULE.code, told))
    })
}

/// Whether the ceiling is what stopped this direction.
pub(super) fn explains(case: &Case<'_>) -> bool {
    let stopped = [State::RwndCap, State::RwndAutotune]
        .into_iter()
        .filter_map(|state| largest_window(case, state))
        .max();
    case.connection.window_scaling == WindowScaling::NotNegotiated
        && stopped.zip(case.mss()).is_some_and(|(window, mss)| {
            (CEILING.saturating_sub(2 * mss)..=CEILING).contains(&window)
        })
}

fn help(case: &Case<'_>) -> Vec<Remedy> {
    let side = match case.connection.window_scaling_refused_by {
        Some(ScalingRefusedBy::Device) => {
            return vec![remedies::path(
                "let the device that answers in the server's name (SYN proxy, load balancer) pass the window scale \
                 option on",
            )];
        }
        Some(ScalingRefusedBy::Client) => remedies::CLIENT,
        Some(ScalingRefusedBy::Server) | None => remedies::SERVER,
    };
    let host = ["client", "server"][side];
    let what = "see that scaling is switched on (new connections gain)".to_owned();
    let mut help = vec![remedies::sysctl(case, side, "net.ipv4.tcp_window_scaling", "1", what)];
    let may_be_cookie = case.connection.syns[remedies::CLIENT].is_none_or(|syn| !syn.timestamps);
    if side == remedies::SERVER && may_be_cookie {
        help.push(remedies::host(
            side,
            "see whether it answered with a SYN cookie: without the client's time stamps that has no room for the option",
            "nstat -az TcpExtSyncookiesSent TcpExtTCPReqQFullDoCookies",
        ));
    }
    help.push(
        remedies::path(format!(
            "if it is, a device on the way takes the option out: a capture on the {host}'s host shows what that \
             sent"
        )),
    );
    help
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sim};
    use super::*;

    fn unscaled(window: u64) -> Connection {
        Sim { bytes: 1_000_000, scaled: false, first_window: 29_200, window, ..Sim::default() }
            .run()
    }

    #[test]
    fn a_ceiling_of_64_kib_is_told_and_no_other_cap_beside_it() {
        let connection = unscaled(65_535);
        let found = super::super::findings(&connection);
        let codes: Vec<&str> = found.iter().map(|each| each.code.as_str()).collect();
        assert!(codes.contains(&RULE.code) && !codes.contains(&"WINDOW_CAP"), "{codes:?}");
        insta::assert_snapshot!(sample::shown(&find(&connection)));
    }

    #[test]
    fn a_server_may_have_answered_with_a_cookie_where_the_client_sent_no_time_stamps() {
        let asks_for_cookies = |timestamps| {
            let mut connection = unscaled(65_535);
            connection.window_scaling_refused_by = Some(ScalingRefusedBy::Server);
            connection.syns[0].as_mut().expect("captured").timestamps = timestamps;
            let remedies = &find(&connection)[0].remedies;
            remedies.iter().any(|remedy| remedy.what.contains("SYN cookie"))
        };
        assert!(asks_for_cookies(false) && !asks_for_cookies(true));
    }

    #[test]
    fn a_small_buffer_without_scaling_is_not_blamed_on_it() {
        assert!(find(&unscaled(32_768)).is_empty());
    }

    #[test]
    fn two_segments_below_the_ceiling_are_still_at_it() {
        let ceiling = CEILING - 2 * sample::MSS;
        assert_eq!(find(&unscaled(ceiling)).len(), 1);
        assert!(find(&unscaled(ceiling - 1)).is_empty());
    }

    #[test]
    fn scaled_windows_of_that_size_have_another_reason() {
        let connection = Sim { bytes: 1_000_000, window: 65_535, ..Sim::default() }.run();
        assert!(find(&connection).is_empty());
    }
}
