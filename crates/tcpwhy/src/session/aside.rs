//! What a capture holds beside TCP: what was passed over, remarks, names asked for, attachments.

use std::collections::BTreeMap;

use crate::capture::{self, Frame, QualityKind};
use crate::dns::Names;
use crate::icmp::Errors;
use crate::packed::{self, Odd, Packed};
use crate::report::{Capture, Quality, Skipped};
use crate::wire::{self, Datagram, IcmpError, Skip};

/// What is set aside while segments go to the tracker.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Of the capture begun last.
    skipped: BTreeMap<Skip, u64>,
    /// Of the capture begun last.
    quality: BTreeMap<(QualityKind, String), u64>,
    /// Names asked for in all captures.
    pub(super) names: Names,
    /// ICMP errors about TCP in all captures.
    pub(super) errors: Errors,
    /// Those of the capture begun last.
    heard: u64,
    /// What captures had attached, by their place and its name.
    pub(super) attachments: BTreeMap<(usize, String), Vec<u8>>,
    /// Captures that have ended.
    ended: usize,
    /// What was heard, to be heard again elsewhere, where that is asked for.
    pub(super) log: Option<Vec<u8>>,
}

/// What an entry of the log is.
const ERROR: u8 = 0;
const DATAGRAM: u8 = 1;

impl Aside {
    /// A frame that gave no segment; the ICMP error about TCP in it, if it holds one.
    pub(super) fn pass_over(&mut self, frame: &Frame<'_>, skip: Skip) -> Option<IcmpError> {
        if skip == Skip::NotTcp
            && let Some(error) = wire::icmp_error(frame)
        {
            self.hear(&error);
            return Some(error);
        }
        self.skip(skip);
        if skip == Skip::NotTcp
            && let Some(datagram) = wire::name_datagram(frame)
        {
            if let Some(log) = &mut self.log {
                log.push(DATAGRAM);
                packed::put_datagram(log, &datagram);
            }
            self.names.take(&datagram);
        }
        None
    }

    /// An ICMP error about TCP.
    pub(super) fn hear(&mut self, error: &IcmpError) {
        self.heard += 1;
        if let Some(log) = &mut self.log {
            log.push(ERROR);
            packed::put_error(log, error);
        }
        self.errors.take(error);
    }

    /// Hears what was heard in a capture that `before` frames precede.
    pub(super) fn hear_again(&mut self, log: &[u8], before: u64) -> Result<(), Odd> {
        let mut log = Packed(log);
        while !log.is_empty() {
            match log.byte()? {
                ERROR => {
                    let error = packed::error(&mut log)?;
                    self.errors
                        .take(&IcmpError { frame: error.frame.wrapping_add(before), ..error });
                }
                DATAGRAM => {
                    let datagram = packed::datagram(&mut log)?;
                    let frame = datagram.frame.wrapping_add(before);
                    self.names.take(&Datagram { frame, ..datagram });
                }
                _ => return Err(Odd),
            }
        }
        Ok(())
    }

    /// Counts something that is no frame.
    pub(super) fn skip(&mut self, skip: Skip) {
        *self.skipped.entry(skip).or_default() += 1;
    }

    /// Something to tell about the capture.
    pub(super) fn remark(&mut self, remark: &mut capture::Quality) {
        let note = core::mem::take(&mut remark.note);
        *self.quality.entry((remark.kind, note)).or_default() += remark.count;
    }

    /// A part of an attachment.
    pub(super) fn attach(&mut self, name: &str, content: &[u8]) {
        let held = |((_, name), content): (&(usize, String), &Vec<u8>)| name.len() + content.len();
        let held = self.attachments.iter().map(held).sum::<usize>() + name.len() + content.len();
        let key = (self.ended, name.to_owned());
        let is_known = self.attachments.contains_key(&key);
        if held > MOST_ATTACHED || (!is_known && self.attachments.len() >= MOST_ATTACHMENTS) {
            let note = "attachments beyond what is held were left out".to_owned();
            self.quality.insert((QualityKind::Other, note), 0);
            return;
        }
        self.attachments.entry(key).or_default().extend_from_slice(content);
    }

    /// The capture ends: what was counted of it goes to it.
    pub(super) fn hand_over(&mut self, capture: &mut Capture) {
        capture.icmp_errors = core::mem::take(&mut self.heard);
        for (skip, count) in core::mem::take(&mut self.skipped) {
            capture.skipped.push(Skipped { reason: skip.reason().to_owned(), count });
        }
        for ((kind, note), count) in core::mem::take(&mut self.quality) {
            capture.quality.push(Quality { kind: kind.name().to_owned(), count, note });
        }
        self.ended += 1;
    }
}

/// Ours: four times what `tcpwhy record` writes at most.
const MOST_ATTACHED: usize = 64 << 20;
const MOST_ATTACHMENTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn held<'a>(aside: &'a Aside, capture: usize, name: &str) -> Option<&'a [u8]> {
        aside.attachments.get(&(capture, name.to_owned())).map(Vec::as_slice)
    }

    #[test]
    fn each_capture_keeps_its_own() {
        let mut aside = Aside::default();
        aside.attach("command.json", b"{1}");
        aside.hand_over(&mut Capture::default());
        aside.attach("command.json", b"{2}");
        assert_eq!(held(&aside, 0, "command.json"), Some(&b"{1}"[..]));
        assert_eq!(held(&aside, 1, "command.json"), Some(&b"{2}"[..]));
    }

    #[test]
    fn parts_of_an_attachment_follow_each_other_up_to_what_is_held() {
        let mut aside = Aside::default();
        aside.attach("a", b"one ");
        aside.attach("b", b"other");
        aside.attach("a", b"two");
        assert_eq!(held(&aside, 0, "a"), Some(&b"one two"[..]));
        let mut capture = Capture::default();
        aside.attach("c", &vec![0; MOST_ATTACHED]);
        (0..100).for_each(|number| aside.attach(&number.to_string(), b""));
        aside.hand_over(&mut capture);
        assert_eq!(aside.attachments.len(), MOST_ATTACHMENTS);
        assert_eq!(capture.quality.len(), 1);
    }
}
