//! Is the model in WASM the same as here, bit for bit?
//!
//!     twins questions [SEED]     a grid of questions, one a line: every shipped scenario on every
//!                                known kernel, and random ones
//!     twins answers              answers the questions on its standard input, one a line
//!     twins compare A B          holds two files of answers against each other, line by line
//!
//! `scripts/check twins` has `scripts/model.mjs` answer the same questions by the module.

use std::io::{BufRead as _, BufWriter, Write};
use std::process::ExitCode;

use tcpwhy_model::profile::KernelProfile;
use tcpwhy_model::scenario::random;
use tcpwhy_wasm::answer_to;

/// Random scenarios of a grid. Ours: with the shipped ones some ten seconds without optimisation.
const RANDOM: u32 = 160;

/// Differences that are printed.
const SHOWN: u32 = 3;

const SHIPPED: [&str; 6] = [
    include_str!("../../../scenarios/idle-restart.toml"),
    include_str!("../../../scenarios/initcwnd.toml"),
    include_str!("../../../scenarios/random-loss.toml"),
    include_str!("../../../scenarios/slow-start.toml"),
    include_str!("../../../scenarios/sndbuf.toml"),
    include_str!("../../../scenarios/zero-window.toml"),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["questions"] => questions(1),
        ["questions", seed] => questions(seed.parse().unwrap_or(1)),
        ["answers"] => answers(),
        ["compare", a, b] => compare(a, b),
        _ => Err("twins questions [SEED] | answers | compare A B".into()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            say(&format!("twins: {error}"));
            ExitCode::from(2)
        }
    }
}

type Done = Result<ExitCode, Box<dyn std::error::Error>>;

fn questions(seed: u64) -> Done {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let kernels = KernelProfile::KNOWN.map(|known| format!("{}.{}", known.major, known.minor));
    let mut ask = |scenario: &str, kernel: &str| {
        let question =
            serde_json::json!({ "scenario": scenario, "kernel": kernel, "digest": true });
        writeln!(out, "{question}")
    };
    for scenario in SHIPPED {
        for kernel in &kernels {
            ask(scenario, kernel)?;
        }
    }
    for number in 0..RANDOM {
        ask(
            &random::scenario(random::Kinds::Plain, seed, number),
            &kernels[number as usize % kernels.len()],
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answers() -> Done {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for question in std::io::stdin().lock().lines() {
        writeln!(out, "{}", answer_to(question?.as_bytes()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Status 1 if a line differs, or if there is nothing to compare.
fn compare(a: &str, b: &str) -> Done {
    let (a, b) = (std::fs::read_to_string(a)?, std::fs::read_to_string(b)?);
    let (a, b): (Vec<_>, Vec<_>) = (a.lines().collect(), b.lines().collect());
    let mut differ = 0;
    for at in 0..a.len().max(b.len()) {
        let lines = (a.get(at).copied(), b.get(at).copied());
        if lines.0 != lines.1 {
            differ += 1;
            if differ > SHOWN {
                continue;
            }
            let [a, b] = [lines.0, lines.1].map(|line| line.unwrap_or("nothing"));
            say(&format!("answer {at}:\n  {a}\n  {b}"));
        }
    }
    let ran = a.iter().filter(|line| line.contains("\"digest\":")).count();
    say(&format!("{} answers, {ran} of runs, {differ} differ", a.len()));
    Ok(if differ > 0 || ran == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn say(line: &str) {
    println!("{line}");
}
