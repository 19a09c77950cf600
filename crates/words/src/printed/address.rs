//! The two ends of a socket, as tools print them.

use core::net::{IpAddr, SocketAddr};

/// Reads `10.0.0.1:80`, `[::1]:80`, `::1:80`, `10.0.0.1%eth0:80`; an IPv4 address inside IPv6 is that
/// IPv4 address, as on the wire.
pub fn read(word: &str) -> Option<SocketAddr> {
    let (host, port) = word.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let host = host.split('%').next()?.trim_start_matches('[').trim_end_matches(']');
    let ip: IpAddr = host.parse().ok()?;
    Some(canonical(SocketAddr::new(ip, port)))
}

/// The address as packets carry it.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// A socket's ends: the one of its own host, and the other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Ends {
    /// The end on the host that the evidence is from.
    pub local: SocketAddr,
    /// The other.
    pub peer: SocketAddr,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_form_tools_print() {
        for (word, is) in [
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("10.0.0.1%eth0:80", "10.0.0.1:80"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("2001:db8::1:80", "[2001:db8::1]:80"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
            ("::ffff:10.0.0.1:80", "10.0.0.1:80"),
            ("[fe80::1]%lo:80", "[fe80::1]:80"),
            ("[fe80::1%lo]:80", "[fe80::1]:80"),
        ] {
            assert_eq!(read(word), is.parse().ok(), "{word}");
        }
        for word in ["*:80", "10.0.0.1:http", "10.0.0.1", "host:80", ":80", "0.0.0.0:*"] {
            assert_eq!(read(word), None, "{word}");
        }
    }
}
