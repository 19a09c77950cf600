//! One interface of a pcapng section: its link type, its clock, and the packets it lost.

use super::super::binary::Endian;
use tcpwhy_words::units::Time;

/// What blocks told of an interface.
#[derive(Debug)]
pub(super) struct Interface {
    link_type: u32,
    snap_length: u32,
    unit: Unit,
    /// Nanoseconds that all its times are to be shifted by (`if_tsoffset`).
    offset_ns: i128,
    /// `isb_ifdrop` of the last statistics that had it.
    if_drop: Option<u64>,
    /// `isb_osdrop` of the last statistics that had it.
    os_drop: Option<u64>,
    /// Packets that later ones said were lost before them.
    lost: u64,
}

/// The unit of an interface's times (`if_tsresol`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    /// This many nanoseconds.
    Nanoseconds(u64),
    /// This many make a nanosecond.
    PerNanosecond(u64),
    /// Two to this power make a second.
    BinaryFraction(u8),
}

impl Interface {
    /// Reads the body of an interface description.
    pub(super) fn read(endian: Endian, body: &[u8]) -> Self {
        const IF_TSRESOL: u16 = 9;
        const IF_TSOFFSET: u16 = 14;
        let mut interface = Self {
            link_type: u32::from(endian.u16_at(body, 0).unwrap_or_default()),
            snap_length: match endian.u32_at(body, 4) {
                None | Some(0) => u32::MAX,
                Some(length) => length,
            },
            unit: Unit::Nanoseconds(1_000),
            offset_ns: 0,
            if_drop: None,
            os_drop: None,
            lost: 0,
        };
        for (code, value) in options(endian, body.get(8..).unwrap_or_default()) {
            match (code, value) {
                (IF_TSRESOL, [resolution, ..]) => interface.unit = Unit::of(*resolution),
                (IF_TSOFFSET, _) => {
                    let seconds = endian.u64_at(value, 0).unwrap_or_default().cast_signed();
                    interface.offset_ns = i128::from(seconds) * 1_000_000_000;
                }
                _ => {}
            }
        }
        interface
    }

    /// Takes the body of an interface statistics block; each counts from the capture's start.
    pub(super) fn take_statistics(&mut self, endian: Endian, body: &[u8]) {
        const ISB_IFDROP: u16 = 5;
        const ISB_OSDROP: u16 = 7;
        for (code, value) in options(endian, body.get(12..).unwrap_or_default()) {
            match code {
                ISB_IFDROP => self.if_drop = endian.u64_at(value, 0).or(self.if_drop),
                ISB_OSDROP => self.os_drop = endian.u64_at(value, 0).or(self.os_drop),
                _ => {}
            }
        }
    }

    /// A packet says that `packets` were lost since the one before.
    pub(super) fn lost_before(&mut self, packets: u64) {
        self.lost = self.lost.saturating_add(packets);
    }

    /// Packets lost by the interface and by the kernel.
    ///
    /// What packets said counts only without statistics, which tell the same losses again. It
    /// does not part the two places; the kernel is the usual one.
    pub(super) fn dropped(&self) -> (u64, u64) {
        match (self.if_drop, self.os_drop) {
            (None, None) => (0, self.lost),
            (if_drop, os_drop) => (if_drop.unwrap_or(0), os_drop.unwrap_or(0)),
        }
    }

    /// `LINKTYPE_` value.
    #[inline]
    pub(super) fn link_type(&self) -> u32 {
        self.link_type
    }

    /// Bytes kept of each packet at most.
    pub(super) fn snap_length(&self) -> u32 {
        self.snap_length
    }

    /// The instant that `ticks` of its clock stand for, at an end of our clock if beyond it.
    #[inline]
    pub(super) fn time(&self, ticks: u64) -> Time {
        let ns = match self.unit {
            Unit::Nanoseconds(ns) => i128::from(ticks) * i128::from(ns),
            Unit::PerNanosecond(count) => i128::from(ticks / count),
            Unit::BinaryFraction(exponent) => (i128::from(ticks) * 1_000_000_000) >> exponent,
        };
        let ns = ns + self.offset_ns;
        Time(i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX }))
    }
}

impl Unit {
    /// Reads `if_tsresol`: an exponent of one tenth or, with the upper bit, of one half.
    fn of(resolution: u8) -> Self {
        let exponent = resolution & 0x7f;
        match exponent {
            _ if resolution & 0x80 != 0 => Self::BinaryFraction(exponent),
            0..=9 => Self::Nanoseconds(10_u64.pow(u32::from(9 - exponent))),
            // Beyond 10^19 all that 64 bits can count is less than a nanosecond.
            _ => 10_u64
                .checked_pow(u32::from(exponent - 9))
                .map_or(Self::Nanoseconds(0), Self::PerNanosecond),
        }
    }
}

/// The options that `bytes` hold, up to the end mark, the end, or the first that is cut.
#[inline]
pub(super) fn options(endian: Endian, mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const END_OF_OPTIONS: u16 = 0;
    core::iter::from_fn(move || {
        let code = endian.u16_at(bytes, 0)?;
        let length = usize::from(endian.u16_at(bytes, 2)?);
        let value = bytes.get(4..4 + length)?;
        bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        (code != END_OF_OPTIONS).then_some((code, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(unit: Unit, offset_ns: i128, ticks: u64) -> i64 {
        let mut interface = Interface::read(Endian::Little, &[0; 8]);
        (interface.unit, interface.offset_ns) = (unit, offset_ns);
        interface.time(ticks).0
    }

    #[test]
    fn ticks_of_any_unit_become_nanoseconds() {
        for (resolution, ticks, ns) in [
            (0, 7, 7_000_000_000),
            (3, 7_001, 7_001_000_000),
            (6, 7_000_001, 7_000_001_000),
            (9, 7_000_000_001, 7_000_000_001),
            (12, 7_000_000_000_999, 7_000_000_000),
            (28, 99_999_999_999_999_999, 0),
            (127, u64::MAX, 0),
            (0x80, 7, 7_000_000_000),
            (0x8a, 7 * 1024 + 512, 7_500_000_000),
            (0xa0, (7 << 32) + (1 << 30), 7_250_000_000),
            (0xff, u64::MAX, 0),
        ] {
            assert_eq!(time(Unit::of(resolution), 0, ticks), ns, "resolution {resolution:#x}");
        }
    }

    #[test]
    fn absurd_times_stop_at_the_ends_of_the_clock() {
        assert_eq!(time(Unit::of(0), 0, u64::MAX), i64::MAX);
        assert_eq!(time(Unit::of(6), i128::from(i64::MIN) * 1_000_000_000, 0), i64::MIN);
        assert_eq!(time(Unit::of(6), -1_000_000_000, 500_000), -500_000_000);
    }

    #[test]
    fn options_end_with_their_mark_or_where_they_are_cut() {
        let told = |bytes: &'static [u8]| -> Vec<(u16, &[u8])> {
            options(Endian::Little, bytes).collect()
        };
        assert_eq!(
            told(b"\x01\0\x01\0a...\x02\0\0\0\0\0\0\0\x03\0\0\0"),
            [(1, &b"a"[..]), (2, b"")]
        );
        assert_eq!(told(b"\x01\0\x01\0a"), [(1, &b"a"[..])]);
        assert_eq!(told(b"\x01\0\xff\xffa..."), []);
        assert_eq!(told(b"\x01\0\0"), []);
    }
}
