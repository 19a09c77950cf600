//! One line of a record, as its writers spell it.
//!
//! The kernel's events keep the fields of their tracepoints; numbers may also come as text in the
//! tracepoint's own print format (`0x10`), addresses as `ip:port`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

/// An event of the kernel. Which fields it has depends on the event; absent ones are `None`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Event<'a> {
    pub(crate) t: u64,
    #[serde(borrow, rename = "event")]
    pub(crate) name: Cow<'a, str>,
    /// `tcp_probe`: whose window it is, and its peer.
    #[serde(borrow, alias = "saddr")]
    pub(crate) src: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "daddr")]
    pub(crate) dest: Option<Cow<'a, str>>,
    pub(crate) sport: Option<Number>,
    pub(crate) dport: Option<Number>,
    #[serde(borrow, rename = "where")]
    pub(crate) place: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) why: Option<Cow<'a, str>>,
    pub(crate) amount: Option<Number>,
    #[serde(alias = "snd_una")]
    pub(crate) una: Option<Number>,
    #[serde(alias = "snd_nxt")]
    pub(crate) nxt: Option<Number>,
    pub(crate) end: Option<Number>,
    #[serde(alias = "snd_wnd")]
    pub(crate) wnd: Option<Number>,
    #[serde(alias = "snd_cwnd")]
    pub(crate) cwnd: Option<Number>,
    pub(crate) ssthresh: Option<Number>,
    pub(crate) flight: Option<Number>,
    pub(crate) mss: Option<Number>,
    /// Microseconds.
    pub(crate) srtt: Option<Number>,
    pub(crate) ca: Option<Number>,
    pub(crate) cong_state: Option<Number>,
    pub(crate) seq: Option<Number>,
    pub(crate) end_seq: Option<Number>,
    pub(crate) flags: Option<Number>,
    pub(crate) segments: Option<Number>,
}

/// A line of the applications' log.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Step<'a> {
    #[serde(borrow)]
    pub(crate) who: Cow<'a, str>,
    pub(crate) flow: u64,
    pub(crate) connection: u64,
    #[serde(borrow, rename = "step")]
    pub(crate) what: Cow<'a, str>,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) bytes: Option<u64>,
    pub(crate) sleeps: Option<u64>,
    pub(crate) unsent: Option<u64>,
    #[serde(borrow)]
    pub(crate) socket: Option<Socket<'a>>,
    pub(crate) tcp_info: Option<TcpInfo>,
}

/// A socket's addresses.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Socket<'a> {
    #[serde(borrow)]
    pub(crate) local: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) peer: Option<Cow<'a, str>>,
    pub(crate) mss: Option<u64>,
    #[serde(borrow)]
    pub(crate) congestion: Option<Cow<'a, str>>,
}

/// A line of the samples of `TCP_INFO`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Look<'a> {
    pub(crate) t: u64,
    #[serde(borrow)]
    pub(crate) local: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) peer: Cow<'a, str>,
    pub(crate) info: TcpInfo,
}

/// What is used of `TCP_INFO`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct TcpInfo {
    #[serde(alias = "tcpi_total_retrans")]
    pub(crate) total_retrans: Option<u64>,
    #[serde(alias = "tcpi_snd_mss")]
    pub(crate) snd_mss: Option<u64>,
    #[serde(alias = "tcpi_unacked")]
    pub(crate) unacked: Option<u64>,
    #[serde(alias = "tcpi_notsent_bytes")]
    pub(crate) notsent_bytes: Option<u64>,
}

impl Event<'_> {
    /// Whose event it is: its own port and its peer's.
    pub(crate) fn ports(&self) -> Option<(u16, u16)> {
        let of = |number: Option<Number>, text: &Option<Cow<'_, str>>| match number {
            Some(number) => u16::try_from(number.0).ok(),
            None => port_of(text.as_deref()?),
        };
        Some((of(self.sport, &self.src)?, of(self.dport, &self.dest)?))
    }
}

/// The port of `ip:port`.
pub(crate) fn port_of(address: &str) -> Option<u16> {
    address.rsplit_once(':')?.1.parse().ok()
}

/// A number, written as one or as text.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Number(pub(crate) u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number.cast_unsigned()))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Number, E> {
                let number = match text.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16),
                    None => text.parse(),
                };
                number.map(Number).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Any)
    }
}
