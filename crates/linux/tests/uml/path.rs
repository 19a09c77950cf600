//! The path does what the scenario says, by the captures at its taps: counts and delays.
//!
//! Chances follow the seed, so that what is within a bound here is so on every boot. Bounds are three
//! to five standard deviations of what was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tcpwhy_linux::lab::backend::Backend as _;
use tcpwhy_linux::lab::uml::Uml;
use tcpwhy_model::scenario::plan::{Egress, TokenBucket};

use crate::packets::Packet;
use crate::run::{MS, Run, download, scenario, uml};

const US: u64 = 1_000;

/// Observation points read the clock, which moves it; a burst of packets reads it some dozen times.
pub(crate) const LOOKS: u64 = 30 * US;

/// Packets of the server in the middle, with the delays behind it; but SYN-ACKs, whose IP ID is always 0,
/// so that one that is retransmitted has the name of the first.
pub(crate) fn delays(run: &Run) -> Vec<Vec<u64>> {
    let mut sent = run.sent("middle");
    sent.retain(|p| u64::from(p.flags) & SYN == 0);
    let met = run.met(sent, "client").into_iter();
    met.map(|(p, came)| came.into_iter().map(|at| at - p.at).collect()).collect()
}

/// How often a packet has a lower sequence number than one before it.
pub(crate) fn overtaken(data: &[Packet]) -> usize {
    data.windows(2).filter(|p| p[1].seq.wrapping_sub(p[0].seq).cast_signed() < 0).count()
}

/// Mean length of the bursts in which packets did not come, in tenths of a packet.
pub(crate) fn burst_tenths(delays: &[Vec<u64>]) -> usize {
    let lost = delays.iter().filter(|d| d.is_empty()).count();
    lost * 10 / delays.windows(2).filter(|p| !p[0].is_empty() && p[1].is_empty()).count()
}

/// Asserts that `count` of `all` is `expected`, in parts of a thousand, give or take `within`.
pub(crate) fn assert_share(count: usize, all: usize, expected: usize, within: usize) {
    let share = count * 1000 / all;
    assert!(share.abs_diff(expected) <= within, "{count} of {all}: {share} in a thousand");
}

#[test]
fn jitter_spreads_delays_evenly_around_the_distance() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrtt = '40ms'\nrate = '50mbit'\ndown.jitter = '4ms'";
    let run = Run::of(&uml, &scenario(lines, "download = '4MB'"));
    let delays: Vec<u64> = delays(&run).into_iter().map(|d| d[0]).collect();
    for (from, to) in [(16, 18), (18, 20), (20, 22), (22, 24)] {
        let within = |d: &&u64| (from * MS..to * MS).contains(d);
        assert_share(delays.iter().filter(within).count(), delays.len(), 250, 30);
    }
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*least >= 16 * MS && *most <= 24 * MS + LOOKS, "{least} to {most} ns");
    assert!(overtaken(&run.data("client")) > overtaken(&run.data("middle")) + 100);
}

#[test]
fn the_way_back_has_its_own_delay_and_jitter() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrate = '50mbit'\ndown.delay = '3ms'\nup.delay = '11ms'\nup.jitter = '1ms'";
    let run = Run::of(&uml, &scenario(lines, "download = '1MB'"));
    assert!(delays(&run).iter().all(|d| (3 * MS..3 * MS + LOOKS).contains(&d[0])));
    let acks: Vec<_> = run.packets("middle").into_iter().filter(|p| p.source_port != 80).collect();
    let met = run.met(acks, "server").into_iter();
    let delays: Vec<u64> = met.map(|(ack, came)| came[0] - ack.at).collect();
    assert!(delays.iter().all(|d| (10 * MS..12 * MS + LOOKS).contains(d)));
    assert_share(delays.iter().filter(|d| **d > 11 * MS).count(), delays.len(), 500, 80);
}

#[test]
fn bursts_of_losses_are_as_long_and_as_frequent_as_asked() {
    let Some(uml) = uml(None) else { return };
    // In the bad state for 1 / (1 + 30) of the packets, 3.3 of them each time.
    for (bad, lost_per_mille, within) in [("", 32, 12), (" 50%", 16, 7)] {
        let lines =
            format!("[path]\nrtt = '2ms'\nrate = '100mbit'\ndown.loss = 'burst 1% 30%{bad}'");
        let run = Run::of(&uml, &scenario(&lines, "download = '16MB'"));
        let delays = delays(&run);
        let lost = delays.iter().filter(|d| d.is_empty()).count();
        assert_share(lost, delays.len(), lost_per_mille, within);
        let tenths = burst_tenths(&delays);
        // Lost by half, a burst has holes, and what is left of it is 1 / (1 - 0.7 * 0.5) long.
        let (expected, within) = if bad.is_empty() { (33, 8) } else { (15, 3) };
        assert!(tenths.abs_diff(expected) <= within, "bursts of {tenths} tenths of a packet");
    }
}

/// Numbers of the packets with data that arrived in the middle and not at the client.
fn lost(run: &Run) -> Vec<usize> {
    let met = run.met(run.data("middle"), "client");
    (1..).zip(met).filter(|(_, (_, came))| came.is_empty()).map(|(k, _)| k).collect()
}

#[test]
fn just_the_listed_packets_are_lost() {
    let Some(uml) = uml(None) else { return };
    for ipv6 in ["false", "true"] {
        let lines = format!("ipv6 = {ipv6}\n[path]\ndown.loss = 'exact 3 20'");
        let run = Run::of(&uml, &scenario(&lines, "download = '512KiB'"));
        assert_eq!(lost(&run), [3, 20], "IPv6: {ipv6}");
    }
}

#[test]
fn a_listed_retransmission_is_lost_again() {
    let Some(uml) = uml(None) else { return };
    let once = Run::of(&uml, &scenario("[path]\ndown.loss = 'exact 30'", "download = '512KiB'"));
    let data = once.data("middle");
    let again = data.iter().rposition(|p| p.seq == data[29].seq).unwrap() + 1;
    assert!(again > 30, "it is retransmitted");
    let lines = format!("[path]\ndown.loss = 'exact 30 {again}'");
    let twice = Run::of(&uml, &scenario(&lines, "download = '512KiB'"));
    assert_eq!(lost(&twice), [30, again]);
    assert_eq!(
        twice.data("middle").iter().filter(|p| p.seq == twice.data("middle")[29].seq).count(),
        3
    );
}

#[test]
fn the_way_up_loses_its_own_packets() {
    let Some(uml) = uml(None) else { return };
    let run = Run::of(&uml, &scenario("[path]\nup.loss = 'exact 9'", "post = '200KiB'"));
    let sent = run.packets("middle").into_iter().filter(|p| p.source_port != 80 && p.payload > 0);
    let met = run.met(sent.collect(), "server");
    let lost: Vec<_> = (1..).zip(met).filter(|(_, m)| m.1.is_empty()).map(|(k, _)| k).collect();
    assert_eq!(lost, [9]);
    assert_eq!(run.counted("client", "Tcp", "RetransSegs"), 1);
}

#[test]
fn random_losses_follow_the_seed() {
    let Some(uml) = uml(None) else { return };
    let lossy = |seed: u64| {
        let lines = format!("seed = {seed}\n[path]\nrtt = '6ms'\ndown.loss = '2%'");
        // Longer, 6.1 reads its clock once more or less now and then, which merges other ACKs.
        Run::of(&uml, &scenario(&lines, "download = '1MB'"))
    };
    let (first, again, other) = (lossy(5), lossy(5), lossy(6));
    assert!(first.bytes("server.pcapng") == again.bytes("server.pcapng"));
    assert_share(lost(&first).len(), first.data("middle").len(), 20, 10);
    assert_ne!(lost(&first), lost(&other));
}

#[test]
fn a_share_is_held_back_by_just_so_much() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrtt = '20ms'\nrate = '50mbit'\ndown.reorder = '5% by 4ms'";
    let run = Run::of(&uml, &scenario(lines, "download = '4MB'"));
    let delays = delays(&run);
    let by = |more: u64| delays.iter().filter(|d| (more..more + LOOKS).contains(&d[0])).count();
    assert_eq!(by(10 * MS) + by(14 * MS), delays.len(), "nothing between, nothing lost");
    assert_share(by(14 * MS), delays.len(), 50, 15);
    assert_eq!(overtaken(&run.data("middle")), overtaken(&run.data("server")));
    assert!(overtaken(&run.data("client")) > 50);
}

#[test]
fn a_share_comes_twice() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrtt = '20ms'\nrate = '50mbit'\ndown.duplicate = '2%'";
    let run = Run::of(&uml, &scenario(lines, "download = '4MB'"));
    let delays = delays(&run);
    let twice = delays.iter().filter(|d| d.len() == 2).count();
    assert!(delays.iter().all(|d| matches!(d.len(), 1 | 2)), "none is lost, none comes thrice");
    assert_share(twice, delays.len(), 20, 8);
    assert!(delays.iter().flatten().all(|d| (10 * MS..10 * MS + LOOKS).contains(d)));
}

#[test]
fn a_flipped_bit_is_one_bit_of_the_data_and_the_receiver_drops_it() {
    let Some(uml) = uml(None) else { return };
    for ipv6 in ["false", "true"] {
        let lines =
            format!("ipv6 = {ipv6}\n[path]\ndown.corrupt = '2%'\n[records]\nsnap = '2000B'");
        let run = Run::of(&uml, &scenario(&lines, "download = '2MB'"));
        let (sent, came) = (run.data("middle"), run.data("client"));
        assert_eq!(sent.len(), came.len(), "all arrive at the client's tap");
        let flipped = |(a, b): (&Packet, &Packet)| -> u32 {
            assert_eq!((a.seq, a.data.len()), (b.seq, b.data.len()));
            a.data.iter().zip(&b.data).map(|(a, b)| (a ^ b).count_ones()).sum()
        };
        let flips: Vec<u32> = sent.iter().zip(&came).map(flipped).collect();
        assert!(flips.iter().all(|bits| *bits <= 1), "one bit at most");
        let damaged = flips.iter().filter(|bits| **bits == 1).count();
        assert_share(damaged, flips.len(), 20, 12);
        assert_eq!(run.counted("client", "Tcp", "InCsumErrors"), damaged as i64);
        assert!(run.counted("server", "Tcp", "RetransSegs") >= damaged as i64);
    }
}

/// Asserts that full packets that follow each other at a tap, while `during` holds of their time since
/// `begin`, come at this rate: none sooner, half of them just then.
pub(crate) fn assert_rate(data: &[Packet], begin: u64, during: Range<u64>, rate: u64) {
    let frame = 1514 * 8 * 1_000_000_000 / rate;
    let full = data.iter().map(|p| p.payload).max().unwrap();
    let pairs = data.windows(2).filter(|p| p[0].payload == full && p[1].payload == full);
    let mut apart: Vec<u64> =
        pairs.filter(|p| during.contains(&(p[1].at - begin))).map(|p| p[1].at - p[0].at).collect();
    apart.sort_unstable();
    assert!(apart[0] + LOOKS >= frame, "{} ns apart at {rate} bit/s", apart[0]);
    let median = apart[apart.len() / 2];
    assert!(median.abs_diff(frame) < frame / 100, "{median} ns apart at {rate} bit/s");
}

#[test]
fn a_link_takes_its_time_for_each_packet_and_its_queue_overflows() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrtt = '6ms'\nrate = '10mbit'\nqueue = '20 packets'";
    let run = Run::of(&uml, &scenario(lines, "download = '1MB'"));
    let came = run.data("middle");
    assert_rate(&came, came[0].at, 0..u64::MAX, 10_000_000);
    // Before the link nothing happens: what was sent and did not come found no room, and the queue
    // was full then. The packet that is being sent waits no more.
    let met = run.met(run.data("server"), "middle");
    assert!(met.iter().any(|(_, came)| came.is_empty()), "something was dropped");
    let mut waiting: Vec<u64> = vec![];
    for (packet, came) in met {
        waiting.retain(|left| *left > packet.at + LOOKS);
        match came[..] {
            [] => assert!((20..=22).contains(&waiting.len()), "{} wait", waiting.len()),
            [at] => waiting.push(at),
            _ => panic!("{packet:?} came {came:?}"),
        }
    }
}

#[test]
fn a_rate_changes_at_its_instant_and_loses_nothing() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrtt = '20ms'\nrate = '20mbit'\n\
        [[path.changes]]\nat = '400ms'\nrate = '2mbit'\n[[path.changes]]\nat = '1200ms'\nrate = '20mbit'";
    let run = Run::of(&uml, &scenario(lines, "download = '3MB'"));
    let begin = run.packets("client")[0].at;
    for (from, to, rate) in [(100, 400, 20), (420, 1200, 2), (1220, 1600, 20)] {
        assert_rate(&run.data("middle"), begin, from * MS..to * MS, rate * 1_000_000);
    }
    assert!(run.met(run.data("server"), "client").iter().all(|(_, came)| came.len() == 1));
}

#[test]
fn an_outage_begins_and_ends_at_its_instants() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrtt = '20ms'\nrate = '20mbit'\ndown.loss = 'burst 0.1% 50%'\n\
        [[path.changes]]\nat = '200ms'\nloss = '100%'\n[[path.changes]]\nat = '500ms'\nloss = 'none'";
    let run = Run::of(&uml, &scenario(lines, "download = '2MB'"));
    let begin = run.packets("client")[0].at;
    for (packet, came) in run.met(run.sent("middle"), "client") {
        let at = packet.at - begin;
        if (200 * MS + LOOKS..500 * MS - LOOKS).contains(&at) {
            assert!(came.is_empty(), "{at}");
        }
        if at > 500 * MS + LOOKS {
            assert_eq!(came.len(), 1, "{at}");
        }
    }
}

/// A token bucket of our own.
pub(crate) struct Credit {
    rate: i128,
    full: i128,
    /// In bits times a billion, so that nothing is rounded.
    left: i128,
    last: u64,
}

impl Credit {
    pub(crate) fn full(rate: u64, bytes: u64, at: u64) -> Self {
        let full = i128::from(bytes) * BITS;
        Self { rate: rate.into(), full, left: full, last: at }
    }

    pub(crate) fn until(&mut self, at: u64) {
        let gained = i128::from(at.saturating_sub(self.last)) * self.rate;
        self.left = self.full.min(self.left + gained);
        self.last = at;
    }

    pub(crate) fn spend(&mut self, bytes: u64) {
        self.left -= i128::from(bytes) * BITS;
    }

    /// Bytes below nothing.
    pub(crate) fn owed(&self) -> i128 {
        (-self.left / BITS).max(0)
    }
}

const BITS: i128 = 8 * 1_000_000_000;

/// How many packets (time, bytes, passed) a token bucket of our own would have judged otherwise. It
/// begins full, as the kernel's does.
fn misjudged(packets: &[(u64, u64, bool)], rate: u64, burst: u64) -> usize {
    let mut credit = Credit::full(rate, burst, packets[0].0);
    let mut wrong = 0;
    for &(at, bytes, passed) in packets {
        credit.until(at);
        wrong += usize::from((credit.left >= i128::from(bytes) * BITS) != passed);
        // By what happened, so that one judged otherwise does not spoil the rest.
        if passed {
            credit.spend(bytes);
        }
    }
    wrong
}

#[test]
fn a_policer_drops_just_what_finds_no_credit() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrtt = '20ms'\n[path.down]\nbucket = { rate = '20mbit', burst = '30kB' }";
    let run = Run::of(&uml, &scenario(lines, "download = '2MB'"));
    let met = run.met(run.data("server"), "middle");
    let dropped = met.iter().filter(|(_, came)| came.is_empty()).count();
    assert!(dropped > 20, "{dropped}");
    let judged: Vec<_> =
        met.iter().map(|(p, came)| (p.at, p.payload + 66, !came.is_empty())).collect();
    assert!(misjudged(&judged, 20_000_000, 30_000) <= judged.len() / 100);
    // It delays nothing.
    assert!(met.iter().all(|(p, came)| came.iter().all(|at| at - p.at < LOOKS)));
}

/// What the server's TCP handed down (time, bytes on layer 2, whether it came to its tap): super-segments
/// are cut on the way there, and pass or are dropped whole.
fn handed_down(run: &Run) -> Vec<(u64, u64, bool)> {
    let came: BTreeSet<(u32, u64)> = run.data("server").iter().map(|p| (p.seq, p.at)).collect();
    // From the last to the first: what is handed down again was refused before.
    let mut again: BTreeMap<u32, u64> = BTreeMap::new();
    let segments = run.events("tcp_segment").into_iter().rev().filter(|s| s["sport"] == 80);
    let mut handed = vec![];
    for segment in segments {
        let number = |name: &str| segment[name].as_u64().unwrap();
        let (at, seq, flags) = (number("t"), number("seq") as u32, number("flags"));
        let data = (number("end_seq") as u32).wrapping_sub(seq) - (flags & FIN) as u32;
        if data > 0 && flags & SYN == 0 {
            let until = again.insert(seq, at).unwrap_or(u64::MAX);
            let passed = came.range((seq, at)..(seq, until)).next().is_some();
            handed.push((at, u64::from(data) + number("segments") * 66, passed));
        }
    }
    handed.reverse();
    handed
}

const FIN: u64 = 1;
const SYN: u64 = 2;

#[test]
fn a_bucket_with_a_queue_at_the_sender_shapes_before_its_tap() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrtt = '20ms'\n[server]\n\
        egress = { rate = '20mbit', burst = '30kB', queue = '90kB' }";
    let run = Run::of(&uml, &scenario(lines, "download = '2MB'"));
    let data = run.data("server");
    let mut credit = Credit::full(20_000_000, 30_000, data[0].at);
    for packet in &data {
        credit.until(packet.at);
        credit.spend(packet.payload + 66);
        assert!(credit.owed() <= 1, "{} bytes owed at {}", credit.owed(), packet.at - data[0].at);
    }
    // Busy, it gives its rate to the bit; super-segments pass it whole.
    let busy = &data[data.len() / 2..];
    let bits: u64 = busy[1..].iter().map(|p| (p.payload + 66) * 8).sum();
    let rate = bits * 1000 / (busy[busy.len() - 1].at - busy[0].at);
    assert!((19..=20).contains(&rate), "{rate} Mbit/s");
    let waited = run.events("qdisc_backlog").into_iter().filter(|b| b["dev"] == "server0");
    let most = waited.map(|b| b["bytes"].as_u64().unwrap()).max();
    assert!((20_000..=90_000).contains(&most.unwrap()), "{most:?} bytes wait at most");
    assert_eq!(run.data("middle").len(), data.len(), "the path loses nothing");
}

#[test]
fn a_policer_at_the_sender_drops_before_its_tap() {
    let Some(uml) = uml(None) else { return };
    let lines = "[path]\nrtt = '20ms'\n[server]\negress = { rate = '20mbit', burst = '30kB' }";
    let run = Run::of(&uml, &scenario(lines, "download = '2MB'"));
    let handed = handed_down(&run);
    let refused = handed.iter().filter(|(.., passed)| !passed).count();
    let wrong = misjudged(&handed, 20_000_000, 30_000);
    assert!(refused > 3 && wrong == 0, "{refused} refused, {wrong} otherwise than ours");
    assert_eq!(run.data("middle").len(), run.data("server").len(), "the path loses nothing");
}

#[test]
fn what_a_simulated_path_cannot_do_is_said_before_anything_starts() {
    for (lines, reason) in [
        ("[path]\nrtt = '5s'", "netem holds a packet back for 2 s at most"),
        ("[path]\ndown.reorder = '1% by 3s'", "netem holds a packet back for 2 s at most"),
        (
            "[path]\nrate = '1mbit'\nqueue = '9kB'\n[[path.changes]]\nat = '1s'\nqueue = '9 packets'",
            "a queue that changes its unit would lose what waits in it",
        ),
    ] {
        let refused = Uml::new(None).check(&scenario(lines, "download = '1MB'"));
        let text = refused.expect_err(lines).to_string();
        assert!(text.contains(reason) && text.contains("--backend tun"), "{text}");
    }
}

#[test]
fn hosts_with_cards_queues_and_distances() {
    let Some(uml) = uml(None) else { return };
    let mut offload = download();
    offload.server.offload = true;
    let run = Run::of(&uml, &offload);
    assert!(run.data("server").iter().any(|p| p.payload > 1448), "super-segments at the tap");
    assert!(run.data("middle").iter().all(|p| p.payload <= 1448), "and none behind the card");

    let mut far = download();
    far.server.stack_to_tap_ns = 2 * MS;
    let run = Run::of(&uml, &far);
    let seen = run.packets("server");
    let request = seen.iter().find(|p| p.source_port != 80 && p.payload > 0).unwrap();
    let first = run.data("server").first().cloned().unwrap();
    assert!((first.at - request.at).abs_diff(4 * MS) < 50_000, "twice the distance");

    for egress in [
        Egress::Fq,
        Egress::FqCodel,
        Egress::TokenBucket(TokenBucket { rate: 20_000_000, burst: 20_000, queue: 200_000 }),
        Egress::TokenBucket(TokenBucket { rate: 20_000_000, burst: 100_000, queue: 0 }),
    ] {
        let shaped = matches!(egress, Egress::TokenBucket(_));
        let mut plan = download();
        plan.server.egress = Some(egress);
        let run = Run::of(&uml, &plan);
        assert_eq!(run.lasted_ns() > 150 * MS, shaped, "{} ns", run.lasted_ns());
    }
}
