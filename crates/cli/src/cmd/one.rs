//! One connection of a capture, for commands that are about one.

use std::cmp::Reverse;
use std::sync::atomic::AtomicBool;

use tcpwhy::answer;
use tcpwhy::report::{Connection, Report};
use tcpwhy::tracker::Config;
use tcpwhy_model::whatif;

use crate::choose;
use crate::exit::Refused;
use crate::read::{Input, read_all};

/// Reads a capture, and takes the connection with this number, else the one with the most payload. What does not keep
/// it from that is `remarked`.
pub(super) fn connection(
    input: &Input,
    number: Option<u64>,
    reads_again: bool,
    stop: &AtomicBool,
    remarked: &mut dyn FnMut(&str),
) -> Result<Connection, Refused> {
    check(input)?;
    if reads_again && !input.can_be_reread() {
        return Err(Refused::usage("the capture is read twice: name a file, not a pipe"));
    }
    let config = Config { detail: true, passed: true, ..Config::default() };
    let mut report = report(input, config, stop, remarked)?;
    if let Some(number) = number {
        choose::only(&mut report, number).map_err(Refused::usage)?;
    }
    let nothing = || Refused::unreadable(format!("{} holds no connection", input.name()));
    most_data(report).ok_or_else(nothing)
}

/// Whether it can be read at all.
fn check(input: &Input) -> Result<(), Refused> {
    input.check().map_err(|error| Refused::unreadable(&error).about(&error.name))
}

/// What a capture shows. That it could be read only in part is `remarked`.
pub(super) fn report(
    input: &Input,
    config: Config,
    stop: &AtomicBool,
    remarked: &mut dyn FnMut(&str),
) -> Result<Report, Refused> {
    check(input)?;
    let report = read_all(std::slice::from_ref(input), config, 1, stop, &mut |_, _| {});
    let name = input.name();
    if let Some(error) = report.captures.iter().find_map(|capture| capture.error.as_ref()) {
        if report.connections.is_empty() {
            return Err(Refused::unreadable(format!("cannot read {name}: {error}")));
        }
        remarked(&format!("{name} was read only in part: {error}"));
    }
    Ok(report)
}

/// What a page shows of a capture; as [`report`].
pub(super) fn for_page(
    input: &Input,
    stop: &AtomicBool,
    remarked: &mut dyn FnMut(&str),
) -> Result<Report, Refused> {
    let config = Config { detail: true, predicts: true, trails: true, ..Config::default() };
    let mut report = report(input, config, stop, remarked)?;
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
