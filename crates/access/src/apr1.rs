//! Apache's variant of MD5-crypt, `$apr1$`: a thousand rounds of MD5. Weak today, and in many files.

use md5::{Digest as _, Md5};

const MAGIC: &[u8] = b"$apr1$";
const ROUNDS: usize = 1000;
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The length of an encoded digest in characters.
pub(crate) const DIGEST_CHARS: usize = 22;

/// Returns the digest of a password with this salt, as written in files (Apache's `apr_md5_encode`).
pub(crate) fn digest(password: &[u8], salt: &[u8]) -> [u8; DIGEST_CHARS] {
    let mut outer = Md5::new();
    for part in [password, MAGIC, salt] {
        outer.update(part);
    }
    let inner = md5(&[password, salt, password]);
    for left in (1..=password.len()).rev().step_by(inner.len()) {
        outer.update(&inner[..left.min(inner.len())]);
    }
    let mut bits = password.len();
    while bits != 0 {
        outer.update(if bits & 1 == 1 { &[0] } else { &password[..1] });
        bits >>= 1;
    }
    let mut digest: [u8; 16] = outer.finalize().into();
    for round in 0..ROUNDS {
        let odd = round % 2 == 1;
        digest = md5(&[
            if odd { password } else { &digest },
            if round % 3 == 0 { &[] } else { salt },
            if round % 7 == 0 { &[] } else { password },
            if odd { &digest } else { password },
        ]);
    }
    encode(&digest)
}

fn md5(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = Md5::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Encodes a digest: six bits a character, the lowest first, with the bytes in the order that this format defines.
fn encode(digest: &[u8; 16]) -> [u8; DIGEST_CHARS] {
    const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let mut out = [0; DIGEST_CHARS];
    let mut write = |at: usize, mut bits: u32, count: usize| {
        for place in &mut out[at..at + count] {
            *place = ALPHABET[(bits & 63) as usize];
            bits >>= 6;
        }
    };
    for (at, [a, b, c]) in ORDER.into_iter().enumerate() {
        write(4 * at, u32::from(digest[a]) << 16 | u32::from(digest[b]) << 8 | u32::from(digest[c]), 4);
    }
    write(20, u32::from(digest[11]), 2);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected value comes from `openssl passwd -apr1 -salt SALT PASSWORD`.
    #[test]
    fn as_openssl_computes_it() {
        let cases = [
            ("a", "x", "16j9.5e7KiXmuYFAYpPJM/"),
            ("secret", "abcdefgh", "h9FWgUz3n9YxylKLlR5SQ/"),
            ("correct horse battery staple", "r31.....", "RSm0VOy2/jdarTt.BqnSF0"),
            ("0123456789abcdef", "salt", "CpZlDoa2rEnrKkHpXoKwT1"),
            ("0123456789abcdef0", "salt", "WI9cNezKgBAtGEA0.NQqJ/"),
            ("grüße", "12345678", "uafoSIz4.zh5mmJkPhwqP0"),
        ];
        for (password, salt, expected) in cases {
            assert_eq!(std::str::from_utf8(&digest(password.as_bytes(), salt.as_bytes())), Ok(expected), "{password}");
        }
    }
}
