//! ICMP errors about TCP: which connection do they speak of, and what did its sender make of them?
//!
//! An error belongs to the connection whose ends it quotes. Where a device between rewrites addresses and leaves the
//! quotation alone, the error's own destination and both ports tell it, if only one connection has these. A listing
//! without the quotation says hosts at most: then it belongs to the only connection between these that was there.
//! What belongs to none is kept all the same. Errors alike are counted, and the first few are kept one by one.
//!
//! What is quoted proves who was meant, not that the device sent it: errors can be forged (RFC 5927).

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use crate::report::{Connection, FrameRange, IcmpErrors, QuotedPacket, Retransmission};
use crate::wire::{IcmpError, IcmpKind};
use tcpwhy_words::said;
use tcpwhy_words::units::Time;

/// Errors that differ in more than time. Ours: a scan makes one each, and nobody reads more.
const MOST: usize = 1024;
/// Quotations kept of errors alike. Ours: the first segments of a flight that met a small hop show it.
const QUOTED: usize = 8;

/// The errors so far.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    heard: Vec<Heard>,
    places: BTreeMap<Key, usize>,
    /// Errors beyond what is kept.
    more: u64,
}

type Key = (IcmpKind, u32, [IpAddr; 3], Option<IpAddr>, Option<[u16; 2]>, Option<u32>);

/// Errors alike.
#[derive(Debug)]
struct Heard {
    first: IcmpError,
    last: (Time, u64),
    count: u64,
    /// The first few: time and frame with what they quote.
    each: Vec<IcmpError>,
}

impl Errors {
    pub(crate) fn take(&mut self, error: &IcmpError) {
        let IcmpError { kind, network, from, to, mtu, quoted, .. } = *error;
        let key = (kind, network, [from, to, quoted.source], quoted.destination, quoted.ports, mtu);
        if let Some(heard) = self.places.get(&key).and_then(|at| self.heard.get_mut(*at)) {
            heard.count += 1;
            heard.last = (error.time, error.frame);
            if heard.each.len() < QUOTED {
                heard.each.push(*error);
            }
            return;
        }
        if self.heard.len() >= MOST {
            self.more += 1;
            return;
        }
        self.places.insert(key, self.heard.len());
        let last = (error.time, error.frame);
        self.heard.push(Heard { first: *error, last, count: 1, each: vec![*error] });
    }

    /// How many were not kept.
    pub(crate) const fn more(&self) -> u64 {
        self.more
    }

    /// Gives each connection what was said of it; what was said of others.
    pub(crate) fn attach(&self, connections: &mut [Connection]) -> Vec<IcmpErrors> {
        if self.heard.is_empty() {
            return Vec::new();
        }
        let index = Index::of(connections);
        let mut others = Vec::new();
        for heard in &self.heard {
            match index.find(heard, connections) {
                Some((at, side)) => {
                    let start = Time::from_rfc3339(&connections[at].start);
                    let told = heard.told(start, Some(side));
                    connections[at].icmp.push(told);
                }
                None => others.push(heard.told(None, None)),
            }
        }
        others
    }
}

impl Heard {
    fn told(&self, start: Option<Time>, side: Option<usize>) -> IcmpErrors {
        let since = |time: Time| start.map(|start| time.since(start).0);
        let quoted = |error: &IcmpError| QuotedPacket {
            frame: error.frame,
            at_ns: since(error.time),
            seq: error.quoted.seq.map(|seq| seq.0),
            bytes: error.quoted.bytes,
        };
        let IcmpError { kind, from, to, mtu, quoted: about, time, frame, .. } = self.first;
        IcmpErrors {
            kind: kind.name().into(),
            from,
            to,
            source: about.source,
            source_port: about.ports.map(|ports| ports[0]),
            destination: about.destination,
            destination_port: about.ports.map(|ports| ports[1]),
            about: side.map(|side| SIDES[side].into()),
            mtu,
            count: self.count,
            start: time.rfc3339(),
            first_ns: since(time),
            last_ns: since(self.last.0),
            frames: FrameRange { first: frame, last: self.last.1 },
            quoted: self.each.iter().map(quoted).collect(),
        }
    }
}

/// Connections by what errors tell of them, each with the side that sent what is quoted.
#[derive(Debug, Default)]
struct Index {
    ends: BTreeMap<[SocketAddr; 2], Vec<(usize, usize)>>,
    /// By one end and the port of the other.
    ports: BTreeMap<(SocketAddr, u16), Vec<(usize, usize)>>,
    hosts: BTreeMap<[IpAddr; 2], Vec<(usize, usize)>>,
}

impl Index {
    fn of(connections: &[Connection]) -> Self {
        let mut index = Self::default();
        for (at, connection) in connections.iter().enumerate() {
            let ends = [connection.client, connection.server];
            for (side, [from, to]) in [ends, [ends[1], ends[0]]].into_iter().enumerate() {
                index.ends.entry([from, to]).or_default().push((at, side));
                index.ports.entry((from, to.port())).or_default().push((at, side));
                index.hosts.entry([from.ip(), to.ip()]).or_default().push((at, side));
            }
        }
        index
    }

    fn find(&self, heard: &Heard, connections: &[Connection]) -> Option<(usize, usize)> {
        let IcmpError { network, to, quoted, frame, .. } = heard.first;
        let began = |(at, _): &&(usize, usize)| connections[*at].frames.first <= frame;
        if let Some(same) = quoted.ends().and_then(|ends| self.ends.get(&ends)) {
            // Of several after one another the one that was there; of those side by side, as where a router's
            // frames are captured in two VLANs, the one of its own network.
            let is_there = |each: &&(usize, usize)| connections[each.0].network == network;
            let there = same.iter().rev().filter(is_there).find(began);
            return there.or(same.iter().rev().find(began)).or(same.first()).copied();
        }
        if let Some([from, peer]) = quoted.ports {
            let alike = self.ports.get(&(SocketAddr::new(to, from), peer))?;
            let other = |(at, side): &(usize, usize)| {
                let connection = &connections[*at];
                [connection.server, connection.client][*side]
            };
            let first = other(alike.first()?);
            if alike.iter().any(|each| other(each) != first) {
                return None;
            }
            return alike.iter().rev().find(began).or(alike.first()).copied();
        }
        let is_between = |ends: &[IpAddr; 2]| {
            ends[0] == quoted.source && quoted.destination.is_none_or(|peer| ends[1] == peer)
        };
        let between = self.hosts.iter().filter(|(ends, _)| is_between(ends));
        let between = between.flat_map(|(_, each)| each);
        let mut there: Vec<_> = between.filter(began).copied().collect();
        if there.len() > 1 {
            there.retain(|(at, _)| connections[*at].frames.last >= frame);
        }
        (there.len() == 1).then(|| there[0])
    }
}

pub(crate) const SIDES: [&str; 2] = ["client", "server"];

/// What was said, in a sentence: `router 10.92.2.254 said 3 times: too large, the next hop takes 1,320 bytes (..)`.
pub(crate) fn said(errors: &IcmpErrors) -> String {
    let times = match errors.count {
        1 => String::new(),
        count => format!(" {}", said::times(count)),
    };
    let what = match (&*errors.kind, errors.mtu) {
        ("too_big", Some(mtu)) => {
            format!("too large, the next hop takes {} bytes", said::grouped(u64::from(mtu)))
        }
        ("too_big", None) => "too large for the next hop".to_owned(),
        (kind, _) => kind_in_words(kind).to_owned(),
    };
    format!("{} {} said{times}: {what} ({})", who(errors), errors.from, term(errors))
}

/// What is known of who says it. The address of the destination itself may be a tunnel's end there, or a device that
/// answers in its name; without a destination it may be the same.
fn who(errors: &IcmpErrors) -> &'static str {
    match errors.destination {
        _ if errors.from == errors.source => "the sender's own host",
        Some(destination) if destination != errors.from => "router",
        _ => "device",
    }
}

/// The name that standards give it.
fn term(errors: &IcmpErrors) -> String {
    let name = match (&*errors.kind, errors.from) {
        ("too_big", IpAddr::V4(_)) => "fragmentation needed",
        ("too_big", IpAddr::V6(_)) => "packet too big",
        ("time_exceeded", _) => "time exceeded in transit",
        ("prohibited", _) => "administratively prohibited",
        ("source_quench", _) => "source quench",
        ("parameter_problem", _) => "parameter problem",
        ("redirect", _) => "redirect",
        ("reassembly_time_exceeded", _) => "fragment reassembly time exceeded",
        _ => "destination unreachable",
    };
    let protocol = if errors.from.is_ipv4() { "ICMP" } else { "ICMPv6" };
    format!("{protocol} {name}")
}

fn kind_in_words(kind: &str) -> &'static str {
    match kind {
        "net_unreachable" => "network unreachable, there is no route",
        "host_unreachable" => "host unreachable",
        "protocol_unreachable" => "protocol unreachable",
        "port_unreachable" => "port unreachable",
        "source_route_failed" => "the source route failed",
        "prohibited" => "prohibited by an administrator",
        "time_exceeded" => "the hop limit ran out there",
        "reassembly_time_exceeded" => "fragments never came",
        "source_quench" => "slow down",
        "parameter_problem" => "the header cannot be understood",
        "redirect" => "there is a better first hop",
        _ => "unreachable",
    }
}

/// What the sender did after a device had said that its segments are too large.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reaction {
    /// It retransmitted what was missing in segments of at most this many bytes, which fit.
    Smaller(u64),
    /// It retransmitted segments that do not fit: how many, and the bytes of the largest.
    AsLarge(u64, u64),
    /// It went on with such, and then with smaller ones.
    Late(u64, u64),
    /// It retransmitted what was missing in frames that its network card cuts, and nothing twice.
    Cut,
}

/// Whether what happened at `at_ns` in `frame` came behind the first of `errors`. The order of frames says so; times may be
/// those of the sender's own timeline.
pub(crate) fn is_behind(errors: &IcmpErrors, frame: u64, at_ns: i64) -> bool {
    if frame > 0 && errors.frames.first > 0 {
        return frame > errors.frames.first;
    }
    errors.first_ns.is_some_and(|first| at_ns >= first)
}

/// Payload that the next hop takes behind headers without options.
pub(crate) fn fits(errors: &IcmpErrors) -> Option<u64> {
    let headers = if errors.from.is_ipv4() { 40 } else { 60 };
    Some(u64::from(errors.mtu?.checked_sub(headers)?))
}

/// How `side` took `errors`; `None` where its retransmissions do not tell.
///
/// A segment with more payload than the next hop takes less 40 or 60 bytes of headers does not fit. One that is
/// larger than the connection's segments was captured before a network card cut it, and tells no size: but what was
/// sent so, once and for all, passed.
pub(crate) fn reaction(connection: &Connection, errors: &IcmpErrors) -> Option<Reaction> {
    let side = SIDES.iter().position(|side| Some(*side) == errors.about.as_deref())?;
    let fits = fits(errors)?;
    let largest = u64::from(connection.mss?);
    let direction = connection.directions[side].as_deref()?;
    let behind = |each: &&Retransmission| is_behind(errors, each.frame, each.at_ns);
    let (mut smaller, mut large) = (0, (0, 0));
    let (mut uncut, mut upto) = (0, i64::MIN);
    for each in direction.retransmissions.iter().filter(behind) {
        if each.bytes <= fits {
            smaller = smaller.max(each.bytes);
        } else if each.bytes <= largest {
            large = (large.0 + 1, each.bytes.max(large.1));
        } else {
            uncut += 1;
        }
        // Sent for the second time.
        if each.seq < upto {
            uncut = 0;
            upto = i64::MAX;
        }
        upto = upto.max(each.seq.saturating_add_unsigned(each.bytes));
    }
    match (smaller, large) {
        (0, (0, _)) => (uncut > 0).then_some(Reaction::Cut),
        (bytes, (0, _)) => Some(Reaction::Smaller(bytes)),
        (0, (count, bytes)) => Some(Reaction::AsLarge(count, bytes)),
        (smaller, (count, _)) => Some(Reaction::Late(count, smaller)),
    }
}

/// The same in words.
pub(crate) fn reaction_in_words(reaction: Reaction, side: &str) -> String {
    match reaction {
        Reaction::Smaller(bytes) => {
            format!("the {side} went on with segments of {} at most", said::bytes(bytes))
        }
        Reaction::AsLarge(count, bytes) => format!(
            "the {side} ignored it: it sent {} again that are too large, of up to {} (its host may filter ICMP)",
            said::count(count, "segment"),
            said::bytes(bytes)
        ),
        Reaction::Late(count, bytes) => format!(
            "the {side} first sent {} again that are too large, then segments of {} at most",
            said::count(count, "segment"),
            said::bytes(bytes)
        ),
        Reaction::Cut => format!(
            "the {side} sent it again in large frames, which its network card cuts, and nothing a second time"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample::connection;
    use crate::wire::Quoted;
    use tcpwhy_words::units::Seq;

    fn error(from: &str, to: &str, frame: u64) -> IcmpError {
        let end = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let (source, destination) = (end(from), end(to));
        IcmpError {
            time: Time::from_rfc3339("2026-11-21T10:45:49.151409000Z").expect("a time"),
            frame,
            network: 0,
            from: IpAddr::from([10, 0, 0, 254]),
            to: source.ip(),
            kind: IcmpKind::TooBig,
            mtu: Some(1_320),
            quoted: Quoted {
                source: source.ip(),
                destination: Some(destination.ip()),
                ports: Some([source.port(), destination.port()]),
                seq: Some(Seq(7)),
                bytes: Some(1_500),
            },
        }
    }

    fn two() -> Vec<Connection> {
        let mut both = vec![
            connection(0, "10.0.0.1:4000", "10.0.0.2:80", 1_000),
            connection(1, "10.0.0.1:4001", "10.0.0.2:80", 1_000),
        ];
        (both[0].frames, both[1].frames) =
            (FrameRange { first: 1, last: 20 }, FrameRange { first: 30, last: 50 });
        both
    }

    /// Which connection each error went to, with whose packet it is.
    fn given(errors: &[IcmpError]) -> (Vec<(u64, String)>, usize) {
        let mut all = Errors::default();
        for error in errors {
            all.take(error);
        }
        let mut connections = two();
        let others = all.attach(&mut connections).len();
        let of = |c: &Connection| {
            let id = c.id;
            c.icmp
                .iter()
                .map(move |e| (id, e.about.clone().unwrap_or_default().into_owned()))
                .collect::<Vec<_>>()
        };
        (connections.iter().flat_map(of).collect(), others)
    }

    #[test]
    fn an_error_belongs_to_the_connection_that_it_quotes() {
        let (given, others) = given(&[
            error("10.0.0.2:80", "10.0.0.1:4001", 40),
            error("10.0.0.1:4000", "10.0.0.2:80", 5),
            error("10.0.0.9:80", "10.0.0.8:4001", 40),
        ]);
        assert_eq!(given, [(0, "client".to_owned()), (1, "server".to_owned())]);
        assert_eq!(others, 1);
    }

    #[test]
    fn of_the_same_ends_in_two_networks_the_one_is_meant_where_it_was_seen() {
        let [mut near, mut far] =
            [0, 1].map(|id| connection(id, "10.0.0.1:4000", "10.0.0.2:80", 1_000));
        (near.network, far.network) = (7, 9);
        let given = |network| {
            let mut errors = Errors::default();
            errors.take(&IcmpError { network, ..error("10.0.0.2:80", "10.0.0.1:4000", 40) });
            let mut both = [near.clone(), far.clone()];
            errors.attach(&mut both);
            both.map(|connection| connection.icmp.len())
        };
        assert_eq!((given(7), given(9)), ([1, 0], [0, 1]));
        assert_eq!(given(0), [0, 1], "seen in neither: the ends alone tell");
    }

    #[test]
    fn behind_a_rewritten_address_its_ports_tell_it() {
        let mut inside = error("192.168.1.9:80", "172.16.0.7:4001", 40);
        inside.to = IpAddr::from([10, 0, 0, 2]);
        assert_eq!(given(&[inside]).0, [(1, "server".to_owned())]);
        inside.to = IpAddr::from([10, 0, 0, 3]);
        assert_eq!(given(&[inside]), (vec![], 1), "it went to somebody else");
    }

    #[test]
    fn without_ports_only_one_connection_may_be_meant() {
        let mut bare = error("10.0.0.2:80", "10.0.0.1:4001", 5);
        bare.quoted.ports = None;
        assert_eq!(given(&[bare]).0, [(0, "server".to_owned())], "the other began later");
        bare.frame = 60;
        assert_eq!(given(&[bare]).1, 1, "either may be meant");
        bare.frame = 40;
        assert_eq!(given(&[bare]).0, [(1, "server".to_owned())]);
    }

    #[test]
    fn errors_alike_are_counted_and_memory_is_bounded() {
        let mut errors = Errors::default();
        for frame in 0..100 {
            errors.take(&error("10.0.0.2:80", "10.0.0.1:4001", frame + 30));
        }
        let mut connections = two();
        errors.attach(&mut connections);
        let told = &connections[1].icmp[0];
        assert_eq!((told.count, told.quoted.len()), (100, QUOTED));
        assert_eq!((told.frames.first, told.frames.last), (30, 129));
        assert_eq!(told.first_ns, Some(100_000_000));
        for port in 0..5_000 {
            errors.take(&error(&format!("10.0.0.2:{port}"), "10.0.0.1:9", 1));
        }
        assert_eq!((errors.heard.len(), errors.more()), (MOST, 5_001 - MOST as u64));
    }

    #[test]
    fn the_sentence_names_who_said_it_and_what_fits() {
        let mut connections = two();
        let mut errors = Errors::default();
        errors.take(&error("10.0.0.2:80", "10.0.0.1:4001", 40));
        errors.attach(&mut connections);
        let told = said(&connections[1].icmp[0]);
        let expected = "router 10.0.0.254 said: too large, the next hop takes 1,320 bytes (ICMP fragmentation needed)";
        assert_eq!(told, expected);
    }
}
