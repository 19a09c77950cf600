//! What a traced program did while nothing moved on its socket.
//!
//! # What it says
//! Between two calls that move bytes a program may wait for the peer, wait for something else, or be busy: with a disk, a
//! terminal, or itself. The trace of its system calls tells which.
//!
//! # How we know
//! `strace` or `perf trace`: of the longest time in which nothing moved on the socket, the share of each kind of call, with the
//! time between two of the same kind. Many writes of one byte each are counted: each is a switch into the kernel, on a
//! terminal what a progress meter does, on a socket perhaps a segment of its own. Failed calls are listed by their
//! error, `EMFILE` and `ENFILE` of any call, others of calls on sockets.
//!
//! # What it is not
//! Tracing slows a program down, mostly between calls. A summary (`strace -c`, `perf trace -s`) does not tell when a call was
//! made. `strace -c` counts time in the kernel, and what a call waited only with `-w`. Of several threads it lists those that spent a
//! tenth of the time of the one that spent most.
//!
//! # What to do
//! Take the named call out of the loop that moves the data: write in larger pieces, less often, or from another thread.
//!
//! # Sources
//! strace(1), perf-trace(1); RFC 9293 section 3.7.4 (small segments). Half of the time, and twenty writes of one byte:
//! ours, not measured.

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::paste::programs::{PERF_S, STRACE_C_OR_CW, STRACE_CW};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{CallKind, Failed, Gap, Source, Traced};
use tcpwhy_words::said::{count, grouped, percent, time};

pub(super) const CHECK: Check = Check {
    code: "PROGRAM_CALLS",
    file: include_str!("program_calls.rs"),
    group: Group::Sending,
    judge,
};

/// Writes of one byte that are a pattern.
const TINY: u64 = 20;
/// On a terminal fewer are seen within a wait: a meter redraws some fields only.
const TINY_OF_METER: u64 = 5;
/// A thread is listed if it spent at least this part of the time of the one that spent most. Ours, not measured.
const BUSY: u64 = 10;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let traces = &seen.snapshot.traces;
    if traces.is_empty() {
        return Err(Missing::all(Source::Traces));
    }
    let mut found = Vec::new();
    let most = traces.iter().map(in_calls).max().unwrap_or(0);
    for trace in traces {
        found.extend(trace.failed.iter().map(|failed| of_failed(trace, failed)));
        found.extend(trace.gap.as_ref().map(|gap| of_gap(trace, gap)));
        found.extend(of_tiny(trace));
        // Of threads those that do little say nothing.
        if in_calls(trace).saturating_mul(BUSY) >= most {
            found.extend(of_summary(trace));
        }
    }
    found.truncate(words::WORST);
    Ok(found
        .into_iter()
        .map(|found| Finding { scope: Scope::Host, confidence: Confidence::Medium, ..found })
        .collect())
}

fn ns(span: u64) -> i64 {
    i64::try_from(span).unwrap_or(i64::MAX)
}

/// `38 writes of one byte each to /dev/pts/3`, `2 calls of fsync`.
fn called(kind: &CallKind) -> String {
    let target = kind.target.as_ref();
    if is_tiny(kind) {
        let to = target.map_or_else(String::new, |target| format!(" to {target}"));
        return format!("{} of one byte each{to}", count(kind.count, "write"));
    }
    let of = target.map_or_else(String::new, |target| format!(" ({target})"));
    format!("{} of {}{of}", count(kind.count, "call"), kind.name)
}

fn is_tiny(kind: &CallKind) -> bool {
    kind.tiny >= TINY_OF_METER && kind.tiny.saturating_mul(10) >= kind.count.saturating_mul(9)
}

fn is_terminal(kind: &CallKind) -> bool {
    let target = kind.target.as_deref().unwrap_or_default();
    target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") || target == "fd 2"
}

/// Where the time of a gap went, kind by kind.
fn spent(gap: &Gap) -> Vec<Evidence> {
    let evidence = gap.kinds.iter().take(words::WORST).map(|kind| {
        let inside = if kind.span_ns > kind.inside_ns {
            format!(", {} of that in the calls", time(ns(kind.inside_ns)))
        } else {
            String::new()
        };
        let share = percent(ns(kind.span_ns), ns(gap.ns));
        Evidence::new(called(kind), format!("{} ({share}){inside}", time(ns(kind.span_ns))))
    });
    let mut evidence: Vec<Evidence> = evidence.collect();
    if gap.outside_ns > 0 {
        let share = percent(ns(gap.outside_ns), ns(gap.ns));
        evidence.push(Evidence::new(
            "outside of any call",
            format!("{} ({share})", time(ns(gap.outside_ns))),
        ));
    }
    evidence
}

fn of_gap(trace: &Traced, gap: &Gap) -> Finding {
    let most = |span: u64| span.saturating_mul(2) >= gap.ns;
    let told = if gap.between {
        format!("nothing moved on the socket for {}", time(ns(gap.ns)))
    } else {
        format!("the excerpt covers {}", time(ns(gap.ns)))
    };
    let alone = Finding {
        not: if trace.untimed {
            "the trace has no durations (-T): a call is taken to last until the next one".to_owned()
        } else {
            "not how long it takes untraced: tracing slows a program down, mostly between calls"
                .to_owned()
        },
        evidence: spent(gap),
        ..Finding::default()
    };
    match gap.kinds.first() {
        Some(kind) if most(kind.span_ns) && kind.waits => Finding {
            severity: Severity::Info,
            title: format!("{told}: the program waited in {} for {}", kind.name, share_of(kind, gap)),
            why: if trace.failed.is_empty() {
                "a program that waits for its socket is not what takes the time; the peer or the path is."
            } else {
                "calls of the program failed besides: see these first."
            }
            .to_owned(),
            ..alone
        },
        Some(kind) if most(kind.span_ns) => Finding {
            // Of an excerpt that moves nothing on a socket only a pattern tells what it was cut out for.
            severity: if gap.between || is_tiny(kind) { Severity::Warning } else { Severity::Info },
            title: format!("{told}: {} took {}", called(kind), share_of(kind, gap)),
            why: why(kind),
            fixes: vec![fix(kind)],
            ..alone
        },
        Some(_) if !most(gap.outside_ns) => Finding {
            severity: Severity::Info,
            title: format!("{told}: no kind of call took half of it"),
            why: "several kinds of calls share the time.".to_owned(),
            ..alone
        },
        _ => Finding {
            severity: Severity::Info,
            title: format!("{told}: {} of it were outside of any call", percent(ns(gap.outside_ns), ns(gap.ns))),
            why: "the program itself was busy, a processor was not free, or the tracing took the time.".to_owned(),
            ..alone
        },
    }
}

fn of_failed(trace: &Traced, failed: &Failed) -> Finding {
    let Failed { name, error, to, count: times, longest_ns } = failed;
    let to = to.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
    let took = if *longest_ns >= 1_000_000_000 {
        format!(" after {}", time(ns(*longest_ns)))
    } else {
        String::new()
    };
    let (severity, why, help) = of_error(error);
    Finding {
        severity,
        title: format!("{name}{to} failed with {error}{took}: {}", count(*times, "time")),
        why: why.to_owned(),
        not: "not how often it fails outside of this excerpt".to_owned(),
        evidence: vec![Evidence::new(
            format!("{}, {name}{to}", trace.tool),
            format!("{} = -1 {error}", count(*times, "call")),
        )],
        fixes: vec![words::advise(help, "")],
        ..Finding::default()
    }
}

/// How bad an error is, what it means and what helps (errno(3), and each call's page).
fn of_error(error: &str) -> (Severity, &'static str, &'static str) {
    match error {
        "EMFILE" => (
            Severity::Error,
            "the process has no descriptor left: connections wait unaccepted, and new ones cannot be opened.",
            "raise its limit (LimitNOFILE=, ulimit -n), and see whether it closes what it no longer needs",
        ),
        "ENFILE" => (
            Severity::Error,
            "the host has no open file left: no program can open one.",
            "see who holds them (fs.file-nr), and raise fs.file-max",
        ),
        "ETIMEDOUT" => (
            Severity::Error,
            "nothing that was sent was answered until the kernel gave up.",
            "see whether the address is right and the peer is up, and which firewall drops what is sent to it",
        ),
        "EHOSTUNREACH" => (
            Severity::Error,
            "a router, or this host's own look for the neighbour, said that the host cannot be reached.",
            "see whether the peer is up, and the route and neighbour entry to it",
        ),
        "ECONNREFUSED" => (
            Severity::Info,
            "the other end answered that nothing listens there, or a firewall answered for it.",
            "see whether the program there listens on this address and port",
        ),
        "EADDRNOTAVAIL" => (
            Severity::Warning,
            "no local port is free towards that end, or the local address is not here.",
            "see net.ipv4.ip_local_port_range and how many connections go to that end",
        ),
        "ENOBUFS" => (
            Severity::Warning,
            "the kernel found no room for it in a queue or in memory.",
            "see the queue of the interface and the memory of the host",
        ),
        _ => (
            Severity::Info,
            "the other end had ended the connection.",
            "see in the other end's log why it ended",
        ),
    }
}

fn share_of(kind: &CallKind, gap: &Gap) -> String {
    format!("{} ({})", time(ns(kind.span_ns)), percent(ns(kind.span_ns), ns(gap.ns)))
}

fn why(kind: &CallKind) -> String {
    if is_tiny(kind) && is_terminal(kind) {
        "one byte a write to a terminal is what a progress meter does; meanwhile the program does not serve its socket.".to_owned()
    } else if is_tiny(kind) {
        "each byte costs a switch into the kernel; meanwhile the program does not serve its socket."
            .to_owned()
    } else {
        "while the program is in this call it does not serve its socket.".to_owned()
    }
}

fn fix(kind: &CallKind) -> Fix {
    if is_tiny(kind) && is_terminal(kind) {
        words::advise("switch the progress meter off (curl -s), or send its output to a file", "")
    } else if is_tiny(kind) {
        words::advise("collect the bytes in a buffer and write them at once", "")
    } else {
        words::advise(format!("take {} out of the loop that moves the data", kind.name), "")
    }
}

fn of_tiny(trace: &Traced) -> Option<Finding> {
    let Traced { sends, tiny_sends, .. } = *trace;
    (tiny_sends >= TINY && tiny_sends.saturating_mul(2) >= sends).then(|| Finding {
        severity: Severity::Warning,
        title: format!("{} of {} writes to sockets put in one byte each", grouped(tiny_sends), grouped(sends)),
        why: "each may become a segment of its own, with 40 bytes of headers or more, or wait for the ACK of the one before (Nagle).".to_owned(),
        not: "not how many segments they became: the kernel may put several into one".to_owned(),
        evidence: vec![Evidence::new(format!("{}, writes that returned 1", trace.tool), grouped(tiny_sends))],
        fixes: vec![words::advise("collect what belongs together in a buffer and send it at once", "")],
        ..Finding::default()
    })
}

/// Time in all calls of a summary.
fn in_calls(trace: &Traced) -> u64 {
    trace.kinds.iter().map(|kind| kind.inside_ns).fold(0, u64::saturating_add)
}

fn of_summary(trace: &Traced) -> Option<Finding> {
    let all = in_calls(trace);
    let first = trace.kinds.first().filter(|_| all > 0)?;
    let name = &first.name;
    let share = percent(ns(first.inside_ns), ns(all));
    let evidence = trace.kinds.iter().take(words::WORST).map(|kind| {
        Evidence::new(
            kind.name.clone(),
            format!("{} in {}", time(ns(kind.inside_ns)), count(kind.count, "call")),
        )
    });
    let thread = trace.tool.strip_prefix(PERF_S).map(|rest| rest.trim_start_matches(", "));
    let of = match thread {
        Some(thread) if !thread.is_empty() => format!("{thread}'s"),
        _ => "the program's".to_owned(),
    };
    let (title, why) = if thread.is_some() && first.waits {
        (
            format!(
                "the program waited in {name} for {share} of {} time in calls",
                of.replace("the program's", "its")
            ),
            "it had nothing to do: the peer, the path or a timer decides.",
        )
    } else if thread.is_some() || trace.tool == STRACE_CW {
        (
            format!("{name} took {share} of {of} time in calls"),
            "while the program is in a call it does nothing else in that thread.",
        )
    } else if trace.tool == STRACE_C_OR_CW {
        (
            format!("{name} took {share} of the time that strace counted"),
            "strace -c counts time in the kernel, without what a call waited; with -w it counts that, too.",
        )
    } else {
        (
            format!("{name} took {share} of the kernel's time for the program"),
            "strace -c counts time in the kernel: what a call waited is not in it.",
        )
    };
    Some(Finding {
        severity: Severity::Info,
        title,
        why: why.to_owned(),
        not: "not when: a summary has no order".to_owned(),
        evidence: evidence.collect(),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::paste;
    use crate::snapshot::Snapshot;

    fn titles(text: &str) -> Vec<String> {
        let pasted = paste::read(text).snapshot;
        judged(&CHECK, &pasted).expect("a trace").into_iter().map(|found| found.title).collect()
    }

    /// A read, a meter of `count` bytes at this pace, and the next read.
    fn meter(count: u32, every_us: u32) -> String {
        let at = |us: u32| format!("21:16:06.{us:06}");
        let read = |us| {
            format!(
                "{} recvfrom(5<socket:[7]>, \"x\"..., 102400, 0, NULL, NULL) = 1448 <0.000020>\n",
                at(us)
            )
        };
        let writes = (0..count).map(|nth| {
            format!(
                "{} write(2</dev/pts/3<char 136:3>>, \"1\", 1) = 1 <0.000030>\n",
                at(100_100 + nth * every_us)
            )
        });
        read(100_000) + &writes.collect::<String>() + &read(100_200 + count * every_us)
    }

    #[test]
    fn a_progress_meter_between_two_reads_is_named() {
        let host = paste::read(&meter(60, 150)).snapshot;
        insta::assert_snapshot!(shown(&CHECK, &host));
    }

    #[test]
    fn an_excerpt_of_nothing_but_the_meter_names_it_too() {
        let text = meter(60, 150);
        let inner: Vec<&str> = text.lines().filter(|line| line.contains("write")).collect();
        let said = titles(&(inner.join("\n") + "\n"));
        assert!(said[0].contains("60 writes of one byte each to /dev/pts/3"), "{said:?}");
    }

    #[test]
    fn a_read_that_waits_is_not_the_program() {
        let text = "1.000000 recvfrom(5, \"x\"..., 1000, 0, NULL, NULL) = 1000 <0.000020>\n\
                    1.000100 poll([{fd=5, events=POLLIN}], 1, 1000) = 1 ([{fd=5, revents=POLLIN}]) <0.080000>\n\
                    1.080200 recvfrom(5, \"x\"..., 1000, 0, NULL, NULL) = 1000 <0.000020>\n";
        let said = titles(&text.replace("1.0", "21:00:01.0"));
        assert!(said[0].contains("the program waited in poll for 80.0 ms"), "{said:?}");
    }

    #[test]
    fn calls_that_failed_come_first_and_no_peer_is_blamed_for_them() {
        let text = "21:00:01.000000 accept4(6, 0x7ffd, [112], SOCK_NONBLOCK) = -1 EMFILE (Too many open files) <0.000012>\n\
                    21:00:01.100000 epoll_wait(8, [], 512, 3000) = 0 <3.000120>\n";
        let found = judged(&CHECK, &paste::read(text).snapshot).expect("a trace");
        assert_eq!(found[0].title, "accept4 failed with EMFILE: 1 time");
        assert!(found.iter().all(|found| !found.why.contains("the peer or the path")));
        let text = "21:00:01.000000 connect(9, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), \
                    inet_pton(AF_INET6, \"fd00::7\", &sin6_addr), sin6_scope_id=0}, 28) = -1 ETIMEDOUT (Connection timed out) <21.300120>\n";
        let said = titles(text);
        assert_eq!(said[0], "connect to [fd00::7]:443 failed with ETIMEDOUT after 21.3 s: 1 time");
    }

    #[test]
    fn what_programs_do_all_day_is_no_failure() {
        let text = "21:00:01.000000 futex(0x7f, FUTEX_WAIT, 0, {tv_sec=1}) = -1 ETIMEDOUT (Connection timed out) <1.000012>\n\
                    21:00:02.100000 connect(8, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"10.0.0.7\")}, 16) = -1 EINPROGRESS (Operation now in progress) <0.000120>\n\
                    21:00:02.200000 recvfrom(8, 0x7f, 100, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable) <0.000010>\n";
        let said = titles(text);
        assert!(said.iter().all(|title| !title.contains("failed with")), "{said:?}");
    }

    #[test]
    fn twenty_sends_of_one_byte_are_a_pattern_and_fewer_are_not() {
        let sends = |count: u32| {
            let each = (0..count).map(|nth| {
                format!(
                    "21:00:01.{:06} sendto(3, \"G\", 1, 0, NULL, 0) = 1 <0.000010>\n",
                    nth * 500
                )
            });
            titles(&each.collect::<String>()).iter().any(|title| title.contains("put in one byte"))
        };
        assert_eq!((sends(20), sends(19)), (true, false));
    }

    #[test]
    fn summaries_of_both_tools_are_told() {
        let perf = " python (39428), 154 events, 99.4%\n\n   syscall            calls  errors  total       min       avg       max       stddev\n\
                    \x20  poll                  63      0 30950.178     0.000   491.273   500.626      1.63%\n\
                    \x20  write                  9      0     0.312     0.012     0.035     0.060     13.11%\n";
        assert_eq!(
            titles(perf),
            ["the program waited in poll for >99 % of python (39428)'s time in calls"]
        );
        let strace = "% time     seconds  usecs/call     calls    errors syscall\n\
                      ------ ----------- ----------- --------- --------- ----------------\n\
                      \x2090.00    0.900000        1500       600           fsync\n\
                      \x2010.00    0.100000           1       600        16 read\n\
                      100.00    1.000000                  1200        16 total\n";
        let below = |command: &str| titles(&format!("{command}\n{strace}"));
        assert_eq!(
            below("$ strace -c ./copy"),
            ["fsync took 90 % of the kernel's time for the program"]
        );
        assert_eq!(
            below("$ strace -f -cw ./copy"),
            ["fsync took 90 % of the program's time in calls"]
        );
        assert_eq!(titles(strace), ["fsync took 90 % of the time that strace counted"]);
    }

    #[test]
    fn counts_that_no_program_reaches_are_bounded() {
        let row = "100.00    0.900000        1500 99999999999999999999           fsync\n";
        let text =
            format!("% time     seconds  usecs/call     calls    errors syscall\n{row}{row}");
        assert_eq!(paste::read(&text).snapshot.traces[0].calls, u64::MAX);
        assert_eq!(titles(&text).len(), 1);
    }

    #[test]
    fn threads_that_did_little_are_not_told() {
        let thread = |name: &str, ms: f64| {
            format!(
                " {name} (7), 154 events, 9.4%\n\n   syscall            calls  errors  total       min       avg       max       stddev\n\
                 \x20  fsync                 63      0 {ms:.3}     0.000   491.273   500.626      1.63%\n"
            )
        };
        let of = |ms| titles(&(thread("copy", 100.0) + &thread("log", ms))).len();
        assert_eq!([of(10.0), of(9.9)], [2, 1]);
    }

    #[test]
    fn without_a_trace_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Traces);
        let none = Snapshot { traces: vec![Traced::default()], ..host(&[]) };
        assert_eq!(judged(&CHECK, &none), Ok(Vec::new()));
    }
}
