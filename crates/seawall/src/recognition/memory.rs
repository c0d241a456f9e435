//! The memory: which software servers were, for a start at which they are away.
//!
//! It is a small file in the folder of stored responses, as it is of use with them alone. It holds nothing secret. A file that is torn, too long, or
//! of another version is as good as none.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::{Finding, Findings, Question, Software, sitemap::ListingDigest};

const FILE: &str = "recognised.json";
const TEMPORARY: &str = "recognised.json.new";

/// The version of the file.
const VERSION: u32 = 1;

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
struct Memory {
    version: u32,
    /// The servers that were recognised. Before WordPress was, all of them were Ghosts.
    #[serde(alias = "ghosts")]
    recognised: Vec<RememberedServer>,
}

#[derive(Serialize, Deserialize)]
struct RememberedServer {
    source: String,
    host: Option<String>,
    #[serde(alias = "ghost")]
    software: Software,
    /// The digest of what lists its pages, as it was seen last.
    #[serde(default)]
    seen: Option<ListingDigest>,
}

/// Reads what is remembered in the folder `dir`.
pub(crate) fn read(dir: &Path) -> Findings {
    let mut known = Findings::default();
    let mut text = String::new();
    let read = File::open(dir.join(FILE)).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    let memory: Option<Memory> = read.ok().and_then(|_| serde_json::from_str(&text).ok());
    for RememberedServer { source, host, software, seen } in
        memory.filter(|memory| memory.version == VERSION).into_iter().flat_map(|memory| memory.recognised)
    {
        let question = Question { source, host };
        if let Some(seen) = seen {
            known.take_seen(question.clone(), seen);
        }
        known.take(question, Finding::Recognised { software, remembered: true });
    }
    known
}

/// Writes what is known into the folder `dir`, unless that is what stands there.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(dir: &Path, known: &Findings) -> io::Result<()> {
    let recognised = known.recognised().map(|(Question { source, host }, software, seen)| RememberedServer {
        source: source.clone(),
        host: host.clone(),
        software: software.clone(),
        seen,
    });
    let text = serde_json::to_string(&Memory { version: VERSION, recognised: recognised.collect() }).map_err(io::Error::other)?;
    if fs::read_to_string(dir.join(FILE)).is_ok_and(|before| before == text) {
        return Ok(());
    }
    let temporary = dir.join(TEMPORARY);
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(temporary, dir.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recognised_is_remembered_and_a_torn_file_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(read(folder.path()), Findings::default());
        let question = Question { source: "http://127.0.0.1:2368".to_owned(), host: Some("blog.example".to_owned()) };
        let other = Question { source: "http://127.0.0.1:3000".to_owned(), host: None };
        let software = Software::ghost("6.65", "https://blog.example/").expect("a Ghost");
        let mut known = Findings::default();
        known.take(question.clone(), Finding::Recognised { software: software.clone(), remembered: false });
        known.take_seen(question.clone(), u64::MAX);
        known.take(other.clone(), Finding::Other("404".to_owned()));
        write(folder.path(), &known).expect("written");
        let remembered = read(folder.path());
        assert_eq!(remembered.of(&question), Finding::Recognised { software, remembered: true });
        assert_eq!(remembered.of(&other), Finding::Unasked);
        assert_eq!(remembered.seen.get(&question), Some(&u64::MAX));
        let file = folder.path().join(FILE);
        let text = fs::read_to_string(&file).expect("there");
        for torn in [&text[..text.len() / 2], "", "[]", &text.replace("\"version\":1", "\"version\":2"), &text.replace("6.65", "x")] {
            fs::write(&file, torn).expect("written");
            assert_eq!(read(folder.path()), Findings::default(), "{torn}");
        }
    }
    /// Whoever upgrades Seawall while its Ghost is away keeps its pages.
    #[test]
    fn what_an_earlier_version_wrote_down_is_still_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = r#"{"version":1,"ghosts":[{"source":"http://127.0.0.1:2368","host":null,"ghost":{"version":"6.65","url":"https://blog.example/"},"seen":7}]}"#;
        fs::write(folder.path().join(FILE), text).expect("written");
        let question = Question { source: "http://127.0.0.1:2368".to_owned(), host: None };
        let software = Software::ghost("6.65", "https://blog.example/").expect("a Ghost");
        assert_eq!(read(folder.path()).of(&question), Finding::Recognised { software, remembered: true });
    }
}
