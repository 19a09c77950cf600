//! Packets the capture holds twice: `-i any` sees some on two interfaces, mirrors send two copies.
//!
//! Question: is this packet a second copy of one already seen, or a packet of its own?
//! A copy repeats every field. Where the IP identification is a real counter that settles it:
//! a retransmission gets a new one. Without it (IPv6, constant identification), two data packets
//! equal in all fields within a millisecond are a copy, but bare ACKs repeat legitimately
//! (duplicate ACKs): they count as copies only once most data packets of the connection have
//! been seen twice. A retransmission within one tick of the timestamp clock on IPv6 cannot be
//! told from a copy.

use super::event::{Event, FIN, ID, SYN};

/// Copies follow their original within this (limits-method section 2). Ours: not measured.
const WITHIN_NS: i64 = 1_000_000;
/// The same packet met on another interface, behind a delay of this host's own.
const OTHER_INTERFACE_WITHIN_NS: i64 = 1_000_000_000;

/// Packets looked back at.
const RECENT: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    event: Event,
    interface: u32,
    /// Fingerprint of the SACK blocks, which the event only points to.
    sack_mark: u32,
}

/// The last packets of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    recent: [Seen; RECENT],
    /// Digests of `recent`: equal packets have equal ones, so that one look tells nearly always
    /// that there is no copy. Zero where there is no packet yet.
    digests: [u64; RECENT],
    next: usize,
    singles: u32,
    doubles: u32,
}

impl Copies {
    /// Whether `event`, met on `interface`, is a copy of a packet already seen; `sack_mark` is a
    /// fingerprint of its SACK blocks.
    pub(crate) fn is_copy(&mut self, event: &Event, interface: u32, sack_mark: u32) -> bool {
        // A SYN or FIN is repeated after a timeout only.
        let strong = counted(event) || event.len > 0 || event.bits & (SYN | FIN) != 0;
        let digest = digest(event, sack_mark);
        // Without a branch per packet, so that all are compared at once.
        let alike: u32 = self.digests.iter().map(|old| u32::from(*old == digest)).sum();
        let met = alike > 0
            && self.recent.iter().zip(&self.digests).filter(|(_, old)| **old == digest).any(
                |(old, _)| {
                    let age = event.tap - old.event.tap;
                    let near = age <= WITHIN_NS
                        || (old.interface != interface
                            && age <= OTHER_INTERFACE_WITHIN_NS
                            && counted(event));
                    near && old.sack_mark == sack_mark && same_packet(&old.event, event)
                },
            );
        if met && (strong || self.doubles > 4 && self.doubles > 4 * self.singles) {
            if strong {
                self.doubles += 1;
                self.singles = self.singles.saturating_sub(1);
            }
            return true;
        }
        self.singles += u32::from(strong);
        self.recent[self.next] = Seen { event: *event, interface, sack_mark };
        self.digests[self.next] = digest;
        self.next = (self.next + 1) % RECENT;
        false
    }
}

/// A number that is equal for equal packets, and never zero.
fn digest(event: &Event, sack_mark: u32) -> u64 {
    let numbers = (event.seq as u64).rotate_left(32) ^ event.ack as u64;
    let small = u64::from(event.id) << 48 | u64::from(event.bits) << 32 | u64::from(event.len);
    numbers ^ small.rotate_left(7) ^ u64::from(event.tsval) << 20 ^ u64::from(sack_mark) | 1 << 63
}

/// Whether the identification is one that a stack counts up. Zero is what Linux sends where it
/// needs none (`ip_select_ident` with DF and no socket).
fn counted(event: &Event) -> bool {
    event.has(ID) && event.id != 0
}

fn same_packet(a: &Event, b: &Event) -> bool {
    a.bits == b.bits
        && a.id == b.id
        && a.seq == b.seq
        && a.len == b.len
        && a.ack == b.ack
        && a.window == b.window
        && (a.tsval, a.tsecr) == (b.tsval, b.tsecr)
        && a.sack_count == b.sack_count
}
