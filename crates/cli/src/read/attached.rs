//! What `tcpwhy record` attached to its packets, put into the report it belongs to.

use std::net::SocketAddr;

use serde::Deserialize;
use tcpwhy::capture::QualityKind;
use tcpwhy::command::{self, Noted};
use tcpwhy::names;
use tcpwhy::report::{Quality, Report};
use tcpwhy_linux::record::recording::attached::{COMMAND, PROGRAMS, RECORDING};

/// What a recording says of itself.
#[derive(Deserialize)]
struct Recording {
    /// What is missing and why.
    remarks: Vec<String>,
}

/// A program that holds the socket between these ends.
#[derive(Deserialize)]
struct Holder {
    local: SocketAddr,
    peer: SocketAddr,
    program: String,
}

/// Fills in the command, and what each recording says of itself. Attachments may be anybody's: one that
/// cannot be read, or is absurd, is named.
pub(super) fn take_in(report: &mut Report) {
    for capture in 0..report.captures.len() {
        let mut remarks = Vec::new();
        let attached = |name: &str| report.attachments.get(&(capture, name.to_owned()));
        if let Some(content) = attached(RECORDING) {
            match serde_json::from_slice::<Recording>(content) {
                Ok(recording) => remarks.extend(recording.remarks),
                Err(error) => remarks.push(odd(RECORDING, &error)),
            }
        }
        match attached(COMMAND).map(|content| serde_json::from_slice::<Noted>(content)) {
            Some(Ok(noted)) => remarks.extend(take_command(report, &noted)),
            Some(Err(error)) => remarks.push(odd(COMMAND, &error)),
            None => {}
        }
        let attached = report.attachments.get(&(capture, PROGRAMS.to_owned()));
        match attached.map(|content| serde_json::from_slice::<Vec<Holder>>(content)) {
            Some(Ok(holders)) => {
                let holders = holders.iter().take(MOST_HOLDERS);
                let told = holders.map(|each| (each.local, each.peer, &*each.program));
                names::name_programs(&mut report.connections, told);
            }
            Some(Err(error)) => remarks.push(odd(PROGRAMS, &error)),
            None => {}
        }
        let kind = QualityKind::Other.name();
        let quality = |note| Quality { kind: kind.to_owned(), count: 0, note };
        let remarks = remarks.into_iter().take(MOST_REMARKS).map(quality);
        report.captures[capture].quality.extend(remarks);
    }
}

/// Accounts for a command, the first of several; else says why not.
fn take_command(report: &mut Report, noted: &Noted) -> Option<String> {
    let program = noted.program.escape_debug();
    if report.command.is_some() {
        return Some(format!(
            "where the time of its command ({program}) went is not told here: explain this recording alone"
        ));
    }
    let odd = command::account(report, noted).err()?;
    Some(format!("the attachment {COMMAND} is not believed: of {program}, {odd}"))
}

fn odd(name: &str, error: &serde_json::Error) -> String {
    format!("the attachment {name} cannot be read: {error}")
}

/// As many as a recording tells.
const MOST_HOLDERS: usize = 10_000;

/// Ours: more than a recording ever has to say.
const MOST_REMARKS: usize = 20;

#[cfg(test)]
mod tests {
    use tcpwhy::report::Capture;

    use super::*;

    fn with(name: &str, content: &str) -> Report {
        let mut report = Report { captures: vec![Capture::default()], ..Report::default() };
        report.attachments.insert((0, name.to_owned()), content.into());
        take_in(&mut report);
        report
    }

    #[test]
    fn of_two_recordings_the_first_command_is_told_and_the_other_named() {
        let captures = vec![Capture::default(), Capture::default()];
        let mut report = Report { captures, ..Report::default() };
        for (capture, program) in ["curl", "wget"].into_iter().enumerate() {
            let content = format!(r#"{{"program":"{program}","start":5,"end":12}}"#);
            report.attachments.insert((capture, COMMAND.to_owned()), content.into());
        }
        take_in(&mut report);
        assert_eq!(report.command.expect("the first").program, "curl");
        assert_eq!(report.captures[0].quality, []);
        assert!(report.captures[1].quality[0].note.contains("its command (wget)"));
    }

    #[test]
    fn a_command_that_ended_before_it_began_is_not_believed() {
        let report = with(COMMAND, r#"{"program":"cu\u001brl","start":12,"end":5}"#);
        assert_eq!(report.command, None);
        let note = &report.captures[0].quality[0].note;
        assert!(
            note.ends_with("of cu\\u{1b}rl, it is said to have ended before it began"),
            "{note}"
        );
    }

    #[test]
    fn programs_that_make_no_sense_are_named() {
        let report = with(PROGRAMS, r#"[{"local":"nowhere"}]"#);
        assert!(report.captures[0].quality[0].note.starts_with("the attachment programs.json"));
    }

    #[test]
    fn a_command_comes_back_with_its_end() {
        let report =
            with(COMMAND, r#"{"program":"curl","start":5,"end":12,"status":7,"signal":null}"#);
        let command = report.command.expect("was attached");
        assert_eq!((command.program.as_str(), command.status), ("curl", Some(7)));
        assert_eq!((command.duration_ns, command.spent.rest_ns), (7, 7));
    }

    #[test]
    fn what_a_recording_lacks_is_a_remark_on_the_capture() {
        let report = with(RECORDING, r#"{"remarks":["no tracepoints: refused"],"later":1}"#);
        assert_eq!(report.captures[0].quality[0].note, "no tracepoints: refused");
    }

    #[test]
    fn an_attachment_that_makes_no_sense_is_named() {
        let report = with(COMMAND, "{}");
        assert_eq!(report.command, None);
        assert!(report.captures[0].quality[0].note.starts_with("the attachment command.json"));
    }
}
