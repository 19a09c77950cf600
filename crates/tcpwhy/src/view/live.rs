//! Open connections: what holds each, by what their kernel told.

use core::net::SocketAddr;

use tcpwhy_words::page::{Ink, Page, plain};
use tcpwhy_words::said::{bytes, count, percent, time};
use tcpwhy_words::units::{BitRate, Duration};

use crate::answer::words::{Ends, noun};
use crate::host::snapshot::{Snapshot, Socket};
use crate::live::{Connection, over, remedy};
use crate::report::{State, Sure};

/// Connections that are shown; the others are counted. Ours: what fits a screen.
const SHOWN: usize = 8;

/// Windows that a line lists. Ours: a loop of ten fits a line.
const LISTED: usize = 10;

/// Who is who: the socket's own end and its peer.
pub(super) const ENDS: Ends = Ends { sender: "sender", receiver: "receiver" };

/// What holds the connections of a host, those that stand still first; nothing if none has something to send and no reader lags.
pub fn sockets(snapshot: &Snapshot, width: usize, color: bool) -> String {
    let course = over(snapshot);
    let all = course.ranked();
    let is_shown = |each: &&Connection| each.held.is_some() || each.lags();
    let shown: Vec<&Connection> = all.iter().copied().filter(is_shown).collect();
    let mut page = Page::new(width, color);
    for connection in shown.iter().take(SHOWN) {
        one(&mut page, snapshot, connection);
    }
    let more = shown.len().saturating_sub(SHOWN);
    let idle = all.len() - shown.len();
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

fn one(page: &mut Page, snapshot: &Snapshot, connection: &Connection) {
    let socket = &connection.socket;
    let processes = snapshot.looks.iter().rev().find_map(|look| look.processes.as_ref());
    let owner = socket.owner.and_then(|owner| processes?.get(&owner.pid));
    let owner = owner.map_or_else(String::new, |process| format!(" ({})", process.name));
    page.blank();
    let ends = ends(snapshot, socket);
    let head = format!("{ends}{owner}  {}", figures(connection).join(", "));
    page.wrapped(0, 2, &[(Ink::Strong, head.trim_end().to_owned())]);
    if let Some(held) = &connection.held {
        page.wrapped(2, 2, &[plain(sentence(held.state, held.sure))]);
        page.wrapped(4, 4, &[(Ink::Faint, held.by.clone())]);
        if let Some(remedy) = remedy(held) {
            page.wrapped(2, 4, &[plain(format!("What would help: {}", lower(remedy)))]);
        }
    }
    if let Some(reader) = connection.reader.filter(|_| connection.lags()) {
        page.wrapped(2, 2, &[plain(capital(&reader.words("its program")) + ".")]);
    }
    for line in [resent(connection), grown(connection), spent(connection)].into_iter().flatten() {
        page.wrapped(2, 4, &[plain(line)]);
    }
}

/// Both ends, by the names under which the text has them.
fn ends(snapshot: &Snapshot, socket: &Socket) -> String {
    let name = |end: SocketAddr| match (snapshot.named.get(&end.ip()), end.port()) {
        (Some(name), 0) => name.clone(),
        (Some(name), port) => format!("{name}:{port}"),
        (None, _) => end.to_string(),
    };
    let (local, remote) = (name(socket.local), name(socket.remote));
    // Of a line without ends it is known which line it is, and no more.
    if local.starts_with("the socket of ") {
        capital(&local)
    } else {
        format!("{local} -> {remote}")
    }
}

/// What it has done since it was opened.
pub fn figures(connection: &Connection) -> Vec<String> {
    let info = connection.socket.info.as_deref();
    let is_held = connection.held.is_some();
    let acked = info.and_then(|info| info.bytes_acked).filter(|_| is_held);
    let busy = info.and_then(|info| info.busy_ns).filter(|busy| is_held && *busy > 0);
    let received = info.and_then(|info| info.bytes_received).filter(|_| !is_held);
    let bbr = info.and_then(|info| info.bbr).filter(|bbr| is_held && bbr.bw > 0);
    let bbr = bbr.map(|bbr| {
        let (rate, round) = (BitRate(bbr.bw.saturating_mul(8)), time(bbr.min_rtt_ns.cast_signed()));
        format!("BBR takes the path for {rate} at {round}")
    });
    let all = [
        acked.map(|acked| format!("{} sent", bytes(acked))),
        busy.map(|busy| format!("busy {}", time(busy.cast_signed()))),
        received.map(|received| format!("{} received", bytes(received))),
        bbr,
    ];
    all.into_iter().flatten().collect()
}

/// What of its retransmissions its peer had already (D-SACK, RFC 2883).
fn resent(connection: &Connection) -> Option<String> {
    let info = connection.socket.info.as_deref()?;
    let again = u64::from(info.total_retrans.filter(|again| *again > 0)?);
    let twice = u64::from(info.dsack_dups.filter(|twice| *twice > 0)?);
    let all = count(again, "segment");
    Some(match twice >= again {
        true if again == 1 => format!("It retransmitted {all} needlessly: the receiver had it."),
        true => format!("It retransmitted {all}, all needlessly: the receiver had them."),
        false => {
            format!("It retransmitted {all}, {twice} of them needlessly: the receiver had them.")
        }
    })
}

/// How its congestion window went from look to look.
fn grown(connection: &Connection) -> Option<String> {
    let cwnds: Vec<u32> =
        connection.strip.iter().map(|cell| cell.cwnd).filter(|cwnd| *cwnd > 0).collect();
    let is_moving = cwnds.windows(2).any(|two| two[0] != two[1]);
    if !is_moving || connection.held.is_none() {
        return None;
    }
    let list = |all: &[u32]| all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let shown = match cwnds.len().checked_sub(LISTED) {
        None | Some(0) => list(&cwnds),
        Some(_) => {
            let (first, last) = (&cwnds[..LISTED / 2], &cwnds[cwnds.len() - LISTED / 2..]);
            format!("{}, ..., {}", list(first), list(last))
        }
    };
    let met = connection.socket.info.as_deref().and_then(|info| info.snd_ssthresh);
    let met = met.map_or_else(String::new, |met| format!(", ssthresh {met}"));
    Some(format!("Congestion window in {} looks: {shown} segments{met}.", cwnds.len()))
}

/// Where the time between its looks went, in a sentence.
pub fn spent(connection: &Connection) -> Option<String> {
    let total = connection.times.total();
    if total <= Duration::ZERO {
        return None;
    }
    let part = |(state, span): &(State, Duration)| {
        format!("{} {}", percent(span.0, total.0), called(*state))
    };
    let parts: Vec<String> = connection.times.ranked().iter().take(3).map(part).collect();
    Some(format!("In the {} between the looks: {}.", time(total.0), parts.join(", ")))
}

/// What a state is called where the ends are only sender and receiver: whose send buffer it is goes without saying.
pub(super) fn called(state: State) -> String {
    if state == State::Unknown {
        return "what was not seen".to_owned();
    }
    let text = ENDS.put_in(noun(state));
    text.replace("sender's send ", "send ").replace("receiver's receive ", "receive ")
}

/// What holds a connection, in a sentence.
pub fn sentence(state: State, sure: Sure) -> String {
    let what = called(state);
    match (state, sure) {
        (State::Unknown, _) => "What holds it does not show.".to_owned(),
        (_, Sure::Shown) => format!("Held by {what}."),
        (_, Sure::Likely) => format!("Probably held by {what}."),
        (_, Sure::Possible) => format!("Perhaps held by {what}."),
    }
}

/// The colour of a state's family, of the 256 of a terminal.
pub const fn color(state: State) -> Option<u8> {
    super::family::color(state)
}

/// A state in a cell of a table, at most 16 letters.
pub const fn cell(state: State) -> &'static str {
    use State as S;
    match state {
        S::Handshake => "handshake",
        S::SynRetry => "lost SYN",
        S::SilenceNoAck => "nothing acked",
        S::SilenceHole => "missing data",
        S::SilenceNoAnswer | S::SilenceCutShort => "no answer",
        S::RtoWait => "timeout",
        S::TlpWait => "tail probe",
        S::ZeroWindow => "zero window",
        S::LastFlight => "last ACK",
        S::Receiving => "receives",
        S::IdleAppThink | S::App => "program",
        S::IdlePeerThink => "peer's program",
        S::IdleKeptOpen => "unused",
        S::RecoveryLoss => "loss repair",
        S::RecoveryReorderSpurious => "needless repair",
        S::RecoveryCorrupt => "damage",
        S::RecoveryEcn => "marks",
        S::RwndCap => "receive window",
        S::RwndAutotune => "growing window",
        S::RwndReader => "slow reader",
        S::Sndbuf => "send buffer",
        S::AppWindow => "window above TCP",
        S::NagleDelack => "Nagle",
        S::LocalQdisc => "own queue",
        S::Pacing => "pacing",
        S::BandwidthSelfQueue => "full link",
        S::BandwidthExternal => "shared link",
        S::BandwidthPolicer => "policer",
        S::BandwidthVariable => "varying link",
        S::AckPath => "way of the ACKs",
        S::CwndSlowStart => "slow start",
        S::CwndAvoidance => "slow growth",
        S::CwndAfterIdle => "idle restart",
        S::CwndPostLoss => "cut by loss",
        S::CwndCachedSsthresh => "remembered limit",
        S::CwndClamp => "clamped window",
        S::Closing => "closing",
        S::CaptureGap | S::Unknown => "not seen",
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A sentence that goes on behind a colon; names keep their letters.
fn lower(text: &str) -> String {
    let is_name = text.split(' ').next().is_some_and(|word| word.contains('.'));
    let mut letters = text.chars();
    let first = letters.next().into_iter();
    first.map(|c| if is_name { c } else { c.to_ascii_lowercase() }).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::paste;
    use crate::live::Held;

    fn shown(text: &str) -> String {
        sockets(&paste::read(text).snapshot, 80, false)
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
    fn a_loop_that_met_a_remembered_threshold_is_told() {
        insta::assert_snapshot!(shown(include_str!(
            "../../../../testdata/host/pasted/loop-to-ssthresh.txt"
        )));
    }

    #[test]
    fn a_cell_is_short_and_each_state_has_its_remedy_or_none() {
        for state in State::all() {
            assert!(cell(state).chars().count() <= 16, "{state}");
            for sure in [Sure::Possible, Sure::Shown] {
                let held = Held { state, sure, by: String::new() };
                assert!(remedy(&held).is_none_or(|text| text.ends_with('.')), "{state}");
            }
        }
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
