//! The answer of `lab run` as text: the paths, a table of variants, what the programs saw, where the time went by
//! `explain`, model and kernel, what the kernels counted, what was published, and whether it came as expected.

use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet};

use tcpwhy::units::{BitRate, Bytes, Duration};
use tcpwhy_words::page::{Page, plain};

use super::counters::telling;
use super::modelled::Modelled;
use super::outcome::Round;
use super::path::Measured;
use super::sockets::Checked;
use super::spread::{Spread, Times};
use super::summary::{Answer, Failed, Variant};
use crate::cmd::columns::{percent, table};

/// The whole answer.
pub(super) fn render(answer: &Answer) -> String {
    let Answer { scenario, about, backend, kernel, paths, variants, .. } = answer;
    let mut text = wrapped(0, &format!("{scenario}: {about}"));
    let _ = writeln!(text, "{backend}, Linux {kernel}");
    for path in paths {
        text += &wrapped(0, &path_line(path));
    }
    text.push('\n');
    let titles = ["variant", "runs", "time", "least to most", "rate", "resent", "queue"];
    table(&mut text, &titles, variants.iter().map(row).collect());
    calls(&mut text, variants);
    text.push_str("\nbytes of each round\n");
    for variant in variants {
        text += &wrapped(2, &format!("{}: {}", name(variant), rounds(&variant.rounds)));
    }
    for variant in variants {
        text.push('\n');
        where_it_went(&mut text, variant);
    }
    counters(&mut text, variants);
    failed(&mut text, variants);
    sockets(&mut text, variants);
    articles(&mut text, variants);
    verdicts(&mut text, variants);
    notes(&mut text, variants);
    text
}

/// Words within 80 columns, the first line indented by so many, the others by two more.
fn wrapped(indent: usize, words: &str) -> String {
    let mut page = Page::new(WIDTH, false);
    page.wrapped(indent, indent + 2, &[plain(words)]);
    page.into_text()
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
    let Spread { median, .. } = variant.time_ns;
    if variant.runs == 0 {
        return vec![name(variant).to_owned(), runs, "-".to_owned()];
    }
    let rate = (i128::from(variant.bytes) * 8_000_000_000 / i128::from(median.max(1))) as u64;
    let Spread { min: least, max: most, .. } = variant.resent;
    vec![
        name(variant).to_owned(),
        runs,
        Duration(median).to_string(),
        range(variant.time_ns),
        BitRate(rate).to_string(),
        if least == most { least.to_string() } else { format!("{least} to {most}") },
        variant.queue_bytes.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string()),
    ]
}

/// `36.0 to 38.0 ms`: the unit once if both have it; `-` where all are one.
fn range(Spread { min, max, .. }: Spread) -> String {
    let (least, most) = (Duration(min).to_string(), Duration(max).to_string());
    match (least.split_once(' '), most.split_once(' ')) {
        _ if least == most => "-".to_owned(),
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {most}"),
        _ => format!("{least} to {most}"),
    }
}

/// What the programs saw: their connections, and their calls if there are more.
fn calls(text: &mut String, variants: &[Variant]) {
    let mut rows = Vec::new();
    for variant in variants {
        for application in &variant.applications {
            let of = match application.name.as_str() {
                "application" => name(variant).to_owned(),
                named => format!("{}, {named}", name(variant)),
            };
            let row = |what: &str, first: Option<i64>, times: Times| {
                let shown = |ns: i64| Duration(ns).to_string();
                let first = first.map_or_else(String::new, shown);
                vec![
                    of.clone(),
                    what.to_owned(),
                    times.count.to_string(),
                    first,
                    shown(times.median_ns),
                    shown(times.p95_ns),
                ]
            };
            rows.push(row("connection", None, application.connections));
            rows.push(row("call", Some(application.first_ns), application.calls));
            rows.extend(application.warm.map(|warm| row("warm call", None, warm)));
        }
    }
    if !rows.is_empty() {
        text.push_str("\nas the programs saw it\n");
        table(text, &["variant", "what", "count", "first", "median", "p95"], rows);
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

/// A line a state: `explain`, the model and the kernel, each in its own words, most time first.
fn where_it_went(text: &mut String, variant: &Variant) {
    let by = match &variant.controllers[..] {
        [] => String::new(),
        names => format!(", {}", names.join(" and ")),
    };
    let _ = writeln!(text, "{}{by}: where the time went", name(variant));
    let empty = BTreeMap::new();
    let model = variant.model.as_ref().filter(|model| model.time_ns.is_some());
    let columns = [
        Some(&variant.explain_ns),
        model.map(|model| &model.states_ns),
        variant.kernel_ns.as_ref(),
    ];
    if variant.explain_ns.is_empty() {
        text.push_str("  no run counts\n");
        return;
    }
    let mut states: Vec<&String> =
        columns.iter().flatten().flat_map(|times| times.keys()).collect();
    let cells = columns.map(|times| Column::of(times.unwrap_or(&empty)));
    states.sort();
    states.dedup();
    states.retain(|state| cells.iter().any(|column| column.share(state) > 0));
    states
        .sort_by_key(|state| std::cmp::Reverse(cells.each_ref().map(|column| column.share(state))));
    let line = |first: &str, cells: [String; 3]| {
        let [explain, model, kernel] = cells;
        format!("  {first:<24}{explain:>18}{model:>18}{kernel:>18}").trim_end().to_owned() + "\n"
    };
    let title = |of: Option<String>| of.unwrap_or_else(|| "-".to_owned());
    let titles = [
        Some("explain".to_owned()),
        model.map(|model| format!("model of {}", model.kernel)),
        variant.kernel_ns.as_ref().map(|_| "sender's kernel".to_owned()),
    ];
    *text += &line("", titles.map(title));
    let taken = Duration(variant.time_ns.median).to_string();
    // Of the throw whose states stand below it.
    let modelled = model.and_then(|model| model.first_ns);
    let modelled = modelled.map(|ns| Duration(ns).to_string()).unwrap_or_default();
    *text += &line("to the last ACK of data", [taken, modelled, String::new()]);
    for state in states {
        *text += &line(state, cells.each_ref().map(|column| column.cell(state)));
    }
    if let Some(Modelled { kernel, refused: Some(why), .. }) = &variant.model {
        *text += &wrapped(2, &format!("the model of {kernel} cannot run it: {why}"));
    }
}

/// One account of the time.
struct Column<'t> {
    times: &'t BTreeMap<String, u64>,
    total: u64,
}

impl<'t> Column<'t> {
    fn of(times: &'t BTreeMap<String, u64>) -> Self {
        Self { times, total: times.values().sum() }
    }

    /// In thousandths; what is less is not shown.
    fn share(&self, state: &str) -> u64 {
        let ns = self.times.get(state).copied().unwrap_or(0);
        truth::compare::share(ns, self.total).unwrap_or(0)
    }

    fn cell(&self, state: &str) -> String {
        match self.times.get(state) {
            Some(&ns) if self.share(state) > 0 => {
                let share = percent(Some(self.share(state)));
                format!("{} {share:>8}", Duration(ns as i64))
            }
            _ => String::new(),
        }
    }
}

/// What the kernels counted, but for packets.
fn counters(text: &mut String, variants: &[Variant]) {
    let mut lines = String::new();
    for variant in variants {
        for (host, moved) in variant.counters.iter().flatten() {
            let told: Vec<_> =
                telling(moved).into_iter().map(|(name, by)| format!("{name}\u{a0}{by}")).collect();
            if !told.is_empty() {
                lines += &wrapped(2, &format!("{}, {host}: {}", name(variant), told.join(", ")));
            }
        }
    }
    if !lines.is_empty() {
        let _ = write!(text, "\ncounters that moved in the median run\n{lines}");
    }
}

/// Why connections failed.
fn failed(text: &mut String, variants: &[Variant]) {
    let mut lines = String::new();
    for variant in variants {
        for Failed { application, count, why } in &variant.failed {
            let of = match application.as_str() {
                "application" => name(variant).to_owned(),
                named => format!("{}, {named}", name(variant)),
            };
            lines += &wrapped(2, &format!("{of}: {count} {why}"));
        }
    }
    if !lines.is_empty() {
        let _ = write!(text, "\nconnections that failed in the median run\n{lines}");
    }
}

/// What looks at the sockets saw, and what `check` finds by them.
fn sockets(text: &mut String, variants: &[Variant]) {
    let (mut rows, mut found) = (Vec::new(), String::new());
    for variant in variants {
        let Some(sockets) = &variant.sockets else { continue };
        for (look, host) in
            sockets.looks.iter().flat_map(|look| [(look, "client"), (look, "server")])
        {
            rows.extend(look.of(host).iter().map(|group| {
                let range = |[least, most]: [u64; 2]| {
                    if least == most { least.to_string() } else { format!("{least} to {most}") }
                };
                vec![
                    name(variant).to_owned(),
                    Duration(look.at_ns as i64).to_string(),
                    host.to_owned(),
                    format!("{} {}", group.count, group.state.to_uppercase()),
                    range(group.recv_q),
                    range(group.send_q),
                    group.holder.words().to_owned(),
                ]
            }));
        }
        for Checked { host, code, title } in &sockets.checked {
            found += &wrapped(2, &format!("{}, {host}: {title} [{code}]", name(variant)));
        }
    }
    if !rows.is_empty() {
        text.push_str("\nsockets in the median run\n");
        let titles = ["variant", "at", "host", "sockets", "Recv-Q", "Send-Q", "held by"];
        table(text, &titles, rows);
    }
    if !found.is_empty() {
        let _ = write!(text, "\nwhat `tcpwhy check` says of the hosts by these looks\n{found}");
    }
}

/// What was published, beside what came.
fn articles(text: &mut String, variants: &[Variant]) {
    let mut last = (String::new(), String::new());
    for variant in variants {
        let Some(article) = &variant.article else { continue };
        let said = (article.number.clone(), article.figure.clone());
        if said != last {
            let heading = format!("article {}: {}", article.number, article.figure);
            text.push('\n');
            *text += &wrapped(0, &heading);
            if !article.differs.is_empty() {
                *text += &wrapped(2, &format!("differs: {}", article.differs));
            }
            last = said;
        }
        if variant.runs > 0 {
            let count = variant.rounds.first().map_or(0, Vec::len);
            let rate = i128::from(variant.bytes) * 8_000_000_000;
            let rate = BitRate((rate / i128::from(variant.time_ns.median.max(1))) as u64);
            let rounds = if count == 1 { "round" } else { "rounds" };
            let time = Duration(variant.time_ns.median);
            let here = format!("here, {}: {time}, {count} {rounds}, {rate}", name(variant));
            *text += &wrapped(2, &here);
        }
    }
}

/// Whether it came as expected: what was not first.
fn verdicts(text: &mut String, variants: &[Variant]) {
    for is_kept in [false, true] {
        let told =
            variants.iter().filter_map(|variant| Some((variant, variant.expected.as_ref()?)));
        let told: Vec<_> = told.filter(|(_, verdict)| verdict.as_expected == is_kept).collect();
        if told.is_empty() {
            continue;
        }
        text.push_str(if is_kept { "\nas expected\n" } else { "\nNOT as expected\n" });
        for (variant, verdict) in told {
            let said = if is_kept { &verdict.held } else { &verdict.broken };
            *text += &wrapped(2, &format!("{}: {}", name(variant), said.join("; ")));
        }
    }
}

fn notes(text: &mut String, variants: &[Variant]) {
    let mut told = BTreeSet::new();
    for variant in variants {
        for problem in &variant.problems {
            if told.insert((name(variant), problem)) {
                text.push('\n');
                *text += &wrapped(0, &format!("note on {}: {problem}", name(variant)));
            }
        }
    }
}

/// Columns of a terminal.
const WIDTH: usize = 80;

/// Ours: what fits two lines of a terminal.
const SHOWN_ROUNDS: usize = 12;

/// Ours: two warm downloads and one to spare.
const SHOWN_TRANSFERS: usize = 3;

#[cfg(test)]
mod tests {
    use super::super::expected::Verdict;
    use super::super::summary::{Application, Article};
    use super::*;

    fn times(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
        of.iter().map(|(state, ns)| ((*state).to_owned(), *ns)).collect()
    }

    fn full() -> Variant {
        let round = |bytes| Round { bytes, segments: 1, limited_by: "cwnd.slow_start".to_owned() };
        let calls = |count| Times { count, median_ns: 30_000_000, p95_ns: 31_000_000 };
        let model = Modelled {
            kernel: "6.1".to_owned(),
            time_ns: Some(Spread { min: 36_400_000, median: 36_400_000, max: 36_400_000 }),
            first_ns: Some(36_400_000),
            states_ns: times(&[("cwnd.slow_start", 36_000_000)]),
            refused: None,
        };
        let moved = [("TcpInSegs", 300), ("TcpRetransSegs", 2), ("TcpExtTCPLossProbes", 1)];
        let moved = moved.map(|(name, by)| (name.to_owned(), by)).into();
        Variant {
            name: "RTT 6 ms".to_owned(),
            runs: 3,
            time_ns: Spread { min: 36_000_000, median: 37_000_000, max: 38_000_000 },
            bytes: 524_331,
            rounds: vec![vec![round(13_075), round(28_960)]],
            controllers: vec!["cubic".to_owned()],
            applications: vec![Application {
                name: "application".to_owned(),
                connections: calls(3),
                first_ns: 33_000_000,
                calls: calls(6),
                warm: Some(calls(3)),
            }],
            explain_ns: times(&[("cwnd.slow_start", 30_000_000), ("handshake", 7_000_000)]),
            kernel_ns: Some(times(&[("cwnd.slow_start", 36_000_000), ("app", 1_000_000)])),
            queue_bytes: Some(70_000),
            model: Some(model),
            counters: Some(BTreeMap::from([("server", moved)])),
            article: Some(Article {
                number: "000".to_owned(),
                figure: "63 ms at a round trip of 7 ms".to_owned(),
                differs: "a driver that gathers packets".to_owned(),
            }),
            expected: Some(Verdict {
                as_expected: true,
                held: vec![
                    "cwnd held the sender longest (81.0 %)".to_owned(),
                    "2 rounds".to_owned(),
                ],
                broken: Vec::new(),
            }),
            problems: vec!["careful".to_owned()],
            ..Variant::default()
        }
    }

    #[test]
    fn an_answer_reads_as_a_page() {
        let lost = Variant {
            name: "lost".to_owned(),
            invalid: 2,
            expected: Some(Verdict {
                broken: vec!["no run counts".to_owned()],
                ..Verdict::default()
            }),
            ..Variant::default()
        };
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
            variants: vec![full(), lost],
            ..Answer::default()
        };
        let text = render(&answer);
        let reviewed = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cmd/lab/answer.txt");
        let reviewed = std::fs::read_to_string(reviewed).unwrap_or_default();
        assert!(text == reviewed, "it is now:\n{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(WIDTH), "{widest:?}");
    }

    #[test]
    fn what_the_model_cannot_run_is_told_with_the_reason() {
        let refused = Modelled {
            kernel: "6.18".to_owned(),
            refused: Some("`vegas` is no controller of the model".to_owned()),
            ..Modelled::default()
        };
        let variant = Variant { model: Some(refused), kernel_ns: None, ..full() };
        let mut text = String::new();
        where_it_went(&mut text, &variant);
        assert!(
            text.contains(
                "  the model of 6.18 cannot run it: `vegas` is no controller of the model\n"
            ),
            "{text}"
        );
        assert!(text.contains("explain                 -                 -\n"), "{text}");
    }
}
