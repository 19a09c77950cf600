//! What is fixed for a connection: segment size, window shifts, where the tap stands.

use crate::flow::connection::Flow;
use crate::flow::event::{ACK, Event, SYN};
use crate::measure::clock::SideClock;
use crate::report::Vantage;

/// A tap this near to a side, in time, may stand on its host. Ours: stacks answer a SYN-ACK or a
/// request within 5 to 60 us on the machines measured; a delay of the peer's own egress may put
/// a far tap within 0.2 ms.
const HOST_NS: i64 = 100_000;

/// Where the tap stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) vantage: Vantage,
    pub(crate) evidence: String,
    /// Constant way from the tap to each side's stack.
    pub(crate) way_in: [i64; 2],
}

/// Effective payload of a full segment: both MSS options, less the options every segment carries
/// (RFC 9293 §3.7.1, RFC 6691); without a handshake, the largest payload that is not a
/// super-segment.
pub(crate) fn mss(flow: &Flow) -> u32 {
    // RFC 7323 appendix A: 10 bytes of timestamps and two of padding.
    let options = if flow.sides.iter().any(|s| s.timestamps) { 12 } else { 0 };
    let announced = [0, 1].map(|side| flow.sides[side].syn.and_then(|o| o.mss).map(u32::from));
    let agreed = match announced {
        [Some(a), Some(b)] => Some(a.min(b)),
        [a, b] => a.or(b),
    };
    let agreed = agreed.map(|mss| mss.saturating_sub(options).max(1));
    let longest = flow.sides.iter().map(|s| s.longest_frame).max().unwrap_or(0);
    // Many segments of one length that no write ended, and none longer.
    let cut = flow
        .sides
        .iter()
        .filter(|s| s.plain_count >= 4 && s.longest_plain == s.longest_frame)
        .map(|s| s.longest_plain)
        .max();
    // Ethernet without a handshake: 1500 - 40 - options.
    let usual = 1460 - options;
    match (agreed, cut) {
        // Smaller segments throughout: the path's MTU, or half of a small window, is the limit.
        (Some(agreed), Some(cut)) if longest <= cut && cut < agreed => cut,
        (Some(agreed), _) => agreed,
        (None, Some(cut)) if longest <= cut && cut <= usual => cut,
        (None, _) => usual,
    }
}

/// The least shift under which the sender never exceeded the window (for captures that lack the
/// handshake).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShiftGuess {
    nxt: Option<i64>,
    una: Option<i64>,
    window: i64,
    shift: u8,
}

impl ShiftGuess {
    /// A packet of the sender.
    pub(crate) fn push(&mut self, event: &Event) {
        if event.len == 0 || event.has(SYN) {
            return;
        }
        self.nxt = Some(self.nxt.map_or(event.end(), |n| n.max(event.end())));
        if let (Some(nxt), Some(una)) = (self.nxt, self.una) {
            while self.window > 0 && nxt - una > self.window << self.shift && self.shift < 14 {
                self.shift += 1;
            }
        }
    }

    /// A packet of the receiver.
    pub(crate) fn peer(&mut self, event: &Event) {
        if event.has(ACK) && !event.has(SYN) && self.una.is_none_or(|una| event.ack >= una) {
            self.una = Some(event.ack);
            self.window = i64::from(event.window);
        }
    }

    /// The guess.
    pub(crate) fn shift(&self) -> u8 {
        self.shift
    }
}

/// Whose host the tap stands on, and how far each stack is from it (limits-method section 2).
pub(crate) fn place(flow: &Flow, clocks: &[SideClock; 2]) -> Place {
    let floors = [clocks[0].floor(), clocks[1].floor()];
    let (vantage, evidence) = vantage(flow, floors);
    let mut way_in = floors.map(|f| f.unwrap_or(0) / 2);
    match vantage {
        Vantage::Client => way_in[0] = 0,
        Vantage::Server => way_in[1] = 0,
        Vantage::Middle | Vantage::Unknown => {}
    }
    Place { vantage, evidence, way_in }
}

fn vantage(flow: &Flow, floors: [Option<i64>; 2]) -> (Vantage, String) {
    const HOSTS: [Vantage; 2] = [Vantage::Client, Vantage::Server];
    const NAMES: [&str; 2] = ["client", "server"];
    let mut own = [0u32; 2];
    for side in 0..2 {
        own[side] = flow.sides[side].outgoing + flow.sides[1 - side].incoming;
    }
    if own[0] != own[1] && own[0].min(own[1]) * 10 <= own[0].max(own[1]) {
        let side = usize::from(own[1] > own[0]);
        return (
            HOSTS[side],
            format!("the capture marks the {}'s packets as sent by this host", NAMES[side]),
        );
    }
    if flow.endpoints[0].ip() == flow.endpoints[1].ip() || flow.endpoints[0].ip().is_loopback() {
        return (Vantage::Unknown, "both ends are on this host".to_owned());
    }
    let forwarded = |side: usize| flow.sides[side].incoming > 0 && flow.sides[side].outgoing == 0;
    if forwarded(0) && forwarded(1) {
        return (
            Vantage::Middle,
            "the capture marks both sides' packets as received by this host".to_owned(),
        );
    }
    let mss = mss(flow);
    let routed =
        |side: usize| flow.sides[side].ttl.is_some_and(|ttl| !matches!(ttl, 64 | 128 | 255));
    // Offload: frames longer than a segment exist only between a stack and its network card. Sent
    // ones pass the tap a round trip before their ACK, received ones (GRO) just before it.
    for side in 0..2 {
        let info = &flow.sides[side];
        let big = info.longest_frame > mss && info.data_frames > 0;
        let (Some(own_floor), Some(peer_floor)) = (floors[side], floors[1 - side]) else {
            continue;
        };
        let path = (own_floor + peer_floor).max(1);
        if big && peer_floor * 10 >= path && !routed(side) && own_floor <= peer_floor * 4 {
            return (
                HOSTS[side],
                format!(
                    "frames of up to {} bytes of the {}, longer than a segment, are acknowledged {:.2} ms later: this host sent them",
                    info.longest_frame,
                    NAMES[side],
                    peer_floor as f64 / 1e6
                ),
            );
        }
    }
    let (Some(client), Some(server)) = (floors[0], floors[1]) else {
        return (
            Vantage::Unknown,
            "no packet answers another: the capture holds one direction".to_owned(),
        );
    };
    for (side, near, far) in [(0, client, server), (1, server, client)] {
        if near < HOST_NS && near * 5 < far && !routed(side) {
            return (
                HOSTS[side],
                format!(
                    "the {} answers within {:.3} ms, its peer within {:.3} ms",
                    NAMES[side],
                    near as f64 / 1e6,
                    far as f64 / 1e6
                ),
            );
        }
    }
    if client > HOST_NS && server > HOST_NS && (routed(0) && routed(1)) {
        return (
            Vantage::Middle,
            "both sides' hop limits were lowered before this tap, and both answer late".to_owned(),
        );
    }
    (
        Vantage::Unknown,
        format!(
            "the client answers within {:.3} ms, the server within {:.3} ms: neither is proven to be this host",
            client as f64 / 1e6,
            server as f64 / 1e6
        ),
    )
}
