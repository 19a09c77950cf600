//! The graphs of a direction: which there are, which series each has, and how each series is drawn.
//!
//! A series is columns of numbers in the graph's own quantities (nanoseconds, and bytes, bits a second or
//! nanoseconds). Whoever draws needs to know marks and inks only: the page paints them on a canvas, and files of the
//! same graphs are written from the same series. No mark is dropped: where there are too many, each stands for
//! neighbours and has their least and most ([`crate::report::Trail`]).

mod about;
mod rate;
mod series;

use serde::Serialize;

pub use series::{Mark, Series};

use crate::report::{CeilingKind, Connection, Direction, Retransmission, Sent, Trail};
use about::Note;

/// Nanoseconds of a second, times the bits of a byte.
const BITS: i128 = 8_000_000_000;

/// A graph over the connection's time.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Its name, for links.
    pub id: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// What is on its other axis.
    pub axis: &'static str,
    /// The quantity there.
    pub unit: Unit,
    /// How to read it, with what is to be seen in this one.
    pub about: String,
    /// Pieces of its time that are to be told of, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// What is drawn, in this order.
    pub series: Vec<Series>,
}

/// A quantity.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum Unit {
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Bits a second.
    #[serde(rename = "bit/s")]
    Rate,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Time,
}

impl Figure {
    /// How many marks it has.
    pub fn marks(&self) -> usize {
        self.series.iter().map(Series::len).sum()
    }
}

impl Figure {
    /// The same with at most this many marks in a series, but for rare ones.
    #[must_use]
    pub(super) fn coarse(&self, most: usize) -> Self {
        let series = self.series.iter().map(|series| series.coarse(most)).collect();
        Self { about: self.about.clone(), notes: self.notes.clone(), series, ..*self }
    }
}

/// The graphs of a direction; `None` if nothing was kept to draw.
pub fn figures(connection: &Connection, at: usize, direction: &Direction) -> Option<Vec<Figure>> {
    let trail = direction.trail.as_deref().filter(|trail| !trail.sends.list.is_empty())?;
    let mss = i64::from(connection.mss.unwrap_or(1448));
    let mut all = vec![
        sequence(at, direction, trail),
        flight(connection, at, direction, trail, mss),
        rate::figure(at, connection, direction, trail),
        round_trip(at, direction, trail),
        window(at, direction, trail),
    ];
    for figure in &mut all {
        figure.series.retain(|series| series.len() > 0);
    }
    all.retain(|figure| !figure.series.is_empty());
    Some(all)
}

fn sequence(at: usize, direction: &Direction, trail: &Trail) -> Figure {
    let spans = |list: &[Sent], name, ink| {
        Series::spans(name, ink, list.iter().map(|mark| (mark, mark.from, mark.to)))
    };
    let answers = &trail.answers.list;
    let mut series = vec![
        Series::steps(
            "window edge",
            "edge",
            answers.iter().map(|a| (a.at_ns, a.until_ns, a.edge, a.edge)),
        ),
        Series::steps(
            "acknowledged",
            "ack",
            answers.iter().map(|a| (a.at_ns, a.until_ns, a.acked, a.acked)),
        ),
        spans(&trail.sends.list, "segments", "data"),
        spans(&trail.sacked.list, "SACKed", "sack"),
    ];
    series.extend(repeats(direction, trail));
    let losses = direction.in_flight_at_loss.iter();
    let lost = losses.filter_map(|loss| {
        let to = trail.sends.list.iter().rfind(|mark| mark.at_ns <= loss.at_ns)?.to;
        Some((loss.at_ns, loss.at_ns, to, to))
    });
    series.push(Series::of("lost original", Mark::Crosses, "lost", lost));
    let rounds = direction.rounds.iter().map(|round| (round.start_ns, round.start_ns, 0, 0));
    series.push(Series::of("round begins", Mark::Ticks, "round", rounds));
    Figure {
        id: "sequence",
        title: "Time-sequence",
        axis: "bytes of the stream",
        unit: Unit::Bytes,
        about: about::sequence(at, direction),
        notes: about::notes(at, direction),
        series,
    }
}

/// What was retransmitted, by its cause, and what came late.
fn repeats(direction: &Direction, trail: &Trail) -> Vec<Series> {
    let known = &direction.retransmissions;
    let of_frame = |frame| -> Option<&Retransmission> {
        known.binary_search_by_key(&frame, |each| each.frame).ok().map(|at| &known[at])
    };
    // The list of a long connection is cut: then the cause of the others is not known.
    let is_whole = direction.retransmitted.total() <= known.len() as u64;
    let name = |mark: &Sent| match of_frame(mark.frame) {
        Some(repeat) if repeat.spurious => "needless",
        Some(repeat) => repeat.cause.name(),
        None if is_whole => "late",
        None => "other",
    };
    let kinds = [
        ("late", "came late", "late"),
        ("needless", "retransmission, needless", "needless"),
        ("unnecessary", "retransmission of acknowledged data", "needless"),
        ("fast", "retransmission, fast", "fast"),
        ("tlp", "retransmission, tail probe", "tlp"),
        ("rto", "retransmission, timeout", "rto"),
        ("other", "retransmission", "fast"),
    ];
    let each = kinds.into_iter().map(|(kind, label, ink)| {
        let marks = trail.late.list.iter().filter(|mark| name(mark) == kind);
        Series::spans(label, ink, marks.map(|mark| (mark, mark.from, mark.to))).rare()
    });
    each.collect()
}

fn flight(
    connection: &Connection,
    at: usize,
    direction: &Direction,
    trail: &Trail,
    mss: i64,
) -> Figure {
    let sends = trail.sends.list.iter().map(|s| (s.frame, s.at_ns, s.until_ns, s.flight));
    let answers = trail.answers.list.iter().map(|a| (a.frame, a.at_ns, a.until_ns, a.flight));
    let mut points: Vec<(u64, i64, i64, i64)> = sends.chain(answers).collect();
    // What is left after an instant is what its last packet left.
    points.sort_by_key(|point| (point.1, point.0));
    let points = points.into_iter().map(|(_, at, until, flight)| (at, until, flight, flight));
    let windows = trail.answers.list.iter();
    let rounds = &direction.rounds;
    let cwnd = rounds.iter().filter_map(|round| {
        let low = round.cwnd.low.or(round.cwnd.best)? as i64 * mss;
        let high = round.cwnd.high.or(round.cwnd.best).map_or(low, |high| high as i64 * mss);
        Some((round.start_ns, round.start_ns, low, high.max(low)))
    });
    let bdp = rounds.iter().filter_map(|round| {
        let bytes = i64::try_from(round.bdp_bytes?).ok()?;
        Some((round.start_ns, round.start_ns, bytes, bytes))
    });
    // The most that a full buffer can have on its way in a round trip is what it holds.
    let buffer = ceiling(direction, CeilingKind::SendBuffer).and_then(|rate| {
        let bytes = i128::from(rate) * i128::from(direction.rtt.min_ns?) / BITS;
        i64::try_from(bytes).ok()
    });
    Figure {
        id: "flight",
        title: "Bytes in flight",
        axis: "bytes",
        unit: Unit::Bytes,
        about: about::flight(connection, at, direction),
        notes: Vec::new(),
        series: vec![
            Series::of("congestion window", Mark::Band, "cwnd", cwnd),
            Series::steps(
                "receive window",
                "window",
                windows.map(|a| (a.at_ns, a.until_ns, a.window.0, a.window.1)),
            ),
            Series::steps("bandwidth-delay product", "bdp", bdp),
            Series::steps("send buffer", "buffer", buffer.map(|bytes| (0, 0, bytes, bytes))),
            Series::of("in flight", Mark::Area, "flight", points),
        ],
    }
}

/// A ceiling's rate, in bits a second.
fn ceiling(direction: &Direction, kind: CeilingKind) -> Option<u64> {
    direction.ceilings.iter().find(|each| each.kind == kind).map(|each| each.rate_bps)
}

fn round_trip(at: usize, direction: &Direction, trail: &Trail) -> Figure {
    let taps = trail.trips.list.iter().map(|t| (t.at_ns, t.until_ns, t.least_ns, t.most_ns));
    let stack = direction.rounds.iter().filter_map(|round| {
        let rtt = round.rtt_ns?;
        Some((round.start_ns, round.start_ns, rtt, rtt))
    });
    let least = direction.rtt.min_ns.map(|rtt| (0, 0, rtt, rtt));
    let waits = direction.rounds.iter().filter_map(|round| {
        let (rtt, least) = (round.rtt_ns?, direction.rtt.min_ns?);
        Some((round.start_ns, round.start_ns, least, rtt.max(least)))
    });
    Figure {
        id: "rtt",
        title: "Round-trip time",
        axis: "time of a round trip",
        unit: Unit::Time,
        about: about::round_trip(at, direction),
        notes: Vec::new(),
        series: vec![
            Series::of("waiting in queues and hosts", Mark::Band, "queue", waits),
            Series::steps("least round trip", "least", least.into_iter()),
            Series::of("tap to receiver and back", Mark::Dots, "rtt", taps),
            Series::steps("sender's round trip", "stack", stack),
        ],
    }
}

fn window(at: usize, direction: &Direction, trail: &Trail) -> Figure {
    let windows = trail.answers.list.iter();
    let shut = windows.clone().filter(|a| a.window.0 == 0);
    Figure {
        id: "window",
        title: "Receive window",
        axis: "bytes",
        unit: Unit::Bytes,
        about: about::window(at, direction),
        notes: Vec::new(),
        series: vec![
            Series::steps(
                "receive window",
                "window",
                windows.map(|a| (a.at_ns, a.until_ns, a.window.0, a.window.1)),
            ),
            Series::of(
                "zero window",
                Mark::Crosses,
                "lost",
                shut.map(|a| (a.at_ns, a.until_ns, 0, 0)),
            )
            .rare(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Answered, RepeatCause};

    fn sent(at_ns: i64, from: i64, frame: u64) -> Sent {
        Sent { at_ns, until_ns: at_ns, from, to: from + 100, flight: 100, packets: 1, frame }
    }

    fn direction(trail: Trail, repeats: Vec<Retransmission>) -> Direction {
        Direction { trail: Some(Box::new(trail)), retransmissions: repeats, ..Direction::default() }
    }

    #[test]
    fn a_lone_retransmission_is_a_mark_of_its_own_with_its_cause() {
        let mut trail = Trail::default();
        for at in 0..500_000 {
            trail.sends.push(sent(at, at * 100, at as u64));
        }
        trail.late.push(sent(600_000, 4200, 777_777));
        let repeat =
            Retransmission { frame: 777_777, cause: RepeatCause::Rto, ..Retransmission::default() };
        let direction = direction(trail, vec![repeat]);
        let connection = crate::view::sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100);
        let figures = figures(&connection, 1, &direction).expect("graphs");
        let series = &figures[0].series;
        let rto = series.iter().find(|each| each.name == "retransmission, timeout").expect("one");
        assert_eq!((rto.len(), rto.rare), (1, true));
        let data = series.iter().find(|each| each.name == "segments").expect("the data");
        assert!(data.len() <= 2 * Trail::MOST);
    }

    #[test]
    fn nothing_kept_is_nothing_drawn() {
        let connection = crate::view::sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100);
        assert!(figures(&connection, 1, &Direction::default()).is_none());
    }

    #[test]
    fn the_flight_after_an_instant_is_that_of_its_last_packet() {
        let mut trail = Trail::default();
        trail.sends.push(Sent { flight: 900, ..sent(0, 0, 1) });
        let answer =
            Answered { at_ns: 5, until_ns: 5, flight: 400, frame: 2, ..Answered::default() };
        trail.answers.push(answer);
        trail.sends.push(Sent { flight: 800, ..sent(5, 900, 3) });
        let connection = crate::view::sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100);
        let figures = figures(&connection, 1, &direction(trail, Vec::new())).expect("graphs");
        let flight = figures.iter().find(|each| each.id == "flight").expect("the flight");
        let series = flight.series.iter().find(|each| each.name == "in flight").expect("it");
        assert_eq!(series.least, [900, 400, 800]);
    }

    #[test]
    fn a_shut_window_is_marked() {
        let mut trail = Trail::default();
        trail.sends.push(sent(0, 0, 1));
        trail.answers.push(Answered {
            at_ns: 5,
            until_ns: 5,
            acked: 100,
            edge: 100,
            ..Answered::default()
        });
        let connection = crate::view::sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100);
        let figures = figures(&connection, 1, &direction(trail, Vec::new())).expect("graphs");
        let window = figures.iter().find(|each| each.id == "window").expect("the window");
        assert!(window.series.iter().any(|each| each.name == "zero window"));
    }
}
