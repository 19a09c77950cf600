//! What is fixed for a connection: segment size, window shifts, where the tap is.

use std::collections::VecDeque;

use crate::clocks::TapTime;
use crate::flow::event::{ACK, Event, SYN};
use crate::flow::facts::Facts;
use crate::measure::clock::SideClock;
use crate::offsets::Offset;
use crate::report::Vantage;
use crate::wire::Options;

/// A tap this near to a side, in time, may stand on its host. Ours: chosen so that the idle pair of
/// `testdata/articles`, whose far side answers within 0.19 ms, is not claimed; not measured widely.
const HOST_NS: i64 = 100_000;

/// Where the tap is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) vantage: Vantage,
    /// Constant way from the tap to each side's stack.
    pub(crate) way_in: [i64; 2],
}

/// Effective payload of a full segment: both MSS options, less the options every segment carries
/// (RFC 9293 §3.7.1, RFC 6691); without a handshake, the largest payload that is not a
/// super-segment.
pub(crate) fn mss(facts: &Facts) -> u32 {
    // RFC 7323 appendix A: 10 bytes of timestamps and two of padding, if both SYNs have them (§2.2).
    let refuses = |o: Options| o.timestamps.is_none() && !o.incomplete;
    let refused = facts.sides.iter().any(|s| s.syn.is_some_and(refuses));
    let stamped = !refused && facts.sides.iter().any(|s| s.timestamps);
    let options = if stamped { 12 } else { 0 };
    let announced = [0, 1].map(|side| facts.sides[side].syn.and_then(|o| o.mss).map(u32::from));
    let agreed = match announced {
        [Some(a), Some(b)] => Some(a.min(b)),
        [a, b] => a.or(b),
    };
    let agreed = agreed.map(|mss| mss.saturating_sub(options).max(1));
    let longest = facts.sides.iter().map(|s| s.longest_frame).max().unwrap_or(0);
    // Many segments of one length that no write ended, and none longer.
    let cut = facts
        .sides
        .iter()
        .filter(|s| s.plain_count >= 4 && s.longest_plain == s.longest_frame)
        .map(|s| s.longest_plain)
        .max();
    // Ethernet without a handshake: 1500 less the headers and options. Where those were cut off, full segments tell.
    let usual = if facts.endpoints[0].is_ipv6() { 1440 } else { 1460 } - options;
    let usual = if longest.saturating_add(12) == usual { longest } else { usual };
    match (agreed, cut) {
        // Smaller segments throughout: the path's MTU, or half of a small window, is the limit.
        (Some(agreed), Some(cut)) if longest <= cut && cut < agreed => cut,
        (Some(agreed), _) => agreed,
        (None, Some(cut)) if longest <= cut && cut <= usual => cut,
        (None, _) => usual,
    }
}

/// Windows that fell by what arrived, twice the same way, tell their shift. Ours: not measured.
const ENOUGH_FALLS: u32 = 2;

/// Announcements that may be on their way to a sender; of more the oldest counts as known, which leaves the guess
/// lower. Ours: as many as packets whose arrival is remembered (`measure::arrivals`).
const MOST_ON_WAY: usize = 2048;

/// By how much a receiver's windows are scaled, for captures that lack the handshake: at least so
/// much that the sender never exceeded them, and at most so much that their right edge never went back
/// (RFC 9293 §3.8.6: "a receiver SHOULD NOT shrink the window"; RFC 7323 §2.4: by rounding at most).
#[derive(Clone, Debug, Default)]
pub(crate) struct ShiftGuess {
    nxt: Option<Offset>,
    /// What the receiver announced last.
    announced: Option<Announced>,
    /// What else it announced and the sender may not know yet, and the newest that it does.
    on_way: VecDeque<Announced>,
    known: Option<Announced>,
    shift: u8,
    /// The most that a fall of the window allows, and how many falls allow no more.
    most: Option<(u8, u32)>,
    /// Some fall is too deep for any shift: this receiver takes back what it allowed.
    takes_back: bool,
}

/// An announcement that passed the tap: the window, unscaled, beyond what was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Announced {
    tap: TapTime,
    una: Offset,
    window: i64,
}

impl ShiftGuess {
    /// A packet of the sender, to whom the way from the tap and back is at least `way`.
    pub(crate) fn push(&mut self, event: &Event, way: i64) {
        if event.len == 0 || event.has(SYN) {
            return;
        }
        while let Some(arrived) = self.on_way.pop_front_if(|next| next.tap + way <= event.tap) {
            self.known = Some(arrived);
        }
        let nxt = self.nxt.map_or(event.end(), |nxt| nxt.max(event.end()));
        self.nxt = Some(nxt);
        if let Some(Announced { una, window, .. }) = self.known {
            while window > 0 && nxt - una > window << self.shift && self.shift < 14 {
                self.shift += 1;
            }
        }
    }

    /// A packet of the receiver.
    pub(crate) fn peer(&mut self, event: &Event) {
        let una = self.announced.map(|before| before.una);
        if !event.has(ACK) || event.has(SYN) || una.is_some_and(|una| event.ack < una) {
            return;
        }
        let now = Announced { tap: event.tap, una: event.ack, window: i64::from(event.window) };
        if let Some(before) = self.announced.replace(now) {
            let fallen = before.window - now.window - 1;
            if fallen > 0 {
                self.on_fall(fallen, now.una - before.una);
            }
        }
        if self.on_way.len() == MOST_ON_WAY {
            self.known = self.on_way.pop_front();
        }
        self.on_way.push_back(now);
    }

    /// The window fell by more than `fallen` units while `acked` bytes arrived.
    fn on_fall(&mut self, fallen: i64, acked: i64) {
        let Some(most) = (0..=14).rev().find(|shift| fallen << shift < acked) else {
            self.takes_back = true;
            return;
        };
        self.most = match self.most {
            Some((least, falls)) if least == most => Some((least, falls + 1)),
            Some((least, falls)) if least < most => Some((least, falls)),
            _ => Some((most, 1)),
        };
    }

    /// The least that it can be.
    pub(crate) fn shift(&self) -> u8 {
        self.shift
    }

    /// Whether it can be nothing else.
    pub(crate) fn is_certain(&self) -> bool {
        let is_most = |(most, falls)| most == self.shift && falls >= ENOUGH_FALLS;
        !self.takes_back && self.most.is_some_and(is_most)
    }
}

/// On whose host the tap is, and how far each stack is from it (limits-method section 2).
pub(crate) fn place(facts: &Facts, clocks: &[SideClock; 2]) -> Place {
    let floors = [clocks[0].floor(), clocks[1].floor()];
    let (vantage, _) = vantage(facts, floors);
    let mut way_in = floors.map(|f| f.unwrap_or(0) / 2);
    match vantage {
        Vantage::Client => way_in[0] = 0,
        Vantage::Server => way_in[1] = 0,
        Vantage::Middle | Vantage::Unknown => {}
    }
    Place { vantage, way_in }
}

/// Why [`place`] says so.
pub(crate) fn vantage_in_words(facts: &Facts, clocks: &[SideClock; 2]) -> String {
    vantage(facts, [clocks[0].floor(), clocks[1].floor()]).1.words()
}

const HOSTS: [Vantage; 2] = [Vantage::Client, Vantage::Server];
const NAMES: [&str; 2] = ["client", "server"];

/// Why the tap is thought to stand somewhere. Put into words only for accounts that are written in full.
#[derive(Clone, Copy, Debug)]
enum Why {
    Told(&'static str),
    Marked { side: usize, is_routed: bool },
    Summed { side: usize },
    Offloaded { side: usize, longest: u32, peer: i64 },
    Near { side: usize, floors: [i64; 2] },
    Unproven { floors: [i64; 2] },
}

impl Why {
    fn words(self) -> String {
        match self {
            Self::Told(words) => words.to_owned(),
            Self::Marked { side, is_routed } => {
                let but = if is_routed {
                    ", but a router lowered their hop limit before: it forwards them"
                } else {
                    ""
                };
                format!("the capture marks the {}'s packets as sent by this host{but}", NAMES[side])
            }
            Self::Summed { side } => format!(
                "the {}'s packets have checksums left for its network card to finish",
                NAMES[side]
            ),
            Self::Offloaded { side, longest, peer } => format!(
                "frames of up to {longest} bytes of the {}, longer than a segment, are acknowledged {:.3} ms later: this host sent them",
                NAMES[side],
                peer as f64 / 1e6
            ),
            Self::Near { side, floors } => near_words(side, floors[side], floors[1 - side]),
            Self::Unproven { floors } => unproven_words(floors),
        }
    }
}

/// Where the tap is, and why.
fn vantage(facts: &Facts, floors: [Option<i64>; 2]) -> (Vantage, Why) {
    if facts.endpoints[0].ip() == facts.endpoints[1].ip() || facts.endpoints[0].ip().is_loopback() {
        return (Vantage::Unknown, Why::Told("both ends are on this host"));
    }
    if let Some(found) = by_marks(facts).or_else(|| by_checksums(facts)) {
        return found;
    }
    let [Some(client), Some(server)] = floors else {
        let why = if facts.is_one_way() {
            "no packet answers another: the capture holds one direction"
        } else {
            "too few packets answer others to tell how far either side is"
        };
        return (Vantage::Unknown, Why::Told(why));
    };
    let floors = [client, server];
    let found = by_offload(facts, floors).or_else(|| by_nearness(facts, floors));
    found.unwrap_or((Vantage::Unknown, Why::Unproven { floors }))
}

/// The capture says which packets this host sent and received.
fn by_marks(facts: &Facts) -> Option<(Vantage, Why)> {
    let forwarded = |side: usize| facts.sides[side].incoming > 0 && facts.sides[side].outgoing == 0;
    if forwarded(0) && forwarded(1) {
        let why = "the capture marks both sides' packets as received by this host";
        return Some((Vantage::Middle, Why::Told(why)));
    }
    let own = [0, 1].map(|side| facts.sides[side].outgoing + facts.sides[1 - side].incoming);
    let clear = own[0].min(own[1]) * 10 <= own[0].max(own[1]) && own[0] != own[1];
    let side = usize::from(own[1] > own[0]);
    if !clear {
        return None;
    }
    let is_routed = is_routed(facts, side);
    let vantage = if is_routed { Vantage::Middle } else { HOSTS[side] };
    Some((vantage, Why::Marked { side, is_routed }))
}

/// A host hands its packets to the network card with unfinished checksums, and the card finishes
/// them behind the tap; what comes from elsewhere has them finished. Between namespaces of one
/// machine nobody finishes them, so they must be good the other way.
fn by_checksums(facts: &Facts) -> Option<(Vantage, Why)> {
    let side = (0..2).find(|side| {
        let (own, peer) = (&facts.sides[*side], &facts.sides[1 - *side]);
        own.open_sums > 0 && own.good_sums == 0 && peer.good_sums > 0 && peer.open_sums == 0
    })?;
    Some((HOSTS[side], Why::Summed { side }))
}

/// Whether no packet of either side had its checksum finished: none was made for a wire.
fn is_within_one_computer(facts: &Facts) -> bool {
    facts.sides.iter().all(|side| side.open_sums > 0 && side.good_sums == 0)
}

/// A hop limit that a router has lowered: this side is on another network.
fn is_routed(facts: &Facts, side: usize) -> bool {
    facts.sides[side].ttl.is_some_and(|ttl| !matches!(ttl, 64 | 128 | 255))
}

/// Frames longer than a segment exist only between a stack and its network card. Sent ones pass
/// the tap a tenth of a round trip or more before their ACK, received ones (GRO) just before it.
///
/// Between namespaces, containers and virtual machines of one computer they go all the way as they are; without a
/// delay between, either end acknowledges them at once: there they tell nothing.
fn by_offload(facts: &Facts, floors: [i64; 2]) -> Option<(Vantage, Why)> {
    if is_within_one_computer(facts) && floors.iter().all(|floor| *floor < HOST_NS) {
        return None;
    }
    let path = (floors[0] + floors[1]).max(1);
    let mss = mss(facts);
    let side = (0..2).find(|side| {
        let longer = facts.sides[*side].longest_frame > mss;
        let (own, peer) = (floors[*side], floors[1 - side]);
        longer && peer * 10 >= path && own <= peer * 4 && !is_routed(facts, *side)
    })?;
    let (longest, peer) = (facts.sides[side].longest_frame, floors[1 - side]);
    Some((HOSTS[side], Why::Offloaded { side, longest, peer }))
}

/// One side answers at once, the other does not.
fn by_nearness(facts: &Facts, floors: [i64; 2]) -> Option<(Vantage, Why)> {
    let near = (0..2).find(|side| {
        let (own, peer) = (floors[*side], floors[1 - side]);
        own < HOST_NS && own * 5 < peer && !is_routed(facts, *side)
    });
    if let Some(side) = near {
        return Some((HOSTS[side], Why::Near { side, floors }));
    }
    let far =
        floors.iter().all(|floor| *floor > HOST_NS) && is_routed(facts, 0) && is_routed(facts, 1);
    let why = "both sides' hop limits were lowered before this tap, and both answer late";
    far.then_some((Vantage::Middle, Why::Told(why)))
}

/// Why `side` seems near.
fn near_words(side: usize, own: i64, peer: i64) -> String {
    let mut why = String::with_capacity(80);
    why.push_str("the ");
    why.push_str(NAMES[side]);
    why.push_str(" answers within ");
    push_ms(&mut why, own);
    why.push_str(" ms, its peer within ");
    push_ms(&mut why, peer);
    why.push_str(" ms");
    why
}

/// Why nothing is said of the tap's place.
fn unproven_words(floors: [i64; 2]) -> String {
    let mut why = String::with_capacity(112);
    why.push_str("the client answers within ");
    push_ms(&mut why, floors[0]);
    why.push_str(" ms, the server within ");
    push_ms(&mut why, floors[1]);
    why.push_str(" ms: neither is proven to be this host");
    why
}

/// Appends `ns` in milliseconds with three decimals, as `{:.3}` shows them.
fn push_ms(text: &mut String, ns: i64) {
    use core::fmt::Write as _;
    // What lies in the middle of two is rounded by its nearest floating-point number.
    if !(0..1_000_000_000).contains(&ns) || ns % 1000 == 500 {
        let _ = write!(text, "{:.3}", ns as f64 / 1e6);
        return;
    }
    let mut digits = [b'0'; 10];
    let mut rest = ((ns + 500) / 1000) as u32;
    let mut from = digits.len();
    while rest > 0 || digits.len() - from < 4 {
        from -= 1;
        digits[from] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let (whole, thousandths) = digits.split_at(7);
    text.extend(whole[from..].iter().map(|digit| char::from(*digit)));
    text.push('.');
    text.extend(thousandths.iter().map(|digit| char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The shift if 6000 bytes are sent by 30 ms, the way back being `way`: 100 units are announced at 0 behind byte 0,
    /// at 20 ms behind byte 3000.
    fn guessed(way: i64) -> u8 {
        let mut guess = ShiftGuess::default();
        for (tap, ack) in [(0, 0), (20_000_000, 3000)] {
            guess.peer(&Event {
                tap: TapTime(tap),
                ack: Offset::at(ack),
                window: 100,
                bits: ACK,
                ..Event::default()
            });
        }
        guess.push(&Event { tap: TapTime(30_000_000), len: 6000, ..Event::default() }, way);
        guess.shift()
    }

    #[test]
    fn a_window_was_as_large_as_its_sender_took_it_when_it_knew_no_later_one() {
        assert_eq!(guessed(0), 5, "3000 in flight");
        assert_eq!(guessed(10_000_000), 5);
        assert_eq!(guessed(10_000_001), 6, "6000");
        assert_eq!(guessed(40_000_000), 0, "it knows of none yet");
    }

    proptest! {
        #[test]
        fn milliseconds_are_shown_as_the_formatter_does(ns in prop_oneof![-9i64..2_000_000, 0i64..4_000_000_000]) {
            let mut text = String::new();
            push_ms(&mut text, ns);
            prop_assert_eq!(text, format!("{:.3}", ns as f64 / 1e6));
        }
    }
}
