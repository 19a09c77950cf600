//! A run's congestion window: a line for each round, or a picture over time.

use core::fmt::Write;

use serde_json::{Value, json};
use tcpwhy::units::Duration;
use tcpwhy_model::ladder::{Loss, Rung};

use super::Run;

/// Columns of the bar of the largest window.
const BAR: usize = 40;

/// The picture: rows of the window, columns of the time.
const ROWS: usize = 14;
const COLUMNS: usize = 72;

/// A line for each round of each run.
pub(super) fn ladders(runs: &[Run]) -> String {
    let mut text = String::new();
    for run in runs {
        let rungs = &run.ladder;
        let most = rungs.iter().map(|rung| rung.cwnd).max().unwrap_or(0).max(1) as usize;
        heading(&mut text, run);
        text.push_str("round      from  window  threshold  sent  again\n");
        for (number, rung) in rungs.iter().enumerate() {
            let threshold = rung.ssthresh.map_or_else(|| "-".to_owned(), |each| each.to_string());
            let bar = "█".repeat((rung.cwnd as usize * BAR).div_ceil(most));
            let line = format!(
                "{:>5}  {:>8}  {:>6}  {threshold:>9}  {:>4}  {:>5}  {bar}  {}",
                number + 1,
                duration(rung.start_ns),
                rung.cwnd,
                rung.packets,
                rung.resent,
                rung.loss.map_or("", words),
            );
            text += line.trim_end();
            text.push('\n');
        }
    }
    text
}

/// The window over time of each run.
pub(super) fn plots(runs: &[Run]) -> String {
    let mut text = String::new();
    for run in runs {
        heading(&mut text, run);
        plot(&mut text, &run.ladder, run.prediction.time_ns.max(1));
    }
    text
}

fn heading(text: &mut String, run: &Run) {
    let mut words: Vec<&str> = run.values.iter().map(String::as_str).collect();
    words.extend(Some(run.variant.as_str()).filter(|variant| !variant.is_empty()));
    let _ = write!(text, "\ncongestion window, in segments ({})\n\n", words.join(", "));
}

fn plot(text: &mut String, rungs: &[Rung], end_ns: u64) {
    let most = rungs.iter().map(|rung| rung.cwnd).max().unwrap_or(0).max(1) as usize;
    let column = |ns: u64| {
        let at = u128::from(ns.min(end_ns)) * (COLUMNS as u128 - 1) / u128::from(end_ns);
        at as usize
    };
    let row = |cwnd: u32| ROWS - 1 - (cwnd as usize).min(most) * (ROWS - 1) / most;
    let mut cells = vec![[' '; COLUMNS]; ROWS];
    let ends = rungs.iter().skip(1).map(|rung| rung.start_ns).chain([end_ns]);
    for (rung, end) in rungs.iter().zip(ends) {
        let span = column(rung.start_ns)..=column(end.max(rung.start_ns));
        for at in span.clone() {
            if let Some(threshold) = rung.ssthresh.filter(|each| *each as usize <= most) {
                let cell = &mut cells[row(threshold)][at];
                *cell = if *cell == ' ' { '·' } else { *cell };
            }
        }
        for at in span {
            cells[row(rung.cwnd)][at] = '▄';
        }
        if let Some(loss) = rung.loss {
            cells[row(rung.cwnd)][column(end)] = mark(loss);
        }
    }
    for (place, cells) in cells.iter().enumerate() {
        let label = match place {
            0 => most.to_string(),
            _ if place == ROWS - 1 => "0".to_owned(),
            _ => String::new(),
        };
        let line: String = cells.iter().collect();
        let _ = writeln!(text, "{label:>6} {}", line.trim_end());
    }
    let _ = writeln!(text, "{:>6} 0{:>2$}", "", duration(end_ns), COLUMNS - 1);
    let mut legend = "▄ window".to_owned();
    if cells.iter().flatten().any(|cell| *cell == '·') {
        legend += ", · threshold";
    }
    for loss in [Loss::Timeout, Loss::FastRetransmit, Loss::Told] {
        if cells.iter().flatten().any(|cell| *cell == mark(loss)) {
            let _ = write!(legend, ", {} {}", mark(loss), words(loss));
        }
    }
    let _ = writeln!(text, "       {legend}");
}

/// The rounds of a run for JSON.
pub(super) fn json(rungs: &[Rung]) -> Vec<Value> {
    let one = |rung: &Rung| {
        json!({
            "start_ns": rung.start_ns,
            "cwnd": rung.cwnd,
            "ssthresh": rung.ssthresh,
            "packets": rung.packets,
            "resent": rung.resent,
            "loss": rung.loss.map(words),
        })
    };
    rungs.iter().map(one).collect()
}

const fn words(loss: Loss) -> &'static str {
    match loss {
        Loss::FastRetransmit => "fast retransmit",
        Loss::Timeout => "timeout",
        Loss::Told => "congestion told",
    }
}

const fn mark(loss: Loss) -> char {
    match loss {
        Loss::FastRetransmit => 'F',
        Loss::Timeout => 'T',
        Loss::Told => 'C',
    }
}

pub(super) fn duration(ns: u64) -> String {
    Duration(i64::try_from(ns).unwrap_or(i64::MAX)).to_string()
}
