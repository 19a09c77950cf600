//! What one way of a path becomes: settings of ports, in the order a packet meets them.
//!
//! A plain link is two parts: a token bucket of one frame that holds the queue, then a serializer
//! (netem's rate), so that each packet takes its time on the wire as well. Then, behind the
//! middle of the path: exact losses and flipped bits where packets arrive, what is held back to
//! be overtaken, and loss, duplication, delay and jitter.
//!
//! A way that changes has every part that one of its versions needs, idle in the others.

use tcpwhy_model::scenario::plan::{Change, Loss, Overhead, Plan, Ppm, Queue, TokenBucket, Way};

use super::{Discipline, Fate, Limit, Netem, Police, Setting, Tbf, Unfit};

/// One way's parts; each has as many versions as the way: one more than the plan has changes.
pub(super) struct Parts {
    /// Before the middle.
    pub(super) link: Vec<Vec<Setting>>,
    /// Behind it.
    pub(super) distance: Vec<Vec<Setting>>,
    /// Where packets arrive behind the middle, if any version has one.
    pub(super) fate: Option<Vec<Setting>>,
}

impl Parts {
    pub(super) fn of(
        plan: &Plan,
        name: &str,
        first: &Way,
        changed: impl Fn(&Change) -> Option<&Way>,
    ) -> Result<Self, Unfit> {
        let mut ways = vec![first];
        for change in &plan.path.changes {
            let before = ways[ways.len() - 1];
            ways.push(changed(change).unwrap_or(before));
        }
        // The two ways of a run never draw the same numbers.
        let seed = name.bytes().fold(plan.seed, |seed, b| seed.rotate_left(9) ^ u64::from(b));
        Ok(Self { link: link(&ways, name)?, distance: distance(&ways, seed), fate: fate(&ways) })
    }
}

fn link(ways: &[&Way], name: &str) -> Result<Vec<Vec<Setting>>, Unfit> {
    let polices = |way: &Way| way.bucket.is_some_and(|b| b.queue == 0);
    let queues = |way: &Way| way.bucket.map_or(way.rate > 0, |b| b.queue > 0);
    let is_wire = |way: &Way| way.bucket.is_none() && way.rate > 0;
    let any_packets = ways.iter().any(|w| is_wire(w) && matches!(w.queue, Queue::Packets(_)));
    let any_bytes = ways.iter().any(|w| {
        is_wire(w) && matches!(w.queue, Queue::Bytes(_)) || queues(w) && w.bucket.is_some()
    });
    if any_packets && any_bytes {
        return Err(Unfit {
            what: format!("a change of path.{name} between a queue in packets and one in bytes"),
            why: "a queue that changes its unit would lose what waits in it".to_owned(),
        });
    }
    let is_codel = |way: &&&Way| is_wire(way) && way.queue == Queue::FqCodel;
    let codels = ways.iter().filter(is_codel).count();
    if codels > 0 && codels < ways.len() {
        return Err(Unfit {
            what: format!("a change of path.{name} to or from `queue = \"fq_codel\"`"),
            why: "a queue that changes its kind would lose what waits in it".to_owned(),
        });
    }
    let versions = |of: &dyn Fn(&Way) -> Setting| ways.iter().map(|w| of(w)).collect();
    let mut parts = Vec::new();
    if ways.iter().any(|w| polices(w)) {
        let idle = Police { rate: IDLE_RATE, burst: IDLE_BURST, overhead: Overhead::default() };
        parts.push(versions(&|way| {
            let bucket = way.bucket.filter(|_| polices(way));
            let overhead = way.overhead;
            let police = |b: TokenBucket| Police { rate: b.rate, burst: b.burst, overhead };
            Setting::Police(bucket.map_or(idle, police))
        }));
    }
    if ways.iter().any(|w| queues(w)) {
        parts.push(versions(&|way| Setting::Egress(Discipline::Tbf(queue(way, any_packets)))));
    }
    if ways.iter().any(|w| is_wire(w)) {
        parts.push(versions(&|way| {
            let rate = if is_wire(way) { way.rate } else { 0 };
            let overhead = way.overhead;
            Setting::Egress(Discipline::Netem(Netem { rate, overhead, ..Netem::default() }))
        }));
    }
    Ok(parts)
}

/// The token bucket that holds a way's queue.
fn queue(way: &Way, in_packets: bool) -> Tbf {
    let endless = if in_packets { Limit::Packets(ENDLESS) } else { Limit::Bytes(ENDLESS) };
    match way.bucket {
        Some(bucket) if bucket.queue > 0 => Tbf { overhead: way.overhead, ..bucket_queue(bucket) },
        None if way.rate > 0 => Tbf {
            rate: way.rate,
            burst: LINK_BURST,
            limit: if way.queue == Queue::Endless { endless } else { limit(way.queue) },
            overhead: way.overhead,
        },
        _ => Tbf {
            rate: IDLE_RATE,
            burst: IDLE_BURST,
            limit: endless,
            overhead: Overhead::default(),
        },
    }
}

/// A queue's limit in the kernel's terms.
pub(super) fn limit(queue: Queue) -> Limit {
    let most = |limit: u64| limit.min(ENDLESS.into()) as u32;
    match queue {
        Queue::Endless => Limit::Bytes(ENDLESS),
        Queue::Bytes(bytes) => Limit::Bytes(most(bytes)),
        Queue::Packets(packets) => Limit::Packets(most(packets)),
        Queue::FqCodel => Limit::FqCodel,
    }
}

/// A bucket's setting on a host or a way.
pub(super) fn bucket(bucket: TokenBucket) -> Setting {
    if bucket.queue == 0 {
        let overhead = Overhead::default();
        Setting::Police(Police { rate: bucket.rate, burst: bucket.burst, overhead })
    } else {
        Setting::Egress(Discipline::Tbf(bucket_queue(bucket)))
    }
}

fn bucket_queue(bucket: TokenBucket) -> Tbf {
    Tbf {
        rate: bucket.rate,
        // Less than a frame would drop every full one (tbf_change, `max_size`).
        burst: bucket.burst.max(LINK_BURST),
        limit: limit(Queue::Bytes(bucket.queue)),
        overhead: Overhead::default(),
    }
}

fn distance(ways: &[&Way], seed: u64) -> Vec<Vec<Setting>> {
    let netem = |netem| Setting::Egress(Discipline::Netem(netem));
    let mut parts = Vec::new();
    if ways.iter().any(|w| w.reorder > 0) {
        parts.push(
            ways.iter()
                .map(|way| {
                    netem(Netem {
                        delay_ns: if way.reorder > 0 { way.reorder_ns } else { 0 },
                        at_once: ALL - way.reorder.min(ALL),
                        seed: seed ^ 1,
                        ..Netem::default()
                    })
                })
                .collect(),
        );
    }
    let random = |way: &Way| !matches!(way.loss, Loss::None | Loss::Exact(_));
    let needed = |w: &Way| w.delay_ns > 0 || w.jitter_ns > 0 || w.duplicate > 0 || random(w);
    if ways.iter().any(|w| needed(w)) {
        parts.push(
            ways.iter()
                .map(|way| {
                    netem(Netem {
                        delay_ns: way.delay_ns,
                        jitter_ns: way.jitter_ns,
                        loss: if random(way) { way.loss.clone() } else { Loss::None },
                        duplicate: way.duplicate,
                        seed,
                        ..Netem::default()
                    })
                })
                .collect(),
        );
    }
    parts
}

fn fate(ways: &[&Way]) -> Option<Vec<Setting>> {
    let fates: Vec<Fate> = ways
        .iter()
        .map(|way| Fate {
            lost: if let Loss::Exact(lost) = &way.loss { lost.clone() } else { Vec::new() },
            corrupt: way.corrupt,
        })
        .collect();
    let any = fates.iter().any(|f| *f != Fate::default());
    any.then(|| fates.into_iter().map(Setting::Fate).collect())
}

/// Everything, in parts of a million.
const ALL: Ppm = 1_000_000;

/// Bytes of one frame on an Ethernet of 1500-byte packets.
const FRAME: u64 = 1514;

/// Credit of a plain link's bucket: one frame, and enough more that the kernel's rounding of bytes
/// to ticks and back (`tbf_change`, v6.12 `net/sched/sch_tbf.c`) never drops one.
const LINK_BURST: u64 = FRAME + 86;

/// Ours: a rate and a credit that never hold anything back.
const IDLE_RATE: u64 = 400_000_000_000;
const IDLE_BURST: u64 = 64 << 20;

/// Ours: a queue that never overflows.
const ENDLESS: u32 = 1 << 30;
