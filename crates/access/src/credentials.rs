//! What a client says: a name and a password (RFC 7617).

use std::fmt;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// The longest credentials that are read: a hash is the most expensive thing that a stranger can ask for.
const ENCODED_BYTES_MAX: usize = 1024;

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// A name and a password, as a client claims them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Box<str>,
    password: Box<[u8]>,
}

impl Credentials {
    /// Reads the value of an `Authorization` field. Returns `None` if it is of another scheme, or cannot be read.
    #[must_use]
    pub fn basic(value: &[u8]) -> Option<Self> {
        let (scheme, encoded) = value.split_at_checked(6)?;
        let encoded = encoded.trim_ascii();
        if !scheme.eq_ignore_ascii_case(b"basic ") || encoded.len() > ENCODED_BYTES_MAX {
            return None;
        }
        let decoded = BASE64.decode(encoded).ok()?;
        let colon = decoded.iter().position(|&b| b == b':')?;
        // We ask for UTF-8; a name in another charset matches no user.
        let user = std::str::from_utf8(&decoded[..colon]).ok()?.into();
        Some(Self { user, password: decoded[colon + 1..].into() })
    }

    /// Returns the user's name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    pub(crate) fn password(&self) -> &[u8] {
        &self.password
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7617 §2 and §2.1: "Aladdin" with "open sesame", and "test" with "123£" in UTF-8.
    #[test]
    fn as_the_rfc_writes_them() {
        let said = |text: &str| Credentials::basic(text.as_bytes()).map(|said| (said.user.to_string(), said.password.to_vec()));
        assert_eq!(said("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), Some(("Aladdin".to_owned(), b"open sesame".to_vec())));
        assert_eq!(said("basic   QWxhZGRpbjpvcGVuIHNlc2FtZQ"), Some(("Aladdin".to_owned(), b"open sesame".to_vec())));
        assert_eq!(said("Basic dGVzdDoxMjPCow=="), Some(("test".to_owned(), "123£".as_bytes().to_vec())));
        // The first colon ends the name; what follows is the password, colons and all.
        assert_eq!(said("Basic YTpiOmM="), Some(("a".to_owned(), b"b:c".to_vec())));
        for text in ["", "Basic", "Basic ", "Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Basic !!!!", "Basic YWJj", "Basic /zph"] {
            assert_eq!(said(text), None, "{text}");
        }
        assert_eq!(said(&format!("Basic {}", "YTph".repeat(300))), None);
        assert!(!format!("{:?}", Credentials::basic(b"Basic YTpzZWNyZXQ=")).contains("secret"));
    }
}
