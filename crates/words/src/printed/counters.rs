//! A host's counters: `nstat` (as text or JSON) and `/proc/net/netstat` with `/proc/net/snmp`.
//!
//! Two readings, in one file or in two, tell what grew between them. `nstat` prints either what its
//! counters are (`-a`) or what they grew by since it was last asked, and the file does not say which: if
//! some are less in the second reading and some more, the second is growth already. If some are less
//! and none is more, the two may just be in the wrong order, and prove nothing. One reading alone proves
//! only what is zero.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{EvidenceError, PassedOver};

/// The counters of one reading by nstat's names: protocol and name in one, `TcpExtTCPTimeouts`.
pub type Reading = BTreeMap<String, i64>;

/// Whether the line begins a reading.
pub fn is_line(line: &str) -> bool {
    line.starts_with("#kernel")
        || line.starts_with("#extras")
        || line.starts_with("{\"kernel\"")
        || PROTOCOLS.iter().any(|name| line.starts_with(name))
        || counter(line).is_some()
}

/// Heads of the files in `/proc/net`.
const PROTOCOLS: [&str; 7] =
    ["TcpExt: ", "IpExt: ", "Ip: ", "Tcp: ", "Udp: ", "Icmp: ", "MPTcpExt: "];

/// Reads all readings, each with at least one counter of TCP.
///
/// # Errors
/// Nothing in it is of this format, or nothing can be used.
pub fn read(text: &str) -> Result<(Vec<Reading>, PassedOver), EvidenceError> {
    let mut readings: Vec<Reading> = Vec::new();
    let mut odd = PassedOver::default();
    let mut now = Reading::new();
    let mut names: Option<(&str, &str)> = None;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if let Some(object) = line.strip_prefix("{\"kernel\":") {
            readings.push(core::mem::take(&mut now));
            match json(object) {
                Ok(reading) => now = reading,
                Err(what) => odd.push(number, || what),
            }
        } else if line.starts_with("#kernel") {
            readings.push(core::mem::take(&mut now));
        } else if let Some((protocol, rest)) = line.split_once(": ").filter(|(p, _)| is_name(p)) {
            match names.take() {
                Some((before, heads)) if before == protocol => {
                    if let Err(what) = pairs(&mut now, protocol, heads, rest) {
                        odd.push(number, || what);
                    }
                }
                _ => {
                    let first = rest.split_whitespace().next().unwrap_or("");
                    if now.contains_key(&format!("{protocol}{first}")) {
                        readings.push(core::mem::take(&mut now));
                    }
                    names = Some((protocol, rest));
                }
            }
        } else if let Some((name, value)) = counter(line) {
            if now.contains_key(name) {
                readings.push(core::mem::take(&mut now));
            }
            now.insert(name.to_owned(), value);
        }
    }
    readings.push(now);
    readings.retain(|reading| reading.keys().any(|name| name.starts_with("Tcp")));
    if readings.is_empty() {
        return Err(odd.into_error("it has no counter of TCP"));
    }
    Ok((readings, odd))
}

/// `TcpExtTCPTimeouts               3                  0.0`
pub fn counter(line: &str) -> Option<(&str, i64)> {
    let mut words = line.split_whitespace();
    let (name, value) = (words.next()?, words.next()?.parse().ok()?);
    let known = ["Tcp", "Ip", "Udp", "Icmp", "MPTcp"].iter().any(|start| name.starts_with(start));
    let rate = words.next().is_none_or(|rate| rate.parse::<f64>().is_ok());
    (known && is_name(name) && rate && words.next().is_none()).then_some((name, value))
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A line of names and one of values under it.
fn pairs(reading: &mut Reading, protocol: &str, names: &str, values: &str) -> Result<(), String> {
    let mut values = values.split_whitespace();
    for name in names.split_whitespace() {
        let value = values.next().ok_or_else(|| format!("there is no value of {name}"))?;
        let value = value.parse().map_err(|_| format!("{name} is {value:?}, no number"))?;
        reading.insert(format!("{protocol}{name}"), value);
    }
    Ok(())
}

/// `{"IpInReceives":48,...}}`
fn json(object: &str) -> Result<Reading, String> {
    let object = object.trim().strip_suffix('}').unwrap_or(object);
    let values: BTreeMap<String, Value> =
        serde_json::from_str(object).map_err(|error| format!("this is no JSON: {error}"))?;
    Ok(values.into_iter().filter_map(|(name, value)| Some((name, value.as_i64()?))).collect())
}

/// What grew from one reading to the next.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Growth {
    /// By name; what is not there is not known.
    pub by: Reading,
    /// How the readings were understood.
    pub kind: Kind,
}

/// How two readings were understood.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Kind {
    /// Nothing fell: counts since the boot, before and after.
    #[default]
    Counts,
    /// Some fell, some grew: the second is what grew since the first.
    Growth,
    /// Only falls: growth, or the readings are in the wrong order. Nothing is known of it.
    Unclear,
}

impl Growth {
    /// From `before` to `after`. A reading leaves zeros out unless an option keeps them. So a counter that
    /// only one of them has was zero in the other.
    pub fn between(before: &Reading, after: &Reading) -> Self {
        let counts = after.iter().filter(|(name, _)| !STATES.contains(&name.as_str()));
        let (mut fell, mut grew) = (false, false);
        for (name, value) in counts {
            let old = before.get(name).copied().unwrap_or(0);
            (fell, grew) = (fell || *value < old, grew || *value > old);
        }
        let kind = match (fell, grew) {
            (false, _) => Kind::Counts,
            (true, true) => Kind::Growth,
            (true, false) => return Self { kind: Kind::Unclear, ..Self::default() },
        };
        let grown = |(name, value): (&String, &i64)| {
            let old = before.get(name).copied().filter(|_| kind == Kind::Counts);
            (name.clone(), value.saturating_sub(old.unwrap_or(0)))
        };
        Self { by: after.iter().map(grown).collect(), kind }
    }

    /// What one reading alone proves: what is zero did not grow.
    pub fn alone(reading: &Reading) -> Self {
        let zeros = reading.iter().filter(|(_, value)| **value == 0);
        Self { by: zeros.map(|(name, value)| (name.clone(), *value)).collect(), kind: Kind::Counts }
    }
}

/// Counters that are states and may fall (`net/ipv4/proc.c`, `include/uapi/linux/snmp.h`, `net/mptcp/mib.c`).
const STATES: [&str; 7] = [
    "TcpCurrEstab",
    "TcpMaxConn",
    "TcpRtoMin",
    "TcpRtoMax",
    "TcpRtoAlgorithm",
    "IpDefaultTTL",
    "MPTcpExtMPCurrEstab",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(text: &str) -> Vec<Reading> {
        read(text).expect("counters").0
    }

    #[test]
    fn all_forms_have_the_same_names() {
        let nstat =
            readings("#kernel\nTcpRetransSegs      12        0.0\nTcpExtTCPTimeouts 3 0.0\n");
        let files = readings("TcpExt: TCPTimeouts X\nTcpExt: 3 0\nTcp: RetransSegs\nTcp: 12\n");
        let json = readings("{\"kernel\":{\"TcpRetransSegs\":12,\"TcpExtTCPTimeouts\":3}}\n");
        for all in [nstat, files, json] {
            assert_eq!(all.len(), 1);
            assert_eq!(all[0].get("TcpRetransSegs"), Some(&12));
            assert_eq!(all[0].get("TcpExtTCPTimeouts"), Some(&3));
        }
    }

    #[test]
    fn a_name_that_comes_again_begins_the_next_reading() {
        assert_eq!(readings("TcpInSegs 1 0.0\nTcpInSegs 5 0.0\n").len(), 2);
        assert_eq!(readings("#kernel\nTcpInSegs 1 0.0\n#kernel\nTcpInSegs 5 0.0\n").len(), 2);
        assert_eq!(readings("Tcp: InSegs\nTcp: 1\nTcp: InSegs\nTcp: 5\n").len(), 2);
    }

    #[test]
    fn readings_are_understood_by_what_falls() {
        let reading = |in_segs, timeouts| {
            let rows = [("TcpInSegs", in_segs), ("TcpExtTCPTimeouts", timeouts), ("TcpOutRsts", 0)];
            Reading::from(rows.map(|(name, value)| (name.to_owned(), value)))
        };
        let (before, after) = (reading(900, 3), reading(950, 5));
        let counts = Growth::between(&before, &after);
        assert_eq!((counts.by.get("TcpInSegs"), counts.kind), (Some(&50), Kind::Counts));
        let growth = Growth::between(&before, &reading(950, 1));
        assert_eq!((growth.by.get("TcpExtTCPTimeouts"), growth.kind), (Some(&1), Kind::Growth));
        let wrong_order = Growth::between(&after, &before);
        assert_eq!(wrong_order.kind, Kind::Unclear);
        assert_eq!(wrong_order.by, Reading::new(), "nothing is sure, not even what is zero");
        assert_eq!(Growth::alone(&before).by.get("TcpInSegs"), None, "a count since the boot");
    }
}
