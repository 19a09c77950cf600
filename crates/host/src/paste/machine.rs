//! What is of the whole host: `/proc/net/sockstat`, `softnet_stat`, `/proc/interrupts`, `ss -s`, `uname`,
//! `uptime`.

use super::Taken;
use super::collected::{Collected, Grouped};
use super::command::Command;
use crate::snapshot::{Interrupt, Softnet};

/// `TCP: inuse 37 orphan 14 tw 8 alloc 39 mem 9`.
pub(super) fn sockstat(text: &str, collected: &mut Collected) -> bool {
    const GROUPS: [&str; 10] =
        ["sockets", "TCP", "UDP", "UDPLITE", "RAW", "FRAG", "TCP6", "UDP6", "RAW6", "FRAG6"];
    let Some((group, rest)) = text.split_once(": ") else { return false };
    let words: Vec<&str> = rest.split_whitespace().collect();
    if !GROUPS.contains(&group) || words.is_empty() || !words.len().is_multiple_of(2) {
        return false;
    }
    let mut values = Vec::new();
    for pair in words.chunks_exact(2) {
        let [name, value] = pair else { return false };
        let Ok(value) = value.parse::<u64>() else { return false };
        values.push(((*name).to_owned(), value));
    }
    let now = collected.now;
    if collected.sockstat.last().is_some_and(|all| all.contains_key(group)) {
        collected.sockstat.push(now, Grouped::new());
    }
    collected.sockstat.open(now).insert(group.to_owned(), values.into_iter().collect());
    true
}

/// `TCP:   115175 (estab 30148, closed 77237, orphaned 7771, synrecv 0, timewait 77237/0), ports 1139`.
pub(super) fn summary(text: &str, collected: &mut Collected) -> bool {
    if let Some(rest) = text.strip_prefix("Total: ") {
        return rest.starts_with(|c: char| c.is_ascii_digit());
    }
    let Some((_, inside)) = text.strip_prefix("TCP:").and_then(|rest| rest.split_once("(estab "))
    else {
        return false;
    };
    let of = |name: &str| -> Option<u64> {
        let (_, behind) = inside.split_once(name)?;
        behind.split([',', '/', ')']).next()?.trim().parse().ok()
    };
    let counts = [("orphan", of("orphaned ")), ("tw", of("timewait "))];
    let known = counts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let now = collected.now;
    collected.summary.push(now, known.collect());
    true
}

/// The table below: `TCP  37938  37938  0`, total, IPv4 and IPv6.
pub(super) fn summary_row(text: &str, collected: &mut Collected) -> Option<Taken> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let known = ["Transport", "*", "RAW", "UDP", "TCP", "INET", "FRAG"].contains(&first);
    if first == "TCP"
        && let Some(Ok(in_use)) = words.nth(1).map(str::parse)
        && let Some(summary) = collected.summary.last()
    {
        summary.insert("inuse".to_owned(), in_use);
    }
    known.then_some(Taken::Read)
}

/// A row of `/proc/net/softnet_stat`: hexadecimal columns, nine on old kernels and fifteen on new ones.
///
/// v6.12 `net/core/net-procfs.c`, `softnet_seq_show`: processed, dropped, `time_squeeze`, six that are
/// nothing any more, `received_rps`, `flow_limit`, the backlog, the processor, and two of its parts.
pub(super) fn softnet(text: &str, goes_on: bool, collected: &mut Collected) -> bool {
    let is_column =
        |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() < 9 || !words.iter().all(|word| is_column(word)) {
        return false;
    }
    let column = |at: usize| words.get(at).and_then(|word| u32::from_str_radix(word, 16).ok());
    let now = collected.now;
    if !goes_on {
        collected.softnet.push(now, Vec::new());
    }
    let rows = collected.softnet.open(now);
    rows.push(Softnet {
        // Before the processor was told, a row was one that is online, in their order.
        cpu: column(12).unwrap_or(rows.len() as u32),
        processed: column(0).unwrap_or_default(),
        dropped: column(1).unwrap_or_default(),
        time_squeeze: column(2).unwrap_or_default(),
        received_rps: column(9).unwrap_or_default(),
        flow_limit: column(10),
        backlog: column(11),
    });
    true
}

/// A table of interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// How many processors it has a column for.
    processors: usize,
    /// Its reading has begun.
    is_open: bool,
}

/// The head of `/proc/interrupts`.
pub(super) fn interrupts(text: &str, collected: &mut Collected) -> Option<Columns> {
    let is_cpu = |word: &str| word.strip_prefix("CPU").is_some_and(|n| n.parse::<u32>().is_ok());
    let count = text.split_whitespace().count();
    if count == 0 || !text.split_whitespace().all(is_cpu) {
        return None;
    }
    let now = collected.now;
    collected.interrupts.push(now, Vec::new());
    Some(Columns { processors: count, is_open: true })
}

impl Columns {
    /// ` 28:   0   13   PCI-MSI 524288-edge   eth0-TxRx-0`; kept if its name is that of a network device.
    pub(super) fn line(&mut self, text: &str, collected: &mut Collected) -> Option<Taken> {
        let (irq, rest) = text.split_once(':')?;
        if SOFTIRQS.contains(&irq) {
            // The head is the same, and the table is not of interrupts.
            collected.interrupts.take_back_empty();
            return Some(Taken::Read);
        }
        if irq.len() > 6 || irq.contains(' ') {
            return None;
        }
        let mut words = rest.split_whitespace();
        let counts: Vec<u64> =
            words.by_ref().take(self.processors).map_while(|word| word.parse().ok()).collect();
        if counts.len() == self.processors
            && let Ok(irq) = irq.parse()
            && let Some(name) = words.next_back()
            && let Some(dev) = device_in(name, collected)
        {
            let name = name.to_owned();
            let now = collected.now;
            if !core::mem::replace(&mut self.is_open, true) {
                collected.interrupts.push(now, Vec::new());
            }
            let all = collected.interrupts.open(now);
            all.push(Interrupt { irq, dev, name, counts, affinity: None, effective: None });
        }
        Some(Taken::Read)
    }
}

/// Rows of `/proc/softirqs` (`softirq_to_name`, Linux v6.12 `kernel/softirq.c`).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// A row of `/proc/interrupts` without the head above it (`grep eth0 /proc/interrupts`): there are as many processors
/// as numbers.
pub(super) fn interrupts_of_device(text: &str, collected: &mut Collected) -> Option<Columns> {
    let (irq, rest) = text.split_once(':')?;
    irq.parse::<u32>().ok()?;
    let counts = rest.split_whitespace().take_while(|word| word.parse::<u64>().is_ok()).count();
    let mut behind = rest.split_whitespace().skip(counts);
    // The kind of controller, and the name of what interrupts.
    let (kind, name) = (behind.next()?, behind.last()?);
    let is_kind = kind.starts_with(|c: char| c.is_ascii_uppercase());
    let is_of_device = device_in(name, collected).is_some();
    let triggers = ["-edge", "-fasteoi", "-level"].iter().any(|how| rest.contains(how));
    if counts == 0 || !is_kind || !(is_of_device || triggers) {
        return None;
    }
    // Of other devices nothing is wanted: then no interrupts were seen, and no reading begins.
    let mut columns = Columns { processors: counts, is_open: false };
    columns.line(text, collected)?;
    Some(columns)
}

/// The device in the name of an interrupt: one that the text shows, or a name that only network devices
/// have (systemd.net-naming-scheme(7), and the kernel's `eth%d`).
fn device_in(name: &str, collected: &Collected) -> Option<String> {
    let parts = name.split(['-', '@', ',', '.', ':']);
    let shape = |part: &str| {
        let plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let begins = ["eth", "eno", "ens", "enp", "enx", "wlan", "wlp", "ib"].iter().any(|start| {
            part.strip_prefix(start)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        plain && begins
    };
    let mut parts = parts.filter(|part| collected.links.contains_key(*part) || shape(part));
    parts.next().map(str::to_owned).or_else(|| of_driver(name))
}

/// The device in a name that only the driver of a network device gives: `virtio0-input.0` (Linux `virtnet_find_vqs`),
/// `mlx5_comp3@pci:0000:3b:00.0` (`mlx5_irq_set_name`).
fn of_driver(name: &str) -> Option<String> {
    if let Some((dev, queue)) = name.split_once('-')
        && dev.starts_with("virtio")
        && (queue.starts_with("input.") || queue.starts_with("output."))
    {
        return Some(dev.to_owned());
    }
    let (_, place) = name.strip_prefix("mlx5_comp")?.split_once("@pci:")?;
    Some(format!("mlx5 at {place}"))
}

/// `Linux web-1 6.1.0-28-amd64 #1 SMP ..`, and the version alone below `uname -r`.
pub(super) fn kernel(text: &str, command: &Command, collected: &mut Collected) -> bool {
    let version = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.matches('.').count() >= 1
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+~".contains(&byte))
    };
    let mut words = text.split_whitespace();
    let found = match (words.next(), words.next(), words.next(), words.next()) {
        (Some("Linux"), Some(_), Some(release), Some(build)) if build.starts_with('#') => release,
        (Some(release), None, None, None) if command.arguments("uname").is_some() => release,
        _ => return uptime(text, collected),
    };
    if !version(found) {
        return false;
    }
    collected.kernel = Some(found.to_owned());
    true
}

/// ` 10:45:49 up 3 days,  2:11,  1 user,  load average: ..`, to the minute.
fn uptime(text: &str, collected: &mut Collected) -> bool {
    let Some((_, rest)) = text.split_once(" up ") else { return false };
    if !rest.contains("load average:") {
        return false;
    }
    let mut minutes = 0_u64;
    for part in rest.split(',').map(str::trim) {
        let number = |unit: &str| {
            let (number, behind) = part.split_once(' ')?;
            behind.starts_with(unit).then(|| number.parse::<u64>().ok()).flatten()
        };
        if let Some(days) = number("day") {
            minutes = minutes.saturating_add(days.saturating_mul(24 * 60));
        } else if let Some(alone) = number("min") {
            minutes = minutes.saturating_add(alone);
        } else if let Some((hours, left)) = part.split_once(':')
            && let (Ok(hours), Ok(left)) = (hours.parse::<u64>(), left.parse::<u64>())
        {
            minutes = minutes.saturating_add(hours.saturating_mul(60).saturating_add(left));
        }
    }
    collected.uptime_ns = Some(minutes.saturating_mul(60_000_000_000));
    true
}

/// A service that `systemctl status` describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service(String);

/// `● irqbalance.service - irqbalance daemon`
pub(super) fn service(text: &str) -> Option<Service> {
    let name = text.split_whitespace().find_map(|word| word.strip_suffix(".service"))?;
    let begins = text.split(".service").next()?.split_whitespace().count() <= 2;
    begins.then(|| Service(name.to_owned()))
}

impl Service {
    /// A line below it.
    pub(super) fn line(&self, text: &str, collected: &mut Collected) -> bool {
        const NAMES: [&str; 11] = [
            "Loaded",
            "Active",
            "Main PID",
            "Process",
            "Tasks",
            "Memory",
            "CPU",
            "CGroup",
            "Docs",
            "Drop-In",
            "TriggeredBy",
        ];
        let Some((name, value)) = text.split_once(':') else {
            return text.starts_with(['└', '├']) || text.contains("systemd");
        };
        let is_agent = ["bpftune", "tuned", "irqbalance"].contains(&self.0.as_str());
        if is_agent && name == "Active" && value.trim_start().starts_with("active (running)") {
            collected.agents.insert(self.0.clone());
        }
        NAMES.contains(&name) || text.contains("systemd[")
    }
}

/// What tools say when they cannot.
pub(super) fn noise(text: &str) -> bool {
    const STARTS: [&str; 9] = [
        "netlink error:",
        "Cannot get ",
        "no stats available",
        "sysctl: ",
        "error: ",
        "bash: ",
        "-bash: ",
        "RTNETLINK answers:",
        "Error: ",
    ];
    STARTS.iter().any(|start| text.starts_with(start))
}
