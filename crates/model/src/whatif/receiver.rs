//! Whose windows these are: the kernel, the driver and the reader of the data's receiver.
//!
//! First a usual reader with each driver: if its rules alone repeat the capture, all is said. Else the windows
//! are looked at. They show much: what a packet takes of the buffer, when the kernel knew of a round trip, how
//! much was read before the buffer grew. Which mixture it was is found by trying: the model's receiver gets the
//! data, and its windows are compared with those seen where as many bytes had been acknowledged.

use super::near::{GENERATIONS, USUAL, distance, nearer_replay};
use super::work::Work;
use super::{Replay, joined, plan};
use crate::fit::Fit;
use crate::profile::{KernelProfile, Memory, ReceiveCharge, Version};
use crate::scenario::plan::Plan;
use crate::segment::{Flags, Segment};
use crate::socket::Offered;
use crate::world::{Keep, Kernels, Recorded, Side, Tap, Trace, World};

/// The kernel and the driver by which the replay comes nearest, of a reader that takes everything that arrived.
pub(super) fn by_replay(fit: &Fit, work: &Work) -> KernelProfile {
    let usual = KernelProfile::of(USUAL);
    let Ok(plan) = plan(fit, 1, &[]) else { return usual };
    let by_rules = Recorded { lost: fit.recorded.lost.clone(), ..Recorded::default() };
    let of = |receiver: &KernelProfile| {
        let replay = Replay::of(fit, &plan, joined(fit, usual, *receiver), &by_rules, work);
        replay.map_or(i64::MAX, |replay| distance(fit, &replay))
    };
    kernels(&BEFORE_AND_AFTER).min_by_key(of).unwrap_or(usual)
}

/// The receiver whose windows come nearest, and the fit with how much it reads at once.
pub(super) fn by_windows(fit: &Fit, work: &Work) -> Option<(Fit, KernelProfile)> {
    let seen = fit.recorded.offered[fit.sender.peer().index()].as_ref()?;
    let readers = READS.map(|reads| fit.reading(reads));
    let tried = readers.into_iter().filter_map(|fit| {
        let plan = plan(&fit, 1, &[]).ok()?;
        let misfit = |kernel| misfit(&fit, &plan, kernel, seen, work);
        let nearest = kernels(&RECEIVERS).map(|kernel| (misfit(kernel), kernel));
        nearest.min_by_key(|(misfit, _)| *misfit).map(|(misfit, kernel)| (misfit, fit, kernel))
    });
    let (_, fit, kernel) = tried.min_by_key(|(misfit, ..)| *misfit)?;
    // How long a driver gathers shows in the windows of a few segments only.
    let distance = |kernel: &KernelProfile| {
        let kernels = |sender| joined(&fit, KernelProfile::of(sender), *kernel);
        let of = |sender| nearer_replay(&fit, kernels(sender), work);
        let replays = GENERATIONS.into_iter().filter_map(of);
        replays.map(|replay| replay.distance(&fit)).min().unwrap_or(i64::MAX)
    };
    let tried = GATHERS.map(|gather_ns| KernelProfile { gather_ns, ..kernel });
    let nearest = tried.into_iter().min_by_key(distance).unwrap_or(kernel);
    Some((fit, nearest))
}

/// The same hosts, with a receiver whose driver charges otherwise for packets.
pub(super) fn other_drivers(fit: &Fit, kernels: Kernels) -> Vec<Kernels> {
    let own = match fit.sender {
        Side::Client => kernels.server,
        Side::Server => kernels.client,
    };
    let others = CHARGES.into_iter().filter(|receive| *receive != own.memory.receive);
    let drivers =
        others.map(|receive| KernelProfile { memory: Memory { receive, ..own.memory }, ..own });
    drivers
        .map(|receiver| match fit.sender {
            Side::Client => Kernels { server: receiver, ..kernels },
            Side::Server => Kernels { client: receiver, ..kernels },
        })
        .collect()
}

/// Kernels with each driver.
fn kernels(versions: &[Version]) -> impl Iterator<Item = KernelProfile> {
    let drivers = CHARGES.into_iter().flat_map(|receive| GATHERS.map(|gather| (receive, gather)));
    let drivers: Vec<_> = drivers.collect();
    versions.iter().flat_map(move |version| {
        let kernel = KernelProfile::of(*version);
        drivers.clone().into_iter().map(move |(receive, gather_ns)| KernelProfile {
            memory: Memory { receive, ..kernel.memory },
            gather_ns,
            ..kernel
        })
    })
}

/// How far its windows are from those seen, with the sender that suits it better.
fn misfit(fit: &Fit, plan: &Plan, receiver: KernelProfile, seen: &Offered, work: &Work) -> u64 {
    let by_rules = Recorded { lost: fit.recorded.lost.clone(), ..Recorded::default() };
    let keep = Keep { segments: true, ..Keep::default() };
    let of = |sender: Version| {
        let kernels = joined(fit, KernelProfile::of(sender), receiver);
        if work.left() < EVENTS {
            work.ran_short();
            return None;
        }
        let world = World::new(plan, kernels, keep).ok()?.with(&by_rules).at_most(EVENTS);
        let (outcome, trace) = world.run();
        work.spend(outcome.events);
        let (first, own) = windows(fit, &trace)?;
        let upto = if outcome.events < EVENTS { u64::MAX } else { own.last_acked() };
        let other_first = u64::from(first != fit.first_windows[fit.sender.peer().index()]);
        Some(other_first * OTHER_FIRST + own.apart(seen, upto))
    };
    GENERATIONS.into_iter().filter_map(of).min().unwrap_or(u64::MAX)
}

/// What the receiver of the data offered first, in the field of its SYN, and from then on.
fn windows(fit: &Fit, trace: &Trace) -> Option<(u16, Offered)> {
    let receiver = fit.sender.peer();
    let of = |side| trace.segments.iter().filter(move |seen| seen.from == side);
    let syn = |segment: &&Segment| segment.flags.has(Flags::SYN);
    let [sent, answer] =
        [fit.sender, receiver].map(|side| of(side).map(|seen| &seen.segment).find(syn));
    let (sent, answer) = (sent?, answer?);
    let scale = match (sent.options.window_scale, answer.options.window_scale) {
        (Some(_), Some(scale)) => scale,
        _ => 0,
    };
    let first = sent.seq.wrapping_add(1);
    let own = of(receiver).filter(|seen| seen.tap == Tap::from(receiver)).map(|seen| &seen.segment);
    let own = own.filter(|segment| segment.flags.has(Flags::ACK) && !syn(segment));
    let points = own.map(|segment| {
        let acked = u64::from(segment.ack.wrapping_sub(first));
        (acked, acked + (u64::from(segment.window) << scale))
    });
    Some((answer.window, Offered::new(points)))
}

/// Events of a run: the windows of the first segments show what there is. Ours: 2 MB.
const EVENTS: u64 = 6_000;

/// Another first window than the one in the SYN weighs more than all that follows.
const OTHER_FIRST: u64 = 1 << 32;

/// Kernels on both sides of the change to the first window that shows most (v4.20), and of the tuning of the buffer (v6.6).
const BEFORE_AND_AFTER: [Version; 3] = [USUAL, Version::new(4, 18), Version::new(6, 12)];

/// Kernels on both sides of that, of what the memory of a packet lets the window grow by (v5.9), and of the
/// tuning of the buffer (v6.6).
const RECEIVERS: [Version; 4] =
    [USUAL, Version::new(4, 18), Version::new(5, 4), Version::new(6, 12)];

/// What drivers charge: memory that crosses; a copy of what a program wrote (TUN); e1000, 1522 bytes and room
/// in front in whole lines of the cache, and what describes them (`e1000_frag_len`); half a page
/// (`igb_build_skb`); a page (`ena_rx_skb`), all of v5.5.
const CHARGES: [ReceiveCharge; 5] = [
    ReceiveCharge::Virtual,
    ReceiveCharge::Copied,
    ReceiveCharge::Pages { buffer: BUFFER, packet: 1600 + 320 },
    ReceiveCharge::Pages { buffer: BUFFER, packet: 2048 },
    ReceiveCharge::Pages { buffer: BUFFER + HEAD, packet: 4096 },
];

/// `struct sk_buff`, aligned.
const BUFFER: u32 = 256;

/// Head of a buffer whose packets all lie in pages: room for headers (`GRO_MAX_HEAD`) and what describes pages.
const HEAD: u32 = 768;

/// How long drivers gather: not at all, or what arrives at one interrupt (`rx-usecs` of ethtool, 0 to
/// some 100 us).
const GATHERS: [Option<u64>; 3] = [None, Some(0), Some(50_000)];

/// How much readers take at once: everything that arrived; 16 KiB, as curl (`CURL_MAX_WRITE_SIZE`); 8 KiB, as wget
/// (`fd_read_body`) and programs that read by `BUFSIZ`.
const READS: [Option<u64>; 3] = [None, Some(16_384), Some(8_192)];
