//! Experiments: what a user writes, and what a backend carries out.
//!
//! ```text
//! TOML text --tree--> values that know their line --section, keys--> checked --> Plan
//!             + variant's changes, + overrides                        (host, path, application)
//! ```
//!
//! [`Scenario::read`] checks everything at once: each variant with its changes, so that a run
//! never ends over a slip of the finger in the last one. `docs/scenarios.md` is the manual; [`keys`]
//! holds every key with its range and default.

mod application;
mod bucket;
mod error;
pub mod expect;
mod host;
mod host_changes;
mod keys;
mod path;
pub mod plan;
pub mod random;
mod records;
mod section;
mod settings;
mod steps;
mod tree;
mod units;

pub use error::{Place, ScenarioError, nearest};
pub use keys::manual;
pub use tree::MOST_BYTES;
pub use units::{Quantity, QuantityError};

use expect::{Article, Expect};
use plan::{Flow, Plan};
use section::Section;
use settings::is_word;
use tree::{Node, Table, Value};

/// An experiment: one plan for each variant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Scenario {
    /// What tables and folders call it.
    pub name: String,
    /// What it shows, in one line.
    pub about: String,
    /// What it is listed under; empty if it does not say.
    pub subject: String,
    /// Runs of each variant.
    pub repeats: u32,
    /// The first repeat of each variant, in the order they are written.
    pub variants: Vec<Plan>,
    /// What is said of each of them beside its plan.
    pub told: Vec<Told>,
}

/// What no backend needs to know of a variant.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Told {
    /// The names of its applications, in the order of the plan's flows; one that has none is called `application`.
    pub applications: Vec<String>,
    /// What was published of it.
    pub article: Option<Article>,
    /// What must come of it; none if nothing is asked, or if `--set` made another experiment of it.
    pub expect: Option<Expect>,
}

impl Scenario {
    /// Reads a scenario; `name` is what it is called if it does not say.
    ///
    /// `overrides` are `KEY=VALUE`, with keys dotted as in the file; they win over the file and
    /// over its variants.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn read(name: &str, text: &str, overrides: &[String]) -> Result<Self, ScenarioError> {
        let mut base = Node::read(text)?;
        let overrides = overrides
            .iter()
            .map(|text| Node::read_override(text))
            .collect::<Result<Vec<_>, _>>()?;
        if overrides.iter().any(is_another_experiment) {
            expect_nothing(&mut base);
        }
        for node in &overrides {
            base.overlay(node);
        }
        let top = Section::open("", keys::TOP, Some(&base))?;
        let name = match top.text("name")? {
            Some((_, said)) if is_word(&said) => said,
            Some((place, said)) => {
                let said = error::shown(&said);
                let what = format!("`name`: `{said}` has more than letters, digits, - and _");
                return Err(ScenarioError::new(place, what));
            }
            None => name.to_owned(),
        };
        let about = top.text("about")?.map(|(_, text)| text).unwrap_or_default();
        let subject = top.text("subject")?.map(|(_, text)| text).unwrap_or_default();
        let repeats = top.figure("repeats")? as u32;
        let (mut variants, mut told) = (Vec::new(), Vec::new());
        for (variant, node) in layers(&mut base, &overrides)? {
            let (plan, applications) = plan(&name, variant, &node)?;
            let expect = expect::read(node.child("expect"))?;
            records::check(&plan, &node, expect.as_ref())?;
            variants.push(plan);
            let article = expect::article(node.child("article"))?;
            told.push(Told { applications, article, expect });
        }
        Ok(Self { name, about, subject, repeats, variants, told })
    }

    /// Every run, the first repeat of all variants before the second: what drifts meanwhile
    /// touches all variants alike.
    pub fn plans(&self, repeats: u32) -> impl Iterator<Item = Plan> + '_ {
        (0..repeats).flat_map(|repeat| {
            self.variants.iter().map(move |plan| {
                let seed = mixed(plan.seed, repeat);
                Plan { repeat, seed, ..plan.clone() }
            })
        })
    }
}

/// The seed of a repeat: the same for all variants, so that they meet the same chances.
///
/// The first repeat keeps the scenario's own seed; others are spread by the finaliser of
/// `SplitMix64` (Steele, Lea and Flood, 2014).
fn mixed(seed: u64, repeat: u32) -> u64 {
    if repeat == 0 {
        return seed;
    }
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(repeat)));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Whether an override changes what is run, and not what is said of it.
fn is_another_experiment(later: &Node) -> bool {
    let Value::Table(said) = &later.value else { return false };
    let beside = ["name", "about", "subject", "repeats", "seed", "tail", "article", "expect"];
    said.keys().any(|key| !beside.contains(&key.as_str()))
}

/// Takes away what was expected of the experiment as it was written.
fn expect_nothing(base: &mut Node) {
    base.take("expect");
    if let Some(variants) = base.table_mut("variants") {
        for (_, variant) in variants.values_mut() {
            variant.take("expect");
        }
    }
}

/// The tree of each variant: the file, the variant's changes, the overrides.
fn layers(base: &mut Node, overrides: &[Node]) -> Result<Vec<(String, Node)>, ScenarioError> {
    let Some((_, variants)) = base.take("variants") else {
        return Ok(vec![(String::new(), base.clone())]);
    };
    let Value::Table(variants) = variants.value else {
        let what = "`variants` is a table of tables: write `[variants.\"name\"]`";
        return Err(ScenarioError::new(&variants.place, what));
    };
    if variants.is_empty() || variants.len() > MAX_VARIANTS {
        let what = format!("there are {} variants; 1 to {MAX_VARIANTS} can be run", variants.len());
        return Err(ScenarioError::new(&Place::Unwritten, what));
    }
    let mut written: Vec<_> = variants.iter().collect();
    written.sort_by(|a, b| (&a.1.0, a.0).cmp(&(&b.1.0, b.0)));
    written
        .into_iter()
        .map(|(name, (place, changes))| {
            check_variant(name, place, changes)?;
            let mut node = base.clone();
            node.overlay(changes);
            // With overrides it may well be that nothing is left to change.
            let is_change = |key: &String| !["article", "expect"].contains(&key.as_str());
            if overrides.is_empty()
                && matches!(&changes.value, Value::Table(said) if said.keys().any(is_change))
            {
                check_change(name, place, [base, &node])?;
            }
            for later in overrides {
                let mut later = later.clone();
                later.take("variants");
                node.overlay(&later);
            }
            Ok((name.clone(), node))
        })
        .collect()
}

fn check_variant(name: &str, place: &Place, changes: &Node) -> Result<(), ScenarioError> {
    let shown = error::shown(name);
    if name.is_empty() || name.chars().count() > 60 || name.chars().any(char::is_control) {
        let what =
            format!("`{shown}` is no name of a variant: it has 1 to 60 printable characters");
        return Err(ScenarioError::new(place, what));
    }
    let Value::Table(changes) = &changes.value else {
        let what = format!("the variant `{shown}` is a table of changes");
        return Err(ScenarioError::new(place, what));
    };
    for key in ["name", "about", "subject", "repeats", "seed", "variants"] {
        if let Some((place, _)) = changes.get(key) {
            let what = format!("`{key}` holds for the whole scenario, not for one variant");
            return Err(ScenarioError::new(place, what));
        }
    }
    Ok(())
}

/// A variant whose keys change nothing was meant otherwise.
fn check_change(name: &str, place: &Place, [base, node]: [&Node; 2]) -> Result<(), ScenarioError> {
    let [before, after] = [base, node].map(|node| plan("", String::new(), node));
    if before.is_ok() && before == after {
        let what = format!(
            "the variant `{}` changes nothing: all it says holds without it; write it without keys, \
             or change the file above",
            error::shown(name)
        );
        return Err(ScenarioError::new(place, what));
    }
    Ok(())
}

/// One variant's plan, and the names of its applications.
fn plan(
    scenario: &str,
    variant: String,
    node: &Node,
) -> Result<(Plan, Vec<String>), ScenarioError> {
    let top = Section::open("", keys::TOP, Some(node))?;
    let limit_ns = top.figure("limit")?;
    let (client, client_socket) = host::read("client", top.node("client"), limit_ns)?;
    let (server, server_socket) = host::read("server", top.node("server"), limit_ns)?;
    let taps_ns = 2 * (client.stack_to_tap_ns + server.stack_to_tap_ns);
    let path = path::read(top.node("path"), taps_ns)?;
    let (flows, names) = flows(&top, [client_socket, server_socket])?.into_iter().unzip();
    let plan = Plan {
        scenario: scenario.to_owned(),
        variant,
        repeat: 0,
        seed: top.figure("seed")?,
        ipv6: top.switch("ipv6")?,
        path,
        flows,
        client,
        server,
        records: records::read(top.node("records"), limit_ns)?,
        limit_ns,
        tail_ns: top.figure("tail")?,
    };
    Ok((plan, names))
}

/// What happens, with the name of each application, in order of their start.
fn flows(
    top: &Section<'_>,
    sockets: [Option<&Node>; 2],
) -> Result<Vec<(Flow, String)>, ScenarioError> {
    let mut nodes: Vec<(String, &Node)> = Vec::new();
    if let Some(node) = top.node("application") {
        nodes.push(("application".to_owned(), node));
    }
    if let Some(node) = top.node("applications") {
        let Value::Table(table) = &node.value else {
            let what = "`applications` is a table of tables: write `[applications.name]`";
            return Err(ScenarioError::new(&node.place, what));
        };
        let mut named: Vec<_> = Table::iter(table).collect();
        named.sort_by(|a, b| (&a.1.0, a.0).cmp(&(&b.1.0, b.0)));
        nodes.extend(
            named.into_iter().map(|(name, (_, node))| (format!("applications.{name}"), node)),
        );
    }
    if nodes.is_empty() || nodes.len() > MAX_APPLICATIONS {
        let what = match nodes.len() {
            0 => "nothing happens in it: write an `[application]`, as `download = \"512KiB\"`"
                .to_owned(),
            count => {
                format!("there are {count} applications; at most {MAX_APPLICATIONS} can be run")
            }
        };
        return Err(ScenarioError::new(&Place::Unwritten, what));
    }
    let mut flows = Vec::new();
    for (number, (path, node)) in nodes.iter().enumerate() {
        let flow = application::read(path, node, number as u16, sockets)?;
        if flows.iter().any(|(other, _): &(Flow, String)| other.port == flow.port) {
            let what = format!("`{path}`: the port {} is taken by another application", flow.port);
            return Err(ScenarioError::new(&node.place, what));
        }
        let name = path.strip_prefix("applications.").unwrap_or(path);
        flows.push((flow, name.to_owned()));
    }
    check_together(&flows)?;
    flows.sort_by_key(|(flow, _)| flow.start_ns);
    Ok(flows)
}

/// What no application has too much of alone, all may have together.
fn check_together(flows: &[(Flow, String)]) -> Result<(), ScenarioError> {
    let wrong = |what| Err(ScenarioError::new(&Place::Unwritten, what));
    let connections: u64 = flows.iter().map(|(flow, _)| u64::from(flow.connections)).sum();
    if connections > MAX_CONNECTIONS {
        return wrong(format!(
            "all applications together open {connections} connections; at most {MAX_CONNECTIONS} can be run"
        ));
    }
    let steps = flows
        .iter()
        .flat_map(|(flow, _)| [&flow.client, &flow.server])
        .map(|end| steps::count(end));
    let steps = steps.fold(0, u64::saturating_add);
    if steps > MAX_STEPS {
        return wrong(format!(
            "all applications together have {steps} steps, with their repetitions; at most {MAX_STEPS} can be run"
        ));
    }
    Ok(())
}

/// Ours: what one table can show.
const MAX_VARIANTS: usize = 1000;

/// Ours: each is a process at both ends.
const MAX_APPLICATIONS: usize = 1000;

/// Ours: the model keeps each to the end of a run, in 7 kB.
const MAX_CONNECTIONS: u64 = 100_000;

/// Ours: they are laid out one by one, in 32 bytes each; a million exchanges have eight million.
const MAX_STEPS: u64 = 10_000_000;
