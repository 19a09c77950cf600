//! The machine: its kernel, memory and processors, and what these wait for.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use tcpwhy::host::snapshot::{Conntrack, Look, Neighbours, Pressure, Snapshot, Source};

use super::blind::{Blind, read};
use super::{sys, tables};

/// What stays: kernel, system, memory, clock.
pub(super) fn describe(snapshot: &mut Snapshot, blind: &mut Blind) {
    let kernel = blind.file(Source::Machine, "/proc/sys/kernel/osrelease");
    snapshot.kernel = kernel.map(|text| text.trim().to_owned());
    snapshot.system = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| tables::os_release(&read(Path::new(path)).ok()?, "PRETTY_NAME"));
    snapshot.page_bytes = Some(sys::page_bytes());
    let memory = blind.file(Source::Machine, "/proc/meminfo");
    snapshot.memory_bytes = memory.and_then(|text| tables::memory_bytes(&text, "MemTotal"));
    // A list: `0-3,8`.
    let online = blind.file(Source::Machine, "/sys/devices/system/cpu/online");
    snapshot.processors = online.and_then(|text| tables::count_of_list(&text));
    snapshot.nodes = nodes();
    let clock = blind.file_if_there(Source::Machine, CLOCK_SOURCE);
    snapshot.clock_source = clock.map(|text| text.trim().to_owned());
}

/// What changes: processors, reclaim, pressure, descriptors.
pub(super) fn look(look: &mut Look, blind: &mut Blind) {
    let softnet = blind.file(Source::Softnet, "/proc/thread-self/net/softnet_stat");
    look.softnet = softnet.map(|text| tables::softnet(&text));
    let stat = blind.file(Source::Processors, "/proc/stat");
    look.processors = stat.map(|text| tables::processors(&text));
    let vmstat = blind.file(Source::Reclaim, "/proc/vmstat");
    look.vmstat = vmstat.map(|text| tables::reclaim(&text));
    let memory = blind.file(Source::Reclaim, "/proc/meminfo");
    look.available_bytes = memory.and_then(|text| tables::memory_bytes(&text, "MemAvailable"));
    look.pressure = pressure(blind);
    let files = blind.file(Source::Settings, "/proc/sys/fs/file-nr");
    look.files = files.and_then(|text| tables::file_nr(&text));
}

fn pressure(blind: &mut Blind) -> Option<BTreeMap<String, Pressure>> {
    if let Err(error) = fs::metadata("/proc/pressure") {
        match no_pressure(error.kind(), Path::new("/proc/stat").exists()) {
            Some([why, grant]) => blind.say_with(Source::Pressure, None, why, grant),
            None => blind.refused(Source::Pressure, Some("/proc/pressure"), &error),
        }
        return None;
    }
    let mut found = BTreeMap::new();
    for resource in ["cpu", "memory", "io", "irq"] {
        // `irq` is there since Linux 6.1, and only where interrupts are accounted.
        let text = blind.file_if_there(Source::Pressure, format!("/proc/pressure/{resource}"));
        if let Some(pressure) = text.and_then(|text| tables::pressure(&text)) {
            found.insert(resource.to_owned(), pressure);
        }
    }
    Some(found)
}

/// Why there is no `/proc/pressure`, and what would help; `None` where that is not what it says.
fn no_pressure(error: ErrorKind, shows_the_host: bool) -> Option<[&'static str; 2]> {
    match (error, shows_the_host) {
        (ErrorKind::NotFound, true) => Some([
            "this kernel keeps none (CONFIG_PSI), or was started without it",
            "start the kernel with psi=1",
        ]),
        // proc(5): with `subset=pid` only processes are there.
        (ErrorKind::NotFound, false) => Some([
            "/proc does not show the host here: it is mounted with subset=pid, or not at all",
            "look where /proc is mounted whole",
        ]),
        _ => None,
    }
}

/// Processors of the NUMA nodes; `None` where the kernel was built without them.
fn nodes() -> Option<BTreeMap<u32, String>> {
    let entries = fs::read_dir("/sys/devices/system/node").ok()?.flatten();
    let each = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        Some((number, read(&entry.path().join("cpulist")).ok()?.trim().to_owned()))
    });
    Some(each.collect())
}

/// Parameters of modules that concern TCP; `None` where there is no `/sys`.
pub(super) fn module_parameters() -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for module in fs::read_dir("/sys/module").ok()?.flatten() {
        let own = module.file_name().to_string_lossy().into_owned();
        if !own.starts_with("tcp_") && own != "nf_conntrack" {
            continue;
        }
        let parameters = fs::read_dir(module.path().join("parameters"));
        for parameter in parameters.into_iter().flatten().flatten() {
            if let Ok(value) = read(&parameter.path()) {
                let name = format!("{own}.{}", parameter.file_name().to_string_lossy());
                found.insert(name, value.trim().to_owned());
            }
        }
    }
    Some(found)
}

/// Connection tracking of this thread's namespace; `None` within if there is none.
#[expect(clippy::option_option, reason = "as the snapshot keeps it")]
pub(super) fn conntrack(blind: &mut Blind) -> Option<Option<Conntrack>> {
    let mut number = |name: &str| {
        let path = format!("/proc/sys/net/netfilter/nf_conntrack_{name}");
        blind.file_if_there(Source::Conntrack, path).map(|text| text.trim().parse::<u64>())
    };
    let (Some(count), Some(max)) = (number("count"), number("max")) else {
        // One that is there and was not read may well be in use.
        let is_told = |path: &str| fs::exists(path).unwrap_or(true);
        let is_absent =
            is_told("/proc/sys/net") && !is_told("/proc/sys/net/netfilter/nf_conntrack_count");
        return is_absent.then_some(None);
    };
    let text = blind.file(Source::Conntrack, "/proc/thread-self/net/stat/nf_conntrack")?;
    Some(Some(tables::conntrack(&text, count.ok()?, max.ok()?)?))
}

/// The tables of neighbours; their counters are of all namespaces.
pub(super) fn neighbours(blind: &mut Blind) -> Option<BTreeMap<String, Neighbours>> {
    let mut found = BTreeMap::new();
    for table in ["arp_cache", "ndisc_cache"] {
        let path = format!("/proc/thread-self/net/stat/{table}");
        let text = blind.file_if_there(Source::Neighbours, path);
        if let Some(neighbours) = text.and_then(|text| tables::neighbours(&text)) {
            found.insert(table.to_owned(), neighbours);
        }
    }
    Some(found).filter(|found| !found.is_empty())
}

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_the_kernel_keeps_no_pressure_is_said_only_where_proc_shows_the_host() {
        let why = |error, shows| no_pressure(error, shows).map(|[why, _]| why);
        assert!(why(ErrorKind::NotFound, true).is_some_and(|why| why.contains("CONFIG_PSI")));
        assert!(why(ErrorKind::NotFound, false).is_some_and(|why| why.contains("subset=pid")));
        assert_eq!(why(ErrorKind::PermissionDenied, true), None);
    }

    #[test]
    fn this_machine_has_a_kernel_memory_and_processors() {
        let (mut snapshot, mut seen, mut blind) =
            (Snapshot::default(), Look::default(), Blind::default());
        describe(&mut snapshot, &mut blind);
        look(&mut seen, &mut blind);
        assert!(snapshot.kernel.is_some_and(|kernel| !kernel.is_empty()));
        assert!(snapshot.page_bytes.is_some_and(u64::is_power_of_two));
        assert!(snapshot.memory_bytes > seen.available_bytes);
        let processors = seen.processors.expect("/proc is mounted");
        assert_eq!(processors.len(), seen.softnet.expect("/proc is mounted").len());
        assert!(seen.files.is_some_and(|[used, most]| used <= most));
    }
}
