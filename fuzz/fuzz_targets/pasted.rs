//! Pasted output of tools: any text becomes a snapshot that can be saved, loaded and judged, and every line
//! counts once at most. What may be a saved snapshot is read as one, too: it comes back the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy::host::{judge, paste, saved, snapshot::Snapshot};

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
    if let Ok(saved) = saved::read(&text) {
        judge(&saved.snapshot);
        let again = serde_json::to_string(&saved.snapshot).expect("plain data");
        assert_eq!(saved::read(&again).expect("what was saved").snapshot, saved.snapshot);
    }
});
