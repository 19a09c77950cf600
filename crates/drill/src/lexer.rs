//! Which tokens does a script have, and where?
//!
//! The words follow packetdrill's scanner: the longest match wins, so `1001` is a number,
//! `3021b9d8` a word and `.5` a fraction. A token keeps its text: a cookie of digits must not
//! lose its leading zeros, and `.5` is a time in one place and the flags of a packet in another.

use crate::error::{Place, ScriptError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name, or digits and letters mixed.
    Word(&'a str),
    Int(&'a str),
    Hex(&'a str),
    Fraction(&'a str),
    Address(&'a str),
    /// What is between double quotes, escapes as written.
    Text(&'a str),
    /// A shell command, without its back quotes.
    Shell(&'a str),
    /// Python between `%{` and `}%`.
    Code(&'a str),
    /// The name after `--`.
    Flag(&'a str),
    Ellipsis,
    Sign(char),
}

impl Token<'_> {
    /// The token as an error message names it.
    pub(super) fn said(&self) -> String {
        match self {
            Token::Word(text)
            | Token::Int(text)
            | Token::Hex(text)
            | Token::Fraction(text)
            | Token::Address(text) => {
                format!("`{}`", shortened(text))
            }
            Token::Text(text) => format!("\"{}\"", shortened(text)),
            Token::Shell(_) => "a shell command".into(),
            Token::Code(_) => "code".into(),
            Token::Flag(name) => format!("`--{}`", shortened(name)),
            Token::Ellipsis => "`...`".into(),
            Token::Sign(sign) => format!("`{sign}`"),
        }
    }
}

/// Enough of a token to find it again.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 32;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.into(),
    }
}

/// All tokens of a script with their places, comments left out.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token<'_>, Place)>, ScriptError> {
    let mut lexer = Lexer { text, at: 0, place: Place { line: 1, column: 1 } };
    let mut found = Vec::new();
    while let Some(token) = lexer.next_token()? {
        found.push(token);
    }
    Ok(found)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    place: Place,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Moves on by this many bytes, which end at a character's border.
    fn advance(&mut self, bytes: usize) {
        for c in self.rest()[..bytes].chars() {
            if c == '\n' {
                self.place = Place { line: self.place.line.saturating_add(1), column: 1 };
            } else {
                self.place.column = self.place.column.saturating_add(1);
            }
        }
        self.at += bytes;
    }

    fn next_token(&mut self) -> Result<Option<(Token<'a>, Place)>, ScriptError> {
        self.skip_blanks()?;
        let place = self.place;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let (token, bytes) = match first {
            '%' if rest.starts_with("%{") => {
                let inner = self.enclosed("%{", "}%", "the `}%` that ends the code")?;
                (Token::Code(inner), inner.len() + 4)
            }
            '"' => {
                let inner = self.quoted('"')?;
                (Token::Text(inner), inner.len() + 2)
            }
            '`' => {
                let inner = self.quoted('`')?;
                (Token::Shell(inner), inner.len() + 2)
            }
            _ => plain(rest, first),
        };
        self.advance(bytes);
        Ok(Some((token, place)))
    }

    fn skip_blanks(&mut self) -> Result<(), ScriptError> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            if blank > 0 {
                self.advance(blank);
            } else if rest.starts_with("//") {
                self.advance(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                let inner = self.enclosed("/*", "*/", "the `*/` that ends the comment")?;
                self.advance(inner.len() + 4);
            } else {
                return Ok(());
            }
        }
    }

    /// What is between two marks. The first mark is next.
    fn enclosed(&self, open: &str, close: &str, expected: &str) -> Result<&'a str, ScriptError> {
        let inner = &self.rest()[open.len()..];
        let end = inner
            .find(close)
            .ok_or_else(|| ScriptError::syntax(self.place, expected, "the end of the file"))?;
        Ok(&inner[..end])
    }

    /// The text up to the next such quote that no backslash escapes.
    fn quoted(&self, quote: char) -> Result<&'a str, ScriptError> {
        let inner = &self.rest()[quote.len_utf8()..];
        let mut escaped = false;
        for (at, c) in inner.char_indices() {
            if c == quote && !escaped {
                return Ok(&inner[..at]);
            }
            escaped = c == '\\' && !escaped;
        }
        Err(ScriptError::syntax(self.place, &format!("a closing {quote}"), "the end of the file"))
    }
}

/// A token without marks around it, and its length.
fn plain(rest: &str, first: char) -> (Token<'_>, usize) {
    if rest.starts_with("...") {
        return (Token::Ellipsis, 3);
    }
    if let Some(name) = rest.strip_prefix("--") {
        let length = word_length(name);
        if length > 0 {
            return (Token::Flag(&name[..length]), length + 2);
        }
    }
    let address = address_length(rest);
    if address > 0 {
        return (Token::Address(&rest[..address]), address);
    }
    let sign = usize::from(first == '-');
    let unsigned = &rest[sign..];
    let digits = length_of(unsigned, |c| c.is_ascii_digit());
    let word = word_length(unsigned);
    if word == digits && unsigned[digits..].starts_with('.') {
        let behind = length_of(&unsigned[digits + 1..], |c| c.is_ascii_digit());
        if behind > 0 {
            let length = sign + digits + 1 + behind;
            return (Token::Fraction(&rest[..length]), length);
        }
    }
    if digits > 0 && (word == digits || sign == 1) {
        return (Token::Int(&rest[..sign + digits]), sign + digits);
    }
    if sign == 0 && word > 0 {
        let text = &rest[..word];
        let hex = text
            .strip_prefix("0x")
            .is_some_and(|hex| !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()));
        return (if hex { Token::Hex(text) } else { Token::Word(text) }, word);
    }
    (Token::Sign(first), first.len_utf8())
}

/// How long an address is that is here; 0 if none does. Of IPv6 only what has `::` or eight
/// groups counts: `1:1001` is a range of sequence numbers.
fn address_length(rest: &str) -> usize {
    /// Longer than any (`INET6_ADDRSTRLEN`): no text is looked through more than so often.
    const LONGEST: usize = 46;
    let length =
        |belongs: fn(u8) -> bool| rest.bytes().take(LONGEST).take_while(|b| belongs(*b)).count();
    let run = length(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
    let colons = length(|b| b.is_ascii_hexdigit() || b == b':');
    if run == LONGEST {
        return 0;
    }
    let candidate = &rest[..run];
    let is_v4 = candidate.split('.').count() == 4
        && candidate
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let is_v6 = (rest[..colons].contains("::") || rest[..colons].matches(':').count() == 7)
        && !rest[..colons].starts_with(":::");
    match (is_v4, is_v6) {
        (true, _) => run,
        (false, true) if candidate.contains('.') && !candidate.contains("..") => run,
        (false, true) => colons,
        (false, false) => 0,
    }
}

fn word_length(rest: &str) -> usize {
    length_of(rest, |c| c.is_ascii_alphanumeric() || c == '_')
}

fn length_of(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !belongs(c)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::Token::{
        Address, Code, Ellipsis, Flag, Fraction, Hex, Int, Shell, Sign, Text, Word,
    };
    use super::*;

    fn of(text: &str) -> Vec<Token<'_>> {
        tokens(text).unwrap_or_default().into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn a_time_range_of_a_blocking_call_has_three_tokens() {
        assert_eq!(of("0...0.300 read"), [Int("0"), Ellipsis, Fraction("0.300"), Word("read")]);
        assert_eq!(of("+.1...0.2"), [Sign('+'), Fraction(".1"), Ellipsis, Fraction("0.2")]);
    }

    #[test]
    fn flags_with_an_ace_count_are_a_word_and_a_fraction() {
        assert_eq!(of("> P.5 1:1(0)")[..3], [Sign('>'), Word("P"), Fraction(".5")]);
        assert_eq!(
            of("< . 1:1(0)"),
            [Sign('<'), Sign('.'), Int("1"), Sign(':'), Int("1"), Sign('('), Int("0"), Sign(')')]
        );
    }

    #[test]
    fn digits_with_letters_are_a_word() {
        assert_eq!(
            of("FO 3021b9d8 0x1f -1 1001"),
            [Word("FO"), Word("3021b9d8"), Hex("0x1f"), Int("-1"), Int("1001")]
        );
    }

    #[test]
    fn addresses_are_told_from_sequence_numbers() {
        assert_eq!(of("192.168.0.1"), [Address("192.168.0.1")]);
        assert_eq!(of("fd3d:fa7b:d17d::1"), [Address("fd3d:fa7b:d17d::1")]);
        assert_eq!(of("::ffff:1.2.3.4"), [Address("::ffff:1.2.3.4")]);
        assert_eq!(of("1:1001").len(), 3);
    }

    #[test]
    fn comments_and_blanks_are_left_out_and_places_counted() {
        let found = tokens("// one\n  /* two\n */ +0\n").unwrap_or_default();
        assert_eq!(found[0], (Sign('+'), Place { line: 3, column: 5 }));
    }

    #[test]
    fn quotes_keep_what_is_between_them() {
        assert_eq!(
            of(r#"`echo \`a\`` "b" %{ c }% --mss=5"#),
            [Shell(r"echo \`a\`"), Text("b"), Code(" c "), Flag("mss"), Sign('='), Int("5"),]
        );
    }

    #[test]
    fn an_open_quote_is_named_with_its_place() {
        let said = tokens("+0\n `ls").err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said, "line 2, column 2: expected a closing `, found the end of the file");
    }
}
