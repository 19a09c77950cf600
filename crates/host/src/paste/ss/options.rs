//! What other options of `ss` add to a socket: `-p` its programs, `-m` its memory, `-o` its timer.

use crate::snapshot::{Memory, Owner, Process, Timer};
use tcpwhy_words::printed::stamp;

/// The first process in `users:(("nginx",pid=7,fd=6),..)` (or `("nginx",7,6)`, before iproute2 4.0), and
/// the words around.
pub(super) fn users(text: &str) -> (Option<(Owner, &str)>, String) {
    let Some((before, behind)) = text.split_once("users:((") else {
        return (None, text.to_owned());
    };
    let (inside, after) = behind.split_once("))").unwrap_or((behind, ""));
    (owner(inside), format!("{before} {after}"))
}

fn owner(inside: &str) -> Option<(Owner, &str)> {
    let (name, rest) = inside.strip_prefix('"')?.split_once("\",")?;
    let mut numbers = rest
        .split([',', ')'])
        .map(|word| word.trim_start_matches("pid=").trim_start_matches("fd=").parse::<u32>().ok());
    let owner = Owner { pid: numbers.next()??, fd: Some(numbers.next()??) };
    Some((owner, name))
}

/// The first process that a line names.
pub(in crate::paste) fn process(text: &str) -> Option<(u32, Process)> {
    let (_, behind) = text.split_once("users:((")?;
    let (owner, name) = owner(behind)?;
    Some((owner.pid, Process { name: name.to_owned(), ..Process::default() }))
}

/// `(r0,rb131072,t0,tb87040,f2040,w59400,o0,bl0,d0)`; before iproute2 4.19 without `d`.
pub(super) fn memory(value: &str) -> Option<Memory> {
    let mut memory = Memory::default();
    let mut any = false;
    for part in value.trim_matches(['(', ')']).split(',') {
        let name = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let Ok(bytes) = part.get(name.len()..).unwrap_or_default().parse() else { continue };
        let field = match name {
            "r" => &mut memory.rmem,
            "rb" => &mut memory.rcvbuf,
            "t" => &mut memory.wmem,
            "tb" => &mut memory.sndbuf,
            "f" => &mut memory.forward,
            "w" => &mut memory.wqueued,
            "o" => &mut memory.optmem,
            "bl" => &mut memory.backlog,
            "d" => &mut memory.drops,
            _ => continue,
        };
        (*field, any) = (bytes, true);
    }
    any.then_some(memory)
}

/// `(keepalive,109min,0)`, `(on,204ms,3)`, `(persist,9.8sec,2)`.
pub(super) fn timer(value: &str) -> Option<Timer> {
    let mut parts = value.trim_matches(['(', ')']).split(',');
    let kind = match parts.next()? {
        "on" => 1,
        "keepalive" => 2,
        "timewait" => 3,
        "persist" => 4,
        _ => return None,
    };
    Some(Timer {
        kind,
        expires_ms: until(parts.next()?)?,
        retransmits: parts.next()?.parse().ok()?,
    })
}

/// `on (25.60/9/0)` of `netstat -o`: seconds, repeats, unanswered probes (net-tools `netstat.c`, `tcp_do_one`).
pub(in crate::paste) fn netstat_timer(kind: &str, value: &str) -> Option<Timer> {
    let kind = match kind {
        "on" => 1,
        "keepalive" => 2,
        "timewait" => 3,
        "probe" => 4,
        _ => return None,
    };
    let mut parts = value.strip_prefix('(')?.strip_suffix(')')?.split('/');
    let ns = stamp::decimal(parts.next()?)?;
    let (repeats, probes) = (parts.next()?, parts.next()?);
    let count = if kind == 4 { probes } else { repeats };
    Some(Timer {
        kind,
        expires_ms: u32::try_from(ns / 1_000_000).ok()?,
        retransmits: count.parse().ok()?,
    })
}

/// `109min`, `9.876sec`, `1min2sec`, `204ms`, in milliseconds.
fn until(text: &str) -> Option<u32> {
    let (mut rest, mut total) = (text, 0_i64);
    for (unit, ms) in [("min", 60_000), ("ms", 1), ("sec", 1_000)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            total = total.checked_add(stamp::decimal(number)?.checked_mul(ms)?)?;
            rest = behind;
        }
    }
    rest.is_empty().then(|| u32::try_from(total / 1_000_000_000).ok()).flatten()
}
