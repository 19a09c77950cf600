//! Looks that M-Lab publishes (github.com/m-lab/tcp-info, `netlink.ArchivalRecord`): one socket at one look a line, in JSON.
//!
//! `RawIDM` is the kernel's `inet_diag_msg`, `Attributes` what follows it, by number, both as base64. The first line may
//! have nothing but `Metadata`, as each file is about one connection. Kernels of M-Lab are little-endian, as this program takes
//! its own to be.

use serde::Deserialize;
use tcpwhy::host::snapshot::Socket;
use tcpwhy::units::Time;
use tcpwhy_linux::live::archived;

/// A line.
#[derive(Debug, PartialEq)]
pub(super) enum MLab {
    /// About all that follow.
    Head,
    /// When, and the socket.
    Socket(u64, Box<Socket>),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Record {
    #[serde(default)]
    timestamp: String,
    #[serde(rename = "RawIDM", default)]
    message: Option<String>,
    #[serde(default)]
    attributes: Option<Vec<Option<String>>>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "UUID")]
    _uuid: String,
}

/// What the line says; `None` if it is none of theirs, or says nothing of a connection.
pub(super) fn read(line: &[u8]) -> Option<MLab> {
    let record: Record = serde_json::from_slice(line).ok()?;
    let Some(message) = record.message else { return record.metadata.map(|_| MLab::Head) };
    let attributes = record.attributes.unwrap_or_default();
    let attributes: Vec<_> =
        attributes.iter().map(|value| bytes_of(value.as_ref()?)).take(MOST).collect();
    let socket = archived(&bytes_of(&message)?, &attributes)?;
    Some(MLab::Socket(time_of(&record.timestamp)?, Box::new(socket)))
}

/// A date of UTC with as many digits behind the second as are not zero, in nanoseconds since 1970.
fn time_of(text: &str) -> Option<u64> {
    let date = text.strip_suffix('Z')?;
    let (second, fraction) = date.split_once('.').unwrap_or((date, ""));
    let time = Time::from_rfc3339(&format!("{second}.{fraction:0<9}Z"))?;
    u64::try_from(time.0).ok()
}

/// Reads base64 (RFC 4648 section 4), with its padding.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut held, mut bits) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = held << 6 & 0xff_ffff | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xff) as u8);
        }
    }
    Some(bytes)
}

/// Ours: the kernel numbers some twenty attributes.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digit = |number: u32| char::from(DIGITS[number as usize & 63]);
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
            let word = at(0) << 16 | at(1) << 8 | at(2);
            let digits = [18, 12, 6, 0].map(|shift| digit(word >> shift));
            text.extend(&digits[..=three.len()]);
            text.extend(std::iter::repeat_n('=', 3 - three.len()));
        }
        text
    }

    /// An established connection of 192.0.2.1:443 with 1,000 bytes in its send queue and a round trip of 20 ms.
    fn line() -> String {
        let mut head = vec![0_u8; 72];
        (head[0], head[1]) = (2, 1);
        head[4..6].copy_from_slice(&443_u16.to_be_bytes());
        head[6..8].copy_from_slice(&40_000_u16.to_be_bytes());
        head[8..12].copy_from_slice(&[192, 0, 2, 1]);
        head[24..28].copy_from_slice(&[198, 51, 100, 7]);
        head[44] = 9;
        head[60..64].copy_from_slice(&1_000_u32.to_ne_bytes());
        let mut info = vec![0_u8; 232];
        info[68..72].copy_from_slice(&20_000_u32.to_ne_bytes());
        format!(
            r#"{{"Timestamp":"2019-06-05T17:25:46.103Z","RawIDM":"{}","Attributes":[null,null,"{}",null,"{}"]}}"#,
            base64(&head),
            base64(&info),
            base64(b"bbr\0")
        )
    }

    #[test]
    fn a_record_is_a_socket_at_a_look() {
        let Some(MLab::Socket(t_ns, socket)) = read(line().as_bytes()) else {
            panic!("a record: {}", line())
        };
        assert_eq!(t_ns, 1_559_755_546_103_000_000);
        assert_eq!(socket.local.to_string(), "192.0.2.1:443");
        assert_eq!((socket.cookie, socket.send_queue), (9, 1_000));
        assert_eq!(socket.congestion.as_deref(), Some("bbr"));
        assert_eq!(socket.info.and_then(|info| info.rtt_ns), Some(20_000_000));
    }

    #[test]
    fn a_head_has_no_socket_and_what_is_damaged_is_none() {
        let head = r#"{"Timestamp":"0001-01-01T00:00:00Z","RawIDM":null,"Metadata":{"UUID":"x","Sequence":0}}"#;
        assert_eq!(read(head.as_bytes()), Some(MLab::Head));
        let whole = line();
        for odd in
            ["{}", "", r#"{"RawIDM":"AAAA"}"#, &whole.replace("2019-", "year "), &whole[..90]]
        {
            assert_eq!(read(odd.as_bytes()), None, "{odd}");
        }
        assert_eq!(read(whole.replace("RawIDM\":\"A", "RawIDM\":\"!").as_bytes()), None);
    }
}
