//! What looks at the sockets of a host are to show: how many are in a state, and how they are.
//!
//! ```toml
//! [records]
//! sockets = ["1s", "4s"]
//!
//! [expect]
//! sockets.server.close-wait = 8             # at the last look
//! sockets.client.fin-wait-2 = [8, 0]        # at each look
//! sockets.server.last-ack = { count = 2, recv_q = 0 }
//! ```

use super::{Amount, amount, by_host};
use crate::scenario::error::ScenarioError;
use crate::scenario::keys;
use crate::scenario::section::Section;
use crate::scenario::tree::{Node, Value};

/// The sockets of a host that are in one state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SocketState {
    /// `client` or `server`.
    pub host: &'static str,
    /// One of [`SocketState::NAMES`].
    pub state: &'static str,
    /// What is asked of them.
    pub asked: Vec<(Asked, Vec<Amount>)>,
}

/// What is asked of the sockets in a state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Asked {
    /// How many they are.
    Count,
    /// Bytes that each holds unread, its peer's FIN with them.
    RecvQ,
    /// Bytes that each has written and that are not acknowledged.
    SendQ,
    /// How many of them no program holds.
    NoProgram,
}

impl Asked {
    /// Its key.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::RecvQ => "recv_q",
            Self::SendQ => "send_q",
            Self::NoProgram => "no_program",
        }
    }

    const ALL: [Self; 4] = [Self::Count, Self::RecvQ, Self::SendQ, Self::NoProgram];
}

impl SocketState {
    /// The states as filters of ss(8) name them.
    pub const NAMES: [&'static str; 10] = [
        "established",
        "syn-sent",
        "syn-recv",
        "fin-wait-1",
        "fin-wait-2",
        "time-wait",
        "closed",
        "close-wait",
        "last-ack",
        "closing",
    ];

    /// Amounts for more than one look that are not as many as there are `looks`: their key, and how many they are.
    pub(in crate::scenario) fn odd(&self, looks: usize) -> Option<(String, usize)> {
        let odd = |amounts: &Vec<Amount>| amounts.len() > 1 && amounts.len() != looks;
        let (asked, amounts) = self.asked.iter().find(|(_, amounts)| looks == 0 || odd(amounts))?;
        let Self { host, state, .. } = self;
        Some((format!("expect.sockets.{host}.{state}.{}", asked.name()), amounts.len()))
    }
}

/// What `[expect.sockets]` says.
pub(super) fn read(node: Option<&Node>) -> Result<Vec<SocketState>, ScenarioError> {
    let mut all = Vec::new();
    for (host, node) in by_host(node, FORM)? {
        let Value::Table(states) = &node.value else {
            return Err(ScenarioError::new(&node.place, FORM));
        };
        for (word, (place, node)) in states {
            let state = SocketState::NAMES.into_iter().find(|name| name == word);
            let unknown = || {
                let what = "a socket has no state";
                ScenarioError::unknown(place, what, word, SocketState::NAMES)
            };
            let state = state.ok_or_else(unknown)?;
            all.push(SocketState { host, state, asked: asked(host, state, node)? });
        }
    }
    Ok(all)
}

fn asked(host: &str, state: &str, node: &Node) -> Result<Vec<(Asked, Vec<Amount>)>, ScenarioError> {
    let name = format!("expect.sockets.{host}.{state}");
    if !matches!(node.value, Value::Table(_)) {
        return Ok(vec![(Asked::Count, amounts(&name, node)?)]);
    }
    let section = Section::open(name.clone(), keys::SOCKETS, Some(node))?;
    let each = |asked: Asked| {
        let amounts = |node| amounts(&section.name(asked.name()), node);
        section.node(asked.name()).map(|node| Ok((asked, amounts(node)?)))
    };
    Asked::ALL.into_iter().filter_map(each).collect()
}

fn amounts(name: &str, node: &Node) -> Result<Vec<Amount>, ScenarioError> {
    match &node.value {
        Value::List(list) if list.is_empty() => {
            let what = format!("`{name}`: an empty list expects nothing; leave it out");
            Err(ScenarioError::new(&node.place, what))
        }
        Value::List(list) => list.iter().map(|node| amount(name, node)).collect(),
        _ => Ok(vec![amount(name, node)?]),
    }
}

const FORM: &str = "`expect.sockets`: write it as `server.close-wait = 8`";
