//! What samples tell of a socket, in a sentence: the only account where no packets may be captured.

use crate::netlink::number;
use crate::record::tcp_info;

/// A socket from its first sample to its last.
#[derive(Clone, Debug)]
pub(super) struct Life {
    /// Time of the first look that found it, ns since 1970.
    first: u64,
    /// Whether that look found it opening.
    seen_opening: bool,
    /// Time of the first look that found it open.
    open: Option<u64>,
    /// The last message about it.
    last: Vec<u8>,
}

impl Life {
    pub(super) fn begin(t: u64, message: &[u8]) -> Self {
        let opening = is_opening(message);
        let open = (!opening).then_some(t);
        Self { first: t, seen_opening: opening, open, last: message.to_vec() }
    }

    /// A look finds it again.
    pub(super) fn go_on(&mut self, t: u64, message: &[u8]) {
        if !is_opening(message) {
            self.open.get_or_insert(t);
        }
        // One that waits in FIN-WAIT-2 without a socket tells nothing more (Linux `inet_twsk_diag_fill`).
        if tcp_info::info(message).is_some() {
            message.clone_into(&mut self.last);
        }
    }

    /// `10.0.0.1:4000 -> 10.0.0.2:80: opened within 31 ms; 500 KB sent and acknowledged, ...`
    pub(super) fn sentence(&self) -> Option<String> {
        let [local, peer] = tcp_info::ends(&self.last)?;
        let info = tcp_info::info(&self.last)?;
        let again = number(info, TOTAL_RETRANS, 4).filter(|again| *again > 0);
        let micros = |at: usize, size| number(info, at, size).filter(|us| *us > 0);
        let mut facts = vec![match self.open {
            Some(open) if self.seen_opening => {
                format!("opened within {} of the first look at it", ms((open - self.first) / 1000))
            }
            Some(_) => "open at the first look".to_owned(),
            None if self.last[1] == SYN_SENT && again.is_some() => {
                "never opened: its SYN was not answered".to_owned()
            }
            // It may have been refused, or have come and gone between two looks.
            None => "never seen open".to_owned(),
        }];
        if let (Some(acked), Some(received)) = (number(info, ACKED, 8), number(info, RECEIVED, 8)) {
            // The SYN counts as a byte (Linux `tcp_snd_una_update`).
            let acked = acked.saturating_sub(u64::from(self.seen_opening));
            facts.push(format!("{acked} B acknowledged, {received} B received"));
        }
        // The largest number is the kernel's for none (`tcp_min_rtt`).
        let least = number(info, MIN_RTT, 4).filter(|us| *us > 0 && *us < u64::from(u32::MAX));
        facts.extend(least.map(|us| format!("round trip at least {}", ms(us))));
        facts.extend(again.map(|again| format!("{again} segments retransmitted")));
        facts.extend(micros(BUSY, 8).map(|us| format!("sending for {}", ms(us))));
        facts.extend(micros(RWND, 8).map(|us| format!("held by the peer's window for {}", ms(us))));
        facts.extend(micros(SNDBUF, 8).map(|us| format!("held by its send buffer for {}", ms(us))));
        Some(format!("{local} -> {peer}: {}", facts.join("; ")))
    }
}

fn is_opening(message: &[u8]) -> bool {
    matches!(message.get(1), Some(&(SYN_SENT | SYN_RECV)))
}

fn ms(us: u64) -> String {
    format!("{}.{} ms", us / 1000, us % 1000 / 100)
}

/// States (Linux `include/net/tcp_states.h`).
const SYN_SENT: u8 = 2;
const SYN_RECV: u8 = 3;

// Places in `struct tcp_info` (Linux `include/uapi/linux/tcp.h`).
const TOTAL_RETRANS: usize = 100;
const ACKED: usize = 120;
const RECEIVED: usize = 128;
const MIN_RTT: usize = 148;
const BUSY: usize = 168;
const RWND: usize = 176;
const SNDBUF: usize = 184;

#[cfg(test)]
mod tests {
    use super::*;

    /// An `inet_diag_msg` of 192.0.2.1:4000 -> 198.51.100.7:80 in this state, with these fields of its
    /// `tcp_info`: place, size and value.
    fn message(state: u8, fields: &[(usize, usize, u64)]) -> Vec<u8> {
        let mut message = vec![0; 72];
        (message[0], message[1]) = (libc::AF_INET as u8, state);
        message[4..6].copy_from_slice(&4000_u16.to_be_bytes());
        message[6..8].copy_from_slice(&80_u16.to_be_bytes());
        message[8..12].copy_from_slice(&[192, 0, 2, 1]);
        message[24..28].copy_from_slice(&[198, 51, 100, 7]);
        let mut info = vec![0; 200];
        for &(at, size, value) in fields {
            info[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        message.extend((4 + info.len() as u16).to_ne_bytes());
        message.extend(2_u16.to_ne_bytes());
        message.extend(info);
        message
    }

    #[test]
    fn a_life_from_its_syn_on_tells_how_long_it_took_to_open() {
        let mut life =
            Life::begin(1_000_000_000, &message(SYN_SENT, &[(MIN_RTT, 4, u64::from(u32::MAX))]));
        let fields = [
            (ACKED, 8, 501),
            (RECEIVED, 8, 60),
            (MIN_RTT, 4, 20_100),
            (BUSY, 8, 140_000),
            (RWND, 8, 16_000),
        ];
        life.go_on(1_020_000_000, &message(1, &fields));
        life.go_on(1_200_000_000, &message(4, &fields));
        assert_eq!(
            life.sentence().as_deref(),
            Some(
                "192.0.2.1:4000 -> 198.51.100.7:80: opened within 20.0 ms of the first look at it; \
                 500 B acknowledged, 60 B received; round trip at least 20.1 ms; sending for 140.0 ms; \
                 held by the peer's window for 16.0 ms"
            )
        );
    }

    #[test]
    fn what_nobody_answered_never_opened() {
        let life = Life::begin(0, &message(SYN_SENT, &[(TOTAL_RETRANS, 4, 2)]));
        let sentence = life.sentence().expect("whole");
        assert!(
            sentence.contains("its SYN was not answered")
                && sentence.contains("2 segments retransmitted")
        );
        let once = Life::begin(0, &message(SYN_SENT, &[])).sentence().expect("whole");
        assert!(once.contains("never seen open"), "it may have been refused: {once}");
    }

    #[test]
    fn what_has_no_socket_any_more_takes_nothing_back() {
        let mut life = Life::begin(0, &message(1, &[(RECEIVED, 8, 60)]));
        let of_before = life.sentence();
        // A FIN-WAIT-2 socket has only its addresses left.
        life.go_on(1, &message(5, &[])[..72]);
        assert!(of_before.is_some() && life.sentence() == of_before);
    }

    #[test]
    fn one_that_was_there_before_has_no_time_to_open() {
        let sentence = Life::begin(0, &message(1, &[])).sentence().expect("whole");
        assert!(sentence.contains("open at the first look"), "{sentence}");
    }
}
