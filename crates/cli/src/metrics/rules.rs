//! Which label a port, a peer and a control group get, as a file in TOML says:
//!
//! ```toml
//! groups = 200                  # sets of labels at most
//! cgroup_depth = 3              # parts of a control group's path that are kept
//! [ports]
//! web = [80, "8000-8099"]
//! [peers]
//! office = ["10.1.0.0/16", "2001:db8::/32"]
//! database = [":5432"]
//! [cgroups]
//! shop = ["/system.slice/shop"]
//! ```

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

use tcpwhy::manual::distance;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::groups::{OTHER, label};

/// Ours: a hundred sets of labels are some 10,000 series (`docs/metrics.md`).
const GROUPS: usize = 100;

/// Ours: with this many sets a page has some 100 MB, and a scrape takes seconds.
const MOST_GROUPS: usize = 100_000;

/// Ours: a unit of systemd, and the class of a pod in Kubernetes (`/kubepods.slice/kubepods-burstable.slice`).
const CGROUP_DEPTH: usize = 2;

/// A path has no more parts that a kernel takes (`cgroup.max.depth` of its root is `max`; ours).
const MOST_DEPTH: usize = 32;

/// Bytes that a file of rules has at most. Ours: some 20,000 networks.
const MOST_BYTES: usize = 1 << 20;

/// Which label what gets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rules {
    /// Sets of labels at most.
    pub groups: usize,
    cgroup_depth: usize,
    ports: Vec<(String, RangeInclusive<u16>)>,
    peers: Vec<(String, Peer)>,
    cgroups: Vec<(String, String)>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            groups: GROUPS,
            cgroup_depth: CGROUP_DEPTH,
            ports: Vec::new(),
            peers: Vec::new(),
            cgroups: Vec::new(),
        }
    }
}

/// What is wrong with a file of rules; reads well after "cannot read rules.toml: ".
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("line {line}: {what}")]
pub struct RulesError {
    /// From 1.
    pub line: usize,
    /// What, and what to write instead.
    pub what: String,
}

impl Rules {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// With the line, where it is no TOML, or a key or a value is none of those that there are.
    pub fn read(text: &str) -> Result<Self, RulesError> {
        let at_line = |(at, what): Wrong| {
            let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
            RulesError { line, what }
        };
        if text.len() > MOST_BYTES {
            let what = format!("it has {} bytes; rules have at most {MOST_BYTES}", text.len());
            return Err(at_line((0, what)));
        }
        let table = DeTable::parse(text).map_err(|error| {
            let said = error.message().lines().collect::<Vec<_>>().join(", ");
            at_line((error.span().unwrap_or_default().start, said))
        })?;
        let mut rules = Self::default();
        for (key, value) in table.get_ref() {
            rules.set(key, value).map_err(at_line)?;
        }
        Ok(rules)
    }

    fn set(&mut self, key: &Spanned<Text<'_>>, value: &Spanned<DeValue<'_>>) -> Result<(), Wrong> {
        match key.get_ref().as_ref() {
            "groups" => self.groups = number(value, "groups", 1, MOST_GROUPS)?,
            "cgroup_depth" => self.cgroup_depth = number(value, "cgroup_depth", 0, MOST_DEPTH)?,
            "ports" => self.ports = named(value, "ports", "web = [80, 443]", port)?,
            "peers" => {
                self.peers = named(value, "peers", "office = [\"10.1.0.0/16\"]", peer)?;
                // The narrowest says most; equal ones as they are written.
                self.peers.sort_by_key(|(_, peer)| core::cmp::Reverse(peer.narrow()));
            }
            "cgroups" => {
                let example = "shop = [\"/system.slice/shop.service\"]";
                self.cgroups = named(value, "cgroups", example, cgroup)?;
                self.cgroups.sort_by_key(|(_, path)| core::cmp::Reverse(path.len()));
            }
            unknown => return Err((key.span().start, unknown_key(unknown))),
        }
        Ok(())
    }

    /// The name that `port` of this host was given.
    pub fn port(&self, port: u16) -> Option<&str> {
        self.ports.iter().find(|(_, range)| range.contains(&port)).map(|(name, _)| name.as_str())
    }

    /// Whose the peer is: by the narrowest rule, else whether its address is one of the Internet.
    pub fn peer(&self, peer: SocketAddr) -> &str {
        let address = peer.ip().to_canonical();
        let by_rule = self.peers.iter().find(|(_, rule)| rule.has(address, peer.port()));
        by_rule.map_or_else(|| kind(address), |(name, _)| name.as_str())
    }

    /// What a control group's path is shown as.
    pub fn cgroup<'a>(&'a self, path: &'a str) -> &'a str {
        let is_in = |prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some((name, _)) = self.cgroups.iter().find(|(_, prefix)| is_in(prefix)) {
            return name;
        }
        let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
        let end = match self.cgroup_depth {
            0 => 0,
            depth => ends.clone().nth(depth - 1).unwrap_or(path.len()),
        };
        &path[..end]
    }
}

/// Where in the text, and what.
type Wrong = (usize, String);
type Text<'a> = std::borrow::Cow<'a, str>;

const KEYS: [&str; 5] = ["groups", "cgroup_depth", "ports", "peers", "cgroups"];

fn unknown_key(word: &str) -> String {
    let near = KEYS.iter().find(|known| distance(word, known) <= 2);
    let advice = near.map_or_else(
        || format!("known are {}", KEYS.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    format!("unknown key `{}`; {advice}", label(word))
}

fn number(
    value: &Spanned<DeValue<'_>>,
    key: &str,
    least: usize,
    most: usize,
) -> Result<usize, Wrong> {
    let wrong = || {
        (
            value.span().start,
            format!("`{key}` is a number from {least} to {most}: `{key} = {most}`"),
        )
    };
    let DeValue::Integer(integer) = value.get_ref() else { return Err(wrong()) };
    let number = usize::from_str_radix(&integer.as_str().replace('_', ""), integer.radix());
    number.ok().filter(|number| (least..=most).contains(number)).ok_or_else(wrong)
}

/// A table of names, each with one value or a list of them.
fn named<T>(
    value: &Spanned<DeValue<'_>>,
    key: &str,
    example: &str,
    read: fn(&DeValue<'_>) -> Result<T, String>,
) -> Result<Vec<(String, T)>, Wrong> {
    let DeValue::Table(table) = value.get_ref() else {
        return Err((
            value.span().start,
            format!("`{key}` is a table of names: write `[{key}]` and below it `{example}`"),
        ));
    };
    // By where they are written, whatever order the parser keeps.
    let mut rows: Vec<_> = table.iter().collect();
    rows.sort_by_key(|(name, _)| name.span().start);
    let mut all = Vec::new();
    for (name, value) in rows {
        let is_fit = !name.get_ref().is_empty() && *name.get_ref() == label(name.get_ref());
        if !is_fit || name.get_ref() == OTHER {
            let what = format!(
                "`{}` cannot be a name: one has 1 to 128 printable characters and is not `{OTHER}`",
                label(name.get_ref())
            );
            return Err((name.span().start, what));
        }
        let mut add = |value: &Spanned<DeValue<'_>>| {
            let read = read(value.get_ref()).map_err(|what| {
                (value.span().start, format!("{what}; write for example `{example}`"))
            })?;
            all.push((name.get_ref().to_string(), read));
            Ok::<_, Wrong>(())
        };
        match value.get_ref() {
            DeValue::Array(list) => list.iter().try_for_each(add)?,
            _ => add(value)?,
        }
    }
    Ok(all)
}

fn port(value: &DeValue<'_>) -> Result<RangeInclusive<u16>, String> {
    let text = match value {
        DeValue::Integer(integer) => integer.as_str().to_owned(),
        DeValue::String(text) => text.to_string(),
        _ => return Err("a port is a number, or a range in quotes".to_owned()),
    };
    let (low, high) = text.split_once('-').unwrap_or((&text, &text));
    let read = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    match (read(low), read(high)) {
        (Some(low), Some(high)) if low <= high => Ok(low..=high),
        _ => Err(format!("`{}` is no port from 1 to 65535, nor a range of them", label(&text))),
    }
}

fn cgroup(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) if text.starts_with('/') => Ok(text.trim_end_matches('/').to_owned()),
        _ => {
            Err("a control group is a path in quotes that begins with `/`, as in /proc/PID/cgroup"
                .to_owned())
        }
    }
}

/// Addresses, a port, or both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Peer {
    network: Option<(IpAddr, u8)>,
    port: Option<u16>,
}

fn peer(value: &DeValue<'_>) -> Result<Peer, String> {
    let DeValue::String(text) = value else {
        return Err("a peer is a network or a port in quotes".to_owned());
    };
    let no = || {
        format!(
            "`{}` is no network, port or both: an address may be followed by `/` and the length of its prefix (at most 32, of IPv6 128), then by `:` and a port",
            label(text)
        )
    };
    Peer::read(text).ok_or_else(no)
}

impl Peer {
    fn read(text: &str) -> Option<Self> {
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
        if let Some(after) = text.strip_prefix(':')
            && !text.starts_with("::")
        {
            return Some(Self { network: None, port: Some(port(after)?) });
        }
        if let Some((address, rest)) = text.split_once('/') {
            let address: IpAddr = address.parse().ok()?;
            let (length, to) = rest.split_once(':').map_or((rest, None), |(a, b)| (a, Some(b)));
            let length = length.parse().ok().filter(|length| *length <= bits(address))?;
            let port = match to {
                Some(text) => Some(port(text)?),
                None => None,
            };
            return Some(Self { network: Some((address, length)), port });
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self { network: Some((address, bits(address))), port: None });
        }
        let end: SocketAddr = text.parse().ok()?;
        Some(Self {
            network: Some((end.ip(), bits(end.ip()))),
            port: Some(port(&end.port().to_string())?),
        })
    }

    fn narrow(&self) -> (u32, bool) {
        let length = self.network.map_or(0, |(address, length)| {
            1 + if address.is_ipv4() { u32::from(length) + 96 } else { u32::from(length) }
        });
        (length, self.port.is_some())
    }

    fn has(&self, address: IpAddr, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
            && self.network.is_none_or(|network| is_in(address, network))
    }
}

const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_in(address: IpAddr, (network, length): (IpAddr, u8)) -> bool {
    match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let differ = one.to_bits() ^ other.to_bits();
            differ.checked_shr(32 - u32::from(length)).unwrap_or(0) == 0
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            let differ = one.to_bits() ^ other.to_bits();
            differ.checked_shr(128 - u32::from(length)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// What an address is where no rule names it: of this host, of a network that is not the Internet (RFC 1918, 3927, 4193, 4291,
/// 6598), or of the Internet.
fn kind(address: IpAddr) -> &'static str {
    let is_private = match address {
        IpAddr::V4(address) => {
            let is_shared = address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64;
            address.is_private() || address.is_link_local() || is_shared
        }
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    };
    match (address.is_loopback(), is_private) {
        (true, _) => "loopback",
        (_, true) => "private",
        _ => "public",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Rules::read(text).expect_err(text).to_string()
    }

    fn peer_of(rules: &Rules, peer: &str) -> String {
        rules.peer(peer.parse().expect("an end")).to_owned()
    }

    #[test]
    fn the_narrowest_rule_names_a_peer() {
        let rules = Rules::read(
            "[peers]\nwide = [\"10.0.0.0/8\", \"2001:db8::/32\"]\ndb = [\":5432\", \"10.9.0.0/16:5432\"]\none = \"10.1.2.3\"\n",
        )
        .expect("rules");
        assert_eq!(peer_of(&rules, "10.1.2.3:9"), "one");
        assert_eq!(peer_of(&rules, "10.1.2.4:9"), "wide");
        assert_eq!(peer_of(&rules, "10.9.2.4:5432"), "db");
        assert_eq!(peer_of(&rules, "10.1.2.4:5432"), "wide", "a network is narrower than a port");
        assert_eq!(peer_of(&rules, "203.0.113.4:5432"), "db");
        assert_eq!(peer_of(&rules, "[::ffff:10.1.2.3]:9"), "one");
        assert_eq!(peer_of(&rules, "[2001:db8:1::1]:9"), "wide");
        assert_eq!(peer_of(&rules, "[2001:db9::1]:9"), "public");
    }

    #[test]
    fn an_address_without_a_rule_is_of_a_kind() {
        let rules = Rules::default();
        for (peer, kind) in [
            ("127.0.0.1:1", "loopback"),
            ("[::1]:1", "loopback"),
            ("100.127.255.255:1", "private"),
            ("100.128.0.0:1", "public"),
            ("192.168.0.1:1", "private"),
            ("[fe80::1]:1", "private"),
            ("[fd00::1]:1", "private"),
            ("198.51.100.1:1", "public"),
        ] {
            assert_eq!(peer_of(&rules, peer), kind, "{peer}");
        }
    }

    #[test]
    fn a_path_is_cut_after_its_first_parts() {
        let rules = Rules::read("[cgroups]\nshop = [\"/system.slice/shop\"]\n").expect("rules");
        assert_eq!(rules.cgroup("/system.slice/nginx.service/a/b"), "/system.slice/nginx.service");
        assert_eq!(rules.cgroup("/system.slice/shop/worker"), "shop");
        assert_eq!(rules.cgroup("/system.slice/shopping"), "/system.slice/shopping");
        assert_eq!(rules.cgroup("/"), "/");
        assert_eq!(rules.cgroup(""), "");
        let none = Rules::read("cgroup_depth = 0\n").expect("rules");
        assert_eq!(none.cgroup("/system.slice"), "");
    }

    #[test]
    fn ports_have_names_by_number_and_range() {
        let rules =
            Rules::read("[ports]\nweb = [80, \"8000-8099\"]\ngrpc = 50051\n").expect("rules");
        let named = [80, 8000, 8099, 8100, 50051].map(|port| rules.port(port));
        assert_eq!(named, [Some("web"), Some("web"), Some("web"), None, Some("grpc")]);
    }

    #[test]
    fn a_mistake_is_told_with_its_line_and_what_to_write() {
        assert_eq!(wrong("\n[peer]\n"), "line 2: unknown key `peer`; did you mean `peers`?");
        assert!(wrong("x = 1\n").starts_with("line 1: unknown key `x`; known are groups, "));
        let network = wrong("[peers]\n\noffice = [\"10.0.0.0/33\"]\n");
        assert!(network.starts_with("line 3: `10.0.0.0/33` is no network"), "{network}");
        assert!(network.ends_with("write for example `office = [\"10.1.0.0/16\"]`"), "{network}");
        let port = wrong("[ports]\nweb = [80,\n 70000]\n");
        assert!(port.starts_with("line 3: `70000` is no port from 1 to 65535"), "{port}");
        assert!(wrong("groups = 0\n").contains("from 1 to 100000"));
        assert!(wrong("ports = 80\n").contains("write `[ports]`"));
        assert!(wrong("[ports]\nother = 80\n").starts_with("line 2: `other` cannot be a name"));
        assert!(wrong("[cgroups]\na = \"x\"\n").contains("begins with `/`"));
        assert!(wrong("[ports\n").starts_with("line 1: "));
        assert!(wrong("[ports]\na = 1\na = 2\n").starts_with("line 3: "));
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(\\[(ports|peers|cgroups)\\]\n)?[a-z0-9=\\[\\]\"/:., \n-]{0,80}") {
            let _ = Rules::read(&text);
        }
    }
}
