//! What a discipline is set to, in the words of tc(8), and what only its kind counts.
//!
//! Structures and attributes are those of Linux `include/uapi/linux/pkt_sched.h`. Numbers are exact where
//! tc rounds: `4999us` and not `5ms`. What tc prints as a word alone (`ecn`) has an empty value.

mod netem;

use std::fmt;

use tcpwhy::host::snapshot::Qdisc;

use crate::netlink::{attribute, number};

/// Whether this kind's options are read, or it has none.
pub(super) fn knows(kind: &str) -> bool {
    matches!(
        kind,
        "pfifo_fast"
            | "prio"
            | "pfifo"
            | "bfifo"
            | "pfifo_head_drop"
            | "fq"
            | "fq_codel"
            | "codel"
            | "tbf"
            | "htb"
            | "hfsc"
            | "cake"
            | "netem"
            | "sfq"
            | "mq"
            | "noqueue"
            | "ingress"
            | "clsact"
    )
}

/// Reads `TCA_OPTIONS` of a discipline or class.
pub(super) fn read(qdisc: &mut Qdisc, value: &[u8]) {
    let options = Options { value, qdisc };
    match options.qdisc.kind.as_str() {
        "pfifo_fast" | "prio" => options.bands(),
        "pfifo" | "pfifo_head_drop" => options.plain_limit(packets),
        "bfifo" => options.plain_limit(bytes),
        "fq" => options.fq(),
        "fq_codel" => options.fq_codel(),
        "codel" => options.codel(),
        "tbf" => options.tbf(),
        "htb" => options.htb(),
        "hfsc" => options.default_class(),
        "cake" => options.cake(),
        "netem" => options.netem(),
        "sfq" => options.sfq(),
        _ => {}
    }
}

/// Reads `TCA_STATS_APP`: counters that only this kind has.
pub(super) fn own(qdisc: &mut Qdisc, value: &[u8]) {
    let (names, first, size): (&[&str], _, _) = match qdisc.kind.as_str() {
        // `tc_fq_qd_stats`: 64 bits each, then some of 32.
        "fq" => (&FQ, 0, 8),
        // `tc_fq_codel_xstats` behind its type, which is 0 for a discipline.
        "fq_codel" if number(value, 0, 4) == Some(0) => (&FQ_CODEL, 4, 4),
        // `tc_codel_xstats`.
        "codel" => (&CODEL, 0, 4),
        _ => return,
    };
    for (index, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        if let Some(value) = number(value, first + index * size, size) {
            qdisc.own.insert((*name).to_owned(), value);
        }
    }
}

/// A number in the unit of its option.
type Told = fn(u64) -> String;

struct Options<'a> {
    value: &'a [u8],
    qdisc: &'a mut Qdisc,
}

impl Options<'_> {
    fn set(&mut self, name: &str, value: impl fmt::Display) {
        self.qdisc.options.insert(name.to_owned(), value.to_string());
    }

    fn u32(&self, attribute_of: u16) -> Option<u64> {
        number(attribute(self.value, attribute_of)?, 0, 4)
    }

    fn u64(&self, attribute_of: u16) -> Option<u64> {
        number(attribute(self.value, attribute_of)?, 0, 8)
    }

    /// Sets what attributes of 32 bits say, each in its unit.
    fn each(&mut self, wanted: &[(&str, u16, Told)]) {
        for &(name, attribute_of, told) in wanted {
            if let Some(value) = self.u32(attribute_of) {
                self.set(name, told(value));
            }
        }
    }

    fn flag(&mut self, name: &str, is_on: bool) {
        if is_on {
            self.set(name, "");
        }
    }

    /// `tc_prio_qopt`: bands, and the band of each priority.
    fn bands(mut self) {
        let Some(bands) = number(self.value, 0, 4) else { return };
        self.set("bands", bands);
        let map = self.value.get(4..20).unwrap_or_default();
        let map: Vec<String> = map.iter().map(u8::to_string).collect();
        self.set("priomap", map.join(" "));
    }

    /// `tc_fifo_qopt`.
    fn plain_limit(mut self, told: Told) {
        if let Some(limit) = number(self.value, 0, 4) {
            self.set("limit", told(limit));
        }
    }

    /// `TCA_FQ_*`.
    fn fq(mut self) {
        self.each(&[
            ("limit", 1, packets),
            ("flow_limit", 2, packets),
            ("quantum", 3, bytes),
            ("initial_quantum", 4, bytes),
            ("buckets", 8, |log| 1_u64.checked_shl(log as u32).unwrap_or(0).to_string()),
            ("refill_delay", 9, time_us),
            ("orphan_mask", 10, |mask| mask.to_string()),
            ("low_rate_threshold", 11, |rate| bits(rate * 8)),
            ("ce_threshold", 12, time_us),
            ("timer_slack", 13, time_ns),
            ("horizon", 14, time_us),
        ]);
        if self.qdisc.options.get("ce_threshold").is_some_and(|all| *all == time_us(NEVER)) {
            self.qdisc.options.remove("ce_threshold");
        }
        self.flag("nopacing", self.u32(5) == Some(0));
        // All ones is none.
        if let Some(rate) = self.u32(7).filter(|&rate| rate != u64::from(u32::MAX)) {
            self.set("maxrate", bits(rate * 8));
            self.qdisc.rate = Some(rate * 8);
        }
        let drops = attribute(self.value, 15).and_then(|value| value.first().copied());
        self.flag("horizon_drop", drops == Some(1));
        self.flag("horizon_cap", drops == Some(0));
    }

    /// `TCA_FQ_CODEL_*`.
    fn fq_codel(mut self) {
        self.each(&[
            ("target", 1, time_us),
            ("limit", 2, packets),
            ("interval", 3, time_us),
            ("flows", 5, |flows| flows.to_string()),
            ("quantum", 6, |quantum| quantum.to_string()),
            ("ce_threshold", 7, time_us),
            ("drop_batch", 8, |batch| batch.to_string()),
            ("memory_limit", 9, bytes),
        ]);
        self.flag("ecn", self.u32(4).is_some_and(|ecn| ecn != 0));
    }

    /// `TCA_CODEL_*`.
    fn codel(mut self) {
        self.each(&[
            ("target", 1, time_us),
            ("limit", 2, packets),
            ("interval", 3, time_us),
            ("ce_threshold", 5, time_us),
        ]);
        self.flag("ecn", self.u32(4).is_some_and(|ecn| ecn != 0));
    }

    /// `TCA_TBF_*`: `tc_tbf_qopt` has both rates, the limit, and bursts as times.
    fn tbf(mut self) {
        let Some(parameters) = attribute(self.value, 1) else { return };
        let at = |at| number(parameters, at, 4);
        let (Some(rate), Some(limit), Some(buffer)) = (at(8), at(24), at(28)) else { return };
        let rate = self.u64(4).unwrap_or(rate);
        self.set("rate", bits(rate.saturating_mul(8)));
        self.qdisc.rate = Some(rate.saturating_mul(8));
        self.set("limit", bytes(limit));
        self.set("burst", bytes(in_time(rate, buffer)));
        let peak = self.u64(5).or_else(|| at(20)).filter(|&peak| peak != 0);
        if let Some((peak, mtu)) = peak.zip(at(32)) {
            self.set("peakrate", bits(peak.saturating_mul(8)));
            self.set("mtu", bytes(in_time(peak, mtu)));
        }
        self.wire(&parameters[..12]);
    }

    /// What a `tc_ratespec` says of the wire: bytes that each packet costs more, and cells.
    fn wire(&mut self, rate: &[u8]) {
        let overhead = number(rate, 2, 2).map(|bytes| bytes as u16 as i16).filter(|&o| o != 0);
        if let Some(overhead) = overhead {
            self.set("overhead", overhead);
        }
        if let Some(mpu) = number(rate, 6, 2).filter(|&mpu| mpu != 0) {
            self.set("mpu", bytes(mpu));
        }
        if rate.get(1).is_some_and(|layer| layer & 0xf == 2) {
            self.set("linklayer", "atm");
        }
    }

    /// `TCA_HTB_*`: `tc_htb_glob` of the discipline, `tc_htb_opt` of a class.
    fn htb(mut self) {
        if let Some(all) = attribute(self.value, 2) {
            let at = |at| number(all, at, 4);
            if let (Some(to_quantum), Some(class), Some(direct)) = (at(4), at(8), at(16)) {
                self.set("r2q", to_quantum);
                self.set("default", format!("{class:#x}"));
                self.qdisc.own.insert("direct_packets_stat".to_owned(), direct);
            }
            self.each(&[("direct_qlen", 5, |packets| packets.to_string())]);
        }
        let Some(class) = attribute(self.value, 1) else { return };
        let at = |at| number(class, at, 4);
        let (Some(rate), Some(ceil), Some(burst), Some(cburst)) = (at(8), at(20), at(24), at(28))
        else {
            return;
        };
        let (rate, ceil) = (self.u64(6).unwrap_or(rate), self.u64(7).unwrap_or(ceil));
        self.set("rate", bits(rate.saturating_mul(8)));
        self.set("ceil", bits(ceil.saturating_mul(8)));
        self.qdisc.rate = Some(rate.saturating_mul(8));
        self.set("burst", bytes(in_time(rate, burst)));
        self.set("cburst", bytes(in_time(ceil, cburst)));
        if let (Some(quantum), Some(prio)) = (at(32), at(40)) {
            self.set("quantum", quantum);
            self.set("prio", prio);
        }
        self.wire(&class[..12]);
    }

    /// `tc_hfsc_qopt`.
    fn default_class(mut self) {
        if let Some(class) = number(self.value, 0, 2).filter(|&class| class != 0) {
            self.set("default", format!("{class:#x}"));
        }
    }

    /// `TCA_CAKE_*`.
    fn cake(mut self) {
        let rate = self.u64(2).map(|rate| rate.saturating_mul(8));
        self.qdisc.rate = rate.filter(|&rate| rate != 0);
        self.set("bandwidth", self.qdisc.rate.map_or_else(|| "unlimited".to_owned(), bits));
        let choice = |names: &[&str], value: Option<u64>| {
            value.and_then(|value| names.get(value as usize)).map(|name| (*name).to_owned())
        };
        for (name, names, attribute_of) in [
            ("diffserv", &CAKE_TINS[..], 3),
            ("atm", &CAKE_CELLS[..], 4),
            ("flows", &CAKE_FLOWS[..], 5),
            ("ack-filter", &CAKE_ACKS[..], 16),
        ] {
            if let Some(value) = choice(names, self.u32(attribute_of)) {
                self.set(name, value);
            }
        }
        self.each(&[
            ("rtt", 7, time_us),
            ("memlimit", 10, bytes),
            ("mpu", 14, |mpu| mpu.to_string()),
        ]);
        if let Some(overhead) = self.u32(6) {
            self.set("overhead", overhead as u32 as i32);
        }
        for (name, attribute_of) in [
            ("autorate-ingress", 9),
            ("nat", 11),
            ("raw", 12),
            ("wash", 13),
            ("ingress", 15),
            ("split-gso", 17),
        ] {
            // `raw` is there or not; the others are numbers.
            let is_on = match name {
                "raw" => attribute(self.value, attribute_of).is_some(),
                _ => self.u32(attribute_of).is_some_and(|value| value != 0),
            };
            self.flag(name, is_on);
        }
    }

    /// `tc_sfq_qopt`.
    fn sfq(mut self) {
        let at = |at| number(self.value, at, 4);
        if let (Some(quantum), Some(perturb), Some(limit), Some(divisor)) =
            (at(0), at(4), at(8), at(12))
        {
            self.set("limit", packets(limit));
            self.set("quantum", bytes(quantum));
            self.set("divisor", divisor);
            if perturb != 0 {
                self.set("perturb", format!("{}sec", perturb as u32 as i32));
            }
        }
    }
}

fn packets(value: u64) -> String {
    format!("{value}p")
}

fn bytes(value: u64) -> String {
    match value {
        0 => "0b".to_owned(),
        value if value.is_multiple_of(1 << 20) => format!("{}Mb", value >> 20),
        value if value.is_multiple_of(1 << 10) => format!("{}Kb", value >> 10),
        value => format!("{value}b"),
    }
}

/// Bits per second, in units of thousands.
fn bits(mut value: u64) -> String {
    let mut unit = 0;
    while unit + 1 < RATES.len() && value != 0 && value.is_multiple_of(1000) {
        value /= 1000;
        unit += 1;
    }
    format!("{value}{}", RATES[unit])
}

fn time_us(us: u64) -> String {
    time_ns(us.saturating_mul(1000))
}

fn time_ns(ns: u64) -> String {
    for (unit, name) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")] {
        if ns.is_multiple_of(unit) {
            return format!("{}{name}", ns / unit);
        }
    }
    format!("{ns}ns")
}

/// Bytes that pass at a rate (bytes per second) in a time that the kernel keeps in ticks, rounded.
fn in_time(rate: u64, ticks: u64) -> u64 {
    let ns = u128::from(ticks) * u128::from(TICK_NS);
    let bytes = (u128::from(rate) * ns + 500_000_000) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// A share of 2^32.
fn percent(chance: u64) -> String {
    let share = chance as f64 / f64::from(u32::MAX) * 100.0;
    let text = format!("{share:.5}");
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

const RATES: [&str; 5] = ["bit", "Kbit", "Mbit", "Gbit", "Tbit"];

/// `PSCHED_SHIFT` is 6: a tick is 64 ns (Linux `include/net/pkt_sched.h`).
const TICK_NS: u64 = 64;

/// `CODEL_DISABLED_THRESHOLD` and its kin, all ones.
const NEVER: u64 = u32::MAX as u64;

const CAKE_TINS: [&str; 5] = ["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"];
const CAKE_CELLS: [&str; 3] = ["noatm", "atm", "ptm"];
const CAKE_FLOWS: [&str; 8] = [
    "flowblind",
    "srchost",
    "dsthost",
    "hosts",
    "flows",
    "dual-srchost",
    "dual-dsthost",
    "triple-isolate",
];
const CAKE_ACKS: [&str; 3] = ["no", "on", "aggressive"];

/// Fields of `tc_fq_qd_stats` that count.
const FQ: [&str; 7] = [
    "gc_flows",
    "highprio_packets",
    "tcp_retrans",
    "throttled",
    "flows_plimit",
    "pkts_too_long",
    "allocation_errors",
];
/// Of `tc_fq_codel_qd_stats`.
const FQ_CODEL: [&str; 9] = [
    "maxpacket",
    "drop_overlimit",
    "ecn_mark",
    "new_flow_count",
    "new_flows_len",
    "old_flows_len",
    "ce_mark",
    "memory_usage",
    "drop_overmemory",
];
/// Of `tc_codel_xstats`.
const CODEL: [&str; 10] = [
    "maxpacket",
    "count",
    "lastcount",
    "ldelay",
    "",
    "drop_overlimit",
    "ecn_mark",
    "dropping",
    "ce_mark",
    "drop_next",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_in_the_units_of_tc() {
        assert_eq!([bytes(32 << 20), bytes(1536), bytes(0)], ["32Mb", "1536b", "0b"]);
        assert_eq!([bits(10_000_000), bits(1_500_000), bits(7)], ["10Mbit", "1500Kbit", "7bit"]);
        assert_eq!(
            [time_us(4999), time_us(100_000), time_us(10_000_000)],
            ["4999us", "100ms", "10s"]
        );
        assert_eq!(
            [percent(u64::from(u32::MAX) / 100), percent(u64::from(u32::MAX))],
            ["1%", "100%"]
        );
    }

    #[test]
    fn bursts_are_times_at_their_rate() {
        // 20,000 bytes at 10 Mbit/s are 16 ms, 250,000 ticks.
        assert_eq!(in_time(1_250_000, 250_000), 20_000);
        assert_eq!(in_time(u64::MAX, u64::from(u32::MAX)), u64::MAX);
    }
}
