//! One password's hash, as it stands in a file.

use std::fmt;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use subtle::ConstantTimeEq as _;

use crate::apr1;

/// The greatest bcrypt cost that is accepted. A greater one takes longer than a second for each check: a few visitors would keep all others
/// waiting.
const COST_MAX: u32 = 14;
const COST_MIN: u32 = 4;
/// The length of a bcrypt hash in characters: `$2y$10$`, 22 of salt, 31 of digest.
const BCRYPT_CHARS: usize = 60;
const APR1: &str = "$apr1$";
const SALT_CHARS_MAX: usize = 8;
const SHA: &str = "{SHA}";

/// A hash that a password can be compared with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Hash {
    /// A bcrypt hash, whole, as written.
    Bcrypt(Box<str>),
    Apr1 {
        salt: Box<str>,
        digest: [u8; apr1::DIGEST_CHARS],
    },
    Sha1([u8; 20]),
}

/// The reason why the text after a user's name is refused. It never shows the text: that may be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadHash {
    #[error("there is no password behind the name")]
    Empty,
    #[error("this is a hash, but not a whole one")]
    Broken,
    #[error("its bcrypt cost of {0} is not between {COST_MIN} and {COST_MAX}")]
    Cost(u32),
    #[error("this kind of hash (crypt, salted SHA) is not understood")]
    Unknown,
    #[error("the password itself seems to stand there, for everybody who can read the file")]
    Plain,
}

impl Hash {
    /// Reads the text after the colon.
    pub(crate) fn parse(text: &str) -> Result<Self, BadHash> {
        if text.is_empty() {
            return Err(BadHash::Empty);
        }
        if let Some(rest) = ["$2y$", "$2b$", "$2a$"].iter().find_map(|prefix| text.strip_prefix(prefix)) {
            let cost = rest.split('$').next().and_then(|cost| cost.parse().ok()).ok_or(BadHash::Broken)?;
            if !(COST_MIN..=COST_MAX).contains(&cost) {
                return Err(BadHash::Cost(cost));
            }
            let whole = text.len() == BCRYPT_CHARS && text.parse::<bcrypt::HashParts>().is_ok();
            return if whole { Ok(Self::Bcrypt(text.into())) } else { Err(BadHash::Broken) };
        }
        if let Some(rest) = text.strip_prefix(APR1) {
            let (salt, digest) = rest.split_once('$').ok_or(BadHash::Broken)?;
            let digest = digest.as_bytes().try_into().map_err(|_| BadHash::Broken)?;
            return if salt.len() <= SALT_CHARS_MAX { Ok(Self::Apr1 { salt: salt.into(), digest }) } else { Err(BadHash::Broken) };
        }
        if let Some(digest) = text.strip_prefix(SHA) {
            let digest = STANDARD.decode(digest).map_err(|_| BadHash::Broken)?;
            return digest.try_into().map(Self::Sha1).map_err(|_| BadHash::Broken);
        }
        // These are `$1$`, `$5$`, `$6$`, `$2x$`, `{SSHA}`; thirteen characters are most likely crypt's oldest form.
        let is_old_crypt = text.len() == 13 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'/');
        if is_old_crypt || text.starts_with('$') || (text.starts_with('{') && !text.starts_with("{PLAIN}")) {
            return Err(BadHash::Unknown);
        }
        Err(BadHash::Plain)
    }

    /// Returns whether this is the password's hash. It takes as long as the kind of hash demands, and equally long whether it is or not.
    pub(crate) fn verify(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::Apr1 { salt, digest } => apr1::digest(password, salt.as_bytes()).ct_eq(digest).into(),
            Self::Sha1(expected) => digest(&SHA1_FOR_LEGACY_USE_ONLY, password).as_ref().ct_eq(expected).into(),
        }
    }

    /// Returns bytes that no other hash has.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bcrypt(hash) => hash.as_bytes(),
            Self::Apr1 { digest, .. } => digest,
            Self::Sha1(digest) => digest,
        }
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bcrypt(_) => "Bcrypt",
            Self::Apr1 { .. } => "Apr1",
            Self::Sha1(_) => "Sha1",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes made by `htpasswd -nbB -C 4`, `-nbm` and `-nbs`.
    const OF_APACHE: [(&str, &str); 4] = [
        ("secret", "$2y$04$ZOlm2gmsD9P0G0L60nZfAe99.npf49SEJ3E5lflgNgrneDy.suZba"),
        ("secret", "$apr1$PBPXuDJI$hS0gdPLHHj74nKcsK9Q840"),
        ("secret", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="),
        ("grüße \" {x}", "$2y$05$aoiS8WqGvPmw0E.83LoiQ.YIQOXWAbCljoX/SsnpbU3L5DHO4kkcW"),
    ];

    #[test]
    fn what_apache_writes_is_understood() {
        for (password, hash) in OF_APACHE {
            let hash = Hash::parse(hash).expect(hash);
            assert!(hash.verify(password.as_bytes()), "{hash:?}");
            for wrong in ["", "Secret", "secret ", "secre", "secrets"] {
                assert!(!hash.verify(wrong.as_bytes()), "{hash:?} {wrong}");
            }
        }
    }

    #[test]
    fn what_cannot_be_held_against_is_named() {
        let bcrypt = OF_APACHE[0].1;
        let cases = [
            ("", BadHash::Empty),
            ("secret", BadHash::Plain),
            ("{PLAIN}secret", BadHash::Plain),
            ("rqXexS6ZhobKA", BadHash::Unknown),
            ("$1$abc$defghijklmnopqrstuvwxyz", BadHash::Unknown),
            ("$6$abc$defghijklmnopqrstuvwxyz", BadHash::Unknown),
            ("{SSHA}abcdef", BadHash::Unknown),
            (&bcrypt[..59], BadHash::Broken),
            ("$2y$31$abcdefghijklmnopqrstuuabcdefghijklmnopqrstuvwxyzabcde", BadHash::Cost(31)),
            ("$2y$xx$abcdefghijklmnopqrstuu", BadHash::Broken),
            ("$apr1$salt", BadHash::Broken),
            ("$apr1$toolongsalt$abcdefghijklmnopqrstuv", BadHash::Broken),
            ("{SHA}notbase64!", BadHash::Broken),
        ];
        for (text, expected) in cases {
            assert_eq!(Hash::parse(text), Err(expected), "{text}");
        }
    }
}
