//! Commands that run on another host, in a container or in another network, and marks of tools that ask many hosts:
//! what follows is of the one that they name.
//!
//! A container and a network namespace have sockets, counters and settings of their own, so each counts as a host.

/// A command that runs elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elsewhere<'a> {
    /// The host, container or namespace.
    pub(super) host: String,
    /// What runs there; nothing or a shell where lines go on there.
    pub(super) command: &'a str,
}

impl<'a> Elsewhere<'a> {
    /// `ssh -p 22 ada@web-2 ss -tin`, `kubectl exec -it web-0 -- ss -tin`, `ip netns exec blue ss -tin`.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let mut rest = text;
        let mut next = || {
            let (word, behind) = word(rest)?;
            rest = behind;
            Some(word)
        };
        let mut first = next()?;
        while first == "sudo" {
            first = next()?;
        }
        let own = Tool::of(first, &mut next)?;
        let mut host = None;
        while host.is_none() {
            let word = next()?;
            match word.strip_prefix('-') {
                Some("-") => {}
                Some(option) if own.has_value(option) => drop(next()?),
                Some(_) => {}
                None => host = own.host(word),
            }
        }
        let host = host?;
        // Options of kubectl may stand behind the pod, up to two dashes.
        if matches!(own, Tool::Kubectl)
            && let Some((_, behind)) = rest.split_once(" -- ")
        {
            rest = behind;
        }
        Some(Self { host, command: rest.trim() })
    }

    /// It opens a shell there, whose prompts may not name it.
    pub(super) fn is_shell(&self) -> bool {
        let first = self.command.split_whitespace().next().unwrap_or("sh");
        let shells = ["sh", "bash", "ash", "zsh", "su"];
        shells.contains(&first.rsplit('/').next().unwrap_or(first))
            && !self.command.contains(" -c")
            && !self.command.contains(" -lc")
    }
}

/// What runs something elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Ssh,
    Kubectl,
    Container,
    Namespace,
}

impl Tool {
    fn of<'a>(first: &str, next: &mut impl FnMut() -> Option<&'a str>) -> Option<Self> {
        match first {
            "ssh" => Some(Self::Ssh),
            "kubectl" | "oc" | "k" => loop {
                let word = next()?;
                if word == "exec" {
                    return Some(Self::Kubectl);
                }
                // `kubectl -n shop exec`, and no other command.
                if matches!(word, "-n" | "--namespace" | "--context" | "--kubeconfig") {
                    next()?;
                } else if !word.starts_with('-') {
                    return None;
                }
            },
            "docker" | "podman" | "nerdctl" | "lxc" => {
                (next()? == "exec").then_some(Self::Container)
            }
            "ip" => (next()? == "netns" && next()? == "exec").then_some(Self::Namespace),
            _ => None,
        }
    }

    /// Whether an option takes the next word (ssh(1), and what the others print as their help).
    fn has_value(self, option: &str) -> bool {
        match self {
            Self::Ssh => {
                let with_value = "bcDEFIiJLlmopRSWw";
                option.len() == 1 && with_value.contains(option)
            }
            Self::Kubectl => ["n", "c", "-namespace", "-container", "-context"].contains(&option),
            Self::Container => {
                ["u", "w", "e", "-user", "-workdir", "-env", "-env-file"].contains(&option)
            }
            Self::Namespace => false,
        }
    }

    fn host(self, word: &str) -> Option<String> {
        let word = word.trim_matches(['\'', '"']);
        match self {
            Self::Ssh => name_of(word.rsplit('@').next()?),
            Self::Kubectl => name_of(word.rsplit('/').next()?),
            Self::Container | Self::Namespace => name_of(word),
        }
    }
}

/// The first word, and what is behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The name or address that a word begins with.
pub(super) fn name_of(word: &str) -> Option<String> {
    let address = word.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    if address.parse::<core::net::Ipv4Addr>().is_ok() {
        return Some(address.to_owned());
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name = word.split(|c| !is_of_name(c)).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The host of a line that tools print above what one of many hosts said: `web-1 | CHANGED | rc=0 >>` of Ansible,
/// `[3] 10:22:01 [SUCCESS] web-1` of pssh.
pub(super) fn headed(text: &str) -> Option<String> {
    if let Some((name, rest)) = text.split_once(" | ")
        && ["CHANGED", "SUCCESS", "FAILED"].iter().any(|word| rest.starts_with(word))
        && rest.trim_end().ends_with(">>")
    {
        return name_of(name.trim()).filter(|_| !name.trim().contains(' '));
    }
    let (number, rest) = text.strip_prefix('[')?.split_once("] ")?;
    let (_, name) = rest.split_once(" [SUCCESS] ").or_else(|| rest.split_once(" [FAILURE] "))?;
    number.parse::<u32>().ok().and_then(|_| name_of(name.split_whitespace().next()?))
}

/// A text whose every line begins with its host (`web-1: ESTAB 0 0 ..`), as pdsh and clush print what many hosts
/// said: the hosts, and what each said, its lines in their places. Ours: a hundred hosts, and two lines of each.
pub(super) fn prefixed(text: &str) -> Option<Vec<(String, String)>> {
    let mut all: Vec<(&str, String, usize)> = Vec::new();
    let mut lines: Vec<u32> = Vec::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let (name, said) =
            line.split_once(": ").or_else(|| Some((line.trim_end().strip_suffix(':')?, "\n")))?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_host = name.bytes().any(|byte| byte.is_ascii_alphabetic() || byte == b'.');
        if !is_host || !name.bytes().all(plain) || OUTPUTS.contains(&name) {
            return None;
        }
        let at = all.iter().position(|(known, ..)| *known == name).or_else(|| {
            (all.len() < 100).then(|| {
                all.push((name, String::new(), 0));
                lines.push(0);
                all.len() - 1
            })
        })?;
        let (_, own, next) = &mut all[at];
        own.extend(core::iter::repeat_n('\n', number - *next));
        own.push_str(said);
        *next = number + 1;
        lines[at] += 1;
    }
    let is_several = all.len() > 1 && lines.iter().all(|lines| *lines > 1);
    is_several
        .then(|| all.into_iter().filter_map(|(name, own, _)| Some((name_of(name)?, own))).collect())
}

/// What begins lines of output with a colon behind it, and is no host (`/proc/net/snmp`, `netstat`, `sockstat`).
const OUTPUTS: [&str; 18] = [
    "Ip", "Icmp", "IcmpMsg", "Tcp", "Udp", "UdpLite", "TcpExt", "IpExt", "MPTcpExt", "sockets",
    "TCP", "UDP", "UDPLITE", "RAW", "FRAG", "TCP6", "Mem", "Swap",
];

/// The shell that was opened elsewhere has ended.
pub(super) fn leaves(text: &str) -> bool {
    let command = text.rsplit(['$', '#', '%', '>']).next().unwrap_or(text).trim();
    matches!(command, "exit" | "logout")
        || (text.starts_with("Connection to ") && text.trim_end().ends_with(" closed."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_elsewhere_names_where() {
        for (text, told) in [
            ("ssh -p 22 ada@web-2.example ss -tin", Some(("web-2", "ss -tin"))),
            ("sudo ssh web-2", Some(("web-2", ""))),
            (
                "kubectl exec -it web-7d9c6-x2 -n shop -c app -- ss -tin",
                Some(("web-7d9c6-x2", "ss -tin")),
            ),
            ("kubectl -n shop exec pod/web-0 -- nstat -az", Some(("web-0", "nstat -az"))),
            ("kubectl exec web-0 -- sh", Some(("web-0", "sh"))),
            ("docker exec -u root web ss -tin", Some(("web", "ss -tin"))),
            ("ip netns exec blue tc -s qdisc", Some(("blue", "tc -s qdisc"))),
            ("kubectl get pods", None),
            ("docker run web ss -tin", None),
            ("ip netns list", None),
            ("ip route", None),
            ("ss -tin", None),
            ("ssh -p", None),
        ] {
            let found = Elsewhere::of(text);
            let found = found.as_ref().map(|it| (it.host.as_str(), it.command));
            assert_eq!(found, told, "{text}");
        }
    }

    #[test]
    fn a_shell_is_one_unless_it_is_given_a_command() {
        let is_shell = |text| Elsewhere::of(text).is_some_and(|it| it.is_shell());
        assert!(is_shell("ssh web-2") && is_shell("docker exec -it web /bin/bash"));
        assert!(!is_shell("docker exec web sh -c 'ss -tin'") && !is_shell("ssh web-2 uptime"));
    }

    #[test]
    fn lines_that_begin_with_their_hosts_are_of_them() {
        let text = "a: one\nb: 2: two\n\na: three\nb:\n";
        let told = prefixed(text).expect("of two hosts");
        assert_eq!(told[0], ("a".to_owned(), "one\n\n\nthree\n".to_owned()));
        assert_eq!(told[1], ("b".to_owned(), "\n2: two\n\n\n\n".to_owned()));
        for other in [
            "a: one\na: two\n",
            "a: one\nb: two\n",
            "Tcp: A B\nTcp: 1 2\nUdp: A\nUdp: 1\n",
            "a: one\nb: two\na: three\nfour\nb: five\n",
            "",
        ] {
            assert_eq!(prefixed(other), None, "{other}");
        }
    }

    #[test]
    fn tools_that_ask_many_hosts_name_each() {
        let told = |text| headed(text);
        assert_eq!(told("web-1.example | CHANGED | rc=0 >>").as_deref(), Some("web-1"));
        assert_eq!(told("[2] 10:22:01 [SUCCESS] web-2").as_deref(), Some("web-2"));
        for other in ["a b | SUCCESS | rc=0 >>", "web-1 | UP |", "[2] eth0 is up", "ss | head"] {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
