//! Does the code in a script agree with what the socket says?
//!
//! Scripts judge `TCP_INFO` in Python: `assert 5000 <= tcpi_rtt <= 20000, 'srtt=%d' % tcpi_rtt`.
//! Understood are simple statements (`assert`, `print`, assignments) over whole numbers, exact
//! fractions, texts and tuples. Names that neither the script nor the socket knows, and compound
//! statements, are unsupported and said to be; nothing is guessed.

mod parse;
mod value;

use std::collections::BTreeMap;

use parse::{Node, Statement};
pub(super) use value::Value;

/// Why code did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// An assertion does not hold: on which line of the code, which, and what it says.
    Assertion { line: u32, text: String, said: String },
    /// It cannot be understood here.
    Unsupported(String),
}

/// The names that code has defined so far.
#[derive(Debug, Default)]
pub(super) struct Python {
    names: BTreeMap<String, Value>,
}

impl Python {
    /// Runs code; `known` has what the socket says of itself.
    pub(super) fn run(
        &mut self,
        code: &str,
        known: &dyn Fn(&str) -> Option<i128>,
    ) -> Result<(), Fault> {
        for (line, statement) in parse::statements(code)? {
            match statement {
                Statement::Assert { test, message, text } => {
                    if !self.value(&test, known)?.is_true() {
                        let said = match message {
                            Some(message) => self.value(&message, known)?.to_string(),
                            None => String::new(),
                        };
                        return Err(Fault::Assertion { line, text, said });
                    }
                }
                Statement::Assign(name, node) => {
                    let value = self.value(&node, known)?;
                    self.names.insert(name, value);
                }
                // What is printed is for people who look; that it can be computed is all we check.
                Statement::Evaluate(node) => {
                    self.value(&node, known)?;
                }
            }
        }
        Ok(())
    }

    fn value(&self, node: &Node, known: &dyn Fn(&str) -> Option<i128>) -> Result<Value, Fault> {
        let of = |node: &Node| self.value(node, known);
        Ok(match node {
            Node::Literal(value) => value.clone(),
            Node::Name(name) => match self.names.get(name) {
                Some(value) => value.clone(),
                None => Value::Int(
                    known(name).ok_or_else(|| Fault::Unsupported(format!("the name `{name}`")))?,
                ),
            },
            Node::Tuple(all) => Value::Tuple(all.iter().map(of).collect::<Result<_, _>>()?),
            Node::Not(inner) => Value::from(!of(inner)?.is_true()),
            Node::And(left, right) => {
                let left = of(left)?;
                if left.is_true() { of(right)? } else { left }
            }
            Node::Or(left, right) => {
                let left = of(left)?;
                if left.is_true() { left } else { of(right)? }
            }
            Node::If { test, then, otherwise } => {
                of(if of(test)?.is_true() { then } else { otherwise })?
            }
            Node::Unary(sign, inner) => of(inner)?.signed(*sign)?,
            Node::Binary(operator, left, right) => {
                Value::combined(operator, &of(left)?, &of(right)?)?
            }
            Node::Compare(first, others) => {
                let mut left = of(first)?;
                for (operator, right) in others {
                    let right = of(right)?;
                    if !Value::compared(operator, &left, &right)? {
                        return Ok(Value::from(false));
                    }
                    left = right;
                }
                Value::from(true)
            }
            Node::Call(name, arguments) => {
                let arguments: Vec<Value> = arguments.iter().map(of).collect::<Result<_, _>>()?;
                Value::called(name, &arguments)?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(code: &str) -> Result<(), Fault> {
        Python::default().run(code, &|name| match name {
            "tcpi_snd_cwnd" => Some(10),
            "tcpi_rtt" => Some(20_500),
            "tcpi_options" => Some(0b110),
            "TCPI_OPT_SACK" => Some(2),
            _ => None,
        })
    }

    fn fails_with(code: &str, said: &str) {
        match run(code) {
            Err(Fault::Assertion { said: found, .. }) => assert_eq!(found, said, "{code}"),
            other => panic!("{code}: {other:?}"),
        }
    }

    #[test]
    fn what_holds_passes() {
        for code in [
            " assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd ",
            "assert 5000 <= tcpi_rtt <= 21000, 'srtt=%d us' % tcpi_rtt",
            "assert (tcpi_options & TCPI_OPT_SACK) != 0, tcpi_options; \\\n   assert tcpi_rtt > 0 \n}"
                .trim_end_matches("\n}"),
            "cwnd = tcpi_snd_cwnd\ncwnd += 1\nassert cwnd == 11 # comment",
            "assert tcpi_rtt / 1000 == 20.5 and tcpi_rtt // 1000 == 20",
            "assert not (tcpi_snd_cwnd < 10 or tcpi_snd_cwnd > 10)",
            "assert tcpi_snd_cwnd in (9, 10), \"no\"",
            "assert abs(-3) == 3 and min(1, 2) == 1 and 7 % 4 == 3 and -7 // 2 == -4 and 2 ** 10 == 1 << 10",
            "print(tcpi_snd_cwnd); print('a', 1)",
            "assert (1 if tcpi_rtt else 2) == 1",
            "assert 'ab' 'c' == 'abc'",
            "assert (tcpi_rtt >\n 1)",
        ] {
            assert_eq!(run(code), Ok(()), "{code}");
        }
    }

    #[test]
    fn what_does_not_hold_says_its_message() {
        fails_with("assert tcpi_snd_cwnd == 11, tcpi_snd_cwnd", "10");
        fails_with(
            "assert tcpi_rtt < 5000, 'srtt=%d us, cwnd %s' % (tcpi_rtt, tcpi_snd_cwnd)",
            "srtt=20500 us, cwnd 10",
        );
        fails_with("assert 1 < 3 < 2", "");
        fails_with("assert tcpi_rtt / 1000 < 20, tcpi_rtt / 1000.0", "20.5");
    }

    #[test]
    fn the_line_of_a_failed_assertion_is_told() {
        let fault = run("\nassert tcpi_rtt > 0\nassert tcpi_rtt == 0, tcpi_rtt");
        assert_eq!(
            fault,
            Err(Fault::Assertion {
                line: 3,
                text: "assert tcpi_rtt == 0, tcpi_rtt".into(),
                said: "20500".into()
            })
        );
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (code, what) in [
            ("assert tcpi_nothing == 0", "the name `tcpi_nothing`"),
            ("for i in range(3):\n  print(i)", "`for` in code"),
            ("assert 1 +", "code that ends within an expression"),
            ("assert 'a' < 1", "`<` of a text and a number"),
            ("assert 1 // 0", "a division by zero"),
            (&format!("assert {}1", "1 + ".repeat(100_000)), "a statement of too many operators"),
            (&format!("assert {}", "(".repeat(100_000)), "code that is nested deeper"),
        ] {
            assert_eq!(run(code), Err(Fault::Unsupported(what.into())), "{code}");
        }
    }
}
