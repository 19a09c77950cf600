//! Writes a capture of one long transfer to standard output: `one-connection 100GB | tcpwhy -`.
//!
//! Is memory bounded, however long a connection is? A server sends as fast as 10 Gbit/s are, over a
//! round trip of 2 ms and clocked by ACKs; of each 100,000 pairs of segments one is lost and sent
//! again. The tap stands on the server, and keeps 100 bytes of a packet.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

const MSS: u32 = 1448;
/// Pairs of segments in a round trip, and the time of one.
const IN_FLIGHT: u64 = 864;
const PAIR_NS: u64 = 2_317;
/// Of so many pairs one loses its first segment.
const LOST_EACH: u64 = 100_000;
const CLIENT: u8 = 1;
const SERVER: u8 = 2;

fn main() -> ExitCode {
    let asked = std::env::args().nth(1);
    let Some(bytes) = asked.as_deref().and_then(bytes) else {
        eprintln!("usage: one-connection BYTES (100MB, 100GB) | tcpwhy -");
        return ExitCode::from(2);
    };
    match transfer(bytes, BufWriter::with_capacity(1 << 20, io::stdout().lock())) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit =
        [("B", 1), ("MB", 1_000_000), ("GB", 1_000_000_000)].into_iter().find(|u| u.0 == unit)?;
    Some(number.parse::<u64>().ok()? * unit.1)
}

/// A packet, as far as this connection's differ.
#[derive(Default)]
struct Packet {
    from: u8,
    flags: u8,
    seq: u64,
    ack: u64,
    len: u32,
    id: u64,
}

fn transfer(bytes: u64, mut to: impl Write) -> io::Result<()> {
    to.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?;
    to.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 1, 0, 0, 0])?;
    let (syn, ack) = (0x02, 0x10);
    write(&mut to, 0, &Packet { from: CLIENT, flags: syn, ..Packet::default() })?;
    write(
        &mut to,
        50_000,
        &Packet { from: SERVER, flags: syn | ack, ack: 1, ..Packet::default() },
    )?;
    let mut sent = Packet { from: SERVER, flags: ack, seq: 1, ack: 101, len: MSS, id: 1 };
    let mut acked = Packet { from: CLIENT, flags: ack, seq: 1, ack: 1, len: 100, id: 1 };
    write(&mut to, 2_000_000, &acked)?;
    (acked.seq, acked.len) = (101, 0);
    let pair = u64::from(2 * MSS);
    for number in 0..bytes.div_ceil(pair) + IN_FLIGHT {
        let now = 2_100_000 + number * PAIR_NS;
        if let Some(arrived) = number.checked_sub(IN_FLIGHT) {
            // The pair that a hole waits for was lost in this flight or the one before.
            let hole = arrived / LOST_EACH * LOST_EACH;
            let is_open = hole > 0 && arrived < hole + IN_FLIGHT;
            acked.ack = 1 + pair * if is_open { hole } else { arrived + 1 };
            acked.id += 1;
            write(&mut to, now, &acked)?;
            if is_open && arrived == hole + 2 {
                sent.id += 1;
                let again = Packet { seq: 1 + pair * hole, ..sent };
                write(&mut to, now + 500, &again)?;
                sent.id = again.id;
            }
        }
        for later in [900, 1_100] {
            if number * pair < bytes {
                sent.id += 1;
                write(&mut to, now + later, &sent)?;
                sent.seq += u64::from(MSS);
            }
        }
    }
    to.flush()
}

fn write(to: &mut impl Write, at_ns: u64, packet: &Packet) -> io::Result<()> {
    let Packet { from, flags, seq, ack, len, id } = *packet;
    let mut record = [0; 16 + 100];
    let (head, frame) = record.split_at_mut(16);
    let wire_len = 66 + len;
    let kept = wire_len.min(100);
    for (field, value) in head.chunks_exact_mut(4).zip([
        (at_ns / 1_000_000_000) as u32,
        (at_ns % 1_000_000_000) as u32,
        kept,
        wire_len,
    ]) {
        field.copy_from_slice(&value.to_le_bytes());
    }
    let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
    let mut ports = [(CLIENT, 40_000_u16), (SERVER, 80)];
    if from == SERVER {
        ports.reverse();
    }
    put(12, &[8, 0, 0x45, 0]);
    put(16, &((52 + len) as u16).to_be_bytes());
    put(18, &(id as u16).to_be_bytes());
    put(20, &[0x40, 0, 64, 6, 0, 0, 10, 0, 0, ports[0].0, 10, 0, 0, ports[1].0]);
    put(34, &ports[0].1.to_be_bytes());
    put(36, &ports[1].1.to_be_bytes());
    put(38, &(seq as u32).to_be_bytes());
    put(42, &(ack as u32).to_be_bytes());
    put(46, &[0x80, flags, 0x40, 0]);
    // A scale of 8 on a SYN, time stamps of a millisecond on all others.
    if flags & 0x02 != 0 {
        put(54, &[2, 4, 5, 0xb4, 3, 3, 8, 1, 1, 1, 1, 1]);
    } else {
        put(54, &[1, 1, 8, 10]);
        let stamp = |at_ns: u64| ((at_ns / 1_000_000) as u32).to_be_bytes();
        put(58, &stamp(at_ns));
        put(62, &stamp(at_ns.saturating_sub(2_000_000)));
    }
    to.write_all(&record[..16 + kept as usize])
}
