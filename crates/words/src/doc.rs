//! Pages of the manual, cut out of the heads of the files that hold the rules.

use core::fmt::Write as _;

/// The sections of every page, in this order.
pub const SECTIONS: [&str; 5] =
    ["What it says", "How we know", "What it is not", "What to do", "Sources"];

/// One page of the manual.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    /// The finding's code.
    pub code: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// The text from the first section on: Markdown, with `# ` before each section's name.
    pub text: String,
}

/// Cuts the page of `code` out of `file`.
pub fn page(code: &'static str, file: &'static str) -> Page {
    let mut lines = file
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line));
    let title = lines.next().unwrap_or_default();
    let text: Vec<&str> = lines.skip_while(|line| !line.starts_with("# ")).collect();
    Page { code, title, text: text.join("\n") + "\n" }
}

/// A file's text up to its tests.
pub fn without_tests(file: &'static str) -> &'static str {
    file.split("#[cfg(test)]").next().unwrap_or(file)
}

/// Whether `name` is in `text` as a word of its own.
pub fn speaks_of(text: &str, name: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) =
            (text[..at].chars().next_back(), text[at + name.len()..].chars().next());
        !before.is_some_and(is_inside) && !after.is_some_and(is_inside)
    })
}

/// The rows of a table of contents, and each page as a chapter.
pub fn chapters(out: &mut String, pages: &[Page]) {
    for Page { code, title, .. } in pages {
        let anchor = code.to_ascii_lowercase();
        let _ = writeln!(out, "| [`{code}`](#{anchor}) | {title} |");
    }
    for page in pages {
        chapter(out, page);
    }
}

fn chapter(out: &mut String, Page { code, title, text }: &Page) {
    let text = format!("\n{}", text.trim_end()).replace("\n# ", "\n### ");
    let _ = writeln!(out, "\n## {code}\n\n{title}\n{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_the_head_of_a_file_and_nothing_after_it() {
        let file =
            "//! Title.\n//!\n//! # What it says\n//! One.\n//!\n//! Two.\n\nuse x;\n//! no\n";
        let page = page("CODE", file);
        assert_eq!((page.code, page.title), ("CODE", "Title."));
        assert_eq!(page.text, "# What it says\nOne.\n\nTwo.\n");
    }
}
