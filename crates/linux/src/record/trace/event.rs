//! One tracepoint: what its `format` file says, and its records as JSON.
//!
//! Numbers stay numbers. Addresses become `"ip:port"`, whether the event holds a `sockaddr`
//! (`saddr[28]`) or `saddr[4]`, `saddr_v6[16]`, `sport` and `family`. Texts are texts, whether of
//! fixed length or `__data_loc`. Left out: the kernel's common fields, and pointers, which are
//! addresses in the kernel's memory. A field named `now` is the record's own time (ns since 1970)
//! and takes the place of the ring's stamp.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A tracepoint of this kernel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Event {
    /// Its number, with which each record begins.
    pub(super) id: u16,
    /// System and name, as `tcp/tcp_probe`.
    pub(super) path: String,
    /// It can be filtered by `sport` and `dport`.
    pub(super) has_ports: bool,
    name: String,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Field {
    name: String,
    kind: Kind,
    offset: usize,
    size: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Unsigned,
    Signed,
    /// Characters up to a zero.
    Text,
    /// Where such characters stand: offset in the low half, length in the high one.
    TextElsewhere,
    /// A `sockaddr_in` or `sockaddr_in6`.
    SocketAddress,
    /// An IPv4 address; the IPv6 address, port and family stand in other fields.
    Address {
        v6: usize,
        port: usize,
        family: usize,
    },
    /// Other bytes, as hexadecimal text.
    Bytes,
}

impl Event {
    /// Reads an event's `format` file; else what is odd about it.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, String> {
        let id = text
            .lines()
            .find_map(|line| line.strip_prefix("ID:"))
            .ok_or("no ID")?
            .trim()
            .parse()
            .map_err(|e| format!("ID: {e}"))?;
        let mut declared = Vec::new();
        for line in text.lines().filter(|line| line.trim_start().starts_with("field:")) {
            declared.push(Declared::parse(line).ok_or_else(|| format!("line {line:?}"))?);
        }
        let offset_of = |name: &str| declared.iter().find(|d| d.name == name).map(|d| d.offset);
        let fields = declared.iter().filter_map(|d| d.field(offset_of)).collect();
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let has_ports = offset_of("sport").is_some() && offset_of("dport").is_some();
        Ok(Self { id, path: path.to_owned(), has_ports, name, fields })
    }

    /// A record's time and line; `None` if it is shorter than the format says.
    pub(super) fn line(&self, stamp: u64, record: &[u8]) -> Option<(u64, String)> {
        let now = self.fields.iter().find(|field| field.name == "now");
        let t = match now {
            Some(field) => number(record, field.offset, field.size)?,
            None => stamp,
        };
        let mut line = format!("{{\"t\":{t},\"event\":\"{}\"", self.name);
        for field in &self.fields {
            if field.name != "now" {
                let _ = write!(line, ",\"{}\":", field.name);
                field.value(record, &mut line)?;
            }
        }
        line.push_str("}\n");
        Some((t, line))
    }
}

impl Field {
    fn value(&self, record: &[u8], line: &mut String) -> Option<()> {
        let bytes = record.get(self.offset..self.offset + self.size)?;
        let written = match self.kind {
            Kind::Unsigned => write!(line, "{}", number(record, self.offset, self.size)?),
            Kind::Signed => {
                let unused = 64 - 8 * self.size as u32;
                let value = number(record, self.offset, self.size)? << unused;
                write!(line, "{}", value.cast_signed() >> unused)
            }
            Kind::Text => write!(line, "{}", quoted(bytes)),
            Kind::TextElsewhere => {
                let place = number(record, self.offset, 4)? as usize;
                let (from, length) = (place & 0xffff, place >> 16);
                write!(line, "{}", quoted(record.get(from..from + length)?))
            }
            Kind::SocketAddress => match socket_address(bytes) {
                Some(address) => write!(line, "\"{address}\""),
                None => write!(line, "null"),
            },
            Kind::Address { v6, port, family } => {
                let port = number(record, port, 2)? as u16;
                let ip: IpAddr = if number(record, family, 2)? == libc::AF_INET6 as u64 {
                    let octets: [u8; 16] = record.get(v6..v6 + 16)?.try_into().ok()?;
                    Ipv6Addr::from(octets).into()
                } else {
                    let octets: [u8; 4] = bytes.try_into().ok()?;
                    Ipv4Addr::from(octets).into()
                };
                write!(line, "\"{}\"", SocketAddr::new(ip, port))
            }
            Kind::Bytes => {
                line.push('"');
                for byte in bytes {
                    let _ = write!(line, "{byte:02x}");
                }
                write!(line, "\"")
            }
        };
        written.ok()
    }
}

/// The pairs of `{ 10, "TCP_CSUM" }` in what a format file prints.
pub(super) fn symbols(text: &str) -> BTreeMap<u64, String> {
    let pair = |part: &str| {
        let (number, name) = part.split_once('}')?.0.split_once(',')?;
        Some((number.trim().parse().ok()?, name.trim().trim_matches('"').to_owned()))
    };
    text.split('{').skip(1).filter_map(pair).collect()
}

/// A line of a format file, as `field:__u8 saddr[28]; offset:8; size:28; signed:0;`.
struct Declared<'a> {
    name: &'a str,
    /// What is before the name.
    kind: &'a str,
    is_array: bool,
    offset: usize,
    size: usize,
    signed: bool,
}

impl<'a> Declared<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let part = |key: &str| {
            line.split(';').find_map(|part| part.trim().strip_prefix(key)).map(str::trim)
        };
        let declaration = part("field:")?;
        // An array's length may be part of the name, or of the kind: `__data_loc char[] name`.
        let (before, length) = match declaration.rsplit_once('[') {
            Some((before, length)) if length.ends_with(']') => (before, Some(length)),
            _ => (declaration, None),
        };
        let (kind, name) = before.rsplit_once([' ', '*'])?;
        Some(Self {
            name,
            kind: declaration[..=kind.len()].trim(),
            is_array: length.is_some(),
            offset: part("offset:")?.parse().ok()?,
            size: part("size:")?.parse().ok()?,
            signed: part("signed:")? == "1",
        })
    }

    /// How it is shown, if it is.
    fn field(&self, offset_of: impl Fn(&str) -> Option<usize>) -> Option<Field> {
        let folded = ["saddr_v6", "daddr_v6"].contains(&self.name);
        // Where data lies says nothing; where code does is what an event is about.
        let pointer = self.kind.ends_with('*') && self.name != "location";
        if self.name.starts_with("common_") || pointer || folded {
            return None;
        }
        let port = match self.name {
            "saddr" => Some(("saddr_v6", "sport")),
            "daddr" => Some(("daddr_v6", "dport")),
            _ => None,
        };
        let kind = match (port, self.size) {
            (Some(_), 28) => Kind::SocketAddress,
            (Some((v6, port)), 4) => Kind::Address {
                v6: offset_of(v6)?,
                port: offset_of(port)?,
                family: offset_of("family")?,
            },
            _ if self.kind.contains("__data_loc") => Kind::TextElsewhere,
            _ if self.is_array && self.kind == "char" => Kind::Text,
            _ if self.is_array || ![1, 2, 4, 8].contains(&self.size) => Kind::Bytes,
            _ if self.signed => Kind::Signed,
            _ => Kind::Unsigned,
        };
        Some(Field { name: self.name.to_owned(), kind, offset: self.offset, size: self.size })
    }
}

fn quoted(text: &[u8]) -> serde_json::Value {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    String::from_utf8_lossy(&text[..end]).into()
}

/// `sockaddr_in` or `sockaddr_in6`: family in the machine's order, port in that of the network.
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    let ip: IpAddr = if family == libc::AF_INET {
        let octets: [u8; 4] = bytes[4..8].try_into().ok()?;
        Ipv4Addr::from(octets).into()
    } else if family == libc::AF_INET6 {
        let octets: [u8; 16] = bytes[8..24].try_into().ok()?;
        Ipv6Addr::from(octets).into()
    } else {
        return None;
    };
    Some(SocketAddr::new(ip, port))
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(match *bytes {
        [one] => one.into(),
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        _ => u64::from_ne_bytes(bytes.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 has it, shortened.
    const CONG_STATE: &str = "name: tcp_cong_state_set
ID: 2271
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:const void * skaddr;\toffset:8;\tsize:8;\tsigned:0;
\tfield:__u16 sport;\toffset:16;\tsize:2;\tsigned:0;
\tfield:__u16 dport;\toffset:18;\tsize:2;\tsigned:0;
\tfield:__u16 family;\toffset:20;\tsize:2;\tsigned:0;
\tfield:__u8 saddr[4];\toffset:22;\tsize:4;\tsigned:0;
\tfield:__u8 daddr[4];\toffset:26;\tsize:4;\tsigned:0;
\tfield:__u8 saddr_v6[16];\toffset:30;\tsize:16;\tsigned:0;
\tfield:__u8 daddr_v6[16];\toffset:46;\tsize:16;\tsigned:0;
\tfield:__u8 cong_state;\toffset:62;\tsize:1;\tsigned:0;

print fmt: \"family=%s\", REC->family
";

    fn cong_state(family: u16) -> Vec<u8> {
        let mut record = vec![0; 64];
        record[0..2].copy_from_slice(&2271_u16.to_ne_bytes());
        record[8..16].fill(0xff);
        record[16..18].copy_from_slice(&8080_u16.to_ne_bytes());
        record[18..20].copy_from_slice(&40000_u16.to_ne_bytes());
        record[20..22].copy_from_slice(&family.to_ne_bytes());
        record[22..26].copy_from_slice(&[10, 0, 0, 1]);
        record[26..30].copy_from_slice(&[10, 0, 0, 2]);
        record[45] = 1;
        record[61] = 2;
        record[62] = 3;
        record
    }

    #[test]
    fn addresses_carry_their_ports() {
        let event = Event::parse("tcp/tcp_cong_state_set", CONG_STATE).expect("a format");
        assert_eq!((event.id, event.has_ports), (2271, true));
        assert_eq!(
            event.line(7, &cong_state(2)).expect("long enough").1,
            "{\"t\":7,\"event\":\"tcp_cong_state_set\",\"sport\":8080,\"dport\":40000,\"family\":2,\
             \"saddr\":\"10.0.0.1:8080\",\"daddr\":\"10.0.0.2:40000\",\"cong_state\":3}\n"
        );
        let (_, v6) = event.line(7, &cong_state(10)).expect("long enough");
        assert!(v6.contains("\"saddr\":\"[::1]:8080\",\"daddr\":\"[::2]:40000\""), "{v6}");
    }

    #[test]
    fn a_cut_record_is_no_line() {
        let event = Event::parse("tcp/tcp_cong_state_set", CONG_STATE).expect("a format");
        for length in 0..62 {
            assert_eq!(event.line(7, &cong_state(2)[..length]), None, "{length}");
        }
    }

    #[test]
    fn texts_numbers_and_own_time_are_told_apart() {
        let text = "name: x
ID: 1
format:
\tfield:u64 now;\toffset:8;\tsize:8;\tsigned:0;
\tfield:char why[8];\toffset:16;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;
\tfield:int change;\toffset:28;\tsize:4;\tsigned:1;
\tfield:unsigned char hash[3];\toffset:32;\tsize:3;\tsigned:0;
\tfield:struct sock *sk;\toffset:40;\tsize:8;\tsigned:0;
";
        let event = Event::parse("x", text).expect("a format");
        let mut record = vec![0; 52];
        record[8..16].copy_from_slice(&99_u64.to_ne_bytes());
        record[16..21].copy_from_slice(b"cw\"nd");
        record[24..28].copy_from_slice(&((4_u32 << 16) + 48).to_ne_bytes());
        record[28..32].copy_from_slice(&(-5_i32).to_ne_bytes());
        record[32..35].copy_from_slice(&[1, 2, 255]);
        record[48..52].copy_from_slice(b"abc\0");
        assert_eq!(
            event.line(7, &record),
            Some((
                99,
                "{\"t\":99,\"event\":\"x\",\"why\":\"cw\\\"nd\",\"name\":\"abc\",\"change\":-5,\
                 \"hash\":\"0102ff\"}\n"
                    .to_owned()
            ))
        );
        // A text that claims to stand outside of its record.
        record[24..28].copy_from_slice(&((400_u32 << 16) + 48).to_ne_bytes());
        assert_eq!(event.line(7, &record), None);
    }

    #[test]
    fn names_of_numbers_are_found_in_what_is_printed() {
        let printed =
            r#"reason: %s", __print_symbolic(REC->reason, { 2, "NO_SOCKET" }, { 10, "TCP_CSUM" })"#;
        let names = [(2, "NO_SOCKET".to_owned()), (10, "TCP_CSUM".to_owned())];
        assert_eq!(symbols(printed), names.into());
        assert_eq!(symbols("{ x, { 3"), BTreeMap::new());
    }

    #[test]
    fn what_is_no_format_is_named() {
        assert_eq!(Event::parse("x", "name: x\n"), Err("no ID".to_owned()));
        assert!(Event::parse("x", "ID: 1\n\tfield:int a; offset:x;").is_err());
        assert!(Event::parse("x", "ID: 70000\n").is_err());
    }
}
