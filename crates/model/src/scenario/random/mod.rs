//! Seeded experiments over everything a scenario can say: the set that `lab accuracy` runs.
//!
//! Each run is a scenario's text, so that a bad one can be kept, read and changed. Sizes follow the
//! rate, so that no run takes more than half a minute of its own clock. What is drawn for a run
//! depends on the set's seed and the run's number alone: any run can be repeated by itself.

use core::fmt::Write;

mod networks;

/// Which set.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Kinds {
    /// Paths of one link with losses, any options and applications.
    #[default]
    Plain,
    /// What real networks have besides: competing flows, cross traffic, jitter, reordering, thin and lossy ways of ACKs, rate
    /// steps, policers, data both ways, `fq_codel`.
    Networks,
}

/// What a run is about, where the set has kinds.
pub fn kind(kinds: Kinds, number: u32) -> Option<&'static str> {
    (kinds == Kinds::Networks).then(|| networks::name(number))
}

/// The scenario of a run.
pub fn scenario(kinds: Kinds, seed: u64, number: u32) -> String {
    let mut dice = Dice::new(seed, number);
    let head = |dice: &mut Dice| {
        format!(
            "# Run {number} of the set with seed {seed}.\nabout = \"{}\"\n\
             name = \"accuracy-{seed}-{number}\"\nrepeats = 1\nseed = {}\nipv6 = {}\n\n",
            kind(kinds, number).unwrap_or("a random experiment"),
            dice.below(1 << 31),
            dice.one_in(5),
        )
    };
    if kinds == Kinds::Networks {
        let mut text = head(&mut dice);
        networks::body(&mut dice, &mut text, number);
        return text;
    }
    let rtt_us = dice.between_log(1_000, 200_000);
    let rate_kbit = dice.between_log(2_000, 1_000_000);
    let mut text = head(&mut dice);
    path(&mut dice, &mut text, rtt_us, rate_kbit);
    hosts(&mut dice, &mut text, rate_kbit);
    application(&mut dice, &mut text, rtt_us, rate_kbit);
    text
}

fn path(dice: &mut Dice, text: &mut String, rtt_us: u64, rate_kbit: u64) {
    let _ = write!(text, "[path]\nrtt = \"{rtt_us}us\"\nrate = \"{rate_kbit}kbit\"\n");
    // A queue shorter than a burst of ten segments would hide everything else.
    let bdp = rate_kbit * rtt_us / 8_000;
    let queue = match dice.below(4) {
        0 => "endless".to_owned(),
        quarter => format!("{}B", (bdp * [1, 4, 16][quarter as usize - 1] / 4).max(15_140)),
    };
    let _ = writeln!(text, "queue = \"{queue}\"");
    let loss = match dice.below(10) {
        0..=4 => None,
        5 | 6 => Some(format!("{}ppm", dice.between_log(100, 20_000))),
        7 => Some(format!("burst {}ppm 30%", dice.between_log(50, 3_000))),
        _ => {
            let first = dice.between_log(1, 300);
            Some(format!("exact {first} {}", first + 1 + dice.below(20)))
        }
    };
    let way = if dice.one_in(6) { "up" } else { "down" };
    if let Some(loss) = loss {
        let _ = writeln!(text, "{way}.loss = \"{loss}\"");
    }
    if dice.one_in(12) {
        let _ = writeln!(text, "down.reorder = \"1% by {}us\"", (rtt_us / 8).max(200));
    }
    if dice.one_in(20) {
        let _ = writeln!(text, "down.duplicate = \"0.5%\"");
    }
    text.push('\n');
}

fn hosts(dice: &mut Dice, text: &mut String, rate_kbit: u64) {
    let controller = ["cubic", "cubic", "cubic", "reno", "bbr"][dice.below(5) as usize];
    for (host, sends) in [("server", true), ("client", false)] {
        let _ = write!(text, "[{host}]\nroute.congctl = \"{controller}\"\n");
        if dice.one_in(8) {
            let _ = writeln!(text, "tap_delay = \"{}us\"", dice.between_log(200, 5_000));
        }
        if dice.one_in(3) {
            let _ = writeln!(text, "offload = true");
        }
        if sends && dice.one_in(6) {
            let _ = writeln!(text, "route.initcwnd = {}", dice.between_log(3, 100));
        }
        if sends && dice.one_in(8) {
            let rate = (rate_kbit / 2).max(1_000);
            let queue = (rate * 1_000 / 8 / 10).max(30_000);
            let _ = writeln!(
                text,
                "egress = {{ rate = \"{rate}kbit\", burst = \"6kB\", queue = \"{queue}B\" }}"
            );
        } else if sends && dice.one_in(10) {
            let _ = writeln!(text, "egress = \"fq\"");
        }
        for name in ["tcp_timestamps", "tcp_sack", "tcp_window_scaling"] {
            if dice.one_in(20) {
                let _ = writeln!(text, "sysctl.net.ipv4.{name} = 0");
            }
        }
        if sends && dice.one_in(6) {
            let _ = writeln!(text, "socket.sndbuf = \"{}B\"", dice.between_log(8_192, 262_144));
            let _ = writeln!(text, "socket.nodelay = true");
        }
        if !sends && dice.one_in(6) {
            let _ = writeln!(text, "socket.rcvbuf = \"{}B\"", dice.between_log(8_192, 262_144));
        }
        text.push('\n');
    }
}

fn application(dice: &mut Dice, text: &mut String, rtt_us: u64, rate_kbit: u64) {
    // What passes in five seconds at the full rate, or in 100 rounds of ten segments, if that is less.
    let most = (rate_kbit * 1_000 / 8 * 5).min(30_000_000).min(2_000_000_000_000 / rtt_us.max(1));
    let bytes = dice.between_log(10_000, most.max(20_000));
    text.push_str("[application]\n");
    let _ = match dice.below(10) {
        0..=3 => writeln!(text, "download = {bytes}"),
        4 => writeln!(text, "post = {bytes}"),
        5 => writeln!(
            text,
            "download = {}\ntimes = {}\nidle = \"{}ms\"",
            bytes / 4 + 1,
            2 + dice.below(3),
            dice.between_log(10, 3_000)
        ),
        6 => writeln!(
            text,
            "exchange = {}\nrequest = \"{}B\"\ntimes = {}\nthink = \"{}us\"",
            dice.between_log(100, 100_000),
            dice.between_log(20, 5_000),
            5 + dice.below(20),
            dice.between_log(100, 100_000)
        ),
        7 => {
            let write = dice.between_log(500, 100_000);
            let pause_us = dice.between_log(1_000, 100_000);
            let writes = 5 + dice.below(60);
            writeln!(text, "send = {}\nwrite = {write}\npause = \"{pause_us}us\"", write * writes)
        }
        8 => {
            let pause_us = dice.between_log(1_000, 20_000);
            let bytes = bytes.min(16_384 * (10_000_000 / pause_us));
            writeln!(text, "download = {bytes}\nread = 16384\nread_pause = \"{pause_us}us\"")
        }
        _ => writeln!(
            text,
            "download = {}\nstall = \"{}ms\"\nstall_after = {}",
            bytes + 100_000,
            dice.between_log(200, 4_000),
            dice.below(bytes)
        ),
    };
}

/// Random numbers by `SplitMix64` (Steele, Lea and Flood, 2014): the same everywhere.
struct Dice(u64);

impl Dice {
    fn new(seed: u64, number: u32) -> Self {
        let mut dice = Self(seed ^ (u64::from(number) << 32));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `end`, without it.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// From `low` to `high`, both with them.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    /// As likely between 1 and 2 as between 10 and 20: a power of two, and then evenly inside it.
    fn between_log(&mut self, low: u64, high: u64) -> u64 {
        let doublings = u64::from((high / low.max(1)).max(1).ilog2()) + 1;
        let from = low << self.below(doublings);
        (from + self.below(from)).clamp(low, high)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn every_run_of_the_set_is_a_scenario_of_its_own() {
        let mut texts = BTreeSet::new();
        let kinds = (0..1000).map(|number| match number {
            0..500 => (Kinds::Plain, number),
            _ => (Kinds::Networks, number - 500),
        });
        for (kinds, number) in kinds {
            let text = scenario(kinds, 1, number);
            let read = Scenario::read("x", &text, &[]);
            assert!(read.is_ok(), "{text}\n{read:?}");
            assert_eq!(text, scenario(kinds, 1, number), "the same again");
            assert!(texts.insert(text), "run {number} repeats another");
        }
    }
}
