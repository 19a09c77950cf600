//! `perf trace`: the same calls by the kernel's tracepoints.
//!
//! ```text
//!     47.274 (21.122 ms): reader/29120 recvfrom(fd: 5<socket:[1606175]>, ubuf: 0x556c, size: 16384) = 2896
//!  start in ms  took      thread       name      descriptor                          asked              result
//! ```
//!
//! Times count from the start of the trace. A call that is printed twice, at its start and when it goes
//! on, has its arguments in the first line and its duration in the second. Addresses are rarely printed, so
//! the socket is found by its bytes.

use std::collections::BTreeMap;

use super::super::error::{EvidenceError, PassedOver};
use super::strace::{descriptor, follow, leading_number};
use super::{Call, Calls, Clock, Gathered, Moved, READS, WAITS, WRITES};

/// A line in its parts.
struct Line<'a> {
    start: i64,
    /// `None` where it is not told.
    took: Option<i64>,
    part: Part,
    thread: u32,
    name: &'a str,
    args: &'a str,
    result: &'a str,
}

/// What of a call a line has.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Part {
    Whole,
    /// Its arguments: `recvfrom(fd: 5, size: 16384) ...`
    Beginning,
    /// Its result: `... [continued]: recvfrom()) = 2896`
    End,
}

/// Whether the line is one of them.
pub fn is_line(line: &str) -> bool {
    let Some((before, rest)) = line.split_once("): ") else { return false };
    let Some((time, took)) = before.split_once('(') else { return false };
    let time = time.trim();
    (time == "?" || millis(time).is_some())
        && (took.trim().is_empty() || took.trim().ends_with(" ms"))
        && rest.contains('(')
}

fn line_of(line: &str) -> Option<Line<'_>> {
    let (before, rest) = line.split_once("): ")?;
    let (time, took) = before.split_once('(')?;
    let took = match took.trim().strip_suffix("ms") {
        Some(span) => Some(millis(span.trim())?),
        None => None,
    };
    let (thread, rest) = thread_of(rest.trim());
    let (part, rest) = match (rest.strip_suffix(") ..."), rest.strip_prefix("... [continued]: ")) {
        (Some(beginning), _) => (Part::Beginning, beginning),
        (None, Some(end)) => (Part::End, end),
        (None, None) => (Part::Whole, rest),
    };
    let (call, result) = rest.rsplit_once(" = ").unwrap_or((rest, ""));
    let call = call.trim_end().trim_end_matches(')');
    let (name, args) = call.split_once('(')?;
    let result = result.trim();
    Some(Line { start: millis(time.trim())?, took, part, thread, name, args, result })
}

/// `Web Content/29120 recvfrom(...`: the thread, and what follows. A thread's name may hold anything; a trace of one
/// thread has none.
fn thread_of(rest: &str) -> (u32, &str) {
    let is_call = |text: &str| text.starts_with("... ") || name_of(text).is_some();
    let thread_at = |at: usize| {
        let (number, call) = rest[at + 1..].split_once(' ')?;
        let call = call.trim_start();
        is_call(call).then_some((number.parse().ok()?, call))
    };
    let named = || rest.match_indices('/').find_map(|(at, _)| thread_at(at));
    if is_call(rest) { (0, rest) } else { named().unwrap_or((0, rest)) }
}

/// The name of the call that `text` begins with.
fn name_of(text: &str) -> Option<&str> {
    let name = text.split_once('(')?.0;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

/// Milliseconds with a fraction, in nanoseconds.
fn millis(word: &str) -> Option<i64> {
    let (whole, fraction) = word.split_once('.')?;
    let whole: i64 = whole.parse().ok().filter(|_| whole.bytes().all(|b| b.is_ascii_digit()))?;
    let micros: i64 = fraction.parse().ok().filter(|_| fraction.len() == 3)?;
    whole.checked_mul(1_000_000)?.checked_add(micros * 1_000)
}

/// Reads all calls.
///
/// # Errors
/// Nothing in it is of this format, or nothing can be used.
pub fn read(text: &str) -> Result<(Calls, PassedOver), EvidenceError> {
    let mut gathered = Gathered::default();
    // Arguments of calls that went on when their line was printed.
    let mut begun: BTreeMap<(u32, &str), &str> = BTreeMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| is_line(line)) {
        match line_of(line) {
            Some(Line { part: Part::Beginning, thread, name, args, .. }) => {
                begun.insert((thread, name), args);
            }
            Some(Line { took: None, .. }) | None => gathered.untimed += 1,
            Some(Line { took: Some(took), part, start, thread, name, args, result }) => {
                let earlier = begun.remove(&(thread, name)).filter(|_| part == Part::End);
                let call = Call {
                    line: at + 1,
                    thread,
                    start,
                    took,
                    name: 0,
                    target: None,
                    socket: None,
                    moved: Moved::Nothing,
                    waits_for: WAITS.contains(&name).then(Box::default),
                };
                take(&mut gathered, call, name, earlier.unwrap_or(args), result);
            }
        }
    }
    gathered.finish("perf trace", Clock::Since, "no call has its duration")
}

fn take(gathered: &mut Gathered, mut call: Call, name: &str, args: &str, result: &str) {
    let fd = args.split_once("fd: ").map_or(args, |(_, rest)| rest);
    let (fd, note) = descriptor(fd);
    let value = leading_number(result);
    call.socket = follow(gathered, call.thread, name, (fd, note, args), (value, result));
    if name == "connect"
        && let Some(peer) = peer(args)
        && let Some(fd) = fd
    {
        call.socket = Some(gathered.known.connects(call.thread, fd, peer));
    }
    let bytes = value.and_then(|value| u64::try_from(value).ok());
    if call.socket.is_some() {
        call.moved = match bytes {
            Some(got) if READS.contains(&name) => {
                let asked = number(args, "size: ").or_else(|| number(args, "count: "));
                Moved::Read { got, drained: got > 0 && asked.is_some_and(|asked| got < asked) }
            }
            None if READS.contains(&name) && result.contains("EAGAIN") => {
                Moved::Read { got: 0, drained: true }
            }
            Some(sent) if WRITES.contains(&name) => Moved::Wrote(sent),
            _ => Moved::Nothing,
        };
    }
    call.name = gathered.word(name);
    let target = note.filter(|note| call.socket.is_none() && !note.starts_with("socket:["));
    call.target = target.map(|note| gathered.word(note));
    gathered.calls.push(call);
}

fn number(args: &str, name: &str) -> Option<u64> {
    u64::try_from(leading_number(args.split_once(name)?.1)?).ok()
}

/// `{ .family: INET, port: 80, addr: 192.0.2.1 }`, as newer ones print it.
fn peer(args: &str) -> Option<core::net::SocketAddr> {
    let port = u16::try_from(number(args, "port: ")?).ok()?;
    let host = args.split_once("addr: ")?.1.split([' ', ',', '}']).next()?;
    Some(super::super::address::canonical((host.parse::<core::net::IpAddr>().ok()?, port).into()))
}

#[cfg(test)]
mod tests {
    use super::super::strace::shares_files;
    use super::*;

    #[test]
    fn calls_are_read_where_they_have_their_duration() {
        let text = "         ? (         ): reader/29120  ... [continued]: execve())              = 0
     1.106 (         ): reader/29120 poll(ufds: 0x7ffe, nfds: 1, timeout_msecs: 1000) ...
     1.106 ( 5.500 ms): reader/29120  ... [continued]: poll())                            = 1
    47.274 (21.122 ms): reader/29120 recvfrom(fd: 5<socket:[1606175]>, ubuf: 0x556c664a00c0, size: 16384)  = 2896
    68.437 ( 0.040 ms): reader/29120 write(fd: 4</tmp/body>, buf: 0x556c664a00c0, count: 2896) = 2896
";
        assert!(text.lines().all(is_line));
        let (trace, _) = read(text).expect("a trace");
        let names: Vec<_> = trace.calls.iter().map(|call| trace.word(call.name)).collect();
        assert_eq!(names, ["poll", "recvfrom", "write"]);
        let recv = &trace.calls[1];
        assert_eq!((recv.start, recv.took), (47_274_000, 21_122_000));
        assert_eq!(recv.moved, Moved::Read { got: 2896, drained: true });
        assert_eq!(trace.word(trace.calls[2].target.expect("a file")), "/tmp/body");
        assert_eq!(trace.calls[0].waits_for.as_deref(), Some(&[][..]));
    }

    #[test]
    fn a_call_cut_in_two_has_what_both_lines_tell() {
        let text = "     1.000 (         ): reader/7 recvfrom(fd: 5<socket:[16]>, ubuf: 0x55, size: 16384) ...
     1.500 ( 0.010 ms): reader/8 recvfrom(fd: 6<socket:[17]>, ubuf: 0x56, size: 100)     = 100
     1.000 (21.000 ms): reader/7  ... [continued]: recvfrom())                           = 2896
    30.000 ( 0.000 ms): reader/7 recvfrom(fd: 5<socket:[16]>, ubuf: 0x55, size: 16384) ...
    30.000 ( 5.000 ms): reader/7  ... [continued]: recvfrom())                           = -1 EAGAIN (Resource temporarily unavailable)
";
        let (trace, _) = read(text).expect("a trace");
        let calls: Vec<_> = trace.calls.iter().map(|call| (call.took, call.moved)).collect();
        assert_eq!(
            calls,
            [
                (21_000_000, Moved::Read { got: 2896, drained: true }),
                (10_000, Moved::Read { got: 100, drained: false }),
                (5_000_000, Moved::Read { got: 0, drained: true }),
            ]
        );
        assert_eq!(trace.calls[0].socket, trace.calls[2].socket);
        assert_ne!(trace.calls[0].socket, trace.calls[1].socket);
    }

    #[test]
    fn names_of_threads_may_hold_anything() {
        for (who, thread) in
            [("Web Content/29", 29), ("(sd-pam)/30", 30), ("kworker/0:1/31", 31), ("a/5 b/32", 32)]
        {
            let text =
                format!("     1.000 ( 0.010 ms): {who} sendto(fd: 5, buff: 0x1, len: 9) = 9\n");
            let (trace, _) = read(&text).expect("a trace");
            let call = &trace.calls[0];
            assert_eq!((call.thread, trace.word(call.name)), (thread, "sendto"), "{who}");
        }
        let alone = "     1.000 ( 0.010 ms): write(fd: 4</tmp/1 x(2)>, buf: 0x1, count: 9) = 9\n";
        assert_eq!(read(alone).expect("a trace").0.calls[0].thread, 0);
    }

    #[test]
    fn threads_share_their_descriptors_and_processes_do_not() {
        let sockets = |flags: &str| {
            let text = format!(
                "     1.000 ( 0.010 ms): a/7 recvfrom(fd: 5, ubuf: 0x5, size: 100) = 9
     2.000 ( 0.010 ms): a/7 clone(clone_flags: {flags}, newsp: 0x7f) = 8 (a)
     3.000 ( 0.010 ms): a/8 close(fd: 5) = 0
     4.000 ( 0.010 ms): a/7 recvfrom(fd: 5, ubuf: 0x5, size: 100) = 9\n"
            );
            read(&text).expect("a trace").0.sockets.len()
        };
        assert_eq!((sockets("VM|FS|FILES|SIGHAND"), sockets("CHILD_CLEARTID")), (2, 1));
        assert!(shares_files("clone3", "uargs: 0x7ffd, size: 88"));
    }

    #[test]
    fn a_summary_is_no_trace() {
        assert!(!is_line(" python (39428), 154 events, 99.4%"));
        assert!(!is_line(
            "   poll                  63      0 30950.178     0.000   491.273   500.626      1.63%"
        ));
    }
}
