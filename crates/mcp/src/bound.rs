//! Answers of a stated length. What is cut is said in words, with what to ask next.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use tcpwhy_host::shown;

/// Bytes of an answer's text. Ours: some 4,000 to 6,000 tokens; the longest account of one connection in full that the
/// tests' captures have takes 11 kB.
pub const MOST_TEXT: usize = 16 << 10;

/// Bytes of an answer's facts, as JSON. Ours: as many.
pub const MOST_FACTS: usize = 16 << 10;

/// Bytes of one word, sentence or name among the facts. Ours: the longest sentence of a finding has 1 kB.
const MOST_WORDS: usize = 2 << 10;

/// Kept free for what is said of the cut.
const ROOM: usize = 512;

/// A text in which nothing but the ends of its lines is obeyed by a terminal, cut at the end of a line if it is too long.
pub(crate) fn text(whole: &str, next: &str) -> String {
    let mut text = String::new();
    for (at, line) in whole.lines().enumerate() {
        let line = shown(line.as_bytes());
        if text.len() + line.len() + ROOM > MOST_TEXT {
            let left = whole.lines().count() - at;
            let lines = if left == 1 { "line is" } else { "lines are" };
            let _ = writeln!(
                text,
                "[cut: an answer has at most {MOST_TEXT} bytes, and {left} more {lines} not shown. {next}]"
            );
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Escapes what a terminal obeys, and shortens lists until all facts together are short enough; how many items were
/// left out.
pub(crate) fn facts(value: &mut Value) -> u64 {
    show(value);
    let mut left_out = 0;
    while length(value) + ROOM > MOST_FACTS {
        match halve(value) {
            Some(items) => left_out += items,
            // One fact of a client's making; none of ours is so long.
            None => *value = Value::Object(Map::new()),
        }
    }
    left_out
}

/// Escapes what does not print in each text, and cuts what is too long.
fn show(value: &mut Value) {
    match value {
        Value::String(text) => {
            let mut whole = shown(text.as_bytes());
            if whole.len() > MOST_WORDS {
                whole.truncate(whole.floor_char_boundary(MOST_WORDS));
                whole.push_str(" ..");
            }
            *text = whole;
        }
        Value::Array(items) => items.iter_mut().for_each(show),
        Value::Object(fields) => fields.values_mut().for_each(show),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Takes the second half of the longest list away; how many items that is, and `None` if no list has any.
fn halve(value: &mut Value) -> Option<u64> {
    let list = longest(value)?;
    let keep = list.len() / 2;
    let items = list.len() - keep;
    list.truncate(keep);
    Some(items as u64)
}

/// The list to shorten: the longest, or one inside it that takes most of its room.
fn longest(value: &mut Value) -> Option<&mut Vec<Value>> {
    let whole = length(value);
    match value {
        Value::Array(items) => {
            let (at, most) = items.iter().map(length).enumerate().max_by_key(|each| each.1)?;
            if most * 2 > whole && has_items(&items[at]) {
                longest(&mut items[at])
            } else {
                Some(items)
            }
        }
        Value::Object(fields) => longest(
            fields.values_mut().filter(|each| has_items(each)).max_by_key(|each| length(each))?,
        ),
        _ => None,
    }
}

fn has_items(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => fields.values().any(has_items),
        _ => false,
    }
}

fn length(value: &Value) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_short_text_stays_and_a_long_one_is_cut_at_a_line_and_says_so() {
        assert_eq!(text("one\ntwo\n", "Ask."), "one\ntwo\n");
        let long = "0123456789\n".repeat(MOST_TEXT);
        let cut = text(&long, "Ask for less.");
        assert!(cut.len() <= MOST_TEXT, "{}", cut.len());
        let last = cut.lines().last().expect("lines");
        assert!(last.starts_with("[cut: ") && last.ends_with("Ask for less.]"), "{last}");
        let kept = cut.lines().count() - 1;
        assert!(last.contains(&format!("{} more lines", MOST_TEXT - kept)), "{last}");
    }

    #[test]
    fn one_endless_line_is_left_out_whole() {
        let cut = text(&"x".repeat(MOST_TEXT * 3), "Ask.");
        assert!(cut.starts_with("[cut: ") && cut.contains("1 more line is"), "{cut}");
    }

    #[test]
    fn what_a_terminal_obeys_is_escaped_in_text_and_facts() {
        assert_eq!(text("a\u{1b}[2J\u{202e}b\nc", ""), "a\\u{1b}[2J\\u{202e}b\nc\n");
        let mut value = json!({ "name": ["a\u{7}\nb"] });
        assert_eq!(facts(&mut value), 0);
        assert_eq!(value, json!({ "name": ["a\\u{7}\\nb"] }));
    }

    #[test]
    fn the_longest_list_is_shortened_and_what_is_left_out_is_counted() {
        let items: Vec<_> = (0..5000).map(|number| json!({ "frame": number })).collect();
        let mut value = json!({ "few": [1, 2, 3], "many": items, "word": "x" });
        let left_out = facts(&mut value);
        let kept = value["many"].as_array().expect("a list");
        assert_eq!(kept.len() as u64 + left_out, 5000);
        assert!(kept.len() > 100 && kept[0]["frame"] == 0, "{}", kept.len());
        assert_eq!((&value["few"], &value["word"]), (&json!([1, 2, 3]), &json!("x")));
        assert!(length(&value) <= MOST_FACTS);
    }

    #[test]
    fn a_long_list_inside_a_short_one_is_the_one_that_is_shortened() {
        let many: Vec<_> = (0..5000).collect();
        let mut value = json!({ "hosts": [{ "name": "a", "findings": many }, { "name": "b", "findings": [1] }] });
        assert!(facts(&mut value) > 0);
        assert_eq!(value["hosts"].as_array().map(Vec::len), Some(2));
        assert_eq!(value["hosts"][1], json!({ "name": "b", "findings": [1] }));
    }

    #[test]
    fn facts_end_whatever_they_are() {
        let words = Value::String("x".repeat(MOST_WORDS));
        let mut fields = Map::new();
        fields.extend((0..100).map(|number| (number.to_string(), words.clone())));
        let mut value = Value::Object(fields);
        facts(&mut value);
        assert_eq!(value, json!({}));
        let mut nested = json!([[[vec!["x".repeat(MOST_WORDS); 9]]]]);
        assert!(facts(&mut nested) > 0 && length(&nested) <= MOST_FACTS);
    }
}
