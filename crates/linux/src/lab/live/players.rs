//! Who plays a plan at its hosts: applications, looks at sockets, changes; each the agent with words of its own
//! ([`crate::lab::agent`]).

use std::ffi::OsString;
use std::path::Path;

use tcpwhy_model::scenario::plan::Plan;

use super::setup::Node;
use crate::lab::folder;

/// One of them.
pub(super) struct Player {
    pub(super) node: Node,
    /// Who it is in sentences, as `the server of flow 0`.
    pub(super) name: String,
    /// Those of the agent.
    pub(super) words: Vec<OsString>,
    /// It does not end by itself, or need not.
    pub(super) stays: bool,
}

/// All of them, in groups: one is ready before the next is started. The first application starts at `start`, in ns
/// since 1970.
pub(super) fn groups(plan: &Plan, folder: &Path, start: u64) -> [Vec<Player>; 3] {
    let ends = |node: Node| {
        (0..plan.flows.len()).map(|flow| application(plan, folder, (node, flow), start)).collect()
    };
    let mut beside = Vec::new();
    for node in HOSTS {
        if !plan.records.sockets_at_ns.is_empty() {
            beside.push(looks(plan, folder, node, start));
        }
        if !node.host(plan).changes.is_empty() {
            beside.push(changes(folder, node, start));
        }
    }
    [ends(Node::Server), ends(Node::Client), beside]
}

fn application(plan: &Plan, folder: &Path, (node, flow): (Node, usize), start: u64) -> Player {
    let side = node.name();
    let mut words = words(&["app", "--side", side, "--flow", &flow.to_string()]);
    words.extend(["--start".into(), start.to_string().into()]);
    words.extend(["--plan".into(), folder.join(folder::PLAN).into()]);
    words.extend(["--log".into(), folder.join(folder::APPLICATIONS).into()]);
    words.extend(["--address".into(), Node::Server.address(plan.ipv6).to_string().into()]);
    let stays = &plan.flows[flow];
    let stays = if node == Node::Server { stays.server_stays() } else { stays.client_stays() };
    Player { node, name: format!("the {side} of flow {flow}"), words, stays }
}

/// The looks at the sockets of a host.
fn looks(plan: &Plan, folder: &Path, node: Node, start: u64) -> Player {
    let mut words = words(&["sockets", "--start", &start.to_string()]);
    for at in &plan.records.sockets_at_ns {
        words.extend(["--at".into(), at.to_string().into()]);
    }
    let file = folder::SOCKETS[usize::from(node == Node::Server)];
    words.extend(["--output".into(), folder.join(file).into()]);
    let name = format!("the looks at the sockets of the {}", node.name());
    Player { node, name, words, stays: false }
}

/// What changes at a host. A run that is over does not wait for it.
fn changes(folder: &Path, node: Node, start: u64) -> Player {
    let side = node.name();
    let mut words = words(&["changes", "--side", side, "--start", &start.to_string()]);
    words.extend(["--plan".into(), folder.join(folder::PLAN).into()]);
    Player { node, name: format!("what changes the {side}"), words, stays: true }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

const HOSTS: [Node; 2] = [Node::Client, Node::Server];
