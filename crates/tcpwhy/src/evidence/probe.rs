//! The kernel's tracepoint `tcp_probe`: a sender's windows at each segment that arrives.
//!
//! | who wrote it | a line |
//! |---|---|
//! | `perf script` | `curl 123 [001] 13143.103012: tcp:tcp_probe: family=AF_INET src=... dest=... snd_nxt=0x...` |
//! | `trace_pipe`, `trace` | `curl-123 [001] ..s1. 13139.888137: tcp_probe: family=... src=...` |
//! | `trace-cmd report` | the same without the flags |
//! | the lab | `{"t":...,"event":"tcp_probe","saddr":"10.0.0.1:80",...}` |
//!
//! Their clock is the kernel's own since boot, the lab's is that of the captures; places come from the
//! sequence numbers. It fires before the segment is processed (`tcp_rcv_established`, `tcp_input.c`): what it shows
//! held since the segment before. Other events in the same file are passed by.

use serde_json::{Map, Value};

use super::sample::{Sample, Sequence};
use tcpwhy_words::printed::address::{self, Ends};
use tcpwhy_words::printed::error::{EvidenceError, PassedOver};
use tcpwhy_words::printed::stamp::{self, Stamp};

/// Whether the line is such an event.
pub(super) fn is_line(line: &str) -> bool {
    line.contains("tcp_probe: ") || (line.starts_with('{') && line.contains("\"tcp_probe\""))
}

/// Reads all events.
pub(super) fn read(text: &str) -> Result<(Vec<Sample>, PassedOver), EvidenceError> {
    let mut samples = Vec::new();
    let mut odd = PassedOver::default();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| is_line(line)) {
        let sample =
            if line.starts_with('{') { from_json(at + 1, line) } else { from_text(at + 1, line) };
        match sample {
            Ok(sample) => samples.push(sample),
            Err(what) => odd.push(at + 1, || what),
        }
    }
    if samples.is_empty() {
        return Err(odd.into_error("no event can be read"));
    }
    Ok((samples, odd))
}

fn from_text(number: usize, line: &str) -> Result<Sample, String> {
    let (before, fields) = line.split_once("tcp_probe: ").ok_or("it is no event")?;
    let time = before.split_whitespace().rev().find_map(|word| {
        let word = word.strip_suffix(':').filter(|word| word.contains('.'))?;
        stamp::decimal(word).map(Stamp::Since)
    });
    let of = |name: &str| {
        fields.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let end = |name: &str| {
        let word = of(name).ok_or_else(|| format!("it has no {name:?}"))?;
        address::read(word).ok_or_else(|| {
            format!(
                "{word:?} is no address with a port; trace-cmd does not know how this kernel prints \
                 them: use perf script or trace_pipe"
            )
        })
    };
    let mut sample = Sample::new(number, time, Ends { local: end("src")?, peer: end("dest")? });
    fill(&mut sample, |name| {
        let word = of(name)?;
        match word.strip_prefix("0x") {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
            None => word.parse().ok(),
        }
    })?;
    Ok(sample)
}

fn from_json(number: usize, line: &str) -> Result<Sample, String> {
    let object: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| format!("this is no JSON: {error}"))?;
    let time = object.get("t").and_then(Value::as_i64).map(Stamp::Unix);
    let end = |name: &str| {
        let word = object.get(name).and_then(Value::as_str);
        word.and_then(address::read).ok_or_else(|| format!("{name:?} is no address with a port"))
    };
    let mut sample = Sample::new(number, time, Ends { local: end("saddr")?, peer: end("daddr")? });
    fill(&mut sample, |name| object.get(name)?.as_u64())?;
    Ok(sample)
}

fn fill(sample: &mut Sample, of: impl Fn(&str) -> Option<u64>) -> Result<(), String> {
    let number = |name: &str| of(name).ok_or_else(|| format!("it has no number {name:?}"));
    // Sequence numbers wrap at 32 bits (RFC 9293 §3.4).
    let (nxt, una) = (number("snd_nxt")? as u32, number("snd_una")? as u32);
    sample.sequence = Some(Sequence { nxt, una });
    sample.cwnd = Some(number("snd_cwnd")?);
    sample.set_ssthresh(number("ssthresh")?);
    sample.snd_wnd = of("snd_wnd");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "family=AF_INET6 src=[::ffff:192.0.2.1]:80 dest=[::ffff:198.51.100.2]:44614 mark=0x0 \
                          data_len=33 snd_nxt=0x477c47bf snd_una=0x477c47be snd_cwnd=10 ssthresh=2147483647 \
                          snd_wnd=64240 srtt=20267 rcv_wnd=65160 sock_cookie=12eb";

    #[test]
    fn every_tool_s_line_is_read() {
        for head in [
            "           relay-29014   [001] b..1. 13139.888137: tcp_probe: ",
            "           relay 29014 [001] 13139.888137: tcp:tcp_probe: ",
            "       relay-29014 [001] 13139.888137: tcp_probe: ",
        ] {
            let (samples, _) = read(&format!("# tracer: nop\n{head}{FIELDS}\n")).expect("an event");
            let sample = &samples[0];
            assert_eq!(sample.at, Some(Stamp::Since(13_139_888_137_000)), "{head}");
            assert_eq!(sample.ends.local.to_string(), "192.0.2.1:80");
            let sequence = Sequence { nxt: 0x477c_47bf, una: 0x477c_47be };
            assert_eq!(sample.sequence, Some(sequence));
            assert_eq!((sample.cwnd, sample.ssthresh), (Some(10), Some(None)));
        }
    }

    #[test]
    fn an_event_without_addresses_is_named() {
        let line = "x-1 [000] 1.5: tcp_probe: src=ARRAY[02, 00] dest=ARRAY[02] snd_nxt=0x1";
        let error = read(line).expect_err("no address").to_string();
        assert!(error.starts_with("line 1: \"ARRAY[02,\" is no address"), "{error}");
    }
}
