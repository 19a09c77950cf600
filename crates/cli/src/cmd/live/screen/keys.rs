//! What each key does.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Screen, Seen, Sort, Turn, View, totals};

impl Screen {
    /// Does what a key asks for.
    pub(super) fn key(&mut self, key: KeyEvent, seen: &Seen<'_>) -> Turn {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c')) {
            return Turn::Quit;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Turn::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return Turn::Quit,
            KeyCode::Char('?') => self.turn_to(View::Help),
            KeyCode::Char('l') => self.turn_to(View::Listeners),
            KeyCode::Char('t') => self.turn_to(match self.view {
                View::Totals(by) => View::Totals(by.next()),
                _ => View::Totals(totals::By::default()),
            }),
            KeyCode::Char('/') => (self.view, self.is_typing) = (View::Table, true),
            KeyCode::Char('i') => self.shows_idle = !self.shows_idle,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Enter => self.turn_to(View::Detail),
            KeyCode::Esc if self.view == View::Table => self.filter.clear(),
            KeyCode::Esc => self.turn_to(View::Table),
            code => self.go(code, seen),
        }
        Turn::Stay
    }

    fn turn_to(&mut self, view: View) {
        (self.view, self.scroll) = (view, 0);
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            // Ours: an address with its port fits.
            KeyCode::Char(letter) if self.filter.len() < 60 => self.filter.push(letter),
            _ => {}
        }
    }

    /// Moves the cursor, or scrolls what has none.
    fn go(&mut self, code: KeyCode, seen: &Seen<'_>) {
        /// Ours: a screen of 24 rows but for the lines around.
        const PAGE: usize = 20;
        /// Ours: the text of one connection is 15 lines at 40 columns.
        const PART: usize = 5;
        let page = if self.view == View::Detail { PART } else { PAGE };
        let (back, on) = match code {
            KeyCode::Up | KeyCode::Char('k') | KeyCode::Left => (1, 0),
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Right => (0, 1),
            KeyCode::PageUp => (page, 0),
            KeyCode::PageDown => (0, page),
            KeyCode::Home => (usize::MAX, 0),
            KeyCode::End => (0, usize::MAX),
            _ => return,
        };
        let is_page = matches!(code, KeyCode::PageUp | KeyCode::PageDown);
        if self.view == View::Table || self.view == View::Detail && !is_page {
            let shown = self.shown(seen);
            let at = self.cursor(&shown).saturating_sub(back).saturating_add(on);
            let each = shown.get(at.min(shown.len().saturating_sub(1)));
            self.chosen = each.map(|each| (each.socket.local, each.socket.remote));
            self.scroll = 0;
        } else {
            let [back, on] = [back, on].map(|steps| u16::try_from(steps).unwrap_or(u16::MAX));
            self.scroll = self.scroll.saturating_sub(back).saturating_add(on).min(10_000);
        }
    }
}

impl Sort {
    /// What the line of keys says of it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Hurts => "",
            Self::Rate => "[by rate] ",
            Self::RoundTrip => "[by round trip] ",
            Self::Peer => "[by peer] ",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Hurts => Self::Rate,
            Self::Rate => Self::RoundTrip,
            Self::RoundTrip => Self::Peer,
            Self::Peer => Self::Hurts,
        }
    }
}
