//! `strace -T` with `-ttt`, `-tt` or `-r`, perhaps `-f`, `-y`, `-yy` and `-o`.
//!
//! ```text
//! [pid 7] 21:16:06.219 recvfrom(5<TCP:[10.0.0.1:5000->10.0.0.2:80]>, "..."..., 102400, 0, NULL, NULL) = 1448 <0.000238>
//!  thread  start       name      descriptor and what it is            asked                    result  took
//! ```
//!
//! A call that another thread's output cut in two is joined again. `-r` gives the time since the start
//! of the line before. A line of dots is where somebody who pasted the trace left lines out.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use super::super::address;
use super::super::error::{EvidenceError, PassedOver};
use super::super::stamp;
use super::{Call, Calls, Clock, Gathered, Moved, READS, WAITS, WRITES};

const HALF_A_DAY: i64 = 43_200_000_000_000;

/// Whether the line is one of strace's: a time and a call, or the rest of one.
pub fn line_of(line: &str) -> Option<Line<'_>> {
    let mut rest = line.trim_start();
    let mut thread = 0;
    if let Some(after) = rest.strip_prefix("[pid") {
        let (number, after) = after.split_once(']')?;
        thread = number.trim().parse().ok()?;
        rest = after.trim_start();
    } else if let Some((word, after)) = rest.split_once(' ')
        && let Ok(number) = word.parse()
        && !after.trim_start().starts_with('(')
    {
        thread = number;
        rest = after.trim_start();
    }
    let (word, text) = rest.split_once(' ')?;
    let time = if word.contains(':') {
        Time::OfDay(stamp::time_of_day(word)?)
    } else if let Some(unix) = stamp::epoch(word) {
        Time::Unix(unix)
    } else {
        Time::SinceLast(stamp::decimal(word).filter(|_| word.contains('.'))?)
    };
    let text = text.trim_start();
    let starts = text.starts_with("<... ") || text.starts_with("--- ") || text.starts_with("+++ ");
    let named = text.split_once('(').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    (starts || named).then_some(Line { thread, time, text })
}

/// Whether the line is one of them.
pub fn is_line(line: &str) -> bool {
    line_of(line).is_some()
}

/// A line in its parts.
pub struct Line<'a> {
    thread: u32,
    time: Time,
    text: &'a str,
}

#[derive(Clone, Copy)]
enum Time {
    Unix(i64),
    OfDay(i64),
    SinceLast(i64),
}

/// Reads all calls.
///
/// # Errors
/// Nothing in it is of this format, or nothing can be used.
pub fn read(text: &str) -> Result<(Calls, PassedOver), EvidenceError> {
    gather(text, Gathered::default())
}

/// The same of a trace whose calls may have no durations: such a call lasts until the next of its thread begins,
/// which is the most that it can have taken.
///
/// # Errors
/// Nothing in it is of this format, or nothing can be used.
pub fn read_filled(text: &str) -> Result<(Calls, PassedOver), EvidenceError> {
    gather(text, Gathered { fills: true, ..Gathered::default() })
}

fn gather(text: &str, mut gathered: Gathered) -> Result<(Calls, PassedOver), EvidenceError> {
    let mut clock = Clock::Unix;
    let mut now = 0_i64;
    // Calls whose end another line tells, by thread.
    let mut begun: BTreeMap<u32, (i64, String)> = BTreeMap::new();
    let mut dots = false;
    for (at, raw) in text.lines().enumerate() {
        let number = at + 1;
        let Some(line) = line_of(raw) else {
            dots |= is_dots(raw);
            continue;
        };
        let before = gathered.calls.last().map_or(now, |call| call.end().max(now));
        (clock, now) = match line.time {
            Time::Unix(at) => (Clock::Unix, at),
            Time::OfDay(at) => (Clock::OfDay, later(at, now)),
            Time::SinceLast(span) => (Clock::Since, now.saturating_add(span)),
        };
        if core::mem::take(&mut dots) && now > before && !gathered.calls.is_empty() {
            gathered.left_out.push((before, now));
        }
        if let Some(start) = line.text.strip_suffix("<unfinished ...>") {
            begun.insert(line.thread, (now, start.trim_end().to_owned()));
        } else if let Some(rest) = line.text.strip_prefix("<... ") {
            let Some((name, rest)) = rest.split_once(" resumed>") else { continue };
            if let Some((thread, (start, first))) = beginning(&mut begun, line.thread, name) {
                take(&mut gathered, number, (thread, start), &format!("{first}{rest}"));
            }
        } else if !line.text.starts_with(['-', '+']) {
            take(&mut gathered, number, (line.thread, now), line.text);
        }
    }
    gathered.finish("strace", clock, "no call has its duration: strace tells it with -T")
}

/// The beginning of the call `name` that goes on in `thread`, and its thread. strace names threads only while it
/// follows several: one and the same may have a number in one line and none in the other.
fn beginning(
    begun: &mut BTreeMap<u32, (i64, String)>,
    thread: u32,
    name: &str,
) -> Option<(u32, (i64, String))> {
    if begun.contains_key(&thread) {
        return begun.remove_entry(&thread);
    }
    let is_alike = |other: u32, text: &str| {
        (thread == 0 || other == 0) && text.split('(').next() == Some(name)
    };
    let mut alike = begun.iter().filter(|&(&other, (_, text))| is_alike(other, text));
    let (&other, None) = (alike.next()?.0, alike.next()) else { return None };
    Some((thread.max(other), begun.remove(&other)?))
}

/// A time of the day after the one before: past midnight it goes on.
fn later(at: i64, before: i64) -> i64 {
    let day = 2 * HALF_A_DAY;
    let same = (before.div_euclid(day) * day).saturating_add(at);
    if before - same > HALF_A_DAY { same.saturating_add(day) } else { same }
}

fn is_dots(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'.') || line == "…"
}

/// Takes one whole call.
fn take(gathered: &mut Gathered, line: usize, (thread, start): (u32, i64), text: &str) {
    // A call that never returns, as `exit_group`, has neither result nor duration.
    if text.trim_end().ends_with("= ?") {
        return;
    }
    if let Some(before) = gathered.open.remove(&thread)
        && let Some(call) = gathered.calls.get_mut(before)
    {
        call.took = start.saturating_sub(call.start).max(0);
    }
    let (body, took) = match duration(text) {
        Some(timed) => timed,
        None if gathered.fills => {
            gathered.open.insert(thread, gathered.calls.len());
            (text.trim_end(), 0)
        }
        None => {
            gathered.untimed += 1;
            gathered.odd.push(line, || "it has no duration: strace tells it with -T".to_owned());
            return;
        }
    };
    let parts = body.rsplit_once(" = ").and_then(|(call, result)| {
        let (name, args) = call.split_once('(')?;
        Some((name, args.trim_end().trim_end_matches(')'), result.trim()))
    });
    let Some((name, args, result)) = parts else {
        gathered.odd.push(line, || "it has no result".to_owned());
        return;
    };
    let value: Option<i64> = leading_number(result);
    let (fd, note) = descriptor(args);
    let socket = follow(gathered, thread, name, (fd, note, args), (value, result));
    let moved = if socket.is_some() { moved(name, args, value, result) } else { Moved::Nothing };
    let target = note.filter(|_| socket.is_none()).map(str::to_owned).or_else(|| path(name, args));
    let waits_for = WAITS.contains(&name).then(|| {
        let all = args.match_indices("fd=").filter_map(|(at, _)| {
            let (fd, note) = descriptor(&args[at + 3..]);
            gathered.known.named(thread, fd?, note)
        });
        let mut sockets: Vec<u32> = all.collect();
        // A list that names none of ours waits for something else.
        if sockets.is_empty() && args.contains("fd=") {
            sockets.push(u32::MAX);
        }
        sockets.into_boxed_slice()
    });
    let name = gathered.word(name);
    let target = target.map(|target| gathered.word(&target));
    gathered.calls.push(Call { line, thread, start, took, name, target, socket, moved, waits_for });
}

/// `... <0.000238>`: what is before it, and how long the call took.
fn duration(text: &str) -> Option<(&str, i64)> {
    let (body, took) = text.trim_end().strip_suffix('>')?.rsplit_once('<')?;
    Some((body.trim_end(), stamp::decimal(took)?))
}

/// The number that `text` begins with.
pub fn leading_number(text: &str) -> Option<i64> {
    let end = text
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || (*at == 0 && *c == '-')))
        .map_or(text.len(), |(at, _)| at);
    text[..end].parse().ok()
}

/// The descriptor that `args` begins with, and what the trace says it is.
pub fn descriptor(args: &str) -> (Option<i64>, Option<&str>) {
    let Some(fd) = leading_number(args) else { return (None, None) };
    let digits = args.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(args.len());
    let Some(note) = args[digits..].strip_prefix('<') else { return (Some(fd), None) };
    // The arrow between two ends has the bracket that ends a note.
    let end = if note.contains(":[") && note.find(":[") < note.find('>') {
        note.find("]>").map(|at| at + 1)
    } else {
        closing(note)
    };
    (Some(fd), end.map(|end| &note[..end]))
}

/// Where the bracket that was opened before `note` closes.
fn closing(note: &str) -> Option<usize> {
    let mut depth = 1;
    note.char_indices().find_map(|(at, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// What the call tells of sockets; the one that it is about.
pub(crate) fn follow(
    gathered: &mut Gathered,
    thread: u32,
    name: &str,
    (fd, note, args): (Option<i64>, Option<&str>, &str),
    (value, result): (Option<i64>, &str),
) -> Option<u32> {
    let known = &mut gathered.known;
    let ok = value.is_some_and(|value| value >= 0);
    match name {
        "connect" => {
            let peer = sockaddr(args)?;
            return Some(known.connects(thread, fd?, peer));
        }
        "accept" | "accept4" if ok => {
            let (new, note) = descriptor(result);
            return Some(known.accepted(thread, new?, note, sockaddr(args)));
        }
        "getsockname" => {
            if let (Some(fd), Some(local)) = (fd, sockaddr(args)) {
                known.is_at(thread, fd, local);
            }
        }
        "dup" | "dup2" | "dup3" if ok => known.doubles(thread, fd?, value?),
        "clone" | "clone3" | "fork" | "vfork" if ok => {
            known.clones(thread, u32::try_from(value?).ok()?, shares_files(name, args));
            return None;
        }
        _ => {}
    }
    let fd = fd?;
    let socket = known.named(thread, fd, note);
    if name == "close" {
        known.closes(thread, fd);
    }
    // Only sockets are received from and sent to.
    let of_socket = READS[2..].contains(&name) || WRITES[2..5].contains(&name);
    let unknown = note.is_none_or(|note| note.starts_with("socket:["));
    if socket.is_none() && of_socket && unknown {
        return Some(known.met(thread, fd));
    }
    socket
}

/// Whether a clone shares its maker's descriptors. `perf trace` leaves out the flags' prefix, and shows none of `clone3`,
/// which glibc makes threads with (2.34).
pub fn shares_files(name: &str, args: &str) -> bool {
    let mut words = args.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_told = name != "clone3" || args.contains("flags");
    !is_told || words.any(|word| matches!(word, "CLONE_FILES" | "FILES"))
}

/// `{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("192.0.2.1")}`, or that of IPv6.
fn sockaddr(args: &str) -> Option<SocketAddr> {
    let port = leading_number(args.split_once("htons(")?.1)?;
    let host = match args.split_once("inet_addr(\"") {
        Some((_, rest)) => rest,
        None => args.split_once("AF_INET6, \"")?.1,
    };
    let ip = host.split('"').next()?.parse().ok()?;
    Some(address::canonical(SocketAddr::new(ip, u16::try_from(port).ok()?)))
}

/// What the call moved; what was only looked at (`MSG_PEEK`) stays where it is.
fn moved(name: &str, args: &str, value: Option<i64>, result: &str) -> Moved {
    let bytes = value.and_then(|value| u64::try_from(value).ok());
    if READS.contains(&name) && !args.contains("MSG_PEEK") {
        let asked = asked(args);
        match bytes {
            Some(got) => {
                Moved::Read { got, drained: got > 0 && asked.is_some_and(|all| got < all) }
            }
            None if result.contains("EAGAIN") => Moved::Read { got: 0, drained: true },
            None => Moved::Nothing,
        }
    } else if WRITES.contains(&name) {
        bytes.map_or(Moved::Nothing, Moved::Wrote)
    } else {
        Moved::Nothing
    }
}

/// How much a read asked for: the number behind its buffer.
fn asked(args: &str) -> Option<u64> {
    let behind = match args.rfind('"') {
        Some(at) => &args[at + 1..],
        // A buffer that nothing was put into is printed as its address.
        None => args.split_once(", ")?.1.split_once(',').map(|(_, rest)| rest)?,
    };
    behind.split(',').map(str::trim).find_map(|word| word.parse().ok())
}

/// The file that a call names, where it has no descriptor of it.
fn path(name: &str, args: &str) -> Option<String> {
    let names = ["open", "openat", "stat", "unlink", "rename", "execve", "newfstatat", "access"];
    let quoted = names.contains(&name).then(|| args.split('"').nth(1))?;
    quoted.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Calls {
        read(text).expect("a trace").0
    }

    #[test]
    fn a_call_is_read_in_all_its_parts() {
        let line = "29048 1795343774.447723 recvfrom(4<TCP:[198.51.100.2:44576->192.0.2.1:80]>, \"HTTP/1.1 <200> = OK\"..., \
                    16384, 0, NULL, NULL) = 1448 <0.021521>";
        let trace = calls(line);
        let call = &trace.calls[0];
        assert_eq!(trace.clock, Clock::Unix);
        assert_eq!((call.thread, call.start), (29_048, 1_795_343_774_447_723_000));
        assert_eq!((call.took, trace.word(call.name)), (21_521_000, "recvfrom"));
        assert_eq!(call.moved, Moved::Read { got: 1448, drained: true });
        let ends = trace.sockets[0].ends().expect("both ends");
        assert_eq!(ends.local.to_string(), "198.51.100.2:44576");
    }

    #[test]
    fn times_of_all_kinds_are_read() {
        let day = calls(
            "23:59:59.900000 close(3) = 0 <0.000010>\n00:00:00.100000 close(4) = 0 <0.000010>\n",
        );
        assert_eq!(day.calls[1].start - day.calls[0].start, 200_000_000);
        let since =
            calls("     0.000000 close(3) = 0 <0.000010>\n     0.250000 close(4) = 0 <0.000010>\n");
        assert_eq!((since.clock, since.calls[1].start), (Clock::Since, 250_000_000));
    }

    #[test]
    fn a_call_cut_in_two_is_joined() {
        let text = "[pid 7] 10.000000 read(5, <unfinished ...>\n[pid 8] 10.000100 close(3) = 0 <0.000001>\n\
                    [pid 7] 10.002000 <... read resumed>\"x\"..., 10) = 10 <0.002000>\n";
        let trace = calls(text);
        let read = &trace.calls[0];
        assert_eq!((read.thread, trace.word(read.name), read.took), (7, "read", 2_000_000));
    }

    #[test]
    fn a_thread_that_has_a_number_only_in_company_is_one() {
        let text = "10.000000 clone3({flags=CLONE_VM|CLONE_FILES}, 88 <unfinished ...>\n\
                    [pid 7] 10.000100 <... clone3 resumed>) = 8 <0.000100>\n\
                    [pid 7] 10.001000 recvfrom(5,  <unfinished ...>\n\
                    [pid 8] 10.001100 close(3) = 0 <0.000001>\n\
                    10.003000 <... recvfrom resumed>\"x\"..., 10, 0, NULL, NULL) = 10 <0.002000>\n";
        let trace = calls(text);
        let threads: Vec<_> =
            trace.calls.iter().map(|call| (call.thread, trace.word(call.name))).collect();
        assert_eq!(threads, [(7, "clone3"), (7, "recvfrom"), (8, "close")]);
        assert_eq!(trace.calls[1].moved, Moved::Read { got: 10, drained: false });
        // Which of two it is that goes on, nothing tells.
        let two = "[pid 7] 10.0 read(5, <unfinished ...>\n[pid 8] 10.1 read(6, <unfinished ...>\n\
                   10.2 <... read resumed>\"x\"..., 10) = 10 <0.2>\n10.3 close(3) = 0 <0.000001>\n";
        assert_eq!(calls(two).calls.len(), 1);
    }

    #[test]
    fn without_notes_connect_tells_the_socket() {
        let text = "10:36:15.570185 connect(4, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"192.0.2.1\")}, 16) = 0 <0.020362>\n\
                    10:36:15.590622 sendto(4, \"GET\"..., 33, 0, NULL, 0) = 33 <0.000045>\n\
                    10:36:15.600000 write(3, \"x\", 1) = 1 <0.000045>\n\
                    10:36:15.610000 recvfrom(4, 0x7ffd, 16384, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable) <0.000010>\n";
        let trace = calls(text);
        assert_eq!(trace.sockets[0].peer, "192.0.2.1:80".parse().ok());
        assert_eq!((trace.sockets[0].side, trace.sockets[0].is_whole), (Some(0), true));
        let moved: Vec<_> = trace.calls.iter().map(|call| call.moved).collect();
        let nothing_there = Moved::Read { got: 0, drained: true };
        assert_eq!(moved, [Moved::Nothing, Moved::Wrote(33), Moved::Nothing, nothing_there]);
    }

    #[test]
    fn files_keep_their_names_and_polls_their_sockets() {
        let text = "1.000001 poll([{fd=5<TCP:[10.0.0.1:5->10.0.0.2:80]>, events=POLLIN}], 1, 0) = 1 ([{fd=5, revents=POLLIN}]) <0.000029>\n\
                    1.000002 write(6</srv/a<b>.dat>, \"\\0\"..., 4096) = 4096 <0.000038>\n\
                    1.000003 write(2</dev/pts/3<char 136:3>>, \"\\r\", 1) = 1 <0.000031>\n";
        let trace = calls(text);
        assert_eq!(trace.calls[0].waits_for.as_deref(), Some(&[0][..]));
        let targets: Vec<_> =
            trace.calls.iter().filter_map(|call| Some(trace.word(call.target?))).collect();
        assert_eq!(targets, ["/srv/a<b>.dat", "/dev/pts/3<char 136:3>"]);
    }

    #[test]
    fn dots_are_lines_left_out() {
        let text = "1.000000 close(3) = 0 <0.000010>\n...\n2.000000 close(4) = 0 <0.000010>\n";
        // The line after the dots tells the time since a line that is not there.
        let of_day = text.replace("1.0", "10:00:01.0").replace("2.0", "10:00:02.0");
        assert_eq!(calls(&of_day).left_out, [(36_001_000_010_000, 36_002_000_000_000)]);
    }

    #[test]
    fn a_trace_without_durations_says_what_is_missing() {
        let error = read("10:36:15.570185 close(4) = 0\n").expect_err("useless").to_string();
        assert_eq!(error, "line 1: it has no duration: strace tells it with -T");
    }
}
