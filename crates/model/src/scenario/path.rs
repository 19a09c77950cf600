//! `[path]`: both ways together, each alone, and changes over time.
//!
//! What is said for one way is above what is said for both. A change starts from the path as
//! it is then. A queue given in multiples of the bandwidth-delay product becomes bytes at once,
//! with the rate and the round trip of that moment, and stays: a router's memory does not grow
//! when a link slows down.

use super::bucket::bucket;
use super::error::{Place, ScenarioError, shown};
use super::keys::{CHANGE, PATH, WAY};
use super::plan::{Change, Cross, Loss, Overhead, Path, Queue, Way};
use super::section::Section;
use super::tree::Node;
use super::units::{Quantity, thousandths};

/// Reads the path; `taps_ns` is what the hosts add to the round trip.
pub(super) fn read(node: Option<&Node>, taps_ns: u64) -> Result<Path, ScenarioError> {
    let section = Section::open("path", PATH, node)?;
    let mut state = State { taps_ns, ..State::default() };
    state.apply(&section)?;
    state.settle()?;
    let mut path = Path { down: state.down.clone(), up: state.up.clone(), changes: Vec::new() };
    for node in section.list("changes")? {
        let change = Section::open("path.changes", CHANGE, Some(node))?;
        let at_ns = change.number("at")?.ok_or_else(|| {
            ScenarioError::new(&node.place, "a change needs `at`, as `at = \"2s\"`")
        })?;
        let (down, up) = (state.down.clone(), state.up.clone());
        state.apply(&change)?;
        state.settle()?;
        path.changes.push(Change {
            at_ns,
            down: (state.down != down).then(|| state.down.clone()),
            up: (state.up != up).then(|| state.up.clone()),
        });
    }
    if !path.changes.is_sorted_by_key(|change| change.at_ns) {
        let what = "`path.changes` must be in order of `at`: each starts from the one before";
        return Err(ScenarioError::new(section.place("changes"), what));
    }
    Ok(path)
}

/// The path at a moment.
#[derive(Default)]
struct State {
    taps_ns: u64,
    down: Way,
    up: Way,
    /// Queues to be settled once rate and delay are known: multiples of the product, in thousandths.
    multiples: [Option<(Place, u64)>; 2],
}

impl State {
    fn apply(&mut self, section: &Section<'_>) -> Result<(), ScenarioError> {
        if let Some(rtt) = section.number("rtt")? {
            self.down.delay_ns = rtt / 2;
            self.up.delay_ns = rtt - rtt / 2;
        }
        for way in [0, 1] {
            self.apply_way(way, section)?;
        }
        for (way, name) in ["down", "up"].into_iter().enumerate() {
            let section = Section::open(section.name(name), WAY, section.node(name))?;
            if let Some(delay) = section.number("delay")? {
                self.way(way).delay_ns = delay;
            }
            self.apply_way(way, &section)?;
        }
        Ok(())
    }

    fn way(&mut self, way: usize) -> &mut Way {
        if way == 0 { &mut self.down } else { &mut self.up }
    }

    fn apply_way(&mut self, at: usize, section: &Section<'_>) -> Result<(), ScenarioError> {
        if section.has("rate") && section.has("bucket") {
            let what = "a link has a `rate` or a `bucket`, not both: the bucket has its own rate";
            return Err(ScenarioError::new(section.place("bucket"), what));
        }
        if let Some((place, text)) = section.text("rate")? {
            let way = self.way(at);
            way.rate = rate(&text).map_err(|e| error(section, "rate", place, &e))?;
            way.bucket = None;
        }
        if let Some(bucket) = bucket(section, "bucket")? {
            let way = self.way(at);
            way.bucket = Some(bucket);
            way.rate = 0;
        }
        if let Some((place, text)) = section.text("queue")? {
            match queue(&text).map_err(|e| error(section, "queue", place, &e))? {
                Room::Of(queue) => {
                    self.way(at).queue = queue;
                    self.multiples[at] = None;
                }
                Room::Bdp(thousandths) => {
                    self.multiples[at] = Some((place.clone(), thousandths));
                }
            }
        }
        let way = self.way(at);
        if let Some((place, text)) = section.text("loss")? {
            way.loss = loss(&text).map_err(|e| error(section, "loss", place, &e))?;
        }
        if let Some((place, text)) = section.text("reorder")? {
            (way.reorder, way.reorder_ns) =
                reorder(&text).map_err(|e| error(section, "reorder", place, &e))?;
        }
        if let Some((place, text)) = section.text("overhead")? {
            way.overhead = overhead(&text).map_err(|e| error(section, "overhead", place, &e))?;
        }
        if let Some((place, text)) = section.text("cross")? {
            way.cross = cross(&text).map_err(|e| error(section, "cross", place, &e))?;
        }
        way.mtu = section.number("mtu")?.map(|mtu| mtu as u32).or(way.mtu);
        if section.has("black_hole") {
            way.black_hole = section.switch("black_hole")?;
        }
        let keep = |own: u64, said: Option<u64>| said.unwrap_or(own);
        way.jitter_ns = keep(way.jitter_ns, section.number("jitter")?);
        way.duplicate = keep(u64::from(way.duplicate), section.number("duplicate")?) as u32;
        way.corrupt = keep(u64::from(way.corrupt), section.number("corrupt")?) as u32;
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ScenarioError> {
        let rtt_ns = self.down.delay_ns + self.up.delay_ns + self.taps_ns;
        for at in [0, 1] {
            let Some((place, thousandths)) = self.multiples[at].take() else { continue };
            let way = self.way(at);
            let rate = way.bucket.map_or(way.rate, |bucket| bucket.rate);
            if rate == 0 {
                let what = "a queue in `bdp` needs a `rate`: without one there is no such product";
                return Err(ScenarioError::new(&place, what));
            }
            let bytes = u128::from(rate) * u128::from(rtt_ns) * u128::from(thousandths)
                / (8 * 1_000_000_000 * 1_000);
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).clamp(LEAST_QUEUE, GREATEST_QUEUE);
            way.queue = Queue::Bytes(bytes);
        }
        Ok(())
    }
}

fn error(section: &Section<'_>, key: &str, place: &Place, what: &str) -> ScenarioError {
    ScenarioError::new(place, format!("`{}`: {what}", section.name(key)))
}

fn rate(text: &str) -> Result<u64, String> {
    if text == "unlimited" {
        return Ok(0);
    }
    let rate = Quantity::Rate.read(text).map_err(|e| format!("{e}, or \"unlimited\""))?;
    if (8..=GREATEST_RATE).contains(&rate) {
        Ok(rate)
    } else {
        let (shown, most) = (Quantity::Rate.write(rate), Quantity::Rate.write(GREATEST_RATE));
        Err(format!("{shown} is out of range; it goes from 8bit to {most}, or \"unlimited\""))
    }
}

enum Room {
    Of(Queue),
    /// Thousandths of the bandwidth-delay product.
    Bdp(u64),
}

fn queue(text: &str) -> Result<Room, String> {
    let text = text.trim();
    match text {
        "endless" | "none" => return Ok(Room::Of(Queue::Endless)),
        "fq_codel" => return Ok(Room::Of(Queue::FqCodel)),
        _ => {}
    }
    if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
        let packets = number.trim().parse::<u64>().ok().filter(|n| (1..=10_000_000).contains(n));
        let packets = packets.ok_or("a queue holds 1 to 10000000 packets")?;
        return Ok(Room::Of(Queue::Packets(packets)));
    }
    if let Some(number) = text.strip_suffix("bdp") {
        let multiple = thousandths(number.trim()).filter(|n| (1..=1_000_000).contains(n));
        return multiple
            .map(Room::Bdp)
            .ok_or_else(|| "write a multiple as \"1.5 bdp\", from 0.001 to 1000".to_owned());
    }
    let bytes = Quantity::Size
        .read(text)
        .map_err(|e| format!("{e}, \"50 packets\", \"1.5 bdp\", \"fq_codel\" or \"endless\""))?;
    if (LEAST_QUEUE..=GREATEST_QUEUE).contains(&bytes) {
        Ok(Room::Of(Queue::Bytes(bytes)))
    } else {
        Err(format!(
            "{bytes}B is out of range: a queue holds at least one packet of {LEAST_QUEUE}B, and at most 4GiB"
        ))
    }
}

/// A drop-tail queue at a host.
pub(super) fn fifo(text: &str) -> Result<Queue, String> {
    match queue(text) {
        Ok(Room::Of(queue @ (Queue::Bytes(_) | Queue::Packets(_)))) => Ok(queue),
        _ => Err(format!(
            "write it as \"fifo 1000 packets\" (1 to 10000000) or \"fifo 30kB\" ({LEAST_QUEUE}B to 4GiB)"
        )),
    }
}

fn loss(text: &str) -> Result<Loss, String> {
    let words: Vec<_> = text.split_whitespace().collect();
    match *words.as_slice() {
        ["none" | "0"] => Ok(Loss::None),
        ["burst", enter, leave] => {
            Ok(Loss::Gilbert { enter: share(enter)?, leave: share(leave)?, bad: 1_000_000 })
        }
        ["burst", enter, leave, bad] => {
            Ok(Loss::Gilbert { enter: share(enter)?, leave: share(leave)?, bad: share(bad)? })
        }
        ["exact", ref numbers @ ..] if !numbers.is_empty() => {
            let numbers: Option<Vec<u64>> = numbers
                .iter()
                .map(|n| n.trim_end_matches(',').parse().ok().filter(|n| *n > 0))
                .collect();
            let mut numbers = numbers.ok_or("packets are counted from 1, as \"exact 3 7 8\"")?;
            numbers.sort_unstable();
            numbers.dedup();
            Ok(Loss::Exact(numbers))
        }
        _ => match share(text)
            .map_err(|why| format!("{why}, \"burst 0.2% 25%\", \"exact 3 7 8\" or \"none\""))?
        {
            0 => Ok(Loss::None),
            share => Ok(Loss::Random(share)),
        },
    }
}

fn overhead(text: &str) -> Result<Overhead, String> {
    if matches!(text.trim(), "none" | "0") {
        return Ok(Overhead::default());
    }
    let (size, atm) = match text.trim().strip_suffix("atm") {
        Some(size) => (size.trim(), true),
        None => (text.trim(), false),
    };
    let bytes = if size.is_empty() { Ok(0) } else { Quantity::Size.read(size) };
    let bytes = bytes.ok().filter(|bytes| *bytes <= GREATEST_OVERHEAD);
    bytes.map(|bytes| Overhead { bytes: bytes as u32, atm }).ok_or_else(|| {
        format!("write bytes a packet as \"24B\" (at most {GREATEST_OVERHEAD}), with cells as \"8B atm\", or \"none\"")
    })
}

fn cross(text: &str) -> Result<Option<Cross>, String> {
    if matches!(text.trim(), "none" | "0") {
        return Ok(None);
    }
    let (rate, size) = text.split_once(" by ").unwrap_or((text, "1514B"));
    let rate = Quantity::Rate.read(rate).ok().filter(|r| (LEAST_CROSS..=GREATEST_RATE).contains(r));
    let bytes = Quantity::Size.read(size).ok().filter(|bytes| (60..=65_535).contains(bytes));
    let cross = rate.zip(bytes).map(|(rate, bytes)| Cross { rate, bytes: bytes as u32 });
    cross.map(Some).ok_or_else(|| {
        "write it as \"5mbit\", as \"5mbit by 200B\" (1kbit and more; frames of 60B to 65535B) or \"none\""
            .to_owned()
    })
}

/// A share of packets, or what is wrong with it and how to write one.
fn share(word: &str) -> Result<u32, String> {
    ppm(word).ok_or_else(|| {
        let is_too_much = Quantity::Share.read(word).is_ok();
        let wrong = if is_too_much { "is more than all" } else { "is no share" };
        format!("`{}` {wrong}; write it as \"1%\"", shown(word))
    })
}

fn reorder(text: &str) -> Result<(u32, u64), String> {
    if matches!(text.trim(), "none" | "0") {
        return Ok((0, 0));
    }
    let parts = text.split_once(" by ").and_then(|(share, time)| {
        let time = Quantity::Time.read(time).ok().filter(|ns| *ns <= 10_000_000_000);
        Some((ppm(share.trim())?, time?))
    });
    parts.ok_or_else(|| "write it as \"2% by 4ms\" (at most 10s) or \"none\"".to_owned())
}

fn ppm(text: &str) -> Option<u32> {
    Quantity::Share.read(text).ok().filter(|share| *share <= 1_000_000).map(|share| share as u32)
}

/// One full Ethernet frame: a shorter queue would pass nothing.
const LEAST_QUEUE: u64 = 1514;

/// Ours: 4 GiB, more than any router's memory for one port.
const GREATEST_QUEUE: u64 = 4 << 30;

/// Ours: no layer below IP adds more.
const GREATEST_OVERHEAD: u64 = 1000;

/// Ours: less is no traffic.
const LEAST_CROSS: u64 = 1000;

/// Ours: a terabit is beyond what any backend can emulate.
const GREATEST_RATE: u64 = 1_000_000_000_000;
