//! Reads the captures of a run, sharing nothing with what is tested.

/// A TCP packet of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Nanoseconds since 1970.
    pub(crate) at: u64,
    pub(crate) source_port: u16,
    pub(crate) seq: u32,
    pub(crate) flags: u8,
    /// Bytes of data.
    pub(crate) payload: u64,
    /// The value of its timestamp, which tells a retransmission from the first time.
    pub(crate) stamp: u32,
    /// What the kernel numbers a socket's packets with (IPv4).
    pub(crate) id: u16,
    /// As much of the data as was kept.
    pub(crate) data: Vec<u8>,
}

impl Packet {
    /// What tells it from all others of a run of fewer than 65,536 packets each way.
    pub(crate) fn name(&self) -> (u16, u32, u16, u32, u64, u8) {
        (self.source_port, self.seq, self.id, self.stamp, self.payload, self.flags)
    }
}

/// The TCP packets of a pcapng file with one interface and stamps in nanoseconds.
pub(crate) fn packets(file: &[u8]) -> Vec<Packet> {
    let word = |at: usize| u32::from_ne_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut found) = (0, vec![]);
    while at + 12 <= file.len() {
        if word(at) == 6 {
            let stamp = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            let kept = word(at + 20) as usize;
            found.extend(packet(stamp, &file[at + 28..at + 28 + kept]));
        }
        at += word(at + 4) as usize;
    }
    found
}

fn packet(at: u64, frame: &[u8]) -> Option<Packet> {
    let short = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let (tcp, total) = match short(12) {
        0x0800 => (34, u64::from(short(16)) + 14),
        0x86dd => (54, u64::from(short(18)) + 54),
        _ => return None,
    };
    let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
    let header = usize::from(frame[tcp + 12] >> 4) * 4;
    // Where Linux puts it, after two bytes of padding.
    let stamp = if header >= 32 { word(tcp + 24) } else { 0 };
    Some(Packet {
        at,
        source_port: short(tcp),
        seq: word(tcp + 4),
        flags: frame[tcp + 13],
        payload: total - (tcp + header) as u64,
        stamp,
        id: if tcp == 34 { short(18) } else { 0 },
        data: frame.get(tcp + header..).unwrap_or_default().to_vec(),
    })
}
