//! From the lines of a listing to the items handed on, and the remarks about the listing.

use core::net::SocketAddr;

use super::clock::{Clock, HELD, Timeline};
use super::said::{Body, Footer, Link, Packet};
use super::segment::Printed;
use super::stamp::Stamp;
use super::{Heard, Listing, ListingReader, Place, Quotation, icmp};
use crate::capture::{Item, Quality, QualityKind};
use crate::wire::{IcmpError, IpInfo, LinkInfo, Quoted, Segment};
use tcpwhy_words::units::Time;

/// Characters of a line that are quoted in a remark.
const EXCERPT: usize = 60;
/// Interface names that are remembered. Ours: more than `-i any` sees on a big host.
const INTERFACES: usize = 1024;

/// No packet is longer: the largest super-segment of Linux has 524,280 bytes (`GSO_MAX_SIZE`, v6.12).
const LONGEST: u32 = 1 << 20;

/// The first line of a packet printed with `-v`.
#[derive(Debug)]
pub(super) struct Header {
    number: Option<u64>,
    stamp: Option<Stamp>,
    link: LinkInfo,
    network: u32,
    ip: IpInfo,
}

/// An item that waits for its time.
#[derive(Debug)]
pub(super) struct Held {
    stamp: Option<Stamp>,
    what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Segment(Box<Segment<'static>>),
    Icmp(Box<IcmpError>),
    OtherPacket,
    WithoutNumbers,
    Gap,
    Quality(Quality),
}

impl ListingReader {
    pub(super) fn on_packet<F>(&mut self, packet: Packet<'_>, text: &str, each: &mut F)
    where
        F: FnMut(Item<'_>) + ?Sized,
    {
        let Packet { number, stamp, link, ip, body, nested } = packet;
        let is_header = matches!(body, Body::Header);
        if stamp.is_none() && nested && is_header && self.header.is_some() {
            // A quotation begins: the ends of the packet that quotes were none we know.
            self.give_up_header(each);
            self.listing.quotation = Quotation::Possible;
        }
        if self.is_quotation(stamp, is_header, nested, text) {
            self.quote(text);
            return;
        }
        self.end_error(each);
        if stamp.is_some() || is_header {
            self.give_up_header(each);
        }
        let other = matches!(body, Body::Other | Body::Icmp(_));
        self.listing.quotation = if other { Quotation::Possible } else { Quotation::Unlikely };
        self.listing.place = Place::AfterPacket;
        self.listing.timed |= stamp.is_some();
        self.listing.tabbed |= nested;
        let header = match self.header.take() {
            Some(first) => {
                Header { ip: if ip == IpInfo::default() { first.ip } else { ip }, ..first }
            }
            None => {
                Header { number, stamp, network: link.network, link: self.link_info(&link), ip }
            }
        };
        match body {
            Body::Header => self.header = Some(header),
            Body::Tcp { from, to, v6, printed } => {
                self.without_ports += u64::from(from.lacks_port() || to.lacks_port());
                let from = self.names.resolve(from, v6);
                let to = self.names.resolve(to, v6);
                let stamp = header.stamp;
                let segment = self.segment(&header, from, to, &printed);
                self.hand_on(stamp, What::Segment(Box::new(segment)), each);
            }
            Body::Icmp(said) => {
                let error = self.icmp_error(&header, &said);
                let stamp = header.stamp;
                self.error = Some(Box::new(Heard { stamp, error, is_of_others: false }));
            }
            Body::TooLittle => {
                self.without_numbers += 1;
                self.count_packet(header.number);
                self.hand_on(header.stamp, What::WithoutNumbers, each);
            }
            Body::Other => {
                self.count_packet(header.number);
                self.hand_on(header.stamp, What::OtherPacket, each);
            }
        }
    }

    /// Whether this is a packet inside another, as an ICMP error shows with `-v`.
    fn is_quotation(
        &mut self,
        stamp: Option<Stamp>,
        header: bool,
        nested: bool,
        text: &str,
    ) -> bool {
        if stamp.is_some() || self.header.is_some() {
            return false;
        }
        let before = self.listing.quotation;
        let ends_due = before == Quotation::EndsDue && !header;
        let behind_other = before == Quotation::Possible && nested;
        if !ends_due && !behind_other && !self.listing.timed {
            return false;
        }
        self.listing.quotation = if header { Quotation::EndsDue } else { Quotation::Possible };
        if before == Quotation::Unlikely && self.listing.place != Place::Payload {
            self.count_unreadable(text.as_bytes());
        }
        true
    }

    fn icmp_error(&mut self, header: &Header, said: &icmp::Said) -> IcmpError {
        let icmp::Said { from, to, kind, mtu, destination } = *said;
        // Errors go to who sent the packet that they quote.
        let quoted = Quoted { source: to, destination, ports: None, seq: None, bytes: None };
        let frame = self.count_packet(header.number);
        let network = header.network;
        IcmpError { time: Time(0), frame, network, from, to, kind, mtu, quoted }
    }

    /// Takes a line of the packet that the last ICMP error quotes.
    fn quote(&mut self, text: &str) {
        let Some(heard) = &mut self.error else { return };
        let Heard { error, is_of_others, .. } = &mut **heard;
        match icmp::quotation(text) {
            icmp::Quotation::Header(bytes) => error.quoted.bytes = bytes,
            icmp::Quotation::Ends([from, to]) => {
                (error.quoted.source, error.quoted.destination) = (from.0, Some(to.0));
                error.quoted.ports = Some([from.1, to.1]);
            }
            icmp::Quotation::Other => *is_of_others = true,
            icmp::Quotation::Nothing => {}
        }
    }

    /// Hands on an ICMP error: no more of what it quotes will come.
    pub(super) fn end_error<F: FnMut(Item<'_>) + ?Sized>(&mut self, each: &mut F) {
        if let Some(heard) = self.error.take() {
            let Heard { stamp, error, is_of_others } = *heard;
            let what = if is_of_others { What::OtherPacket } else { What::Icmp(Box::new(error)) };
            self.hand_on(stamp, what, each);
        }
    }

    /// Counts a packet whose second line never came.
    pub(super) fn give_up_header<F: FnMut(Item<'_>) + ?Sized>(&mut self, each: &mut F) {
        if let Some(header) = self.header.take() {
            self.count_packet(header.number);
            self.hand_on(header.stamp, What::OtherPacket, each);
        }
    }

    fn link_info(&mut self, link: &Link<'_>) -> LinkInfo {
        let number = link.interface.map_or(0, |name| {
            let known = self.interfaces.iter().position(|known| known == name);
            known.unwrap_or_else(|| {
                if self.interfaces.len() < INTERFACES {
                    self.interfaces.push(name.chars().take(EXCERPT).collect());
                }
                self.interfaces.len() - 1
            }) + 1
        });
        LinkInfo { direction: link.direction, interface: number as u32, ..LinkInfo::default() }
    }

    fn segment(
        &mut self,
        header: &Header,
        source: SocketAddr,
        destination: SocketAddr,
        printed: &Printed,
    ) -> Segment<'static> {
        let numbers = self.connections.resolve(header.network, source, destination, printed);
        let mut options = printed.options;
        options.sack = numbers.sack;
        self.windows_cut += u64::from(numbers.window_cut);
        Segment {
            time: Time(0),
            frame: self.count_packet(header.number),
            network: header.network,
            source,
            destination,
            seq: numbers.seq,
            ack: numbers.ack,
            flags: printed.flags,
            window: numbers.window,
            payload_len: printed.payload_len.min(LONGEST),
            payload: &[],
            options,
            ip: header.ip,
            link: LinkInfo {
                checksum: printed.checksum,
                seq_unshown: printed.seq.is_none(),
                ..header.link
            },
        }
    }

    /// The number of a packet: the one printed, or the next, so that they always grow.
    fn count_packet(&mut self, number: Option<u64>) -> u64 {
        self.packets += 1;
        self.listing.packets += 1;
        self.frame =
            number.filter(|&number| number > self.frame).unwrap_or(self.frame.saturating_add(1));
        self.frame
    }

    /// Hands an item on, or holds it back while the form of the times is unknown.
    pub(super) fn hand_on<F>(&mut self, stamp: Option<Stamp>, what: What, each: &mut F)
    where
        F: FnMut(Item<'_>) + ?Sized,
    {
        let is_packet = !matches!(what, What::Gap | What::Quality(_));
        self.without_time += u64::from(is_packet && stamp.is_none());
        if is_packet && stamp.is_none() && self.needs_times {
            return;
        }
        if self.held.is_empty() && !self.timeline.must_wait(stamp) {
            return emit(&mut self.timeline, Held { stamp, what }, each);
        }
        // Gaps wait too, for the order; a second one in a row tells nothing.
        let repeated =
            matches!((&what, self.held.last()), (What::Gap, Some(Held { what: What::Gap, .. })));
        if !repeated {
            self.held.push(Held { stamp, what });
        }
        let mut stamps = self.held.iter().filter_map(|held| held.stamp);
        let is_clock = match (stamps.next(), stamps.next()) {
            (Some(first), Some(second)) => Timeline::is_clock(first, second),
            _ => false,
        };
        if is_clock || stamps.count() + 2 >= HELD || self.held.len() > 4 * HELD {
            self.release(each);
        }
    }

    /// Decides the form of the times and hands on what waited for it.
    fn release<F: FnMut(Item<'_>) + ?Sized>(&mut self, each: &mut F) {
        if self.held.is_empty() {
            return;
        }
        let doubt = self.timeline.decide(self.held.iter().filter_map(|held| held.stamp));
        let mut held = core::mem::take(&mut self.held);
        for item in held.drain(..) {
            emit(&mut self.timeline, item, each);
        }
        self.held = held;
        if let Some(note) = doubt {
            remark(QualityKind::Other, 0, note, each);
        }
    }

    pub(super) fn on_footer<F>(&mut self, footer: Footer, each: &mut F)
    where
        F: FnMut(Item<'_>) + ?Sized,
    {
        match footer {
            Footer::Captured(count) => {
                self.end_error(each);
                self.give_up_header(each);
                let listed = core::mem::take(&mut self.listing.packets);
                self.listing.gaps_explained = true;
                if count > listed {
                    let missing = count - listed;
                    let note = format!("{missing} of {count} packets are not in this listing");
                    self.hand_on_remark(QualityKind::ListingGap, missing, &note, each);
                }
            }
            Footer::KernelDropped(count) if count > 0 => {
                let note = "the kernel dropped packets before tcpdump could store them";
                self.hand_on_remark(QualityKind::KernelDrops, count, note, each);
            }
            Footer::InterfaceDropped(count) if count > 0 => {
                let note = "the interface dropped packets before tcpdump could see them";
                self.hand_on_remark(QualityKind::InterfaceDrops, count, note, each);
            }
            Footer::KernelDropped(_) | Footer::InterfaceDropped(_) | Footer::Received => {}
        }
    }

    /// Ends one of several listings: the next has its own times, numbers and figures.
    pub(super) fn end_listing<F: FnMut(Item<'_>) + ?Sized>(&mut self, each: &mut F) {
        self.end_error(each);
        self.give_up_header(each);
        self.release(each);
        let Listing { gaps, gaps_explained, .. } = core::mem::take(&mut self.listing);
        if gaps > 0 && !gaps_explained {
            let note = "packets were left out of this listing; how many, it does not say";
            remark(QualityKind::ListingGap, 0, note, each);
        }
        let clock = core::mem::take(&mut self.timeline).clock;
        if gaps > 0 && clock == Clock::SincePrevious {
            let note = "times are spans since the packet before (-ttt), and packets were left out: all \
                        later times are too early";
            remark(QualityKind::ListingGap, 0, note, each);
        }
        self.timeline.clock = clock;
    }

    /// Tells at the end of the file what was counted over all of it.
    pub(super) fn tell_remarks<F: FnMut(Item<'_>) + ?Sized>(&mut self, each: &mut F) {
        if let Some((line, excerpt)) = self.first_unreadable.take() {
            let note =
                format!("lines that could not be read, the first is line {line}: \"{excerpt}\"");
            remark(QualityKind::UnreadableLine, self.unreadable, &note, each);
        }
        if self.without_numbers > 0 {
            let note = "TCP packets are listed without flags and numbers (tcpdump -q, a short \
                        snap length, or a packet list that shows the protocol above TCP: save the capture \
                        itself)";
            remark(QualityKind::Other, self.without_numbers, note, each);
        }
        if self.without_ports > 0 {
            let note = "the ports are not printed: all that two hosts sent each other is taken for one connection";
            remark(QualityKind::Other, self.without_ports, note, each);
        }
        if self.windows_cut > 0 {
            let note = "windows above 65,535 bytes are shown, but no SYN that tells their scale: they count as 65,535 \
                        bytes of an unknown scale";
            remark(QualityKind::Other, self.windows_cut, note, each);
        }
        if self.without_time > 0 {
            let note = if self.needs_times {
                "packets are listed without a time (tcpdump -t) and left out: nothing can be said of them"
            } else {
                "packets are listed without a time (tcpdump -t): nothing can be said about time"
            };
            remark(QualityKind::Other, self.without_time, note, each);
        }
    }

    fn hand_on_remark<F>(&mut self, kind: QualityKind, count: u64, note: &str, each: &mut F)
    where
        F: FnMut(Item<'_>) + ?Sized,
    {
        self.hand_on(None, What::Quality(Quality { kind, count, note: note.to_owned() }), each);
    }

    pub(super) fn count_unreadable(&mut self, line: &[u8]) {
        self.unreadable += 1;
        if self.first_unreadable.is_none() {
            self.first_unreadable = Some((self.lines, excerpt(&String::from_utf8_lossy(line))));
        }
    }

    /// Keeps the first line with text, for the error when there is no packet.
    pub(super) fn remember_first(&mut self, line: &str) {
        if self.first_text.is_none() && !line.trim().is_empty() {
            self.first_text = Some(excerpt(line));
        }
    }
}

/// At most [`EXCERPT`] characters of a line, what cannot be printed escaped.
fn excerpt(line: &str) -> String {
    line.trim().chars().flat_map(char::escape_debug).take(EXCERPT).collect()
}

fn emit<F: FnMut(Item<'_>) + ?Sized>(timeline: &mut Timeline, held: Held, each: &mut F) {
    match held.what {
        What::Segment(mut segment) => {
            segment.time = timeline.place(held.stamp);
            each(Item::Segment(*segment));
        }
        What::Icmp(mut error) => {
            error.time = timeline.place(held.stamp);
            each(Item::Icmp(*error));
        }
        What::OtherPacket => {
            timeline.place(held.stamp);
            each(Item::OtherPacket);
        }
        What::WithoutNumbers => {
            timeline.place(held.stamp);
            each(Item::WithoutNumbers);
        }
        What::Gap => each(Item::Gap),
        What::Quality(quality) => each(Item::Quality(quality)),
    }
}

fn remark<F>(kind: QualityKind, count: u64, note: &str, each: &mut F)
where
    F: FnMut(Item<'_>) + ?Sized,
{
    each(Item::Quality(Quality { kind, count, note: note.to_owned() }));
}
