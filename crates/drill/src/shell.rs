//! What do the shell commands of a script set?
//!
//! No shell is run: the commands that scripts use to set a host up (`sysctl`, `ip route`, `tc`,
//! `ethtool`, the suites' own `defaults.sh` and `set_sysctls.py`) are read, and every other is
//! unsupported by name. `defaults.sh` is known by what it sets, since a script must mean the same
//! wherever it lies.

use crate::error::ScriptError;
use crate::script::Command;

/// One setting of the host under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// A sysctl by its full name with dots.
    Sysctl(String, String),
    /// A word of the route to the peer.
    Route(String, String),
    /// The device's queue, by its kind.
    Queue(String),
    /// The device cuts super-segments only behind the tap.
    Offload(bool),
    /// The device's MTU.
    Mtu(u32),
    /// What is remembered of the peer is thrown away.
    FlushMetrics,
    /// The host's counters are looked at.
    Counters(Counters),
    /// A file of this many bytes is made.
    File(String, u64),
}

/// What `nstat` is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counters {
    /// From now on it counts from here.
    pub(super) resets: bool,
    /// The counter that must have counted, and how often.
    pub(super) wanted: Option<(String, Option<u64>)>,
}

/// What both suites' `defaults.sh` set: of the Linux kernel (v6.12 and v7.3,
/// tools/testing/selftests/net/packetdrill/defaults.sh) and of google/packetdrill
/// (gtests/net/common/defaults.sh). Cached cookies and metrics are flushed: there are none.
const DEFAULTS: [(&str, &str); 19] = [
    ("net.ipv4.tcp_rmem", "4096 540000 15728640"),
    ("net.ipv4.tcp_wmem", "4096 262144 4194304"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_syn_retries", "5"),
    ("net.ipv4.tcp_synack_retries", "5"),
    ("net.ipv4.tcp_frto", "2"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_dsack", "1"),
    ("net.ipv4.tcp_reordering", "3"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
    ("net.ipv4.tcp_early_retrans", "4"),
    ("net.ipv4.tcp_recovery", "1"),
    ("net.ipv4.tcp_tso_win_divisor", "3"),
    ("net.ipv4.tcp_ecn", "0"),
    ("net.ipv4.tcp_pacing_ss_ratio", "200"),
    ("net.ipv4.tcp_pacing_ca_ratio", "120"),
    ("net.ipv4.tcp_fastopen", "3"),
    ("net.ipv4.tcp_fastopen_key", "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4"),
];

/// What google's sets besides or otherwise: every listener does Fast Open. The bits above say nothing to
/// Linux.
const DEFAULTS_OF_GOOGLE: [(&str, &str); 2] =
    [("net.ipv4.tcp_fastopen", "0x70403"), ("net.ipv4.tcp_notsent_lowat", "4294967295")];

/// The settings of some commands, in order.
pub(super) fn settings(command: &Command) -> Result<Vec<Setting>, ScriptError> {
    let mut found = Vec::new();
    for words in commands(&command.text) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let understood =
            either(&words).map_err(|what| ScriptError::unsupported(command.place, what))?;
        found.extend(understood);
    }
    Ok(found)
}

/// The settings of `a || b`: of `b` if `a` sets what Linux does not have.
fn either(words: &[&str]) -> Result<Vec<Setting>, String> {
    let Some(place) = words.iter().position(|word| *word == "||") else { return one(words) };
    let first = one(&words[..place])?;
    let fails = first.iter().any(|setting| {
        matches!(setting, Setting::Sysctl(name, _) if name == "net.ipv4.tcp_fastopen_cookies")
    });
    if fails { either(&words[place + 1..]) } else { Ok(first) }
}

/// The settings of one command, or what it is that is not understood.
fn one(words: &[&str]) -> Result<Vec<Setting>, String> {
    let Some((program, arguments)) = words.split_first() else { return Ok(Vec::new()) };
    let unsupported = || Err(format!("the command `{}`", words.join(" ")));
    let name = program.rsplit('/').next().unwrap_or(program);
    match name {
        "defaults.sh" => Ok(defaults(program.ends_with("common/defaults.sh"))),
        "set_sysctls.py" => {
            sysctls(arguments).ok_or_else(|| format!("the command `{}`", words.join(" ")))
        }
        "sysctl" => {
            let flags = ["-q", "-e", "-w", "-qw", "-eq", "-qe"];
            let settings: Vec<&str> =
                arguments.iter().filter(|word| !flags.contains(word)).copied().collect();
            sysctls(&settings).ok_or_else(|| format!("the command `{}`", words.join(" ")))
        }
        "echo" => match arguments {
            // Both ways of leaving slow start are on by default (net/ipv4/tcp_cubic.c).
            ["3", ">", "/sys/module/tcp_cubic/parameters/hystart_detect"] => Ok(Vec::new()),
            [value @ .., ">", file] if file.starts_with("/proc/sys/") => {
                Ok(vec![Setting::Sysctl(sysctl_name(file), value.join(" "))])
            }
            _ => unsupported(),
        },
        "tc" => queue(arguments).ok_or_else(|| format!("the command `{}`", words.join(" "))),
        "ip" => ip(arguments).ok_or_else(|| format!("the command `{}`", words.join(" "))),
        "ethtool" => offload(arguments).ok_or_else(|| format!("the command `{}`", words.join(" "))),
        "nstat" => counters(arguments)
            .map(|counters| vec![Setting::Counters(counters)])
            .ok_or_else(|| format!("the command `{}`", words.join(" "))),
        "dd" => file(arguments).ok_or_else(|| format!("the command `{}`", words.join(" "))),
        // Files are made anew.
        "rm" if matches!(arguments, ["-f", _]) => Ok(Vec::new()),
        "true" | ":" | "cat" | "sync" if arguments.is_empty() => Ok(Vec::new()),
        // What a script restores when it ends is gone with its host.
        _ if name.starts_with("sysctl_restore_") => Ok(Vec::new()),
        _ => unsupported(),
    }
}

/// Google's scripts take them from a folder that they share, the kernel's from their own.
fn defaults(of_google: bool) -> Vec<Setting> {
    let more = if of_google { &DEFAULTS_OF_GOOGLE[..] } else { &[] };
    let sysctls = DEFAULTS.iter().chain(more);
    let sysctls = sysctls.map(|(name, value)| Setting::Sysctl((*name).into(), (*value).into()));
    sysctls.chain([Setting::Queue("pfifo".into())]).collect()
}

/// `net.ipv4.tcp_sack` of itself or of `/proc/sys/net/ipv4/tcp_sack`.
fn sysctl_name(name: &str) -> String {
    name.strip_prefix("/proc/sys/").unwrap_or(name).replace('/', ".")
}

fn sysctls(words: &[&str]) -> Option<Vec<Setting>> {
    words
        .iter()
        .map(|word| {
            let (name, value) = word.split_once('=')?;
            Some(Setting::Sysctl(sysctl_name(name), value.into()))
        })
        .collect()
}

/// The queue that takes nothing.
pub(super) const REFUSING: &str = "pfifo limit 0";

/// `qdisc add dev tun0 root pfifo`
fn queue(words: &[&str]) -> Option<Vec<Setting>> {
    match words {
        ["qdisc", "add" | "replace" | "change", "dev", _, "root", kind] => {
            Some(vec![Setting::Queue((*kind).into())])
        }
        ["qdisc", "add" | "replace" | "change", "dev", _, "root", "pfifo", "limit", "0"] => {
            Some(vec![Setting::Queue(REFUSING.into())])
        }
        ["qdisc", "del" | "delete", "dev", _, "root", ..] => {
            Some(vec![Setting::Queue("pfifo".into())])
        }
        _ => None,
    }
}

/// `route change 192.0.2.0/24 via 192.168.0.1 dev tun0 initcwnd 20`
fn ip(words: &[&str]) -> Option<Vec<Setting>> {
    let words = if let [first, rest @ ..] = words
        && first.starts_with('-')
    {
        rest
    } else {
        words
    };
    match words {
        ["tcp_metrics", "flush", ..] => Some(vec![Setting::FlushMetrics]),
        ["link", "set", "dev", _, "mtu", mtu] | ["link", "set", _, "mtu", mtu] => {
            Some(vec![Setting::Mtu(mtu.parse().ok()?)])
        }
        ["route", "change" | "replace" | "add" | "append", rest @ ..] => {
            let mut found = Vec::new();
            let mut at = 0;
            while at < rest.len() {
                let word = rest[at];
                if word == "default" || at == 0 && word.starts_with(|c: char| c.is_ascii_hexdigit())
                {
                    at += 1;
                    continue;
                }
                let value = *rest.get(at + 1)?;
                let locked = if value == "lock" { rest.get(at + 2) } else { None };
                at += if locked.is_some() { 3 } else { 2 };
                if matches!(word, "via" | "dev" | "proto" | "scope" | "src" | "table" | "metric") {
                    continue;
                }
                let value = locked.map_or(value.to_string(), |number| format!("lock {number}"));
                found.push(Setting::Route(word.into(), value));
            }
            Some(found)
        }
        _ => None,
    }
}

/// `-s | grep TcpExtTCPRcvQDrop | grep -q " 1 "`
fn counters(words: &[&str]) -> Option<Counters> {
    let text = words.join(" ");
    let mut parts = text.split('|').map(|part| part.trim().to_string());
    let mut counters = Counters { resets: true, wanted: None };
    match parts.next()?.as_str() {
        "" | "-n" => {}
        "-s" => counters.resets = false,
        _ => return None,
    }
    if let Some(part) = parts.next() {
        let name = part.strip_prefix("grep ")?.trim().to_string();
        let count = match parts.next() {
            Some(part) => Some(part.strip_prefix("grep -q")?.trim().parse().ok()?),
            None => None,
        };
        counters.wanted = Some((name, count));
    }
    parts.next().is_none().then_some(counters)
}

/// `bs=1 count=5 if=/dev/zero of=/tmp/file status=none`
fn file(words: &[&str]) -> Option<Vec<Setting>> {
    let of = |name| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name| of(name)?.parse::<u64>().ok();
    let bytes = number("bs").unwrap_or(BLOCK).checked_mul(number("count")?)?;
    let zeros = of("if") == Some("/dev/zero");
    of("of").filter(|_| zeros).map(|name| vec![Setting::File(name.into(), bytes)])
}

/// What `dd` copies at a time (POSIX).
const BLOCK: u64 = 512;

/// `-K tun0 tso off gso off`
fn offload(words: &[&str]) -> Option<Vec<Setting>> {
    let ["-K", _, features @ ..] = words else { return None };
    let mut found = Vec::new();
    for pair in features.chunks(2) {
        match pair {
            ["tso" | "gso", "on"] => found.push(Setting::Offload(true)),
            ["tso" | "gso", "off"] => found.push(Setting::Offload(false)),
            ["gro" | "lro", "on" | "off"] => {}
            _ => return None,
        }
    }
    Some(found)
}

/// The words of each command: lines, quotes, `;`, comments and `$((..))` as a shell reads them;
/// output that is thrown away is left out.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        if let Some((inner, length)) = arithmetic(rest) {
            word.get_or_insert_default().push_str(&inner.to_string());
            taken = length;
        } else if c == '\\' {
            let escaped = rest.chars().nth(1);
            taken += escaped.map_or(0, char::len_utf8);
            if escaped != Some('\n') {
                word.get_or_insert_default().extend(escaped);
            }
        } else if quote == Some(c) {
            quote = None;
        } else if quote.is_none() && (c == '"' || c == '\'') {
            quote = Some(c);
            word.get_or_insert_default();
        } else if quote.is_none() && c == '#' && word.is_none() {
            taken = rest.find('\n').unwrap_or(rest.len());
        } else if quote.is_none() && (c.is_whitespace() || c == ';') {
            end(&mut all, word.take());
            if c == '\n' || c == ';' {
                all.push(Vec::new());
            }
        } else {
            word.get_or_insert_default().push(c);
        }
        rest = &rest[taken..];
    }
    end(&mut all, word);
    all.into_iter().filter(|words| !words.is_empty()).collect()
}

/// Puts the word behind the others of its command, but not where it tells of output thrown away.
fn end(all: &mut [Vec<String>], word: Option<String>) {
    let (Some(word), Some(last)) = (word, all.last_mut()) else { return };
    let redirects = |word: &String| matches!(word.as_str(), ">" | "2>" | "&>");
    if word == "/dev/null" && last.last().is_some_and(redirects) {
        last.pop();
    } else if !matches!(word.as_str(), "2>/dev/null" | "2>&1" | ">/dev/null" | "&>/dev/null") {
        last.push(word);
    }
}

/// `$((15*1024*1024))` and its length: factors are all that scripts use.
fn arithmetic(rest: &str) -> Option<(u64, usize)> {
    let inner = rest.strip_prefix("$((")?;
    let inner = &inner[..inner.find("))")?];
    let product = inner
        .split('*')
        .try_fold(1_u64, |product, factor| product.checked_mul(factor.trim().parse().ok()?))?;
    Some((product, inner.len() + 5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn of(text: &str) -> Result<Vec<Setting>, String> {
        settings(&Command { place: Place { line: 1, column: 1 }, text: text.into() })
            .map_err(|error| error.to_string())
    }

    fn sysctl(name: &str, value: &str) -> Setting {
        Setting::Sysctl(name.into(), value.into())
    }

    #[test]
    fn sysctls_are_read_however_they_are_written() {
        let expected = Ok(vec![sysctl("net.ipv4.tcp_sack", "0")]);
        assert_eq!(of("sysctl -q net.ipv4.tcp_sack=0"), expected);
        assert_eq!(of("./set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0"), expected);
        assert_eq!(of("echo 0 > /proc/sys/net/ipv4/tcp_sack"), expected);
    }

    #[test]
    fn quotes_products_and_continued_lines_are_one_word() {
        assert_eq!(
            of(
                "sysctl -q net.ipv4.tcp_rmem=\"4096 131072 $((32*1024*1024))\"\n# gone\n../x/set_sysctls.py \\\n /proc/sys/a/b=1"
            ),
            Ok(vec![sysctl("net.ipv4.tcp_rmem", "4096 131072 33554432"), sysctl("a.b", "1")])
        );
    }

    #[test]
    fn what_linux_does_not_have_leaves_it_to_the_other_command() {
        let flushed = Ok(vec![Setting::FlushMetrics]);
        let flush = "ip tcp_metrics flush all > /dev/null 2>&1";
        assert_eq!(of(flush), flushed);
        let set = "sysctl -q net.ipv4.tcp_fastopen_cookies=0 &> /dev/null";
        assert_eq!(of(&format!("{set} || \\\n {flush}")), flushed);
        let set = "sysctl -q net.ipv4.tcp_sack=0";
        assert_eq!(of(&format!("{set} || {flush}")), Ok(vec![sysctl("net.ipv4.tcp_sack", "0")]));
    }

    #[test]
    fn a_file_has_the_size_that_was_copied() {
        let made = Ok(vec![Setting::File("/tmp/a".into(), 1200)]);
        assert_eq!(of("dd bs=400 count=3 if=/dev/zero of=/tmp/a status=none"), made);
        assert!(of("dd count=3 if=/dev/urandom of=/tmp/a").is_err());
    }

    #[test]
    fn a_route_gives_its_words() {
        assert_eq!(
            of(
                "ip route change 192.0.2.0/24 via 192.168.0.1 dev tun0 initcwnd 5 rto_min lock 10ms"
            ),
            Ok(vec![
                Setting::Route("initcwnd".into(), "5".into()),
                Setting::Route("rto_min".into(), "lock 10ms".into())
            ])
        );
    }

    #[test]
    fn the_device_has_a_queue_offloads_and_an_mtu() {
        assert_eq!(
            of(
                "tc qdisc replace dev tun0 root fq; ethtool -K tun0 tso off gso off 2>/dev/null; ip link set dev tun0 mtu 1400"
            ),
            Ok(vec![
                Setting::Queue("fq".into()),
                Setting::Offload(false),
                Setting::Offload(false),
                Setting::Mtu(1400)
            ])
        );
    }

    #[test]
    fn the_suites_defaults_are_known_and_other_commands_are_named() {
        let count = |text| of(text).map(|settings| settings.len());
        assert_eq!(count("./defaults.sh"), Ok(DEFAULTS.len() + 1));
        let more = DEFAULTS_OF_GOOGLE.len();
        assert_eq!(count("../../common/defaults.sh"), Ok(DEFAULTS.len() + more + 1));
        assert_eq!(
            of("rm -rf /"),
            Err("line 1, column 1: the command `rm -rf /` is not supported".into())
        );
    }
}
