//! The packet walk over any bytes of any link type: no panic, and only sensible segments.
//!
//! The first byte picks the link type, the next two the length on the wire.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy::capture::Frame;
use tcpwhy::units::Time;
use tcpwhy::wire;

const LINK_TYPES: [u32; 16] =
    [1, 0, 9, 12, 14, 50, 51, 101, 104, 108, 113, 166, 204, 228, 229, 276];

fuzz_target!(|bytes: &[u8]| {
    let [kind, high, low, data @ ..] = bytes else { return };
    let frame = Frame {
        time: Time(0),
        frame: 1,
        link_type: LINK_TYPES[usize::from(*kind) % LINK_TYPES.len()],
        interface: 0,
        direction: None,
        wire_len: u32::from(u16::from_be_bytes([*high, *low])),
        data,
    };
    let _ = wire::checksum(&frame);
    if let Some(error) = wire::icmp_error(&frame) {
        assert!(wire::parse(&frame).is_err());
        assert!(error.quoted.ports.is_some());
    }
    if let Ok(segment) = wire::parse(&frame) {
        assert!(segment.payload.len() <= segment.payload_len as usize);
        assert!(segment.payload.len() + 20 <= data.len());
        assert!(segment.options.len <= 40 && segment.options.len % 4 == 0);
        assert!(segment.options.sack_blocks().len() <= 4);
        assert!(segment.flags.0 < 0x200);
    }
});
