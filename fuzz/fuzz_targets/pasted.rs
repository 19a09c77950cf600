//! Pasted output of tools: any text becomes a snapshot that can be saved, loaded and judged, and every line
//! counts once at most.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy::host::{judge, paste, snapshot::Snapshot};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let pasted = paste::read(&text);
    let lines = text.lines().count() as u64;
    assert!(pasted.notes.read + pasted.notes.unknown <= lines);
    assert!(!pasted.snapshot.looks.is_empty());
    let saved = serde_json::to_string(&pasted.snapshot).expect("plain data");
    let loaded: Snapshot = serde_json::from_str(&saved).expect("what was saved");
    assert_eq!(loaded, pasted.snapshot);
    judge(&pasted.snapshot);
});
