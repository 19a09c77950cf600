//! Which finding yields to which: one cause has one figure.
//!
//! A finding yields where another explains the same time better. It stays in the report, with `explained_by`, and goes
//! to `--full`. What yields must not be the larger part: a full link of a second does not explain a minute of losses.

use crate::report::{Connection, Finding};

/// A finding of `stays` explains those of `yields`.
pub(super) struct Row {
    /// The cause.
    pub(super) stays: &'static [&'static str],
    /// What follows from it, or says less of the same.
    pub(super) yields: &'static [&'static str],
    /// In one sentence.
    pub(super) because: &'static str,
}

const ALL_LOSSES: &[&str] = &["LOSS_CONGESTION", "LOSS_RANDOM", "LOSS_PERIODIC", "LOSS"];

/// The table, asked from the top: what has yielded explains nothing.
pub(super) const TABLE: &[Row] = &[
    Row {
        stays: &["BOTTLENECK_SHARED", "OTHERS_QUEUE"],
        yields: &["BOTTLENECK"],
        because: "others have a part of the link",
    },
    Row {
        stays: &["BOTTLENECK", "TOKEN_BUCKET", "POLICER", "BOTTLENECK_SHARED", "VARIABLE_RATE"],
        yields: &[
            "LOSS_CONGESTION",
            "LOSS_RANDOM",
            "LOSS_PERIODIC",
            "LOSS",
            "LOSS_LOCAL",
            "WINDOW_CAP",
            "SEND_BUFFER",
            "WINDOW_GROWTH",
            "TIMEOUT",
            "SLOW_START_ENDED_EARLY",
            "PACING",
            "SPURIOUS_REPAIR",
        ],
        because: "a link that is full has no more to give, whichever window ran beside it",
    },
    Row {
        stays: &["SLOW_READER", "ZERO_WINDOW"],
        yields: &["WINDOW_CAP", "WINDOW_GROWTH", "TIMEOUT", "IDLE_RESTART", "SEND_BUFFER"],
        because: "a window of any size fills while nobody reads",
    },
    Row {
        stays: &["WINDOW_SCALE", "SCALE_LOST"],
        yields: &["WINDOW_CAP"],
        because: "without a scale no window is larger",
    },
    Row {
        stays: &["ACCEPT_QUEUE", "STOOD_STILL", "BLACK_HOLE", "PATH_MTU"],
        yields: &[
            "TIMEOUT",
            "LOSS_CONGESTION",
            "LOSS_RANDOM",
            "LOSS_PERIODIC",
            "LOSS",
            "SPURIOUS_REPAIR",
        ],
        because: "the timers ran out because of it",
    },
    Row {
        stays: &["LOSS_LOCAL"],
        yields: &["TIMEOUT", "SLOW_START_ENDED_EARLY"],
        because: "it is known where the segments were lost",
    },
    Row { stays: &["DAMAGED"], yields: ALL_LOSSES, because: "a damaged segment is a lost one" },
    Row {
        stays: &["LOSS_RANDOM", "LOSS_PERIODIC", "LOSS_CONGESTION"],
        yields: &["LOSS", "SLOW_START_ENDED_EARLY", "TIMEOUT"],
        because: "the loss is the cause, whatever noticed it",
    },
    Row {
        stays: &["TIMEOUT"],
        yields: ALL_LOSSES,
        because: "most of what the loss cost was the wait for a timer",
    },
    Row {
        stays: &["SPURIOUS_REPAIR", "REORDERING"],
        yields: &["LOSS", "TIMEOUT", "DUPLICATED"],
        because: "nothing was lost",
    },
    Row {
        stays: &["NAGLE_DELAYED_ACK"],
        yields: &["SLOW_WRITER", "BODY_ON_ITS_WAY", "NOT_TCP"],
        because: "the program had written",
    },
    Row {
        stays: &["LOCAL_QDISC"],
        yields: &["BOTTLENECK", "PACING"],
        because: "the queue is the host's own",
    },
    Row {
        stays: &["THINK_SERVER", "THINK_CLIENT", "SLOW_WRITER", "BODY_ON_ITS_WAY"],
        yields: &["NOT_TCP"],
        because: "it says less of the same silence",
    },
    Row {
        stays: &["SLOW_START"],
        yields: &["INITIAL_WINDOW", "COLD_CONNECTION", "BODY_ON_ITS_WAY"],
        because: "it is the same growth, told with what would help",
    },
];

/// Facts that cost nothing: they yield to whatever took time.
const FACTS: &[&str] = &[
    "RESET",
    "OPTIONS_REFUSED",
    "THINNED_ACKS",
    "ECN",
    "FAST_OPEN",
    "OPTIONS_STRIPPED",
    "DUPLICATED",
];

/// Of what yields this share at least must be the other's. Ours.
const LEAST_SHARE: i64 = 2;

/// Fills in which finding is explained by which.
pub(super) fn fill(connection: &mut Connection) {
    for finding in &mut connection.findings {
        finding.explained_by = None;
    }
    for row in TABLE {
        let standing = connection.findings.iter().filter(|each| each.explained_by.is_none());
        let cause = standing
            .filter(|each| row.stays.contains(&&*each.code))
            .max_by_key(|each| each.cost_ns);
        let Some(cause) = cause.cloned() else { continue };
        for finding in &mut connection.findings {
            if row.yields.contains(&&*finding.code)
                && finding.explained_by.is_none()
                && explains(&cause, finding)
            {
                finding.explained_by = Some(cause.code.clone().into());
            }
        }
    }
    let costly =
        connection.findings.iter().find(|each| each.cost_ns > 0 && !FACTS.contains(&&*each.code));
    if let Some(costly) = costly.map(|each| each.code.clone()) {
        for fact in connection.findings.iter_mut().filter(|each| FACTS.contains(&&*each.code)) {
            fact.explained_by.get_or_insert_with(|| costly.clone().into());
        }
    }
}

/// Whether `cause` took a good part of what `finding` did, of the same data.
fn explains(cause: &Finding, finding: &Finding) -> bool {
    let same_way = cause.from.is_none() || finding.from.is_none() || cause.from == finding.from;
    same_way
        && cause.code != finding.code
        && cause.cost_ns.saturating_mul(LEAST_SHARE) >= finding.cost_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::sample;

    /// What explains the second of two findings. Each is a code and its milliseconds.
    fn explained(cause: (&str, i64), other: (&str, i64)) -> Option<String> {
        let mut connection = sample::connection(0, "10.0.0.1:1", "10.0.0.2:2", 100_000_000);
        let finding = |(code, ms): (&str, i64)| Finding {
            code: code.to_owned(),
            cost_ns: ms * 1_000_000,
            ..Finding::default()
        };
        connection.findings = vec![finding(cause), finding(other)];
        fill(&mut connection);
        assert_eq!(connection.findings[0].explained_by, None);
        connection.findings[1].explained_by.as_ref().map(ToString::to_string)
    }

    #[test]
    fn a_full_link_owns_its_losses_but_not_more_than_twice_its_time() {
        assert_eq!(explained(("BOTTLENECK", 40), ("LOSS", 80)).as_deref(), Some("BOTTLENECK"));
        assert_eq!(explained(("BOTTLENECK", 40), ("LOSS", 81)), None);
    }

    #[test]
    fn what_is_no_consequence_stays() {
        assert_eq!(explained(("BOTTLENECK", 40), ("THINK_SERVER", 10)), None);
        assert_eq!(explained(("SLOW_READER", 40), ("LOSS_RANDOM", 10)), None);
    }

    #[test]
    fn a_reset_stands_above_nothing_that_took_time() {
        assert_eq!(explained(("SLOW_START", 40), ("RESET", 0)).as_deref(), Some("SLOW_START"));
        assert_eq!(explained(("OPTIONS_REFUSED", 0), ("RESET", 0)), None);
    }

    #[test]
    fn nothing_yields_to_itself_and_each_reason_is_a_clause() {
        for row in TABLE {
            assert!(row.stays.iter().all(|code| !row.yields.contains(code)), "{:?}", row.stays);
            assert!(!row.because.is_empty() && !row.because.ends_with('.'));
        }
    }
}
