//! Round trips were suddenly far longer: something stood still.
//!
//! # What it says
//! In the midst of a transfer an ACK came far later than the one before it, and those after it came as
//! usual again. A host, its network card or a link did nothing for that long.
//!
//! # How we know
//! A round trip was at least 5 ms longer and three times as long as the one before it; ACKs that the
//! receiver's timer delays are left out, and so is what stayed: data sent after that ACK must have come back
//! at most half as late. The time that such round trips took beyond the usual is at least a
//! tenth of the working time. Who stood still follows from the timestamps, which each side's TCP writes when
//! it sends: data that passed the capture point long after its TCP sent it was held before that point, an ACK
//! likewise on its way back; an ACK that was sent late was held before the receiver's TCP.
//!
//! # What it is not
//! Not a queue that fills: that makes each round trip a little longer than the one before. Not a sender
//! without data (`SLOW_WRITER`). At the sender's host an ACK that was sent late does not tell the way to the
//! receiver from the receiver's host: a capture there does.
//!
//! # What to do
//! On a host that stood still: steal and pressure of a virtual machine (`vmstat`, `/proc/pressure`), time in
//! softirqs, power saving of the card and of the processor, a frozen container (`cgroup.freeze`). On a path:
//! a radio that scans or changes its cell, a route that changes, a link that trains anew.
//!
//! # Sources
//! RFC 7323 section 3.2 (timestamps are written when a segment is sent); `docs/reference/limits-method.md`
//! section 1. Ours: 5 ms and three times, not measured (`limits/trips.rs`).

use super::case::{Case, active_ns, filter, in_each, severity, working_ns};
use super::{Rule, remedies};
use crate::report::{
    Connection, Evidence, Finding, FrameRange, Limit, Remedy, RttJump, Severity, Sure, Vantage,
};
use tcpwhy_words::said;
use tcpwhy_words::units::Duration;

pub(super) const RULE: Rule = Rule {
    code: "STOOD_STILL",
    severity: Severity::Wrong,
    file: include_str!("stood_still.rs"),
    find,
};

/// Listed as evidence. Ours.
const EVIDENCE: usize = 8;

/// Who or what did nothing.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Where {
    BeforeTap,
    WayBack,
    ReceiversHost,
    BeforeReceiver,
    OneHost,
    NotKnown,
}

fn find(connection: &Connection) -> Vec<Finding> {
    in_each(connection, |case| {
        let jumps = &case.direction.rtt_jumps;
        let longest = jumps.iter().max_by_key(|jump| excess(jump))?;
        let cost_ns = union(case);
        let share = Duration(cost_ns).percent_of(Duration(working_ns(connection)));
        if share < 10.0 {
            return None;
        }
        let places: Vec<Where> = jumps.iter().map(|jump| place(case, jump)).collect();
        let one = places.iter().all(|each| *each == places[0]);
        let place = if one { places[0] } else { Where::NotKnown };
        let active = active_ns(connection);
        Some(Finding {
            code: RULE.code.to_owned(),
            severity: severity(RULE.code, cost_ns, Sure::Shown),
            title: format!("{} stood still", who(case, place)),
            why: format!(
                "{}, by {} at the most ({} after {}); {}.",
                said::count(jumps.len() as u64, "sudden round trip"),
                said::time(excess(longest)),
                said::time(longest.rtt_ns),
                said::time(longest.before_ns),
                reason(case, place)
            ),
            not: "not a queue that fills: that makes each round trip a little longer than the last"
                .to_owned(),
            evidence: evidence(jumps),
            cost_ns,
            of_ns: active,
            remedies: vec![help(case, place)],
            ..Finding::default()
        })
    })
}

fn excess(jump: &RttJump) -> i64 {
    jump.rtt_ns - jump.before_ns
}

/// The time of the jumps beyond the usual, which may overlap.
fn union(case: &Case<'_>) -> i64 {
    let (mut sum, mut upto) = (0, i64::MIN);
    for jump in &case.direction.rtt_jumps {
        sum += (jump.at_ns - (jump.at_ns - excess(jump)).max(upto)).max(0);
        upto = upto.max(jump.at_ns);
    }
    sum
}

/// Whether `limit` is mostly such a time: what else it may have waited for, this was longer.
pub(super) fn explains(case: &Case<'_>, limit: &Limit) -> bool {
    case.direction.rtt_jumps.iter().any(|jump| {
        let from = (jump.at_ns - excess(jump)).max(limit.start_ns);
        (jump.at_ns.min(limit.end_ns) - from) * 2 > limit.end_ns - limit.start_ns
    })
}

fn place(case: &Case<'_>, jump: &RttJump) -> Where {
    if is_one_host(case.connection) {
        return Where::OneHost;
    }
    let most = |part: i64| part * 2 >= excess(jump);
    let at_receiver = [Vantage::Server, Vantage::Client][case.at] == case.connection.vantage;
    match jump.ack_late_ns {
        _ if most(jump.data_late_ns) => Where::BeforeTap,
        Some(late) if most(late) => Where::WayBack,
        _ if at_receiver => Where::ReceiversHost,
        Some(_) => Where::BeforeReceiver,
        None => Where::NotKnown,
    }
}

/// Whether both ends are on one machine, with no path between them.
fn is_one_host(connection: &Connection) -> bool {
    let [client, server] = [connection.client.ip(), connection.server.ip()];
    client == server || client.to_canonical().is_loopback()
}

fn who(case: &Case<'_>, place: Where) -> String {
    let (sender, receiver) = (case.sender(), case.receiver());
    match place {
        Where::BeforeTap if case.tap_at_sender() => format!("the {sender}'s host, below its TCP,"),
        Where::BeforeTap => format!("the way from the {sender} to the capture point"),
        Where::WayBack => format!("the way back from the {receiver}"),
        Where::ReceiversHost => format!("the {receiver}'s host"),
        Where::BeforeReceiver => format!("the way to the {receiver}, or its host,"),
        Where::OneHost => "the machine that both ends are on, or a program there,".to_owned(),
        Where::NotKnown => "something on the way, or a host,".to_owned(),
    }
}

fn reason(case: &Case<'_>, place: Where) -> String {
    let (sender, receiver) = (case.sender(), case.receiver());
    match place {
        Where::BeforeTap => {
            format!(
                "the data passed the capture point that long after the {sender}'s TCP stamped it"
            )
        }
        Where::WayBack => {
            format!(
                "the {receiver}'s TCP had stamped its ACKs long before they passed the capture point"
            )
        }
        Where::ReceiversHost => {
            format!("the data was at the {receiver}'s host, and its ACK left there that much later")
        }
        Where::BeforeReceiver => format!("the {receiver}'s TCP stamped its ACKs that late"),
        Where::OneHost => "no path lies between its ends".to_owned(),
        Where::NotKnown => "the timestamps do not tell where, or not always the same".to_owned(),
    }
}

fn help(case: &Case<'_>, place: Where) -> Remedy {
    const HOST: &str = "see whether the machine was kept from working: steal of a virtual machine, pressure, softirqs, \
                        a frozen container";
    const LOOK: &str = "vmstat -w 1 5; cat /proc/pressure/*; mpstat -P ALL 1 5";
    match place {
        Where::ReceiversHost | Where::OneHost => remedies::look(1 - case.at, HOST, LOOK),
        Where::BeforeTap if case.tap_at_sender() => remedies::look(case.at, HOST, LOOK),
        Where::BeforeReceiver => remedies::path(format!(
            "capture on the {}'s host too: it tells the way there from the host",
            case.receiver()
        )),
        _ => remedies::path(
            "look for what held packets then: a radio that scans, a route or a link that changed, a device's queue",
        ),
    }
}

fn evidence(jumps: &[RttJump]) -> Vec<Evidence> {
    let mut longest: Vec<&RttJump> = jumps.iter().collect();
    longest.sort_by_key(|jump| (-excess(jump), jump.at_ns));
    longest.truncate(EVIDENCE);
    longest.sort_by_key(|jump| jump.at_ns);
    let told = |jump: &RttJump| {
        let frames = FrameRange { first: jump.frame, last: jump.frame };
        Evidence {
            from_ns: (jump.at_ns - excess(jump)).max(0),
            to_ns: jump.at_ns,
            frames,
            filter: filter(frames),
            text: format!(
                "a round trip of {} after one of {}",
                said::time(jump.rtt_ns),
                said::time(jump.before_ns)
            ),
        }
    };
    longest.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const MS: i64 = 1_000_000;

    /// A download in which one ACK came 100 ms late; the data was late by `data_late` of it, the ACK by `ack_late`.
    fn jumped(data_late: i64, ack_late: Option<i64>) -> Connection {
        let mut connection = sample::download();
        connection.directions[1].as_mut().expect("data").rtt_jumps.push(RttJump {
            at_ns: 120 * MS,
            rtt_ns: 120 * MS,
            before_ns: 20 * MS,
            data_late_ns: data_late,
            ack_late_ns: ack_late,
            frame: 40,
        });
        connection
    }

    fn title(connection: &Connection) -> String {
        find(connection)[0].title.clone()
    }

    #[test]
    fn an_ack_that_was_sent_late_was_held_before_the_receivers_tcp() {
        let connection = jumped(0, Some(MS));
        insta::assert_snapshot!(sample::shown(&find(&connection)));
        let at_receiver = Connection { vantage: Vantage::Client, ..connection };
        assert!(title(&at_receiver).starts_with("the client's host"), "{}", title(&at_receiver));
    }

    #[test]
    fn timestamps_tell_the_way_back_and_the_senders_own_host() {
        assert!(title(&jumped(0, Some(90 * MS))).starts_with("the way back"));
        assert!(title(&jumped(90 * MS, None)).starts_with("the server's host"));
        assert!(title(&jumped(0, None)).starts_with("something"), "no timestamps");
    }

    #[test]
    fn inside_a_machine_no_path_is_to_be_looked_at() {
        let mut connection = jumped(0, None);
        connection.client.set_ip(connection.server.ip());
        let found = &find(&connection)[0];
        assert!(found.title.starts_with("the machine that both ends are on"), "{}", found.title);
        assert_eq!(found.remedies[0].on.as_deref(), Some("client"), "{:?}", found.remedies);
    }

    #[test]
    fn half_of_the_time_is_most_of_it_and_less_is_not() {
        assert!(title(&jumped(0, Some(50 * MS))).starts_with("the way back"));
        assert!(title(&jumped(0, Some(50 * MS - 1))).starts_with("the way to"));
    }

    #[test]
    fn a_tenth_of_the_time_is_enough_and_less_is_not() {
        let connection = jumped(0, None);
        let (cost, working) = (find(&connection)[0].cost_ns, working_ns(&connection));
        for (more, number) in [(10 * cost - working, 1), (10 * cost - working + 10, 0)] {
            let mut stretched = connection.clone();
            sample::stretch_opening(&mut stretched, more);
            assert_eq!(find(&stretched).len(), number, "{more}");
        }
    }

    #[test]
    fn a_wait_that_something_standing_still_made_is_no_slow_start() {
        let slow = |connection: &Connection| {
            let found = super::super::findings(connection);
            found.iter().find(|each| each.code == "SLOW_START").map_or(0, |each| each.cost_ns)
        };
        assert!(slow(&jumped(0, None)) < slow(&sample::download()));
    }
}
