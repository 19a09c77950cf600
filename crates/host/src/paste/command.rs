//! Which command printed what follows: the prompts that are copied with its output.
//!
//! A prompt is what is in front of `$`, `#` or `%` and a tool that is known here; without a prompt, a
//! line counts that begins with such a tool and goes on as a command does. Headers that people write
//! (`=== ss -s ===`, `# ethtool -S eth0`) are read alike.

use super::elsewhere::{self, Elsewhere, name_of};

/// Tools whose output is read, and those that show files.
const TOOLS: [&str; 42] = [
    "sysctl",
    "ss",
    "netstat",
    "nstat",
    "ethtool",
    "ip",
    "ifconfig",
    "tc",
    "uname",
    "cat",
    "head",
    "tail",
    "grep",
    "egrep",
    "zcat",
    "date",
    "uptime",
    "more",
    "less",
    "rtmon",
    "free",
    "systemctl",
    "service",
    "iperf3",
    "iperf",
    "strace",
    "perf",
    "curl",
    "wget",
    "ping",
    "ps",
    "pgrep",
    "vmstat",
    "mpstat",
    "sar",
    "lscpu",
    "tcpdump",
    "dmesg",
    "lspci",
    "scp",
    "rsync",
    "dd",
];
/// Those of them that nobody begins a sentence or a line of output with.
const BARE: [&str; 13] = [
    "sysctl", "ss", "netstat", "nstat", "ethtool", "ip", "ifconfig", "tc", "uname", "cat", "grep",
    "free", "iperf3",
];
/// The longest prompt. Ours: user, host and a deep folder.
const PROMPT: usize = 120;

/// A command line: each tool of it with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    parts: Vec<Vec<String>>,
    /// All of it.
    text: String,
    /// Whose prompt stood before it, or on which it runs, without the domain.
    pub(super) host: Option<String>,
    /// It runs on another host than the prompt's.
    pub(super) runs: Runs,
}

/// Where a command runs, and the commands below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Runs {
    #[default]
    Here,
    /// Only what this command prints is of the other host.
    Elsewhere,
    /// A shell there: what follows is of it until that ends.
    Within,
}

impl Command {
    /// The command of a line; `None` for other lines.
    pub(super) fn of(text: &str) -> Option<Self> {
        let bare =
            text.trim_matches(|c: char| matches!(c, '=' | '-' | '*' | '~' | '<' | '>' | ' '));
        let after_prompt = bare
            .char_indices()
            .filter(|(_, c)| matches!(c, '$' | '#' | '%'))
            .find_map(|(at, _)| {
                let (prompt, rest) = (&bare[..at], &bare[at + 1..]);
                let command = is_prompt(prompt).then(|| Self::anywhere(rest)).flatten()?;
                Some(Self { host: command.host.or_else(|| host(prompt)), ..command })
            });
        let headed = || {
            let host = Some(elsewhere::headed(text)?);
            Some(Self { host, runs: Runs::Within, ..Self::default() })
        };
        // Without a prompt `ssh` may begin a sentence.
        let bare_elsewhere = || Self::elsewhere(bare).filter(|_| !bare.starts_with("ssh "));
        after_prompt.or_else(headed).or_else(bare_elsewhere).or_else(|| {
            let mut words = bare.split_whitespace().skip_while(|word| *word == "sudo");
            let (first, second) = (words.next()?, words.next());
            let argument = |word: &str| word.starts_with(['-', '/']) || !takes_options(first);
            let is_command = BARE.contains(&first)
                && bare.is_ascii()
                && second.is_none_or(argument)
                && !bare.contains(": ");
            is_command.then(|| Self::parse(bare)).flatten()
        })
    }

    /// A command here, or one that runs elsewhere.
    fn anywhere(text: &str) -> Option<Self> {
        Self::elsewhere(text).or_else(|| Self::parse(text))
    }

    /// One that runs elsewhere, or opens a shell there.
    fn elsewhere(text: &str) -> Option<Self> {
        let it = Elsewhere::of(text)?;
        let (runs, there) = if it.is_shell() {
            (Runs::Within, Self::default())
        } else {
            (Runs::Elsewhere, Self::parse(it.command)?)
        };
        Some(Self { host: Some(it.host), text: text.to_owned(), runs, ..there })
    }

    /// `None` if there is no known tool in it.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        for part in text.split(['|', ';', '&', '\'', '"', '`', '(']) {
            let words: Vec<&str> =
                part.split_whitespace().take_while(|word| *word != ">").collect();
            let tool = |word: &&str| TOOLS.contains(&word.rsplit('/').next().unwrap_or(word));
            // Only behind words that run others: `grep tcp /etc/sysctl.conf` is of `grep`.
            let Some(at) = words.iter().position(tool) else { continue };
            let carried = words.get(..at).unwrap_or_default();
            if carried.iter().all(|word| runs_others(word)) {
                let owned = words.get(at..).unwrap_or_default().iter().map(|w| (*w).to_owned());
                parts.push(owned.collect());
            }
        }
        (!parts.is_empty()).then(|| Self { parts, text: text.to_owned(), ..Self::default() })
    }

    /// All of it, without the prompt.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The arguments that a tool was given.
    pub(super) fn arguments(&self, tool: &str) -> Option<&[String]> {
        let is = |part: &&Vec<String>| {
            part.first().is_some_and(|word| word.rsplit('/').next() == Some(tool))
        };
        self.parts.iter().find(is).and_then(|part| part.get(1..))
    }

    /// Whether it was given a short option, alone or among others (`-tinm`).
    pub(super) fn has(&self, tool: &str, option: char) -> bool {
        let is = |word: &String| {
            word.strip_prefix('-')
                .is_some_and(|rest| !rest.starts_with('-') && rest.contains(option))
        };
        self.arguments(tool).is_some_and(|words| words.iter().any(is))
    }

    /// The device that `ethtool` was asked about: its last argument that is one.
    pub(super) fn ethtool_device(&self) -> Option<&str> {
        let is = |word: &&String| is_device(word) && !word.starts_with('-');
        self.arguments("ethtool")?.iter().find(is).map(String::as_str)
    }

    /// The device behind `dev`, of ip and tc.
    pub(super) fn device(&self, tool: &str) -> Option<&str> {
        let words = self.arguments(tool)?;
        let at = words.iter().position(|word| word == "dev")?;
        words.get(at + 1).map(String::as_str).filter(|word| is_device(word))
    }

    /// The statistics of protocols.
    pub(super) fn is_netstat_s(&self) -> bool {
        self.has("netstat", 's')
            || self
                .arguments("netstat")
                .is_some_and(|words| words.iter().any(|word| word == "--statistics"))
    }

    /// It shows only some lines of what a tool prints.
    pub(super) fn shows_some_lines(&self) -> bool {
        ["grep", "egrep", "head", "tail"].iter().any(|tool| self.arguments(tool).is_some())
    }

    /// Files that it shows.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        let tools = ["cat", "more", "less", "head", "tail", "grep", "egrep"];
        tools
            .into_iter()
            .filter_map(|tool| self.arguments(tool))
            .flatten()
            .map(String::as_str)
            .filter(|word| word.starts_with('/'))
    }
}

/// A name that the kernel takes for an interface (`dev_valid_name`, `net/core/dev.c`): shorter than 16
/// bytes, without blanks, slashes and colons. Letters of shells are none, though the kernel would take them.
pub(super) fn is_device(name: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'@');
    (1..16).contains(&name.len()) && name.bytes().all(plain)
}

fn is_prompt(text: &str) -> bool {
    let text = text.trim();
    let framed = text.starts_with('[') || text.starts_with('(') || text.contains('@');
    text.len() <= PROMPT && (framed || !text.contains(' ')) && !text.contains([',', ';', '='])
}

/// The host of `[root@web-1 ~]`, `ada@web-1.example:~/src` or `web-1:~`, without its domain; an address is whole.
fn host(prompt: &str) -> Option<String> {
    if let Some((_, behind)) = prompt.rsplit_once('@') {
        return name_of(behind);
    }
    let (name, folder) = prompt.trim().trim_start_matches('[').split_once(':')?;
    // `root:~` is a user.
    name_of((folder.starts_with(['~', '/']) && name != "root").then_some(name)?)
}

/// Words in front of a tool that run it.
fn runs_others(word: &str) -> bool {
    matches!(
        word,
        "sudo" | "watch" | "time" | "do" | "while" | "true" | "nice" | "for" | "in" | "i"
    ) || word.starts_with('-')
        || word.contains('=')
        || word.starts_with('{')
        || word.parse::<f64>().is_ok()
}

/// Tools whose first argument is an option or a file where they stand without a prompt; the others take
/// words (`ip route`).
fn takes_options(tool: &str) -> bool {
    matches!(tool, "ss" | "netstat" | "nstat" | "uname" | "cat" | "grep" | "free" | "iperf3")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_and_headers_are_told_from_output() {
        for (line, tool, arguments) in [
            ("$ ss -tin", "ss", "-tin"),
            ("$netstat -s | grep -i filter", "netstat", "-s"),
            ("# ethtool -S eth0", "ethtool", "-S eth0"),
            ("[root@web-1 ~]# sysctl -a | grep tcp_rmem", "sysctl", "-a"),
            ("root@ubuntu:~# tc qdisc show dev ens33", "tc", "qdisc show dev ens33"),
            ("user@host:/var/log$ sudo /usr/sbin/ethtool -g ens1f0", "ethtool", "-g ens1f0"),
            ("=== ss -s ===", "ss", "-s"),
            ("cat /proc/net/softnet_stat", "cat", "/proc/net/softnet_stat"),
            ("ip -s link", "ip", "-s link"),
            ("$ watch -n1 'netstat -s | grep LISTEN'", "netstat", "-s"),
            ("ifconfig", "ifconfig", ""),
        ] {
            let command = Command::of(line).unwrap_or_else(|| panic!("{line} is a command"));
            let found = command.arguments(tool).unwrap_or_else(|| panic!("{line}: {tool}"));
            assert_eq!(found.join(" "), arguments, "{line}");
        }
        for line in [
            "ESTAB 0 0 10.0.0.1:80 10.0.0.2:4000",
            "net.ipv4.tcp_rmem = 4096 131072 6291456",
            "# the interface was renamed",
            "cat is what I used, and it said",
            "    TCPTimeouts: 6",
            "ip: it printed nothing",
            "2: eth0: <BROADCAST,UP> mtu 1500 qdisc fq state UP",
        ] {
            assert_eq!(Command::of(line), None, "{line}");
        }
    }

    #[test]
    fn a_prompt_names_its_host_and_ssh_another() {
        for (line, host) in [
            ("[root@web-1 ~]# ss -tin", Some("web-1")),
            ("ada@web-1.example.org:~/src$ ss -tin", Some("web-1")),
            ("root@10.0.0.7:~# ss -tin", Some("10.0.0.7")),
            ("web-1:~ # ss -tin", Some("web-1")),
            ("root:~# ss -tin", None),
            ("$ ss -tin", None),
            ("bash-5.1$ ss -tin", None),
            ("ada@here:~$ ssh -p 22 root@there.example 'ss -tin'", Some("there")),
            ("ada@here:~$ ssh there \"sysctl -a\"", Some("there")),
            ("ada@here:~$ ssh there ss -tin", Some("there")),
            ("$ kubectl exec -it web-0 -- sh", Some("web-0")),
            ("docker exec web ss -tin", Some("web")),
            ("web-1 | CHANGED | rc=0 >>", Some("web-1")),
            ("root@here:~# ip netns exec blue ss -tin", Some("blue")),
        ] {
            let command = Command::of(line).unwrap_or_else(|| panic!("{line} is a command"));
            assert_eq!(command.host.as_deref(), host, "{line}");
        }
    }

    #[test]
    fn options_are_found_alone_and_together() {
        let command = Command::of("$ ss -tinm -e dst 10.0.0.1").expect("a command");
        assert!(command.has("ss", 'm') && command.has("ss", 'e') && !command.has("ss", 'l'));
        let ethtool =
            |line| Command::of(line).expect("a command").ethtool_device().map(str::to_owned);
        assert_eq!(ethtool("# ethtool -S eth0 | grep drop").as_deref(), Some("eth0"));
        assert_eq!(ethtool("$ ethtool -S $i"), None, "a variable is no device");
    }
}
