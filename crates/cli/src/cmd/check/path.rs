//! `tcpwhy check --path`: what a path asks of this host, and what the model makes of today's settings and better ones.

use std::fmt::Write as _;
use std::net::IpAddr;

use anyhow::{Context as _, bail};
use serde::Serialize;
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy::host::target::{Buffer, Needs, Taken, Target, needs};
use tcpwhy::host::{Asked, Change, Seen};
use tcpwhy::units::{BitRate, Bytes, Duration};
use tcpwhy_model::predict::Prediction;
use tcpwhy_model::profile::{KernelProfile, Version};
use tcpwhy_model::scenario::Scenario;
use tcpwhy_model::world::Kernels;

use super::CheckFlags;

/// The answer as text or JSON.
pub(super) fn answer(
    flags: &CheckFlags,
    peer: IpAddr,
    snapshot: &Snapshot,
) -> anyhow::Result<String> {
    let seen = Seen::new(snapshot).context("the snapshot holds no look at the host")?;
    let target = target(flags, peer, &seen)?;
    let needs = needs(&seen, &target);
    let kernel = kernel(snapshot);
    let foreseen = foreseen(&target, &needs, snapshot, kernel)?;
    if flags.json {
        return json(&target, &needs, &foreseen);
    }
    Ok(text(&target, &needs, kernel, &foreseen))
}

/// The path as it was described, else as the sockets to that peer show it.
fn target(flags: &CheckFlags, peer: IpAddr, seen: &Seen<'_>) -> anyhow::Result<Target> {
    let sockets =
        seen.sockets().unwrap_or_default().iter().filter(|socket| socket.remote.ip() == peer);
    let infos: Vec<_> = sockets.filter_map(|socket| socket.info.as_deref()).collect();
    let rtt = infos.iter().filter_map(|info| info.min_rtt_ns.or(info.rtt_ns)).min();
    let fastest = infos.iter().filter_map(|info| info.delivery_rate).max();
    let rate =
        flags.rate.as_ref().map(|rate| rate.bps).or(fastest.map(|rate| rate.saturating_mul(8)));
    let rtt_ns = flags.rtt.or(rtt);
    let (Some(rate), Some(rtt_ns)) = (rate, rtt_ns) else {
        bail!(
            "say what the path is like, as --rate 1gbit --rtt 20ms: no open connection to {peer} tells it"
        );
    };
    if rate == 0 || rtt_ns == 0 {
        bail!("a path has a rate and a round trip above 0");
    }
    Ok(Target { peer, rate, rtt_ns })
}

/// The kernel that the model takes for this one: the newest that it knows and that is not newer.
fn kernel(snapshot: &Snapshot) -> KernelProfile {
    let newest = KernelProfile::KNOWN[KernelProfile::KNOWN.len() - 1];
    let mut numbers = snapshot.kernel.as_deref().unwrap_or_default().split(['.', '-']);
    let number = |text: Option<&str>| text?.parse::<u16>().ok();
    let ran = number(numbers.next()).zip(number(numbers.next()));
    let version = ran.map_or(newest, |(major, minor)| {
        Version::new(major, minor).clamp(KernelProfile::KNOWN[0], newest)
    });
    KernelProfile::of(version)
}

/// What the model says of one direction.
#[derive(Clone, Debug, Serialize)]
struct Foreseen {
    /// `receiving` or `sending`.
    direction: &'static str,
    bytes: u64,
    today_ns: u64,
    /// With the changes; `None` where nothing of this direction is to be changed.
    proposed_ns: Option<u64>,
    #[serde(skip)]
    changes: Vec<Change>,
}

impl Foreseen {
    /// The changes bring what can be felt: a twentieth. Ours.
    fn gains(&self) -> bool {
        self.proposed_ns.is_some_and(|ns| ns <= self.today_ns / 20 * 19)
    }

    fn rate(&self, ns: u64) -> u64 {
        let rate = u128::from(self.bytes) * 8_000_000_000 / u128::from(ns.max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

fn foreseen(
    target: &Target,
    needs: &Needs,
    snapshot: &Snapshot,
    kernel: KernelProfile,
) -> anyhow::Result<Vec<Foreseen>> {
    let bytes = size(target);
    let mut all = Vec::new();
    for (direction, host, other) in
        [("receiving", "client", "net.ipv4.tcp_wmem"), ("sending", "server", "net.ipv4.tcp_rmem")]
    {
        let is_of_it = |change: &&Change| change.subject() != other;
        let changes: Vec<Change> = needs.changes.iter().filter(is_of_it).cloned().collect();
        let took = |changes: &[Change]| took(target, bytes, host, snapshot, changes, kernel);
        let proposed_ns = (!changes.is_empty()).then(|| took(&changes)).transpose()?;
        all.push(Foreseen { direction, bytes, today_ns: took(&[])?, proposed_ns, changes });
    }
    Ok(all)
}

/// What fills the path for five seconds and at least fifty round trips: the start does not count for much then. Ours.
fn size(target: &Target) -> u64 {
    let time_ns = u128::from(target.rtt_ns.saturating_mul(50).max(5_000_000_000));
    let bytes = u128::from(target.rate) * time_ns / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX).clamp(1 << 16, 2_000_000_000)
}

fn took(
    target: &Target,
    bytes: u64,
    host: &str,
    snapshot: &Snapshot,
    changes: &[Change],
    kernel: KernelProfile,
) -> anyhow::Result<u64> {
    let text = scenario(target, bytes, host, snapshot, changes);
    let scenario = Scenario::read("path", &text, &[]).context("the path cannot be modelled")?;
    let plan = scenario.plans(1).next().context("the path cannot be modelled")?;
    let prediction = Prediction::of(&plan, Kernels::both(kernel));
    Ok(prediction.context("the model cannot run these settings")?.time_ns)
}

/// Settings that decide how fast a transfer of ours goes, as far as the model has them.
const SETTINGS: [&str; 10] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_limit_output_bytes",
    "net.core.rmem_max",
    "net.core.wmem_max",
];

/// A transfer between this host, which is `host`, and a peer whose buffers have room for the path.
fn scenario(
    target: &Target,
    bytes: u64,
    host: &str,
    snapshot: &Snapshot,
    changes: &[Change],
) -> String {
    let queue = target.bdp_bytes().max(64 * 1514);
    let mut text = format!(
        "[path]\nrtt = \"{}ns\"\nrate = \"{}bit\"\nqueue = \"{queue}B\"\n[application]\ndownload = \"{bytes}B\"\n",
        target.rtt_ns, target.rate
    );
    let peer = if host == "client" { "server" } else { "client" };
    let room = target.bdp_bytes().saturating_mul(8).clamp(16 << 20, 1 << 30);
    let _ = writeln!(text, "[{peer}.sysctl.net.ipv4]\ntcp_rmem = \"4096 131072 {room}\"");
    let _ = writeln!(text, "tcp_wmem = \"4096 16384 {room}\"");
    let mut own = format!("[{host}.sysctl]\n");
    let settings = snapshot.settings.as_ref().map(|settings| &settings.values);
    for key in SETTINGS {
        let changed = changes.iter().find_map(|change| match change {
            Change::Sysctl { key: of, to, .. } if of == key => Some(to),
            _ => None,
        });
        if let Some(value) = changed.or_else(|| settings?.get(key)) {
            let _ = writeln!(own, "{key} = \"{value}\"");
        }
    }
    text + &own
}

fn text(target: &Target, needs: &Needs, kernel: KernelProfile, foreseen: &[Foreseen]) -> String {
    let mut text = String::new();
    let mut item = |label: &str, words: String| {
        let _ = writeln!(text, "  {label:<16} {words}");
    };
    let rtt = i64::try_from(target.rtt_ns).unwrap_or(i64::MAX);
    item("on the way", format!("{} fill it", Bytes(target.bdp_bytes())));
    item("route", route(&needs.route));
    item("remembered", remembered(needs));
    item("receiving", buffer(target, &needs.receive));
    item("sending", buffer(target, &needs.send));
    item(
        "window scale",
        match &needs.scale {
            Ok(scale) => format!(
                "{}: windows up to {}, {}",
                scale.shift,
                Bytes(scale.window),
                if scale.window < target.bdp_bytes() {
                    "too small for this path"
                } else {
                    "enough"
                }
            ),
            Err(missing) => format!("not seen: {missing}"),
        },
    );
    let head =
        format!("To {} at {}, round trip {}\n", target.peer, BitRate(target.rate), Duration(rtt));
    let _ = writeln!(
        text,
        "\nPredicted by a model of Linux {}, with a peer whose buffers have room and a queue of as much again",
        kernel.version
    );
    for each in foreseen {
        let _ = writeln!(text, "  {:<16} {}", each.direction, predicted(each));
    }
    let changes = gained(foreseen);
    if !changes.is_empty() {
        text += "\nWhat would help (for new connections; more memory for those that need it)\n";
    }
    for change in changes {
        let commands = change.commands();
        let _ = writeln!(text, "  do: {}", commands.apply);
        let _ = writeln!(text, "  undo: {}", commands.undo.unwrap_or_default());
    }
    head + &text
}

/// The changes that bring something, each once.
fn gained(foreseen: &[Foreseen]) -> Vec<&Change> {
    let gained = foreseen.iter().filter(|each| each.gains());
    let mut changes: Vec<&Change> = Vec::new();
    for change in gained.flat_map(|each| &each.changes) {
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    changes
}

fn predicted(each: &Foreseen) -> String {
    let said = |ns: u64| {
        let time = Duration(i64::try_from(ns).unwrap_or(i64::MAX));
        format!("{time} ({})", BitRate(each.rate(ns)))
    };
    let text = format!("{} in {}", Bytes(each.bytes), said(each.today_ns));
    match each.proposed_ns {
        Some(ns) if each.gains() => format!("{text}; with what is proposed {}", said(ns)),
        Some(_) => format!("{text}; larger buffers bring nothing"),
        None => text,
    }
}

fn route(route: &Asked<Option<Taken>>) -> String {
    match route {
        Ok(Some(taken)) => {
            let doubt = if taken.may_differ {
                "; rules may choose another: `ip route get` tells"
            } else {
                ""
            };
            format!("{}{doubt}", taken.route.line)
        }
        Ok(None) => "there is none: it cannot be reached".to_owned(),
        Err(missing) => format!("not seen: {missing}"),
    }
}

fn remembered(needs: &Needs) -> String {
    let metrics = match &needs.remembered {
        Ok(Some(metrics)) => metrics,
        Ok(None) => return "nothing of earlier connections".to_owned(),
        Err(missing) => return format!("not seen: {missing}"),
    };
    let mut told = Vec::new();
    told.extend(
        metrics.rtt_ns.map(|ns| format!("rtt {}", Duration(i64::try_from(ns).unwrap_or(i64::MAX)))),
    );
    told.extend(metrics.ssthresh.map(|segments| format!("ssthresh {segments}")));
    told.extend(
        metrics.cwnd.map(|segments| format!("cwnd {segments} (used only if the route locks it)")),
    );
    told.extend(metrics.reordering.map(|segments| format!("reordering {segments}")));
    told.extend(metrics.cookie.then(|| "a Fast Open cookie".to_owned()));
    if told.is_empty() { "a peer without figures".to_owned() } else { told.join(", ") }
}

fn buffer(target: &Target, buffer: &Asked<Buffer>) -> String {
    match buffer {
        Ok(buffer) => {
            let enough = if buffer.carries < target.bdp_bytes() {
                format!("too small: {} needed", Bytes(buffer.needed))
            } else {
                "enough".to_owned()
            };
            let Buffer { key, most, carries, .. } = buffer;
            format!(
                "{key} up to {}, good for {} on the way: {enough}",
                Bytes(*most),
                Bytes(*carries)
            )
        }
        Err(missing) => format!("not seen: {missing}"),
    }
}

/// The answer as programs read it.
#[derive(Serialize)]
struct Answer<'a> {
    format: &'static str,
    peer: IpAddr,
    rate: u64,
    rtt_ns: u64,
    bdp_bytes: u64,
    route: Option<&'a str>,
    receive: Option<Room>,
    send: Option<Room>,
    window_scale: Option<u8>,
    changes: Vec<Told>,
    predicted: &'a [Foreseen],
}

#[derive(Serialize)]
struct Room {
    key: &'static str,
    most: u64,
    carries: u64,
    needed: u64,
}

#[derive(Serialize)]
struct Told {
    apply: String,
    undo: Option<String>,
}

fn json(target: &Target, needs: &Needs, predicted: &[Foreseen]) -> anyhow::Result<String> {
    let room = |buffer: &Asked<Buffer>| {
        let Buffer { key, most, carries, needed } = *buffer.as_ref().ok()?;
        Some(Room { key, most, carries, needed })
    };
    let told = |change: &Change| {
        let commands = change.commands();
        Told { apply: commands.apply, undo: commands.undo }
    };
    let answer = Answer {
        format: "tcpwhy-check-path/1",
        peer: target.peer,
        rate: target.rate,
        rtt_ns: target.rtt_ns,
        bdp_bytes: target.bdp_bytes(),
        route: needs.route.as_ref().ok().and_then(Option::as_ref).map(|taken| &*taken.route.line),
        receive: room(&needs.receive),
        send: room(&needs.send),
        window_scale: needs.scale.as_ref().ok().map(|scale| scale.shift),
        changes: gained(predicted).into_iter().map(told).collect(),
        predicted,
    };
    serde_json::to_string_pretty(&answer).context("cannot write the answer as JSON")
}
