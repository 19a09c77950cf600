//! What was verified, as text and as JSON.

use core::fmt::Write;

use anyhow::Context;
use serde_json::{Value, json};
use tcpwhy::units::{Bytes, Duration};
use tcpwhy_model::fit::Account;
use tcpwhy_model::whatif::Told;

use super::Verified;
use super::claim::{Claim, Kernel};
use crate::cmd::columns::table;
use crate::cmd::whatif;

pub(super) fn text(verified: &Verified) -> String {
    let Verified { connection, study, backend, kernel, as_it_was, claims } = verified;
    let seen = &study.fit.seen;
    let mut text = whatif::about(connection, study);
    let _ = writeln!(text, "carried out by {backend}, Linux {kernel}\n");
    let rows = [
        ("capture", Some(seen)),
        ("model", study.nearest().map(|replay| &replay.account)),
        ("kernel", as_it_was.middle()),
    ];
    let rows = rows.into_iter().filter_map(|(who, account)| Some(row(who, account?))).collect();
    table(
        &mut text,
        &["as it was", "time", "rounds", "first flight", "resent", "most of it"],
        rows,
    );
    text.push('\n');
    text += &repeated(as_it_was, seen);
    for claim in claims {
        let now = as_it_was.middle().filter(|_| as_it_was.repeats(seen));
        let _ = write!(text, "\n{}\n  {}\n", claim.tried.what, sentence(claim, now));
    }
    if claims.is_empty() {
        text.push_str(
            "\nnothing that was tried makes it shorter, so nothing else was carried out\n",
        );
    }
    let all = claims.iter().map(|claim| (&*claim.tried.what, &claim.kernel));
    for (what, kernel) in std::iter::once(("as it was", as_it_was)).chain(all) {
        for why in &kernel.discarded {
            let _ = write!(text, "\nnote on {what}: a run was thrown away: {why}\n");
        }
    }
    text
}

/// Whether the kernel does the same unchanged.
fn repeated(kernel: &Kernel, seen: &Account) -> String {
    let Some(middle) = kernel.middle() else {
        return "no run on the kernel counts, so nothing is known of the changes\n".to_owned();
    };
    let off = (middle.ns - seen.ns) as f64 * 100.0 / seen.ns.max(1) as f64;
    if kernel.repeats(seen) {
        return format!("the kernel repeats the capture ({off:+.1} %)\n");
    }
    format!(
        "the kernel does not repeat the capture ({off:+.1} %): it is another version, or something is not in the fit.\n\
         So nothing is known of the changes.\n"
    )
}

/// What was said, what came, and whether that is the same; what it saves of the kernel's time `now`.
fn sentence(claim: &Claim, now: Option<&Account>) -> String {
    let answer = &claim.tried.answer;
    let [best, low, high] = [answer.best.ns, answer.low_ns, answer.high_ns].map(Duration);
    let mut text = format!("said: {best} ({low} to {high}); kernel: ");
    let Some(then) = claim.kernel.middle() else { return text + "no run counts" };
    let _ = write!(text, "{}", Duration(then.ns));
    if let Some([least, most]) = claim.kernel.range().filter(|[least, most]| least != most) {
        let _ = write!(text, " ({} to {})", Duration(least), Duration(most));
    }
    let _ = write!(text, ": {}", claim.verdict.words());
    if let Some(now) = now {
        let saved = now.ns - then.ns;
        let saves = if saved < 0 { "costs" } else { "saves" };
        let _ = write!(text, ", it {saves} {}", Duration(saved.abs()));
    }
    text
}

fn row(who: &str, account: &Account) -> Vec<String> {
    vec![
        who.to_owned(),
        Duration(account.ns).to_string(),
        account.rounds.to_string(),
        Bytes(account.first_flight).to_string(),
        account.resent.to_string(),
        whatif::longest(&account.time_in, account.ns),
    ]
}

/// The same for programs.
///
/// # Errors
/// None that is known of.
pub(super) fn json(verified: &Verified) -> anyhow::Result<String> {
    let Verified { connection, study, backend, kernel, as_it_was, claims } = verified;
    let claims: Vec<Value> = claims
        .iter()
        .map(|claim| {
            let answer = &claim.tried.answer;
            json!({
                "what": claim.tried.what,
                "set": claim.tried.changes,
                "said": Told::from(&answer.best),
                "low_ns": answer.low_ns,
                "high_ns": answer.high_ns,
                "on_kernel": on_kernel(&claim.kernel),
                "verdict": claim.verdict,
            })
        })
        .collect();
    let value = json!({
        "format": "tcpwhy-verify/1",
        "connection": connection.id,
        "sender": study.fit.sender.name(),
        "backend": backend,
        "kernel": kernel,
        "seen": Told::from(&study.fit.seen),
        "model": study.nearest().map(|replay| Told::from(&replay.account)),
        "on_kernel": on_kernel(as_it_was),
        "repeats": as_it_was.repeats(&study.fit.seen),
        "claims": claims,
    });
    Ok(serde_json::to_string_pretty(&value).context("an answer is plain data")? + "\n")
}

fn on_kernel(kernel: &Kernel) -> Value {
    json!({
        "runs": kernel.count(),
        "middle": kernel.middle().map(Told::from),
        "range_ns": kernel.range(),
        "discarded": kernel.discarded,
    })
}
