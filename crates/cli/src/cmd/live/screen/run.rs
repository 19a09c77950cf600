//! The loop of the terminal: looks come in, keys come in, frames go out.

use std::io;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::{Screen, Seen, Turn};

/// What the screen asks for, look after look.
pub(crate) trait Tick {
    /// Looks once; false if there is no more to look at (a replay at its end).
    ///
    /// # Errors
    /// The kernel or the file does not answer any more.
    fn look(&mut self) -> anyhow::Result<bool>;

    /// How long to wait between looks.
    fn interval(&self) -> Duration;

    /// What was seen so far.
    fn seen(&self) -> Seen<'_>;
}

/// Shows `source` until a key or a signal ends it.
///
/// # Errors
/// The terminal or the source fails; the terminal is put back first.
pub(crate) fn run(source: &mut impl Tick, is_over: &dyn Fn() -> bool) -> anyhow::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let end = shown(&mut terminal, source, is_over);
    ratatui::try_restore()?;
    end
}

fn shown(
    terminal: &mut DefaultTerminal,
    source: &mut impl Tick,
    is_over: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    /// Ours: how long a signal may go unheard.
    const HEARD: Duration = Duration::from_millis(200);
    let mut screen = Screen::default();
    let mut goes_on = source.look()?;
    let mut due = Instant::now() + source.interval();
    loop {
        terminal.draw(|frame| screen.draw(frame, &source.seen()))?;
        loop {
            let wait = due.saturating_duration_since(Instant::now()).min(HEARD);
            if is_over() {
                return Ok(());
            }
            if has_event(wait)? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        if screen.key(key, &source.seen()) == Turn::Quit {
                            return Ok(());
                        }
                        break;
                    }
                    Event::Resize(..) => break,
                    _ => {}
                }
            }
            if Instant::now() >= due {
                break;
            }
        }
        if Instant::now() >= due {
            due = Instant::now() + source.interval();
            if goes_on && !screen.is_paused {
                goes_on = source.look()?;
            }
        }
    }
}

/// Whether there is a key to read, or the terminal has another size. A signal is neither.
///
/// # Errors
/// The terminal has gone away: crossterm would read its end again and again.
fn has_event(wait: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut input = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec::try_from(wait).unwrap_or_default();
    match rustix::event::poll(&mut input, Some(&wait)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if input[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal has gone away"));
    }
    match event::poll(Duration::ZERO) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        other => other,
    }
}
