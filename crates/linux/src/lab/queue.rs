//! How much waited for the link: what the emulator's journal, or else the observing kernel, says of it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use tcpwhy_model::scenario::plan::Plan;

use super::folder;
use super::uml::layout::{Discipline, Layout, Port, Setting};

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
}
