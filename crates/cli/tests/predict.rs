//! `tcpwhy predict`, as typed.

mod common;

use common::{in_repository, run};

#[test]
fn a_larger_first_flight_saves_rounds() {
    let told = run(&["predict", "--size", "512KiB", "--rtt", "7ms", "--initcwnd", "10,40"]);
    assert_eq!((told.status, told.stderr.as_str()), (Some(0), ""));
    let rows: Vec<_> = told.stdout.lines().skip(3).collect();
    let cell = |row: &str, at| row.split_whitespace().nth(at).map(str::to_owned);
    assert_eq!((rows.len(), cell(rows[0], 0).as_deref()), (2, Some("10")), "{}", told.stdout);
    assert_eq!([0, 1].map(|at| cell(rows[at], 3)), ["6", "4"].map(|n| Some(n.to_owned())));
}

#[test]
fn every_combination_is_a_line_of_csv() {
    let told = run(&[
        "predict",
        "slow-start",
        "--kernel",
        "4.18,6.12",
        "--set",
        "path.rate=100mbit,1gbit",
        "--csv",
    ]);
    let lines: Vec<_> = told.stdout.lines().collect();
    assert_eq!(
        lines.len(),
        1 + 2 * 2 * 3,
        "two rates, two kernels, three variants: {}",
        told.stdout
    );
    assert!(lines[0].starts_with("path.rate,kernel,variant,finished,time_ns,"), "{}", lines[0]);
    assert!(lines[1].starts_with("100mbit,4.18,RTT 6 ms,true,"), "{}", lines[1]);
}

#[test]
fn the_waits_of_the_json_add_up_to_the_time() {
    let told = run(&["predict", "--size", "1MB", "--rtt", "20ms", "--loss", "1%", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&told.stdout).expect("JSON");
    let run = &json["runs"][0];
    let waits = run["waits_ns"].as_object().expect("waits");
    let sum: u64 = waits.values().filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(Some(sum), run["time_ns"].as_u64());
    assert!(run["resent_bytes"].as_u64() > Some(0));
}

#[test]
fn what_never_ends_says_what_it_waits_for() {
    let args = ["--size", "1MB", "--rtt", "20ms", "--loss", "100%", "--set", "limit=5s"];
    let told = run(&[&["predict"], &args[..]].concat());
    assert_eq!(told.status, Some(0));
    assert!(
        told.stdout.contains("over 5.00 s") && told.stdout.contains("not finished"),
        "{}",
        told.stdout
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_write() {
    let cases: [(&[&str], &str); 10] = [
        (&["--size", "1MB"], "--rtt"),
        (&["--size", "1MB", "--rtt", "fast"], "6ms"),
        (&["--size", "1MB", "--rtt", "1ms", "--initcwnd", "40..10"], "10..100"),
        (&["--size", "1MB", "--rtt", "-5ms"], "`-5ms`"),
        (&["--size", "1MB", "--rtt", "1ms", "--kernel", "2.6"], "4.18"),
        (&["--size", "1MB", "--rtt", "1ms", "--kernel", "7.9"], "6.18"),
        (&["--size", "1MB", "--rtt", "1ms", "--set", "path.colour=red"], "colour"),
        (&["--size", "1MB", "--rtt", "1..200", "--initcwnd", "1..100"], "10000"),
        (&["no-such-scenario"], "tcpwhy lab list"),
        (&["slowstart"], "`slow-start`"),
    ];
    for (args, said) in cases {
        let told = run(&[&["predict"], args].concat());
        assert_eq!((told.status, told.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(told.stderr.contains(said), "{args:?}: {}", told.stderr);
    }
}

#[test]
fn the_manual_shows_what_is_printed() {
    let kept = std::fs::read_to_string(in_repository("docs/predict.md")).expect("is there");
    let told = run(&["predict", "--size", "512KiB", "--rtt", "7ms", "--initcwnd", "10,20,100"]);
    let shown = |line: &str| format!("    {line}").trim_end().to_owned();
    let lines: Vec<_> = told.stdout.lines().map(shown).collect();
    assert!(kept.contains(&lines.join("\n")), "stale:\n{}", told.stdout);
}

#[test]
fn another_seed_loses_other_packets() {
    let args = ["--size", "2MB", "--rtt", "20ms", "--loss", "1%", "--set", "seed=1,2,3", "--csv"];
    let told = run(&[&["predict"], &args[..]].concat());
    let time = |line: &str| line.split(',').nth(7).map(str::to_owned);
    let times: std::collections::BTreeSet<_> =
        told.stdout.lines().skip(1).filter_map(time).collect();
    assert_eq!(times.len(), 3, "{}", told.stdout);
}

#[test]
fn where_chance_decides_a_range_is_shown() {
    let ask = |more: &[&str]| {
        let args = [&["predict", "--size", "300KiB", "--rtt", "20ms", "--json"], more].concat();
        let told: serde_json::Value = serde_json::from_str(&run(&args).stdout).expect("JSON");
        let of = |name: &str| told["runs"][0][name].as_u64().expect("a figure");
        (of("throws"), of("low_ns"), of("time_ns"), of("high_ns"))
    };
    let (throws, low, middle, high) = ask(&["--loss", "1%"]);
    assert_eq!(throws, 21);
    assert!(low < middle && middle < high, "{low} {middle} {high}");
    let (throws, low, middle, high) = ask(&["--loss", "1%", "--set", "seed=3"]);
    assert_eq!((throws, low, high), (1, middle, middle));
    assert_eq!(ask(&[]).0, 1);
}

#[test]
fn kernels_that_the_model_was_never_compared_with_are_named() {
    let told = |kernel| run(&["predict", "slow-start", "--kernel", kernel]).stdout;
    assert!(told("4.18,6.1").contains("the model of 4.18 was never compared"));
    assert!(!told("5.10,6.1,6.12").contains("never compared"));
}

#[test]
fn the_textbooks_figure_is_printed_round_by_round() {
    let told = run(&["predict", "textbook", "--rounds"]);
    assert_eq!((told.status, told.stderr.as_str()), (Some(0), ""));
    let first = told.stdout.split("(6.12, Reno)").nth(1).expect("the first variant");
    let lines: Vec<_> = first.lines().skip(3).collect();
    let cells = |round: usize| lines[round - 1].split_whitespace().collect::<Vec<_>>();
    assert_eq!(cells(13)[3..7], ["24", "16", "24", "0"]);
    assert_eq!(cells(13).last(), Some(&"timeout"));
    assert_eq!(cells(14)[3..5], ["1", "12"]);
    assert_eq!(cells(22).last(), Some(&"retransmit"));
    assert_eq!(cells(23)[3..5], ["8", "8"]);
}

#[test]
fn rounds_come_as_json_and_as_a_picture_too() {
    let each = ["--rate", "unlimited", "--set", "client.route.quickack=1"];
    let args = [&["predict", "--size", "512KiB", "--rtt", "7ms"], &each[..]].concat();
    let told = run(&[&args[..], &["--rounds", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&told.stdout).expect("JSON");
    let windows = json["runs"][0]["ladder"].as_array().expect("rounds").iter();
    let windows: Vec<_> = windows.map(|round| round["cwnd"].as_u64()).take(3).collect();
    assert_eq!(windows, [10, 20, 40].map(Some));
    let plot = run(&[&args[..], &["--plot"]].concat()).stdout;
    assert!(plot.contains('▄') && plot.contains("▄ window"), "{plot}");
}
