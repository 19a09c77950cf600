//! What kind of thing did the user name: packets, what a host's tools printed, or a trace of one program?
//!
//! Told by the first bytes. Those of pipes are kept, and read again by whoever reads them.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use tcpwhy::capture::listing::is_of_listing;
use tcpwhy::capture::{Item, Reader};
use tcpwhy::{evidence, host::paste};

use super::decompress::unpack;
use super::{Input, TICK, held};

/// What an input holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Packets, as bytes or as lines.
    Packets,
    /// A listing of packets with what tools of a host printed between them, as in a mail.
    Both,
    /// What tools printed on a host, or a saved snapshot; whether it can stand beside packets as evidence.
    Host {
        /// Its sockets or counters can be laid beside packets.
        is_evidence: bool,
    },
    /// Calls of programs: they are judged by themselves, and stand beside packets.
    Calls,
    /// A trace, or another record of one transfer: it says something beside packets only, or is shown alone.
    Trace,
    /// None of these, as far as was looked, or it cannot be read: reading it says why.
    Unknown,
}

/// The kinds of inputs, in their order. Behind a pipe with packets a named pipe is taken for more of them: who writes one
/// after the other would wait for the first to be read.
pub fn kinds(inputs: &[Input], stop: &AtomicBool) -> Vec<Kind> {
    let mut is_behind_packets = false;
    let each = inputs.iter().map(|input| {
        let waits = is_behind_packets && input.may_wait_for_its_writer();
        let kind = if waits { Kind::Packets } else { kind(input, stop) };
        is_behind_packets |= matches!(kind, Kind::Packets | Kind::Both) && !input.can_be_reread();
        kind
    });
    each.collect()
}

/// The kind of an input. A pipe may say nothing for hours: waiting for it ends when `stop` becomes true.
pub fn kind(input: &Input, stop: &AtomicBool) -> Kind {
    if input.can_be_reread() {
        let first = input.open(&Arc::default()).ok().and_then(|source| {
            let mut first = Vec::new();
            source.take(LOOKED_AT as u64).read_to_end(&mut first).ok()?;
            Some(first)
        });
        return first.map_or(Kind::Unknown, |first| of_bytes(&first));
    }
    let (found, told) = mpsc::channel();
    let pipe = input.clone();
    // It may go on when nobody waits any more.
    thread::spawn(move || {
        let _ = found.send(of_pipe(&pipe));
    });
    loop {
        match told.recv_timeout(TICK) {
            Ok(kind) => return kind,
            Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(_) => return Kind::Unknown,
        }
    }
}

/// Reads a pipe as far as it takes to know what it is, and keeps that; a text to its end, for it is read again.
fn of_pipe(input: &Input) -> Kind {
    let mut source: Box<dyn Read + Send> = match input {
        Input::Stdin => Box::new(io::stdin()),
        Input::File(path) => match File::open(path) {
            Ok(file) => Box::new(file),
            Err(_) => return Kind::Unknown,
        },
    };
    let (mut first, mut is_all) = (Vec::new(), false);
    let mut piece = vec![0; PIECE];
    let kind = loop {
        let plain = unpacked(&first);
        let kind = of_bytes(&plain);
        let has_binary = plain.iter().take(PIECE).any(|byte| *byte == 0);
        if is_all || kind != Kind::Unknown || has_binary || first.len() >= LOOKED_AT {
            break kind;
        }
        match source.read(&mut piece) {
            Ok(0) => is_all = true,
            Ok(got) => first.extend_from_slice(&piece[..got]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Whoever opens it next tells why.
            Err(_) => return Kind::Unknown,
        }
    };
    if matches!(kind, Kind::Both | Kind::Host { .. } | Kind::Calls | Kind::Trace) {
        let left = MOST.saturating_sub(first.len() as u64);
        is_all =
            source.by_ref().take(left).read_to_end(&mut first).is_ok_and(|got| (got as u64) < left);
    }
    held::keep(input.clone(), first, (!is_all).then_some(source));
    kind
}

/// What the beginning of a pipe holds, as far as it can be unpacked.
fn unpacked(first: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    if let Ok(source) = unpack(io::Cursor::new(first.to_vec())) {
        // It ends where the beginning does: what came until then counts.
        let _ = source.take(LOOKED_AT as u64).read_to_end(&mut plain);
    }
    plain
}

fn of_bytes(first: &[u8]) -> Kind {
    let mut reader = Reader::new();
    let mut has_packets = false;
    let mut each = |item: Item<'_>| {
        has_packets |= !matches!(item, Item::Gap | Item::Quality(_) | Item::Attachment { .. });
    };
    let pushed = reader.push(first, &mut each);
    let _ = pushed.and_then(|()| reader.finish(&mut each));
    if has_packets {
        let is_among =
            text_of(first).is_some_and(|text| paste::is_among_packets(text, is_of_listing));
        return if is_among { Kind::Both } else { Kind::Packets };
    }
    let Some(text) = text_of(first) else { return Kind::Unknown };
    if text.trim_start().starts_with('{') && text.contains("\"tcpwhy-host/") {
        return Kind::Host { is_evidence: false };
    }
    match evidence::written_by(text) {
        Some("ss" | "nstat or /proc/net") => Kind::Host { is_evidence: true },
        Some(_) if paste::read_beside(text, is_of_listing).notes.read > 0 => Kind::Calls,
        Some(_) => Kind::Trace,
        None if paste::read_beside(text, is_of_listing).notes.read > 0 => {
            Kind::Host { is_evidence: false }
        }
        None => Kind::Unknown,
    }
}

/// The bytes as text, without a letter that is cut at their end.
fn text_of(first: &[u8]) -> Option<&str> {
    let text = match core::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            core::str::from_utf8(first.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some(text)
}

/// This many bytes tell what an input is. Ours: more than any header, banner or letter above what was pasted.
const LOOKED_AT: usize = 1 << 20;
/// More of a pipe's text is not kept. Ours: as much as of a file is read.
const MOST: u64 = 1 << 30;
/// Of a pipe at a time. Ours: as much as it holds.
const PIECE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_by_its_first_bytes() {
        let packet =
            "21:59:32.780001 IP 10.0.0.1.80 > 10.0.0.2.44612: Flags [S], seq 1, win 64, length 0\n";
        assert_eq!(of_bytes(packet.repeat(3).as_bytes()), Kind::Packets);
        let icmp = "14:03:38.899277 IP 10.0.0.11 > 192.0.2.73: ICMP 10.0.0.11 unreachable - need to frag (mtu 1420), \
                    length 556\n";
        assert_eq!(
            of_bytes(format!("{icmp}wg0: flags=209<UP>  mtu 1420\n").as_bytes()),
            Kind::Both
        );
        let tcpdump = "tcpdump: listening on eth0, link-type EN10MB\n";
        let around = format!(
            "Hello,\n\n{tcpdump}{packet}\t0x0000:  4500 003c\n\n1 packet captured\n\nAda\n"
        );
        assert_eq!(of_bytes(around.as_bytes()), Kind::Packets);
        for (text, kind) in [
            ("ESTAB 0 0 10.0.0.1:80 10.0.0.2:5000\n", Kind::Host { is_evidence: true }),
            ("net.ipv4.tcp_sack = 1\n", Kind::Host { is_evidence: false }),
            ("{\"format\":\"tcpwhy-host/1\",\"looks\":[{}]}", Kind::Host { is_evidence: false }),
            ("Tcp:\n    7 segments retransmited\n", Kind::Host { is_evidence: false }),
            ("nothing of that sort\n", Kind::Unknown),
            ("", Kind::Unknown),
        ] {
            assert_eq!(of_bytes(text.as_bytes()), kind, "{text}");
        }
        assert_eq!(of_bytes(b"\0\x01\x02"), Kind::Unknown);
    }
}
