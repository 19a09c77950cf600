//! Which addresses do the two hosts have, and which suite's customs does a script follow?
//!
//! Nothing shows of addresses but the cookies of Fast Open, which are made from them. Two runners give
//! them and name the cookies to scripts: the kernel's own
//! (`tools/testing/selftests/net/packetdrill/ksft_runner.sh`, v7.3) and google's
//! (`gtests/net/packetdrill/run_all.py`). A script's own options come before both.

use core::net::IpAddr;

use super::cookies::{Key, bytes_of_server, key_of_sysctl};
use crate::parser::Definitions;

/// Whose customs a script follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suite {
    Linux,
    Google,
}

impl Suite {
    /// Google's scripts take their defaults from a folder that they share, the kernel's from their own.
    pub(super) fn of(text: &str) -> Suite {
        if text.contains("common/defaults.sh") { Suite::Google } else { Suite::Linux }
    }

    /// Names that its runner defines.
    pub(super) fn definitions(self, ipv6: bool) -> Definitions {
        let addresses = Addresses::default().bytes(self, ipv6);
        let cookie = |key: Key| {
            let hex = |byte: &u8| format!("{byte:02x}");
            bytes_of_server(&key, &addresses).iter().map(hex).collect::<String>()
        };
        let version = if ipv6 { "IPV6" } else { "IP" };
        let names = [
            ("TFO_COOKIE", cookie(key_of_sysctl(KEY).unwrap_or_default())),
            ("TFO_COOKIE_ZERO", cookie(Key::default())),
            ("CMSG_LEVEL_IP", format!("SOL_{version}")),
            ("CMSG_TYPE_RECVERR", format!("{version}_RECVERR")),
        ];
        names.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    /// The remote and the local address.
    fn addresses(self, ipv6: bool) -> (IpAddr, IpAddr) {
        match (self, ipv6) {
            (Suite::Linux, false) => ([192, 0, 2, 1].into(), [192, 168, 0, 1].into()),
            (Suite::Google, false) => ([192, 0, 2, 1].into(), [192, 168, 0, 2].into()),
            (Suite::Linux, true) => (
                [0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1].into(),
                [0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1].into(),
            ),
            (Suite::Google, true) => (
                [0x2001, 0x0db8, 0, 0, 0, 0, 0, 1].into(),
                [0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 0].into(),
            ),
        }
    }
}

/// The addresses that options give.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Addresses {
    pub(super) remote: Option<IpAddr>,
    pub(super) local: Option<IpAddr>,
}

impl Addresses {
    /// Both behind each other, the remote one first.
    pub(super) fn bytes(self, suite: Suite, ipv6: bool) -> Vec<u8> {
        let (remote, local) = suite.addresses(ipv6);
        let of_version = |given: Option<IpAddr>| given.filter(|given| given.is_ipv6() == ipv6);
        let remote = of_version(self.remote).unwrap_or(remote);
        let local = of_version(self.local).unwrap_or(local);
        [remote, local].into_iter().flat_map(octets).collect()
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().into(),
        IpAddr::V6(address) => address.octets().into(),
    }
}

/// What both suites' `defaults.sh` set `tcp_fastopen_key` to.
pub(super) const KEY: &str = "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookies_are_the_ones_that_the_runners_name() {
        for (suite, ipv6, cookie, of_zero) in [
            (Suite::Linux, false, "3021b9d889017eeb", Some("b7c12350a90dc8f5")),
            (Suite::Linux, true, "c1d1e9742a47a9bc", Some("82af1a8f9a205c34")),
            (Suite::Google, false, "de4f234f0f433a55", None),
            (Suite::Google, true, "6aa6ae70c288023b", None),
        ] {
            let names = suite.definitions(ipv6);
            assert_eq!(names["TFO_COOKIE"], cookie);
            assert!(of_zero.is_none_or(|of_zero| names["TFO_COOKIE_ZERO"] == of_zero));
        }
    }

    #[test]
    fn an_address_of_the_other_version_is_not_taken() {
        let given = Addresses { remote: Some([10, 0, 0, 7].into()), local: None };
        let suite = Suite::Linux;
        assert_eq!(given.bytes(suite, false), [10, 0, 0, 7, 192, 168, 0, 1]);
        assert_eq!(given.bytes(suite, true), Addresses::default().bytes(suite, true));
    }
}
