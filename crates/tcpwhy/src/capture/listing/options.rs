//! TCP options as `tcpdump` lists them: `mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7`.
//!
//! Unknown ones are kept in the order where their kind can be told, and add to the length where
//! their bytes are shown. The length is rounded up to whole words, as the header must.

use super::digits::{closing, leading_number};
use crate::wire::Options;
use tcpwhy_words::units::Seq;

/// Reads the list between the brackets; `cut` when the closing one is missing.
pub(super) fn read(list: &str, cut: bool) -> Options {
    let mut options = Options { incomplete: cut || list.contains('['), ..Options::default() };
    let (mut bytes, mut count) = (0_u32, 0_usize);
    for item in items(list) {
        let Some((kind, len)) = one(item, &mut options) else {
            options.incomplete = true;
            continue;
        };
        bytes = bytes.saturating_add(len);
        if let (Some(place), Some(kind)) = (options.order.get_mut(count), kind) {
            *place = kind;
            count += 1;
        }
    }
    // A TCP header has room for 40 bytes of options (RFC 9293 §3.1).
    options.len = bytes.min(40).next_multiple_of(4) as u8;
    options
}

/// Reads one option; tells its kind, where known, and its length.
fn one(item: &str, options: &mut Options) -> Option<(Option<u8>, u32)> {
    let (name, value) = item.split_at(item.find([' ', '-']).unwrap_or(item.len()));
    let value = value.trim_start();
    Some(match name {
        "eol" => (Some(0), 1),
        "nop" => (Some(1), 1),
        "mss" => {
            options.mss = Some(u16::try_from(leading_number(value)?).ok()?);
            (Some(2), 4)
        }
        "wscale" => {
            options.window_scale = Some(u8::try_from(leading_number(value)?).ok()?);
            (Some(3), 3)
        }
        "sackOK" => {
            options.sack_permitted = true;
            (Some(4), 2)
        }
        "sack" => {
            let blocks = sack(value, options)?;
            (Some(5), 2 + 8 * blocks)
        }
        "TS" | "timestamp" | "tstamp" => {
            let mut numbers = value.split(' ').filter_map(|word| word.parse().ok());
            options.timestamps = Some((numbers.next()?, numbers.next()?));
            (Some(8), 10)
        }
        "md5" | "md5shared" => (Some(19), 18),
        "mptcp" => (Some(30), leading_number(value)?),
        "tfo" => {
            let cookie = cookie_len(value)?;
            options.fast_open = Some(cookie);
            (Some(34), 2 + u32::from(cookie))
        }
        "unknown" => {
            let kind = leading_number(value.strip_prefix('-')?)?;
            (Some(u8::try_from(kind).ok()?), 2 + hex_len(value))
        }
        "exp" => {
            // The magic number of Fast Open's experiment (RFC 7413 appendix A).
            if value.starts_with("-f989") {
                options.fast_open = Some(cookie_len(value).unwrap_or(0));
            }
            (Some(254), 4 + hex_len(value).max(options.fast_open.map_or(0, u32::from)))
        }
        _ => return None,
    })
}

/// `1 {1449:2897}`; tells how many blocks there are.
fn sack(value: &str, options: &mut Options) -> Option<u32> {
    for (place, block) in options.sack.iter_mut().zip(value.split('{').skip(1)) {
        let (left, right) = block.split_once(':')?;
        *place = (Seq(leading_number(left)?), Seq(leading_number(right)?));
        options.sack_count += 1;
    }
    Some(u32::from(options.sack_count))
}

/// `cookie 0123abcd` or `cookiereq`.
fn cookie_len(value: &str) -> Option<u8> {
    if value.contains("cookiereq") {
        return Some(0);
    }
    let cookie = value.split_once("cookie ")?.1.trim();
    let digits = cookie.bytes().take_while(u8::is_ascii_hexdigit).count();
    u8::try_from(digits / 2).ok()
}

/// Bytes shown as `0x..` at the end of an unknown option.
fn hex_len(value: &str) -> u32 {
    let digits = value.split_once("0x").map_or("", |(_, digits)| digits);
    (digits.bytes().take_while(u8::is_ascii_hexdigit).count() / 2) as u32
}

/// The items between the commas that are not inside braces.
fn items(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(list);
    core::iter::from_fn(move || {
        let text = rest?;
        let mut from = 0;
        let end = loop {
            match text.get(from..)?.find([',', '{']).map(|at| from + at) {
                Some(at) if text.as_bytes().get(at) == Some(&b'{') => {
                    let inside = text.get(at + 1..)?;
                    from = (at + 2 + closing(inside, '{', '}')).min(text.len());
                }
                found => break found.unwrap_or(text.len()),
            }
        };
        rest = text.get(end + 1..);
        text.get(..end).map(str::trim)
    })
    .filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_syn() {
        let read = read("mss 1460,sackOK,TS val 997937981 ecr 0,nop,wscale 7", false);
        assert_eq!((read.mss, read.window_scale, read.sack_permitted), (Some(1460), Some(7), true));
        assert_eq!(read.timestamps, Some((997_937_981, 0)));
        assert_eq!((read.order, read.len), ([2, 4, 8, 1, 3, 0, 0, 0], 20));
        assert!(!read.incomplete);
    }

    #[test]
    fn sack_blocks_in_braces() {
        let read = read("nop,nop,sack 3 {1:2}{30:40}{4294967295:5}", false);
        let blocks = [(Seq(1), Seq(2)), (Seq(30), Seq(40)), (Seq(u32::MAX), Seq(5))];
        assert_eq!((read.sack_blocks(), read.len), (&blocks[..], 28));
    }

    #[test]
    fn rare_options_keep_their_kind_and_length() {
        for (text, kind, len) in [
            ("tfo  cookiereq,nop,nop", 34, 4),
            ("tfo  cookie 0123456789abcdef,nop,nop", 34, 12),
            ("exp-f989 cookiereq", 254, 4),
            ("unknown-34 0x0102,eol", 34, 8),
            ("mptcp 12 capable v1 {0x1,0x2},nop", 30, 16),
            ("md5 valid,nop,nop", 19, 20),
        ] {
            let read = read(text, false);
            assert_eq!((read.order[0], read.len, read.incomplete), (kind, len, false), "{text}");
        }
        assert_eq!(read("tfo  cookie 0123,nop,nop", false).fast_open, Some(2));
        assert_eq!(read("tfo  cookiereq,nop,nop", false).fast_open, Some(0));
    }

    #[test]
    fn what_is_not_understood_makes_the_options_incomplete() {
        assert!(read("mss 1460,[bad opt]", false).incomplete);
        assert!(read("mss 1460,flux 9", false).incomplete);
        assert!(read("mss 14", true).incomplete);
    }
}
