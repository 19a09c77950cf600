//! One connection of a capture, for commands that are about one.

use std::cmp::Reverse;
use std::sync::atomic::AtomicBool;

use tcpwhy::answer;
use tcpwhy::report::{Connection, Report};
use tcpwhy::tracker::Config;
use tcpwhy_model::whatif;

use crate::exit::Exit;
use crate::read::{Input, read_all};
use crate::{choose, complain};

/// Reads a capture, and takes the connection with this number, else the one with the most payload. If
/// something is wrong, it complains and returns the exit for that.
pub(super) fn connection(
    input: &Input,
    number: Option<u64>,
    reads_again: bool,
    stop: &AtomicBool,
) -> Result<Connection, Exit> {
    check(input)?;
    if reads_again && !input.can_be_reread() {
        complain("the capture is read twice: name a file, not a pipe");
        return Err(Exit::Usage);
    }
    let mut report =
        report(input, Config { detail: true, passed: true, ..Config::default() }, stop)?;
    if let Some(number) = number
        && let Err(error) = choose::only(&mut report, number)
    {
        complain(&error.to_string());
        return Err(Exit::Usage);
    }
    most_data(report).ok_or_else(|| {
        complain(&format!("{} holds no connection", input.name()));
        Exit::Unreadable
    })
}

/// Whether it can be read at all.
fn check(input: &Input) -> Result<(), Exit> {
    input.check().map_err(|error| {
        complain(&error.to_string());
        Exit::Unreadable
    })
}

/// What a capture shows. If something is wrong, it complains and returns the exit for that.
pub(super) fn report(input: &Input, config: Config, stop: &AtomicBool) -> Result<Report, Exit> {
    check(input)?;
    let report = read_all(std::slice::from_ref(input), config, 1, stop, &mut |_, _| {});
    let name = input.name();
    if let Some(error) = report.captures.iter().find_map(|capture| capture.error.as_ref()) {
        if report.connections.is_empty() {
            complain(&format!("cannot read {name}: {error}"));
            return Err(Exit::Unreadable);
        }
        complain(&format!("{name} was read only in part: {error}"));
    }
    Ok(report)
}

/// What a page shows of a capture. If something is wrong, it complains and returns the exit for that.
pub(super) fn for_page(input: &Input, stop: &AtomicBool) -> Result<Report, Exit> {
    let config = Config { detail: true, predicts: true, trails: true, ..Config::default() };
    let mut report = report(input, config, stop)?;
    fill(&mut report);
    Ok(report)
}

/// Adds what the model predicts, and the answers.
pub(super) fn fill(report: &mut Report) {
    whatif::advise(report);
    answer::fill(report);
}

/// The connection with the most payload.
fn most_data(report: Report) -> Option<Connection> {
    report.connections.into_iter().max_by_key(|connection| {
        let bytes = connection.directions.iter().flatten().map(|direction| direction.bytes);
        (bytes.sum::<u64>(), Reverse(connection.id))
    })
}
