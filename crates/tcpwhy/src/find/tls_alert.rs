//! The TLS handshake failed: one side refused it with an alert.
//!
//! # What it says
//! One side told the other in clear why it would not go on, and the connection carried nothing of what it was opened
//! for. Whatever time it took was spent in vain; many clients try again at once, with the same result.
//!
//! # How we know
//! A TLS record of type 21 (alert) with its two bytes in clear: its level and its description. A protected record is
//! longer, so encryption cannot look like this. An alert of level fatal ends the connection; one of level warning
//! counts only where nothing came behind it.
//!
//! # What it is not
//! Not the network and not TCP: both sides got what the other sent. Not the end of a connection (`close_notify`), which
//! every connection has. Encrypted alerts, as of TLS 1.3 from the server's second flight on, cannot be read: without
//! this finding a handshake may still have failed.
//!
//! # What to do
//! Look at the description. `protocol_version`: the two have no version of TLS in common. `handshake_failure`,
//! `insufficient_security`: no cipher or group, or a client certificate is missing. `unknown_ca`, `bad_certificate`,
//! `certificate_expired` and the like: the side that sent the alert does not accept the other's certificate.
//! `unrecognized_name`: the server has no such name. `openssl s_client` shows each of them in a terminal.
//!
//! # Sources
//! RFC 8446 sections 5.1 and 6, RFC 5246 section 7.2, RFC 6066 section 3 (`unrecognized_name`), RFC 7301 section 3.2.

use super::case::{active_ns, filter};
use super::{Rule, remedies};
use crate::report::{ClearError, Connection, Evidence, Finding, FrameRange, Remedy, Severity};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "TLS_ALERT",
    severity: Severity::Broken,
    file: include_str!("tls_alert.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    let alerts = connection.clear_errors.iter().filter(|each| each.kind == "tls_alert");
    let ending = alerts.filter(|each| each.level == "fatal" || is_last_word(connection, each));
    ending.take(1).map(|alert| told(connection, alert)).collect()
}

/// Whether TLS went no further than to `alert`.
fn is_last_word(connection: &Connection, alert: &ClearError) -> bool {
    let Some(last) = connection.tls.as_ref().filter(|tls| tls.end_ns.is_none()) else {
        return false;
    };
    let last = last.flights.last();
    last.is_some_and(|last| {
        last.from == alert.by && last.records.last().is_some_and(|record| record == "alert")
    })
}

fn told(connection: &Connection, alert: &ClearError) -> Finding {
    let ClearError { by, name, code, level, .. } = alert;
    let frames = FrameRange { first: alert.frame, last: alert.frame };
    let of_ns = active_ns(connection).max(alert.at_ns);
    Finding {
        code: RULE.code.to_owned(),
        severity: RULE.severity,
        title: format!("the TLS handshake failed: the {by} refused it with the alert {name}"),
        why: format!(
            "{} after the first packet the {by} sent the {level} alert {name} ({code}) in clear: {}.",
            said::time(alert.at_ns),
            meaning(*code, by)
        ),
        not: "not the network and not TCP: both sides got what the other sent".to_owned(),
        evidence: vec![Evidence {
            from_ns: alert.at_ns,
            to_ns: alert.at_ns,
            frames,
            filter: filter(frames),
            text: format!("{level} alert {name} ({code}) of the {by}"),
        }],
        cost_ns: alert.at_ns,
        of_ns,
        remedies: vec![help(connection, alert)],
        ..Finding::default()
    }
}

/// What the description says, in the words of RFC 8446 section 6.2 or what they come to.
fn meaning(code: u16, by: &str) -> String {
    let peer = if by == "client" { "server" } else { "client" };
    match code {
        70 => format!("it speaks no version of TLS that the {peer} offers"),
        40 | 71 => "it found no cipher, group or signature that both accept".to_owned(),
        41..=46 | 48 | 113 | 114 => format!("it does not accept the {peer}'s certificate"),
        49 => format!("it knows who the {peer} is, and does not let it in"),
        112 => "it serves no host of the name that was asked for".to_owned(),
        116 => format!("it wants a certificate of the {peer} and got none"),
        120 => "it speaks none of the application protocols (ALPN) that were offered".to_owned(),
        86 => "the client retried with an older version than both could speak".to_owned(),
        80 => format!("something went wrong inside of the {by} itself"),
        _ => format!("it could not go on with what the {peer} sent"),
    }
}

fn help(connection: &Connection, alert: &ClearError) -> Remedy {
    let at = usize::from(alert.by == "server");
    let (server, name) = (&connection.server, &alert.name);
    let address = match connection.server_name.as_deref() {
        Some(name) => name.to_owned(),
        None => server.to_string(),
    };
    let try_it = |more: &str| format!("openssl s_client -connect {address} -servername NAME{more}");
    match alert.code {
        70 | 86 => remedies::look(
            at,
            "let both speak one version: see which one the server takes (try -tls1_2 and -tls1_3), then allow it in the \
             configuration of the older side",
            try_it(" -tls1_2"),
        ),
        41..=46 | 48 | 113 | 114 => remedies::look(
            at,
            format!(
                "see what the {} has against the certificate: its dates, its names, and whether the chain up to a \
                 trusted authority is complete",
                alert.by
            ),
            try_it(" -showcerts"),
        ),
        _ => remedies::look(
            at,
            format!("see what the log of the {}'s program says of {name} at that time", alert.by),
            try_it(""),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::{Tls, TlsFlight};

    fn refused(code: u16, name: &'static str, level: &'static str) -> Connection {
        let mut connection = sample::download();
        connection.clear_errors = vec![ClearError {
            kind: "tls_alert".into(),
            by: "server".into(),
            at_ns: 50_000_000,
            frame: 6,
            code,
            name: name.into(),
            level: level.into(),
            times: 1,
        }];
        connection
    }

    #[test]
    fn a_fatal_alert_is_told_and_comes_first() {
        let connection = refused(70, "protocol_version", "fatal");
        insta::assert_snapshot!(sample::shown(&find(&connection)));
        assert_eq!(super::super::findings(&connection)[0].code, RULE.code);
    }

    #[test]
    fn a_warning_counts_only_where_nothing_came_behind_it() {
        let mut connection = refused(112, "unrecognized_name", "warning");
        assert!(find(&connection).is_empty(), "no flights are known");
        let mut said = |records: &[&str], end_ns| {
            let records = records.iter().map(|each| (*each).to_owned()).collect();
            let flight = TlsFlight { from: "server".to_owned(), records, ..TlsFlight::default() };
            connection.tls = Some(Tls { start_ns: 0, end_ns, flights: vec![flight] });
            find(&connection).len()
        };
        assert_eq!(said(&["alert"], None), 1);
        assert_eq!(said(&["alert", "handshake"], None), 0);
        assert_eq!(said(&["alert"], Some(1)), 0);
    }

    #[test]
    fn without_an_alert_there_is_nothing_to_tell() {
        assert!(find(&sample::download()).is_empty());
    }
}
