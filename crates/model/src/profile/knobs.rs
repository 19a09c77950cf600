//! What an administrator sets: sysctls and words of a route, as numbers.
//!
//! Names and defaults are those of Documentation/networking/ip-sysctl.rst and ip-route(8). Names
//! that change nothing here are taken without effect only if they are listed as such; any other is
//! refused, so that nobody waits for an effect that cannot come.

use std::fmt;

use super::{KeepaliveTimes, KernelProfile, Version};

/// Settings of a network namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one sysctl")]
pub struct Sysctl {
    /// `tcp_rmem`: least, first and most bytes of a receive buffer.
    pub rmem: [u32; 3],
    /// `tcp_wmem`: the same for the send buffer.
    pub wmem: [u32; 3],
    /// `net.core.rmem_max`.
    pub rmem_max: u32,
    /// `net.core.wmem_max`.
    pub wmem_max: u32,
    /// `tcp_window_scaling`.
    pub window_scaling: bool,
    /// `tcp_sack`.
    pub sack: bool,
    /// `tcp_dsack`.
    pub dsack: bool,
    /// `tcp_timestamps`.
    pub timestamps: bool,
    /// `tcp_ecn`: 0 no, 1 asks for it, 2 grants it.
    pub ecn: u8,
    /// `tcp_moderate_rcvbuf`.
    pub moderate_rcvbuf: bool,
    /// `tcp_slow_start_after_idle`.
    pub slow_start_after_idle: bool,
    /// `tcp_no_metrics_save`.
    pub no_metrics_save: bool,
    /// `tcp_no_ssthresh_metrics_save`.
    pub no_ssthresh_metrics_save: bool,
    /// `tcp_adv_win_scale`.
    pub adv_win_scale: i8,
    /// `tcp_app_win`.
    pub app_win: u8,
    /// `tcp_limit_output_bytes`.
    pub limit_output_bytes: u32,
    /// `tcp_notsent_lowat`.
    pub notsent_lowat: u32,
    /// `tcp_reordering`.
    pub reordering: u32,
    /// `tcp_max_reordering`.
    pub max_reordering: u32,
    /// `tcp_recovery`, bit by bit.
    pub recovery: u8,
    /// `tcp_early_retrans`: 3 and 4 are tail loss probes.
    pub early_retrans: u8,
    /// `tcp_frto`.
    pub frto: u8,
    /// `tcp_autocorking`.
    pub autocorking: bool,
    /// `tcp_min_tso_segs`.
    pub min_tso_segs: u32,
    /// `tcp_tso_win_divisor`.
    pub tso_win_divisor: u32,
    /// `tcp_tso_rtt_log`.
    pub tso_rtt_log: u32,
    /// `tcp_pacing_ss_ratio`, in percent.
    pub pacing_ss_ratio: u32,
    /// `tcp_pacing_ca_ratio`, in percent.
    pub pacing_ca_ratio: u32,
    /// `tcp_syn_retries`.
    pub syn_retries: u32,
    /// `tcp_synack_retries`.
    pub synack_retries: u32,
    /// `tcp_syn_linear_timeouts`.
    pub syn_linear_timeouts: u32,
    /// `tcp_retries2`.
    pub retries2: u32,
    /// `tcp_comp_sack_delay_ns`.
    pub comp_sack_delay_ns: u64,
    /// `tcp_comp_sack_slack_ns`: the timer comes this much later, for it is alone in its time.
    pub comp_sack_slack_ns: u64,
    /// `tcp_comp_sack_nr`.
    pub comp_sack_nr: u32,
    /// `tcp_shrink_window`.
    pub shrink_window: bool,
    /// `tcp_fastopen`, bit by bit ([`fastopen`]).
    pub fastopen: u32,
    /// `tcp_pingpong_thresh`.
    pub pingpong_thresh: u8,
    /// `tcp_invalid_ratelimit`, in milliseconds.
    pub invalid_ratelimit_ms: u32,
    /// `tcp_min_rtt_wlen`, in seconds.
    pub min_rtt_wlen: u32,
    /// `tcp_rto_max_ms` (v6.15).
    pub rto_max_ms: u32,
    /// `tcp_retries1`.
    pub retries1: u32,
    /// When a silent peer is asked.
    pub keepalive: KeepaliveTimes,
    /// `tcp_mtu_probing`: 1 after a black hole, 2 always.
    pub mtu_probing: u8,
    /// `tcp_base_mss`.
    pub base_mss: u32,
    /// `tcp_mtu_probe_floor`.
    pub mtu_probe_floor: u32,
    /// `tcp_probe_threshold`, in bytes.
    pub probe_threshold: u32,
    /// `tcp_probe_interval`, in seconds.
    pub probe_interval: u32,
    /// `tcp_congestion_control`.
    pub congestion: String,
}

/// Bits of `tcp_fastopen` (`TFO_*` of include/net/tcp.h).
pub mod fastopen {
    /// Clients may.
    pub const CLIENT: u32 = 1;
    /// Servers may.
    pub const SERVER: u32 = 2;
    /// A client needs no cookie.
    pub const CLIENT_NO_COOKIE: u32 = 4;
    /// A server asks for none.
    pub const SERVER_COOKIE_NOT_REQUIRED: u32 = 0x200;
    /// Every listener does, whatever its options.
    pub const SERVER_WITHOUT_OPTION: u32 = 0x400;
}

/// Words of the route to the peer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Route {
    /// `initcwnd`.
    pub initcwnd: Option<u32>,
    /// `initrwnd`.
    pub initrwnd: Option<u32>,
    /// `cwnd lock N`: congestion window never above.
    pub cwnd: Option<u32>,
    /// `ssthresh N`.
    pub ssthresh: Option<u32>,
    /// `quickack 1`.
    pub quickack: bool,
    /// `congctl NAME`.
    pub congctl: Option<String>,
    /// `rto_min TIME`.
    pub rto_min_ns: Option<u64>,
    /// `advmss N`.
    pub advmss: Option<u32>,
    /// `window N`: clamp of the window.
    pub window: Option<u32>,
    /// `mtu N`.
    pub mtu: Option<u32>,
    /// `reordering N`.
    pub reordering: Option<u32>,
    /// `rtt TIME`, kept for new connections.
    pub rtt_ns: Option<u64>,
    /// `rttvar TIME`, likewise.
    pub rttvar_ns: Option<u64>,
    /// `fastopen_no_cookie 1`.
    pub fastopen_no_cookie: bool,
    /// Which of the values that are kept for new connections stay as they are.
    pub locked: Locked,
}

/// Values that no connection changes (`lock`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one value's lock")]
pub struct Locked {
    /// `ssthresh lock N`.
    pub ssthresh: bool,
    /// `reordering lock N`.
    pub reordering: bool,
    /// `rtt lock TIME`.
    pub rtt: bool,
    /// `rttvar lock TIME`.
    pub rttvar: bool,
}

/// A setting that the model does not take.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnobError {
    /// Its name.
    pub name: String,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for KnobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

impl std::error::Error for KnobError {}

impl Sysctl {
    /// Defaults of a version on a machine whose memory bounds no buffer.
    pub fn of(profile: &KernelProfile) -> Self {
        let at = |major, minor| profile.version >= Version::new(major, minor);
        Self {
            rmem: [
                4096,
                if at(4, 20) { 131_072 } else { 87_380 },
                if at(6, 16) { 32 << 20 } else { 6 << 20 },
            ],
            wmem: [4096, 16_384, 4 << 20],
            rmem_max: if at(6, 18) { 4 << 20 } else { 212_992 },
            wmem_max: if at(6, 18) { 4 << 20 } else { 212_992 },
            window_scaling: true,
            sack: true,
            dsack: true,
            timestamps: true,
            ecn: 2,
            moderate_rcvbuf: true,
            slow_start_after_idle: true,
            no_metrics_save: false,
            no_ssthresh_metrics_save: !profile.keeps_ssthresh,
            adv_win_scale: 1,
            app_win: 31,
            limit_output_bytes: match () {
                () if at(6, 16) => 4 << 20,
                () if at(5, 0) => 1 << 20,
                () => 256 << 10,
            },
            notsent_lowat: u32::MAX,
            reordering: 3,
            max_reordering: 300,
            recovery: 1,
            early_retrans: 3,
            frto: 2,
            autocorking: true,
            min_tso_segs: 2,
            tso_win_divisor: 3,
            tso_rtt_log: 9,
            pacing_ss_ratio: 200,
            pacing_ca_ratio: 120,
            syn_retries: 6,
            synack_retries: 5,
            syn_linear_timeouts: u32::from(profile.linear_syns),
            retries2: 15,
            comp_sack_delay_ns: 1_000_000,
            comp_sack_slack_ns: if at(5, 9) { 100_000 } else { 0 },
            comp_sack_nr: 44,
            shrink_window: false,
            fastopen: 1,
            pingpong_thresh: profile.pingpong,
            invalid_ratelimit_ms: 500,
            min_rtt_wlen: 300,
            rto_max_ms: 120_000,
            retries1: 3,
            keepalive: KeepaliveTimes::default(),
            mtu_probing: 0,
            base_mss: 1024,
            mtu_probe_floor: 48,
            probe_threshold: 8,
            probe_interval: 600,
            congestion: "cubic".to_owned(),
        }
    }

    /// Sets one, by its full name.
    ///
    /// # Errors
    /// The model does not know it, or the value is none of its values.
    #[expect(clippy::too_many_lines, reason = "one flat match, a line a name")]
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), KnobError> {
        let error = |why: String| KnobError { name: name.to_owned(), why };
        let short = name.trim_start_matches("net.").trim_start_matches("ipv4.");
        in_range(short, value).map_err(error)?;
        let number = || whole(value).ok_or_else(|| error(format!("`{value}` is not a number")));
        let positive = || {
            number()
                .and_then(|n| u32::try_from(n).map_err(|_| error(format!("{n} is out of range"))))
        };
        let flag = || number().map(|n| n != 0);
        let small = || {
            positive()
                .and_then(|n| u8::try_from(n).map_err(|_| error(format!("{n} is out of range"))))
        };
        match short {
            "tcp_rmem" => self.rmem = three(name, value)?,
            "tcp_wmem" => self.wmem = three(name, value)?,
            "core.rmem_max" => self.rmem_max = positive()?,
            "core.wmem_max" => self.wmem_max = positive()?,
            "tcp_window_scaling" => self.window_scaling = flag()?,
            "tcp_sack" => self.sack = flag()?,
            "tcp_dsack" => self.dsack = flag()?,
            "tcp_timestamps" => self.timestamps = flag()?,
            "tcp_ecn" => self.ecn = small()?,
            "tcp_moderate_rcvbuf" => self.moderate_rcvbuf = flag()?,
            "tcp_slow_start_after_idle" => self.slow_start_after_idle = flag()?,
            "tcp_no_metrics_save" => self.no_metrics_save = flag()?,
            "tcp_no_ssthresh_metrics_save" => self.no_ssthresh_metrics_save = flag()?,
            "tcp_adv_win_scale" => {
                self.adv_win_scale = i8::try_from(number()?)
                    .ok()
                    .filter(|n| (-31..=31).contains(n))
                    .ok_or_else(|| error("it lies between -31 and 31".to_owned()))?;
            }
            "tcp_app_win" => self.app_win = small()?.min(31),
            "tcp_limit_output_bytes" => self.limit_output_bytes = positive()?,
            "tcp_notsent_lowat" => self.notsent_lowat = positive()?,
            "tcp_reordering" => self.reordering = positive()?,
            "tcp_max_reordering" => self.max_reordering = positive()?,
            "tcp_recovery" => self.recovery = small()?,
            "tcp_early_retrans" => self.early_retrans = small()?,
            "tcp_frto" => self.frto = small()?,
            "tcp_autocorking" => self.autocorking = flag()?,
            "tcp_min_tso_segs" => self.min_tso_segs = positive()?,
            "tcp_tso_win_divisor" => self.tso_win_divisor = positive()?,
            "tcp_tso_rtt_log" => self.tso_rtt_log = positive()?.min(31),
            "tcp_pacing_ss_ratio" => self.pacing_ss_ratio = positive()?,
            "tcp_pacing_ca_ratio" => self.pacing_ca_ratio = positive()?,
            "tcp_syn_retries" => self.syn_retries = positive()?,
            "tcp_synack_retries" => self.synack_retries = positive()?,
            "tcp_syn_linear_timeouts" => self.syn_linear_timeouts = positive()?,
            "tcp_retries2" => self.retries2 = positive()?,
            "tcp_comp_sack_delay_ns" => self.comp_sack_delay_ns = u64::from(positive()?),
            "tcp_comp_sack_slack_ns" => self.comp_sack_slack_ns = u64::from(positive()?),
            "tcp_comp_sack_nr" => self.comp_sack_nr = positive()?,
            "tcp_shrink_window" => self.shrink_window = flag()?,
            "tcp_fastopen" => self.fastopen = positive()?,
            "tcp_pingpong_thresh" => self.pingpong_thresh = small()?,
            "tcp_invalid_ratelimit" => self.invalid_ratelimit_ms = positive()?,
            "tcp_min_rtt_wlen" => self.min_rtt_wlen = positive()?,
            "tcp_rto_max_ms" => self.rto_max_ms = positive()?,
            "tcp_retries1" => self.retries1 = positive()?,
            "tcp_keepalive_time" => self.keepalive.time = positive()?,
            "tcp_keepalive_intvl" => self.keepalive.intvl = positive()?,
            "tcp_keepalive_probes" => self.keepalive.probes = positive()?,
            "tcp_mtu_probing" => self.mtu_probing = small()?,
            "tcp_base_mss" => self.base_mss = positive()?,
            "tcp_mtu_probe_floor" => self.mtu_probe_floor = positive()?,
            "tcp_probe_threshold" => self.probe_threshold = positive()?,
            "tcp_probe_interval" => self.probe_interval = positive()?,
            "tcp_congestion_control" => value.trim().clone_into(&mut self.congestion),
            other if WITHOUT_EFFECT.contains(&other) => {}
            _ => return Err(error("the model does not know this sysctl".to_owned())),
        }
        Ok(())
    }
}

impl Route {
    /// Sets one word.
    ///
    /// # Errors
    /// The model does not know it, or the value is none of its values.
    pub fn set(&mut self, word: &str, value: &str) -> Result<(), KnobError> {
        let error = |why: String| KnobError { name: word.to_owned(), why };
        in_range(word, value.trim_start_matches("lock")).map_err(error)?;
        let number = |text: &str| {
            text.trim().parse::<u32>().map_err(|_| error(format!("`{value}` is not a number")))
        };
        let span = |text: &str| {
            time(text).ok_or_else(|| error(format!("`{value}` is not a time such as 200ms")))
        };
        let unlocked = value.trim().trim_start_matches("lock").trim();
        let locked = unlocked != value.trim();
        match word {
            "initcwnd" => self.initcwnd = Some(number(value)?).filter(|set| *set > 0),
            "initrwnd" => self.initrwnd = Some(number(value)?).filter(|set| *set > 0),
            // The kernel uses a cached window only if it is locked (`tcp_init_metrics`).
            "cwnd" if !locked => {}
            "cwnd" => self.cwnd = Some(number(unlocked)?),
            "ssthresh" => {
                self.ssthresh = Some(number(unlocked)?).filter(|set| *set > 0);
                self.locked.ssthresh = locked;
            }
            "quickack" => self.quickack = number(value)? != 0,
            "congctl" => self.congctl = Some(unlocked.to_owned()),
            "rto_min" => {
                let span = time(unlocked)
                    .filter(|ns| *ns == 0 || *ns >= LEAST_RTO_MIN_NS)
                    .ok_or_else(|| error(format!("`{value}` is not a time such as 200ms")))?;
                self.rto_min_ns = Some(span).filter(|ns| *ns > 0);
            }
            "rtt" => (self.rtt_ns, self.locked.rtt) = (Some(span(unlocked)?), locked),
            "rttvar" => (self.rttvar_ns, self.locked.rttvar) = (Some(span(unlocked)?), locked),
            "fastopen_no_cookie" => self.fastopen_no_cookie = number(unlocked)? != 0,
            "advmss" => self.advmss = Some(number(unlocked)?).filter(|set| *set > 0),
            "window" => self.window = Some(number(unlocked)?).filter(|set| *set > 0),
            "mtu" => self.mtu = Some(number(unlocked)?).filter(|set| *set > 0),
            "reordering" => {
                self.reordering = Some(number(unlocked)?).filter(|set| *set > 0);
                self.locked.reordering = locked;
            }
            _ => return Err(error("the model does not know this word of a route".to_owned())),
        }
        Ok(())
    }
}

/// A tick at 1000 Hz: less makes no time at all.
const LEAST_RTO_MIN_NS: u64 = 1_000_000;

/// What a kernel takes (`net/ipv4/sysctl_net_ipv4.c`, v6.12), by the name of a sysctl or of a word of a
/// route; of routes, where it takes anything, ours: the largest whose product with the largest
/// segment fits 32 bits. 0 means a word that is not set.
const RANGES: [(&str, i64, i64); 27] = [
    ("tcp_rto_max_ms", 1000, 120_000),
    ("tcp_retries1", 0, 255),
    ("tcp_base_mss", 0, 65_535),
    ("tcp_mtu_probe_floor", 0, 65_535),
    ("tcp_probe_threshold", 0, 65_535),
    ("tcp_rmem", 1, MOST_MEMORY),
    ("tcp_wmem", 1, MOST_MEMORY),
    ("core.rmem_max", 2304, MOST_MEMORY),
    ("core.wmem_max", 4608, MOST_MEMORY),
    ("tcp_limit_output_bytes", 0, MOST_MEMORY),
    ("tcp_reordering", 0, 65_535),
    ("tcp_max_reordering", 0, 65_535),
    ("tcp_min_tso_segs", 1, 255),
    ("tcp_tso_win_divisor", 0, 255),
    ("tcp_tso_rtt_log", 0, 255),
    ("tcp_pacing_ss_ratio", 0, 1000),
    ("tcp_pacing_ca_ratio", 0, 1000),
    ("tcp_syn_retries", 1, 127),
    ("tcp_synack_retries", 0, 255),
    ("tcp_retries2", 0, 255),
    ("tcp_comp_sack_nr", 0, 255),
    ("tcp_min_rtt_wlen", 0, 86_400),
    ("tcp_adv_win_scale", -31, 31),
    ("initcwnd", 0, 65_535),
    ("initrwnd", 0, 65_535),
    // `TCP_MIN_MSS` of include/net/tcp.h: less has no room for options; neither has a packet of less.
    ("advmss", 88, 65_495),
    ("mtu", 88, 65_535),
];

/// `INT_MAX`.
const MOST_MEMORY: i64 = 2_147_483_647;

/// Whether all numbers of a value are in the range of that name; if not, what the range is.
fn in_range(name: &str, value: &str) -> Result<(), String> {
    let Some((_, least, most)) = RANGES.iter().find(|(known, ..)| *known == name) else {
        return Ok(());
    };
    let numbers = value.split_whitespace().filter_map(whole);
    for number in numbers {
        if !(*least..=*most).contains(&number) {
            return Err(format!("{number} does not lie between {least} and {most}"));
        }
    }
    Ok(())
}

/// A number, also with `0x` in front (`proc_dointvec`).
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn three(name: &str, value: &str) -> Result<[u32; 3], KnobError> {
    let error = || KnobError {
        name: name.to_owned(),
        why: format!(
            "`{value}` is not three numbers of bytes from 1 to {MOST_MEMORY}: least, first, most, as `4096 131072 \
             6291456`"
        ),
    };
    let mut numbers = value.split_whitespace().map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok).ok_or_else(error);
    Ok([next()?, next()?, next()?])
}

/// A time as `ip route` takes it: a number with `ms`, `s` or `us`, or plain milliseconds.
fn time(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" | "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "us" | "usec" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Known, and of no consequence for what the model does.
const WITHOUT_EFFECT: &[&str] = &[
    "tcp_allowed_congestion_control",
    "tcp_available_congestion_control",
    "tcp_fin_timeout",
    "tcp_max_syn_backlog",
    "tcp_syncookies",
    "tcp_tw_reuse",
    "tcp_rfc1337",
];
