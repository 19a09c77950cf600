//! Values and what operators make of them.
//!
//! Fractions are exact, so that no comparison depends on rounding.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use super::Fault;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A whole number; what is true is 1, as in Python.
    Int(i128),
    /// Numerator and denominator, which is over 1; in lowest terms.
    Fraction(i128, i128),
    Text(String),
    Tuple(Vec<Value>),
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Int(value.into())
    }
}

impl Value {
    /// The number that begins a text, and its length.
    pub(super) fn read(text: &str) -> Option<(Value, usize)> {
        let run = |from: usize, belongs: fn(char) -> bool| {
            text[from..].find(|c| !belongs(c)).unwrap_or(text.len() - from)
        };
        if text.starts_with("0x") {
            let digits = run(2, |c| c.is_ascii_hexdigit());
            return Some((
                Value::Int(i128::from_str_radix(&text[2..2 + digits], 16).ok()?),
                2 + digits,
            ));
        }
        let whole = run(0, |c| c.is_ascii_digit());
        let mut length = whole;
        let mut part = "";
        if text[whole..].starts_with('.') {
            let digits = run(whole + 1, |c| c.is_ascii_digit());
            part = &text[whole + 1..whole + 1 + digits];
            length += 1 + digits;
        }
        let digits: i128 = [&text[..whole], part].concat().parse().ok()?;
        let exponent = match text[length..].strip_prefix(['e', 'E']) {
            Some(_) => {
                let digits = run(length + 1, |c| c.is_ascii_digit());
                let exponent: u32 = text[length + 1..length + 1 + digits].parse().ok()?;
                length += 1 + digits;
                exponent
            }
            None => 0,
        };
        let scale = 10_i128.checked_pow(u32::try_from(part.len()).ok()?)?;
        Value::ratio(digits.checked_mul(10_i128.checked_pow(exponent)?)?, scale)
            .map(|value| (value, length))
    }

    /// A quotient; a whole number if it is one.
    fn ratio(numerator: i128, denominator: i128) -> Option<Value> {
        let (mut a, mut b) = (numerator.checked_abs()?, denominator.checked_abs()?);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let sign = if denominator < 0 { -1 } else { 1 };
        let divisor = a.max(1) * sign;
        Some(match denominator / divisor {
            1 => Value::Int(numerator / divisor),
            denominator => Value::Fraction(numerator / divisor, denominator),
        })
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Value::Int(number) => *number != 0,
            Value::Fraction(..) => true,
            Value::Text(text) => !text.is_empty(),
            Value::Tuple(all) => !all.is_empty(),
        }
    }

    pub(super) fn signed(&self, sign: char) -> Result<Value, Fault> {
        let value = match (sign, self) {
            ('-', Value::Int(number)) => number.checked_neg().map(Value::Int),
            ('-', Value::Fraction(a, b)) => a.checked_neg().map(|a| Value::Fraction(a, *b)),
            ('~', Value::Int(number)) => Some(Value::Int(!number)),
            ('+', Value::Int(_) | Value::Fraction(..)) => Some(self.clone()),
            _ => None,
        };
        value.ok_or_else(|| Fault::Unsupported(format!("`{sign}` of {}", self.kind())))
    }

    pub(super) fn combined(operator: &str, left: &Value, right: &Value) -> Result<Value, Fault> {
        let unsupported =
            || Fault::Unsupported(format!("`{operator}` of {} and {}", left.kind(), right.kind()));
        if let (Value::Text(text), "%") = (left, operator) {
            let arguments = if let Value::Tuple(all) = right {
                all.as_slice()
            } else {
                std::slice::from_ref(right)
            };
            return formatted(text, arguments).map(Value::Text).ok_or_else(unsupported);
        }
        if let (Value::Text(a), Value::Text(b), "+") = (left, right, operator) {
            return Ok(Value::Text([a.as_str(), b].concat()));
        }
        let zero = matches!(operator, "/" | "//" | "%") && *right == Value::Int(0);
        if zero {
            return Err(Fault::Unsupported("a division by zero".into()));
        }
        let value = match (left, right) {
            (Value::Int(a), Value::Int(b)) => whole(operator, *a, *b),
            _ => left.parts().zip(right.parts()).and_then(|(a, b)| fractions(operator, a, b)),
        };
        value.ok_or_else(unsupported)
    }

    /// Numerator and denominator of a number.
    fn parts(&self) -> Option<(i128, i128)> {
        match self {
            Value::Int(number) => Some((*number, 1)),
            Value::Fraction(a, b) => Some((*a, *b)),
            _ => None,
        }
    }

    pub(super) fn compared(operator: &str, left: &Value, right: &Value) -> Result<bool, Fault> {
        if let ("in", Value::Tuple(all)) = (operator, right) {
            return Ok(all.contains(left));
        }
        let order = match (left, right) {
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Tuple(a), Value::Tuple(b)) if a == b => Some(Ordering::Equal),
            _ => left
                .parts()
                .zip(right.parts())
                .and_then(|((a, b), (c, d))| Some(a.checked_mul(d)?.cmp(&c.checked_mul(b)?))),
        };
        match (operator, order) {
            ("==", order) => Ok(order == Some(Ordering::Equal)),
            ("!=", order) => Ok(order != Some(Ordering::Equal)),
            ("<", Some(order)) => Ok(order.is_lt()),
            ("<=", Some(order)) => Ok(order.is_le()),
            (">", Some(order)) => Ok(order.is_gt()),
            (">=", Some(order)) => Ok(order.is_ge()),
            _ => Err(Fault::Unsupported(format!(
                "`{operator}` of {} and {}",
                left.kind(),
                right.kind()
            ))),
        }
    }

    /// What a function that every Python has makes of its arguments.
    pub(super) fn called(name: &str, arguments: &[Value]) -> Result<Value, Fault> {
        let unsupported = || Fault::Unsupported(format!("`{name}()` in code"));
        match (name, arguments) {
            ("print", _) => Ok(Value::Tuple(Vec::new())),
            ("abs", [value]) => {
                let negative = Value::compared("<", value, &Value::Int(0))?;
                if negative { value.signed('-') } else { Ok(value.clone()) }
            }
            ("min" | "max", [first, others @ ..]) => {
                let operator = if name == "min" { "<" } else { ">" };
                let mut best = first;
                for other in others {
                    if Value::compared(operator, other, best)? {
                        best = other;
                    }
                }
                Ok(best.clone())
            }
            ("int", [value]) => {
                value.parts().map(|(a, b)| Value::Int(a / b)).ok_or_else(unsupported)
            }
            ("float", [value @ (Value::Int(_) | Value::Fraction(..))]) => Ok(value.clone()),
            ("str", [value]) => Ok(Value::Text(value.to_string())),
            ("len", [Value::Text(text)]) => Ok(Value::Int(text.chars().count() as i128)),
            ("len", [Value::Tuple(all)]) => Ok(Value::Int(all.len() as i128)),
            _ => Err(unsupported()),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Value::Int(_) | Value::Fraction(..) => "a number",
            Value::Text(_) => "a text",
            Value::Tuple(_) => "a tuple",
        }
    }
}

fn whole(operator: &str, a: i128, b: i128) -> Option<Value> {
    let floor =
        |a: i128, b: i128| Some(a.checked_div(b)? - i128::from(a % b != 0 && (a < 0) != (b < 0)));
    Some(Value::Int(match operator {
        "/" => return Value::ratio(a, b),
        "+" => a.checked_add(b)?,
        "-" => a.checked_sub(b)?,
        "*" => a.checked_mul(b)?,
        "//" => floor(a, b)?,
        "%" => a.checked_sub(floor(a, b)?.checked_mul(b)?)?,
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        "<<" => a.checked_mul(2_i128.checked_pow(u32::try_from(b).ok()?)?)?,
        ">>" => a.checked_shr(u32::try_from(b).ok()?)?,
        "**" => a.checked_pow(u32::try_from(b).ok()?)?,
        _ => return None,
    }))
}

fn fractions(operator: &str, (a, b): (i128, i128), (c, d): (i128, i128)) -> Option<Value> {
    match operator {
        "+" => Value::ratio(a.checked_mul(d)?.checked_add(c.checked_mul(b)?)?, b.checked_mul(d)?),
        "-" => Value::ratio(a.checked_mul(d)?.checked_sub(c.checked_mul(b)?)?, b.checked_mul(d)?),
        "*" => Value::ratio(a.checked_mul(c)?, b.checked_mul(d)?),
        "/" => Value::ratio(a.checked_mul(d)?, b.checked_mul(c)?),
        _ => None,
    }
}

/// `'%d of %s' % (1, 'two')`
fn formatted(text: &str, arguments: &[Value]) -> Option<String> {
    let mut arguments = arguments.iter();
    let mut parts = text.split('%');
    let mut whole = parts.next()?.to_string();
    while let Some(part) = parts.next() {
        if part.is_empty() {
            whole.push('%');
            whole.push_str(parts.next()?);
            continue;
        }
        let at = part.find(|c: char| c.is_ascii_alphabetic())?;
        let value = arguments.next()?;
        match (&part[at..=at], value) {
            ("d" | "u" | "i", value) => {
                whole.push_str(&value.parts().map(|(a, b)| (a / b).to_string())?);
            }
            ("x", Value::Int(number)) => write!(whole, "{number:x}").ok()?,
            ("s" | "r" | "f" | "g", value) => whole.push_str(&value.to_string()),
            _ => return None,
        }
        whole.push_str(&part[at + 1..]);
    }
    arguments.next().is_none().then_some(whole)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(number) => write!(f, "{number}"),
            // Shown to three places; only people read it.
            Value::Fraction(a, b) => {
                let sign = if *a < 0 { "-" } else { "" };
                let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
                let thousandths = (a % b).checked_mul(1000).map_or(0, |part| part / b);
                let digits = format!("{thousandths:03}");
                write!(f, "{sign}{}.{}", a / b, digits.trim_end_matches('0'))
            }
            Value::Text(text) => write!(f, "{text}"),
            Value::Tuple(all) => {
                let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                write!(f, "({})", all.join(", "))
            }
        }
    }
}
