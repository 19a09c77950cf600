//! What a capture shows by its effects only: values that are tried, and kept if the replay comes
//! nearer by them.

use tcpwhy::report::State;

use super::Fit;

/// A value that may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Guess {
    /// The rate of the narrowest link, which nothing filled for long, in bits per second.
    Rate(u64),
    /// The sender's buffer (`SO_SNDBUF`), in bytes.
    Sndbuf(u64),
    /// The receiver's buffer (`SO_RCVBUF`), in bytes.
    Rcvbuf(u64),
}

/// So much of the busy time shows that something held the sender, in percent.
const SHOWS_PERCENT: i64 = 10;

/// Parts of what was seen that are tried, in eighths.
const EIGHTHS: [u64; 8] = [4, 6, 8, 10, 12, 16, 24, 40];

impl Fit {
    /// What may be tried, in groups of which at most one value holds.
    pub fn guesses(&self) -> Vec<Vec<Guess>> {
        let parts =
            |of: u64, guess: fn(u64) -> Guess| EIGHTHS.map(|part| guess(of * part / 8)).to_vec();
        let mut groups = Vec::new();
        if let Some((rate, _)) = self.proven.filter(|_| self.path.rate.is_none()) {
            groups.push(parts(rate, Guess::Rate)[2..].to_vec());
        }
        if self.is_held(&[State::Sndbuf]) {
            groups.push(parts(self.seen.most_in_flight, Guess::Sndbuf));
        }
        if self.is_held(&[State::RwndCap, State::RwndReader, State::ZeroWindow]) {
            groups.push(parts(self.seen.most_in_flight, Guess::Rcvbuf));
        }
        groups
    }

    /// The same, with a guess.
    #[must_use]
    pub fn with(&self, guess: Guess) -> Self {
        let mut fit = self.clone();
        let bytes = |bytes: u64| format!("\"{}B\"", bytes.max(1));
        match guess {
            Guess::Rate(rate) => fit.path.rate = Some(rate),
            Guess::Sndbuf(size) => {
                let socket = &mut fit.hosts[self.sender.index()].socket;
                socket.insert("sndbuf".to_owned(), bytes(size));
            }
            Guess::Rcvbuf(size) => {
                let socket = &mut fit.hosts[self.sender.peer().index()].socket;
                socket.insert("rcvbuf".to_owned(), bytes(size));
            }
        }
        fit
    }

    /// Whether these held the sender for long enough to show.
    pub(crate) fn is_held(&self, states: &[State]) -> bool {
        let held: i64 = states.iter().map(|state| self.seen.time_in.get(*state).0).sum();
        held > self.seen.busy_ns() / 100 * SHOWS_PERCENT
    }
}
