//! Any bytes, in chunks of any size, are read without a panic and give the same items as in one.
//!
//! The first byte tells how the rest is cut: chunks of so many bytes, 0 for growing ones.
//!
//! Run: `cargo +nightly fuzz run capture fuzz/corpus/capture fuzz/seeds/capture`

#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy::capture::{CaptureError, Item, Reader};

fuzz_target!(|input: &[u8]| {
    let Some((cut, capture)) = input.split_first() else { return };
    let whole = read([capture]);
    let chunked = match usize::from(*cut) {
        0 => read(growing(capture)),
        size => read(capture.chunks(size)),
    };
    assert_eq!(chunked, whole);
});

/// All items in words, and how it ended.
fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Result<(), CaptureError>) {
    let mut reader = Reader::new();
    let mut items = Vec::new();
    let mut each = |item: Item<'_>| items.push(format!("{item:?}"));
    for chunk in chunks {
        if reader.push(chunk, &mut each).is_err() {
            break;
        }
    }
    let end = reader.finish(&mut each);
    (items, end)
}

/// Chunks of 1, 2, 3, ... bytes.
fn growing(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    (1..).map_while(move |size: usize| {
        let (chunk, later) = rest.split_at(rest.len().min(size));
        rest = later;
        (!chunk.is_empty()).then_some(chunk)
    })
}
