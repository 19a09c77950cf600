//! What does a script say?
//!
//! A recursive descent over the tokens, one token ahead. The grammar is that of packetdrill
//! (google/packetdrill, gtests/net/packetdrill/parser.y), with the counters of accurate ECN.
//! What the grammar has but nothing here understands (UDP, encapsulation, mutation) is an
//! error that names it.

use std::collections::BTreeMap;

use crate::error::{Place, ScriptError};
use crate::lexer::{self, Token};
use crate::script::{Action, Call, Command, Event, Expression, Script, When};

/// Names that a script may use for something else, as of packetdrill's `-D NAME=VALUE`.
pub type Definitions = BTreeMap<String, String>;

impl Script {
    /// Reads a script, with these names defined before it begins.
    ///
    /// # Errors
    /// It is not in the language, or uses a part of it that is not read here.
    pub fn parse(text: &str, defined: &Definitions) -> Result<Script, ScriptError> {
        let tokens = lexer::tokens(text)?;
        let mut parser =
            Parser { tokens: &tokens, at: 0, last: 0, defined: defined.clone(), depth: 0 };
        parser.script()
    }
}

/// A time in seconds, cut to microseconds as packetdrill does, in nanoseconds.
fn seconds(text: &str) -> Option<u64> {
    /// A year; a bound for sums of times.
    const LONGEST: u64 = 31_536_000;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut micros = 0;
    for at in 0..6 {
        micros = micros * 10 + part.as_bytes().get(at).map_or(0, |digit| u64::from(digit - b'0'));
    }
    (whole <= LONGEST).then(|| whole * 1_000_000_000 + micros * 1000)
}

pub(super) struct Parser<'a> {
    tokens: &'a [(Token<'a>, Place)],
    at: usize,
    /// Where `next` looked last.
    last: usize,
    defined: Definitions,
    /// How deep expressions are nested.
    depth: u32,
}

impl<'a> Parser<'a> {
    fn script(&mut self) -> Result<Script, ScriptError> {
        let mut script = Script::default();
        while let Some(Token::Flag(name)) = self.peek() {
            self.at += 1;
            let value = if self.take_sign('=') { Some(self.option_value()?) } else { None };
            if name == "define"
                && let Some((name, meaning)) =
                    value.as_deref().and_then(|value| value.split_once('='))
            {
                self.defined.insert(name.into(), meaning.into());
            }
            script.options.push((name.into(), value));
        }
        script.setup = self.command();
        while self.peek().is_some() {
            // A command without a time is the one that cleans up; nothing comes behind it.
            if self.command().is_some() {
                return match self.peek() {
                    None => Ok(script),
                    Some(_) => {
                        Err(self.expected("the end of the file behind the command that cleans up"))
                    }
                };
            }
            script.events.push(self.event()?);
        }
        Ok(script)
    }

    fn option_value(&mut self) -> Result<String, ScriptError> {
        let name = match self.next() {
            Some(
                Token::Text(text)
                | Token::Int(text)
                | Token::Hex(text)
                | Token::Fraction(text)
                | Token::Address(text),
            ) => {
                return Ok(text.into());
            }
            Some(Token::Word(name)) => name,
            _ => return Err(self.expected_before("the option's value")),
        };
        if !self.take_sign('=') {
            return Ok(name.into());
        }
        match self.next() {
            Some(Token::Text(text)) => Ok(format!("{name}=\"{text}\"")),
            Some(Token::Shell(text)) => Ok(format!("{name}=`{text}`")),
            Some(Token::Word(text) | Token::Int(text) | Token::Hex(text)) => {
                Ok(format!("{name}={text}"))
            }
            _ => Err(self.expected_before("what the name is defined as")),
        }
    }

    fn event(&mut self) -> Result<Event, ScriptError> {
        let place = self.place();
        let when = self.when()?;
        let action = self.action(when)?;
        match (when, &action) {
            (When::Any | When::Between(..) | When::AfterBetween(..), Action::Expect(_))
            | (When::At(_) | When::After(_), _) => {}
            _ => {
                return Err(ScriptError::syntax(
                    place,
                    "one time, for only `>` may have a range or `*`",
                    "a range or `*`",
                ));
            }
        }
        Ok(Event { place, when, action })
    }

    fn when(&mut self) -> Result<When, ScriptError> {
        let place = self.place();
        if self.take_sign('*') {
            return Ok(When::Any);
        }
        let relative = self.take_sign('+');
        let start = self.time()?;
        if !self.take_sign('~') {
            return Ok(if relative { When::After(start) } else { When::At(start) });
        }
        if relative {
            self.sign('+')?;
        }
        let end = self.time()?;
        if end < start {
            return Err(ScriptError::syntax(
                place,
                "a range of times that goes forward",
                "one that goes back",
            ));
        }
        Ok(if relative { When::AfterBetween(start, end) } else { When::Between(start, end) })
    }

    fn time(&mut self) -> Result<u64, ScriptError> {
        let expected = "a time in seconds, at most a year";
        match self.next() {
            Some(Token::Int(text) | Token::Fraction(text)) => {
                seconds(text).ok_or_else(|| self.expected_before(expected))
            }
            _ => Err(self.expected_before(expected)),
        }
    }

    fn action(&mut self, when: When) -> Result<Action, ScriptError> {
        if self.take_sign('<') {
            return Ok(Action::Inject(self.packet(false)?));
        }
        if self.take_sign('>') {
            return Ok(Action::Expect(self.packet(true)?));
        }
        if let Some(command) = self.command() {
            return Ok(Action::Shell(command));
        }
        let place = self.place();
        if let Some(Token::Code(text)) = self.peek() {
            self.at += 1;
            return Ok(Action::Code(Command { place, text: text.into() }));
        }
        Ok(Action::Call(self.call(when)?))
    }

    fn call(&mut self, when: When) -> Result<Call, ScriptError> {
        let until_ns = if self.take(Token::Ellipsis) { Some(self.time()?) } else { None };
        let place = self.place();
        let Some(Token::Word(name)) = self.peek() else {
            return Err(self.expected("`<`, `>`, a system call, a command or code"));
        };
        let start = match when {
            When::At(start) | When::After(start) => start,
            _ => 0,
        };
        if until_ns.is_some_and(|until| until < start) {
            return Err(ScriptError::syntax(
                place,
                "a call that ends after it began",
                "one that ends before",
            ));
        }
        self.at += 1;
        self.sign('(')?;
        let arguments = self.list(')')?;
        self.sign('=')?;
        let result = self.expression()?;
        let errno = match self.peek() {
            Some(Token::Word(errno)) => {
                self.at += 1;
                Some(errno.to_string())
            }
            _ => None,
        };
        if self.take_sign('(') {
            while !self.take_sign(')') {
                if self.next().is_none() {
                    return Err(self.expected("the `)` that ends the note"));
                }
            }
        }
        Ok(Call { until_ns, name: name.into(), arguments, result, errno })
    }

    /// Expressions up to this sign, which is taken.
    fn list(&mut self, end: char) -> Result<Vec<Expression>, ScriptError> {
        let mut found = Vec::new();
        if self.take_sign(end) {
            return Ok(found);
        }
        loop {
            found.push(self.expression()?);
            if self.take_sign(end) {
                return Ok(found);
            }
            if !self.take_sign(',') {
                return Err(self.expected(&format!("`,` or `{end}`")));
            }
        }
    }

    fn expression(&mut self) -> Result<Expression, ScriptError> {
        /// Deeper than any script; a bound for the stack.
        const DEPTH: u32 = 32;
        if self.depth == DEPTH {
            return Err(self.expected("an expression that is nested less"));
        }
        self.depth += 1;
        let first = self.operand()?;
        let mut all = vec![first];
        while self.take_sign('|') {
            all.push(self.operand()?);
        }
        self.depth -= 1;
        Ok(if all.len() == 1 { all.remove(0) } else { Expression::Or(all) })
    }

    fn operand(&mut self) -> Result<Expression, ScriptError> {
        let place = self.place();
        match self.next() {
            Some(Token::Ellipsis) => Ok(Expression::Ellipsis),
            Some(Token::Int(text)) => text
                .parse()
                .map(Expression::Int)
                .map_err(|_| self.expected_before("a number of 64 bits")),
            Some(Token::Hex(text)) => i64::from_str_radix(&text[2..], 16)
                .map(Expression::Int)
                .map_err(|_| self.expected_before("a number of 64 bits")),
            Some(Token::Text(text)) => Ok(Expression::Text(self.text(text))),
            Some(Token::Sign('[')) => Ok(Expression::List(self.list(']')?)),
            Some(Token::Sign('{')) => self.structure(place),
            Some(Token::Word(word)) => self.named(word),
            _ => Err(self.expected_before("an expression")),
        }
    }

    /// Texts that follow each other are one; dots behind them say that there is more.
    fn text(&mut self, first: &str) -> String {
        let mut whole = first.to_string();
        while let Some(Token::Text(more)) = self.peek() {
            self.at += 1;
            whole.push_str(more);
        }
        self.take(Token::Ellipsis);
        whole
    }

    fn structure(&mut self, place: Place) -> Result<Expression, ScriptError> {
        if let (Some(Token::Word(word)), Some(Token::Int(_) | Token::Hex(_) | Token::Sign('['))) =
            (self.peek(), self.peek_second())
        {
            return Err(ScriptError::unsupported(place, format!("a structure of `{word}`")));
        }
        Ok(Expression::Struct(self.list('}')?))
    }

    /// A name: alone, with a value, or applied to arguments (which may name a value in turn:
    /// `msg_iov(1)=[..]`).
    fn named(&mut self, word: &str) -> Result<Expression, ScriptError> {
        let applied = if self.take_sign('(') { Some(self.list(')')?) } else { None };
        if self.take_sign('=') {
            return Ok(Expression::Field(word.into(), Box::new(self.expression()?)));
        }
        Ok(match applied {
            Some(arguments) => Expression::Apply(word.into(), arguments),
            None => match self.defined.get(word) {
                Some(meaning) if meaning.len() > 1 && meaning.starts_with('"') => {
                    Expression::Text(meaning[1..].trim_end_matches('"').into())
                }
                Some(meaning) => Expression::Word(meaning.clone()),
                None => Expression::Word(word.into()),
            },
        })
    }

    fn command(&mut self) -> Option<Command> {
        let place = self.place();
        let text = match self.peek()? {
            Token::Shell(text) => text,
            Token::Word(word) => self.defined.get(word)?.strip_prefix('`')?.trim_end_matches('`'),
            _ => return None,
        };
        let command = Command { place, text: text.into() };
        self.at += 1;
        Some(command)
    }

    /// What a name of this script means.
    pub(super) fn meaning<'b>(&'b self, word: &'b str) -> &'b str {
        self.defined.get(word).map_or(word, String::as_str)
    }

    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).map(|(token, _)| *token)
    }

    pub(super) fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at + 1).map(|(token, _)| *token)
    }

    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.last = self.at;
        self.at += usize::from(token.is_some());
        token
    }

    /// Takes the token if it is next.
    pub(super) fn take(&mut self, token: Token<'_>) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn take_sign(&mut self, sign: char) -> bool {
        self.take(Token::Sign(sign))
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.take(Token::Word(word))
    }

    pub(super) fn sign(&mut self, sign: char) -> Result<(), ScriptError> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// A number from 0 to this.
    pub(super) fn number(&mut self, most: u32, what: &str) -> Result<u32, ScriptError> {
        let expected = || format!("{what} from 0 to {most}");
        let number: Option<u32> = match self.next() {
            Some(Token::Int(text)) => text.parse().ok(),
            Some(Token::Hex(text)) => u32::from_str_radix(&text[2..], 16).ok(),
            _ => None,
        };
        number.filter(|number| *number <= most).ok_or_else(|| self.expected_before(&expected()))
    }

    /// The place of the next token, or of the end.
    pub(super) fn place(&self) -> Place {
        let end = self.tokens.last().map_or(Place { line: 1, column: 1 }, |(_, place)| *place);
        self.tokens.get(self.at).map_or(end, |(_, place)| *place)
    }

    /// An error at the next token.
    pub(super) fn expected(&self, expected: &str) -> ScriptError {
        let found = self.peek().map_or_else(|| "the end of the file".into(), |token| token.said());
        ScriptError::syntax(self.place(), expected, &found)
    }

    /// An error at what `next` returned last.
    pub(super) fn expected_before(&mut self, expected: &str) -> ScriptError {
        self.at = self.last;
        self.expected(expected)
    }
}
