//! What a path is like: as it was said, else as a capture shows it, else as the connections that are open to the peer do.

use std::net::IpAddr;
use std::path::Path;

use serde::Serialize;
use tcpwhy::host::Seen;
use tcpwhy::host::snapshot::Info;
use tcpwhy::host::target::Target;
use tcpwhy::report::{Connection, Direction};

use crate::cmd::check::CheckFlags;

/// Rate and round trip, and where they are from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) target: Target,
    pub(super) rate_from: From,
    pub(super) rtt_from: From,
}

/// Where a figure is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum From {
    /// A flag.
    Said,
    /// A capture in which the path held the rate.
    Bottleneck,
    /// A capture; a rate is what was reached, then.
    Capture,
    /// Connections that are open; a rate is what was reached.
    Sockets,
}

impl Facts {
    /// `None` where a figure is missing, or is 0.
    pub(super) fn of(
        flags: &CheckFlags,
        peer: IpAddr,
        seen: &Seen<'_>,
        captured: &[Connection],
    ) -> Option<Self> {
        let said = flags.rate.as_ref().map(|rate| (rate.bps, From::Said));
        let rate = said.or_else(|| rate_of(captured)).or_else(|| {
            let reached = infos(seen, peer).filter_map(|info| info.delivery_rate).max()?;
            Some((reached.saturating_mul(8), From::Sockets))
        });
        let said = flags.rtt.map(|rtt| (rtt, From::Said));
        let rtt = said.or_else(|| rtt_of(captured)).or_else(|| {
            let least = infos(seen, peer)
                .filter_map(|info| info.min_rtt_ns.or(info.rtt_ns).or(info.rcv_rtt_ns))
                .min();
            Some((least?, From::Sockets))
        });
        let ((rate, rate_from), (rtt_ns, rtt_from)) = (rate?, rtt?);
        let target = Target { peer, rate, rtt_ns };
        (rate > 0 && rtt_ns > 0).then_some(Self { target, rate_from, rtt_from })
    }

    /// The path may carry more than the rate says.
    pub(super) const fn is_least(&self) -> bool {
        matches!(self.rate_from, From::Capture | From::Sockets)
    }
}

fn infos<'a>(seen: &Seen<'a>, peer: IpAddr) -> impl Iterator<Item = &'a Info> {
    let sockets = seen.sockets().unwrap_or_default().iter();
    sockets.filter(move |socket| socket.remote.ip() == peer).filter_map(|it| it.info.as_deref())
}

/// The connections of a capture that are with the peer; what is wrong with it otherwise, and with which it would have
/// some.
pub(super) fn with_peer(
    connections: Vec<Connection>,
    peer: IpAddr,
    name: &Path,
) -> Result<Vec<Connection>, String> {
    let mut others: Vec<IpAddr> =
        connections.iter().flat_map(|it| [it.client.ip(), it.server.ip()]).collect();
    let with: Vec<_> = connections
        .into_iter()
        .filter(|it| [it.client.ip(), it.server.ip()].contains(&peer))
        .collect();
    if !with.is_empty() {
        return Ok(with);
    }
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        return Err(format!("{} holds no TCP connection", name.display()));
    }
    let told: Vec<String> = others.iter().take(8).map(IpAddr::to_string).collect();
    let more = if others.len() > told.len() { " and others" } else { "" };
    Err(format!(
        "{} holds no connection with {peer}; it is of {}{more}",
        name.display(),
        told.join(", ")
    ))
}

/// The rate that the path held a transfer to, else what was delivered in most round trips of the fastest.
fn rate_of(captured: &[Connection]) -> Option<(u64, From)> {
    let directions =
        || captured.iter().flat_map(Connection::present).map(|(_, direction)| direction);
    let held = directions().filter_map(|direction| direction.bottleneck_rate_bps).max();
    let reached = |direction: &Direction| Some(direction.delivery_rate_bps?.median);
    held.map(|rate| (rate, From::Bottleneck))
        .or_else(|| Some((directions().filter_map(reached).max()?, From::Capture)))
}

/// The least round trip of the whole path: that of handshakes, and of both halves from the tap.
fn rtt_of(captured: &[Connection]) -> Option<(u64, From)> {
    let halves = |it: &Connection| it.tap_to_client_rtt_ns?.checked_add(it.tap_to_server_rtt_ns?);
    let each = captured.iter().flat_map(|it| [it.handshake_rtt_ns, halves(it)]).flatten();
    let least = each.filter_map(|ns| u64::try_from(ns).ok()).min()?;
    Some((least, From::Capture))
}
