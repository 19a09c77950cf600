//! `TCP_INFO` as `tcpwhy record` and the lab write it: one socket at one look a line, in JSON.
//!
//! `t` is in nanoseconds since 1970; `info` has the fields of the kernel's structure by their names (Linux
//! `include/uapi/linux/tcp.h`: times are microseconds, of the last packets milliseconds), `mem` those of `SK_MEMINFO`. An estimate
//! without a sample is 0, an infinite threshold 2^31 - 1, an unlimited rate all ones.

use serde_json::{Map, Value};

use crate::host::snapshot::{Info, Listener, Memory, Socket, State, Timer};

/// What a line is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Recorded {
    /// A connection.
    Connection(Socket),
    /// A socket that listens.
    Listener(Listener),
}

/// When, and what; `None` for other lines.
pub fn recorded(line: &str) -> Option<(u64, Recorded)> {
    let line: Map<String, Value> = serde_json::from_str(line.trim()).ok()?;
    let number = |name: &str| line.get(name)?.as_u64();
    let end = |name: &str| line.get(name)?.as_str()?.parse().ok();
    let (t_ns, local, remote) = (number("t")?, end("local")?, end("peer")?);
    let info = line.get("info").and_then(Value::as_object);
    let memory = line.get("mem").and_then(Value::as_object);
    let (received, written) = (small(number("rqueue"))?, small(number("wqueue"))?);
    let memory = memory.map(memory_of);
    let inode = number("inode").unwrap_or(0);
    let state = line.get("state")?.as_str()?;
    if state == "LISTEN" {
        let listener = Listener {
            local,
            accept_queue: received,
            accept_max: written,
            drops: memory.map(|memory| memory.drops),
            inode,
            inode_unseen: inode == 0,
            owner: None,
        };
        return Some((t_ns, Recorded::Listener(listener)));
    }
    let timer = Timer {
        kind: byte(number("timer")).unwrap_or(0),
        retransmits: byte(number("retransmits")).unwrap_or(0),
        expires_ms: 0,
    };
    let socket = Socket {
        receive_queue: received,
        send_queue: written,
        inode,
        inode_unseen: inode == 0,
        cookie: number("cookie").unwrap_or(0),
        timer: Some(timer).filter(|timer| timer.kind != 0),
        memory,
        congestion: line.get("congestion").and_then(Value::as_str).map(str::to_owned),
        info: info.map(|info| Box::new(info_of(info))),
        ..Socket::new(state_of(state)?, local, remote)
    };
    Some((t_ns, Recorded::Connection(socket)))
}

fn small(number: Option<u64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

fn byte(number: Option<u64>) -> Option<u8> {
    number.and_then(|number| u8::try_from(number).ok())
}

/// As ss(8) names them.
fn state_of(name: &str) -> Option<State> {
    Some(match name {
        "ESTAB" => State::Established,
        "SYN-SENT" => State::SynSent,
        "SYN-RECV" => State::SynRecv,
        "FIN-WAIT-1" => State::FinWait1,
        "FIN-WAIT-2" => State::FinWait2,
        "UNCONN" => State::Close,
        "CLOSE-WAIT" => State::CloseWait,
        "LAST-ACK" => State::LastAck,
        "CLOSING" => State::Closing,
        _ => return None,
    })
}

fn memory_of(fields: &Map<String, Value>) -> Memory {
    let field = |name: &str| small(fields.get(name).and_then(Value::as_u64)).unwrap_or(0);
    Memory {
        rmem: field("rmem_alloc"),
        rcvbuf: field("rcvbuf"),
        wmem: field("wmem_alloc"),
        sndbuf: field("sndbuf"),
        forward: field("fwd_alloc"),
        wqueued: field("wmem_queued"),
        optmem: field("optmem"),
        backlog: field("backlog"),
        drops: field("drops"),
    }
}

/// `TCP_INFINITE_SSTHRESH` (Linux `include/net/tcp.h`).
const INFINITE: u64 = 0x7fff_ffff;

fn info_of(fields: &Map<String, Value>) -> Info {
    let field = |name: &str| fields.get(name).and_then(Value::as_u64);
    let us = |name: &str| field(name).map(|us| us.saturating_mul(1_000));
    let ms = |name: &str| field(name).map(|ms| ms.saturating_mul(1_000_000));
    let sampled = |name: &str| us(name).filter(|time| *time != 0);
    Info {
        options: byte(field("options")),
        backoff: byte(field("backoff")),
        rto_ns: us("rto"),
        snd_mss: small(field("snd_mss")),
        rcv_mss: small(field("rcv_mss")),
        advmss: small(field("advmss")),
        pmtu: small(field("pmtu")),
        unacked: small(field("unacked")),
        lost: small(field("lost")),
        last_data_sent_ns: ms("last_data_sent"),
        last_data_recv_ns: ms("last_data_recv"),
        last_ack_recv_ns: ms("last_ack_recv"),
        rtt_ns: sampled("rtt"),
        min_rtt_ns: field("min_rtt").filter(|us| *us != u64::from(u32::MAX)).map(|us| us * 1_000),
        rcv_rtt_ns: sampled("rcv_rtt"),
        snd_cwnd: small(field("snd_cwnd")),
        snd_ssthresh: small(field("snd_ssthresh").filter(|met| *met < INFINITE)),
        rcv_ssthresh: small(field("rcv_ssthresh")),
        rcv_space: small(field("rcv_space")),
        reordering: small(field("reordering")),
        total_retrans: small(field("total_retrans")),
        dsack_dups: small(field("dsack_dups")),
        rcv_ooopack: small(field("rcv_ooopack")),
        pacing_rate: field("pacing_rate").filter(|rate| *rate != u64::MAX),
        max_pacing_rate: field("max_pacing_rate").filter(|rate| *rate != u64::MAX),
        delivery_rate: field("delivery_rate").filter(|rate| *rate != 0),
        delivery_rate_app_limited: field("delivery_rate_app_limited").map(|bit| bit != 0),
        bytes_acked: field("bytes_acked"),
        bytes_received: field("bytes_received"),
        bytes_sent: field("bytes_sent"),
        bytes_retrans: field("bytes_retrans"),
        notsent_bytes: field("notsent_bytes"),
        busy_ns: us("busy_time"),
        rwnd_limited_ns: us("rwnd_limited"),
        sndbuf_limited_ns: us("sndbuf_limited"),
        snd_wnd: small(field("snd_wnd")),
        rcv_wnd: small(field("rcv_wnd")),
        ..Info::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"t":1760000010000000000,"local":"10.0.1.1:8000","peer":"10.0.2.1:43472","state":"ESTAB","cookie":3,
"inode":3880,"timer":1,"retransmits":0,"rqueue":0,"wqueue":5792,"mem":{"rcvbuf":131072,"sndbuf":87040,"wmem_queued":9216},
"info":{"options":7,"rto":270000,"snd_mss":1448,"unacked":4,"lost":0,"rtt":66986,"min_rtt":4294967295,"snd_ssthresh":2147483647,
"snd_cwnd":10,"pacing_rate":18446744073709551615,"bytes_acked":1,"notsent_bytes":0,"busy_time":12,"last_data_sent":3,
"snd_wnd":64256},"congestion":"cubic"}"#;

    #[test]
    fn a_line_is_a_socket_at_a_look() {
        let (t_ns, Recorded::Connection(socket)) =
            recorded(&LINE.replace('\n', "")).expect("a line")
        else {
            panic!("it does not listen");
        };
        assert_eq!((t_ns, socket.cookie, socket.send_queue), (1_760_000_010_000_000_000, 3, 5792));
        let info = socket.info.expect("figures");
        assert_eq!((info.rtt_ns, info.busy_ns), (Some(66_986_000), Some(12_000)));
        assert_eq!(info.last_data_sent_ns, Some(3_000_000));
        assert_eq!((info.min_rtt_ns, info.snd_ssthresh, info.pacing_rate), (None, None, None));
        assert_eq!(socket.memory.map(|memory| memory.wqueued), Some(9216));
    }

    #[test]
    fn a_listener_has_its_queue_and_other_lines_are_none() {
        let listens = LINE
            .replace('\n', "")
            .replace("ESTAB", "LISTEN")
            .replace("\"wqueue\":5792", "\"wqueue\":128");
        let Some((_, Recorded::Listener(listener))) = recorded(&listens) else {
            panic!("it listens")
        };
        assert_eq!((listener.accept_queue, listener.accept_max), (0, 128));
        for other in
            ["", "{}", "{\"t\":1}", "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2", "{\"t\":-1,\"local\":3}"]
        {
            assert_eq!(recorded(other), None, "{other}");
        }
    }
}
