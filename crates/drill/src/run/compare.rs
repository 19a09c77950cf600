//! Is what went out what the script expects?
//!
//! Scripts count sequence numbers from the handshake, choose their own timestamps and write the
//! options as they lie in a header. [`Mapping`] translates both ways; [`Expected::meets`] compares
//! field by field what packetdrill compares (`gtests/net/packetdrill/run_packet.c`): everything that
//! is written, of timestamps only what `--tcp_ts_tick_usecs` asks for.

use std::collections::BTreeMap;

use tcpwhy_model::repro::{Ecn, Flags, Tcp, TcpOption};

use super::cookies::Cookies;
use crate::script::Packet;
use tcpwhy_model::segment::{self, Options, Segment, Stamps};

/// How a script's numbers stand to those of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapping {
    /// The connection.
    owner: Option<usize>,
    /// The connection's initial sequence number here, once it has sent a SYN.
    local_isn: u32,
    /// What the script calls it.
    script_isn: u32,
    /// The peer's, which is what the script says.
    remote_isn: u32,
    /// What the script's timestamps were when they went out.
    stamps: BTreeMap<u32, u32>,
    /// The first pair of them: the script's and the connection's.
    first_stamp: Option<(u32, u32)>,
}

impl Mapping {
    /// The script says which number the peer's SYN has.
    pub(super) fn on_remote_syn(&mut self, tcp: &Tcp) {
        self.remote_isn = tcp.seq;
    }

    /// A SYN of this connection went out where the script has one. Timestamps of the one before say
    /// nothing of it.
    pub(super) fn on_local_syn(&mut self, owner: Option<usize>, script: &Tcp, live: &Segment) {
        if self.owner != owner {
            *self = Mapping { owner, remote_isn: self.remote_isn, ..Mapping::default() };
        }
        self.local_isn = live.seq;
        self.script_isn = script.seq;
    }

    /// Both have a timestamp: what the script calls it is now known.
    pub(super) fn on_stamp(&mut self, script: u32, live: u32) {
        self.stamps.insert(script, live);
        self.first_stamp.get_or_insert((script, live));
    }

    /// A sequence number of ours as the connection has it.
    pub(super) const fn live_seq(&self, script: u32) -> u32 {
        script.wrapping_add(self.local_isn)
    }

    fn local_offset(&self, syn: bool) -> u32 {
        if syn { self.local_isn.wrapping_sub(self.script_isn) } else { self.local_isn }
    }

    fn remote_offset(&self, syn: bool) -> u32 {
        if syn { 0 } else { self.remote_isn }
    }

    /// A packet of the script as the connection gets it; why not, if it cannot.
    pub(super) fn live(
        &self,
        tcp: &Tcp,
        ecn: Option<Ecn>,
        cookies: &mut Cookies,
    ) -> Result<Segment, Misfit> {
        let flags = tcp.flags;
        let mut bits = segment::Flags::default();
        for (set, bit) in [
            (flags.fin, segment::Flags::FIN),
            (flags.syn, segment::Flags::SYN),
            (flags.rst, segment::Flags::RST),
            (flags.psh, segment::Flags::PSH),
            (flags.ack, segment::Flags::ACK),
            (flags.ece, segment::Flags::ECE),
            (flags.cwr, segment::Flags::CWR),
        ] {
            bits = if set { bits.with(bit) } else { bits };
        }
        if flags.urg {
            return Err(Misfit::Unsupported("urgent data".into()));
        }
        let ack = if flags.ack { tcp.ack.wrapping_add(self.local_offset(flags.syn)) } else { 0 };
        Ok(Segment {
            seq: tcp.seq.wrapping_add(self.remote_offset(flags.syn)),
            ack,
            flags: bits,
            window: tcp.window.unwrap_or(0),
            len: tcp.length,
            options: self.live_options(tcp, cookies)?,
            ecn: match ecn {
                Some(Ecn::Ect0 | Ecn::Ect1) => segment::Ecn::Ect0,
                Some(Ecn::Ce) => segment::Ecn::Ce,
                _ => segment::Ecn::NotEct,
            },
            ..Segment::default()
        })
    }

    fn live_options(&self, tcp: &Tcp, cookies: &mut Cookies) -> Result<Options, Misfit> {
        let mut options = Options::default();
        for option in tcp.options.iter().flatten() {
            match option {
                // A host without accurate ECN does not know its option.
                TcpOption::Nop | TcpOption::Eol | TcpOption::AccurateEcn(_) => {}
                TcpOption::Mss(size) => options.mss = Some(*size),
                TcpOption::WindowScale(shift) => options.window_scale = Some(*shift),
                TcpOption::SackPermitted => options.sack_permitted = true,
                TcpOption::Sack(blocks) => {
                    let offset = self.local_offset(tcp.flags.syn);
                    for (left, right) in blocks {
                        options.sack.push(left.wrapping_add(offset), right.wrapping_add(offset));
                    }
                }
                TcpOption::Timestamps(value, echo) => {
                    let echo = if tcp.flags.ack { self.live_stamp(*echo)? } else { *echo };
                    options.stamps = Some(Stamps { value: *value, echo });
                }
                // Of several the last one counts (tcp_parse_options).
                TcpOption::FastOpen(cookie) => options.cookie = Some(cookies.named(cookie, false)),
                TcpOption::FastOpenExperimental(cookie) => {
                    options.cookie = Some(cookies.named(cookie, true));
                }
                TcpOption::Md5(_) => return Err(Misfit::Unsupported("signatures (MD5)".into())),
            }
        }
        Ok(options)
    }

    /// Our timestamp that the script echoes.
    fn live_stamp(&self, echo: u32) -> Result<u32, Misfit> {
        match (self.stamps.get(&echo), self.first_stamp) {
            (Some(live), _) => Ok(*live),
            (None, Some((script, live))) => Ok(echo.wrapping_sub(script).wrapping_add(live)),
            (None, None) => Err(Misfit::Script(format!(
                "an echo of a timestamp that was sent, found ecr {echo} before any"
            ))),
        }
    }

    /// A segment that went out as the script would write it.
    pub(super) fn script(&self, segment: &Segment, cookies: &Cookies) -> Tcp {
        let has = |flag| segment.flags.has(flag);
        let syn = has(segment::Flags::SYN);
        let flags = Flags {
            fin: has(segment::Flags::FIN),
            syn,
            rst: has(segment::Flags::RST),
            psh: has(segment::Flags::PSH),
            ack: has(segment::Flags::ACK),
            ece: has(segment::Flags::ECE),
            cwr: has(segment::Flags::CWR),
            ..Flags::default()
        };
        Tcp {
            flags,
            seq: segment.seq.wrapping_sub(self.local_offset(syn)),
            length: segment.len,
            ack: if flags.ack { segment.ack.wrapping_sub(self.remote_offset(syn)) } else { 0 },
            window: Some(segment.window),
            urgent: 0,
            options: Some(self.script_options(segment, syn, cookies)),
        }
    }

    /// The options in the order and with the padding of Linux (`tcp_options_write`, v6.12).
    fn script_options(&self, segment: &Segment, syn: bool, cookies: &Cookies) -> Vec<TcpOption> {
        let options = &segment.options;
        let mut found = Vec::new();
        found.extend(options.mss.map(TcpOption::Mss));
        match (options.stamps, options.sack_permitted) {
            (Some(stamps), permitted) => {
                found.extend(if permitted {
                    vec![TcpOption::SackPermitted]
                } else {
                    vec![TcpOption::Nop; 2]
                });
                let value = match self.first_stamp {
                    Some((script, live)) => stamps.value.wrapping_sub(live).wrapping_add(script),
                    None => stamps.value,
                };
                found.push(TcpOption::Timestamps(value, stamps.echo));
            }
            (None, true) => {
                found.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::SackPermitted]);
            }
            (None, false) => {}
        }
        if let Some(shift) = options.window_scale {
            found.extend([TcpOption::Nop, TcpOption::WindowScale(shift)]);
        }
        if !options.sack.is_empty() {
            let offset = self.remote_offset(syn);
            let shifted = |(left, right): &(u32, u32)| {
                (left.wrapping_sub(offset), right.wrapping_sub(offset))
            };
            let blocks = options.sack.as_slice().iter().map(shifted).collect();
            found.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::Sack(blocks)]);
        }
        if let Some(cookie) = options.cookie {
            let bytes = cookies.bytes(cookie);
            let option = if cookie.experimental {
                TcpOption::FastOpenExperimental(bytes)
            } else {
                TcpOption::FastOpen(bytes)
            };
            let length = option.length();
            found.push(option);
            if length % 4 == 2 {
                found.extend([TcpOption::Nop, TcpOption::Nop]);
            }
        }
        found
    }
}

/// Why a packet of a script cannot be given to the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The model has no such thing.
    Unsupported(String),
    /// The script is at fault: what it should have.
    Script(String),
}

/// What the script expects, with how exactly.
pub(super) struct Expected<'a> {
    pub(super) packet: &'a Packet,
    pub(super) tcp: &'a Tcp,
    /// How long a tick of timestamps is, if their values are compared.
    pub(super) stamp_tick_us: u64,
    pub(super) tolerance_us: u64,
}

impl Expected<'_> {
    /// The first field that differs.
    pub(super) fn meets(&self, actual: &Tcp, ecn: segment::Ecn) -> Result<(), &'static str> {
        let (want, got) = (self.tcp, actual);
        let marks = match (want.flags.as_count, want.flags, got.flags) {
            (true, want, got) => want.count() == got.count(),
            (false, want, got) => (want.ece, want.cwr, want.ae) == (got.ece, got.cwr, got.ae),
        };
        let plain =
            |flags: Flags| (flags.fin, flags.syn, flags.rst, flags.psh, flags.ack, flags.urg);
        let ecn_fits = match self.packet.ecn {
            None => true,
            Some(Ecn::Not) => ecn == segment::Ecn::NotEct,
            Some(Ecn::Ect0 | Ecn::Ect01) => ecn == segment::Ecn::Ect0,
            Some(Ecn::Ce) => ecn == segment::Ecn::Ce,
            // The model marks no packet so.
            Some(Ecn::Ect1) => false,
        };
        let checks = [
            ("flags", plain(want.flags) == plain(got.flags) && marks),
            ("sequence number", want.seq == got.seq),
            ("length", want.length == got.length),
            ("acknowledgement number", want.ack == got.ack),
            ("window", want.window.is_none() || want.window == got.window),
            ("urgent pointer", want.urgent == got.urgent),
            ("options", self.options_meet(actual)),
            ("congestion bits of the IP header", ecn_fits),
        ];
        match checks.into_iter().find(|(_, fits)| !fits) {
            Some((field, _)) => Err(field),
            None => Ok(()),
        }
    }

    fn options_meet(&self, actual: &Tcp) -> bool {
        let (Some(want), Some(got)) = (&self.tcp.options, &actual.options) else { return true };
        want.len() == got.len()
            && want.iter().zip(got).all(|pair| match pair {
                (TcpOption::Timestamps(want, _), TcpOption::Timestamps(got, _)) => {
                    let apart = u64::from(want.wrapping_sub(*got).cast_signed().unsigned_abs());
                    apart * self.stamp_tick_us <= self.tolerance_us
                }
                (want, got) => want == got,
            })
    }
}

/// Whether a segment goes on where the one before ended, so that both can be one that the script
/// expects: packetdrill joins what is alike but for its flags at the end (`verify_packet_fragments` of
/// `run_packet.c`).
pub(super) fn continues(before: &Segment, next: &Segment, is_last: bool) -> bool {
    let inner = |flags: segment::Flags| {
        let end = segment::Flags::FIN.with(segment::Flags::PSH).with(segment::Flags::CWR);
        flags.without(end)
    };
    next.seq == before.seq.wrapping_add(before.len)
        && inner(next.flags) == inner(before.flags)
        && next.ack == before.ack
        && next.window == before.window
        && next.options.bytes() == before.options.bytes()
        && (is_last || next.len == before.len)
}
