//! The path, measured before anything is run over it: round trip and rate.
//!
//! The plan's path without its losses and changes carries twenty requests of a few bytes, one after
//! the other, and then one long transfer in the direction that matters. The round trip is the least
//! time from a request's write to the end of its answer's read; the rate is that of the second half
//! of the long transfer as its receiver reads it, counted on layer 2. Queues and buckets count; the
//! hosts' settings and routes do not, for they may hold a transfer well below its path.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tcpwhy_linux::lab::folder;
use tcpwhy_model::scenario::plan::{Flow, Host, Loss, Path as PlanPath, Plan, Records, Step, Way};

/// A path as asked for and as measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Measured {
    /// The variants that run over it; none are named if all do.
    pub(super) variants: Vec<String>,
    /// Round trip asked for, with the delays between stacks and taps.
    pub(super) asked_rtt_ns: u64,
    /// Rate asked for, towards the receiver; 0 is unlimited.
    pub(super) asked_rate_bps: u64,
    /// Round trip measured.
    pub(super) rtt_ns: Option<i64>,
    /// Rate measured, towards the receiver.
    pub(super) rate_bps: Option<u64>,
}

impl Measured {
    /// What a plan asks for.
    pub(super) fn asked(plan: &Plan, side: usize) -> Self {
        let taps = plan.client.stack_to_tap_ns + plan.server.stack_to_tap_ns;
        let way = if side == 1 { &plan.path.down } else { &plan.path.up };
        Self {
            asked_rtt_ns: plan.path.down.delay_ns + plan.path.up.delay_ns + 2 * taps,
            asked_rate_bps: way.bucket.map_or(way.rate, |bucket| bucket.rate),
            ..Self::default()
        }
    }

    /// Reads what a run of [`probe`] came to.
    pub(super) fn read(&mut self, run: &Path, side: usize) {
        let Ok(text) = fs::read_to_string(run.join(folder::APPLICATIONS)) else { return };
        let lines: Vec<Line> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        self.rtt_ns = round_trip(&lines);
        self.rate_bps = rate(&lines, ["server", "client"][side]);
    }
}

/// The plan that measures the path of another.
pub(super) fn probe(plan: &Plan, side: usize) -> Plan {
    let asked = Measured::asked(plan, side);
    let calm = |way: &Way| Way {
        loss: Loss::None,
        jitter_ns: 0,
        reorder: 0,
        duplicate: 0,
        corrupt: 0,
        ..way.clone()
    };
    let bytes = (asked.asked_rate_bps / 8 / 5).clamp(LEAST_BYTES, MOST_BYTES);
    let asks = Step::Write { bytes: 64, chunk: 64, pause_ns: 0 };
    let hears = Step::Read { bytes: 64, chunk: 64, pause_ns: 0 };
    let ends = || vec![Step::EndWriting, Step::ReadToEnd { chunk: 1 << 16, pause_ns: 0 }];
    let turn = |steps: Vec<Step>| [vec![Step::Repeat { times: TURNS, steps }], ends()].concat();
    let sends =
        [vec![Step::Write { bytes, chunk: 1 << 16, pause_ns: 0 }, Step::Drain], ends()].concat();
    let hears_all =
        [vec![Step::ReadToEnd { chunk: 1 << 20, pause_ns: 0 }, Step::EndWriting]].concat();
    let (client, server) = if side == 1 { (hears_all, sends) } else { (sends, hears_all) };
    let flow = |port, start_ns, client, server| Flow {
        start_ns,
        port,
        connections: 1,
        client,
        server,
        ..Flow::default()
    };
    Plan {
        scenario: plan.scenario.clone(),
        variant: "path".to_owned(),
        client: unhindered(&plan.client),
        server: unhindered(&plan.server),
        flows: vec![
            flow(PORT, 0, turn(vec![asks.clone(), hears.clone()]), turn(vec![hears, asks])),
            flow(PORT + 1, u64::from(TURNS + 8) * asked.asked_rtt_ns + 20_000_000, client, server),
        ],
        path: PlanPath {
            down: calm(&plan.path.down),
            up: calm(&plan.path.up),
            changes: Vec::new(),
        },
        records: Records { snap_length: 128, ..Records::default() },
        limit_ns: 120_000_000_000,
        ..plan.clone()
    }
}

/// A host whose settings hold no transfer back, and whose controller leaves slow start for losses only.
fn unhindered(host: &Host) -> Host {
    let sysctl = [
        ("net.ipv4.tcp_congestion_control", "reno"),
        ("net.ipv4.tcp_rmem", "4096 131072 67108864"),
        ("net.ipv4.tcp_wmem", "4096 131072 67108864"),
    ];
    let sysctl = sysctl.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Host { sysctl: sysctl.into(), route: BTreeMap::new(), ..host.clone() }
}

#[derive(Deserialize)]
struct Line {
    who: String,
    flow: u64,
    step: String,
    from: i64,
    to: i64,
    bytes: Option<u64>,
}

fn round_trip(lines: &[Line]) -> Option<i64> {
    let mine = lines.iter().filter(|line| line.flow == 0 && line.who == "client");
    let mut asked = None;
    let mut least = None;
    for line in mine {
        match line.step.as_str() {
            "write" => asked = Some(line.from),
            "read" if line.bytes == Some(64) => {
                let took = asked.take().map(|asked| line.to - asked);
                least = took.into_iter().chain(least).min();
            }
            _ => {}
        }
    }
    least
}

/// On layer 2: an Ethernet frame of 1514 bytes carries 1448 of payload with time stamps.
fn rate(lines: &[Line], receiver: &str) -> Option<u64> {
    let reads =
        lines.iter().filter(|line| line.flow == 1 && line.who == receiver && line.step == "read");
    let mut sum = 0;
    let sums: Vec<_> = reads
        .map(|line| {
            sum += line.bytes.unwrap_or(0);
            (line.to, sum)
        })
        .collect();
    let half = sums.iter().find(|(_, bytes)| *bytes >= sum / 2)?;
    let end = sums.iter().find(|(_, bytes)| *bytes == sum)?;
    let (bytes, span) = (end.1 - half.1, end.0 - half.0);
    let bits = i128::from(bytes) * 8 * 1514 / 1448;
    (span > 0 && bytes > 0).then(|| (bits * 1_000_000_000 / i128::from(span)) as u64)
}

/// Ours: enough that one of them meets no noise.
const TURNS: u32 = 20;

/// Ours: slow start is over after half of it at a round trip of 100 ms.
const LEAST_BYTES: u64 = 512 * 1024;

/// Ours: 0.2 s at a gigabit.
const MOST_BYTES: u64 = 25_000_000;

/// Ours: below those of scenarios.
const PORT: u16 = 7998;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_measures_the_path_and_not_its_chances() {
        let mut plan = Plan::default();
        plan.path.down =
            Way { rate: 100_000_000, delay_ns: 5, loss: Loss::Random(9), ..Way::default() };
        plan.client.stack_to_tap_ns = 2;
        plan.server.sysctl.insert("net.ipv4.tcp_wmem".to_owned(), "4096 4096 4096".to_owned());
        plan.server.route.insert("cwnd".to_owned(), "lock 1".to_owned());
        let probe = probe(&plan, 1);
        assert_ne!(probe.server.sysctl["net.ipv4.tcp_wmem"], "4096 4096 4096", "not the host's");
        assert_eq!(probe.server.route, BTreeMap::new());
        assert_eq!(probe.client.stack_to_tap_ns, 2);
        assert_eq!(probe.path.down, Way { rate: 100_000_000, delay_ns: 5, ..Way::default() });
        assert_eq!(Measured::asked(&plan, 1).asked_rtt_ns, 9);
        let sends = Step::Write { bytes: 2_500_000, chunk: 65_536, pause_ns: 0 };
        assert_eq!(probe.flows[1].server[0], sends, "a fifth of a second");
    }

    #[test]
    fn figures_come_from_the_applications_log() {
        let run = tempfile::tempdir().expect("a folder");
        let line = |who: &str, flow, step: &str, from, to, bytes| {
            format!(
                "{{\"who\":\"{who}\",\"flow\":{flow},\"connection\":1,\"step\":\"{step}\",\"from\":{from},\"to\":{to},\"bytes\":{bytes}}}\n"
            )
        };
        let text = [
            line("client", 0, "write", 100, 110, 64),
            line("client", 0, "read", 110, 6_500_100, 64),
            line("client", 0, "write", 7_000_000, 7_000_010, 64),
            line("client", 0, "read", 7_000_010, 13_000_000, 64),
            line("client", 1, "read", 0, 1_000_000, 1448),
            line("client", 1, "read", 0, 2_000_000, 1448),
            line("client", 1, "read", 0, 9_000_000, 0),
        ];
        fs::write(run.path().join(folder::APPLICATIONS), text.concat()).expect("written");
        let mut measured = Measured::default();
        measured.read(run.path(), 1);
        assert_eq!(measured.rtt_ns, Some(6_000_000));
        assert_eq!(measured.rate_bps, Some(1514 * 8 * 1000), "the second half took a millisecond");
    }
}
