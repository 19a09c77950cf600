//! What a capture shows by its effects only: values that are tried, and kept if the replay comes
//! nearer by them.

use serde::{Deserialize, Serialize};
use tcpwhy::report::{Connection, Direction, State};

use super::closing::Closing;
use super::path::{self, Bucket, Path};
use super::steps::Pieces;
use super::{Fit, reader, trace};

/// A value that may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Guess {
    /// The rate of the narrowest link, in bits per second; unlimited.
    Rate(Option<u64>),
    /// A link of this rate and with this room for a queue, which made the losses.
    Queue(u64, u64),
    /// A token bucket on the path, which made the losses.
    Bucket(Bucket),
    /// A token bucket at the sender's way out.
    Egress(Bucket),
    /// The sender's buffer, in bytes.
    Sndbuf(u64),
    /// The receiver's buffer (`SO_RCVBUF`), in bytes.
    Rcvbuf(u64),
    /// The receiver reads this many bytes at once, with a pause in nanoseconds after each read.
    Reads(u64, u64),
    /// The same, and it is that which held the transfer back, not a link.
    ReadsOnly(u64, u64),
    /// The sender writes so.
    Writes(u64, u64),
    /// The receiver waits for the sender to close, and that for the last acknowledgment.
    Waits,
    /// The receiver stops after this many bytes, for this many nanoseconds.
    Stall(u64, u64),
}

/// What the packets of a capture suggest.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Hints {
    /// Rates of the narrowest link.
    rates: Vec<u64>,
    /// Queues before it that overflowed.
    queues: Vec<(u64, u64)>,
    buckets: Vec<Bucket>,
    /// Bytes that the receiver's program reads in a second.
    reads: Option<u64>,
    /// The time between two of its reads, where windows tell.
    read_ns: Option<i64>,
    /// Bytes and pause of the sender's writes.
    writes: Option<(u64, u64)>,
    /// The largest window that was offered.
    window: u64,
    /// What was acknowledged when the window stopped to move, and for how long it stood.
    stand: Option<(u64, i64)>,
    /// How long windows showed that something was not read.
    unread_ns: i64,
    /// The least rate, in bits per second, at which bursts pass as they did: without standing in a queue for long.
    least_rate: u64,
}

impl Hints {
    pub(super) fn of(path: &Path, direction: &Direction, connection: &Connection) -> Self {
        let mss = u64::from(connection.mss.unwrap_or(path::DEFAULT_MSS)).max(1);
        let queues = path.rate.into_iter().flat_map(|rate| {
            let waits = path.waits(direction, rate);
            waits.into_iter().filter(|queue| *queue > 0).map(move |queue| (rate, queue))
        });
        let has_losses = !path::lost(direction).is_empty();
        Self {
            rates: path.rate.into_iter().collect(),
            queues: queues.filter(|_| has_losses).collect(),
            buckets: path.buckets(direction),
            reads: reader::edge_rate(direction),
            // A window that opens once a round trip tells nothing of reads.
            read_ns: reader::read_period(direction, mss)
                .filter(|ns| (ns - path.rtt_ns).abs() > path.rtt_ns / reader::OFF),
            writes: trace::steady_writes(direction, mss),
            window: trace::largest_window(direction),
            stand: reader::longest_stand(direction),
            unread_ns: reader::longest_unread(direction),
            least_rate: path.least_rate(direction),
        }
    }
}

/// This share of the busy time shows that something held the sender, in percent. Ours: half and twice as much change
/// nothing (`whatif::search`).
const SHOWS_PERCENT: i64 = 10;

/// A window that stays at its maximum for most of the time is no reader's. Ours, not measured.
const CAPPED_PERCENT: i64 = 50;

/// The receiver's program reads too slowly.
const READER: [State; 2] = [State::RwndReader, State::ZeroWindow];

/// Buffers that are tried, in sixteenths and eighths of the most that was in flight: a sender's counts headers
/// and keeps what is not acknowledged, but lets one large write pass; a receiver's offers about half.
const SNDBUFS: core::ops::Range<u64> = 1..64;
const RCVBUFS: [u64; 10] = [4, 5, 6, 7, 8, 9, 10, 12, 16, 24];

/// Rates that are tried, in eighths of the fastest delivery over a whole round.
const RATES: [u64; 10] = [8, 10, 12, 16, 24, 32, 48, 64, 96, 128];

/// Pieces that programs read or wrote, in bytes.
const PIECES: [u64; 10] = [1024, 2048, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 65_536];

/// The receiver's buffer in the scenario's language.
const RCVBUF: &str = "rcvbuf";

/// The time that a reader takes for what comes in a second, in percent.
const READERS: [u64; 6] = [100, 90, 80, 65, 50, 30];

/// What a program with a known pause reads at once, in percent of what the window's edge goes on by meanwhile: that
/// goes on by what the buffer grows, too. Ours: of three slow readers of `make whatif` it was 73 to 100.
const OF_A_PERIOD: core::ops::RangeInclusive<u64> = 50..=110;

/// Finer steps around a value that was kept, in thousandths.
const FINER: [u64; 12] = [900, 940, 965, 980, 990, 995, 1005, 1010, 1020, 1035, 1060, 1100];

/// A window that never grew beyond that is one of a set buffer: by default it begins there and grows (`tcp_rmem` is
/// 131072, and half of it is offered).
const USUAL_WINDOW: u64 = 65_536;

/// Round trips that a window which grows may stand. Ours: half and twice as much change nothing (`whatif::search`).
const ROUNDS: i64 = 4;

/// Segments by which what was read before a program stopped may differ from what was acknowledged then.
const AROUND: [i64; 7] = [0, 1, -1, 2, -2, 4, -4];

/// Values that exclude each other, for a fit.
pub(crate) type Group = fn(&Fit) -> Vec<Guess>;

/// What one cause explains: the groups that are tried one after another.
pub(crate) type Story = &'static [Group];

/// The causes that are tried, each alone; the simplest first.
pub(crate) const STORIES: [Story; 8] = [
    &[Fit::rates, Fit::waits],
    &[Fit::rates, Fit::waits, Fit::rcvbufs, Fit::finer_rcvbufs],
    &[Fit::rates, Fit::waits, Fit::sndbufs, Fit::finer_sndbufs],
    &[Fit::rates, Fit::waits, Fit::writes, Fit::finer_writes, Fit::finer_writes],
    &[
        Fit::rates,
        Fit::waits,
        Fit::reads,
        Fit::rates,
        Fit::rcvbufs,
        Fit::reads,
        Fit::finer_reads,
        Fit::finer_rcvbufs,
        Fit::finer_reads,
    ],
    &[Fit::rates, Fit::waits, Fit::stalls, Fit::rcvbufs, Fit::stalls, Fit::finer_rcvbufs],
    &[
        Fit::buckets,
        Fit::waits,
        Fit::finer_bursts,
        Fit::finer_queues,
        Fit::finer_bursts,
        Fit::finer_queues,
    ],
    &[Fit::egresses, Fit::waits, Fit::finer_bursts, Fit::finer_queues],
];

impl Fit {
    fn rates(&self) -> Vec<Guess> {
        let mut rates = vec![Guess::Rate(None)];
        rates.extend(self.hints.rates.iter().map(|rate| Guess::Rate(Some(*rate))));
        let is_known = self.hints.rates.iter().any(|rate| !self.is_of_reads(*rate));
        if !is_known && let Some((rate, _)) = self.proven {
            let guesses = RATES.map(|eighths| rate * eighths / 8);
            let may_be = guesses.into_iter().filter(|rate| *rate >= self.hints.least_rate);
            rates.extend(may_be.map(|rate| Guess::Rate(Some(rate))));
        }
        rates.extend(self.hints.queues.iter().map(|(rate, queue)| Guess::Queue(*rate, *queue)));
        rates
    }

    fn waits(&self) -> Vec<Guess> {
        let may_wait = self.closing.is_none() && self.manner.closing == Closing::AtOnce;
        if may_wait { vec![Guess::Waits] } else { Vec::new() }
    }

    fn buckets(&self) -> Vec<Guess> {
        self.hints.buckets.iter().map(|bucket| Guess::Bucket(*bucket)).collect()
    }

    fn egresses(&self) -> Vec<Guess> {
        let own = self.hints.buckets.iter().filter(|_| self.tap == self.sender.into());
        own.map(|bucket| Guess::Egress(*bucket)).collect()
    }

    /// The bucket with other values.
    fn finer_bucket(&self, other: impl Fn(Bucket, u64) -> Bucket) -> Vec<Guess> {
        let kept = self.path.bucket.into_iter();
        let finer = kept.flat_map(|kept| FINER.map(|part| other(kept, part)));
        finer
            .map(
                |bucket| {
                    if self.path.is_own { Guess::Egress(bucket) } else { Guess::Bucket(bucket) }
                },
            )
            .collect()
    }

    fn finer_bursts(&self) -> Vec<Guess> {
        self.finer_bucket(|kept, part| Bucket { burst: kept.burst * part / 1000, ..kept })
    }

    fn finer_queues(&self) -> Vec<Guess> {
        self.finer_bucket(|kept, part| Bucket { queue: kept.queue * part / 1000, ..kept })
    }

    fn sndbufs(&self) -> Vec<Guess> {
        if !self.is_held(&[State::Sndbuf]) {
            return Vec::new();
        }
        let most = self.seen.most_in_flight;
        SNDBUFS.map(|sixteenths| Guess::Sndbuf(most * sixteenths / 16)).collect()
    }

    fn finer_sndbufs(&self) -> Vec<Guess> {
        let kept = self.sndbuf.into_iter();
        kept.flat_map(|size| FINER.map(|part| Guess::Sndbuf(size * part / 1000))).collect()
    }

    fn finer_rcvbufs(&self) -> Vec<Guess> {
        let kept = self.rcvbuf.into_iter();
        kept.flat_map(|size| FINER.map(|part| Guess::Rcvbuf(size * part / 1000))).collect()
    }

    fn rcvbufs(&self) -> Vec<Guess> {
        if !self.is_held(&WINDOW) && self.hints.window > USUAL_WINDOW {
            return Vec::new();
        }
        let flight = RCVBUFS.map(|eighths| Guess::Rcvbuf(self.seen.most_in_flight * eighths / 8));
        let first = u64::from(self.first_windows[self.sender.peer().index()]);
        // Half of the buffer is offered first, in whole segments (`tcp_select_initial_window`).
        let first = (0..4).map(|quarter| Guess::Rcvbuf(first + quarter * self.mss / 4));
        // In full it is what the largest window shows, or more where the kernel keeps a part back.
        let largest = (0..6).map(|part| Guess::Rcvbuf(self.hints.window * (16 + part) / 16));
        first.chain(largest).chain(flight).collect()
    }

    fn reads(&self) -> Vec<Guess> {
        // A program that reads too slowly leaves its mark on windows, or on when they are answered.
        if self.holds(&[State::RwndCap], CAPPED_PERCENT) && !self.is_held(&READER) {
            return Vec::new();
        }
        if self.reads_in_time().next().is_some() {
            return self.timed_reads();
        }
        let Some(rate) = self.hints.reads.filter(|rate| *rate > 0) else {
            return Vec::new();
        };
        // What is read in pieces may be read faster than it comes.
        let of = |bytes| READERS.map(|part| Guess::Reads(bytes, bytes * part * 10_000_000 / rate));
        PIECES.into_iter().flat_map(of).collect()
    }

    /// Reads of each size, with the pause that the windows show.
    fn reads_in_time(&self) -> impl Iterator<Item = (u64, u64)> {
        let both = self.hints.reads.zip(self.hints.read_ns);
        both.into_iter().flat_map(|(rate, ns)| {
            let moved = u128::from(rate) * u128::from(ns.unsigned_abs()) / 1_000_000_000;
            let moved = u64::try_from(moved / 100).unwrap_or(u64::MAX >> 8).max(1);
            // Programs read by parts of 1 KiB.
            let mut sizes: Vec<u64> =
                OF_A_PERIOD.map(|part| (moved * part).next_multiple_of(1024)).collect();
            sizes.dedup();
            sizes.into_iter().map(move |bytes| (bytes, ns.unsigned_abs()))
        })
    }

    fn timed_reads(&self) -> Vec<Guess> {
        let is_link = self.path.rate.is_some_and(|rate| self.is_of_reads(rate));
        let guess = if is_link { Guess::ReadsOnly } else { Guess::Reads };
        self.reads_in_time().map(|(bytes, ns)| guess(bytes, ns)).collect()
    }

    /// What was taken for a link's rate may be what was read: acknowledgments of a full window come at that pace.
    fn is_of_reads(&self, rate: u64) -> bool {
        let reads = self.hints.reads.filter(|_| self.hints.read_ns.is_some());
        reads.is_some_and(|bytes| rate / 8 < 2 * bytes)
    }

    fn finer_reads(&self) -> Vec<Guess> {
        let kept = self.manner.reads.filter(|kept| kept.pause_ns > 0).into_iter();
        let is_timed = self.hints.read_ns.is_some();
        let other = |kept: Pieces, part: u64| {
            let (bytes, pause_ns) = (kept.bytes, kept.pause_ns);
            if is_timed {
                Guess::Reads(bytes * part / 1000, pause_ns)
            } else {
                Guess::Reads(bytes, pause_ns * part / 1000)
            }
        };
        kept.flat_map(|kept| FINER.map(|part| other(kept, part))).collect()
    }

    fn writes(&self) -> Vec<Guess> {
        self.hints
            .writes
            .map(|(bytes, pause_ns)| Guess::Writes(bytes, pause_ns))
            .into_iter()
            .collect()
    }

    fn finer_writes(&self) -> Vec<Guess> {
        let kept = self.manner.writes.into_iter();
        kept.flat_map(|kept| {
            FINER.map(|part| Guess::Writes(kept.bytes, kept.pause_ns * part / 1000))
        })
        .collect()
    }

    fn stalls(&self) -> Vec<Guess> {
        let Some((acked, ns)) = self.hints.stand else { return Vec::new() };
        if ns < ROUNDS * self.path.rtt_ns || ns < self.seen.ns / 20 {
            return Vec::new();
        }
        let after = AROUND.map(|segments| acked.saturating_add_signed(segments * self.mss as i64));
        after.map(|after| Guess::Stall(after, ns.unsigned_abs())).to_vec()
    }

    /// The same, with a guess.
    #[must_use]
    pub fn with(&self, guess: Guess) -> Self {
        let mut fit = self.clone();
        match guess {
            Guess::Rate(rate) => {
                fit.rate_is_guessed = rate.is_some_and(|rate| !self.hints.rates.contains(&rate));
                (fit.path.rate, fit.path.bucket) = (rate, None);
            }
            Guess::Queue(rate, queue) => {
                (fit.path.rate, fit.path.queue, fit.path.bucket) = (Some(rate), Some(queue), None);
                fit.forget_losses();
            }
            Guess::Bucket(bucket) | Guess::Egress(bucket) => {
                fit.path.bucket = Some(bucket);
                fit.path.is_own = matches!(guess, Guess::Egress(_));
                if fit.path.is_own {
                    (fit.path.rate, fit.path.queue) = (None, None);
                }
                fit.forget_losses();
            }
            Guess::Sndbuf(size) => {
                // As a setting of the host, which another may replace.
                let sysctl = &mut fit.hosts[self.sender.index()].sysctl;
                let three = format!("\"4096 {size} {size}\"");
                sysctl.insert("net.ipv4.tcp_wmem".to_owned(), three);
                fit.sndbuf = Some(size);
            }
            Guess::Rcvbuf(size) => {
                let socket = &mut fit.hosts[self.sender.peer().index()].socket;
                socket.insert(RCVBUF.to_owned(), format!("\"{}B\"", size.max(1)));
                fit.rcvbuf = Some(size);
            }
            Guess::Reads(bytes, pause_ns) => fit.manner.reads = Some(Pieces { bytes, pause_ns }),
            Guess::ReadsOnly(bytes, pause_ns) => {
                fit = self.with(Guess::Rate(None)).with(Guess::Reads(bytes, pause_ns));
            }
            Guess::Writes(bytes, pause_ns) => {
                fit.manner.writes = Some(Pieces { bytes, pause_ns });
                fit.write_as_one();
            }
            Guess::Waits => fit.manner.closing = Closing::Acknowledged,
            Guess::Stall(after, ns) => fit.manner.stall = Some((after, ns)),
        }
        fit
    }

    /// Whether the receiver's buffer was guessed and these set its `tcp_rmem`. A buffer of a program's own would keep that
    /// from mattering, but windows do not tell the two apart, and who asks takes it for the system's.
    pub fn gives_way(&self, changes: &[String]) -> bool {
        let host = self.sender.peer().name();
        let keys =
            || changes.iter().map(|change| change.split('=').next().unwrap_or_default().trim());
        self.rcvbuf.is_some()
            && keys().any(|key| key.strip_prefix(host) == Some(".sysctl.net.ipv4.tcp_rmem"))
            && !keys().any(|key| key.ends_with(".socket.rcvbuf"))
    }

    /// The same with a receiver's buffer that its kernel sizes.
    pub(crate) fn without_rcvbuf(&self) -> Self {
        let mut fit = self.clone();
        fit.hosts[self.sender.peer().index()].socket.remove(RCVBUF);
        fit
    }

    /// What the path dropped comes of its rules.
    fn forget_losses(&mut self) {
        self.recorded.lost[self.sender.index()].clear();
        self.loss = 0;
    }

    /// Neighbouring writes of the sender become one, and the pauses between them its manner.
    fn write_as_one(&mut self) {
        let steps = &mut self.steps[self.sender.index()];
        *steps = super::steps::joined(steps);
    }

    /// Whether these held the sender for long enough to show.
    pub(crate) fn is_held(&self, states: &[State]) -> bool {
        self.holds(states, SHOWS_PERCENT)
    }

    /// Whether these held the sender for more than such a part of the busy time.
    fn holds(&self, states: &[State], percent: i64) -> bool {
        let held: i64 = states.iter().map(|state| self.seen.time_in.get(*state).0).sum();
        held > self.seen.busy_ns() / 100 * percent
    }

    /// The receiver's program stopped for long, or read with pauses, and what is fitted does not.
    pub(crate) fn lacks_reader(&self) -> bool {
        let lasts = |ns: i64| {
            ns > ROUNDS * self.path.rtt_ns && ns > self.seen.busy_ns() / 100 * SHOWS_PERCENT
        };
        let stood = self.hints.stand.is_some_and(|(_, ns)| lasts(ns));
        let slow: i64 = READER.map(|state| self.seen.time_in.get(state).0).iter().sum();
        let reads_slowly = lasts(slow);
        (stood || reads_slowly) && self.reads_at_once()
    }

    /// What is fitted reads with pauses.
    pub(super) fn has_pauses(&self) -> bool {
        self.manner.reads.is_some_and(|reads| reads.pause_ns > 0)
    }

    /// The windows show that the receiver's program left something unread for long, and what is fitted reads at
    /// once.
    pub(crate) fn hides_reader(&self) -> bool {
        self.hints.unread_ns > ROUNDS * self.path.rtt_ns && self.reads_at_once()
    }

    /// The same with a bucket, or a queue, that drops a little more or less, where one drops: which packets it
    /// takes decides by chance over the rest.
    pub(crate) fn dropping_alike(&self) -> Vec<Self> {
        if !self.losses_follow_load || self.repeats_losses() {
            return Vec::new();
        }
        let part = |bytes: u64, percent: u64| bytes * percent / 100;
        if let Some(kept) = self.path.bucket {
            let other = |burst, queue, rate| {
                let (burst, rate) = (part(kept.burst, burst), kept.rate * rate / 100);
                let bucket = Bucket { rate, burst, queue };
                let own = self.path.is_own;
                self.with(if own { Guess::Egress(bucket) } else { Guess::Bucket(bucket) })
            };
            let bursts = ALIKE.map(|burst| other(burst, kept.queue, 100));
            let rates = [98, 99, 101, 102].map(|rate| other(100, kept.queue, rate));
            // Of a small queue nothing tells whether it is there.
            let none = (kept.queue < SMALL_QUEUE).then_some(0).into_iter();
            let queues = ALIKE.map(|queue| part(kept.queue, queue)).into_iter().chain(none);
            let queues = queues.filter(|queue| *queue != kept.queue);
            let queues = queues.map(|queue| other(100, queue, 100));
            return bursts.into_iter().chain(rates).chain(queues).collect();
        }
        let (Some(rate), Some(queue)) = (self.path.rate, self.path.queue) else {
            return Vec::new();
        };
        ALIKE.map(|size| self.with(Guess::Queue(rate, part(queue, size)))).to_vec()
    }

    /// A token bucket takes the place of the link.
    pub(crate) const fn has_bucket(&self) -> bool {
        self.path.bucket.is_some()
    }
}

/// Credits and queues that would drop nearly the same, in percent. Ours: in `make whatif EACH=2 SEED=39` the fitted
/// ones are this near to those that were set.
const ALIKE: [u64; 6] = [85, 90, 95, 105, 110, 115];

/// A queue of less may be none: three packets.
const SMALL_QUEUE: u64 = 3 * 1514;

/// The receiver's window is full.
const WINDOW: [State; 4] =
    [State::RwndCap, State::RwndAutotune, State::RwndReader, State::ZeroWindow];
