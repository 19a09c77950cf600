//! The sizes of buffers that the kernel sets by itself, and settings mended by them.

use crate::seen::Seen;
use tcpwhy_words::said::bytes;

pub(super) const RECEIVE: &str = "net.ipv4.tcp_rmem";
pub(super) const SEND: &str = "net.ipv4.tcp_wmem";
/// What the kernel sets by itself.
pub(super) struct Own {
    pub(super) key: &'static str,
    /// What a socket begins with.
    pub(super) first: i64,
    /// How far a buffer grows at least, however little memory there is (`tcp_init`, Linux v6.12).
    pub(super) least: i64,
}

pub(super) const BUFFERS: [Own; 2] = [
    Own { key: RECEIVE, first: 131_072, least: 131_072 },
    Own { key: SEND, first: 16_384, least: 65_536 },
];
pub(super) const LARGE: i64 = 1 << 20;
/// Pages are larger on some machines; then the kernel's first number may be, too.
pub(super) const PAGE: i64 = 4096;

/// The numbers of a buffer's setting as they should be at least: what another change of it starts from.
pub(super) fn mended(seen: &Seen<'_>, key: &str, set: [i64; 3]) -> [i64; 3] {
    let of_key = BUFFERS.iter().find(|own| own.key == key);
    of_key.map_or(set, |own| mend(seen, set, own).0)
}

/// The numbers as they should be, and what is wrong with them.
pub(super) fn mend(seen: &Seen<'_>, set: [i64; 3], own: &Own) -> ([i64; 3], Vec<String>) {
    let [kept, begun, grown] = set;
    let &Own { first, least, .. } = own;
    let most = most_of(seen, own.key);
    let page = seen.snapshot.page_bytes.and_then(|page| i64::try_from(page).ok()).unwrap_or(PAGE);
    let own = by_kernel(seen, most);
    let mut mended = set;
    let mut why = Vec::new();
    if kept > page {
        why.push(format!("each socket keeps {} even when memory runs out", size(kept)));
        mended[0] = PAGE;
    }
    if begun > LARGE {
        why.push(format!("each connection, however slow, begins with {}", size(begun)));
        mended[1] = first;
    }
    // The kernel's formula starts from what is free at its start, less than all memory.
    if let Some(own) = own.filter(|own| grown < own / 4 * 3) {
        why.push(format!(
            "no buffer grows past {}, below the kernel's own {}",
            size(grown),
            size(own)
        ));
        mended[2] = own;
    } else if grown < least {
        why.push(format!(
            "no buffer grows past {}; the kernel sets {} or more, however little memory there is",
            size(grown),
            size(least)
        ));
        mended[2] = own.unwrap_or(most);
    }
    // It was made small together with the third one.
    if mended[2] > grown && begun < first && grown < least {
        mended[1] = first;
    }
    if !set.is_sorted() {
        why.push("the numbers do not rise: a buffer does not grow past the smaller one".to_owned());
        mended = [mended[0].min(PAGE), first, mended[2].max(own.unwrap_or(most)).max(first)];
    }
    (mended, why)
}

/// The most that the kernel sets by itself (`tcp_init`): for receiving 32 MiB since Linux 6.16.
pub(super) fn most_of(seen: &Seen<'_>, key: &str) -> i64 {
    match (key, seen.is_kernel_from(6, 16)) {
        (RECEIVE, Some(true)) => 32 << 20,
        (RECEIVE, _) => 6 << 20,
        _ => 4 << 20,
    }
}

/// `tcp_init`: a 128th of the memory, and at most so much. `None` where the memory was not seen.
pub(super) fn by_kernel(seen: &Seen<'_>, most: i64) -> Option<i64> {
    let memory = i64::try_from(seen.snapshot.memory_bytes? / 128).unwrap_or(i64::MAX);
    let least = if most == 4 << 20 { BUFFERS[1].least } else { BUFFERS[0].least };
    Some(memory.min(most).max(least))
}

pub(super) fn size(number: i64) -> String {
    bytes(number.max(0).unsigned_abs())
}
