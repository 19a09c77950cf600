//! `--parquet`: tables of captures in a folder, as users meet them.

#![cfg(feature = "tables")]

mod common;
#[path = "../../tables/tests/folder/mod.rs"]
mod folder;

use std::fs;
use std::path::Path;

use common::{Pcap, in_repository, run, run_with_stdin};
use folder::files;
use serde_json::Value;
use tempfile::TempDir;

/// Runs on `capture` into `folder`; what was said.
fn write(capture: &Path, folder: &Path, host: &[&str]) -> String {
    let (capture, folder) = (capture.display().to_string(), folder.display().to_string());
    let mut args = vec!["--no-predict", &capture, "--parquet", &folder];
    args.extend(host);
    let run = run(&args);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""), "{run:?}");
    run.stdout
}

#[test]
fn as_many_rows_as_the_json_has_items() {
    let folder = TempDir::new().expect("a folder");
    let capture = in_repository("testdata/articles/download-512k-rtt7ms.tcpdump.txt");
    let said = write(&capture, folder.path(), &["--host", "web1"]);
    let json = run(&["--no-predict", "--json", capture.to_str().expect("text")]).stdout;
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let connection = &report["connections"][0];
    let count = |value: &Value| value.as_array().map_or(0, Vec::len);
    let both = |list: &str| -> usize {
        let directions = connection["directions"].as_array().expect("two");
        directions.iter().map(|direction| count(&direction[list])).sum()
    };
    let rows =
        |number: usize, of: &str| format!("{number} {of}{}", if number == 1 { "" } else { "s" });
    let expected = format!(
        "wrote {}: 1 connection, {}, {}, {}, {}, {}, {}\n",
        folder.path().display(),
        rows(count(&connection["transfers"]), "transfer"),
        rows(count(&connection["exchanges"]), "request"),
        rows(both("limits"), "limit"),
        rows(both("rounds"), "round"),
        rows(count(&connection["findings"]), "finding"),
        // Those of the first screen, which no part of the JSON lists.
        rows(3, "change"),
    );
    assert_eq!(said, expected);
    assert!(both("rounds") > 3, "{said}");
    assert!(files(folder.path()).iter().all(|name| name.contains("/host=web1/")));
}

#[test]
fn a_second_run_replaces_the_first_and_another_host_stands_beside_it() {
    let folder = TempDir::new().expect("a folder");
    let capture = in_repository("testdata/articles/download-512k-rtt7ms.tcpdump.txt");
    write(&capture, folder.path(), &["--host", "a"]);
    let once = files(folder.path());
    write(&capture, folder.path(), &["--host", "a"]);
    assert_eq!(files(folder.path()), once);
    write(&capture, folder.path(), &["--host", "b"]);
    assert_eq!(files(folder.path()).len(), 2 * once.len());
}

#[test]
fn a_folder_without_tcp_is_no_rows_and_one_that_cannot_be_is_said() {
    let folder = TempDir::new().expect("a folder");
    let nothing = run_with_stdin(
        &["-", "--parquet", folder.path().join("t").to_str().expect("text")],
        &Pcap::new().0,
    );
    assert!(nothing.stdout.is_empty() || nothing.stdout.ends_with(": no rows\n"), "{nothing:?}");

    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let capture = in_repository("testdata/articles/download-512k-rtt7ms.tcpdump.txt");
    let capture = capture.to_str().expect("text");
    let refused = run(&[capture, "--parquet", file.to_str().expect("text")]);
    assert_ne!(refused.status, Some(0));
    assert!(refused.stderr.contains(&format!("cannot write {}", file.display())), "{refused:?}");
}

#[test]
fn a_host_that_can_be_no_folder_is_refused_before_anything_is_read() {
    let folder = TempDir::new().expect("a folder");
    let named = folder.path().join("u");
    let args = ["missing.pcap", "--parquet", named.to_str().expect("text"), "--host"];
    for host in ["../x", "", ".a", "a b"] {
        let refused = run(&[&args[..], &[host]].concat());
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("cannot be a part of a path"), "{refused:?}");
    }
    assert!(run(&[&args[..], &["web-1.a_b"]].concat()).stderr.contains("missing.pcap"));
    assert!(!named.exists());
}

#[test]
fn segments_are_written_where_they_are_asked_for_and_gone_where_not() {
    let folder = TempDir::new().expect("a folder");
    let capture = in_repository("testdata/kernel/loss-one-mid.server.pcap.gz");
    let said = write(&capture, folder.path(), &["--segments"]);
    let json = run(&["--no-predict", "--json", capture.to_str().expect("text")]).stdout;
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let packets: u64 = report["connections"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|each| each["packets"].as_u64())
        .sum();
    assert!(said.ends_with(&format!(", {packets} segments\n")), "{said}");
    let has = || files(folder.path()).iter().any(|name| name.starts_with("segments/"));
    assert!(has());
    write(&capture, folder.path(), &[]);
    assert!(!has());
    // A connection that is not asked for has none.
    let [file, to] = [&*capture, folder.path()].map(|path| path.to_str().expect("text"));
    let none = run(&[file, "--parquet", to, "--segments", "--filter", "port 1"]);
    assert!(none.stdout.ends_with(": no rows\n"), "{none:?}");
}

#[test]
fn segments_of_what_can_be_read_once_are_refused() {
    let folder = TempDir::new().expect("a folder");
    let to = folder.path().to_str().expect("text");
    let piped = run_with_stdin(&["-", "--parquet", to, "--segments"], &Pcap::new().0);
    assert_eq!(piped.status, Some(2), "{piped:?}");
    assert!(piped.stderr.contains("standard input can be read only once"), "{piped:?}");
    for other in ["--anonymize", "--from=+1s", "--to=+1s"] {
        assert_eq!(run(&["x.pcap", "--parquet", to, "--segments", other]).status, Some(2));
    }
    assert_eq!(run(&["x.pcap", "--segments"]).status, Some(2));
}

#[test]
fn other_forms_of_the_answer_do_not_go_with_it() {
    for form in ["--json", "--csv", "--summary", "--full"] {
        let refused = run(&["x.pcap", "--parquet", "t", form]);
        assert_eq!(refused.status, Some(2), "{refused:?}");
    }
    assert_eq!(run(&["x.pcap", "--host", "a"]).status, Some(2));
}
