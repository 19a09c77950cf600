//! Do the flags of the command line choose what they say, from the packets to the report?

mod common;

use std::fs;
use std::path::PathBuf;

use common::{PACKETS, Pcap, finish, in_repository, run, run_with_stdin, tcpwhy};
use serde_json::Value;
use tempfile::TempDir;

/// Two connections to port 80 from different hosts and one to port 443, a second apart.
fn three() -> Pcap {
    Pcap::new()
        .connection(1_000_000, (1, 40_000), 80)
        .connection(2_000_000, (3, 40_000), 80)
        .connection(3_000_000, (1, 40_001), 443)
}

/// The report on `pcap` with these flags.
fn report(flags: &[&str], pcap: &Pcap) -> Value {
    let run = run_with_stdin(&[&["--json", "-"], flags].concat(), &pcap.0);
    assert_eq!(run.status, Some(0), "{run:?}");
    serde_json::from_str(&run.stdout).expect("JSON")
}

/// The servers' ports of the report on [`three`] with these flags.
fn ports(flags: &[&str]) -> Vec<String> {
    let report = report(flags, &three());
    let connections = report["connections"].as_array().expect("a list").iter();
    let server = |c: &Value| c["server"].as_str().expect("an address").to_owned();
    connections.map(|c| server(c).rsplit(':').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn explain_is_what_a_bare_file_means() {
    let capture = in_repository("testdata/articles/download-512k-rtt7ms.tcpdump.txt");
    let capture = capture.to_str().expect("UTF-8");
    let bare = run(&["--json", capture]);
    let long = run(&["explain", "--json", capture]);
    assert_eq!(bare.status, Some(0), "{bare:?}");
    assert_eq!((long.status, long.stdout), (bare.status, bare.stdout));
}

#[test]
fn a_connection_that_is_not_there() {
    let run = run_with_stdin(&["--json", "--connection", "7", "-"], &Pcap::new().0);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(run.stderr.contains("there is no connection 7: none was found"), "{run:?}");
}

#[test]
fn json_for_programs_is_one_line() {
    let run = run_with_stdin(&["--json", "-"], &Pcap::new().0);
    assert_eq!(run.stdout.matches('\n').count(), 1, "{run:?}");
    assert!(run.stdout.ends_with("}\n"), "{run:?}");
}

#[test]
fn a_filter_keeps_whole_connections() {
    assert_eq!(ports(&[]), ["80", "80", "443"]);
    assert_eq!(ports(&["--filter", "port 443"]), ["443"]);
    assert_eq!(ports(&["--filter", "client 10.0.0.1"]), ["80", "443"]);
    assert_eq!(ports(&["--filter", "server 10.0.0.1"]), [""; 0]);
    assert_eq!(ports(&["--filter", "not src host 10.0.0.1"]), ["80"]);
    let one = report(&["--filter", "dst port 443"], &three());
    assert_eq!(one["connections"][0]["packets"], PACKETS, "both directions are there");
    assert_eq!(one["captures"][0]["packets"], 3 * PACKETS);
}

#[test]
fn what_is_left_keeps_its_numbers() {
    let one = report(&["--filter", "port 443"], &three());
    assert_eq!(one["connections"][0]["id"], 2);
    assert_eq!(one["connections"][0]["stream"], 2);
    let missing =
        run_with_stdin(&["--json", "--filter", "port 443", "--connection", "0", "-"], &three().0);
    assert!(missing.stderr.contains("the only one has number 2"), "{missing:?}");
}

#[test]
fn a_filter_that_matches_nothing_says_so() {
    let run = run_with_stdin(&["--filter", "port 81", "-"], &three().0);
    assert_eq!((run.status, &*run.stdout), (Some(0), ""), "{run:?}");
    assert_eq!(
        run.stderr,
        "tcpwhy: the filter matches none of the 3 connections; the first is \
         10.0.0.1:40000 (client) -> 10.0.0.2:80 (server)\n"
    );
    let json = report(&["--filter", "host www.example.com"], &three());
    assert_eq!(json["connections"], serde_json::json!([]));
}

#[test]
fn a_part_of_the_time_keeps_what_was_known_before_it_and_adds_up() {
    let capture = in_repository("testdata/articles/download-512k-rtt7ms.tcpdump.txt");
    let capture = capture.to_str().expect("UTF-8");
    let run = run(&["--json", "--from", "+10ms", "--to", "10:45:49.081409", capture]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let connection = &report["connections"][0];
    assert_eq!(connection["window_scaling"], "used");
    assert_eq!(connection["mss"], 1448);
    assert_eq!(connection["start"], "10:45:49.061409000");
    assert_eq!(connection["duration_ns"], 20_000_000);
    assert_eq!(connection["part"]["of_ns"], 63_063_000);
    for direction in connection["directions"].as_array().expect("two") {
        let states = direction["time_in"].as_object().expect("states");
        assert_eq!(states.values().filter_map(Value::as_i64).sum::<i64>(), 20_000_000);
        assert!(!states.contains_key("handshake"), "{states:?}");
        assert_eq!(direction["strip"].as_str().map(str::len), Some(512));
    }
    // Rounds 2 and 3 of worked-example.md begin in it.
    let server = &connection["directions"][1];
    let bytes: u64 = server["rounds"]
        .as_array()
        .expect("rounds")
        .iter()
        .filter_map(|round| round["bytes"].as_u64())
        .sum();
    assert_eq!(connection["part"]["bytes"][1], bytes);
    // The last ACK of the request lies in it too.
    assert_eq!(connection["transfers"].as_array().map(Vec::len), Some(2));
    assert_eq!(connection["transfers"][0]["bytes"], 0);
    assert_eq!(connection["transfers"][1]["bytes"], bytes);
    assert_eq!(connection["exchanges"], serde_json::json!([]), "it reaches beyond the part");
}

#[test]
fn a_part_in_which_nothing_happened() {
    let run = run_with_stdin(&["--from", "+1h", "-"], &three().0);
    assert_eq!((run.status, &*run.stdout), (Some(0), ""), "{run:?}");
    assert!(run.stderr.contains("begin at 1970-01-01T00:00:01.000000000Z and end 2.03 s later"));
}

#[test]
fn a_window_of_time() {
    assert_eq!(ports(&["--from", "+0.5s"]), ["80", "443"]);
    assert_eq!(ports(&["--to", "+0.5s"]), ["80"]);
    assert_eq!(ports(&["--from", "00:00:03"]), ["443"]);
    assert_eq!(ports(&["--from", "1970-01-01T00:00:01.5Z", "--to", "+1.5s"]), ["80"]);
}

#[test]
fn one_some_and_sorted() {
    assert_eq!(ports(&["--connection", "2"]), ["443"]);
    assert_eq!(ports(&["--top", "2"]), ["80", "80"]);
    assert_eq!(ports(&["--sort", "start", "--top", "3"]), ["80", "80", "443"]);
}

#[test]
fn rotated_files_in_any_order_are_one_capture() {
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, pcap: &Pcap| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, &pcap.0).expect("written");
        path
    };
    // As `tcpdump -W 3` leaves them: the ring went round, and names sort otherwise.
    let first = file("x.pcap2", &Pcap::new().connection(1_000_000, (1, 40_000), 80));
    let second = file("x.pcap0", &Pcap::new().connection(2_000_000, (3, 40_000), 80));
    let third = file("x.pcap1", &Pcap::new().connection(3_000_000, (1, 40_001), 443));
    let flag = PathBuf::from("--json");
    let sorted = run(&[&flag, &first, &second, &third]);
    let shuffled = run(&[&flag, &third, &first, &second]);
    assert_eq!(sorted.stdout, shuffled.stdout);
    let report: Value = serde_json::from_str(&sorted.stdout).expect("JSON");
    assert_eq!(report["captures"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["connections"][2]["frames"]["first"], 2 * PACKETS + 1, "frames go on");
}

#[test]
fn one_file_twice_and_both_ends_are_no_rotated_capture() {
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, content: &[u8]| -> String {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let one = file("one.pcap", &three().0);
    let later = Pcap::new().connection(1_000_700, (1, 40_000), 80);
    for (other, word) in [
        (file("copy.pcap", &three().0), "seems to be a copy"),
        (file("end.pcap", &later.0), "taken in two places"),
    ] {
        let run = run(&[&*one, &other]);
        assert_eq!((run.status, &*run.stdout), (Some(2), ""), "{run:?}");
        assert!(run.stderr.contains(word) && run.stderr.contains("explain each alone"), "{run:?}");
    }
}

#[test]
fn a_listing_s_names_are_shown_instead_of_their_stand_ins() {
    let listing = in_repository("testdata/listings/v4.names.txt");
    let listing = listing.to_str().expect("UTF-8");
    let text = run(&[listing, "--full"]).stdout;
    assert!(text.contains("\nlocalhost:80 -> localhost:33930"), "{text}");
    let report: Value = serde_json::from_str(&run(&["--json", listing]).stdout).expect("JSON");
    assert_eq!(report["connections"][0]["server_name"], "localhost:80");
    let csv = run(&["--csv", listing]).stdout;
    assert!(csv.contains(",localhost:33930,localhost:80,"), "{csv}");
    let hidden = run(&["--json", "--anonymize", listing]).stdout;
    assert!(!hidden.contains("localhost"), "{hidden}");
    let report: Value = serde_json::from_str(&hidden).expect("JSON");
    assert_eq!(report["connections"][0]["client"], "10.0.0.1:33930");
}

#[test]
fn the_readme_shows_what_is_printed_now() {
    let readme = fs::read_to_string(in_repository("README.md")).expect("is there");
    let capture = "testdata/articles/download-512k-rtt7ms.tcpdump.txt";
    let output = tcpwhy().arg(capture).current_dir(in_repository("")).output().expect("starts");
    let now = finish(output).stdout;
    let marked = format!("<!-- output of make demo -->\n```text\n{now}```\n<!-- end of output -->");
    assert!(readme.contains(&marked), "run scripts/readme; what is printed now:\n{now}");
}

#[test]
fn a_wrong_flag_of_a_command_is_named_and_the_command_is_no_file() {
    for words in [&["check", "--nonsense"][..], &["page", "extra"], &["doc", "--nonsense"]] {
        let told = run(words);
        assert_eq!(told.status, Some(2), "{words:?}");
        assert!(
            told.stderr.contains(&format!("unexpected argument '{}'", words[1])),
            "{}",
            told.stderr
        );
        assert!(!told.stderr.contains("there is no file"), "{}", told.stderr);
    }
}

#[test]
fn a_mistyped_command_is_one_in_spite_of_its_flags() {
    for words in [&["chek", "--save", "x"][..], &["chek"], &["recrod", "--", "true"]] {
        let told = run(words);
        assert_eq!((told.status, told.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(told.stderr.contains("did you mean the command"), "{words:?}: {}", told.stderr);
    }
}

#[test]
fn no_pager_may_stand_before_the_command_and_behind_it() {
    let told = run(&["doc", "BDP"]);
    assert_eq!(told.status, Some(0));
    for words in [["--no-pager", "doc", "BDP"], ["doc", "BDP", "--no-pager"]] {
        assert_eq!(run(&words).stdout, told.stdout, "{words:?}");
    }
}

#[test]
fn a_summary_has_a_line_for_each_connection_and_fail_on_looks_at_all() {
    let capture = in_repository("testdata/cases/twelve-connections-no-data/capture.pcap");
    let capture = capture.to_str().expect("UTF-8");
    let told = run(&["--summary", capture]);
    assert_eq!(told.status, Some(0));
    assert_eq!(told.stdout.lines().count(), 12);
    assert!(told.stdout.lines().all(|line| line.split('\t').count() == 14), "{}", told.stdout);
    for (word, status) in [("broken", 1), ("SYN_UNANSWERED", 1), ("SLOW_START,limit", 0)] {
        assert_eq!(run(&["--fail-on", word, capture]).status, Some(status), "{word}");
    }
    assert_eq!(run(&["--fail-on", "brokn", capture]).status, Some(2));
}
