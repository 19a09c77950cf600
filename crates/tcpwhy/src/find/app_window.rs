//! The application protocol's own window is full.
//!
//! # What it says
//! HTTP/2, SSH and others have windows of their own inside the connection: the receiving program tells
//! the sending program how much it may send. Here that window, not TCP's, let no more go.
//!
//! # How we know
//! Intervals in the state `app_window`: the flight stood at one size for rounds, and what released the
//! next send was a small piece of data from the peer, not a bare ACK. They hold at least a tenth of the
//! working time. Such a flight may be a full send buffer too; where the packets allow that, it is said.
//!
//! # What it is not
//! Not TCP's windows, which had room, and not the path. No setting of a host helps.
//!
//! # What to do
//! Change the protocol's window in the receiving program: the stream and connection windows of HTTP/2
//! (65,535 bytes unless `SETTINGS_INITIAL_WINDOW_SIZE` and `WINDOW_UPDATE` say more), the channel window
//! of SSH. It needs the rate times the round trip. Cost: memory in the program for each stream. Where ALPN or the
//! server's port tells the protocol, the settings of programs that have one are named: of HTTP/2 those of Go, gRPC, .NET
//! and Node; OpenSSH's 2 MiB cannot be changed, Dropbear's window can (`-W`).
//!
//! # Sources
//! RFC 9113 section 6.9.2 (65,535 bytes at first), RFC 4254 section 5.2 (channel windows). OpenSSH `channels.h`,
//! `CHAN_SES_WINDOW_DEFAULT` (64 packets of 32 KiB); manuals of Dropbear, Go's `net/http`, grpc-go, .NET and Node.

use super::case::{Case, Told, in_each};
use super::send_buffer::usual_flight;
use super::windows::at_most;
use super::{Rule, remedies};
use crate::report::{Connection, Finding, Severity, State};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "APP_WINDOW",
    severity: Severity::Wrong,
    file: include_str!("app_window.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let held = case.held(|state| state == State::AppWindow);
        if !held.is_worth_naming() {
            return None;
        }
        let flight = usual_flight(case, State::AppWindow)?;
        let told = Told {
            title: format!(
                "the application's own window lets no more than {} be in flight",
                said::bytes(flight)
            ),
            why: format!(
                "small pieces of data from the {}, not bare ACKs, released what the {} sent next, for {} in \
                 all{}.",
                case.receiver(),
                case.sender(),
                said::time(held.time_ns()),
                at_most(case, flight)
            ),
            not: "not TCP's windows: both had room; not the path".to_owned(),
            remedies: vec![remedies::program(1 - case.at, setting(case, flight))],
        };
        Some(held.finding(RULE.code, told))
    })
}

/// What speaks above TCP, as far as names tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Above {
    Http2,
    Ssh,
    Unknown,
}

fn above(connection: &Connection) -> Above {
    let Some(names) = &connection.names else { return Above::Unknown };
    let is_h2 = |name: &String| name == "h2";
    match (&names.alpn, names.service.as_deref()) {
        (Some(chosen), _) if is_h2(chosen) => Above::Http2,
        // From TLS 1.3 on the choice is hidden, and servers take the first of the client that they know.
        (None, _) if names.alpn_offered.first().is_some_and(is_h2) => Above::Http2,
        (None, Some("ssh")) => Above::Ssh,
        _ => Above::Unknown,
    }
}

/// What the receiving program has to set, by the names of programs' settings.
fn setting(case: &Case<'_>, flight: u64) -> String {
    let size = "to the rate you want times the round trip";
    let settings = match (above(case.connection), case.receiver()) {
        (Above::Http2, "client") => format!(
            "raise HTTP/2's stream and connection window {size}: grpc-go WithInitialWindowSize and \
             WithInitialConnWindowSize, .NET InitialHttp2StreamWindowSize, Node initialWindowSize"
        ),
        (Above::Http2, _) => format!(
            "raise HTTP/2's stream and connection window {size}: Go MaxUploadBufferPerStream and \
             MaxUploadBufferPerConnection, grpc-go InitialWindowSize and InitialConnWindowSize, Kestrel \
             InitialStreamWindowSize and InitialConnectionWindowSize, Node initialWindowSize"
        ),
        (Above::Ssh, _) => {
            "SSH's channel window is the receiving program's: OpenSSH has 2 MiB and no setting (send over several \
             connections, or not through SSH); Dropbear takes -W"
                .to_owned()
        }
        (Above::Unknown, _) => format!(
            "raise the protocol's window in the program (HTTP/2: stream and connection window; SSH: channel window) {size}"
        ),
    };
    // What is in flight has the headers of frames and records in it.
    if (HTTP2_DEFAULT..HTTP2_DEFAULT + HTTP2_DEFAULT / 32).contains(&flight) {
        return format!("{settings}; this is about HTTP/2's first window of 65,535 bytes");
    }
    settings
}

/// Ours: what frames and records add is below a thirty-second.
const HTTP2_DEFAULT: u64 = 65_535;

#[cfg(test)]
mod tests {
    use super::super::case::working_ns;
    use super::super::sample::{self, Sim};
    use super::*;
    use crate::report::Names;

    /// A transfer with a flight of one size, whose waits are of `state`.
    fn waits_of(state: State) -> Connection {
        let mut connection = Sim { bytes: 1_000_000, buffer: 65_160, ..Sim::default() }.run();
        let direction = connection.directions[1].as_mut().expect("data");
        direction.limits.iter_mut().filter(|l| l.state == State::Sndbuf).for_each(|l| {
            l.state = state;
        });
        let stopped = direction.rounds.iter_mut().filter(|r| r.limited_by == State::Sndbuf);
        stopped.for_each(|round| round.limited_by = state);
        connection
    }

    #[test]
    fn a_flight_released_by_small_answers_is_told() {
        let found = find(&waits_of(State::AppWindow));
        assert_eq!(found.len(), 1);
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn the_setting_is_that_of_the_protocol() {
        let told = |names: Option<Names>| {
            let mut connection = waits_of(State::AppWindow);
            connection.names = names.map(Box::new);
            find(&connection)[0].remedies[0].what.clone()
        };
        let offers = |first: &str| Names {
            alpn_offered: vec![first.to_owned(), "http/1.1".to_owned()],
            ..Names::default()
        };
        assert!(told(Some(offers("h2"))).contains("InitialHttp2StreamWindowSize"));
        let ssh = Names { service: Some("ssh".into()), ..Names::default() };
        assert!(told(Some(ssh)).contains("Dropbear"));
        let old = Names { alpn: Some("http/1.1".to_owned()), ..offers("h2") };
        for unknown in [None, Some(old)] {
            assert!(told(unknown).contains("HTTP/2: stream and connection window; SSH"));
        }
    }

    #[test]
    fn the_same_flight_released_by_acks_is_not() {
        assert!(find(&waits_of(State::Sndbuf)).is_empty());
    }

    #[test]
    fn a_tenth_is_enough_and_less_is_not() {
        let connection = waits_of(State::AppWindow);
        let (cost, active) = (find(&connection)[0].cost_ns, working_ns(&connection));
        for (more, number) in [(10 * cost - active, 1), (10 * cost - active + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }
}
