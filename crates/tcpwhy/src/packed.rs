//! Numbers, addresses and what was heard beside TCP, in few bytes.
//!
//! What is written here is read by the same version alone, on the other side of a wire.

use core::net::{IpAddr, SocketAddr};

use crate::wire::{Datagram, IcmpError, IcmpKind, Quoted};
use tcpwhy_words::units::{Seq, Time};

/// Bytes that are no whole piece of a capture, or of another version.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a piece of a capture is damaged, or another version of tcpwhy wrote it")]
pub struct Odd;

/// Seven bits a byte, the lowest first, the highest bit set on all bytes but the last.
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The same of a number that may be negative: those near zero are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63).cast_unsigned());
}

/// 0 for none, else one more.
pub(crate) fn put_some(out: &mut Vec<u8>, number: Option<u64>) {
    put(out, number.map_or(0, |number| number + 1));
}

/// A length, and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => put_bytes(out, &address.octets()),
        IpAddr::V6(address) => put_bytes(out, &address.octets()),
    }
}

pub(crate) fn put_end(out: &mut Vec<u8>, end: SocketAddr) {
    put_address(out, end.ip());
    put(out, end.port().into());
}

/// What is left of packed bytes.
#[derive(Clone, Debug)]
pub(crate) struct Packed<'a>(pub(crate) &'a [u8]);

impl<'a> Packed<'a> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Odd> {
        let (first, rest) = self.0.split_first().ok_or(Odd)?;
        self.0 = rest;
        Ok(*first)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, Odd> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Odd)
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Result<i64, Odd> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A number of a smaller type.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Odd> {
        T::try_from(self.number()?).map_err(|_| Odd)
    }

    pub(crate) fn some<T: TryFrom<u64>>(&mut self) -> Result<Option<T>, Odd> {
        match self.number()? {
            0 => Ok(None),
            number => T::try_from(number - 1).map(Some).map_err(|_| Odd),
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Odd> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Odd)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Odd> {
        let count = self.small()?;
        self.take(count)
    }

    pub(crate) fn address(&mut self) -> Result<IpAddr, Odd> {
        let bytes = self.bytes()?;
        let short = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
        short.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).map_err(|_| Odd)
    }

    pub(crate) fn end(&mut self) -> Result<SocketAddr, Odd> {
        Ok(SocketAddr::new(self.address()?, self.small()?))
    }
}

/// The kinds of errors, by their numbers here.
const KINDS: [IcmpKind; 13] = [
    IcmpKind::TooBig,
    IcmpKind::NetUnreachable,
    IcmpKind::HostUnreachable,
    IcmpKind::ProtocolUnreachable,
    IcmpKind::PortUnreachable,
    IcmpKind::SourceRouteFailed,
    IcmpKind::Prohibited,
    IcmpKind::TimeExceeded,
    IcmpKind::ReassemblyTimeExceeded,
    IcmpKind::SourceQuench,
    IcmpKind::ParameterProblem,
    IcmpKind::Redirect,
    IcmpKind::Unreachable,
];

pub(crate) fn put_error(out: &mut Vec<u8>, error: &IcmpError) {
    let IcmpError { time, frame, network, from, to, kind, mtu, quoted } = *error;
    let Quoted { source, destination, ports, seq, bytes } = quoted;
    put_signed(out, time.0);
    put(out, frame);
    put(out, network.into());
    put_address(out, from);
    put_address(out, to);
    put(out, KINDS.iter().position(|each| *each == kind).unwrap_or_default() as u64);
    put_some(out, mtu.map(u64::from));
    put_address(out, source);
    // No address has no bytes.
    match destination {
        Some(address) => put_address(out, address),
        None => put(out, 0),
    }
    put_some(out, ports.map(|[from, to]| u64::from(from) << 16 | u64::from(to)));
    put_some(out, seq.map(|seq| u64::from(seq.0)));
    put_some(out, bytes.map(u64::from));
}

pub(crate) fn error(packed: &mut Packed<'_>) -> Result<IcmpError, Odd> {
    let (time, frame, network) = (Time(packed.signed()?), packed.number()?, packed.small()?);
    let (from, to) = (packed.address()?, packed.address()?);
    let kind = *KINDS.get(packed.small::<usize>()?).ok_or(Odd)?;
    let (mtu, source) = (packed.some()?, packed.address()?);
    let destination = if packed.0.first() == Some(&0) {
        packed.byte()?;
        None
    } else {
        Some(packed.address()?)
    };
    let ports = packed.some::<u32>()?.map(|both| [(both >> 16) as u16, both as u16]);
    let (seq, bytes) = (packed.some()?.map(Seq), packed.some()?);
    let quoted = Quoted { source, destination, ports, seq, bytes };
    Ok(IcmpError { time, frame, network, from, to, kind, mtu, quoted })
}

pub(crate) fn put_datagram(out: &mut Vec<u8>, datagram: &Datagram<'_>) {
    let Datagram { time, frame, source, destination, payload } = *datagram;
    put_signed(out, time.0);
    put(out, frame);
    put_end(out, source);
    put_end(out, destination);
    put_bytes(out, payload);
}

pub(crate) fn datagram<'a>(packed: &mut Packed<'a>) -> Result<Datagram<'a>, Odd> {
    let (time, frame) = (Time(packed.signed()?), packed.number()?);
    let (source, destination, payload) = (packed.end()?, packed.end()?, packed.bytes()?);
    Ok(Datagram { time, frame, source, destination, payload })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, signed: i64, some: Option<u32>) {
            let mut out = Vec::new();
            put(&mut out, number);
            put_signed(&mut out, signed);
            put_some(&mut out, some.map(u64::from));
            let mut packed = Packed(&out);
            prop_assert_eq!(packed.number(), Ok(number));
            prop_assert_eq!(packed.signed(), Ok(signed));
            prop_assert_eq!(packed.some(), Ok(some));
            prop_assert!(packed.is_empty());
        }

        #[test]
        fn errors_come_back(
            time: i64, frame: u64, network: u32, from: IpAddr, to: IpAddr, kind in 0..KINDS.len(), mtu: Option<u32>,
            source: IpAddr, destination: Option<IpAddr>, ports: Option<[u16; 2]>, seq: Option<u32>, bytes: Option<u32>,
        ) {
            let quoted = Quoted { source, destination, ports, seq: seq.map(Seq), bytes };
            let whole = IcmpError { time: Time(time), frame, network, from, to, kind: KINDS[kind], mtu, quoted };
            let mut out = Vec::new();
            put_error(&mut out, &whole);
            prop_assert_eq!(error(&mut Packed(&out)), Ok(whole));
        }

        #[test]
        fn any_bytes_are_borne(bytes: Vec<u8>) {
            let _ = error(&mut Packed(&bytes));
            let _ = datagram(&mut Packed(&bytes)).is_ok();
        }
    }
}
