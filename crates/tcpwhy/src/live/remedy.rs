//! What would help a connection that is held, by its state: without packets there is no gain to tell.

use super::Held;
use crate::report::{State, Sure};

/// What to do about it, in a sentence; `None` where nothing is wrong, or nothing is known.
pub fn remedy(held: &Held) -> Option<&'static str> {
    use State as S;
    Some(match held.state {
        S::RwndReader | S::RwndCap if held.sure == Sure::Possible => {
            "`ss -tinm` at the receiver tells: where Recv-Q is large its program lags, where it is 0 its buffer is small."
        }
        S::SynRetry => {
            "See whether the address is right and the peer is up, whether a filter drops the SYN, and `tcpwhy check` on the peer for \
             a full accept queue."
        }
        S::SilenceNoAck | S::RtoWait => {
            "See whether the peer still answers (ping, traceroute); net.ipv4.tcp_retries2 and TCP_USER_TIMEOUT decide when it gives up."
        }
        S::ZeroWindow | S::RwndReader => {
            "Find out what the receiver's program does instead of reading: its threads' stacks, its disk, its processor. A larger \
             buffer only fills later."
        }
        S::RwndCap => {
            "Take SO_RCVBUF out of the receiver's program, else raise the maximum of net.ipv4.tcp_rmem there."
        }
        S::RwndAutotune => {
            "It grows by itself; a larger default in net.ipv4.tcp_rmem at the receiver begins higher."
        }
        S::Sndbuf => {
            "Take SO_SNDBUF out of this host's program, else raise the maximum of net.ipv4.tcp_wmem."
        }
        S::LocalQdisc => {
            "See what shapes this host's device (`tc -s qdisc`, `tc -s class`, a container's or cloud's limit): its rate is the limit."
        }
        S::BandwidthSelfQueue if held.sure == Sure::Possible => {
            "If the link is full, only more rate makes it faster. `ss -tinm` at the receiver tells: where Recv-Q is large, its \
             program lags instead."
        }
        S::BandwidthSelfQueue => {
            "Only more rate makes it faster; fq_codel or BBR keep the queue short for others."
        }
        S::RecoveryLoss => {
            "Find where packets are lost: `tcpwhy record` of this connection places the losses."
        }
        S::CwndPostLoss => {
            "Find where packets are lost; BBR does not take a lone loss for a full path."
        }
        S::CwndSlowStart => {
            "Keep connections open and use them again; a larger initcwnd of the route saves their first round trips."
        }
        S::CwndAfterIdle => "net.ipv4.tcp_slow_start_after_idle = 0 keeps the window over pauses.",
        S::CwndCachedSsthresh => {
            "`ip tcp_metrics` shows what is remembered of the peer, `ip tcp_metrics delete ADDRESS` forgets it; with \
             net.ipv4.tcp_no_metrics_save = 1 nothing is kept."
        }
        S::CwndAvoidance => {
            "It grows by a segment each round trip: a shorter way, or a connection that was used before."
        }
        _ => return None,
    })
}
