//! A piece into segments, and to who follows them.

use super::told::FILLED;
use super::{
    KNOWN, NEW, OPTIONS, Odd, PAYLOAD, PLACE, SACK, STAMPS, Said, TOO_BIG, USUAL, WHAT, shape,
};
use crate::packed::{self, Packed};
use crate::tracker::Tracker;
use crate::wire::{
    Checksum, Direction, Ends, Flags, Head, IcmpError, IpInfo, LinkInfo, Options, Segment, Usual,
};
use tcpwhy_words::units::{Seq, Time};

/// A payload is no longer than the largest packet.
const LONGEST: usize = 1 << 20;

/// An entry of a piece.
pub(super) enum Entry<'a> {
    Segment { segment: Segment<'a>, is_usual: bool },
    TooBig(IcmpError),
}

/// Reads a piece.
pub(super) struct Unpacker<'a> {
    packed: Packed<'a>,
    said: Vec<Said>,
    time: i64,
    frame: u64,
    payload: Vec<u8>,
}

impl<'a> Unpacker<'a> {
    pub(super) const fn new(piece: &'a [u8]) -> Self {
        Self { packed: Packed(piece), said: Vec::new(), time: 0, frame: 0, payload: Vec::new() }
    }

    /// The next entry; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Entry<'_>>, Odd> {
        if self.packed.is_empty() {
            return Ok(None);
        }
        let Self { packed, said, time, frame, payload } = self;
        let what = packed.byte()?;
        let at = match what & WHAT {
            TOO_BIG => return packed::error(packed).map(Entry::TooBig).map(Some),
            KNOWN => packed.small()?,
            NEW => {
                let ends = [packed.end()?, packed.end()?];
                said.push(Said::nothing(ends, packed.small()?));
                said.len() - 1
            }
            _ => return Err(Odd),
        };
        let said = said.get_mut(at).ok_or(Odd)?;
        *time = time.wrapping_add(packed.signed()?);
        *frame = frame.wrapping_add(packed.number()?);
        let mut segment = head(packed, said, what)?;
        (segment.time, segment.frame) = (Time(*time), *frame);
        payload.clear();
        if what & PAYLOAD != 0 {
            read_payload(packed, payload)?;
        }
        said.remember(&segment);
        segment.payload = payload;
        Ok(Some(Entry::Segment { segment, is_usual: what & USUAL != 0 }))
    }
}

/// A segment without its place in the capture and its payload.
fn head<'a>(packed: &mut Packed<'_>, said: &Said, what: u8) -> Result<Segment<'a>, Odd> {
    let seq = moved(packed, said.next)?;
    let ack = moved(packed, said.ack)?;
    let flags = Flags(packed.small::<u16>()? ^ said.flags.0);
    let window = i64::from(said.window) + packed.signed()?;
    let window = u16::try_from(window).map_err(|_| Odd)?;
    let payload_len = packed.small()?;
    let timestamps = if what & STAMPS != 0 {
        let (sent, echoed) = said.stamps;
        Some((moved(packed, Seq(sent))?.0, moved(packed, Seq(echoed))?.0))
    } else {
        None
    };
    let mut number = None;
    // Whether there is a number comes behind it, where that is new.
    let has_place = what & PLACE != 0;
    if !has_place && said.ip.id.is_some() {
        number = Some(moved_id(packed, said.id)?);
    }
    let (mut ip, link) = if has_place { place(packed, said)? } else { (said.ip, said.link) };
    ip.id = if has_place { ip.id } else { number };
    let mut options =
        if what & OPTIONS != 0 { read_options(packed)? } else { shape(&said.options) };
    options.timestamps = timestamps;
    if what & SACK != 0 {
        options.sack_count = packed.small()?;
        for block in options.sack.iter_mut().take(usize::from(options.sack_count)) {
            let left = moved(packed, ack)?;
            *block = (left, moved(packed, left)?);
        }
    }
    let ([source, destination], network) = (said.ends, said.network);
    let (time, frame, payload) = (Time(0), 0, &[][..]);
    Ok(Segment {
        time,
        frame,
        network,
        source,
        destination,
        seq,
        ack,
        flags,
        window,
        payload_len,
        payload,
        options,
        ip,
        link,
    })
}

fn moved(packed: &mut Packed<'_>, from: Seq) -> Result<Seq, Odd> {
    let by = i32::try_from(packed.signed()?).map_err(|_| Odd)?;
    Ok(Seq(from.0.wrapping_add_signed(by)))
}

fn moved_id(packed: &mut Packed<'_>, from: u16) -> Result<u16, Odd> {
    let by = i16::try_from(packed.signed()?).map_err(|_| Odd)?;
    Ok(from.wrapping_add_signed(by))
}

fn place(packed: &mut Packed<'_>, said: &Said) -> Result<(IpInfo, LinkInfo), Odd> {
    let id = if packed.byte()? == 0 { None } else { Some(moved_id(packed, said.id)?) };
    let ip = IpInfo { id, ttl: packed.some()?, ecn: packed.some()? };
    let bits = packed.byte()?;
    let direction = match bits & 3 {
        1 => Some(Direction::Incoming),
        2 => Some(Direction::Outgoing),
        _ => None,
    };
    let checksum = match bits >> 2 & 3 {
        0 => None,
        1 => Some(Checksum::Good),
        2 => Some(Checksum::Offloaded),
        _ => Some(Checksum::Bad),
    };
    let (interface, seq_unshown) = (packed.small()?, bits & 16 != 0);
    Ok((ip, LinkInfo { direction, interface, checksum, seq_unshown }))
}

fn read_options(packed: &mut Packed<'_>) -> Result<Options, Odd> {
    let (mss, window_scale, fast_open) = (packed.some()?, packed.some()?, packed.some()?);
    let bits = packed.byte()?;
    let order = packed.take(8)?.try_into().map_err(|_| Odd)?;
    let len = packed.byte()?;
    let (sack_permitted, incomplete) = (bits & 1 != 0, bits & 2 != 0);
    Ok(Options {
        mss,
        window_scale,
        sack_permitted,
        fast_open,
        order,
        len,
        incomplete,
        ..Options::default()
    })
}

fn read_payload(packed: &mut Packed<'_>, payload: &mut Vec<u8>) -> Result<(), Odd> {
    let len = packed.small::<usize>()?;
    if len > LONGEST {
        return Err(Odd);
    }
    payload.resize(len, FILLED);
    let mut at = 0;
    loop {
        let told = packed.small::<usize>()?;
        if told == 0 {
            return Ok(());
        }
        at = packed.small::<usize>()?.checked_add(at).ok_or(Odd)?;
        let bytes = packed.take(told)?;
        let end = at.checked_add(told).ok_or(Odd)?;
        payload.get_mut(at..end).ok_or(Odd)?.copy_from_slice(bytes);
        at = end;
    }
}

impl Tracker {
    /// Takes the segments of `piece`, which come next in its shard, of a capture that `before` frames precede.
    ///
    /// # Errors
    /// It is none.
    pub fn follow_piece(&mut self, piece: &[u8], before: u64) -> Result<(), Odd> {
        let mut unpacker = Unpacker::new(piece);
        while let Some(entry) = unpacker.next()? {
            match entry {
                Entry::TooBig(mut error) => {
                    error.frame = error.frame.wrapping_add(before);
                    self.too_big(&error);
                }
                Entry::Segment { mut segment, is_usual } => {
                    segment.frame = segment.frame.wrapping_add(before);
                    let ends = Ends::of(&segment.source, &segment.destination);
                    match ends.filter(|_| is_usual) {
                        Some(ends) => {
                            let (head, payload) = (Head::of(&segment), segment.payload);
                            self.take_usual(&Usual { head, ends, payload }, None);
                        }
                        None => self.push(&segment),
                    }
                }
            }
        }
        Ok(())
    }
}
