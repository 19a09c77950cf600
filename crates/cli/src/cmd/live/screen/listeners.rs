//! Listening sockets with their accept queues, the fullest first.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use tcpwhy::host::snapshot::Listener;

use super::{Seen, words};
use crate::printable;

pub(super) fn draw(frame: &mut Frame<'_>, seen: &Seen<'_>, area: Rect, scroll: u16) {
    if seen.listeners.is_empty() {
        return frame.render_widget(Paragraph::new("Nothing listens here."), area);
    }
    let mut all: Vec<&Listener> = seen.listeners.iter().collect();
    all.sort_by_key(|each| {
        (std::cmp::Reverse(part(each)), std::cmp::Reverse(each.drops), each.local)
    });
    let (end, process) =
        if area.width < 60 { (19, 0) } else { (24.max(area.width / 3).min(48), 15) };
    let rows = all.into_iter().skip(usize::from(scroll)).map(|each| {
        let owner = each.owner.and_then(|owner| seen.processes.get(&owner.pid));
        let row = Row::new([
            Cell::new(words::end(each.local, usize::from(end))),
            Cell::new(owner.map_or_else(String::new, |name| printable(name))),
            Cell::new(format!("{} of {}", each.accept_queue, each.accept_max)),
            Cell::new(each.drops.map_or_else(String::new, |drops| drops.to_string())),
        ]);
        // `sk_acceptq_is_full`: one more than the limit is taken.
        if each.accept_queue > each.accept_max {
            row.style(Style::new().fg(Color::Indexed(166)))
        } else {
            row
        }
    });
    let heads = ["listens at", "process", "accept queue", "drops"]
        .map(|head| Line::styled(head, words::faint()));
    let widths = [
        Constraint::Length(end),
        Constraint::Length(process),
        Constraint::Length(12),
        Constraint::Length(6),
    ];
    frame.render_widget(Table::new(rows, widths).header(Row::new(heads)), area);
}

/// How full it is, in thousandths.
fn part(listener: &Listener) -> u64 {
    (u64::from(listener.accept_queue) * 1_000).checked_div(listener.accept_max.into()).unwrap_or(0)
}
