//! Holds a report of `explain` against the truth: time in states, congestion window, round trip,
//! repetitions.
//!
//! Both lists of intervals are walked together on one clock; what overlaps is booked as a pair of
//! (kernel's state, report's state). Nothing is averaged here: an [`Agreement`] of many runs is the
//! sum of theirs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::classes::{Fit, fit, fit_beside_link, yields};
use crate::spans::cut;
use crate::states::State;
use crate::truth::{Connection, Direction, Fullness, Interval, Truth};
use crate::words::Words;

/// How far a report agrees with the truth. All times in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Agreement {
    /// Time that both judge.
    pub compared_ns: u64,
    /// Of it: the report says the same; while the link was full, that it was.
    pub narrow_ns: u64,
    /// The same by the sending stack's word alone.
    pub narrow_by_stack_ns: u64,
    /// Time that both judge while the link was full, and of it: the report says so.
    pub link_full_ns: [u64; 2],
    /// Of it: the report says what may stand for it ([`crate::classes`]).
    pub wide_ns: u64,
    /// Of it: the report names what would agree as an alternative only.
    pub alternative_ns: u64,
    /// Of it: the report does not decide.
    pub undecided_ns: u64,
    /// Of it: the report says something else.
    pub wrong_ns: u64,
    /// How often each word of certainty was right.
    pub words: Words,
    /// Time that the truth has no record for, or spends within calls.
    pub unjudged_ns: u64,
    /// Time by kernel's and report's state.
    pub matrix: BTreeMap<State, BTreeMap<String, u64>>,
    /// Of it: what the report says something else of.
    pub wrong: BTreeMap<State, BTreeMap<String, u64>>,
    /// Of rounds that wait for the congestion window: the estimate less the kernel's window, in
    /// thousandths of it.
    pub cwnd_errors: Vec<i64>,
    /// Of those: the kernel's window is between the estimate's bounds.
    pub cwnd_inside: u64,
    /// Of directions: the report's median round trip less the kernel's median of `srtt`, in
    /// thousandths of it.
    pub rtt_errors: Vec<i64>,
    /// Of directions: retransmitted segments by the kernel and by the report.
    pub retransmitted: Vec<(u64, u64)>,
    /// Directions with data that the report does not have.
    pub missing: u64,
}

impl Agreement {
    /// Adds that of another run.
    pub fn add(&mut self, other: &Self) {
        self.compared_ns += other.compared_ns;
        self.narrow_ns += other.narrow_ns;
        self.narrow_by_stack_ns += other.narrow_by_stack_ns;
        for (own, others) in self.link_full_ns.iter_mut().zip(other.link_full_ns) {
            *own += others;
        }
        self.wide_ns += other.wide_ns;
        self.alternative_ns += other.alternative_ns;
        self.undecided_ns += other.undecided_ns;
        self.wrong_ns += other.wrong_ns;
        self.unjudged_ns += other.unjudged_ns;
        self.words.add(&other.words);
        for (own, others) in [(&mut self.matrix, &other.matrix), (&mut self.wrong, &other.wrong)] {
            for (state, row) in others {
                let own = own.entry(*state).or_default();
                for (verdict, ns) in row {
                    *own.entry(verdict.clone()).or_default() += ns;
                }
            }
        }
        self.cwnd_errors.extend(&other.cwnd_errors);
        self.cwnd_inside += other.cwnd_inside;
        self.rtt_errors.extend(&other.rtt_errors);
        self.retransmitted.extend(&other.retransmitted);
        self.missing += other.missing;
    }

    /// Share of the time compared on which the report is not of narrow words, in thousandths.
    pub fn strict_error(&self) -> Option<u64> {
        share(self.compared_ns - self.narrow_ns, self.compared_ns)
    }

    /// As [`Self::strict_error`], by the sending stack's words alone.
    pub fn strict_error_by_stack(&self) -> Option<u64> {
        share(self.compared_ns - self.narrow_by_stack_ns, self.compared_ns)
    }

    /// Share of the time compared on which not even wide words or alternatives agree, in
    /// thousandths.
    pub fn lenient_error(&self) -> Option<u64> {
        share(self.wrong_ns + self.undecided_ns, self.compared_ns)
    }

    fn book(&mut self, (state, link): (State, Fullness), limit: &Limit, ns: u64) {
        let Some(by_stack) = fit(state, &limit.state, &limit.alternative) else {
            self.unjudged_ns += ns;
            return;
        };
        let fit = fit_beside_link(by_stack, (state, link), &limit.state, &limit.alternative);
        self.compared_ns += ns;
        self.words.book(&limit.confidence, &limit.state, fit, ns);
        if by_stack == Fit::Narrow {
            self.narrow_by_stack_ns += ns;
        }
        if link == Fullness::Full && yields(state) {
            self.link_full_ns[0] += ns;
            self.link_full_ns[1] += if fit == Fit::Narrow { ns } else { 0 };
        }
        *match fit {
            Fit::Narrow => &mut self.narrow_ns,
            Fit::Wide => &mut self.wide_ns,
            Fit::Alternative => &mut self.alternative_ns,
            Fit::Undecided => &mut self.undecided_ns,
            Fit::Wrong => &mut self.wrong_ns,
        } += ns;
        let book = |pairs: &mut BTreeMap<State, BTreeMap<String, u64>>| {
            *pairs.entry(state).or_default().entry(limit.state.clone()).or_default() += ns;
        };
        book(&mut self.matrix);
        if fit == Fit::Wrong {
            book(&mut self.wrong);
        }
    }

    /// Takes words that begin with `words`, wrong for `state` so far, for some that may stand for it: what else is
    /// known of the run shows that they do.
    pub fn let_stand(&mut self, state: State, words: &str) {
        let Some(row) = self.wrong.get_mut(&state) else { return };
        row.retain(|verdict, ns| {
            let stands = verdict.starts_with(words);
            if stands {
                self.wrong_ns -= *ns;
                self.wide_ns += *ns;
            }
            !stands
        });
    }

    /// The kernel's and the report's state that are most of what is wrong, and for how long.
    pub fn worst(&self) -> Option<(State, &str, u64)> {
        let pairs = self.wrong.iter().flat_map(|(state, row)| {
            row.iter().map(|(verdict, ns)| (*state, verdict.as_str(), *ns))
        });
        pairs.max_by_key(|pair| pair.2)
    }
}

/// `part` of `whole` in thousandths; none of nothing.
pub fn share(part: u64, whole: u64) -> Option<u64> {
    let thousandths = u128::from(part) * 1000 + u128::from(whole) / 2;
    (whole > 0).then(|| (thousandths / u128::from(whole)) as u64)
}

/// The value below which `percent` of the values lie.
pub fn quantile(values: &[i64], percent: usize) -> Option<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get((sorted.len().checked_sub(1)? * percent + 50) / 100).copied()
}

/// Holds a report, as JSON of `tcpwhy explain --json`, against the truth.
///
/// `directions` says which to judge (0 is client to server); an experiment knows whose data it is
/// about.
///
/// # Errors
/// The text is no report.
pub fn compare(
    truth: &Truth,
    report: &str,
    directions: &[usize],
) -> Result<Agreement, CompareError> {
    let report: Report = serde_json::from_str(report)?;
    let mut agreement = Agreement::default();
    for connection in &truth.connections {
        for &side in directions {
            let Some(true_side) = connection.directions.get(side).and_then(Option::as_ref) else {
                continue;
            };
            match report.side(connection, side) {
                Some((start_ns, verdicts)) => {
                    states(&mut agreement, true_side, start_ns, verdicts);
                    windows(&mut agreement, true_side, start_ns, verdicts);
                    figures(&mut agreement, true_side, verdicts);
                }
                None => agreement.missing += 1,
            }
        }
    }
    Ok(agreement)
}

/// Why a report cannot be compared.
#[derive(Debug, thiserror::Error)]
#[error("this is no report of `tcpwhy explain --json`: {0}")]
pub struct CompareError(#[from] serde_json::Error);

/// Books what overlaps.
fn states(agreement: &mut Agreement, truth: &Direction, start_ns: u64, side: &Side) {
    let mut limits = side.limits.iter().peekable();
    let of = |i: &Interval| (i.start_ns, i.end_ns, (i.state, Fullness::NotKnown));
    let spans: Vec<_> = truth.intervals.iter().map(of).collect();
    for (begin, end, held) in cut(&spans, &truth.link, |held, link| (held.0, link)) {
        while let Some(limit) = limits.peek() {
            let (from, to) = (on_clock(start_ns, limit.start_ns), on_clock(start_ns, limit.end_ns));
            let overlap = to.min(end).saturating_sub(from.max(begin));
            if overlap > 0 {
                agreement.book(held, limit, overlap);
            }
            if to > end {
                break;
            }
            limits.next();
        }
    }
}

/// The window at the last send of each round that waits for it.
fn windows(agreement: &mut Agreement, truth: &Direction, start_ns: u64, side: &Side) {
    for (at, round) in side.rounds.iter().enumerate() {
        let Some(best) = round.cwnd.best.filter(|_| round.limited_by.starts_with("cwnd.")) else {
            continue;
        };
        let Some(next) = side.rounds.get(at + 1).map(|next| on_clock(start_ns, next.start_ns))
        else {
            continue;
        };
        // The kernel's window just before the next round begins.
        let known = truth.windows.partition_point(|window| window.t < next);
        let Some(window) = known.checked_sub(1).map(|at| truth.windows[at].cwnd) else { continue };
        let window = i64::from(window.max(1));
        agreement
            .cwnd_errors
            .push((best as i64).saturating_sub(window).saturating_mul(1000) / window);
        let low = round.cwnd.low.is_none_or(|low| low as i64 <= window);
        let high = round.cwnd.high.is_none_or(|high| window <= high as i64);
        agreement.cwnd_inside += u64::from(low && high);
    }
}

/// Round trip and repetitions.
fn figures(agreement: &mut Agreement, truth: &Direction, side: &Side) {
    let samples: Vec<_> = truth.srtt.iter().map(|sample| sample.1 as i64).collect();
    if let (Some(kernel), Some(report)) = (quantile(&samples, 50), side.rtt.median_ns) {
        let error = report.saturating_sub(kernel).saturating_mul(1000);
        agreement.rtt_errors.push(error / kernel.max(1));
    }
    if let Some(kernel) = truth.retransmitted {
        let r = &side.retransmitted;
        agreement.retransmitted.push((kernel, r.fast + r.rto + r.tlp + r.unnecessary + r.syn));
    }
}

/// Nanoseconds since 1970 of an instant relative to a connection's start.
fn on_clock(start_ns: u64, relative_ns: i64) -> u64 {
    start_ns.saturating_add_signed(relative_ns)
}

/// What is used of a report.
#[derive(Deserialize)]
struct Report {
    connections: Vec<Explained>,
}

#[derive(Deserialize)]
struct Explained {
    client: String,
    server: String,
    start: String,
    duration_ns: i64,
    directions: [Option<Side>; 2],
}

#[derive(Deserialize)]
struct Side {
    limits: Vec<Limit>,
    rounds: Vec<Round>,
    rtt: Rtt,
    retransmitted: Retransmitted,
}

#[derive(Deserialize)]
struct Limit {
    start_ns: i64,
    end_ns: i64,
    state: String,
    confidence: String,
    alternative: Vec<String>,
}

#[derive(Deserialize)]
struct Round {
    start_ns: i64,
    cwnd: Cwnd,
    limited_by: String,
}

#[derive(Deserialize)]
struct Cwnd {
    low: Option<u64>,
    high: Option<u64>,
    best: Option<u64>,
}

#[derive(Deserialize)]
struct Rtt {
    median_ns: Option<i64>,
}

#[derive(Deserialize)]
struct Retransmitted {
    fast: u64,
    rto: u64,
    tlp: u64,
    unnecessary: u64,
    syn: u64,
}

impl Report {
    /// The same connection's same side, and when it starts.
    fn side(&self, connection: &Connection, side: usize) -> Option<(u64, &Side)> {
        let port = |address: &str| crate::line::port_of(address);
        self.connections.iter().find_map(|explained| {
            let same = port(&explained.client) == Some(connection.client_port)
                && port(&explained.server) == Some(connection.server_port);
            let start = clock_ns(&explained.start).filter(|_| same)?;
            let end = on_clock(start, explained.duration_ns);
            let meets = start <= connection.end_ns && end >= connection.start_ns;
            let side = explained.directions[side].as_ref().filter(|_| meets)?;
            Some((start, side))
        })
    }
}

/// Nanoseconds since 1970 of an RFC 3339 instant in UTC with up to nine decimals.
fn clock_ns(text: &str) -> Option<u64> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let part = |text: &str| text.parse::<u64>().ok();
    let mut date = date.splitn(3, '-').map(part);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (part(clock.next()?)?, part(clock.next()?)?);
    let (second, decimals) = match clock.next()?.split_once('.') {
        Some((second, decimals)) => (part(second)?, decimals),
        None => return None,
    };
    let ns = part(format!("{decimals:0<9}").get(..9)?)?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, counting years from March, so that a leap day is
    // a year's last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    let seconds = (days - DAYS_TO_1970) * 86_400 + hour * 3600 + minute * 60 + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// From the first of March of the year 0 to the first of January 1970.
const DAYS_TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::Window;

    #[test]
    fn clocks_are_those_of_date() {
        for (text, ns) in [
            ("1970-01-01T00:00:00.000000000Z", Some(0)),
            ("2026-11-22T01:02:03.000000004Z", Some(1_795_309_323_000_000_004)),
            ("2024-02-29T23:59:59.5Z", Some(1_709_251_199_500_000_000)),
            ("10:45:49.053", None),
            ("2026-13-01T00:00:00.0Z", None),
        ] {
            assert_eq!(clock_ns(text), ns, "{text}");
        }
    }

    const START: u64 = 1_795_309_323_000_000_004;

    fn truth(rows: &[(u64, u64, State)]) -> Truth {
        let intervals = rows.iter().map(|&(from, to, state)| Interval {
            start_ns: START + from,
            end_ns: START + to,
            state,
            cwnd: None,
            ssthresh: None,
        });
        let direction = Direction {
            intervals: intervals.collect(),
            windows: vec![Window { t: START, cwnd: 10, ssthresh: None }],
            srtt: vec![(START, 1000)],
            retransmitted: Some(2),
            ..Direction::default()
        };
        let connection = Connection {
            client_port: 5000,
            server_port: 80,
            start_ns: START,
            end_ns: START + 1000,
            directions: [None, Some(direction)],
            ..Connection::default()
        };
        Truth { connections: vec![connection], ..Truth::default() }
    }

    fn report(limits: &str) -> String {
        format!(
            r#"{{"connections":[{{"client":"10.0.0.1:5000","server":"[fd00::1]:80",
            "start":"2026-11-22T01:02:03.000000004Z","duration_ns":100,"directions":[null,{{"limits":[{limits}],
            "rounds":[{{"start_ns":0,"cwnd":{{"low":10,"high":null,"best":12}},"limited_by":"cwnd.avoidance"}},
            {{"start_ns":50,"cwnd":{{"low":1,"high":2,"best":2}},"limited_by":"cwnd.avoidance"}}],
            "rtt":{{"median_ns":1100}},"retransmitted":{{"fast":1,"rto":0,"tlp":0,"unnecessary":0,"syn":0}}}}]}}]}}"#
        )
    }

    fn limit(from: i64, to: i64, state: &str, alternative: &str) -> String {
        format!(
            r#"{{"start_ns":{from},"end_ns":{to},"state":"{state}","confidence":"likely","alternative":[{alternative}]}}"#
        )
    }

    #[test]
    fn what_overlaps_is_booked_by_how_well_it_fits() {
        let truth = truth(&[
            (0, 40, State::CwndAvoidance),
            (40, 60, State::Sndbuf),
            (60, 70, State::Busy),
            (70, 100, State::Rwnd),
        ]);
        let limits = [
            limit(0, 30, "bandwidth.self_queue", ""),
            limit(30, 50, "cwnd.post_loss", "\"app_window\""),
            limit(50, 80, "sndbuf", ""),
            limit(80, 90, "unknown", ""),
            limit(90, 100, "rwnd.cap", ""),
        ];
        let found = compare(&truth, &report(&limits.join(",")), &[1]).expect("a report");
        assert_eq!(found.wide_ns, 30);
        assert_eq!(found.narrow_ns, 10 + 10 + 10);
        assert_eq!(found.alternative_ns, 10);
        assert_eq!((found.wrong_ns, found.undecided_ns, found.unjudged_ns), (10, 10, 10));
        assert_eq!(found.compared_ns, 90);
        assert_eq!(found.matrix[&State::Rwnd]["sndbuf"], 10);
        assert_eq!((found.strict_error(), found.lenient_error()), (Some(667), Some(222)));
    }

    #[test]
    fn while_the_link_is_full_its_word_is_the_right_one() {
        let mut truth = truth(&[(0, 60, State::CwndAvoidance), (60, 100, State::App)]);
        let side = truth.connections[0].directions[1].as_mut().expect("a direction");
        side.link = vec![
            (START, START + 20, Fullness::Full),
            (START + 30, START + 50, Fullness::Either),
            (START + 60, START + 80, Fullness::Full),
        ];
        let limits = [
            limit(0, 10, "bandwidth.self_queue", ""),
            limit(10, 40, "cwnd.avoidance", ""),
            limit(40, 60, "bandwidth.self_queue", ""),
            limit(60, 100, "app", ""),
        ];
        let found = compare(&truth, &report(&limits.join(",")), &[1]).expect("a report");
        assert_eq!(found.narrow_ns, 10 + 20 + 10 + 40, "and what else the link was not full of");
        assert_eq!((found.wide_ns, found.narrow_by_stack_ns), (10 + 10, 30 + 40));
        assert_eq!(found.link_full_ns, [20, 10], "an application has its own word");
    }

    #[test]
    fn figures_are_errors_against_the_kernels() {
        let found = compare(&truth(&[]), &report(""), &[0, 1]).expect("a report");
        assert_eq!(found.cwnd_errors, [200], "the last round has no end to look at");
        assert_eq!(found.cwnd_inside, 1);
        assert_eq!(found.rtt_errors, [100]);
        assert_eq!(found.retransmitted, [(2, 1)]);
    }

    #[test]
    fn a_connection_that_the_report_lacks_is_counted() {
        let found = compare(&truth(&[]), r#"{"connections":[]}"#, &[1]).expect("a report");
        assert_eq!(found.missing, 1);
        assert!(compare(&truth(&[]), "{}", &[1]).is_err());
    }
}
