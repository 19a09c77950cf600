//! Builders of frames, and what each test expects of the same segment inside them.
//!
//! Every test wraps [`DATA`] or a relative of it and asks what the walk makes of it.

mod captures;
mod ip;
mod links;
mod properties;
mod tcp;
mod tunnels;

use super::*;

/// `10.0.0.1:40000 > 10.0.0.2:80`, or `fd00::1` and `fd00::2`.
pub(super) const PORTS: (u16, u16) = (40_000, 80);
pub(super) const SEQ: u32 = 0x0102_0304;
pub(super) const ACK: u32 = 0x0506_0708;
/// Options as on most data segments: NOP, NOP, timestamps 0x11 and 0x22.
pub(super) const STAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 0x11, 0, 0, 0, 0x22];

/// A frame of this link type, captured whole.
pub(super) fn frame(link_type: u32, data: &[u8]) -> Frame<'_> {
    let wire_len = data.len() as u32;
    Frame { time: Time(1), frame: 7, link_type, interface: 0, direction: None, wire_len, data }
}

/// The same frame with only its first `snap` bytes captured.
pub(super) fn cut(frame: Frame<'_>, snap: usize) -> Frame<'_> {
    Frame { data: &frame.data[..snap.min(frame.data.len())], ..frame }
}

/// What the walk sees in a whole Ethernet frame.
pub(super) fn on_ethernet(data: &[u8]) -> Result<Segment<'_>, Skip> {
    parse(&frame(1, data))
}

/// A TCP header with these options, and this many payload bytes of 0x50, 0x51, ...
pub(super) fn tcp(options: &[u8], payload: usize) -> Vec<u8> {
    let offset = (5 + options.len() as u8 / 4) << 4;
    let mut bytes = [PORTS.0.to_be_bytes(), PORTS.1.to_be_bytes()].concat();
    bytes.extend([SEQ.to_be_bytes(), ACK.to_be_bytes()].concat());
    bytes.extend([offset, 0x18, 0x01, 0xf6, 0, 0, 0, 0]);
    bytes.extend(options);
    bytes.extend((0..payload).map(|at| 0x50 + (at % 0x50) as u8));
    bytes
}

/// The plainest data segment: timestamps and 5 bytes.
pub(super) fn data() -> Vec<u8> {
    tcp(&STAMPS, 5)
}

/// IPv4 with this protocol, its flags and fragment offset as given.
pub(super) fn v4_fragment(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut bytes = vec![0x45, 0x02];
    bytes.extend(total.to_be_bytes());
    bytes.extend([0xab, 0xcd]);
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(payload);
    bytes
}

pub(super) fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    v4_fragment(protocol, 0x4000, payload)
}

pub(super) fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0x10, 0, 0];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([next, 63]);
    bytes.extend(V6_SOURCE);
    bytes.extend(V6_DESTINATION);
    bytes.extend(payload);
    bytes
}

pub(super) const V6_SOURCE: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub(super) const V6_DESTINATION: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

pub(super) fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    bytes.extend(ether_type.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub(super) fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes =
        [50_000_u16, port, (8 + payload.len()) as u16, 0].map(u16::to_be_bytes).concat();
    bytes.extend(payload);
    bytes
}

/// Joins a header and what follows it.
pub(super) fn join(header: &[u8], payload: &[u8]) -> Vec<u8> {
    [header, payload].concat()
}

/// Asserts that the frame holds [`data`] over IPv4 and nothing else.
#[track_caller]
pub(super) fn assert_data_v4(seen: &Result<Segment<'_>, Skip>) {
    assert_data(seen, "10.0.0.1:40000", "10.0.0.2:80");
}

/// Asserts that the frame holds [`data`] over IPv6 and nothing else.
#[track_caller]
pub(super) fn assert_data_v6(seen: &Result<Segment<'_>, Skip>) {
    assert_data(seen, "[fd00::1]:40000", "[fd00::2]:80");
}

#[track_caller]
pub(super) fn assert_data(seen: &Result<Segment<'_>, Skip>, source: &str, destination: &str) {
    let segment = seen.as_ref().expect("the frame holds a segment");
    assert_eq!(segment.source.to_string(), source);
    assert_eq!(segment.destination.to_string(), destination);
    assert_eq!((segment.seq, segment.ack), (Seq(SEQ), Seq(ACK)));
    assert_eq!(segment.flags, Flags::PSH.with(Flags::ACK));
    assert_eq!(segment.window, 0x01f6);
    assert_eq!(segment.options.timestamps, Some((0x11, 0x22)));
    assert_eq!(segment.payload_len, 5);
    assert_eq!(segment.payload, b"PQRST");
}
