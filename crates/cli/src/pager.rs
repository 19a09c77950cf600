//! Text that is longer than the screen goes through a pager, as git has it.
//!
//! Only where standard output is a terminal, and only text for people: what other programs read is never paged. The pager is
//! `$PAGER`, run by the shell, `less` without it; an empty `PAGER` or `cat` is none. `less` begins with `-FRX` unless `LESS`
//! says otherwise: it ends by itself where one screen is enough, keeps colours, and leaves the text on the screen.
//!
//! Nothing is lost: where the pager is not there, or ends other than well, the whole text is printed after all.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;

/// Whether the user wants no pager.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// `--no-pager`: from now on nothing is paged.
pub fn switch_off() {
    IS_OFF.store(true, Ordering::Relaxed);
}

/// Shows `text` in the pager if it is longer than the terminal; whether it did. Where it did not nothing was written.
pub fn show(text: &str) -> bool {
    if IS_OFF.load(Ordering::Relaxed) || !io::stdout().is_terminal() {
        return false;
    }
    let Some((columns, rows)) = terminal_size::terminal_size().map(|size| (size.0.0, size.1.0))
    else {
        return false;
    };
    if !is_longer(text, usize::from(columns), usize::from(rows)) {
        return false;
    }
    asked(env::var("PAGER").ok()).is_some_and(|pager| page(&pager, text).is_ok_and(is_well))
}

/// The pager that `PAGER` asks for.
fn asked(pager: Option<String>) -> Option<String> {
    let pager = pager.unwrap_or_else(|| "less".to_owned());
    (!matches!(pager.trim(), "" | "cat")).then_some(pager)
}

/// Whether `text` takes more rows than a screen leaves beside the prompt.
fn is_longer(text: &str, columns: usize, rows: usize) -> bool {
    let takes = |line| crate::screen::visible_columns(line).div_ceil(columns.max(1)).max(1);
    text.lines().map(takes).sum::<usize>() >= rows
}

/// Runs `pager` and gives it `text`.
fn page(pager: &str, text: &str) -> io::Result<ExitStatus> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    // Ctrl-C in the pager is the pager's: without us nobody would wait for it.
    let stays = signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    let ended = command.spawn().and_then(|child| feed(child, text));
    signal_hook::low_level::unregister(stays);
    ended
}

/// Gives `text` to a pager, which may have seen enough before its end, and waits for it.
fn feed(mut child: Child, text: &str) -> io::Result<ExitStatus> {
    if let Some(mut to) = child.stdin.take() {
        // How the pager ends tells whether this mattered.
        let _ = to.write_all(text.as_bytes());
    }
    child.wait()
}

/// Whether the pager ended as one does that showed what it got. Shells say 127 for a program that is not there.
fn is_well(status: ExitStatus) -> bool {
    status.success()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_longer_where_the_prompt_finds_no_room() {
        assert!(!is_longer("a\nb\n", 80, 3));
        assert!(is_longer("a\nb\nc\n", 80, 3));
        assert!(is_longer(&format!("{}\n", "x".repeat(161)), 80, 3));
        assert!(!is_longer("\u{1b}[31mred\u{1b}[0m\n", 3, 2));
    }

    #[test]
    fn no_pager_is_a_pager_too() {
        let asked = |pager: &str| asked(Some(pager.to_owned()));
        assert_eq!((asked(""), asked(" "), asked("cat")), (None, None, None));
        assert_eq!(asked("more -s").as_deref(), Some("more -s"));
        assert_eq!(super::asked(None).as_deref(), Some("less"));
    }

    #[test]
    fn a_pager_that_is_not_there_or_dies_is_told_from_one_that_read() {
        let ends = |pager: &str| page(pager, &"line\n".repeat(100_000)).is_ok_and(is_well);
        assert!(ends("cat >/dev/null"));
        assert!(ends("head -1 >/dev/null"), "has seen enough");
        assert!(!ends("/no/such/pager 2>/dev/null"));
        assert!(!ends("kill -9 $$"));
    }
}
