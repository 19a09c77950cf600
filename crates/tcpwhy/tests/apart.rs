//! What is read in one place and analysed in another gives the report of one place, to the last field.

mod common {
    pub(crate) mod unpacked;
}

use std::fs;
use std::path::{Path, PathBuf};

use common::unpacked::unpacked;
use tcpwhy::report::{Quality, Report};
use tcpwhy::session::{Intake, Joined, Session};
use tcpwhy::tracker::{Config, Cutter};

/// Bytes a push: no multiple of any record's length.
const CHUNK: usize = 65_521;

fn config() -> Config {
    Config { detail: true, predicts: true, ..Config::default() }
}

fn together(files: &[&[u8]]) -> Report {
    let mut session = Session::new(config());
    for (number, file) in files.iter().enumerate() {
        session.begin(&number.to_string());
        file.chunks(CHUNK).try_for_each(|chunk| session.push(chunk)).unwrap_or_default();
        session.end().unwrap_or_default();
    }
    session.finish()
}

/// The same by way of pieces, and their bytes; `None` of what has to be read in one place.
fn apart(files: &[&[u8]]) -> Option<(Report, usize)> {
    let (mut joined, mut pieces, mut bytes) = (Joined::new(config()), Vec::new(), 0);
    for (number, file) in files.iter().enumerate() {
        let (mut intake, mut cutter) = (Intake::apart(), Cutter::default());
        intake.begin(&number.to_string());
        for chunk in file.chunks(CHUNK) {
            let read = intake.push_apart(chunk, &mut cutter);
            pieces.extend(cutter.ready().into_iter().map(|(shard, piece)| (shard, number, piece)));
            if read.is_err() {
                break;
            }
        }
        intake.end_apart(&mut cutter).unwrap_or_default();
        pieces.extend(cutter.rest().into_iter().map(|(shard, piece)| (shard, number, piece)));
        let cut = intake.cut();
        if cut.is_whole {
            return None;
        }
        bytes += cut.heard.len();
        joined.begin(cut).expect("it was just made");
    }
    // Of a shard in order, and shard after shard.
    pieces.sort_by_key(|(shard, number, _)| (*shard, *number));
    for (_, number, piece) in &pieces {
        bytes += piece.len();
        joined.push(*number, piece).expect("it was just made");
    }
    Some((joined.finish(), bytes))
}

/// All captures of `testdata`.
fn captures() -> Vec<PathBuf> {
    let (mut found, mut folders) =
        (Vec::new(), vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("testdata is there").flatten() {
            let path = entry.path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if [".pcap", ".pcap.gz", ".pcapng", ".pcapng.gz"]
                .iter()
                .any(|end| name.ends_with(end))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A classic capture as a number of `files`.
fn rotated(capture: &[u8], files: usize) -> Option<Vec<Vec<u8>>> {
    let little =
        matches!(capture.first_chunk()?, [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1]);
    let (head, mut rest) = capture.split_at_checked(24).filter(|_| little)?;
    let mut records = Vec::new();
    while let Some(length) = rest.get(8..12).and_then(|bytes| bytes.first_chunk()) {
        let (record, behind) = rest.split_at_checked(16 + u32::from_le_bytes(*length) as usize)?;
        records.push(record);
        rest = behind;
    }
    let each = records.len().div_ceil(files).max(1);
    Some(records.chunks(each).map(|some| [head, &some.concat()].concat()).collect())
}

fn is_same(name: &Path, files: &[&[u8]]) -> Option<usize> {
    let (apart, bytes) = apart(files)?;
    let together = together(files);
    assert_eq!(apart.connections.len(), together.connections.len(), "{}", name.display());
    for (one, other) in apart.connections.iter().zip(&together.connections) {
        assert_eq!(one, other, "{}", name.display());
    }
    assert_eq!(apart, together, "{}", name.display());
    Some(bytes)
}

#[test]
fn every_capture_is_explained_as_in_one_place() {
    let (mut compared, mut rotations) = (0, 0);
    for path in captures() {
        let bytes = unpacked(&path);
        compared += usize::from(is_same(&path, &[&bytes]).is_some());
        if let Some(files) = rotated(&bytes, 3) {
            let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
            rotations += usize::from(is_same(&path, &files).is_some());
        }
    }
    assert!(compared > 300 && rotations > 200, "{compared} captures, {rotations} of them rotated");
}

#[test]
fn damage_ends_a_file_and_not_the_run() {
    let path =
        captures().into_iter().find(|path| path.extension().is_some_and(|end| end == "pcap"));
    let path = path.expect("there is one");
    let bytes = unpacked(&path);
    let cut = &bytes[..bytes.len() - 7];
    let mut odd = bytes.clone();
    let middle = odd.len() / 2;
    odd[middle..].fill(0xee);
    is_same(&path, &[cut, b"", &bytes, b"this is no capture\n"]);
    is_same(&path, &[&odd, &bytes]).expect("both are captures");
}

#[test]
fn a_file_that_begins_before_an_earlier_one_ends_is_told() {
    let path =
        captures().into_iter().find(|path| path.ends_with("grid-2mbit-rtt50-q1.server.pcap.gz"));
    let bytes = unpacked(&path.expect("it is there"));
    let told = |files: &[&[u8]]| -> Vec<usize> {
        let (joined, _) = apart(files).expect("they are captures");
        assert_eq!(joined, together(files));
        let overlaps = |quality: &Quality| quality.note.contains("before an earlier one ends");
        let captures = joined.captures.iter();
        captures.map(|capture| capture.quality.iter().filter(|q| overlaps(q)).count()).collect()
    };
    let files = rotated(&bytes, 3).expect("a classic capture");
    let [a, b, c] = &files[..] else { panic!("three") };
    assert_eq!(told(&[a, b, c]), [0, 0, 0]);
    assert_eq!(told(&[a, c, b]), [0, 0, 1]);
    assert_eq!(told(&[&bytes, b"", &bytes]), [0, 0, 1]);
}
