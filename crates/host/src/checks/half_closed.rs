//! A program has shut many connections for sending and never closed them.
//!
//! # What it says
//! In `FIN_WAIT2` this side has sent its FIN and the peer acknowledged it, but not sent its own. If the program has called `close`, the kernel ends
//! it after `tcp_fin_timeout`. If it only called `shutdown`, it waits for ever.
//!
//! # How we know
//! More than 1,000 connections in `FIN_WAIT2` are still held by a descriptor.
//!
//! # What it is not
//! Not those that the kernel holds alone: they end by themselves. A proxy that forwards one way holds such connections on purpose.
//!
//! # What to do
//! Have the program close them after a time, whether or not the peer has.
//!
//! # Sources
//! Linux `tcp_fin`, `tcp_close` (only orphans get the timeout; v6.12, `net/ipv4/tcp.c`); shutdown(2). 1,000: ours, not measured.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Check, words};
use crate::finding::{Confidence, Evidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::{Owner, Source, State};

pub(super) const CHECK: Check = Check {
    code: "HALF_CLOSED",
    file: include_str!("half_closed.rs"),
    group: Group::Closing,
    judge,
};

const MANY: u64 = 1000;

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let waiting = seen.sockets()?.iter().filter(|socket| socket.state == State::FinWait2);
    let (mut all, mut held, mut blind) = (0_u64, 0_u64, 0_u64);
    let mut of = BTreeMap::<Owner, u64>::new();
    for socket in waiting {
        all += 1;
        held += u64::from(socket.owner.is_some() || socket.is_orphan() == Some(false));
        blind += u64::from(socket.owner.is_none() && socket.is_orphan().is_none());
        if let Some(owner) = socket.owner {
            *of.entry(Owner { fd: None, ..owner }).or_default() += 1;
        }
    }
    if held <= MANY && held + blind > MANY {
        return Err(Missing::part(Source::Sockets, "inodes: ss -e"));
    }
    if held <= MANY {
        return Ok(Vec::new());
    }
    let worst = of.into_iter().min_by_key(|(owner, count)| (Reverse(*count), *owner));
    let who = words::program(seen, worst.map(|(owner, _)| owner));
    Ok(vec![Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: Scope::Process(who.clone()),
        title: match worst {
            Some((_, count)) => format!("{who} has shut {count} connections and not closed them"),
            None => format!("{held} connections were shut and not closed"),
        },
        why: "no timeout ends them: each holds a descriptor and its memory until the peer closes or the program does.".to_owned(),
        not: "not that it is a leak: a proxy that forwards one way holds such connections on purpose".to_owned(),
        evidence: vec![Evidence::new("ss -tnpe state fin-wait-2", format!("{all}, {held} of them held by a descriptor"))],
        fixes: vec![words::advise(format!("have {who} close them after a time"), "")],
        ..Finding::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::super::parts::{each_look, peers, running, socket};
    use super::super::sample::{host, judged, missing, shown};
    use super::*;
    use crate::snapshot::Snapshot;

    fn shut(count: u16, inode: u64) -> Snapshot {
        each_look(running(host(&[]), "proxy", 'S'), |_, look| {
            let one = |peer: String| {
                let mut one = socket(State::FinWait2, "10.0.0.1:80", &peer);
                one.inode = inode;
                one.owner = one.owner.filter(|_| inode != 0);
                one
            };
            look.sockets = Some(peers(count, one));
        })
    }

    #[test]
    fn connections_that_were_shut_and_never_closed_are_told_with_the_program() {
        insta::assert_snapshot!(shown(&CHECK, &shut(1001, 7)));
    }

    #[test]
    fn a_thousand_or_those_without_a_descriptor_are_nothing() {
        assert_eq!(judged(&CHECK, &shut(1000, 7)), Ok(Vec::new()));
        assert_eq!(judged(&CHECK, &shut(1001, 0)), Ok(Vec::new()));
    }

    #[test]
    fn without_sockets_or_pasted_without_inodes_nothing_is_said() {
        assert_eq!(missing(&CHECK, &host(&[])).source, Source::Sockets);
        let pasted = each_look(shut(1001, 0), |_, look| {
            for socket in look.sockets.iter_mut().flatten() {
                socket.inode_unseen = true;
            }
        });
        assert!(missing(&CHECK, &pasted).of.is_some());
    }
}
