//! `--capture-when`: a filter of open connections, and for how long it has to hold.

use std::collections::BTreeSet;

use tcpwhy::report::State;

use crate::filter::Filter;
use crate::number;

/// What has to hold of a connection, and for how long.
#[derive(Clone, Debug)]
pub(super) struct When {
    pub(super) filter: Filter,
    pub(super) for_ns: u64,
    /// As it was given.
    pub(super) text: String,
}

impl When {
    /// Reads `state=rto_wait for 2s`; without a time it has to hold at one look.
    ///
    /// # Errors
    /// What is wrong with it, and which words are known.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (condition, time) = match text.rsplit_once(" for ") {
            Some((condition, time)) => (condition, Some(time.trim())),
            None => (text, None),
        };
        let time = time.map(number::duration).transpose();
        let time = time.map_err(|why| format!("{text}: behind `for`, {why}"))?;
        let filter = Filter::parse_open(condition)
            .map_err(|error| format!("--capture-when: {error}\n{}", known()))?;
        let for_ns = time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Ok(Self { filter, for_ns, text: text.trim().to_owned() })
    }
}

/// The words that a condition may have.
fn known() -> String {
    let families: BTreeSet<&str> =
        State::all().map(|state| state.name().split('.').next().unwrap_or_default()).collect();
    let families: Vec<&str> = families.into_iter().collect();
    format!(
        "known: state=NAME, slow, process=NAME, tcp=STATE, port, host, net, and, or, not, parentheses, and at the end \
         `for TIME`; names of states begin with {}",
        families.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_a_filter_and_a_time() {
        let when = When::parse("port 443 and state=rto_wait for 2s").expect("a condition");
        assert_eq!(
            (when.for_ns, &*when.text),
            (2_000_000_000, "port 443 and state=rto_wait for 2s")
        );
        assert_eq!(when.filter, Filter::parse_open("port 443 and state=rto_wait").expect("words"));
        assert_eq!(When::parse("slow").expect("a word").for_ns, 0);
    }

    #[test]
    fn what_is_wrong_is_said_with_the_words_that_are_known() {
        let said = When::parse("state=stuck for 2s").expect_err("no state");
        assert!(said.contains("state's name") && said.contains("rto_wait, rwnd"), "{said}");
        let said = When::parse("slow for 2").expect_err("no unit");
        assert!(said.contains("unit is missing"), "{said}");
        assert!(When::parse("").is_err() && When::parse("slow for ").is_err());
        assert!(When::parse("for 2s").is_err());
    }
}
