//! The bounds of TCP's buffers are set to values that harm.
//!
//! # What it says
//! `tcp_rmem` and `tcp_wmem` have three numbers: what a socket keeps when memory is short, what it begins with, and
//! how far it may grow. A large second number gives every connection, however slow, a large buffer at once; a
//! large first one is kept even when memory runs out; a third one below the kernel's default caps fast connections.
//!
//! # How we know
//! The numbers do not rise; the first is above a page; the second is above 1 MiB; or the third is below what the kernel
//! sets by itself: a 128th of the memory, at most 6 MiB for receiving and 4 MiB for sending (since 6.16 the first
//! of these is 32 MiB). Where the memory was not seen, the least that it sets on any machine counts: 128 KiB and 64 KiB. Where connections are at the third number now, `RECEIVE_BUFFER_CEILING` and `SEND_BUFFER_CEILING` tell of it.
//!
//! # What it is not
//! `net.core.rmem_max` and `wmem_max` do not bound these numbers, nor do they have to be raised with them. A small third
//! number is no brake for lossy paths: it caps every connection, near ones, too; BBR, `fq` or a route's metrics do
//! that better.
//!
//! # What to do
//! Leave the lines out of sysctl.d, or set the kernel's values.
//!
//! # Sources
//! Linux `tcp_init`, `tcp_sk_init` (v6.12), commit a337531b942b (second number); kOps issues 10206 and 11868 on a second
//! number of 12 MB. 1 MiB, and a quarter below the kernel's value: ours, not measured.

use super::buffers::{BUFFERS, Own, RECEIVE, by_kernel, mend, most_of};
use super::{Check, receive_buffer_ceiling, send_buffer_ceiling, words};
use crate::finding::{Confidence, Finding, Group, Scope, Severity};
use crate::seen::{Asked, Missing, Seen};
use crate::snapshot::Source;

pub(super) const CHECK: Check = Check {
    code: "BUFFER_SIZES",
    file: include_str!("buffer_sizes.rs"),
    group: Group::Receiving,
    judge,
};

fn judge(seen: &Seen<'_>) -> Asked<Vec<Finding>> {
    let mut found = Vec::new();
    let mut unseen = None;
    for own in &BUFFERS {
        let set = seen.numbers::<3>(own.key);
        match set.and_then(|set| set.map_or(Ok(None), |set| of_setting(seen, own, set))) {
            Ok(finding) => found.extend(finding),
            Err(missing) => unseen = unseen.or(Some(missing)),
        }
    }
    unseen.filter(|_| found.is_empty()).map_or(Ok(found), Err)
}

fn of_setting(seen: &Seen<'_>, own: &Own, set: [i64; 3]) -> Asked<Option<Finding>> {
    let [kept, begun, grown] = set;
    let key = own.key;
    let most = most_of(seen, key);
    let (mended, why) = mend(seen, set, own);
    let is_blind = by_kernel(seen, most).is_none() && grown < most;
    let unseen = is_blind.then(|| Missing::part(Source::Machine, "memory"));
    if why.is_empty() {
        return unseen.map_or(Ok(None), Err);
    }
    let is_at_ceiling = is_at_ceiling(seen, key);
    // The same change is proposed there.
    let is_of_third = why.len() == 1 && mended[2] != grown;
    if is_at_ceiling && (is_of_third || [mended[0], mended[1]] == [kept, begun]) {
        return Ok(None);
    }
    let [kept_mended, begun_mended, grown_mended] = mended;
    Ok(Some(Finding {
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        scope: Scope::Netns,
        title: format!("{key} is set to {kept} {begun} {grown}"),
        why: format!("{}.", why.join("; ")),
        not: if is_at_ceiling {
            "not how much the connections that are at the third number lose by the others"
        } else {
            "not that a connection here suffers from it now"
        }
        .to_owned(),
        evidence: vec![words::setting(key, &format_args!("{kept} {begun} {grown}"))],
        fixes: vec![words::set(
            seen,
            key,
            &format_args!("{kept_mended} {begun_mended} {grown_mended}"),
            "set what the kernel sets by itself",
            "for new connections; the third number for open ones, too",
            "someone may have measured what is set now: see the file that sets it",
        )],
        unseen: unseen.iter().map(ToString::to_string).collect(),
        ..Finding::default()
    }))
}

fn is_at_ceiling(seen: &Seen<'_>, key: &str) -> bool {
    let check =
        if key == RECEIVE { &receive_buffer_ceiling::CHECK } else { &send_buffer_ceiling::CHECK };
    (check.judge)(seen).is_ok_and(|found| !found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::sample::{host, judged, missing, shown};
    use super::super::sample_flows::{connected, socket};
    use super::*;
    use crate::checks::buffers::SEND;
    use crate::snapshot::{Info, Memory, Snapshot};

    fn set(rmem: &str) -> Snapshot {
        let memory_bytes = Some(8 << 30);
        Snapshot { memory_bytes, ..host(&[("net.ipv4.tcp_rmem", rmem)]) }
    }

    #[test]
    fn a_first_buffer_of_twelve_megabytes() {
        insta::assert_snapshot!(shown(&CHECK, &set("4096 12582912 16777216")));
    }

    #[test]
    fn a_ceiling_as_a_brake() {
        insta::assert_snapshot!(shown(&CHECK, &set("4096 87380 262144")));
    }

    #[test]
    fn defaults_of_all_kernels_and_small_machines_are_well() {
        for rmem in ["4096 87380 6291456", "4096 131072 33554432", "4096 1048576 6291456"] {
            assert_eq!(judged(&CHECK, &set(rmem)), Ok(Vec::new()), "{rmem}");
        }
        let small = Snapshot { memory_bytes: Some(256 << 20), ..set("4096 131072 1900000") };
        assert_eq!(judged(&CHECK, &small), Ok(Vec::new()));
    }

    #[test]
    fn numbers_that_do_not_rise_or_are_just_too_large() {
        let number = |rmem| judged(&CHECK, &set(rmem)).expect("seen").len();
        assert_eq!([number("4096 131072 65536"), number("4097 131072 6291456")], [1, 1]);
        assert_eq!(number("4096 1048577 6291456"), 1);
    }

    #[test]
    fn since_6_16_the_kernel_lets_a_receive_buffer_grow_to_32_mib() {
        let number = |kernel: &str, rmem| {
            let kernel = Some(kernel.to_owned());
            judged(&CHECK, &Snapshot { kernel, ..set(rmem) }).expect("seen").len()
        };
        assert_eq!(number("6.15.4", "4096 131072 6291456"), 0);
        assert_eq!(number("6.16.0-1-amd64", "4096 131072 6291456"), 1);
        assert_eq!(number("6.16.0-1-amd64", "4096 131072 25165824"), 0);
    }

    #[test]
    fn a_setting_is_judged_though_the_other_was_not_seen() {
        let mut some = set("4096 12582912 16777216");
        some.settings.as_mut().expect("settings").complete = false;
        assert_eq!(judged(&CHECK, &some).expect("seen").len(), 1);
    }

    /// Downloads that fill the largest window there is.
    fn at_its_ceiling(rmem: &str, ceiling: u32) -> Snapshot {
        let info = |received| Info {
            bytes_received: Some(received),
            rcv_ssthresh: Some(ceiling / 2),
            rcv_rtt_ns: Some(80_000_000),
            min_rtt_ns: Some(79_000_000),
            ..Info::default()
        };
        let memory = Memory { rcvbuf: ceiling, ..Memory::default() };
        let at = |received| vec![socket(0, &info(received), memory)];
        let host = connected(&[(RECEIVE, rmem)], at(1 << 20), at(200 << 20));
        Snapshot { memory_bytes: Some(8 << 30), ..host }
    }

    #[test]
    fn a_ceiling_that_connections_are_at_is_told_once() {
        let low = at_its_ceiling("4096 131072 262144", 262_144);
        assert_eq!(judged(&receive_buffer_ceiling::CHECK, &low).expect("seen").len(), 1);
        assert_eq!(judged(&CHECK, &low), Ok(Vec::new()));
        let large = judged(&CHECK, &at_its_ceiling("4096 2097152 4194304", 4 << 20)).expect("seen");
        assert!(large[0].not.contains("at the third number"), "{}", large[0].not);
    }

    #[test]
    fn a_low_ceiling_is_judged_without_the_memory_where_no_memory_makes_it_right() {
        let blind = |rmem| Snapshot { memory_bytes: None, ..set(rmem) };
        assert_eq!(missing(&CHECK, &blind("4096 131072 262144")).source, Source::Machine);
        assert_eq!(missing(&CHECK, &blind("4096 87380 131072")).source, Source::Machine);
        let mended = |rmem| {
            let found = judged(&CHECK, &blind(rmem)).expect("seen");
            found[0].fixes[0].set.as_ref().expect("a setting").commands().apply
        };
        assert!(mended("4096 87380 131071").contains("4096 131072 6291456"));
        assert!(mended("4096 4096 4096").contains("4096 131072 6291456"));
        assert!(mended("4096 131072 65536").contains("4096 131072 6291456"));
    }

    #[test]
    fn the_same_of_sending() {
        let blind = |wmem| Snapshot { memory_bytes: None, ..host(&[(SEND, wmem)]) };
        let found = judged(&CHECK, &blind("4096 4096 4096")).expect("seen");
        let apply = found[0].fixes[0].set.as_ref().expect("a setting").commands().apply;
        assert!(apply.contains("4096 16384 4194304"), "{apply}");
        assert_eq!(missing(&CHECK, &blind("4096 16384 65536")).source, Source::Machine);
    }
}
