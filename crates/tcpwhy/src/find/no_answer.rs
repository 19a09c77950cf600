//! The server did not answer a request, or not to its end.
//!
//! # What it says
//! The server's host acknowledged the request and then sent nothing, or a part of the answer and then nothing, until
//! somebody gave up. TCP works; the program behind it did not answer.
//!
//! # How we know
//! No answer: the last request got none for a second or more, and for three times as long as each answer before it had
//! taken; a client that also speaks without being answered is not judged. A part: the answer's head announced its length
//! in clear (HTTP/1 `Content-Length`), and less came. Both times all that was sent is acknowledged, and the server's
//! sequence numbers count nothing more as sent.
//!
//! Where the client's FIN, which a host acknowledges whatever its program does, is retransmitted and nothing comes back, or
//! where the server retransmits what ACKs had acknowledged here, the path or the host is gone, and since when does not show.
//! Then the program is not blamed. Nor is the network acquitted where no number of the server came a second later: an
//! answer may have been lost.
//!
//! # What it is not
//! Not the network: the request arrived, and a host that still answers sent nothing. Not data that is lost on the way (`NEVER_ARRIVED`), nor a server that refuses.
//! A request that is meant to wait for an event (a long poll) looks alike until the event comes.
//!
//! # What to do
//! On the server see what the program did in that time: its log, its threads, what it waits for (a backend, a lock, a
//! full pool). A client should have a timeout of its own, and say so.
//!
//! # Sources
//! RFC 9112 sections 6.2 and 8 (`Content-Length`, incomplete messages), RFC 9293 section 3.4. Ours: a second and three
//! times, not measured.

use super::case::{active_ns, filter};
use super::{Rule, remedies};
use crate::report::{Connection, Ending, EndingKind, Evidence, Finding, Remedy, Severity};
use tcpwhy_words::said;

pub(super) const RULE: Rule = Rule {
    code: "NO_ANSWER",
    severity: Severity::Broken,
    file: include_str!("no_answer.rs"),
    find,
};

fn find(connection: &Connection) -> Vec<Finding> {
    let ending = connection.ending.as_deref();
    let ending =
        ending.filter(|ending| matches!(ending.kind, EndingKind::NoAnswer | EndingKind::CutShort));
    ending.map(|ending| told(connection, ending)).into_iter().collect()
}

fn told(connection: &Connection, ending: &Ending) -> Finding {
    let is_part = ending.kind == EndingKind::CutShort;
    let cost_ns = (ending.until_ns - ending.since_ns).max(0);
    let waited = said::time(cost_ns);
    let end = match (ending.open, &connection.reset) {
        (true, _) => "the capture ended",
        (false, Some(reset)) if &*reset.by == "client" => "the client reset the connection",
        (false, Some(_)) => "the server reset the connection",
        (false, None) => "one side closed",
    };
    let gone = gone(ending);
    let (title, why) = if is_part {
        let [came, of] = [ending.bytes, ending.announced_bytes.unwrap_or(0)].map(said::bytes);
        (
            format!("the server's answer stopped after {came} of {of}"),
            format!(
                "its head announced {of}; after {came} nothing more came for {waited}, until {end}."
            ),
        )
    } else {
        (
            "the server never answered the request".to_owned(),
            format!(
                "its host acknowledged the request ({}), and sent nothing for {waited}, until {end}.",
                said::bytes(ending.bytes)
            ),
        )
    };
    Finding {
        code: RULE.code.to_owned(),
        severity: RULE.severity,
        title: title + gone.as_ref().map_or("", |_| ", and then its host or the path was gone"),
        why: why + gone.as_deref().unwrap_or(lost_unseen(ending)),
        not: if gone.is_none() && ending.nothing_missing {
            "not the network and not TCP: all that was sent arrived".to_owned()
        } else {
            String::new()
        },
        evidence: vec![Evidence {
            from_ns: ending.since_ns,
            to_ns: ending.until_ns.max(ending.since_ns),
            frames: ending.frames,
            filter: filter(ending.frames),
            text: format!("nothing from the server for {waited}"),
        }],
        cost_ns,
        of_ns: active_ns(connection).max(cost_ns),
        remedies: help(gone.is_some(), ending.nothing_missing),
        ..Finding::default()
    }
}

/// What shows that not only the program was silent.
fn gone(ending: &Ending) -> Option<String> {
    let since = "Since when does not show: the program may have been silent before.";
    if ending.repeated > 0 {
        let repeats = said::count(ending.repeated, "segment");
        return Some(format!(
            " The server sent {repeats} again that ACKs had acknowledged here: what the client sends no longer arrives. {since}"
        ));
    }
    (ending.unheard_fins > 0).then(|| {
        let times = said::times(ending.unheard_fins);
        format!(
            " The client's FIN was sent {times}, and nothing came back: no host answered. {since}"
        )
    })
}

/// What is left open where no number of the server came later.
fn lost_unseen(ending: &Ending) -> &'static str {
    if ending.nothing_missing {
        ""
    } else {
        " Whether something that it sent was lost on the way does not show here."
    }
}

fn help(is_gone: bool, nothing_missing: bool) -> Vec<Remedy> {
    let path = remedies::path(
        "capture on the other host too, and see whether it is up and whether a firewall, NAT or load balancer forgot this \
         connection",
    );
    let capture = remedies::path("capture on the server too: it shows whether an answer leaves it");
    let first = match (is_gone, nothing_missing) {
        (true, _) => vec![path],
        (false, false) => vec![capture],
        (false, true) => Vec::new(),
    };
    let program = vec![
        remedies::look(
            remedies::SERVER,
            "see what its program did in that time: log, threads, and what it waits for (a backend, a lock, a full pool)",
            "strace -f -ttt -T -p PID",
        ),
        remedies::program(
            remedies::CLIENT,
            "give requests a timeout of their own, and say which one had none",
        ),
    ];
    first.into_iter().chain(program).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn ended(kind: EndingKind) -> Connection {
        let ending = Ending {
            kind,
            from: "server".into(),
            since_ns: 40_000_000,
            until_ns: 6_040_000_000,
            bytes: 78,
            announced_bytes: Some(20_041),
            nothing_missing: true,
            ..Ending::default()
        };
        Connection { ending: Some(Box::new(ending)), ..sample::download() }
    }

    #[test]
    fn a_request_without_an_answer_and_half_an_answer_are_told() {
        let mut found = find(&ended(EndingKind::NoAnswer));
        found.extend(find(&ended(EndingKind::CutShort)));
        insta::assert_snapshot!(sample::shown(&found));
    }

    #[test]
    fn where_no_host_answers_either_the_program_is_not_blamed() {
        let with = |unheard_fins, repeated| {
            let mut connection = ended(EndingKind::NoAnswer);
            let ending = connection.ending.as_deref_mut().expect("it has one");
            (ending.unheard_fins, ending.repeated) = (unheard_fins, repeated);
            find(&connection).remove(0)
        };
        assert!(with(0, 0).not.starts_with("not the network"));
        let mut unseen = ended(EndingKind::NoAnswer);
        unseen.ending.as_deref_mut().expect("it has one").nothing_missing = false;
        let unseen = find(&unseen).remove(0);
        assert!(unseen.not.is_empty() && unseen.why.contains("lost on the way"), "{unseen:?}");
        for (fins, repeated, said) in [(3, 0, "FIN was sent 3 times"), (0, 5, "5 segments again")] {
            let told = with(fins, repeated);
            assert!(told.not.is_empty() && told.why.contains(said), "{told:?}");
            assert!(told.title.ends_with("its host or the path was gone"), "{}", told.title);
        }
    }

    #[test]
    fn what_is_lost_is_no_silence_of_the_program() {
        assert!(find(&ended(EndingKind::NeverArrived)).is_empty());
    }
}
