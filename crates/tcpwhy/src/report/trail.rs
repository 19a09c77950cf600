//! What passed the tap of one direction's data, segment by segment, for pictures; kept only where it is asked for.
//!
//! Up to [`Trail::MOST`] marks of a kind are exact. Behind that each mark stands for 2, 4, 8 .. neighbours and has
//! their least and their most, so that a connection of any length takes as much room, and no extreme is lost. What
//! is rare (repeats, SACK blocks) has lists of its own: one repeat among ten million segments stays one mark.

/// What passed the tap of one direction's data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trail {
    /// New data.
    pub sends: Marks<Sent>,
    /// Data below what had passed before: repeats, and what came late.
    pub late: Marks<Sent>,
    /// What the receiver answered.
    pub answers: Marks<Answered>,
    /// What SACK blocks told anew.
    pub sacked: Marks<Sent>,
    /// Round trips from the tap to the receiver and back.
    pub trips: Marks<Trip>,
}

impl Trail {
    /// Marks of a kind that are kept at least before neighbours are joined. Ours: 2 to 4 MB of each kind, and all
    /// segments of a transfer of 90 MB.
    pub const MOST: usize = 1 << 16;
}

/// Marks in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Marks<T> {
    /// The marks.
    pub list: Vec<T>,
    /// How many each stands for; the last may stand for fewer.
    pub each: usize,
    /// How many the last stands for.
    of_last: usize,
}

impl<T> Default for Marks<T> {
    fn default() -> Self {
        Self { list: Vec::new(), each: 1, of_last: 0 }
    }
}

/// A mark that can stand for several.
pub trait Joins {
    /// Takes the next one in.
    fn join(&mut self, next: &Self);
}

impl<T: Joins + Copy> Marks<T> {
    /// The next mark.
    pub(crate) fn push(&mut self, mark: T) {
        if let Some(last) = self.list.last_mut().filter(|_| self.of_last < self.each) {
            last.join(&mark);
            self.of_last += 1;
            return;
        }
        if self.list.len() >= 2 * Trail::MOST {
            self.halve();
        }
        self.list.push(mark);
        self.of_last = 1;
    }

    fn halve(&mut self) {
        let mut into = 0;
        for from in (0..self.list.len()).step_by(2) {
            let mut mark = self.list[from];
            if let Some(next) = self.list.get(from + 1) {
                mark.join(next);
            }
            self.list[into] = mark;
            into += 1;
        }
        self.list.truncate(into);
        self.each *= 2;
    }
}

/// Segments, or a span of their bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sent {
    /// When the first and the last passed the tap, since the connection's first packet.
    pub at_ns: i64,
    /// When the last did.
    pub until_ns: i64,
    /// First byte, as an offset.
    pub from: i64,
    /// The byte behind the last.
    pub to: i64,
    /// Most bytes in flight behind one of them.
    pub flight: i64,
    /// How many packets.
    pub packets: u32,
    /// Frame of the first.
    pub frame: u64,
}

impl Joins for Sent {
    fn join(&mut self, next: &Self) {
        self.until_ns = next.until_ns;
        self.from = self.from.min(next.from);
        self.to = self.to.max(next.to);
        self.flight = self.flight.max(next.flight);
        self.packets = self.packets.saturating_add(next.packets);
    }
}

/// Acknowledgments and windows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Answered {
    /// When the first passed the tap.
    pub at_ns: i64,
    /// When the last did.
    pub until_ns: i64,
    /// Bytes acknowledged by the last.
    pub acked: i64,
    /// The byte up to which the window reached at most.
    pub edge: i64,
    /// The least and the most window.
    pub window: (i64, i64),
    /// Least bytes in flight behind one of them.
    pub flight: i64,
    /// Frame of the first.
    pub frame: u64,
}

impl Joins for Answered {
    fn join(&mut self, next: &Self) {
        self.until_ns = next.until_ns;
        self.acked = self.acked.max(next.acked);
        self.edge = self.edge.max(next.edge);
        self.window = (self.window.0.min(next.window.0), self.window.1.max(next.window.1));
        self.flight = self.flight.min(next.flight);
    }
}

/// Round trips.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Trip {
    /// When the first ended.
    pub at_ns: i64,
    /// When the last did.
    pub until_ns: i64,
    /// The shortest.
    pub least_ns: i64,
    /// The longest.
    pub most_ns: i64,
}

impl Joins for Trip {
    fn join(&mut self, next: &Self) {
        self.until_ns = next.until_ns;
        self.least_ns = self.least_ns.min(next.least_ns);
        self.most_ns = self.most_ns.max(next.most_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(at_ns: i64, bytes: i64) -> Answered {
        Answered { at_ns, until_ns: at_ns, window: (bytes, bytes), ..Answered::default() }
    }

    #[test]
    fn up_to_the_stated_size_marks_are_exact() {
        let mut marks = Marks::default();
        let most = 2 * Trail::MOST as i64;
        for at in 0..most {
            marks.push(window(at, at));
        }
        assert_eq!((marks.list.len() as i64, marks.each), (most, 1));
    }

    #[test]
    fn behind_it_neighbours_are_joined_and_an_extreme_stays() {
        let mut marks = Marks::default();
        let number = 9 * Trail::MOST as i64 + 3;
        for at in 0..number {
            marks.push(window(at, if at == 77_777 { 0 } else { 1000 }));
        }
        assert!(marks.list.len() <= 2 * Trail::MOST && marks.each == 8);
        let shut: Vec<_> = marks.list.iter().filter(|mark| mark.window.0 == 0).collect();
        assert_eq!(shut.len(), 1);
        assert!((shut[0].at_ns..=shut[0].until_ns).contains(&77_777));
        assert_eq!(marks.list.last().map(|mark| mark.until_ns), Some(number - 1));
    }
}
