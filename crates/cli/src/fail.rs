//! `--fail-on`: what among the findings makes the exit status 1.

use tcpwhy::find::doc;
use tcpwhy::manual;
use tcpwhy::report::{Finding, Report, Severity};

/// One of the words of `--fail-on`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FailOn {
    /// Every finding of this severity.
    Severity(Severity),
    /// The finding of this code.
    Code(&'static str),
}

/// Reads one word.
pub(crate) fn parse(word: &str) -> Result<FailOn, String> {
    if let Some(severity) = Severity::ALL.into_iter().find(|each| each.name() == word) {
        return Ok(FailOn::Severity(severity));
    }
    match doc::find(word) {
        Some(page) => Ok(FailOn::Code(page.code)),
        None => Err(not_known(word)),
    }
}

fn not_known(word: &str) -> String {
    let is_finding = |name: &&str| doc::find(name).is_some_and(|page| page.code == *name);
    let meant = manual::meant(word).into_iter().find(is_finding);
    let severity = Severity::ALL.map(Severity::name).into_iter();
    let meant = severity.filter(|name| manual::distance(word, name) <= 2).chain(meant).next();
    let hint = meant.map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    format!(
        "{hint}give broken, wrong, limit, note or the code of a finding (`tcpwhy doc` lists them)"
    )
}

/// Whether anything in `report` is of a kind that was asked for.
pub(crate) fn any(report: &Report, asked: &[FailOn]) -> bool {
    let of_connections = report.connections.iter().flat_map(|connection| &connection.findings);
    let mut all = report.findings.iter().chain(of_connections);
    all.any(|finding| asked.iter().any(|word| matches(finding, word)))
}

/// Whether `finding` is of the kind that `word` asks for. One that another explains better counts by its code alone: the
/// other one has the severity.
fn matches(finding: &Finding, word: &FailOn) -> bool {
    match word {
        FailOn::Severity(severity) => {
            finding.severity == *severity && finding.explained_by.is_none()
        }
        FailOn::Code(code) => finding.code == *code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_severities_and_codes() {
        assert_eq!(parse("broken"), Ok(FailOn::Severity(Severity::Broken)));
        assert_eq!(parse("slow-start"), Ok(FailOn::Code("SLOW_START")));
        assert!(parse("brokne").is_err_and(|said| said.contains("did you mean `broken`")));
        assert!(parse("SLOW_STRAT").is_err_and(|said| said.contains("`SLOW_START`")));
        assert!(parse("").is_err());
    }

    #[test]
    fn a_finding_that_another_explains_fails_by_its_code_alone() {
        let mut finding =
            Finding { code: "RESET".to_owned(), severity: Severity::Broken, ..Finding::default() };
        let (code, severity) = (FailOn::Code("RESET"), FailOn::Severity(Severity::Broken));
        assert!(matches(&finding, &code) && matches(&finding, &severity));
        assert!(!matches(&finding, &FailOn::Severity(Severity::Wrong)));
        finding.explained_by = Some("NO_ANSWER".into());
        assert!(matches(&finding, &code) && !matches(&finding, &severity));
    }
}
