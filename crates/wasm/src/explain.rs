//! A capture in a page: its bytes come in pieces, and what the page shows of it goes out.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use tcpwhy::answer;
use tcpwhy::evidence;
use tcpwhy::report::Report;
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;
use tcpwhy::view::{self, StandIns, web};
use tcpwhy_model::whatif;

thread_local! {
    /// The capture that is being read.
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };

    /// What the last one showed.
    static REPORT: RefCell<Option<Report>> = const { RefCell::new(None) };
}

/// Begins the capture of this name; one that was begun before is forgotten.
pub(crate) fn begin(name: &str) {
    let config = Config { predicts: true, trails: true, ..Config::default() };
    let mut session = Session::new(config);
    session.begin(name);
    SESSION.set(Some(session));
}

/// Takes its next bytes; whether more are of use.
pub(crate) fn push(bytes: &[u8]) -> bool {
    SESSION.with_borrow_mut(|session| {
        session.as_mut().is_some_and(|session| session.push(bytes).is_ok())
    })
}

/// Ends it: the data of a page.
pub(crate) fn finish() -> String {
    let Some(mut session) = SESSION.take() else {
        return wrong("no capture was begun");
    };
    // The report names what is wrong with the capture's end.
    let _ = session.end();
    let mut report = session.finish();
    let beside = evidence::attached(&report);
    evidence::apply(&mut report, &beside);
    whatif::advise(&mut report);
    answer::fill(&mut report);
    match report.captures.first() {
        Some(capture) if capture.packets == 0 => {
            wrong(capture.error.as_deref().unwrap_or("it holds no packets"))
        }
        _ => {
            let told = told(&report);
            REPORT.set(Some(report));
            told
        }
    }
}

/// The data of a page without addresses: of the capture that was explained last, or of a page's own data, where those
/// are given. What such a page draws is no part of its report, and stays with the page.
pub(crate) fn hide(given: &[u8]) -> String {
    if given.is_empty() {
        let Some(mut report) = REPORT.take() else {
            return wrong("no capture was explained here");
        };
        let told = hidden(&mut report);
        REPORT.set(Some(report));
        return told;
    }
    match serde_json::from_slice(given) {
        Ok(Given { mut report }) => hidden(&mut report),
        Err(error) => wrong(&error.to_string()),
    }
}

/// A page's data, as far as addresses are in them.
#[derive(Deserialize)]
struct Given {
    report: Report,
}

fn hidden(report: &mut Report) -> String {
    let names = StandIns::of(report);
    view::anonymize(report, names);
    told(report)
}

fn told(report: &Report) -> String {
    serde_json::to_string(&web::shown(report).fitted_by(whatif::fitted))
        .unwrap_or_else(|error| wrong(&error.to_string()))
}

#[derive(Serialize)]
struct Wrong<'a> {
    error: &'a str,
}

/// What is wrong, as JSON.
pub(crate) fn wrong(error: &str) -> String {
    serde_json::to_string(&Wrong { error }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_explained_whatever_its_pieces() {
        let listing = include_bytes!("../../../testdata/articles/download-512k-rtt7ms.tcpdump.txt");
        let told = |size: usize| {
            begin("listing");
            assert!(listing.chunks(size).all(push));
            finish()
        };
        let whole = told(listing.len());
        let hidden = hide(&[]);
        assert!(whole.contains("192.168.247.129") && !hidden.contains("192.168.247."));
        assert!(hidden.contains("Slow start took most") && hidden.contains("\"sequence\""));
        assert!(whole.contains("\"tcpwhy-page/1\"") && whole.contains("Slow start took most"));
        assert_eq!(told(1000), whole);
    }

    #[test]
    fn the_data_of_a_page_lose_their_addresses_as_a_capture_does() {
        begin("listing");
        push(include_bytes!("../../../testdata/articles/download-512k-rtt7ms.tcpdump.txt"));
        let whole = finish();
        let [of_capture, of_data] = [&[], whole.as_bytes()]
            .map(|given| serde_json::from_str::<serde_json::Value>(&hide(given)).expect("JSON"));
        assert_eq!(of_data["report"], of_capture["report"]);
        assert_eq!(of_data["screens"], of_capture["screens"]);
        assert!(!of_data.to_string().contains("192.168.247."));
        assert!(hide(b"{\"report\": 1}").starts_with("{\"error\":"));
    }

    #[test]
    fn what_is_no_capture_is_said() {
        assert!(finish().contains("no capture was begun"));
        begin("nothing");
        push(b"\x00\x01 no capture at all");
        assert!(finish().starts_with("{\"error\":"));
        begin("empty");
        assert!(finish().starts_with("{\"error\":"));
    }
}
