//! Changes as commands of a shell: how each is carried out, taken back, and looked at.
//!
//! Interfaces and files are named by whoever may create them, so every word that stems from a host is quoted; and
//! what shows otherwise than it is, or is no name that the kernel takes, comes into no command ([`Change::is_sayable`]).

use super::finding::Change;
use super::shown::prints;

/// A change in the words of a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    /// Carries it out.
    pub apply: String,
    /// Takes it back; `None` where what was there cannot be put back.
    pub undo: Option<String>,
    /// Succeeds once it is carried out. Uses the functions of [`super::script`].
    pub(super) is_done: String,
    /// Succeeds where everything is as it was seen.
    pub(super) is_as_seen: String,
    /// The line of a file of sysctl.d(5) that keeps it over a restart.
    pub(super) kept_by: Option<String>,
}

impl Commands {
    /// The same for a shell outside of the network namespace `netns` that was looked at, if that was another.
    #[must_use]
    pub fn within(self, netns: Option<&str>) -> Self {
        let Some(netns) = netns else { return self };
        let inside = |command: String| within(netns) + &command;
        Self { apply: inside(self.apply), undo: self.undo.map(inside), ..self }
    }
}

impl Change {
    /// The change in the words of a shell.
    pub fn commands(&self) -> Commands {
        match self {
            Self::Sysctl { key, from, to } => sysctl(key, from, to),
            Self::Route { from, to, ipv6 } => route(from, to, *ipv6),
            Self::Ethtool { dev, option, from, to } => ethtool(dev, option, from, to),
            Self::Qdisc { dev, from, handle, to } => qdisc(dev, from, *handle, to),
            Self::File { path, from, to } => file(path, from, to),
            Self::Link { dev, from, to } => link(dev, from, to),
            Self::Forget { peer, .. } => forget(peer),
        }
    }

    /// Whether its words may stand in a command for the namespace `netns`: all show as they are, and interfaces and
    /// files are such as the kernel has.
    pub fn is_sayable(&self, netns: Option<&str>) -> bool {
        let here = match self {
            Self::Sysctl { key, from, to } => are_plain(&[key, from, to]),
            Self::Route { from, to, .. } => are_plain(&[from, to]),
            Self::Ethtool { dev, option, from, to } => {
                is_interface(dev) && are_plain(&[option, from, to])
            }
            Self::Qdisc { dev, from, to, .. } | Self::Link { dev, from, to } => {
                is_interface(dev) && are_plain(&[from, to])
            }
            Self::File { path, from, to } => is_file(path) && are_plain(&[from, to]),
            Self::Forget { peer, from } => are_plain(&[peer, from]),
        };
        here && netns.is_none_or(|netns| are_plain(&[netns]))
    }

    /// What it changes, so that nothing is changed twice.
    pub fn subject(&self) -> String {
        match self {
            Self::Sysctl { key, .. } => key.clone(),
            Self::Route { from, .. } => format!("route {from}"),
            Self::Ethtool { dev, option, from, .. } => {
                format!("ethtool {option} {dev} {}", from.split(' ').next().unwrap_or_default())
            }
            Self::Qdisc { dev, .. } => format!("root of {dev}"),
            Self::File { path, .. } => path.clone(),
            Self::Link { dev, from, .. } => {
                format!("{} of {dev}", from.split(' ').next().unwrap_or_default())
            }
            Self::Forget { peer, .. } => format!("what is remembered of {peer}"),
        }
    }
}

/// A backslash is how [`super::shown`] writes what does not show: the true name is not known then.
fn are_plain(words: &[&str]) -> bool {
    words.iter().all(|word| word.chars().all(|letter| prints(letter) && letter != '\\'))
}

/// A name that the kernel takes for an interface, and that shows: `dev_valid_name`, v6.18 `net/core/dev.c`, with
/// `IFNAMSIZ` of 16 and its zero.
fn is_interface(name: &str) -> bool {
    let is_of_name = |letter: char| {
        prints(letter) && !letter.is_whitespace() && !matches!(letter, '/' | ':' | '\\')
    };
    (1..16).contains(&name.len()) && !matches!(name, "." | "..") && name.chars().all(is_of_name)
}

/// A file named without detours: checks put names of interfaces and groups into the paths that they know. Groups of
/// systemd have a backslash in their names (systemd-escape(1)).
fn is_file(path: &str) -> bool {
    path.starts_with('/')
        && path.split('/').all(|part| !matches!(part, "." | ".."))
        && path.chars().all(prints)
}

/// Commands of something that is written and read the same way back and forth.
fn both(
    write: impl Fn(&str) -> String,
    is: impl Fn(&str) -> String,
    from: &str,
    to: &str,
) -> Commands {
    Commands {
        apply: write(to),
        undo: Some(write(from)),
        is_done: is(to),
        is_as_seen: is(from),
        kept_by: None,
    }
}

fn sysctl(key: &str, from: &str, to: &str) -> Commands {
    let write = |value: &str| format!("sysctl -w {}", quoted(&format!("{key}={value}")));
    let is = |value: &str| format!("[ \"$(setting {})\" = {} ]", quoted(key), quoted(value));
    Commands { kept_by: Some(format!("{key} = {to}")), ..both(write, is, from, to) }
}

fn route(from: &str, to: &str, ipv6: bool) -> Commands {
    let ip = if ipv6 { "ip -6 route" } else { "ip route" };
    // ip(8) prints a lock of this one and does not take it: it always locks it (iproute2 6.1 `iproute_modify`).
    let words = |line: &str| quoted_words(&line.replace(" rto_min lock ", " rto_min "));
    let is = |line: &str| format!("has_route {} {}", if ipv6 { "-6" } else { "-4" }, words(line));
    both(|line| format!("{ip} replace {}", words(line)), is, from, to)
}

fn ethtool(dev: &str, option: &str, from: &str, to: &str) -> Commands {
    let dev = quoted(dev);
    let (query, option) = (option.to_ascii_lowercase(), quoted(option));
    let is = |text: &str| {
        all_pairs(text, |name, value| {
            let label = printed(&query, name);
            format!("[ \"$(ethtool {query} {dev} | now {})\" = {} ]", quoted(label), quoted(value))
        })
    };
    both(|text| format!("ethtool {option} {dev} {}", quoted_words(text)), is, from, to)
}

/// What looks at each name and value of `rx on tx off`.
fn all_pairs(text: &str, is: impl Fn(&str, &str) -> String) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.chunks(2).map(|pair| is(pair[0], pair.get(1).unwrap_or(&"")));
    pairs.collect::<Vec<_>>().join(" && ")
}

/// Under which label ethtool(8) prints what it takes as `name` (ethtool 6.1 `dump_ring`, `dump_channels`,
/// `dump_pause`, `dump_coalesce`; `off_flag_def`, by whose names it prints a single feature): most features and times
/// carry the same name.
fn printed<'a>(query: &str, name: &'a str) -> &'a str {
    match (query, name) {
        ("-g" | "-l" | "-a", "rx") => "RX",
        ("-g" | "-l" | "-a", "tx") => "TX",
        ("-g", "rx-mini") => "RX Mini",
        ("-g", "rx-jumbo") => "RX Jumbo",
        ("-l", "other") => "Other",
        ("-l", "combined") => "Combined",
        ("-a", "autoneg") => "Autonegotiate",
        ("-c", "adaptive-rx") => "Adaptive RX",
        ("-k", "rx-checksum") => "rx-checksumming",
        ("-k", "tx-generic-segmentation") => "generic-segmentation-offload",
        ("-k", "rx-gro") => "generic-receive-offload",
        ("-k", "rx-lro") => "large-receive-offload",
        _ => name,
    }
}

/// Without `to` the root goes, and the default one of the kernel comes back.
fn qdisc(dev: &str, from: &str, handle: u32, to: &str) -> Commands {
    let name = quoted(dev);
    let (root, delete) =
        (format!("tc qdisc replace dev {name} root"), format!("tc qdisc del dev {name} root"));
    let kind = |text: &str| text.split_whitespace().next().unwrap_or_default().to_owned();
    let is = |text: &str| match text {
        "" => format!("[ \"$(root_handle {name})\" = 0: ]"),
        text => format!("[ \"$(root_qdisc {name})\" = {} ]", quoted(&kind(text))),
    };
    // A default one has no handle and cannot be asked for: it comes back when the root is deleted.
    let undo = match handle >> 16 {
        0 if to.is_empty() => format!("{root} {}", quoted_words(from)),
        0 => delete.clone(),
        major => format!("{root} handle {major:x}: {}", quoted_words(from)),
    };
    Commands {
        apply: if to.is_empty() { delete } else { format!("{root} {}", quoted_words(to)) },
        undo: Some(undo),
        is_done: is(to),
        is_as_seen: is(from),
        kept_by: None,
    }
}

/// A mask of processors reads as `00000000,0000000f` what was written as `f` (`show_rps_map`), and a
/// setting of a bond as `layer2 0` what was written as `layer2` (Linux v6.1 `bonding_show_xmit_hash`).
fn file(path: &str, from: &str, to: &str) -> Commands {
    let file = quoted(path);
    let holds = |value: &str| {
        let [reads, value] = if path.ends_with("_cpus") {
            let digits = value.replace(',', "").to_ascii_lowercase();
            [format!("mask {file}"), digits.trim_start_matches('0').to_owned()]
        } else if path.contains("/bonding/") {
            [format!("first_word {file}"), value.to_owned()]
        } else {
            [format!("cat {file}"), value.to_owned()]
        };
        format!("[ -r {file} ] && [ \"$({reads})\" = {} ]", quoted(&value))
    };
    both(|value| format!("printf '%s\\n' {} > {file}", quoted(value)), holds, from, to)
}

/// Not all of this is in files of `/sys`, and those are of another namespace where only that of the network was
/// entered.
fn link(dev: &str, from: &str, to: &str) -> Commands {
    let name = quoted(dev);
    let is = |text: &str| {
        all_pairs(text, |what, value| {
            let label = if what == "txqueuelen" { "qlen" } else { what };
            format!("[ \"$(of_link {name} {})\" = {} ]", quoted(label), quoted(value))
        })
    };
    both(|text| format!("ip link set dev {name} {}", quoted_words(text)), is, from, to)
}

fn forget(peer: &str) -> Commands {
    let peer = quoted(peer);
    Commands {
        apply: format!("ip tcp_metrics delete {peer}"),
        undo: None,
        is_done: format!("! ip tcp_metrics show {peer} 2>/dev/null | grep -q ."),
        is_as_seen: format!("ip tcp_metrics show {peer} 2>/dev/null | grep -q ."),
        kept_by: None,
    }
}

/// What is before a command that is to run in another network namespace, named as ip-netns(8) does, by a
/// process or by a file.
pub(crate) fn within(netns: &str) -> String {
    if netns.bytes().all(|b| b.is_ascii_digit()) {
        format!("nsenter -t {netns} -n ")
    } else if netns.contains('/') {
        format!("nsenter {} ", quoted(&format!("--net={netns}")))
    } else {
        format!("ip netns exec {} ", quoted(netns))
    }
}

fn quoted_words(text: &str) -> String {
    text.split_whitespace().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A word that the shell takes as it is; plain ones are left plain.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(change: &Change) -> [String; 2] {
        let commands = change.commands();
        [commands.apply, commands.undo.unwrap_or_default()]
    }

    #[test]
    fn each_change_has_its_command_and_its_way_back() {
        let text = str::to_owned;
        let changes = [
            Change::Sysctl {
                key: text("net.ipv4.tcp_rmem"),
                from: text("4096 131072 6291456"),
                to: text("4096 131072 33554432"),
            },
            Change::Route {
                from: text("default via 10.0.0.1 dev eth0"),
                to: text("default via 10.0.0.1 dev eth0 initcwnd 30"),
                ipv6: false,
            },
            Change::Ethtool {
                dev: text("eth0"),
                option: text("-G"),
                from: text("rx 256"),
                to: text("rx 1024"),
            },
            Change::File {
                path: text("/sys/module/tcp_cubic/parameters/hystart_detect"),
                from: text("3"),
                to: text("2"),
            },
            Change::Link { dev: text("eth0"), from: text("mtu 9000"), to: text("mtu 1500") },
        ];
        let all: Vec<[String; 2]> = changes.iter().map(undone).collect();
        insta::assert_debug_snapshot!(all);
    }

    #[test]
    fn a_default_queue_comes_back_by_deleting_and_another_by_its_handle() {
        let of = |handle| Change::Qdisc {
            dev: "eth0".to_owned(),
            from: "fq limit 100p".to_owned(),
            handle,
            to: "fq_codel".to_owned(),
        };
        assert_eq!(undone(&of(0))[1], "tc qdisc del dev eth0 root");
        let asked_for = "tc qdisc replace dev eth0 root handle 8001: fq limit 100p";
        assert_eq!(undone(&of(0x8001_0000))[1], asked_for);
    }

    #[test]
    fn a_namespace_is_entered_by_name_process_or_file() {
        assert_eq!(within("blue"), "ip netns exec blue ");
        assert_eq!(within("4711"), "nsenter -t 4711 -n ");
        assert_eq!(within("/proc/1/ns/net"), "nsenter --net=/proc/1/ns/net ");
    }

    #[test]
    fn what_a_host_names_is_quoted() {
        assert_eq!(quoted("eth0"), "eth0");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a'; reboot #"), r"'a'\''; reboot #'");
        let hostile = Change::Link {
            dev: "$(reboot)".to_owned(),
            from: "mtu 1".to_owned(),
            to: "mtu 2".to_owned(),
        };
        assert_eq!(undone(&hostile)[0], "ip link set dev '$(reboot)' mtu 2");
        assert!(hostile.is_sayable(None));
    }

    fn mtu(dev: &str) -> Change {
        let [dev, from, to] = [dev, "mtu 9000", "mtu 1500"].map(str::to_owned);
        Change::Link { dev, from, to }
    }

    #[test]
    fn no_command_names_what_no_interface_is_called() {
        for name in
            ["eth0", "eth0.100", "br-1a2b3c4d5e6f", "größer", "...", "-x", "a'b", "123456789012345"]
        {
            assert!(mtu(name).is_sayable(None), "{name}");
        }
        let odd = [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "a\nb",
            "a\u{1b}[2J",
            r"a\nb",
            "a:1",
            "a\u{202e}b",
            "a\0",
        ];
        for name in odd.into_iter().chain(["1234567890123456", "123456789012345ü"]) {
            assert!(!mtu(name).is_sayable(None), "{name:?}");
        }
    }

    #[test]
    fn no_command_holds_what_a_terminal_obeys() {
        let sysctl = |value: &str| Change::Sysctl {
            key: "net.ipv4.tcp_rmem".to_owned(),
            from: value.to_owned(),
            to: "4096 131072 33554432".to_owned(),
        };
        assert!(sysctl("4096 131072 6291456").is_sayable(None));
        assert!(
            !sysctl("4096\u{1b}[2J").is_sayable(None)
                && !sysctl("1\nkernel.x = 1").is_sayable(None)
        );
        assert!(mtu("eth0").is_sayable(Some("blue")) && !mtu("eth0").is_sayable(Some("a\nb")));
        let file = |path: &str| {
            let [path, from, to] = [path, "0", "f"].map(str::to_owned);
            Change::File { path, from, to }
        };
        let group = r"/sys/fs/cgroup/system.slice/dev-x\x2dy.service/memory.max";
        assert!(file(group).is_sayable(None));
        for odd in ["mtu", "/sys/class/net/../../../etc/x", "/sys/class/net/a\u{7}b/mtu"] {
            assert!(!file(odd).is_sayable(None), "{odd:?}");
        }
    }
}
