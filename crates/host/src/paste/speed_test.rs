//! What `iperf3` prints of a test over TCP.
//!
//! ```text
//! [ ID] Interval           Transfer     Bitrate         Retr  Cwnd
//! [  5]   0.00-1.00   sec  1.26 GBytes  10.8 Gbits/sec   27    895 KBytes
//! [  5]   0.00-3.00   sec  4.49 GBytes  12.9 Gbits/sec   43             sender
//! [SUM]   0.00-2.00   sec  2.95 GBytes  12.6 Gbits/sec                  receiver
//! ```
//!
//! Its `Bytes` are in units of 1,024 and its `bits` in units of 1,000 (iperf 3.12 `units.c`).

use super::collected::Collected;
use crate::snapshot::SpeedTest;
use tcpwhy_words::printed::stamp::decimal;

/// A line of a test, or what is printed around it.
pub(super) fn line(text: &str, collected: &mut Collected) -> bool {
    const AROUND: [&str; 8] = [
        "Connecting to host ",
        "Accepted connection from ",
        "Server listening on ",
        "Reverse mode, remote host ",
        "iperf Done.",
        "[ ID] Interval",
        "CPU Utilization:",
        "warning: this system does not seem to support IPv6",
    ];
    if text.starts_with("Connecting to host ") || text.starts_with("Accepted connection from ") {
        collected.speed_tests.push(SpeedTest::default());
    }
    if AROUND.iter().any(|around| text.starts_with(around)) {
        return true;
    }
    let Some((id, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    if rest.trim_start().starts_with("local ") && rest.contains(" connected to ") {
        return true;
    }
    let Some(row) = Row::of(id.trim(), rest) else { return false };
    if collected.speed_tests.is_empty() {
        collected.speed_tests.push(SpeedTest::default());
    }
    if let Some(test) = collected.speed_tests.last_mut() {
        row.add_to(test);
    }
    true
}

struct Row<'a> {
    id: &'a str,
    from_ns: i64,
    to_ns: i64,
    bytes: u64,
    rate: u64,
    retransmits: Option<u64>,
    cwnd: Option<u64>,
    end: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn of(id: &'a str, rest: &'a str) -> Option<Self> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (from, to) = words.first()?.split_once('-')?;
        if *words.get(1)? != "sec" {
            return None;
        }
        let bytes = scaled(words.get(2)?, words.get(3)?.strip_suffix("Bytes")?, 1024)?;
        let rate = scaled(words.get(4)?, words.get(5)?.strip_suffix("bits/sec")?, 1000)?;
        let end = words.last().copied().filter(|word| matches!(*word, "sender" | "receiver"));
        let retransmits = words.get(6).and_then(|word| word.parse().ok());
        let cwnd = words.get(7).zip(words.get(8).and_then(|unit| unit.strip_suffix("Bytes")));
        let cwnd = cwnd.and_then(|(number, unit)| scaled(number, unit, 1024));
        Some(Self {
            id,
            from_ns: decimal(from)?,
            to_ns: decimal(to)?,
            bytes,
            rate,
            retransmits,
            cwnd,
            end,
        })
    }

    fn add_to(&self, test: &mut SpeedTest) {
        let is_sum = self.id == "SUM";
        let over_ns = u64::try_from(self.to_ns.saturating_sub(self.from_ns)).unwrap_or(0);
        match self.end {
            // The sum over several streams comes last and counts them all.
            Some("sender") => {
                test.sent = Some(self.rate);
                test.bytes = Some(self.bytes);
                test.over_ns = over_ns;
                test.retransmits = self.retransmits.or(test.retransmits);
            }
            Some(_) => {
                test.received = Some(self.rate);
                test.over_ns = test.over_ns.max(over_ns);
                test.streams += u64::from(!is_sum);
            }
            None if !is_sum => {
                test.intervals += 1;
                test.silent += u64::from(self.bytes == 0 && over_ns >= 900_000_000);
                if let Some(cwnd) = self.cwnd {
                    let [least, most] = test.cwnd.unwrap_or([cwnd, cwnd]);
                    test.steady =
                        test.cwnd.is_some_and(|[least, most]| least == cwnd && most == cwnd);
                    test.cwnd = Some([least.min(cwnd), most.max(cwnd)]);
                }
            }
            None => {}
        }
    }
}

/// `1.26 G` in units of `step`.
fn scaled(number: &str, unit: &str, step: i128) -> Option<u64> {
    let power = ["", "K", "M", "G", "T"].iter().position(|known| *known == unit)?;
    let factor = step.checked_pow(u32::try_from(power).ok()?)?;
    u64::try_from(i128::from(decimal(number)?) * factor / 1_000_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_read_with_its_intervals_and_its_end() {
        let text = "Connecting to host 192.0.2.1, port 5201
[  5] local 192.0.2.2 port 60600 connected to 192.0.2.1 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec   27    85.2 KBytes
[  5]   1.00-2.00   sec  0.00 Bytes  0.00 bits/sec    1    1.41 KBytes
[  5]   0.00-2.00   sec  1.25 MBytes  5.24 Mbits/sec   28             sender
[  5]   0.00-2.04   sec  1.12 MBytes  4.61 Mbits/sec                  receiver
";
        let mut collected = Collected::default();
        let read = text.lines().filter(|each| line(each, &mut collected)).count();
        assert_eq!((read, collected.speed_tests.len()), (7, 1));
        let test = &collected.speed_tests[0];
        assert_eq!((test.retransmits, test.intervals, test.silent), (Some(28), 2, 1));
        assert_eq!((test.received, test.streams), (Some(4_610_000), 1));
        assert_eq!(test.cwnd, Some([1_443, 87_244]));
    }

    #[test]
    fn other_lines_in_brackets_are_none() {
        let mut collected = Collected::default();
        for text in ["[root@web-1 ~]# ls", "[  5] 3-4 sec", "[1] 4711", "[pid 7] close(3) = 0"] {
            assert!(!line(text, &mut collected), "{text}");
        }
    }
}
