//! The counters of a network namespace: `/proc/net/snmp` and `/proc/net/netstat`.
//!
//! Both files hold pairs of lines, names and then values, with the same first word. Kernels add
//! names and leave none out, so everything is kept by name. Values are as the kernel prints them;
//! most only grow, some are states (`CurrEstab`) and one is -1 for "no limit" (`MaxConn`).

use std::collections::BTreeMap;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::sys::Clock;

/// All counters at an instant, by protocol and name, as `Tcp` and `RetransSegs`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Counters {
    /// When they were read: ns since 1970.
    pub t: u64,
    /// By protocol and name.
    pub counters: BTreeMap<String, BTreeMap<String, i64>>,
}

/// Why there are no counters.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// Which.
        file: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error("cannot understand {file}, line {line}: {why}")]
    Parse {
        /// Which.
        file: &'static str,
        /// From 1.
        line: usize,
        /// What is odd.
        why: String,
    },
}

impl Counters {
    /// Those of the calling thread's network namespace.
    ///
    /// # Errors
    /// The files are not there (`/proc` is not mounted) or do not pair names with values.
    pub fn read() -> Result<Self, CountersError> {
        let mut all = Self { t: Clock::Real.now(), counters: BTreeMap::new() };
        for file in FILES {
            let text =
                fs::read_to_string(file).map_err(|source| CountersError::Read { file, source })?;
            all.add(&text).map_err(|(line, why)| CountersError::Parse { file, line, why })?;
        }
        Ok(all)
    }

    /// How much each counter has grown since `earlier`, without those that have not.
    ///
    /// What was not there earlier counts from 0; a state that fell is negative.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut grown = Self { t: self.t, counters: BTreeMap::new() };
        for (protocol, counters) in &self.counters {
            let before = earlier.counters.get(protocol);
            for (name, &value) in counters {
                let old = before.and_then(|before| before.get(name)).copied().unwrap_or(0);
                if value != old {
                    let kept = grown.counters.entry(protocol.clone()).or_default();
                    kept.insert(name.clone(), value.wrapping_sub(old));
                }
            }
        }
        grown
    }

    /// A counter by its names.
    pub fn of(&self, protocol: &str, name: &str) -> Option<i64> {
        self.counters.get(protocol)?.get(name).copied()
    }

    /// Takes in a table; those of its counters that stand before what is odd are kept.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), (usize, String)> {
        let lines: Vec<&str> = text.lines().collect();
        for (pair, two) in lines.chunks(2).enumerate() {
            let line = 2 * pair + 2;
            let &[names, values] = two else {
                return Err((line - 1, "names without values".to_owned()));
            };
            let (Some((protocol, names)), Some((other, values))) =
                (names.split_once(':'), values.split_once(':'))
            else {
                return Err((line - 1, "no colon after the protocol".to_owned()));
            };
            if protocol != other {
                return Err((line, format!("names of {protocol}, values of {other}")));
            }
            let counters = self.counters.entry(protocol.to_owned()).or_default();
            let mut values = values.split_ascii_whitespace();
            for name in names.split_ascii_whitespace() {
                let value = values.next().ok_or_else(|| (line, format!("no value of {name}")))?;
                // Counters are unsigned in the kernel; the topmost bit is used by none.
                let value =
                    value.parse().map_err(|_| (line, format!("{name} is {value:?}, no number")))?;
                counters.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }
}

/// By thread, because a thread may have entered another namespace than its process.
const FILES: [&str; 2] = ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"];

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(text: &str) -> Counters {
        let mut counters = Counters::default();
        counters.add(text).expect("well-formed");
        counters
    }

    #[test]
    fn names_pair_with_values() {
        let found = counters("Tcp: MaxConn RetransSegs\nTcp: -1 17\nUdp: InDatagrams\nUdp: 4\n");
        assert_eq!(found.of("Tcp", "MaxConn"), Some(-1));
        assert_eq!(found.of("Tcp", "RetransSegs"), Some(17));
        assert_eq!(found.of("Udp", "InDatagrams"), Some(4));
        assert_eq!(found.of("Udp", "RetransSegs"), None);
    }

    #[test]
    fn a_difference_names_only_what_changed() {
        let before = counters("Tcp: CurrEstab RetransSegs InSegs\nTcp: 2 17 5\n");
        let after = counters("Tcp: CurrEstab RetransSegs InSegs New\nTcp: 1 20 5 3\n");
        let grown = after.since(&before);
        assert_eq!(grown.of("Tcp", "CurrEstab"), Some(-1));
        assert_eq!(grown.of("Tcp", "RetransSegs"), Some(3));
        assert_eq!(grown.of("Tcp", "InSegs"), None);
        assert_eq!(grown.of("Tcp", "New"), Some(3));
    }

    #[test]
    fn odd_lines_are_named() {
        let fault = |text| Counters::default().add(text).expect_err("odd").0;
        assert_eq!(fault("Tcp: A B\nTcp: 1\n"), 2);
        assert_eq!(fault("Tcp: A\nUdp: 1\n"), 2);
        assert_eq!(fault("Tcp: A\nTcp: 1\nTcp: A\n"), 3);
        assert_eq!(fault("Tcp: A\nTcp: x\n"), 2);
    }

    #[test]
    fn this_machine_counts_tcp_segments() {
        let found = Counters::read().expect("/proc is mounted");
        assert!(found.of("Tcp", "InSegs").is_some());
        assert!(found.of("TcpExt", "TCPTimeouts").is_some());
    }
}
