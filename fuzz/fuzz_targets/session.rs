//! The whole path over any bytes, in chunks of any size: no panic, and time is conserved.
//!
//! The first byte picks the size of the chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;

fuzz_target!(|bytes: &[u8]| {
    let [size, capture @ ..] = bytes else { return };
    let mut session = Session::new(Config { detail: true, ..Config::default() });
    session.begin("fuzz");
    for chunk in capture.chunks(usize::from(*size) + 1) {
        if session.push(chunk).is_err() {
            break;
        }
    }
    let _ = session.end();
    for connection in session.finish().connections {
        for direction in connection.directions.iter().flatten() {
            assert_eq!(direction.time_in.total().0, connection.duration_ns);
        }
    }
});
