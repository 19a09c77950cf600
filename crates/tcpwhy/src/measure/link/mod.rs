//! The narrowest link that a sender's packets passed: its rate, when it was busy, and where packets were lost.
//!
//! # Method
//! 1. ACKs tell when packets left the link ([`departures`]). 2. Between departures whose packets all waited the link
//!    worked, so these show its rate, if windows of several lengths agree ([`slopes`]). 3. It is a link's and not the
//!    sender's own pace if what was sent close together came out apart, or if the queue that such a link has explains
//!    the delays. 4. Every gap is held against the rate: it was busy, or the sender left it idle ([`busy`]).
//!
//! A sender that paces, waits for its program or for a window leaves no packet waiting, so it shows no rate; a path that
//! only jitters shows no dispersion.
//!
//! Left out: what a long transfer sends behind its first 32,768 packets; links before the tap, which space packets that are then seen spaced; what carries several flows, of which
//! this one's share is told as a rate that varies.

mod busy;
mod departures;
mod slopes;

pub(crate) use busy::Busy;

use crate::flow::event::{ACK, Block, Event, SYN, TS};
use crate::flow::run::Run;
use departures::{Departures, Gap};
use slopes::Slopes;

/// Packets that are followed: of a longer transfer the first. Ours: 47 MB of data; following all made a capture of
/// 8 million packets take 1.6 times as long.
const MOST: u32 = 1 << 15;

/// Segments of the least MSS (`TCP_MIN_MSS`, 48 bytes) in the largest frame that is known: 512 KiB of BIG TCP.
const MOST_PIECES: i64 = (512 << 10) / 48;

/// Ethernet's header, and those of TCP with and without timestamps (RFC 9293, RFC 7323).
const ETHERNET: u32 = 14;
const TCP: u32 = 20;
const TIMESTAMPS: u32 = 12;

/// Watches one sender's packets and the ACKs for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    departures: Departures,
    slopes: Slopes,
    gaps: Vec<Gap>,
    largest: u32,
    packets: u32,
}

impl Link {
    /// The sender's data: an event and what follows it. `mss` is the payload of a segment, `ip` the length of the IP
    /// header.
    #[inline]
    pub(crate) fn on_sends(&mut self, run: Run<'_>, mss: i64, ip: u32) {
        if self.packets < MOST && run.head.is_data() {
            self.follow(run, mss, ip);
        }
    }

    #[inline(never)]
    fn follow(&mut self, run: Run<'_>, mss: i64, ip: u32) {
        let stamps = if run.head.has(TS) { TIMESTAMPS } else { 0 };
        let headers = ETHERNET + ip + TCP + stamps;
        // No frame holds more segments; what says so is not cut.
        let length = i64::from(run.head.len);
        let mss = if length > mss.saturating_mul(MOST_PIECES) { length } else { mss };
        for event in run.events() {
            let mut start = event.seq;
            while start < event.end() && self.packets < MOST {
                let end = event.end().min(start + mss);
                let wire = headers + u32::try_from(end - start).unwrap_or(u32::MAX / 2);
                self.largest = self.largest.max(wire);
                self.departures.on_send((start, end), event.tap, wire);
                self.packets += 1;
                start = end;
            }
        }
    }

    /// What came back.
    #[inline]
    pub(crate) fn on_arrival(&mut self, event: &Event, blocks: &[Block]) {
        if self.departures.are_due() && event.has(ACK) && !event.has(SYN) {
            self.depart(event, blocks);
        }
    }

    #[inline(never)]
    fn depart(&mut self, event: &Event, blocks: &[Block]) {
        if let Some((gap, waited)) = self.departures.on_ack(event.tap, event.ack, blocks) {
            self.slopes.push(&gap, waited);
            self.gaps.push(gap);
        }
    }

    /// What is known of the link at the end; `None` where nothing proves one.
    pub(crate) fn measured(&self) -> Option<Busy> {
        let (agreed, base) = (self.slopes.agreed()?, self.departures.base?);
        busy::measure(&self.gaps, &agreed, base, self.largest, &self.departures.lost)
    }
}
