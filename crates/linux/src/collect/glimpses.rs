//! Senders at moments between the looks.
//!
//! Two looks meet a send buffer full by chance, and one that holds its program empty. So those that are sending at the
//! first look are asked for again, each by its ends: that is a look into a table, no walk over all sockets.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use tcpwhy::host::snapshot::{Glimpse, Look, Socket, State};

use super::sockets;
use crate::record::tcp_info::Diag;
use crate::record::{Clock, Stop};

/// By their ends.
pub(super) type Glimpses = BTreeMap<[SocketAddr; 2], Vec<Glimpse>>;

/// Looks at senders until `due`, or until `stop`.
pub(super) fn until(due: u64, first: &Look, stop: Option<&Stop>) -> Glimpses {
    let mut found = Glimpses::new();
    let senders = senders(first.sockets.as_deref().unwrap_or_default());
    // That the kernel tells no sockets was said when they were looked at.
    if let Some(mut diag) = (!senders.is_empty()).then(Diag::open).and_then(Result::ok) {
        for moment in moments(Clock::Monotonic.now(), due) {
            if wait_until(moment, stop) {
                return found;
            }
            for ends in &senders {
                // One that has gone is none any more.
                let message = diag.of(*ends).ok().flatten();
                let socket = message.and_then(|message| sockets::connection(&message));
                let glimpse = socket.and_then(|socket| socket.glimpse());
                found.entry(*ends).or_default().extend(glimpse);
            }
        }
    }
    wait_until(due, stop);
    found
}

/// Lays them beside the sockets of the last look.
pub(super) fn put(mut glimpses: Glimpses, last: &mut Look) {
    for socket in last.sockets.iter_mut().flatten() {
        socket.between = glimpses.remove(&[socket.local, socket.remote]).unwrap_or_default();
    }
}

/// Those with something in flight, those with most of it first.
fn senders(sockets: &[Socket]) -> Vec<[SocketAddr; 2]> {
    let sends = |socket: &&Socket| {
        let unacked = socket.info.as_ref().and_then(|info| info.unacked);
        matches!(socket.state, State::Established | State::CloseWait) && unacked > Some(0)
    };
    let mut found: Vec<&Socket> = sockets.iter().filter(sends).collect();
    found.sort_by_key(|socket| (Reverse(socket.send_queue), socket.remote, socket.local));
    found.iter().take(SENDERS).map(|socket| [socket.local, socket.remote]).collect()
}

/// Moments until `due`, not evenly apart: what comes again and again is to be met at all points of it.
fn moments(now: u64, due: u64) -> impl Iterator<Item = u64> {
    let step = due.saturating_sub(now) / (MOMENTS + 1);
    // Parts of the golden ratio spread well over a step.
    (1..=MOMENTS).map(move |nth| now + step * (nth - 1) + step * (nth * 618 % 1000) / 1000)
}

/// Waits; whether it was asked to end. An error of that ends the wait, too: the second look tells when it was taken.
fn wait_until(due: u64, stop: Option<&Stop>) -> bool {
    let Some(stop) = stop else {
        Clock::Monotonic.sleep_until(due);
        return false;
    };
    stop.within(Some(due.saturating_sub(Clock::Monotonic.now()))).unwrap_or(true)
}

/// Ours: with both looks sixteen.
const MOMENTS: u64 = 14;
/// Ours: asking takes some 10 us each.
const SENDERS: usize = 64;

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_is_found_by_its_ends_and_gone_when_it_is_closed() {
        for (bind, connect) in [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "127.0.0.1")] {
            let listener = TcpListener::bind(bind).expect("a port");
            let port = listener.local_addr().expect("bound").port();
            let mut client = TcpStream::connect((connect, port)).expect("it listens");
            let (mut server, _) = listener.accept().expect("a client");
            client.write_all(b"some bytes").expect("room");
            server.read_exact(&mut [0; 10]).expect("they come");
            let ends = [client.local_addr(), client.peer_addr()].map(|end| end.expect("bound"));
            let mut diag = Diag::open().expect("a kernel with sock_diag");
            for ends in [ends, [ends[1], ends[0]]] {
                let message = diag.of(ends).expect("an answer").expect("it is there");
                let socket = sockets::connection(&message).expect("well-formed");
                assert_eq!([socket.local, socket.remote], ends);
                let glimpse = socket.glimpse().expect("all of it is there");
                assert!(glimpse.sndbuf > 0 && glimpse.snd_cwnd > 0 && glimpse.snd_mss > 0);
            }
            let nobody = [ends[0], SocketAddr::new(ends[1].ip(), 1)];
            assert_eq!(diag.of(nobody).expect("an answer"), None);
        }
    }

    #[test]
    fn moments_lie_in_their_steps_and_at_all_points_of_them() {
        let all: Vec<u64> = moments(1000, 16_000).collect();
        assert_eq!(all.len(), 14);
        assert!(all.iter().zip(1..).all(|(at, nth)| (1000 * nth..1000 * (nth + 1)).contains(at)));
        let mut parts: Vec<u64> = all.iter().map(|at| at % 1000).collect();
        parts.sort_unstable();
        assert!(parts.windows(2).all(|two| two[1] - two[0] < 150), "{parts:?}");
        assert!(moments(9, 5).all(|at| at == 9));
    }
}
