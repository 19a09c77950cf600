//! A part of the report: what happened between two instants.
//!
//! The question is "what did it wait for in these two seconds?". The whole capture is analysed, for
//! what came before decides what the packets of those seconds mean (the handshake tells the scale
//! of windows, earlier rounds the congestion window); then each connection's account is cut to the
//! part. Intervals, rounds, transfers and the lists of single events are those of the part, times
//! count from its start, and the time in states adds up to its length. Figures that were gathered
//! over the whole connection (bytes, round trips, counts of events) stay what they are; only the
//! new bytes of the part can be told, from its rounds.
//!
//! Findings are those of the whole connection that have intervals in the part: their costs, shares and
//! order are of the part, their sentences of the whole, for the verdicts rest on it.
//!
//! Left out: requests and TLS handshakes that reach beyond the part.

use crate::find;
use crate::report::{
    Connection, Direction, Exchange, Finding, IcmpErrors, Limit, Part, Report, RoundRange, State,
    Strip, TimeIn, Totals, Transfer, Untaken,
};
use tcpwhy_words::units::{Duration, Time};

/// Cuts `report` to what lies between the two instants that `bounds` gives (both included) when
/// told the time of the first packet; connections that lie outside go. Gives the time of the first
/// and the last packet of all.
pub fn clip(report: &mut Report, bounds: impl Fn(Time) -> (Time, Time)) -> Option<(Time, Time)> {
    let starts = starts(&report.connections);
    let end = |(start, each): (&Time, &Connection)| *start + Duration(each.duration_ns);
    let first = starts.iter().copied().min()?;
    let last = starts.iter().zip(&report.connections).map(end).max()?;
    let (from, to) = bounds(first);
    let connections = core::mem::take(&mut report.connections).into_iter().zip(starts);
    let cut = connections.filter_map(|(mut connection, start)| {
        let (from, to) = (from.since(start).0, to.since(start).0);
        let lifetime = connection.duration_ns;
        if from > to || to < 0 || from > lifetime {
            return None;
        }
        let cut = Cut { from: from.max(0), to: to.min(lifetime) };
        if (cut.from, cut.to) != (0, lifetime) {
            cut.connection(&mut connection, start);
        }
        Some(connection)
    });
    report.connections = cut.collect();
    report.totals = Totals::of(&report.connections);
    Some((first, last))
}

/// When the connections began. A listing's times may lack the date: then they begin on one day and
/// go on to the next where they step back by half a day or more.
fn starts(connections: &[Connection]) -> Vec<Time> {
    const DAY: Duration = Duration::from_secs(86_400);
    const HALF: Duration = Duration::from_secs(43_200);
    let mut before = Time(0);
    let mut days = Duration::ZERO;
    let start = |connection: &Connection| {
        if let Some(time) = Time::from_rfc3339(&connection.start) {
            return time;
        }
        let clock = Time::from_rfc3339(&format!("1970-01-01T{}Z", connection.start));
        let mut time = clock.unwrap_or_default() + days;
        if before.since(time) > HALF {
            (days, time) = (days + DAY, time + DAY);
        }
        before = time;
        time
    };
    connections.iter().map(start).collect()
}

/// The part of a connection, in nanoseconds since its first packet.
#[derive(Clone, Copy, Debug)]
struct Cut {
    from: i64,
    to: i64,
}

impl Cut {
    fn holds(self, at_ns: i64) -> bool {
        (self.from..=self.to).contains(&at_ns)
    }

    fn length(self) -> i64 {
        self.to - self.from
    }

    /// Makes both ends of a span count from the part's start, as far as they lie in it; whether
    /// any of the span does.
    fn span(self, start: &mut i64, end: &mut i64) -> bool {
        let outside = *end < self.from || *start > self.to || (*end == self.from && *start < *end);
        *start = (*start).clamp(self.from, self.to) - self.from;
        *end = (*end).clamp(self.from, self.to) - self.from;
        !outside
    }

    /// Makes an instant count from the part's start; whether it lies in the part.
    fn instant(self, at: &mut i64) -> bool {
        let inside = self.holds(*at);
        *at = at.saturating_sub(self.from);
        inside
    }

    fn untaken(self, of: Untaken) -> Untaken {
        let at = |ns: i64| ns.min(self.to) - self.from;
        Untaken {
            from_ns: at(of.from_ns),
            data_ns: of.data_ns.map(at),
            to_ns: of.to_ns.map(at),
            last_syn_ack_ns: of.last_syn_ack_ns.map(at),
            ..of
        }
    }

    fn connection(self, connection: &mut Connection, start: Time) {
        let active = find::active_ns(connection);
        let of_ns = core::mem::replace(&mut connection.duration_ns, self.length());
        let start = (start + Duration(self.from)).rfc3339();
        connection.start = match start.split_once('T') {
            Some((_, clock)) if !connection.start.contains('T') => {
                clock.trim_end_matches('Z').to_owned()
            }
            _ => start,
        };
        let mut bytes = [None; 2];
        let mut rounds = [(0, 0); 2];
        for (at, direction) in connection.directions.iter_mut().enumerate() {
            let Some(direction) = direction else { continue };
            rounds[at] = self.direction(direction);
            let kept = direction.rounds.iter().map(|round| round.bytes);
            bytes[at] = (rounds[at].1 > 0).then(|| kept.fold(0, u64::saturating_add));
        }
        self.transfers(connection, rounds);
        let reset = connection.reset.take();
        connection.reset =
            reset.and_then(|mut reset| self.instant(&mut reset.at_ns).then_some(reset));
        let ending = connection.ending.take();
        connection.ending =
            ending.filter(|ending| self.holds(ending.until_ns)).map(|mut ending| {
                self.span(&mut ending.since_ns, &mut ending.until_ns);
                for at in [&mut ending.last_sent_ns, &mut ending.heard_ns].into_iter().flatten() {
                    self.instant(at);
                }
                ending
            });
        let untaken = connection.untaken.take().filter(|untaken| self.holds(untaken.from_ns));
        connection.untaken = untaken.map(|untaken| self.untaken(untaken));
        connection.clear_errors.retain_mut(|failure| self.instant(&mut failure.at_ns));
        let tls = connection.tls.take();
        connection.tls = tls
            .filter(|tls| self.holds(tls.start_ns) && tls.end_ns.is_none_or(|end| self.holds(end)));
        if let Some(tls) = &mut connection.tls {
            let ends = [&mut tls.start_ns].into_iter().chain(&mut tls.end_ns);
            ends.for_each(|at| *at -= self.from);
            tls.flights.iter_mut().for_each(|flight| flight.start_ns -= self.from);
        }
        connection.icmp.retain_mut(|errors| self.icmp(errors));
        connection.findings.retain_mut(|finding| self.finding(finding));
        connection.beside.retain_mut(|each| match (&mut each.from_ns, &mut each.to_ns) {
            (Some(from), Some(to)) => self.span(from, to),
            _ => true,
        });
        connection.part = Some(Part { from_ns: self.from, to_ns: self.to, of_ns, bytes });
        find::recut(connection, active);
    }

    /// Whether any of the errors fell into the part.
    fn icmp(self, errors: &mut IcmpErrors) -> bool {
        for quoted in &mut errors.quoted {
            quoted.at_ns = quoted.at_ns.map(|at| at.saturating_sub(self.from));
        }
        let (Some(first), Some(last)) = (&mut errors.first_ns, &mut errors.last_ns) else {
            return true;
        };
        // The last error may come after the connection's last packet, which it speaks of.
        let stays = *last >= self.from && *first <= self.to;
        (*first, *last) = (first.saturating_sub(self.from), last.saturating_sub(self.from));
        stays
    }

    /// Cuts one direction; the number of its first round that stays, and how many there were.
    fn direction(self, direction: &mut Direction) -> (usize, usize) {
        direction.limits.retain_mut(|limit| self.span(&mut limit.start_ns, &mut limit.end_ns));
        direction.time_in = time_in(&direction.limits, 0, self.length());
        direction.strip = strip(&direction.limits, self.length());
        let all = direction.rounds.len();
        let before = direction.rounds.iter().take_while(|round| round.start_ns < self.from).count();
        direction.rounds.retain_mut(|round| self.instant(&mut round.start_ns));
        direction.retransmissions.retain_mut(|each| self.instant(&mut each.at_ns));
        direction.idle_restarts.retain_mut(|each| self.instant(&mut each.at_ns));
        direction.in_flight_at_loss.retain_mut(|each| self.instant(&mut each.at_ns));
        direction.rtt_jumps.retain_mut(|each| self.instant(&mut each.at_ns));
        let stuck = direction.stuck_segment.take();
        direction.stuck_segment = stuck
            .filter(|stuck| stuck.to_ns >= self.from && stuck.from_ns <= self.to)
            .map(|mut stuck| {
                self.span(&mut stuck.from_ns, &mut stuck.to_ns);
                stuck
            });
        let exit = direction.slow_start_exit.take();
        direction.slow_start_exit = exit.filter(|exit| self.holds(exit.at_ns)).map(|mut exit| {
            exit.at_ns -= self.from;
            exit
        });
        (before, all)
    }

    /// Cuts the transfers, and keeps the requests whose transfers lie wholly inside.
    fn transfers(self, connection: &mut Connection, rounds: [(usize, usize); 2]) {
        let mut places: Vec<Option<u64>> = Vec::new();
        let mut kept = Vec::new();
        for mut transfer in core::mem::take(&mut connection.transfers) {
            let whole = self.holds(transfer.start_ns) && self.holds(transfer.end_ns);
            let stays = self.span(&mut transfer.start_ns, &mut transfer.end_ns);
            places.push((stays && whole).then_some(kept.len() as u64));
            if stays {
                let at = usize::from(transfer.from == "server");
                if let Some(direction) = &connection.directions[at] {
                    cut_transfer(&mut transfer, direction, rounds[at].0, whole);
                }
                kept.push(transfer);
            }
        }
        connection.transfers = kept;
        let place = |at: u64| places.get(usize::try_from(at).ok()?).copied().flatten();
        connection.exchanges.retain_mut(|Exchange { request, response, early, .. }| {
            let Some(new) = place(*request) else { return false };
            *request = new;
            if let Some(early) = early {
                early.start_ns -= self.from;
            }
            response.as_mut().is_none_or(|at| place(*at).map(|new| *at = new).is_some())
        });
    }

    fn finding(self, finding: &mut Finding) -> bool {
        let time = |finding: &Finding| -> i64 {
            finding.evidence.iter().map(|each| each.to_ns - each.from_ns).sum()
        };
        let whole = time(finding);
        finding.evidence.retain_mut(|each| self.span(&mut each.from_ns, &mut each.to_ns));
        let left = time(finding);
        if left < whole {
            finding.cost_ns = finding.cost_ns.min(left);
        }
        !finding.evidence.is_empty()
    }
}

/// Gives a transfer, whose span was cut already, the rounds, bytes and states of that span.
fn cut_transfer(transfer: &mut Transfer, direction: &Direction, gone: usize, whole: bool) {
    let kept = direction.rounds.len();
    transfer.rounds = transfer.rounds.and_then(|RoundRange { first, last }| {
        let (first, last) =
            (first.max(gone as u64), last.min(((gone + kept) as u64).saturating_sub(1)));
        let gone = gone as u64;
        (kept > 0 && first <= last).then(|| RoundRange { first: first - gone, last: last - gone })
    });
    if whole {
        return;
    }
    transfer.time_in = time_in(&direction.limits, transfer.start_ns, transfer.end_ns);
    let rounds = transfer.rounds.map_or(&[][..], |range| {
        direction.rounds.get(range.first as usize..=range.last as usize).unwrap_or_default()
    });
    transfer.bytes = rounds.iter().fold(0, |sum, round| sum + round.bytes).min(transfer.bytes);
}

/// Time in each state between two instants; what no interval tells is unknown.
fn time_in(limits: &[Limit], from: i64, to: i64) -> TimeIn {
    let mut sum = TimeIn::default();
    let mut told = 0;
    for limit in limits {
        let span = limit.end_ns.min(to) - limit.start_ns.max(from);
        if span > 0 {
            sum.add(limit.state, Duration(span));
            told += span;
        }
    }
    sum.add(State::Unknown, Duration(to - from - told));
    sum
}

/// The state that held most of each slice, as letters; see [`Direction::strip`].
fn strip(limits: &[Limit], length: i64) -> Strip {
    /// As many as the strip of a whole lifetime has at most.
    const SLICES: i64 = 512;
    let slices = SLICES.min(length).max(0);
    let edge = |slice: i64| (i128::from(length) * i128::from(slice) / i128::from(slices)) as i64;
    let mut rest = limits;
    let state = |slice: i64| {
        let (from, to) = (edge(slice), edge(slice + 1));
        let done = rest.iter().take_while(|limit| limit.end_ns <= from).count();
        rest = &rest[done..];
        let here = rest.iter().take_while(|limit| limit.start_ns < to).count();
        let ranked = time_in(&rest[..here], from, to).ranked();
        ranked.first().map_or(State::Unknown, |row| row.0)
    };
    (0..slices).map(state).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sample;
    use super::*;

    /// The worked example between two times since its first packet.
    fn part(from: i64, to: i64) -> Report {
        let mut report = sample::worked_example();
        clip(&mut report, |first| (first + Duration(from), first + Duration(to)));
        report
    }

    #[test]
    fn all_of_it_is_no_part() {
        assert_eq!(part(-5, i64::MAX), sample::worked_example());
    }

    #[test]
    fn what_lies_outside_goes() {
        assert!(part(63_063_001, i64::MAX).connections.is_empty());
        assert!(part(-5, -1).connections.is_empty());
        assert_eq!(part(63_063_000, i64::MAX).connections[0].duration_ns, 0);
    }

    #[test]
    fn a_finding_costs_what_is_left_of_it() {
        let mut report = sample::worked_example();
        let evidence = crate::report::Evidence {
            from_ns: 10_000_000,
            to_ns: 30_000_000,
            ..crate::report::Evidence::default()
        };
        let finding =
            Finding { cost_ns: 20_000_000, evidence: vec![evidence], ..Finding::default() };
        report.connections[0].findings.push(finding);
        let cost = |from: i64| {
            let mut part = report.clone();
            clip(&mut part, |first| (first + Duration(from), first + Duration(i64::MAX / 4)));
            part.connections[0].findings.first().map(|each| each.cost_ns)
        };
        assert_eq!([cost(10_000_000), cost(25_000_000)], [Some(20_000_000), Some(5_000_000)]);
        assert_eq!(cost(40_000_000), None);
    }

    #[test]
    fn a_finding_is_no_more_severe_than_its_share_of_the_part() {
        use crate::report::Severity::{Note, Wrong};
        let mut report = sample::worked_example();
        let evidence = crate::report::Evidence {
            from_ns: 10_000_000,
            to_ns: 30_000_000,
            ..crate::report::Evidence::default()
        };
        let of_ns = find::active_ns(&report.connections[0]);
        report.connections[0].findings.push(Finding {
            cost_ns: 20_000_000,
            of_ns,
            code: "WINDOW_CAP".to_owned(),
            severity: Wrong,
            evidence: vec![evidence],
            ..Finding::default()
        });
        let severity = |from: i64| {
            let mut part = report.clone();
            clip(&mut part, |first| (first + Duration(from), first + Duration(i64::MAX / 4)));
            part.connections[0].findings[0].severity
        };
        assert_eq!([severity(15_000_000), severity(29_000_000)], [Wrong, Wrong]);
        assert_eq!(severity(29_000_001), Note, "less than a millisecond of it is left");
    }

    #[test]
    fn times_without_a_date_go_on_past_midnight() {
        let connection = |start: &str| {
            let mut made = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 1_000_000_000);
            start.clone_into(&mut made.start);
            made
        };
        let night = ["23:59:59.000000000", "00:00:01.500000000"].map(connection).to_vec();
        let mut report = sample::report("night", 2, night);
        let (first, last) = clip(&mut report, |first| {
            (first + Duration::from_secs(3), first + Duration::from_secs(9))
        })
        .expect("two connections");
        assert_eq!(last.since(first), Duration(3_500_000_000));
        assert_eq!(report.connections[0].start, "00:00:02.000000000");
    }

    proptest! {
        #[test]
        fn every_part_adds_up(from in -1_i64..64_000_000, length in 0_i64..64_000_000) {
            for connection in part(from, from + length).connections {
                let lifetime = connection.duration_ns;
                for direction in connection.directions.iter().flatten() {
                    prop_assert_eq!(direction.time_in.total(), Duration(lifetime));
                    let borders = direction.limits.iter().map(|limit| (limit.start_ns, limit.end_ns));
                    for (start, end) in borders {
                        prop_assert!(0 <= start && start <= end && end <= lifetime);
                    }
                }
                for transfer in &connection.transfers {
                    let span = transfer.end_ns - transfer.start_ns;
                    prop_assert_eq!(transfer.time_in.total(), Duration(span));
                    let at = usize::from(transfer.from == "server");
                    let rounds = connection.directions[at].as_ref().map_or(0, |d| d.rounds.len());
                    prop_assert!(transfer.rounds.is_none_or(|range| range.last < rounds as u64));
                }
            }
        }

        #[test]
        fn parts_side_by_side_make_up_the_whole(border in 1_i64..63_063_000) {
            let whole = sample::worked_example();
            for state in State::all() {
                let time = |report: &Report| {
                    let direction = report.connections[0].directions[1].as_ref();
                    direction.map_or(0, |direction| direction.time_in.get(state).0)
                };
                let (before, after) = (part(0, border), part(border, i64::MAX));
                prop_assert_eq!(time(&before) + time(&after), time(&whole), "{}", state.name());
            }
        }
    }
}
