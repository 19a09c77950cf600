//! Output of tools as people paste it into tickets, read as a part of a snapshot.
//!
//! A text holds what several commands printed, in any order, with prompts, remarks and gaps between, and
//! may end in the middle. The content of a line alone tells what it is: it begins a block (`Ring parameters for
//! eth0:`), goes on with the open one, or means something by itself (`net.ipv4.tcp_sack = 1`). A prompt with a
//! command ends a block and gives what the output does not name, as the device of `ethtool -S`. A command twice makes
//! two looks.
//!
//! ```text
//! text -> lines -> a block or a line by itself -> Collected (readings of each source) -> looks -> Snapshot
//!         command   ss, links, ethtool, ..                                              collected
//! ```
//!
//! Nothing is guessed: what a tool does not print is `None`, what it rounds is rounded, a last line that
//! may be cut is not read, and a device that is nowhere named gets no numbers. What is not understood is
//! counted, and the first such lines are kept.
//!
//! Left out: JSON but for that of `ip -j link` and `ip -j addr`, classes and filters of tc, UDP and Unix sockets.

mod affinity;
mod bonding;
mod collected;
mod command;
mod counters;
mod dev;
mod elsewhere;
mod ethtool;
mod features;
mod hosts;
mod ifconfig;
mod json;
mod links;
mod log;
mod looks;
mod looped;
mod machine;
mod marks;
mod memory;
mod names;
mod notes;
mod proc_tcp;
pub(crate) mod programs;
pub(crate) mod qdiscs;
mod routes;
mod sentences;
mod settings;
mod sockets;
mod speed_test;
pub mod ss;
mod states;
#[cfg(test)]
mod tests;
mod unwrap;

use super::snapshot::{Look, Snapshot};
use collected::Collected;
use command::Command;
pub use hosts::{Host, Part, hosts};
use marks::{harmless, is_remark, unquoted};
#[cfg(test)]
use notes::KEPT;
pub use notes::{Note, Notes};
use tcpwhy_words::printed::stamp;
use unwrap::{Unwrapped, Whole};

/// The longest line that is read. Ours: a socket with all its details takes under 2 KiB, a line of
/// `/proc/interrupts` on 512 processors 6 KiB.
const LONGEST_LINE: usize = 64 * 1024;
/// The longest of JSON, which has all interfaces on a line. Ours: one with all its counters takes 1.2 KiB.
const LONGEST_JSON: usize = 16 << 20;

/// This many lines without one that is known are no paste. Ours: more than anybody writes above what tools printed.
const LONGEST_LETTER: u64 = 100_000;

/// What was pasted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pasted {
    /// What it shows of the host.
    pub snapshot: Snapshot,
    /// How it was read.
    pub notes: Notes,
}

/// Tells whether a line is a packet of a listing: packets are explained elsewhere.
pub type IsPacket = fn(&str) -> bool;

/// Reads a pasted text without packets; of one whose lines begin with their hosts that of the first.
pub fn read(text: &str) -> Pasted {
    read_beside(text, |_| false)
}

/// Reads a pasted text with packets among its lines.
pub fn read_beside(text: &str, is_packet: IsPacket) -> Pasted {
    match elsewhere::prefixed(text) {
        Some(hosts) => read_all(hosts.iter().map(|(_, said)| said.as_str()).take(1), is_packet),
        None => read_all([text], is_packet),
    }
}

/// Whether there is output of a host's tools among the packets of a listing.
pub fn is_among_packets(text: &str, is_packet: IsPacket) -> bool {
    let mut rest = String::new();
    for line in text.split_inclusive('\n').filter(|line| !is_packet(line)) {
        rest.push_str(line);
    }
    !rest.trim().is_empty() && read(&rest).notes.read > 0
}

/// Reads texts of one host, one after the other.
fn read_all<'t>(texts: impl IntoIterator<Item = &'t str>, is_packet: IsPacket) -> Pasted {
    let mut reader = Reader::new(is_packet);
    for text in texts {
        reader.read_text(text);
    }
    if reader.has_packets {
        reader.notes.unknown = 0;
        reader.notes.first.retain(|note| note.why.is_some());
    }
    let mut snapshot = reader.collected.into_snapshot();
    let backwards = !tell_times_once(&mut snapshot.looks);
    Pasted { snapshot, notes: Notes { backwards, ..reader.notes } }
}

/// A date that is above several readings is the time of the first only; false where dates go back.
fn tell_times_once(looks: &mut [Look]) -> bool {
    let mut latest = None;
    for look in looks {
        if look.t_ns.is_some() && look.t_ns < latest {
            return false;
        }
        if look.t_ns == latest {
            look.t_ns = None;
        }
        latest = look.t_ns.or(latest);
    }
    true
}

/// The longest line that is read.
fn longest(line: &str) -> usize {
    if json::is_json(line) { LONGEST_JSON } else { LONGEST_LINE }
}

const CUT: &str =
    "the text ends within this line, and a number may lack digits; end it with a new line";

/// Whether a line has a number beside other words that would be the seconds since 1970: counters have ten digits, too.
fn may_be_a_count(text: &str) -> bool {
    let is_long = |word: &str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_digit());
    text.split_whitespace().any(is_long) && text.split_whitespace().count() > 1
}

/// Whether a line that the text ends in may be longer: its last character is part of a word or number.
fn may_go_on(line: &str) -> bool {
    line.chars().next_back().is_some_and(char::is_alphanumeric)
}

/// One line, without the marks of a quotation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    number: u64,
    /// Without blanks at its end; those at its start mean something.
    raw: &'a str,
    /// Without blanks around it.
    text: &'a str,
}

impl Line<'_> {
    fn is_indented(&self) -> bool {
        self.raw.starts_with([' ', '\t'])
    }
}

/// The output that is being read.
#[derive(Debug, Default)]
enum Block {
    #[default]
    None,
    /// Values of these settings, one a line: `cat /proc/sys/..`, `sysctl -n`.
    Values(Vec<String>),
    /// A file that sets keys.
    SettingFile(settings::File),
    Sockets(sockets::Table),
    Summary,
    Sentences(Option<&'static str>),
    Pairs(counters::Heads),
    Ethtool(ethtool::Block),
    Link(links::Block),
    Ifconfig(ifconfig::Block),
    Qdisc,
    /// A class of tc, whose lines look like those of a qdisc.
    Class,
    Softnet,
    Interrupts(machine::Columns),
    Affinity(affinity::Asked),
    Bond,
    Memory(memory::Columns),
    Meminfo,
    /// `/proc/net/dev`.
    Dev,
    States,
    Service(machine::Service),
    CallTable(programs::Table),
    SpeedTest,
    Route,
}

#[derive(Debug)]
struct Reader {
    is_packet: IsPacket,
    collected: Collected,
    block: Block,
    command: Command,
    notes: Notes,
    /// Some of it are packets, and the rest a letter about them.
    has_packets: bool,
}

/// What became of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Taken {
    /// It was read, or is known to say nothing that is wanted.
    Read,
    /// It was read, and contradicts a line above.
    ReadBut(String),
    /// It belongs to a known output, but cannot be used.
    Useless(String),
    No,
}

impl Reader {
    fn new(is_packet: IsPacket) -> Self {
        Self {
            is_packet,
            collected: Collected::default(),
            block: Block::None,
            command: Command::default(),
            notes: Notes::default(),
            has_packets: false,
        }
    }

    /// A whole text: what is open at its end ends there.
    fn read_text(&mut self, text: &str) {
        self.block = Block::None;
        self.command = Command::default();
        self.collected.begin_text(ss::star_is_v4(text));
        for Whole { number, text, is_ended } in Unwrapped::new(text) {
            if number > LONGEST_LETTER && self.notes.read == 0 {
                break;
            }
            match text.as_ref() {
                cut if !is_ended && may_go_on(cut) => {
                    self.notes.remark(number, cut, Some(CUT.to_owned()));
                }
                long if long.len() > longest(long) => self.notes.unknown(number, long),
                raw => self.read_line(number, raw),
            }
        }
    }

    fn read_line(&mut self, number: u64, raw: &str) {
        let raw = harmless(raw);
        let raw = unquoted(&raw).trim_end();
        let line = Line { number, raw, text: raw.trim() };
        self.collected.line = number;
        if line.text.is_empty() {
            return;
        }
        if let Some(command) = Command::of(line.text) {
            self.on_command(command);
            return;
        }
        if programs::line(raw, &mut self.collected) {
            self.notes.read += 1;
            return;
        }
        let stamp = stamp::of_line(line.text);
        if let Some(stamp) = stamp
            && !may_be_a_count(line.text)
        {
            self.collected.at(stamp);
            return;
        }
        let mut taken = self.begin(line);
        if taken == Taken::No {
            taken = self.go_on(line);
        }
        if taken == Taken::No
            && let Some(stamp) = stamp
        {
            self.collected.at(stamp);
            return;
        }
        if matches!(taken, Taken::No | Taken::Useless(_))
            && let Block::Sockets(table) = &mut self.block
        {
            table.doubt(&mut self.collected);
        }
        match taken {
            Taken::Read => self.notes.read += 1,
            Taken::ReadBut(why) => self.notes.differs(number, line.text, why),
            Taken::Useless(why) => self.notes.remark(number, line.text, Some(why)),
            Taken::No if is_remark(line.text) || log::is_of_log(line.text) => {}
            // Packets are explained elsewhere.
            Taken::No if (self.is_packet)(raw) => self.has_packets = true,
            Taken::No => self.notes.unknown(number, line.text),
        }
    }

    fn on_command(&mut self, command: Command) {
        self.collected.shows_some_lines = command.shows_some_lines();
        self.collected.sets = settings::sets(&command);
        self.notes.hosts.extend(command.host.clone());
        self.block = match settings::asked_by(&command) {
            settings::Asked::Values(keys) => Block::Values(keys),
            settings::Asked::File(file) => Block::SettingFile(file),
            settings::Asked::Nothing if command.is_netstat_s() => Block::Sentences(None),
            settings::Asked::Nothing => match affinity::asked_by(&command) {
                Some(asked) => Block::Affinity(asked),
                None => ethtool::asked_by(&command).map_or(Block::None, Block::Ethtool),
            },
        };
        self.command = command;
    }

    /// Lines that say by themselves what they are.
    fn begin(&mut self, line: Line<'_>) -> Taken {
        let collected = &mut self.collected;
        let table = match &self.block {
            Block::Sockets(table) => Some(table),
            _ => None,
        };
        if let Some((table, taken)) = sockets::begin(line, &self.command, table, collected) {
            self.block = Block::Sockets(table);
            return taken;
        }
        if let Some(taken) = qdiscs::begin(line, &self.command, collected) {
            self.block = if taken == Taken::Read { Block::Qdisc } else { Block::Class };
            return taken;
        }
        let counts_states = matches!(self.block, Block::States);
        let begun = if let Some(block) = ethtool::begin(line, &self.command, collected) {
            Block::Ethtool(block)
        } else if let Some(block) = links::begin(line, collected) {
            Block::Link(block)
        } else if let Some(block) = ifconfig::begin(line, collected) {
            Block::Ifconfig(block)
        } else if let Some(block) = of_proc(line.text, &self.block, collected) {
            block
        } else if bonding::begin(line, &self.command, collected) {
            Block::Bond
        } else if let Some(asked) = affinity::header(line.text) {
            Block::Affinity(asked)
        } else if let Some(columns) = memory::head(line.text) {
            Block::Memory(columns)
        } else if let Some(table) = programs::table(line.text, &self.command, collected) {
            Block::CallTable(table)
        } else if speed_test::line(line.text, collected) {
            Block::SpeedTest
        } else if let Some(service) = machine::service(line.text) {
            Block::Service(service)
        } else if states::line(line.text, counts_states, collected) {
            Block::States
        } else if let Some(file) = settings::File::of_header(line.text) {
            Block::SettingFile(file)
        } else if machine::summary(line.text, collected) {
            Block::Summary
        } else if qdiscs::is_class(line.text) {
            Block::Class
        } else if let Some(group) = sentences::group(line) {
            Block::Sentences(Some(group))
        } else {
            return self.begin_line(line);
        };
        self.block = begun;
        Taken::Read
    }

    /// Lines that stand for themselves, or in pairs.
    fn begin_line(&mut self, line: Line<'_>) -> Taken {
        let collected = &mut self.collected;
        if log::line(line.text, collected) {
            return Taken::Read;
        }
        if let Some(taken) = json::line(line.text, collected) {
            return taken;
        }
        if let Block::SettingFile(file) = &mut self.block
            && let Some(taken) = file.line(line, collected)
        {
            return taken;
        }
        if let Block::Values(keys) = &mut self.block
            && let Some(taken) = settings::value(line.text, keys, collected)
        {
            return taken;
        }
        if let Some(taken) = settings::line(line.text, collected) {
            return taken;
        }
        if let Block::Affinity(asked) = &mut self.block
            && asked.value(line.text, &self.command, collected)
        {
            return Taken::Read;
        }
        if machine::sockstat(line.text, collected)
            || affinity::line(line.text, collected)
            || machine::kernel(line.text, &self.command, collected)
            || routes::metrics(line.text, collected)
            || counters::nstat(line.text, collected)
        {
            return Taken::Read;
        }
        if routes::route(line, &self.command, collected) {
            self.block = Block::Route;
            return Taken::Read;
        }
        let heads = match &mut self.block {
            Block::Pairs(heads) => Some(heads),
            _ => None,
        };
        if let Some((heads, taken)) = counters::pairs(line.text, heads, collected) {
            self.block = Block::Pairs(heads);
            return taken;
        }
        Taken::No
    }

    /// Lines that mean something only below others.
    fn go_on(&mut self, line: Line<'_>) -> Taken {
        let collected = &mut self.collected;
        let sentence = |group, collected: &mut Collected| {
            sentences::line(line.text, group, collected).then_some(Taken::Read)
        };
        let taken = match &mut self.block {
            Block::Sockets(table) => sockets::go_on(line, table, collected),
            Block::Summary => machine::summary_row(line.text, collected),
            Block::Sentences(group) => sentence(*group, collected),
            Block::Ethtool(block) => block.line(line, collected),
            Block::Link(block) => block.line(line, collected),
            Block::Ifconfig(block) => block.line(line, collected),
            Block::Qdisc => qdiscs::go_on(line, collected),
            Block::Class => line.is_indented().then_some(Taken::Read),
            Block::Interrupts(columns) => columns.line(line.text, collected),
            Block::Route => routes::go_on(line, collected),
            Block::Bond => bonding::line(line, collected),
            Block::Dev => dev::row(line.text, collected),
            Block::CallTable(table) => table.line(line.text, collected).then_some(Taken::Read),
            Block::Memory(columns) => columns.line(line.text, &self.command, collected),
            Block::Service(service) => service.line(line.text, collected).then_some(Taken::Read),
            Block::None
            | Block::Values(_)
            | Block::SettingFile(_)
            | Block::Pairs(_)
            | Block::Affinity(_)
            | Block::States
            | Block::Meminfo
            | Block::SpeedTest
            | Block::Softnet => None,
        };
        if let Some(taken) = taken.or_else(|| sentence(None, collected)) {
            return taken;
        }
        if machine::noise(line.text) {
            let dev = self.command.ethtool_device();
            if dev.is_some() {
                collected.could_not("ethtool", dev, line.text);
            }
            return Taken::Read;
        }
        Taken::No
    }
}

/// The beginning of a file of `/proc`, or a row that needs none.
fn of_proc(text: &str, open: &Block, collected: &mut Collected) -> Option<Block> {
    if let Some(columns) = machine::interrupts(text, collected) {
        return Some(Block::Interrupts(columns));
    }
    if !matches!(open, Block::Interrupts(_))
        && let Some(columns) = machine::interrupts_of_device(text, collected)
    {
        return Some(Block::Interrupts(columns));
    }
    if memory::meminfo(text, matches!(open, Block::Meminfo), collected).is_some() {
        return Some(Block::Meminfo);
    }
    if machine::softnet(text, matches!(open, Block::Softnet), collected) {
        return Some(Block::Softnet);
    }
    dev::head(text).then_some(Block::Dev)
}
