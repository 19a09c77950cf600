//! Packet listings: any text, in any chunks, gives the same items and never fails badly.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy::capture::Item;
use tcpwhy::capture::listing::ListingReader;

fuzz_target!(|input: (u16, &[u8])| {
    let (chunk, text) = input;
    let whole = items(text, text.len());
    assert_eq!(whole, items(text, usize::from(chunk)));
});

/// What the reader makes of `text` in chunks of `size` bytes.
fn items(text: &[u8], size: usize) -> Vec<String> {
    let mut items = Vec::new();
    let mut reader = ListingReader::new();
    let mut each = |item: Item<'_>| items.push(format!("{item:?}"));
    for chunk in text.chunks(size.max(1)) {
        reader.push(chunk, &mut each).expect("reading never stops early");
    }
    let end = reader.finish(&mut each);
    items.push(format!("{end:?}"));
    items
}
