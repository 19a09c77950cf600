//! The rooms of `limits` import each other one way only, so that each can be read by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Rooms = BTreeMap<String, BTreeSet<String>>;

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

/// The rooms that the code of each room imports; its tests may import any.
fn rooms() -> Rooms {
    let limits = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/limits");
    let mut rooms = Rooms::new();
    for path in files(&limits) {
        let inside = path.strip_prefix(&limits).expect("inside").to_owned();
        let first = inside.iter().next().expect("a name").to_string_lossy();
        let room = first.trim_end_matches(".rs").to_owned();
        let is_test = inside.iter().any(|part| part == "tests" || part == "tests.rs");
        if room == "mod" || is_test {
            continue;
        }
        let code = fs::read_to_string(&path).expect("code");
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let imports = rooms.entry(room.clone()).or_default();
        for line in code.lines().filter(|line| line.trim_start().starts_with("use ")) {
            // Of a room that is a file, `super` is `limits` itself.
            let from = if inside.iter().count() == 1 { "super::" } else { "crate::limits::" };
            for after in line.split("crate::limits::").skip(1).chain(line.split(from).skip(1)) {
                let name: String =
                    after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if name != room && name.starts_with(|c: char| c.is_lowercase()) {
                    imports.insert(name);
                }
            }
        }
    }
    rooms
}

/// A way of imports from `room` back to `to`.
fn way(rooms: &Rooms, room: &str, to: &str, seen: &mut BTreeSet<String>) -> Option<Vec<String>> {
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

#[test]
fn no_room_of_limits_imports_itself_by_way_of_others() {
    let rooms = rooms();
    assert!(rooms.len() > 8, "{rooms:?}");
    let circle = rooms.keys().find_map(|room| way(&rooms, room, room, &mut BTreeSet::new()));
    assert_eq!(circle, None);
}

#[test]
fn facts_know_neither_rules_nor_the_account() {
    let rooms = rooms();
    let sender = &rooms["sender"];
    for above in ["rule", "account", "walk"] {
        assert!(!sender.contains(above), "sender imports {above}");
    }
    assert!(!rooms["rule"].contains("sender") && !rooms["rule"].contains("account"));
}
