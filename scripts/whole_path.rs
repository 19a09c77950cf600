//! The whole path from bytes to a report, for looking at what the linker makes of it.
//!
//! `scripts/check wasm` builds this for wasm32-unknown-unknown and fails if the result imports
//! anything: then something in the core reaches for a clock, a file or the environment.

use std::hint::black_box;

use tcpwhy::evidence;
use tcpwhy::tracker::Config;
use tcpwhy::session::Session;

fn main() {
    let mut session = Session::new(Config { detail: true, ..Config::default() });
    session.begin("memory");
    // Hidden from the optimiser, so that every reader and every verdict stays in.
    let read = session.push(black_box(b"some capture"));
    let ended = session.end();
    let provisional = session.provisional();
    let mut report = session.finish();
    let beside: Vec<_> = evidence::read("memory", black_box(b"some text")).into_iter().collect();
    evidence::apply(&mut report, &beside);
    drop(black_box((read, ended, provisional, report)));
}
