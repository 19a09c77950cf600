//! The views as a reader sees them (snapshots), and what holds for any report.

use proptest::prelude::*;
use serde_json::Value;

use super::sample;
use super::*;
use crate::report::{Finding, PredictedBy, Prediction, Quality, Remedy, Report};

fn anonymize_all(report: &mut Report) {
    let stand_ins = StandIns::of(report);
    anonymize(report, stand_ins);
}

fn shown(report: &Report) -> String {
    text::render(report, &Options::default())
}

/// The first screen at 80 columns.
fn screen(report: &Report) -> String {
    render(report, &Options { width: 80, top: 10, ..Options::default() })
}

#[test]
fn the_first_screen_of_the_worked_example() {
    insta::assert_snapshot!(screen(&sample::worked_example()));
}

#[test]
fn the_first_screen_on_a_narrow_page() {
    let options = Options { width: 40, ..Options::default() };
    insta::assert_snapshot!(render(&sample::worked_example(), &options));
}

#[test]
fn the_first_screen_of_a_lossy_upload() {
    insta::assert_snapshot!(screen(&sample::lossy()));
}

#[test]
fn the_first_screen_of_many_connections() {
    insta::assert_snapshot!(screen(&sample::many(500)));
}

#[test]
fn a_first_screen_fits_a_terminal_that_nobody_made_larger() {
    for report in all() {
        let text = screen(&report);
        let number = text.lines().count();
        assert!(number <= 24, "{number} lines:\n{text}");
    }
}

#[test]
fn the_worked_example() {
    insta::assert_snapshot!(shown(&sample::worked_example()));
}

#[test]
fn the_worked_example_with_rounds_and_picture() {
    let options = Options { rounds: true, plot: true, ..Options::default() };
    insta::assert_snapshot!(text::render(&sample::worked_example(), &options));
}

#[test]
fn the_worked_example_on_a_narrow_page() {
    let options = Options { width: 60, rounds: true, ..Options::default() };
    insta::assert_snapshot!(text::render(&sample::worked_example(), &options));
}

#[test]
fn a_saw_of_windows_as_a_picture() {
    let connection = &sample::saw().connections[0];
    insta::assert_snapshot!(plot::render(connection, 0, &Options::default()));
}

#[test]
fn a_lossy_upload_from_a_damaged_file() {
    insta::assert_snapshot!(shown(&sample::lossy()));
}

#[test]
fn a_keep_alive_connection_is_not_tcp() {
    insta::assert_snapshot!(shown(&sample::keep_alive()));
}

#[test]
fn a_capture_that_starts_midway_and_is_still_read() {
    insta::assert_snapshot!(shown(&sample::midway()));
}

#[test]
fn many_connections_are_a_table() {
    let options = Options { top: 8, ..Options::default() };
    insta::assert_snapshot!(text::render(&sample::many(500), &options));
}

#[test]
fn rows_too_long_for_the_page_take_two_lines() {
    let mut report = sample::many(40);
    for connection in &mut report.connections {
        connection.client =
            "[2001:470:1f0b:aaaa:bbbb:cccc:dddd:15]:52144".parse().expect("address");
    }
    let options = Options { top: 3, width: 80, ..Options::default() };
    insta::assert_snapshot!(table::render(&report, &options));
}

#[test]
fn findings_say_why_what_not_and_what_helps() {
    let mut report = sample::worked_example();
    report.connections[0].findings.push(Finding {
        code: "SLOW_START".to_owned(),
        severity: crate::report::Severity::Wrong,
        title: "a new connection pays for slow start".to_owned(),
        why: "4 of 6 waits end with an ACK that opens a full congestion window".to_owned(),
        not: "the path is not full: the round trip stays at its least".to_owned(),
        cost_ns: 28_353_000,
        of_ns: 56_077_000,
        remedies: vec![Remedy {
            who: "sender".to_owned(),
            on: Some("server".to_owned()),
            what: "a larger initial window for this route".to_owned(),
            command: Some("ip route change default via 192.168.247.2 initcwnd 40".to_owned()),
            rollback: Some("ip route change default via 192.168.247.2".to_owned()),
            knob: Some("initcwnd".to_owned()),
            set: None,
            predicted_ns: Some(Prediction {
                by: PredictedBy::Arithmetic,
                low: 41_000_000,
                best: 43_000_000,
                high: 56_077_000,
                now: 56_077_000,
            }),
        }],
        ..Finding::default()
    });
    let text = shown(&report);
    let found = text.split_once("What was found").expect("the heading is there").1;
    let found = found.split_once("\n\nWhere").expect("the account follows").0;
    insta::assert_snapshot!(found);
}

#[test]
fn csv_has_a_row_for_each_direction_with_data() {
    let mut report = sample::worked_example();
    report.connections.push(sample::connection(1, "[2001:db8::7]:1", "[2001:db8::8]:2", 0));
    insta::assert_snapshot!(csv::render(&report));
}

#[test]
fn csv_rows_all_have_every_column() {
    let text = csv::render(&sample::many(60));
    let columns = csv::columns().len();
    for line in text.lines() {
        assert_eq!(line.split(',').count(), columns, "{line}");
    }
    assert_eq!(text.lines().count(), 61);
}

#[test]
fn one_connection_of_many_is_shown_in_full() {
    let report = sample::many(500);
    let options = Options { connection: Some(20), ..Options::default() };
    let text = text::render(&report, &options);
    assert!(text.starts_with("10.0.0.80:443 -> 10.2.0.21:40020 "), "{text}");
    let options = Options { connection: Some(500), ..Options::default() };
    let text = text::render(&report, &options);
    assert!(
        text.starts_with("There is no connection 500 in this report; it holds 0 to 499."),
        "{text}"
    );
}

#[test]
fn a_capture_without_connections_says_so() {
    let report = sample::report("udp.pcap", 0, Vec::new());
    assert!(shown(&report).starts_with("No TCP connection was found"));
}

#[test]
fn a_pipe_whose_connections_are_all_open_is_not_empty() {
    let mut report = sample::report("-", 9, Vec::new());
    report.provisional = true;
    assert!(shown(&report).contains("\nNo connection has ended yet"), "{}", shown(&report));
    assert!(shown(&report).contains("standard input: 9 packets"), "{}", shown(&report));
}

#[test]
fn a_capture_that_cannot_be_read_says_so_first() {
    let mut report = sample::report("x.pcap", 0, Vec::new());
    report.captures[0].error = Some("no capture format begins with 0x00000000".to_owned());
    let expected = "INCOMPLETE: cannot read x.pcap: no capture format begins with 0x00000000\n\n\
                    No TCP connection was found";
    assert!(shown(&report).starts_with(expected), "{}", shown(&report));
}

#[test]
fn a_clock_that_cannot_be_trusted_is_told_first() {
    let mut report = sample::report("x.pcap", 0, Vec::new());
    let remark =
        |kind: &str| Quality { kind: kind.to_owned(), count: 12, note: "all is so".to_owned() };
    report.captures[0].quality.push(remark("duplicates"));
    assert!(!shown(&report).starts_with("CLOCK"), "other remarks stand at the end");
    report.captures[0].quality.push(remark("time_stands_still"));
    assert!(shown(&report).starts_with("CLOCK: in x.pcap all is so.\n"), "{}", shown(&report));
}

#[test]
fn each_order_puts_its_own_first() {
    let mut report = sample::many(100);
    report.connections[40].duration_ns = i64::MAX;
    let first = |sort| {
        let options = Options { sort, top: 1, ..Options::default() };
        let text = table::render(&report, &options);
        let row = text.lines().skip_while(|line| !line.trim_start().starts_with("id ")).nth(1);
        row.expect("a row").split_whitespace().next().expect("an id").to_owned()
    };
    let orders = [
        (Sort::Worst, "88"),
        (Sort::Duration, "40"),
        (Sort::Bytes, "3"),
        (Sort::Rate, "88"),
        (Sort::Retransmissions, "3"),
        (Sort::Start, "0"),
    ];
    for (sort, id) in orders {
        assert_eq!(first(sort), id, "{sort:?}");
    }
}

#[test]
fn a_flood_of_connections_gives_one_screen() {
    let text = shown(&sample::many(20_000)) + &screen(&sample::many(20_000));
    assert!(text.lines().count() < 80, "{}", text.lines().count());
}

#[test]
fn colour_adds_nothing_but_colour() {
    for report in all() {
        let plain = Options { rounds: true, plot: true, ..Options::default() };
        for full in [false, true] {
            let plain = Options { full, ..plain.clone() };
            let painted = render(&report, &Options { color: true, ..plain.clone() });
            assert!(painted.contains('\u{1b}'));
            assert_eq!(without_colour(&painted), render(&report, &plain));
        }
    }
}

#[test]
fn lines_keep_to_the_width_unless_a_word_is_longer() {
    for report in all() {
        for width in [72, 80, 100, 132] {
            let options = Options { width, rounds: true, plot: true, ..Options::default() };
            let both =
                [false, true].map(|full| render(&report, &Options { full, ..options.clone() }));
            for line in both.iter().flat_map(|text| text.lines()) {
                let fits = line.chars().count() <= width;
                assert!(fits || line.split_whitespace().count() <= 2, "{width}: {line}");
                assert!(!line.ends_with(' '), "trailing space: {line:?}");
            }
        }
    }
}

#[test]
fn addresses_vanish_from_every_text_and_stay_apart() {
    let mut report = sample::lossy();
    // An address in every string that may hold one; enums, addresses and numbers stay as they are.
    let mut json = serde_json::to_value(&report).expect("serialises");
    change(&mut json, "", &mut |key, value| {
        if is_free_text(key) && value.is_string() {
            *value = Value::from("from 203.0.113.9:443 to 2a02:8071::5, not 198.51.100.7.");
        }
    });
    report = serde_json::from_value(json).expect("still a report");
    report.captures[0].source = "/home/ann/upload.pcapng".to_owned();
    report.captures[0].error = Some("/home/ann/upload.pcapng: cut".to_owned());
    anonymize_all(&mut report);
    let json = serde_json::to_string(&report).expect("serialises");
    for hidden in ["203.0.113.9", "2a02:8071", "198.51.100.7", "2001:470", "2a00:1450", "/home"] {
        assert!(!json.contains(hidden), "{hidden} is still there");
    }
    assert_eq!(report.connections[0].client.to_string(), "[2001:db8::1]:52144");
    assert_eq!(report.connections[0].server.to_string(), "[2001:db8::2]:443");
    assert_eq!(report.captures[0].error.as_deref(), Some("capture-1.pcapng: cut"));
    let evidence = &report.connections[0].vantage_evidence;
    assert_eq!(evidence, "from 10.0.0.1:443 to 2001:db8::3, not 10.0.0.2.");
}

fn all() -> [Report; 5] {
    [
        sample::worked_example(),
        sample::lossy(),
        sample::keep_alive(),
        sample::midway(),
        sample::many(100),
    ]
}

fn without_colour(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = after.split_once('m').expect("a sequence ends").1;
    }
    out.push_str(rest);
    out
}

/// Calls `each` on every scalar of `value` with the key it is under.
fn change(value: &mut Value, key: &str, each: &mut impl FnMut(&str, &mut Value)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                change(value, key, each);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| change(item, key, each)),
        scalar => each(key, scalar),
    }
}

/// Keys whose text is not that of an enum or address of the report, nor one that names a thing.
fn is_free_text(key: &str) -> bool {
    let fixed = [
        "state",
        "confidence",
        "told_by",
        "alternative",
        "limited_by",
        "vantage",
        "window_scaling",
        "end",
    ];
    let names =
        ["client", "server", "start", "format", "from", "cause", "kind", "verdict", "strip"];
    !fixed.contains(&key) && !names.contains(&key)
}

/// A report whose numbers and texts are replaced by odd ones, drawn from `odds`.
fn absurd(report: &Report, odds: &[u8]) -> Report {
    const TEXTS: [&str; 5] = ["", "\u{1b}[31mred\r\n", "server", "\u{fc},\"\u{202e}", "T?xX\u{0}."];
    const UNSIGNED: [&str; 11] = [
        "bytes",
        "bytes_sent",
        "segments",
        "frames",
        "packets",
        "fast",
        "lost",
        "count",
        "best",
        "request",
        "in_flight_bytes",
    ];
    let mut odds = odds.iter().cycle().copied();
    let mut json = serde_json::to_value(report).expect("serialises");
    change(&mut json, "", &mut |key, value| {
        let odd = odds.next().unwrap_or(0);
        let signed = key.ends_with("_ns") || matches!(key, "seq" | "window_room_bytes");
        let signed = signed || is_state_name(key);
        let small = key == "mss";
        if value.is_number() {
            *value = match odd % 8 {
                0 => Value::from(0),
                1 if !small => Value::from(i64::MAX),
                2 if signed => Value::from(i64::MIN),
                3 if signed => Value::from(-1),
                4 if UNSIGNED.contains(&key) => Value::from(u64::MAX),
                5 => Value::from(255),
                _ => return,
            };
        } else if value.is_string() && odd % 3 == 0 && (is_free_text(key) || key == "strip") {
            *value = Value::from(TEXTS[usize::from(odd / 3) % TEXTS.len()]);
        }
    });
    serde_json::from_value(json).expect("still a report")
}

fn is_state_name(key: &str) -> bool {
    // `zero_window` is a count of events too.
    key != "zero_window" && crate::report::State::all().any(|state| state.name() == key)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn no_report_is_too_absurd_to_be_shown(
        which in 0..5_usize,
        odds in proptest::collection::vec(any::<u8>(), 1..400),
        width in 0..200_usize,
        top in 0..30_usize,
    ) {
        let mut report = absurd(&all()[which], &odds);
        for connection in [None, Some(0), Some(7)] {
            let options = Options {
                width, top, connection, rounds: true, plot: true, ..Options::default()
            };
            for full in [false, true] {
                let text = render(&report, &Options { full, ..options.clone() });
                let harmful = text.contains(['\u{1b}', '\u{202e}', '\u{0}', '\r']);
                prop_assert!(!harmful, "{text:?}");
            }
        }
        csv::render(&report);
        anonymize_all(&mut report);
        table::render(&report, &Options { width, top, ..Options::default() });
    }
}
