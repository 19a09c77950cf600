//! Whose is a connection? What was seen of sockets and their holders, and what follows for packets.
//!
//! A connection has up to two ends on this machine, each with a socket. It is wanted as soon as one
//! of them is held by the processes that are recorded, and left out only if every end on this machine
//! is provably somebody else's: its socket was there before the command began, or another process was
//! seen to hold it. A short connection whose socket nobody saw stays in: to lose one of the command's
//! is worse than to keep one of a stranger's.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};

/// Connections whose programs are written. Ours: bounds the attachment, at some 100 bytes each.
const MOST_PROGRAMS: usize = 10_000;

/// Whose socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Whose {
    /// Of the processes that are recorded.
    Ours,
    /// Of others.
    Theirs,
}

/// What is known of sockets, by their local and other end.
#[derive(Debug, Default)]
pub(super) struct Owners {
    sockets: BTreeMap<[SocketAddr; 2], Whose>,
    /// Ports that others listen at: what is accepted there is theirs, too.
    listening: BTreeMap<SocketAddr, Whose>,
    /// Addresses of this machine.
    here: Vec<IpAddr>,
    /// The program that holds a socket of ours.
    programs: BTreeMap<[SocketAddr; 2], String>,
}

impl Owners {
    /// Knows no socket yet; `here` are the addresses of this machine.
    pub(super) fn new(here: Vec<IpAddr>) -> Self {
        Self { here, ..Self::default() }
    }

    /// A socket is `whose`. Who holds one of ours as well does not make it theirs.
    pub(super) fn learn(&mut self, ends: [SocketAddr; 2], whose: Whose, listens: bool) {
        let known = if listens {
            self.listening.entry(ends[0]).or_insert(whose)
        } else {
            self.sockets.entry(ends).or_insert(whose)
        };
        if whose == Whose::Ours {
            *known = whose;
        }
    }

    /// This program holds the socket.
    pub(super) fn name(&mut self, ends: [SocketAddr; 2], program: &str) {
        self.programs.entry(ends).or_insert_with(|| program.to_owned());
    }

    /// The programs that hold the sockets of a connection, with the local end of each.
    pub(super) fn programs(&self, [a, b]: [SocketAddr; 2]) -> Vec<(SocketAddr, &str)> {
        let of = |ends: [SocketAddr; 2]| Some((ends[0], self.programs.get(&ends)?.as_str()));
        [of([a, b]), of([b, a])].into_iter().flatten().collect()
    }

    /// The program at each end of these connections that one was seen to hold.
    pub(super) fn told<'a>(
        &self,
        connections: impl Iterator<Item = &'a [SocketAddr; 2]>,
    ) -> Vec<Value> {
        let told = connections.flat_map(|ends| {
            self.programs(*ends).into_iter().map(|(local, program)| {
                let peer = if local == ends[0] { ends[1] } else { ends[0] };
                json!({"local": local, "peer": peer, "program": program})
            })
        });
        told.take(MOST_PROGRAMS).collect()
    }

    /// Whether it is known whose this socket is.
    pub(super) fn know(&self, ends: [SocketAddr; 2]) -> bool {
        self.sockets.contains_key(&ends)
    }

    /// Whether a connection is recorded.
    pub(super) fn want(&self, ends: [SocketAddr; 2]) -> bool {
        let [a, b] = ends;
        let sides = [(a, b), (b, a)].map(|(local, peer)| {
            let is_here = self.is_here(local.ip());
            // Who listens at any address listens at those of this machine.
            let accepts = || self.listener(local).filter(|_| is_here);
            (is_here, self.sockets.get(&[local, peer]).copied().or_else(accepts))
        });
        if sides.iter().any(|(_, whose)| *whose == Some(Whose::Ours)) {
            return true;
        }
        // What neither end of is here (a router's) belongs to no process of this machine.
        let mut here =
            sides.iter().filter(|(is_here, whose)| *is_here || whose.is_some()).peekable();
        here.peek().is_some() && here.any(|(_, whose)| *whose != Some(Whose::Theirs))
    }

    /// Whether the processes that are recorded were seen to hold an end.
    pub(super) fn are_ours(&self, [a, b]: [SocketAddr; 2]) -> bool {
        [[a, b], [b, a]].iter().any(|ends| self.sockets.get(ends) == Some(&Whose::Ours))
    }

    /// Whose listening socket has this local end, or any address with its port.
    fn listener(&self, local: SocketAddr) -> Option<Whose> {
        let any = |ip| SocketAddr::new(ip, local.port());
        let v4 = any(IpAddr::from([0; 4]));
        let v6 = any(IpAddr::from([0_u16; 8]));
        [local, v4, v6].iter().find_map(|end| self.listening.get(end)).copied()
    }

    /// Where the addresses of this machine are not known, every address may be one.
    fn is_here(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.here.is_empty() || self.here.contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "192.0.2.1:40000";
    const SERVER: &str = "198.51.100.7:443";

    fn ends(a: &str, b: &str) -> [SocketAddr; 2] {
        [a, b].map(|end| end.parse().expect("an address"))
    }

    fn owners() -> Owners {
        Owners::new(vec!["192.0.2.1".parse().expect("an address")])
    }

    #[test]
    fn what_nobody_saw_stays_in() {
        assert!(owners().want(ends(HERE, SERVER)));
        assert!(owners().want(ends(SERVER, HERE)), "whichever sent the packet");
    }

    #[test]
    fn what_another_process_holds_is_left_out() {
        let mut owners = owners();
        owners.learn(ends(HERE, SERVER), Whose::Theirs, false);
        assert!(!owners.want(ends(HERE, SERVER)));
        assert!(!owners.want(ends(SERVER, HERE)));
        assert!(owners.want(ends("192.0.2.1:40001", SERVER)), "another one");
    }

    #[test]
    fn what_ours_holds_as_well_stays_in() {
        let mut owners = owners();
        owners.learn(ends(HERE, SERVER), Whose::Ours, false);
        owners.learn(ends(HERE, SERVER), Whose::Theirs, false);
        assert!(owners.want(ends(HERE, SERVER)));
    }

    #[test]
    fn over_loopback_one_end_that_may_be_ours_is_enough() {
        let (client, server) = ("127.0.0.1:40000", "127.0.0.1:80");
        let mut owners = owners();
        owners.learn(ends(server, client), Whose::Theirs, false);
        assert!(owners.want(ends(client, server)), "whose the client is nobody saw");
        owners.learn(ends(client, server), Whose::Theirs, false);
        assert!(!owners.want(ends(client, server)));
    }

    #[test]
    fn what_others_accept_is_theirs() {
        let mut owners = owners();
        owners.learn(ends("0.0.0.0:22", "0.0.0.0:0"), Whose::Theirs, true);
        assert!(!owners.want(ends("198.51.100.9:50000", "192.0.2.1:22")));
        assert!(owners.want(ends("198.51.100.9:50000", "192.0.2.1:23")));
        assert!(owners.want(ends("127.0.0.1:50000", "127.0.0.1:22")), "its client may be ours");
    }

    #[test]
    fn what_goes_to_another_machine_s_port_is_not_accepted_here() {
        let mut owners = owners();
        owners.learn(ends("0.0.0.0:443", "0.0.0.0:0"), Whose::Ours, true);
        owners.learn(ends(HERE, SERVER), Whose::Theirs, false);
        assert!(!owners.want(ends(HERE, SERVER)));
        assert!(!owners.want(ends("203.0.113.1:1", SERVER)), "nor what only passes through");
        assert!(owners.want(ends("192.0.2.1:443", "198.51.100.9:50000")));
    }

    #[test]
    fn who_was_seen_first_at_an_end_names_it() {
        let mut owners = owners();
        owners.name(ends(HERE, SERVER), "curl");
        owners.name(ends(HERE, SERVER), "sh");
        let here = HERE.parse().expect("an address");
        assert_eq!(owners.programs(ends(SERVER, HERE)), [(here, "curl")]);
        assert_eq!(owners.programs(ends("192.0.2.1:40001", SERVER)), []);
    }

    #[test]
    fn what_only_passes_through_is_left_out() {
        assert!(!owners().want(ends("203.0.113.1:1", "203.0.113.2:2")));
    }
}
