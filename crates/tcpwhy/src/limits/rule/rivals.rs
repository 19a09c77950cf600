//! What can be confused: one table of what looks like a state in what was seen of it.
//!
//! Rules name a state and what they saw ([`Seen`]). This file alone has what else these packets allow then, with the
//! reason. The place of the tap and what the capture holds (scale, time stamps) are not enough to tell: a paced
//! stream and a full link seen from the same place are confused with other things, so a row is for what was seen, not
//! for where from. A state that is shown has no rivals, and what no row is for has none either.
//! `tcpwhy doc STATE` prints its rows.

use crate::report::State::{
    self, AckPath, App, AppWindow, BandwidthExternal, BandwidthPolicer, BandwidthSelfQueue,
    BandwidthVariable, CwndAvoidance, CwndCachedSsthresh, CwndClamp, CwndPostLoss, CwndSlowStart,
    Handshake, IdleAppThink, IdlePeerThink, LastFlight, LocalQdisc, NagleDelack, Pacing,
    RecoveryLoss, RtoWait, RwndAutotune, RwndCap, RwndReader, Sndbuf, TlpWait, Unknown, ZeroWindow,
};

/// How much of the receiver's window was left, as far as a rival is concerned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Room {
    Much,
    /// Little if it is the least window that can be.
    PerhapsLittle,
    Little,
}

/// What was seen of a wait and its rounds. It may or may not tell the sender's other limits apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Seen {
    /// A full window whose scale is a guess.
    ScaleUnknown,
    /// A full window at its maximum that was answered late: no room for a segment, or little.
    AnswerKeptBack {
        is_full: bool,
    },
    /// A full window that a reader opens, as large as any lately.
    MayWantMore,
    /// Little was left of the window, or a flight before had filled it.
    LittleRoom,
    /// Little was left of it, and the flight did not change or was let out late.
    LittleRoomStill,
    /// A flight that fills the least that the window can be.
    LeastWindow,
    /// A shut window that nobody asked about, and that a send without cause ended.
    OpenedUnasked,
    /// A short segment that follows the ACK of the one before it.
    ShortBehindShort,
    /// A short end of a retransmitted tail.
    ShortTail,
    /// Flights late by the same time each, from afar.
    LateFromAfar,
    /// A send by itself behind a whole segment.
    WholeEnd,
    /// A send by itself before any round is closed.
    NoRound,
    /// Sends at even distances that end short.
    ShortPulses,
    /// Beats of a timer that knows no rate.
    Beats,
    /// Flights of a segment or two, from afar.
    LittleFromAfar {
        ends_short: bool,
    },
    /// A silence that ends with the peer's data as the capture begins.
    FirstOfCapture,
    /// What was still open when the account had to be closed.
    StillOpen,
    /// A silence as long as a chain of timers.
    LongAsTimers,
    /// New data as late as a probe of the tail, or as a timeout, too.
    LateAsProbe {
        or_timeout: bool,
    },
    /// A timer whose data was sent before the capture.
    BeforeCapture,
    /// Losses that come as a policer's.
    Policed,
    /// Slow start that ended without a sign.
    NoSign,
    /// A flight that nothing else held, of a sender whose sends come at even distances.
    PacedFlight,
    /// One that stays the same for longer than a plateau.
    StillFlight,
    /// Flights that grow by a segment a round, from afar.
    OpensFromAfar,
    /// No phase of the window.
    NoPhase,
    /// Whole segments of less than a pulse a round trip, with data in flight or without.
    SlowPulses {
        in_flight: bool,
    },
    /// Even sends of a flight that fills slow start's window.
    PacedFullWindow,
    /// Even sends that leave data behind.
    UnfinishedPulses,
    /// Even sends that end whole.
    EvenSends,
    /// Sends in a repair of a sender that has a clock.
    ClockInRepair,
    /// An even stream from afar.
    EvenFromAfar,
    /// Packets that pass a tap steadily where no queue can be seen.
    PassesUnseen {
        room: Room,
    },
    /// The same, at a rate that a loss did not change.
    AcrossLoss {
        room: Room,
    },
    /// The same, at a rate at which a queue had stood.
    FullRateFromAfar,
    /// A stream from afar that never pauses, behind a queue; its flight changes or not.
    Stream {
        room: Room,
        still: bool,
    },
    /// Even sends at one rate before a queue that never empties.
    EvenBeforeQueue,
    /// A queue that never emptied; its flight changes or not, the tap is at the sender or not.
    Queue {
        room: Room,
        still: bool,
        at_sender: bool,
    },
    /// The same, though the round trip does not follow the flight.
    QueueOfOthers {
        room: Room,
        at_sender: bool,
    },
    /// A queue under a rate that goes up and down.
    RateMoves,
    /// A queue under a rate that is lower than it was.
    RateFell,
    /// Packets in a queue with others between them.
    Among {
        at_sender: bool,
    },
    /// A link that was full by its departures: it varies, or the tap's side is not proven.
    BusyLink {
        varies: bool,
    },
    /// A flight that small answers let out.
    ByData,
    /// A flight that stays the same: below the congestion window for sure or not, a pace may hold it or not.
    Lid {
        below: bool,
        paced: bool,
    },
    /// The same in congestion avoidance before a loss.
    LidInAvoidance,
    /// The same with little room in the receiver's window.
    LidLittleRoom {
        paced: bool,
    },
    /// The same from afar, with a pause in each round or without.
    LidFromAfar {
        below: bool,
    },
    LidFromAfarWithoutPause,
    /// A send that an ACK may have let out which was late on a way that is not seen.
    LateAck,
    /// ACKs that stood in a queue on their way back, before a flight that stands still or not.
    AcksQueue {
        still: bool,
    },
    /// A server's handshake as its own packets alone show it.
    HalfHandshake,
    /// A retransmission, and no answer was seen.
    RepeatUnanswered,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    states: &'static [State],
    pub(crate) rivals: &'static [State],
    pub(crate) why: &'static str,
}

macro_rules! table {
    ($($($state:ident)|+, $seen:pat => [$($rival:ident),+]: $why:literal;)+) => {
        /// What looks the same as `state` in what was seen of it.
        pub(crate) const fn rivals(state: State, seen: Seen) -> &'static [State] {
            use self::{Room::{Little, Much, PerhapsLittle}, Seen as S};
            match (state, seen) {
                $(($($state)|+, $seen) => &[$($rival),+],)+
                _ => &[],
            }
        }

        const TABLE: &[Row] =
            &[$(Row { states: &[$($state),+], rivals: &[$($rival),+], why: $why }),+];
    };
}

table! {
    RwndCap | RwndReader | RwndAutotune, S::ScaleUnknown => [Sndbuf, CwndAvoidance, App]:
        "The capture lacks the window's scale: the flight may fill less of it than it seems.";
    RwndReader, S::AnswerKeptBack { is_full: true } => [RwndCap]:
        "A larger window might be read as slowly, or might not.";
    RwndReader, S::AnswerKeptBack { is_full: false } | S::MayWantMore => [RwndCap, CwndAvoidance]:
        "The window is as large as any lately, so a larger one might help, or the congestion window is next.";
    RwndCap | RwndReader | RwndAutotune, S::LittleRoom => [CwndAvoidance]:
        "Only a flight beside this one is known to have filled the window: the congestion window may be as large.";
    RwndCap | RwndReader | RwndAutotune, S::LittleRoomStill => [Sndbuf, AppWindow, App]:
        "A lid of the sender's own just below the window keeps a flight as still.";
    ZeroWindow, S::OpenedUnasked => [App]:
        "No probe shows that data was pending, and no ACK let it out.";
    NagleDelack, S::ShortBehindShort => [App]:
        "A program that writes once a round trip sends as short segments behind ACKs.";
    App, S::ShortBehindShort => [NagleDelack]:
        "Nagle's algorithm may have held the segment, though more would have been written meanwhile.";
    LastFlight, S::ShortTail => [NagleDelack]:
        "The short end may have been held until the tail was repaired.";
    App | IdleAppThink, S::LateFromAfar => [Sndbuf]:
        "A buffer that was full lets the next flight out as late, if the way of the ACKs is longer than is known.";
    App, S::WholeEnd | S::ShortPulses | S::NoRound => [Pacing]:
        "A clock of the sender's own lets whole segments out by itself, too.";
    App, S::Beats => [Pacing, LocalQdisc]:
        "A clock of the sender's own may know no rate, though none of Linux's TCP is so.";
    App, S::LittleFromAfar { ends_short: true } => [Sndbuf, AppWindow]:
        "The least buffer and a small window of a protocol keep flights as small.";
    IdlePeerThink, S::FirstOfCapture => [Handshake]:
        "A server's handshake may end with this, which the capture lacks.";
    IdleAppThink, S::StillOpen => [IdlePeerThink]:
        "Nobody spoke any more, so nobody knows whose turn it was.";
    IdleAppThink, S::LongAsTimers => [RtoWait, TlpWait]:
        "The tail may have been lost before the tap and retransmitted by a timer.";
    TlpWait, S::LateAsProbe { or_timeout: false } => [App]:
        "An application that pauses just that long sends new data as late.";
    TlpWait, S::LateAsProbe { or_timeout: true } => [App, RtoWait]:
        "So does an application, and a timeout behind a probe that was lost before the tap.";
    RtoWait, S::BeforeCapture => [TlpWait]:
        "Whether it was the newest data is not known: the capture lacks what went before.";
    BandwidthPolicer, S::Policed => [CwndPostLoss]:
        "Losses by chance at even distances cut the window as often.";
    CwndCachedSsthresh, S::NoSign => [CwndAvoidance, Sndbuf]:
        "Elimination tells it: a sign of HyStart that the tap does not show, or a buffer, stops growth, too.";
    CwndAvoidance, S::PacedFlight => [Sndbuf]:
        "A pacing sender fills its window and its buffer alike, with pauses of its clock.";
    CwndAvoidance, S::StillFlight => [Sndbuf, CwndClamp, AppWindow, App]:
        "A flight that hardly grows for seconds may have another lid.";
    CwndAvoidance, S::OpensFromAfar => [Pacing, BandwidthSelfQueue, App]:
        "From afar a pace or a link that speeds up seems to grow as well.";
    Pacing, S::SlowPulses { in_flight: true } => [LocalQdisc, App]:
        "A shaper on its own host, or a program that writes whole segments by a timer, looks the same.";
    Pacing, S::SlowPulses { in_flight: false } => [LocalQdisc, IdleAppThink]:
        "A shaper on its own host, or a program that writes whole segments by a timer, is as silent between.";
    Pacing, S::PacedFullWindow => [LocalQdisc, CwndSlowStart, App, Sndbuf]:
        "What a pace still holds has filled slow start's window already.";
    Pacing, S::UnfinishedPulses => [LocalQdisc]:
        "Data was left behind each time, so no program stopped there; a shaper on its own host does.";
    Pacing, S::EvenSends => [LocalQdisc, App, Sndbuf]:
        "A program's timer and a buffer that empties evenly set off whole segments, too.";
    Pacing, S::ClockInRepair => [LocalQdisc]:
        "A shaper on its own host spaces repeats, too.";
    RecoveryLoss, S::ClockInRepair => [Pacing]:
        "The sender has a clock, and by chance an ACK comes just before what that lets out.";
    Pacing, S::EvenFromAfar => [BandwidthExternal, App, Sndbuf]:
        "A path that is just full and has no queue lets packets through as evenly.";
    BandwidthSelfQueue, S::EvenBeforeQueue => [Pacing]:
        "A pace at the link's rate keeps a queue that something else made.";
    BandwidthSelfQueue, S::FullRateFromAfar => [Pacing, LocalQdisc, BandwidthExternal, App, Sndbuf]:
        "The rate is that of the full link, but no queue shows now: whatever sends as fast looks the same.";
    BandwidthSelfQueue, S::AcrossLoss { room: Much } => [Pacing, LocalQdisc, App, Sndbuf]:
        "Below a window smaller than what a loss left of its own, a sender keeps its rate, too.";
    BandwidthSelfQueue, S::AcrossLoss { .. } => [Pacing, LocalQdisc, App, Sndbuf, RwndCap, RwndReader]:
        "And so it does below the receiver's.";
    BandwidthSelfQueue, S::Stream { room: PerhapsLittle, still: true } =>
        [LocalQdisc, Pacing, BandwidthExternal, RwndCap, RwndReader, Sndbuf]:
        "From afar the sender's own shaper or pace may be the link; a window or a buffer may just fill it.";
    BandwidthSelfQueue, S::Stream { room: PerhapsLittle | Little, .. } =>
        [LocalQdisc, Pacing, BandwidthExternal, RwndCap, RwndReader]:
        "From afar the sender's own shaper or pace may be the link; a window may just fill it.";
    BandwidthSelfQueue, S::Stream { room: Much, still: true } =>
        [LocalQdisc, Pacing, BandwidthExternal, Sndbuf]:
        "From afar the sender's own shaper or pace may be the link; a buffer may just fill it.";
    BandwidthSelfQueue, S::Stream { room: Much, still: false } => [LocalQdisc, Pacing, BandwidthExternal]:
        "From afar the sender's own shaper or pace may be the link; a flight that grows has no lid.";
    BandwidthSelfQueue, S::Queue { room: PerhapsLittle, .. } =>
        [BandwidthExternal, RwndCap, RwndReader, Sndbuf]:
        "Others may stand in the queue; a window or a buffer may just fill the link, and a queue with it.";
    BandwidthSelfQueue, S::Queue { room: Little, .. } => [BandwidthExternal, RwndCap, RwndReader]:
        "Others may stand in the queue; the receiver's window may just fill the link, and a queue with it.";
    BandwidthSelfQueue, S::Queue { room: Much, still: true, at_sender: true } =>
        [BandwidthExternal, Sndbuf, CwndClamp, AppWindow]:
        "Others may stand in the queue; what keeps the flight still may just fill the link, and a queue with it.";
    BandwidthSelfQueue, S::Queue { room: Much, still: false, at_sender: true } => [BandwidthExternal, Sndbuf]:
        "Others may stand in the queue; a buffer that grows fills it as a window does.";
    BandwidthSelfQueue, S::Queue { room: Much, at_sender: false, .. } =>
        [BandwidthExternal, LocalQdisc, Sndbuf]:
        "From afar the queue may be the sender's own host's, or others' packets may stand in it.";
    BandwidthSelfQueue, S::QueueOfOthers { room: PerhapsLittle, .. } =>
        [BandwidthVariable, BandwidthExternal, RwndCap, RwndReader, Sndbuf]:
        "The round trip does not follow the flight: the link varies or others fill it, or a window or a buffer does.";
    BandwidthSelfQueue, S::QueueOfOthers { room: Little, .. } =>
        [BandwidthVariable, BandwidthExternal, RwndCap, RwndReader]:
        "The round trip does not follow the flight: the link varies or others fill it, or the receiver's window does.";
    BandwidthSelfQueue, S::QueueOfOthers { room: Much, at_sender: true } =>
        [BandwidthVariable, BandwidthExternal, Sndbuf]:
        "The round trip does not follow the flight: the link varies or others fill it, or a buffer does.";
    BandwidthSelfQueue, S::QueueOfOthers { room: Much, at_sender: false } =>
        [BandwidthVariable, BandwidthExternal, LocalQdisc, Sndbuf]:
        "The same from afar, where the queue may be the sender's own host's.";
    BandwidthSelfQueue, S::BusyLink { varies: true } => [BandwidthExternal, BandwidthVariable]:
        "Its departures change their distance: others have a part of the link, or it varies.";
    BandwidthSelfQueue, S::BusyLink { varies: false } => [Pacing, LocalQdisc]:
        "Seen at one place only, departures at one distance may be a pace or a shaper of the sender's.";
    BandwidthVariable, S::RateMoves => [BandwidthExternal]:
        "Others that come and go change this transfer's part of the link as well.";
    BandwidthVariable, S::RateFell => [BandwidthExternal, BandwidthSelfQueue]:
        "Others that take turns with it packet by packet, or a token bucket whose credit is spent, look alike.";
    BandwidthExternal, S::Among { at_sender: true } => [BandwidthSelfQueue, BandwidthVariable]:
        "Losses of packets in the queue, or a link that stops now and then, leave gaps as well.";
    BandwidthExternal, S::Among { at_sender: false } =>
        [BandwidthSelfQueue, BandwidthVariable, LocalQdisc]:
        "The same from afar, where a shaper of the sender's own may let packets out so.";
    AckPath, S::AcksQueue { still: true } => [CwndAvoidance, Sndbuf, AppWindow, CwndClamp]:
        "A window or a buffer of one size waits for these ACKs as well, and a larger one might help.";
    AckPath, S::AcksQueue { still: false } => [CwndAvoidance, CwndSlowStart]:
        "The congestion window waits for these ACKs, and grows as they come.";
    AppWindow, S::ByData => [Sndbuf]:
        "A buffer's flight is let out by ACKs that may ride on the peer's data.";
    Sndbuf, S::LidFromAfarWithoutPause => [Pacing, LocalQdisc, AppWindow, App, CwndClamp, RwndCap]:
        "A pace is as still and as steady; from afar a flight that fills the receiver's window seems smaller.";
    Sndbuf, S::LidFromAfar { below: true } => [AppWindow, App, CwndClamp, RwndCap]:
        "A protocol's window, one write a round trip and a clamp are as still; from afar a full window seems smaller.";
    Sndbuf, S::LidFromAfar { below: false } => [CwndClamp, AppWindow, App, RwndCap]:
        "The congestion window may be clamped there, for it is not known to be larger.";
    Sndbuf, S::LidLittleRoom { paced: true } => [Pacing, LocalQdisc, RwndCap, AppWindow, App, CwndClamp]:
        "Little is left of the receiver's window, and a pace is as still.";
    Sndbuf, S::LidLittleRoom { paced: false } => [RwndCap, AppWindow, App, CwndClamp]:
        "Little is left of the receiver's window.";
    Sndbuf, S::Lid { below: true, paced: true } => [Pacing, LocalQdisc, AppWindow, App, CwndClamp]:
        "ACKs that a pace spread come as evenly: it may seem that they let the next ones out.";
    Sndbuf, S::Lid { below: false, paced: true } =>
        [Pacing, LocalQdisc, AppWindow, App, CwndClamp, CwndAvoidance]:
        "The same, where the congestion window may be just as large.";
    Sndbuf, S::Lid { below: true, paced: false } => [AppWindow, App, CwndClamp]:
        "A protocol's window, one write a round trip and a clamp keep flights as still.";
    Sndbuf, S::LidInAvoidance => [CwndClamp, AppWindow, App, CwndAvoidance]:
        "The window of a controller that watches delays may stand by itself.";
    Sndbuf, S::Lid { below: false, paced: false } => [CwndClamp, AppWindow, App]:
        "The congestion window may be clamped there, for it is not known to be larger.";
    Unknown, S::LeastWindow => [RwndCap, CwndAvoidance, Sndbuf]:
        "The flight fills the least that a window can be whose scale the capture lacks.";
    Unknown, S::NoRound | S::NoPhase => [CwndSlowStart, CwndAvoidance]:
        "Nothing tells how flights grow.";
    Unknown, S::LateAck => [App, Sndbuf, CwndSlowStart, CwndAvoidance, Pacing]:
        "The ACK before the send may have been late at its sender, which this tap does not see.";
    Unknown, S::SlowPulses { .. } | S::LittleFromAfar { .. } =>
        [Pacing, LocalQdisc, CwndClamp, AppWindow, App, Sndbuf]:
        "Seen away from their sender, any clock, buffer or program may let out full segments at even distances.";
    Unknown, S::PassesUnseen { room: Much } => [Pacing, BandwidthSelfQueue, LocalQdisc, Sndbuf, App]:
        "Where no queue can be seen, a full link and a pace let packets through alike.";
    Unknown, S::PassesUnseen { .. } =>
        [BandwidthSelfQueue, RwndCap, RwndReader, Pacing, LocalQdisc, Sndbuf, App]:
        "The same with little room in the receiver's window.";
    Unknown, S::StillOpen => [LastFlight, App]:
        "The account had to be closed before the next send.";
    Unknown, S::HalfHandshake => [Handshake, IdlePeerThink]:
        "The client's own ACK ends its handshake, and the capture lacks it.";
    Unknown, S::RepeatUnanswered => [RecoveryLoss, RtoWait, TlpWait]:
        "Without the receiver's ACKs nothing tells a timer from a repair.";
}

/// What `state` may be confused with, and why, in the order of the table.
pub(crate) fn of(state: State) -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(move |row| row.states.contains(&state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rival_is_another_state_and_has_a_reason() {
        for row in TABLE {
            assert!(row.states.iter().all(|state| !row.rivals.contains(state)), "{row:?}");
            assert!(row.why.ends_with('.') && !row.why.contains(". "), "one sentence: {row:?}");
        }
    }

    #[test]
    fn what_was_seen_decides_what_else_it_may_be() {
        let seen = |room, still| {
            rivals(BandwidthSelfQueue, Seen::Stream { room, still }).contains(&Sndbuf)
        };
        assert!(seen(Room::Much, true) && !seen(Room::Much, false));
        assert!(seen(Room::PerhapsLittle, true) && !seen(Room::Little, true));
        assert!(rivals(App, Seen::Policed).is_empty(), "no row is for it");
    }
}
