//! What `tcpwhy record` attached to its packets, put into the report it belongs to.

use serde::Deserialize;
use tcpwhy::capture::QualityKind;
use tcpwhy::command::{self, Noted};
use tcpwhy::report::{Quality, Report};
use tcpwhy_linux::record::recording::attached::{COMMAND, RECORDING};

/// What a recording says of itself.
#[derive(Deserialize)]
struct Recording {
    /// What is missing and why.
    remarks: Vec<String>,
}

/// Fills in the command, and what the recording says of itself. Attachments may be anybody's: one that
/// cannot be read is named.
pub(super) fn take_in(report: &mut Report) {
    let mut remarks = Vec::new();
    if let Some(content) = report.attachments.get(RECORDING) {
        match serde_json::from_slice::<Recording>(content) {
            Ok(recording) => remarks.extend(recording.remarks),
            Err(error) => remarks.push(odd(RECORDING, &error)),
        }
    }
    if let Some(content) = report.attachments.get(COMMAND) {
        match serde_json::from_slice::<Noted>(content) {
            Ok(noted) => command::account(report, &noted),
            Err(error) => remarks.push(odd(COMMAND, &error)),
        }
    }
    if let Some(capture) = report.captures.last_mut() {
        let kind = QualityKind::Other.name();
        let quality = |note| Quality { kind: kind.to_owned(), count: 0, note };
        capture.quality.extend(remarks.into_iter().take(MOST_REMARKS).map(quality));
    }
}

fn odd(name: &str, error: &serde_json::Error) -> String {
    format!("the attachment {name} cannot be read: {error}")
}

/// Ours: more than a recording ever has to say.
const MOST_REMARKS: usize = 20;

#[cfg(test)]
mod tests {
    use tcpwhy::report::Capture;

    use super::*;

    fn with(name: &str, content: &str) -> Report {
        let mut report = Report { captures: vec![Capture::default()], ..Report::default() };
        report.attachments.insert(name.to_owned(), content.into());
        take_in(&mut report);
        report
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
