//! The bytes of a capture of `testdata`.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;

/// The bytes of a file, unpacked where it is packed with gzip.
pub(crate) fn unpacked(path: &Path) -> Vec<u8> {
    let mut file = OpenOptions::new().read(true).open(path).expect("the capture can be opened");
    let mut bytes = Vec::new();
    let read = if path.extension().is_some_and(|e| e == "gz") {
        GzDecoder::new(file).read_to_end(&mut bytes)
    } else {
        file.read_to_end(&mut bytes)
    };
    read.expect("it can be read and unpacked");
    bytes
}
