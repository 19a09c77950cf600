//! One number for a whole run: equal digests, equal runs, whatever machine they were made on.
//!
//! Every field of every record is hashed as little-endian bytes of a fixed width; what the standard
//! library hashes as a machine word (lengths, which variant of an enum) counts as 64 bits.

use core::hash::{Hash, Hasher};

use super::{Outcome, Trace};

impl Trace {
    /// The digest of these records and of how the run ended.
    pub fn digest(&self, outcome: &Outcome) -> u64 {
        let mut fnv = Fnv(FNV_OFFSET);
        // Not by how many events: that is the work it was.
        (outcome.end_ns, outcome.done, &outcome.waiting).hash(&mut fnv);
        self.segments.hash(&mut fnv);
        self.handed_down.hash(&mut fnv);
        self.samples.hash(&mut fnv);
        self.limits.hash(&mut fnv);
        fnv.finish()
    }
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo; RFC 9923 section 2): no key, and the same everywhere.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.write(&number.to_le_bytes());
    }

    fn write_u32(&mut self, number: u32) {
        self.write(&number.to_le_bytes());
    }

    fn write_u64(&mut self, number: u64) {
        self.write(&number.to_le_bytes());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
}

/// Where it begins, and what it multiplies by (RFC 9923 section 5).
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Limit, LimitSince, Sample, Seen, Side, Tap};

    fn of(bytes: &[u8]) -> u64 {
        let mut fnv = Fnv(FNV_OFFSET);
        fnv.write(bytes);
        fnv.finish()
    }

    #[test]
    fn it_is_fnv_1a() {
        // Published test vectors of the algorithm.
        assert_eq!(of(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn machine_words_count_as_64_bits() {
        let mut fnv = Fnv(FNV_OFFSET);
        fnv.write_usize(7);
        assert_eq!(fnv.finish(), of(&[7, 0, 0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn the_least_change_of_any_record_shows() {
        let seen = Seen {
            at_ns: 5,
            tap: Tap::Client,
            connection: 0,
            from: Side::Server,
            segment: crate::segment::Segment::default(),
        };
        let limit =
            LimitSince { at_ns: 5, connection: 0, side: Side::Server, limit: Limit::SlowStart };
        let sample = Sample {
            at_ns: 5,
            connection: 0,
            side: Side::Client,
            info: crate::socket::Info::default(),
            wait: crate::socket::Wait::Nothing,
        };
        let trace = Trace {
            segments: vec![seen],
            handed_down: vec![seen],
            samples: vec![sample],
            limits: vec![limit],
            ..Trace::default()
        };
        let changed = |change: fn(&mut Trace, &mut Outcome)| {
            let (mut trace, mut outcome) = (trace.clone(), Outcome::default());
            change(&mut trace, &mut outcome);
            trace.digest(&outcome)
        };
        let changes: [fn(&mut Trace, &mut Outcome); 9] = [
            |_, _| {},
            |_, outcome| outcome.end_ns = 1,
            |trace, _| trace.segments[0].at_ns += 1,
            |trace, _| trace.segments[0].segment.truesize = 1,
            |trace, _| trace.handed_down[0].segment.options.sack.push(1, 2),
            |trace, _| trace.samples[0].info.cwnd = 1,
            |trace, _| trace.samples[0].info.ecn = true,
            |trace, _| trace.limits[0].limit = Limit::Avoidance,
            |trace, _| trace.limits.clear(),
        ];
        let mut digests: Vec<_> = changes.into_iter().map(changed).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), changes.len());
    }
}
