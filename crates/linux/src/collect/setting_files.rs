//! Which file sets which key today: those of sysctl.d(5), and the profile of tuned(8).
//!
//! Of files with the same name only that of the first folder counts, so one in `/etc` masks one in `/usr`;
//! then all are read in the order of their names. A key that is written out wins over a pattern, wherever
//! that is. tuned sets its own first, and lets the files win (`reapply_sysctl`, its default).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tcpwhy::host::snapshot::{SetIn, Source};

use super::blind::{Blind, read, shown};

/// Where keys are set, in the order in which that is applied; `keys` are those that exist.
pub(super) fn set_in(keys: &[&str], blind: &mut Blind) -> BTreeMap<String, Vec<SetIn>> {
    of(Path::new("/"), keys, blind)
}

fn of(root: &Path, keys: &[&str], blind: &mut Blind) -> BTreeMap<String, Vec<SetIn>> {
    let mut sets = tuned(root);
    for path in files(root, blind) {
        let name =
            shown(format!("/{}", path.strip_prefix(root).unwrap_or(&path).display()).as_bytes());
        match read(&path) {
            Ok(text) => sets.extend(lines(&text).map(|line| (name.clone(), line))),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => blind.refused(Source::SettingFiles, Some(&name), &error),
        }
    }
    let (exact, patterns): (Vec<_>, Vec<_>) =
        sets.into_iter().partition(|(_, line)| !line.key.contains(['*', '?', '[']));
    let spared: BTreeSet<String> = exact
        .iter()
        .filter(|(_, line)| line.value.is_none())
        .map(|(_, line)| line.key.clone())
        .collect();
    let mut found = BTreeMap::<String, Vec<SetIn>>::new();
    let mut add = |key: &str, file: &str, line: &Line| {
        let Some(value) = &line.value else { return };
        let set = SetIn { file: file.to_owned(), line: line.number, value: value.clone() };
        found.entry(key.to_owned()).or_default().push(set);
    };
    for (file, line) in &patterns {
        let own = |key: &&str| fits(&line.key, key) && !spared.contains(*key);
        for key in keys.iter().copied().filter(own) {
            add(key, file, line);
        }
    }
    for (file, line) in &exact {
        if line.key.starts_with("net.") || matches!(line.key.as_str(), "fs.file-max" | "fs.nr_open")
        {
            add(&line.key, file, line);
        }
    }
    found
}

/// The files in their order.
fn files(root: &Path, blind: &mut Blind) -> Vec<PathBuf> {
    let mut by_name = BTreeMap::new();
    for folder in FOLDERS {
        let entries = fs::read_dir(root.join(folder));
        if let Err(error) = &entries
            && error.kind() == ErrorKind::PermissionDenied
        {
            blind.refused(Source::SettingFiles, Some(&format!("/{folder}")), error);
        }
        for entry in entries.into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "conf") {
                by_name.entry(entry.file_name()).or_insert(path);
            }
        }
    }
    let mut files: Vec<PathBuf> = by_name.into_values().collect();
    // `sysctl --system` reads it last; where it is linked among the others, as Debian does, it is read there.
    let old = root.join("etc/sysctl.conf");
    let whole = |path: &Path| fs::canonicalize(path).ok();
    let is_among =
        whole(&old).is_some_and(|old| files.iter().any(|path| whole(path).as_ref() == Some(&old)));
    if !is_among && old.exists() {
        files.push(old);
    }
    files
}

/// A line that sets a key; without a value it spares it from patterns.
#[derive(Debug, PartialEq)]
struct Line {
    number: u32,
    key: String,
    value: Option<String>,
}

/// The lines of a file that set something.
fn lines(text: &str) -> impl Iterator<Item = Line> + '_ {
    (1..).zip(text.lines()).filter_map(|(number, line)| {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return None;
        }
        // A failure of a line with `-` is no failure.
        let (own, spares) = line.strip_prefix('-').map_or((line, false), |own| (own, true));
        let (key, value) = match own.split_once('=') {
            Some((key, value)) => {
                (key, Some(value.split_whitespace().collect::<Vec<_>>().join(" ")))
            }
            None if spares => (own, None),
            None => return None,
        };
        Some(Line { number, key: dotted(key.trim()), value })
    })
}

/// A key with dots: where it is written with slashes, its dots belong to names.
fn dotted(key: &str) -> String {
    let turn = |letter| match letter {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    match key.find(['.', '/']).map(|at| key.as_bytes()[at]) {
        Some(b'/') => key.chars().map(turn).collect(),
        _ => key.to_owned(),
    }
}

/// A pattern of glob(7) without sets in brackets, which ends at no dot: `*` and `?`.
fn fits(pattern: &str, key: &str) -> bool {
    let (mut pattern_parts, mut key_parts) = (pattern.split('.'), key.split('.'));
    loop {
        match (pattern_parts.next(), key_parts.next()) {
            (None, None) => return true,
            (Some(pattern), Some(key)) if part_fits(pattern.as_bytes(), key.as_bytes()) => {}
            _ => return false,
        }
    }
}

/// With the place of the last star, at which more is taken when what follows it does not fit.
fn part_fits(pattern: &[u8], key: &[u8]) -> bool {
    let (mut at, mut taken, mut star) = (0, 0, None);
    while taken < key.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, taken));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == key[taken] => {
                at += 1;
                taken += 1;
            }
            _ => {
                let Some((star_at, begun)) = star else { return false };
                star = Some((star_at, begun + 1));
                at = star_at + 1;
                taken = begun + 1;
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// What the active profile of tuned(8) sets, those that it includes first.
fn tuned(root: &Path) -> Vec<(String, Line)> {
    let Ok(active) = read(&root.join("etc/tuned/active_profile")) else { return Vec::new() };
    let mut sets = Vec::new();
    for profile in active.split_ascii_whitespace() {
        profile_of(root, profile, 0, &mut sets);
    }
    sets
}

fn profile_of(root: &Path, profile: &str, depth: usize, sets: &mut Vec<(String, Line)>) {
    if depth > DEEPEST || profile.contains('/') {
        return;
    }
    let found = PROFILES.iter().find_map(|folder| {
        let path = format!("{folder}/{profile}/tuned.conf");
        Some((read(&root.join(&path)).ok()?, path))
    });
    let Some((text, path)) = found else { return };
    let mut section = "";
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim().trim_matches('"'));
        if section == "main" && key == "include" {
            for included in value.split(',') {
                profile_of(root, included.trim(), depth + 1, sets);
            }
        }
        // A value that tuned works out is not known here.
        if section == "sysctl" && !key.starts_with(['#', ';']) && !value.contains("${") {
            let value = Some(value.split_whitespace().collect::<Vec<_>>().join(" "));
            sets.push((format!("/{path}"), Line { number, key: dotted(key), value }));
        }
    }
}

const FOLDERS: [&str; 5] =
    ["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"];
const PROFILES: [&str; 4] =
    ["etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"];
/// Ours: profiles that include each other have no end.
const DEEPEST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("has one")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        root
    }

    fn told(root: &Path, keys: &[&str], key: &str) -> Vec<String> {
        let found = of(root, keys, &mut Blind::default());
        let sets = found.get(key).into_iter().flatten();
        sets.map(|set| format!("{}:{} {}", set.file, set.line, set.value)).collect()
    }

    #[test]
    fn files_are_applied_by_name_and_one_in_etc_masks_its_namesake() {
        let root = host(&[
            ("usr/lib/sysctl.d/50-a.conf", "net.core.rmem_max = 1\n"),
            ("usr/lib/sysctl.d/60-b.conf", "net.core.rmem_max = 2\n"),
            ("etc/sysctl.d/50-a.conf", "# ours\n\n net.core.rmem_max=\t3  4 \n"),
            ("etc/sysctl.d/ignored.txt", "net.core.rmem_max = 5\n"),
            ("etc/sysctl.conf", "net.core.rmem_max = 6\nkernel.panic = 1\n"),
        ]);
        assert_eq!(
            told(root.path(), &[], "net.core.rmem_max"),
            [
                "/etc/sysctl.d/50-a.conf:3 3 4",
                "/usr/lib/sysctl.d/60-b.conf:1 2",
                "/etc/sysctl.conf:1 6"
            ]
        );
        assert_eq!(told(root.path(), &[], "kernel.panic"), [""; 0]);
    }

    #[test]
    fn a_file_that_is_linked_among_the_others_is_read_once() {
        let root =
            host(&[("etc/sysctl.conf", "net.core.rmem_max = 6\n"), ("etc/sysctl.d/x.conf", "")]);
        let link = root.path().join("etc/sysctl.d/99-sysctl.conf");
        std::os::unix::fs::symlink("../sysctl.conf", link).expect("a link");
        assert_eq!(
            told(root.path(), &[], "net.core.rmem_max"),
            ["/etc/sysctl.d/99-sysctl.conf:1 6"]
        );
    }

    #[test]
    fn what_is_written_out_wins_over_patterns_and_may_be_spared() {
        let root = host(&[(
            "etc/sysctl.d/a.conf",
            "net.ipv4.conf.all.rp_filter = 1\n-net.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.lo.rp_filter\n",
        )]);
        let keys = [
            "net.ipv4.conf.all.rp_filter",
            "net.ipv4.conf.lo.rp_filter",
            "net.ipv4.conf.eth0/1.rp_filter",
        ];
        assert_eq!(
            told(root.path(), &keys, keys[0]),
            ["/etc/sysctl.d/a.conf:2 2", "/etc/sysctl.d/a.conf:1 1"]
        );
        assert_eq!(told(root.path(), &keys, keys[1]), [""; 0]);
        assert_eq!(told(root.path(), &keys, keys[2]), ["/etc/sysctl.d/a.conf:2 2"]);
    }

    #[test]
    fn slashes_leave_dots_to_names() {
        assert_eq!(dotted("net/ipv4/conf/eth0.100/rp_filter"), "net.ipv4.conf.eth0/100.rp_filter");
        assert_eq!(dotted("net.ipv4.conf.eth0/100.rp_filter"), "net.ipv4.conf.eth0/100.rp_filter");
        assert!(
            part_fits(b"e*h?", b"eeth0") && part_fits(b"*", b"") && !part_fits(b"e*h", b"eth0")
        );
    }

    #[test]
    fn tuned_comes_first_with_what_it_includes() {
        let root = host(&[
            ("etc/tuned/active_profile", "mine\n"),
            (
                "etc/tuned/mine/tuned.conf",
                "[main]\ninclude=base\n[sysctl]\nnet.core.rmem_max = \"2\"\n",
            ),
            (
                "usr/lib/tuned/base/tuned.conf",
                "[main]\ninclude=mine\n[sysctl]\nnet.core.rmem_max=1\nnet.core.wmem_max=${x}\n",
            ),
            ("etc/sysctl.d/a.conf", "net.core.rmem_max = 3\n"),
        ]);
        let sets = told(root.path(), &[], "net.core.rmem_max");
        assert_eq!(sets.last().map(String::as_str), Some("/etc/sysctl.d/a.conf:1 3"));
        assert!(
            sets.iter().rev().nth(1).is_some_and(|set| set.starts_with("/etc/tuned/mine")),
            "{sets:?}"
        );
        assert_eq!(told(root.path(), &[], "net.core.wmem_max"), [""; 0]);
    }
}
