//! Settings of the hosts that a connection's packets show.

use core::fmt::Write;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use tcpwhy::report::{Connection, Direction, Syn};

use super::path::DEFAULT_MSS;
use super::{direction, steps, trace};
use crate::world::Side;

/// `[client]` or `[server]` of the scenario: tables of keys with their values.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Settings {
    pub(super) sysctl: BTreeMap<String, String>,
    pub(super) route: BTreeMap<String, String>,
    pub(super) socket: BTreeMap<String, String>,
}

impl Settings {
    pub(super) fn of(connection: &Connection, side: Side) -> Self {
        let mut settings = Self::default();
        let own = connection.syns[side.index()].unwrap_or_default();
        let asked = (side == Side::Server).then_some(connection.syns[0]).flatten();
        for (name, off) in switches(own, asked) {
            if off {
                settings.sysctl(name, "0");
            }
        }
        if let Some(most) = own.window_scale.and_then(buffer_for_scale) {
            settings.sysctl("tcp_rmem", &format!("\"4096 131072 {most}\""));
        }
        if let Some(mss) = own.mss.filter(|mss| *mss < USUAL_MSS - 20 && *mss > 0) {
            settings.route("advmss", mss.into());
        }
        if let Some(sent) = direction(connection, side) {
            settings.of_sender(sent);
            let mss = u64::from(connection.mss.unwrap_or(DEFAULT_MSS)).max(1);
            if trace::passes_nagle(sent, &steps::turns(connection, side), mss) {
                settings.socket.insert("nodelay".to_owned(), "true".to_owned());
            }
        }
        settings
    }

    /// What its data shows.
    fn of_sender(&mut self, sent: &Direction) {
        if sent.idle_restarts.iter().any(|idle| idle.verdict == "off") {
            self.sysctl("tcp_slow_start_after_idle", "0");
        }
        // A flight of more shows a larger window even where something else ended it.
        let first = sent.initial_window.filter(|first| first.full || first.segments > USUAL_FLIGHT);
        if let Some(first) = first.filter(|first| !matches!(first.segments, 0 | USUAL_FLIGHT)) {
            self.route("initcwnd", first.segments);
        }
        let exit = sent.slow_start_exit.as_deref();
        let cached = exit.filter(|exit| exit.cause == "cached_ssthresh");
        if let Some(threshold) = cached.and_then(|exit| exit.ssthresh) {
            self.route("ssthresh", threshold);
            self.sysctl("tcp_no_ssthresh_metrics_save", "0");
        }
        if let Some(control) = &sent.congestion_control {
            self.route.insert("congctl".to_owned(), format!("\"{}\"", control.name));
        }
    }

    fn sysctl(&mut self, name: &str, value: &str) {
        self.sysctl.insert(format!("net.ipv4.{name}"), value.to_owned());
    }

    fn route(&mut self, word: &str, value: u64) {
        self.route.insert(word.to_owned(), value.to_string());
    }

    /// As tables of host `name`.
    pub(super) fn text(&self, name: &str) -> String {
        let mut text = String::new();
        for (table, keys) in
            [("sysctl", &self.sysctl), ("route", &self.route), ("socket", &self.socket)]
        {
            if !keys.is_empty() {
                let _ = writeln!(text, "\n[{name}.{table}]");
            }
            for (key, value) in keys {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        text
    }
}

/// What a host did not offer. A server only answers: what its client did not ask for says nothing.
fn switches(own: Syn, asked: Option<Syn>) -> [(&'static str, bool); 3] {
    let off = |offers: fn(&Syn) -> bool| !offers(&own) && asked.is_none_or(|syn| offers(&syn));
    [
        ("tcp_window_scaling", off(|syn| syn.window_scale.is_some())),
        ("tcp_sack", off(|syn| syn.sack)),
        ("tcp_timestamps", off(|syn| syn.timestamps)),
    ]
}

/// The largest buffer that asks for this scale (`tcp_select_initial_window`), where it is not that
/// of Linux's default.
fn buffer_for_scale(scale: u8) -> Option<u64> {
    (scale != USUAL_SCALE && scale <= 14).then(|| 65_535 << scale)
}

/// `TCP_INIT_CWND` of include/net/tcp.h (RFC 6928).
const USUAL_FLIGHT: u64 = 10;

/// Scale of the default of 6 MiB (`tcp_rmem`).
const USUAL_SCALE: u8 = 7;

/// MSS of an MTU of 1500, less an IPv4 header.
const USUAL_MSS: u16 = 1460;
