//! A control group's memory limit squeezes its sockets.
//!
//! # What it says
//! Socket buffers count as memory of the control group (the container). When it meets its limit the kernel may keep the
//! buffers of its sockets small: windows shrink and send buffers stop growing, though the host has memory to spare.
//!
//! # How we know
//! Between the looks the group met its limit (`memory.events`, `max`) or was slowed at `memory.high`, and sockets hold more
//! than 5 % of that.
//!
//! # What it is not
//! Not that sockets filled the group: most of its memory may be something else.
//!
//! # What to do
//! Raise the group's limit, or let its programs use less. `ss -tim` shows small `rcv_ssthresh` where windows shrank.
//!
//! # Sources
//! Linux `mem_cgroup_charge_skmem`, `mem_cgroup_under_socket_pressure` (v6.12); Documentation/admin-guide/cgroup-v2.rst. 5 %: ours, not measured.

use super::{Check, words};
use crate::finding::{Change, Confidence, Evidence, Finding, Fix, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{self, Source};
use tcpwhy_words::said::{bytes, percent};

pub(super) const CHECK: Check = Check {
    code: "GROUP_SOCKET_MEMORY",
    file: include_str!("group_socket_memory.rs"),
    group: Group::Receiving,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let groups = seen.now.groups.as_ref().ok_or(Missing::all(Source::Groups))?;
    let before = seen.before.ok_or(Missing::all(Source::SecondLook))?;
    let before = before.groups.as_ref().ok_or(Missing::all(Source::Groups))?;
    let squeezed = groups.iter().filter_map(|(path, group)| {
        let limit = limits(group, before.get(path)?).into_iter().flatten().find(Limit::was_met)?;
        let held = group.sock_bytes?;
        (held.saturating_mul(20) > limit.most).then(|| of_group(path, group, &limit, held))
    });
    Ok(squeezed.collect())
}

/// A limit of a group's memory.
struct Limit {
    /// Its file, and the name in `memory.events`.
    names: [&'static str; 2],
    most: u64,
    /// How often it was met between the looks.
    met: u64,
}

impl Limit {
    const fn was_met(&self) -> bool {
        self.met > 0
    }
}

/// The hard limit, and the one above which its programs are slowed.
fn limits(now: &snapshot::Group, before: &snapshot::Group) -> [Option<Limit>; 2] {
    let limit = |names, most: Option<u64>, now: Option<u64>, before: Option<u64>| {
        Some(Limit { names, most: most?, met: now?.checked_sub(before?)? })
    };
    [
        limit(
            ["memory.max", "max"],
            now.memory_max,
            now.memory_events_max,
            before.memory_events_max,
        ),
        limit(
            ["memory.high", "high"],
            now.memory_high,
            now.memory_events_high,
            before.memory_events_high,
        ),
    ]
}

fn of_group(path: &str, group: &snapshot::Group, limit: &Limit, held: u64) -> Finding {
    let Limit { names: [limit_of, event], most, met } = *limit;
    let file = |name: &str| format!("/sys/fs/cgroup/{}/{name}", path.trim_matches('/'));
    let twice = most.saturating_mul(2).to_string();
    let mut evidence = vec![
        Evidence::new(
            format!("{} {event}", file("memory.events")),
            format!("+{met} between the looks"),
        ),
        Evidence::new(file("memory.stat") + " sock", bytes(held)),
        Evidence::new(file(limit_of), bytes(most)),
    ];
    evidence
        .extend(group.memory_bytes.map(|used| Evidence::new(file("memory.current"), bytes(used))));
    let share = percent(held.cast_signed(), most.cast_signed());
    Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: Scope::Process(path.to_owned()),
        title: format!("{path} meets its memory limit, and its sockets hold {share} of it"),
        why: "the kernel may keep the buffers of its sockets small then: their windows shrink and their send \
              buffers do not grow."
            .to_owned(),
        not: "not that its sockets filled it, nor that they are slow for it".to_owned(),
        evidence,
        fixes: vec![
            words::advise("see what its memory goes to", ""),
            Fix {
                what: "allow it twice as much, where the host has that".to_owned(),
                risk: "whoever started the group sets it again at its next start".to_owned(),
                set: Some(Change::File { path: file(limit_of), from: most.to_string(), to: twice }),
                applies: words::AT_ONCE.to_owned(),
            },
        ],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, once, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn grouped(met: u64, held: u64) -> Snapshot {
        let mut host = host(&[]);
        for (look, met) in host.looks.iter_mut().zip([7, 7 + met]) {
            let group = snapshot::Group {
                sock_bytes: Some(held),
                memory_max: Some(100 << 20),
                memory_events_max: Some(met),
                ..snapshot::Group::default()
            };
            look.groups = Some([("/kube/web".to_owned(), group)].into());
        }
        host
    }

    #[test]
    fn a_container_at_its_limit_with_much_in_its_sockets() {
        insta::assert_snapshot!(shown(&CHECK, &grouped(12, 30 << 20)));
    }

    #[test]
    fn five_percent_and_one_meeting_are_the_border() {
        let number = |met, held| judged(&CHECK, &grouped(met, held)).expect("seen").len();
        assert_eq!([number(1, (5 << 20) + 1), number(1, 5 << 20), number(0, 50 << 20)], [1, 0, 0]);
    }

    #[test]
    fn the_softer_limit_counts_where_it_was_met_and_the_harder_was_not() {
        let mut host = grouped(0, 30 << 20);
        for (look, met) in host.looks.iter_mut().zip([4, 6]) {
            let group = look.groups.as_mut().expect("seen").get_mut("/kube/web").expect("there");
            (group.memory_high, group.memory_events_high) = (Some(80 << 20), Some(met));
        }
        let found = judged(&CHECK, &host).expect("seen");
        let set = format!("{:?}", found[0].fixes[1].set);
        assert!(set.contains("memory.high") && set.contains("83886080"), "{set}");
    }

    #[test]
    fn without_groups_or_a_second_look_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Groups);
        assert_eq!(missing(&CHECK, &once(grouped(1, 1))).source, Source::SecondLook);
    }
}
