//! What a person at a terminal sees while reading goes on.
//!
//! A line of progress on standard error, and after [`PATIENCE`] the provisional result on standard
//! output, redrawn while packets come. Both are erased before the final result is printed, and neither
//! is drawn where no terminal is: files and pipes get the final result alone.
//!
//! In `tcpdump -w - | tcpwhy -` both write to one terminal, and tcpdump has some last words on Ctrl-C. So the
//! place of the provisional result is saved, not counted back to, and some rows are kept free below it.

use std::io::{self, Write};
use std::time::Duration;

use crate::read::Progress;

/// The terminal during a run.
#[derive(Debug)]
pub struct Screen {
    /// Draw the progress line.
    pub progress: bool,
    /// Rows and columns for the provisional result; `None`: do not draw it.
    pub preview: Option<(u16, u16)>,
    line_drawn: bool,
    preview_drawn: bool,
    next_preview: Duration,
    /// Packets in the provisional result that was drawn last.
    packets: u64,
}

impl Screen {
    /// A screen on which nothing is drawn yet.
    pub const fn new(progress: bool, preview: Option<(u16, u16)>) -> Self {
        Self {
            progress,
            preview,
            line_drawn: false,
            preview_drawn: false,
            next_preview: PATIENCE,
            packets: 0,
        }
    }

    /// Whether the provisional result is to be drawn (again) now: there is more to tell.
    pub fn wants_preview(&self, progress: &Progress) -> bool {
        self.preview.is_some()
            && progress.packets > self.packets
            && progress.elapsed >= self.next_preview
    }

    /// Draws `text`, made of `progress`, over the preview before it; `cost` is the time it took to make.
    pub fn draw_preview(&mut self, text: &str, progress: &Progress, cost: Duration) {
        let Some(size) = self.preview else { return };
        self.clear();
        let size = terminal_size::terminal_size().map_or(size, |now| (now.0.0, now.1.0));
        if let Some(drawn) = fitted(text, size) {
            // A terminal that went away stops nothing: the final write will tell.
            let _ = write_flushed(&mut io::stdout().lock(), &drawn);
            self.preview_drawn = true;
        }
        self.packets = progress.packets;
        self.next_preview = progress.elapsed + PAUSE.max(cost * COST_SHARE);
    }

    /// Draws the progress line.
    pub fn draw_progress(&mut self, progress: &Progress) {
        if self.progress && progress.elapsed >= QUIET {
            let line = format!("\r{}{ERASE_TO_END}", words(progress));
            let _ = write_flushed(&mut io::stderr().lock(), &line);
            self.line_drawn = true;
        }
    }

    /// Erases all that was drawn.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.line_drawn) {
            let _ = write_flushed(&mut io::stderr().lock(), &format!("\r{ERASE_TO_END}"));
        }
        if std::mem::take(&mut self.preview_drawn) {
            let back = format!("{RESTORE}{ERASE_TO_END}");
            let _ = write_flushed(&mut io::stdout().lock(), &back);
        }
    }
}

/// What of `text` fits on a screen of this many columns and rows, with the rows made free for it and its
/// place saved. What does not fit could not be erased again, and is left out.
fn fitted(text: &str, (columns, rows): (u16, u16)) -> Option<String> {
    let columns = usize::from(columns).max(1);
    let room = usize::from(rows).saturating_sub(SPARE);
    let (mut drawn, mut used) = (String::new(), 0);
    for line in text.lines() {
        let takes = visible_columns(line).div_ceil(columns).max(1);
        if used + takes > room {
            break;
        }
        used += takes;
        drawn.push_str(line);
        drawn.push('\n');
    }
    // At the bottom of the screen these lines move it up now, and not after its place was saved.
    let free = used + SPARE - 1;
    (used > 0).then(|| format!("{}\r\x1b[{free}A{SAVE}{drawn}", "\n".repeat(free)))
}

/// `412 MiB of 1.20 GiB (34 %), 3,456,789 packets, 2.3 s`
fn words(progress: &Progress) -> String {
    let of = progress.of.filter(|&of| of > 0).map_or_else(String::new, |of| {
        // What is read beyond the size (a file that grows) is still at most all of it.
        let percent = u128::from(progress.bytes.min(of)) * 100 / u128::from(of);
        format!(" of {} ({percent} %)", size(of))
    });
    let (bytes, packets) = (size(progress.bytes), grouped(progress.packets));
    format!("{bytes}{of}, {packets} packets, {:.1} s", progress.elapsed.as_secs_f64())
}

fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    let decimals = usize::from(unit != "B" && value < 100.0);
    format!("{value:.decimals$} {unit}")
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Columns a line takes, colour codes (`ESC [ ... m`) not counted.
pub(crate) fn visible_columns(line: &str) -> usize {
    let mut columns = 0;
    let mut in_code = false;
    for c in line.chars() {
        match c {
            '\x1b' => in_code = true,
            'm' if in_code => in_code = false,
            _ if in_code => {}
            _ => columns += 1,
        }
    }
    columns
}

fn write_flushed(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

/// Rows below the provisional result. Ours: the line of progress, tcpdump's three last words, each with what
/// the terminal echoes, and one to go on.
const SPARE: usize = 6;

/// DEC's private DECSC and DECRC, which every terminal in use has: save the cursor's place, and go there.
const SAVE: &str = "\x1b7";
const RESTORE: &str = "\x1b8";

/// ECMA-48 ED: erase from the cursor to the end of the screen.
const ERASE_TO_END: &str = "\x1b[J";

/// Runs shorter than this show no progress. Ours: it would only flicker.
const QUIET: Duration = Duration::from_millis(300);

/// Reading for longer than this deserves a first answer. Ours: the answer is there 200 ms after the start.
/// Reading looks at the clock each 50 ms, and making the answer takes some more.
const PATIENCE: Duration = Duration::from_millis(100);

/// Least time between two provisional results.
const PAUSE: Duration = Duration::from_secs(2);

/// A provisional result may cost a twentieth of the run at most.
const COST_SHARE: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_how_much_how_many_and_how_long() {
        let progress = Progress {
            bytes: 412 << 20,
            of: Some(1229 << 20),
            packets: 3_456_789,
            elapsed: Duration::from_millis(2_345),
        };
        assert_eq!(words(&progress), "412 MiB of 1.2 GiB (33 %), 3,456,789 packets, 2.3 s");
        let pipe = Progress { bytes: 999, of: None, packets: 7, ..progress };
        assert_eq!(words(&pipe), "999 B, 7 packets, 2.3 s");
        let empty = Progress { bytes: 0, of: Some(0), packets: 0, ..progress };
        assert_eq!(words(&empty), "0 B, 0 packets, 2.3 s");
    }

    #[test]
    fn colour_codes_take_no_columns() {
        assert_eq!(visible_columns("\x1b[1;31mfull\x1b[0m window"), "full window".len());
    }

    /// Progress of this many packets after this many milliseconds.
    fn after(ms: u64, packets: u64) -> Progress {
        Progress { bytes: 0, of: None, packets, elapsed: Duration::from_millis(ms) }
    }

    #[test]
    fn a_costly_preview_is_drawn_less_often() {
        let mut screen = Screen::new(false, Some((80, 0)));
        assert!(!screen.wants_preview(&after(99, 5)));
        assert!(screen.wants_preview(&after(100, 5)));
        screen.draw_preview("", &after(2_000, 5), Duration::from_secs(1));
        assert!(!screen.wants_preview(&after(21_000, 9)));
        assert!(screen.wants_preview(&after(22_000, 9)));
    }

    #[test]
    fn without_new_packets_nothing_is_drawn_again() {
        let mut screen = Screen::new(false, Some((80, 0)));
        assert!(!screen.wants_preview(&after(100, 0)), "nothing is there yet");
        screen.draw_preview("", &after(100, 5), Duration::ZERO);
        assert!(!screen.wants_preview(&after(60_000, 5)));
        assert!(screen.wants_preview(&after(60_000, 6)));
    }

    #[test]
    fn a_preview_leaves_rows_for_the_words_of_others() {
        let (below, up) = ("\n".repeat(9), "\r\x1b[9A\x1b7");
        assert_eq!(fitted("a\nb\nc\nd\ne\n", (80, 10)), Some(format!("{below}{up}a\nb\nc\nd\n")));
        assert_eq!(
            fitted("wide wide\nb\n", (5, 9)),
            Some(format!("{}\r\x1b[8A\x1b7wide wide\nb\n", "\n".repeat(8)))
        );
        assert_eq!(fitted("a\n", (80, 6)), None, "no room at all");
    }
}
