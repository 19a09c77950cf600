//! What was read of pipes and standard input to tell what they are: it is read again by whoever reads them.
//!
//! A text of a host is read whole at once, and as often as it is wanted. Of packets only the beginning is kept,
//! and once: the rest comes from the pipe.

use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::input::Input;

struct Held {
    input: Input,
    bytes: Arc<[u8]>,
    /// What comes behind them; `None` where they are all.
    rest: Option<Box<dyn Read + Send>>,
}

static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// Keeps the beginning of an input, or all of it.
pub(super) fn keep(input: Input, bytes: Vec<u8>, rest: Option<Box<dyn Read + Send>>) {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.push(Held { input, bytes: bytes.into(), rest });
}

/// The input from its beginning; `None` if nothing of it is held.
pub(super) fn source(input: &Input) -> Option<Box<dyn Read + Send>> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let at = held.iter().position(|held| held.input == *input)?;
    if held[at].rest.is_none() {
        return Some(Box::new(Cursor::new(Arc::clone(&held[at].bytes))));
    }
    let Held { bytes, rest, .. } = held.swap_remove(at);
    Some(Box::new(Cursor::new(bytes).chain(rest.unwrap_or_else(|| Box::new(io::empty())))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &Input) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        source(input)?.read_to_end(&mut all).expect("bytes");
        Some(all)
    }

    #[test]
    fn a_whole_text_is_read_again_and_a_beginning_once() {
        let named = |name: &str| Input::File(name.into());
        keep(named("held/text"), b"all".to_vec(), None);
        keep(named("held/pipe"), b"first".to_vec(), Some(Box::new(&b" then"[..])));
        for _ in 0..2 {
            assert_eq!(read(&named("held/text")).as_deref(), Some(&b"all"[..]));
        }
        assert_eq!(read(&named("held/pipe")).as_deref(), Some(&b"first then"[..]));
        assert_eq!(read(&named("held/pipe")), None);
        assert_eq!(read(&named("held/other")), None);
    }
}
