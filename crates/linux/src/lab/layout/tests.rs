use proptest::prelude::*;
use tcpwhy_model::scenario::plan::{Change, Overhead, Path, Queue, Records, TokenBucket, Way};

use super::*;

/// Every port with something on it, as `device: what`, in the order of the chain.
fn settings(layout: &Layout) -> Vec<String> {
    let ports = layout.links.iter().flat_map(|l| [&l.near, &l.far]);
    ports.flat_map(|p| p.settings.iter().map(|s| format!("{}: {}", p.device, brief(s)))).collect()
}

fn brief(setting: &Setting) -> String {
    match setting {
        Setting::Egress(Discipline::Tbf(t)) => format!("tbf {} {} {:?}", t.rate, t.burst, t.limit),
        Setting::Egress(Discipline::Netem(n)) => {
            let mut text = format!("netem {} ms", n.delay_ns / 1_000_000);
            if n.at_once > 0 {
                text = format!("{text} at once {}", n.at_once);
            }
            if n.rate > 0 {
                text = format!("{text} rate {}", n.rate);
            }
            if n.loss == Loss::None { text } else { format!("{text} {:?}", n.loss) }
        }
        Setting::Egress(other) => format!("{other:?}"),
        Setting::Police(p) => format!("police {} {}", p.rate, p.burst),
        Setting::Fate(f) => format!("fate {:?} {}", f.lost, f.corrupt),
    }
}

fn names(layout: &Layout) -> String {
    layout.nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>().join(" ")
}

fn delay(ms: u64) -> Way {
    Way { delay_ns: ms * 1_000_000, ..Way::default() }
}

fn plan(down: Way, up: Way) -> Plan {
    Plan { path: Path { down, up, changes: vec![] }, ..Plan::default() }
}

fn laid(plan: &Plan) -> Layout {
    Layout::of(plan).expect("fits")
}

#[test]
fn a_bare_path_is_two_routers() {
    let layout = laid(&plan(Way::default(), Way::default()));
    assert_eq!(names(&layout), "server r1 r2 client");
    assert!(settings(&layout).is_empty());
    let devices: Vec<_> =
        layout.links.iter().flat_map(|l| [&*l.near.device, &*l.far.device]).collect();
    assert_eq!(devices, ["server0", "r1-s", "r1-c", "r2-s", "r2-c", "client0"]);
}

#[test]
fn a_host_with_two_interfaces_has_two_links_to_its_neighbour() {
    let mut plan = plan(Way::default(), delay(4));
    plan.server.second_nic = true;
    plan.server.egress = Some(Egress::Fq);
    plan.client.second_nic = true;
    plan.client.stack_to_tap_ns = 1;
    let layout = laid(&plan);
    assert_eq!(names(&layout), "server r1 r2 client-tap client");
    let ways_out: Vec<_> =
        layout.ways_out.iter().map(|(k, l)| (*k, &*l.near.device, &*l.far.device)).collect();
    assert_eq!(ways_out, [(0, "server-out", "r1-in"), (3, "client-tap-in", "client-out")]);
    assert_eq!(layout.ways_out[&0].near.settings, [Setting::Egress(Discipline::Fq)]);
    assert_eq!(layout.links[0].near.settings, [], "nothing leaves by the first");
    let taps: Vec<_> = layout.taps.iter().map(|tap| &*tap.device).collect();
    assert_eq!(taps, ["client-tap-s", "any"]);
}

#[test]
fn a_way_is_a_link_then_a_distance() {
    let down = Way { rate: 10_000_000, queue: Queue::Bytes(50_000), ..delay(3) };
    let layout = laid(&plan(down, delay(4)));
    assert_eq!(names(&layout), "server r1 r2 r3 client");
    assert_eq!(
        settings(&layout),
        [
            "r1-c: tbf 10000000 1600 Bytes(50000)",
            "r2-s: netem 4 ms",
            "r2-c: netem 0 ms rate 10000000",
            "r3-c: netem 3 ms",
        ],
        "down: queue, wire, distance; up's distance right behind the middle"
    );
}

#[test]
fn a_link_may_queue_by_fq_codel_and_send_cells() {
    let overhead = Overhead { bytes: 8, atm: true };
    let down = Way { rate: 10_000_000, queue: Queue::FqCodel, overhead, ..delay(3) };
    let layout = laid(&plan(down.clone(), delay(4)));
    assert!(settings(&layout).contains(&"r1-c: tbf 10000000 1600 FqCodel".to_owned()));
    let added = layout.links.iter().flat_map(|link| &link.near.settings).filter(|s| match s {
        Setting::Egress(Discipline::Tbf(tbf)) => tbf.overhead == overhead,
        Setting::Egress(Discipline::Netem(netem)) => netem.overhead == overhead,
        _ => false,
    });
    assert_eq!(added.count(), 2, "queue and wire");
    let mut changing = plan(down.clone(), delay(4));
    let later = Way { queue: Queue::Endless, ..down };
    changing.path.changes.push(Change { at_ns: 1, down: Some(later), up: None });
    assert!(Layout::of(&changing).is_err(), "what waits would be lost");
}

#[test]
fn the_middle_is_behind_the_link_of_the_way_down_and_before_its_losses() {
    let down = Way { rate: 1_000_000, loss: Loss::Exact(vec![3]), ..delay(1) };
    let mut plan = plan(down, delay(1));
    plan.records = Records { middle: true, ..Records::default() };
    let layout = laid(&plan);
    let middle = layout.taps.iter().find(|t| t.name == "middle").expect("asked for");
    assert_eq!((middle.device.as_str(), layout.nodes[middle.node].name.as_str()), ("r3-s", "r3"));
    assert!(settings(&layout).contains(&"r3-s: fate [3] 0".to_owned()));
}

#[test]
fn what_is_overtaken_is_held_back_before_the_distance() {
    let down = Way { reorder: 20_000, reorder_ns: 2_000_000, ..delay(5) };
    let layout = laid(&plan(down, Way::default()));
    assert_eq!(settings(&layout), ["r2-c: netem 2 ms at once 980000", "r3-c: netem 5 ms"]);
}

#[test]
fn a_bucket_without_a_queue_polices() {
    let bucket = TokenBucket { rate: 5_000_000, burst: 30_000, queue: 0 };
    let layout = laid(&plan(Way { bucket: Some(bucket), ..Way::default() }, Way::default()));
    assert_eq!(settings(&layout), ["r1-c: police 5000000 30000"]);
}

#[test]
fn hosts_have_their_own_queue_their_distance_and_their_card() {
    let mut plan = plan(Way::default(), Way::default());
    plan.server.egress = Some(Egress::Fq);
    plan.server.offload = true;
    plan.client.stack_to_tap_ns = 7_000_000;
    let layout = laid(&plan);
    assert_eq!(names(&layout), "server server-nic r1 r2 client-tap client");
    assert_eq!(
        settings(&layout),
        ["server0: Fq", "client-tap-s: netem 7 ms", "client-tap-c: netem 7 ms"]
    );
    assert!(layout.links[0].near.offload && !layout.links[1].near.offload, "the card cuts");
    let taps: Vec<_> = layout.taps.iter().map(|t| t.device.as_str()).collect();
    assert_eq!(taps, ["client-tap-s", "server0"]);
}

#[test]
fn a_change_is_told_once_and_parts_of_later_versions_wait_idle() {
    let faster = Way { rate: 20_000_000, ..delay(3) };
    let mut plan = plan(delay(3), Way::default());
    let change = |at_ns, down: &Way| Change { at_ns, down: Some(down.clone()), up: None };
    plan.path.changes = vec![change(5, &faster), change(9, &delay(3))];
    let layout = laid(&plan);
    assert_eq!(
        settings(&layout),
        [
            "r1-c: tbf 400000000000 67108864 Bytes(1073741824)",
            "r2-c: netem 0 ms",
            "r3-c: netem 3 ms"
        ]
    );
    let told: Vec<_> = layout.changes.iter().map(|c| (c.at_ns, c.device.as_str())).collect();
    assert_eq!(told, [(5, "r1-c"), (5, "r2-c"), (9, "r1-c"), (9, "r2-c")], "the distance stays");
}

#[test]
fn a_queue_that_changes_its_unit_does_not_fit() {
    let rate = |queue| Way { rate: 1_000_000, queue, ..Way::default() };
    let mut plan = plan(rate(Queue::Bytes(9000)), Way::default());
    plan.path.changes = vec![Change { at_ns: 1, down: Some(rate(Queue::Packets(9))), up: None }];
    let unfit = Layout::of(&plan).expect_err("does not fit");
    assert!(unfit.what.contains("path.down"), "{unfit}");
}

fn any_way() -> impl Strategy<Value = Way> {
    let rate = prop_oneof![Just(0), 1_000_u64..10_000_000_000];
    let loss = prop_oneof![
        Just(Loss::None),
        (0..1_000_000_u32).prop_map(Loss::Random),
        prop::collection::vec(1_u64..100, 0..4).prop_map(Loss::Exact),
    ];
    let bucket = prop::option::of((1_000_u64..1_000_000, 0_u64..3, 0_u64..3).prop_map(
        |(rate, burst, queue)| TokenBucket { rate, burst: burst * 1000, queue: queue * 1000 },
    ));
    let delay = (0_u64..100, 0_u64..2, 0_u32..2, 0_u32..2);
    (rate, loss, bucket, delay).prop_map(
        |(rate, loss, bucket, (delay, jitter, reorder, corrupt))| Way {
            rate,
            loss,
            bucket,
            delay_ns: delay,
            jitter_ns: jitter,
            reorder,
            corrupt,
            ..Way::default()
        },
    )
}

proptest! {
    /// A discipline has its port for itself, names are unique and fit, and the hosts stay at
    /// the ends with the same addresses.
    #[test]
    fn every_layout_can_be_built(down in any_way(), up in any_way(), later in any_way(), far in any::<bool>()) {
        let mut plan = plan(down, up);
        plan.path.changes = vec![Change { at_ns: 1, down: Some(later), up: None }];
        plan.server.stack_to_tap_ns = u64::from(far);
        plan.client.offload = far;
        plan.records.middle = true;
        let layout = laid(&plan);
        prop_assert_eq!(layout.links.len() + 1, layout.nodes.len());
        let mut devices = std::collections::BTreeSet::new();
        for port in layout.links.iter().flat_map(|l| [&l.near, &l.far]) {
            prop_assert!(port.device.len() < 16, "{}", port.device);
            prop_assert!(devices.insert(port.device.clone()), "{} twice", port.device);
            let kinds = |s: &Setting| std::mem::discriminant(s);
            for (k, setting) in port.settings.iter().enumerate() {
                let same = port.settings[..k].iter().filter(|s| kinds(s) == kinds(setting));
                prop_assert_eq!(same.count(), 0, "{} has two", &port.device);
            }
        }
        let client = layout.links[layout.links.len() - 1].far.address(false);
        prop_assert_eq!(layout.server_address(false).to_string(), "10.0.1.1");
        prop_assert_eq!(client.to_string(), "10.0.2.1");
        for change in &layout.changes {
            prop_assert!(devices.contains(&change.device));
        }
    }
}
