//! Bytes of strangers as text that shows on one line.

/// Bytes as text: what is no UTF-8, does not print or turns the writing round is escaped, as `\n`, `\u{1b}` or
/// `\xff`.
pub fn shown(bytes: &[u8]) -> String {
    let plain = |byte: &u8| (0x20..0x7f).contains(byte);
    if bytes.iter().all(plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if prints(letter) { text.push(letter) } else { text.extend(letter.escape_debug()) }
        }
        for byte in chunk.invalid() {
            text.extend(byte.escape_ascii().map(char::from));
        }
    }
    text
}

/// Whether a letter shows as itself.
pub(super) fn prints(letter: char) -> bool {
    // `escape_debug` escapes the first three only for the sake of quotes.
    matches!(letter, '\\' | '"' | '\'') || letter.escape_debug().count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_show_on_one_line() {
        assert_eq!(shown(b"eth0"), "eth0");
        assert_eq!(shown("größer".as_bytes()), "größer");
        assert_eq!(shown(b"a\x1b[2J\nb\0"), r"a\u{1b}[2J\nb\0");
        assert_eq!(shown(b"\xff\xfeth"), r"\xff\xfeth");
        assert_eq!(shown("\u{202e}0hte".as_bytes()), r"\u{202e}0hte");
        assert_eq!(shown(br"dev-x\x2dy"), r"dev-x\x2dy", "as systemd names its groups");
    }
}
