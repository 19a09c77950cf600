//! Where the time went: the states of a direction by time, with what shows them.
//!
//! Each state has its share, a bar, its time and its meaning; the ones that matter have their
//! longest interval as evidence. What these packets cannot tell apart is named as such.

use super::doubt::Doubt;
use super::page::{Ink, Page, bar, plain};
use super::words;
use crate::report::{Connection, Direction, FrameRange, Limit, State, TimeIn};
use tcpwhy_words::units::Duration;

/// Columns of a bar.
const BAR: usize = 12;

/// Columns before a bar, and before what is under a row.
const INDENT: usize = 11;

/// Ours: a column of meanings narrower than this is harder to read than lines of their own.
const NARROWEST_MEANING: usize = 28;

/// Ours: states below this share of the whole are summed up in one line.
const WORTH_A_LINE_PERCENT: f64 = 0.5;

/// Ours: states below this share of the whole carry no evidence in the text (the JSON has it).
const WORTH_EVIDENCE_PERCENT: f64 = 5.0;

/// The states of one direction of `connection`.
pub(super) fn write(page: &mut Page, connection: &Connection, at: usize, direction: &Direction) {
    let ends = words::ends(at);
    let title = format!("Where the time went, {} to {}", ends.sender, ends.receiver);
    page.heading(&title);
    if direction.time_in.iter().next().is_none() {
        page.wrapped(2, 2, &[plain("not known")]);
        return;
    }
    let lifetime = Duration(connection.duration_ns);
    let proof = proof(&direction.limits);
    let mut filters = 2;
    let meaning = |state| words::meaning(state, ends);
    let held = connection.held_while_silent(at);
    table(page, &direction.time_in, lifetime, meaning, |page, state, span| {
        held_back(page, ends, held.get(state), span);
        if let Some(proof) = &proof[state as usize] {
            let whole = (i64::MIN, i64::MAX);
            doubts(page, &Doubt::about(state, &direction.limits, whole));
            let plain_fact =
                matches!(state, State::Handshake | State::IdleKeptOpen | State::Closing);
            if !plain_fact && span.percent_of(lifetime) >= WORTH_EVIDENCE_PERCENT {
                let listed = Duration(proof.time_ns);
                filters -= evidence(page, proof, listed < span, filters > 0);
            }
        }
    });
}

/// That the silence of this direction was not the other application's, where TCP held that one's data meanwhile.
fn held_back(page: &mut Page, ends: words::Ends, held: Duration, span: Duration) {
    if held.percent_of(span) >= WORTH_EVIDENCE_PERCENT {
        let (receiver, time) = (ends.receiver, words::time(held.0));
        let part =
            if held == span { "all the while".to_owned() } else { format!("for {time} of it") };
        let text = format!(
            "{part} TCP held back data that the {receiver} had to send: no silence of its application"
        );
        page.wrapped(INDENT, INDENT + 2, &[plain(text)]);
    }
}

/// The states of several transfers in sum.
pub(super) fn write_sum(page: &mut Page, title: &str, time_in: &TimeIn) {
    page.heading(title);
    table(page, time_in, time_in.total(), |state| state.meaning().to_owned(), |_, _, _| {});
}

/// One row a state, and under it what `more` adds.
fn table(
    page: &mut Page,
    time_in: &TimeIn,
    whole: Duration,
    meaning: impl Fn(State) -> String,
    mut more: impl FnMut(&mut Page, State, Duration),
) {
    let ranked = time_in.ranked();
    let (rows, small): (Vec<_>, Vec<_>) = ranked.into_iter().partition(|(state, span)| {
        whole.0 <= 0 || *state == State::Unknown || span.percent_of(whole) >= WORTH_A_LINE_PERCENT
    });
    let name = rows.iter().map(|(state, _)| state.name().len()).max().unwrap_or(0);
    let meaning_at = INDENT + BAR + 2 + 8 + 2 + name + 2;
    for (state, span) in rows {
        let share = span.percent_of(whole);
        let percent =
            if whole.0 > 0 { format!("  {share:5.1} %  ") } else { "      ? %  ".to_owned() };
        let time = format!("  {:>8}  ", Duration(span.0).to_string());
        let painted = (super::family::ink(state), words::tie(&bar(share / 100.0, BAR)));
        let mut spans = vec![plain(words::tie(&percent)), painted, plain(words::tie(&time))];
        // Where the page is too narrow for a column of meanings they get lines of their own.
        if page.width() >= meaning_at + NARROWEST_MEANING {
            spans.push((Ink::Strong, words::tie(&format!("{:name$}", state.name()))));
            spans.push(plain(format!("\u{a0} {}", meaning(state))));
            page.wrapped(0, meaning_at, &spans);
        } else {
            spans.push((Ink::Strong, state.name().to_owned()));
            page.row(&spans);
            page.wrapped(INDENT, INDENT, &[plain(meaning(state))]);
        }
        more(page, state, span);
    }
    if !small.is_empty() {
        let sum = small.iter().fold(Duration::ZERO, |sum, row| sum + row.1);
        let names: Vec<String> = small.iter().map(|row| row.0.name().to_owned()).collect();
        let text = format!("{} more in {}", words::time(sum.0), words::listed(&names));
        page.wrapped(INDENT, INDENT, &[(Ink::Faint, text)]);
    }
}

/// What the intervals of one state say together.
struct Proof<'a> {
    longest: &'a Limit,
    others: u64,
    time_ns: i64,
}

/// One pass over the intervals, by state.
fn proof(limits: &[Limit]) -> [Option<Proof<'_>>; State::COUNT] {
    let mut all = [const { None }; State::COUNT];
    for limit in limits {
        let length = |limit: &Limit| i128::from(limit.end_ns) - i128::from(limit.start_ns);
        let proof = all[limit.state as usize].get_or_insert(Proof {
            longest: limit,
            others: 0,
            time_ns: 0,
        });
        proof.time_ns = proof.time_ns.saturating_add(limit.end_ns.saturating_sub(limit.start_ns));
        if !core::ptr::eq(proof.longest, limit) {
            proof.others += 1;
        }
        if length(limit) > length(proof.longest) {
            proof.longest = limit;
        }
    }
    all
}

/// How sure it is, and what else it may be.
fn doubts(page: &mut Page, doubt: &Doubt) {
    let names =
        doubt.names().map(|names| format!("or {names} (these packets cannot tell them apart)"));
    let parts: Vec<String> = names.into_iter().chain(doubt.sure()).collect();
    if !parts.is_empty() {
        page.wrapped(INDENT, INDENT + 2, &[plain(parts.join("; "))]);
    }
}

/// The longest interval in words, of all or of those that are listed; returns how many filters were printed.
fn evidence(page: &mut Page, proof: &Proof<'_>, some_are_not: bool, with_filter: bool) -> usize {
    let limit = proof.longest;
    if limit.evidence.text.is_empty() && limit.evidence.frames == FrameRange::default() {
        return 0;
    }
    let mut text = String::new();
    if proof.others > 0 {
        text.push_str(if some_are_not { "longest of more than " } else { "longest of " });
        text.push_str(&words::count(proof.others.saturating_add(1), "interval"));
        text.push_str(", ");
    }
    text.push_str("from ");
    text.push_str(&words::time(limit.start_ns));
    text.push_str(" to ");
    text.push_str(&words::time(limit.end_ns));
    if let Some(frames) = words::frames(limit.evidence.frames) {
        text.push_str(", ");
        text.push_str(&frames);
    }
    if !limit.evidence.text.is_empty() {
        text.push_str(": ");
        text.push_str(&limit.evidence.text);
    }
    page.wrapped(INDENT, INDENT + 2, &[(Ink::Faint, text)]);
    if with_filter && !limit.evidence.filter.is_empty() {
        page.wrapped(
            INDENT,
            INDENT + 2,
            &[(Ink::Faint, format!("Wireshark: {}", limit.evidence.filter))],
        );
        return 1;
    }
    0
}
