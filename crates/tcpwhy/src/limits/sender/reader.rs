//! Whether full windows open when the receiving program reads, or as soon as their data arrives.
//!
//! A window at its maximum holds its sender for a round trip each time, if what filled it is answered at once. A
//! program that reads by a rhythm of its own answers later: Linux v6.1 acknowledges more than one full segment at
//! once only while it can offer the whole window again (`__tcp_ack_snd_check`), else when the program has read
//! (`__tcp_cleanup_rbuf`), and all that has come by then at once. So what shows a reader are answers to full
//! windows that are late, each for many segments. Near the receiver nothing else makes them so. Elsewhere a
//! path's jitter and another's queue do, too, but not each time for as long, and a queue of the sender's own lets
//! segments through one by one, and never empties: then only a window that was once larger tells.

use super::Sender;
use crate::clocks::StackTime;
use crate::limits::sense::{
    ALIKE_ANSWERS, ANSWERS, AT_RECEIVER_NS, DELAYABLE_SEGMENTS, ENOUGH_ANSWERS, MOSTLY,
    PROMPT_AT_RECEIVER_NS, PROMPT_NS, WEIGHED_EACH, WORTH,
};

/// An answer to a full window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    /// How much later than the least round trip it came behind the newest data that it acknowledges.
    pub(crate) late: i64,
    /// What it acknowledges.
    pub(crate) bytes: i64,
    /// Nothing was in flight behind it, so that no queue stood, or the window had been much larger before, so that
    /// something lies unread.
    pub(crate) is_told: bool,
}

/// From where answers are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    pub(crate) least_rtt: i64,
    pub(crate) mss: i64,
    /// The tap sees when data comes to the receiver.
    pub(crate) at_receiver: bool,
}

/// The last answers to full windows of one receiver.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    ring: [Answer; ANSWERS],
    /// How many came; their places in the ring follow from it.
    came: u64,
    is_readers: bool,
}

impl Answers {
    /// Takes the next one.
    pub(crate) fn push(&mut self, answer: Answer, sight: Sight) {
        self.ring[(self.came % ANSWERS as u64) as usize] = answer;
        self.came += 1;
        if self.came.is_multiple_of(WEIGHED_EACH) {
            let known = usize::try_from(self.came).map_or(ANSWERS, |came| came.min(ANSWERS));
            self.is_readers = are_readers(&self.ring[..known], sight);
        }
    }

    /// Whether they come when a program reads.
    pub(crate) const fn are_readers(&self) -> bool {
        self.is_readers
    }
}

/// Whether `answers` to full windows came when a program read.
fn are_readers(answers: &[Answer], sight: Sight) -> bool {
    let bytes = |of: &dyn Fn(&Answer) -> bool| -> i64 {
        answers.iter().filter(|a| of(a)).map(|a| a.bytes).fold(0, i64::saturating_add)
    };
    let all = bytes(&|_| true);
    let mostly = |part: i64| part > 0 && MOSTLY.is_reached(part, all);
    let is_lump = |answer: &Answer| answer.bytes > DELAYABLE_SEGMENTS * sight.mss;
    let counts = |answer: &Answer| is_lump(answer) && (sight.at_receiver || answer.is_told);
    if answers.len() < ENOUGH_ANSWERS || !mostly(bytes(&counts)) {
        return false;
    }
    let mut late = [0; ANSWERS];
    let mut count = 0;
    for (each, answer) in late.iter_mut().zip(answers.iter().filter(|answer| counts(answer))) {
        *each = answer.late;
        count += 1;
    }
    let late = &mut late[..count];
    late.sort_unstable();
    let (quarter, three) = (late[count / 4], late[count * 3 / 4]);
    let prompt = if sight.at_receiver { PROMPT_AT_RECEIVER_NS } else { PROMPT_NS };
    let is_alike = three - quarter <= ALIKE_ANSWERS.of(quarter).max(PROMPT_AT_RECEIVER_NS);
    quarter >= prompt.max(WORTH.of(sight.least_rtt)) && (sight.at_receiver || is_alike)
}

impl Sender {
    /// An ACK of `bytes` came, the newest of them `sent` then, and the window had been full.
    pub(crate) fn note_answer(&mut self, bytes: i64, (sent, came): (StackTime, StackTime)) {
        let is_told = self.flight.outstanding() == 0 || self.has_shrunk();
        let (least, floor) = (self.least_rtt(), self.terms.floor);
        let least_rtt = if floor > 0 { least.min(floor) } else { least };
        let way = floor - self.terms.own_way;
        let at_receiver = !self.terms.tap_at_sender && way <= AT_RECEIVER_NS;
        let sight = Sight { least_rtt, mss: self.terms.mss, at_receiver };
        self.answers.push(Answer { late: came - sent - least_rtt, bytes, is_told }, sight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Whether answers of this many segments, these late, are a reader's where a round trip takes 20 ms.
    fn told(late: &[i64], segments: i64, is_told: bool, at_receiver: bool) -> bool {
        let mut answers = Answers::default();
        let sight = Sight { least_rtt: 20 * MS, mss: 1448, at_receiver };
        for late in late {
            answers.push(Answer { late: *late, bytes: segments * 1448, is_told }, sight);
        }
        answers.are_readers()
    }

    #[test]
    fn answers_to_whole_flights_that_are_as_late_each_time_are_a_readers() {
        assert!(told(&[10 * MS; 8], 23, true, false));
        assert!(!told(&[10 * MS; 7], 23, true, false), "too few");
        assert!(told(&[5 * MS / 2; 8], 23, true, false), "an eighth of a round trip");
        assert!(!told(&[5 * MS / 2 - 1; 8], 23, true, false));
    }

    #[test]
    fn a_window_that_opens_at_once_is_no_readers() {
        assert!(!told(&[60_000; 16], 44, true, false));
        assert!(!told(&[60_000; 16], 44, true, true));
    }

    #[test]
    fn a_path_whose_delay_varies_makes_answers_late_by_this_and_that() {
        let jitter: Vec<i64> = (0..16).map(|at| (3 + at % 4) * MS).collect();
        assert!(!told(&jitter, 10, true, false));
        assert!(told(&jitter, 10, true, true), "the tap saw the data come");
    }

    #[test]
    fn a_queue_lets_segments_through_one_by_one_and_does_not_empty() {
        assert!(!told(&[10 * MS; 16], 2, true, false), "each second segment is answered");
        assert!(!told(&[10 * MS; 16], 44, false, false), "a receiver that joins segments");
        assert!(told(&[10 * MS; 16], 6, false, true), "it had come");
    }

    #[test]
    fn what_tells_of_long_ago_is_forgotten() {
        let late: Vec<i64> = [[10 * MS; 16], [0; 16]].concat();
        assert!(!told(&late, 23, true, false));
        let late: Vec<i64> = [[0; 16], [10 * MS; 16]].concat();
        assert!(told(&late, 23, true, false));
    }

    #[test]
    fn a_quarter_of_what_was_answered_may_be_otherwise() {
        let told = |others: usize| {
            let answers: Vec<Answer> = (0..16)
                .map(|at| {
                    let is_told = at >= others;
                    Answer { late: 10 * MS, bytes: 14_480, is_told }
                })
                .collect();
            are_readers(&answers, Sight { least_rtt: 20 * MS, mss: 1448, at_receiver: false })
        };
        assert!(told(4) && !told(5));
    }
}
