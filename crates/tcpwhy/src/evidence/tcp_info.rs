//! `TCP_INFO` as tables: JSON, one object a line, or columns with a head.
//!
//! A line has the two ends (`local`, `peer`), perhaps a time (`t` in ns since 1970) and the fields of the
//! kernel's structure by their names, with or without `tcpi_` (Linux `include/uapi/linux/tcp.h`): times are
//! microseconds there. In JSON the fields may stand in an object `info`, and the socket's memory in `mem`
//! by the names of `SK_MEMINFO`; so the lab and `tcpwhy record` write them. Columns are set apart by
//! commas, tabs or semicolons.

use serde_json::{Map, Value};

use super::controller;
use super::sample::Sample;
use tcpwhy_words::printed::address::{self, Ends};
use tcpwhy_words::printed::error::{EvidenceError, PassedOver};
use tcpwhy_words::printed::stamp::{self, Stamp};

/// What sets columns apart.
const SEPARATORS: [char; 3] = [',', '\t', ';'];

/// Whether the line is the head of a table, or a line of JSON about a socket.
pub(super) fn is_line(line: &str) -> bool {
    let json = line.starts_with('{') && line.contains("\"local\"") && line.contains("\"peer\"");
    json || columns(line).is_some()
}

/// Reads all samples.
pub(super) fn read(text: &str) -> Result<(Vec<Sample>, PassedOver), EvidenceError> {
    let mut samples = Vec::new();
    let mut odd = PassedOver::default();
    let mut head: Option<(char, Vec<String>)> = None;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let row = if line.starts_with('{') {
            match serde_json::from_str::<Map<String, Value>>(line) {
                Ok(object) => from_json(number, &object),
                Err(error) => Err(format!("this is no JSON: {error}")),
            }
        } else if let Some(found) = columns(line) {
            head = Some(found);
            continue;
        } else if let Some((separator, names)) = &head
            && !line.trim().is_empty()
        {
            from_columns(number, names, line.split(*separator))
        } else {
            continue;
        };
        match row {
            Ok(sample) if sample.says_something() => samples.push(sample),
            // Sockets that listen have an account of nothing.
            Ok(_) => {}
            Err(what) => odd.push(number, || what),
        }
    }
    if samples.is_empty() {
        return Err(odd.into_error("no line has a window or a count of bytes"));
    }
    Ok((samples, odd))
}

/// The names of a head, and what sets them apart.
fn columns(line: &str) -> Option<(char, Vec<String>)> {
    let separator = SEPARATORS.into_iter().find(|separator| line.contains(*separator))?;
    let names: Vec<String> = line.split(separator).map(name).collect();
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    (has("local") && has("peer") && (has("snd_cwnd") || has("cwnd"))).then_some((separator, names))
}

/// A name without decoration.
fn name(word: &str) -> String {
    let word = word.trim().trim_matches('"');
    word.strip_prefix("tcpi_").unwrap_or(word).to_owned()
}

fn from_columns<'a>(
    line: usize,
    names: &[String],
    values: impl Iterator<Item = &'a str>,
) -> Result<Sample, String> {
    let values: Vec<&str> = values.map(|value| value.trim().trim_matches('"')).collect();
    if values.len() != names.len() {
        return Err(format!("{} columns, but the head has {}", values.len(), names.len()));
    }
    let of = |wanted: &str| {
        names.iter().position(|name| name == wanted).and_then(|at| values.get(at)).copied()
    };
    let at = of("t").or_else(|| of("time")).and_then(|word| {
        let nanos = word.parse().ok().filter(|_| word.len() == 19).map(Stamp::Unix);
        nanos.or_else(|| stamp::of_line(word))
    });
    let mut sample = Sample::new(line, at, ends(of("local"), of("peer"))?);
    sample.controller = of("congestion").and_then(controller::name);
    for (name, value) in names.iter().zip(&values) {
        if let Ok(value) = value.parse() {
            set(&mut sample, name, value);
        }
    }
    Ok(sample)
}

fn from_json(line: usize, object: &Map<String, Value>) -> Result<Sample, String> {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let at = object.get("t").and_then(Value::as_i64).map(Stamp::Unix);
    let mut sample = Sample::new(line, at, ends(text("local"), text("peer"))?);
    sample.controller = text("congestion").and_then(controller::name);
    let parts = [Some(object), part(object, "mem"), part(object, "info")];
    for (key, value) in parts.into_iter().flatten().flatten() {
        if let Some(value) = value.as_u64() {
            set(&mut sample, &name(key), value);
        }
    }
    Ok(sample)
}

fn part<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    object.get(name).and_then(Value::as_object)
}

fn ends(local: Option<&str>, peer: Option<&str>) -> Result<Ends, String> {
    let end = |word: Option<&str>, what| {
        let word = word.ok_or_else(|| format!("it has no {what:?}"))?;
        address::read(word).ok_or_else(|| format!("{word:?} is no address with a port"))
    };
    Ok(Ends { local: end(local, "local")?, peer: end(peer, "peer")? })
}

/// A shift of windows; there is none above 14 (RFC 7323 section 2.3).
fn scale(value: u64) -> Option<u8> {
    u8::try_from(value).ok().filter(|shift| *shift <= 14)
}

/// Sets the field that the kernel calls `name`.
fn set(sample: &mut Sample, name: &str, value: u64) {
    let micros = || i64::try_from(value).ok().and_then(|us| us.checked_mul(1_000));
    match name {
        "snd_cwnd" | "cwnd" => sample.cwnd = Some(value),
        "snd_ssthresh" | "ssthresh" => sample.set_ssthresh(value),
        // All ones until there is one (`tcp_get_info`).
        "min_rtt" if value < u64::from(u32::MAX) => sample.min_rtt_ns = micros(),
        "busy_time" => sample.busy_ns = micros(),
        "rwnd_limited" => sample.rwnd_limited_ns = micros(),
        "sndbuf_limited" => sample.sndbuf_limited_ns = micros(),
        "snd_wnd" => sample.snd_wnd = Some(value),
        "notsent_bytes" => sample.unsent = Some(value),
        "bytes_sent" => sample.bytes_sent = Some(value),
        "bytes_retrans" => sample.bytes_retrans = Some(value),
        "bytes_acked" => sample.bytes_acked = Some(value),
        "total_retrans" => sample.retrans = Some(value),
        "rcv_wscale" => sample.own_scale = scale(value),
        "snd_wscale" => sample.peer_scale = scale(value),
        "rqueue" => sample.unread = Some(value),
        "rcvbuf" => sample.rcvbuf = Some(value),
        "sndbuf" => sample.sndbuf = Some(value),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_lab_is_read() {
        let line = r#"{"t":1760000005506413056,"local":"10.0.0.1:80","peer":"10.0.0.2:40000","state":"ESTAB","rqueue":3,"mem":{"rcvbuf":131072,"sndbuf":87040},"info":{"snd_cwnd":10,"snd_ssthresh":2147483647,"min_rtt":6001,"busy_time":8000,"rwnd_limited":0,"bytes_sent":78,"bytes_retrans":0,"bytes_acked":79}}"#;
        let (samples, _) = read(line).expect("a sample");
        let sample = &samples[0];
        assert_eq!(sample.at, Some(Stamp::Unix(1_760_000_005_506_413_056)));
        assert_eq!((sample.cwnd, sample.ssthresh), (Some(10), Some(None)));
        assert_eq!((sample.min_rtt_ns, sample.busy_ns), (Some(6_001_000), Some(8_000_000)));
        assert_eq!((sample.unread, sample.sndbuf), (Some(3), Some(87_040)));
    }

    #[test]
    fn columns_are_read_by_their_head() {
        let table = "t,local,peer,tcpi_snd_cwnd,tcpi_bytes_acked\n\
                     1760000005.5,10.0.0.1:80,10.0.0.2:40000,33,1449\n10.0.0.1:80,2\n";
        let (samples, odd) = read(table).expect("a sample");
        assert_eq!((samples[0].cwnd, samples[0].bytes_acked), (Some(33), Some(1449)));
        assert_eq!(
            odd.told().expect("odd"),
            "line 3 was passed over: 2 columns, but the head has 5"
        );
    }
}
