//! Where a snapshot comes from and what is made of it: saved and pasted ones, paths, the manual.

use std::fs;

use crate::common::path::apart;
use crate::common::{in_repository, run, run_with_stdin};
use crate::space::set;

#[test]
fn a_saved_snapshot_is_judged_as_the_host_was() {
    apart(|folder| {
        set("net.ipv4.tcp_sack", "0");
        let saved = folder.join("snap.json");
        let saved = saved.to_str().expect("UTF-8");
        let now = run(&["check", "--for", "0", "--save", saved, "--all"]);
        let later = run(&["check", saved, "--all"]);
        assert_eq!((now.status, &now.stdout), (Some(0), &later.stdout));
        assert_eq!(run(&["check", saved, "--fail-on", "warning"]).status, Some(1));
        let cut = &fs::read_to_string(saved).expect("a snapshot")[..500];
        let told = run_with_stdin(&["check", "-"], cut.as_bytes());
        assert_eq!((told.status, told.stdout.as_str()), (Some(3), ""));
        assert!(told.stderr.contains("standard input"), "{}", told.stderr);
    });
}

#[test]
fn pasted_output_is_judged_as_far_as_it_goes() {
    let pasted =
        b"$ sysctl net.ipv4.tcp_sack net.ipv4.tcp_moderate_rcvbuf\nnet.ipv4.tcp_sack = 1\n\
        net.ipv4.tcp_moderate_rcvbuf = 0\n";
    let told = run_with_stdin(&["check", "-"], pasted);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    assert!(told.stdout.contains("[AUTOTUNING_OFF]"), "{}", told.stdout);
    assert!(told.stdout.contains("could not be made"), "{}", told.stdout);
    let empty = run_with_stdin(&["check", "-"], br#"{"format":"tcpwhy-host/1","looks":[]}"#);
    assert_eq!((empty.status, &*empty.stdout), (Some(3), ""), "nothing was seen, nothing is said");
    assert_eq!(run(&["check", "--rate", "1gbit"]).status, Some(2), "the rate of nothing");
    let nothing = run_with_stdin(&["check", "-"], b"Dear all,\nit is slow again.\n");
    assert_eq!(nothing.status, Some(3));
}

#[test]
fn what_cannot_be_judged_is_named_for_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, b"\xd4\xc3\xb2\xa1\x02\0\x04\0").expect("room");
    let file = file.to_str().expect("UTF-8");
    for (arguments, says) in [
        (vec!["check", "/dev/zero"], "it is no text: byte 0 is zero"),
        (vec!["check", file], "it is a capture of packets"),
        (vec!["check", "."], "it is a directory"),
        (vec!["check", "--for", "0", "--netns", file], "is no network namespace: give"),
        (vec!["check", "--for", "0", "--netns", "/no/such"], "there is no file `/no/such`"),
    ] {
        let told = run(&arguments);
        assert_eq!((told.status, told.stdout.as_str()), (Some(3), ""), "{arguments:?}");
        assert!(told.stderr.contains(says), "{}", told.stderr);
        assert!(told.stderr.matches("os error").count() <= 1, "{}", told.stderr);
    }
}

#[test]
fn a_snapshot_is_saved_whole_or_not_at_all() {
    apart(|folder| {
        let saved = folder.join("snap.json");
        fs::write(&saved, "kept").expect("room");
        let path = saved.to_str().expect("UTF-8");
        let refused =
            run(&["check", "--for", "0", "--netns", "/no/such", "--save", path, "--force"]);
        assert_eq!(refused.status, Some(3));
        assert_eq!(fs::read_to_string(&saved).expect("a file"), "kept");
        let full = run(&["check", "--for", "0", "--save", "/dev/full"]);
        assert_eq!(full.status, Some(3), "{}", full.stderr);
        assert!(full.stderr.contains("cannot write the snapshot to /dev/full"), "{}", full.stderr);
        let unasked = run(&["check", "--for", "0", "--save", path]);
        assert_eq!(unasked.status, Some(3));
        assert!(unasked.stderr.contains("--force writes over it"), "{}", unasked.stderr);
        assert_eq!(fs::read_to_string(&saved).expect("a file"), "kept");
        assert_eq!(run(&["check", "--for", "0", "--save", path, "--force"]).status, Some(0));
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1, "nothing is left beside it");
        assert_eq!(run(&["check", path]).status, Some(0));
    });
}

#[test]
fn a_capture_s_remedies_name_what_a_snapshot_of_the_host_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let pasted = folder.path().join("routes.txt");
    fs::write(&pasted, "$ ip route\ndefault via 192.168.247.2 dev ens33\n").expect("a file");
    let capture = in_repository("testdata/articles/download-512k-rtt7ms.tcpdump.txt");
    let capture = capture.to_str().expect("UTF-8");
    let beside = |host: &str| {
        let snapshot = format!("{host}={}", pasted.display());
        run(&[capture, "--full", "--no-predict", "--host-snapshot", &snapshot])
    };
    let told = beside("server");
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    let command = "do: ip route add 192.168.247.130 via 192.168.247.2 dev ens33 initcwnd 44";
    assert!(told.stdout.contains(command), "{}", told.stdout);
    assert!(
        beside("client").stderr.contains("no remedy for the client"),
        "nothing there is about it"
    );
    assert_eq!(run(&[capture, "--host-snapshot", "middle=x"]).status, Some(2));
}

#[test]
fn all_checks_are_listed_and_documented() {
    let list = run(&["check", "--list"]).stdout;
    for page in tcpwhy::host::doc::pages() {
        assert!(list.contains(page.code), "{}", page.code);
        assert_eq!(run(&["doc", page.code]).status, Some(0));
    }
    let manual = run(&["doc", "--checks"]).stdout;
    let kept = fs::read_to_string(in_repository("docs/checks.md")).expect("is there");
    assert!(manual == kept, "stale: run `tcpwhy doc --checks > docs/checks.md`");
}
