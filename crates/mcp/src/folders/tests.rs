use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::CWD;
use tempfile::TempDir;

use super::*;

/// A folder `may` that may be read, with a file and a folder in it, beside a secret.
fn folder() -> (TempDir, Folders) {
    let all = TempDir::new().expect("room");
    let at = |name: &str| all.path().join(name);
    fs::create_dir_all(at("may/deep")).expect("folders");
    fs::write(at("may/a.pcap"), "a").expect("a file");
    fs::write(at("may/deep/b.pcap"), "b").expect("a file");
    fs::write(at("secret"), "secret").expect("a file");
    let folders = Folders::open(&[at("may")]).expect("a folder");
    (all, folders)
}

fn read(folders: &Folders, asked: &str) -> Result<String, String> {
    let opened = folders.file(asked).map_err(|why| why.to_string())?;
    fs::read_to_string(opened.path()).map_err(|error| error.to_string())
}

#[test]
fn files_below_are_read_from_the_folder_on_and_from_the_root_on() {
    let (all, folders) = folder();
    let whole = all.path().join("may/deep/b.pcap").display().to_string();
    for (asked, what) in [
        ("a.pcap", "a"),
        ("./a.pcap", "a"),
        ("deep/b.pcap", "b"),
        ("deep//./b.pcap", "b"),
        (&whole, "b"),
    ] {
        assert_eq!(read(&folders, asked).as_deref(), Ok(what), "{asked}");
    }
}

#[test]
fn what_is_outside_is_refused_whether_it_is_there_or_not() {
    let (all, folders) = folder();
    let secret = all.path().join("secret").display().to_string();
    let missing = all.path().join("missing").display().to_string();
    let beside = format!("{}x/a.pcap", all.path().join("may").display());
    for asked in [&*secret, &*missing, &*beside, "/etc/passwd", "/proc/self/environ"] {
        let why = read(&folders, asked).expect_err(asked);
        assert!(why.contains("is not below a folder that may be read"), "{why}");
    }
}

#[test]
fn two_dots_are_refused_even_where_they_stay_inside() {
    let (all, folders) = folder();
    let inside = format!("{}/may/deep/../a.pcap", all.path().display());
    for asked in ["../secret", "deep/../../secret", "deep/../a.pcap", &inside] {
        let why = read(&folders, asked).expect_err(asked);
        assert!(why.contains("a path with `..` is refused"), "{why}");
    }
}

#[test]
fn links_are_followed_inside_and_refused_where_they_lead_out() {
    let (all, folders) = folder();
    let at = |name: &str| all.path().join("may").join(name);
    symlink("deep/b.pcap", at("inside")).expect("a link");
    symlink("../secret", at("out")).expect("a link");
    symlink(all.path().join("secret"), at("out-from-the-root")).expect("a link");
    symlink("..", at("up")).expect("a link");
    symlink("/proc/self/root", at("magic")).expect("a link");
    symlink("round", at("round")).expect("a link");
    assert_eq!(read(&folders, "inside").as_deref(), Ok("b"));
    for asked in ["out", "out-from-the-root", "up/secret", "magic/etc/passwd", "round"] {
        let why = read(&folders, asked).expect_err(asked);
        assert!(why.contains("leads out of its folder by a symbolic link"), "{asked}: {why}");
    }
}

#[test]
fn without_the_kernel_s_rule_no_link_is_followed_and_files_are_read() {
    let (all, folders) = folder();
    symlink("a.pcap", all.path().join("may/link")).expect("a link");
    symlink("deep", all.path().join("may/way")).expect("a link");
    let step = |asked: &str| folders.0[0].step_by_step(Path::new(asked));
    assert!(step("a.pcap").is_ok() && step("deep/b.pcap").is_ok());
    assert_eq!(step("link").expect_err("a link"), Errno::LOOP);
    assert!(matches!(step("way/b.pcap"), Err(Errno::LOOP | Errno::NOTDIR)));
}

#[test]
fn a_link_that_is_swapped_meanwhile_helps_nobody() {
    let (all, folders) = folder();
    let at = |name: &str| all.path().join(name);
    fs::create_dir(at("elsewhere")).expect("a folder");
    fs::write(at("elsewhere/b.pcap"), "secret").expect("a file");
    symlink(at("elsewhere"), at("may/link")).expect("a link");
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, at("may/deep"), CWD, at("may/link"), flags)
                    .expect("swapped");
            }
        });
        let (mut seen, mut others) = ([0, 0], Vec::new());
        // As often as it takes until both were met.
        while others.is_empty() && (seen.contains(&0) || seen[0] + seen[1] < 2000) {
            match read(&folders, "deep/b.pcap") {
                Ok(text) if text == "b" => seen[0] += 1,
                Ok(text) => others.push(text),
                Err(_) => seen[1] += 1,
            }
            thread::yield_now();
        }
        ended.store(true, Ordering::Relaxed);
        assert!(others.is_empty(), "{others:?}");
    });
}

#[test]
fn what_is_no_file_is_refused_and_nothing_waits_for_a_pipe() {
    let (all, folders) = folder();
    rustix::fs::mkfifoat(CWD, all.path().join("may/pipe"), Mode::RUSR | Mode::WUSR)
        .expect("a pipe");
    for (asked, what) in [("pipe", "is a pipe"), ("deep", "is a folder"), (".", "is a folder")] {
        let why = read(&folders, asked).expect_err(asked);
        assert!(why.contains(what), "{why}");
    }
    for asked in ["", "a\0b", &"x".repeat(5000)] {
        assert!(matches!(folders.file(asked), Err(NotOpened::NoPath)));
    }
    let why = read(&folders, "none\u{1b}[2J\n.pcap").expect_err("missing");
    assert!(why.contains("there is no file none\\u{1b}[2J\\n.pcap"), "{why}");
}

#[test]
fn the_second_folder_has_what_the_first_lacks() {
    let (all, _) = folder();
    fs::create_dir(all.path().join("also")).expect("a folder");
    fs::write(all.path().join("also/c.pcap"), "c").expect("a file");
    let named = ["may", "also"].map(|name| all.path().join(name));
    let folders = Folders::open(&named).expect("folders");
    assert_eq!(read(&folders, "c.pcap").as_deref(), Ok("c"));
    assert_eq!(read(&folders, "a.pcap").as_deref(), Ok("a"));
    let file = Folders::open(&[all.path().join("secret")]).expect_err("a file");
    assert_eq!(file.0, all.path().join("secret"));
}
