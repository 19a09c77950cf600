//! The answer as people read it.

use std::fmt::Write as _;

use tcpwhy::host::Asked;
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy::host::target::{AskedFor, Buffer, Granted, Needs, Open, Taken, Target};
use tcpwhy::units::{BitRate, Bytes, Duration};

use super::facts::{Facts, From};
use super::foresee::{Foreseen, gained, kernel};

pub(super) fn text(
    facts: &Facts,
    needs: &Needs,
    snapshot: &Snapshot,
    foreseen: &Result<Vec<Foreseen>, String>,
) -> String {
    let target = &facts.target;
    let mut text = head(facts);
    let mut item = |label: &str, words: String| {
        let _ = writeln!(text, "  {label:<16} {words}");
    };
    item("on the way", format!("{} fill it", Bytes(target.bdp_bytes())));
    item("route", route(&needs.route));
    item("remembered", remembered(needs));
    item("receiving", buffer(target, &needs.receive));
    item("sending", buffer(target, &needs.send));
    item("window scale", scale(target, needs));
    for words in open(target, needs) {
        item("open", words);
    }
    match foreseen {
        Ok(foreseen) => predictions(&mut text, foreseen, snapshot),
        Err(why) => {
            let _ = writeln!(text, "\nNot predicted: {why}");
        }
    }
    text
}

fn predictions(text: &mut String, foreseen: &[Foreseen], snapshot: &Snapshot) {
    let _ = writeln!(
        text,
        "\nPredicted by a model of Linux {}, with a peer whose buffers have room and a queue of as much again",
        kernel(snapshot).version
    );
    for each in foreseen {
        let _ = writeln!(text, "  {:<16} {}", each.direction, predicted(each));
    }
    let changes = gained(foreseen);
    if !changes.is_empty() {
        *text += "\nWhat would help (for new connections; more memory for those that need it)\n";
    }
    for change in changes {
        let commands = change.commands().within(snapshot.netns.as_deref());
        let _ = writeln!(text, "  do: {}", commands.apply);
        let _ = writeln!(text, "  undo: {}", commands.undo.unwrap_or_default());
    }
}

/// What path, and how that is known.
fn head(facts: &Facts) -> String {
    let Facts { target, rate_from, rtt_from } = facts;
    let rtt = i64::try_from(target.rtt_ns).unwrap_or(i64::MAX);
    let rate = match rate_from {
        From::Said => "as was said",
        From::Bottleneck => "to which it held a transfer of the capture",
        From::Capture => "as the capture shows it",
        From::Sockets => "as its open connections deliver now",
    };
    let trip = match rtt_from {
        From::Said => "as was said",
        From::Bottleneck | From::Capture => "the least that the capture shows",
        From::Sockets => "the least of its open connections",
    };
    let mut text = format!(
        "To {} at {} ({rate}), round trip {} ({trip})\n",
        target.peer,
        BitRate(target.rate),
        Duration(rtt)
    );
    if facts.is_least() {
        text += "  It may carry more: then say how much with --rate, for all below hangs on it.\n";
    }
    text
}

fn scale(target: &Target, needs: &Needs) -> String {
    match &needs.scale {
        Ok(scale) => format!(
            "{}: windows up to {}, {}",
            scale.shift,
            Bytes(scale.window),
            if scale.window < target.bdp_bytes() { "too small for this path" } else { "enough" }
        ),
        Err(missing) => format!("not seen: {missing}"),
    }
}

/// A line for each open connection, and what its program asked for where that was seen.
fn open(target: &Target, needs: &Needs) -> Vec<String> {
    let Ok(open) = &needs.open else { return Vec::new() };
    let mut told: Vec<String> = open.iter().take(MOST).map(|open| each(target, open)).collect();
    if open.len() > MOST {
        told.push(format!("and {} more", open.len() - MOST));
    }
    told
}

/// Connections told one by one.
const MOST: usize = 8;

fn each(target: &Target, open: &Open) -> String {
    let granted = |buffer: &Granted, option: &str| {
        let bytes = Bytes(u64::from(buffer.bytes));
        let said = |asked: u32| Bytes(u64::from(asked));
        match buffer.asked {
            None => bytes.to_string(),
            Some(AskedFor::Bytes(asked)) => {
                format!("{bytes} (its program asked for {} with {option})", said(asked))
            }
            Some(AskedFor::AtLeast(asked)) => format!(
                "{bytes} (its program asked with {option}, and net.core.{}_max cut that to {})",
                if option == "SO_RCVBUF" { "rmem" } else { "wmem" },
                said(asked)
            ),
        }
    };
    let by = open.owner.map_or_else(String::new, |owner| {
        let fd = owner.fd.map_or_else(String::new, |fd| format!(", descriptor {fd}"));
        format!(" of process {}{fd}", owner.pid)
    });
    // A buffer of a fixed size gives half of it as window.
    let is_short = |buffer: &Granted| {
        buffer.asked.is_some() && u64::from(buffer.bytes) / 2 < target.bdp_bytes()
    };
    let verdict = if is_short(&open.receive) || is_short(&open.send) {
        ": too small for this path, and fixed"
    } else {
        ""
    };
    format!(
        "port {}{by}: receive buffer {}, send buffer {}{verdict}",
        open.port,
        granted(&open.receive, "SO_RCVBUF"),
        granted(&open.send, "SO_SNDBUF")
    )
}

fn predicted(each: &Foreseen) -> String {
    let said = |ns: u64| {
        let time = Duration(i64::try_from(ns).unwrap_or(i64::MAX));
        format!("{time} ({})", BitRate(each.rate(ns)))
    };
    let text = format!("{} in {}", Bytes(each.bytes), said(each.today_ns));
    match each.proposed_ns {
        Some(ns) if each.gains() => format!("{text}; with what is proposed {}", said(ns)),
        Some(_) => format!("{text}; larger buffers bring nothing"),
        None => text,
    }
}

fn route(route: &Asked<Option<Taken>>) -> String {
    match route {
        Ok(Some(taken)) => {
            let doubt = if taken.may_differ {
                "; rules may choose another: `ip route get` tells"
            } else {
                ""
            };
            format!("{}{doubt}", taken.route.line)
        }
        Ok(None) => "there is none: it cannot be reached".to_owned(),
        Err(missing) => format!("not seen: {missing}"),
    }
}

fn remembered(needs: &Needs) -> String {
    let metrics = match &needs.remembered {
        Ok(Some(metrics)) => metrics,
        Ok(None) => return "nothing of earlier connections".to_owned(),
        Err(missing) => return format!("not seen: {missing}"),
    };
    let mut told = Vec::new();
    told.extend(
        metrics.rtt_ns.map(|ns| format!("rtt {}", Duration(i64::try_from(ns).unwrap_or(i64::MAX)))),
    );
    told.extend(metrics.ssthresh.map(|segments| format!("ssthresh {segments}")));
    told.extend(
        metrics.cwnd.map(|segments| format!("cwnd {segments} (used only if the route locks it)")),
    );
    told.extend(metrics.reordering.map(|segments| format!("reordering {segments}")));
    told.extend(metrics.cookie.then(|| "a Fast Open cookie".to_owned()));
    if told.is_empty() { "a peer without figures".to_owned() } else { told.join(", ") }
}

fn buffer(target: &Target, buffer: &Asked<Buffer>) -> String {
    match buffer {
        Ok(buffer) => {
            let enough = if buffer.carries < target.bdp_bytes() {
                format!("too small: {} needed", Bytes(buffer.needed))
            } else {
                "enough".to_owned()
            };
            let Buffer { key, most, carries, .. } = buffer;
            format!(
                "{key} up to {}, sure to hold {} on the way: {enough}",
                Bytes(*most),
                Bytes(*carries)
            )
        }
        Err(missing) => format!("not seen: {missing}"),
    }
}
