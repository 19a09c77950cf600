//! A program, or the host, has nearly as many descriptors open as it may.
//!
//! # What it says
//! Each connection needs a descriptor. At the limit `accept` and `socket` fail with `EMFILE` (of the process) or
//! `ENFILE` (of the host): connections wait in the accept queue until that is full, too.
//!
//! # How we know
//! A process that owns sockets has more than nine tenths of `RLIMIT_NOFILE` open, or `fs.file-nr` is above nine
//! tenths of `fs.file-max`.
//!
//! # What it is not
//! Not that the limit is too low: descriptors that are never closed reach any limit. Connections in `CLOSE_WAIT`
//! of the same process tell of such a leak.
//!
//! # What to do
//! See what the descriptors are (`ls -l /proc/PID/fd`). If they are honest connections, raise the limit where the
//! program is started (`LimitNOFILE=` of systemd).
//!
//! # Sources
//! getrlimit(2), accept(2), proc(5) `file-nr`; Linux `alloc_fd`, `alloc_empty_file` (v6.1). Nine tenths: ours, not measured.

use core::cmp::Reverse;

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Process, Source, State};

pub(super) const CHECK: Check = Check {
    code: "DESCRIPTORS",
    file: include_str!("descriptors.rs"),
    group: Group::Connecting,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let processes = seen.processes();
    let files = seen.now.files;
    let counted = processes.as_ref().is_ok_and(|all| all.values().any(|each| each.files.is_some()));
    if !counted && files.is_none() {
        processes?;
        return Err(Missing::part(Source::Processes, "their descriptors"));
    }
    let mut found: Vec<Finding> =
        files.and_then(|files| of_host(seen, files)).into_iter().collect();
    let mut near: Vec<_> = processes
        .into_iter()
        .flatten()
        .filter_map(|(pid, process)| {
            let (open, most) = (process.files?, process.limits?.files);
            words::above_percent(open, 90, most).then_some((*pid, process, open, most))
        })
        .collect();
    near.sort_by_key(|(pid, _, open, most)| {
        (Reverse(open.saturating_sub(*most)), Reverse(*open), *pid)
    });
    found.extend(near.first().map(|worst| of_processes(seen, *worst, &near)));
    seen.unless_refused(Source::Processes, found)
}

type Near<'a> = (u32, &'a Process, u64, u64);

fn of_processes(
    seen: &Seen<'_>,
    (pid, process, open, most): Near<'_>,
    all: &[Near<'_>],
) -> Finding {
    let waits = seen.listeners().is_ok_and(|listeners| {
        listeners.iter().any(|listener| {
            listener.owner.is_some_and(|owner| owner.pid == pid) && listener.accept_queue > 0
        })
    });
    let is_full = open >= most;
    let leaked = seen.sockets().unwrap_or_default().iter().filter(|socket| {
        socket.state == State::CloseWait && socket.owner.is_some_and(|owner| owner.pid == pid)
    });
    let leaked = leaked.count() as u64;
    let mut evidence: Vec<_> = all
        .iter()
        .take(words::WORST)
        .map(|(pid, process, open, most)| {
            Evidence::new(
                format!("ls /proc/{pid}/fd | wc -l; grep files /proc/{pid}/limits"),
                format!("{}: {open} of {most}", process.name),
            )
        })
        .collect();
    if leaked > 0 {
        evidence
            .push(Evidence::new("ss -tnp state close-wait", format!("{leaked} of process {pid}")));
    }
    let others = if all.len() > 1 {
        format!(" {} in all are as near.", words::count(all.len() as u64, "process"))
    } else {
        String::new()
    };
    Finding {
        severity: if is_full && waits { Severity::Error } else { Severity::Warning },
        confidence: Confidence::High,
        scope: Scope::Process(format!("{} ({pid})", process.name)),
        title: format!("{} ({pid}) has {open} of {most} descriptors open", process.name),
        why: format!(
            "at the limit accept() fails with EMFILE and connections wait unaccepted.{}{others}",
            if waits { " Some wait in its accept queue now." } else { "" }
        ),
        not: "not that the limit is too low: descriptors that are never closed reach any limit"
            .to_owned(),
        evidence,
        fixes: vec![mend(pid, process, open, leaked)],
        ..Finding::default()
    }
}

fn mend(pid: u32, process: &Process, open: u64, leaked: u64) -> Fix {
    let what = if leaked.saturating_mul(2) > open {
        format!(
            "have {} close what its peers have closed: {leaked} are such connections",
            process.name
        )
    } else {
        format!(
            "see what they are (ls -l /proc/{pid}/fd); if all are needed, raise LimitNOFILE of its service"
        )
    };
    words::advise(what, "takes effect when the program is started anew")
}

fn of_host(seen: &Seen<'_>, [open, most]: [u64; 2]) -> Option<Finding> {
    words::above_percent(open, 90, most).then(|| Finding {
        severity: Severity::Warning,
        confidence: Confidence::High,
        scope: Scope::Host,
        title: format!("the host has {open} of {most} files open"),
        why: "at the limit accept() and socket() fail with ENFILE for every program but root's."
            .to_owned(),
        not: "not which program holds them".to_owned(),
        evidence: vec![Evidence::new("/proc/sys/fs/file-nr", format!("{open} of {most}"))],
        fixes: vec![words::set(
            seen,
            "fs.file-max",
            &most.saturating_mul(2),
            "allow more, and look for the program that holds them",
            words::AT_ONCE,
            "kernel memory for each open file",
        )],
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, peers, running, socket};
    use super::super::sample::{host, judged, listener, missing, shown};
    use super::*;
    use crate::snapshot::{Limits, Owner, Snapshot};

    fn open(files: u64, waiting: u32) -> Snapshot {
        each_look(running(host(&[("fs.file-max", "100000")]), "api", 'S'), |_, look| {
            let process =
                look.processes.as_mut().and_then(|all| all.get_mut(&42)).expect("it runs");
            (process.files, process.limits) = (Some(files), Some(Limits { files: 1024 }));
            let mut here = listener(waiting, 128, 0);
            here.owner = Some(Owner { pid: 42, fd: Some(4) });
            look.listeners = Some(vec![here]);
            look.sockets = Some(peers(600, |peer| socket(State::CloseWait, "10.0.0.1:80", &peer)));
        })
    }

    #[test]
    fn a_program_at_its_limit_with_connections_waiting_is_an_error() {
        insta::assert_snapshot!(shown(&CHECK, &open(1024, 9)));
    }

    #[test]
    fn nine_tenths_are_not_enough_and_one_more_is_a_warning() {
        assert_eq!(judged(&CHECK, &open(921, 0)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &open(922, 9)).expect("seen")[0].severity, Severity::Warning);
    }

    #[test]
    fn the_whole_host_near_its_limit_is_told_apart() {
        let full = each_look(open(1, 0), |_, look| look.files = Some([95_000, 100_000]));
        assert_eq!(judged(&CHECK, &full).expect("seen")[0].scope, Scope::Host);
        let well = each_look(open(1, 0), |_, look| look.files = Some([90_000, 100_000]));
        assert_eq!(judged(&CHECK, &well), Ok(Vec::new()));
    }

    #[test]
    fn without_processes_and_file_nr_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Processes);
        let uncounted = running(host(&[]), "api", 'S');
        assert!(missing(&CHECK, &uncounted).of.is_some());
    }
}
