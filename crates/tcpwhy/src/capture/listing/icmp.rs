//! ICMP errors as `tcpdump` prints them (`icmp_print`, `icmp6_print`), with and without `-v`.
//!
//! Without `-v` the line says the quoted packet's destination at most; with it the packet follows on lines of its own.

use core::net::IpAddr;

use super::digits::number_after;
use super::names::Endpoint;
use super::stamp::next_word;
use crate::wire::IcmpKind;

/// An ICMP error as printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Said {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) kind: IcmpKind,
    pub(super) mtu: Option<u32>,
    pub(super) destination: Option<IpAddr>,
}

/// Reads what is behind the time; `None` for what is no error, or one about another protocol.
pub(super) fn read(text: &str) -> Option<Said> {
    // With `-e` link addresses stand in front.
    let (from, to, after) = text.match_indices(" > ").find_map(|(at, arrow)| {
        let (left, right) = (text.get(..at)?, text.get(at + arrow.len()..)?);
        let from = address(left.rsplit([' ', '\t', '(']).next()?)?;
        let (to, after) = next_word(right);
        Some((from, address(to.strip_suffix(':')?)?, after))
    })?;
    let after = match after.strip_prefix('[') {
        Some(checksum) => checksum.split_once(']')?.1.trim_start(),
        None => after,
    };
    let is_v6 = after.starts_with("ICMP6, ");
    let said = after.strip_prefix("ICMP6, ").or_else(|| after.strip_prefix("ICMP "))?;
    let said = said.rsplit_once(", length ").map_or(said, |(said, _)| said);
    if said.contains("udp port ") || (said.contains(" protocol ") && !said.contains(" protocol 6 "))
    {
        return None;
    }
    let kind = if is_v6 { kind_v6(said) } else { kind_v4(said) }?;
    let too_big = kind == IcmpKind::TooBig;
    let mtu = number_after(said, "mtu ").filter(|mtu| too_big && *mtu > 0);
    let destination = said.split([' ', ',']).find_map(address);
    Some(Said { from, to, kind, mtu, destination })
}

/// Reads the Info column of a packet list (`packet-icmp.c`, `packet-icmpv6.c`), which does not say what is quoted: an
/// unreachable port is mostly UDP's, and left out.
pub(super) fn read_row(from: &str, to: &str, protocol: &str, info: &str) -> Option<Said> {
    let (from, to, info) = (address(from)?, address(to)?, info.to_ascii_lowercase());
    let has = |words: &str| info.contains(words);
    let is_icmp = matches!(protocol, "ICMP" | "ICMPv6");
    let kind = match () {
        () if !is_icmp || has("port unreachable") || has("protocol unreachable") => return None,
        () if info.starts_with("packet too big") || has("(fragmentation needed") => {
            IcmpKind::TooBig
        }
        () if has("reassembly time exceeded") => IcmpKind::ReassemblyTimeExceeded,
        () if info.starts_with("time-to-live exceeded") || info.starts_with("time exceeded") => {
            IcmpKind::TimeExceeded
        }
        () if !info.starts_with("destination unreachable") => return None,
        () if has("administratively") => IcmpKind::Prohibited,
        () if has("host unreachable") || has("address unreachable") => IcmpKind::HostUnreachable,
        () if has("network unreachable") || has("no route") => IcmpKind::NetUnreachable,
        () => IcmpKind::Unreachable,
    };
    Some(Said { from, to, kind, mtu: None, destination: None })
}

/// An address; a zone (`fe80::1%eth0`) is no part of it.
fn address(word: &str) -> Option<IpAddr> {
    word.split_once('%').map_or(word, |(address, _)| address).parse().ok()
}

fn kind_v4(said: &str) -> Option<IcmpKind> {
    let has = |words: &str| said.contains(words);
    Some(match () {
        () if said.starts_with("time exceeded") => IcmpKind::TimeExceeded,
        () if said.starts_with("ip reassembly time exceeded") => IcmpKind::ReassemblyTimeExceeded,
        () if said.starts_with("source quench") => IcmpKind::SourceQuench,
        () if said.starts_with("parameter problem") => IcmpKind::ParameterProblem,
        () if !has("unreachable") => return None,
        () if has("need to frag") => IcmpKind::TooBig,
        () if has("prohibited") || has("precedence") => IcmpKind::Prohibited,
        () if has("source route failed") => IcmpKind::SourceRouteFailed,
        () if has(" tcp port ") => IcmpKind::PortUnreachable,
        () if has(" protocol ") => IcmpKind::ProtocolUnreachable,
        () if said.starts_with("host ") => IcmpKind::HostUnreachable,
        () if said.starts_with("net ") => IcmpKind::NetUnreachable,
        () => IcmpKind::Unreachable,
    })
}

fn kind_v6(said: &str) -> Option<IcmpKind> {
    let has = |words: &str| said.contains(words);
    Some(match () {
        () if said.starts_with("packet too big") => IcmpKind::TooBig,
        () if said.starts_with("time exceeded") && has("reassembly") => {
            IcmpKind::ReassemblyTimeExceeded
        }
        () if said.starts_with("time exceeded") => IcmpKind::TimeExceeded,
        () if said.starts_with("parameter problem") => IcmpKind::ParameterProblem,
        () if !said.starts_with("destination unreachable") => return None,
        () if has("prohibited") => IcmpKind::Prohibited,
        () if has("tcp port ") || has("unreachable port") => IcmpKind::PortUnreachable,
        () if has("unreachable route") => IcmpKind::NetUnreachable,
        () if has("unreachable address") || has("beyond scope") => IcmpKind::HostUnreachable,
        () => IcmpKind::Unreachable,
    })
}

/// A line of the packet that an error quotes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Quotation {
    /// Its first line, with its length.
    Header(Option<u32>),
    /// Its ends.
    Ends([(IpAddr, u16); 2]),
    /// It is not TCP.
    Other,
    /// Nothing of use.
    Nothing,
}

pub(super) fn quotation(text: &str) -> Quotation {
    if text.contains(" proto ") && text.contains("(tos ") {
        if !text.contains("proto TCP") {
            return Quotation::Other;
        }
        let length = text.rsplit_once("length ").map(|(_, rest)| rest.trim_end_matches(')'));
        return Quotation::Header(length.and_then(|length| length.parse().ok()));
    }
    let ends = || {
        let (left, right) = text.split_once(" > ")?;
        let from = left.rsplit([' ', '\t']).next().and_then(Endpoint::read)?.literal()?;
        let to = next_word(right).0.strip_suffix(':').and_then(Endpoint::read)?.literal()?;
        Some(Quotation::Ends([from, to]))
    };
    ends().unwrap_or(Quotation::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<(IcmpKind, Option<u32>, String)> {
        let said = read(text)?;
        Some((said.kind, said.mtu, said.destination.map(|d| d.to_string()).unwrap_or_default()))
    }

    #[test]
    fn what_tcpdump_prints_of_errors_is_read() {
        use IcmpKind as K;
        for (text, kind, mtu, destination) in [
            (
                "ICMP 10.0.0.2 unreachable - need to frag (mtu 1320), length 556",
                K::TooBig,
                Some(1320),
                "10.0.0.2",
            ),
            ("ICMP 10.0.0.2 unreachable - need to frag, length 36", K::TooBig, None, "10.0.0.2"),
            ("ICMP host 10.0.0.2 unreachable, length 68", K::HostUnreachable, None, "10.0.0.2"),
            ("ICMP net 10.0.0.2 unreachable, length 68", K::NetUnreachable, None, "10.0.0.2"),
            (
                "ICMP host 10.0.0.2 unreachable - admin prohibited filter, length 68",
                K::Prohibited,
                None,
                "10.0.0.2",
            ),
            (
                "ICMP 10.0.0.2 tcp port 81 unreachable, length 68",
                K::PortUnreachable,
                None,
                "10.0.0.2",
            ),
            ("ICMP time exceeded in-transit, length 68", K::TimeExceeded, None, ""),
            ("ICMP source quench, length 36", K::SourceQuench, None, ""),
        ] {
            let line = format!("IP 10.0.0.3 > 10.0.0.1: {text}");
            assert_eq!(told(&line), Some((kind, mtu, destination.to_owned())), "{text}");
        }
        for (text, kind, mtu, destination) in [
            ("ICMP6, packet too big, mtu 1320, length 1240", K::TooBig, Some(1320), ""),
            ("[icmp6 sum ok] ICMP6, packet too big, mtu 1280", K::TooBig, Some(1280), ""),
            (
                "ICMP6, destination unreachable, unreachable route fd71::1, length 88",
                K::NetUnreachable,
                None,
                "fd71::1",
            ),
            (
                "ICMP6, destination unreachable,  unreachable prohibited fd71::1",
                K::Prohibited,
                None,
                "fd71::1",
            ),
            (
                "ICMP6, time exceeded in-transit for fd71::1, length 88",
                K::TimeExceeded,
                None,
                "fd71::1",
            ),
        ] {
            let line = format!("IP6 (hlim 64) 2001:db8::3 > 2001:db8::1: {text}");
            assert_eq!(told(&line), Some((kind, mtu, destination.to_owned())), "{text}");
        }
    }

    #[test]
    fn link_addresses_in_front_are_passed_over() {
        let text = "ba:7f:00:fe:32:54 > 56:73:01:ef:84:64, ethertype 802.1Q (0x8100), length 1298: vlan 30, p 0, \
                    ethertype IPv6 (0x86dd), 2001:db8::fe > 2001:db8::10: ICMP6, packet too big, mtu 1340, length 1240";
        assert_eq!(told(text), Some((IcmpKind::TooBig, Some(1_340), String::new())));
    }

    #[test]
    fn what_a_packet_list_shows_of_errors_is_read() {
        use IcmpKind as K;
        let kind =
            |protocol, info| read_row("10.0.0.3", "10.0.0.1", protocol, info).map(|said| said.kind);
        for (info, expected) in [
            ("Destination unreachable (Fragmentation needed)", Some(K::TooBig)),
            ("Destination unreachable (Host unreachable)", Some(K::HostUnreachable)),
            ("Destination unreachable (Network unreachable)", Some(K::NetUnreachable)),
            (
                "Destination unreachable (Communication administratively filtered)",
                Some(K::Prohibited),
            ),
            ("Time-to-live exceeded (Time to live exceeded in transit)", Some(K::TimeExceeded)),
            ("Destination unreachable (Port unreachable)", None),
            ("Echo (ping) request  id=0x0001, seq=1/256, ttl=64", None),
        ] {
            assert_eq!(kind("ICMP", info), expected, "{info}");
        }
        assert_eq!(kind("ICMPv6", "Packet Too Big[Packet size limited]"), Some(K::TooBig));
        assert_eq!(
            kind("ICMPv6", "Destination Unreachable (no route to destination)"),
            Some(K::NetUnreachable)
        );
        assert_eq!(kind("ICMPv6", "Neighbor Solicitation for 2001:db8::10"), None);
        assert_eq!(kind("TCP", "Packet Too Big"), None);
    }

    #[test]
    fn echo_and_errors_about_udp_are_none() {
        for text in [
            "ICMP echo request, id 1, seq 1, length 64",
            "ICMP 10.0.0.2 udp port 53 unreachable, length 68",
            "ICMP 10.0.0.2 protocol 47 unreachable, length 68",
            "ICMP6, router advertisement, length 32",
            "ICMP6, destination unreachable, unreachable port, fd71::1 udp port 53, length 88",
        ] {
            assert_eq!(told(&format!("IP 10.0.0.3 > 10.0.0.1: {text}")), None, "{text}");
        }
        assert_eq!(told("IP 10.0.0.3.80 > 10.0.0.1.99: Flags [.], ack 1"), None);
    }
}
