//! What open connections can be asked besides: `state=NAME`, `tcp=STATE`, `process=NAME`, `slow`.

use std::net::SocketAddr;

use tcpwhy::host::snapshot::State as Tcp;
use tcpwhy::live::is_rest;
use tcpwhy::report::State;
use tcpwhy_linux::live::Ends;

use super::{Ask, End, Filter, FilterError, Node, Parser, Side, What};

/// What is asked of an open connection.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a> {
    /// This host's end: `src`.
    pub local: SocketAddr,
    /// The peer's: `dst`.
    pub remote: SocketAddr,
    /// TCP's own state.
    pub tcp_state: Tcp,
    /// What holds it.
    pub state: Option<State>,
    /// The process that holds it, by number and name.
    pub process: Option<(u32, &'a str)>,
    /// Its own program lags.
    pub lags: bool,
}

impl Open<'_> {
    /// Whether something holds it that is not a program at rest.
    fn is_slow(&self) -> bool {
        self.lags || self.state.is_some_and(|state| !is_rest(state))
    }
}

impl Filter {
    /// Reads a filter of open connections.
    ///
    /// # Errors
    /// It does not follow the grammar; the error points at the place.
    pub fn parse_open(text: &str) -> Result<Self, FilterError> {
        Self::parse_of(text, true)
    }

    /// Whether it accepts this connection.
    pub fn accepts_open(&self, open: &Open<'_>) -> bool {
        self.0.accepts_open(open)
    }

    /// Each accepted connection has one of these ends; `None` where there is no such list.
    pub fn ends(&self) -> Option<Vec<Ends>> {
        self.0.ends()
    }
}

impl Node {
    fn accepts_open(&self, open: &Open<'_>) -> bool {
        match self {
            Self::And(nodes) => nodes.iter().all(|node| node.accepts_open(open)),
            Self::Or(nodes) => nodes.iter().any(|node| node.accepts_open(open)),
            Self::Not(node) => !node.accepts_open(open),
            Self::Match(side, what) => {
                let local = || what.accepts(End(open.local, None));
                let remote = || what.accepts(End(open.remote, None));
                match side {
                    Side::Client => local(),
                    Side::Server => remote(),
                    Side::Either => local() || remote(),
                }
            }
            Self::Open(Ask::States(states)) => {
                open.state.is_some_and(|state| states.contains(&state))
            }
            Self::Open(Ask::Tcp(tcp)) => open.tcp_state == *tcp,
            Self::Open(Ask::Process(asked)) => {
                open.process.is_some_and(|(pid, name)| name == asked || asked.parse() == Ok(pid))
            }
            Self::Open(Ask::Slow) => open.is_slow(),
        }
    }

    fn ends(&self) -> Option<Vec<Ends>> {
        match self {
            Self::And(nodes) => nodes.iter().find_map(Self::ends),
            Self::Or(nodes) => {
                nodes.iter().map(Self::ends).collect::<Option<Vec<_>>>().map(|all| all.concat())
            }
            Self::Match(_, What::Ports { first, last }) => Some(vec![Ends::Ports(*first, *last)]),
            Self::Match(_, What::Net { address, length }) => {
                Some(vec![Ends::Net(*address, *length)])
            }
            Self::Match(..) | Self::Not(_) | Self::Open(_) => None,
        }
    }
}

impl Parser<'_> {
    /// What only an open connection can be asked, if the next word asks that.
    pub(super) fn asked(&mut self) -> Result<Option<Ask>, FilterError> {
        let Some(word) = self.peek() else { return Ok(None) };
        let asked = if word == "slow" {
            Ask::Slow
        } else if let Some((key @ ("state" | "tcp" | "process"), value)) = word.split_once('=') {
            match key {
                "state" => Ask::States(states(value).ok_or_else(|| {
                    self.error("expected a state's name, such as state=rto_wait or state=rwnd (`tcpwhy doc` lists them)")
                })?),
                "tcp" => Ask::Tcp(tcp(value).ok_or_else(|| {
                    self.error("expected a state of TCP, such as tcp=ESTABLISHED or tcp=SYN_SENT")
                })?),
                _ if value.is_empty() => {
                    return Err(self.error("expected a process's name or number, such as process=nginx"));
                }
                _ => Ask::Process(value.to_owned()),
            }
        } else {
            return Ok(None);
        };
        self.at += 1;
        Ok(Some(asked))
    }
}

/// A state, or all whose name begins so: `rwnd` for `rwnd.cap` and its like.
fn states(name: &str) -> Option<Vec<State>> {
    let is_it = |state: &State| {
        let rest = state.name().strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let found: Vec<State> = State::all().filter(is_it).collect();
    (!found.is_empty()).then_some(found)
}

fn tcp(name: &str) -> Option<Tcp> {
    let name = name.to_ascii_uppercase().replace('-', "_");
    // As ss(8) has it.
    let name = match &*name {
        "ESTAB" => "ESTABLISHED",
        "SYN_RCVD" => "SYN_RECV",
        "FIN_WAIT_1" => "FIN_WAIT1",
        "FIN_WAIT_2" => "FIN_WAIT2",
        name => name,
    };
    serde_json::from_value(name.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Open<'static> {
        Open {
            local: "10.0.0.1:443".parse().expect("an end"),
            remote: "192.0.2.7:40000".parse().expect("an end"),
            tcp_state: Tcp::Established,
            state: Some(State::RwndReader),
            process: Some((4711, "nginx")),
            lags: false,
        }
    }

    fn accepts(text: &str) -> bool {
        Filter::parse_open(text).expect(text).accepts_open(&open())
    }

    #[test]
    fn an_open_connection_is_asked_what_holds_it_and_who_has_it() {
        for yes in [
            "state=rwnd",
            "state=rwnd.reader",
            "slow",
            "process=nginx",
            "process=4711",
            "tcp=estab",
            "src port 443",
        ] {
            assert!(accepts(yes), "{yes}");
        }
        for no in ["state=rwnd.cap", "not slow", "process=ngin", "tcp=SYN_SENT", "dst port 443"] {
            assert!(!accepts(no), "{no}");
        }
        assert!(accepts("port 443 and (slow or process=x) and not net 10.0.1.0/24"));
        let resting = Open { state: Some(State::App), ..open() };
        assert!(!Filter::parse_open("slow").expect("a word").accepts_open(&resting));
    }

    #[test]
    fn what_is_no_state_is_pointed_at_and_captures_are_not_asked() {
        for odd in ["state=rwn", "state=", "tcp=OPEN", "process="] {
            assert!(Filter::parse_open(odd).is_err(), "{odd}");
        }
        assert!(Filter::parse("slow").is_err());
    }

    #[test]
    fn ends_that_all_accepted_ones_have_are_for_the_kernel() {
        let ends = |text: &str| Filter::parse_open(text).expect(text).ends();
        assert_eq!(ends("slow and port 80"), Some(vec![Ends::Ports(80, 80)]));
        assert_eq!(ends("port 80 or portrange 90-99").map(|all| all.len()), Some(2));
        assert_eq!((ends("port 80 or slow"), ends("not port 80")), (None, None));
    }
}
