//! The server answered a request with an error.
//!
//! # What it says
//! TCP did its work, and the answer that it carried is an HTTP error: a status of 500 and above (the server could not do
//! it) or of 400 and above (it would not do what was asked). The finding says which, and how often.
//!
//! # How we know
//! The status line at the beginning of the first segment behind a request, in clear (HTTP/1.x).
//!
//! # What it is not
//! Not the network and not TCP. 401 and 407 ask for a password or token and are mostly followed by the same request with
//! one. What is encrypted (HTTPS) or HTTP/2 cannot be read: without this finding a request may still have failed.
//!
//! # What to do
//! 502, 503 and 504 come mostly from a proxy or load balancer whose backend is gone, full or too slow: look at its log
//! and at the backends. Other statuses of 500 and above: the log of the server's program. Those of 400 and above: what
//! the client asked for.
//!
//! # Sources
//! RFC 9110 section 15 (statuses), RFC 9112 section 4 (status line), RFC 6585 (428, 429, 431, 511).

use super::case::{active_ns, filter};
use super::{Rule, remedies};
use crate::report::{ClearError, Connection, Evidence, Finding, FrameRange, Remedy, Severity};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "HTTP_ERROR",
    severity: Severity::Broken,
    file: include_str!("http_error.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    let errors: Vec<&ClearError> =
        connection.clear_errors.iter().filter(|each| each.kind == "http_status").collect();
    // The worst of them: those that the server is to blame for, then what is no question for a password.
    let worst = errors.iter().min_by_key(|each| (rank(each), each.at_ns)).copied();
    worst.map(|worst| told(connection, worst, &errors)).into_iter().collect()
}

/// 0: the server could not; 1: it would not; 2: it asks who is there.
fn rank(failure: &ClearError) -> usize {
    match failure.code {
        500.. => 0,
        401 | 407 => 2,
        _ => 1,
    }
}

fn told(connection: &Connection, worst: &ClearError, errors: &[&ClearError]) -> Finding {
    let frames = FrameRange { first: worst.frame, last: worst.frame };
    let said: Vec<String> =
        errors.iter().map(|each| format!("{} {}", shown(each), said::times(each.times))).collect();
    // From the request that this answers.
    let asked = connection.transfers.iter().filter(|each| each.from == "client");
    let asked = asked.map(|each| each.start_ns).filter(|start| *start <= worst.at_ns).max();
    let cost_ns = worst.at_ns - asked.unwrap_or(worst.at_ns);
    Finding {
        code: RULE.code.to_owned(),
        severity: [Severity::Broken, Severity::Wrong, Severity::Note][rank(worst)],
        title: format!("the server answered {}", shown(worst)),
        why: format!("its status line is in clear: {}.", said::listed(&said)),
        not: "not the network and not TCP: request and answer arrived".to_owned(),
        evidence: vec![Evidence {
            from_ns: worst.at_ns,
            to_ns: worst.at_ns,
            frames,
            filter: filter(frames),
            text: format!("HTTP status {}", shown(worst)),
        }],
        cost_ns,
        of_ns: active_ns(connection).max(cost_ns),
        remedies: vec![help(worst)],
        ..Finding::default()
    }
}

/// `503 Service Unavailable`.
fn shown(failure: &ClearError) -> String {
    format!("{} {}", failure.code, failure.name).trim_end().to_owned()
}

fn help(worst: &ClearError) -> Remedy {
    match worst.code {
        502..=504 => remedies::program(
            remedies::SERVER,
            "look at the log of the proxy or load balancer that answers here, then at the servers behind it: gone, full, \
             or slower than its timeout",
        ),
        500.. => remedies::program(
            remedies::SERVER,
            "look at the log of the server's program at that time",
        ),
        401 | 407 => remedies::program(
            remedies::CLIENT,
            "see whether the same request follows with a password or token; sending it at once saves a round trip",
        ),
        429 => remedies::program(
            remedies::CLIENT,
            "ask less often, or later: the answer may have a Retry-After",
        ),
        _ => remedies::program(remedies::CLIENT, "see what was asked for, and how"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn answered(codes: &[(u16, &'static str)]) -> Vec<Finding> {
        let mut connection = sample::download();
        let failure = |(code, name): &(u16, &'static str)| ClearError {
            kind: "http_status".into(),
            by: "server".into(),
            at_ns: 50_000_000,
            frame: 6,
            code: *code,
            name: (*name).into(),
            level: "server_error".into(),
            times: 2,
        };
        connection.clear_errors = codes.iter().map(failure).collect();
        find(&connection)
    }

    const BUSY: (u16, &str) = (503, "Service Unavailable");
    const PASSWORD: (u16, &str) = (401, "Unauthorized");

    #[test]
    fn an_error_status_is_told_with_its_number() {
        insta::assert_snapshot!(sample::shown(&answered(&[BUSY])));
    }

    #[test]
    fn the_worst_of_several_is_the_title_and_all_are_named() {
        let found = answered(&[PASSWORD, (404, "Not Found"), BUSY]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].title, "the server answered 503 Service Unavailable");
        assert!(found[0].why.contains("404 Not Found"), "{}", found[0].why);
    }

    #[test]
    fn who_could_not_and_who_would_not_differ() {
        let severity = |each| answered(&[each])[0].severity;
        assert_eq!(severity(BUSY), Severity::Broken);
        assert_eq!(severity((404, "Not Found")), Severity::Wrong);
        assert_eq!(severity(PASSWORD), Severity::Note);
        assert!(answered(&[]).is_empty());
    }
}
