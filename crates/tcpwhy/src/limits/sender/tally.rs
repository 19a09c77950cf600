//! What is counted of a sender.

/// Counters that go into the report as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) bytes_sent: u64,
    pub(crate) frames: u64,
    pub(crate) segments: u64,
    pub(crate) fast: u64,
    pub(crate) rto: u64,
    pub(crate) tlp: u64,
    pub(crate) spurious: u64,
    pub(crate) unnecessary: u64,
    pub(crate) lost: u64,
    pub(crate) out_of_order: u64,
    pub(crate) partial_acks: u64,
    pub(crate) damaged: u64,
    pub(crate) not_captured: u64,
    pub(crate) max_in_flight: i64,
    pub(crate) syn: u64,
}

impl Tally {
    /// A data frame of `len` bytes was sent.
    pub(crate) fn add_frame(&mut self, len: u32, segments: u64) {
        self.bytes_sent += u64::from(len);
        self.frames += 1;
        self.segments += segments;
    }
}
