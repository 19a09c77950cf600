//! How much waited for the link, and when it was at work: what the emulator's journal, the model's, or else the observing
//! kernel, says of it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use tcpwhy_model::scenario::plan::Plan;

use super::folder;
use super::layout::{Discipline, Layout, Port, Setting};

/// The most bytes on layer 2 that waited at one time in a queue of the way down (from the server) or up,
/// a bucket at the sending host included. `None` where there is no such queue, or nobody looked.
///
/// # Errors
/// A record of the run in `folder` cannot be read.
pub fn most_waiting(plan: &Plan, folder: &Path, down: bool) -> io::Result<Option<u64>> {
    let journal = folder.join(folder::PACKETS);
    if journal.exists() {
        return in_journal(BufReader::new(File::open(journal)?), down);
    }
    let Ok(layout) = Layout::of(plan) else { return Ok(None) };
    let ports = layout.links.iter().map(|link| if down { &link.near } else { &link.far });
    let queues: Vec<&str> = ports.filter(|port| waits(port)).map(|port| &*port.device).collect();
    match File::open(folder.join(folder::KERNEL)) {
        Ok(file) => in_kernel(BufReader::new(file), &queues),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a link did, by the log of its own queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Its rate in bits per second on layer 2.
    pub rate: u64,
    /// When it was at work on a packet, from and to, in nanoseconds since 1970.
    pub spans: Vec<(u64, u64)>,
    /// When its queue had no room for a packet.
    pub dropped: Vec<u64>,
}

/// What the narrowest link of the way down (from the server) or up did; a bucket at the sending host counts if it `may_be_own`.
/// `None` where there is none of one rate throughout, or nobody looked.
///
/// # Errors
/// A record of the run in `folder` cannot be read.
pub fn work(plan: &Plan, folder: &Path, down: bool, may_be_own: bool) -> io::Result<Option<Work>> {
    let way = if down { &plan.path.down } else { &plan.path.up };
    if !plan.path.changes.is_empty() {
        return Ok(None);
    }
    let journal = folder.join(folder::PACKETS);
    if journal.exists() {
        let is_plain = way.rate > 0 && way.bucket.is_none();
        let file = BufReader::new(File::open(journal)?);
        return if is_plain { work_in_journal(file, down, way.rate).map(Some) } else { Ok(None) };
    }
    let links = folder.join(folder::LINKS);
    if links.exists() {
        let is_plain = way.rate > 0 && way.bucket.is_none();
        let file = BufReader::new(File::open(links)?);
        return if is_plain { work_in_model(file, down, way.rate).map(Some) } else { Ok(None) };
    }
    let Ok(layout) = Layout::of(plan) else { return Ok(None) };
    let ports = layout.links.iter().map(|link| if down { &link.near } else { &link.far });
    let own = if down { "server" } else { "client" };
    let buckets =
        ports.filter(|port| may_be_own || !port.device.starts_with(own)).flat_map(|port| {
            port.settings.iter().filter_map(|setting| match setting {
                Setting::Egress(Discipline::Tbf(tbf)) if tbf.rate > 0 => {
                    Some((tbf.rate, &*port.device))
                }
                _ => None,
            })
        });
    let Some((rate, device)) = buckets.min_by_key(|bucket| bucket.0) else { return Ok(None) };
    match File::open(folder.join(folder::KERNEL)) {
        Ok(file) => work_in_kernel(BufReader::new(file), device, rate).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn work_in_model(links: impl BufRead, down: bool, rate: u64) -> io::Result<Work> {
    #[derive(Deserialize)]
    struct Packet<'a> {
        t: u64,
        way: &'a str,
        fate: &'a str,
        bytes: Option<u64>,
    }
    let mut work = Work { rate, ..Work::default() };
    for line in links.lines() {
        let line = line?;
        let packet: Packet<'_> = serde_json::from_str(&line)?;
        match packet.bytes {
            _ if packet.way != if down { "down" } else { "up" } => {}
            Some(bytes) => work.spans.push((packet.t.saturating_sub(takes(bytes, rate)), packet.t)),
            None if packet.fate == "dropped" => work.dropped.push(packet.t),
            None => {}
        }
    }
    Ok(work)
}

/// How long this many bytes take.
fn takes(bytes: u64, rate: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(rate.max(1))).unwrap_or(u64::MAX)
}

fn work_in_journal(journal: impl BufRead, down: bool, rate: u64) -> io::Result<Work> {
    #[derive(Deserialize)]
    struct Packet<'a> {
        t: u64,
        way: &'a str,
        bytes: u64,
        fate: &'a str,
        left: Option<u64>,
    }
    let mut work = Work { rate, ..Work::default() };
    for line in journal.lines() {
        let line = line?;
        let packet: Packet<'_> = serde_json::from_str(&line)?;
        match packet.left {
            _ if packet.way != if down { "down" } else { "up" } => {}
            None if packet.fate == "queue_full" => work.dropped.push(packet.t),
            Some(left) if packet.fate != "copy" => {
                work.spans.push((left.saturating_sub(takes(packet.bytes, rate)), left));
            }
            _ => {}
        }
    }
    work.spans.sort_unstable();
    Ok(work)
}

/// A bucket of one packet lets each go as its turn on the wire begins.
fn work_in_kernel(events: impl BufRead, device: &str, rate: u64) -> io::Result<Work> {
    #[derive(Deserialize)]
    struct Backlog<'a> {
        t: u64,
        dev: &'a str,
        change: i64,
        bytes: u64,
        dropped: u64,
    }
    let mut work = Work { rate, ..Work::default() };
    let (mut before, mut dropped) = (0_u64, 0);
    for line in events.lines() {
        let line = line?;
        if !line.contains("\"qdisc_backlog\"") {
            continue;
        }
        let backlog: Backlog<'_> = serde_json::from_str(&line)?;
        if backlog.dev != device {
            continue;
        }
        if backlog.change < 0 {
            let end = backlog.t + takes(before.saturating_sub(backlog.bytes), rate);
            work.spans.push((backlog.t, end));
        }
        if backlog.dropped > dropped {
            work.dropped.push(backlog.t);
        }
        (before, dropped) = (backlog.bytes, backlog.dropped);
    }
    work.spans.sort_unstable();
    Ok(work)
}

/// Whether packets wait there for a link; delays keep packets, too, which is no queue.
fn waits(port: &Port) -> bool {
    let is_bucket = |s: &Setting| matches!(s, Setting::Egress(Discipline::Tbf(_)));
    port.settings.iter().any(is_bucket)
}

fn in_journal(journal: impl BufRead, down: bool) -> io::Result<Option<u64>> {
    #[derive(Deserialize)]
    struct Packet<'a> {
        way: &'a str,
        queue_bytes: u64,
    }
    let mut most = None;
    for line in journal.lines() {
        let line = line?;
        let packet: Packet<'_> = serde_json::from_str(&line)?;
        if packet.way == if down { "down" } else { "up" } {
            most = most.max(Some(packet.queue_bytes));
        }
    }
    Ok(most)
}

fn in_kernel(events: impl BufRead, queues: &[&str]) -> io::Result<Option<u64>> {
    #[derive(Deserialize)]
    struct Backlog<'a> {
        dev: &'a str,
        bytes: u64,
    }
    let mut most = None;
    for line in events.lines() {
        let line = line?;
        if !line.contains("\"qdisc_backlog\"") {
            continue;
        }
        let backlog: Backlog<'_> = serde_json::from_str(&line)?;
        if queues.contains(&backlog.dev) {
            most = most.max(Some(backlog.bytes));
        }
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tcpwhy_model::scenario::plan::Way;

    use super::*;

    /// A run at 1 Mbit/s down with this record.
    fn most(name: &str, record: &str, down: bool) -> Option<u64> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(name), record).expect("written");
        let mut plan = Plan::default();
        plan.path.down = Way { rate: 1_000_000, delay_ns: 1, ..Way::default() };
        most_waiting(&plan, folder.path(), down).expect("read")
    }

    #[test]
    fn the_journal_tells_each_way() {
        let journal = "{\"t\":1,\"way\":\"down\",\"queue_bytes\":3000}\n\
                       {\"t\":2,\"way\":\"up\",\"queue_bytes\":9000}\n\
                       {\"t\":3,\"way\":\"down\",\"queue_bytes\":0}\n";
        assert_eq!(most(folder::PACKETS, journal, true), Some(3000));
        assert_eq!(most(folder::PACKETS, journal, false), Some(9000));
    }

    #[test]
    fn the_kernel_tells_what_waits_for_the_link_and_not_what_is_on_its_way() {
        let layout = Layout::of(&Plan {
            path: tcpwhy_model::scenario::plan::Path {
                down: Way { rate: 1_000_000, delay_ns: 1, ..Way::default() },
                ..Default::default()
            },
            ..Plan::default()
        });
        let layout = layout.expect("a layout");
        let link = layout.links.iter().map(|l| &l.near).find(|p| waits(p)).expect("a queue");
        let line = |dev: &str, bytes| {
            format!("{{\"event\":\"qdisc_backlog\",\"dev\":\"{dev}\",\"bytes\":{bytes}}}\n")
        };
        let record =
            line(&link.device, 4500) + &line("client0", 70_000) + "{\"event\":\"other\"}\n";
        assert_eq!(most(folder::KERNEL, &record, true), Some(4500));
        assert_eq!(most(folder::KERNEL, &record, false), None, "no queue that way");
        assert_eq!(most(folder::KERNEL, "{\"event\":\"other\"}\n", true), None, "nobody looked");
    }

    #[test]
    fn a_link_works_while_packets_leave_it() {
        let journal = "{\"t\":1,\"way\":\"down\",\"bytes\":1000,\"fate\":\"delivered\",\"left\":9000000}\n\
                       {\"t\":2,\"way\":\"down\",\"bytes\":1000,\"fate\":\"queue_full\"}\n\
                       {\"t\":3,\"way\":\"up\",\"bytes\":40,\"fate\":\"lost\",\"left\":5}\n";
        let told = work_in_journal(journal.as_bytes(), true, 1_000_000).expect("read");
        assert_eq!((told.spans, told.dropped), (vec![(1_000_000, 9_000_000)], vec![2]));
        let line = |t: u64, change: i64, bytes: u64, dropped: u64| {
            format!(
                "{{\"event\":\"qdisc_backlog\",\"t\":{t},\"dev\":\"r1-c\",\"change\":{change},\"bytes\":{bytes},\
                 \"dropped\":{dropped}}}\n"
            )
        };
        let links = "{\"t\":9000000,\"way\":\"down\",\"fate\":\"sent\",\"bytes\":1000}\n\
                     {\"t\":5,\"way\":\"up\",\"fate\":\"sent\",\"bytes\":40}\n\
                     {\"t\":3,\"way\":\"down\",\"fate\":\"dropped\"}\n";
        let told = work_in_model(links.as_bytes(), true, 1_000_000).expect("read");
        assert_eq!((told.spans, told.dropped), (vec![(1_000_000, 9_000_000)], vec![3]));
        let record = line(5, 1, 1_000, 0) + &line(6, 0, 1_000, 1) + &line(7, -1, 0, 1);
        let told = work_in_kernel(record.as_bytes(), "r1-c", 1_000_000).expect("read");
        assert_eq!((told.spans, told.dropped), (vec![(7, 8_000_007)], vec![6]));
    }
}
