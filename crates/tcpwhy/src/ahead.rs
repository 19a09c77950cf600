//! What will be looked at soon, fetched into the processor's cache beforehand.

/// Fetches what is `ahead` bytes behind the beginning of `bytes`, a line of the cache (64 bytes), if there is such.
#[inline(always)]
pub(crate) fn fetch(bytes: &[u8], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "a hint, which reads nothing and may point anywhere")]
    // SAFETY: every x86-64 processor has it, and it faults nowhere.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(ahead).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, ahead);
}
