//! What the programs saw: how long each connection and each call took, and which controller a sender had, from their own
//! log (`applications.jsonl`).
//!
//! A call begins when the end that speaks first writes after it has read, slept or drained, and ends with the last that it
//! does before the next: the answer's last byte, or the last ACK of what nobody answers. A connection lasts from its
//! opening to the end of its last call. The first call of a connection is cold, the others are warm. The model's log
//! has no writes, so that nothing is known of its calls.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use tcpwhy_linux::lab::folder;

/// What the connections of one application took, in nanoseconds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Talks {
    /// Each connection, in order.
    pub(super) connections: Vec<i64>,
    /// The first call of each.
    pub(super) cold: Vec<i64>,
    /// The others.
    pub(super) warm: Vec<i64>,
}

/// What the log of a run says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Log {
    /// By application, in the order of the plan.
    pub(super) talks: Vec<Talks>,
    /// Why connections failed at the client, by application: each reason, and how many had it.
    pub(super) failed: Vec<BTreeMap<String, u64>>,
    /// The controllers of each end's connected sockets, each once.
    pub(super) controllers: [Vec<String>; 2],
}

#[derive(Deserialize)]
struct Line {
    who: String,
    flow: usize,
    connection: u64,
    step: String,
    from: i64,
    to: i64,
    bytes: Option<u64>,
    socket: Option<Socket>,
    failed: Option<String>,
}

#[derive(Deserialize)]
struct Socket {
    congestion: Option<String>,
}

/// Reads the log of the run in `folder`; what cannot be read tells nothing.
pub(super) fn read(folder: &Path, flows: usize) -> Log {
    let text = fs::read_to_string(folder.join(folder::APPLICATIONS)).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let mut ends: BTreeMap<(usize, u64), [Vec<Line>; 2]> = BTreeMap::new();
    let mut log = Log {
        talks: vec![Talks::default(); flows],
        failed: vec![BTreeMap::new(); flows],
        ..Log::default()
    };
    for line in lines {
        let side = usize::from(line.who == "server");
        if let (Some(why), Some(failed), 0) = (&line.failed, log.failed.get_mut(line.flow), side) {
            *failed.entry(reason(why).to_owned()).or_default() += 1;
        }
        let congestion = line.socket.as_ref().and_then(|socket| socket.congestion.clone());
        let is_connected = matches!(line.step.as_str(), "connect" | "accept");
        if let Some(name) = congestion.filter(|_| is_connected)
            && !log.controllers[side].contains(&name)
        {
            log.controllers[side].push(name);
        }
        ends.entry((line.flow, line.connection)).or_default()[side].push(line);
    }
    for ((flow, _), ends) in &ends {
        if let Some(talks) = log.talks.get_mut(*flow) {
            talks.add(ends);
        }
    }
    log
}

/// Why a connection failed, without which it was: `flow 0, client, connection 3: cannot connect ...`.
fn reason(why: &str) -> &str {
    let (place, rest) = why.split_once(", connection ").unwrap_or(("", why));
    let number = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    if place.is_empty() { why } else { rest[number..].trim_start_matches([':', ',', ' ']) }
}

impl Talks {
    /// Adds a connection, as both its ends tell of it.
    fn add(&mut self, ends: &[Vec<Line>; 2]) {
        let first_write = |lines: &[Line]| {
            lines.iter().find(|line| line.step == "write").map_or(i64::MAX, |line| line.from)
        };
        let [client, server] = ends;
        let speaker = if first_write(server) < first_write(client) { server } else { client };
        let calls = calls(speaker);
        let opened = client.iter().find(|line| line.step == "connect").map(|line| line.from);
        let (Some(opened), Some((_, ended))) = (opened, calls.last()) else { return };
        self.connections.push(ended - opened);
        let mut took = calls.iter().map(|(from, to)| to - from);
        self.cold.extend(took.next());
        self.warm.extend(took);
    }
}

/// First and last instant of each call of the end that speaks first.
fn calls(lines: &[Line]) -> Vec<(i64, i64)> {
    let mut calls: Vec<(i64, i64)> = Vec::new();
    let mut is_open = false;
    for line in lines {
        match line.step.as_str() {
            "write" if !is_open => {
                calls.push((line.from, line.to));
                is_open = true;
                continue;
            }
            "write" => {}
            // The end of the stream is no answer.
            "read" if line.bytes != Some(0) => is_open = false,
            "drain" => is_open = false,
            "sleep" => {
                is_open = false;
                continue;
            }
            _ => continue,
        }
        if let Some((_, to)) = calls.last_mut() {
            *to = line.to;
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[(&str, &str, i64, i64, u64)]) -> Log {
        let folder = tempfile::tempdir().expect("a folder");
        let text: String = lines
            .iter()
            .map(|(who, step, from, to, bytes)| {
                let socket = match *step {
                    "connect" | "accept" => r#","socket":{"congestion":"cubic"}"#,
                    _ => "",
                };
                format!(
                    r#"{{"who":"{who}","flow":0,"connection":1,"step":"{step}","from":{from},"to":{to},"bytes":{bytes}{socket}}}"#
                ) + "\n"
            })
            .collect();
        fs::write(folder.path().join(folder::APPLICATIONS), text).expect("written");
        read(folder.path(), 1)
    }

    #[test]
    fn connections_that_failed_are_counted_by_why() {
        for (why, reason) in [
            ("flow 0, client, connection 21: cannot connect", "cannot connect"),
            ("flow 0, client, connection 3, step 2: reset", "step 2: reset"),
            ("something else", "something else"),
        ] {
            assert_eq!(super::reason(why), reason);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let line = |who: &str, connection: u32| {
            format!(
                r#"{{"who":"{who}","flow":0,"connection":{connection},"step":"failed","from":1,"to":1,"failed":"flow 0, {who}, connection {connection}: no port"}}"#
            )
        };
        let text = [line("client", 2), line("client", 3), line("server", 3)].join("\n");
        fs::write(folder.path().join(folder::APPLICATIONS), text).expect("written");
        let failed = read(folder.path(), 1).failed;
        assert_eq!(failed, [BTreeMap::from([("no port".to_owned(), 2)])]);
    }

    #[test]
    fn a_request_and_its_answer_are_a_call_and_what_follows_is_warm() {
        let told = log(&[
            ("client", "connect", 0, 10, 0),
            ("client", "write", 11, 12, 78),
            ("client", "read", 12, 30, 200),
            ("client", "read", 30, 41, 900),
            ("client", "sleep", 41, 100, 0),
            ("client", "write", 100, 101, 78),
            ("client", "read", 101, 115, 1100),
            ("client", "read", 115, 900, 0),
            ("server", "accept", 0, 12, 0),
            ("server", "write", 20, 25, 1100),
        ]);
        let [talks] = &told.talks[..] else { panic!("{told:?}") };
        assert_eq!(talks, &Talks { connections: vec![115], cold: vec![30], warm: vec![15] });
        assert_eq!(told.controllers, [["cubic"], ["cubic"]]);
    }

    #[test]
    fn what_is_sent_unasked_is_over_when_it_is_acknowledged() {
        let told = log(&[
            ("client", "connect", 0, 10, 0),
            ("client", "read", 10, 60, 500),
            ("server", "write", 12, 13, 300),
            ("server", "write", 13, 14, 200),
            ("server", "drain", 14, 50, 0),
        ]);
        assert_eq!(told.talks[0], Talks { connections: vec![50], cold: vec![38], warm: vec![] });
    }

    #[test]
    fn a_run_without_a_log_tells_nothing() {
        let told = read(Path::new("/nowhere"), 2);
        let failed = vec![BTreeMap::new(); 2];
        assert_eq!(told, Log { talks: vec![Talks::default(); 2], failed, ..Log::default() });
    }
}
