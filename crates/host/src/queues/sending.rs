//! From a program to the wire.

use super::{Amount, Drain, Inside, Stage, Way, qdisc, sum};
use crate::snapshot::{ByteQueue, Link, Socket};

/// The stages of sending, in order.
pub(super) fn stages(inside: &Inside<'_, '_>) -> Vec<Stage> {
    // What waits above a shaper waits for it.
    let drain = inside.drain.at_most(qdisc::root_rate(inside));
    let above = Inside { drain, ..*inside };
    let mut stages = vec![application(inside), send_buffer(&above), small_queue(&above)];
    stages.extend(qdisc::stages(inside));
    stages.push(ring(inside));
    stages.push(wire(inside));
    stages
}

/// Sockets that send through the interface, as far as its addresses tell; all of them where these were not seen.
pub(super) fn sockets<'s>(inside: &Inside<'s, '_>) -> Option<Vec<&'s Socket>> {
    let own = &inside.link.addresses;
    let sockets = inside.seen.now.sockets.as_deref()?.iter();
    let is_here = |socket: &&Socket| {
        let local = socket.local.ip().to_canonical();
        own.is_empty() || own.iter().any(|(address, _)| *address == local)
    };
    Some(sockets.filter(is_here).collect())
}

/// Said where the addresses of the interface were not seen.
pub(super) const ALL_COUNTED: &str = "its addresses: the sockets of all interfaces are counted";

fn application(inside: &Inside<'_, '_>) -> Stage {
    let unsent = sockets(inside).and_then(|all| {
        sum(all.iter().map(|socket| socket.info.as_ref().and_then(|info| info.notsent_bytes)))
    });
    let stage = Stage::new(Way::Sending, "application")
        .note("a write returns once the send buffer has the data, not when it left the host");
    match unsent {
        Some(bytes) => {
            stage.note(format!("written and not sent yet: {}", tcpwhy_words::said::bytes(bytes)))
        }
        None => stage.unseen("what was written and not sent yet (ss -ti, notsent)"),
    }
}

/// `tcp_sndbuf_expand` lets it grow to `tcp_wmem[2]` (v6.12 `net/ipv4/tcp_input.c`).
fn send_buffer(inside: &Inside<'_, '_>) -> Stage {
    let most = inside.seen.numbers::<3>("net.ipv4.tcp_wmem");
    let limit =
        most.as_ref().ok().copied().flatten().and_then(|[_, _, most]| u64::try_from(most).ok());
    let mut stage =
        Stage::new(Way::Sending, "send buffer").limited(limit.map(Amount::Bytes), inside.drain);
    stage.parameter = Some("net.ipv4.tcp_wmem, SO_SNDBUF".to_owned());
    stage.each = "each socket".into();
    stage.when_full = "the program waits".into();
    stage.unseen.extend(most.err().map(|missing| missing.to_string()));
    match sockets(inside) {
        Some(all) => {
            stage.now =
                Some(Amount::Bytes(all.iter().map(|each| u64::from(each.send_queue)).sum()));
            if inside.link.addresses.is_empty() {
                stage.unseen.push(ALL_COUNTED.to_owned());
            }
        }
        None => stage.unseen.push("sockets".to_owned()),
    }
    stage.note("holds data until it is acknowledged; memory counts with its overhead, so less payload fits")
}

/// v6.1 and v6.18 `net/ipv4/tcp_output.c`, `tcp_small_queue_check`: twice the packet that is sent or a millisecond
/// (2^-10 s) at the socket's pace, whichever is more, and no more than the setting. In slow start the pace is twice
/// the rate (`tcp_pacing_ss_ratio`); packets are as large as the device takes where the round trip is short
/// (`tcp_tso_autosize`).
fn small_queue(inside: &Inside<'_, '_>) -> Stage {
    const USUAL: u64 = 65_536;
    let most = inside.seen.number("net.ipv4.tcp_limit_output_bytes");
    let set = most.as_ref().ok().copied().flatten().and_then(|bytes| u64::try_from(bytes).ok());
    let packet = inside.link.gso_max_size.map_or(USUAL, u64::from).min(USUAL);
    let by_pace = inside.drain.rate.map(|rate| (rate / 4 / 1024).max(2 * packet));
    let limit = match (set, by_pace) {
        (Some(set), Some(pace)) => Some(set.min(pace)),
        (set, pace) => set.or(pace),
    };
    let mut stage =
        Stage::new(Way::Sending, "small queue").limited(limit.map(Amount::Bytes), inside.drain);
    stage.parameter = Some("net.ipv4.tcp_limit_output_bytes".to_owned());
    stage.each = "each socket".into();
    stage.when_full = "data stays in the send buffer".into();
    stage.unseen.extend(most.err().map(|missing| missing.to_string()));
    let below = sockets(inside)
        .and_then(|all| sum(all.iter().map(|each| each.memory.map(|memory| memory.wmem.into()))));
    stage.now = below.map(Amount::Bytes);
    if below.is_none() {
        stage.unseen.push("what of each socket is below (ss -tm, skmem t)".to_owned());
    }
    let stage = match set {
        Some(set) if limit != Some(set) => stage.note(format!(
            "the setting, {}, is only the most of it",
            tcpwhy_words::said::bytes(set)
        )),
        _ => stage,
    };
    stage.note(
        "what one socket may have in the qdisc and the ring together: two packets or a millisecond at its pace, and one \
         packet more",
    )
}

/// Its speed is a number without meaning (`veth_get_link_ksettings`, 10 Gbit/s; `tun_default_link_ksettings`, 10 Mbit/s).
pub(super) fn is_made_up(link: &Link) -> bool {
    is_tun(link) || link.kind.as_deref() == Some("veth")
}

/// The driver's queue: descriptors, and byte queue limits over them.
fn ring(inside: &Inside<'_, '_>) -> Stage {
    let link = inside.link;
    let stage = Stage::new(Way::Sending, "ring");
    if is_tun(link) {
        return tun(link, stage, inside.drain);
    }
    if let Some(kind) = hands_on(link) {
        return stage.note(format!("a {kind} hands packets on at once: it has no ring"));
    }
    let slots = link.ring.and_then(|ring| ring.tx).map(u64::from);
    let mut stage = match limits(link) {
        Limits::Bytes(queue) => with_limits(stage, queue, slots, inside.drain),
        Limits::None => without(&link.name, stage, slots, inside.drain)
            .note("its driver has no byte queue limits: all slots may fill"),
        Limits::Unseen => without(&link.name, stage, slots, inside.drain)
            .unseen("byte queue limits (/sys/class/net/*/queues/tx-*/byte_queue_limits)"),
    };
    let queues = link.queues.as_ref().and_then(|queues| queues.tx);
    stage.each = match queues {
        Some(1) => String::new(),
        Some(count) => format!("each of {count} queues"),
        None => "each queue".to_owned(),
    };
    if slots.is_none() {
        stage.unseen.push(format!("its length (ethtool -g {})", link.name));
    }
    stage.when_full = "packets wait in the qdisc".into();
    stage
}

enum Limits {
    /// Those of the queue that may hold most.
    Bytes(ByteQueue),
    None,
    Unseen,
}

fn limits(link: &Link) -> Limits {
    match &link.byte_queues {
        None => Limits::Unseen,
        // A driver without them leaves the limit at 0 (`include/linux/dynamic_queue_limits.h`).
        Some(all) => all
            .iter()
            .copied()
            .max_by_key(|queue| queue.limit)
            .filter(|queue| queue.limit > 0)
            .map_or(Limits::None, Limits::Bytes),
    }
}

/// v6.12 `lib/dynamic_queue_limits.c`, `dql_avail`: a packet may be queued while less than the limit is.
fn with_limits(stage: Stage, queue: ByteQueue, slots: Option<u64>, drain: Drain) -> Stage {
    let mut stage = stage.limited(Some(Amount::Bytes(queue.limit)), drain);
    stage.parameter = Some("byte_queue_limits/limit_max".to_owned());
    stage.now = Some(Amount::Bytes(queue.inflight));
    let stage =
        stage.note("found by the kernel while it sends, so that the device is just never idle");
    match slots.and_then(|slots| drain.bytes(slots).map(|bytes| (slots, bytes))) {
        Some((slots, bytes)) => stage.note(format!(
            "without these limits its {slots} slots would stand at up to {}",
            tcpwhy_words::said::exact_bytes(bytes)
        )),
        None => stage,
    }
}

fn without(dev: &str, stage: Stage, slots: Option<u64>, drain: Drain) -> Stage {
    let mut stage = stage.limited(slots.map(Amount::Packets), drain);
    stage.parameter = Some(format!("ethtool -G {dev} tx"));
    match slots.and_then(|slots| drain.bytes(slots)) {
        Some(bytes) => {
            let bytes = tcpwhy_words::said::exact_bytes(bytes);
            stage.note(format!("full packets in all slots are {bytes}"))
        }
        None => stage,
    }
}

pub(super) fn is_tun(link: &Link) -> bool {
    [&link.kind, &link.driver].into_iter().flatten().any(|kind| kind == "tun")
}

/// v6.12 `drivers/net/tun.c`, `tun_net_xmit`: a ring of `tx_queue_len` packets for the program that reads.
fn tun(link: &Link, stage: Stage, drain: Drain) -> Stage {
    let limit = link.txqlen.map(|packets| Amount::Packets(packets.into()));
    let mut stage = stage.limited(limit, drain);
    stage.parameter = Some("txqueuelen".to_owned());
    stage.when_full = "packets are dropped".into();
    stage.dropped = link.counters.map(|counters| counters.tx_dropped);
    if limit.is_none() {
        stage.unseen.push("txqueuelen".to_owned());
    }
    stage.note("a program empties it, at its own pace: the waits are those at the rate above")
}

/// Kinds of devices that queue nothing themselves.
pub(super) fn hands_on(link: &Link) -> Option<&str> {
    const KINDS: [&str; 9] =
        ["veth", "bridge", "bond", "team", "vlan", "vxlan", "macvlan", "wireguard", "dummy"];
    if link.loopback {
        return Some("loopback");
    }
    link.kind.as_deref().filter(|kind| KINDS.contains(kind))
}

fn wire(inside: &Inside<'_, '_>) -> Stage {
    let mut stage = Stage::new(Way::Sending, "wire");
    let link = inside.link;
    match link.counters {
        Some(counters) => {
            stage.dropped = Some(counters.tx_errors);
            if let Some(before) = before(inside).and_then(|link| link.counters) {
                stage.dropped_since = counters.tx_errors.checked_sub(before.tx_errors);
            }
        }
        None => stage.unseen.push(format!("errors (ip -s -s link show {})", link.name)),
    }
    if link.full_duplex == Some(false) {
        stage = stage.note("half duplex: it waits while the other end sends");
    }
    stage
}

/// The interface at the first look.
pub(super) fn before<'s>(inside: &Inside<'s, '_>) -> Option<&'s Link> {
    let links = inside.seen.before?.links.as_deref()?;
    links.iter().find(|link| link.name == inside.link.name)
}
