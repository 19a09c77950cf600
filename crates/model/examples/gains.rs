//! How often does the gain that arithmetic gives hold?
//!
//! ```text
//! gains [--seed N] [--each N] [--tell] [KIND]...
//! ```
//!
//! Draws pairs of runs of the model that differ in one knob, explains the first run's packets, and lays the range that
//! `gain` gives beside what the second run took. A line a kind: pairs, those inside the range, those inside it or within
//! 5 % of the duration, the median width of the range, and the median distance of the best guess, both in per cent of
//! the duration. `--tell` prints the pairs that lie outside, `--tell-all` all.

#![expect(clippy::print_stdout, reason = "it prints its table")]
#![expect(clippy::disallowed_methods, reason = "only draws scenarios, for this machine")]

use std::env;

use tcpwhy::gain::{Removed, family, gain};
use tcpwhy::report::{Connection, Gain};
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;
use tcpwhy_model::profile::{KernelProfile, Version};
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::world::{Keep, Kernels, Tap, World};

const SERVER: usize = 1;

/// A fixed sequence of random numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number between the two, small ones as often as large ones.
    fn log(&mut self, low: u64, high: u64) -> u64 {
        (low as f64 * (high as f64 / low as f64).powf(self.part())).round() as u64
    }

    fn one(&mut self, of: &[u64]) -> u64 {
        of[self.next() as usize % of.len()]
    }
}

/// Two scenarios that differ in a knob, and the cause that the knob removes.
struct Pair {
    now: String,
    then: String,
    removed: Removed,
    /// The second run holds the conversation twice; its second one counts.
    again: bool,
    /// Whose data it is.
    from: usize,
}

fn pair(now: String, then: String, removed: Removed) -> Pair {
    Pair { now, then, removed, again: false, from: SERVER }
}

fn path(dice: &mut Dice, rtts: (u64, u64), rates: (u64, u64)) -> String {
    let (rtt, rate) = (dice.log(rtts.0, rtts.1), dice.log(rates.0, rates.1));
    let queue = ["", "queue = \"1 bdp\"\n", "queue = \"200kB\"\n"][dice.next() as usize % 3];
    format!("[path]\nrtt = \"{rtt}ms\"\nrate = \"{rate}mbit\"\n{queue}")
}

fn usual(dice: &mut Dice) -> String {
    path(dice, (2, 120), (5, 300))
}

fn download(kib: u64) -> String {
    format!("[application]\ndownload = \"{kib}KiB\"\n")
}

fn initcwnd(dice: &mut Dice) -> Pair {
    let (path, app) = (usual(dice), download(dice.log(50, 3000)));
    let n = dice.one(&[20, 30, 40, 60]);
    let then = format!("[server.route]\ninitcwnd = {n}\n{path}{app}");
    pair(format!("{path}{app}"), then, Removed::SlowStart { first_flight: Some(n * 1448) })
}

fn reuse(dice: &mut Dice) -> Pair {
    let (path, app) = (usual(dice), download(dice.log(50, 2000)));
    let now = format!("{path}{app}");
    Pair {
        then: format!("{now}times = 2\n"),
        now,
        removed: Removed::Reuse,
        again: true,
        from: SERVER,
    }
}

fn link(dice: &mut Dice) -> Pair {
    let rtt = dice.log(2, 120);
    let (rate, times) = (dice.log(2, 100), dice.one(&[2, 2, 10]));
    let queue = ["", "queue = \"1 bdp\"\n", "queue = \"200kB\"\n"][dice.next() as usize % 3];
    let app = download(dice.log(100, 3000));
    let text =
        |rate: u64| format!("[path]\nrtt = \"{rtt}ms\"\nrate = \"{rate}mbit\"\n{queue}{app}");
    pair(text(rate), text(rate * times), Removed::Link { times: times as u32 })
}

fn rcvbuf(kb: u64) -> String {
    format!("[client.socket]\nrcvbuf = \"{kb}kB\"\n")
}

fn window(dice: &mut Dice) -> Pair {
    let (path, app) = (path(dice, (5, 120), (20, 300)), download(dice.log(200, 3000)));
    pair(
        format!("{}{path}{app}", rcvbuf(dice.log(16, 200))),
        format!("{path}{app}"),
        Removed::Window,
    )
}

/// A window that the link fills: nothing is gained.
fn window_behind_link(dice: &mut Dice) -> Pair {
    let (path, app) = (path(dice, (5, 60), (1, 10)), download(dice.log(200, 2000)));
    pair(
        format!("{}{path}{app}", rcvbuf(dice.log(60, 400))),
        format!("{path}{app}"),
        Removed::Window,
    )
}

fn sndbuf(dice: &mut Dice) -> Pair {
    let (path, app) = (path(dice, (5, 120), (20, 300)), download(dice.log(200, 3000)));
    let now = format!("[server.socket]\nsndbuf = \"{}kB\"\n{path}{app}", dice.log(8, 120));
    pair(now, format!("{path}{app}"), Removed::SendBuffer)
}

fn loss(dice: &mut Dice) -> Pair {
    let (rtt, rate, app) = (dice.log(5, 80), dice.log(10, 200), download(dice.log(300, 3000)));
    let text = format!("[path]\nrtt = \"{rtt}ms\"\nrate = \"{rate}mbit\"\n");
    let lost = dice.log(2, 30);
    let now = format!("{text}loss = \"{}.{}%\"\n{app}", lost / 10, lost % 10);
    pair(now, format!("{text}{app}"), Removed::Loss)
}

fn reading(dice: &mut Dice) -> (u64, u64) {
    let (kib, mbit) = (dice.log(4, 100), dice.log(2, 40));
    (kib, (kib * 8192 / mbit / 1000).max(1))
}

fn reader(dice: &mut Dice) -> Pair {
    let (path, app) = (path(dice, (3, 60), (30, 300)), download(dice.log(300, 3000)));
    let (kib, ms) = reading(dice);
    let now = format!("{path}{app}read = \"{kib}KiB\"\nread_pause = \"{ms}ms\"\n");
    pair(now, format!("{path}{app}"), Removed::Reader)
}

/// A larger buffer before a slow reader: nothing is gained, but that the last of the data waits at the receiver.
fn window_slow_reader(dice: &mut Dice) -> Pair {
    let rtt = dice.log(3, 40);
    let path = format!("[path]\nrtt = \"{rtt}ms\"\nrate = \"{}mbit\"\n", dice.log(50, 300));
    let (kib, mbit) = (dice.log(4, 32), dice.log(2, 10));
    let ms = (kib * 8192 / mbit / 1000).max(1);
    // What the program reads in a round trip and at once fits.
    let least = (mbit * rtt / 8 + kib).max(16) * 2;
    let app = download(dice.log(40, 80) * least);
    let reads = format!("read = \"{kib}KiB\"\nread_pause = \"{ms}ms\"\n");
    let (small, large) = (rcvbuf(least), rcvbuf(least + least / 2));
    pair(
        format!("{small}{path}{app}{reads}"),
        format!("{large}{path}{app}{reads}"),
        Removed::Window,
    )
}

fn writer(dice: &mut Dice) -> Pair {
    let (path, app) = (path(dice, (3, 60), (30, 300)), download(dice.log(300, 3000)));
    let (kib, ms) = reading(dice);
    let now = format!("{path}{app}write = \"{kib}KiB\"\npause = \"{ms}ms\"\n");
    pair(now, format!("{path}{app}"), Removed::Writer)
}

/// A larger window behind a slow writer gains little.
fn window_slow_writer(dice: &mut Dice) -> Pair {
    let (path, app) = (path(dice, (3, 60), (30, 300)), download(dice.log(1000, 3000)));
    let (kib, ms) = reading(dice);
    let writes = format!("write = \"{kib}KiB\"\npause = \"{ms}ms\"\n");
    let small = rcvbuf(dice.log(16, 150));
    pair(format!("{small}{path}{app}{writes}"), format!("{path}{app}{writes}"), Removed::Window)
}

fn think(dice: &mut Dice) -> Pair {
    let path = usual(dice);
    let app = format!("{}times = {}\n", download(dice.log(1, 200)), dice.log(1, 12));
    let now = format!("{path}{app}think = \"{}ms\"\n", dice.log(5, 400));
    pair(now, format!("{path}{app}"), Removed::Think)
}

fn idle_restart(dice: &mut Dice) -> Pair {
    let path = path(dice, (5, 100), (20, 300));
    let app = format!(
        "{}times = {}\nidle = \"{}ms\"\n",
        download(dice.log(50, 600)),
        dice.log(3, 10),
        dice.log(400, 2000)
    );
    let off = "[server.sysctl]\n\"net.ipv4.tcp_slow_start_after_idle\" = 0\n";
    pair(format!("{path}{app}"), format!("{off}{path}{app}"), Removed::IdleRestart)
}

fn nagle(dice: &mut Dice) -> Pair {
    let path = path(dice, (2, 60), (5, 200));
    let app = format!(
        "[application]\ndownload = \"{}KiB\"\nwrite = \"{}B\"\npause = \"{}ms\"\n",
        dice.log(10, 100),
        dice.log(200, 1200),
        dice.log(1, 20)
    );
    let nodelay = "[server.socket]\nnodelay = true\n";
    pair(format!("{path}{app}"), format!("{nodelay}{path}{app}"), Removed::Nagle)
}

/// Requests in two writes, the second held by Nagle's algorithm until a delayed ACK.
fn ping_pong(dice: &mut Dice) -> Pair {
    let path = path(dice, (2, 60), (5, 200));
    let (first, second, answer) = (dice.log(20, 1200), dice.log(20, 1200), dice.log(50, 20_000));
    let times = dice.log(3, 30);
    let app = format!(
        "[application]\nclient = [{{ repeat = {times}, steps = [\"write {first}B\", \"write {second}B\", \"read \
         {answer}B\"] }}]\nserver = [{{ repeat = {times}, steps = [\"read {}B\", \"write {answer}B\"] }}]\n",
        first + second
    );
    let nodelay = "[client.socket]\nnodelay = true\n";
    let now = format!("{path}{app}");
    Pair { from: 0, ..pair(now.clone(), format!("{nodelay}{now}"), Removed::Nagle) }
}

type Draw = fn(&mut Dice) -> Pair;

const KINDS: [(&str, Draw); 15] = [
    ("initcwnd", initcwnd),
    ("reuse", reuse),
    ("link", link),
    ("window", window),
    ("window-behind-link", window_behind_link),
    ("window-slow-reader", window_slow_reader),
    ("window-slow-writer", window_slow_writer),
    ("sndbuf", sndbuf),
    ("loss", loss),
    ("reader", reader),
    ("writer", writer),
    ("think", think),
    ("idle-restart", idle_restart),
    ("nagle", nagle),
    ("ping-pong", ping_pong),
];

fn run(text: &str, tap: Tap) -> Option<Connection> {
    let scenario = Scenario::read("gain", text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let kernels = Kernels::both(KernelProfile::of(Version::new(6, 12)));
    let keep = Keep { segments: true, only: Some(tap), ..Keep::default() };
    let (outcome, trace) = World::new(&scenario.variants[0], kernels, keep).expect("known").run();
    if !outcome.done {
        return None;
    }
    let mut session = Session::new(Config { detail: true, ..Config::default() });
    session.begin("model");
    session.push(&trace.pcapng(tap, false)).expect("a capture");
    session.end().expect("its end");
    session.finish().connections.into_iter().next()
}

/// The time that gains are of.
fn time(connection: &Connection) -> i64 {
    gain(connection, SERVER, Removed::Think).map_or(0, |gain| gain.now_ns)
}

/// What came of a pair, all in nanoseconds.
struct Told {
    gain: Gain,
    saved: i64,
    /// What held the sender of the first run.
    held: String,
}

impl Told {
    fn of(pair: &Pair, tap: Tap) -> Option<Self> {
        let (now, then) = (run(&pair.now, tap)?, run(&pair.then, tap)?);
        let gain = gain(&now, pair.from, pair.removed)?;
        let direction = now.directions[pair.from].as_deref()?;
        let seen: i64 = family(pair.removed).iter().map(|s| direction.time_in.get(*s).0).sum();
        // Without a finding the report tells no gain.
        let is_told = seen * 10 >= gain.now_ns || pair.removed == Removed::Think;
        if !is_told && gain.best_ns * 20 < gain.now_ns {
            return None;
        }
        let mut took = time(&then);
        if pair.again {
            took -= gain.now_ns;
        }
        let direction = now.directions[pair.from].as_deref()?;
        let held =
            direction.time_in.iter().map(|(state, time)| format!("{state} {}", time.0 / 1_000_000));
        let held = held.collect::<Vec<_>>().join(", ");
        Some(Self { gain, saved: gain.now_ns - took, held })
    }

    /// How far outside the range it lies, in per cent of the duration.
    fn outside(&self) -> f64 {
        let saved = self.saved.max(0);
        let off = (self.gain.low_ns - saved).max(saved - self.gain.high_ns).max(0);
        self.percent(off)
    }

    fn percent(&self, ns: i64) -> f64 {
        ns as f64 * 100.0 / self.gain.now_ns.max(1) as f64
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(0.0)
}

fn row(name: &str, told: &[Told]) {
    let count = |upto: f64| told.iter().filter(|each| each.outside() <= upto).count();
    let width = |t: &Told| t.percent(t.gain.high_ns - t.gain.low_ns);
    let off = |t: &Told| t.percent((t.gain.best_ns - t.saved).abs());
    println!(
        "{name:20} {:5} {:7} {:10} {:7.1} % {:7.1} %",
        told.len(),
        count(0.0),
        count(5.0),
        median(told.iter().map(width).collect()),
        median(told.iter().map(off).collect())
    );
}

fn main() {
    let (mut seed, mut each, mut tell, mut kinds) = (1, 8, f64::INFINITY, Vec::new());
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|w| w.parse().ok()).expect("a number");
        match &*word {
            "--seed" => seed = number(),
            "--each" => each = number(),
            "--tell" => tell = 0.0,
            "--tell-all" => tell = -1.0,
            _ => kinds.push(word),
        }
    }
    println!(
        "{:20} {:>5} {:>7} {:>10} {:>9} {:>9}",
        "", "pairs", "inside", "within 5%", "width", "off"
    );
    let mut all = Vec::new();
    for (at, (name, draw)) in KINDS.iter().enumerate() {
        if !kinds.is_empty() && !kinds.iter().any(|kind| kind == name) {
            continue;
        }
        let mut of_kind = Vec::new();
        for number in 0..each {
            let mut dice = Dice(seed << 32 | (at as u64) << 16 | number);
            let tap = if dice.next().is_multiple_of(3) { Tap::Client } else { Tap::Server };
            let pair = draw(&mut dice);
            let Some(told) = Told::of(&pair, tap) else { continue };
            if told.outside() > tell {
                let ms = |ns: i64| ns as f64 / 1e6;
                println!(
                    "{name} {tap:?}: now {:.1}, saved {:.1}, told {:.1} {:.1} {:.1}: {:.1} % out\n    {}\n    {}\n    {}",
                    ms(told.gain.now_ns),
                    ms(told.saved),
                    ms(told.gain.low_ns),
                    ms(told.gain.best_ns),
                    ms(told.gain.high_ns),
                    told.outside(),
                    told.held,
                    pair.now.replace('\n', "; "),
                    pair.then.replace('\n', "; ")
                );
            }
            of_kind.push(told);
        }
        row(name, &of_kind);
        all.extend(of_kind);
    }
    row("all", &all);
}
