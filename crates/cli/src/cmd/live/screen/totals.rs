//! Sums over connections: by peer, process, local port or TCP's own state.

use std::collections::BTreeMap;

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Row, Table};
use tcpwhy::live::Connection;

use super::{Seen, words};

/// By what they are summed up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in super::super) enum By {
    #[default]
    Peer,
    Process,
    Port,
    State,
}

impl By {
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Peer => Self::Process,
            Self::Process => Self::Port,
            Self::Port => Self::State,
            Self::State => Self::Peer,
        }
    }

    const fn head(self) -> &'static str {
        match self {
            Self::Peer => "by peer",
            Self::Process => "by process",
            Self::Port => "by local port",
            Self::State => "by TCP state",
        }
    }

    fn key(self, seen: &Seen<'_>, connection: &Connection) -> String {
        let socket = &connection.socket;
        match self {
            Self::Peer => socket.remote.ip().to_canonical().to_string(),
            Self::Port => socket.local.port().to_string(),
            Self::State => format!("{:?}", socket.state),
            Self::Process => match words::process(seen, connection) {
                name if name.is_empty() => "(not seen)".to_owned(),
                name => name,
            },
        }
    }
}

/// A row of sums.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sum {
    pub(super) connections: u32,
    pub(super) held: u32,
    pub(super) still: u32,
    pub(super) sent_bps: u64,
    pub(super) received_bps: u64,
    pub(super) retransmitted: u64,
}

/// The sums, the group with the most trouble first.
pub(super) fn sums(seen: &Seen<'_>, by: By) -> Vec<(String, Sum)> {
    let mut all: BTreeMap<String, Sum> = BTreeMap::new();
    for each in &seen.connections {
        let sum = all.entry(by.key(seen, each)).or_default();
        sum.connections += 1;
        sum.held += u32::from(each.held.is_some());
        sum.still += u32::from(each.stands_still());
        sum.sent_bps += each.sent_bps.unwrap_or(0);
        sum.received_bps += each.received_bps.unwrap_or(0);
        sum.retransmitted += each.retransmitted;
    }
    let mut rows: Vec<(String, Sum)> = all.into_iter().collect();
    rows.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.still, sum.held, sum.connections)));
    rows
}

pub(super) fn draw(frame: &mut Frame<'_>, seen: &Seen<'_>, area: Rect, by: By, scroll: u16) {
    let rows = sums(seen, by).into_iter().skip(usize::from(scroll)).map(|(key, sum)| {
        let number = |value: u64| if value > 0 { value.to_string() } else { String::new() };
        Row::new([
            Cell::new(key),
            Cell::new(sum.connections.to_string()),
            Cell::new(number(sum.held.into())),
            Cell::new(number(sum.still.into())),
            Cell::new(words::rate(Some(sum.sent_bps))),
            Cell::new(words::rate(Some(sum.received_bps))),
            Cell::new(number(sum.retransmitted)),
        ])
    });
    let heads = [by.head(), "open", "held", "still", "sent", "recv", "resent"];
    let heads = heads.map(|head| Line::styled(head, words::faint()));
    let widths = if area.width < 60 {
        // Room for an IPv4 address: the rates go.
        [15, 5, 5, 5, 0, 0, 6]
    } else {
        [40.min(area.width - 40), 6, 5, 5, 6, 6, 6]
    };
    let widths = widths.map(Constraint::Length);
    frame.render_widget(Table::new(rows, widths).header(Row::new(heads)), area);
}
