//! Which key does what, and what the columns and letters are.

use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use tcpwhy::report::State;
use tcpwhy::view::live::cell;

use super::words;

const KEYS: [(&str, &str); 11] = [
    ("up, down, k, j", "choose a connection, or scroll; PgUp, PgDn, Home, End"),
    ("Enter", "the chosen connection: what shows it, what would help, graphs"),
    ("/", "only connections in whose ends, process or state this occurs"),
    ("i", "also connections with nothing to send"),
    ("s", "sort: what hurts, rate, round trip, peer"),
    ("l", "listening sockets with their accept queues"),
    ("t", "totals by peer, process, local port, TCP state"),
    ("space", "stand still, and go on"),
    ("Esc", "back"),
    ("q, Ctrl-C", "quit, with a summary"),
    ("?", "this page"),
];

const COLUMNS: &str = "held by: what holds the sender now, with the words of `tcpwhy explain`; `tcpwhy doc STATE` explains each. since: for how long, as far as was looked. rate: bits per second, of the larger direction. rtt: the smoothed round trip. last looks: a letter each, a dot where nothing was to be sent.";

/// States that sockets show.
const LETTERS: [State; 17] = [
    State::ZeroWindow,
    State::RwndReader,
    State::RwndCap,
    State::Sndbuf,
    State::BandwidthSelfQueue,
    State::LocalQdisc,
    State::CwndSlowStart,
    State::CwndAvoidance,
    State::CwndCachedSsthresh,
    State::CwndAfterIdle,
    State::CwndPostLoss,
    State::RecoveryLoss,
    State::RtoWait,
    State::SynRetry,
    State::Handshake,
    State::App,
    State::Unknown,
];

pub(super) fn page() -> Paragraph<'static> {
    let mut lines: Vec<Line<'static>> =
        KEYS.iter().map(|(key, what)| Line::from(format!("{key:<16}{what}"))).collect();
    lines.push(Line::raw(""));
    lines.push(Line::raw(COLUMNS));
    lines.push(Line::raw(""));
    let letters = LETTERS.iter().flat_map(|state| {
        let letter = Span::styled(state.letter().to_string(), words::ink(*state));
        [letter, Span::raw(format!(" {}  ", cell(*state)))]
    });
    lines.push(Line::from(letters.collect::<Vec<_>>()));
    Paragraph::new(lines).wrap(Wrap { trim: false })
}
