//! Experiments of a known limit each: what holds the sender, and random values around it. *Near* ones
//! have the limit where another one begins.

use std::fmt::Write as _;

use tcpwhy_model::path::Chance;
use tcpwhy_model::profile::KernelProfile;
use truth::State;

/// One experiment.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) scenario: String,
    /// Of both hosts.
    pub(crate) kernel: String,
    /// What has to hold the sender for a twentieth of the time, any of these; a near one may miss it.
    pub(crate) limits: &'static [State],
    pub(crate) is_near: bool,
}

type Make = fn(&mut Dice, bool) -> String;

/// Name, what holds the sender, whether it has near ones, and how it is made.
const KINDS: [(&str, &[State], bool, Make); 14] = [
    ("slow start", &[State::CwndSlowStart], false, slow_start),
    ("avoidance", &[State::CwndAvoidance], false, avoidance),
    ("receive window", &[State::Rwnd], true, receive_window),
    ("slow reader", &[State::Rwnd, State::ZeroWindow], false, slow_reader),
    // What is left of the window when the stall begins may be less than a segment, or nothing.
    ("stalled reader", &[State::ZeroWindow, State::Rwnd], false, stalled_reader),
    ("send buffer", &[State::Sndbuf], true, send_buffer),
    ("slow writer", &[State::App, State::IdleAppThink], true, slow_writer),
    ("thinking server", &[State::IdleAppThink], false, thinking_server),
    ("Nagle", &[State::Nagle, State::App], false, nagle),
    ("losses", &[State::Recovery], false, losses),
    ("lost tail", &[State::TlpWait, State::RtoWait, State::Loss], false, lost_tail),
    ("narrow link", &[State::CwndAvoidance, State::CwndSlowStart], false, narrow_link),
    ("pacing", &[State::Pacing, State::Tsq], true, pacing),
    ("lost SYN", &[State::SynRetry], false, lost_syn),
];

/// All experiments of a seed.
pub(crate) fn cases(seed: u64) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (kind, limits, has_near, make)) in KINDS.into_iter().enumerate() {
        for is_near in [false, true] {
            if is_near && !has_near {
                continue;
            }
            let own = seed.wrapping_mul(1000) + 2 * number as u64 + u64::from(is_near);
            let mut dice = Dice { chance: Chance::new(own), mss: 1448 };
            let known = KernelProfile::KNOWN;
            let kernel = known[dice.chance.below(known.len() as u64) as usize].to_string();
            let ipv6 = dice.chance.below(5) == 0;
            dice.mss -= if ipv6 { 20 } else { 0 };
            let mut scenario = format!("ipv6 = {ipv6}\n");
            scenario += &make(&mut dice, is_near);
            let near = if is_near { ", near" } else { "" };
            let name = format!("{kind}{near}, seed {seed}");
            cases.push(Case { name, scenario, kernel, limits, is_near });
        }
    }
    cases
}

pub(crate) struct Dice {
    chance: Chance,
    /// Payload of a full segment.
    mss: u64,
}

impl Dice {
    /// Each doubling as likely as another, and even inside it.
    fn log(&mut self, low: u64, high: u64) -> u64 {
        let doublings = u64::from((high / low).ilog2()) + 1;
        let from = low << self.chance.below(doublings);
        (from + self.chance.below(from)).min(high)
    }

    fn even(&mut self, low: u64, high: u64) -> u64 {
        low + self.chance.below(high - low + 1)
    }

    /// `value`, more or less by up to a fifth.
    fn around(&mut self, value: u64) -> u64 {
        value * self.even(80, 120) / 100
    }
}

fn path(rtt_us: u64, rate_kbit: u64) -> String {
    format!("[path]\nrtt = \"{rtt_us}us\"\nrate = \"{rate_kbit}kbit\"\n")
}

const FAST_KBIT: u64 = 1_000_000;

fn slow_start(dice: &mut Dice, _: bool) -> String {
    let path = path(dice.log(10_000, 150_000), FAST_KBIT);
    format!("{path}[application]\ndownload = {}\n", dice.log(100_000, 1_000_000))
}

fn avoidance(dice: &mut Dice, _: bool) -> String {
    let path = path(dice.log(10_000, 80_000), FAST_KBIT);
    let controller = ["cubic", "reno"][dice.even(0, 1) as usize];
    // One early loss ends slow start.
    let (lost, bytes) = (dice.even(15, 60), dice.log(400_000, 1_500_000));
    format!(
        "{path}down.loss = \"exact {lost}\"\n[server]\nroute.congctl = \"{controller}\"\n[application]\n\
         download = {bytes}\n"
    )
}

fn receive_window(dice: &mut Dice, is_near: bool) -> String {
    let (rtt_us, rcvbuf) = (dice.log(5_000, 80_000), dice.log(16_000, 200_000));
    // The window is about the buffer as it was asked for; near: the path holds just that.
    let rate_kbit = if is_near { dice.around(rcvbuf * 8_000 / rtt_us) } else { FAST_KBIT };
    let path = path(rtt_us, rate_kbit);
    let bytes = rcvbuf * dice.even(15, 40);
    format!("{path}[client]\nsocket.rcvbuf = {rcvbuf}\n[application]\ndownload = {bytes}\n")
}

fn slow_reader(dice: &mut Dice, _: bool) -> String {
    let path = path(dice.log(2_000, 40_000), FAST_KBIT / 10);
    let (chunk, pause_us) = (dice.log(4_000, 60_000), dice.log(2_000, 20_000));
    let bytes = chunk * dice.even(40, 120) + 300_000;
    format!(
        "{path}[client]\nsocket.rcvbuf = {}\n[application]\ndownload = {bytes}\nread = {chunk}\n\
         read_pause = \"{pause_us}us\"\n",
        dice.log(30_000, 200_000)
    )
}

fn stalled_reader(dice: &mut Dice, _: bool) -> String {
    let path = path(dice.log(2_000, 60_000), FAST_KBIT);
    let (stall_ms, after) = (dice.log(300, 4_000), dice.log(20_000, 400_000));
    format!(
        "{path}[client]\nsocket.rcvbuf = {}\n[application]\ndownload = {}\nstall = \"{stall_ms}ms\"\n\
         stall_after = {after}\n",
        dice.log(20_000, 100_000),
        after + 500_000
    )
}

fn send_buffer(dice: &mut Dice, is_near: bool) -> String {
    let (rtt_us, sndbuf) = (dice.log(5_000, 80_000), dice.log(10_000, 100_000));
    let rate_kbit = if is_near { dice.around(sndbuf * 8_000 / rtt_us) } else { FAST_KBIT };
    let path = path(rtt_us, rate_kbit);
    let bytes = sndbuf * dice.even(20, 50);
    format!(
        "{path}[server]\nsocket.sndbuf = {sndbuf}\nsocket.nodelay = true\n[application]\n\
         download = {bytes}\n"
    )
}

fn slow_writer(dice: &mut Dice, is_near: bool) -> String {
    let rtt_us = dice.log(2_000, 60_000);
    let (write, pause_us) = (dice.log(1_000, 12_000), dice.log(3_000, 60_000));
    let pause_us = if is_near { dice.around(rtt_us) } else { pause_us };
    let (path, bytes) = (path(rtt_us, FAST_KBIT), write * dice.even(20, 60));
    format!(
        "{path}[server]\nsocket.nodelay = true\n[application]\nsend = {bytes}\nwrite = {write}\n\
         pause = \"{pause_us}us\"\n"
    )
}

fn thinking_server(dice: &mut Dice, _: bool) -> String {
    let path = path(dice.log(2_000, 60_000), FAST_KBIT);
    format!(
        "{path}[application]\nexchange = {}\nrequest = \"{}B\"\ntimes = {}\nthink = \"{}us\"\n",
        dice.log(200, 100_000),
        dice.log(20, 3_000),
        dice.even(5, 20),
        dice.log(5_000, 200_000)
    )
}

fn nagle(dice: &mut Dice, _: bool) -> String {
    let path = path(dice.log(2_000, 30_000), FAST_KBIT);
    let (times, head, rest) = (dice.even(5, 15), dice.even(50, 400), dice.even(50, 900));
    format!(
        "{path}[application]\nclient = [{{ repeat = {times}, steps = [\"write head 60\", \"read {}\"] }}]\n\
         server = [{{ repeat = {times}, steps = [\"read head\", \"write {head}\", \"write {rest}\"] }}]\n",
        head + rest
    )
}

fn losses(dice: &mut Dice, _: bool) -> String {
    let (rtt_us, rate_kbit) = (dice.log(5_000, 60_000), dice.log(20_000, 200_000));
    let mut lost: Vec<u64> = (0..dice.even(6, 12)).map(|_| dice.even(30, 900)).collect();
    lost.sort_unstable();
    lost.dedup();
    let lost: Vec<_> = lost.iter().map(u64::to_string).collect();
    let path = path(rtt_us, rate_kbit);
    format!(
        "{path}down.loss = \"exact {}\"\n[application]\ndownload = {}\n",
        lost.join(" "),
        dice.log(1_400_000, 2_000_000)
    )
}

fn lost_tail(dice: &mut Dice, _: bool) -> String {
    let path = path(dice.log(5_000, 80_000), FAST_KBIT);
    let segments = dice.even(4, 60);
    let bytes = segments * dice.mss - 300;
    // The head of 200 B goes alone or not: the last one or two segments, perhaps a probe too.
    let mut lost = format!("exact {segments} {}", segments + 1);
    if dice.even(0, 1) == 1 {
        let _ = write!(lost, " {}", segments + 2);
    }
    format!("{path}down.loss = \"{lost}\"\n[application]\ndownload = {bytes}\n")
}

fn narrow_link(dice: &mut Dice, _: bool) -> String {
    let (rtt_us, rate_kbit) = (dice.log(5_000, 80_000), dice.log(2_000, 40_000));
    let path = path(rtt_us, rate_kbit);
    let bdp = rate_kbit * rtt_us / 8_000;
    format!(
        "{path}queue = \"{}B\"\n[application]\ndownload = {}\n",
        (bdp * dice.even(1, 4)).max(30_000),
        rate_kbit * dice.even(80, 250)
    )
}

fn pacing(dice: &mut Dice, is_near: bool) -> String {
    let (rtt_us, rate_kbit) = (dice.log(5_000, 60_000), dice.log(4_000, 40_000));
    let link_kbit = if is_near { dice.around(rate_kbit) } else { FAST_KBIT };
    let path = path(rtt_us, link_kbit);
    format!(
        "{path}[server]\negress = \"fq\"\nsocket.max_pacing = \"{rate_kbit}kbit\"\n[application]\n\
         download = {}\n",
        rate_kbit * dice.even(80, 250)
    )
}

fn lost_syn(dice: &mut Dice, _: bool) -> String {
    let path = path(dice.log(5_000, 80_000), FAST_KBIT);
    format!(
        "{path}up.loss = \"100%\"\n[[path.changes]]\nat = \"{}ms\"\nup.loss = \"none\"\n[application]\n\
         download = {}\n",
        dice.even(100, 2_500),
        dice.log(20_000, 300_000)
    )
}
