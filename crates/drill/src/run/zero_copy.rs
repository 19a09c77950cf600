//! Writes whose memory the kernel borrows (`SO_ZEROCOPY`): nothing of it shows on the wire, but the
//! error queue says when the memory is free again.
//!
//! Follows `msg_zerocopy_realloc`, `__msg_zerocopy_callback` (net/core/skbuff.c): each write has the next
//! number. The queue reports what is acknowledged, and neighbours as one.

use std::collections::VecDeque;

use super::call::{Arguments, Outcome, field};
use super::names;
use crate::script::Expression;
use tcpwhy_model::segment::before;

/// `MSG_ZEROCOPY` of include/linux/socket.h.
pub(super) const FLAG: i64 = 0x400_0000;
/// `MSG_ERRQUEUE`
pub(super) const ERROR_QUEUE: i64 = 0x2000;

/// Where segments end that were made from buffers of these sizes: each holds 17 pieces of memory at
/// most (`MAX_SKB_FRAGS` of include/linux/skbuff.h). Buffers are taken to lie in one page each.
pub(super) fn borders(sizes: &[u64]) -> Vec<u64> {
    const PIECES: usize = 17;
    let mut end = 0;
    let ends: Vec<u64> = sizes
        .iter()
        .filter(|size| **size > 0)
        .map(|size| {
            end += size;
            end
        })
        .collect();
    ends.chunks(PIECES).filter_map(|chunk| chunk.last().copied()).filter(|at| *at < end).collect()
}

/// What a socket knows of such writes.
#[derive(Clone, Debug, Default)]
pub(super) struct ZeroCopy {
    /// `SO_ZEROCOPY`
    pub(super) on: bool,
    next: u32,
    /// Where the data of those ends that are not acknowledged, and their numbers.
    unfinished: VecDeque<(u32, u32)>,
    /// Numbers of those that are, from and to.
    told: VecDeque<(u32, u32)>,
}

impl ZeroCopy {
    /// Of a socket whose listener had it on or off.
    pub(super) fn inherited(on: bool) -> ZeroCopy {
        ZeroCopy { on, ..ZeroCopy::default() }
    }

    /// A call has written up to this sequence number.
    pub(super) fn on_written(&mut self, end_seq: u32) {
        self.unfinished.push_back((end_seq, self.next));
        self.next += 1;
    }

    /// Everything before `una` is acknowledged; whether there is something new to tell.
    pub(super) fn on_acknowledged(&mut self, una: u32) -> bool {
        let mut any = false;
        while let Some((_, number)) = self.unfinished.pop_front_if(|(end, _)| !before(una, *end)) {
            any = true;
            match self.told.back_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => self.told.push_back((number, number)),
            }
        }
        any
    }

    /// The error queue is not empty.
    pub(super) fn is_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// Reads the error queue.
    pub(super) fn read(&mut self, arguments: &Arguments<'_>) -> Result<Outcome, String> {
        let Some((from, to)) = self.told.pop_front() else {
            return Ok(Outcome::error("EAGAIN"));
        };
        let expected = match arguments.field(1, "msg_control") {
            Some(Expression::List(messages)) if messages.len() == 1 => {
                field(&messages[0], "cmsg_data").ok_or("a control message without data")?
            }
            _ => return Err("such control messages".into()),
        };
        let number = |name| field(expected, name).map_or(Ok(-1), names::number);
        Ok(Outcome::value(0).filling("ee_info", number("ee_info")?, from.into()).filling(
            "ee_data",
            number("ee_data")?,
            to.into(),
        ))
    }
}
