//! Which congestion control did the sender run? The kernel names it; packets only hint.
//!
//! The replay knows Reno and CUBIC, and `HyStart` is CUBIC's. Where the kernel names another controller
//! (BBR), a window that is not as replayed contradicts nothing, no threshold was remembered and nothing
//! was `HyStart`; and a sender that has BBR already needs no advice to try it. What intervals were called is
//! left: their waits were there, whoever set the window.

use crate::report::{Beside, Connection};

use super::direction_of;
use super::kernel::{AGREES, CONTRADICTS, MEASURED};

/// A name as a kernel may give it: shorter than 16 bytes (`TCP_CA_NAME_MAX`, `include/net/tcp.h`), and of a
/// module's letters. A file may say anything.
pub(super) fn name(word: &str) -> Option<Box<str>> {
    let fits = !word.is_empty()
        && word.len() < 16
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    fits.then(|| word.into())
}

/// What the replay knows.
const REPLAYED: [&str; 2] = ["cubic", "reno"];

/// Lays the controller's `name` by the kernel of side `side` beside `connection`, after all else was: what
/// rests on another controller is taken back.
pub(super) fn apply(
    source: usize,
    name: &str,
    connection: &mut Connection,
    side: usize,
) -> Option<Beside> {
    let who = ["client", "server"][side];
    let direction = connection.directions[side].as_deref_mut()?;
    let replayed = direction.congestion_control.as_ref().map(|control| control.name.clone());
    let is_replayed = REPLAYED.contains(&name);
    if !is_replayed {
        direction.congestion_control = None;
    }
    let (verdict, text) = match replayed {
        _ if !is_replayed => {
            (MEASURED, format!("the {who}'s controller was {name}, which is not replayed"))
        }
        None => (MEASURED, format!("the {who}'s controller was {name}")),
        Some(replayed) if replayed == name => {
            (AGREES, format!("the {who}'s controller was {name}, as its windows after losses show"))
        }
        Some(replayed) => {
            let text = format!(
                "the {who}'s controller was {name}, but its windows after losses grew as {replayed}'s do"
            );
            (CONTRADICTS, text)
        }
    };
    if name != "cubic" {
        take_back_causes(name, connection, side);
    }
    if !is_replayed {
        let of_windows =
            |each: &&mut Beside| each.side == who && matches!(&*each.quantity, "cwnd" | "ssthresh");
        for each in connection.beside.iter_mut().filter(of_windows) {
            if each.verdict == AGREES {
                each.verdict = MEASURED.into();
                each.text.push_str(" (by chance: this controller is not replayed)");
            }
            if each.verdict == CONTRADICTS {
                each.verdict = MEASURED.into();
                each.text.push_str(" (no contradiction: this controller is not replayed)");
            }
        }
    }
    Some(Beside {
        source: source as u64,
        side: who.into(),
        quantity: "congestion_control".into(),
        verdict: verdict.into(),
        text,
        ..Beside::default()
    })
}

/// Causes and advice that this controller has no use for.
fn take_back_causes(name: &str, connection: &mut Connection, side: usize) {
    let Some(direction) = connection.directions[side].as_deref_mut() else { return };
    let has_threshold = REPLAYED.contains(&name);
    let mut is_taken_back = false;
    if let Some(exit) = direction.slow_start_exit.as_deref_mut() {
        is_taken_back = exit.cause.starts_with("hystart")
            || (!has_threshold && exit.cause == "cached_ssthresh");
        if is_taken_back {
            "unknown".clone_into(&mut exit.cause);
        }
    }
    let mut findings = core::mem::take(&mut connection.findings);
    findings.retain_mut(|finding| {
        if direction_of(connection, finding) != Some(side) {
            return true;
        }
        if name.starts_with("bbr") {
            finding.remedies.retain(|remedy| remedy.knob.as_deref() != Some("congctl"));
        }
        !(is_taken_back && finding.code == "SLOW_START_ENDED_EARLY")
    });
    connection.findings = findings;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::findings;
    use crate::find::sample::{self, held_by};
    use crate::report::{CongestionControl, SlowStartExit, State};

    /// A download whose slow start ended by `cause`, and whose windows grew as CUBIC's.
    fn ended_by(cause: &str) -> Connection {
        let mut connection = held_by(State::CwndAvoidance, 5_000);
        let direction = connection.directions[1].as_mut().expect("data");
        let exit = SlowStartExit { at_ns: 1, cause: cause.to_owned(), ..SlowStartExit::default() };
        direction.slow_start_exit = Some(Box::new(exit));
        direction.congestion_control =
            Some(CongestionControl { name: "cubic".to_owned(), rounds: 7 });
        connection.findings = findings(&connection);
        connection.beside.push(Beside {
            side: "server".into(),
            quantity: "cwnd".into(),
            verdict: CONTRADICTS.into(),
            text: "it is another than replayed".to_owned(),
            ..Beside::default()
        });
        connection
    }

    fn has_finding(connection: &Connection) -> bool {
        connection.findings.iter().any(|each| each.code == "SLOW_START_ENDED_EARLY")
    }

    #[test]
    fn cubic_s_words_are_taken_back_from_bbr() {
        let mut connection = ended_by("hystart_delay");
        assert!(has_finding(&connection));
        let told = apply(0, "bbr", &mut connection, 1).expect("it sent data");
        assert_eq!(told.text, "the server's controller was bbr, which is not replayed");
        assert!(!has_finding(&connection));
        assert_eq!(connection.beside[0].verdict, "measured", "{}", connection.beside[0].text);
        let direction = connection.directions[1].as_deref().expect("data");
        assert_eq!(direction.congestion_control, None);
        assert_eq!(direction.slow_start_exit.as_deref().expect("ended").cause, "unknown");
    }

    #[test]
    fn a_sender_that_has_bbr_is_not_told_to_try_it() {
        let mut connection = sample::lossy(sample::pattern("random", 9), 5_000);
        connection.findings = findings(&connection);
        let advised = |connection: &Connection| {
            let all = connection.findings.iter().flat_map(|each| &each.remedies);
            all.filter(|remedy| remedy.knob.as_deref() == Some("congctl")).count()
        };
        assert_eq!(advised(&connection), 1);
        apply(0, "cubic", &mut connection, 1);
        assert_eq!(advised(&connection), 1);
        apply(0, "bbr", &mut connection, 1);
        assert_eq!(advised(&connection), 0);
    }

    #[test]
    fn what_no_kernel_would_give_is_no_name() {
        assert_eq!(name("bbr").as_deref(), Some("bbr"));
        for odd in ["", "bbr\u{1b}[31m", "a long name that is none", "x y"] {
            assert_eq!(name(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn cubic_keeps_its_words() {
        let mut connection = ended_by("hystart_delay");
        let told = apply(0, "cubic", &mut connection, 1).expect("it sent data");
        assert_eq!(told.verdict, "agrees");
        assert!(has_finding(&connection));
        assert_eq!(connection.beside[0].verdict, "contradicts");
    }

    #[test]
    fn reno_has_thresholds_but_no_hystart() {
        let mut remembered = ended_by("cached_ssthresh");
        assert_eq!(apply(0, "reno", &mut remembered, 1).expect("data").verdict, "contradicts");
        assert!(has_finding(&remembered));
        let mut delayed = ended_by("hystart_delay");
        apply(0, "reno", &mut delayed, 1);
        assert!(!has_finding(&delayed));
    }

    #[test]
    fn the_side_that_only_receives_has_nothing_to_say() {
        let mut connection = ended_by("hystart_delay");
        connection.directions[0] = None;
        assert_eq!(apply(0, "bbr", &mut connection, 0), None);
        assert!(has_finding(&connection));
    }
}
