//! Where the fields of `struct tcp_info` stand (Linux `include/uapi/linux/tcp.h`).
//!
//! The kernel only ever adds to its end, so one table serves all versions. Names are the kernel's
//! without `tcpi_`; times of `rto`, `rtt`, `busy_time` and their kin are microseconds, those of
//! `last_*` milliseconds, rates bytes per second.

use std::fmt::Write as _;
use std::io;
use std::os::fd::BorrowedFd;

use crate::netlink::number;
use crate::sys;
use Kind::{Bit, High, Low, TwoBits, U8, U16, U32, U64};

/// The fields of a `TCP_INFO` as JSON, as far as `info` reaches.
pub fn info_json(info: &[u8]) -> String {
    let mut text = String::from("{");
    for &(name, at, kind) in FIELDS {
        let Some(value) = (Field { at, kind }).read(info) else { continue };
        let comma = if text.len() == 1 { "" } else { "," };
        let _ = write!(text, "{comma}\"{name}\":{value}");
    }
    text.push('}');
    text
}

/// The `TCP_INFO` of a socket of ours, now.
pub(crate) fn of_socket(socket: BorrowedFd<'_>) -> io::Result<serde_json::Value> {
    let mut info = [0; 512];
    let length = sys::option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(serde_json::from_str(&info_json(&info[..length.min(info.len())]))?)
}

/// Where a field is and how it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    at: usize,
    kind: Kind,
}

impl Field {
    /// The one of this name. To be called in a constant: then a name that is not there does not compile.
    pub(crate) const fn named(name: &str) -> Self {
        let mut row = 0;
        while row < FIELDS.len() {
            let (own, at, kind) = FIELDS[row];
            if is_same(own.as_bytes(), name.as_bytes()) {
                return Self { at, kind };
            }
            row += 1;
        }
        panic!("no field of TCP_INFO has this name")
    }

    /// Its value, if `info` reaches so far.
    pub(crate) fn read(self, info: &[u8]) -> Option<u64> {
        self.kind.read(info, self.at)
    }
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut same = a.len() == b.len();
    let mut at = 0;
    while same && at < a.len() {
        same = a[at] == b[at];
        at += 1;
    }
    same
}

/// How a field is stored.
#[derive(Clone, Copy, Debug)]
enum Kind {
    U8,
    U16,
    U32,
    U64,
    /// The low half of a byte, the first of two bit fields.
    Low,
    /// The high half.
    High,
    /// The lowest bit.
    Bit,
    /// The two bits above it.
    TwoBits,
}

impl Kind {
    fn read(self, bytes: &[u8], at: usize) -> Option<u64> {
        let byte = || number(bytes, at, 1);
        match self {
            Self::U8 => byte(),
            Self::U16 => number(bytes, at, 2),
            Self::U32 => number(bytes, at, 4),
            Self::U64 => number(bytes, at, 8),
            Self::Low => Some(byte()? & 15),
            Self::High => Some(byte()? >> 4),
            Self::Bit => Some(byte()? & 1),
            Self::TwoBits => Some(byte()? >> 1 & 3),
        }
    }
}

/// Name, offset and kind of each field.
#[rustfmt::skip]
const FIELDS: &[(&str, usize, Kind)] = &[
    ("state", 0, U8),
    ("ca_state", 1, U8),
    ("retransmits", 2, U8),
    ("probes", 3, U8),
    ("backoff", 4, U8),
    ("options", 5, U8),
    ("snd_wscale", 6, Low),
    ("rcv_wscale", 6, High),
    ("delivery_rate_app_limited", 7, Bit),
    ("fastopen_client_fail", 7, TwoBits),
    ("rto", 8, U32),
    ("ato", 12, U32),
    ("snd_mss", 16, U32),
    ("rcv_mss", 20, U32),
    ("unacked", 24, U32),
    ("sacked", 28, U32),
    ("lost", 32, U32),
    ("retrans", 36, U32),
    ("fackets", 40, U32),
    ("last_data_sent", 44, U32),
    ("last_ack_sent", 48, U32),
    ("last_data_recv", 52, U32),
    ("last_ack_recv", 56, U32),
    ("pmtu", 60, U32),
    ("rcv_ssthresh", 64, U32),
    ("rtt", 68, U32),
    ("rttvar", 72, U32),
    ("snd_ssthresh", 76, U32),
    ("snd_cwnd", 80, U32),
    ("advmss", 84, U32),
    ("reordering", 88, U32),
    ("rcv_rtt", 92, U32),
    ("rcv_space", 96, U32),
    ("total_retrans", 100, U32),
    ("pacing_rate", 104, U64),
    ("max_pacing_rate", 112, U64),
    ("bytes_acked", 120, U64),
    ("bytes_received", 128, U64),
    ("segs_out", 136, U32),
    ("segs_in", 140, U32),
    ("notsent_bytes", 144, U32),
    ("min_rtt", 148, U32),
    ("data_segs_in", 152, U32),
    ("data_segs_out", 156, U32),
    ("delivery_rate", 160, U64),
    ("busy_time", 168, U64),
    ("rwnd_limited", 176, U64),
    ("sndbuf_limited", 184, U64),
    ("delivered", 192, U32),
    ("delivered_ce", 196, U32),
    ("bytes_sent", 200, U64),
    ("bytes_retrans", 208, U64),
    ("dsack_dups", 216, U32),
    ("reord_seen", 220, U32),
    ("rcv_ooopack", 224, U32),
    ("snd_wnd", 228, U32),
    ("rcv_wnd", 232, U32),
    ("rehash", 236, U32),
    ("total_rto", 240, U16),
    ("total_rto_recoveries", 242, U16),
    ("total_rto_time", 244, U32),
    ("received_ce", 248, U32),
    ("delivered_e1_bytes", 252, U32),
    ("delivered_e0_bytes", 256, U32),
    ("delivered_ce_bytes", 260, U32),
    ("received_e1_bytes", 264, U32),
    ("received_e0_bytes", 268, U32),
    ("received_ce_bytes", 272, U32),
    ("accecn_fail_mode", 276, U16),
    ("accecn_opt_seen", 278, U16),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_where_they_stand() {
        // 4.18: up to `delivered_ce`.
        let mut info = vec![0; 200];
        info[0] = 1;
        info[6] = 0x7a;
        info[7] = 0b101;
        info[80..84].copy_from_slice(&10_u32.to_ne_bytes());
        info[168..176].copy_from_slice(&5_000_000_000_u64.to_ne_bytes());
        let read: serde_json::Value = serde_json::from_str(&info_json(&info)).expect("JSON");
        assert_eq!(read["state"], 1);
        assert_eq!((&read["snd_wscale"], &read["rcv_wscale"]), (&10.into(), &7.into()));
        assert_eq!(read["delivery_rate_app_limited"], 1);
        assert_eq!(read["fastopen_client_fail"], 2);
        assert_eq!(read["snd_cwnd"], 10);
        assert_eq!(read["busy_time"], 5_000_000_000_u64);
        assert_eq!(read["delivered_ce"], 0);
    }

    #[test]
    fn what_a_kernel_does_not_know_is_absent() {
        let names = |length| {
            let text = info_json(&vec![0; length]);
            let read: serde_json::Map<_, _> = serde_json::from_str(&text).expect("JSON");
            read.keys().cloned().collect::<Vec<_>>()
        };
        assert!(!names(200).contains(&"bytes_sent".to_owned()));
        assert!(names(208).contains(&"bytes_sent".to_owned()));
        assert!(!names(206).contains(&"bytes_sent".to_owned()));
        assert!(names(0).is_empty());
        assert_eq!(names(280).len(), FIELDS.len());
    }
}
