//! Short words: for states in bars, sentences and tables, and for causes in one cell.

use crate::report::{Connection, End, State};

/// The ends of a direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Ends {
    /// Who sends.
    pub(crate) sender: &'static str,
    /// Who receives.
    pub(crate) receiver: &'static str,
}

impl Ends {
    /// Those of direction `at` (0: client to server).
    pub(crate) const fn of(at: usize) -> Self {
        if at == 0 {
            Self { sender: "client", receiver: "server" }
        } else {
            Self { sender: "server", receiver: "client" }
        }
    }

    /// Those of the data of `client` or `server`.
    pub(crate) fn from(name: &str) -> Self {
        Self::of(usize::from(name == "server"))
    }

    /// `text` with `{s}` and `{r}` replaced by the ends.
    pub(crate) fn put_in(self, text: &str) -> String {
        text.replace("{s}", self.sender).replace("{r}", self.receiver)
    }
}

/// What a bar is called; states with one name share a bar.
pub(crate) const fn bar(state: State) -> &'static str {
    use State as S;
    match state {
        S::Handshake => "handshake",
        S::SynRetry => "lost SYN",
        S::CwndSlowStart => "slow start",
        S::CwndAfterIdle => "restart after idle",
        S::RwndCap | S::RwndAutotune => "{r}'s window",
        S::RwndReader => "{r} reads late",
        S::ZeroWindow => "zero window",
        S::Sndbuf => "send buffer",
        S::AppWindow => "window above TCP",
        S::BandwidthSelfQueue | S::BandwidthExternal | S::BandwidthVariable => "full link",
        S::BandwidthPolicer => "policer",
        S::AckPath => "way of the ACKs",
        S::RecoveryLoss | S::RecoveryCorrupt => "repairing losses",
        S::RecoveryReorderSpurious => "needless repair",
        S::RecoveryEcn => "congestion marks",
        S::CwndPostLoss => "window after loss",
        S::CwndAvoidance => "window grows slowly",
        S::CwndCachedSsthresh | S::CwndClamp => "window held low",
        S::RtoWait | S::TlpWait => "timeouts",
        S::NagleDelack => "Nagle, delayed ACK",
        S::App | S::IdleAppThink => "{s}'s program",
        S::IdlePeerThink => "{r}'s program",
        S::Receiving => "{r}'s data",
        S::LocalQdisc => "{s}'s own queue",
        S::Pacing => "pacing",
        S::LastFlight => "last ACK",
        S::SilenceNoAck => "never acknowledged",
        S::SilenceHole => "missing data",
        S::SilenceNoAnswer => "no answer",
        S::SilenceCutShort => "answer stopped",
        S::IdleKeptOpen => "kept open, unused",
        S::Closing => "closing",
        S::CaptureGap => "capture gap",
        S::Unknown => "not decided",
    }
}

/// What a state is called in a sentence, with its article.
pub(crate) const fn noun(state: State) -> &'static str {
    use State as S;
    match state {
        S::Handshake => "the handshake",
        S::SynRetry => "a lost SYN",
        S::CwndSlowStart => "slow start",
        S::CwndAfterIdle => "the restart after idle time",
        S::RwndCap => "the {r}'s receive window",
        S::RwndAutotune => "the {r}'s growing receive window",
        S::RwndReader => "the {r}'s program, which reads late",
        S::ZeroWindow => "the {r}'s zero window",
        S::Sndbuf => "the {s}'s send buffer",
        S::AppWindow => "a window of the protocol above TCP",
        S::BandwidthSelfQueue => "a full link",
        S::BandwidthExternal => "a shared link",
        S::BandwidthVariable => "a link whose rate varies",
        S::BandwidthPolicer => "a policer",
        S::AckPath => "the way back, where ACKs queue",
        S::RecoveryLoss => "the repair of losses",
        S::RecoveryCorrupt => "the repair of damage",
        S::RecoveryReorderSpurious => "reordering taken for loss",
        S::RecoveryEcn => "congestion marks",
        S::CwndPostLoss => "a congestion window cut by a loss",
        S::CwndAvoidance => "a slowly growing congestion window",
        S::CwndCachedSsthresh => "a remembered threshold",
        S::CwndClamp => "a clamped congestion window",
        S::RtoWait => "a retransmission timeout",
        S::TlpWait => "a tail loss probe's timer",
        S::NagleDelack => "Nagle's algorithm with a delayed ACK",
        S::App | S::IdleAppThink => "the {s}'s program",
        S::IdlePeerThink => "the {r}'s program",
        S::Receiving => "the {r}'s data",
        S::LocalQdisc => "a queue in the {s}'s host",
        S::Pacing => "pacing",
        S::LastFlight => "the wait for the last ACK",
        S::SilenceNoAck => "data that was never acknowledged",
        S::SilenceHole => "data that never came",
        S::SilenceNoAnswer => "an answer that never came",
        S::SilenceCutShort => "an answer that stopped",
        S::IdleKeptOpen => "an unused connection",
        S::Closing => "the close",
        S::CaptureGap => "a gap of the capture",
        S::Unknown => "something these packets do not show",
    }
}

/// What became of a connection without data, in a cell of a table.
pub(crate) fn without_data(connection: &Connection) -> &'static str {
    let is_opened = connection.handshake_rtt_ns.is_some();
    match (connection.end, connection.syns) {
        (End::Rst, _) => "reset, nothing asked",
        (End::Fin, _) if is_opened => "opened and closed",
        (End::Fin, _) => "closed",
        (End::Open, [Some(_), None]) => "SYN, no answer seen",
        (End::Open, [_, Some(_)]) if !is_opened => "handshake not ended",
        (End::Open, [Some(_), Some(_)]) => "open, nothing sent",
        (End::Open, _) => "only ACKs seen",
    }
}

/// A cause in a cell of a table.
pub(crate) fn cell(code: &str) -> &'static str {
    match code {
        "COLD_CONNECTION" => "new connection",
        "SLOW_START" | "INITIAL_WINDOW" => "slow start",
        "SLOW_START_ENDED_EARLY" => "window held low",
        "IDLE_RESTART" => "idle restart",
        "WINDOW_CAP" | "WINDOW_GROWTH" => "receive window",
        "WINDOW_SCALE" | "SCALE_LOST" => "window scaling",
        "SLOW_READER" => "slow reader",
        "ZERO_WINDOW" | "ZERO_WINDOW_HOLE" => "zero window",
        "SEND_BUFFER" => "send buffer",
        "APP_WINDOW" => "window above TCP",
        "NAGLE_DELAYED_ACK" => "Nagle",
        "LOSS" | "LOSS_RANDOM" | "LOSS_CONGESTION" | "LOSS_PERIODIC" => "loss",
        "LOSS_LOCAL" => "loss on the host",
        "REQUESTS_IN_TURN" => "requests in turn",
        "DAMAGED" => "damage",
        "POLICER" => "policer",
        "ACK_PATH" => "way of the ACKs",
        "TIMEOUT" => "timeouts",
        "STOOD_STILL" => "path stood still",
        "SPURIOUS_REPAIR" => "needless repair",
        "LOCAL_QDISC" => "own queue",
        "PACING" => "pacing",
        "BOTTLENECK" => "full link",
        "BOTTLENECK_SHARED" | "OTHERS_QUEUE" => "shared link",
        "VARIABLE_RATE" => "varying link",
        "TOKEN_BUCKET" => "token bucket",
        "THINK_SERVER" => "server think",
        "THINK_CLIENT" => "client think",
        "SLOW_WRITER" => "slow writer",
        "BODY_ON_ITS_WAY" => "request's way",
        "SYN_RETRY" => "lost SYN",
        "ACCEPT_QUEUE" => "accept queue",
        "SLOW_HANDSHAKE" => "slow handshake",
        "LONG_ROUND_TRIP" => "distance",
        "TLS_ROUND_TRIPS" => "TLS handshake",
        "PATH_MTU" | "BLACK_HOLE" => "path MTU",
        "NOT_TCP" => "programs",
        _ => "see --full",
    }
}
