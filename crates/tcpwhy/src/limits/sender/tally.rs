//! What is counted of a sender.

use crate::segments::Segments;

/// Counters that go into the report as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) bytes_sent: u64,
    pub(crate) frames: u64,
    pub(crate) segments: Segments,
    pub(crate) fast: Segments,
    pub(crate) rto: Segments,
    pub(crate) tlp: Segments,
    pub(crate) spurious: Segments,
    pub(crate) unnecessary: Segments,
    pub(crate) lost: Segments,
    pub(crate) out_of_order: Segments,
    pub(crate) partial_acks: u64,
    pub(crate) damaged: Segments,
    pub(crate) not_captured: Segments,
    pub(crate) max_in_flight: i64,
    pub(crate) syn: u64,
}

impl Tally {
    /// A data frame of `len` bytes was sent.
    pub(crate) fn add_frame(&mut self, len: u32, segments: Segments) {
        self.bytes_sent += u64::from(len);
        self.frames += 1;
        self.segments += segments;
    }
}
