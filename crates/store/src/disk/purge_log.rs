//! The purge table on disk: what was purged stays purged when what was stored comes back from disk.
//!
//! One file, appended to: a checksummed line for each purge, written before anybody is told of it. When it is much longer than the table
//! it is written anew from the table. At the start of the process it is read once and written anew, with a line that says at which
//! generation the process begins: above everything that came before it, so that no stored response can look younger than a later purge.
//!
//! What can be wrong with it, and what follows:
//!
//! | found | because | then |
//! |---|---|---|
//! | an unfinished last line | killed while writing it; nobody was told of that purge | the line is dropped |
//! | a line that is damaged | bit rot, somebody's editor | [`History::Damaged`]: it may have been any purge, so everything is purged softly and doubted |
//! | no closing line, and the machine has been started since | power was lost: the last lines may not have come to the disk | the same |
//! | no file, or not ours | see below; somebody removed it; a new folder | [`History::Lost`]: stored responses cannot be judged, and are given up |
//!
//! **When a line cannot be written** (a full disk), purges go on in memory, and the log is *removed*: that needs no room, and a log that is
//! missing cannot be overlooked at the next start, as a mark that had to be written could. Now and then it is tried to write it anew; once
//! that works, nothing is lost after all. Where not even removing works, the disk has become read-only: [`PurgeLog::open`] fails for such a
//! folder, but one that becomes so later, and writable again for the next start, keeps its last state. Nothing could tell it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::hash::KeyHash;
use crate::purge::{Hardness, PREFIX_BYTES_MAX};

const NAME: &str = "purges";
const NEW_NAME: &str = "purges.new";
const HEADER: &[u8] = b"seawall-purges 1\n";

/// The number by which the generation is raised at a start: by more than the purges that could be missing from the log's end.
const LEAP: u64 = 1 << 20;
/// The number by which the generation is raised if lines are missing: by more than a million starts raise it.
const LEAP_DAMAGED: u64 = 1 << 40;
/// The greatest generation that is accepted. No process reaches it; a sum beyond it must not overflow.
const GENERATION_MAX: u64 = 1 << 60;
/// The number of lines beyond twice the table's that a log may have before it is rewritten: 300 KiB.
const SURPLUS_MAX: usize = 4_096;
/// The number of purges, while they cannot be written, for which one tries to write the whole log.
const RETRY_EVERY: u32 = 16;
/// The longest file that is read; a longer one is not ours: 65,536 lines of the greatest length come to half of it.
const FILE_MAX: u64 = 1 << 30;

/// Says how much of the purges of earlier processes is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    /// All purges are known.
    Whole,
    /// Some purges may be missing: everything has been purged softly, and is doubted.
    Damaged,
    /// No purges are known, and neither is the last generation: what is stored must be given up. This is also the state of a new folder.
    Lost,
}

/// One purge, as a line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Logged {
    /// The generation that the purge made.
    pub(crate) generation: u64,
    pub(crate) hardness: Hardness,
    pub(crate) what: LoggedTarget,
}

/// The target of a purge, as the table knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoggedTarget {
    All,
    /// A doubt, and not a purge: what was fetched before may have been purged without our knowledge. Versions that do not know this line
    /// take it for a damaged one, and purge everything softly.
    Doubt,
    Site(u16),
    /// A URL or a tag.
    Exact {
        site: u16,
        name: KeyHash,
    },
    /// A URL that the answer to an unsafe method invalidated.
    Invalidated {
        site: u16,
        name: KeyHash,
    },
    Prefix {
        site: u16,
        prefix: Box<[u8]>,
    },
}

/// The content of a log when it was opened.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) history: History,
    /// The purges in the order in which they happened.
    pub(crate) lines: Vec<Logged>,
    /// The generation to begin at.
    pub(crate) generation: u64,
}

/// The log of purges, open for appending.
#[derive(Debug)]
pub(crate) struct PurgeLog {
    dir: PathBuf,
    /// The file. `None`: the disk does not accept it, and it is removed.
    file: Option<File>,
    lines: usize,
    /// The most lines before it is rewritten.
    lines_max: usize,
    lost: u32,
    /// The name of this run of the machine, where the system tells it (Linux); else empty, and a loss of power is not noticed.
    boot: String,
}

impl PurgeLog {
    /// Reads the log in `dir`. Call [`begin`](Self::begin) after it.
    pub(crate) fn open(dir: &Path) -> io::Result<(Self, Replay)> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot: String = boot.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        let path = dir.join(NAME);
        let bytes = match fs::metadata(&path) {
            Ok(file) if file.is_file() && file.len() <= FILE_MAX => fs::read(&path)?,
            Ok(_) => Vec::new(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let replay = replay(&bytes, &boot);
        let log = Self { dir: dir.to_owned(), file: None, lines: 0, lines_max: SURPLUS_MAX, lost: 0, boot };
        Ok((log, replay))
    }

    /// Rewrites the log, to begin at `generation`, and waits until it is on the disk: later processes must know that the generations of
    /// this one are above theirs. If the disk is full, the log is failing from the start. An error means that nothing could be written and
    /// that the old log cannot be removed either.
    pub(crate) fn begin(&mut self, generation: u64, table: impl FnOnce() -> Vec<Logged>) -> io::Result<()> {
        match self.write_anew(generation, &table()).and_then(|file| file.sync_all()) {
            Ok(()) => Ok(()),
            Err(_) => self.give_up(),
        }
    }

    /// Adds a line. If that fails, the log is failing after it; the purge itself is still valid.
    pub(crate) fn append(&mut self, logged: &Logged) {
        let Some(file) = &mut self.file else {
            self.lost = self.lost.wrapping_add(1);
            return;
        };
        let mut line = Vec::with_capacity(128);
        Line::Purge(logged.clone()).write(&mut line);
        // There is one write: a process that is killed in the middle of it leaves an unfinished line at the end, and not one before another
        // line.
        if file.write_all(&line).is_ok() {
            self.lines += 1;
        } else {
            // Whether it can be removed or not, the log is failing; if not, a later attempt may succeed.
            let _ = self.give_up();
        }
    }

    /// Rewrites the log if it has grown too long for a table of `table_len` lines, or now and then if it is failing.
    pub(crate) fn tidy(&mut self, generation: u64, table_len: usize, table: impl FnOnce() -> Vec<Logged>) {
        match &self.file {
            Some(_) if self.lines > self.lines_max.max(2 * table_len + SURPLUS_MAX) => {
                if self.write_anew(generation, &table()).is_err() {
                    // The old log is as good; it is only longer.
                    self.lines_max = self.lines * 2;
                }
            }
            None if self.lost.is_multiple_of(RETRY_EVERY) => {
                if self.write_anew(generation, &table()).is_err() {
                    let _ = self.give_up();
                }
            }
            Some(_) | None => {}
        }
    }

    /// Ends the log in order: writes a line that says so, and returns when everything is on the disk.
    pub(crate) fn close(&mut self, generation: u64, table: impl FnOnce() -> Vec<Logged>) {
        if self.file.is_none() && self.write_anew(generation, &table()).is_err() {
            let _ = self.give_up();
        }
        let Some(file) = &mut self.file else { return };
        let mut line = Vec::new();
        Line::Closed(generation).write(&mut line);
        if file.write_all(&line).and_then(|()| file.sync_all()).is_err() {
            let _ = self.give_up();
        }
    }

    /// Returns whether purges are kept in memory alone, because the log is failing.
    pub(crate) const fn is_failing(&self) -> bool {
        self.file.is_none()
    }

    /// Writes a log of exactly this table, under a temporary name, and renames it to replace the old one. The start line comes last:
    /// without it the file is seen to be unfinished.
    fn write_anew(&mut self, generation: u64, table: &[Logged]) -> io::Result<&File> {
        let mut bytes = HEADER.to_vec();
        for logged in table {
            Line::Purge(logged.clone()).write(&mut bytes);
        }
        Line::Begun { generation, boot: self.boot.clone() }.write(&mut bytes);
        let (path, new) = (self.dir.join(NAME), self.dir.join(NEW_NAME));
        let written = private(&new).and_then(|mut file| {
            file.write_all(&bytes)?;
            fs::rename(&new, &path)?;
            Ok(file)
        });
        match written {
            Ok(file) => {
                self.lines = table.len() + 1;
                self.lines_max = SURPLUS_MAX;
                self.lost = 0;
                Ok(self.file.insert(file))
            }
            Err(error) => {
                let _ = fs::remove_file(&new);
                Err(error)
            }
        }
    }

    /// Removes the log, because it is not true any more and must not be there at the next start. Fails if that cannot be done.
    fn give_up(&mut self) -> io::Result<()> {
        let emptied = self.file.take().map_or_else(|| Err(io::ErrorKind::NotFound.into()), |file| file.set_len(0));
        match fs::remove_file(self.dir.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => emptied.map_err(|_| error),
            Ok(()) => Ok(()),
        }
    }
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // This removes the remains of an earlier attempt.
    file.set_len(0)?;
    Ok(file)
}

fn replay(bytes: &[u8], boot: &str) -> Replay {
    let mut replay = Replay { history: History::Whole, lines: Vec::new(), generation: 0 };
    let Some(bytes) = bytes.strip_prefix(HEADER) else {
        return Replay { history: History::Lost, generation: LEAP, ..replay };
    };
    let (mut begun_here, mut closed) = (None, false);
    // The bytes after the last line end are an unfinished line, or nothing.
    let complete = bytes.iter().rposition(|&byte| byte == b'\n').map_or(&[][..], |end| &bytes[..end]);
    for line in complete.split(|&byte| byte == b'\n') {
        closed = false;
        let generation = match Line::read(line) {
            Some(Line::Purge(logged)) => {
                let generation = logged.generation;
                replay.lines.push(logged);
                generation
            }
            Some(Line::Begun { generation, boot: then }) => {
                begun_here = Some(then == boot);
                generation
            }
            Some(Line::Closed(generation)) => {
                closed = true;
                generation
            }
            None => {
                replay.history = History::Damaged;
                0
            }
        };
        replay.generation = replay.generation.max(generation);
    }
    if begun_here.is_none() || (begun_here == Some(false) && !closed) {
        replay.history = History::Damaged;
    }
    replay.generation += if replay.history == History::Whole { LEAP } else { LEAP_DAMAGED };
    replay
}

/// A line of the log: checksum, generation, kind, and the data of the kind; in hexadecimal, so that no byte of it looks like a line end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Purge(Logged),
    Begun { generation: u64, boot: String },
    Closed(u64),
}

impl Line {
    fn write(&self, out: &mut Vec<u8>) {
        let line = match self {
            Self::Begun { generation, boot } => format!("{generation:x} begun {boot}"),
            Self::Closed(generation) => format!("{generation:x} closed"),
            Self::Purge(Logged { generation, hardness, what }) => {
                let hardness = match hardness {
                    Hardness::Soft => "soft",
                    Hardness::Hard => "hard",
                };
                match what {
                    LoggedTarget::All => format!("{generation:x} {hardness} all"),
                    LoggedTarget::Doubt => format!("{generation:x} {hardness} doubt"),
                    LoggedTarget::Site(site) => format!("{generation:x} {hardness} site {site:x}"),
                    LoggedTarget::Exact { site, name } => format!("{generation:x} {hardness} exact {site:x} {}", spelled(*name)),
                    LoggedTarget::Invalidated { site, name } => {
                        format!("{generation:x} {hardness} invalidated {site:x} {}", spelled(*name))
                    }
                    LoggedTarget::Prefix { site, prefix } => format!("{generation:x} {hardness} prefix {site:x} {}", hex(prefix)),
                }
            }
        };
        out.extend_from_slice(format!("{:08x} {line}\n", crc32fast::hash(line.as_bytes())).as_bytes());
    }

    fn read(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let (checksum, line) = line.split_once(' ')?;
        if checksum.len() != 8 || u32::from_str_radix(checksum, 16).ok()? != crc32fast::hash(line.as_bytes()) {
            return None;
        }
        let mut words = line.split(' ');
        let generation = u64::from_str_radix(words.next()?, 16).ok().filter(|generation| *generation < GENERATION_MAX)?;
        let hardness = match words.next()? {
            "begun" => return Some(Self::Begun { generation, boot: words.next()?.to_owned() }),
            "closed" => return Some(Self::Closed(generation)),
            "soft" => Hardness::Soft,
            "hard" => Hardness::Hard,
            _ => return None,
        };
        let kind = words.next()?;
        let site = |words: &mut std::str::Split<'_, char>| u16::from_str_radix(words.next()?, 16).ok();
        let what = match kind {
            "all" => LoggedTarget::All,
            "doubt" => LoggedTarget::Doubt,
            "site" => LoggedTarget::Site(site(&mut words)?),
            "exact" => LoggedTarget::Exact { site: site(&mut words)?, name: named(words.next()?)? },
            "invalidated" => LoggedTarget::Invalidated { site: site(&mut words)?, name: named(words.next()?)? },
            "prefix" => LoggedTarget::Prefix { site: site(&mut words)?, prefix: unhex(words.next()?)? },
            _ => return None,
        };
        Some(Self::Purge(Logged { generation, hardness, what }))
    }
}

fn spelled(name: KeyHash) -> String {
    let (first, second) = name.words();
    format!("{first:016x}{second:016x}")
}

fn named(text: &str) -> Option<KeyHash> {
    let (first, second) = text.split_at_checked(16)?;
    let word = |hex| u64::from_str_radix(hex, 16).ok();
    Some(KeyHash::from_words(word(first)?, word(second)?))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn unhex(hex: &str) -> Option<Box<[u8]>> {
    if hex.len() > 2 * PREFIX_BYTES_MAX || !hex.len().is_multiple_of(2) || !hex.is_ascii() {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests;
