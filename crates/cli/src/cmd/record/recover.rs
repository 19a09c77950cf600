//! `tcpwhy record --recover`: captures of what killed recordings left.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use tcpwhy_linux::record::recording::PACKETS;

use super::{RecordFlags, counted, explain};
use crate::exit::Exit;
use crate::options::Surroundings;
use crate::recording::{Output, SPOOL, usual_stem};
use crate::run_folder::{self, Left};
use crate::{complain, in_words};

/// Makes a capture of each, explains it, and removes what was left.
pub(super) fn run(folder: &Path, flags: &RecordFlags, around: &Surroundings) -> Exit {
    let left = run_folder::left(folder, SPOOL);
    if left.is_empty() {
        complain(&format!("no killed recording left packets in {}", folder.display()));
        return Exit::Unreadable;
    }
    let mut exit = Exit::Analysed;
    for left in left {
        let name = left.path().display().to_string();
        match recover(left, folder, flags) {
            Ok(None) => complain(&format!("{name} held no packets; it is removed")),
            Ok(Some((path, bytes))) => {
                complain(&format!(
                    "{} in {}: all TCP that passed while it recorded, other programs' too; samples of TCP_INFO and \
                     tracepoints are lost",
                    counted(bytes, "byte"),
                    path.display()
                ));
                if let Err(error) = explain(&path, None, flags, around) {
                    complain(&in_words(&error));
                }
            }
            Err(why) => {
                complain(&in_words(&why.context(format!("cannot recover {name}, which stays"))));
                exit = Exit::Unreadable;
            }
        }
    }
    exit
}

/// The file and its bytes; none where there were no packets.
fn recover(left: Left, into: &Path, flags: &RecordFlags) -> anyhow::Result<Option<(PathBuf, u64)>> {
    let packets = match File::open(left.inside().join(PACKETS)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened.context("cannot read its packets")?),
    };
    let mut recovered = None;
    if let Some(mut packets) = packets {
        let about = packets.metadata().context("cannot read its packets")?;
        if about.len() > 0 {
            let ended = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            let stem = usual_stem(u64::try_from(ended.as_nanos()).unwrap_or(0));
            let path = into.join(format!("{stem}-recovered.pcapng"));
            let output = Output::create(&path, flags.force)?;
            let bytes = io::copy(&mut packets, &mut output.file()?)
                .with_context(|| format!("cannot write {}", path.display()))?;
            output.keep()?;
            recovered = Some((path, bytes));
        }
    }
    left.remove().context("its packets are safe, but it cannot be removed")?;
    Ok(recovered)
}
