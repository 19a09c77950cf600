//! Ends of sockets that are printed by name: `ss` without `-n`, `ss -r`, `netstat -at`.
//!
//! A service that everybody knows has its port. Other ends get an address from 240.0.0.0/4, which no host
//! has (RFC 1112 section 4), and the name is put back into what is said of it.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::BTreeMap;

use tcpwhy_words::printed::address;

/// The most names that are kept. Ours: a table of a few thousand sockets is read by nobody.
const MOST: u32 = 4096;

/// 240.0.0.1.
const FIRST: u32 = 0xf000_0001;

/// Ends by name so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    given: BTreeMap<String, IpAddr>,
}

impl Names {
    /// The end that a word names; `None` if it is none, or of too many.
    pub(super) fn end(&mut self, word: &str) -> Option<SocketAddr> {
        if let Some(end) = address::read(word) {
            return Some(end);
        }
        let (host, service) = word.rsplit_once(':')?;
        let plain = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        };
        match port(service) {
            Some(port) => {
                if let Some(end) = address::read(&format!("{host}:{port}")) {
                    return Some(end);
                }
                let ip = if host == "localhost" {
                    Ipv4Addr::LOCALHOST.into()
                } else {
                    self.placed(plain(host).then_some(host)?)?
                };
                Some(SocketAddr::new(ip, port))
            }
            None if plain(service) => {
                let is_host = plain(host) || address::read(&format!("{host}:0")).is_some();
                Some(SocketAddr::new(self.placed(is_host.then_some(word)?)?, 0))
            }
            None => None,
        }
    }

    /// An end that is not told, under words for it.
    pub(super) fn untold(&mut self, words: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.placed(words)?, 0))
    }

    /// Whether an end was given its address here.
    pub(super) fn is_placed(&self, end: SocketAddr) -> bool {
        let IpAddr::V4(ip) = end.ip() else { return false };
        let nth = ip.to_bits().wrapping_sub(FIRST);
        usize::try_from(nth).is_ok_and(|nth| nth < self.given.len())
    }

    fn placed(&mut self, name: &str) -> Option<IpAddr> {
        if let Some(ip) = self.given.get(name) {
            return Some(*ip);
        }
        let nth = u32::try_from(self.given.len()).ok().filter(|nth| *nth < MOST)?;
        let ip = Ipv4Addr::from_bits(FIRST + nth).into();
        self.given.insert(name.to_owned(), ip);
        Some(ip)
    }

    /// The name of each address.
    pub(super) fn into_named(self) -> BTreeMap<IpAddr, String> {
        self.given.into_iter().map(|(name, ip)| (ip, name)).collect()
    }
}

/// A port by its number or by the name that IANA gave it (RFC 6335), as /etc/services has it.
pub(super) fn port(text: &str) -> Option<u16> {
    text.parse().ok().or_else(|| SERVICES.iter().find(|(name, _)| *name == text).map(|(_, p)| *p))
}

const SERVICES: [(&str, u16); 44] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("http", 80),
    ("www", 80),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("nntp", 119),
    ("netbios-ssn", 139),
    ("imap2", 143),
    ("imap", 143),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("submissions", 465),
    ("rtsp", 554),
    ("submission", 587),
    ("ldaps", 636),
    ("rsync", 873),
    ("domain-s", 853),
    ("imaps", 993),
    ("pop3s", 995),
    ("openvpn", 1194),
    ("ms-sql-s", 1433),
    ("nfs", 2049),
    ("iscsi-target", 3260),
    ("mysql", 3306),
    ("ms-wbt-server", 3389),
    ("postgresql", 5432),
    ("amqp", 5672),
    ("x11", 6000),
    ("redis", 6379),
    ("http-alt", 8080),
    ("webcache", 8080),
    ("bacula-fd", 9102),
    ("git", 9418),
    ("zabbix-agent", 10050),
    ("mongodb", 27017),
    ("isns", 3205),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_their_ports_and_hosts_a_place() {
        let mut names = Names::default();
        let end = |names: &mut Names, word: &str| names.end(word).map(|end| end.to_string());
        assert_eq!(end(&mut names, "192.0.2.1:https").as_deref(), Some("192.0.2.1:443"));
        assert_eq!(end(&mut names, "[2001:db8::1]:ssh").as_deref(), Some("[2001:db8::1]:22"));
        assert_eq!(end(&mut names, "localhost:5432").as_deref(), Some("127.0.0.1:5432"));
        let web = end(&mut names, "web-1.example:https");
        assert_eq!(web.as_deref(), Some("240.0.0.1:443"));
        assert_eq!(end(&mut names, "web-1.example:https"), web);
        assert_eq!(end(&mut names, "192.0.2.1:oddity").as_deref(), Some("240.0.0.2:0"));
        for none in ["*:*", "0.0.0.0:*", "users:((\"x\"", "plain", ":80", "[x]:y"] {
            assert_eq!(end(&mut names, none), None, "{none}");
        }
        let named = names.into_named();
        assert_eq!(
            named.values().map(String::as_str).collect::<Vec<_>>(),
            ["web-1.example", "192.0.2.1:oddity"]
        );
    }
}
