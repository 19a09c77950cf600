//! The first difference between a kernel's run and the model's, and what kind it is.

use std::time::Duration;

use tcpwhy_model::world::{Outcome, Side, Trace};

use super::kernel::{AckState, Recorded, Sent};

/// A run of the model.
pub(super) struct Modelled {
    pub(super) outcome: Outcome,
    pub(super) trace: Trace,
}

/// What came out of a comparison.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) packets: usize,
    pub(super) acks: usize,
    /// The model's time to the last acknowledgment of data, over the kernel's.
    pub(super) duration_ratio: f64,
    pub(super) difference: Option<Difference>,
    pub(super) took: Duration,
}

/// Where they part.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) class: &'static str,
    pub(super) text: String,
    at_ns: u64,
}

pub(super) fn compare(recorded: &Recorded, modelled: &Modelled, show: bool) -> Verdict {
    let mut verdict = Verdict { duration_ratio: 1.0, ..Verdict::default() };
    let mut found: Vec<Difference> = Vec::new();
    if !modelled.outcome.done {
        let text = format!("the model's run did not end: {:?}", modelled.outcome.waiting);
        found.push(Difference { class: "not done", text, at_ns: u64::MAX });
    }
    let (mut kernel_end, mut model_end) = (0, 0);
    for (index, connection) in recorded.connections.iter().enumerate() {
        for (place, side) in [Side::Client, Side::Server].into_iter().enumerate() {
            let sent = sent_by(&modelled.trace, index as u32, side);
            // The kernel's SYN-ACK is not its socket's.
            let sent: Vec<_> = sent.into_iter().filter(|s| s.flags & SYN_ACK != SYN_ACK).collect();
            verdict.packets += connection.sent[place].len();
            found.extend(first_packet(side, &connection.sent[place], &sent));
            let syn = sent.first().filter(|first| first.flags & SYN_ACK == SYN_ACK - ACK);
            let opened = syn.map_or(1, |syn| syn.len + 1);
            let acks = without_data(&connection.acks[place], 1);
            let model_acks = without_data(&acks_of(&modelled.trace, index as u32, side), opened);
            verdict.acks += acks.len();
            found.extend(first_ack(side, &acks, &model_acks));
            let ends = (
                last_data_acked(&connection.sent[place], &acks),
                last_data_acked(&sent, &model_acks),
            );
            if let (Some(kernel), Some(model)) = ends {
                kernel_end = kernel_end.max(kernel);
                model_end = model_end.max(model);
            }
            if show {
                print(side, &connection.sent[place], &sent, &acks, &model_acks);
            }
        }
    }
    if kernel_end > 0 {
        verdict.duration_ratio = model_end as f64 / kernel_end as f64;
    }
    verdict.difference = found.into_iter().min_by_key(|difference| difference.at_ns);
    verdict
}

/// When the last byte of data was acknowledged.
fn last_data_acked(sent: &[Sent], acks: &[AckState]) -> Option<u64> {
    let end = sent.iter().filter(|s| s.len > 0).map(|s| s.seq + s.len).max().unwrap_or(0);
    acks.iter().find(|ack| ack.una >= end).map(|ack| ack.at_ns)
}

fn sent_by(trace: &Trace, connection: u32, side: Side) -> Vec<Sent> {
    let isn = |side: Side| {
        let first = trace.handed_down.iter().find(|s| s.connection == connection && s.from == side);
        first.map_or(0, |s| s.segment.seq)
    };
    let (own, peer) = (isn(side), isn(side.peer()));
    let of_side = trace.handed_down.iter().filter(|s| s.connection == connection && s.from == side);
    of_side
        .map(|seen| Sent {
            at_ns: seen.at_ns,
            seq: seen.segment.seq.wrapping_sub(own),
            len: seen.segment.len,
            ack: if seen.segment.flags.0 & 16 != 0 {
                seen.segment.ack.wrapping_sub(peer)
            } else {
                0
            },
            flags: seen.segment.flags.0,
            pieces: seen.segment.piece_count(),
        })
        .collect()
}

fn acks_of(trace: &Trace, connection: u32, side: Side) -> Vec<AckState> {
    let first = |side: Side| {
        let first = trace.handed_down.iter().find(|s| s.connection == connection && s.from == side);
        first.map_or(0, |s| s.segment.seq)
    };
    let (own, peer) = (first(side), first(side.peer()));
    let of_side = trace.samples.iter().filter(|s| s.connection == connection && s.side == side);
    of_side
        .map(|sample| AckState {
            at_ns: sample.at_ns,
            una: sample.info.snd_una.wrapping_sub(own),
            cwnd: sample.info.cwnd,
            ssthresh: sample.info.ssthresh,
            wnd: sample.info.snd_wnd,
            srtt_us: sample.info.srtt_us,
            rcv_nxt: sample.info.rcv_nxt.wrapping_sub(peer),
            ca: sample.info.ca_state as u8,
            out: sample.info.unacked,
            lost: sample.info.lost,
            sacked: sample.info.sacked,
            retrans: sample.info.retrans,
        })
        .collect()
}

/// Without those that came with data and acknowledged nothing: the kernel's fast path has no
/// observation point there, so that of what comes before its time behind such data nothing tells whether it
/// was the first. Nor where a SYN-ACK acknowledges data of the SYN, whose end is `opened`.
fn without_data(acks: &[AckState], opened: u32) -> Vec<AckState> {
    let mut kept: Vec<AckState> = Vec::new();
    let mut last = (1, 1);
    for ack in acks {
        let now = (ack.una, ack.rcv_nxt);
        let only_data = now.0 == last.0 && now.1 != last.1;
        let nothing_under_way = now.0 == last.0 && ack.out == 0;
        if !only_data && !nothing_under_way && now.0 > opened {
            kept.push(*ack);
        }
        last = now;
    }
    kept
}

/// SYN and ACK.
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;

fn first_packet(side: Side, kernel: &[Sent], model: &[Sent]) -> Option<Difference> {
    let same = |a: &Sent, b: &Sent| Sent { at_ns: 0, ..*a } == Sent { at_ns: 0, ..*b };
    let count = kernel.len().max(model.len());
    let place = (0..count).find(|i| match (kernel.get(*i), model.get(*i)) {
        (Some(a), Some(b)) => !same(a, b),
        _ => true,
    })?;
    let (a, b) = (kernel.get(place), model.get(place));
    let class = match (a, b) {
        (Some(a), Some(b)) if a.seq == b.seq && a.len != b.len => "size of a segment",
        (Some(a), Some(b)) if a.seq == b.seq && a.len == b.len && a.ack != b.ack => {
            "what is acknowledged when"
        }
        (Some(a), Some(b)) if a.seq == b.seq && a.len == b.len && a.flags != b.flags => "flags",
        (Some(_), Some(_)) => "order",
        _ => "number of packets",
    };
    let at_ns = a.map_or(u64::MAX, |a| a.at_ns).min(b.map_or(u64::MAX, |b| b.at_ns));
    let text = format!("{side:?}'s packet {place}: kernel {}, model {}", words(a), words(b));
    Some(Difference { class, text, at_ns })
}

fn words(sent: Option<&Sent>) -> String {
    sent.map_or_else(
        || "none".to_owned(),
        |s| {
            let ms = s.at_ns as f64 / 1e6;
            format!("{}+{} ack {} flags {} at {ms:.6} ms", s.seq, s.len, s.ack, s.flags)
        },
    )
}

fn first_ack(side: Side, kernel: &[AckState], model: &[AckState]) -> Option<Difference> {
    for (place, (a, b)) in kernel.iter().zip(model).enumerate() {
        let class = if a.una != b.una {
            "acknowledgments"
        } else if a.cwnd != b.cwnd {
            "cwnd"
        } else if a.ssthresh != b.ssthresh {
            "ssthresh"
        } else if a.wnd != b.wnd {
            "window"
        } else {
            continue;
        };
        let text = format!(
            "{side:?}'s ACK {place}: kernel {} cwnd {} ssthresh {} wnd {} at {:.3} ms, model {} cwnd {} ssthresh {} wnd {} at {:.3} ms",
            a.una,
            a.cwnd,
            a.ssthresh,
            a.wnd,
            a.at_ns as f64 / 1e6,
            b.una,
            b.cwnd,
            b.ssthresh,
            b.wnd,
            b.at_ns as f64 / 1e6
        );
        return Some(Difference { class, text, at_ns: a.at_ns.min(b.at_ns) });
    }
    None
}

fn print(side: Side, kernel: &[Sent], model: &[Sent], acks: &[AckState], model_acks: &[AckState]) {
    for (who, sent, acks) in [("kernel", kernel, acks), ("model", model, model_acks)] {
        let mut lines: Vec<(u64, String)> = Vec::new();
        lines.extend(sent.iter().map(|s| (s.at_ns, words(Some(s)))));
        lines.extend(acks.iter().map(|a| (a.at_ns, format!("    {a:?}"))));
        lines.sort_by_key(|(at, _)| *at);
        for (_, line) in lines {
            super::say(&format!("{who} {side:?} {line}"));
        }
    }
}
