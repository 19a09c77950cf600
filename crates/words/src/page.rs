//! The sheet a text view writes on: word wrap, headings, bars, colour.
//!
//! Text comes as spans, each with its ink. Two kinds of lines exist: a *row* is printed as it is
//! (tables, strips, pictures, whose makers keep to the width), a *wrapped* line breaks between
//! words. A no-break space holds a number and its unit together and is printed as a plain space.
//!
//! Whatever reaches the sheet may stem from a capture: control characters (a terminal would obey
//! them) and marks that turn the writing direction are replaced.

use core::fmt::Write as _;

/// Narrowest page that the layouts are made for.
const MIN_WIDTH: usize = 40;

/// Widest page: longer lines are hard to read, and absurd widths would cost memory.
const MAX_WIDTH: usize = 400;

/// How a piece of text is painted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ink {
    /// As it comes.
    Plain,
    /// Headings and verdicts.
    Strong,
    /// Evidence and remarks.
    Faint,
    /// What must not be overlooked.
    Alarm,
    /// In a colour: the parameters of its SGR sequence.
    In(&'static str),
}

impl Ink {
    /// The parameters of the ANSI SGR sequence; `None` for plain text.
    fn sgr(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("1"),
            Self::Faint => Some("2"),
            Self::Alarm => Some("1;38;5;166"),
            Self::In(sgr) => Some(sgr),
        }
    }
}

/// A piece of text and how it is painted.
pub type Span = (Ink, String);

/// Plain text as a span.
pub fn plain(text: impl Into<String>) -> Span {
    (Ink::Plain, text.into())
}

/// The sheet.
pub struct Page {
    text: String,
    width: usize,
    color: bool,
}

impl Page {
    /// An empty sheet.
    pub fn new(width: usize, color: bool) -> Self {
        Self { text: String::new(), width: width.clamp(MIN_WIDTH, MAX_WIDTH), color }
    }

    /// Columns there are.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Lines written so far.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// What was written.
    pub fn into_text(self) -> String {
        self.text
    }

    /// One line as it is.
    pub fn row(&mut self, spans: &[Span]) {
        let last = spans.iter().rposition(|(_, text)| !text.trim_end().is_empty());
        for (at, (ink, text)) in spans.iter().enumerate().take(last.map_or(0, |at| at + 1)) {
            self.put(*ink, if Some(at) == last { text.trim_end_matches(' ') } else { text });
        }
        self.text.push('\n');
    }

    /// An empty line, but never two in a row and none at the top.
    pub fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A heading after an empty line.
    pub fn heading(&mut self, title: &str) {
        self.blank();
        self.wrapped(0, 2, &[(Ink::Strong, title.to_owned())]);
    }

    /// Words, wrapped: the first line indented by `first`, the others by `rest`.
    pub fn wrapped(&mut self, first: usize, rest: usize, spans: &[Span]) {
        let mut column = first;
        let mut fresh = true;
        self.indent(first);
        for word in words(spans) {
            let length: usize = word.iter().map(|(_, text)| text.chars().count()).sum();
            if !fresh && column + 1 + length > self.width {
                self.text.push('\n');
                self.indent(rest);
                column = rest;
                fresh = true;
            }
            if !fresh {
                self.text.push(' ');
                column += 1;
            }
            for (ink, text) in &word {
                self.put(*ink, text);
            }
            column += length;
            fresh = false;
        }
        self.text.push('\n');
    }

    /// `label   words`, the words wrapped under each other.
    pub fn item(&mut self, label: &str, text: &str) {
        const LABEL: usize = 18;
        let padded = format!("{label:<width$}", width = LABEL - 2).replace(' ', "\u{a0}");
        self.wrapped(2, LABEL + 1, &[plain(padded), plain(format!(" {text}"))]);
    }

    /// An item, unless there is nothing to say.
    pub fn item_if(&mut self, label: &str, text: Option<String>) {
        if let Some(text) = text {
            self.item(label, &text);
        }
    }

    fn indent(&mut self, columns: usize) {
        self.text.extend(core::iter::repeat_n(' ', columns));
    }

    fn put(&mut self, ink: Ink, text: &str) {
        let sgr = if self.color && !text.is_empty() { ink.sgr() } else { None };
        if let Some(sgr) = sgr {
            let _ = write!(self.text, "\u{1b}[{sgr}m");
        }
        self.text.extend(text.chars().map(harmless));
        if sgr.is_some() {
            self.text.push_str("\u{1b}[0m");
        }
    }
}

/// What a terminal may be given in place of `c`.
pub fn harmless(c: char) -> char {
    match c {
        '\u{a0}' | '\t' | '\n' | '\r' => ' ',
        c if c.is_control() || deceives(c) => '\u{fffd}',
        c => c,
    }
}

/// Whether it shows nothing of itself but turns the writing's direction, breaks lines, or hides: Unicode's bidirectional
/// controls, joiners and separators, and tags, which carry unseen text.
const fn deceives(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// The spans cut at spaces; a word may be made of several inks.
fn words(spans: &[Span]) -> Vec<Vec<Span>> {
    let mut words: Vec<Vec<Span>> = vec![Vec::new()];
    for (ink, text) in spans {
        for (at, piece) in text.split([' ', '\n', '\t', '\r']).enumerate() {
            if at > 0 {
                words.push(Vec::new());
            }
            if let Some(word) = words.last_mut()
                && !piece.is_empty()
            {
                word.push((*ink, piece.to_owned()));
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A bar for `share` (0 to 1) of `columns`, to an eighth of a column, padded with spaces.
pub fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (columns * 8) as f64 + 0.5) as usize;
    let full = (eighths / 8).min(columns);
    let mut bar: String = core::iter::repeat_n('█', full).collect();
    if full < columns {
        bar.push(EIGHTHS[eighths % 8]);
        bar.extend(core::iter::repeat_n(' ', columns - full - 1));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_and_numbers_keep_their_units() {
        let mut page = Page::new(40, false);
        page.wrapped(2, 4, &[plain("it waited for the receiver's window 63.1\u{a0}ms long")]);
        assert_eq!(page.into_text(), "  it waited for the receiver's window\n    63.1 ms long\n");
    }

    #[test]
    fn a_word_of_two_inks_is_not_torn() {
        let mut page = Page::new(40, true);
        page.wrapped(0, 0, &[(Ink::Strong, "45".into()), plain("%, rest")]);
        assert_eq!(page.into_text(), "\u{1b}[1m45\u{1b}[0m%, rest\n");
    }

    #[test]
    fn escape_sequences_of_a_capture_never_reach_the_terminal() {
        let mut page = Page::new(80, false);
        page.row(&[plain("\u{1b}]0;owned\u{7}\u{202e}x\u{e0041}\u{61c}")]);
        let text = page.into_text();
        assert!(
            !text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{e0041}', '\u{61c}']),
            "{text:?}"
        );
    }

    #[test]
    fn bars_keep_their_width() {
        for share in [-1.0, 0.0, 0.031, 0.5, 0.999, 1.0, 7.0, f64::NAN] {
            assert_eq!(bar(share, 12).chars().count(), 12, "{share}");
        }
        assert_eq!(bar(0.5, 4), "██  ");
    }
}
