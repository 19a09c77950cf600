//! Which number has a connection among all?
//!
//! Connections are numbered by their first packets, as Wireshark does, those that are forgotten too. Where several
//! threads follow connections, none of them knows how many began elsewhere before: each shard notes the frames
//! with which its own began, and the numbers are counted from all notes when a report is made.

use crate::report::Connection;

/// The frames with which the connections of a shard began, in order: the distance from one to the next, seven
/// bits a byte, the lowest first, the highest bit set on all bytes but the last. A flood of 10 million in 64 shards
/// takes some 10 MB.
#[derive(Debug, Default)]
pub(super) struct Starts {
    distances: Vec<u8>,
    last: u64,
}

impl Starts {
    /// A connection begins with `frame`, behind all before.
    pub(super) fn push(&mut self, frame: u64) {
        let mut distance = frame.saturating_sub(self.last);
        self.last = frame;
        while distance > 0x7f {
            self.distances.push(distance as u8 | 0x80);
            distance >>= 7;
        }
        self.distances.push(distance as u8);
    }

    fn frames(&self) -> impl Iterator<Item = u64> {
        let mut bytes = self.distances.iter();
        let mut frame = 0;
        core::iter::from_fn(move || {
            let mut shift = 0;
            loop {
                let byte = *bytes.next()?;
                frame += u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    return Some(frame);
                }
            }
        })
    }
}

/// Numbers `accounts`, which have the numbers of their first frames and stand in their order: each by how many
/// connections began before it.
pub(super) fn number<'a>(accounts: &mut [Connection], starts: impl Iterator<Item = &'a Starts>) {
    let mut shards: Vec<_> = starts.map(|starts| starts.frames().peekable()).collect();
    let mut before = 0;
    for account in accounts {
        for frames in &mut shards {
            while frames.next_if(|frame| *frame < account.id).is_some() {
                before += 1;
            }
        }
        account.id = before;
        account.stream = account.stream.map(|_| before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_whatever_lies_between_them() {
        let frames = [1, 2, 129, 256, 257, 16_641, 16_641 + (1 << 40), u64::MAX];
        let mut starts = Starts::default();
        for frame in frames {
            starts.push(frame);
        }
        assert_eq!(starts.frames().collect::<Vec<_>>(), frames);
    }
}
