//! What the kernel's own account says of the time since a connection was opened.

use serde::Serialize;
use tcpwhy_words::said::{percent, time};

use super::{Held, Reader, moment};
use crate::host::snapshot::Socket;
use crate::report::{State, Sure};

/// From this share of its busy time on a sender was held by one thing, in per cent. Ours: half is most of it.
const MOSTLY_PERCENT: u64 = 50;

/// An account of less tells of its first round trips only. Ours: ten of 100 ms.
const TELLS_NS: u64 = 1_000_000_000;

/// Time with something in flight, and of it what two windows held (Linux `tcp_get_info_chrono_stats`, since 4.10).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Account {
    /// In nanoseconds.
    pub busy_ns: u64,
    /// By the peer's window.
    pub rwnd_ns: u64,
    /// By the send buffer. Few kernels add to it while a writer waits: little of it excludes nothing.
    pub sndbuf_ns: u64,
}

impl Account {
    /// Of a socket that was busy; `None` where the kernel or the text does not say.
    pub fn of(socket: &Socket) -> Option<Self> {
        let info = socket.info.as_deref()?;
        let busy_ns = info.busy_ns.filter(|busy| *busy > 0)?;
        let (rwnd, sndbuf) = (info.rwnd_limited_ns, info.sndbuf_limited_ns);
        Some(Self { busy_ns, rwnd_ns: rwnd.unwrap_or(0), sndbuf_ns: sndbuf.unwrap_or(0) })
    }

    /// What held it, with what holds it now.
    pub(super) fn over(&self, now: Option<Held>, peer: Option<&Reader>) -> Option<Held> {
        let is_mostly = |ns: u64| {
            self.busy_ns >= TELLS_NS
                && u128::from(ns) * 100 >= u128::from(self.busy_ns) * u128::from(MOSTLY_PERCENT)
        };
        let by = |what: &str, ns: u64| {
            let (held, busy) = (ns.cast_signed(), self.busy_ns.cast_signed());
            format!(
                "its kernel counts {} of {} busy as held by {what}",
                percent(held, busy),
                time(busy)
            )
        };
        let with = |held: Held, more: String| Held { by: format!("{}; {more}", held.by), ..held };
        let now_is =
            |states: &[State]| now.as_ref().is_some_and(|held| states.contains(&held.state));
        if is_mostly(self.sndbuf_ns) {
            let by = by("its send buffer", self.sndbuf_ns);
            return Some(match now {
                Some(held) if held.state == State::Sndbuf => {
                    Held { sure: Sure::Shown, ..with(held, by) }
                }
                _ => Held { state: State::Sndbuf, sure: Sure::Shown, by },
            });
        }
        if is_mostly(self.rwnd_ns) {
            let by = by("the receiver's window", self.rwnd_ns);
            if now_is(&moment::WINDOW) {
                // It counts the window's time, and does not tell whose fault that is.
                return now.map(|held| with(held, by));
            }
            // What stands still now is not what the account tells of.
            if now.as_ref().is_none_or(|held| !super::is_standstill(held.state)) {
                let held = Held { state: State::RwndReader, sure: Sure::Possible, by };
                return Some(moment::with_peer(held, peer));
            }
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: fn() -> Option<Held> =
        || Some(Held { state: State::CwndAvoidance, sure: Sure::Likely, by: "now".to_owned() });

    fn over(rwnd: u64, sndbuf: u64) -> State {
        let ms = 1_000_000;
        let account = Account { busy_ns: 2_000 * ms, rwnd_ns: rwnd * ms, sndbuf_ns: sndbuf * ms };
        account.over(NOW(), None).expect("something holds it").state
    }

    #[test]
    fn what_held_it_for_half_of_its_time_is_named_whatever_holds_it_now() {
        assert_eq!(over(1_000, 0), State::RwndReader);
        assert_eq!(over(999, 0), State::CwndAvoidance);
        assert_eq!(over(0, 1_000), State::Sndbuf);
        assert_eq!(over(0, 999), State::CwndAvoidance);
    }

    #[test]
    fn a_short_account_tells_nothing() {
        let account = Account { busy_ns: 900_000_000, rwnd_ns: 900_000_000, sndbuf_ns: 0 };
        assert_eq!(account.over(NOW(), None), NOW());
    }

    #[test]
    fn a_timeout_now_is_not_the_window_of_before() {
        let now = Some(Held { state: State::RtoWait, sure: Sure::Shown, by: "now".to_owned() });
        let account = Account { busy_ns: 2_000_000_000, rwnd_ns: 2_000_000_000, sndbuf_ns: 0 };
        assert_eq!(account.over(now.clone(), None), now);
    }
}
