//! The answer in words, and under it what would be faster.

use super::page::{Ink, Page, plain};
use super::{faster, words};
use crate::answer;
use crate::find;
use crate::report::{Connection, Finding};

/// The answer and what would be faster, as the full account has them, too.
pub(super) fn with_changes(page: &mut Page, connection: &Connection) {
    let causes = answer::causes(connection);
    write(page, connection, &causes);
    if find::failed(connection).next().is_none() {
        faster::write(page, connection, &causes);
    }
}

/// The answer, with the code of what failed.
pub(super) fn write(page: &mut Page, connection: &Connection, causes: &[&Finding]) {
    let failed = causes.first().is_some_and(|first| find::is_failure(first));
    let ink = if failed { Ink::Alarm } else { Ink::Strong };
    let mut spans = Vec::new();
    if failed {
        spans.push((Ink::Alarm, "Failed:".to_owned()));
        spans.push(plain(" "));
    }
    let said = if connection.answer.is_empty() {
        answer::said(connection).join(" ")
    } else {
        connection.answer.clone()
    };
    spans.push((if failed { Ink::Plain } else { ink }, words::tie_numbers(&said)));
    if failed {
        spans.extend(causes.first().map(|first| (Ink::Faint, format!(" [{}]", first.code))));
    }
    page.wrapped(0, 0, &spans);
}
