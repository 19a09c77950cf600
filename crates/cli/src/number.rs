//! Numbers on the command line: what is wrong with one is said in words, with what to give instead.

use std::num::NonZero;
use std::time::Duration;

use tcpwhy::units::Time;

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<NonZero<usize>, String> {
    text.parse().map_err(|_| {
        "give a whole number from 1 on; without --threads every core gets a thread".to_owned()
    })
}

/// How many connections are shown.
pub(crate) fn top(text: &str) -> Result<u32, String> {
    let number: Option<u32> = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        "give a whole number from 1 on; totals count every connection all the same".to_owned()
    })
}

/// How many lines of a list are shown.
pub(crate) fn lines(text: &str) -> Result<usize, String> {
    let number: Option<usize> = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "give a whole number from 1 on".to_owned())
}

/// A day.
pub(crate) fn day(text: &str) -> Result<String, String> {
    let is_day = text.len() == 10 && Time::from_rfc3339(&format!("{text}T00:00:00Z")).is_some();
    is_day.then(|| text.to_owned()).ok_or_else(|| "give a day as 2026-11-29".to_owned())
}

/// A connection's number in the report.
pub(crate) fn connection(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        "give a connection's number, as the report's table and headings have it, from 0 on"
            .to_owned()
    })
}

/// Columns of the text.
pub(crate) fn width(text: &str) -> Result<u16, String> {
    let number: Option<u16> = text.parse().ok().filter(|number| (40..=1000).contains(number));
    number.ok_or_else(|| "give a number of columns from 40 to 1000".to_owned())
}

/// A port; none has number 0 on the wire.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    let number: Option<u16> = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "give a port's number, from 1 to 65535 (`ss -tn` shows them)".to_owned())
}

/// A process.
pub(crate) fn process(text: &str) -> Result<u32, String> {
    let number: Option<u32> = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "give a process's number (`pidof NAME` tells it)".to_owned())
}

/// Bytes kept of a packet.
pub(crate) fn snap_length(text: &str) -> Result<u32, String> {
    let number: Option<u32> = text.parse().ok().filter(|number| (60..=65_535).contains(number));
    number.ok_or_else(|| {
        "give a number of bytes from 60, a header of TCP with its options, to 65535".to_owned()
    })
}

/// An address; one of IPv4 in the form of IPv6, as ss shows it of some servers, is that of IPv4, as in packets.
pub(crate) fn host(text: &str) -> Result<std::net::IpAddr, String> {
    text.parse()
        .map(|address: std::net::IpAddr| address.to_canonical())
        .map_err(|_| "give an IP address (`getent hosts NAME` tells that of a name)".to_owned())
}

/// Reads `500ms`, `30s`, `5m`, `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let number: f64 = number.parse().map_err(|_| HOW_LONG.to_owned())?;
    if number <= 0.0 {
        return Err(HOW_LONG.to_owned());
    }
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "" => return Err(format!("a unit is missing: {HOW_LONG}")),
        other => return Err(format!("`{other}` is no unit of time: {HOW_LONG}")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text} is too long"))
}

const HOW_LONG: &str = "give a time above 0 with its unit, such as 500ms, 30s, 5m or 1h";

/// Reads `500K`, `256M`, `2G`: powers of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let number: u64 = number.parse().map_err(|_| HOW_MUCH.to_owned())?;
    let shift = match unit.trim_end_matches(['B', 'i']).to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(format!("`{unit}` is no unit of size: {HOW_MUCH}")),
    };
    let bytes = number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too much"))?;
    if bytes < LEAST { Err(format!("it is too small: {HOW_MUCH}")) } else { Ok(bytes) }
}

const HOW_MUCH: &str = "give a whole number with its unit, from 64K on, such as 500K, 256M or 2G";

/// Ours: holds the head of a file and some hundred packets.
const LEAST: u64 = 64 << 10;

/// A number and its unit.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(threads("2").map(NonZero::get), Ok(2));
        assert_eq!((top("1"), connection("0"), width("40")), (Ok(1), Ok(0), Ok(40)));
        assert_eq!((port("65535"), process("1"), snap_length("60")), (Ok(65_535), Ok(1), Ok(60)));
        for odd in ["", "0", "-1", "x", "1.5", "99999999999999999999999"] {
            assert!(threads(odd).is_err() && top(odd).is_err(), "{odd}");
            assert!(port(odd).is_err() && process(odd).is_err(), "{odd}");
            assert!(width(odd).is_err() && snap_length(odd).is_err(), "{odd}");
        }
        assert!(width("39").is_err() && snap_length("65536").is_err() && port("65536").is_err());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for odd in ["30", "s", "-1s", "0s", "-5s", "1e99h", "3 days", ""] {
            assert!(duration(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("256M"), Ok(256 << 20));
        assert_eq!(size("100k"), Ok(100 << 10));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        for odd in ["", "M", "10", "99999999999G", "1T", "1.5M"] {
            assert!(size(odd).is_err(), "{odd}");
        }
    }
}
