//! The narrowest link of a direction in words.

use core::fmt::Write as _;

use crate::report::Link;
use tcpwhy_words::said;
use tcpwhy_words::units::BitRate;

/// Its rate, how busy it was, and where packets were lost.
pub(super) fn narrowest(link: &Link) -> String {
    let [low, best, high] =
        [link.rate_bps.low, link.rate_bps.best, link.rate_bps.high].map(BitRate);
    let place = if link.before_tap { "before" } else { "behind" };
    let mut text = if link.varies {
        format!(
            "the path {place} the capture point gave about {best} with headers ({low} to {high})"
        )
    } else {
        format!("{best} with headers ({low} to {high}) at the narrowest, {place} the capture point")
    };
    if !link.proven {
        text.push_str(", as even arrivals suggest");
    }
    let share = said::percent(link.busy_ns, link.whole_ns);
    let _ = write!(
        text,
        ", busy {share} of {}; what came through takes {} at that rate",
        said::time(link.whole_ns),
        said::time(link.floor_ns)
    );
    let of = |count: u64, place: &str| (count > 0).then(|| format!("{count} {place}"));
    let places: Vec<String> = [
        of(link.lost_before, "before it or in its queue"),
        of(link.lost_behind, "behind it"),
        of(link.lost_elsewhere, "while its queue was empty"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !places.is_empty() {
        let _ = write!(text, "; packets lost: {}", said::listed(&places));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::LinkRate;

    const MS: i64 = 1_000_000;

    fn link() -> Link {
        Link {
            proven: true,
            rate_bps: LinkRate { low: 19_900_000, best: 20_000_000, high: 20_100_000 },
            busy_ns: 970 * MS,
            whole_ns: 1_000 * MS,
            floor_ns: 960 * MS,
            full_ns: 900 * MS,
            ..Link::default()
        }
    }

    #[test]
    fn a_link_is_told_with_its_rate_its_work_and_its_losses() {
        let lossy = Link { lost_before: 5, lost_behind: 2, lost_elsewhere: 1, ..link() };
        assert_eq!(
            narrowest(&lossy),
            "20.0 Mbit/s with headers (19.9 Mbit/s to 20.1 Mbit/s) at the narrowest, behind the capture point, busy 97 % \
             of 1.00 s; what came through takes 960 ms at that rate; packets lost: 5 before it or in its queue, 2 behind \
             it and 1 while its queue was empty"
        );
        let varies = narrowest(&Link { varies: true, before_tap: true, ..link() });
        assert!(varies.starts_with("the path before the capture point gave about 20.0 Mbit/s"));
        assert!(varies.ends_with("at that rate"));
        let even = narrowest(&Link { proven: false, ..link() });
        assert!(even.contains(" the capture point, as even arrivals suggest, busy"));
    }
}
