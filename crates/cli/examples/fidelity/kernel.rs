//! What the observing kernel recorded of a run.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use tcpwhy_linux::lab::backend::Manifest;

/// A run's records, per connection in order of their first SYN.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// The kernel's clock at the first SYN.
    pub(super) start_ns: u64,
    pub(super) rmem_most: Option<u32>,
    pub(super) connections: Vec<Recording>,
}

/// One connection; `[client, server]`.
#[derive(Debug, Default)]
pub(super) struct Recording {
    port: u16,
    pub(super) sent: [Vec<Sent>; 2],
    pub(super) acks: [Vec<AckState>; 2],
    isn: [Option<u32>; 2],
}

/// What TCP handed down, in numbers relative to the first of each side.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Sent {
    pub(super) at_ns: u64,
    pub(super) seq: u32,
    pub(super) len: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) pieces: u32,
}

/// A sender's state after an acknowledgment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct AckState {
    pub(super) at_ns: u64,
    pub(super) una: u32,
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    pub(super) wnd: u32,
    pub(super) srtt_us: u32,
    pub(super) rcv_nxt: u32,
    pub(super) ca: u8,
    pub(super) out: u32,
    pub(super) lost: u32,
    pub(super) sacked: u32,
    pub(super) retrans: u32,
}

#[derive(Deserialize)]
struct Line<'a> {
    t: u64,
    event: &'a str,
    #[serde(default)]
    sport: u16,
    #[serde(default)]
    dport: u16,
    #[serde(default)]
    seq: u32,
    #[serde(default)]
    end_seq: u32,
    #[serde(default)]
    ack: u32,
    #[serde(default)]
    segments: u32,
    #[serde(default)]
    flags: u8,
    #[serde(default, rename = "where")]
    place: &'a str,
    #[serde(default)]
    una: u32,
    #[serde(default)]
    cwnd: u32,
    #[serde(default)]
    ssthresh: u32,
    #[serde(default)]
    wnd: u32,
    #[serde(default)]
    srtt: u32,
    #[serde(default)]
    rcvnxt: u32,
    #[serde(default)]
    ca: u8,
    #[serde(default)]
    out: u32,
    #[serde(default)]
    lost: u32,
    #[serde(default)]
    sacked: u32,
    #[serde(default)]
    retrans: u32,
}

/// Reads a run's folder.
pub(super) fn read(folder: &Path) -> anyhow::Result<Recorded> {
    let manifest = Manifest::read(folder)?;
    let rmem = manifest.knobs.get("client.net.ipv4.tcp_rmem").map(String::as_str);
    let most = rmem.and_then(|text| text.split_whitespace().last()?.parse().ok());
    let mut recorded = Recorded { rmem_most: most, ..Recorded::default() };
    let file = File::open(folder.join("kernel.jsonl"))?;
    for line in BufReader::new(file).lines() {
        let text = line?;
        let line: Line<'_> =
            serde_json::from_str(&text).with_context(|| format!("not a record: {text}"))?;
        match line.event {
            "tcp_segment" => recorded.take_segment(&line),
            "tcp_truth" if line.place == "ack" => recorded.take_ack(&line),
            _ => {}
        }
    }
    Ok(recorded)
}

const SYN: u8 = 2;
const FIN: u8 = 1;

impl Recorded {
    /// The connection of a record, and which side's it is.
    fn connection(&mut self, line: &Line<'_>) -> Option<(&mut Recording, usize)> {
        // The lab's servers listen on low ports.
        let (port, side) = if line.sport >= EPHEMERAL { (line.sport, 0) } else { (line.dport, 1) };
        let found = self.connections.iter_mut().rev().find(|c| c.port == port)?;
        Some((found, side))
    }

    fn take_segment(&mut self, line: &Line<'_>) {
        let is_syn = line.flags & SYN != 0;
        if is_syn && line.sport >= EPHEMERAL {
            if self.connections.is_empty() {
                self.start_ns = line.t;
            }
            let known =
                self.connections.iter().any(|c| c.port == line.sport && c.isn[0] == Some(line.seq));
            if !known {
                let port = line.sport;
                self.connections.push(Recording { port, ..Recording::default() });
            }
        }
        let start = self.start_ns;
        let Some((connection, side)) = self.connection(line) else { return };
        let own = *connection.isn[side].get_or_insert(if is_syn {
            line.seq
        } else {
            line.seq.wrapping_sub(1)
        });
        let has_ack = line.flags & 16 != 0;
        if has_ack && connection.isn[1 - side].is_none() {
            connection.isn[1 - side] = Some(line.ack.wrapping_sub(1));
        }
        let peer = connection.isn[1 - side].unwrap_or(0);
        let control = u32::from(is_syn) + u32::from(line.flags & FIN != 0);
        connection.sent[side].push(Sent {
            at_ns: line.t - start,
            seq: line.seq.wrapping_sub(own),
            len: line.end_seq.wrapping_sub(line.seq) - control,
            ack: if has_ack { line.ack.wrapping_sub(peer) } else { 0 },
            flags: line.flags,
            pieces: line.segments,
        });
    }

    fn take_ack(&mut self, line: &Line<'_>) {
        let start = self.start_ns;
        let Some((connection, side)) = self.connection(line) else { return };
        let own = *connection.isn[side].get_or_insert(line.una.wrapping_sub(1));
        let peer = *connection.isn[1 - side].get_or_insert(line.rcvnxt.wrapping_sub(1));
        let state = AckState {
            at_ns: line.t - start,
            una: line.una.wrapping_sub(own),
            cwnd: line.cwnd,
            ssthresh: line.ssthresh,
            wnd: line.wnd,
            srtt_us: line.srtt,
            rcv_nxt: line.rcvnxt.wrapping_sub(peer),
            ca: line.ca,
            out: line.out,
            lost: line.lost,
            sacked: line.sacked,
            retrans: line.retrans,
        };
        connection.acks[side].push(state);
    }
}

/// Clients' ports lie above (`ip_local_port_range`).
const EPHEMERAL: u16 = 32_768;
