//! What a person at a terminal sees while reading goes on.
//!
//! A line of progress on standard error, and after [`PATIENCE`] the provisional result on standard
//! output, redrawn now and then. Both are erased before the final result is printed, and neither
//! is drawn where no terminal is: files and pipes get the final result alone.

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
    preview_rows: usize,
    next_preview: Duration,
}

impl Screen {
    /// A screen on which nothing is drawn yet.
    pub const fn new(progress: bool, preview: Option<(u16, u16)>) -> Self {
        Self { progress, preview, line_drawn: false, preview_rows: 0, next_preview: PATIENCE }
    }

    /// Whether the provisional result is to be drawn (again) now.
    pub fn wants_preview(&self, elapsed: Duration) -> bool {
        self.preview.is_some() && elapsed >= self.next_preview
    }

    /// Draws `text` over the preview before it; `cost` is the time it took to make.
    ///
    /// What does not fit on the screen could not be erased again and is left away.
    pub fn draw_preview(&mut self, text: &str, elapsed: Duration, cost: Duration) {
        let Some((columns, rows)) = self.preview else { return };
        self.clear();
        let room = usize::from(rows).saturating_sub(2);
        let columns = usize::from(columns).max(1);
        let mut drawn = String::new();
        for line in text.lines() {
            let takes = visible_columns(line).div_ceil(columns).max(1);
            if self.preview_rows + takes > room {
                break;
            }
            self.preview_rows += takes;
            drawn.push_str(line);
            drawn.push('\n');
        }
        // A terminal that went away stops nothing: the final write will tell.
        let _ = write_flushed(&mut io::stdout().lock(), &drawn);
        self.next_preview = elapsed + PAUSE.max(cost * COST_SHARE);
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
        let rows = std::mem::take(&mut self.preview_rows);
        if rows > 0 {
            let up = format!("\r\x1b[{rows}A{ERASE_TO_END}");
            let _ = write_flushed(&mut io::stdout().lock(), &up);
        }
    }
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
fn visible_columns(line: &str) -> usize {
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

/// ECMA-48 ED: erase from the cursor to the end of the screen.
const ERASE_TO_END: &str = "\x1b[J";

/// Runs shorter than this show no progress. Ours: it would only flicker.
const QUIET: Duration = Duration::from_millis(300);

/// Reading for longer than this deserves a first answer. Ours: it stands 200 ms after the start, for
/// reading looks at the clock each 50 ms and making it takes some more.
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

    #[test]
    fn a_costly_preview_is_drawn_less_often() {
        let mut screen = Screen::new(false, Some((80, 0)));
        assert!(!screen.wants_preview(Duration::from_millis(99)));
        assert!(screen.wants_preview(Duration::from_millis(100)));
        screen.draw_preview("text", Duration::from_secs(2), Duration::from_secs(1));
        assert!(!screen.wants_preview(Duration::from_secs(21)));
        assert!(screen.wants_preview(Duration::from_secs(22)));
    }
}
