//! The page for the browser: one file that holds its code, the core as WebAssembly, and what it shows.
//!
//! `page/` has its sources; `make page` builds what lies in `page/dist`. The frame has a place for the data and one
//! for the core; both are data blocks that no browser runs, so that the hashes of the page's policy stay true.

mod base64;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use tcpwhy::report::{FORMAT, Report};
use tcpwhy::view::web::{self, Shown};
use tcpwhy_model::whatif;

use base64::Base64;

/// The page without data.
const FRAME: &str = include_str!("../carried/page/page.html");

/// The core, packed.
const CORE: &[u8] = include_bytes!("../carried/page/core.wasm.gz");

/// Where the data goes, the graphs with all their marks, and the core; each is once in the frame, in this order.
const DATA_HERE: &str = "@data@";
const SERIES_HERE: &str = "@series@";
const CORE_HERE: &str = "@core@";

/// What a page shows of `report`, with what its model begins with.
pub(crate) fn shown(report: &Report) -> Shown<'_> {
    web::shown(report).fitted_by(whatif::fitted)
}

/// Writes a page into the file at `path`; `-` is standard output.
pub(crate) fn write(shown: Shown<'_>, path: &Path) -> io::Result<()> {
    if path == Path::new("-") {
        return with(shown, io::stdout().lock());
    }
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
    };
    with(shown, File::create(path).map_err(named)?).map_err(named)
}

/// A report of nothing.
pub(crate) fn no_packets() -> Report {
    Report { format: FORMAT.to_owned(), ..Report::default() }
}

/// One report of several captures that were explained apart: their connections stand side by side.
pub(crate) fn side_by_side(reports: Vec<Report>) -> Report {
    let mut all = no_packets();
    for report in reports {
        let before = all.connections.len() as u64;
        all.totals.join(&report.totals);
        all.captures.extend(report.captures);
        all.findings.extend(report.findings);
        all.connections.extend(report.connections.into_iter().map(|mut connection| {
            connection.id += before;
            // The numbers of one file say nothing beside another.
            connection.stream = None;
            connection
        }));
    }
    all
}

/// Writes a page.
fn with(shown: Shown<'_>, to: impl Write) -> io::Result<()> {
    let (first, whole) = shown.first_level();
    around(
        to,
        |to| packed(&first, to),
        |to| if whole.is_empty() { Ok(()) } else { packed(&whole, to) },
    )
}

/// How hard data is packed. Ours: the columns of a large capture take half the time of the usual level (6), and with its
/// code and core the page grows by a twentieth.
const LEVEL: Compression = Compression::new(3);

/// Writes data as JSON, packed, in the signs of base64.
fn packed(data: &impl Serialize, to: &mut dyn Write) -> io::Result<()> {
    let mut packed = GzEncoder::new(Base64::new(to), LEVEL);
    serde_json::to_writer(BufWriter::with_capacity(1 << 16, &mut packed), data)?;
    packed.finish()?.finish().map(drop)
}

/// Writes a page that shows nothing yet.
pub(crate) fn empty(to: impl Write) -> io::Result<()> {
    around(to, |_| Ok(()), |_| Ok(()))
}

fn around(
    to: impl Write,
    data: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    series: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 16, to);
    let (before, rest) = FRAME.split_once(DATA_HERE).expect("the frame has a place for the data");
    let (then, rest) = rest.split_once(SERIES_HERE).expect("and one for all marks");
    let (between, behind) = rest.split_once(CORE_HERE).expect("and one for the core");
    to.write_all(before.as_bytes())?;
    data(&mut to)?;
    to.write_all(then.as_bytes())?;
    series(&mut to)?;
    to.write_all(between.as_bytes())?;
    let mut core = Base64::new(&mut to);
    core.write_all(CORE)?;
    core.finish()?;
    to.write_all(behind.as_bytes())?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty_page() -> String {
        let mut page = Vec::new();
        empty(&mut page).expect("memory takes it");
        String::from_utf8(page).expect("text")
    }

    #[test]
    fn a_page_allows_nothing_but_its_own_code() {
        let page = empty_page();
        let policy = page.split("content=\"").nth(1).and_then(|rest| rest.split('"').next());
        let policy = policy.expect("a policy");
        for part in
            ["default-src 'none'", "script-src 'sha256-", "'wasm-unsafe-eval'", "worker-src blob:"]
        {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("http") && !policy.contains("unsafe-inline"), "{policy}");
    }

    #[test]
    fn hostile_names_leave_no_markup_in_the_page() {
        let name = "</script><script>alert(1)</script>";
        let capture = tcpwhy::report::Capture { source: name.to_owned(), ..Default::default() };
        let report = Report { captures: vec![capture], ..Report::default() };
        let mut page = Vec::new();
        with(shown(&report), &mut page).expect("memory takes it");
        let page = String::from_utf8(page).expect("text");
        assert!(!page.contains("alert(1)"));
        let scripts = |page: &str| page.matches("<script").count();
        assert_eq!(scripts(&page), scripts(&empty_page()));
    }
}
