//! `tc qdisc`, with `-s` or without.
//!
//! ```text
//! qdisc htb 1: dev eth0 root refcnt 9 r2q 10 default 0x20 direct_packets_stat 0 direct_qlen 1000
//!  Sent 2614350 bytes 34203 pkt (dropped 0, overlimits 0 requeues 0)
//!  backlog 0b 0p requeues 0
//!   maxpacket 1514 drop_overlimit 0 new_flow_count 3 ecn_mark 0
//! ```
//!
//! `tc qdisc show dev eth0` leaves the device out: it is in the command then, or of an interface
//! without a name. A backlog from a kilobyte on is rounded.

use std::collections::BTreeMap;

use super::collected::Collected;
use super::command::Command;
use super::{Line, Taken};
use crate::snapshot::Qdisc;

/// The first line of a qdisc.
pub(super) fn begin(line: Line<'_>, command: &Command, collected: &mut Collected) -> Option<Taken> {
    let mut words = line.text.strip_prefix("qdisc ")?.split_whitespace().peekable();
    let (kind, handle) = (words.next()?, handle(words.next()?)?);
    let mut qdisc = Qdisc {
        kind: kind.to_owned(),
        handle,
        uncounted: true,
        dev: command.device("tc").unwrap_or_default().to_owned(),
        ..Qdisc::default()
    };
    let mut parameters = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "dev" => words.next()?.clone_into(&mut qdisc.dev),
            "root" => qdisc.parent = u32::MAX,
            "parent" => qdisc.parent = self::handle(words.next()?)?,
            "refcnt" => {
                words.next();
            }
            word if word.bytes().all(|byte| byte == b'-') => {}
            word => parameters.push(word),
        }
    }
    options(&mut qdisc, &parameters);
    qdisc.rate =
        qdisc.options.get("rate").or_else(|| qdisc.options.get("bandwidth")).and_then(|r| rate(r));
    if qdisc.dev.is_empty() {
        qdisc.dev = collected.unnamed_interface();
    }
    let now = collected.now;
    let place = (qdisc.dev.clone(), qdisc.handle, qdisc.parent);
    if !collected.places.insert(place.clone()) {
        collected.qdiscs.push(now, Vec::new());
        collected.places = [place].into();
    }
    collected.qdiscs.open(now).push(qdisc);
    Some(Taken::Read)
}

/// The first line of a class.
pub(super) fn is_class(text: &str) -> bool {
    let mut words = text.split_whitespace();
    words.next() == Some("class") && words.nth(1).is_some_and(|id| id.contains(':'))
}

/// Words with their values: a value is a word that begins with a digit, and there may be several.
fn options(qdisc: &mut Qdisc, words: &[&str]) {
    let mut name = None;
    for word in words {
        match name {
            Some(name) if word.starts_with(|c: char| c.is_ascii_digit()) => {
                let value: &mut String = qdisc.options.entry(String::from(name)).or_default();
                if !value.is_empty() {
                    value.push(' ');
                }
                value.push_str(word);
            }
            _ => {
                qdisc.options.entry((*word).to_owned()).or_default();
                name = Some(*word);
            }
        }
    }
}

/// Lines below the first.
pub(super) fn go_on(line: Line<'_>, collected: &mut Collected) -> Option<Taken> {
    let qdisc = collected.qdiscs.last()?.last_mut()?;
    let text = line.text;
    if let Some(rest) = text.strip_prefix("Sent ") {
        let numbers = numbers(rest);
        let of = |name: &str| numbers.get(name).copied();
        (qdisc.bytes, qdisc.packets) = (of("bytes")?, of("pkt").or_else(|| of("pkts"))?);
        // The number is behind these.
        let behind = |name: &str| {
            let (_, behind) = rest.split_once(name)?;
            behind.split([',', ' ', ')']).find(|word| !word.is_empty())?.parse().ok()
        };
        (qdisc.drops, qdisc.overlimits) = (behind("(dropped")?, behind("overlimits")?);
        qdisc.requeues = behind("requeues")?;
        qdisc.uncounted = false;
        return Some(Taken::Read);
    }
    if let Some(rest) = text.strip_prefix("backlog ") {
        let mut words = rest.split_whitespace();
        qdisc.backlog = size(words.next()?)?;
        qdisc.qlen = words.next()?.strip_suffix('p')?.parse().ok()?;
        return Some(Taken::Read);
    }
    if text.starts_with("rate ") {
        // Estimated rates: `rate 0bit 0pps backlog 0b 0p requeues 0`.
        return Some(Taken::Read);
    }
    let own = own(text);
    let is_known = !own.is_empty() || line.is_indented();
    qdisc.own.extend(own);
    is_known.then_some(Taken::Read)
}

/// `2614350 bytes 34203 pkt`: numbers in front of their names.
fn numbers(text: &str) -> BTreeMap<&str, u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.windows(2).filter_map(|pair| match pair {
        [number, name] => Some((*name, number.parse().ok()?)),
        _ => None,
    });
    pairs.collect()
}

/// What only one kind counts: `ecn_mark 0 drop_overlimit 3`, or, as old versions write of fq, `8 flows
/// (7 inactive, 0 throttled)`: these are flows (`struct tc_fq_qd_stats`), the packets follow below.
fn own(text: &str) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let words: Vec<&str> = text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
    let number_first = words.first().is_some_and(|word| word.parse::<u64>().is_ok());
    for pair in words.windows(2) {
        let [first, second] = pair else { continue };
        let (number, name) = if number_first { (first, second) } else { (second, first) };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if let (Ok(number), true) = (number.parse(), is_name) {
            let of_flows = text.contains("inactive") && *name != "flows";
            let name = if of_flows { format!("{name}_flows") } else { (*name).to_owned() };
            all.entry(name).or_insert(number);
        }
    }
    all
}

/// `8001:` is `0x8001_0000`, `1:10` is `0x1_0010` (tc(8): both are hexadecimal).
fn handle(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let part = |text: &str| match text {
        "" => Some(0),
        _ => u16::from_str_radix(text, 16).ok(),
    };
    Some(u32::from(part(major)?) << 16 | u32::from(part(minor)?))
}

/// `12Kb`, `0b`: bytes in units of 1,024 (iproute2 6.1 `tc/tc_util.c`, `print_size`).
pub(crate) fn size(text: &str) -> Option<u64> {
    let text = text.strip_suffix('b').unwrap_or(text);
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |number| (number, 1 << 20)),
    };
    // tc prints fractions where they are exact: `1.5Mb`.
    scaled(number, unit)
}

/// `5Mbit`, `100Kbit`, `2500bit`: bits per second in units of 1,000 (`tc/tc_util.c`, `tc_print_rate`).
pub(crate) fn rate(text: &str) -> Option<u64> {
    let text = text.strip_suffix("bit")?;
    let unit = |suffix| text.strip_suffix(suffix);
    let (number, unit) = if let Some(number) = unit('K') {
        (number, 1_000)
    } else if let Some(number) = unit('M') {
        (number, 1_000_000)
    } else if let Some(number) = unit('G') {
        (number, 1_000_000_000)
    } else {
        (text, 1)
    };
    scaled(number, unit)
}

fn scaled(number: &str, unit: i64) -> Option<u64> {
    let billionths = tcpwhy_words::printed::stamp::decimal(number)?;
    u64::try_from(i128::from(billionths) * i128::from(unit) / 1_000_000_000).ok()
}
