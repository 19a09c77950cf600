//! "And if I changed it?" in a page: the model repeats a transfer of the page's report, and runs it otherwise.
//!
//! ```text
//! what was fitted to it, as the page's data has it                             study()
//!   -> {"sender": .., "seen": .., "replay": .., "repeats": .., "why": .., "fitted": ..}
//! {"set": ["path.rtt=20ms"]} or {"again": true}, and "range": true             ask()
//!   -> {"account": .., "picture": ..}, or {"account": .., "low_ns": .., "high_ns": .., "because": ..}
//! ```

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use tcpwhy::report::Limit;
use tcpwhy::view::web::picture::{self, Figure};
use tcpwhy_model::fit::Fit;
use tcpwhy_model::scenario::plan::{Plan, Queue, Way};
use tcpwhy_model::whatif::{Branch, Picture, Study, Told};
use tcpwhy_model::world::Side;

thread_local! {
    /// The transfer that is asked about.
    static STUDY: RefCell<Option<Study>> = const { RefCell::new(None) };
}

/// How well the model repeats the transfer.
#[derive(Serialize)]
struct Repeated {
    sender: &'static str,
    seen: Told,
    replay: Option<Told>,
    repeats: bool,
    /// Why nothing is said of changes.
    why: Option<String>,
    cut_short: bool,
    kernel: Option<String>,
    fitted: Option<Fitted>,
    /// What the path has shown: bits a second, and bytes that wait for them.
    proven: Option<(u64, u64)>,
    scenario: String,
}

/// The settings that sliders begin with; what is not said is the kernel's own.
#[derive(Serialize)]
struct Fitted {
    rtt_ns: u64,
    /// 0 is unlimited.
    rate_bps: u64,
    queue_bytes: Option<u64>,
    initcwnd: Option<u64>,
    congctl: String,
    restarts: bool,
    loss_ppm: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    set: Vec<String>,
    #[serde(default)]
    again: bool,
    #[serde(default)]
    range: bool,
}

#[derive(Serialize)]
struct Run {
    account: Told,
    unfinished: Vec<String>,
    picture: Drawn,
}

/// What is laid over the graphs: times and bytes before `before` do not belong to it.
#[derive(Serialize)]
struct Drawn {
    figures: Vec<Figure>,
    limits: Vec<(i64, i64, char)>,
    duration_ns: i64,
    before: (i64, u64),
    most_bps: Option<u64>,
}

#[derive(Serialize)]
struct Ranged {
    account: Told,
    low_ns: i64,
    high_ns: i64,
    because: Vec<&'static str>,
    unfinished: Vec<String>,
}

#[derive(Serialize)]
struct Wrong {
    error: String,
}

/// Repeats the transfer in `text`, and keeps it for questions.
pub(crate) fn study(text: &[u8]) -> String {
    STUDY.set(None);
    told(repeat(text))
}

/// Answers a question about it.
pub(crate) fn ask(text: &[u8]) -> String {
    STUDY.with_borrow(|study| {
        let asked = serde_json::from_slice::<Asked>(text)
            .map_err(|error| format!("cannot read the question: {error}"));
        match (study, asked) {
            (_, Err(error)) => told::<Run>(Err(error)),
            (None, Ok(_)) => told::<Run>(Err("no transfer is repeated".to_owned())),
            (Some(study), Ok(asked)) if asked.range => told(range(study, &asked)),
            (Some(study), Ok(asked)) => told(run(study, &asked)),
        }
    })
}

fn told<T: Serialize>(answer: Result<T, String>) -> String {
    let text = match answer {
        Ok(answer) => serde_json::to_string(&answer),
        Err(error) => serde_json::to_string(&Wrong { error }),
    };
    text.unwrap_or_default()
}

fn repeat(text: &[u8]) -> Result<Repeated, String> {
    let fit: Fit = serde_json::from_slice(text)
        .map_err(|error| format!("cannot read what was fitted to the transfer: {error}"))?;
    let study = Study::of_fit(fit);
    let sender = study.fit.sender;
    let why = match (study.nearest(), study.near, study.doubt()) {
        (None, ..) => Some("the model cannot run the scenario that was fitted to it".to_owned()),
        (Some(nearest), 0, _) => {
            let gap = nearest.gap(&study.fit);
            Some(format!(
                "they part most in {}, by {} % of the time that no application let pass",
                gap.state, gap.percent
            ))
        }
        (_, _, Some(doubt)) => Some(doubt.to_string()),
        _ => None,
    };
    let kernel = study.nearest().map(|replay| match sender {
        Side::Client => replay.kernels.client.version.to_string(),
        Side::Server => replay.kernels.server.version.to_string(),
    });
    let repeated = Repeated {
        sender: sender.name(),
        seen: Told::from(&study.fit.seen),
        replay: study.nearest().map(|replay| Told::from(&replay.account)),
        repeats: study.repeats(),
        why,
        cut_short: study.was_cut_short,
        kernel,
        fitted: study.plan().map(|plan| fitted(&plan, sender, study.fit.loss)),
        proven: study.fit.proven,
        scenario: study.fit.scenario(1),
    };
    STUDY.set(Some(study));
    Ok(repeated)
}

fn fitted(plan: &Plan, sender: Side, loss_ppm: u32) -> Fitted {
    let (host, way): (_, &Way) = match sender {
        Side::Client => (&plan.client, &plan.path.up),
        Side::Server => (&plan.server, &plan.path.down),
    };
    let sysctl = |name: &str| host.sysctl.get(name).map(String::as_str);
    let (rate_bps, queue_bytes) = link(way);
    let controller = host.route.get("congctl").map(String::as_str);
    let controller = controller.or_else(|| sysctl("net.ipv4.tcp_congestion_control"));
    Fitted {
        rtt_ns: plan.path.up.delay_ns.saturating_add(plan.path.down.delay_ns),
        rate_bps,
        queue_bytes,
        initcwnd: host.route.get("initcwnd").and_then(|value| value.parse().ok()),
        congctl: controller.unwrap_or("cubic").to_owned(),
        restarts: sysctl("net.ipv4.tcp_slow_start_after_idle") != Some("0"),
        loss_ppm,
    }
}

/// Rate and queue of what stands for the link: a plain one, or a bucket.
const fn link(way: &Way) -> (u64, Option<u64>) {
    match (&way.bucket, &way.queue) {
        (Some(bucket), _) => (bucket.rate, Some(bucket.queue)),
        (None, Queue::Bytes(bytes)) => (way.rate, Some(*bytes)),
        (None, _) => (way.rate, None),
    }
}

fn run(study: &Study, asked: &Asked) -> Result<Run, String> {
    let picture = if asked.again { study.picture_again() } else { study.picture(&asked.set) };
    let picture = picture.map_err(|why| why.to_string())?;
    Ok(Run {
        account: Told::from(&picture.account),
        unfinished: picture.unfinished.clone(),
        picture: drawn(&picture, study.fit.sender),
    })
}

fn drawn(picture: &Picture, sender: Side) -> Drawn {
    let at = usize::from(sender == Side::Server);
    let direction = picture.connection.directions[at].as_deref();
    let limits = direction.map(|direction| {
        let piece = |each: &Limit| (each.start_ns, each.end_ns, each.state.letter());
        direction.limits.iter().map(piece).collect()
    });
    let figures = direction
        .and_then(|direction| picture::figures(&picture.connection, at, direction))
        .unwrap_or_default();
    let rounds = direction.map_or(&[][..], |direction| &direction.rounds);
    Drawn {
        figures,
        limits: limits.unwrap_or_default(),
        duration_ns: picture.connection.duration_ns,
        before: picture.before,
        most_bps: rounds.iter().filter_map(|round| round.delivery_rate_bps).max(),
    }
}

fn range(study: &Study, asked: &Asked) -> Result<Ranged, String> {
    let answer = if asked.again { study.ask_again() } else { study.ask(&asked.set) };
    let answer = answer.map_err(|why| why.to_string())?;
    Ok(Ranged {
        account: Told::from(&answer.best),
        low_ns: answer.low_ns,
        high_ns: answer.high_ns,
        because: answer.because.iter().map(|branch| words(*branch)).collect(),
        unfinished: answer.unfinished,
    })
}

const fn words(branch: Branch) -> &'static str {
    match branch {
        Branch::Kernel => "other kernels that repeat the capture as well",
        Branch::NoMoreRoom => "a path with no more room than it has shown",
        Branch::Rate => "a path without the rate that fits",
        Branch::Losses => "other losses, or none",
        Branch::Chance => "other throws of the dice, for chance decides after such a change",
        Branch::Windows => "windows as the capture has them",
        Branch::Receiver => "other drivers of the receiver",
        Branch::Drops => "a little more or less room before packets are dropped",
        Branch::HyStart => "an earlier end of slow start",
        Branch::Cause => "other causes that repeat the capture nearly as well",
        Branch::Replay => "how far the unchanged run is off",
        Branch::Shares => "how much of its time the unchanged run was held by something else",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::explain;

    const LISTING: &[u8] =
        include_bytes!("../../../testdata/articles/download-512k-rtt7ms.tcpdump.txt");

    fn page() -> Value {
        explain::begin("listing");
        assert!(explain::push(LISTING));
        serde_json::from_str(&explain::finish()).expect("JSON")
    }

    fn asked(question: &Value) -> Value {
        serde_json::from_str(&ask(question.to_string().as_bytes())).expect("JSON")
    }

    #[test]
    fn a_bucket_is_the_link_too() {
        use tcpwhy_model::scenario::plan::TokenBucket;
        let plain = Way { rate: 8_000_000, queue: Queue::Bytes(60_000), ..Way::default() };
        let bucket = TokenBucket { rate: 7_600_000, burst: 92_000, queue: 36_000 };
        let filled = Way { bucket: Some(bucket), ..Way::default() };
        assert_eq!(link(&plain), (8_000_000, Some(60_000)));
        assert_eq!(link(&filled), (7_600_000, Some(36_000)));
        assert_eq!(link(&Way::default()), (0, None));
    }

    #[test]
    fn a_transfer_of_a_page_is_repeated_and_run_otherwise() {
        let page = page();
        let fit = page["fits"]["0"]["fit"].as_str().expect("a fit");
        let repeated: Value = serde_json::from_str(&study(fit.as_bytes())).expect("JSON");
        assert_eq!((&repeated["repeats"], &repeated["sender"]), (&json!(true), &json!("server")));
        assert_eq!(repeated["fitted"]["congctl"], "cubic");
        let change = ["server.route.initcwnd=44"];
        let run = asked(&json!({ "set": change }));
        let range = asked(&json!({ "set": change, "range": true }));
        assert_eq!(run["account"], range["account"], "both are the best guess");
        let best = run["account"]["time_ns"].as_i64();
        assert!(range["low_ns"].as_i64() <= best && best <= range["high_ns"].as_i64());
        assert!(best < repeated["seen"]["time_ns"].as_i64());
        assert_eq!(run["picture"]["figures"][0]["id"], "sequence");
        let again = asked(&json!({ "again": true }));
        assert_eq!(again["account"]["bytes"], repeated["seen"]["bytes"]);
        assert!(again["picture"]["before"][0].as_i64() > Some(0));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        assert!(study(b"{}").contains("cannot read what was fitted"));
        assert!(ask(b"{}").contains("no transfer is repeated"));
        assert!(ask(b"?").contains("cannot read the question"));
    }
}
