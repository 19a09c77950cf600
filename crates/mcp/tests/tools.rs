//! Each tool by a client of the SDK, with the answers of the commands.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use common::{Client, call, client, facts, refused, runtime, text};
use serde_json::{Value, json};
use tcpwhy_cli::mcp::Teller;
use tcpwhy_mcp::{MOST_FACTS, MOST_TEXT};
use tempfile::TempDir;

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/articles")
}

const DOWNLOAD: &str = "download-512k-rtt7ms.tcpdump.txt";

/// Asks each question of a server over the captures of the articles.
fn asked(questions: impl AsyncFnOnce(Client)) {
    runtime().block_on(async { questions(client(&[captures()], Teller::default()).await).await });
}

#[test]
fn the_tools_are_listed_with_schemas_and_change_nothing() {
    asked(async |client| {
        let tools = client.list_all_tools().await.expect("a list");
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["explain", "connection", "finding", "frames", "whatif", "check", "doc"]);
        for tool in &tools {
            let hints = tool.annotations.as_ref().expect("hints");
            assert_eq!((hints.read_only_hint, hints.open_world_hint), (Some(true), Some(false)));
            assert!(tool.output_schema.is_some() && tool.description.is_some(), "{}", tool.name);
        }
        let info = client.peer_info().expect("who it is");
        let told = info.instructions.as_deref().expect("what it does");
        assert!(told.contains("testdata/articles") && told.contains("they are data"), "{told}");
    });
}

#[test]
fn explain_is_the_first_screen_with_numbers_and_frames() {
    asked(async |client| {
        let answer = call(&client, "explain", json!({ "file": DOWNLOAD })).await;
        let first = text(&answer);
        assert!(first.contains("Slow start took most of it"), "{first}");
        assert!(first.contains("Would be faster"), "{first}");
        let facts = facts(&answer);
        assert_eq!((&facts["file"], &facts["connections"]), (&json!(DOWNLOAD), &json!(1)));
        let worst = &facts["worst"][0];
        assert_eq!(worst["frames"], json!({ "first": 1, "last": 58 }));
        assert_eq!(worst["taken_at"], "server");
        assert_eq!(worst["causes"][0]["code"], "SLOW_START");
        assert!(worst["causes"][0]["gain"]["best_ns"].as_i64().expect("a gain") > 0);
        assert!(facts["next"].as_str().expect("what next").contains("`connection`"));
        // The descriptor by which it was read is in no answer.
        assert!(!format!("{answer:?}").contains("/proc/self"));
    });
}

#[test]
fn explain_with_a_filter_is_of_fewer_connections() {
    asked(async |client| {
        let of = async |filter: &str| {
            call(&client, "explain", json!({ "file": DOWNLOAD, "filter": filter })).await
        };
        assert_eq!(facts(&of("port 80").await)["connections"], 1);
        let none = of("port 81").await;
        assert_eq!(facts(&none)["worst"], json!([]));
        let wrong = of("port --html=x").await;
        assert!(refused(&wrong).contains("the filter cannot be read"), "{wrong:?}");
    });
}

#[test]
fn connection_is_the_whole_account() {
    asked(async |client| {
        let answer =
            call(&client, "connection", json!({ "file": DOWNLOAD, "connection": 0 })).await;
        assert!(text(&answer).contains("Where the time went, server to client"));
        let facts = facts(&answer);
        let server = &facts["directions"][1];
        assert_eq!((&server["from"], &server["bytes"]), (&json!("server"), &json!(524_583)));
        let of = |state: &Value| state["ns"].as_i64().expect("a time");
        let sum: i64 = server["states"].as_array().expect("states").iter().map(of).sum();
        assert_eq!(json!(sum), facts["duration_ns"]);
        assert_eq!(server["states"][0]["longest"], json!({ "first": 10, "last": 17 }));
        let missing =
            call(&client, "connection", json!({ "file": DOWNLOAD, "connection": 7 })).await;
        assert_eq!(refused(&missing), "there is no connection 7: the only one has number 0");
    });
}

#[test]
fn finding_has_evidence_with_frames_and_remedies() {
    asked(async |client| {
        let answer =
            call(&client, "finding", json!({ "file": DOWNLOAD, "code": "slow_start" })).await;
        let found = &facts(&answer)["findings"][0];
        assert_eq!((&found["code"], &found["severity"]), (&json!("SLOW_START"), &json!("limit")));
        let evidence = found["evidence"].as_array().expect("evidence");
        assert!(!evidence.is_empty());
        for each in evidence {
            assert!(each["frames"]["first"].as_u64() <= each["frames"]["last"].as_u64());
        }
        assert!(
            text(&answer).contains("  frames ") && text(&answer).contains("    undo: ip route del")
        );
        let none = call(&client, "finding", json!({ "file": DOWNLOAD, "code": "LOSS" })).await;
        assert!(refused(&none).contains("what was found is SLOW_START, "), "{none:?}");
    });
}

#[test]
fn frames_are_headers_from_where_they_were_asked_for() {
    asked(async |client| {
        let few = json!({ "file": DOWNLOAD, "from": 1, "most": 5 });
        let answer = call(&client, "frames", few).await;
        let list = facts(&answer)["frames"].as_array().expect("frames").clone();
        assert_eq!(list.len(), 5);
        assert_eq!(
            list[0],
            json!({ "frame": 1, "time_ns": 0, "from": "client", "flags": "SYN", "seq": 0, "len": 0, "ack": null })
        );
        assert_eq!((&list[1]["flags"], &list[1]["ack"]), (&json!("SYN,ACK"), &json!(1)));
        let next = facts(&answer)["next_frame"].as_u64().expect("more");
        let rest = json!({ "file": DOWNLOAD, "from": next, "most": 80 });
        let rest = call(&client, "frames", rest).await;
        assert_eq!(facts(&rest)["frames"][0]["frame"], next);
        assert_eq!(facts(&rest)["next_frame"], Value::Null);
        assert_eq!(facts(&rest)["frames"].as_array().expect("frames").len(), 58 - 5);
        let beyond = call(&client, "frames", json!({ "file": DOWNLOAD, "from": 1000 })).await;
        assert!(text(&beyond).contains("no frame from there on: it has frames 1-58"));
        let all = call(&client, "frames", json!({ "file": DOWNLOAD, "most": 1 << 30 })).await;
        assert!(refused(&all).contains("`most` is 1 to 80"), "{all:?}");
    });
}

#[test]
fn whatif_changes_one_thing() {
    asked(async |client| {
        let set = |set: &[&str]| json!({ "file": DOWNLOAD, "connection": 0, "set": set });
        let answer = call(&client, "whatif", set(&["initcwnd=44"])).await;
        let facts = facts(&answer);
        assert_eq!(facts["repeats"], true);
        let change = &facts["changes"][0];
        assert!(change["best_ns"].as_i64() < facts["now_ns"].as_i64(), "{facts}");
        assert!(text(&answer).contains("as it was"), "{}", text(&answer));
        let wrong = call(&client, "whatif", set(&["colour=red"])).await;
        assert!(refused(&wrong).contains("colour"), "{wrong:?}");
        // No setting becomes another flag.
        let flag = call(&client, "whatif", set(&["--html", "x"])).await;
        assert!(refused(&flag).contains("no `=`"), "{flag:?}");
    });
}

#[test]
fn check_judges_a_pasted_text_and_this_host() {
    asked(async |client| {
        let pasted = "net.ipv4.tcp_window_scaling = 0\nnet.ipv4.tcp_sack = 0\n";
        let answer = call(&client, "check", json!({ "text": pasted })).await;
        let host = &facts(&answer)["hosts"][0];
        let codes: Vec<_> = host["findings"].as_array().expect("findings").iter().collect();
        assert!(!codes.is_empty(), "{host}");
        assert!(!format!("{answer:?}").contains("/proc/self/fd"), "{answer:?}");
        let none = call(&client, "check", json!({ "text": "how are you?" })).await;
        assert!(refused(&none).starts_with("the text holds nothing that is known"), "{none:?}");
        let here = call(&client, "check", json!({ "seconds": 0 })).await;
        assert_eq!(facts(&here)["hosts"].as_array().expect("hosts").len(), 1);
        assert!(text(&here).len() <= MOST_TEXT && facts(&here).to_string().len() <= MOST_FACTS);
        let long = call(&client, "check", json!({ "seconds": 3600 })).await;
        assert!(refused(&long).contains("`seconds` is 0 to 60"), "{long:?}");
    });
}

#[test]
fn doc_tells_what_a_word_means() {
    asked(async |client| {
        let answer = call(&client, "doc", json!({ "word": "rwnd.reader" })).await;
        assert!(text(&answer).contains("Rules that tell it"), "{}", text(&answer));
        assert_ne!(facts(&answer)["titles"], json!([]));
        let near = call(&client, "doc", json!({ "word": "SLOW_STRAT" })).await;
        assert!(refused(&near).contains("did you mean SLOW_START"), "{near:?}");
    });
}

#[test]
fn only_files_of_the_folders_are_read() {
    let folder = TempDir::new().expect("a folder");
    symlink(captures().canonicalize().expect("is there").join(DOWNLOAD), folder.path().join("out"))
        .expect("a link");
    fs::copy(captures().join(DOWNLOAD), folder.path().join("in")).expect("copied");
    runtime().block_on(async {
        let client = client(&[folder.path().to_owned()], Teller::default()).await;
        for tool in ["explain", "connection", "frames", "whatif"] {
            for (file, why) in [
                ("/etc/passwd", "is not below a folder"),
                ("../in", "a path with `..`"),
                ("out", "leads out of its folder"),
                ("missing", "there is no file missing"),
                (".", "is a folder"),
                ("-", "there is no file -"),
            ] {
                let answer = call(&client, tool, json!({ "file": file })).await;
                assert!(refused(&answer).contains(why), "{tool} {file}: {answer:?}");
            }
        }
        let answer = call(&client, "explain", json!({ "file": "in" })).await;
        assert_eq!(facts(&answer)["file"], "in");
    });
}

#[test]
fn a_file_that_changed_is_read_again() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("a");
    fs::copy(captures().join(DOWNLOAD), &file).expect("copied");
    runtime().block_on(async {
        let client = client(&[folder.path().to_owned()], Teller::default()).await;
        let connections = async || {
            let answer = call(&client, "connection", json!({ "file": "a" })).await;
            facts(&answer)["frames"]["last"].as_u64()
        };
        assert_eq!(connections().await, Some(58));
        let text = fs::read_to_string(&file).expect("text");
        let half: Vec<_> = text.lines().take(text.lines().count() / 2).collect();
        fs::write(&file, half.join("\n")).expect("written");
        assert!(connections().await < Some(58));
    });
}

#[test]
fn what_is_no_capture_is_said_under_the_name_that_was_asked_for() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("noise"), [0_u8; 4096]).expect("written");
    fs::write(folder.path().join("empty"), "").expect("written");
    runtime().block_on(async {
        let client = client(&[folder.path().to_owned()], Teller::default()).await;
        for file in ["noise", "empty"] {
            let answer = call(&client, "explain", json!({ "file": file })).await;
            let why = refused(&answer);
            assert!(why.starts_with(&format!("cannot read {file}: ")), "{why}");
            let answer = call(&client, "whatif", json!({ "file": file })).await;
            assert!(refused(&answer).contains(file), "{answer:?}");
        }
    });
}
