//! The answer of `lab run` as text: the paths, a table of variants, and where the time went.

use core::fmt::Write;
use std::collections::BTreeMap;

use tcpwhy::units::{BitRate, Bytes, Duration};

use super::outcome::Round;
use super::path::Measured;
use super::summary::{Answer, Spread, Variant};

/// `99.4 %`; `-` of nothing.
pub(super) fn percent(thousandths: Option<u64>) -> String {
    thousandths.map_or_else(|| "-".to_owned(), |t| format!("{}.{} %", t / 10, t % 10))
}

/// The whole answer.
pub(super) fn render(answer: &Answer) -> String {
    let Answer { scenario, about, backend, kernel, paths, variants, .. } = answer;
    let mut text = format!("{scenario}: {about}\n{backend}, Linux {kernel}\n");
    for path in paths {
        let _ = writeln!(text, "{}", path_line(path));
    }
    text.push('\n');
    let rows = variants.iter().map(row);
    table(
        &mut text,
        &["variant", "runs", "time", "least to most", "rate", "resent", "queue"],
        rows.collect(),
    );
    text.push_str("\nbytes of each round\n");
    for variant in variants {
        let _ = writeln!(text, "  {}: {}", name(variant), rounds(&variant.rounds));
    }
    for variant in variants {
        let _ = write!(text, "\n{}: where the time went\n", name(variant));
        where_it_went(&mut text, variant);
    }
    for variant in variants {
        for problem in &variant.problems {
            let _ = write!(text, "\nnote on {}: {problem}", name(variant));
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn name(variant: &Variant) -> &str {
    if variant.name.is_empty() { "all runs" } else { &variant.name }
}

fn path_line(path: &Measured) -> String {
    let asked = |bps: u64| if bps == 0 { "unlimited".to_owned() } else { BitRate(bps).to_string() };
    let measured = |ns: Option<i64>| {
        ns.map_or_else(|| "not measured".to_owned(), |ns| Duration(ns).to_string())
    };
    let rate =
        path.rate_bps.map_or_else(|| "not measured".to_owned(), |bps| BitRate(bps).to_string());
    format!(
        "path{}: round trip {} (asked {}), {rate} towards the receiver (asked {})",
        if path.variants.is_empty() {
            String::new()
        } else {
            format!(" of {}", path.variants.join(", "))
        },
        measured(path.rtt_ns),
        Duration(path.asked_rtt_ns as i64),
        asked(path.asked_rate_bps),
    )
}

fn row(variant: &Variant) -> Vec<String> {
    let runs = match variant.invalid {
        0 => variant.runs.to_string(),
        invalid => format!("{} of {}", variant.runs, variant.runs + invalid),
    };
    let Spread { min, median, max } = variant.time_ns;
    if variant.runs == 0 {
        return vec![name(variant).to_owned(), runs, "-".to_owned()];
    }
    let rate = (i128::from(variant.bytes) * 8_000_000_000 / i128::from(median.max(1))) as u64;
    let Spread { min: least, max: most, .. } = variant.resent;
    vec![
        name(variant).to_owned(),
        runs,
        Duration(median).to_string(),
        format!("{} to {}", Duration(min), Duration(max)),
        BitRate(rate).to_string(),
        if least == most { least.to_string() } else { format!("{least} to {most}") },
        variant.queue_bytes.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string()),
    ]
}

/// Columns as wide as they need be: the first to the left, all others to the right.
pub(in crate::cmd) fn table(text: &mut String, titles: &[&str], rows: Vec<Vec<String>>) {
    let mut lines = vec![titles.iter().map(|&title| title.to_owned()).collect::<Vec<_>>()];
    lines.extend(rows);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<_> = (0..titles.len()).map(|column| width(column).unwrap_or(0)).collect();
    for line in &lines {
        let mut row = String::new();
        for (column, (cell, wide)) in line.iter().zip(&widths).enumerate() {
            let _ = if column == 0 {
                write!(row, "{cell:<wide$}")
            } else {
                write!(row, "  {cell:>wide$}")
            };
        }
        let _ = writeln!(text, "{}", row.trim_end());
    }
}

/// Bytes of each round; transfers apart.
fn rounds(transfers: &[Vec<Round>]) -> String {
    let of = |rounds: &Vec<Round>| {
        let shown = rounds.iter().take(SHOWN_ROUNDS).map(|round| round.bytes.to_string());
        let mut text = shown.collect::<Vec<_>>().join(" ");
        if rounds.len() > SHOWN_ROUNDS {
            let _ = write!(text, " ... ({} rounds)", rounds.len());
        }
        text
    };
    let shown: Vec<_> = transfers.iter().take(SHOWN_TRANSFERS).map(of).collect();
    let more = transfers.len().saturating_sub(SHOWN_TRANSFERS);
    let tail = if more > 0 { format!(" | ... ({more} more transfers)") } else { String::new() };
    if shown.is_empty() { "none".to_owned() } else { shown.join(" | ") + &tail }
}

/// Two columns: `explain` and the kernel, each in its own words, most time first.
fn where_it_went(text: &mut String, variant: &Variant) {
    let explain = shares(&variant.explain_ns);
    let kernel = variant.kernel_ns.as_ref().map(shares);
    match (explain.is_empty(), &kernel) {
        (true, _) => text.push_str("  no run counts\n"),
        (false, None) => text.push_str("  explain\n"),
        (false, Some(_)) => drop(writeln!(text, "  {:<44}the sending kernel", "explain")),
    }
    let kernel = kernel.unwrap_or_default();
    for at in 0..explain.len().max(kernel.len()) {
        let cell = |rows: &[(String, u64, u64)]| {
            rows.get(at).map_or_else(String::new, |(state, ns, thousandths)| {
                let span = Duration(*ns as i64).to_string();
                let share = format!("{}.{}", thousandths / 10, thousandths % 10);
                format!("{share:>5} %  {span:>8}  {state}")
            })
        };
        let line = format!("  {:<44}{}", cell(&explain), cell(&kernel));
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// States with time and share, most time first; what is below a tenth of a percent is left out.
fn shares(times: &BTreeMap<String, u64>) -> Vec<(String, u64, u64)> {
    let total: u64 = times.values().sum();
    let share = |ns: u64| truth::compare::share(ns, total).unwrap_or(0);
    let mut rows: Vec<_> = times
        .iter()
        .map(|(state, &ns)| (state.clone(), ns, share(ns)))
        .filter(|row| row.2 > 0)
        .collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows
}

/// Ours: what fits a terminal's line.
const SHOWN_ROUNDS: usize = 12;

/// Ours: two warm downloads and one to spare.
const SHOWN_TRANSFERS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reads_as_a_page() {
        let round = |bytes| Round { bytes, segments: 1, limited_by: "cwnd.slow_start".to_owned() };
        let variant = Variant {
            name: "RTT 6 ms".to_owned(),
            runs: 3,
            time_ns: Spread { min: 36_000_000, median: 37_000_000, max: 38_000_000 },
            bytes: 524_331,
            rounds: vec![vec![round(13_075), round(28_960)]],
            explain_ns: BTreeMap::from([
                ("cwnd.slow_start".to_owned(), 30_000_000),
                ("handshake".to_owned(), 7_000_000),
            ]),
            kernel_ns: Some(BTreeMap::from([("cwnd.slow_start".to_owned(), 37_000_000)])),
            queue_bytes: Some(70_000),
            problems: vec!["careful".to_owned()],
            ..Variant::default()
        };
        let lost = Variant { name: "lost".to_owned(), invalid: 2, ..Variant::default() };
        let answer = Answer {
            scenario: "slow-start".to_owned(),
            about: "six round trips".to_owned(),
            backend: "uml:6.1".to_owned(),
            kernel: "6.1.192".to_owned(),
            paths: vec![Measured {
                asked_rtt_ns: 6_000_000,
                asked_rate_bps: 0,
                rtt_ns: Some(6_020_000),
                ..Measured::default()
            }],
            variants: vec![variant, lost],
            ..Answer::default()
        };
        assert_eq!(
            render(&answer),
            "\
slow-start: six round trips
uml:6.1, Linux 6.1.192
path: round trip 6.02 ms (asked 6.00 ms), not measured towards the receiver (asked unlimited)

variant     runs     time       least to most        rate  resent     queue
RTT 6 ms       3  37.0 ms  36.0 ms to 38.0 ms  113 Mbit/s       0  68.4 KiB
lost      0 of 2        -

bytes of each round
  RTT 6 ms: 13075 28960
  lost: none

RTT 6 ms: where the time went
  explain                                     the sending kernel
   81.1 %   30.0 ms  cwnd.slow_start          100.0 %   37.0 ms  cwnd.slow_start
   18.9 %   7.00 ms  handshake

lost: where the time went
  no run counts

note on RTT 6 ms: careful
"
        );
    }
}
