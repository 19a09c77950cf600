//! The entries of terms and settings: plain text files, one entry after the other.
//!
//! ```text
//! == net.ipv4.tcp_sack
//! also: other names, by commas
//! title: One line.
//! default: value, unit, and since when
//! Paragraph.
//! try: a command that shows it
//! set: a command that sets it
//! see: other pages
//! source: where to check it
//! ```

use core::fmt::Write as _;

use super::near::plain;
use tcpwhy_words::doc::Page;

use crate::find::doc as findings;
use tcpwhy_host::doc as checks;

/// What an entry is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A word that the text uses.
    Term,
    /// A kernel setting.
    Sysctl,
    /// A word of ip-route(8).
    Route,
    /// An option of setsockopt(2).
    Socket,
}

impl Kind {
    /// In the order of the list.
    pub const ALL: [Self; 4] = [Self::Term, Self::Sysctl, Self::Route, Self::Socket];

    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::Term => "Terms",
            Self::Sysctl => "Kernel settings (sysctl)",
            Self::Route => "Route metrics (ip route)",
            Self::Socket => "Socket options",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Term => include_str!("terms.txt"),
            Self::Sysctl => include_str!("sysctls.txt"),
            Self::Route => include_str!("routes.txt"),
            Self::Socket => include_str!("sockets.txt"),
        }
    }
}

/// An entry as it is written.
#[derive(Debug, Default)]
struct Entry {
    name: &'static str,
    also: Vec<&'static str>,
    title: &'static str,
    default: &'static str,
    body: String,
    tries: Vec<&'static str>,
    sets: Vec<&'static str>,
    see: &'static str,
    source: &'static str,
}

/// The pages of `kind`, in the order of its file.
pub(super) fn pages(kind: Kind) -> Vec<Page> {
    entries(kind).iter().map(|entry| page(kind, entry)).collect()
}

/// The pages of entries that are called `word`, however it is written.
pub(super) fn named(word: &str) -> Vec<Page> {
    let wanted = [plain(word), plain(&general(word))];
    let is_it = |name: &str| wanted.contains(&plain(name));
    let called = |entry: &Entry| {
        let last = if entry.name.starts_with("net.") { tail(entry.name) } else { entry.name };
        is_it(entry.name) || is_it(last) || entry.also.iter().any(|name| is_it(name))
    };
    let of_kind = |kind: Kind| {
        let mut entries = entries(kind);
        entries.retain(|entry| called(entry));
        entries.into_iter().map(move |entry| page(kind, &entry))
    };
    Kind::ALL.into_iter().flat_map(of_kind).collect()
}

/// All names of entries.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let entries = Kind::ALL.into_iter().flat_map(entries);
    entries.flat_map(|entry| [entry.name].into_iter().chain(entry.also))
}

/// The commands that pages offer to try, each once.
pub fn experiments() -> Vec<&'static str> {
    let mut all: Vec<&str> =
        Kind::ALL.into_iter().flat_map(entries).flat_map(|entry| entry.tries).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A setting of one interface as the setting of any: `net.ipv4.conf.eth0.rp_filter` has the page of
/// `net.ipv4.conf.*.rp_filter`. A path below `/proc/sys` is the setting.
pub(super) fn general(key: &str) -> String {
    let dotted;
    let key = match key.strip_prefix("/proc/sys/") {
        Some(path) => {
            dotted = path.replace('/', ".");
            &dotted
        }
        None => key,
    };
    let parts: Vec<&str> = key.split('.').collect();
    match parts[..] {
        ["net", family, "conf", _, .., last] => format!("net.{family}.conf.*.{last}"),
        _ => key.to_owned(),
    }
}

/// What a setting is called without its folder.
fn tail(name: &'static str) -> &'static str {
    name.rsplit('.').next().unwrap_or(name)
}

fn entries(kind: Kind) -> Vec<Entry> {
    let blocks = kind.file().split("== ").filter(|block| !block.trim().is_empty());
    blocks.map(parse).collect()
}

fn parse(block: &'static str) -> Entry {
    let mut lines = block.lines();
    let mut entry = Entry { name: lines.next().unwrap_or_default().trim(), ..Entry::default() };
    for line in lines {
        let (field, value) = line.split_once(": ").unwrap_or_default();
        match field {
            "also" => entry.also = value.split(", ").collect(),
            "title" => entry.title = value,
            "default" => entry.default = value,
            "try" => entry.tries.push(value),
            "set" => entry.sets.push(value),
            "see" => entry.see = value,
            "source" => entry.source = value,
            _ => {
                entry.body.push_str(line);
                entry.body.push('\n');
            }
        }
    }
    entry
}

fn page(kind: Kind, entry: &Entry) -> Page {
    let mut text = String::new();
    let mut section = |name: &str, words: &str| {
        if !words.trim().is_empty() {
            let _ = writeln!(text, "# {name}\n{}", words.trim_end());
        }
    };
    section("What it is", &entry.body);
    section("Default", entry.default);
    // Some metrics of routes have names that everything speaks of.
    let is_common = entry.name == "cwnd" || entry.name.contains(' ');
    if kind != Kind::Term && !is_common {
        section("Folklore", &folklore(tail(entry.name)));
        section("Looked at by", &lookers(tail(entry.name)));
    }
    section("Set it", &commands(&entry.sets));
    section("Try it", &commands(&entry.tries));
    section("See", entry.see);
    section("Sources", entry.source);
    Page { code: entry.name, title: entry.title, text }
}

/// Commands, each on a line of its own that is never broken.
fn commands(all: &[&str]) -> String {
    all.iter().fold(String::new(), |text, command| text + "  " + command + "\n")
}

/// The checks and the findings whose sources speak of `name`.
fn lookers(name: &str) -> String {
    let checks = checks::speaking_of(name);
    let findings = findings::speaking_of(name);
    let told = |what: &str, codes: Vec<&str>| {
        (!codes.is_empty()).then(|| format!("{what} {}", codes.join(", ")))
    };
    let both = [told("checks", checks), told("findings", findings)];
    both.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Most rows of folklore on a page, and sentences of each. Ours: the rest is in docs/folklore.md.
const ROWS: usize = 2;
const SENTENCES: usize = 2;

/// What guides say of `name` and what holds, from the rows of `docs/folklore.md` whose claim names it.
fn folklore(name: &str) -> String {
    let rows = include_str!("../../carried/folklore.md").lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?, cells.next()?))
    });
    let of_it = rows.filter(|(claim, _)| tcpwhy_words::doc::speaks_of(claim, name)).take(ROWS);
    let told = of_it.map(|(claim, today)| {
        let sentences: Vec<&str> = today.split_inclusive(". ").take(SENTENCES).collect();
        // A bar inside a cell of a table is written with a stroke before it.
        format!("- \"{claim}\" {}", sentences.concat()).replace("\\|", "|")
    });
    told.collect::<Vec<_>>().join("\n")
}
