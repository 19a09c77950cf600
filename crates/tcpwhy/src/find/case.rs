//! A connection as the rules ask about it: one direction at a time, and the intervals that a rule
//! names with their time, how sure they are, and where they show.

use std::collections::BTreeMap;

use core::net::{IpAddr, SocketAddr};

use crate::report::{
    Connection, Direction, EarlyKind, Evidence, Exchange, Finding, FrameRange, Limit, Remedy,
    Round, Severity, State, Sure, Transfer, Vantage,
};
use tcpwhy_words::said;
use tcpwhy_words::units::Duration;

/// A finding rests on at least this share of the time. Ours, not measured: what a verdict
/// names in a sentence.
const WORTH_NAMING_PERCENT: f64 = 10.0;
/// Intervals listed as evidence: the longest. Ours, not measured.
const EVIDENCE: usize = 8;
/// Another state that these packets allow is named if it may hold this share of the time. Ours.
const DOUBT_PERCENT: f64 = 30.0;

/// Both directions must agree on this share of an interval. Ours: what a round trip and the clocks' noise take off,
/// not measured.
const AGREED_PERCENT: f64 = 80.0;

/// The findings of both directions by a rule for one.
pub(super) fn in_each(
    connection: &Connection,
    rule: impl Fn(&Case<'_>) -> Option<Finding>,
) -> Vec<Finding> {
    let cases = [0, 1].into_iter().filter_map(|at| Case::of(connection, at));
    let found = cases.filter_map(|case| {
        let from = Some(case.sender().into());
        Some(Finding { from, ..rule(&case)? })
    });
    found.collect()
}

/// Time in which somebody waited for this connection.
pub(crate) fn active_ns(connection: &Connection) -> i64 {
    connection.active_ns()
}

/// From what a TLS server sent early to the first byte of its answer, where that is decided: nobody waits for
/// what came early, but for the application behind it.
pub(super) fn early_spans(connection: &Connection) -> Vec<(i64, i64)> {
    let span = |exchange: &Exchange| {
        let early = exchange.early.as_ref().filter(|e| e.kind != EarlyKind::Undecided)?;
        let request = connection.transfers.get(usize::try_from(exchange.request).ok()?)?;
        Some((early.start_ns, request.start_ns.saturating_add(early.first_byte_ns)))
    };
    connection.exchanges.iter().filter_map(span).collect()
}

/// Whether an interval lies in one of `spans`.
pub(super) fn lies_in(limit: &Limit, spans: &[(i64, i64)]) -> bool {
    spans.iter().any(|(from, to)| limit.start_ns >= *from && limit.end_ns <= *to)
}

/// Time in which TCP had something to do.
pub(super) fn working_ns(connection: &Connection) -> i64 {
    connection.working_ns()
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) connection: &'a Connection,
    pub(super) at: usize,
    pub(super) direction: &'a Direction,
}

impl<'a> Case<'a> {
    /// Direction `at` (0: client to server), if it carried data.
    pub(super) fn of(connection: &'a Connection, at: usize) -> Option<Self> {
        Some(Self { connection, at, direction: connection.directions[at].as_deref()? })
    }

    /// Who sends: `client` or `server`.
    pub(super) fn sender(&self) -> &'static str {
        ["client", "server"][self.at]
    }

    /// Who receives.
    pub(super) fn receiver(&self) -> &'static str {
        ["server", "client"][self.at]
    }

    /// The receiver's address; `None` where the capture printed a name instead.
    pub(super) fn receiver_address(&self) -> Option<IpAddr> {
        address_of(self.connection, 1 - self.at).map(|address| address.ip())
    }

    /// Whether the sender runs Linux, as far as its packets tell.
    pub(super) fn sender_is_linux(&self) -> bool {
        self.connection.sender_stack[self.at].name == "linux"
    }

    /// Whether the capture was taken on the sender's host.
    pub(super) fn tap_at_sender(&self) -> bool {
        let own = [Vantage::Client, Vantage::Server][self.at];
        self.connection.vantage == own
    }

    /// Whether the receiver does.
    pub(super) fn receiver_is_linux(&self) -> bool {
        self.connection.sender_stack[1 - self.at].name == "linux"
    }

    /// Effective payload of a full segment.
    pub(super) fn mss(&self) -> Option<u64> {
        self.connection.mss.map(u64::from).filter(|mss| *mss > 0)
    }

    /// The least round trip, if one was measured.
    pub(super) fn rtt(&self) -> Option<i64> {
        self.direction.rtt.min_ns.filter(|rtt| *rtt > 0)
    }

    /// Time in which the path was full, as a share of the active time.
    pub(super) fn path_full_percent(&self) -> f64 {
        let full = self.held(State::is_path).time_ns();
        Duration(full).percent_of(Duration(working_ns(self.connection)))
    }

    /// The receiver's largest window after any round's last send.
    pub(super) fn largest_window(&self) -> Option<u64> {
        self.direction.rounds.iter().filter_map(window_at).max()
    }

    /// Whether anything of this direction had to be retransmitted.
    pub(super) fn lost_something(&self) -> bool {
        let by = &self.direction.retransmitted;
        by.fast + by.rto + by.tlp > 0 || self.direction.events.lost > 0
    }

    /// The transfers of this direction.
    pub(super) fn transfers(&self) -> impl Iterator<Item = &'a Transfer> + use<'a> {
        let sender = self.sender();
        self.connection.transfers.iter().filter(move |each| each.from == sender)
    }

    /// The intervals in states that are `wanted`.
    pub(super) fn held(&self, wanted: impl Fn(State) -> bool) -> Held<'a> {
        let limits: Vec<&Limit> =
            self.direction.limits.iter().filter(|limit| wanted(limit.state)).collect();
        let listed = if self.connection.truncated { self.listed(&limits) } else { Vec::new() };
        Held { connection: self.connection, limits, listed }
    }

    /// Of each state of `limits` that not all intervals are listed of: the time of those, and of all.
    fn listed(&self, limits: &[&Limit]) -> Vec<(State, i64, i64)> {
        let mut listed = BTreeMap::new();
        for limit in limits {
            *listed.entry(limit.state).or_insert(0) += limit.end_ns - limit.start_ns;
        }
        let whole = |state: State| self.direction.time_in.get(state).0;
        let rows = listed.into_iter().map(|(state, time)| (state, time, whole(state)));
        rows.filter(|(_, time, whole)| 0 < *time && time < whole).collect()
    }
}

/// The receiver's window as it stood after the round's last send.
pub(super) fn window_at(round: &Round) -> Option<u64> {
    u64::try_from(round.window_room_bytes?.max(0)).ok()?.checked_add(round.in_flight_bytes)
}

/// Address of side `at`; `None` where a listing printed a name and the address is a stand-in.
fn address_of(connection: &Connection, at: usize) -> Option<SocketAddr> {
    match at {
        0 => connection.client_name.is_none().then_some(connection.client),
        _ => connection.server_name.is_none().then_some(connection.server),
    }
}

/// Intervals that a rule names.
#[derive(Clone, Debug)]
pub(super) struct Held<'a> {
    connection: &'a Connection,
    pub(super) limits: Vec<&'a Limit>,
    /// See [`Case::listed`].
    listed: Vec<(State, i64, i64)>,
}

/// What a rule says of its intervals.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) title: String,
    pub(super) why: String,
    pub(super) not: String,
    pub(super) remedies: Vec<Remedy>,
}

impl Held<'_> {
    /// Their time, with that of intervals like them which are not listed.
    pub(super) fn time_ns(&self) -> i64 {
        self.limits.iter().map(|each| self.stands_for(each)).sum()
    }

    /// That of those in `states`.
    pub(super) fn time_of(&self, states: &[State]) -> i64 {
        let named = self.limits.iter().filter(|each| states.contains(&each.state));
        named.map(|each| self.stands_for(each)).sum()
    }

    /// The time of a limit, with its share of what is not listed of its state.
    fn stands_for(&self, limit: &Limit) -> i64 {
        let time = limit.end_ns - limit.start_ns;
        match self.listed.iter().find(|row| row.0 == limit.state) {
            Some((_, listed, whole)) => {
                (i128::from(time) * i128::from(*whole) / i128::from(*listed)) as i64
            }
            None => time,
        }
    }

    /// How many times it was: `3 times`.
    pub(super) fn times(&self) -> String {
        let times = said::times(self.limits.len() as u64);
        if self.listed.is_empty() { times } else { format!("more than {times}") }
    }

    /// Whether they are worth a finding, by their share of the time in which TCP had something to do.
    pub(super) fn is_worth_naming(&self) -> bool {
        !self.limits.is_empty() && self.is_share_of(working_ns(self.connection))
    }

    /// The same by their share of another time.
    pub(super) fn is_share_of(&self, whole_ns: i64) -> bool {
        !self.limits.is_empty()
            && whole_ns > 0
            && Duration(self.time_ns()).percent_of(Duration(whole_ns)) >= WORTH_NAMING_PERCENT
    }

    /// Keeps those in which the other direction held still too: what looks like an application's
    /// silence may be the other side's timer for a lost segment.
    pub(super) fn and_the_other_is(mut self, at: usize, wanted: impl Fn(State) -> bool) -> Self {
        let Some(other) = &self.connection.directions[1 - at] else { return self };
        self.limits.retain(|limit| {
            let overlaps = other
                .limits
                .iter()
                .filter(|each| wanted(each.state))
                .map(|each| each.end_ns.min(limit.end_ns) - each.start_ns.max(limit.start_ns));
            let agreed: i64 = overlaps.filter(|span| *span > 0).sum();
            Duration(agreed).percent_of(Duration(limit.end_ns - limit.start_ns)) >= AGREED_PERCENT
        });
        self
    }

    /// How sure they are, each by its time.
    pub(super) fn sure(&self) -> Sure {
        Sure::of_parts(&self.limits.iter().map(|each| (each.confidence, self.stands_for(each))))
    }

    /// What else the packets allow for a good part of them.
    fn others(&self) -> Vec<State> {
        let whole = Duration(self.time_ns());
        let mut allowed = BTreeMap::new();
        for limit in &self.limits {
            for state in &limit.alternative {
                *allowed.entry(*state).or_insert(0) += self.stands_for(limit);
            }
        }
        allowed.retain(|_, time| Duration(*time).percent_of(whole) >= DOUBT_PERCENT);
        allowed.into_keys().collect()
    }

    /// What it is not, of clauses that each deny some states: all but what these packets allow too.
    pub(super) fn not(&self, clauses: &[(&str, &[State])]) -> String {
        let allowed = self.others();
        let kept = clauses.iter().filter(|(_, denied)| !denied.iter().any(|s| allowed.contains(s)));
        kept.map(|(clause, _)| *clause).collect::<Vec<_>>().join("; ")
    }

    /// Whether the packets allow `state` too, for a good part of them.
    pub(super) fn may_be(&self, state: State) -> bool {
        self.others().contains(&state)
    }

    /// The same as a sentence to follow others.
    fn doubt(&self) -> String {
        let names: Vec<String> = self.others().into_iter().map(|s| s.name().to_owned()).collect();
        match &*names {
            [] => String::new(),
            [init @ .., last] => {
                let rest = if init.is_empty() {
                    String::new()
                } else {
                    format!("{} or ", init.join(", "))
                };
                format!(
                    " The packets allow {rest}{last} too: it is {}, not shown.",
                    self.sure().name()
                )
            }
        }
    }

    /// The longest of them, in the order of time, each with a way to find it again.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let mut longest = self.limits.clone();
        longest.sort_by_key(|each| (each.start_ns - each.end_ns, each.start_ns));
        longest.truncate(EVIDENCE);
        longest.sort_by_key(|each| each.start_ns);
        longest.into_iter().map(|each| evidence(self.connection, each)).collect()
    }

    /// The finding made of them.
    pub(super) fn finding(&self, code: &str, told: Told) -> Finding {
        self.finding_of(self.time_ns(), code, told)
    }

    /// The same where it cost another time than that of these intervals.
    pub(super) fn finding_of(&self, cost_ns: i64, code: &str, told: Told) -> Finding {
        Finding {
            code: code.to_owned(),
            severity: severity(code, cost_ns, self.sure()),
            title: told.title,
            why: told.why + &self.doubt(),
            not: told.not,
            evidence: self.evidence(),
            cost_ns,
            of_ns: active_ns(self.connection),
            remedies: told.remedies,
            sure: Some(self.sure()),
            alternative: self.others(),
            ..Finding::default()
        }
    }
}

/// The severity of what the rule of `code` tells, seen for `cost_ns`; see the head of [`super`].
pub(crate) fn severity(code: &str, cost_ns: i64, sure: Sure) -> Severity {
    const MILLISECOND: i64 = 1_000_000;
    let rule = super::RULES.iter().find(|rule| rule.code == code);
    let own = rule.map_or(Severity::Note, |rule| rule.severity);
    match () {
        () if own == Severity::Broken => own,
        () if cost_ns < MILLISECOND => Severity::Note,
        () if sure == Sure::Possible => own.min(Severity::Limit),
        () => own,
    }
}

/// Where an interval shows. One without frames of its own (an idle time before the first data) is
/// found by its stream or by the connection's frames.
fn evidence(connection: &Connection, limit: &Limit) -> Evidence {
    let FrameRange { first, last } = limit.evidence.frames;
    let frames = match (first, last) {
        (0, 0) => connection.frames,
        (0, last) => FrameRange { first: last, last },
        (first, last) => FrameRange { first, last },
    };
    Evidence {
        from_ns: limit.start_ns,
        to_ns: limit.end_ns,
        frames,
        filter: filter(frames),
        text: limit.evidence.text.clone(),
    }
}

/// Where the options of both SYNs show.
pub(super) fn syns(connection: &Connection) -> Evidence {
    let frames = connection.frames;
    Evidence {
        from_ns: 0,
        to_ns: connection.handshake_rtt_ns.unwrap_or(0),
        frames,
        filter: format!("{} && tcp.flags.syn == 1", filter(frames)),
        text: "options of the SYN and the SYN-ACK".to_owned(),
    }
}

/// A display filter for Wireshark that shows `frames`.
pub(super) fn filter(frames: FrameRange) -> String {
    let FrameRange { first, last } = frames;
    if first == last {
        format!("frame.number == {first}")
    } else {
        format!("frame.number >= {first} && frame.number <= {last}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn severity_is_the_rules_unless_it_took_nothing_or_is_a_guess() {
        let of = |code, ns, sure| severity(code, ns, sure);
        assert_eq!(of("WINDOW_CAP", 1_000_000, Sure::Likely), Severity::Wrong);
        assert_eq!(of("WINDOW_CAP", 999_999, Sure::Shown), Severity::Note);
        assert_eq!(of("WINDOW_CAP", 1_000_000, Sure::Possible), Severity::Limit);
        assert_eq!(of("SLOW_START", 9_000_000_000, Sure::Shown), Severity::Limit);
        assert_eq!(of("NO_ANSWER", 0, Sure::Possible), Severity::Broken);
    }

    #[test]
    fn what_the_packets_allow_is_not_denied() {
        let mut connection = sample::held_by(State::Pacing, 5_000);
        let clauses: &[(&str, &[State])] =
            &[("not a window", &[State::RwndCap]), ("not writes", &[State::App, State::Sndbuf])];
        let denied = |connection: &Connection| {
            let case = Case::of(connection, 1).expect("data");
            case.held(|state| state == State::Pacing).not(clauses)
        };
        assert_eq!(denied(&connection), "not a window; not writes");
        let direction = connection.directions[1].as_mut().expect("data");
        let held = direction.limits.iter_mut().filter(|limit| limit.state == State::Pacing);
        held.for_each(|limit| limit.alternative = vec![State::Sndbuf]);
        assert_eq!(denied(&connection), "not a window");
    }

    #[test]
    fn what_a_full_list_left_out_counts_as_what_it_has_of_that_state() {
        let mut connection = sample::held_by(State::Pacing, 5_000);
        let told = |connection: &Connection| {
            let held = Case::of(connection, 1).expect("data").held(|state| state == State::Pacing);
            (held.time_ns(), held.time_of(&[State::Pacing]), held.times())
        };
        let (listed, ..) = told(&connection);
        let direction = connection.directions[1].as_mut().expect("data");
        let times = direction.limits.iter().filter(|each| each.state == State::Pacing).count();
        let missing = listed * 2 - direction.time_in.get(State::Pacing).0;
        direction.time_in.add(State::Pacing, Duration(missing));
        let (time, ..) = told(&connection);
        assert_eq!(time, listed, "a list that was not cut is believed");
        connection.truncated = true;
        let more = format!("more than {}", said::times(times as u64));
        assert_eq!(told(&connection), (listed * 2, listed * 2, more));
    }

    #[test]
    fn the_night_between_two_requests_is_not_active_time() {
        let mut connection = sample::download();
        let before = active_ns(&connection);
        connection.duration_ns += 3_600_000_000_000;
        assert_eq!(active_ns(&connection), before);
    }
}
