//! `ss -ti`, once or in a loop, with `-n` and any further options (`-o -m -e -p -O`).
//!
//! Lines are read by `host::paste::ss`, which knows all that `ss` prints; here they are made samples.
//! Samples of a loop follow each other, perhaps with a line between them that tells the time
//! ([`tcpwhy_words::printed::stamp`]). An absent `rwnd_limited` beside a `busy` is none, and an absent `ssthresh` beside a
//! `cwnd` is infinite.
//!
//! Left out: sockets that listen, and those without a peer.

use super::sample::Sample;
use tcpwhy_host::paste::ss::{self as lines, Row, details};
use tcpwhy_host::snapshot::{Info, Socket};
use tcpwhy_words::printed::address::Ends;
use tcpwhy_words::printed::error::{EvidenceError, PassedOver};
use tcpwhy_words::printed::stamp::{self, Stamp};

/// A socket's line with those below it.
struct Seen {
    line: usize,
    at: Option<Stamp>,
    socket: Socket,
}

/// Whether the line is a socket's, or the head of a table of sockets.
pub(super) fn is_line(line: &str) -> bool {
    let is_head = || line.trim_start().starts_with("Recv-Q") && line.contains("Send-Q");
    lines::is_line(line) || is_bare_row(line) || is_head()
}

/// `0 17160 172.16.58.147:8000 172.16.58.146:41276`: a socket's row where `ss` was asked for those of one state alone, which
/// it then leaves out.
fn is_bare_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_queue = |word: Option<&str>| word.is_some_and(|word| word.parse::<u32>().is_ok());
    let is_end = |word: Option<&str>| {
        let end = word.and_then(|word| word.rsplit_once(':'));
        // An address of either family has a dot or a bracket.
        end.is_some_and(|(host, port)| host.contains(['.', '[']) && port.parse::<u16>().is_ok())
    };
    !line.starts_with([' ', '\t'])
        && is_queue(words.next())
        && is_queue(words.next())
        && is_end(words.next())
        && is_end(words.next())
}

/// Reads all samples.
pub(super) fn read(text: &str) -> Result<(Vec<Sample>, PassedOver), EvidenceError> {
    let mut seen: Vec<Seen> = Vec::new();
    let mut odd = PassedOver::default();
    let mut now: Option<Stamp> = None;
    // Whether the lines that follow are about the last socket.
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let is_bare = is_bare_row(line);
        if is_bare || is_line(line) {
            open = false;
            if line.contains("Recv-Q") || line.contains("LISTEN") || line.contains("UNCONN") {
                continue;
            }
            let row = if is_bare { Row::behind_state("ESTAB", line) } else { Row::of(line) };
            match row.and_then(|row| row.socket()) {
                Ok(socket) => {
                    seen.push(Seen { line: number, at: now, socket });
                    open = true;
                }
                Err(what) => odd.push(number, || what),
            }
        } else if let Some(stamp) = stamp::of_line(line) {
            (now, open) = (Some(stamp), false);
        } else if open
            && line.starts_with([' ', '\t'])
            && let Some(last) = seen.last_mut()
        {
            details(&mut last.socket, line);
        } else if !line.trim().is_empty() {
            // A socket of another family, a prompt: what is below it is its own.
            open = false;
        }
    }
    let mut samples: Vec<Sample> = seen.iter().map(Seen::sample).collect();
    if samples.iter().any(|sample| sample.snd_wnd.is_some()) {
        // A window that is shut is not printed.
        for sample in samples.iter_mut().filter(|sample| sample.cwnd.is_some()) {
            sample.snd_wnd.get_or_insert(0);
        }
    }
    samples.retain(|sample| {
        let says = sample.says_something();
        if !says {
            odd.push(sample.line, || {
                "this socket has no line of TCP's own figures: ss shows them with -i".to_owned()
            });
        }
        says
    });
    if samples.is_empty() {
        return Err(odd.into_error("no connected socket is listed; was it open when ss looked?"));
    }
    Ok((samples, odd))
}

impl Seen {
    fn sample(&self) -> Sample {
        let Socket { local, remote, receive_queue, .. } = self.socket;
        let empty = Info::default();
        let info = self.socket.info.as_deref().unwrap_or(&empty);
        let signed = |ns: Option<u64>| ns.and_then(|ns| i64::try_from(ns).ok());
        // What is not printed because it is zero or infinite.
        let beside_cwnd = info.snd_cwnd.map(|_| 0_u64);
        let beside_busy = info.busy_ns.map(|_| 0);
        let beside_sent = info.bytes_sent.map(|_| 0);
        Sample {
            unread: Some(u64::from(receive_queue)),
            controller: self.socket.congestion.as_deref().map(Into::into),
            cwnd: info.snd_cwnd.map(u64::from),
            ssthresh: info
                .snd_ssthresh
                .map(|segments| Some(u64::from(segments)))
                .or(info.snd_cwnd.map(|_| None)),
            min_rtt_ns: signed(info.min_rtt_ns),
            busy_ns: signed(info.busy_ns),
            rwnd_limited_ns: signed(info.rwnd_limited_ns).or(beside_busy),
            sndbuf_limited_ns: signed(info.sndbuf_limited_ns).or(beside_busy),
            snd_wnd: info.snd_wnd.map(u64::from),
            sndbuf: self.socket.memory.map(|memory| u64::from(memory.sndbuf)),
            rcvbuf: self.socket.memory.map(|memory| u64::from(memory.rcvbuf)),
            unsent: info.notsent_bytes.or(beside_cwnd),
            bytes_sent: info.bytes_sent,
            bytes_retrans: info.bytes_retrans.or(beside_sent),
            bytes_acked: info.bytes_acked,
            retrans: info.total_retrans.map(u64::from).or(beside_cwnd),
            own_scale: info.rcv_wscale,
            peer_scale: info.snd_wscale,
            ..Sample::new(self.line, self.at, Ends { local, peer: remote })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE_1: &str = include_str!("../../../../testdata/evidence/articles/ss-case1.txt");

    #[test]
    fn the_article_s_sockets_are_read() {
        let (samples, odd) = read(CASE_1).expect("two sockets");
        assert_eq!((samples.len(), odd.count), (2, 0));
        let server = &samples[1];
        assert_eq!(server.ends.local.to_string(), "172.16.58.147:8000");
        assert_eq!(server.ends.peer.to_string(), "172.16.58.146:59178");
        assert_eq!((server.cwnd, server.ssthresh), (Some(1018), Some(Some(192))));
        assert_eq!(
            (server.busy_ns, server.rwnd_limited_ns),
            (Some(5_789_000_000), Some(5_372_000_000))
        );
        assert_eq!(server.sndbuf_limited_ns, Some(0), "what is zero is not printed");
        assert_eq!(server.min_rtt_ns, Some(170_000));
        assert_eq!((server.sndbuf, server.rcvbuf), (Some(4_194_304), Some(131_072)));
        assert_eq!((server.bytes_sent, server.bytes_retrans), (Some(1_052_453_816), Some(271_224)));
        assert_eq!((server.unsent, server.retrans), (Some(3_861_816), Some(240)));
        assert_eq!(samples[0].ssthresh, Some(None), "a threshold that is not printed is infinite");
        assert_eq!(samples[0].unread, Some(2_688_024));
    }

    #[test]
    fn samples_take_the_time_above_them() {
        let socket = "ESTAB 0 0 [::ffff:10.0.0.1]:80 [::ffff:10.0.0.2]:4000\n\t cubic cwnd:10\n";
        let text =
            format!("1795342323.5\nState Recv-Q Send-Q Local\n{socket}\n1795342324\n{socket}");
        let (samples, _) = read(&text).expect("two samples");
        let at: Vec<_> = samples.iter().filter_map(|sample| sample.at).collect();
        assert_eq!(at, [1_795_342_323_500_000_000, 1_795_342_324_000_000_000].map(Stamp::Unix));
        assert_eq!(samples[0].ends.local.to_string(), "10.0.0.1:80");
    }

    #[test]
    fn sockets_of_one_state_are_listed_without_it() {
        let text = "Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n\
                    0      0      10.0.0.1:80        10.0.0.2:4000\n\t cubic cwnd:33 ssthresh:20\n";
        assert!(text.lines().take(2).all(is_line));
        let (samples, _) = read(text).expect("a sample");
        assert_eq!((samples.len(), samples[0].cwnd), (1, Some(33)));
        assert!(!is_line("0 0 1 2") && !is_line("12 13 14:15 16:17 18"), "other tables");
    }

    #[test]
    fn what_is_below_another_family_s_socket_is_its_own() {
        let text = "tcp ESTAB 0 0 10.0.0.1:80 10.0.0.2:4000\n\t cubic cwnd:33\n\
                    mptcp ESTAB 0 0 10.0.0.1:80 10.0.0.2:4001\n\t cubic cwnd:7\n";
        let (samples, _) = read(text).expect("a sample");
        assert_eq!((samples.len(), samples[0].cwnd), (1, Some(33)));
    }

    #[test]
    fn a_window_that_is_not_printed_is_shut_where_others_are() {
        let of = |second: &str| {
            let line = "ESTAB 0 0 10.0.0.1:80 10.0.0.2:4000\n\t cubic cwnd:33";
            let (samples, _) = read(&format!("{line}{second}\n{line}\n")).expect("two samples");
            samples.iter().map(|sample| sample.snd_wnd).collect::<Vec<_>>()
        };
        assert_eq!(of(" snd_wnd:64240"), [Some(64_240), Some(0)]);
        assert_eq!(of(""), [None, None], "older ones print none at all");
    }

    #[test]
    fn one_line_a_socket_is_read_too() {
        let line = "ESTAB 0 0 10.0.0.1:80 10.0.0.2:4000 ino:7 sk:1 <-> cubic cwnd:33 ssthresh:20";
        let (samples, _) = read(line).expect("a sample");
        assert_eq!((samples[0].cwnd, samples[0].ssthresh), (Some(33), Some(Some(20))));
    }

    #[test]
    fn what_helps_is_said_where_nothing_can_be_used() {
        let error = |text| read(text).expect_err("useless").to_string();
        let names = "ESTAB 0 0 here:http there:4000\n\t cubic cwnd:10\n";
        assert_eq!(
            error(names),
            "line 1: \"here:http\" is no address with a port; ss prints numbers with -n"
        );
        let bare = "State Recv-Q Send-Q\nESTAB 0 0 10.0.0.1:80 10.0.0.2:4000\n";
        assert!(error(bare).ends_with("ss shows them with -i"), "{}", error(bare));
        assert!(error("LISTEN 0 128 *:80 *:*\n").contains("no connected socket"));
    }
}
