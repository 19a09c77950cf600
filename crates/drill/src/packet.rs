//! The packets of a script.

use tcpwhy_model::repro::{Ecn, Flags, Tcp, TcpOption};

use crate::error::ScriptError;
use crate::lexer::Token;
use crate::parser::Parser;
use crate::script::{Body, Icmp, Packet};

impl Parser<'_> {
    /// What is behind `<` or `>`.
    pub(super) fn packet(&mut self, outbound: bool) -> Result<Packet, ScriptError> {
        let place = self.place();
        if let Some(Token::Word(word @ ("ipv4" | "ipv6" | "gre" | "GREv0" | "mpls"))) = self.peek()
        {
            return Err(ScriptError::unsupported(place, format!("a packet within `{word}`")));
        }
        let ecn = self.ip_fields(outbound)?;
        let packet = match self.peek() {
            Some(Token::Word("udp")) => return Err(ScriptError::unsupported(place, "UDP")),
            Some(Token::Word("icmp")) => {
                Packet { ecn, ports: None, body: Body::Icmp(self.icmp()?) }
            }
            _ => {
                let ports = self.ports()?;
                Packet { ecn, ports, body: Body::Tcp(self.tcp(outbound)?) }
            }
        };
        match self.peek() {
            Some(Token::Sign('{')) => {
                Err(ScriptError::unsupported(self.place(), "mutation of a packet"))
            }
            _ => Ok(packet),
        }
    }

    /// `[ect0]`, `(ce)`; of the other fields of an IP header none is modelled.
    fn ip_fields(&mut self, outbound: bool) -> Result<Option<Ecn>, ScriptError> {
        let place = self.place();
        let end = match self.peek() {
            Some(Token::Sign('[')) => ']',
            Some(Token::Sign('(')) => ')',
            _ => return Ok(None),
        };
        self.next();
        let ecn = match self.next() {
            Some(Token::Word("noecn")) => Ecn::Not,
            Some(Token::Word("ect0")) => Ecn::Ect0,
            Some(Token::Word("ect1")) => Ecn::Ect1,
            Some(Token::Word("ce")) => Ecn::Ce,
            Some(Token::Word("ect01")) if outbound => Ecn::Ect01,
            Some(Token::Word(word @ ("tos" | "ttl" | "flowlabel"))) => {
                return Err(ScriptError::unsupported(place, format!("`{word}` of a packet")));
            }
            _ => {
                return Err(
                    self.expected_before("noecn, ect0, ect1, ce, or of a packet sent ect01")
                );
            }
        };
        if self.take_sign(',') {
            return Err(ScriptError::unsupported(place, "a flow label of a packet"));
        }
        self.sign(end)?;
        Ok(Some(ecn))
    }

    fn ports(&mut self) -> Result<Option<(u16, u16)>, ScriptError> {
        if !matches!(self.peek(), Some(Token::Int(_))) {
            return Ok(None);
        }
        let from = self.number(u16::MAX.into(), "a port")?;
        self.sign('>')?;
        let to = self.number(u16::MAX.into(), "a port")?;
        Ok(Some((from as u16, to as u16)))
    }

    fn icmp(&mut self) -> Result<Icmp, ScriptError> {
        self.next();
        let Some(Token::Word(kind)) = self.next() else {
            return Err(self.expected_before("a type of ICMP"));
        };
        let mut icmp = Icmp { kind: kind.into(), code: None, mtu: None, about: None };
        if let Some(Token::Word(code)) = self.peek()
            && !matches!(code, "mtu" | "id")
        {
            self.next();
            icmp.code = Some(self.meaning(code).into());
        }
        if self.take_word("mtu") {
            icmp.mtu = Some(self.number(u32::MAX, "an MTU")?);
        }
        if self.take_word("id") {
            self.number(u16::MAX.into(), "an identifier")?;
        }
        if self.take_sign('[') {
            if let Some(Token::Word(word)) = self.peek() {
                return Err(ScriptError::unsupported(self.place(), format!("ICMP about `{word}`")));
            }
            icmp.about = Some(self.sequence()?);
            self.sign(']')?;
        }
        Ok(icmp)
    }

    fn tcp(&mut self, outbound: bool) -> Result<Tcp, ScriptError> {
        let flags = self.flags()?;
        let (seq, length) = self.sequence()?;
        let mut tcp = Tcp { flags, seq, length, options: Some(Vec::new()), ..Tcp::default() };
        if self.take_word("ack") {
            tcp.ack = self.number(u32::MAX, "an acknowledgement number")?;
        }
        if self.take_word("win") {
            tcp.window = Some(self.number(u16::MAX.into(), "a window's field")? as u16);
        }
        if self.take_word("urg") {
            tcp.urgent = self.number(u16::MAX.into(), "an urgent pointer")? as u16;
        }
        if self.take_sign('<') {
            tcp.options = self.options(outbound)?;
        }
        Ok(tcp)
    }

    /// `S`, `P.`, `.`, `-` for none, or with accurate ECN's count: `P.5`.
    fn flags(&mut self) -> Result<Flags, ScriptError> {
        let expected = "flags of TCP, such as `S`, `P.`, `.` or `-` for none";
        let place = self.place();
        let mut flags = Flags::default();
        let mut any = self.take_sign('-');
        if any {
            return Ok(flags);
        }
        if let Some(Token::Word(letters)) = self.peek() {
            let known = letters.chars().all(|letter| flags.set(letter));
            if !known {
                return Err(self.expected(expected));
            }
            self.next();
            any = true;
        }
        match self.peek() {
            Some(Token::Sign('.')) => flags.ack = true,
            Some(Token::Fraction(count)) => {
                let count = count
                    .strip_prefix('.')
                    .and_then(|count| count.parse::<u8>().ok())
                    .filter(|count| *count < 8);
                let Some(count) = count else {
                    return Err(ScriptError::syntax(
                        place,
                        "a count of accurate ECN from .0 to .7",
                        "another number",
                    ));
                };
                flags.set_count(count);
                flags.ack = true;
            }
            _ if any => return Ok(flags),
            _ => return Err(self.expected(expected)),
        }
        self.next();
        Ok(flags)
    }

    /// `1:1001(1000)`: the first number and the length.
    fn sequence(&mut self) -> Result<(u32, u32), ScriptError> {
        let place = self.place();
        let start = self.number(u32::MAX, "a sequence number")?;
        self.sign(':')?;
        let end = self.number(u32::MAX, "a sequence number")?;
        self.sign('(')?;
        let length = self.number(u16::MAX.into(), "bytes of payload")?;
        self.sign(')')?;
        if end != start.wrapping_add(length) {
            let fault = format!("{start}:{end}({length})");
            return Err(ScriptError::syntax(
                place,
                "sequence numbers that are as far apart as the payload is long",
                &fault,
            ));
        }
        Ok((start, length))
    }

    /// The options up to `>`; none is known of `<...>`.
    fn options(&mut self, outbound: bool) -> Result<Option<Vec<TcpOption>>, ScriptError> {
        /// RFC 9293, section 3.1: the header's length has four bits and counts words of 4 bytes.
        const ROOM: usize = 40;
        let place = self.place();
        if self.take(Token::Ellipsis) {
            if !outbound {
                return Err(ScriptError::syntax(
                    place,
                    "the options of a packet that comes in",
                    "`...`",
                ));
            }
            self.sign('>')?;
            return Ok(None);
        }
        let mut options = Vec::new();
        loop {
            options.push(self.option()?);
            if self.take_sign('>') {
                break;
            }
            if !self.take_sign(',') {
                return Err(self.expected("`,` or `>`"));
            }
        }
        let length: usize = options.iter().map(TcpOption::length).sum();
        if length > ROOM {
            return Err(ScriptError::syntax(
                place,
                "options of at most 40 bytes",
                &format!("{length} bytes"),
            ));
        }
        Ok(Some(options))
    }

    fn option(&mut self) -> Result<TcpOption, ScriptError> {
        let place = self.place();
        let expected = "an option of TCP";
        let Some(Token::Word(name)) = self.next() else {
            return Err(self.expected_before(expected));
        };
        Ok(match name {
            "nop" => TcpOption::Nop,
            "eol" => TcpOption::Eol,
            "mss" => TcpOption::Mss(self.number(u16::MAX.into(), "a segment size")? as u16),
            "wscale" => {
                TcpOption::WindowScale(self.number(u8::MAX.into(), "a window's scale")? as u8)
            }
            "sackOK" => TcpOption::SackPermitted,
            "sack" => TcpOption::Sack(self.blocks()?),
            "TS" => self.timestamps()?,
            "FO" => TcpOption::FastOpen(self.bytes()?),
            "FOEXP" => TcpOption::FastOpenExperimental(self.bytes()?),
            "md5" => TcpOption::Md5(self.bytes()?),
            "ECN" => TcpOption::AccurateEcn(self.counters()?),
            "mp_capable" | "mp_join" | "mp_fail" | "add_address" | "remove_address" | "dss" => {
                return Err(ScriptError::unsupported(place, "multipath TCP"));
            }
            _ => return Err(self.expected_before(expected)),
        })
    }

    fn blocks(&mut self) -> Result<Vec<(u32, u32)>, ScriptError> {
        let mut blocks = Vec::new();
        loop {
            let left = self.number(u32::MAX, "a sequence number")?;
            self.sign(':')?;
            blocks.push((left, self.number(u32::MAX, "a sequence number")?));
            if !matches!(self.peek(), Some(Token::Int(_))) {
                return Ok(blocks);
            }
        }
    }

    fn timestamps(&mut self) -> Result<TcpOption, ScriptError> {
        if !self.take_word("val") {
            return Err(self.expected("`val`"));
        }
        let value = self.number(u32::MAX, "a timestamp")?;
        if !self.take_word("ecr") {
            return Err(self.expected("`ecr`"));
        }
        Ok(TcpOption::Timestamps(value, self.number(u32::MAX, "a timestamp")?))
    }

    /// `e1b 1 ceb 0 e0b 1`: byte counters of 24 bits (draft-ietf-tcpm-accurate-ecn, section 3.2.3).
    fn counters(&mut self) -> Result<Vec<(String, u32)>, ScriptError> {
        let mut counters = Vec::new();
        while let Some(Token::Word(name @ ("e0b" | "e1b" | "ceb"))) = self.peek() {
            self.next();
            counters.push((name.to_string(), self.number(0xff_ffff, "a counter")?));
        }
        Ok(counters)
    }

    /// Bytes as digits, or none at all.
    fn bytes(&mut self) -> Result<Vec<u8>, ScriptError> {
        let Some(Token::Word(text) | Token::Int(text) | Token::Hex(text)) = self.peek() else {
            return Ok(Vec::new());
        };
        let digits = self.meaning(text).as_bytes();
        let value = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        let (pairs, rest) = digits.as_chunks::<2>();
        let bytes: Option<Vec<u8>> =
            pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect();
        match bytes {
            Some(bytes) if rest.is_empty() => {
                self.next();
                Ok(bytes)
            }
            _ => Err(self.expected("bytes as pairs of hexadecimal digits")),
        }
    }
}
