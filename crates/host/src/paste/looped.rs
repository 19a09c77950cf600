//! A loop over `ss -i | grep ssthresh`: its lines have no ends, and each is the same socket a moment later.

use crate::snapshot::{Info, Socket};

/// Whether the second line is of the socket of the first: what a connection keeps is the same, nothing that only grows has shrunk,
/// and it shares what two connections do not have alike by chance: its least round trip to the microsecond, or a threshold of slow
/// start.
pub(super) fn is_again(before: &Socket, next: &Socket) -> bool {
    let (Some(was), Some(is)) = (before.info.as_deref(), next.info.as_deref()) else {
        return false;
    };
    let keeps = before.congestion == next.congestion
        && same(&[was.snd_wscale, was.rcv_wscale], &[is.snd_wscale, is.rcv_wscale])
        && same(&[was.snd_mss, was.advmss], &[is.snd_mss, is.advmss]);
    let grows: [fn(&Info) -> Option<u64>; 4] = [
        |info| info.bytes_sent,
        |info| info.bytes_acked,
        |info| info.bytes_received,
        |info| info.total_retrans.map(u64::from),
    ];
    let shrank = |counter: fn(&Info) -> Option<u64>| {
        counter(was).zip(counter(is)).is_some_and(|(was, is)| is < was)
    };
    let shares = match (was.min_rtt_ns, is.min_rtt_ns) {
        (Some(was), Some(is)) => was == is,
        _ => was.snd_ssthresh.is_some() && was.snd_ssthresh == is.snd_ssthresh,
    };
    keeps && shares && !grows.into_iter().any(shrank)
}

/// Whether what both have is the same.
fn same<T: PartialEq>(was: &[Option<T>], is: &[Option<T>]) -> bool {
    was.iter()
        .zip(is)
        .all(|(was, is)| was.as_ref().zip(is.as_ref()).is_none_or(|(was, is)| was == is))
}

#[cfg(test)]
mod tests {
    use crate::paste::read;

    /// How many sockets each look at these lines has.
    fn looks(lines: &[&str]) -> Vec<usize> {
        let text = lines.join("\n") + "\n";
        let sockets = |look: crate::snapshot::Look| look.sockets.map_or(0, |all| all.len());
        read(&text).snapshot.looks.into_iter().map(sockets).collect()
    }

    const AT_40: &str =
        "\t reno wscale:9,9 rto:230 rtt:29.237/3.534 mss:1444 cwnd:40 ssthresh:361 unacked:40";
    const AT_155: &str =
        "\t reno wscale:9,9 rto:230 rtt:29.201/0.111 mss:1444 cwnd:155 ssthresh:361 unacked:151";

    #[test]
    fn lines_of_one_socket_are_looks_at_it() {
        assert_eq!(looks(&[AT_40, AT_155]), [1, 1]);
    }

    #[test]
    fn lines_of_different_sockets_are_one_look() {
        assert_eq!(looks(&[AT_40, &AT_155.replace("361", "90")]), [2]);
        assert_eq!(looks(&[AT_40, &AT_155.replace("9,9", "7,7")]), [2]);
        let with = |line: &str, words: &str| format!("{line} {words}");
        let acked = [with(AT_40, "bytes_acked:900"), with(AT_155, "bytes_acked:100")];
        assert_eq!(looks(&[&acked[0], &acked[1]]), [2], "bytes are not taken back");
        let least = [with(AT_40, "minrtt:29.1"), with(AT_155, "minrtt:29.2")];
        assert_eq!(looks(&[&least[0], &least[1]]), [2]);
    }

    #[test]
    fn sockets_that_were_grepped_with_their_ends_are_looks_where_they_come_again() {
        let row = "ESTAB 0 57760 192.0.2.1:80 192.0.2.2:4000";
        let other = "ESTAB 0 0 192.0.2.1:80 192.0.2.2:4001";
        assert_eq!(looks(&[row, AT_40, other, AT_40, row, AT_155, other, AT_155]), [2, 2]);
    }
}
