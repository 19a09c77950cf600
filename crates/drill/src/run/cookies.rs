//! Cookies of Fast Open: their bytes, and the names that the model has for them.
//!
//! A server's cookie is `SipHash` of the two addresses under its key, so that scripts that name the bytes
//! (`tcp_fastopen_cookie_gen`, v5.3) run unmodified.

use tcpwhy_model::segment::Cookie;

/// A key as `tcp_fastopen_key` holds it.
pub(super) type Key = [u8; 16];

/// Every cookie that was seen; its place is its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Cookies {
    known: Vec<Vec<u8>>,
}

impl Cookies {
    /// The cookie that these bytes are.
    pub(super) fn named(&mut self, bytes: &[u8], experimental: bool) -> Cookie {
        let length = bytes.len() as u8;
        let place = self.known.iter().position(|known| known == bytes).unwrap_or_else(|| {
            self.known.push(bytes.to_vec());
            self.known.len() - 1
        });
        let name = if bytes.is_empty() { 0 } else { place as u32 + 1 };
        Cookie { name, length, experimental }
    }

    /// What it looks like in a header.
    pub(super) fn bytes(&self, cookie: Cookie) -> Vec<u8> {
        let place = cookie.name.checked_sub(1).map(|place| place as usize);
        place.and_then(|place| self.known.get(place)).cloned().unwrap_or_default()
    }

    /// The cookie that a server with this key gives, by the remote and the local address.
    pub(super) fn of_server(&mut self, key: &Key, addresses: &[u8]) -> Cookie {
        self.named(&bytes_of_server(key, addresses), false)
    }
}

/// Its bytes.
pub(super) fn bytes_of_server(key: &Key, addresses: &[u8]) -> [u8; 8] {
    siphash(key, addresses).to_le_bytes()
}

/// The key that a sysctl's value is: four words, and behind a comma perhaps a second key. A word's
/// lowest byte comes first (`proc_tcp_fastopen_key`).
pub(super) fn key_of_sysctl(value: &str) -> Option<Key> {
    let first = value.split(',').next()?;
    let word = |digits: &str| u32::from_str_radix(digits.trim(), 16).map(u32::to_le_bytes).ok();
    let words: Option<Vec<[u8; 4]>> = first.split('-').map(word).collect();
    words?.concat().try_into().ok()
}

/// The key in a text with escapes such as `\xa1`; none of another length.
pub(super) fn key_of_text(text: &str) -> Option<Key> {
    let parts = text.split("\\x").skip(1);
    let bytes: Option<Vec<u8>> = parts.map(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012) of whole words.
fn siphash(key: &Key, data: &[u8]) -> u64 {
    let words = |bytes: &[u8]| -> Vec<u64> {
        bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    };
    let key = words(key);
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let length = (data.len() as u64) << 56;
    for word in words(data).into_iter().chain([length]) {
        v[3] ^= word;
        (0..2).for_each(|_| round(&mut v));
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

const fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keys_words_are_numbers() {
        let key = key_of_sysctl("00112233-44556677-8899aabb-ccddeeff,0-0-0-0").unwrap_or_default();
        assert_eq!(key[..5], [0x33, 0x22, 0x11, 0x00, 0x77]);
        assert_eq!(key_of_sysctl("00112233-44556677-8899aabb"), None);
        assert_eq!(key_of_sysctl("dead-beef-0-ghij"), None);
    }

    #[test]
    fn a_key_is_sixteen_bytes() {
        assert_eq!(key_of_text(&"\\xa1".repeat(16)), Some([0xa1; 16]));
        assert_eq!(key_of_text(""), None);
        assert_eq!(key_of_text("\\xa1\\xa1"), None);
    }

    #[test]
    fn equal_bytes_have_one_name() {
        let mut cookies = Cookies::default();
        let first = cookies.named(&[1, 2, 3, 4], false);
        assert_ne!(cookies.named(&[1, 2, 3, 5], false).name, first.name);
        assert_eq!(cookies.named(&[1, 2, 3, 4], false), first);
        assert_eq!(cookies.bytes(first), [1, 2, 3, 4]);
        assert_eq!(cookies.named(&[], false).name, 0);
    }
}
