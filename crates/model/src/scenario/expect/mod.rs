//! What is said of an experiment beside its plan: what was published of it, and what must come of it.
//!
//! Figures of rounds and counters are [`Amount`]s: `3`, `">= 1"`, `"<= 4"`, `"5 to 7"`. Nothing here is a time: times
//! differ between hosts, and what an experiment shows does not.

mod sockets;

use core::fmt;

use tcpwhy::report::State;

use super::error::{Place, ScenarioError, shown};
use super::keys;
use super::plan::Ppm;
use super::section::Section;
use super::tree::{Node, Value};
use super::units::Quantity;
pub use sockets::{Asked, SocketState};

/// An article and what it says of the experiment.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Article {
    /// Its number, three digits.
    pub number: String,
    /// What it measured.
    pub figure: String,
    /// Why it is another figure here.
    pub differs: String,
}

/// What must come of an experiment.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Expect {
    /// The state that held the sender longest, or the first word of its name.
    pub most: Option<String>,
    /// States and findings that are named.
    pub named: Vec<String>,
    /// States and findings that are not.
    pub absent: Vec<String>,
    /// Of the first transfer.
    pub rounds: Option<Rounds>,
    /// How much counters of the kernel moved.
    pub counters: Vec<Counter>,
    /// Connections that failed at the client.
    pub failed: Option<Amount>,
    /// What looks at the sockets show.
    pub sockets: Vec<SocketState>,
    /// Codes of what `check` finds by those looks: host and code.
    pub checked: Vec<(&'static str, String)>,
    /// How far the model's time may lie outside those seen; none asks nothing of it.
    pub model: Option<Ppm>,
}

/// Rounds of a transfer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rounds {
    /// How many.
    Count(Amount),
    /// Segments of the first ones.
    Segments(Vec<Amount>),
}

/// A counter of a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Counter {
    /// `client` or `server`.
    pub host: &'static str,
    /// As `nstat` names it.
    pub name: String,
    /// By how much it moved.
    pub moved: Amount,
}

/// A number or a range of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Amount {
    /// At least.
    pub least: u64,
    /// At most.
    pub most: u64,
}

impl Amount {
    /// Whether it is this.
    pub fn has(self, number: u64) -> bool {
        (self.least..=self.most).contains(&number)
    }

    /// Reads `3`, `>= 1`, `<= 4` or `5 to 7`.
    fn of(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let amount = if let Some(least) = text.strip_prefix(">=") {
            Self { least: number(least)?, most: u64::MAX }
        } else if let Some(most) = text.strip_prefix("<=") {
            Self { least: 0, most: number(most)? }
        } else if let Some((least, most)) = text.split_once(" to ") {
            Self { least: number(least)?, most: number(most)? }
        } else {
            let exactly = number(text)?;
            Self { least: exactly, most: exactly }
        };
        (amount.least <= amount.most).then_some(amount)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (least, most) if least == most => write!(f, "{least}"),
            (least, u64::MAX) => write!(f, "at least {least}"),
            (0, most) => write!(f, "at most {most}"),
            (least, most) => write!(f, "{least} to {most}"),
        }
    }
}

/// What `[article]` says.
pub(super) fn article(node: Option<&Node>) -> Result<Option<Article>, ScenarioError> {
    let section = Section::open("article", keys::ARTICLE, node)?;
    if node.is_none() {
        return Ok(None);
    }
    let text = |key: &str| Ok(section.text(key)?.map(|(_, text)| text).unwrap_or_default());
    let number = text("number")?;
    if number.len() != 3 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        let what =
            format!("`article.number`: write three digits in quotes, not `{}`", shown(&number));
        return Err(ScenarioError::new(section.place("number"), what));
    }
    Ok(Some(Article { number, figure: text("figure")?, differs: text("differs")? }))
}

/// What `[expect]` says.
pub(super) fn read(node: Option<&Node>) -> Result<Option<Expect>, ScenarioError> {
    let section = Section::open("expect", keys::EXPECT, node)?;
    if node.is_none() {
        return Ok(None);
    }
    let most = match section.text("most")? {
        Some((place, state)) if !is_state(&state) => {
            return Err(ScenarioError::unknown(place, "there is no state", &state, names()));
        }
        said => said.map(|(_, state)| state),
    };
    Ok(Some(Expect {
        most,
        named: words(&section, "named")?,
        absent: words(&section, "absent")?,
        rounds: section.node("rounds").map(rounds).transpose()?,
        counters: counters(section.node("counters"))?,
        failed: section.node("failed").map(|node| amount("expect.failed", node)).transpose()?,
        sockets: sockets::read(section.node("sockets"))?,
        checked: checked(section.node("checked"))?,
        model: model(&section)?,
    }))
}

fn names() -> impl Iterator<Item = &'static str> {
    State::all().map(State::name)
}

/// Whether this is a state's name, or what the names of several begin with.
fn is_state(word: &str) -> bool {
    names().any(|name| is_within(name, word))
}

/// Whether a state is `word`, or one of those that `word` begins.
pub fn is_within(state: &str, word: &str) -> bool {
    let rest = state.strip_prefix(word);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a word of `named` and `absent` is the code of a finding; else it is a state.
pub fn is_code(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// States, which are known here, and codes of findings, which who asks has to know.
fn words(section: &Section<'_>, key: &str) -> Result<Vec<String>, ScenarioError> {
    let word = |node: &Node| {
        let word = section.text_of(key, node)?;
        if is_code(&word) || is_state(&word) {
            return Ok(word);
        }
        Err(ScenarioError::unknown(&node.place, "there is no state", &word, names()))
    };
    section.list(key)?.iter().map(word).collect()
}

fn rounds(node: &Node) -> Result<Rounds, ScenarioError> {
    match &node.value {
        Value::List(list) if list.is_empty() => {
            let what = "`expect.rounds`: an empty list expects nothing; leave it out";
            Err(ScenarioError::new(&node.place, what))
        }
        Value::List(list) => {
            let amounts = list.iter().map(|node| amount("expect.rounds", node));
            Ok(Rounds::Segments(amounts.collect::<Result<_, _>>()?))
        }
        _ => amount("expect.rounds", node).map(Rounds::Count),
    }
}

fn amount(key: &str, node: &Node) -> Result<Amount, ScenarioError> {
    let read = match &node.value {
        Value::Integer(number) => Amount::of(&number.to_string()),
        Value::Text(text) => Amount::of(text.trim()),
        _ => None,
    };
    read.ok_or_else(|| {
        let what = format!("`{key}`: write it as 3, \">= 1\", \"<= 4\" or \"5 to 7\"");
        ScenarioError::new(&node.place, what)
    })
}

/// The hosts that a table names, with what it says of each; `form` is how it should look.
fn by_host<'n>(
    node: Option<&'n Node>,
    form: &str,
) -> Result<Vec<(&'static str, &'n Node)>, ScenarioError> {
    const HOSTS: [&str; 2] = ["client", "server"];
    let Some(node) = node else { return Ok(Vec::new()) };
    let Value::Table(hosts) = &node.value else {
        return Err(ScenarioError::new(&node.place, form));
    };
    let host = |(word, (place, node)): (&String, &'n (Place, Node))| {
        let host = HOSTS.into_iter().find(|host| host == word);
        let unknown = || ScenarioError::unknown(place, "there is no host", word, HOSTS);
        Ok((host.ok_or_else(unknown)?, node))
    };
    hosts.iter().map(host).collect()
}

fn checked(node: Option<&Node>) -> Result<Vec<(&'static str, String)>, ScenarioError> {
    let form = "`expect.checked`: write it as `server = [\"CLOSE_WAIT\"]`";
    let mut all = Vec::new();
    for (host, node) in by_host(node, form)? {
        let Value::List(codes) = &node.value else {
            return Err(ScenarioError::new(&node.place, form));
        };
        for code in codes {
            match &code.value {
                Value::Text(word) if is_code(word) => all.push((host, word.clone())),
                _ => return Err(ScenarioError::new(&code.place, form)),
            }
        }
    }
    Ok(all)
}

fn counters(node: Option<&Node>) -> Result<Vec<Counter>, ScenarioError> {
    let form = "`expect.counters`: write it as `server.TcpRetransSegs = \">= 1\"`";
    let mut counters = Vec::new();
    for (host, node) in by_host(node, form)? {
        let Value::Table(names) = &node.value else {
            return Err(ScenarioError::new(&node.place, form));
        };
        for (name, (_, node)) in names {
            let moved = amount(&format!("expect.counters.{host}.{}", shown(name)), node)?;
            counters.push(Counter { host, name: name.clone(), moved });
        }
    }
    Ok(counters)
}

fn model(section: &Section<'_>) -> Result<Option<Ppm>, ScenarioError> {
    let Some((place, text)) = section.text("model")? else { return Ok(None) };
    if text == "none" {
        return Ok(None);
    }
    match Quantity::Share.read(&text) {
        Ok(share) => Ok(Some(Ppm::try_from(share).unwrap_or(Ppm::MAX))),
        Err(error) => {
            Err(ScenarioError::new(place, format!("`expect.model`: {error}, or \"none\"")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::*;

    const PLAIN: &str = "application.download = \"9kB\"\n";

    fn scenario(more: &str, set: &[&str]) -> Result<Scenario, ScenarioError> {
        let set: Vec<String> = set.iter().map(|one| (*one).to_owned()).collect();
        Scenario::read("test", &format!("{PLAIN}{more}"), &set)
    }

    fn expected(more: &str) -> Expect {
        let read = scenario(more, &[]).expect("it can be read");
        read.told[0].expect.clone().expect("something is expected")
    }

    fn refused(more: &str) -> String {
        scenario(more, &[]).expect_err("it is wrong").to_string()
    }

    #[test]
    fn amounts_are_numbers_and_ranges() {
        for (text, least, most, shown) in [
            ("3", 3, 3, "3"),
            (">= 1", 1, u64::MAX, "at least 1"),
            ("<=4", 0, 4, "at most 4"),
            ("5 to 7", 5, 7, "5 to 7"),
        ] {
            let amount = Amount::of(text).expect(text);
            assert_eq!(
                (amount.least, amount.most, amount.to_string().as_str()),
                (least, most, shown)
            );
            assert!(amount.has(least) && amount.has(most) && !amount.has(least.wrapping_sub(1)));
        }
        for text in ["", "few", ">", ">= ", "7 to 5", "-1", "1.5"] {
            assert_eq!(Amount::of(text), None, "{text}");
        }
    }

    #[test]
    fn each_key_is_read() {
        let expect = expected(
            "[expect]\nmost = \"cwnd\"\nnamed = [\"cwnd.slow_start\", \"SLOW_START\"]\nabsent = [\"LOSS\"]
rounds = [10, \"19 to 21\"]\nmodel = \"2.5%\"\ncounters.server.TcpRetransSegs = 0\n",
        );
        let exactly = |number| Amount { least: number, most: number };
        assert_eq!(expect.most.as_deref(), Some("cwnd"));
        assert_eq!(expect.named, ["cwnd.slow_start", "SLOW_START"]);
        assert_eq!(expect.absent, ["LOSS"]);
        let range = Amount { least: 19, most: 21 };
        assert_eq!(expect.rounds, Some(Rounds::Segments(vec![exactly(10), range])));
        assert_eq!(expect.model, Some(25_000));
        let [Counter { host: "server", name, moved }] = &expect.counters[..] else {
            panic!("{expect:?}")
        };
        assert_eq!((name.as_str(), *moved), ("TcpRetransSegs", exactly(0)));
        assert_eq!(expected("expect.rounds = 6\n").rounds, Some(Rounds::Count(exactly(6))));
        assert_eq!(expected("expect.rounds = 6\n").model, Some(100_000), "it is asked by default");
        assert_eq!(expected("expect.model = \"none\"\n").model, None);
    }

    #[test]
    fn a_variant_expects_what_the_file_does_but_for_its_own_words() {
        let text = "expect.most = \"cwnd\"\nexpect.rounds = 6\n
[variants.a]\nexpect.most = \"cwnd\"\n[variants.b]\npath.rtt = \"9ms\"\nexpect.rounds = 4\narticle.number = \"000\"\n";
        let told = scenario(text, &[]).expect("it can be read").told;
        let rounds = |at: usize| told[at].expect.as_ref().and_then(|expect| expect.rounds.clone());
        assert_ne!(rounds(0), rounds(1));
        assert_eq!(told[1].expect.as_ref().and_then(|expect| expect.most.as_deref()), Some("cwnd"));
        assert_eq!((told[0].article.is_some(), told[1].article.is_some()), (false, true));
    }

    #[test]
    fn sockets_are_expected_by_host_and_state_at_one_look_or_at_each() {
        let looks = "records.sockets = [\"1s\", \"2s\"]\n";
        let read = expected(&format!(
            "{looks}expect.sockets.client.fin-wait-2 = [4, 0]\nexpect.sockets.server.close-wait = {{ count = 4, recv_q = \">= 1\" }}\n"
        ));
        let exactly = |number| Amount { least: number, most: number };
        assert_eq!(
            read.sockets,
            [
                SocketState {
                    host: "client",
                    state: "fin-wait-2",
                    asked: vec![(Asked::Count, vec![exactly(4), exactly(0)])],
                },
                SocketState {
                    host: "server",
                    state: "close-wait",
                    asked: vec![
                        (Asked::Count, vec![exactly(4)]),
                        (Asked::RecvQ, vec![Amount { least: 1, most: u64::MAX }]),
                    ],
                },
            ]
        );
    }

    #[test]
    fn another_experiment_is_not_held_to_what_was_written_of_this_one() {
        let text = "expect.rounds = 6\n[variants.a]\nexpect.rounds = 5\npath.rtt = \"9ms\"\n";
        let asked = |set: &[&str]| scenario(text, set).expect("read").told[0].expect.clone();
        assert_eq!(asked(&["path.rtt=40ms"]), None);
        assert!(asked(&["seed=7"]).is_some() && asked(&[]).is_some());
        let own = asked(&["path.rtt=40ms", "expect.rounds=3"]).expect("said on the command line");
        assert_eq!(own.rounds, Some(Rounds::Count(Amount { least: 3, most: 3 })));
    }

    #[test]
    fn slips_are_told_with_their_place() {
        for (text, said) in [
            ("expect.most = \"cwnd.slow\"\n", "line 2, column 15: there is no state `cwnd.slow`"),
            (
                "expect.named = [\"slowstart\"]\n",
                "line 2, column 17: there is no state `slowstart`",
            ),
            ("expect.rounds = \"few\"\n", "`expect.rounds`: write it as 3, \">= 1\""),
            ("expect.rounds = []\n", "an empty list expects nothing"),
            ("expect.counters.sender.A = 1\n", "there is no host `sender`; did you mean `server`?"),
            ("expect.counters.server = 1\n", "write it as `server.TcpRetransSegs"),
            ("expect.model = \"much\"\n", "`expect.model`: "),
            ("expect.time = 3\n", "`expect` has no key `time`"),
            ("article.number = 3\n", "write three digits in quotes, not `3`"),
        ] {
            let error = refused(text);
            assert!(error.contains(said), "{text}{error}");
        }
    }
}
