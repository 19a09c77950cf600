//! `ethtool DEV` and its `-a -c -g -i -l -S`; offloads (`-k`) are in `features`.
//!
//! Each output begins with a line that names its device, but statistics (`-S`) and drivers (`-i`) do not:
//! theirs is in the command. Statistics without it are of an interface without a name; each such block is of
//! another one, for nothing says that it is the same. `n/a` is not seen.

use std::collections::BTreeSet;

use super::collected::{Collected, Counted};
use super::command::{Command, is_device};
use super::features;
use super::{Line, Taken};
use crate::snapshot::{Link, Ring};

/// What is being read, and from which device.
#[derive(Debug)]
pub(super) struct Block {
    dev: Option<String>,
    part: Part,
    /// Under `Pre-set maximums:`.
    maximums: bool,
    /// A reading of statistics is begun.
    counts: bool,
}

#[derive(Debug)]
enum Part {
    Ring,
    Channels,
    Pause,
    Coalesce,
    Features,
    Statistics,
    Driver,
    Settings(Modes),
    /// Something else of ethtool's.
    Other,
}

/// Link modes that both ends advertise.
#[derive(Debug, Default)]
struct Modes {
    ours: BTreeSet<u64>,
    theirs: BTreeSet<u64>,
    list: List,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum List {
    #[default]
    Neither,
    Ours,
    Theirs,
}

/// What follows a command that shows only some lines: of statistics the first may be missing.
pub(super) fn asked_by(command: &Command) -> Option<Block> {
    let statistics = command.has("ethtool", 'S')
        || command
            .arguments("ethtool")
            .is_some_and(|words| words.iter().any(|word| word == "--statistics"));
    let dev = command.ethtool_device().filter(|_| statistics && command.shows_some_lines())?;
    let dev = Some(dev.to_owned());
    Some(Block { dev, part: Part::Statistics, maximums: false, counts: false })
}

/// The line that an output begins with.
pub(super) fn begin(line: Line<'_>, command: &Command, collected: &mut Collected) -> Option<Block> {
    let asked = || command.ethtool_device().map(str::to_owned);
    let block = |dev, part| Some(Block { dev, part, maximums: false, counts: false });
    if line.text == "NIC statistics:" {
        let dev = asked().or_else(|| Some(collected.unnamed_interface()));
        let mut block = block(dev, Part::Statistics)?;
        block.begin_counts(collected);
        return Some(block);
    }
    if line.text.starts_with("driver: ") && command.arguments("ethtool").is_some() {
        let begun = Block { dev: asked(), part: Part::Driver, maximums: false, counts: false };
        begun.driver(line.text, collected);
        return Some(begun);
    }
    let (title, dev) = line.text.strip_suffix(':')?.split_once(" for ")?;
    if !is_device(dev) {
        return None;
    }
    let part = match title {
        "Ring parameters" => Part::Ring,
        "Channel parameters" => Part::Channels,
        "Pause parameters" => Part::Pause,
        "Coalesce parameters" => Part::Coalesce,
        "Features" | "Offload parameters" => Part::Features,
        "Settings" => Part::Settings(Modes::default()),
        "Standard stats"
        | "Time stamping parameters"
        | "FEC parameters"
        | "EEE settings"
        | "Private flags"
        | "RX flow hash indirection table" => Part::Other,
        _ => return None,
    };
    collected.link(dev);
    block(Some(dev.to_owned()), part)
}

impl Collected {
    /// The name of an interface that nothing names: no kernel would take it, so it comes into no command.
    pub(super) fn unnamed_interface(&mut self) -> String {
        self.unnamed = self.unnamed.saturating_add(1);
        match self.unnamed {
            1 => "an interface without a name".to_owned(),
            nth => format!("interface without a name, number {nth}"),
        }
    }
}

impl Block {
    fn begin_counts(&mut self, collected: &mut Collected) {
        let Some(dev) = self.dev.as_deref().filter(|_| !self.counts) else { return };
        self.counts = true;
        let (now, some) = (collected.now, collected.shows_some_lines);
        collected.link(dev).driver_counters_cut |= some;
        collected.driver_counts.entry(dev.to_owned()).or_default().push(now, Counted::new());
    }

    /// A line below the first.
    pub(super) fn line(&mut self, line: Line<'_>, collected: &mut Collected) -> Option<Taken> {
        let text = line.text;
        match text {
            "Pre-set maximums:" => self.maximums = true,
            "Current hardware settings:" => self.maximums = false,
            _ if matches!(self.part, Part::Driver) => self.driver(text, collected),
            _ => return self.field(text, collected),
        }
        Some(Taken::Read)
    }

    fn field(&mut self, text: &str, collected: &mut Collected) -> Option<Taken> {
        let maximums = self.maximums;
        if matches!(self.part, Part::Statistics) {
            let (_, value) = text.split_once(':')?;
            value.trim().parse::<u64>().ok()?;
            self.begin_counts(collected);
        }
        if let Part::Settings(modes) = &mut self.part {
            let link = collected.link(self.dev.as_deref()?);
            return modes.line(text, link).then_some(Taken::Read);
        }
        let (name, value) = text.split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        let Some(dev) = self.dev.as_deref() else {
            value.parse::<u64>().ok()?;
            let why = "only the command says which interface it is of, and that is not here";
            return Some(Taken::Useless(why.to_owned()));
        };
        match self.part {
            Part::Statistics => {
                let counts = collected.driver_counts.get_mut(dev)?.last()?;
                counts.insert(name.to_owned(), value.parse().ok()?);
            }
            Part::Features => {
                let (on, rest) = value.split_once(' ').unwrap_or((value, ""));
                features::line(collected.link(dev), name, on, rest).then_some(())?;
            }
            Part::Ring => ring(collected.link(dev), name, value, maximums),
            Part::Channels => channels(collected.link(dev), name, value, maximums),
            Part::Pause => pause(collected.link(dev), name, value),
            Part::Coalesce => coalesce(collected.link(dev), name, value),
            Part::Driver | Part::Settings(_) | Part::Other => {}
        }
        Some(Taken::Read)
    }

    fn driver(&self, text: &str, collected: &mut Collected) {
        if let (Some(dev), Some(name)) = (&self.dev, text.strip_prefix("driver: ")) {
            collected.link(dev).driver = Some(name.trim().to_owned());
        }
    }
}

fn ring(link: &mut Link, name: &str, value: &str, maximums: bool) {
    let ring = link.ring.get_or_insert_with(Ring::default);
    let field = match (name, maximums) {
        ("RX", false) => &mut ring.rx,
        ("RX", true) => &mut ring.rx_max,
        ("TX", false) => &mut ring.tx,
        ("TX", true) => &mut ring.tx_max,
        _ => return,
    };
    *field = value.parse().ok();
}

/// Combined channels serve a receive and a send queue each (ethtool(8), `-l`).
fn channels(link: &mut Link, name: &str, value: &str, maximums: bool) {
    let queues = link.queues.get_or_insert_default();
    let Ok(count) = value.parse::<u32>() else { return };
    match (name, maximums) {
        ("Combined", true) => queues.combined = Some([0, count]),
        ("Combined", false) => {
            let most = queues.combined.map_or(count, |[_, most]| most);
            queues.combined = Some([count, most]);
            queues.rx = Some(queues.rx.unwrap_or(0).saturating_add(count));
            queues.tx = Some(queues.tx.unwrap_or(0).saturating_add(count));
        }
        ("RX", false) => queues.rx = Some(count),
        ("TX", false) => queues.tx = Some(count),
        _ => {}
    }
}

fn pause(link: &mut Link, name: &str, value: &str) {
    let on = value == "on";
    let [sent, honoured] = link.pause.unwrap_or_default();
    match name {
        "RX" => link.pause = Some([sent, on]),
        "TX" => link.pause = Some([on, honoured]),
        _ => {}
    }
}

fn coalesce(link: &mut Link, name: &str, value: &str) {
    match name {
        "rx-usecs" => link.coalesce_rx_usecs = value.parse().ok(),
        // `Adaptive RX: off  TX: off`
        "Adaptive RX" => {
            link.coalesce_adaptive = match value.split_whitespace().next() {
                Some("on") => Some(true),
                Some("off") => Some(false),
                _ => None,
            };
        }
        _ => {}
    }
}

impl Modes {
    /// A line of `ethtool DEV`.
    fn line(&mut self, text: &str, link: &mut Link) -> bool {
        let Some((name, value)) = text.split_once(':') else {
            // Lists go on on lines of their own.
            let is_mode = text.contains("base") || matches!(text, "None" | "RS" | "BASER" | "OFF");
            if is_mode {
                self.add(text, link);
            }
            return is_mode;
        };
        let value = value.trim();
        self.list = match name {
            "Advertised link modes" => List::Ours,
            "Link partner advertised link modes" => List::Theirs,
            _ => List::Neither,
        };
        match name {
            "Speed" => {
                let mbit = value.strip_suffix("Mb/s").and_then(|number| number.parse::<u64>().ok());
                link.speed = mbit.map(|mbit| mbit.saturating_mul(1_000_000));
            }
            "Duplex" => {
                link.full_duplex = match value {
                    "Full" => Some(true),
                    "Half" => Some(false),
                    _ => None,
                };
            }
            // With a carrier the device is also up (net/ethtool/ioctl.c, `__ethtool_get_link`).
            "Link detected" if value == "yes" && link.flags_unseen => {
                (link.up, link.carrier, link.flags_unseen) = (true, true, false);
            }
            // Without one it may be down.
            "Link detected" if link.flags_unseen => link.carrier = false,
            _ => self.add(value, link),
        }
        true
    }

    /// `1000baseT/Full 10000baseT/Full`
    fn add(&mut self, text: &str, link: &mut Link) {
        let list = match self.list {
            List::Neither => return,
            List::Ours => &mut self.ours,
            List::Theirs => &mut self.theirs,
        };
        for word in text.split_whitespace() {
            let mbit = word.split_once("base").and_then(|(mbit, _)| mbit.parse::<u64>().ok());
            list.extend(mbit.map(|mbit| mbit.saturating_mul(1_000_000)));
        }
        link.speed_max = self.ours.intersection(&self.theirs).last().copied();
    }
}
