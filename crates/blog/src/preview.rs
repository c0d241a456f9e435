//! Private links to texts that readers do not see yet: `/preview/TOKEN/` and the address that the text will have.
//!
//! A token is made of the blog's secret and the name of the text's file, so nobody can guess it, it opens one text alone, and it stays the same as
//! long as secret and name do. Nothing is written down for it.

use std::fmt;

use aws_lc_rs::hmac;
use semantics::hex;

use crate::{
    site::{Draft, Site},
    slug::encode_path,
};

/// The beginning of all private links.
pub(crate) const PREFIX: &str = "/preview/";

/// The number of bytes of a token: 128 bits, as hexadecimal digits in a link.
const TOKEN_BYTES: usize = 16;

/// Makes and verifies private links of one blog.
pub(crate) struct Previews {
    key: hmac::Key,
}

impl fmt::Debug for Previews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Previews").finish_non_exhaustive()
    }
}

impl Previews {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// Returns the path of the private link to a text.
    pub(crate) fn link(&self, draft: &Draft<'_>) -> String {
        format!("{PREFIX}{}{}", self.token(draft.file), encode_path(draft.path))
    }

    /// Returns the text to which a private link leads, and the path below it that was asked for. `path` is decoded.
    pub(crate) fn find<'s, 'p>(&self, site: &'s Site, path: &'p str) -> Option<(Draft<'s>, &'p str)> {
        let (token, rest) = path.strip_prefix(PREFIX)?.split_once('/')?;
        // Whoever has no link learns nothing by trying, not even how long it takes.
        let draft = site.drafts().into_iter().find(|draft| is_same(self.token(draft.file).as_bytes(), token.as_bytes()))?;
        let below = &path[path.len() - rest.len() - 1..];
        Some((draft, below))
    }

    fn token(&self, file: &str) -> String {
        let tag = hmac::sign(&self.key, format!("preview {file}").as_bytes());
        hex::encoded(&tag.as_ref()[..TOKEN_BYTES])
    }
}

/// Compares in a time that depends on the lengths alone.
fn is_same(own: &[u8], given: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(own, given).is_ok()
}
