//! How fast packets came out of the link while each of them waited: windows of several lengths, and the rate that
//! most bytes of them agree on.
//!
//! A window of packets that all waited takes as long as the link takes for them, whatever its length. What makes a
//! short one look fast (ACKs that come together, an aggregating radio) or slow is gone in a longer one (Carter and
//! Crovella 1996; Dovrolis, Ramanathan and Moore 2001; Paxson 1997). So a rate counts if windows of one length agree on
//! it and all longer ones do not contradict.

use std::collections::BTreeMap;

use super::gap::Gap;

/// Packets a window has at the least: octaves of aggregation (GRO gathers up to 44).
const SCALES: [u32; 5] = [1, 4, 16, 64, 256];
/// Windows without which a scale says nothing: an initial window of ten packets has nine gaps (RFC 6928).
const LEAST_WINDOWS: u32 = 8;
/// Windows of one rate without which it is none: one late ACK for many packets would tell most of the bytes. Ours: half of
/// those.
const LEAST_ALIKE: u32 = LEAST_WINDOWS / 2;
/// Bins are 1 % wide: the natural logarithm of 1.01.
const BIN: f64 = 0.009_950_330_853_168_092;
/// The bins that hold a link's rate: 5 (5 %) for a steady link, 27 (30 %) for one that varies. Ours: 2 to 10 % and 20
/// to 50 % move nothing by more than 0.003.
const WIDTHS: [u16; 2] = [5, 27];
/// Where departures are known to a tick, a window lasts as many, so that two of them are less than the width of a mode. Ours.
const COARSE_TICKS: i64 = 40;

/// Coarse send times tell how long a window of this many ticks took to be sent: two of them are uncertain.
const LONG_TICKS: i64 = 4;
/// Longer windows contradict beyond this.
const SAME: core::ops::RangeInclusive<f64> = 0.7..=1.3;

/// Windows whose slopes lie in one bin.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    windows: u32,
    bytes: f64,
    time: f64,
    /// Of those that were sent in half the time at most.
    dispersed: f64,
}

/// Windows of one length.
#[derive(Clone, Debug, Default)]
struct Scale {
    bins: BTreeMap<u16, Bin>,
    windows: u32,
    dispersed_packets: u64,
    open: Window,
    /// With coarse send times: what is long enough to tell that it was sent in less.
    long: Window,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    work: u64,
    time: i64,
    packets: u32,
    /// When the last packet before it was sent.
    since: i64,
}

impl Window {
    /// Adds a gap; the window, if it is now long enough.
    fn push(&mut self, gap: &Gap, since: i64, packets: u32, time: i64) -> Option<Self> {
        if self.packets == 0 {
            self.since = since;
        }
        self.work += u64::from(gap.work);
        self.time += gap.to - gap.from;
        self.packets += gap.packets;
        (self.packets >= packets && self.time >= time).then(|| core::mem::take(self))
    }

    /// Whether its last packet was sent by `last`, and all in half of its time at most.
    fn is_dispersed(&self, last: i64) -> bool {
        last - self.since <= self.time / 2
    }

    /// Bytes per nanosecond.
    fn slope(&self) -> f64 {
        self.work as f64 / self.time as f64
    }
}

/// The rate that windows agree on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Agreed {
    /// Bytes on the wire per nanosecond: best, and the quartiles of all windows of that length.
    pub(super) rate: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// It varies by up to 30 %.
    pub(super) varies: bool,
    /// Of what was sent in half the time that it took to come out, the share that came at this rate.
    pub(super) dispersed: Option<f64>,
}

/// All windows of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Slopes {
    scales: [Scale; SCALES.len()],
    /// The last gap was not of packets that waited: a token bucket has saved credit for the next.
    is_fresh: Option<bool>,
    /// When the last packet of the gap before was sent.
    last: i64,
}

impl Slopes {
    /// Takes the next gap; `waited` if each of its packets waited for the one before it. Send times have a resolution
    /// of `tick`.
    pub(super) fn push(&mut self, gap: &Gap, waited: bool, tick: i64) {
        let since = core::mem::replace(&mut self.last, gap.last);
        if !waited {
            self.pause();
        } else if self.is_fresh.replace(false) == Some(false) {
            for (scale, least) in self.scales.iter_mut().zip(SCALES) {
                scale.push(gap, since, least, tick);
            }
        }
    }

    /// What waited so far, and what will, are not of one window.
    pub(super) fn pause(&mut self) {
        for scale in &mut self.scales {
            (scale.open, scale.long) = (Window::default(), Window::default());
        }
        self.is_fresh = Some(true);
    }

    /// The share of what came in windows of four packets that came faster than a `rate` by so much that this would not
    /// be a link's.
    pub(super) fn faster_than(&self, rate: f64) -> f64 {
        let scale = &self.scales[1];
        let all: f64 = scale.bins.values().map(|bin| bin.bytes).sum();
        let fast = scale.bins.range(bin(rate * SAME.end()) + 1..).map(|(_, bin)| bin.bytes);
        if all > 0.0 { fast.sum::<f64>() / all } else { 0.0 }
    }

    /// The rate that half of the bytes of one length agree on, or more.
    pub(super) fn agreed(&self) -> Option<Agreed> {
        let told = |scale: &&Scale| scale.windows >= LEAST_WINDOWS;
        let mut best: Option<(f64, usize, Agreed)> = None;
        for width in WIDTHS {
            for (at, scale) in self.scales.iter().enumerate().rev().filter(|(_, s)| told(s)) {
                let Some((rate, share)) = scale.mode(width) else { continue };
                let mut longer = self.scales[at + 1..].iter().filter(told);
                if longer.any(|other| !SAME.contains(&(other.quantile(0.5) / rate))) {
                    continue;
                }
                if best.is_none_or(|best| share > best.0) {
                    let (low, high) = (scale.quantile(0.25), scale.quantile(0.75));
                    let dispersed = scale.dispersed_at(rate, width);
                    let varies = width == WIDTHS[1];
                    best = Some((share, at, Agreed { rate, low, high, varies, dispersed }));
                }
            }
            if let Some((share, _, agreed)) = best
                && share >= 0.5
            {
                return Some(agreed);
            }
        }
        None
    }
}

impl Scale {
    fn push(&mut self, gap: &Gap, since: i64, least: u32, tick: i64) {
        let long = (gap.coarse * COARSE_TICKS).max(1);
        let Some(window) = self.open.push(gap, since, least, long) else {
            if tick > 0 {
                self.push_long(gap, since, least, tick);
            }
            return;
        };
        let bin = self.bins.entry(bin(window.slope())).or_default();
        bin.windows += 1;
        bin.bytes += window.work as f64;
        bin.time += window.time as f64;
        self.windows += 1;
        if tick > 0 {
            self.push_long(gap, since, least, tick);
        } else if window.is_dispersed(gap.last) {
            bin.dispersed += window.work as f64;
            self.dispersed_packets += u64::from(window.packets);
        }
    }

    fn push_long(&mut self, gap: &Gap, since: i64, least: u32, tick: i64) {
        if let Some(window) = self.long.push(gap, since, least, tick * LONG_TICKS)
            && window.is_dispersed(gap.last + 2 * tick)
        {
            self.bins.entry(bin(window.slope())).or_default().dispersed += window.work as f64;
            self.dispersed_packets += u64::from(window.packets);
        }
    }

    /// The middle of the `width` bins that most bytes came at, and their share of all; `None` if too few windows did.
    fn mode(&self, width: u16) -> Option<(f64, f64)> {
        let within = |first: u16| self.bins.range(first..first.saturating_add(width));
        let bytes = |first: u16| within(first).map(|(_, bin)| bin.bytes).sum::<f64>();
        let most = self.bins.keys().map(|first| (*first, bytes(*first)));
        let (first, most) = most.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let alike: u32 = within(first).map(|(_, bin)| bin.windows).sum();
        if alike < LEAST_ALIKE {
            return None;
        }
        let all: f64 = self.bins.values().map(|bin| bin.bytes).sum();
        Some((quantile(within(first).map(|(_, bin)| bin), 0.5 * most), most / all))
    }

    /// The slope below which this share of the bytes came.
    fn quantile(&self, share: f64) -> f64 {
        let all: f64 = self.bins.values().map(|bin| bin.bytes).sum();
        quantile(self.bins.values(), share * all)
    }

    /// Of what was sent in half the time that it took to come out, the share that came at about `rate`.
    fn dispersed_at(&self, rate: f64, width: u16) -> Option<f64> {
        if self.dispersed_packets < u64::from(LEAST_WINDOWS) {
            return None;
        }
        let (middle, all) = (bin(rate), self.bins.values().map(|bin| bin.dispersed).sum::<f64>());
        let near = self.bins.range(middle.saturating_sub(width)..=middle.saturating_add(width));
        (all > 0.0).then(|| near.map(|(_, bin)| bin.dispersed).sum::<f64>() / all)
    }
}

/// The slope of the bin in which the `bytes`-th byte lies.
fn quantile<'a>(bins: impl Iterator<Item = &'a Bin>, bytes: f64) -> f64 {
    let mut below = 0.0;
    let mut all = bins.skip_while(|bin| {
        below += bin.bytes;
        below < bytes
    });
    all.next().map_or(0.0, |bin| bin.bytes / bin.time)
}

/// The bin of a rate in bytes per nanosecond: from 1 kbit/s up.
fn bin(rate: f64) -> u16 {
    let least = 125e-9;
    (libm::log((rate / least).max(1.0)) / BIN) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps of one packet of 1,000 bytes each, this many nanoseconds long; each packet was sent `apart` behind the other.
    fn slopes(gaps: &[i64], apart: i64) -> Slopes {
        coarse_slopes(gaps, apart, 0)
    }

    /// The same of departures that may be too late by `coarse`.
    fn coarse_slopes(gaps: &[i64], apart: i64, coarse: i64) -> Slopes {
        let mut slopes = Slopes::default();
        let mut at = 0;
        for (number, time) in gaps.iter().enumerate() {
            let last = number as i64 * apart;
            let gap = Gap {
                from: at,
                coarse,
                to: at + time,
                first: last,
                last,
                work: 1_000,
                sent: 1_000,
                packets: 1,
                chain: 1,
                number: number as u64,
            };
            at += time;
            slopes.push(&gap, *time > 0, 0);
        }
        slopes
    }

    fn rate(gaps: &[i64]) -> Option<(i64, bool)> {
        slopes(gaps, 0).agreed().map(|told| ((1_000.0 / told.rate).round() as i64, told.varies))
    }

    #[test]
    fn bins_are_one_per_cent_wide() {
        assert_eq!(BIN.to_bits(), libm::log(1.01).to_bits());
    }

    #[test]
    fn packets_that_waited_and_came_evenly_tell_the_links_rate() {
        assert_eq!(rate(&[100_000; 10]), Some((100_000, false)));
        assert_eq!(rate(&[100_000; 9]), Some((100_000, false)), "the first is left out");
        assert_eq!(rate(&[100_000; 8]), None, "seven windows");
    }

    #[test]
    fn bursts_of_an_aggregating_link_agree_in_longer_windows() {
        let bursts: Vec<i64> = (0..200).map(|n| if n % 4 == 0 { 397_000 } else { 1_000 }).collect();
        assert_eq!(rate(&bursts), Some((100_000, false)));
    }

    #[test]
    fn a_rate_that_longer_windows_contradict_is_none() {
        // Nine of ten ACKs come together: most bytes seem to come at a hundred times the rate.
        let together: Vec<i64> =
            (0..640).map(|n| if n % 10 == 0 { 991_000 } else { 1_000 }).collect();
        assert!(rate(&together).is_none_or(|(time, _)| (80_000..120_000).contains(&time)));
    }

    #[test]
    fn a_late_ack_for_most_of_the_bytes_tells_no_rate() {
        let with = |late: u32| {
            let mut slopes = slopes(&[100_000; 12], 0);
            let gap = Gap { to: 40_000_000, work: 40_000, packets: 40, ..Gap::default() };
            (0..late).for_each(|_| slopes.push(&gap, true, 0));
            slopes.scales[1..].iter_mut().for_each(|scale| *scale = Scale::default());
            slopes.agreed().map(|told| (1_000.0 / told.rate).round() as i64)
        };
        assert_eq!([with(0), with(3)], [Some(100_000), None]);
        assert_eq!(with(4), Some(1_000_000));
    }

    #[test]
    fn gaps_without_a_rate_in_common_tell_nothing() {
        let any: Vec<i64> = (0..15).map(|n| 50_000 << (n % 5)).collect();
        assert_eq!(rate(&any), None);
    }

    #[test]
    fn a_rate_that_varies_by_a_quarter_is_called_so() {
        let varied: Vec<i64> = (0..64).map(|n| 100_000 + (n * 37 % 23) * 1_000).collect();
        let mut alone = slopes(&varied, 0);
        alone.scales[1..].iter_mut().for_each(|scale| *scale = Scale::default());
        assert!(alone.agreed().is_some_and(|told| told.varies));
    }

    #[test]
    fn what_was_sent_as_slowly_as_it_came_out_is_not_dispersed() {
        assert_eq!(slopes(&[100_000; 30], 10).agreed().and_then(|told| told.dispersed), Some(1.0));
        assert_eq!(slopes(&[100_000; 30], 60_000).agreed().and_then(|told| told.dispersed), None);
    }

    #[test]
    fn departures_known_to_a_tick_make_windows_that_last_many() {
        // ACKs of a link that takes 100,000 for a packet are seen each full tick of 1,000,000.
        let gaps: Vec<i64> = (0..640).map(|n| if n % 10 == 0 { 999_991 } else { 1 }).collect();
        let windows = |coarse| coarse_slopes(&gaps, 0, coarse).scales[0].windows;
        assert_eq!(windows(0), 639, "each gap would tell of a rate");
        // The first gap is left out; 40 ticks are 400 packets, and what is left is no window.
        assert_eq!(windows(1_000_000), 1);
        let rate = |coarse| {
            let mut told = coarse_slopes(&gaps.repeat(8), 0, coarse);
            told.scales[1..].iter_mut().for_each(|scale| *scale = Scale::default());
            told.agreed().map(|told| (1_000.0 / told.rate).round() as i64)
        };
        assert_eq!(rate(1_000_000), Some(100_000));
        assert_eq!(rate(0), Some(1), "the shortest windows alone tell nothing of the link");
    }
}
