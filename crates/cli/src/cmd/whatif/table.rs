//! What a what-if looks like: how well the model repeats the capture, then a line for each change.

use core::fmt::Write;

use serde_json::{Value, json};
use tcpwhy::report::{Connection, State, TimeIn};
use tcpwhy::units::{Bytes, Duration};
use tcpwhy_model::fit::Account;
use tcpwhy_model::profile::KernelProfile;
use tcpwhy_model::whatif::{Branch, MOST_WORK, Replay, Study, Told, Tried};
use tcpwhy_model::world::Side;

use super::Rows;
use crate::cmd::columns::table;

/// States told of a run: the longest. Ours: what fits a line.
const TOLD: usize = 2;

pub(super) fn text(connection: &Connection, study: &Study, told: &Rows) -> String {
    let tried = &told.remedies;
    let rows = &tried.tried[..];
    let mut text = head(connection, study);
    let Some(nearest) = study.nearest() else {
        return text + "the model cannot run the scenario that was fitted to it\n";
    };
    if study.near == 0 && study.parts().is_none() {
        return text + &parted(study, nearest);
    }
    if let Some(doubt) = study.doubt() {
        return text
            + &repeated(study, nearest)
            + &format!("but {doubt}. So it says nothing of changes.\n");
    }
    text += &repeated(study, nearest);
    let mut refused = String::new();
    for (what, why) in &told.refused {
        let _ = writeln!(refused, "\nno answer to {what}: {why}");
    }
    if rows.is_empty() && !refused.is_empty() {
        return text + &refused;
    }
    if rows.is_empty() {
        text += "\nnothing that was tried makes it shorter\n";
        return text + not_all(tried.was_cut_short);
    }
    text.push('\n');
    let seen = &study.fit.seen;
    // What applications let pass would hide the rest.
    let without_silence = seen.busy_ns() * 2 < seen.ns;
    let left_out =
        |account: &Account| if without_silence { account.ns - account.busy_ns() } else { 0 };
    let mut lines = vec![line("as it was", seen, left_out(seen), ["-".to_owned(), "-".to_owned()])];
    lines.extend(rows.iter().map(|row| {
        let silence = left_out(&row.answer.best);
        let range =
            [row.answer.low_ns, row.answer.high_ns].map(|ns| Duration(ns - silence).to_string());
        line(&row.what, &row.answer.best, silence, range)
    }));
    let time = if without_silence { "time without pauses" } else { "time" };
    let titles = ["", time, "at best", "at worst", "rounds", "first flight", "most of it"];
    table(&mut text, &titles, lines);
    for row in rows.iter().filter(|row| !row.answer.unfinished.is_empty()) {
        let _ =
            writeln!(text, "\nnot finished ({}): {}", row.what, row.answer.unfinished.join("; "));
    }
    text + &given_way(study, rows)
        + &why_ranges(study, rows)
        + not_all(tried.was_cut_short)
        + &refused
}

/// What is taken for granted where a buffer may be the program's own.
fn given_way(study: &Study, rows: &[Tried]) -> String {
    let row = rows.iter().find(|row| study.fit.gives_way(&row.changes));
    row.map_or_else(String::new, |row| {
        let receiver = study.fit.sender.peer().name();
        format!(
            "\n{}: if the {receiver}'s program fixes its buffer (SO_RCVBUF), no setting of the system changes it\n",
            row.what
        )
    })
}

/// The line about remedies where the work ended before all were tried.
const fn not_all(was_cut_short: bool) -> &'static str {
    if was_cut_short {
        "not all that may help was tried: that would take too much work\n"
    } else {
        ""
    }
}

/// Whose data it is about.
pub(in crate::cmd) fn about(connection: &Connection, study: &Study) -> String {
    let (from, to) = match study.fit.sender {
        Side::Client => (connection.client_shown(), connection.server_shown()),
        Side::Server => (connection.server_shown(), connection.client_shown()),
    };
    let bytes = Bytes(study.fit.seen.bytes);
    format!("connection {}: {from} -> {to}, {bytes}\n", connection.id)
}

fn head(connection: &Connection, study: &Study) -> String {
    let seen = &study.fit.seen;
    format!(
        "{}seen: {} from the handshake to the last ACK, {} rounds: {}\n",
        about(connection, study),
        Duration(seen.ns),
        seen.rounds,
        longest(&seen.time_in, seen.ns),
    )
}

fn repeated(study: &Study, nearest: &Replay) -> String {
    let account = &nearest.account;
    let how = if study.near > 0 { "repeats it" } else { "takes as long" };
    let mut text = format!(
        "the model {how}: {} ({}), {} rounds: {}\n",
        Duration(account.ns),
        off(nearest, study),
        account.rounds,
        longest(&account.time_in, account.ns)
    );
    let kernels: Vec<_> =
        study.replays[..study.near].iter().map(|replay| version(study, replay)).collect();
    let _ = match &kernels[..] {
        [one] => {
            writeln!(text, "with Linux {one} as its sender; no other version that was tried does")
        }
        [first, rest @ ..] if rest.len() + 1 < study.replays.len() => {
            writeln!(text, "with Linux {first} as its sender, and as well with {}", rest.join(", "))
        }
        [first, ..] => {
            writeln!(text, "with Linux {first} as its sender, and with each other version tried")
        }
        [] => Ok(()),
    };
    if let Some(gap) = study.parts() {
        let _ = writeln!(
            text,
            "but it was held otherwise for {} % of the time that no application let pass, most in {}: the ranges are wider by \
             as much",
            gap.percent, gap.state
        );
    }
    text += &cut_short(study);
    if !study.rules_hold() {
        text += "its windows are taken from the capture: by its own rules the model's receiver offers others\n";
    }
    text
}

fn parted(study: &Study, nearest: &Replay) -> String {
    let gap = nearest.gap(&study.fit);
    let account = &nearest.account;
    let stuck = if nearest.unfinished.is_empty() {
        String::new()
    } else {
        format!("; it does not come to its end there ({})", nearest.unfinished.join("; "))
    };
    format!(
        "the model does not repeat it: {} ({}), {} rounds: {}{stuck}\n\
         they part most in {}, by {} % of the time that no application let pass. What it says of changes would prove nothing, so it says \
         nothing.\n{}",
        Duration(account.ns),
        off(nearest, study),
        account.rounds,
        longest(&account.time_in, account.ns),
        gap.state,
        gap.percent,
        cut_short(study)
    )
}

/// Where the work ended before every cause was tried.
fn cut_short(study: &Study) -> String {
    if !study.was_cut_short {
        return String::new();
    }
    format!(
        "not every kernel and cause was tried: that would take more than {} million events of the model\n",
        MOST_WORK / 1_000_000
    )
}

fn off(replay: &Replay, study: &Study) -> String {
    let permille =
        i128::from(replay.difference(&study.fit)) * 1000 / i128::from(study.fit.seen.ns.max(1));
    format!("{:+.1} %", permille as f64 / 10.0)
}

fn version(study: &Study, replay: &Replay) -> String {
    let kernel: KernelProfile = match study.fit.sender {
        Side::Client => replay.kernels.client,
        Side::Server => replay.kernels.server,
    };
    kernel.version.to_string()
}

/// The longest of its states.
pub(in crate::cmd) fn longest(time_in: &TimeIn, of: i64) -> String {
    longest_of(time_in, of, |_| true)
}

/// The longest of those states that `counts`, with their share of the time `of`.
fn longest_of(time_in: &TimeIn, of: i64, counts: impl Fn(State) -> bool) -> String {
    let share = |span: Duration| span.percent_of(Duration(of));
    let told: Vec<_> = time_in
        .ranked()
        .into_iter()
        .filter(|row| counts(row.0))
        .take(TOLD)
        .map(|(state, span)| format!("{state} {:.0} %", share(span)))
        .collect();
    told.join(", ")
}

/// A row; `silence` of its time is left out.
fn line(what: &str, account: &Account, silence: i64, range: [String; 2]) -> Vec<String> {
    let [low, high] = range;
    vec![
        what.to_owned(),
        Duration(account.ns - silence).to_string(),
        low,
        high,
        account.rounds.to_string(),
        Bytes(account.first_flight).to_string(),
        longest_of(&account.time_in, account.ns - silence, |state| {
            silence == 0 || !state.is_silence()
        }),
    ]
}

/// What the ends of the ranges stand for.
fn why_ranges(study: &Study, rows: &[Tried]) -> String {
    let mut branches: Vec<Branch> =
        rows.iter().flat_map(|row| row.answer.because.clone()).collect();
    branches.sort_unstable();
    branches.dedup();
    let mut text = String::new();
    for branch in branches {
        text += match branch {
            Branch::Kernel => "\nranges: over the kernels that repeat the capture",
            Branch::NoMoreRoom | Branch::Chance | Branch::Shares => "",
            Branch::Rate => {
                "\nranges: over the rate that fits best, which nothing filled, and an unlimited one"
            }
            Branch::HyStart => {
                "\nranges: over where slow start ends on a shorter path: HyStart may end it from 16 segments on"
            }
            Branch::Cause => "\nranges: over other causes that repeat the capture nearly as well",
            Branch::Receiver => "\nranges: over drivers of the receiver that repeat the capture",
            Branch::Drops => {
                "\nranges: over a little more or less room before packets are dropped: chance decides much of it"
            }
            Branch::Replay => "\nranges: and by as much as the unchanged replay is off",
            Branch::Losses => {
                "\nranges: over losses as they were, others as many by chance, and none"
            }
            Branch::Windows => {
                "\nranges: over windows by the receiver's rules, and as it offered them in the capture"
            }
        };
        if branch == Branch::Chance {
            let throws = rows.iter().map(|row| row.answer.throws).max().unwrap_or(1);
            let _ = write!(
                text,
                "\nranges: over {throws} throws of the dice, for chance decides after such a change; the time is the one \
                 in the middle"
            );
        }
        if let (Branch::NoMoreRoom, Some((rate, queue))) = (branch, study.fit.proven) {
            let rate = tcpwhy::units::BitRate(rate);
            let _ = write!(
                text,
                "\nranges: over a path with endless room, and one with no more than it has shown: {rate}, and {} \
                 that wait for it",
                Bytes(queue)
            );
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// The whole answer, as JSON.
///
/// # Errors
/// None that is known of.
pub(super) fn json(
    connection: &Connection,
    study: &Study,
    told: &Rows,
) -> serde_json::Result<String> {
    let tried = &told.remedies;
    let nearest = study.nearest().map(|replay| {
        let gap = replay.gap(&study.fit);
        json!({
            "account": account(&replay.account),
            "sender_kernel": version(study, replay),
            "widest_gap": { "state": gap.state.name(), "percent": gap.percent },
            "unfinished": replay.unfinished,
        })
    });
    let changes: Vec<Value> = tried
        .tried
        .iter()
        .map(|row| {
            json!({
                "what": row.what,
                "set": row.changes,
                "account": account(&row.answer.best),
                "low_ns": row.answer.low_ns,
                "high_ns": row.answer.high_ns,
                "throws": row.answer.throws,
                "unfinished": row.answer.unfinished,
            })
        })
        .collect();
    let refused: Vec<Value> = told
        .refused
        .iter()
        .map(|(what, why)| json!({ "what": what, "why": why.to_string() }))
        .collect();
    serde_json::to_string_pretty(&json!({
        "format": "tcpwhy-whatif/1",
        "connection": connection.id,
        "sender": study.fit.sender.name(),
        "seen": account(&study.fit.seen),
        "repeats": study.repeats(),
        "parts": study.parts().map(|gap| json!({ "state": gap.state.name(), "percent": gap.percent })),
        "doubt": study.doubt().filter(|_| study.near > 0 || study.parts().is_some()).map(|doubt| doubt.to_string()),
        "replay": nearest,
        "cut_short": study.was_cut_short || tried.was_cut_short,
        "changes": changes,
        "refused": refused,
    }))
}

fn account(account: &Account) -> Told {
    Told::from(account)
}
