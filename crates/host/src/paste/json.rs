//! `ip -j link` and `ip -j addr`, with `-s`, `-s -s` and `-d`: all interfaces on one line.
//!
//! What other tools print as JSON (`ip -j route`, `tc -j`), and what is printed over many lines (`-p`), is not read, and
//! that is said.

use serde_json::Value;

use super::collected::{Collected, Counted};
use super::command::is_device;
use super::{Taken, links};
use crate::snapshot::Link;

/// Whether a line begins as JSON does.
pub(super) fn is_json(text: &str) -> bool {
    text.starts_with("[{") || text.starts_with("[ {") || text.starts_with("{\"")
}

/// A line of JSON; `None` for others.
pub(super) fn line(text: &str, collected: &mut Collected) -> Option<Taken> {
    if !is_json(text) {
        return None;
    }
    let useless = |why: &str| Some(Taken::Useless(why.to_owned()));
    let Ok(Value::Array(all)) = serde_json::from_str(text) else {
        return useless(
            "JSON is read only of `ip -j link` and `ip -j addr`, and on one line (without -p)",
        );
    };
    let is_of_link = |one: &Value| one["ifindex"].is_u64() && one["ifname"].is_string();
    if !all.iter().filter(|one| one.as_object().is_some_and(|one| !one.is_empty())).all(is_of_link)
    {
        return useless("of JSON only that of `ip -j link` and `ip -j addr` is read: leave -j out");
    }
    for one in &all {
        let name = one["ifname"].as_str().filter(|name| is_device(name));
        if let Some(name) = name {
            describe(one, collected.link(name));
            count(one, name, collected);
        }
    }
    Some(Taken::Read)
}

fn describe(one: &Value, link: &mut Link) {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    link.index = number(&one["ifindex"]).unwrap_or(link.index);
    if let Some(flags) = one["flags"].as_array() {
        let flag = |name: &str| flags.iter().any(|flag| flag == name);
        (link.up, link.carrier, link.loopback) = (flag("UP"), flag("LOWER_UP"), flag("LOOPBACK"));
        link.flags_unseen = false;
        // The modes are numbered as the kernel numbers them (`XDP_ATTACHED_*`, `include/uapi/linux/if_link.h`).
        let mode = one["xdp"]["mode"].as_u64().unwrap_or(0);
        link.xdp = u8::try_from(mode).ok();
    }
    link.mtu = number(&one["mtu"]).or(link.mtu);
    link.txqlen = number(&one["txqlen"]).or(link.txqlen);
    link.gso_max_size = number(&one["gso_max_size"]).or(link.gso_max_size);
    link.gso_max_segs = number(&one["gso_max_segs"]).or(link.gso_max_segs);
    let word = |value: &Value| value.as_str().filter(|word| is_device(word)).map(str::to_owned);
    link.master = word(&one["master"]).or(link.master.take());
    link.kind = word(&one["linkinfo"]["info_kind"]).or(link.kind.take());
    for address in one["addr_info"].as_array().into_iter().flatten() {
        let local = address["local"].as_str().and_then(|local| local.parse().ok());
        let length = address["prefixlen"].as_u64().and_then(|length| u8::try_from(length).ok());
        if let Some(address) = local.zip(length) {
            links::add_address(link, address);
        }
    }
}

/// Counters bear the kernel's names here, without the way in front (iproute2 6.1 `ip/ipaddress.c`, `print_stats64`).
fn count(one: &Value, name: &str, collected: &mut Collected) {
    let mut counts = Counted::new();
    for way in ["rx", "tx"] {
        let numbers = one["stats64"][way].as_object().into_iter().flatten();
        for (of, value) in numbers {
            let Some(value) = value.as_u64() else { continue };
            let own = if of == "carrier_changes" { of.clone() } else { format!("{way}_{of}") };
            counts.insert(own, value);
        }
    }
    if !counts.is_empty() {
        let now = collected.now;
        collected.link_counts.entry(name.to_owned()).or_default().push(now, counts);
    }
}
