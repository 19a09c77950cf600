//! A capture of `testdata` through the whole path, with everything kept.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tcpwhy::report::Report;
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;

/// Bytes a push: no multiple of any record's length, so records straddle chunks.
const CHUNK: usize = 65_521;

/// A path below `testdata`.
pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// The files of a directory of `testdata` whose names end so, without the ending, sorted.
pub(crate) fn names(directory: &str, ending: &str) -> Vec<String> {
    let listed = fs::read_dir(testdata(directory)).expect("testdata is there");
    let mut names: Vec<String> = listed
        .map(|entry| entry.expect("its entries can be read").file_name())
        .filter_map(|name| Some(name.to_str()?.strip_suffix(ending)?.to_owned()))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no file of {directory} ends in {ending}");
    names
}

/// The report over one file, packed with gzip or not.
pub(crate) fn explain(path: &Path) -> Report {
    explain_with(path, Config { detail: true, ..Config::default() })
}

/// The same with this kept.
pub(crate) fn explain_with(path: &Path, config: Config) -> Report {
    let file = OpenOptions::new().read(true).open(path).expect("the capture can be opened");
    let packed = path.extension().is_some_and(|e| e == "gz");
    let mut bytes: Box<dyn Read> =
        if packed { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
    let mut session = Session::new(config);
    session.begin(&path.file_name().expect("a file has a name").to_string_lossy());
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = bytes.read(&mut chunk).expect("the capture can be read and unpacked");
        if read == 0 {
            break;
        }
        session.push(&chunk[..read]).expect("the capture is sound");
    }
    session.end().expect("the capture ends at the end of a record");
    session.finish()
}
