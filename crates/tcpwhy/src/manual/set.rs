//! A page of the manual set for a terminal: paragraphs filled to its columns, commands and lists left as they are.

use core::fmt::Write as _;

use tcpwhy_words::doc::Page;

/// `page` in `columns` columns.
pub fn set(page: &Page, columns: usize) -> String {
    let mut text = hanging("", &format!("{}: {}", page.code, page.title), columns);
    text.push('\n');
    let mut paragraph = String::new();
    for line in page.text.lines() {
        let begins = line.is_empty() || line.starts_with(['#', ' ', '|']) || is_item(line);
        if begins {
            flush(&mut text, &mut paragraph, columns);
        }
        if let Some(section) = line.strip_prefix("# ") {
            let _ = writeln!(text, "{section}");
        } else if line.is_empty() {
            text.push('\n');
        } else if line.starts_with([' ', '|']) {
            // A command or a table: to break it would make something else of it.
            let _ = writeln!(text, "  {}", line.trim_end());
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line.trim());
        }
    }
    flush(&mut text, &mut paragraph, columns);
    text
}

fn is_item(line: &str) -> bool {
    line.starts_with("- ") || line.starts_with("* ")
}

fn flush(text: &mut String, paragraph: &mut String, columns: usize) {
    if paragraph.is_empty() {
        return;
    }
    let words = paragraph.strip_prefix(['-', '*']).filter(|_| is_item(paragraph));
    let set = match words {
        Some(words) => hanging("  - ", words, columns),
        None => hanging("  ", paragraph, columns),
    };
    text.push_str(&set);
    paragraph.clear();
}

/// `words` behind `first`, later lines below where the first one's words begin. Where few columns are left for them they begin at the
/// second column.
pub(super) fn hanging(first: &str, words: &str, columns: usize) -> String {
    let indent = first.chars().count();
    let indent = if indent > 2 && indent + LEAST > columns { 2 } else { indent };
    let mut text = first.to_owned();
    let mut column = first.chars().count();
    let mut is_fresh = true;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        let space = usize::from(!is_fresh);
        if column + space + length > columns && column > indent {
            text.truncate(text.trim_end().len());
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if space > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
        is_fresh = false;
    }
    text.push('\n');
    text
}

/// Fewest columns that words behind a name are set in. Ours.
const LEAST: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_filled_and_commands_are_left_alone() {
        let text = "# What\none two\nthree four five\n\n    a  command that is long\n- an item\n  of two\n";
        let page = Page { code: "X", title: "a title.", text: text.to_owned() };
        assert_eq!(
            set(&page, 20),
            "X: a title.\n\nWhat\n  one two three four\n  five\n\n      a  command that is long\n  - an item\n    of two\n"
        );
    }

    #[test]
    fn nothing_is_wider_than_the_terminal_unless_a_word_is() {
        for columns in [20, 40, 80, 200] {
            let text = hanging("  NAME  ", "some words that go on and on and on and on", columns);
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
            let joined: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(joined.join(" "), "NAME some words that go on and on and on and on");
        }
    }
}
