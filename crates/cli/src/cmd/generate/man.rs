//! Manual pages: of the commands from their flags, and of what they say from the manual that `tcpwhy doc` prints.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use tcpwhy::find::doc::{self, Page};
use tcpwhy::host::doc as checks;

/// Writes all pages below `folder`, as `man` looks for them.
pub(super) fn write(whole: &Command, folder: &Path) -> io::Result<()> {
    for (section, name, text) in pages(whole) {
        let section = folder.join(format!("man{section}"));
        fs::create_dir_all(&section)?;
        fs::write(section.join(name), text)?;
    }
    Ok(())
}

/// Each page with its section and its file's name.
fn pages(whole: &Command) -> Vec<(u8, String, String)> {
    let mut pages = vec![(1, "tcpwhy.1".to_owned(), in_roff(whole))];
    for command in whole.get_subcommands().filter(|command| command.get_name() != "help") {
        add_command(&mut pages, "tcpwhy", command);
    }
    let manuals = [
        ("findings", "what tcpwhy finds", doc::pages()),
        ("states", "what a sender waits for", doc::states()),
        ("checks", "what tcpwhy checks on a host", checks::pages()),
    ];
    for (name, about, manual) in manuals {
        let text = manual_page(&format!("tcpwhy-{name}"), about, &manual);
        pages.push((7, format!("tcpwhy-{name}.7"), text));
    }
    pages
}

fn add_command(pages: &mut Vec<(u8, String, String)>, parent: &str, command: &Command) {
    let name = format!("{parent}-{}", command.get_name());
    let page = command.clone().display_name(name.clone());
    pages.push((1, format!("{name}.1"), in_roff(&page)));
    for inner in command.get_subcommands().filter(|command| command.get_name() != "help") {
        add_command(pages, &name, inner);
    }
}

/// The page of a command.
pub(super) fn in_roff(command: &Command) -> String {
    let mut page = Vec::new();
    // Memory takes it.
    let _ = Man::new(command.clone()).source(SOURCE).manual("tcpwhy").render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

const SOURCE: &str = concat!("tcpwhy ", env!("CARGO_PKG_VERSION"));

/// A manual in the seventh section.
fn manual_page(name: &str, about: &str, pages: &[Page]) -> String {
    let mut roff = Roff::new();
    roff.control("TH", [&*name.to_uppercase(), "7", "", SOURCE, "tcpwhy"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {about}"))]);
    for page in pages {
        roff.control("SH", [page.code]);
        roff.text(inlines(page.title));
        written(&mut roff, &page.text);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("tcpwhy"), roman("(1), "), bold("tcpwhy-doc"), roman("(1)")]);
    roff.render()
}

/// What a block of Markdown begins with.
enum Block<'a> {
    Heading(&'a str),
    Item(&'a str),
    Literal(&'a str),
    Text(&'a str),
    End,
}

fn block(line: &str) -> Block<'_> {
    let text = line.trim_start();
    if text.is_empty() || text.starts_with("```") {
        return Block::End;
    }
    if let Some(heading) = text.strip_prefix('#') {
        return Block::Heading(heading.trim_start_matches('#').trim());
    }
    if let Some(item) = text.strip_prefix("- ") {
        return Block::Item(item);
    }
    if line.starts_with("    ") || text.starts_with('|') {
        Block::Literal(text)
    } else {
        Block::Text(text)
    }
}

/// The Markdown of the manual: headings, paragraphs, lists, and lines that stay as they are.
fn written(roff: &mut Roff, markdown: &str) {
    let (mut paragraph, mut is_literal, mut is_headed) = (String::new(), false, true);
    for line in markdown.lines().chain([""]) {
        let block = block(line);
        if !matches!(block, Block::Text(_)) && !paragraph.is_empty() {
            roff.text(inlines(&std::mem::take(&mut paragraph)));
        }
        if is_literal && !matches!(block, Block::Literal(_)) {
            roff.control("fi", []);
            is_literal = false;
        }
        match block {
            Block::End => {}
            Block::Heading(title) => {
                roff.control("SS", [title]);
                is_headed = true;
            }
            Block::Item(text) => {
                roff.control("IP", ["-", "2"]);
                is_headed = false;
                paragraph.push_str(text);
            }
            Block::Literal(text) => {
                if !is_literal {
                    apart(roff, &mut is_headed);
                    roff.control("nf", []);
                    is_literal = true;
                }
                roff.text([roman(text)]);
            }
            Block::Text(text) => {
                if paragraph.is_empty() {
                    apart(roff, &mut is_headed);
                } else {
                    paragraph.push(' ');
                }
                paragraph.push_str(text);
            }
        }
    }
}

/// Begins a paragraph, which the first below a heading needs not.
fn apart(roff: &mut Roff, is_headed: &mut bool) {
    if !core::mem::take(is_headed) {
        roff.control("PP", []);
    }
}

/// `Code` in bold, *emphasis* in italics.
fn inlines(text: &str) -> Vec<Inline> {
    let mut parts = Vec::new();
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            parts.push(bold(part));
            continue;
        }
        for (at, part) in part.split('*').enumerate() {
            parts.push(if at % 2 == 1 { italic(part) } else { roman(part) });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_every_finding_has_a_page() {
        let mut whole = crate::whole_command();
        whole.build();
        let pages = pages(&whole);
        let find = |name: &str| &pages.iter().find(|page| page.1 == name).expect(name).2;
        assert!(find("tcpwhy.1").contains("\\-\\-full") || find("tcpwhy.1").contains("\\-\\-json"));
        assert!(find("tcpwhy-whatif.1").contains("tcpwhy\\-whatif"));
        assert!(find("tcpwhy-lab-run.1").contains("SYNOPSIS"));
        for page in doc::pages() {
            assert!(
                find("tcpwhy-findings.7").contains(&format!(".SH {}", page.code)),
                "{}",
                page.code
            );
        }
    }

    #[test]
    fn the_manual_s_markdown_becomes_roff() {
        let mut roff = Roff::new();
        written(&mut roff, "# How\nTwo `code`\nlines.\n\n- an *item*\n- another\n\n    as it is\n");
        let text = roff.render();
        for part in [
            ".SS How",
            "Two \\fBcode\\fR lines.",
            ".IP - 2",
            "an \\fIitem\\fR",
            ".nf\nas it is\n.fi",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
