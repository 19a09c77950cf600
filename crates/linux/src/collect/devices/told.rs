//! What netlink and ioctl tell of a link in the same words.

use tcpwhy::host::snapshot::Features;

/// Megabits; all ones is not known (`SPEED_UNKNOWN`), and so is 0 of a link that is down.
pub(super) fn bits_per_second(megabits: u32) -> Option<u64> {
    (megabits != u32::MAX && megabits != 0).then(|| u64::from(megabits) * 1_000_000)
}

/// `DUPLEX_HALF`, `DUPLEX_FULL`, and 255 for not known.
pub(super) const fn full_duplex(value: u8) -> Option<bool> {
    match value {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Puts an offload where it belongs.
pub(super) fn sort_in(features: &mut Features, name: &str, is_on: bool, can_change: bool) {
    let list = match (is_on, can_change) {
        (true, _) => &mut features.on,
        (false, true) => &mut features.off,
        (false, false) => &mut features.fixed_off,
    };
    list.push(name.to_owned());
}
