//! Open connections: what holds each, by what their kernel told.

use tcpwhy_words::page::{Ink, Page, plain};
use tcpwhy_words::said::{bytes, count, time};

use crate::answer::words::{Ends, noun};
use crate::host::snapshot::Look;
use crate::live::{Told, judge};
use crate::report::{State, Sure};

/// Connections that are shown; the others are counted. Ours: what fits a screen.
const SHOWN: usize = 8;

/// Who is who: the socket's own end and its peer.
const ENDS: Ends = Ends { sender: "sender", receiver: "receiver" };

/// What holds the connections of a look, those that stand still first; nothing if none has something to send and no reader
/// lags.
pub fn sockets(look: &Look, width: usize, color: bool) -> String {
    let told = judge(look);
    let is_shown = |told: &&Told<'_>| told.held.is_some() || told.lags();
    let shown: Vec<&Told<'_>> = told.iter().filter(is_shown).collect();
    let mut page = Page::new(width, color);
    for told in shown.iter().take(SHOWN) {
        one(&mut page, look, told);
    }
    let more = shown.len().saturating_sub(SHOWN);
    let idle = told.len() - shown.len();
    let rest = match (more, idle) {
        _ if shown.is_empty() => return String::new(),
        (0, 0) => return page.into_text(),
        (0, idle) => format!("{} with nothing to send", count(idle as u64, "connection")),
        (more, 0) => format!("{} more held like these", count(more as u64, "connection")),
        (more, idle) => format!(
            "{} more held like these, {idle} with nothing to send",
            count(more as u64, "connection")
        ),
    };
    page.blank();
    page.wrapped(0, 2, &[(Ink::Faint, rest)]);
    page.into_text()
}

fn one(page: &mut Page, look: &Look, told: &Told<'_>) {
    let socket = told.socket;
    let owner = socket.owner.and_then(|owner| look.processes.as_ref()?.get(&owner.pid));
    let owner = owner.map_or_else(String::new, |process| format!(" ({})", process.name));
    let info = socket.info.as_deref();
    let acked = info.and_then(|info| info.bytes_acked).filter(|_| told.held.is_some());
    let busy = told.account.map(|account| time(account.busy_ns.cast_signed()));
    let received = info.and_then(|info| info.bytes_received).filter(|_| told.held.is_none());
    let figures: Vec<String> = [
        acked.map(|acked| format!("{} sent", bytes(acked))),
        busy.filter(|_| told.held.is_some()).map(|busy| format!("busy {busy}")),
        received.map(|received| format!("{} received", bytes(received))),
    ]
    .into_iter()
    .flatten()
    .collect();
    page.blank();
    let head = format!("{} -> {}{owner}  {}", socket.local, socket.remote, figures.join(", "));
    page.wrapped(0, 2, &[(Ink::Strong, head)]);
    if let Some(held) = &told.held {
        page.wrapped(2, 2, &[plain(sentence(held.state, held.sure))]);
        page.wrapped(4, 4, &[(Ink::Faint, held.by.clone())]);
    }
    if let Some(reader) = told.reader.filter(|_| told.lags()) {
        page.wrapped(2, 2, &[plain(capital(&reader.words("its program")) + ".")]);
    }
}

fn sentence(state: State, sure: Sure) -> String {
    let what = ENDS.put_in(noun(state));
    match (state, sure) {
        (State::Unknown, _) => "What holds it does not show.".to_owned(),
        (_, Sure::Shown) => format!("Held by {what}."),
        (_, Sure::Likely) => format!("Probably held by {what}."),
        (_, Sure::Possible) => format!("Perhaps held by {what}."),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::paste;

    fn shown(text: &str) -> String {
        let look = paste::read(text).snapshot.looks.pop().expect("a look");
        sockets(&look, 80, false)
    }

    #[test]
    fn both_ends_of_a_slow_download_are_told() {
        insta::assert_snapshot!(shown(include_str!(
            "../../../../testdata/host/pasted/reader-and-sender.txt"
        )));
    }

    #[test]
    fn a_small_send_buffer_is_told() {
        insta::assert_snapshot!(shown(include_str!(
            "../../../../testdata/host/pasted/small-send-buffer.txt"
        )));
    }

    #[test]
    fn a_small_receive_buffer_is_told() {
        insta::assert_snapshot!(shown(include_str!(
            "../../../../testdata/host/pasted/small-receive-buffer.txt"
        )));
    }

    #[test]
    fn of_many_the_first_are_shown_and_where_nothing_is_held_nothing() {
        let one = |port| {
            format!(
                "ESTAB 0 70000 192.0.2.1:80 192.0.2.2:{port}\n\t rto:220 rtt:20/1 mss:1000 cwnd:90 unacked:20 notsent:50000 \
                 snd_wnd:20000 minrtt:19\n"
            )
        };
        let many: String = (4000..4020).map(one).collect();
        let text = shown(&many);
        assert_eq!(text.matches(" -> ").count(), SHOWN);
        assert!(text.contains("12 connections more held like these"), "{text}");
        assert_eq!(shown("ESTAB 0 0 192.0.2.1:80 192.0.2.2:4000\n"), "");
    }
}
