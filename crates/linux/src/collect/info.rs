//! `TCP_INFO` as the checks want it: times in nanoseconds, and what is not known absent.

use tcpwhy::host::snapshot::Info;

use crate::record::tcp_info::Field;

/// Reads a field by the kernel's name, whose place is looked up while this is compiled.
macro_rules! field {
    ($info:expr, $name:literal) => {{
        const FIELD: Field = Field::named($name);
        FIELD.read($info)
    }};
}

/// What of a `tcp_info` is there.
pub(super) fn info(bytes: &[u8]) -> Info {
    let narrow = |value: Option<u64>| value.map(|value| value as u32);
    let byte = |value: Option<u64>| value.map(|value| value as u8);
    let ms = |value: Option<u64>| value.map(|ms| ms * 1_000_000);
    let us = |value: Option<u64>| value.map(|us| us.saturating_mul(1000));
    // An estimate without a sample is 0.
    let sampled = |value: Option<u64>| value.filter(|&value| value != 0);
    let limited = |value: Option<u64>| value.filter(|&rate| rate != u64::MAX);
    let options = byte(field!(bytes, "options"));
    let scaled = |value| byte(value).filter(|_| options.is_some_and(|all| all & WSCALE != 0));
    Info {
        options,
        rcv_wscale: scaled(field!(bytes, "rcv_wscale")),
        snd_wscale: scaled(field!(bytes, "snd_wscale")),
        backoff: byte(field!(bytes, "backoff")),
        rto_ns: us(field!(bytes, "rto")),
        snd_mss: narrow(field!(bytes, "snd_mss")),
        rcv_mss: narrow(field!(bytes, "rcv_mss")),
        advmss: narrow(field!(bytes, "advmss")),
        pmtu: narrow(field!(bytes, "pmtu")),
        unacked: narrow(field!(bytes, "unacked")),
        lost: narrow(field!(bytes, "lost")),
        last_data_sent_ns: ms(field!(bytes, "last_data_sent")),
        last_data_recv_ns: ms(field!(bytes, "last_data_recv")),
        last_ack_recv_ns: ms(field!(bytes, "last_ack_recv")),
        rtt_ns: us(sampled(field!(bytes, "rtt"))),
        min_rtt_ns: us(field!(bytes, "min_rtt").filter(|&us| us != u64::from(u32::MAX))),
        rcv_rtt_ns: us(sampled(field!(bytes, "rcv_rtt"))),
        snd_cwnd: narrow(field!(bytes, "snd_cwnd")),
        snd_ssthresh: narrow(field!(bytes, "snd_ssthresh").filter(|&all| all < INFINITE)),
        rcv_ssthresh: narrow(field!(bytes, "rcv_ssthresh")),
        rcv_space: narrow(field!(bytes, "rcv_space")),
        reordering: narrow(field!(bytes, "reordering")),
        total_retrans: narrow(field!(bytes, "total_retrans")),
        dsack_dups: narrow(field!(bytes, "dsack_dups")),
        rcv_ooopack: narrow(field!(bytes, "rcv_ooopack")),
        pacing_rate: limited(field!(bytes, "pacing_rate")),
        max_pacing_rate: limited(field!(bytes, "max_pacing_rate")),
        delivery_rate: sampled(field!(bytes, "delivery_rate")),
        delivery_rate_app_limited: field!(bytes, "delivery_rate_app_limited").map(|bit| bit != 0),
        bytes_acked: field!(bytes, "bytes_acked"),
        bytes_received: field!(bytes, "bytes_received"),
        bytes_sent: field!(bytes, "bytes_sent"),
        bytes_retrans: field!(bytes, "bytes_retrans"),
        notsent_bytes: field!(bytes, "notsent_bytes"),
        busy_ns: us(field!(bytes, "busy_time")),
        rwnd_limited_ns: us(field!(bytes, "rwnd_limited")),
        sndbuf_limited_ns: us(field!(bytes, "sndbuf_limited")),
        snd_wnd: narrow(field!(bytes, "snd_wnd")),
        rcv_wnd: narrow(field!(bytes, "rcv_wnd")),
        // An attribute of its own.
        bbr: None,
    }
}

/// `TCPI_OPT_WSCALE` (Linux `include/uapi/linux/tcp.h`): without it both shifts mean nothing.
const WSCALE: u8 = 4;
/// `TCP_INFINITE_SSTHRESH` (Linux `include/net/tcp.h`).
const INFINITE: u64 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_has_no_sample_or_no_limit_is_not_known() {
        let mut bytes = vec![0; 280];
        bytes[5] = 7;
        bytes[6] = 0x7a;
        bytes[68..72].copy_from_slice(&1500_u32.to_ne_bytes());
        bytes[76..80].copy_from_slice(&0x7fff_ffff_u32.to_ne_bytes());
        bytes[112..120].copy_from_slice(&u64::MAX.to_ne_bytes());
        bytes[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        let found = info(&bytes);
        assert_eq!((found.snd_wscale, found.rcv_wscale), (Some(10), Some(7)));
        assert_eq!(
            (found.rtt_ns, found.rcv_rtt_ns, found.min_rtt_ns),
            (Some(1_500_000), None, None)
        );
        assert_eq!((found.snd_ssthresh, found.max_pacing_rate), (None, None));
        assert_eq!(found.rcv_wnd, Some(0));
        bytes[5] = 3;
        assert_eq!(info(&bytes).snd_wscale, None, "not negotiated");
    }

    proptest! {
        #[test]
        fn any_bytes_of_any_length(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let found = info(&bytes);
            prop_assert_eq!(found.rcv_wnd.is_some(), bytes.len() >= 236);
            prop_assert_eq!(found.bytes_sent.is_some(), bytes.len() >= 208);
        }
    }
}
