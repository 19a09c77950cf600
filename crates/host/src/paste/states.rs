//! Counts of sockets by their state, as people make them: `ss -ant | awk '{print $1}' | sort | uniq -c`, and
//! `awk '{++S[$6]} END {for (s in S) print s, S[s]}'`.

use std::collections::BTreeMap;

use super::collected::Collected;

/// Names of `ss` and of `netstat` for the same state (`misc/ss.c`, `sstate_name`; `netstat.c`, `tcp_state`).
const STATES: [(&str, &str); 11] = [
    ("ESTAB", "ESTABLISHED"),
    ("SYN-SENT", "SYN_SENT"),
    ("SYN-RECV", "SYN_RECV"),
    ("FIN-WAIT-1", "FIN_WAIT1"),
    ("FIN-WAIT-2", "FIN_WAIT2"),
    ("TIME-WAIT", "TIME_WAIT"),
    ("CLOSE-WAIT", "CLOSE_WAIT"),
    ("LAST-ACK", "LAST_ACK"),
    ("LISTEN", "LISTEN"),
    ("CLOSING", "CLOSING"),
    ("UNCONN", "CLOSE"),
];

/// Words of a table's head, which such a command counts, too.
const HEADS: [&str; 7] =
    ["State", "Foreign", "Address", "established)", "servers)", "and", "Recv-Q"];

/// `28121 TIME-WAIT`, `TIME_WAIT 28121`; `None` for other lines, and the state and the count, without a state of a head.
fn counted(text: &str) -> Option<(Option<&'static str>, u64)> {
    let mut words = text.split_whitespace();
    let (first, second) = (words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    let (count, word) = match (first.parse(), second.parse()) {
        (Ok(count), _) => (count, second),
        (_, Ok(count)) => (count, first),
        _ => return None,
    };
    let state = STATES.iter().find(|(ss, netstat)| [*ss, *netstat].contains(&word));
    match state {
        Some((name, _)) => Some((Some(*name), count)),
        None => HEADS.contains(&word).then_some((None, count)),
    }
}

/// A line of such a table; a state that was counted already begins the next.
pub(super) fn line(text: &str, goes_on: bool, collected: &mut Collected) -> bool {
    let Some((state, count)) = counted(text) else { return false };
    let Some(state) = state else { return true };
    let now = collected.now;
    if !goes_on || collected.states.last().is_some_and(|all| all.contains_key(state)) {
        collected.states.push(now, BTreeMap::new());
    }
    collected.states.open(now).insert(state.to_owned(), count);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tools_and_both_orders_are_read() {
        let said =
            ["  28121 TIME-WAIT", "TIME_WAIT 28121", "1 State", "28121 packets", "9 SYN-RECV x"]
                .map(counted);
        let time_wait = Some((Some("TIME-WAIT"), 28_121));
        assert_eq!(said, [time_wait, time_wait, Some((None, 1)), None, None]);
    }
}
