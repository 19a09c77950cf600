//! Packets as a script writes them.

use std::fmt::{self, Write as _};

use super::script::{Ecn, Flags, Tcp, TcpOption};

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.seq.wrapping_add(self.length);
        write!(f, "{} {}:{end}({})", self.flags, self.seq, self.length)?;
        if self.flags.ack {
            write!(f, " ack {}", self.ack)?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if self.urgent != 0 {
            write!(f, " urg {}", self.urgent)?;
        }
        match &self.options {
            None => write!(f, " <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let options: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", options.join(","))
            }
        }
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = [
            ('F', self.fin),
            ('S', self.syn),
            ('R', self.rst),
            ('E', self.ece && !self.as_count),
            ('W', self.cwr && !self.as_count),
            ('A', self.ae && !self.as_count),
            ('P', self.psh),
            ('U', self.urg),
            ('.', self.ack),
        ];
        let mut any = false;
        for (letter, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
            f.write_char(letter)?;
            any = true;
        }
        match (self.as_count, any) {
            (true, _) => write!(f, "{}", self.count()),
            (false, true) => Ok(()),
            (false, false) => f.write_char('-'),
        }
    }
}

impl fmt::Display for Ecn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ecn::Not => "noecn",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
            Ecn::Ect01 => "ect01",
        })
    }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::Nop => f.write_str("nop"),
            TcpOption::Eol => f.write_str("eol"),
            TcpOption::Mss(size) => write!(f, "mss {size}"),
            TcpOption::WindowScale(shift) => write!(f, "wscale {shift}"),
            TcpOption::SackPermitted => f.write_str("sackOK"),
            TcpOption::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(left, right)| write!(f, " {left}:{right}"))
            }
            TcpOption::Timestamps(value, echo) => write!(f, "TS val {value} ecr {echo}"),
            TcpOption::FastOpen(cookie) => bytes(f, "FO", cookie),
            TcpOption::FastOpenExperimental(cookie) => bytes(f, "FOEXP", cookie),
            TcpOption::Md5(digest) => bytes(f, "md5", digest),
            TcpOption::AccurateEcn(counters) => {
                f.write_str("ECN")?;
                counters.iter().try_for_each(|(name, count)| write!(f, " {name} {count}"))
            }
        }
    }
}

fn bytes(f: &mut fmt::Formatter<'_>, name: &str, bytes: &[u8]) -> fmt::Result {
    f.write_str(name)?;
    if !bytes.is_empty() {
        f.write_char(' ')?;
    }
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
