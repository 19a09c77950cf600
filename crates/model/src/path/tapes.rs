//! A host's way out, as an article on Linux's queues tells it: what is in a driver's ring, and
//! how long a small packet waits behind bulk.

use super::tests::Frame;
use super::*;
use crate::scenario::plan::{self, Egress, Host, TokenBucket};

const MS: u64 = 1_000_000;

const DRIVER: Driver = Driver { hz: 250, clock_ns: 0, timer_slack: false, offload: false, seed: 1 };

/// 5 Mbit/s: 1506 bytes take 2.4096 ms.
fn slow(bql: bool) -> plan::Device {
    plan::Device { rate: 5_000_000, ring: 256, bql, limit_min: 0, limit_max: None }
}

fn device(device: plan::Device, egress: Option<Egress>, driver: Driver) -> Device<Frame> {
    let host = Host { egress, device: Some(device), ..Host::default() };
    Device::of(&host, driver).expect("it has one")
}

/// Lets time pass; what leaves on the wire, with when.
fn until(device: &mut Device<Frame>, end: u64) -> Vec<(u64, Frame)> {
    let (mut sent, mut now) = (Vec::new(), 0);
    loop {
        while let Some(left) = device.poll() {
            if let Left::Sent(frame) = left {
                sent.push((now, frame));
            }
        }
        let Some(at) = device.next().filter(|at| *at <= end) else { return sent };
        now = at;
        device.advance(now);
    }
}

/// Keeps twenty packets of a size above the ring for so long; the device then.
fn saturated(mut device: Device<Frame>, packet: Frame, end: u64) -> Device<Frame> {
    let mut now = 0;
    while now < end {
        while device.packets() < 20 {
            device.offer(now, packet);
        }
        now = device.next().expect("it sends");
        until(&mut device, now);
    }
    device
}

/// How long a packet of 60 bytes and another flow takes to the wire from now on.
fn wait_of_small(mut device: Device<Frame>) -> u64 {
    let now = device.next().expect("it sends");
    until(&mut device, now);
    device.offer(now, Frame::of(2, 60));
    let sent = until(&mut device, now + 10_000 * MS);
    sent.iter().find(|(_, frame)| frame.flow == 2).expect("it leaves").0 - now
}

#[test]
fn after_127_packets_of_1500_bytes_the_next_begins_after_304_8_ms_at_5_mbit() {
    let ring = plan::Device { ring: 128, ..slow(false) };
    let mut device = device(ring, None, DRIVER);
    for _ in 0..127 {
        device.offer(0, Frame::of(1, 1500));
    }
    device.offer(0, Frame::of(2, 500));
    let sent = until(&mut device, 1_000 * MS);
    // 127 x 12,000 bits / 5 Mbit/s; its own 4,000 bits take 0.8 ms more.
    assert_eq!(sent[126].0, 304_800_000);
    assert_eq!(sent[127], (305_600_000, Frame::of(2, 500)));
}

#[test]
fn a_ring_of_256_slots_stands_at_384_kb() {
    let device = saturated(device(slow(false), None, DRIVER), Frame::of(1, 1500), 2_000 * MS);
    assert_eq!(device.counts.most_in_ring, 256 * 1500);
    assert_eq!(device.waiting().1, 256 * 1500);
}

#[test]
fn byte_queue_limits_let_it_stand_at_about_two_frames() {
    // Frames of an access line with PPPoE: 1492 bytes and Ethernet's header. The article read a
    // limit of 3012 bytes.
    let device = saturated(device(slow(true), None, DRIVER), Frame::of(1, 1506), 900 * MS);
    assert_eq!(device.counts.limit, 3012);
    // One more may go over it: the check comes after a packet is queued.
    assert_eq!(device.counts.most_in_ring, 3 * 1506);
}

#[test]
fn the_limit_tries_less_after_a_second_of_slack_and_comes_back() {
    let mut device = device(slow(true), None, DRIVER);
    let mut limits = Vec::new();
    for second in 1..=20 {
        device = saturated(device, Frame::of(1, 1506), second * 500 * MS);
        limits.push(device.counts.limit);
    }
    assert!(limits.iter().all(|limit| [1506, 3012].contains(limit)), "{limits:?}");
    assert_eq!(device.counts.most_in_ring, 3 * 1506);
}

#[test]
fn a_small_packet_waits_for_the_ring_and_limits_keep_that_short() {
    let wait = |ring| {
        let device = device(ring, Some(Egress::FqCodel), DRIVER);
        wait_of_small(saturated(device, Frame::of(1, 1506), 900 * MS))
    };
    let (frame, own) = (1506 * 8 * 200, 60 * 8 * 200);
    // A discipline that lets it pass the others cannot help it past the ring: 256 frames.
    assert_eq!(wait(slow(false)), 256 * frame + own);
    // What is in the ring when it comes: three frames.
    assert_eq!(wait(slow(true)), 3 * frame + own);
    // With `limit_max` 3000 two frames are over the limit, and the third has to wait.
    let capped = plan::Device { limit_max: Some(3000), ..slow(true) };
    assert_eq!(wait(capped), 2 * frame + own);
}

#[test]
fn a_super_segment_goes_in_whole_whatever_the_limit() {
    // 43 frames of 1514 bytes in one piece take 104.2 ms.
    let bulk = Frame { piece: 1514, ..Frame::of(1, 43 * 1514) };
    let tso = Driver { offload: true, ..DRIVER };
    // The longest wait, wherever the small packet falls.
    let longest = |ring: plan::Device, driver| {
        let device = saturated(device(ring, Some(Egress::FqCodel), driver), bulk, 5_000 * MS);
        let falls = (0..100).map(|k| saturated(device.clone(), bulk, (5_000 + 4 * k) * MS));
        falls.map(wait_of_small).max()
    };
    let (frame, own) = (1514 * 8 * 200, 60 * 8 * 200);
    let whole = 43 * frame;
    // Limits count bytes: two super-segments and the one that goes over.
    assert_eq!(longest(slow(true), tso), Some(3 * whole + own));
    // The smallest limit still lets a whole one in.
    let capped = plan::Device { limit_max: Some(3000), ..slow(true) };
    assert_eq!(longest(capped, tso), Some(whole + own));
    // Cut before the ring it is before the small one all the same, one piece later.
    assert_eq!(longest(capped, DRIVER), Some(whole + own));
}

#[test]
fn a_bucket_at_a_host_spends_its_credit_and_refuses_what_finds_no_room() {
    let bucket = TokenBucket { rate: 8_000_000, burst: 3_000, queue: 4_000 };
    let host = Host { egress: Some(Egress::TokenBucket(bucket)), ..Host::default() };
    let mut device: Device<Frame> = Device::of(&host, DRIVER).expect("it has one");
    let taken: Vec<_> = (0..6).map(|_| device.offer(0, Frame::of(1, 1500))).collect();
    // Two by credit, two wait; a byte is a microsecond.
    assert_eq!(taken, [true, true, true, true, false, false]);
    let sent: Vec<_> = until(&mut device, 100 * MS).iter().map(|(at, _)| at / 1000).collect();
    assert_eq!((sent, device.counts.refused), (vec![0, 0, 1_500, 3_000], 2));
}

#[test]
fn a_bucket_cuts_what_is_larger_than_its_credit() {
    let bucket = TokenBucket { rate: 8_000_000, burst: 3_000, queue: 10_000 };
    let host = Host { egress: Some(Egress::TokenBucket(bucket)), ..Host::default() };
    let tso = Driver { offload: true, ..DRIVER };
    let mut device: Device<Frame> = Device::of(&host, tso).expect("it has one");
    let bulk = Frame { piece: 1500, ..Frame::of(1, 6_000) };
    assert!(device.offer(0, bulk));
    let sent: Vec<_> = until(&mut device, 100 * MS).iter().map(|(at, _)| at / 1000).collect();
    assert_eq!(sent, [0, 0, 1_500, 3_000]);
}

#[test]
fn fq_keeps_each_packet_for_its_time_and_flows_take_turns() {
    let ring = plan::Device { limit_max: Some(1000), ..slow(true) };
    let mut device = device(ring, Some(Egress::Fq), DRIVER);
    for _ in 0..20 {
        device.offer(0, Frame::of(1, 1514));
    }
    for _ in 0..20 {
        device.offer(0, Frame::of(2, 1514));
    }
    device.offer(0, Frame { departs: 500 * MS, ..Frame::of(3, 100) });
    let sent = until(&mut device, 1_000 * MS);
    let order: Vec<_> = sent.iter().map(|(_, frame)| frame.flow).collect();
    // Ten frames of credit at first, two a turn from then on.
    assert_eq!(order[..12], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
    assert_eq!(order[20..28], [1, 1, 2, 2, 1, 1, 2, 2]);
    assert_eq!(sent.last().expect("there are some").0, 500 * MS + 100 * 8 * 200);
}

/// What is offered is refused, dropped, or leaves, and all memory comes back; twice the same.
#[test]
fn bytes_are_conserved() {
    for seed in 0..200 {
        let run = || {
            let mut dice = Chance::new(seed);
            let (host, driver) = any(&mut dice);
            let Some(mut device): Option<Device<Frame>> = Device::of(&host, driver) else {
                return (0, 0, 0);
            };
            let (mut offered, mut sent, mut freed, mut now) = (0_u64, 0_u64, 0_u64, 0);
            let mut count = |device: &mut Device<Frame>| {
                while let Some(left) = device.poll() {
                    match left {
                        Left::Sent(frame) => sent += u64::from(frame.bytes),
                        Left::Freed(frame) => freed += u64::from(frame.bytes),
                        Left::Seen(_) => {}
                    }
                }
            };
            for _ in 0..300 {
                now += dice.below(3 * MS);
                while let Some(at) = device.next().filter(|at| *at <= now) {
                    device.advance(at);
                    count(&mut device);
                }
                for _ in 0..dice.below(4) {
                    let pieces = 1 + dice.below(5) as u32;
                    let frame = Frame {
                        piece: 1514,
                        departs: now + dice.below(5 * MS),
                        ..Frame::of(dice.below(4) as u32, pieces * 1514)
                    };
                    let bytes = u64::from(frame.bytes);
                    offered += if device.offer(now, frame) { bytes } else { 0 };
                    count(&mut device);
                }
            }
            while let Some(at) = device.next() {
                device.advance(at);
                count(&mut device);
            }
            assert_eq!(freed, offered, "{seed}");
            assert_eq!((device.waiting(), device.packets()), ((0, 0), 0), "{seed}");
            assert!(device.counts.dropped > 0 || sent == offered, "{seed} {:?}", device.counts);
            (offered, sent, device.counts.most_in_ring)
        };
        assert_eq!(run(), run(), "{seed}");
    }
}

fn any(dice: &mut Chance) -> (Host, Driver) {
    let egress = match dice.below(6) {
        0 => Some(Egress::Fq),
        1 => Some(Egress::FqCodel),
        2 => Some(Egress::Fifo(Queue::Packets(1 + dice.below(30)))),
        3 => Some(Egress::Fifo(Queue::Bytes(3_000 + dice.below(90_000)))),
        4 => Some(Egress::TokenBucket(TokenBucket {
            rate: 4_000_000 + dice.below(40_000_000),
            burst: 2_000 + dice.below(30_000),
            queue: dice.below(2) * 30_000,
        })),
        _ => None,
    };
    let ring = plan::Device {
        rate: 2_000_000 + dice.below(50_000_000),
        ring: 1 + dice.below(100) as u32,
        bql: dice.hits(700_000),
        limit_min: dice.below(2) as u32 * 3_000,
        limit_max: dice.hits(300_000).then_some(6_000),
    };
    let device = dice.hits(800_000).then_some(ring);
    let driver = Driver { offload: dice.hits(500_000), ..DRIVER };
    (Host { egress, device, ..Host::default() }, driver)
}
