//! Where in the stream, and so in which round, was a socket when the kernel was asked?
//!
//! Every sample counts bytes. The sent bytes less the retransmitted ones give the next byte to be
//! sent. The acknowledged bytes give the oldest byte that is not acknowledged. `tcp_probe` has both
//! as sequence numbers. No clock is needed, and none is trusted.

use crate::report::{Connection, Direction};

use super::super::sample::Sample;

/// A sample and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub(super) sample: &'a Sample,
    /// Offset of the next byte to be sent.
    pub(super) nxt: u64,
    /// Offset of the oldest byte that is not acknowledged.
    pub(super) una: u64,
}

/// The samples of side `side` that have a place in `connection`, in their order. None where its
/// handshake was not captured: then the stream's begin is not known.
pub(super) fn place<'a>(
    samples: &[&'a Sample],
    connection: &Connection,
    side: usize,
) -> Vec<Placed<'a>> {
    let Some(syn) = connection.syns[side] else { return Vec::new() };
    let held = connection.directions[side].as_deref().map_or(0, |direction| direction.bytes);
    // The SYN of who opened is counted as acknowledged (`tcp_snd_una_update`, net/ipv4/tcp_input.c);
    // whoever accepted has its socket made with the handshake behind it (`tcp_create_openreq_child`).
    let opening = u64::from(side == 0);
    let mut upto = 0_i64;
    let place = |sample: &&'a Sample| {
        let (nxt, una) = if let Some(sequence) = sample.sequence {
            let first = syn.seq.wrapping_add(1);
            // Unwrapped along the way: a sample is within 2^31 of the one before it.
            let here = (upto as u32).wrapping_add(first);
            upto += i64::from(sequence.nxt.wrapping_sub(here).cast_signed());
            let out = i64::from(sequence.nxt.wrapping_sub(sequence.una));
            (u64::try_from(upto).ok()?, u64::try_from(upto - out).unwrap_or(0))
        } else {
            let nxt = sample.bytes_sent?.checked_sub(sample.bytes_retrans?)?;
            (nxt, sample.bytes_acked.unwrap_or(0).saturating_sub(opening))
        };
        // One more where the FIN is counted.
        (nxt <= held + 1).then(|| Placed {
            sample,
            nxt: nxt.min(held),
            una: una.min(nxt).min(held),
        })
    };
    samples.iter().filter_map(place).collect()
}

/// A direction's rounds by the offsets at which they end.
pub(super) struct Rounds {
    ends: Vec<u64>,
}

impl Rounds {
    pub(super) fn of(direction: &Direction) -> Self {
        let mut sum = 0_u64;
        let end = |round: &crate::report::Round| {
            sum = sum.saturating_add(round.bytes);
            sum
        };
        Self { ends: direction.rounds.iter().map(end).collect() }
    }

    /// The round in which the byte before the next to be sent was sent.
    pub(super) fn sending_in(&self, placed: &Placed) -> Option<usize> {
        let at = self.ends.partition_point(|end| *end < placed.nxt);
        (placed.nxt > 0 && at < self.ends.len()).then_some(at)
    }

    /// The round that had sent all it would and waited for its first ACK: nothing of it was
    /// acknowledged yet.
    pub(super) fn stopped_in(&self, placed: &Placed) -> Option<usize> {
        let at = self.sending_in(placed)?;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        (placed.nxt == self.ends[at] && placed.una <= begin).then_some(at)
    }
}
