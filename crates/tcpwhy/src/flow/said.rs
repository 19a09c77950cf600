//! Bytes that a stranger wrote, as a name that is safe to print.
//!
//! Names and targets come out of packets: whoever sent them chose every byte. What is no part of a URI (RFC 3986
//! section 2) is written as `%` and two digits, as a URI would have it: control characters, what turns the direction of
//! text, what begins markup. So nothing that is printed, put on a page or into JSON can do more than be read.

/// `bytes` with all that belongs in no URI escaped, cut to `most` characters.
pub(crate) fn safe(bytes: &[u8], most: usize) -> String {
    let mut text = String::with_capacity(bytes.len().min(most));
    for byte in bytes {
        let is_plain = matches!(
            byte,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' | b'/' | b'?' | b'#'
                | b'[' | b']' | b'@' | b'!' | b'$' | b'&' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b'%'
        );
        if text.len() + if is_plain { 1 } else { 3 } > most {
            text.push_str("...");
            break;
        }
        if is_plain {
            text.push(char::from(*byte));
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0xf)]);
            text.extend(['%', digit(byte >> 4), digit(*byte)]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_in_a_uri_stays() {
        assert_eq!(safe(b"/a/b.html?x=1&y=%20", 99), "/a/b.html?x=1&y=%20");
        assert_eq!(safe(b"files.example.org", 99), "files.example.org");
    }

    #[test]
    fn what_a_terminal_or_a_page_would_obey_is_escaped() {
        assert_eq!(safe(b"a\x1b[31m\n\0", 99), "a%1B[31m%0A%00");
        assert_eq!(safe("\u{202e}x".as_bytes(), 99), "%E2%80%AEx");
        assert_eq!(safe(b"<b onclick='x'>\"`\\", 99), "%3Cb%20onclick=%27x%27%3E%22%60%5C");
    }

    #[test]
    fn a_long_one_is_cut() {
        assert_eq!(safe(&[b'a'; 10_000], 253).len(), 256);
        assert_eq!(safe(&[b'a'; 253], 253).len(), 253);
        assert_eq!(safe(&[0; 10_000], 20), "%00%00%00%00%00%00...");
    }
}
