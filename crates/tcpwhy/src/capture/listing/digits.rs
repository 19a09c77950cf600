//! Numbers and brackets inside a line.

/// The number behind the first `name` in `text`.
pub(super) fn number_after(text: &str, name: &str) -> Option<u32> {
    leading_number(text.split_once(name)?.1)
}

/// The number `text` starts with.
pub(super) fn leading_number(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// Where the bracket opened before `text` closes; the end of `text` if it does not.
pub(super) fn closing(text: &str, open: char, close: char) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            if depth == 0 {
                return at;
            }
            depth -= 1;
        }
    }
    text.len()
}
