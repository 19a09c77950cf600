//! May this report leave the house?
//!
//! Replaces every IP address, the same one by the same other one throughout, in the order in which
//! they appear: IPv4 by 198.18.0.1 and up (the range for benchmarks, RFC 2544 appendix C.2.2), IPv6
//! by `2001:db8::1` and up (documentation, RFC 3849). Unspecified and loopback addresses name
//! nobody and stay. Names of input files give way to `capture 1` and so on.
//!
//! It works on the report's strings, wherever an address stands in them: fields, evidence,
//! filters, notes. Left out: ports, times and sizes, which the explanation is about; they may
//! still tell a connection to somebody who saw it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;
use tcpwhy::report::Report;

/// The report with all addresses replaced.
///
/// # Panics
/// The report's types do not survive a trip through JSON: a fault of ours that a test rules out.
pub fn anonymized(report: &Report) -> Report {
    let mut value = serde_json::to_value(report).expect("a report is plain data");
    let mut names = Names::default();
    // Connections first: then the first client is the first address.
    for part in ["connections", "captures"] {
        names.replace_in(&mut value[part]);
    }
    let mut report: Report = serde_json::from_value(value).expect("its shape did not change");
    for (number, capture) in report.captures.iter_mut().enumerate() {
        capture.source = format!("capture {}", number + 1);
    }
    report
}

/// The new name of each address.
#[derive(Debug, Default)]
struct Names {
    v4: BTreeMap<Ipv4Addr, Ipv4Addr>,
    v6: BTreeMap<Ipv6Addr, Ipv6Addr>,
}

impl Names {
    fn replace_in(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.replace_in(value)),
            Value::Object(fields) => {
                // The peers name the addresses before any text does.
                for first in ["client", "server"] {
                    if let Some(value) = fields.get_mut(first) {
                        self.replace_in(value);
                    }
                }
                for (name, value) in fields.iter_mut() {
                    if name != "client" && name != "server" {
                        self.replace_in(value);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `text` with every address in it replaced.
    fn text(&mut self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            let (before, from) = rest.split_at(start);
            let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
            let (run, after) = from.split_at(end);
            out.push_str(before);
            out.push_str(&self.run(run));
            rest = after;
        }
        out + rest
    }

    /// A run of address characters: an address, perhaps with a port or the sentence's full stop
    /// behind it, or something else.
    fn run(&mut self, run: &str) -> String {
        let ends = run.char_indices().filter(|&(_, c)| c == '.' || c == ':').map(|(at, _)| at);
        let ends = ends.collect::<Vec<_>>();
        for end in [run.len()].into_iter().chain(ends.into_iter().rev()) {
            let (head, tail) = run.split_at(end);
            if let Ok(address) = head.parse() {
                return self.name(address).to_string() + tail;
            }
        }
        run.to_owned()
    }

    fn name(&mut self, address: IpAddr) -> IpAddr {
        if address.is_unspecified() || address.is_loopback() {
            return address;
        }
        match address {
            IpAddr::V4(address) => {
                let next = 1 + self.v4.len() as u32;
                // Beyond the range's 131,071 names: the reserved class E, 240.0.0.0 and up.
                let base = if next < 1 << 17 { [198, 18, 0, 0] } else { [240, 0, 0, 0] };
                let base = Ipv4Addr::from(base).to_bits();
                (*self.v4.entry(address).or_insert(Ipv4Addr::from_bits(base + next))).into()
            }
            IpAddr::V6(address) => {
                let base = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).to_bits();
                let next = 1 + self.v6.len() as u128;
                (*self.v6.entry(address).or_insert(Ipv6Addr::from_bits(base + next))).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(names: &mut Names, text: &str) -> String {
        names.text(text)
    }

    #[test]
    fn the_same_address_gets_the_same_name_wherever_it_stands() {
        let mut names = Names::default();
        for (before, after) in [
            ("10.1.2.3:80", "198.18.0.1:80"),
            ("ip.addr==10.1.2.3 && tcp.port==80", "ip.addr==198.18.0.1 && tcp.port==80"),
            ("sent by 10.9.9.9.", "sent by 198.18.0.2."),
            ("10.1.2.3.443 > 10.9.9.9.80:", "198.18.0.1.443 > 198.18.0.2.80:"),
            ("[2001:db8:1::5]:443", "[2001:db8::1]:443"),
            ("ipv6.addr==fe80::1", "ipv6.addr==2001:db8::2"),
        ] {
            assert_eq!(text(&mut names, before), after);
        }
    }

    #[test]
    fn what_is_no_address_stays() {
        let mut names = Names::default();
        for same in [
            "2026-11-21T10:45:49.051409000Z",
            "10:45:49.051409000",
            "45.0 % of 63.1 ms",
            "version 1.2.3",
            "frames 1:148",
            "127.0.0.1:80 and [::1]:80",
            "after; a: b, face.",
            "größer als 1.5",
        ] {
            assert_eq!(text(&mut names, same), same);
        }
    }

    #[test]
    fn more_hosts_than_the_range_has_names_stay_apart() {
        let mut names = Names::default();
        for host in 0..200_000_u32 {
            names.name(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + host)));
        }
        let apart: std::collections::BTreeSet<_> = names.v4.values().collect();
        assert_eq!(apart.len(), 200_000);
    }
}
