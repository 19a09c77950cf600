//! The path's rate beside what was sent over it, and beside what was found of the path.
//!
//! The rate predicts how much payload a full path delivers. Where the packets show a full path, both are
//! the same, or what is full is something narrower; where they do not, a transfer near that rate shows
//! that the path was full all the same.

use crate::report::{Beside, Connection, Direction};
use tcpwhy_words::said;
use tcpwhy_words::units::{BitRate, Bytes, Duration};

use super::direction_of;
use super::iperf::PathRate;

/// A test of payload errs by its own slow start and other traffic. Ours, not measured: a transfer that is
/// faster by less than this is no contradiction.
const TEST_ERROR_PERCENT: u64 = 10;

/// A full path delivers at least this share of what its rate predicts. Ours, not measured: acknowledgements
/// and headers of other layers take some.
const FULL_PERCENT: u64 = 90;
/// Less than this share is no error of an estimate. Ours, not measured; between both nothing is claimed.
const NARROWER_PERCENT: u64 = 75;

/// What Ethernet puts around a packet: preamble, header, check sequence and gap (IEEE 802.3 clauses 3, 4).
const ETHERNET: u64 = 8 + 14 + 4 + 12;

/// Ours: what fits into an initial window (RFC 6928) has a duration, but no rate worth the name.
const WORTH_A_RATE: u64 = 14_600;

/// Findings that are about the path's rate.
const ABOUT_RATE: [&str; 6] =
    ["BOTTLENECK", "BOTTLENECK_SHARED", "POLICER", "TOKEN_BUCKET", "VARIABLE_RATE", "LOCAL_QDISC"];

/// What the rate says of `connection`; findings about its path say their share of it.
pub(super) fn apply(
    source: usize,
    name: &str,
    path: PathRate,
    connection: &mut Connection,
) -> Vec<Beside> {
    let rates = [0, 1].map(|at| transfer_rate(connection, at));
    let known = Known { source, all: format!("the path's {} ({name})", BitRate(path.bps)), path };
    let mut findings = core::mem::take(&mut connection.findings);
    let mut about = [false; 2];
    let mut told = Vec::new();
    for finding in findings.iter_mut().filter(|each| ABOUT_RATE.contains(&&*each.code)) {
        let Some(at) = direction_of(connection, finding) else { continue };
        about[at] = true;
        if let Some(rate) = rates[at] {
            let share = said::percent(number(rate), number(path.bps));
            let more = format!(" The transfer's rate is {share} of {}.", known.all);
            finding.why.push_str(&more);
        }
        if finding.code == "BOTTLENECK"
            && let Some(beside) = known.beside_bottleneck(connection, at)
        {
            let more = format!(" By that rate: {}.", beside.text);
            finding.why.push_str(&more);
            told.push(beside);
        }
    }
    connection.findings = findings;
    let of_transfers = connection.present().filter_map(|(at, direction)| {
        Some(known.beside_transfer(connection, (at, direction), rates[at]?, about[at]))
    });
    told.splice(0..0, of_transfers);
    told
}

/// Payload rate of the largest transfer of a direction, up to its last ACK: all of it crossed the path
/// in that time.
fn transfer_rate(connection: &Connection, at: usize) -> Option<u64> {
    let from = ["client", "server"][at];
    let all = connection.transfers.iter().filter(|each| each.from == from);
    let largest = all.max_by_key(|each| each.bytes).filter(|each| each.bytes >= WORTH_A_RATE)?;
    let span = Duration(largest.end_ns - largest.start_ns);
    BitRate::of(Bytes(largest.bytes), span).map(|rate| rate.0)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Whether `rate` is at least this percentage of `whole`.
fn is_share(rate: u64, percent: u64, whole: u64) -> bool {
    u128::from(rate) * 100 >= u128::from(whole) * u128::from(percent)
}

/// A rate that is known of the path.
struct Known {
    source: usize,
    /// In words.
    all: String,
    path: PathRate,
}

impl Known {
    /// Payload that a full path delivers; `None` if the segments' size is not known.
    fn payload(&self, connection: &Connection) -> Option<u64> {
        if self.path.is_tested {
            return Some(self.path.bps);
        }
        // IP and TCP headers with timestamps (RFC 791, RFC 8200, RFC 7323).
        let ip = if connection.client.ip().to_canonical().is_ipv4() { 20 } else { 40 };
        let mss = connection.mss.map(u64::from).filter(|mss| *mss > 0)?;
        let whole = mss + ip + 20 + 12 + ETHERNET;
        u64::try_from(u128::from(self.path.bps) * u128::from(mss) / u128::from(whole)).ok()
    }

    /// What it says of a path that the packets show to be full.
    fn beside_bottleneck(&self, connection: &Connection, at: usize) -> Option<Beside> {
        let delivered = connection.directions[at].as_deref()?.bottleneck_rate_bps?;
        let payload = self.payload(connection)?;
        let both = format!(
            "{} of payload are what a full path delivers, and {} were delivered",
            BitRate(payload),
            BitRate(delivered)
        );
        let (verdict, text) = if is_share(delivered, FULL_PERCENT, payload) {
            ("agrees", format!("{both}: it is that link that is full"))
        } else if is_share(delivered, NARROWER_PERCENT, payload) {
            return None;
        } else {
            let what = "what is full is narrower (a shaper, another link, or a share of this one), or that \
                        rate is not this path's";
            ("contradicts", format!("{both}: {what}"))
        };
        Some(self.beside(("bottleneck_rate", verdict), (payload, delivered), text))
    }

    /// What it says of a transfer, whose path was found to be full or not.
    fn beside_transfer(
        &self,
        connection: &Connection,
        (at, direction): (usize, &Direction),
        rate: u64,
        is_path_named: bool,
    ) -> Beside {
        let bps = self.path.bps;
        let sender = ["client", "server"][at];
        let slack = if self.path.is_tested { TEST_ERROR_PERCENT } else { 0 };
        let faster = u128::from(rate) * 100 > u128::from(bps) * u128::from(100 + slack);
        let ran = format!("the {sender}'s largest transfer ran at {}", BitRate(rate));
        let text = if faster {
            format!("{ran}, faster than {}: that rate is not this path's", self.all)
        } else {
            let share = said::percent(number(rate), number(bps));
            let full = direction.rtt.min_ns.filter(|rtt| *rtt > 0).map(|rtt| {
                let room = BitRate(bps).bytes_in(Duration(rtt)).0;
                format!(
                    "; to fill it over a round trip of {} takes {} in flight, and at most {} were",
                    said::time(rtt),
                    said::bytes(room),
                    said::bytes(direction.max_in_flight_bytes)
                )
            });
            let payload = self.payload(connection);
            let is_full = payload.is_some_and(|payload| is_share(rate, FULL_PERCENT, payload));
            let limit = if is_full && !is_path_named {
                "; headers included, that fills the path, whatever else held single rounds"
            } else {
                ""
            };
            format!("{ran}, {share} of {}{}{limit}", self.all, full.unwrap_or_default())
        };
        let verdict = if faster { "contradicts" } else { "agrees" };
        self.beside(("path_rate", verdict), (bps, rate), text)
    }

    fn beside(
        &self,
        (quantity, verdict): (&'static str, &'static str),
        (measured, estimated): (u64, u64),
        text: String,
    ) -> Beside {
        Beside {
            source: self.source as u64,
            side: "path".into(),
            quantity: quantity.into(),
            verdict: verdict.into(),
            unit: "bps".into(),
            measured: Some(number(measured)),
            estimated: Some(number(estimated)),
            text,
            ..Beside::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::{findings, sample::held_by};
    use crate::report::State;
    use crate::view::sample;

    /// A download whose path was full at this rate of payload, in segments of 1448 bytes.
    fn full_at(rate: u64) -> Connection {
        let mut connection = held_by(State::BandwidthSelfQueue, 5_000);
        connection.mss = Some(1448);
        connection.directions[1].as_mut().expect("data").bottleneck_rate_bps = Some(rate);
        connection.findings = findings(&connection);
        assert!(connection.findings.iter().any(|finding| finding.code == "BOTTLENECK"));
        connection
    }

    fn told(connection: &mut Connection, bps: u64) -> Vec<(String, String)> {
        let told = apply(0, "--rate", PathRate { bps, is_tested: false }, connection);
        let bottleneck = told.into_iter().filter(|each| each.quantity == "bottleneck_rate");
        bottleneck.map(|each| (each.verdict.to_string(), each.text)).collect()
    }

    #[test]
    fn a_full_path_of_the_rate_that_is_known_is_that_path() {
        let mut connection = full_at(94_000_000);
        let told = told(&mut connection, 100_000_000);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, "agrees", "{}", told[0].1);
        let finding = connection.findings.iter().find(|each| each.code == "BOTTLENECK");
        assert!(finding.expect("a full path").why.contains("it is that link that is full"));
    }

    #[test]
    fn a_path_that_is_full_at_half_of_the_rate_is_narrower() {
        let told = told(&mut full_at(46_000_000), 100_000_000);
        assert_eq!(told[0].0, "contradicts", "{}", told[0].1);
    }

    #[test]
    fn between_both_nothing_is_claimed() {
        assert_eq!(told(&mut full_at(76_000_000), 100_000_000), []);
    }

    #[test]
    fn a_finding_says_the_share_of_its_own_direction() {
        let mut connection = full_at(94_000_000);
        // The other direction was quicker, and is none of the finding's business.
        let span = connection.duration_ns;
        connection.transfers.push(sample::transfer("client", 0, span, 400_000, &[]));
        told(&mut connection, 100_000_000);
        let server = transfer_rate(&connection, 1).expect("a rate");
        let share = said::percent(number(server), 100_000_000);
        let finding = connection.findings.iter().find(|each| each.code == "BOTTLENECK");
        let why = &finding.expect("a full path").why;
        assert!(why.contains(&format!("The transfer's rate is {share} of")), "{why}");
    }
}
