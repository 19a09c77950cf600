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
use tcpwhy::report::Report;
use tcpwhy::view::web;

use base64::Base64;

/// The page without data.
const FRAME: &str = include_str!("../../../page/dist/page.html");

/// The core, packed.
const CORE: &[u8] = include_bytes!("../../../page/dist/core.wasm.gz");

/// Where the data goes, and the core; each is once in the frame.
const DATA_HERE: &str = "@data@";
const CORE_HERE: &str = "@core@";

/// Writes a page that shows `report` into the file at `path`; `-` is standard output.
pub(crate) fn write(report: &Report, path: &Path) -> io::Result<()> {
    if path == Path::new("-") {
        return with(report, io::stdout().lock());
    }
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
    };
    with(report, File::create(path).map_err(named)?).map_err(named)
}

/// Writes a page that shows `report`.
fn with(report: &Report, to: impl Write) -> io::Result<()> {
    around(to, |to| {
        let mut packed = GzEncoder::new(Base64::new(to), Compression::default());
        serde_json::to_writer(BufWriter::with_capacity(1 << 16, &mut packed), &web::shown(report))?;
        packed.finish()?.finish().map(drop)
    })
}

/// Writes a page that shows nothing yet.
pub(crate) fn empty(to: impl Write) -> io::Result<()> {
    around(to, |_| Ok(()))
}

fn around(to: impl Write, data: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 16, to);
    let (before, rest) = FRAME.split_once(DATA_HERE).expect("the frame has a place for the data");
    let (between, behind) = rest.split_once(CORE_HERE).expect("and one for the core");
    to.write_all(before.as_bytes())?;
    data(&mut to)?;
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
        with(&report, &mut page).expect("memory takes it");
        let page = String::from_utf8(page).expect("text");
        assert!(!page.contains("alert(1)"));
        let scripts = |page: &str| page.matches("<script").count();
        assert_eq!(scripts(&page), scripts(&empty_page()));
    }
}
