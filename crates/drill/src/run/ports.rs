//! Is the port free that a client asks for?
//!
//! Scripts that ask for one meet their own earlier connection, which may be over and still hold it
//! (TIME-WAIT). Follows `tcp_twsk_unique` and `__inet_check_established`: with timestamps old segments
//! do no harm (RFC 7323 section 5), so that the port may be had at once if it was bound, else after a
//! while. Left out: that the new connection goes on from the old one's numbers.

use super::end::Role;
use super::host::{Host, START_NS};
use super::port::{Port, Reuse};
use tcpwhy_model::profile::Version;
use tcpwhy_model::socket::State;

impl Reuse {
    /// Whether that was long enough ago. Before v6.14 whole seconds were compared.
    fn allows(self, version: Version, over_ns: u64, now_ns: u64) -> bool {
        let (over_ms, now_ms) = ((START_NS + over_ns) / 1_000_000, (START_NS + now_ns) / 1_000_000);
        let passed = if version >= Version::new(6, 14) {
            now_ms > over_ms + self.after_ms
        } else {
            now_ms / 1000 > over_ms / 1000
        };
        self.allowed && passed
    }
}

impl Host {
    /// Takes the port that this socket asks for; whether it may have it.
    pub(super) fn take_port(&mut self, at: usize) -> bool {
        let port = self.ends[at].port;
        let holds = |end: &super::end::End| {
            port != Port::Any && end.port == port && end.state() == State::TimeWait
        };
        let Some(holder) = self.ends.iter().position(holds) else { return true };
        let end = &self.ends[holder];
        let stamped = end.socket().is_some_and(|socket| socket.info().timestamps);
        let version = self.config().kernel.version;
        let free = stamped
            && (port == Port::Bound || self.reuse.allows(version, end.over_ns, self.now_ns));
        if free {
            self.ends[holder].role = Role::Fresh;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_one_port_names_it() {
        assert_eq!(Port::of_range(0x1234_1234), Port::Only(0x1234));
        assert_eq!(Port::of_range(0x1235_1234), Port::Any);
        assert_eq!(Port::of_range(0), Port::Any);
    }

    #[test]
    fn a_port_may_be_had_after_a_while() {
        let (old, new) = (Version::new(6, 12), Version::new(6, 18));
        let half = Reuse { allowed: true, after_ms: 500 };
        // START_NS lies half a millisecond behind a whole one, and on a whole second but for that.
        for (reuse, version, now_ms, may) in [
            (half, new, 500, false),
            (half, new, 501, true),
            (Reuse { allowed: false, ..half }, new, 501, false),
            (half, old, 999, false),
            (half, old, 1000, true),
        ] {
            assert_eq!(reuse.allows(version, 0, now_ms * 1_000_000), may, "{now_ms} ms");
        }
    }
}
