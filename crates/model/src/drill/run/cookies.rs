//! Cookies of Fast Open: their bytes, and the names that the model has for them.
//!
//! A server's cookie is `SipHash` of the two addresses under its key, so that scripts that name the bytes
//! (`tcp_fastopen_cookie_gen`, v5.3) run unmodified; the addresses are those of the kernel's runner of
//! its own scripts (`tools/testing/selftests/net/packetdrill/ksft_runner.sh`, v7.3).

use crate::segment::Cookie;

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

    /// The cookie that a server with this key gives to the scripts' remote host.
    pub(super) fn of_server(&mut self, key: &Key, ipv6: bool) -> Cookie {
        let bytes = if ipv6 { siphash(key, &ADDRESSES_V6) } else { siphash(key, &ADDRESSES_V4) };
        self.named(&bytes.to_le_bytes(), false)
    }
}

/// The key that a sysctl's value is: four words, and behind a comma perhaps a second key.
pub(super) fn key_of_sysctl(value: &str) -> Option<Key> {
    let first = value.split(',').next()?;
    let digits = first.trim().replace('-', "");
    let digits: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let bytes: Vec<u8> =
        digits?.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect();
    bytes.try_into().ok()
}

/// The key in a text with escapes such as `\xa1`; none of another length.
pub(super) fn key_of_text(text: &str) -> Option<Key> {
    let parts = text.split("\\x").skip(1);
    let bytes: Option<Vec<u8>> = parts.map(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// 192.0.2.1 and 192.168.0.1.
const ADDRESSES_V4: [u8; 8] = [192, 0, 2, 1, 192, 168, 0, 1];

/// `fd3d:fa7b:d17d::1` and `fd3d:0a0b:17d6::1`.
const ADDRESSES_V6: [u8; 32] = [
    0xfd, 0x3d, 0xfa, 0x7b, 0xd1, 0x7d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0xfd, 0x3d, 0x0a, 0x0b, 0x17, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
];

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
    fn a_servers_cookies_are_the_ones_that_the_kernels_runner_names() {
        let key = key_of_sysctl("a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4").unwrap_or_default();
        for (key, v4, v6) in [
            (key, 0x3021_b9d8_8901_7eeb_u64, 0xc1d1_e974_2a47_a9bc_u64),
            ([0; 16], 0xb7c1_2350_a90d_c8f5, 0x82af_1a8f_9a20_5c34),
        ] {
            assert_eq!(siphash(&key, &ADDRESSES_V4).to_le_bytes(), v4.to_be_bytes());
            assert_eq!(siphash(&key, &ADDRESSES_V6).to_le_bytes(), v6.to_be_bytes());
        }
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
