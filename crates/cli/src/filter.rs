//! Which connections does the user mean?
//!
//! The words of pcap-filter(7) as far as they make sense for TCP connections:
//!
//! ```text
//! expression = operand { ("and" | "or") operand }          && and || too
//! operand    = "not" operand | "(" expression ")" | primitive       ! too
//! primitive  = [side] ["host"] ADDRESS | [side] "host" NAME | [side] "net" ADDRESS/LENGTH
//!            | [side] "port" NUMBER | [side] "portrange" FIRST-LAST
//!            | "tcp" [primitive] | "ip" [primitive] | "ip6" [primitive]
//! side       = "src" | "client" | "dst" | "server"
//! ```
//!
//! A bare value repeats the last qualifiers, as in `port 80 or 443`. Two things differ from
//! tcpdump. `src` and `dst` mean the connection's client and server, not the sender of a packet:
//! half a connection cannot be explained. And `and` mixed with `or` needs parentheses, because
//! tcpdump reads from left to right where Wireshark binds `and` first.
//!
//! A host's name is compared with the names a packet listing prints; nothing is looked up.
//!
//! Left out: port names, and all that does not name a connection.
//!
//! Of connections that are open now (`tcpwhy live`) more can be asked (`open.rs`), and `src` is this host's end.

mod open;

use std::net::{IpAddr, SocketAddr};

use tcpwhy::host::snapshot::State as Tcp;
use tcpwhy::report::{Connection, State};

pub use open::Open;

/// A checked filter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Filter(Node);

/// What is wrong with a filter, and where.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what}\n  {text}\n  {}^", " ".repeat(*.column))]
pub struct FilterError {
    /// The filter as given.
    pub text: String,
    /// The place, in characters.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Match(Side, What),
    Open(Ask),
}

/// What only an open connection can be asked.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Ask {
    /// One of these holds it.
    States(Vec<State>),
    Tcp(Tcp),
    /// Its name or number.
    Process(String),
    Slow,
}

/// Which end of the connection has to match.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Client,
    Server,
    Either,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum What {
    Anything,
    V4,
    V6,
    Net { address: IpAddr, length: u8 },
    Host { name: String },
    Ports { first: u16, last: u16 },
}

/// An end of a connection: its address, and its name where a listing prints one.
#[derive(Clone, Copy, Debug)]
struct End<'a>(SocketAddr, Option<&'a str>);

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// It does not follow the grammar; the error points at the place.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Self::parse_of(text, false)
    }

    fn parse_of(text: &str, is_open: bool) -> Result<Self, FilterError> {
        let mut parser = Parser { text, tokens: tokens(text), at: 0, last: None, is_open };
        let node = parser.expression(0)?;
        match parser.peek() {
            None => Ok(Self(node)),
            Some(")") => Err(parser.error("this parenthesis was never opened")),
            Some(_) => Err(parser.error("expected `and` or `or` before this")),
        }
    }

    /// Whether it accepts this connection.
    pub fn accepts(&self, connection: &Connection) -> bool {
        let Connection { client, server, client_name, server_name, .. } = connection;
        self.0.accepts(End(*client, client_name.as_deref()), End(*server, server_name.as_deref()))
    }

    /// Whether it asks for a host by name.
    pub fn names_a_host(&self) -> bool {
        self.0.names_a_host()
    }
}

impl Node {
    fn accepts(&self, client: End<'_>, server: End<'_>) -> bool {
        match self {
            Self::And(nodes) => nodes.iter().all(|node| node.accepts(client, server)),
            Self::Or(nodes) => nodes.iter().any(|node| node.accepts(client, server)),
            Self::Not(node) => !node.accepts(client, server),
            Self::Match(Side::Client, what) => what.accepts(client),
            Self::Match(Side::Server, what) => what.accepts(server),
            Self::Match(Side::Either, what) => what.accepts(client) || what.accepts(server),
            // Of a captured connection nobody can ask that.
            Self::Open(_) => false,
        }
    }

    fn names_a_host(&self) -> bool {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(Self::names_a_host),
            Self::Not(node) => node.names_a_host(),
            Self::Match(_, what) => matches!(what, What::Host { .. }),
            Self::Open(_) => false,
        }
    }
}

impl What {
    fn accepts(&self, End(address, name): End<'_>) -> bool {
        // The address in place of a name is no host's.
        let host = name.and_then(|name| name.rsplit_once(':')).map(|(host, _)| host);
        match self {
            Self::Anything => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
            Self::Net { address: net, length } => is_inside(address.ip(), *net, *length),
            Self::Host { name } => host.is_some_and(|host| host.eq_ignore_ascii_case(name)),
            Self::Ports { first, last } => (*first..=*last).contains(&address.port()),
        }
    }
}

/// Whether `address` agrees with the first `length` bits of `net`.
fn is_inside(address: IpAddr, net: IpAddr, length: u8) -> bool {
    let (difference, bits) = match (address, net) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits() ^ b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits(), 128),
        _ => return false,
    };
    difference.checked_shr(bits - u32::from(length)).unwrap_or(0) == 0
}

/// Words and signs with their byte offsets.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        rest = &rest[start..];
        let sign = ["&&", "||", "(", ")", "!"].into_iter().find(|sign| rest.starts_with(sign));
        let length = sign.map_or_else(
            || rest.find(|c: char| c.is_whitespace() || "()!&|".contains(c)).unwrap_or(rest.len()),
            str::len,
        );
        // A lone `&` or `|` is a token of its own, to be complained about.
        let length = length.max(1);
        tokens.push((text.len() - rest.len(), &rest[..length]));
        rest = &rest[length..];
    }
    tokens
}

/// What a bare value repeats.
#[derive(Clone, Copy, Debug)]
struct Qualifiers {
    side: Side,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, &'a str)>,
    at: usize,
    last: Option<Qualifiers>,
    is_open: bool,
}

impl<'a> Parser<'a> {
    fn expression(&mut self, depth: usize) -> Result<Node, FilterError> {
        let mut nodes = vec![self.operand(depth)?];
        let mut any = None;
        while let Some(word) = self.peek() {
            let is_or = match word {
                "and" | "&&" => false,
                "or" | "||" => true,
                _ => break,
            };
            if any.is_some_and(|any| any != is_or) {
                return Err(self.error(
                    "`and` mixed with `or` needs parentheses: tcpdump reads from left to right, \
                     Wireshark binds `and` first",
                ));
            }
            any = Some(is_or);
            self.at += 1;
            nodes.push(self.operand(depth)?);
        }
        Ok(match any {
            None => nodes.remove(0),
            Some(false) => Node::And(nodes),
            Some(true) => Node::Or(nodes),
        })
    }

    fn operand(&mut self, depth: usize) -> Result<Node, FilterError> {
        if depth > MAX_DEPTH {
            return Err(self.error("this is nested too deeply"));
        }
        match self.peek() {
            Some("not" | "!") => {
                self.at += 1;
                Ok(Node::Not(Box::new(self.operand(depth + 1)?)))
            }
            Some("(") => {
                let opened = self.at;
                self.at += 1;
                let node = self.expression(depth + 1)?;
                match self.peek() {
                    Some(")") => {
                        self.at += 1;
                        Ok(node)
                    }
                    None => {
                        self.at = opened;
                        Err(self.error("this parenthesis is never closed"))
                    }
                    Some(_) => Err(self.error("expected `and`, `or` or `)` before this")),
                }
            }
            _ => self.primitive(),
        }
    }

    fn primitive(&mut self) -> Result<Node, FilterError> {
        if self.is_open
            && let Some(asked) = self.asked()?
        {
            return Ok(Node::Open(asked));
        }
        let protocol = match self.peek() {
            Some("tcp") => Some(What::Anything),
            Some("ip") => Some(What::V4),
            Some("ip6") => Some(What::V6),
            Some("udp" | "icmp" | "icmp6" | "arp" | "sctp") => {
                return Err(self.error("only TCP is explained: this would match nothing"));
            }
            _ => None,
        };
        let Some(protocol) = protocol else { return self.qualified() };
        self.at += 1;
        let protocol = Node::Match(Side::Either, protocol);
        match self.peek() {
            None | Some(")" | "and" | "or" | "&&" | "||") => Ok(protocol),
            Some(_) => Ok(Node::And(vec![protocol, self.qualified()?])),
        }
    }

    /// `[side] [kind] value`, or a bare value.
    fn qualified(&mut self) -> Result<Node, FilterError> {
        let side = match self.peek() {
            Some("src" | "client") => Some(Side::Client),
            Some("dst" | "server") => Some(Side::Server),
            _ => None,
        };
        self.at += usize::from(side.is_some());
        let kind = match self.peek() {
            Some("host") => Some(Kind::Host),
            Some("net") => Some(Kind::Net),
            Some("port") => Some(Kind::Port),
            Some("portrange") => Some(Kind::PortRange),
            _ => None,
        };
        self.at += usize::from(kind.is_some());
        let qualifiers = match (side, kind, self.last) {
            (None, None, Some(last)) => last,
            (side, kind, _) => {
                Qualifiers { side: side.unwrap_or(Side::Either), kind: kind.unwrap_or(Kind::Host) }
            }
        };
        let what = self.value(qualifiers.kind, side.is_some() || kind.is_some())?;
        self.last = Some(qualifiers);
        Ok(Node::Match(qualifiers.side, what))
    }

    fn value(&mut self, kind: Kind, announced: bool) -> Result<What, FilterError> {
        let expected = match kind {
            Kind::Host => "an address, such as 10.0.0.1, or a host's name as a listing prints it",
            Kind::Net => "a network, such as 10.0.0.0/8 or 2001:db8::/32",
            Kind::Port => "a port number, such as 443 (port names are not looked up)",
            Kind::PortRange => "a port range, such as 8000-8999",
        };
        let expected = if announced || self.last.is_some() {
            format!("expected {expected}")
        } else {
            "expected `host`, `net`, `port`, `portrange`, `src`, `dst`, `client`, `server`, \
             `tcp`, `not` or `(`"
                .to_owned()
                + if self.is_open { ", or `state=`, `tcp=`, `process=`, `slow`" } else { "" }
        };
        let what = self.peek().and_then(|word| match kind {
            Kind::Host => word.parse().ok().map(host).or_else(|| host_name(word, announced)),
            Kind::Net => net(word),
            Kind::Port => word.parse().ok().map(|port| What::Ports { first: port, last: port }),
            Kind::PortRange => port_range(word),
        });
        let what = what.ok_or_else(|| self.error(&expected))?;
        self.at += 1;
        Ok(what)
    }

    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|token| token.1)
    }

    /// An error at the present token, or behind the last.
    fn error(&self, what: &str) -> FilterError {
        let offset = self.tokens.get(self.at).map_or(self.text.len(), |token| token.0);
        let column = self.text[..offset].chars().count();
        // One line, so that the mark below it is in the right column.
        let text = self.text.replace(|c: char| c.is_control(), " ");
        FilterError { text, column, what: what.to_owned() }
    }
}

fn host(address: IpAddr) -> What {
    What::Net { address, length: if address.is_ipv4() { 32 } else { 128 } }
}

/// A host's name, where `host` announced one: a bare word is more likely a slip.
fn host_name(word: &str, announced: bool) -> Option<What> {
    let is_name = word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.contains(|c: char| c.is_ascii_alphabetic())
        && !matches!(word, "and" | "or" | "not" | "host" | "net" | "port" | "portrange")
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    (announced && is_name).then(|| What::Host { name: word.to_owned() })
}

/// `10.0.0.0/8`, or `10.1` for 10.1.0.0/16 as in pcap-filter(7).
fn net(word: &str) -> Option<What> {
    if let Some((address, length)) = word.split_once('/') {
        let address: IpAddr = address.parse().ok()?;
        let length: u8 = length.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        return (length <= most).then_some(What::Net { address, length });
    }
    if let Ok(address) = word.parse() {
        return Some(host(address));
    }
    let parts = word.split('.').map(str::parse).collect::<Result<Vec<u8>, _>>().ok()?;
    let mut octets = [0; 4];
    octets.get_mut(..parts.len())?.copy_from_slice(&parts);
    Some(What::Net { address: octets.into(), length: 8 * parts.len() as u8 })
}

fn port_range(word: &str) -> Option<What> {
    let (first, last) = word.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(What::Ports { first, last })
}

/// Parentheses and `not`s inside each other. Ours: far beyond what a person writes, far below
/// what would exhaust a stack.
const MAX_DEPTH: usize = 100;

#[cfg(test)]
mod tests;
