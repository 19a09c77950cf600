//! Packet listings as tcpdump prints them. Placeholder: takes text and hands on nothing yet.

use super::{CaptureError, Item};

/// Reads a packet listing.
#[derive(Debug, Default)]
pub(super) struct ListingReader {}

impl ListingReader {
    /// A reader at the start of a listing.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and hands on each item they complete.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "placeholder")]
    pub(super) fn push<F: FnMut(Item<'_>) + ?Sized>(
        &mut self,
        _bytes: &[u8],
        _each: &mut F,
    ) -> Result<(), CaptureError> {
        Ok(())
    }

    /// Takes note that the listing ends here.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "placeholder")]
    pub(super) fn finish<F: FnMut(Item<'_>) + ?Sized>(
        &mut self,
        _each: &mut F,
    ) -> Result<(), CaptureError> {
        Ok(())
    }
}
