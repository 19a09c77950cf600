//! Simple statements of Python as data.

use super::{Fault, Value};

/// A statement.
#[derive(Debug)]
pub(super) enum Statement {
    Assert { test: Node, message: Option<Node>, text: String },
    Assign(String, Node),
    Evaluate(Node),
}

/// An expression.
#[derive(Debug)]
pub(super) enum Node {
    Literal(Value),
    Name(String),
    Tuple(Vec<Node>),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    If { test: Box<Node>, then: Box<Node>, otherwise: Box<Node> },
    Unary(char, Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    Compare(Box<Node>, Vec<(&'static str, Node)>),
    Call(String, Vec<Node>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Literal(Value),
    Name(String),
    Operator(&'static str),
    /// The end of a statement.
    End,
}

/// The longest come first.
const OPERATORS: [&str; 31] = [
    "**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=",
    "|=", "&=", "%=", "+", "-", "*", "/", "%", "<", ">", "=", "&", "|", "^", "~", ",",
];
const BRACKETS: [&str; 6] = ["(", ")", "[", "]", ";", ":"];

/// What binds weakest comes first; all of a row bind alike, from the left.
const LEVELS: [&[&str]; 6] =
    [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "//", "%"]];

/// The statements of some code, each with its line.
pub(super) fn statements(code: &str) -> Result<Vec<(u32, Statement)>, Fault> {
    let tokens = tokens(code)?;
    let mut parser = Parser { code, tokens: &tokens, at: 0, depth: 0, operators: 0 };
    let mut found = Vec::new();
    let (mut line, mut counted) = (1, 0);
    while parser.at < tokens.len() {
        if parser.take(&Token::End) {
            continue;
        }
        let at = tokens[parser.at].1;
        line += code[counted..at].matches('\n').count() as u32;
        counted = at;
        parser.operators = 0;
        found.push((line, parser.statement()?));
        if !parser.take(&Token::End) && parser.at < tokens.len() {
            return Err(parser.unsupported());
        }
    }
    Ok(found)
}

/// Tokens with where they begin.
fn tokens(code: &str) -> Result<Vec<(Token, usize)>, Fault> {
    let mut found = Vec::new();
    let (mut at, mut open) = (0, 0_u32);
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let (token, length) = if first == '\n' {
            (if open == 0 { Some(Token::End) } else { None }, 1)
        } else if first.is_whitespace() {
            (None, first.len_utf8())
        } else if first == '#' {
            (None, rest.find('\n').unwrap_or(rest.len()))
        } else if let Some(behind) = rest.strip_prefix('\\') {
            (None, 1 + usize::from(behind.starts_with('\n')))
        } else if first == '\'' || first == '"' {
            let inner = &rest[1..];
            let end = inner
                .find(first)
                .ok_or_else(|| Fault::Unsupported("code that ends within a text".into()))?;
            (Some(Token::Literal(Value::Text(inner[..end].into()))), end + 2)
        } else if first.is_ascii_digit() || first == '.' {
            let (value, length) =
                Value::read(rest).ok_or_else(|| Fault::Unsupported("a number in code".into()))?;
            (Some(Token::Literal(value)), length)
        } else if first.is_alphabetic() || first == '_' {
            let length =
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Some(Token::Name(rest[..length].into())), length)
        } else {
            let operator =
                OPERATORS.iter().chain(&BRACKETS).find(|operator| rest.starts_with(**operator));
            let operator =
                operator.ok_or_else(|| Fault::Unsupported(format!("`{first}` in code")))?;
            match *operator {
                "(" | "[" => open = open.saturating_add(1),
                ")" | "]" => open = open.saturating_sub(1),
                _ => {}
            }
            (
                Some(if *operator == ";" { Token::End } else { Token::Operator(operator) }),
                operator.len(),
            )
        };
        found.extend(token.map(|token| (token, at)));
        at += length;
    }
    Ok(found)
}

struct Parser<'a> {
    code: &'a str,
    tokens: &'a [(Token, usize)],
    at: usize,
    depth: u32,
    /// Operators of this statement. Each of them may make what holds the rest deeper.
    operators: u32,
}

impl Parser<'_> {
    fn statement(&mut self) -> Result<Statement, Fault> {
        let start = self.at;
        if self.take_name("assert") {
            let test = self.expression()?;
            let message = if self.take_operator(",") { Some(self.expression()?) } else { None };
            return Ok(Statement::Assert { test, message, text: self.text_since(start) });
        }
        let compound = [
            "for", "if", "while", "def", "import", "from", "class", "with", "try", "return",
            "global", "lambda",
        ];
        if let Some(Token::Name(name)) = self.peek() {
            let name = name.clone();
            if compound.contains(&name.as_str()) {
                return Err(Fault::Unsupported(format!("`{name}` in code")));
            }
            if let Some((Token::Operator(operator), _)) = self.tokens.get(self.at + 1)
                && operator.ends_with('=')
                && !["==", "<=", ">=", "!="].contains(operator)
            {
                self.at += 2;
                let value = self.expression()?;
                let plain = OPERATORS
                    .into_iter()
                    .find(|plain| Some(*plain) == operator.strip_suffix('='))
                    .unwrap_or("=");
                return Ok(Statement::Assign(
                    name.clone(),
                    match plain {
                        "=" => value,
                        plain => Node::Binary(plain, Box::new(Node::Name(name)), Box::new(value)),
                    },
                ));
            }
            // The statement of Python 2 has no brackets.
            if name == "print"
                && self.tokens.get(self.at + 1).map(|(token, _)| token)
                    != Some(&Token::Operator("("))
            {
                self.at += 1;
            }
        }
        Ok(Statement::Evaluate(self.expression()?))
    }

    /// What the code says from this token up to the next.
    fn text_since(&self, start: usize) -> String {
        let from = self.tokens[start].1;
        let to = self.tokens.get(self.at).map_or(self.code.len(), |(_, place)| *place);
        self.code[from..to].split('#').next().unwrap_or_default().trim().into()
    }

    fn expression(&mut self) -> Result<Node, Fault> {
        /// Deeper than any script; a bound for the stack.
        const DEPTH: u32 = 32;
        if self.depth == DEPTH {
            return Err(Fault::Unsupported("code that is nested deeper".into()));
        }
        self.depth += 1;
        let then = self.either()?;
        let node = if self.take_name("if") {
            let test = self.either()?;
            if !self.take_name("else") {
                return Err(self.unsupported());
            }
            let otherwise = self.expression()?;
            Node::If { test: Box::new(test), then: Box::new(then), otherwise: Box::new(otherwise) }
        } else {
            then
        };
        self.depth -= 1;
        Ok(node)
    }

    /// Counts an operator.
    fn count(&mut self) -> Result<(), Fault> {
        /// More than any script; a bound for the stack.
        const MOST: u32 = 500;
        self.operators += 1;
        if self.operators > MOST {
            return Err(Fault::Unsupported("a statement of too many operators".into()));
        }
        Ok(())
    }

    fn either(&mut self) -> Result<Node, Fault> {
        let mut left = self.both()?;
        while self.take_name("or") {
            self.count()?;
            left = Node::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Node, Fault> {
        let mut left = self.negation()?;
        while self.take_name("and") {
            self.count()?;
            left = Node::And(Box::new(left), Box::new(self.negation()?));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<Node, Fault> {
        let mut times = 0_u32;
        while self.take_name("not") {
            times = times.wrapping_add(1);
        }
        let node = self.comparison()?;
        Ok(match times {
            0 => node,
            times if times % 2 == 1 => Node::Not(Box::new(node)),
            _ => Node::Not(Box::new(Node::Not(Box::new(node)))),
        })
    }

    fn comparison(&mut self) -> Result<Node, Fault> {
        let first = self.level(0)?;
        let mut others = Vec::new();
        loop {
            let operator = match self.peek() {
                Some(Token::Operator(operator @ ("==" | "!=" | "<" | "<=" | ">" | ">="))) => {
                    operator
                }
                Some(Token::Name(name)) if name == "in" => "in",
                _ if others.is_empty() => return Ok(first),
                _ => return Ok(Node::Compare(Box::new(first), others)),
            };
            self.at += 1;
            others.push((operator, self.level(0)?));
        }
    }

    fn level(&mut self, level: usize) -> Result<Node, Fault> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some(Token::Operator(operator)) = self.peek()
            && operators.contains(operator)
        {
            let operator = *operator;
            self.at += 1;
            self.count()?;
            left = Node::Binary(operator, Box::new(left), Box::new(self.level(level + 1)?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, Fault> {
        /// More than any script; a bound for the stack.
        const SIGNS: usize = 16;
        let mut signs = Vec::new();
        while let Some(Token::Operator(sign @ ("-" | "+" | "~"))) = self.peek() {
            signs.extend(sign.chars());
            self.at += 1;
        }
        let mut node = self.atom()?;
        if self.take_operator("**") {
            node = Node::Binary("**", Box::new(node), Box::new(self.atom()?));
        }
        if signs.len() > SIGNS {
            return Err(self.unsupported());
        }
        Ok(signs.into_iter().rev().fold(node, |node, sign| Node::Unary(sign, Box::new(node))))
    }

    fn atom(&mut self) -> Result<Node, Fault> {
        let token = self.peek().cloned();
        self.at += usize::from(token.is_some());
        match token {
            Some(Token::Literal(Value::Text(mut text))) => {
                while let Some(Token::Literal(Value::Text(more))) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                Ok(Node::Literal(Value::Text(text)))
            }
            Some(Token::Literal(value)) => Ok(Node::Literal(value)),
            Some(Token::Operator("(")) => self.tuple(")"),
            Some(Token::Operator("[")) => match self.tuple("]")? {
                tuple @ Node::Tuple(_) => Ok(tuple),
                single => Ok(Node::Tuple(vec![single])),
            },
            Some(Token::Name(name)) => match name.as_str() {
                "True" => Ok(Node::Literal(Value::from(true))),
                "False" => Ok(Node::Literal(Value::from(false))),
                _ if self.take_operator("(") => Ok(Node::Call(
                    name,
                    match self.tuple(")")? {
                        Node::Tuple(arguments) => arguments,
                        single => vec![single],
                    },
                )),
                _ => Ok(Node::Name(name)),
            },
            Some(_) => {
                self.at -= 1;
                Err(self.unsupported())
            }
            None => Err(self.unsupported()),
        }
    }

    /// What is in brackets: one expression, or several as a tuple.
    fn tuple(&mut self, end: &'static str) -> Result<Node, Fault> {
        let mut all = Vec::new();
        let mut commas = 0;
        while !self.take_operator(end) {
            all.push(self.expression()?);
            if self.take_operator(",") {
                commas += 1;
            } else if self.peek() != Some(&Token::Operator(end)) {
                return Err(self.unsupported());
            }
        }
        Ok(if all.len() == 1 && commas == 0 { all.remove(0) } else { Node::Tuple(all) })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn take_operator(&mut self, operator: &'static str) -> bool {
        self.take(&Token::Operator(operator))
    }

    fn take_name(&mut self, name: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Name(next)) if next == name);
        self.at += usize::from(is_next);
        is_next
    }

    fn unsupported(&self) -> Fault {
        Fault::Unsupported(match self.peek() {
            Some(Token::Name(name)) => format!("`{name}` in code"),
            Some(Token::Operator(operator)) => format!("`{operator}` at this place in code"),
            Some(Token::Literal(value)) => format!("`{value}` at this place in code"),
            Some(Token::End) | None => "code that ends within an expression".into(),
        })
    }
}
