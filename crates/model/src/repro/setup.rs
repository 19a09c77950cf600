//! The settings of the host under test, as far as its packets tell them.

use std::fmt::Write as _;

use tcpwhy::report::{Connection, Syn};

use super::calls::Calls;
use super::{Captured, Host};

/// Comments, options, shell commands and the first calls.
pub(super) fn head(
    connection: &Connection,
    packets: &[Captured],
    host: Host,
    calls: &Calls,
) -> String {
    let (name, side) = match host {
        Host::Client => ("client", 0),
        Host::Server => ("server", 1),
    };
    let mut text = format!(
        "// {} -> {}, begun {}: the {name} is the host under test.\n\
         // Written by tcpwhy from a capture. Calls were inferred: who wrote and read when is what the packets\n\
         // suggest. Windows that the host offered are not compared.\n",
        connection.client, connection.server, connection.start
    );
    let other = if host == Host::Client {
        connection.tap_to_client_rtt_ns
    } else {
        connection.tap_to_server_rtt_ns
    };
    if let Some(round_trip) = other.filter(|round_trip| *round_trip > NEAR_NS) {
        let _ = writeln!(
            text,
            "// Captured {:.3} ms of round trip away from it; times were moved by half of that.",
            round_trip as f64 / 1e6
        );
    }
    let syn = connection.syns[side].as_ref();
    let mss = syn.and_then(|syn| syn.mss).map_or(0, u32::from);
    let headers = if connection.client.is_ipv6() { 60 } else { 40 };
    if connection.client.is_ipv6() {
        text.push_str("--ip_version=ipv6\n");
    }
    // Who runs scripts for IPv6 gives them more than 1500 (`ksft_runner.sh`).
    if mss > 0 && (mss + headers != 1500 || headers == 60) {
        let _ = writeln!(text, "--mtu={}", mss + headers);
    }
    let _ = writeln!(text, "\n`{}`\n", commands(connection, packets, host, calls).join("\n"));
    let opening: &[&str] = match host {
        Host::Client => &[
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
            "+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0",
        ],
        Host::Server => &[
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
            "+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0",
            "+0 bind(3, ..., ...) = 0",
            "+0 listen(3, 1) = 0",
        ],
    };
    for line in opening {
        let _ = writeln!(text, "{line}");
    }
    if host == Host::Client && calls.nodelay {
        text.push_str("+0 setsockopt(3, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n");
    }
    text
}

/// Nearer than this a tap is taken to be on the host. Ours: far below any tolerance.
const NEAR_NS: i64 = 100_000;

fn commands(
    connection: &Connection,
    packets: &[Captured],
    host: Host,
    calls: &Calls,
) -> Vec<String> {
    let side = usize::from(host == Host::Server);
    let mut lines = agreed(connection, host);
    // Room for all that is written: each byte is charged with less than two more.
    let room = (calls.bytes.saturating_mul(3)).clamp(16_384, 1 << 30);
    lines.push(format!("sysctl -q net.ipv4.tcp_wmem=\"4096 {room} {room}\""));
    if let Some(direction) = &connection.directions[side] {
        if let Some(known) = &direction.congestion_control
            && matches!(&*known.name, "reno" | "cubic" | "bbr")
        {
            lines.push(format!("sysctl -q net.ipv4.tcp_congestion_control={}", &*known.name));
        }
        if direction.idle_restarts.iter().any(|restart| restart.verdict == "off") {
            lines.push("sysctl -q net.ipv4.tcp_slow_start_after_idle=0".into());
        }
        if let Some(first) = &direction.initial_window
            && first.full
            && first.segments != USUAL_FIRST_FLIGHT
        {
            lines.push(format!(
                "ip route change 192.0.2.0/24 via 192.168.0.1 dev tun0 initcwnd {}",
                first.segments
            ));
        }
    }
    let mss = connection.mss.unwrap_or(u32::MAX);
    let cut = packets.iter().all(|packet| packet.from != host || packet.len <= mss);
    if cut {
        lines.push("ethtool -K tun0 tso off gso off".into());
    }
    lines.push("tc qdisc replace dev tun0 root pfifo".into());
    lines
}

/// What the handshake tells of the host's settings.
fn agreed(connection: &Connection, host: Host) -> Vec<String> {
    let mut lines = Vec::new();
    let [client, server] = &connection.syns;
    let (own, offered) =
        if host == Host::Client { (client, None) } else { (server, client.as_ref()) };
    let Some(own) = own else { return lines };
    // A server that leaves out what nobody offered tells nothing by it.
    let mut off = |name: &str, has: fn(&Syn) -> bool| {
        if !has(own) && (host == Host::Client || offered.is_some_and(has)) {
            lines.push(format!("sysctl -q net.ipv4.{name}=0"));
        }
    };
    off("tcp_timestamps", |syn| syn.timestamps);
    off("tcp_sack", |syn| syn.sack);
    off("tcp_window_scaling", |syn| syn.window_scale.is_some());
    off("tcp_ecn", |syn| syn.ecn);
    if own.ecn {
        lines.push(format!(
            "sysctl -q net.ipv4.tcp_ecn={}",
            if host == Host::Client { 1 } else { 2 }
        ));
    }
    // The scale is that of the largest buffer (`tcp_select_initial_window`): from 2^(15+scale) on.
    if let Some(scale) = own.window_scale.filter(|scale| (3..=14).contains(scale)) {
        let usual = if OLD_FIRST_WINDOWS.contains(&own.window) { 87_380 } else { 131_072 };
        let most = 3_u64 << (14 + scale);
        lines.push(format!("sysctl -q net.ipv4.tcp_rmem=\"4096 {usual} {most}\""));
    }
    lines
}

/// `TCP_INIT_CWND` of include/net/tcp.h.
const USUAL_FIRST_FLIGHT: u64 = 10;

/// Twenty segments with and without timestamps: what v4.19 and older offer at first, from a buffer of
/// 87380 bytes (`tcp_select_initial_window`, `tcp_rmem`).
const OLD_FIRST_WINDOWS: [u16; 2] = [28_960, 29_200];
