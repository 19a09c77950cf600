//! tcpwhy's answers for assistants: a server of the Model Context Protocol over standard input and output.
//!
//! ```text
//! lines -> server -> tools (arguments, schemas) -> folders (files) -> Answers -> bound -> lines
//! bytes    SDK       typed                         opened             words     bytes
//! ```
//!
//! [`Answers`] is whoever knows: this crate reads no captures and judges nothing. It keeps what a client may ask in
//! bounds: [`folders`] hands out files below the folders that were named and no others, `lines` takes messages of a
//! stated length and keeps what was not taken yet from piling up, `server` lets one question at a time work and ends
//! it when the client no longer wants it, and `bound` cuts answers to a stated length and says so.

mod answers;
mod bound;
pub mod folders;
mod lines;
mod server;
mod tools;

pub use answers::{
    Account, Answer, Answers, Cause, Change, Changes, Checked, Evidence, Explained, Facts, Found,
    Frame, FrameRange, Frames, Gain, Opinion, Page, Refused, Remedy, Said, State, Summary, Time,
};
pub use bound::{MOST_FACTS, MOST_TEXT};
pub use folders::{Folders, Opened};
pub use lines::{Lines, MOST_LINE};
pub use server::{ServeError, Server, serve};
pub use tools::{MOST_FRAMES, MOST_SECONDS};
