//! The facts of answers, out of reports.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};
use tcpwhy::report::{self, Connection, Direction, Finding, Report, Vantage};
use tcpwhy::units::Duration;
use tcpwhy_mcp::{
    Account, Cause, Change, Changes, Evidence, Explained, Found, FrameRange, Gain, Opinion,
    Refused, Remedy, State, Summary, Time,
};

/// Causes of a connection in a list. Ours.
const CAUSES: usize = 5;

/// Whose a direction's data is, by its place.
const SIDES: [&str; 2] = ["client", "server"];

/// What `explain` says, of these connections.
pub(super) fn explained<'a>(
    file: &str,
    report: &Report,
    numbers: impl Iterator<Item = &'a u64>,
) -> Explained {
    let of = |number: &u64| report.connections.iter().find(|each| each.id == *number);
    Explained {
        file: file.to_owned(),
        connections: report.totals.connections,
        worst: numbers.filter_map(of).map(|each| summary(each, CAUSES)).collect(),
    }
}

fn summary(connection: &Connection, causes: usize) -> Summary {
    let standing = connection.findings.iter().filter(|each| each.explained_by.is_none());
    Summary {
        connection: connection.id,
        client: connection.client_shown(),
        server: connection.server_shown(),
        name: connection.server_called(),
        duration_ns: connection.duration_ns,
        bytes: connection.bytes(),
        frames: frames(connection.frames),
        taken_at: vantage(connection.vantage).to_owned(),
        answer: connection.answer.clone(),
        causes: standing.take(causes).map(cause).collect(),
    }
}

const fn frames(range: report::FrameRange) -> FrameRange {
    FrameRange { first: range.first, last: range.last }
}

const fn vantage(vantage: Vantage) -> &'static str {
    match vantage {
        Vantage::Client => "client",
        Vantage::Server => "server",
        Vantage::Middle => "middle",
        Vantage::Unknown => "unknown",
    }
}

fn cause(finding: &Finding) -> Cause {
    let gain = |gain: report::Gain| Gain {
        low_ns: gain.low_ns,
        best_ns: gain.best_ns,
        high_ns: gain.high_ns,
        now_ns: gain.now_ns,
    };
    Cause {
        code: finding.code.clone(),
        severity: finding.severity.name().to_owned(),
        title: finding.title.clone(),
        cost_ns: finding.cost_ns,
        gain: finding.gain.map(gain),
    }
}

/// What `connection` says.
pub(super) fn account(connection: &Connection) -> Account {
    let directions = connection.present().map(|(at, direction)| time(SIDES[at], direction));
    Account { connection: summary(connection, usize::MAX), directions: directions.collect() }
}

fn time(from: &str, direction: &Direction) -> Time {
    let state = |(state, span): (report::State, Duration)| {
        let of_it = direction.limits.iter().filter(|limit| limit.state == state);
        let longest = of_it.max_by_key(|limit| limit.end_ns - limit.start_ns);
        State {
            state: state.name().to_owned(),
            ns: span.0,
            longest: longest.map(|limit| frames(limit.evidence.frames)),
        }
    };
    let mut states: Vec<State> = direction.time_in.iter().map(state).collect();
    states.sort_by_key(|state| -state.ns);
    Time {
        from: from.to_owned(),
        bytes: direction.bytes,
        retransmitted: direction.retransmitted.total(),
        states,
    }
}

/// A finding with all that shows it.
pub(super) fn opinion(finding: &Finding) -> Opinion {
    let evidence = |each: &report::Evidence| Evidence {
        frames: frames(each.frames),
        from_ns: each.from_ns,
        to_ns: each.to_ns,
        text: each.text.clone(),
    };
    let remedy = |each: &report::Remedy| Remedy {
        who: match &each.on {
            Some(on) if *on != each.who => format!("{}, on the {on}", each.who),
            _ => each.who.clone(),
        },
        what: each.what.clone(),
        command: each.command.clone(),
        rollback: each.rollback.clone(),
        set: each.set.clone(),
    };
    Opinion {
        cause: cause(finding),
        why: finding.why.clone(),
        not: finding.not.clone(),
        evidence: finding.evidence.iter().map(evidence).collect(),
        remedies: finding.remedies.iter().map(remedy).collect(),
    }
}

/// The same as text.
pub(super) fn in_words(found: &Found) -> String {
    let mut text = String::new();
    for Opinion { cause, why, not, evidence, remedies } in &found.findings {
        let of = match found.connection {
            Some(number) => format!("connection {number}"),
            None => "the capture".to_owned(),
        };
        let Cause { code, severity, title, cost_ns, gain } = cause;
        let _ = writeln!(text, "{code} ({severity}), of {of}: {title}");
        let _ = writeln!(text, "  took {}", Duration(*cost_ns));
        if let Some(Gain { low_ns, high_ns, now_ns, .. }) = *gain {
            let [low, high, now] = [low_ns, high_ns, now_ns].map(Duration);
            let _ = writeln!(text, "  without it {low} to {high} of {now} would be saved");
        }
        for (word, said) in [("why", why), ("not", not)] {
            if !said.is_empty() {
                let _ = writeln!(text, "  {word}: {said}");
            }
        }
        for Evidence { frames, from_ns, to_ns, text: words } in evidence {
            let [from, to] = [*from_ns, *to_ns].map(Duration);
            let FrameRange { first, last } = frames;
            let _ = writeln!(text, "  frames {first}-{last}, from {from} to {to}: {words}");
        }
        for Remedy { who, what, command, rollback, set } in remedies {
            let _ = writeln!(text, "  would help ({who}): {what}");
            for (word, said) in [("command", command), ("undo", rollback), ("whatif set", set)] {
                if let Some(said) = said {
                    let _ = writeln!(text, "    {word}: {said}");
                }
            }
        }
    }
    text
}

/// What is used of that which `tcpwhy whatif --json` prints.
#[derive(Deserialize)]
struct Studied {
    connection: u64,
    seen: Took,
    repeats: bool,
    doubt: Option<String>,
    changes: Vec<Tried>,
    refused: Vec<NotTried>,
}

#[derive(Deserialize)]
struct Took {
    time_ns: i64,
}

#[derive(Deserialize)]
struct Tried {
    what: String,
    account: Took,
    low_ns: i64,
    high_ns: i64,
}

#[derive(Deserialize)]
struct NotTried {
    what: String,
    why: String,
}

/// What `whatif` says.
///
/// # Errors
/// A mistake of ours.
pub(super) fn changes(json: &str) -> Result<Changes, Refused> {
    let studied: Studied = serde_json::from_str(json).map_err(mistaken)?;
    let tried = studied.changes.into_iter().map(|tried| Change {
        what: tried.what,
        best_ns: Some(tried.account.time_ns),
        low_ns: Some(tried.low_ns),
        high_ns: Some(tried.high_ns),
        refused: None,
    });
    let refused = studied.refused.into_iter().map(|each| Change {
        what: each.what,
        refused: Some(each.why),
        ..Change::default()
    });
    Ok(Changes {
        connection: studied.connection,
        repeats: studied.repeats,
        doubt: studied.doubt,
        now_ns: Some(studied.seen.time_ns),
        changes: tried.chain(refused).collect(),
    })
}

/// The object of a JSON text.
///
/// # Errors
/// A mistake of ours.
pub(super) fn object(json: &str) -> Result<Map<String, Value>, Refused> {
    serde_json::from_str(json).map_err(mistaken)
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err hands on")]
fn mistaken(error: serde_json::Error) -> Refused {
    Refused(format!("this is a mistake in tcpwhy: {error}"))
}
