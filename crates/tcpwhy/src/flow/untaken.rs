//! A server whose TCP does not take a connection although the client has done its part.
//!
//! Question: was the handshake over for the server, too? Where a listener's accept queue is full, Linux drops the ACK
//! that ends the handshake and whatever comes behind it (`tcp_v4_syn_recv_sock` and `tcp_check_req`,
//! `net/ipv4/tcp_ipv4.c` and `tcp_minisocks.c`): the client has its connection, the server has a request that it keeps
//! answering with SYN-ACKs. A TCP that had the connection would acknowledge at once what comes a second time
//! (RFC 9293 section 3.10.7.4), and would send no SYN-ACK any more. So what is counted is, from the client's ACK to the
//! server's first segment that is no SYN-ACK: data that came again, and SYN-ACKs.
//!
//! Where the capture was taken decides what that means; that is for the finding.

use super::event::{CORRUPT, Event, RST, SYN, Side};
use crate::clocks::TapTime;
use crate::offsets::Offset;
use crate::report;

/// What passed between the client's ACK and the first segment by which the server shows that it has the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Untaken {
    /// When the client's first data passed.
    data_at: Option<TapTime>,
    repeats: u32,
    syn_acks: u32,
    /// When the last SYN-ACK passed behind the client's ACK or, where there is some, its data.
    last_syn_ack_at: Option<TapTime>,
    taken_at: Option<TapTime>,
    is_over: bool,
}

impl Untaken {
    /// Takes the next segment behind the client's ACK, which had sent up to offset `sent` before; `spoke` if the server
    /// had sent more than its SYN-ACK.
    pub(crate) fn push(&mut self, side: Side, event: &Event, (sent, spoke): (Offset, bool)) {
        if self.is_over {
            return;
        }
        if spoke || event.has(RST) {
            self.is_over = true;
        } else if side == 1 && event.has(SYN) {
            self.syn_acks += 1;
            self.last_syn_ack_at = Some(event.tap);
        } else if side == 1 {
            (self.taken_at, self.is_over) = (Some(event.tap), true);
        } else if event.len > 0 && event.bits & (SYN | CORRUPT) == 0 {
            self.data_at.get_or_insert(event.tap);
            self.repeats += u32::from(event.seq < sent);
        }
    }

    /// Whether the next segment of `side` has to be looked at: the client's until its first data has passed, the
    /// server's once there is something to tell.
    pub(crate) fn awaits(&self, side: Side) -> bool {
        let awaited = if side == 0 { self.data_at.is_none() } else { self.is_told() };
        !self.is_over && awaited
    }

    fn is_told(&self) -> bool {
        self.repeats + self.syn_acks > 0
    }

    /// What the report says of it, behind the client's ACK at `acked_at`; `None` where the server took the connection as
    /// one should.
    pub(crate) fn report(&self, acked_at: TapTime) -> Option<report::Untaken> {
        self.is_told().then(|| report::Untaken {
            from_ns: acked_at.0,
            data_ns: self.data_at.map(|at| at.0),
            to_ns: self.taken_at.map(|at| at.0),
            repeats: u64::from(self.repeats),
            syn_acks: u64::from(self.syn_acks),
            last_syn_ack_ns: self.last_syn_ack_at.map(|at| at.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::event::{ACK, FROM_SERVER};

    const MS: i64 = 1_000_000;

    /// What these segments show, each with its time, its sender, and the offset and length of its data.
    fn told(segments: &[(i64, u16, i64, u32)]) -> Option<report::Untaken> {
        let (mut untaken, mut sent) = (Untaken::default(), Offset::FIRST);
        for (ms, bits, seq, len) in segments {
            let event = Event {
                tap: TapTime(ms * MS),
                bits: *bits | ACK,
                seq: Offset::at(*seq),
                len: *len,
                ..Event::default()
            };
            untaken.push(event.side(), &event, (sent, false));
            if event.side() == 0 {
                sent = sent.max(event.end());
            }
        }
        untaken.report(TapTime(20 * MS))
    }

    const DATA: (i64, u16, i64, u32) = (20, 0, 0, 18);
    const SYN_ACK: u16 = FROM_SERVER | SYN;

    #[test]
    fn data_that_comes_again_and_syn_acks_are_counted_until_the_server_speaks() {
        let again = |ms| (ms, 0, 0, 18);
        let taken = (1_900, FROM_SERVER, 0, 0);
        let late = again(1_901);
        let told = told(&[DATA, again(230), (1_020, SYN_ACK, 0, 0), again(1_890), taken, late]);
        let told = told.expect("not taken");
        assert_eq!((told.repeats, told.syn_acks), (2, 1));
        assert_eq!((told.data_ns, told.to_ns), (Some(20 * MS), Some(1_900 * MS)));
        assert_eq!(told.last_syn_ack_ns, Some(1_020 * MS));
    }

    #[test]
    fn an_answer_at_once_tells_nothing_whatever_is_repeated_later() {
        assert_eq!(told(&[DATA, (21, FROM_SERVER, 0, 0), (300, 0, 0, 18)]), None);
        assert_eq!(told(&[DATA, (20, 0, 18, 18)]), None, "more data is no repeat");
    }

    #[test]
    fn a_segment_that_is_damaged_does_not_count() {
        assert_eq!(told(&[DATA, (230, CORRUPT, 0, 18)]), None);
    }
}
