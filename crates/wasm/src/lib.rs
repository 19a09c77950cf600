//! The model in a page: a question goes in as JSON, the answer comes out as JSON.
//!
//! ```text
//!   page                                  module
//!     room(length) ------------------->     a buffer for the question
//!     question written into it
//!     predict() ---------------------->     its answer's length
//!     answer() ----------------------->     where that is
//! ```
//!
//! The module imports nothing and runs on one thread. It keeps the capture that is read and the transfer that was
//! repeated last.
//! `scripts/model.mjs` calls it from Node.

mod explain;
mod question;
mod whatif;

pub use question::answer_to;

use std::cell::RefCell;

thread_local! {
    /// The question while it is written, then its answer.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for a question of this many bytes, and returns where it begins. The last answer is
/// gone with that.
#[expect(unsafe_code, reason = "a name that the page can call")]
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        text.clear();
        text.resize(length, 0);
        text.as_mut_ptr()
    })
}

/// Answers the question in the room, and returns how many bytes the answer has.
#[expect(unsafe_code, reason = "a name that the page can call")]
#[unsafe(no_mangle)]
pub extern "C" fn predict() -> usize {
    in_room(answer_to)
}

/// Repeats the transfer in the room, and returns how many bytes the answer has.
#[expect(unsafe_code, reason = "a name that the page can call")]
#[unsafe(no_mangle)]
pub extern "C" fn study() -> usize {
    in_room(whatif::study)
}

/// Answers a question about the transfer that was repeated last.
#[expect(unsafe_code, reason = "a name that the page can call")]
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> usize {
    in_room(whatif::ask)
}

/// The data of a page without addresses: of those in the room, or of the capture that was explained last.
#[expect(unsafe_code, reason = "a name that the page can call")]
#[unsafe(no_mangle)]
pub extern "C" fn hide() -> usize {
    in_room(explain::hide)
}

/// Puts an answer to what is in the room there.
fn in_room(answer: fn(&[u8]) -> String) -> usize {
    TEXT.with_borrow_mut(|text| {
        *text = answer(text).into_bytes();
        text.len()
    })
}

/// Where the answer begins; it stays there until the next call.
#[expect(unsafe_code, reason = "a name that the page can call")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    TEXT.with_borrow(Vec::as_ptr)
}

/// Begins a capture, whose name is in the room.
#[expect(unsafe_code, reason = "a name that the page can call")]
#[unsafe(no_mangle)]
pub extern "C" fn begin() {
    TEXT.with_borrow(|name| explain::begin(&String::from_utf8_lossy(name)));
}

/// Takes the next bytes of the capture out of the room; 0 where it is damaged and more is of no use.
#[expect(unsafe_code, reason = "a name that the page can call")]
#[unsafe(no_mangle)]
pub extern "C" fn push() -> u32 {
    TEXT.with_borrow(|bytes| u32::from(explain::push(bytes)))
}

/// Ends the capture, and returns how many bytes the answer has.
#[expect(unsafe_code, reason = "a name that the page can call")]
#[unsafe(no_mangle)]
pub extern "C" fn finish() -> usize {
    let told = explain::finish().into_bytes();
    TEXT.with_borrow_mut(|text| {
        *text = told;
        text.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_page_bring_an_answer() {
        let question = br#"{"scenario":"[application]\ndownload = \"1kB\""}"#;
        let place = room(question.len());
        assert!(!place.is_null());
        TEXT.with_borrow_mut(|text| text.copy_from_slice(question));
        let length = predict();
        let told = TEXT.with_borrow(Clone::clone);
        assert_eq!(length, told.len());
        assert_eq!(answer(), TEXT.with_borrow(Vec::as_ptr));
        assert_eq!(String::from_utf8(told).expect("text"), answer_to(question));
    }
}
