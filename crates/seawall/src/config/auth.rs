//! `[auth]`: where a password is asked for, and whose is right.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, str::FromStr};

use access::{BadLine, BadPath, FileError, Lock, Protected};
use http::HeaderValue;
use toml::Spanned;

use super::{error::Mistake, file, resolve::Resolver, settings::Auth, sites::first};

/// The largest number of protected paths of one site.
const PATHS_MAX: usize = 64;
const REALM_CHARS_MAX: usize = 128;

/// A path that is protected with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedPath(pub String);

impl FromStr for ProtectedPath {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let Err(why) = Protected::new([text]) else { return Ok(Self(text.to_owned())) };
        let mistake =
            Mistake::new(format!("\"{text}\" cannot be protected: {why}"), "write a path such as \"/drafts\", or \"/\" for the whole site");
        let guess = match why {
            BadPath::Relative if !text.is_empty() && !text.contains(':') => format!("/{text}"),
            BadPath::Pattern => text.split(['*', '?', '#']).next().unwrap_or_default().to_owned(),
            BadPath::Relative | BadPath::Dots => return Err(mistake),
        };
        Err(if Protected::new([guess.as_str()]).is_ok() { mistake.meant(guess) } else { mistake })
    }
}

/// The name that browsers show for what is protected (RFC 9110 §11.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Realm(pub String);

impl FromStr for Realm {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let fits = !text.is_empty() && text.len() <= REALM_CHARS_MAX && text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if fits {
            return Ok(Self(text.to_owned()));
        }
        Err(Mistake::new(format!("{text:?} is not a realm"), "write up to 128 letters, digits and signs of ASCII, such as \"Drafts\""))
    }
}

impl Default for Realm {
    fn default() -> Self {
        Self("Protected".to_owned())
    }
}

impl Resolver<'_> {
    /// Resolves the paths of a site that need a password, and the file of its users.
    pub(super) fn auth(&mut self, auth: [&file::Auth; 2]) -> Option<Auth> {
        let paths = first(auth.map(|auth| &auth.paths));
        let realm = first(auth.map(|auth| &auth.realm));
        let forward = first(auth.map(|auth| &auth.forward)).filter(|forward| *forward.get_ref());
        let Some(file) = first(auth.map(|auth| &auth.file)) else {
            let spans = [paths.map(Spanned::span), realm.map(Spanned::span), forward.map(Spanned::span)];
            if let Some(span) = spans.into_iter().flatten().min_by_key(|span| span.start) {
                let remedy = "write file = \"users\" in [auth], and make it: htpasswd -B -c users NAME";
                self.wrong_at(Mistake::new("nobody has a password: there is no file of users", remedy), span);
            }
            return None;
        };
        let path = self.file_folder().join(file.get_ref());
        self.look_at_users(&path, file);
        if let Some(list) = paths.filter(|list| list.get_ref().len() > PATHS_MAX) {
            let mistake = Mistake::new(format!("{} paths are too many", list.get_ref().len()), format!("at most {PATHS_MAX}"));
            self.wrong_at(mistake, list.span());
        }
        let paths = match paths {
            Some(list) => Protected::new(list.get_ref().iter().map(|path| path.get_ref().0.as_str())),
            None => Protected::new(["/"]),
        };
        let Realm(realm) = realm.map(|realm| realm.get_ref().clone()).unwrap_or_default();
        let realm = realm.replace('\\', "\\\\").replace('"', "\\\"");
        let challenge = HeaderValue::from_str(&format!("Basic realm=\"{realm}\", charset=\"UTF-8\"")).ok()?;
        let paths = paths.ok().filter(|paths| !paths.is_empty())?;
        Some(Auth { file: path, paths, challenge, forward: forward.is_some() })
    }

    /// Warns about every line of the users' file that lets nobody in. Otherwise only a visitor would notice.
    fn look_at_users(&mut self, path: &Path, said: &Spanned<String>) {
        const REMEDY: &str = "write the line again: htpasswd -B FILE NAME (bcrypt), or openssl passwd -apr1";
        match Lock::open(path) {
            Ok((_, bad)) => {
                for BadLine { line, problem } in bad {
                    self.wrong_at(Mistake::new(format!("{}, line {line}: {problem}", path.display()), REMEDY), said.span());
                }
            }
            Err(error) => {
                let remedy = match &error {
                    FileError::Unreadable(_, why) if why.kind() == std::io::ErrorKind::NotFound => {
                        format!("make it: htpasswd -B -c {} NAME", path.display())
                    }
                    FileError::Unreadable(..) => "give Seawall's user the right to read it".to_owned(),
                    FileError::NoUsers(..) | FileError::NoRandomness => "name a file that htpasswd has written".to_owned(),
                };
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                self.wrong_at(Mistake::new(format!("{error}{cause}"), remedy), said.span());
            }
        }
        if fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o004 != 0) {
            let path = path.display();
            let warning = format!("everybody on this machine can read the users in {path}: chmod 640 {path}");
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_to_protect() {
        assert_eq!("/drafts/".parse(), Ok(ProtectedPath("/drafts/".to_owned())));
        for (text, expected) in
            [("drafts", "\"/drafts\""), ("/drafts/*", "\"/drafts/\""), ("", ""), ("/a/../b", ""), ("https://a.example/", "")]
        {
            let mistake = text.parse::<ProtectedPath>().expect_err(text);
            assert!(mistake.meant.unwrap_or_default().contains(expected), "{text}");
        }
    }

    #[test]
    fn realms() {
        assert!("Drafts of \"Ada\"".parse::<Realm>().is_ok());
        for text in ["", "Entwürfe", "a\nb", &"x".repeat(129)] {
            assert!(text.parse::<Realm>().is_err(), "{text}");
        }
    }
}
