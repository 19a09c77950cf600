//! Reads the packet listings that `tcpdump` prints and people paste into tickets, and those of Wireshark,
//! `tshark` and `snoop`.
//!
//! A line at a time: `line` says what a line is, `rows` and `snoop` know the other programs, `segment` and
//! `options` read the TCP header, `numbers` turns relative sequence numbers back, `clock` places the times,
//! `names` gives addresses to names, `wrapped` joins what a mail program broke, and `packets` puts them
//! together. Here the lines are made:
//!
//! ```text
//! bytes -> lines -> wrapped lines joined -> packet (two lines with -v) -> numbers -> times -> Item
//! ```
//!
//! A paste is not only packets: prompts, remarks, dumps and figures stand between, lines are left
//! out, and several listings may follow one another. What is not understood is passed over or
//! counted; only a text without any packet is an error.
//!
//! Left out: the packet details of Wireshark and tshark; payload (a listing has none: lengths only);
//! packets that `-A` shows inside another packet's payload look like packets.

mod clock;
mod digits;
mod icmp;
mod line;
mod names;
mod numbers;
mod options;
mod packets;
mod rows;
mod said;
mod segment;
mod snoop;
mod stamp;
#[cfg(test)]
mod tests;
mod wrapped;

pub use clock::Clock;
pub use names::Names;

use clock::Timeline;

use numbers::Connections;
use packets::{Header, Held, What};
use said::{Body, Line, Packet};
use stamp::Stamp;

use super::{CaptureError, Item};
use crate::wire::IcmpError;

/// Whether a line is one of a listing: a packet, or what `tcpdump` says around them.
pub fn is_of_listing(line: &str) -> bool {
    matches!(line::read(line), Line::Packet(_) | Line::Start | Line::Footer(_) | Line::Dump)
}

/// The longest line that is read; the rest of a longer one is skipped.
///
/// Ours: a packet takes under 1 KiB of text even with `-vv` and all its options.
const LONGEST_LINE: usize = 64 * 1024;
/// How many pieces of a packet line that was wrapped are put together, and their size.
const PIECES: u8 = 6;

/// An ICMP error, while more of what it quotes may come.
#[derive(Debug)]
struct Heard {
    stamp: Option<Stamp>,
    error: IcmpError,
    /// What it quotes is not TCP.
    is_of_others: bool,
}

/// Reads a packet listing from chunks of any size.
#[derive(Debug, Default)]
pub struct ListingReader {
    /// The start of a line whose end has not come yet.
    partial: Vec<u8>,
    /// The line is longer than [`LONGEST_LINE`]: its rest is skipped.
    skipping: bool,
    /// What came last was a carriage return: a line feed behind it ends no other line.
    after_return: bool,
    lines: u64,
    /// A packet line without its end, and the number of its pieces.
    wrapped: Option<(String, u8)>,
    /// A packet whose ends come on the next line.
    header: Option<Header>,
    /// An ICMP error. What it quotes may come on the next lines.
    error: Option<Box<Heard>>,
    connections: Connections,
    names: Names,
    interfaces: Vec<String>,
    timeline: Timeline,
    /// What waits until the form of the times is known.
    held: Vec<Held>,
    listing: Listing,
    /// What was seen in the whole file.
    packets: u64,
    frame: u64,
    unreadable: u64,
    first_unreadable: Option<(u64, String)>,
    without_numbers: u64,
    without_ports: u64,
    windows_cut: u64,
    without_time: u64,
    /// Packets without a time are left out: nothing can be said of them.
    needs_times: bool,
    first_text: Option<String>,
}

/// What was seen since the current listing began.
#[derive(Debug, Default)]
struct Listing {
    packets: u64,
    gaps: u64,
    /// Its figures came: they tell how many packets the gaps hide.
    gaps_explained: bool,
    /// Its packets have times, so a packet without one is a quotation.
    timed: bool,
    /// Its packets stand behind tabs, so tabs mean nothing.
    tabbed: bool,
    place: Place,
    quotation: Quotation,
}

/// Where in a listing a line is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Place {
    #[default]
    Anywhere,
    /// Right behind a packet: here payload may begin.
    AfterPacket,
    /// In payload shown as text (by `-A`, or decoded by `-v`): only packets are read.
    Payload,
}

/// Whether a packet may be one that an ICMP error quotes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Quotation {
    #[default]
    Unlikely,
    /// The packet before was not TCP.
    Possible,
    /// The first line of a quoted packet came, its ends are due.
    EndsDue,
}

impl ListingReader {
    /// A reader at the start of a listing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for who asks where the time went: packets without one are not handed on.
    pub(super) fn of_timed() -> Self {
        Self { needs_times: true, ..Self::default() }
    }

    /// What the times of the listing are relative to; of the last one where several follow one
    /// another. Certain once [`Self::finish`] was called.
    pub fn clock(&self) -> Clock {
        self.timeline.clock
    }

    /// What the synthetic addresses of the listing stand for.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Names of the interfaces; `LinkInfo::interface` counts them from 1 (0: not printed).
    pub fn interfaces(&self) -> &[String] {
        &self.interfaces
    }

    /// Takes the next bytes and hands on each item they complete.
    ///
    /// # Errors
    /// None while reading: see [`Self::finish`].
    pub fn push<F: FnMut(Item<'_>) + ?Sized>(
        &mut self,
        bytes: &[u8],
        each: &mut F,
    ) -> Result<(), CaptureError> {
        for piece in bytes.split_inclusive(|&b| b == b'\n' || b == b'\r') {
            let after_return = core::mem::replace(&mut self.after_return, piece.ends_with(b"\r"));
            let (text, ends) = match piece.split_last() {
                // Both end the same line.
                Some((b'\n', [])) if after_return => continue,
                Some((b'\n' | b'\r', text)) => (text, true),
                _ => (piece, false),
            };
            if ends && self.partial.is_empty() && !self.skipping && text.len() <= LONGEST_LINE {
                self.take_line(text, each);
                continue;
            }
            let room = LONGEST_LINE.saturating_sub(self.partial.len());
            self.skipping |= text.len() > room;
            self.partial.extend_from_slice(text.get(..room.min(text.len())).unwrap_or_default());
            if ends {
                self.end_partial(each);
            }
        }
        Ok(())
    }

    /// Takes note that the listing ends here: hands on what was still held back.
    ///
    /// # Errors
    /// Nothing was there, none of it was a packet, or no packet has a time where that is needed.
    pub fn finish<F: FnMut(Item<'_>) + ?Sized>(
        &mut self,
        each: &mut F,
    ) -> Result<(), CaptureError> {
        if !self.partial.is_empty() || self.skipping {
            self.end_partial(each);
        }
        self.end_wrapped(each);
        self.end_listing(each);
        self.tell_remarks(each);
        if self.needs_times && self.packets > 0 && self.without_time >= self.packets {
            return Err(CaptureError::NoTimes { packets: self.packets });
        }
        if self.packets > 0 {
            return Ok(());
        }
        match self.first_text.take() {
            None => Err(CaptureError::Empty),
            Some(first) => Err(CaptureError::NotAListing { lines: self.lines, first }),
        }
    }

    fn end_partial<F: FnMut(Item<'_>) + ?Sized>(&mut self, each: &mut F) {
        let bytes = core::mem::take(&mut self.partial);
        if core::mem::take(&mut self.skipping) {
            self.lines += 1;
            self.remember_first(&String::from_utf8_lossy(&bytes));
            self.count_unreadable(&bytes);
        } else {
            self.take_line(&bytes, each);
        }
        self.partial = bytes;
        self.partial.clear();
    }

    fn take_line<F: FnMut(Item<'_>) + ?Sized>(&mut self, bytes: &[u8], each: &mut F) {
        self.lines += 1;
        let text = String::from_utf8_lossy(bytes);
        self.remember_first(&text);
        let text = rows::plain(text);
        let Some((start, pieces)) = self.wrapped.take() else {
            return self.read_line(&text, true, each);
        };
        let room = start.len() + text.len() <= LONGEST_LINE;
        match wrapped::join(&start, &text).filter(|_| room) {
            None => {
                // What is said of the first of these lines names its number.
                self.lines -= u64::from(pieces);
                self.read_line(&start, false, each);
                self.lines += u64::from(pieces);
                self.read_line(&text, true, each);
            }
            Some((whole, may_go_on)) if may_go_on && pieces < PIECES => {
                self.wrapped = Some((whole, pieces + 1));
            }
            Some((whole, _)) => self.read_line(&whole, false, each),
        }
    }

    fn end_wrapped<F: FnMut(Item<'_>) + ?Sized>(&mut self, each: &mut F) {
        if let Some((start, _)) = self.wrapped.take() {
            self.read_line(&start, false, each);
        }
    }

    fn read_line<F: FnMut(Item<'_>) + ?Sized>(&mut self, text: &str, may_wait: bool, each: &mut F) {
        let line = line::read(text);
        if may_wait && wrapped::may_go_on(text, &line) {
            self.wrapped = Some((text.to_owned(), 1));
            return;
        }
        if let Line::Packet(Packet { body: Body::Tcp { printed, .. }, .. }) = &line
            && !printed.complete
            && printed.window.is_none()
        {
            self.count_unreadable(text.as_bytes());
            return;
        }
        let place = self.listing.place;
        if place == Place::AfterPacket {
            self.listing.place = Place::Anywhere;
        }
        let decoded = text.starts_with('\t') && !self.listing.tabbed;
        match line {
            Line::Packet(packet) => self.on_packet(packet, text, each),
            Line::Start => {
                self.end_listing(each);
                self.connections.begin_listing();
            }
            Line::Footer(footer) => self.on_footer(footer, each),
            Line::Dump => {}
            _ if place == Place::Payload => {}
            _ if place == Place::AfterPacket && (decoded || begins_with_ip_header(text)) => {
                self.listing.place = Place::Payload;
            }
            Line::Gap => {
                self.end_error(each);
                self.listing.gaps += 1;
                self.hand_on(None, What::Gap, each);
            }
            Line::Unreadable => self.count_unreadable(text.as_bytes()),
            Line::Prose => {}
        }
    }
}

/// Whether a line is the start of a packet as `-A` shows it: the IP header as text. Version 4 with
/// five words is an E, version 6 a back quote; the next byte (type of service, or class) is no letter.
fn begins_with_ip_header(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next();
    let second = chars.next().unwrap_or(' ');
    match first {
        Some('E') => !second.is_alphanumeric() && !text.starts_with("E.g"),
        Some('`') => second != '`',
        _ => false,
    }
}
