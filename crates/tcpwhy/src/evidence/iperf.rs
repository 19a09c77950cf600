//! The path's rate: `iperf3 -J`, or what the user knows (`--rate`).
//!
//! iperf3 counts payload over a test of its own; what its receiver got is what the path carried. What
//! limited that test is not known, so its rate is a lower bound of the path's.

use serde_json::Value;

use tcpwhy_words::printed::error::EvidenceError;

/// How fast the path is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PathRate {
    /// Bits per second.
    pub bps: u64,
    /// Measured by a test of payload, and not known of the link.
    pub is_tested: bool,
}

/// Whether the text is what `iperf3 -J` prints.
pub(super) fn is_text(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('{') && text.contains("\"intervals\"") && text.contains("\"end\"")
}

/// Reads the result of a test.
pub(super) fn read(text: &str) -> Result<PathRate, EvidenceError> {
    let useless = |line, what: String| EvidenceError::Useless { line, what };
    // Several tests may follow each other; the first is taken.
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let test = match documents.next() {
        Some(Ok(test)) => test,
        Some(Err(error)) => {
            return Err(useless(
                error.line(),
                format!("this is no JSON: {error}; was it cut off?"),
            ));
        }
        None => return Err(EvidenceError::Empty),
    };
    if let Some(error) = test.get("error").and_then(Value::as_str) {
        return Err(useless(1, format!("that test of iperf3 failed: {error}")));
    }
    let number = |part: &str, name: &str| test.get("end")?.get(part)?.get(name)?.as_f64();
    let rate = |part: &str| number(part, "bits_per_second");
    // Of UDP older ones have only what was sent, and how much of it was lost.
    let udp = || Some(rate("sum")? * (1.0 - number("sum", "lost_percent")? / 100.0));
    let is_udp = number("sum", "lost_percent").is_some();
    let sent = || rate("sum_sent").filter(|_| !is_udp);
    let carried = |rate: &f64| *rate >= 1.0;
    rate("sum_received")
        .filter(carried)
        .or_else(|| udp().filter(carried))
        .or_else(|| sent().filter(carried))
        .map(|rate| PathRate { bps: rate as u64, is_tested: true })
        .ok_or_else(|| useless(1, "it has no rate at its end: was the test cut off?".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_receiver_got_is_the_rate() {
        let text = r#"{"start":{},"intervals":[],"end":{"sum_sent":{"bits_per_second":9e9},
            "sum_received":{"bits_per_second":41362023.7}}}"#;
        assert!(is_text(text));
        assert_eq!(read(text), Ok(PathRate { bps: 41_362_023, is_tested: true }));
    }

    #[test]
    fn what_udp_lost_was_not_carried() {
        let text = r#"{"start":{},"intervals":[],"end":{"sum":{"bits_per_second":1e9,
            "lost_percent":90},"sum_sent":{"bits_per_second":1e9}}}"#;
        let is_near = |bps: u64| (99_999_000..=100_001_000).contains(&bps);
        assert!(read(text).is_ok_and(|rate| is_near(rate.bps)));
        let all_lost = text.replace("90}", "100}");
        assert!(read(&all_lost).is_err(), "what was sent is no rate of the path");
    }

    #[test]
    fn a_failed_or_cut_test_is_no_rate() {
        let failed = r#"{"start":{},"intervals":[],"end":{},"error":"unable to connect"}"#;
        let error = read(failed).expect_err("failed").to_string();
        assert_eq!(error, "line 1: that test of iperf3 failed: unable to connect");
        let cut = "{\"start\":{},\n\"intervals\":[";
        assert!(read(cut).expect_err("cut").to_string().starts_with("line 2: this is no JSON"));
        assert!(read("{\"intervals\":[],\"end\":{}}").is_err());
    }
}
