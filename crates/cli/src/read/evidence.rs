//! Evidence beside the capture: whole files, unpacked, handed to the core.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tcpwhy::evidence::{self, Evidence};

use super::Input;

/// More of one file is not read. Ours: a trace of that many bytes is millions of calls; more would fill the
/// memory of a small machine.
const MOST: u64 = 1 << 30;

/// Reads each file; one that cannot be read is evidence of that.
pub fn read_evidence(files: &[Input]) -> Vec<Evidence> {
    let read = |input: &Input| {
        let name = input.name();
        let told = bytes(input)
            .and_then(|bytes| evidence::read(&name, &bytes).map_err(|error| error.to_string()));
        told.unwrap_or_else(|why| Evidence::unread(&name, why))
    };
    files.iter().map(read).collect()
}

/// Why a file that was named as a capture is none, if it is evidence.
pub(super) fn named_as_a_capture(input: &Input) -> Option<String> {
    // What a pipe held is gone.
    let source = input.can_be_reread().then(|| input.open(&Arc::default()).ok()).flatten()?;
    let mut first = Vec::new();
    source.take(LOOKED_AT).read_to_end(&mut first).ok()?;
    let tool = evidence::written_by(&String::from_utf8_lossy(&first))?;
    let name = input.name();
    Some(format!(
        "it is no capture but evidence ({tool}): name it after --with, beside its capture (`tcpwhy CAPTURE --with \
         {name}`) or alone (`tcpwhy --with {name}`)"
    ))
}

/// This much of a file tells whether it is evidence. Ours: the end of an `iperf3 -J` of a quarter of an
/// hour.
const LOOKED_AT: u64 = 1 << 20;

/// All bytes of a file.
fn bytes(input: &Input) -> Result<Vec<u8>, String> {
    input.check().map_err(|error| error.why)?;
    let source = input.open(&Arc::new(AtomicU64::new(0))).map_err(|error| error.why)?;
    let mut bytes = Vec::new();
    source.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST {
        return Err("it is longer than 1 GiB: cut out the time of the transfer".to_owned());
    }
    Ok(bytes)
}
