//! Tasks wait for processors, memory or disks.
//!
//! # What it says
//! A program that waits for a disk or a processor reads and accepts late: windows close, accept queues fill, and
//! the network looks slow.
//!
//! # How we know
//! `some avg10` in `/proc/pressure`, the share of the last ten seconds in which some task waited, is above 20 %; control
//! groups of programs with sockets are asked the same.
//!
//! # What it is not
//! Not that the task which waited is the one with the slow connection.
//!
//! # What to do
//! Find who waits (for disks `iotop`, `pidstat -d` and processes in state `D`; for processors `top`; for memory `vmstat`), then free the
//! resource.
//!
//! # Sources
//! Documentation/accounting/psi.rst (since Linux 4.20). 20 %: ours, not measured.

use super::host_stalls::{PRESSED, hundredths, resource};
use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check =
    Check { code: "PRESSURE", file: include_str!("pressure.rs"), group: Group::Host, judge };

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let host = seen.now.pressure.as_ref();
    let groups = seen.now.groups.as_ref();
    if host.is_none() && groups.is_none() {
        return Err(Missing::all(Source::Pressure));
    }
    let mut found: Vec<Finding> = host
        .into_iter()
        .flatten()
        .filter(|(_, pressure)| pressure.some_avg10 > PRESSED)
        .map(|(name, pressure)| {
            let share = hundredths(pressure.some_avg10);
            // Of the whole host's processors the kernel reports none (psi.rst).
            let all = pressure.full_avg10.filter(|_| name != "cpu");
            let all = all.map(|full| format!(", all of them {}", hundredths(full)));
            let evidence = Evidence::new(
                format!("/proc/pressure/{name} avg10"),
                format!("some {share}{}", all.unwrap_or_default()),
            );
            let title =
                format!("tasks waited for {} {share} of the last ten seconds", resource(name));
            finding(seen, title, vec![evidence], who_waits(name))
        })
        .collect();
    let pressed: Vec<Evidence> = groups
        .into_iter()
        .flatten()
        .flat_map(|(path, group)| {
            let each = [("memory", group.memory_some_avg10), ("io", group.io_some_avg10)];
            each.into_iter().filter_map(move |(what, share)| {
                let share = share.filter(|share| *share > PRESSED)?;
                Some(Evidence::new(
                    format!("/sys/fs/cgroup{path}/{what}.pressure some avg10"),
                    hundredths(share),
                ))
            })
        })
        .take(words::WORST)
        .collect();
    if !pressed.is_empty() && found.is_empty() {
        let title = "programs in control groups wait for memory or disks".to_owned();
        found.push(finding(seen, title, pressed, "find who waits: pidstat -d -r 1"));
    }
    Ok(found)
}

fn who_waits(resource: &str) -> &'static str {
    match resource {
        "cpu" => "find who takes the processors: top, pidstat -u 1",
        "memory" => "find who takes the memory: vmstat 1, pidstat -r 1",
        "irq" => "find which interrupts take the time: mpstat -I ALL 1",
        _ => "find who waits: iotop, pidstat -d 1",
    }
}

fn finding(seen: &Seen<'_>, title: String, mut evidence: Vec<Evidence>, advice: &str) -> Finding {
    let stuck =
        seen.processes().into_iter().flatten().filter(|(_, process)| process.state == Some('D'));
    let stuck: Vec<String> =
        stuck.map(|(pid, process)| format!("{} ({pid})", process.name)).collect();
    if !stuck.is_empty() {
        evidence.push(Evidence::new("ps -eo pid,stat,comm, state D", words::named(&stuck)));
    }
    Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: Scope::Host,
        title,
        why: "a program that waits reads and accepts late: its windows close and its queues fill, and the network \
              looks slow."
            .to_owned(),
        not: "not that the task which waited is the one with the slow connection".to_owned(),
        evidence,
        fixes: vec![words::advise(advice, "")],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, running};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::{Group, Pressure, Snapshot};

    fn io(some_avg10: u32) -> Snapshot {
        each_look(running(host(&[]), "db", 'D'), |_, look| {
            let io = Pressure { some_avg10, full_avg10: Some(1234), ..Pressure::default() };
            look.pressure = Some([("io".to_owned(), io)].into());
        })
    }

    #[test]
    fn pressure_is_told_with_who_stands_in_state_d() {
        insta::assert_snapshot!(shown(&CHECK, &io(4321)));
    }

    #[test]
    fn a_fifth_is_not_enough_and_a_hair_more_is() {
        assert_eq!(judged(&CHECK, &io(2000)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &io(2001)).expect("seen").len(), 1);
    }

    #[test]
    fn for_processors_no_tools_for_disks_are_proposed() {
        let cpu = each_look(io(0), |_, look| {
            let busy = Pressure { some_avg10: 5000, ..Pressure::default() };
            look.pressure = Some([("cpu".to_owned(), busy)].into());
        });
        assert!(judged(&CHECK, &cpu).expect("seen")[0].fixes[0].what.contains("pidstat -u"));
    }

    #[test]
    fn a_control_group_is_asked_where_the_host_says_nothing() {
        let pressed = each_look(host(&[]), |_, look| {
            let group = Group { memory_some_avg10: Some(5000), ..Group::default() };
            look.groups = Some([("/system.slice/api.service".to_owned(), group)].into());
        });
        assert!(
            judged(&CHECK, &pressed).expect("seen")[0].evidence[0]
                .source
                .contains("api.service/memory")
        );
    }

    #[test]
    fn without_pressure_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Pressure);
    }
}
