//! Memory shared with the kernel: the ring of a packet socket, the buffer of a perf event.
//!
//! The kernel and we take turns by a word in the shared memory. Each type here shows its bytes as
//! a plain slice only while the word says that they are ours.

#![expect(unsafe_code, reason = "memory that the kernel writes to")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::sys::check;

/// A mapping that lives as long as this value.
#[derive(Debug)]
struct Map {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone; nothing in it is tied to a thread.
unsafe impl Send for Map {}

impl Map {
    fn new(fd: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        // SAFETY: a new shared mapping at a place the kernel chooses.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// The word at `offset`.
    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= self.length && offset.is_multiple_of(4), "inside the mapping");
        // SAFETY: inside the mapping, aligned, and only ever read and written as an atomic.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// The long word at `offset`.
    fn long(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= self.length && offset.is_multiple_of(8), "inside the mapping");
        // SAFETY: inside the mapping, aligned, and only ever read and written as an atomic.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// # Safety
    /// The kernel must not write there while the slice lives.
    unsafe fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        assert!(offset + length <= self.length, "inside the mapping");
        // SAFETY: inside the mapping; that nobody writes is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), length) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: made by `mmap` with this length; no slice outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The receive ring of a packet socket, third version (Linux `packet_mmap.rst`).
#[derive(Debug)]
pub(super) struct PacketRing {
    map: Map,
    blocks: usize,
    next: usize,
}

impl PacketRing {
    /// Makes a ring of `blocks` blocks for a socket; the kernel hands over a block when it is full
    /// or `retire_ms` after its first packet.
    pub(super) fn new(socket: BorrowedFd<'_>, blocks: usize, retire_ms: u32) -> io::Result<Self> {
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME,
            tp_frame_nr: (BLOCK / FRAME as usize * blocks) as u32,
            tp_retire_blk_tov: retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        // SAFETY: the kernel reads one `tpacket_req3`.
        check(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_RX_RING,
                (&raw const request).cast(),
                size_of_val(&request) as libc::socklen_t,
            )
        })?;
        Ok(Self { map: Map::new(socket, BLOCK * blocks)?, blocks, next: 0 })
    }

    /// Hands the next full block to `read` and then back to the kernel; `None` if none is full.
    pub(super) fn take<T>(&mut self, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let offset = self.next * BLOCK;
        let status = self.map.word(offset + BLOCK_STATUS);
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the status says the block is ours until we write it back.
        let taken = read(unsafe { self.map.bytes(offset, BLOCK) });
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        Some(taken)
    }
}

/// The buffer of a perf event, or of several that share it (`perf_event_mmap_page`, Linux
/// `include/uapi/linux/perf_event.h`).
#[derive(Debug)]
pub(super) struct EventRing {
    map: Map,
    page: usize,
    size: u64,
}

impl EventRing {
    /// Maps `pages` pages, a power of two, for an event.
    pub(super) fn new(event: BorrowedFd<'_>, pages: usize) -> io::Result<Self> {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let size = pages * page;
        Ok(Self { map: Map::new(event, page + size)?, page, size: size as u64 })
    }

    /// Copies out all that is there, whole records, and gives the room back to the kernel.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let tail = self.map.long(DATA_TAIL).load(Ordering::Relaxed);
        let head = self.map.long(DATA_HEAD).load(Ordering::Acquire);
        let (from, length) = ((tail % self.size) as usize, head.wrapping_sub(tail));
        let length = length.min(self.size) as usize;
        let first = length.min(self.size as usize - from);
        let mut bytes = Vec::with_capacity(length);
        // SAFETY: between tail and head the kernel does not write until tail moves on.
        unsafe {
            bytes.extend(self.map.bytes(self.page + from, first));
            bytes.extend(self.map.bytes(self.page, length - first));
        }
        self.map.long(DATA_TAIL).store(head, Ordering::Release);
        bytes
    }
}

/// Where the kernel has written up to, and we have read up to, in the first page.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// Ours: 256 KiB hold a 64 KiB super-packet with room, and are found on small machines, too.
const BLOCK: usize = 256 << 10;
/// Only asked for: in this version frames have the length of their packets.
const FRAME: u32 = 2048;
/// Offset of the status in a block's head (`tpacket_block_desc`).
const BLOCK_STATUS: usize = 8;
