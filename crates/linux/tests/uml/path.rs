//! The path does what the plan says, by the captures at its taps.

use std::collections::BTreeSet;

use tcpwhy_model::scenario::plan::{Change, Egress, Loss, Plan, Queue, TokenBucket, Way};

use crate::run::{MS, Run, SIZE, down, download, uml};

#[test]
fn a_link_takes_its_time_for_each_packet_and_its_queue_overflows() {
    let Some(uml) = uml(None) else { return };
    let run = Run::of(
        &uml,
        &down(|w| {
            w.rate = 10_000_000;
            w.queue = Queue::Packets(20);
        }),
    );
    let seen = run.data("middle");
    // 1514 bytes at 10 Mbit/s are 1211.2 us; the kernel's clocks tick every 256 ns.
    for pair in seen.windows(2).filter(|p| p[0].payload == 1448 && p[1].payload == 1448) {
        assert!(pair[1].at - pair[0].at >= 1_210_700, "{} ns apart", pair[1].at - pair[0].at);
    }
    assert!(run.data("server").len() > seen.len(), "something was dropped");
    assert!(run.lasted_ns() > SIZE * 8 * 100, "not faster than the link");
}

#[test]
fn just_the_listed_packets_are_lost() {
    let Some(uml) = uml(None) else { return };
    for ipv6 in [false, true] {
        let plan = Plan { ipv6, ..down(|w| w.loss = Loss::Exact(vec![3, 20])) };
        let run = Run::of(&uml, &plan);
        let arrived: BTreeSet<_> = run.data("client").iter().map(|p| (p.seq, p.stamp)).collect();
        let lost: Vec<_> = run
            .data("middle")
            .iter()
            .enumerate()
            .filter(|(_, p)| !arrived.contains(&(p.seq, p.stamp)))
            .map(|(k, _)| k + 1)
            .collect();
        assert_eq!(lost, [3, 20], "IPv6: {ipv6}");
    }
}

#[test]
fn random_losses_follow_the_seed() {
    let Some(uml) = uml(None) else { return };
    let plan = |seed| Plan { seed, ..down(|w| w.loss = Loss::Random(20_000)) };
    let (first, again, other) =
        (Run::of(&uml, &plan(5)), Run::of(&uml, &plan(5)), Run::of(&uml, &plan(6)));
    assert!(first.bytes("server.pcapng") == again.bytes("server.pcapng"));
    let lost = |run: &Run| run.data("middle").len() - run.data("client").len();
    assert!((1..30).contains(&lost(&first)), "{} of 362", lost(&first));
    assert_ne!(first.lasted_ns(), other.lasted_ns());
}

#[test]
fn a_flipped_bit_is_noticed_by_the_receiver() {
    let Some(uml) = uml(None) else { return };
    let run = Run::of(&uml, &down(|w| w.corrupt = 20_000));
    // All arrive at the client's tap, and some are sent again.
    assert_eq!(run.data("middle").len(), run.data("client").len());
    assert!(run.data("server").len() > 363, "{}", run.data("server").len());
}

#[test]
fn some_packets_come_twice_and_some_are_overtaken() {
    let Some(uml) = uml(None) else { return };
    let twice = Run::of(&uml, &down(|w| w.duplicate = 50_000));
    assert!(twice.data("client").len() > twice.data("middle").len());
    let mixed = Run::of(
        &uml,
        &down(|w| {
            w.rate = 100_000_000;
            w.reorder = 50_000;
            w.reorder_ns = MS;
        }),
    );
    let overtaken = |tap| {
        let data = mixed.data(tap);
        data.windows(2).filter(|p| p[1].seq.wrapping_sub(p[0].seq).cast_signed() < 0).count()
    };
    assert!(overtaken("client") > overtaken("middle"));
}

#[test]
fn a_change_of_the_rate_is_seen_from_its_instant_on() {
    let Some(uml) = uml(None) else { return };
    let mut plan = down(|w| w.rate = 20_000_000);
    let slower = Way { rate: 2_000_000, ..plan.path.down.clone() };
    plan.path.changes = vec![Change { at_ns: 100 * MS, down: Some(slower), up: None }];
    let run = Run::of(&uml, &plan);
    let begin = run.packets("client")[0].at;
    for pair in run.data("middle").windows(2).filter(|p| p[0].payload + p[1].payload == 2896) {
        let (at, apart) = (pair[0].at - begin, pair[1].at - pair[0].at);
        if at > 110 * MS {
            assert!(apart > 6 * MS, "{apart} ns apart at {at}");
        }
    }
    assert!(run.lasted_ns() > 1000 * MS);
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
