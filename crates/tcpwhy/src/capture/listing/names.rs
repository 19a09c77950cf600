//! Host and service names in place of numbers, as `tcpdump` prints them without `-n`.
//!
//! A host name gets an address of no host: in 240.0.0.0/4 (reserved, RFC 1112 §4) for IPv4,
//! in `3fff::/20` (documentation, RFC 9637) for IPv6. A service gets its registered port, or one of
//! the dynamic ports (49152 on, RFC 6335 §6) when it is not in the table. Both come from a hash of
//! the name, the next free one if that is taken; [`Names`] tells the names back.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeMap;

/// Names remembered of each sort. Ours: a listing is written by one host with one resolver cache.
const REMEMBERED: usize = 65_536;

/// The dynamic ports (RFC 6335 §6).
const DYNAMIC: u64 = 49_152;
const COUNT: u64 = 65_536 - DYNAMIC;

/// What the synthetic addresses of a listing stand for.
#[derive(Clone, Debug, Default)]
pub struct Names {
    hosts: BTreeMap<IpAddr, String>,
    addresses: BTreeMap<(bool, String), IpAddr>,
    services: BTreeMap<SocketAddr, String>,
    ports: BTreeMap<String, u16>,
    taken: BTreeMap<u16, String>,
}

impl Names {
    /// The host name that was printed for `address`; `None` where the address itself was.
    pub fn host(&self, address: IpAddr) -> Option<&str> {
        self.hosts.get(&address).map(String::as_str)
    }

    /// The service name that was printed, where no port number is known for it.
    pub fn service(&self, address: SocketAddr) -> Option<&str> {
        self.services.get(&address).map(String::as_str)
    }

    /// Host names and the addresses that stand for them, in the order of the addresses.
    pub fn hosts(&self) -> impl Iterator<Item = (IpAddr, &str)> {
        self.hosts.iter().map(|(&address, name)| (address, name.as_str()))
    }

    /// Takes over the names of `other`. Where both have one, the name of `self` stays.
    pub fn merge(&mut self, other: &Self) {
        for (&address, name) in &other.hosts {
            self.hosts.entry(address).or_insert_with(|| name.clone());
        }
        for (&address, name) in &other.services {
            self.services.entry(address).or_insert_with(|| name.clone());
        }
    }

    /// `address` with the names of the listing, where it has any for it.
    pub fn name(&self, address: SocketAddr) -> Option<String> {
        let named = self.host(address.ip()).is_some() || self.service(address).is_some();
        named.then(|| self.show(address))
    }

    /// `address` as people know it: with the names of the listing where it has them.
    pub fn show(&self, address: SocketAddr) -> String {
        match (self.host(address.ip()), self.service(address)) {
            (None, None) => address.to_string(),
            (Some(host), None) => format!("{host}:{}", address.port()),
            (Some(host), Some(service)) => format!("{host}:{service}"),
            (None, Some(service)) => {
                let numeric = address.to_string();
                let host = numeric.rsplit_once(':').map_or("", |(host, _)| host);
                format!("{host}:{service}")
            }
        }
    }

    /// The address that `endpoint` has or gets.
    pub(super) fn resolve(&mut self, endpoint: Endpoint<'_>, v6: bool) -> SocketAddr {
        let ip = match endpoint.host {
            Host::Address(ip) => ip,
            Host::Name(name) => self.address(name, v6),
        };
        match endpoint.port {
            Port::Number(port) => SocketAddr::new(ip, port),
            Port::None => {
                let address = SocketAddr::new(ip, 0);
                if self.services.len() < REMEMBERED {
                    self.services.entry(address).or_insert_with(|| NO_PORT.to_owned());
                }
                address
            }
            Port::Service(name) => {
                let address = SocketAddr::new(ip, self.port(name));
                if self.services.len() < REMEMBERED {
                    self.services.entry(address).or_insert_with(|| name.to_owned());
                }
                address
            }
        }
    }

    fn address(&mut self, name: &str, v6: bool) -> IpAddr {
        let key = (v6, name.to_owned());
        if let Some(&known) = self.addresses.get(&key) {
            return known;
        }
        let mut hash = hash(name);
        let full = self.hosts.len() >= REMEMBERED;
        let address = loop {
            let address = if v6 { synthetic_v6(hash) } else { synthetic_v4(hash) };
            if full || !self.hosts.contains_key(&address) {
                break address;
            }
            hash = hash.wrapping_add(1);
        };
        if !full {
            self.hosts.insert(address, name.to_owned());
            self.addresses.insert(key, address);
        }
        address
    }

    fn port(&mut self, name: &str) -> u16 {
        if let Some(&known) = self.ports.get(name) {
            return known;
        }
        let mut hash = hash(name);
        // At most half the range is given away, so that the search stays short.
        let full = self.taken.len() as u64 >= COUNT / 2;
        let port = loop {
            let port = (DYNAMIC + hash % COUNT) as u16;
            if full || !self.taken.contains_key(&port) {
                break port;
            }
            hash = hash.wrapping_add(1);
        };
        if !full {
            self.taken.insert(port, name.to_owned());
            self.ports.insert(name.to_owned(), port);
        }
        port
    }
}

/// One end of a connection as printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Endpoint<'a> {
    host: Host<'a>,
    port: Port<'a>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Host<'a> {
    Address(IpAddr),
    Name(&'a str),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Port<'a> {
    Number(u16),
    Service(&'a str),
    /// Not printed.
    None,
}

/// The text in place of a port that was not printed.
const NO_PORT: &str = "?";

impl<'a> Endpoint<'a> {
    /// Reads `192.168.1.1.80`, `::1.80`, `test.33928` or `www.example.com.http`; `None` for an
    /// address without a port, and for what is neither.
    pub(super) fn read(word: &'a str) -> Option<Self> {
        if word.len() > 300 || word.parse::<IpAddr>().is_ok() {
            return None;
        }
        let (host, port) = word.rsplit_once('.')?;
        Self::of(host, port)
    }

    /// Reads host and port where they are printed apart.
    pub(super) fn of(host: &'a str, port: &'a str) -> Option<Self> {
        Some(Self { host: Host::read(host)?, port: Port::read(port)? })
    }

    /// Reads a host whose port was left out.
    pub(super) fn without_port(word: &'a str) -> Option<Self> {
        let has_letters = word.bytes().any(|b| b.is_ascii_alphabetic());
        let host =
            Host::read(word).filter(|host| has_letters || matches!(host, Host::Address(_)))?;
        Some(Self { host, port: Port::None })
    }

    /// Whether its port was left out.
    pub(super) fn lacks_port(&self) -> bool {
        self.port == Port::None
    }

    /// Address and port, where both are printed as such.
    pub(super) const fn literal(&self) -> Option<(IpAddr, u16)> {
        match (self.host, self.port) {
            (Host::Address(ip), Port::Number(port)) => Some((ip, port)),
            _ => None,
        }
    }

    /// Whether this is an IPv6 address; `None` for a name.
    pub(super) fn is_v6(&self) -> Option<bool> {
        match self.host {
            Host::Address(ip) => Some(ip.is_ipv6()),
            Host::Name(_) => None,
        }
    }
}

impl<'a> Host<'a> {
    fn read(word: &'a str) -> Option<Self> {
        if word.len() > 300 {
            return None;
        }
        // A zone (`fe80::1%eth0`) is no part of the address.
        let plain = word.split_once('%').map_or(word, |(address, _)| address);
        match plain.parse() {
            Ok(address) => Some(Self::Address(address)),
            Err(_) => is_name(word).then_some(Self::Name(word)),
        }
    }
}

impl<'a> Port<'a> {
    fn read(word: &'a str) -> Option<Self> {
        if let Ok(number) = word.parse() {
            return Some(Self::Number(number));
        }
        if !is_name(word) || word.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(match SERVICES.binary_search_by_key(&word, |&(name, _)| name) {
            Ok(at) => Self::Number(SERVICES.get(at)?.1),
            Err(_) => Self::Service(word),
        })
    }
}

fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+');
    !text.is_empty() && text.bytes().all(plain)
}

/// 240.0.0.0 to 255.255.255.254.
fn synthetic_v4(hash: u64) -> IpAddr {
    let low = (hash ^ (hash >> 32)) as u32 % 0x0fff_ffff;
    IpAddr::V4(Ipv4Addr::from_bits(0xf000_0000 + low))
}

/// Out of `3fff::/64`.
fn synthetic_v6(hash: u64) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits((0x3fff << 112) | u128::from(hash)))
}

/// FNV-1a with 64 bits: short, and the same everywhere.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// TCP services by the names of Debian 12's `/etc/services` and of the IANA registry, which other
/// systems ship, in order of the name.
const SERVICES: [(&str, u16); 104] = [
    ("XmlIpcRegSvc", 9092),
    ("amqp", 5672),
    ("amqps", 5671),
    ("auth", 113),
    ("bacula-dir", 9101),
    ("bgp", 179),
    ("chargen", 19),
    ("commplex-main", 5000),
    ("cslistener", 9000),
    ("cvspserver", 2401),
    ("daytime", 13),
    ("ddi-tcp-1", 8888),
    ("discard", 9),
    ("distcc", 3632),
    ("domain", 53),
    ("domain-s", 853),
    ("echo", 7),
    ("eforward", 2181),
    ("epmap", 135),
    ("etlservicemgr", 9001),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("git", 9418),
    ("gopher", 70),
    ("gsiftp", 2811),
    ("hbci", 3000),
    ("hp-pdl-datastr", 9100),
    ("http", 80),
    ("http-alt", 8080),
    ("http-proxy", 8080),
    ("https", 443),
    ("ident", 113),
    ("imap", 143),
    ("imap2", 143),
    ("imaps", 993),
    ("intermapper", 8181),
    ("ipp", 631),
    ("irc", 194),
    ("ircd", 6667),
    ("iscsi-target", 3260),
    ("jetdirect", 9100),
    ("kerberos", 88),
    ("kerberos4", 750),
    ("klogin", 543),
    ("kshell", 544),
    ("ldap", 389),
    ("ldaps", 636),
    ("loc-srv", 135),
    ("login", 513),
    ("microsoft-ds", 445),
    ("mqtt", 1883),
    ("ms-sql-m", 1434),
    ("ms-sql-s", 1433),
    ("ms-wbt-server", 3389),
    ("munin", 4949),
    ("mysql", 3306),
    ("nbd", 10_809),
    ("netbios-ssn", 139),
    ("nfs", 2049),
    ("nntp", 119),
    ("nrpe", 5666),
    ("openvpn", 1194),
    ("pcsync-https", 8443),
    ("pop3", 110),
    ("pop3s", 995),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("printer", 515),
    ("puppet", 8140),
    ("radius", 1812),
    ("redis", 6379),
    ("rsync", 873),
    ("rtmp", 1935),
    ("rtsp", 554),
    ("secure-mqtt", 8883),
    ("shell", 514),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("smtp", 25),
    ("snmp", 161),
    ("socks", 1080),
    ("ssh", 22),
    ("submission", 587),
    ("submissions", 465),
    ("sun-answerbook", 8888),
    ("sunrpc", 111),
    ("svn", 3690),
    ("tacacs", 49),
    ("targus-getdata1", 5201),
    ("telnet", 23),
    ("terabase", 4000),
    ("time", 37),
    ("tproxy", 8081),
    ("us-cli", 8082),
    ("wap-wsp", 9200),
    ("webcache", 8080),
    ("whois", 43),
    ("x11", 6000),
    ("x11-1", 6001),
    ("xmpp-client", 5222),
    ("xmpp-server", 5269),
    ("zabbix-agent", 10_050),
    ("zabbix-trapper", 10_051),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(names: &mut Names, word: &str, v6: bool) -> SocketAddr {
        names.resolve(Endpoint::read(word).expect(word), v6)
    }

    #[test]
    fn the_service_table_is_in_order() {
        assert!(SERVICES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn numeric_ends_are_themselves() {
        let mut names = Names::default();
        for (word, address) in [
            ("192.168.1.1.80", "192.168.1.1:80"),
            ("220.181.38.149.http", "220.181.38.149:80"),
            ("::1.443", "[::1]:443"),
            ("2001:db8::1.https", "[2001:db8::1]:443"),
            ("::ffff:10.0.0.1.22", "[::ffff:10.0.0.1]:22"),
            ("fe80::1%eth0.22", "[fe80::1]:22"),
        ] {
            let found = resolved(&mut names, word, false);
            assert_eq!(found, address.parse().expect(address), "{word}");
            assert_eq!(names.show(found), address);
        }
    }

    #[test]
    fn names_keep_one_address_and_can_be_told_back() {
        let mut names = Names::default();
        let client = resolved(&mut names, "test.33928", false);
        let server = resolved(&mut names, "www.example.com.http", false);
        assert_eq!(resolved(&mut names, "test.33928", false), client);
        assert_ne!(client.ip(), server.ip());
        assert!(matches!(client.ip(), IpAddr::V4(ip) if ip.octets()[0] >= 240));
        assert_eq!((server.port(), client.port()), (80, 33928));
        assert_eq!(names.show(client), "test:33928");
        assert_eq!(names.host(server.ip()), Some("www.example.com"));
        assert!(resolved(&mut names, "test.33928", true).is_ipv6());
    }

    #[test]
    fn an_unknown_service_gets_a_dynamic_port_of_its_own() {
        let mut names = Names::default();
        let ports: std::collections::BTreeSet<u16> =
            (0..2_000).map(|n| resolved(&mut names, &format!("a.svc{n}"), false).port()).collect();
        assert_eq!(ports.len(), 2_000);
        assert!(ports.iter().all(|&port| port >= 49_152));
        let address = resolved(&mut names, "10.0.0.1.svc7", false);
        assert_eq!(names.show(address), "10.0.0.1:svc7");
    }

    #[test]
    fn an_address_without_port_is_no_end() {
        for word in
            ["10.0.0.1", "::1", "::ffff:1.2.3.4", "localhost", "", ".", "a.", "a.99999", "a,b.1"]
        {
            assert_eq!(Endpoint::read(word), None, "{word}");
        }
    }

    #[test]
    fn a_port_that_was_left_out_is_said_to_be_unknown() {
        let mut names = Names::default();
        for (word, shown) in [("clnt", "clnt:?"), ("10.0.0.1", "10.0.0.1:?"), ("::1", "[::1]:?")] {
            let address = names.resolve(Endpoint::without_port(word).expect(word), false);
            assert_eq!((address.port(), names.show(address).as_str()), (0, shown));
        }
        assert_eq!(Endpoint::without_port("123"), None);
        assert_eq!(Endpoint::without_port("a,b"), None);
    }
}
