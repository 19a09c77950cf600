//! What people and terminals add to a line: colours, marks of a quotation, remarks.

use std::borrow::Cow;

use crate::shown::{prints, shown};

/// A line without colours (the control sequences of ECMA-48 section 5.4), in which what else does not print is
/// escaped.
pub(super) fn harmless(raw: &str) -> Cow<'_, str> {
    if raw.bytes().all(|byte| byte == b'\t' || (0x20..0x7f).contains(&byte)) {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut letters = raw.trim_end().trim_start_matches('\u{feff}').chars();
    while let Some(letter) = letters.next() {
        let rest = letters.as_str();
        if letter == '\u{1b}'
            && let Some(rest) = rest.strip_prefix('[')
            && let Some(end) = rest.find(|c: char| !matches!(c, '\u{20}'..='\u{3f}'))
            && matches!(rest.as_bytes()[end], 0x40..=0x7e)
        {
            letters = rest[end + 1..].chars();
        } else if letter == '\t' || prints(letter) {
            text.push(letter);
        } else if letter.is_whitespace() {
            text.push(' ');
        } else {
            text.push_str(&shown(letter.encode_utf8(&mut [0; 4]).as_bytes()));
        }
    }
    Cow::Owned(text)
}

/// A line without the marks of a quotation in front of it, which mail and tickets add.
pub(super) fn unquoted(raw: &str) -> &str {
    let mut text = raw;
    while let Some(rest) = text.strip_prefix('>').or_else(|| text.strip_prefix('|')) {
        text = rest.strip_prefix(' ').unwrap_or(rest);
    }
    text
}

/// A comment, a rule, or a mark that something was left out.
pub(super) fn is_remark(text: &str) -> bool {
    let marks = |c: char| "-=*_~+.…`[](){}<> ".contains(c);
    let is_known =
        text.starts_with(['#', ';']) || text.starts_with("//") || text.chars().all(marks);
    is_known || is_markup(text) || {
        let bare = text.trim_matches(marks).to_lowercase();
        ["snip", "snipped", "omitted", "cut", "truncated"].contains(&bare.as_str())
    }
}

/// Marks around what is shown as it was printed: `<pre>`, `{code:bash}`, `[code]`.
fn is_markup(text: &str) -> bool {
    const NAMES: [&str; 8] = ["pre", "code", "html", "body", "noformat", "quote", "div", "p"];
    let framed = [('<', '>'), ('{', '}'), ('[', ']')]
        .into_iter()
        .any(|(first, last)| text.starts_with(first) && text.ends_with(last));
    framed
        && text.split(['<', '>', '{', '}', '[', ']']).filter(|tag| !tag.trim().is_empty()).all(
            |tag| {
                let name = tag.trim_start_matches('/');
                let end = name.find([' ', ':', '=']).unwrap_or(name.len());
                NAMES.contains(&&name[..end])
            },
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frames_output_in_tickets_is_a_remark() {
        for mark in
            ["<html><body><pre>", "</pre></body>", "{code:bash}", "{noformat}", "[/code]", "```"]
        {
            assert!(is_remark(mark), "{mark}");
        }
        for text in ["<BROADCAST,UP> mtu 1500", "{\"a\": 1}", "[pid 7]", "<pre>ESTAB</pre>", "code"]
        {
            assert!(!is_remark(text), "{text}");
        }
    }
}
