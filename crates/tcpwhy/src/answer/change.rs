//! What takes a cause away, in a few words, and what that would save.

use core::cmp::Reverse;

use super::words::Ends;
use crate::gain;
use crate::report::{Connection, Finding, Gain, Remedy};

/// A row of "would be faster".
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Change<'a> {
    /// Who does what: `server: a larger send buffer`.
    pub(crate) label: String,
    /// What it would save; `None` where that cannot be said.
    pub(crate) gain: Option<Gain>,
    /// The code of its cause.
    pub(crate) code: &'a str,
    /// The command that does it, if there is one.
    pub(crate) command: Option<&'a str>,
}

/// The changes that would help against `finding`, best first.
pub(crate) fn of<'a>(connection: &Connection, finding: &'a Finding) -> Vec<Change<'a>> {
    let main = super::main(connection).map_or(1, |main| main.0);
    let ends = finding.from.as_deref().map_or(Ends::of(main), Ends::from);
    let of_remedies = listed(finding).map(|(remedy, initcwnd, gain)| {
        let label = match initcwnd {
            None => "client: reuse the connection".to_owned(),
            Some(value) => {
                format!(
                    "{}: route with initcwnd {value}",
                    remedy.on.as_deref().unwrap_or(ends.sender)
                )
            }
        };
        let command = remedy.command.as_deref();
        Change { label, gain: Some(gain), code: &finding.code, command }
    });
    let mut changes: Vec<Change<'a>> = of_remedies.collect();
    if changes.is_empty()
        && let Some(label) = label(&finding.code)
    {
        let command = finding.remedies.iter().find_map(|remedy| remedy.command.as_deref());
        let label = ends.put_in(label);
        changes.push(Change { label, gain: finding.gain, code: &finding.code, command });
    }
    changes.sort_by_key(|change| Reverse(change.gain.map_or(-1, super::worth)));
    changes
}

/// The remedies that are changes of their own, each with its first window (`None`: a connection that is open already) and what it
/// would save.
fn listed(finding: &Finding) -> impl Iterator<Item = (&Remedy, Option<&str>, Gain)> {
    finding.remedies.iter().filter_map(|remedy| {
        let gain = gain::of_prediction(remedy.predicted_ns?);
        let set = remedy.set.as_deref()?;
        match set.rsplit_once('=') {
            _ if set == "again" => Some((remedy, None, gain)),
            Some((key, value)) if key.ends_with("initcwnd") => Some((remedy, Some(value), gain)),
            _ => None,
        }
    })
}

/// What the best change against `finding` would save, as [`of`] lists it.
pub(crate) fn gain(finding: &Finding) -> Option<Gain> {
    let best = listed(finding).map(|(_, _, gain)| gain).max_by_key(|gain| super::worth(*gain));
    best.or(finding.gain)
}

/// What would take away the cause that `code` tells of; `None` where nothing would, or nothing is to be changed.
fn label(code: &str) -> Option<&'static str> {
    Some(match code {
        "SLOW_START" | "COLD_CONNECTION" | "TLS_ROUND_TRIPS" | "BODY_ON_ITS_WAY" => {
            "client: reuse the connection"
        }
        "INITIAL_WINDOW" => "{s}: an initial window of 10 segments",
        "SLOW_START_ENDED_EARLY" => "{s}: try BBR",
        "IDLE_RESTART" => "{s}: keep the window over pauses",
        "WINDOW_CAP" | "WINDOW_GROWTH" => "{r}: a larger receive window",
        "WINDOW_SCALE" => "both: window scaling",
        "SCALE_LOST" => "path: a device that keeps window scaling",
        "SLOW_READER" | "ZERO_WINDOW" => "{r}: a program that reads at once",
        "ZERO_WINDOW_HOLE" => "{r}: a larger receive buffer",
        "SEND_BUFFER" => "{s}: a larger send buffer",
        "APP_WINDOW" => "both: a larger window of the protocol",
        "NAGLE_DELAYED_ACK" => "{s}: one write a message, or TCP_NODELAY",
        "LOSS" | "LOSS_RANDOM" | "LOSS_PERIODIC" | "TIMEOUT" => "path: find what loses packets",
        "LOSS_LOCAL" => "{s}: find what drops packets",
        "LOSS_CONGESTION" => "path: a queue that marks or drops early",
        "DAMAGED" => "path: find what damages packets",
        "POLICER" => "path: twice the policer's rate",
        "STOOD_STILL" => "path: find what stood still",
        "SPURIOUS_REPAIR" => "path: find what reorders packets",
        "LOCAL_QDISC" => "{s}: see the queue on its device",
        "PACING" => "{s}: another pacing rate",
        "BOTTLENECK" | "VARIABLE_RATE" | "TOKEN_BUCKET" => "path: a link twice as fast",
        "BOTTLENECK_SHARED" | "OTHERS_QUEUE" => "path: fair queues (fq_codel)",
        "ACK_PATH" => "path: an uplink whose queue stays short",
        "REQUESTS_IN_TURN" => "client: requests side by side",
        "THINK_SERVER" => "server: an instant answer",
        "SLOW_WRITER" => "{s}: a program that writes without pauses",
        "SYN_RETRY" => "server, path: find what drops the SYN",
        "ACCEPT_QUEUE" => "server: accept sooner, a longer backlog",
        "SLOW_HANDSHAKE" => "server, path: find what delays the SYN",
        "LONG_ROUND_TRIP" => "client: fewer round trips, a nearer server",
        "PATH_MTU" | "BLACK_HOLE" => "path: let ICMP through, or clamp the MSS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Remedy;
    use crate::view::sample;

    fn finding(code: &str, remedies: Vec<Remedy>) -> Finding {
        Finding {
            code: code.to_owned(),
            from: Some("client".into()),
            remedies,
            ..Finding::default()
        }
    }

    fn labels(finding: &Finding) -> Vec<String> {
        let connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100);
        of(&connection, finding).into_iter().map(|change| change.label).collect()
    }

    #[test]
    fn the_ends_are_those_of_the_data() {
        assert_eq!(labels(&finding("SEND_BUFFER", Vec::new())), ["client: a larger send buffer"]);
        assert_eq!(labels(&finding("RESET", Vec::new())), [""; 0]);
    }

    #[test]
    fn what_was_predicted_comes_best_first() {
        let remedy = |set: &str, best| Remedy {
            set: Some(set.to_owned()),
            on: Some("server".to_owned()),
            predicted_ns: Some(crate::report::Prediction {
                low: best,
                best,
                high: best,
                now: 9,
                ..Default::default()
            }),
            ..Remedy::default()
        };
        let start =
            finding("SLOW_START", vec![remedy("server.route.initcwnd=44", 5), remedy("again", 2)]);
        assert_eq!(
            labels(&start),
            ["client: reuse the connection", "server: route with initcwnd 44"]
        );
    }
}
