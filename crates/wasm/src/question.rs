//! A question and its answer.
//!
//! ```text
//! {"scenario": TOML, "set": ["path.rtt=20ms"], "kernel": "6.12", "digest": true}
//! {"format": "tcpwhy-predict/1", "runs": [..]}      as `tcpwhy predict --json`
//! {"format": "tcpwhy-predict/1", "error": ".."}     what is wrong with the question
//! ```
//!
//! Only `scenario` must be there. With `digest` each run carries the digest of its whole trace, too:
//! every segment, every state, every wait.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tcpwhy_model::predict::{FORMAT, MOST_WORK, Prediction, Run};
use tcpwhy_model::profile::KernelProfile;
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::scenario::plan::Plan;
use tcpwhy_model::world::{Keep, Kernels, World};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    scenario: String,
    #[serde(default)]
    set: Vec<String>,
    #[serde(default = "newest")]
    kernel: String,
    #[serde(default)]
    digest: bool,
}

/// As `tcpwhy predict --kernel` has it where nothing is said.
fn newest() -> String {
    "6.12".to_owned()
}

#[derive(Serialize)]
struct Answer {
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<serde_json::Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    run: Run<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

/// The answer to a question, whatever it is.
pub fn answer_to(question: &[u8]) -> String {
    let answer = match runs(question) {
        Ok(runs) => Answer { format: FORMAT, runs: Some(runs), error: None },
        Err(error) => Answer { format: FORMAT, runs: None, error: Some(error) },
    };
    serde_json::to_string(&answer).unwrap_or_default()
}

fn runs(question: &[u8]) -> Result<Vec<serde_json::Value>, String> {
    let question: Question = serde_json::from_slice(question)
        .map_err(|error| format!("cannot read the question: {error}"))?;
    let scenario = Scenario::read("question", &question.scenario, &question.set)
        .map_err(|error| format!("cannot read the scenario: {error}"))?;
    let kernel = question.kernel.parse().ok().and_then(KernelProfile::known);
    let kernels = kernel.map(Kernels::both).ok_or_else(|| {
        format!("`{}` is no kernel that the model knows; it knows 4.18 to 6.18", question.kernel)
    })?;
    scenario.variants.iter().map(|plan| run(&question, plan, kernels)).collect()
}

fn run(question: &Question, plan: &Plan, kernels: Kernels) -> Result<serde_json::Value, String> {
    let refused = |error| format!("the model cannot run it: {error}");
    let prediction = Prediction::within(plan, kernels, MOST_WORK).map_err(refused)?;
    let prediction = prediction.ok_or_else(|| {
        format!("it takes more than {MOST_WORK} events of the model; ask for a smaller size, or set a shorter `limit`")
    })?;
    let mut settings = BTreeMap::from([("kernel", question.kernel.as_str())]);
    settings.extend(question.set.iter().filter_map(|set| set.split_once('=')));
    let digest = if question.digest {
        let keep = Keep {
            segments: true,
            handed_down: true,
            states: true,
            limits: true,
            ..Keep::default()
        };
        let (outcome, trace) = World::new(plan, kernels, keep).map_err(refused)?.run();
        Some(format!("{:016x}", trace.digest(&outcome)))
    } else {
        None
    };
    let told = Told { run: prediction.told(plan, settings), digest };
    serde_json::to_value(&told).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn told(question: &str) -> Value {
        serde_json::from_str(&answer_to(question.as_bytes())).expect("JSON")
    }

    const DOWNLOAD: &str =
        r#""scenario":"[path]\nrtt = \"7ms\"\n[application]\ndownload = \"512KiB\"""#;

    #[test]
    fn a_run_is_told_as_predict_tells_it() {
        let told = told(&format!(r#"{{{DOWNLOAD},"set":["path.rate=1gbit"]}}"#));
        let run = &told["runs"][0];
        assert_eq!(run["bytes"], 200 + (512 << 10), "with the head");
        assert_eq!(run["settings"]["path.rate"], "1gbit");
        assert_eq!(run["settings"]["kernel"], "6.12");
        let waits = run["waits_ns"].as_object().expect("waits").values();
        assert_eq!(waits.filter_map(Value::as_u64).sum::<u64>(), run["time_ns"]);
        assert!(run.get("digest").is_none() && told.get("error").is_none());
    }

    #[test]
    fn the_digest_follows_the_run() {
        let digest = |more: &str| told(&format!(r#"{{{DOWNLOAD},"digest":true{more}}}"#));
        let digest = |more: &str| digest(more)["runs"][0]["digest"].as_str().map(str::to_owned);
        let plain = digest("").expect("a digest");
        assert_eq!(plain.len(), 16);
        assert_eq!(digest("").as_ref(), Some(&plain));
        assert_ne!(digest(r#","kernel":"5.10""#).as_ref(), Some(&plain));
        assert_ne!(digest(r#","set":["path.rtt=7000001ns"]"#).as_ref(), Some(&plain));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (question, said) in [
            ("", "cannot read the question"),
            (r#"{"scenario":"","colour":1}"#, "unknown field"),
            (r#"{"scenario":"[path"}"#, "cannot read the scenario: line 1, column"),
            (&format!(r#"{{{DOWNLOAD},"kernel":"2.6"}}"#), "4.18 to 6.18"),
            (&format!(r#"{{{DOWNLOAD},"set":["path.colour=red"]}}"#), "in `--set path.colour=red`"),
            (
                &format!(r#"{{{DOWNLOAD},"set":["server.socket.congestion=vegas"]}}"#),
                "the model cannot run it",
            ),
        ] {
            let told = told(question);
            let error = told["error"].as_str().expect("an error");
            assert!(error.contains(said), "{question}: {error}");
        }
    }
}
