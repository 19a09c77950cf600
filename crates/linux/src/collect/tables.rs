//! The tables of `/proc` as data: pure functions over their text.
//!
//! Kernels add columns and lines; what is short of some is kept as far as it goes, and what makes no
//! sense is left out. Whoever gets less than there should be sees that it is absent, never 0.

use std::collections::BTreeMap;

use tcpwhy::host::snapshot::{Conntrack, Neighbours, Pressure, Processor, Softnet};

/// A table of numbers: group, name, value.
pub(super) type Grouped<T> = BTreeMap<String, BTreeMap<String, T>>;

/// `/proc/net/sockstat`: lines of a group and pairs of name and value.
pub(super) fn sockstat(text: &str) -> Grouped<u64> {
    let mut found = Grouped::new();
    for line in text.lines() {
        let Some((group, pairs)) = line.split_once(':') else { continue };
        let words: Vec<&str> = pairs.split_ascii_whitespace().collect();
        let values = words.chunks_exact(2).filter_map(|two| Some((two[0], two[1].parse().ok()?)));
        let group = found.entry(group.to_owned()).or_default();
        group.extend(values.map(|(name, value)| (name.to_owned(), value)));
    }
    found
}

/// `/proc/net/snmp6`: a counter a line, its group in front of its name (`Ip6InReceives`).
pub(super) fn snmp6(text: &str) -> Grouped<i64> {
    let mut found = Grouped::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else { continue };
        let (Some(end), Ok(value)) = (name.find('6'), value.parse()) else { continue };
        let (group, name) = name.split_at(end + 1);
        found.entry(group.to_owned()).or_default().insert(name.to_owned(), value);
    }
    found
}

/// `/proc/net/softnet_stat`: a row of hexadecimal columns for each processor online. The columns have
/// no names; the number of the processor is the 13th since Linux 5.10, and the row's before
/// (`softnet_seq_show`, Linux `net/core/net-procfs.c`).
pub(super) fn softnet(text: &str) -> Vec<Softnet> {
    let row = |(row, line): (usize, &str)| {
        let columns: Vec<u32> = line
            .split_ascii_whitespace()
            .map_while(|column| u32::from_str_radix(column, 16).ok())
            .collect();
        Some(Softnet {
            cpu: columns.get(12).copied().unwrap_or(row as u32),
            processed: *columns.first()?,
            dropped: *columns.get(1)?,
            time_squeeze: *columns.get(2)?,
            received_rps: columns.get(9).copied().unwrap_or(0),
            flow_limit: columns.get(10).copied(),
            backlog: columns.get(11).copied(),
        })
    };
    text.lines().enumerate().filter_map(row).collect()
}

/// `/proc/stat`: the lines of single processors (`proc_stat(5)`). What a guest takes is in `user`.
pub(super) fn processors(text: &str) -> Vec<Processor> {
    let of = |line: &str| {
        let own = line.strip_prefix("cpu").filter(|own| !own.starts_with(' '))?;
        let mut words = own.split_ascii_whitespace();
        let cpu = words.next()?.parse().ok()?;
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let at = |column: usize| ticks.get(column).copied();
        Some(Processor {
            cpu,
            user: at(0)?.saturating_add(at(1)?),
            system: at(2)?,
            idle: at(3)?,
            iowait: at(4).unwrap_or(0),
            irq: at(5).unwrap_or(0),
            softirq: at(6).unwrap_or(0),
            steal: at(7).unwrap_or(0),
        })
    };
    text.lines().filter_map(of).collect()
}

/// The lines of `/proc/vmstat` that tell of reclaim.
pub(super) fn reclaim(text: &str) -> BTreeMap<String, u64> {
    let wanted = |name: &str| RECLAIM.iter().any(|start| name.starts_with(start));
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .filter(|(name, _)| wanted(name))
        .filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)))
        .collect()
}

/// Bytes of a line of `/proc/meminfo`, which tells KiB.
pub(super) fn memory_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A file of `/proc/pressure`, or of a control group (Linux `Documentation/accounting/psi.rst`).
pub(super) fn pressure(text: &str) -> Option<Pressure> {
    let line = |kind: &str| text.lines().find_map(|line| line.strip_prefix(kind));
    let word = |line: &str, name: &str| {
        line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name).map(str::to_owned))
    };
    let some = line("some ")?;
    Some(Pressure {
        some_avg10: hundredths(&word(some, "avg10=")?)?,
        full_avg10: line("full ").and_then(|full| hundredths(&word(full, "avg10=")?)),
        some_total_ns: word(some, "total=")?.parse::<u64>().ok()?.checked_mul(1000)?,
    })
}

/// A percentage with two decimals, in hundredths.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.')?;
    if part.len() != 2 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(part.parse().ok()?)
}

/// `/proc/net/stat/arp_cache` and its kin: a header, then hexadecimal values for each processor. The
/// number of entries is that of the whole table in each row (`neigh_stat_seq_show`).
pub(super) fn neighbours(text: &str) -> Option<Neighbours> {
    let sums = stat(text)?;
    Some(Neighbours { entries: sums.first("entries")?, table_fulls: sums.of("table_fulls")? })
}

/// `/proc/net/stat/nf_conntrack`; how many entries there are and may be stand elsewhere.
pub(super) fn conntrack(text: &str, count: u64, max: u64) -> Option<Conntrack> {
    let sums = stat(text)?;
    let stat = CONNTRACK.iter().filter_map(|name| Some(((*name).to_owned(), sums.of(name)?)));
    Some(Conntrack { count, max, stat: stat.collect() })
}

/// Columns by name: the value of the first row, and the sum of all.
struct Stat<'a>(Vec<(&'a str, u64, u64)>);

impl Stat<'_> {
    fn first(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(own, ..)| *own == name).map(|&(_, first, _)| first)
    }

    fn of(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(own, ..)| *own == name).map(|&(.., sum)| sum)
    }
}

fn stat(text: &str) -> Option<Stat<'_>> {
    let mut lines = text.lines();
    let mut columns: Vec<_> =
        lines.next()?.split_ascii_whitespace().map(|name| (name, 0_u64, 0_u64)).collect();
    let mut known = columns.len();
    for (row, line) in lines.enumerate() {
        let mut values = 0;
        for (column, value) in columns.iter_mut().zip(line.split_ascii_whitespace()) {
            let Ok(value) = u64::from_str_radix(value, 16) else { break };
            if row == 0 {
                column.1 = value;
            }
            column.2 = column.2.saturating_add(value);
            values += 1;
        }
        known = known.min(values);
    }
    // A column that some row lacks has no sum.
    columns.truncate(known);
    Some(Stat(columns))
}

/// Two numbers: `net.ipv4.ip_local_port_range`.
pub(super) fn range(text: &str) -> Option<[u16; 2]> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (low, high) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (low <= high).then_some([low, high])
}

/// `/proc/sys/fs/file-nr`: in use (the second number, free ones, is always 0 since Linux 2.6), and the most.
pub(super) fn file_nr(text: &str) -> Option<[u64; 2]> {
    let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
    let (used, _free, most): (_, u64, _) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some([used, most])
}

/// How many numbers a list has (`0-3,8`).
pub(super) fn count_of_list(text: &str) -> Option<u32> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
    };
    text.trim().split(',').map(count).try_fold(0_u32, |sum, count| sum.checked_add(count?))
}

/// A value of os-release(5).
pub(super) fn os_release(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

const RECLAIM: [&str; 4] = ["allocstall", "pgscan_direct", "pgsteal_direct", "oom_kill"];

const CONNTRACK: [&str; 5] = ["drop", "early_drop", "insert_failed", "error", "search_restart"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sockstat_is_pairs() {
        let text =
            "sockets: used 9\nTCP: inuse 4 orphan 0 tw 2 alloc 5 mem 3\nodd\nUDP: mem x a 1 cut";
        let found = sockstat(text);
        assert_eq!(found["TCP"]["mem"], 3);
        assert_eq!(found["UDP"], BTreeMap::from([("a".to_owned(), 1)]));
    }

    #[test]
    fn snmp6_has_its_groups_in_its_names() {
        let found =
            snmp6("Ip6InReceives  \t5\nUdpLite6InErrors 1\nIcmp6OutType133 2\nIp6Cut\nNone 3\n");
        assert_eq!(found["Ip6"]["InReceives"], 5);
        assert_eq!(found["UdpLite6"]["InErrors"], 1);
        assert_eq!(found["Icmp6"]["OutType133"], 2);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn softnet_of_any_kernel() {
        let row = |columns: usize| {
            let all =
                "00f8ca28 00000036 00000004 0 0 0 0 0 0 0000000a 0000000b 0000000c 00000005 1 2 3";
            all.split(' ').take(columns).collect::<Vec<_>>().join(" ")
        };
        let [old] = softnet(&row(9)).try_into().expect("one");
        assert_eq!((old.cpu, old.processed, old.dropped, old.time_squeeze), (0, 0xf8_ca28, 54, 4));
        assert_eq!((old.received_rps, old.flow_limit, old.backlog), (0, None, None));
        let [six] = softnet(&row(13)).try_into().expect("one");
        assert_eq!((six.cpu, six.received_rps, six.flow_limit), (5, 10, Some(11)));
        let [more] = softnet(&row(16)).try_into().expect("one");
        assert_eq!(more, six);
        assert_eq!(softnet("1 2\n"), [], "cut");
    }

    #[test]
    fn processors_without_their_sum() {
        let text = "cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4\ncpu2 1\nintr 5\n";
        let [first, old] = processors(text).try_into().expect("two");
        assert_eq!(
            (first.cpu, first.user, first.system, first.softirq, first.steal),
            (0, 3, 3, 7, 8)
        );
        assert_eq!((old.cpu, old.idle, old.steal), (1, 4, 0));
    }

    #[test]
    fn memory_and_reclaim() {
        let text = "MemTotal:       16376956 kB\nMemAvailable:    1 kB\nHugePages: 3\n";
        assert_eq!(memory_bytes(text, "MemTotal"), Some(16_376_956 << 10));
        assert_eq!(memory_bytes(text, "HugePages"), None);
        let found =
            reclaim("pgscan_direct 4\nallocstall_normal 2\nnr_free_pages 7\nallocstall_dma\n");
        assert_eq!(found.len(), 2);
        assert_eq!(found["allocstall_normal"], 2);
    }

    #[test]
    fn pressure_in_hundredths() {
        let text = "some avg10=92.29 avg60=92.46 avg300=61.65 total=22540514953\n\
                    full avg10=0.05 avg60=0.00 avg300=0.00 total=0\n";
        let found = pressure(text).expect("whole");
        assert_eq!((found.some_avg10, found.full_avg10), (9229, Some(5)));
        assert_eq!(found.some_total_ns, 22_540_514_953_000);
        assert_eq!(pressure("full avg10=0.00 total=1\n"), None);
    }

    #[test]
    fn columns_of_stat_are_found_by_name() {
        let text =
            "entries  allocs table_fulls extra\n0000000a 1 00000010 0\n0000000a 2 00000001\n";
        assert_eq!(neighbours(text), Some(Neighbours { entries: 10, table_fulls: 17 }));
        assert_eq!(neighbours("entries allocs table_fulls\n0000000a 00000001\n"), None, "cut");
        let found = conntrack("entries drop early_drop\n1 2 3\n1 ff 0\n", 7, 8).expect("a header");
        assert_eq!((found.count, found.max, found.stat["drop"]), (7, 8, 257));
    }

    #[test]
    fn a_range_of_ports_has_two_ends() {
        assert_eq!(range("32768\t60999\n"), Some([32768, 60999]));
        assert_eq!([range("60999 32768"), range("1"), range("1 70000")], [None; 3]);
    }

    #[test]
    fn descriptors_and_names() {
        assert_eq!(
            file_nr("1024\t0\t9223372036854775807\n"),
            Some([1024, 9_223_372_036_854_775_807])
        );
        assert_eq!(file_nr("1024 0"), None);
        assert_eq!(count_of_list("0-3,8\n"), Some(5));
        assert_eq!((count_of_list(""), count_of_list("3-0")), (None, None));
        let text = "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n";
        assert_eq!(os_release(text, "PRETTY_NAME").as_deref(), Some("Debian GNU/Linux 12"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[ -~\\n\\t]{0,400}|\\PC{0,60}") {
            let _ = (sockstat(&text), snmp6(&text), softnet(&text), processors(&text));
            let _ = (reclaim(&text), memory_bytes(&text, "M"), pressure(&text));
            let _ = (neighbours(&text), conntrack(&text, 0, 0), file_nr(&text), count_of_list(&text));
        }

        #[test]
        fn rows_with_any_numbers_are_read_or_left_out(rows in proptest::collection::vec(
            proptest::collection::vec(any::<u64>(), 0..16), 0..8)) {
            let row = |row: &Vec<u64>| row.iter().map(|n| format!("{n:x}")).collect::<Vec<_>>().join(" ");
            let text = rows.iter().map(row).collect::<Vec<_>>().join("\n");
            let _ = (softnet(&text), processors(&text.replace('\n', "\ncpu")), neighbours(&text));
        }
    }
}
