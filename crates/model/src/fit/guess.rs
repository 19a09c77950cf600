//! What a capture shows by its effects only: values that are tried, and kept if the replay comes
//! nearer by them.

use tcpwhy::report::State;

use super::Fit;

/// A value that may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Guess {
    /// The rate of the narrowest link, which nothing filled for long, in bits per second.
    Rate(u64),
    /// The sender's buffer, in bytes.
    Sndbuf(u64),
    /// The receiver's buffer (`SO_RCVBUF`), in bytes.
    Rcvbuf(u64),
}

/// So much of the busy time shows that something held the sender, in percent.
const SHOWS_PERCENT: i64 = 10;

/// Buffers that are tried, in eighths of the most that was in flight: a sender's counts headers and
/// keeps what is not acknowledged, a receiver's offers about half.
const SNDBUFS: [u64; 16] = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24, 32];
const RCVBUFS: [u64; 10] = [4, 5, 6, 7, 8, 9, 10, 12, 16, 24];

/// Rates that are tried, in eighths of the fastest delivery over a whole round.
const RATES: [u64; 10] = [8, 10, 12, 16, 24, 32, 48, 64, 96, 128];

impl Fit {
    /// What may be tried, in groups of which at most one value holds.
    pub fn guesses(&self) -> Vec<Vec<Guess>> {
        let eighths = |of: u64, parts: &[u64], guess: fn(u64) -> Guess| -> Vec<Guess> {
            parts.iter().map(|part| guess(of * part / 8)).collect()
        };
        let flight = self.seen.most_in_flight;
        let mut groups = Vec::new();
        if self.is_held(&[State::Sndbuf]) {
            groups.push(eighths(flight, &SNDBUFS, Guess::Sndbuf));
        }
        if self.is_held(&[State::RwndCap, State::RwndReader, State::ZeroWindow]) {
            groups.push(eighths(flight, &RCVBUFS, Guess::Rcvbuf));
        }
        // A rate would explain much that a buffer does.
        let rate = self.proven.filter(|_| groups.is_empty() && self.path.rate.is_none());
        if let Some((rate, _)) = rate {
            groups.push(eighths(rate, &RATES, Guess::Rate));
        }
        groups
    }

    /// The same, with a guess.
    #[must_use]
    pub fn with(&self, guess: Guess) -> Self {
        let mut fit = self.clone();
        match guess {
            Guess::Rate(rate) => {
                fit.path.rate = Some(rate);
                fit.rate_is_guessed = true;
            }
            Guess::Sndbuf(size) => {
                // As a setting of the host, which another may replace.
                let sysctl = &mut fit.hosts[self.sender.index()].sysctl;
                let three = format!("\"4096 {size} {size}\"");
                sysctl.insert("net.ipv4.tcp_wmem".to_owned(), three);
            }
            Guess::Rcvbuf(size) => {
                let socket = &mut fit.hosts[self.sender.peer().index()].socket;
                socket.insert("rcvbuf".to_owned(), format!("\"{}B\"", size.max(1)));
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
