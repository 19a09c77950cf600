//! Receive buffers are full of data that came out of order.
//!
//! # What it says
//! A segment is missing, and what came behind it fills the buffer: the program has read everything that is in order, and waits for
//! the hole to be filled. What comes now may be dropped for want of room, in the worst case the very repeat that would fill it.
//!
//! # How we know
//! `Recv-Q` is 0 and more than three quarters of the buffer are taken (`r` and `rb` of skmem, in both looks where there are two):
//! what is in order would stand in `Recv-Q`. One look tells it.
//!
//! # What it is not
//! Not a program that reads too slowly: it has nothing to read. Not where the segment was lost.
//!
//! # What to do
//! Find the loss: the sender's socket tells how often it retransmitted, captures at both ends tell where. Small segments fill a
//! buffer soon, for each takes its overhead; a larger buffer (`tcp_rmem`) holds more of them.
//!
//! # Sources
//! Linux `tcp_data_queue_ofo`, `tcp_prune_ofo_queue`, `sk_rmem_alloc` counts both queues (v6.12); skmem of ss(8). Three
//! quarters: ours, as in `RECEIVE_QUEUE_FULL`.

use core::fmt::Write as _;

use super::flows::{self, time};
use super::{Check, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::flow::Flow;
use crate::seen::{Asked, Seen};
use crate::snapshot::Socket;
use tcpwhy_words::said::{bytes, grouped};

pub(super) const CHECK: Check = Check {
    code: "OUT_OF_ORDER_FULL",
    file: include_str!("out_of_order_full.rs"),
    group: Group::Receiving,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let measured = flows::measured(seen)?.into_iter().map(|(flow, ..)| flow);
    let full = measured.filter(|flow| flow.always(is_full));
    let full = flows::worst(full.collect(), |flow| flow.memory().map_or(0, |memory| memory.drops));
    let Some(memory) = full.first().and_then(|flow| flow.memory()) else { return Ok(Vec::new()) };
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: if memory.drops > 0 { Confidence::High } else { Confidence::Medium },
        scope: Scope::Netns,
        title: format!(
            "the receive buffer is full of out-of-order data in {}",
            flows::counted(seen, &full)
        ),
        why: format!(
            "Recv-Q is 0, and {} of {} are taken: that is what came behind a missing segment. The program waits for \
             the hole, and what comes may be dropped.",
            bytes(memory.rmem.into()),
            bytes(memory.rcvbuf.into())
        ),
        not: "not a program that reads too slowly; not where the segment was lost".to_owned(),
        evidence: flows::evidence(seen, &full, says),
        fixes: vec![words::advise(
            "look at the sender's socket (ss -tinm there: retrans, lost, rto), and capture at both ends",
            "",
        )],
        ..Finding::default()
    }])
}

fn is_full(socket: &Socket) -> bool {
    socket.receive_queue == 0
        && socket
            .memory
            .is_some_and(|memory| u64::from(memory.rmem) * 4 > u64::from(memory.rcvbuf) * 3)
}

/// In the kernel's words.
fn says(flow: &Flow<'_>) -> String {
    let Some((info, memory)) = flow.info().zip(flow.memory()) else { return String::new() };
    let mut said = format!("Recv-Q 0, r{} of rb{}", memory.rmem, memory.rcvbuf);
    if memory.drops > 0 {
        let _ = write!(said, ", {} packets dropped", grouped(memory.drops.into()));
    }
    if let Some(came) = info.rcv_ooopack {
        let _ = write!(said, ", rcv_ooopack {came}");
    }
    if let Some(ago) = info.last_data_recv_ns {
        let _ = write!(said, ", data last came {} ago", time(ago));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::snapshot::{Info, Memory, Snapshot, Source};

    fn holding(receive_queue: u32, rmem: u32, rcvbuf: u32, drops: u32) -> Snapshot {
        let memory = Memory { rmem, rcvbuf, drops, ..Memory::default() };
        let info = Info { rcv_ooopack: Some(31), ..Info::default() };
        let mut socket = socket(0, &info, memory);
        socket.receive_queue = receive_queue;
        once(connected(&[], Vec::new(), vec![socket]))
    }

    #[test]
    fn a_hole_and_a_buffer_behind_it() {
        insta::assert_snapshot!(shown(&CHECK, &holding(0, 127_488, 131_072, 2821)));
    }

    #[test]
    fn what_is_not_read_or_leaves_a_quarter_is_none() {
        let number =
            |queue, rmem| judged(&CHECK, &holding(queue, rmem, 131_072, 9)).expect("seen").len();
        assert_eq!([number(0, 98_305), number(0, 98_304), number(1, 127_488)], [1, 0, 0]);
    }

    #[test]
    fn without_sockets_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
    }
}
