//! Traces of system calls: `strace` and `perf trace`, and their summaries (`-c`, `-s`).
//!
//! The lines of a trace are kept and read at the end by the readers that lay them beside a capture. An excerpt is
//! often all that people keep: two calls that moved bytes, and what was called between them.

use std::collections::BTreeMap;

use super::collected::Collected;
use super::command::Command;
use crate::snapshot::{CallKind, Failed, Gap, Traced};
use tcpwhy_words::printed::calls::{Call, Calls, Moved, perf, strace};

/// More of a trace is not kept. Ours: a minute of a busy program.
const LONGEST: usize = 64 << 20;

/// A line of a trace, or what the tools say beside it.
pub(super) fn line(raw: &str, collected: &mut Collected) -> bool {
    if perf::is_line(raw) || strace::is_line(raw) {
        if collected.trace.len() + raw.len() < LONGEST {
            collected.trace.push_str(raw);
            collected.trace.push('\n');
        }
        return true;
    }
    let text = raw.trim();
    text.starts_with("strace: Process ") || text.starts_with("Summary of events:")
}

/// What the lines of a trace say.
pub(super) fn traced(text: &str) -> Option<Traced> {
    let first = text.lines().next()?;
    if perf::is_line(first) {
        return Some(summed(text, &perf::read(text).ok()?.0, false));
    }
    let (calls, _) = strace::read_filled(text).ok()?;
    let untimed = !text.lines().any(|line| line.trim_end().ends_with('>') && line.contains(" <"));
    Some(summed(text, &calls, untimed))
}

fn summed(text: &str, trace: &Calls, untimed: bool) -> Traced {
    let lines: Vec<&str> = text.lines().collect();
    let wrote = |call: &&Call| matches!(call.moved, Moved::Wrote(bytes) if bytes > 0);
    let sends = || trace.calls.iter().filter(wrote);
    let from = trace.calls.first().map_or(0, |call| call.start);
    let to = trace.calls.iter().map(Call::end).max().unwrap_or(from);
    Traced {
        tool: trace.tool.to_owned(),
        over_ns: u64::try_from(to.saturating_sub(from)).unwrap_or(0),
        calls: trace.calls.len() as u64,
        untimed,
        gap: gap(trace, &lines),
        sends: sends().count() as u64,
        tiny_sends: sends().filter(|call| call.moved == Moved::Wrote(1)).count() as u64,
        failed: failed(trace, &lines),
        kinds: Vec::new(),
    }
}

/// Errors of calls on sockets that cost time or work. Others are part of how programs work: `EAGAIN`, `EINPROGRESS`,
/// `EINTR`; `ENETUNREACH` comes of trying addresses in turn.
const ERRORS: [&str; 7] = [
    "ETIMEDOUT",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "EPIPE",
    "ENOBUFS",
    "EADDRNOTAVAIL",
];
/// Errors of any call: no descriptor is left, of the process or of the host.
const NO_DESCRIPTOR: [&str; 2] = ["EMFILE", "ENFILE"];
/// Calls on sockets; `futex` and others time out as a matter of course.
const ON_SOCKETS: [&str; 5] = ["accept", "connect", "send", "recv", "socket"];

fn failed(trace: &Calls, lines: &[&str]) -> Vec<Failed> {
    let mut all: BTreeMap<(String, String, Option<String>), Failed> = BTreeMap::new();
    for call in &trace.calls {
        let line = lines.get(call.line.saturating_sub(1)).copied().unwrap_or_default();
        let Some((_, result)) = line.rsplit_once(" = -1 ") else { continue };
        let error = result.split_whitespace().next().unwrap_or_default();
        let name = trace.word(call.name);
        let is_on_socket = ON_SOCKETS.iter().any(|of| name.starts_with(of));
        let is_told = NO_DESCRIPTOR.contains(&error) || is_on_socket && ERRORS.contains(&error);
        if !is_told {
            continue;
        }
        let to = connect_to(line);
        let key = (name.to_owned(), error.to_owned(), to.clone());
        // Ours: a scan fails towards thousands.
        if all.len() >= 256 && !all.contains_key(&key) {
            continue;
        }
        let one = all.entry(key).or_insert_with(|| Failed {
            name: name.to_owned(),
            error: error.to_owned(),
            to,
            ..Failed::default()
        });
        one.count += 1;
        one.longest_ns = one.longest_ns.max(u64::try_from(call.took).unwrap_or(0));
    }
    let mut all: Vec<Failed> = all.into_values().collect();
    all.sort_by_key(|failed| core::cmp::Reverse((failed.longest_ns, failed.count)));
    all.truncate(8);
    all
}

/// `10.0.0.77:5432` of `connect(9, {sa_family=AF_INET, sin_port=htons(5432), sin_addr=inet_addr("10.0.0.77")}, 16)`.
fn connect_to(line: &str) -> Option<String> {
    let (_, args) = line.split_once("connect(")?;
    let (_, port) = args.split_once("_port=htons(")?;
    let port: u16 = port.split(')').next()?.parse().ok()?;
    let quoted = |mark| Some(args.split_once(mark)?.1.split_once('"')?.1.split('"').next());
    let address = quoted("inet_addr(").or_else(|| quoted("inet_pton("))??;
    let address: core::net::IpAddr = address.parse().ok()?;
    Some(core::net::SocketAddr::new(address, port).to_string())
}

/// Ours: nobody asks for the reason of less.
const SHORTEST_NS: i64 = 1_000_000;

/// The longest time between two calls that moved bytes, of the thread that moved most; all of the trace where
/// there are none.
fn gap(trace: &Calls, lines: &[&str]) -> Option<Gap> {
    let has_moved = |call: &Call| match call.moved {
        Moved::Read { got, .. } => got > 0,
        Moved::Wrote(bytes) => bytes > 0,
        Moved::Nothing => false,
    };
    let mut moves: BTreeMap<u32, usize> = BTreeMap::new();
    for call in &trace.calls {
        *moves.entry(call.thread).or_default() += usize::from(has_moved(call));
    }
    let (thread, moved) = moves.into_iter().max_by_key(|(_, moved)| *moved)?;
    let own: Vec<&Call> = trace.calls.iter().filter(|call| call.thread == thread).collect();
    if moved == 0 {
        let (from, to) = (own.first()?.start, own.last()?.end());
        return (to - from >= SHORTEST_NS).then(|| account(trace, lines, &own, (from, to), false));
    }
    let ends: Vec<i64> = own.iter().filter(|call| has_moved(call)).map(|call| call.end()).collect();
    let mut spans: Vec<i64> = ends.windows(2).map(|two| two[1] - two[0]).collect();
    let longest = ends.windows(2).max_by_key(|two| two[1] - two[0])?;
    spans.sort_unstable();
    // Of an excerpt the one gap is what it was cut out for; of many the longest has to stand out.
    let median = spans.get((spans.len() - 1) / 2)?;
    let length = longest[1] - longest[0];
    // Of times in whole seconds (`-t`) a length is a second off at each end.
    let is_coarse = trace.calls.iter().all(|call| call.start % 1_000_000_000 == 0);
    let shortest = if is_coarse { 3_000_000_000 } else { SHORTEST_NS };
    let is_told = length >= shortest && (spans.len() < 3 || length > median.saturating_mul(3));
    is_told.then(|| account(trace, lines, &own, (longest[0], longest[1]), true))
}

fn account(
    trace: &Calls,
    lines: &[&str],
    own: &[&Call],
    (from, to): (i64, i64),
    between: bool,
) -> Gap {
    let mut kinds: BTreeMap<(String, Option<String>), CallKind> = BTreeMap::new();
    let mut last: Option<((String, Option<String>), i64)> = None;
    for call in own.iter().filter(|call| call.end() > from && call.start < to) {
        let said = Said::of(trace, call, lines);
        let key = (trace.word(call.name).to_owned(), said.target);
        let (start, end) = (call.start.max(from), call.end().min(to));
        let follows = last.as_ref().filter(|(before, _)| *before == key);
        let since = follows.map_or(start, |(_, end)| (*end).max(from).min(start));
        let nanoseconds = |span: i64| u64::try_from(span).unwrap_or(0);
        let kind = kinds.entry(key.clone()).or_insert_with(|| CallKind {
            name: key.0.clone(),
            target: key.1.clone(),
            waits: call.waits_for.is_some() || call.socket.is_some(),
            ..CallKind::default()
        });
        kind.count += 1;
        kind.tiny += u64::from(said.is_tiny);
        kind.inside_ns = kind.inside_ns.saturating_add(nanoseconds(end - start));
        kind.span_ns = kind.span_ns.saturating_add(nanoseconds(end - since));
        last = Some((key, end));
    }
    let ns = u64::try_from(to - from).unwrap_or(0);
    let spans = kinds.values().map(|kind| kind.span_ns).fold(0, u64::saturating_add);
    let mut kinds: Vec<CallKind> = kinds.into_values().collect();
    kinds.sort_by_key(|kind| core::cmp::Reverse(kind.span_ns));
    // Ours: more are not read.
    kinds.truncate(8);
    Gap { ns, between, kinds, outside_ns: ns.saturating_sub(spans) }
}

/// What the line of a call says of its file.
struct Said {
    target: Option<String>,
    is_tiny: bool,
}

impl Said {
    fn of(trace: &Calls, call: &Call, lines: &[&str]) -> Self {
        let line = lines.get(call.line.saturating_sub(1)).copied().unwrap_or_default();
        let name = trace.word(call.name);
        let args = line.split_once(&format!("{name}(")).map_or("", |(_, args)| args);
        let args = args.strip_prefix("fd: ").unwrap_or(args);
        let digits = args.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let fd = args.get(..digits).filter(|fd| !fd.is_empty()).map(|fd| format!("fd {fd}"));
        let named = call.target.map(|at| trace.word(at).split('<').next().unwrap_or_default());
        let target = named.filter(|name| !name.is_empty()).map(str::to_owned).or(fd);
        let result = line.rsplit_once(" = ").map(|(_, result)| result.split_whitespace().next());
        let is_write = name.contains("write") || name.starts_with("send");
        Self { target, is_tiny: is_write && result == Some(Some("1")) }
    }
}

/// The columns of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// `strace -c`: seconds, calls.
    Strace,
    /// `perf trace -s`: calls, errors where it prints them, total in milliseconds.
    Perf { errors: bool },
}

/// The head of a summary, or the line above it that names a thread.
pub(super) fn table(text: &str, command: &Command, collected: &mut Collected) -> Option<Table> {
    if text.starts_with("% time") && text.contains("usecs/call") {
        collected.traces.push(Traced { tool: strace_c(command).to_owned(), ..Traced::default() });
        return Some(Table::Strace);
    }
    let is_head = text.starts_with("syscall ") && text.contains("calls") && text.contains("total");
    let thread = thread(text);
    // The thread is above its table, where the tool names it.
    let is_named = |last: &Traced| last.tool.starts_with(PERF_S) && last.kinds.is_empty();
    if thread.is_some() || (is_head && !collected.traces.last().is_some_and(is_named)) {
        let tool = thread.map_or(PERF_S.to_owned(), |thread| format!("{PERF_S}, {thread}"));
        // Ours: as many rows of all of them are kept as of one.
        if collected.traces.len() < 1000 {
            collected.traces.push(Traced { tool, ..Traced::default() });
        }
    }
    (is_head || thread.is_some()).then(|| Table::Perf { errors: text.contains("errors") })
}

/// What the snapshot calls `perf trace -s`.
pub(crate) const PERF_S: &str = "perf trace -s";
/// `strace -c` with `-w`, which counts what calls waited, too (strace(1)).
pub(crate) const STRACE_CW: &str = "strace -c -w";
/// Its command is not in the text.
pub(crate) const STRACE_C_OR_CW: &str = "strace -c, with -w or without";

fn strace_c(command: &Command) -> &'static str {
    match command.arguments("strace") {
        None => STRACE_C_OR_CW,
        Some(words) => {
            let is_long = words.iter().any(|word| word == "--summary-wall-clock");
            if is_long || command.has("strace", 'w') { STRACE_CW } else { "strace -c" }
        }
    }
}

/// `python (39428)` of ` python (39428), 154 events, 99.4%`.
fn thread(text: &str) -> Option<&str> {
    let (thread, rest) = text.split_once("), ")?;
    let is_one = rest.contains(" events, ") && rest.ends_with('%') && thread.contains('(');
    is_one.then(|| text.get(..=thread.len())).flatten()
}

impl Table {
    /// A row of it.
    pub(super) fn line(self, text: &str, collected: &mut Collected) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.iter().any(|word| word.starts_with("(msec)") || word.starts_with("---")) {
            return true;
        }
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
        let read = match self {
            Self::Strace => number(1)
                .zip(number(3))
                .zip(words.last())
                .map(|((s, calls), name)| (*name, calls, s * 1e9)),
            Self::Perf { errors } => {
                let total = number(if errors { 3 } else { 2 });
                number(1)
                    .zip(total)
                    .zip(words.first())
                    .map(|((calls, ms), name)| (*name, calls, ms * 1e6))
            }
        };
        let Some((name, calls, ns)) = read.filter(|(_, calls, ns)| *calls >= 0.0 && *ns >= 0.0)
        else {
            return false;
        };
        let Some(trace) = collected.traces.last_mut() else { return false };
        // Ours: there are some 400 calls.
        if name != "total" && trace.kinds.len() < 1000 {
            let waits = [
                "poll",
                "ppoll",
                "select",
                "pselect6",
                "epoll_wait",
                "epoll_pwait",
                "recvfrom",
                "recvmsg",
                "accept4",
                "accept",
            ];
            trace.calls = trace.calls.saturating_add(calls as u64);
            trace.kinds.push(CallKind {
                name: name.to_owned(),
                count: calls as u64,
                inside_ns: ns as u64,
                span_ns: ns as u64,
                waits: waits.contains(&name),
                ..CallKind::default()
            });
            trace.kinds.sort_by_key(|kind| core::cmp::Reverse(kind.inside_ns));
        }
        true
    }
}
