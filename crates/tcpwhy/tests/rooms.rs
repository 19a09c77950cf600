//! Rooms import each other one way only, so that each can be read by itself.
//!
//! A room is one entry of a folder: a file, or a folder with all that is in it. This holds for each folder of each
//! crate. What `mod.rs` itself defines is common ground. Tests may import any room.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Names = Vec<String>;
type Rooms = BTreeMap<String, BTreeSet<String>>;

/// The modules of a crate, by their names from its root, and what each imports.
#[derive(Default)]
struct House {
    code: BTreeMap<Names, String>,
    imports: BTreeMap<Names, BTreeSet<Names>>,
}

impl House {
    fn of(sources: &Path) -> House {
        let mut house = House::default();
        for path in files(sources) {
            let inside = path.strip_prefix(sources).expect("inside").with_extension("");
            let mut names: Names =
                inside.iter().map(|name| name.to_string_lossy().into_owned()).collect();
            let last = names.last().expect("a name").clone();
            if last == "mod" || names == ["lib"] {
                names.pop();
            }
            let is_apart = names == ["main"] || names.first().is_some_and(|name| name == "bin");
            if !is_apart && !names.iter().any(|name| name == "tests") {
                house.code.insert(names, shipped(&fs::read_to_string(&path).expect("code")));
            }
        }
        house.imports = house.code.keys().map(|at| (at.clone(), house.imports_of(at))).collect();
        house
    }

    fn imports_of(&self, at: &Names) -> BTreeSet<Names> {
        let code = &self.code[at];
        let mut paths: Vec<String> = uses(code).into_iter().flat_map(|tree| paths(&tree)).collect();
        paths.extend(inline(code));
        paths.iter().filter_map(|path| self.module(at, path)).collect()
    }

    /// The module that `path` leads to from `at`.
    fn module(&self, at: &Names, path: &str) -> Option<Names> {
        let mut steps = path.split("::").map(str::trim).peekable();
        let mut to = if path.starts_with("crate") { Names::new() } else { at.clone() };
        let is_own = |name: &str| self.code.contains_key(&child(at, name));
        match *steps.peek()? {
            "crate" | "self" => drop(steps.next()),
            "super" => {
                while steps.next_if_eq(&"super").is_some() {
                    to.pop();
                }
            }
            name if is_own(name) => {}
            _ => return None,
        }
        for name in steps {
            if !self.code.contains_key(&child(&to, name)) {
                break;
            }
            to.push(name.to_owned());
        }
        Some(to)
    }

    /// What the rooms of a folder import of each other.
    fn rooms(&self, folder: &[String]) -> Rooms {
        let room =
            |module: &Names| module.strip_prefix(folder).and_then(|inside| inside.first()).cloned();
        let mut rooms = Rooms::new();
        for (module, imports) in &self.imports {
            let Some(from) = room(module) else { continue };
            let to = imports.iter().filter_map(room).filter(|to| *to != from);
            rooms.entry(from.clone()).or_default().extend(to);
        }
        rooms
    }

    fn folders(&self) -> BTreeSet<Names> {
        self.code.keys().flat_map(|at| (0..at.len()).map(|upto| at[..upto].to_vec())).collect()
    }
}

fn child(of: &[String], name: &str) -> Names {
    of.iter().cloned().chain([name.to_owned()]).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}

/// Code without its remarks and without the tests below it.
fn shipped(code: &str) -> String {
    let without_remarks = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    let lines: Vec<String> = code.lines().map(without_remarks).collect();
    let tests = lines.windows(2).position(|two| {
        two[0].trim() == "#[cfg(test)]" && two[1].starts_with("mod ") && two[1].ends_with('{')
    });
    lines[..tests.unwrap_or(lines.len())].join("\n")
}

/// The trees behind `use`, on one line each.
fn uses(code: &str) -> Vec<String> {
    let mut trees = Vec::new();
    let mut open: Option<String> = None;
    for line in code.lines().map(str::trim) {
        let begins = || {
            let public = line.strip_prefix("pub").map_or(line, |rest| {
                rest.strip_prefix('(')
                    .and_then(|rest| rest.split_once(')'))
                    .map_or(rest, |two| two.1)
            });
            public.trim_start().strip_prefix("use ").map(str::to_owned)
        };
        let Some(tree) = open.take().map(|tree| tree + line).or_else(begins) else { continue };
        match tree.split_once(';') {
            Some((tree, _)) => trees.push(tree.to_owned()),
            None => open = Some(tree),
        }
    }
    trees
}

/// The paths of a tree: `a::{b, c::{d}}` is `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let Some((head, body)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let body = body.trim_end().strip_suffix('}').expect("a bracket closes");
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for letter in body.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("one is open").push(letter);
    }
    let inside = parts.iter().filter(|part| !part.trim().is_empty());
    inside.flat_map(|part| paths(part)).map(|path| format!("{}{path}", head.trim())).collect()
}

/// Paths that stand in the code itself: `super::room::thing()`.
fn inline(code: &str) -> Vec<String> {
    let is_of_path = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':');
    let words = code.split(|letter| !is_of_path(letter));
    words.filter(|word| word.contains("::")).map(str::to_owned).collect()
}

/// A way of imports from `room` back to `to`.
fn way(rooms: &Rooms, room: &str, to: &str, seen: &mut BTreeSet<String>) -> Option<Names> {
    for next in rooms.get(room).into_iter().flatten() {
        if next == to {
            return Some(vec![room.to_owned(), next.clone()]);
        }
        if seen.insert(next.clone())
            && let Some(mut rest) = way(rooms, next, to, seen)
        {
            rest.insert(0, room.to_owned());
            return Some(rest);
        }
    }
    None
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn no_room_of_any_crate_imports_itself_by_way_of_others() {
    let crates = fs::read_dir(repository().join("crates")).expect("crates");
    let mut sources: Vec<PathBuf> =
        crates.map(|entry| entry.expect("an entry").path().join("src")).collect();
    sources.push(repository().join("truth/src"));
    let (mut circles, mut folders) = (Vec::new(), 0);
    for source in sources.iter().filter(|source| source.is_dir()) {
        let house = House::of(source);
        for folder in house.folders() {
            folders += 1;
            let rooms = house.rooms(&folder);
            let circle =
                rooms.keys().find_map(|room| way(&rooms, room, room, &mut BTreeSet::new()));
            circles.extend(circle.map(|way| {
                let place = source.join(folder.join("/"));
                format!("{}: {}", place.display(), way.join(" -> "))
            }));
        }
    }
    assert!(folders > 40, "only {folders} folders were found");
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

#[test]
fn facts_know_neither_rules_nor_the_account() {
    let house = House::of(&repository().join("crates/tcpwhy/src"));
    let rooms = house.rooms(&["limits".to_owned()]);
    let sender = &rooms["sender"];
    for above in ["rule", "account", "walk"] {
        assert!(!sender.contains(above), "sender imports {above}");
    }
    assert!(!rooms["rule"].contains("sender") && !rooms["rule"].contains("account"));
}

#[test]
fn what_code_imports_is_read() {
    let code =
        "pub(crate) use a::{b, c::{d, e as f}};\nuse super::g;\nlet h = crate::i::j(); // use k;";
    let code = shipped(code);
    let read: Names = uses(&code).iter().flat_map(|tree| paths(tree)).collect();
    assert_eq!(read, ["a::b", "a::c::d", "a::c::e", "super::g"]);
    assert!(inline(&code).contains(&"crate::i::j".to_owned()));
}

/// The code of `limits`, by its place there: `sender/trips`.
fn limits() -> BTreeMap<String, String> {
    let house = House::of(&repository().join("crates/tcpwhy/src"));
    let inside = house.code.into_iter().filter_map(|(at, code)| {
        let place = at.strip_prefix(&["limits".to_owned()])?.join("/");
        Some((place, code))
    });
    inside.collect()
}

/// Whether `line` is a constant that is made of numbers.
fn is_number(line: &str) -> bool {
    let Some((_, rest)) = line.trim().split_once("const ") else { return false };
    let Some((name, rest)) = rest.split_once(": ") else { return false };
    let Some((kind, value)) = rest.split_once(" = ") else { return false };
    let of_numbers = |word: &str| {
        matches!(word, "" | "core" | "ops" | "RangeInclusive" | "Range" | "Share")
            || word.strip_prefix(['i', 'u', 'f']).is_some_and(|bits| {
                bits == "size" || bits.chars().all(|digit| digit.is_ascii_digit())
            })
    };
    name.chars().all(|letter| letter.is_ascii_uppercase() || matches!(letter, '_' | '0'..='9'))
        && kind.split(|letter: char| !letter.is_alphanumeric()).all(of_numbers)
        && value.contains(|letter: char| letter.is_ascii_digit())
}

#[test]
fn numbers_that_judge_stand_in_one_place() {
    let limits = limits();
    let elsewhere: Vec<String> = limits
        .iter()
        .filter(|(place, _)| !place.starts_with("sense"))
        .flat_map(|(place, code)| {
            let numbers = code.lines().filter(|line| is_number(line));
            numbers.map(move |line| format!("{place}: {}", line.trim()))
        })
        .collect();
    assert!(elsewhere.is_empty(), "these belong to sense/:\n{}", elsewhere.join("\n"));
    let there: usize = limits
        .iter()
        .filter(|(place, _)| place.starts_with("sense"))
        .map(|(_, code)| code.lines().filter(|line| is_number(line)).count())
        .sum();
    assert!(there > 100, "only {there} were found in sense/");
}

/// Whether `code` holds `word` as a word of its own.
fn has_word(code: &str, word: &str) -> bool {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|each| each == word)
}

#[test]
fn each_threshold_has_a_source_and_names_who_reads_it() {
    let limits = limits();
    let mut wrong = Vec::new();
    for path in files(&repository().join("crates/tcpwhy/src/limits/sense")) {
        let text = fs::read_to_string(&path).expect("code");
        let mut remark = String::new();
        for line in text.lines() {
            if let Some(more) = line.strip_prefix("/// ") {
                remark = format!("{remark} {more}");
                continue;
            }
            let said = core::mem::take(&mut remark);
            let item = ["const ", "fn "]
                .iter()
                .find_map(|kind| line.strip_prefix("pub(crate) ")?.strip_prefix(kind));
            let Some(item) = item else { continue };
            let end = item.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let name = &item[..end.expect("more follows a name")];
            let users: Vec<String> = limits
                .iter()
                .filter(|(place, code)| !place.starts_with("sense") && has_word(code, name))
                .map(|(place, _)| format!("`{place}`"))
                .collect();
            let (what, readers) = said.rsplit_once(" For ").unwrap_or((&said, ""));
            let sources = ["Ours", "RFC", "limits-method", "Linux", "Before any", "Nanoseconds"];
            if readers != format!("{}.", users.join(", ")) {
                wrong.push(format!("{name} is read by {}", users.join(", ")));
            }
            if !line.contains(" fn ") && !sources.iter().any(|source| what.contains(source)) {
                wrong.push(format!("{name} has no source"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_of_the_judge_can_be_read_at_once() {
    let long: Vec<String> = files(&repository().join("crates/tcpwhy/src/limits"))
        .into_iter()
        .filter_map(|path| {
            let lines = fs::read_to_string(&path).expect("code").lines().count();
            (lines > 400).then(|| format!("{}: {lines} lines", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "over 400 lines:\n{}", long.join("\n"));
}
