//! System calls of this room that the standard library has no name for, each behind a safe signature.

#![expect(unsafe_code, reason = "each function wraps one system call")]

/// `_SC_PAGESIZE` of sysconf(3).
pub(super) fn page_bytes() -> Option<u64> {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()
}
