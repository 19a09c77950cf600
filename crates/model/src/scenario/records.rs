//! `[records]`: what is recorded, and when the sockets are looked at.

use super::error::ScenarioError;
use super::expect::Expect;
use super::keys::RECORDS;
use super::plan::{Flow, Plan, Records};
use super::section::Section;
use super::tree::{Node, Value};
use super::units::Quantity;

/// Reads the table; `limit_ns` is the longest time of a run.
pub(super) fn read(node: Option<&Node>, limit_ns: u64) -> Result<Records, ScenarioError> {
    let section = Section::open("records", RECORDS, node)?;
    Ok(Records {
        snap_length: section.figure("snap")? as u32,
        middle: section.switch("middle")?,
        tcp_info_every_ns: section.figure("tcp_info")?,
        sockets_at_ns: looks(&section, limit_ns)?,
    })
}

/// When the sockets are looked at.
fn looks(section: &Section<'_>, limit_ns: u64) -> Result<Vec<u64>, ScenarioError> {
    let nodes = section.list("sockets")?;
    if nodes.len() > MOST_LOOKS {
        let what =
            format!("`records.sockets`: there are {} looks; {MOST_LOOKS} is the most", nodes.len());
        return Err(ScenarioError::new(section.place("sockets"), what));
    }
    let mut looks: Vec<u64> = Vec::new();
    for node in nodes {
        let wrong = |what: String| {
            Err(ScenarioError::new(&node.place, format!("`records.sockets`: {what}")))
        };
        let at = match &node.value {
            Value::Text(text) => match Quantity::Time.read(text) {
                Ok(at) => at,
                Err(error) => return wrong(error.to_string()),
            },
            _ => return wrong("write times, as [\"1s\", \"4s\"]".to_owned()),
        };
        let written = |ns| Quantity::Time.write(ns);
        if at > limit_ns {
            return wrong(format!(
                "a look at {} comes after the limit of {}; raise `limit`",
                written(at),
                written(limit_ns)
            ));
        }
        if let Some(last) = looks.last().filter(|last| **last >= at) {
            return wrong(format!(
                "a look at {} cannot follow one at {}; write them in order, each once",
                written(at),
                written(*last)
            ));
        }
        looks.push(at);
    }
    Ok(looks)
}

/// Holds the looks against what needs them.
pub(super) fn check(
    plan: &Plan,
    node: &Node,
    expect: Option<&Expect>,
) -> Result<(), ScenarioError> {
    let looks = plan.records.sockets_at_ns.len();
    let wrong = |what: String| Err(ScenarioError::new(&node.place, what));
    if looks == 0 && plan.flows.iter().any(Flow::client_stays) {
        let what = "a client whose steps end with `keep open` needs `records.sockets`, as [\"2s\"]: the run ends after the \
                    last look";
        return wrong(what.to_owned());
    }
    let Some(expect) = expect else { return Ok(()) };
    if looks == 0 && !expect.checked.is_empty() {
        return wrong(
            "`expect.checked` needs looks: write `records.sockets`, as [\"2s\"]".to_owned(),
        );
    }
    match expect.sockets.iter().find_map(|state| state.odd(looks)) {
        None => Ok(()),
        Some((key, _)) if looks == 0 => {
            wrong(format!("`{key}` needs looks: write `records.sockets`, as [\"2s\"]"))
        }
        Some((key, amounts)) => wrong(format!(
            "`{key}`: there are {amounts} amounts and {looks} looks (`records.sockets`); write one for each look, or one alone for the last"
        )),
    }
}

/// Ours: what one table can show.
const MOST_LOOKS: usize = 16;
