//! Evidence beside a capture: any bytes are read or refused with a place, and can be laid beside a
//! report, twice, without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy::evidence::{self, Evidence};
use tcpwhy::report::Report;
use tcpwhy::session::Session;
use tcpwhy::tracker::Config;

/// A real transfer, whose ends some seeds name.
const CAPTURE: &[u8] = include_bytes!("../../testdata/articles/download-512k-rtt7ms.tcpdump.txt");

fuzz_target!(|bytes: &[u8]| {
    match evidence::read("fuzz", bytes) {
        Ok(read) => {
            let mut report = report();
            evidence::apply(&mut report, &[read.clone(), Evidence::of_rate("rate", 1)]);
            // In one list it would be known for the same.
            evidence::apply(&mut report, &[read]);
            assert_eq!(report.with.len(), 3);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn report() -> Report {
    let config = Config { detail: true, passed: true, ..Config::default() };
    let mut session = Session::new(config);
    session.begin("capture");
    session.push(CAPTURE).expect("a listing");
    session.end().expect("a listing");
    session.finish()
}
