//! Pages of the tracing system's ring, as `trace_pipe_raw` gives them.
//!
//! A page begins with the time of its first event and the length of its data; then come events,
//! each a word of 5 bits type and 27 bits time since the event before (Linux
//! `include/linux/ring_buffer.h`, `kernel/trace/ring_buffer.c`, file `events/header_event`).

/// Calls `with` for the time and bytes of each event of a page.
pub(super) fn events(page: &[u8], mut with: impl FnMut(u64, &[u8])) -> Option<()> {
    let mut time = u64::from_ne_bytes(*page.first_chunk()?);
    let commit = u64::from_ne_bytes(page.get(8..16)?.try_into().ok()?);
    // The topmost bits of the length tell of lost events, which are counted elsewhere.
    let length = (commit & LENGTH) as usize;
    let data = page.get(DATA..DATA + length)?;
    let mut at = 0;
    while at + 4 <= data.len() {
        let head = word(data, at)?;
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        at += 4;
        match kind {
            PADDING if delta == 0 => break,
            PADDING => at = at.saturating_add(word(data, at)? as usize),
            TIME_EXTEND => {
                time += delta | u64::from(word(data, at)?) << 27;
                at += 4;
                continue;
            }
            TIME_STAMP => {
                // 59 bits; the topmost five are those of the page's own time.
                let low = delta | u64::from(word(data, at)?) << 27;
                time = (time & TOP_BITS) | (low & !TOP_BITS);
                at += 4;
                continue;
            }
            _ => {
                time += delta;
                let size = if kind == 0 {
                    // The length counts itself.
                    (word(data, at)? as usize).checked_sub(4)?
                } else {
                    4 * kind as usize
                };
                if kind == 0 {
                    at += 4;
                }
                with(time, data.get(at..at + size)?);
                at += size.next_multiple_of(4);
                continue;
            }
        }
        time += delta;
    }
    Some(())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Where a page's data begins (file `events/header_page`).
const DATA: usize = 16;
/// Bits of the length: the two topmost of 32 are `RB_MISSED_EVENTS` and `RB_MISSED_STORED`.
const LENGTH: u64 = 0x3fff_ffff;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const TOP_BITS: u64 = 0xf8 << 56;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(time: u64, words: &[u32]) -> Vec<u8> {
        let mut page = time.to_ne_bytes().to_vec();
        page.extend((4 * words.len() as u64).to_ne_bytes());
        page.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        page.resize(4096, 0);
        page
    }

    fn found(page: &[u8]) -> Vec<(u64, usize)> {
        let mut found = Vec::new();
        events(page, |time, bytes| found.push((time, bytes.len()))).expect("a whole page");
        found
    }

    #[test]
    fn times_add_up_over_events_extensions_and_discarded_ones() {
        let words = [
            2 | 10 << 5, // 8 bytes, 10 ns after the page's time
            7,
            7,
            TIME_EXTEND | 1 << 5,
            2, // 2 * 2^27 + 1 ns
            1 | 5 << 5,
            7,
            PADDING | 3 << 5, // discarded, 8 bytes with its length
            8,
            7,
            12 << 5, // length in the next word, which counts itself
            12,
            7,
            7,
        ];
        let long = 1000 + 10 + (2 << 27) + 1 + 5;
        assert_eq!(found(&page(1000, &words)), [(1010, 8), (long, 4), (long + 3 + 12, 8)]);
    }

    #[test]
    fn an_absolute_stamp_takes_the_top_bits_of_the_page() {
        let words = [TIME_STAMP | 9 << 5, 1, 1, 7];
        assert_eq!(found(&page(0xf800_0000_0000_0001, &words)), [(0xf800_0000_0800_0009, 4)]);
    }

    #[test]
    fn a_page_ends_at_padding_and_at_its_length() {
        assert_eq!(found(&page(0, &[1, 7, PADDING, 1, 7])), [(0, 4)]);
        let mut counted = page(0, &[1, 7]);
        // Events were lost before this page, and their number is stored behind it.
        counted[11] = 0xc0;
        assert_eq!(found(&counted), [(0, 4)]);
    }

    #[test]
    fn odd_pages_end_without_harm() {
        assert!(events(&[0; 15], |_, _| ()).is_none());
        assert!(events(&page(0, &[28, 7]), |_, _| ()).is_none(), "longer than its page");
        assert!(events(&page(0, &[0, 3]), |_, _| ()).is_none(), "shorter than its length");
        assert!(events(&page(0, &[PADDING | 32, u32::MAX]), |_, _| ()).is_some());
        let mut long = page(0, &[]);
        long[9] = 0xff;
        assert!(events(&long, |_, _| ()).is_none());
    }
}
