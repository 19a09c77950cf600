//! `ss -ti`, once or in a loop, with `-n` and whatever else it is told to add (`-o -m -e -p -O`).
//!
//! A socket is a line with its state, its queues and its two ends; what the kernel says of it follows
//! on the same line or on those indented below. Samples of a loop follow each other, perhaps with a
//! line between them that tells the time ([`super::stamp`]). iproute2 leaves out what is zero and a
//! threshold that is infinite (`misc/ss.c`, `tcp_stats_print`), so an absent `rwnd_limited` beside a
//! `busy` is none, and an absent `ssthresh` beside a `cwnd` is infinite.
//!
//! Left out: sockets that listen, and those without a peer.

use super::address::{self, Ends};
use super::controller;
use super::error::{EvidenceError, PassedOver};
use super::sample::Sample;
use super::stamp::{self, Stamp};

/// States as `ss` prints them (`misc/ss.c`, `sstate_name`).
const STATES: [&str; 11] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
];

/// Whether the line is a socket's, or the head of a table of sockets.
pub(super) fn is_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("State" | "Netid") => line.contains("Recv-Q"),
        Some("tcp") => words.next().is_some_and(|word| STATES.contains(&word)),
        Some(word) => STATES.contains(&word),
        None => false,
    }
}

/// Reads all samples.
pub(super) fn read(text: &str) -> Result<(Vec<Sample>, PassedOver), EvidenceError> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut odd = PassedOver::default();
    let mut now: Option<Stamp> = None;
    // Whether the lines that follow are about the last sample.
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if is_line(line) {
            open = false;
            if line.contains("Recv-Q") || line.contains("LISTEN") || line.contains("UNCONN") {
                continue;
            }
            match socket(number, now, line) {
                Ok(sample) => {
                    samples.push(sample);
                    open = true;
                }
                Err(what) => odd.push(number, || what),
            }
        } else if let Some(stamp) = stamp::of_line(line) {
            (now, open) = (Some(stamp), false);
        } else if open
            && line.starts_with([' ', '\t'])
            && let Some(sample) = samples.last_mut()
        {
            words(sample, line.split_whitespace());
        }
    }
    samples.retain_mut(|sample| {
        finish(sample);
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

/// `ESTAB 0 17160 172.16.58.147:8000 172.16.58.146:41276 users:(...) ...`
fn socket(number: usize, now: Option<Stamp>, line: &str) -> Result<Sample, String> {
    let mut words_of = line.split_whitespace();
    if words_of.next() == Some("tcp") {
        words_of.next();
    }
    let mut field = |what: &str| words_of.next().ok_or_else(|| format!("it ends before {what}"));
    let (recv, send) = (field("its queues")?, field("its queues")?);
    let (local, peer) = (field("its address")?, field("its peer")?);
    let queue = |word: &str| word.parse::<u64>().map_err(|_| format!("{word:?} is no queue"));
    let end = |word: &str| {
        address::read(word)
            .ok_or_else(|| format!("{word:?} is no address with a port; ss prints numbers with -n"))
    };
    let mut sample = Sample::new(number, now, Ends { local: end(local)?, peer: end(peer)? });
    sample.unread = Some(queue(recv)?);
    queue(send)?;
    words(&mut sample, words_of);
    Ok(sample)
}

fn words<'a>(sample: &mut Sample, words: impl Iterator<Item = &'a str>) {
    for word in words {
        let Some((name, value)) = word.split_once(':') else {
            if controller::NAMES.contains(&word) {
                sample.controller = Some(word.into());
            }
            continue;
        };
        let number = || value.parse::<u64>().ok();
        match name {
            "cwnd" => sample.cwnd = number(),
            "ssthresh" => {
                if let Some(segments) = number() {
                    sample.set_ssthresh(segments);
                }
            }
            "minrtt" => sample.min_rtt_ns = millis(value),
            "busy" => sample.busy_ns = span(value),
            "rwnd_limited" => sample.rwnd_limited_ns = span(value),
            "sndbuf_limited" => sample.sndbuf_limited_ns = span(value),
            "snd_wnd" => sample.snd_wnd = number(),
            "notsent" => sample.unsent = number(),
            "bytes_sent" => sample.bytes_sent = number(),
            "bytes_retrans" => sample.bytes_retrans = number(),
            "bytes_acked" => sample.bytes_acked = number(),
            "retrans" => {
                sample.retrans = value.split_once('/').and_then(|(_, all)| all.parse().ok());
            }
            "skmem" => memory(sample, value),
            _ => {}
        }
    }
}

/// `(r0,rb131072,t0,tb87040,f2040,w59400,o0,bl0,d0)`
fn memory(sample: &mut Sample, value: &str) {
    for part in value.trim_matches(['(', ')']).split(',') {
        if let Some(limit) = part.strip_prefix("rb") {
            sample.rcvbuf = limit.parse().ok();
        } else if let Some(limit) = part.strip_prefix("tb") {
            sample.sndbuf = limit.parse().ok();
        }
    }
}

/// What is not printed because it is zero or infinite.
fn finish(sample: &mut Sample) {
    if sample.cwnd.is_some() {
        sample.ssthresh.get_or_insert(None);
        sample.retrans.get_or_insert(0);
        sample.unsent.get_or_insert(0);
    }
    if sample.busy_ns.is_some() {
        sample.rwnd_limited_ns.get_or_insert(0);
        sample.sndbuf_limited_ns.get_or_insert(0);
    }
    if sample.bytes_sent.is_some() {
        sample.bytes_retrans.get_or_insert(0);
    }
}

/// Milliseconds with a fraction, in nanoseconds.
fn millis(value: &str) -> Option<i64> {
    // Micro-, not nanoseconds: the kernel has no finer ones.
    stamp::decimal(value).map(|nanos| nanos / 1_000)
}

/// `5372ms(92.8%)`, in nanoseconds.
fn span(value: &str) -> Option<i64> {
    let (number, _) = value.split_once("ms")?;
    number.parse::<u32>().ok().map(|ms| i64::from(ms) * 1_000_000)
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
