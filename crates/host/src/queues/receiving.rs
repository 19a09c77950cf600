//! From the wire to a program.

use super::sending::{ALL_COUNTED, before, hands_on, sockets};
use super::{Amount, Inside, Stage, Way, sum};
use crate::snapshot::LinkCounters;

/// The stages of receiving, in order.
pub(super) fn stages(inside: &Inside<'_, '_>) -> Vec<Stage> {
    vec![wire(inside), ring(inside), backlog(inside), receive_buffer(inside), application(inside)]
}

/// Frames that arrived broken.
fn wire(inside: &Inside<'_, '_>) -> Stage {
    let broken =
        |counters: LinkCounters| counters.rx_crc_errors.saturating_add(counters.rx_frame_errors);
    let stage = counted(inside, Stage::new(Way::Receiving, "wire"), broken);
    if stage.dropped.is_some_and(|dropped| dropped > 0) {
        return stage.note("broken frames: a cable, its optics, or the duplex");
    }
    stage
}

/// v6.12 `include/uapi/linux/if_link.h`: `rx_missed_errors` counts what found no descriptor, and drivers that
/// have a FIFO count the same in `rx_fifo_errors`.
fn ring(inside: &Inside<'_, '_>) -> Stage {
    let link = inside.link;
    let stage = Stage::new(Way::Receiving, "ring");
    if let Some(kind) = hands_on(link) {
        return stage.note(format!("a {kind} hands packets on at once: it has no ring"));
    }
    let slots = link.ring.and_then(|ring| ring.rx);
    let stage = stage.limited(slots.map(|slots| Amount::Packets(slots.into())), inside.drain);
    let lost =
        |counters: LinkCounters| counters.rx_missed_errors.saturating_add(counters.rx_fifo_errors);
    let mut stage = counted(inside, stage, lost);
    stage.parameter = Some(format!("ethtool -G {} rx", link.name));
    stage.each = match link.queues.as_ref().and_then(|queues| queues.rx) {
        Some(1) => String::new(),
        Some(count) => format!("each of {count} queues"),
        None => "each queue".to_owned(),
    };
    stage.when_full = "the device drops what arrives".into();
    if slots.is_none() {
        stage.unseen.push(format!("its length (ethtool -g {})", link.name));
    }
    stage.note(
        "it fills while no processor takes packets out: the time is that of full packets at the rate, and \
         small ones fill it many times faster",
    )
}

fn counted(inside: &Inside<'_, '_>, mut stage: Stage, of: impl Fn(LinkCounters) -> u64) -> Stage {
    match inside.link.counters.map(&of) {
        Some(now) => {
            stage.dropped = Some(now);
            let then = before(inside).and_then(|link| link.counters).map(&of);
            stage.dropped_since = then.and_then(|then| now.checked_sub(then));
        }
        None => {
            stage.unseen.push(format!("what it dropped (ip -s -s link show {})", inside.link.name));
        }
    }
    stage
}

/// v6.12 `net/core/dev.c`, `enqueue_to_backlog`.
fn backlog(inside: &Inside<'_, '_>) -> Stage {
    let most = inside.seen.number("net.core.netdev_max_backlog");
    let limit = most.as_ref().ok().copied().flatten().and_then(|count| u64::try_from(count).ok());
    let mut stage = Stage::new(Way::Receiving, "backlog");
    stage.limit = limit.map(Amount::Packets);
    stage.parameter = Some("net.core.netdev_max_backlog".to_owned());
    stage.each = "each processor".into();
    stage.when_full = "packets are dropped".into();
    stage.unseen.extend(most.err().map(|missing| missing.to_string()));
    match &inside.seen.now.softnet {
        Some(rows) => {
            stage.now = sum(rows.iter().map(|row| row.backlog.map(u64::from))).map(Amount::Packets);
            stage.dropped = Some(rows.iter().map(|row| u64::from(row.dropped)).sum());
            let before = inside.seen.before.and_then(|look| look.softnet.as_ref());
            let since = before.map(|before| {
                let grown = rows
                    .iter()
                    .zip(before)
                    .map(|(now, then)| now.dropped.wrapping_sub(then.dropped));
                grown.map(u64::from).sum()
            });
            stage.dropped_since = since;
        }
        None => stage.unseen.push("/proc/net/softnet_stat".to_owned()),
    }
    stage.note(
        "of all interfaces together; only packets that RPS moves, loopback, veth and drivers without NAPI \
         pass it, and it empties as fast as its processor works",
    )
}

/// v6.12 `net/ipv4/tcp_input.c`, `tcp_rcv_space_adjust`; what is dropped: `tcp_data_queue`, `tcp_prune_queue`,
/// `tcp_data_queue_ofo`; `net/ipv4/tcp_ipv4.c`, `tcp_add_backlog`.
fn receive_buffer(inside: &Inside<'_, '_>) -> Stage {
    const DROPS: [&str; 5] =
        ["TCPRcvQDrop", "TCPZeroWindowDrop", "TCPOFODrop", "RcvPruned", "TCPBacklogDrop"];
    let most = inside.seen.numbers::<3>("net.ipv4.tcp_rmem");
    let limit =
        most.as_ref().ok().copied().flatten().and_then(|[_, _, most]| u64::try_from(most).ok());
    let mut stage = Stage::new(Way::Receiving, "receive buffer");
    stage.limit = limit.map(Amount::Bytes);
    stage.parameter = Some("net.ipv4.tcp_rmem, SO_RCVBUF".to_owned());
    stage.each = "each socket".into();
    stage.when_full = "its window closes and the peer waits".into();
    stage.unseen.extend(most.err().map(|missing| missing.to_string()));
    match sockets(inside) {
        Some(all) => {
            stage.now =
                Some(Amount::Bytes(all.iter().map(|each| u64::from(each.receive_queue)).sum()));
            if inside.link.addresses.is_empty() {
                stage.unseen.push(ALL_COUNTED.to_owned());
            }
        }
        None => stage.unseen.push("sockets".to_owned()),
    }
    match inside.seen.now.counters.as_ref().and_then(|all| all.get("TcpExt")) {
        Some(counters) => {
            let known =
                DROPS.iter().map(|name| counters.get(*name).and_then(|n| u64::try_from(*n).ok()));
            stage.dropped = sum(known);
            let grown = DROPS.iter().map(|name| {
                let growth = inside.seen.growth("TcpExt", name).ok().flatten();
                growth.filter(|growth| !growth.since_start).map(|growth| growth.by)
            });
            stage.dropped_since = sum(grown);
            stage = stage.note("what was dropped is of all interfaces together");
        }
        None => stage.unseen.push("what was dropped (nstat -az)".to_owned()),
    }
    stage.note("how long data waits here is the program's choice, no rate's")
}

fn application(inside: &Inside<'_, '_>) -> Stage {
    let stage = Stage::new(Way::Receiving, "application");
    let full =
        sockets(inside).map(|all| all.iter().filter(|socket| socket.receive_queue > 0).count());
    match full {
        Some(count) => stage.note(format!(
            "{} with data that no program has read",
            tcpwhy_words::said::count(count as u64, "socket")
        )),
        None => stage.unseen("sockets"),
    }
}
