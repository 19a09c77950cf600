//! Settings: `sysctl -a`, `sysctl KEY`, `cat /proc/sys/..`, and files of sysctl.d(5).
//!
//! What `sysctl` prints (`KEY = VALUE`) is what the kernel runs with, and so are such lines without a file
//! above them. Below the name of a file (`cat /etc/sysctl.conf`, `==> FILE <==`, `FILE:KEY=VALUE` as grep
//! prints it) lines tell only what that file sets.
//!
//! Of two values of one key the later is taken only where the text tells that it is later: the command above sets
//! what it prints, or each has its time. Else neither is, and both are named.

use super::Line;
use super::Taken;
use super::collected::{Collected, Told};
use super::command::Command;
use crate::snapshot::SetIn;

impl Told {
    /// Why neither of two values is taken.
    pub(super) fn doubt(&self) -> Option<String> {
        let (other, line) = self.against.as_ref()?;
        Some(format!(
            "two values were pasted: `{}` (line {}) and `{other}` (line {line})",
            self.value, self.line
        ))
    }

    /// What becomes of a line that tells another value.
    fn meet(&mut self, next: Self, sets: bool) -> Taken {
        let is_later = sets || self.at.zip(next.at).is_some_and(|(then, now)| then < now);
        if is_later {
            let earlier = format!("line {} says `{}`", self.line, self.value);
            *self = next;
            return Taken::ReadBut(format!("{earlier}; this value came later and is taken"));
        }
        if self.against.is_none() {
            self.against = Some((next.value, next.line));
        }
        Taken::ReadBut(format!(
            "line {} says `{}`; nothing tells which came later, so neither is taken",
            self.line, self.value
        ))
    }
}

/// What a command asks for, of settings.
pub(super) enum Asked {
    Nothing,
    /// The values of these keys, without their names.
    Values(Vec<String>),
    File(File),
}

/// A file that sets keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct File {
    name: String,
    /// Number of the line in the pasted text above its first.
    above: Option<u64>,
}

pub(super) fn asked_by(command: &Command) -> Asked {
    if let Some(words) = command.arguments("sysctl")
        && command.has("sysctl", 'n')
    {
        let keys = words.iter().filter(|word| !word.starts_with('-'));
        return Asked::Values(keys.rev().map(|key| dotted(key)).collect());
    }
    let files: Vec<&str> = command.files().collect();
    let keys: Vec<String> =
        files.iter().rev().filter_map(|file| file.strip_prefix("/proc/sys/")).map(dotted).collect();
    if !keys.is_empty() {
        return Asked::Values(keys);
    }
    match files.as_slice() {
        [file] if is_setting_file(file) => {
            Asked::File(File { name: (*file).to_owned(), above: None })
        }
        _ => Asked::Nothing,
    }
}

/// A value on a line of its own, of the key that is asked for next.
pub(super) fn value(
    text: &str,
    keys: &mut Vec<String>,
    collected: &mut Collected,
) -> Option<Taken> {
    if let Some(error) = text.strip_prefix("cat: ").or_else(|| text.strip_prefix("sysctl: ")) {
        keys.pop();
        collected.could_not("settings", None, error);
        return Some(Taken::Read);
    }
    if text.contains(['=', ':', '<', '/']) {
        return None;
    }
    let key = keys.pop()?;
    Some(keep(&key, text, collected))
}

/// `net.ipv4.tcp_rmem = 4096 131072 6291456`, or `/proc/sys/net/ipv4/tcp_rmem:4096 131072 6291456`.
pub(super) fn line(text: &str, collected: &mut Collected) -> Option<Taken> {
    if let Some(rest) = text.strip_prefix("/proc/sys/") {
        let (path, value) = rest.split_once(':')?;
        return Some(keep(&dotted(path), value, collected));
    }
    if text.starts_with(APPLYING) {
        collected.sets = true;
        return Some(Taken::Read);
    }
    if let Some((file, line, rest)) = grep_line(text) {
        return set(file, line, rest, collected).then_some(Taken::Read);
    }
    let (key, value) = pair(text)?;
    Some(keep(&key, value, collected))
}

/// What `sysctl --system` prints above what each file makes it set.
const APPLYING: &str = "* Applying /";

/// It sets what it prints: `sysctl -w KEY=VALUE`, `-p FILE`, `--system`.
pub(super) fn sets(command: &Command) -> bool {
    let sets = |word: &String| {
        matches!(word.as_str(), "--write" | "--system")
            || word.starts_with("--load")
            || (word.contains('=') && !word.starts_with('-'))
    };
    command.has("sysctl", 'w')
        || command.has("sysctl", 'p')
        || command.arguments("sysctl").is_some_and(|words| words.iter().any(sets))
}

impl File {
    /// `==> /etc/sysctl.conf <==`.
    pub(super) fn of_header(text: &str) -> Option<Self> {
        let name = text.strip_prefix("==> ")?.strip_suffix(" <==")?;
        is_setting_file(name).then(|| Self { name: name.to_owned(), above: None })
    }

    /// A line of it; `None` for one that is none.
    pub(super) fn line(&mut self, line: Line<'_>, collected: &mut Collected) -> Option<Taken> {
        let above = *self.above.get_or_insert(line.number.saturating_sub(1));
        let number = u32::try_from(line.number.saturating_sub(above)).unwrap_or(u32::MAX);
        // Where lines in front were left out, or are comments, the number is only the least it can be.
        set(&self.name, number, line.text, collected).then_some(Taken::Read)
    }
}

fn set(file: &str, line: u32, text: &str, collected: &mut Collected) -> bool {
    let Some((key, value)) = pair(text.trim_start_matches('-')) else { return false };
    if is_kept(&key) {
        let entry = SetIn { file: file.to_owned(), line, value: blanks_single(value) };
        collected.set_in.entry(key).or_default().push(entry);
    }
    true
}

/// `/etc/sysctl.conf:12:net.ipv4.tcp_sack=0`, with or without the number.
fn grep_line(text: &str) -> Option<(&str, u32, &str)> {
    let (file, rest) = text.split_once(':').filter(|(file, _)| is_setting_file(file))?;
    Some(match rest.split_once(':') {
        Some((number, rest)) if let Ok(number) = number.parse() => (file, number, rest),
        _ => (file, 0, rest),
    })
}

fn is_setting_file(name: &str) -> bool {
    name.starts_with('/')
        && !name.contains(' ')
        && name.contains("sysctl")
        && name.rsplit('.').next() == Some("conf")
}

/// Where sysctl(8) finds its keys; each but `net` and `fs` is known, and not wanted.
const ROOTS: [&str; 10] =
    ["net", "fs", "kernel", "vm", "dev", "user", "abi", "debug", "crypto", "sunrpc"];

/// `net.ipv4.tcp_rmem = 4096 131072 6291456`; the key may be written with slashes.
fn pair(text: &str) -> Option<(String, &str)> {
    let (key, value) = text.split_once('=')?;
    let key = key.trim();
    let root = key.split(['.', '/']).next()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/*@".contains(&byte);
    (ROOTS.contains(&root) && key.len() > root.len() && key.bytes().all(plain))
        .then(|| (dotted(key), value))
}

/// A path below `/proc/sys` as sysctl(8) names it: slashes and dots change places, where a slash comes first.
fn dotted(key: &str) -> String {
    let slashes_separate =
        key.find('/').is_some_and(|slash| key.find('.').is_none_or(|dot| slash < dot));
    if !slashes_separate {
        return key.to_owned();
    }
    key.chars()
        .map(|c| match c {
            '/' => '.',
            '.' => '/',
            other => other,
        })
        .collect()
}

fn keep(key: &str, value: &str, collected: &mut Collected) -> Taken {
    // People add remarks behind values.
    let end = [" //", " #", "\t#", "\t//"].into_iter().filter_map(|mark| value.find(mark)).min();
    let value = blanks_single(value.get(..end.unwrap_or(value.len())).unwrap_or_default());
    if !is_kept(key) {
        return Taken::Read;
    }
    let (line, at) = (collected.line, collected.now);
    let told = Told { value, line, at, against: None };
    match collected.settings.get_mut(key) {
        Some(earlier) if earlier.value == told.value => Taken::Read,
        Some(earlier) if !changes_by_itself(key) => earlier.meet(told, collected.sets),
        _ => {
            collected.settings.insert(key.to_owned(), told);
            Taken::Read
        }
    }
}

/// What the kernel counts or adds to below `/proc/sys/net`: nobody sets it.
fn changes_by_itself(key: &str) -> bool {
    matches!(
        key,
        "net.netfilter.nf_conntrack_count"
            | "net.ipv4.tcp_available_congestion_control"
            | "net.ipv4.tcp_available_ulp"
    )
}

/// What a snapshot holds: everything of the network but secrets, and the limits of descriptors.
fn is_kept(key: &str) -> bool {
    let secret = key.ends_with("tcp_fastopen_key") || key.ends_with("stable_secret");
    (key.starts_with("net.") && !secret) || matches!(key, "fs.file-max" | "fs.nr_open")
}

fn blanks_single(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
