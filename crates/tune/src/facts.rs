//! The facts that were found: the machine, and what runs on it. Values alone, so that advice can be tested with tables of machines.

use std::path::PathBuf;

use crate::conf::Style;

/// Holds all that an advice depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The machine.
    pub machine: Machine,
    /// The memory that Seawall takes.
    pub seawall: Seawall,
    /// The programs that run beside it.
    pub stack: Stack,
}

/// Memory and cores, as far as this process may use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory.
    pub memory: u64,
    /// The source of that number.
    pub memory_from: String,
    /// Cores; at least one.
    pub cores: usize,
    /// The source of that number.
    pub cores_from: String,
}

/// Says what Seawall takes of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seawall {
    /// Bytes for stored responses: `[cache] memory`.
    pub cache: u64,
    /// The configuration that says so. `None`: it is the default.
    pub config: Option<PathBuf>,
}

/// Holds what runs beside Seawall.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stack {
    /// The php-fpm that is running, or else the newest that is installed.
    pub php: Option<Php>,
    /// MariaDB or MySQL, if there is one on this machine.
    pub database: Option<Database>,
    /// Redis, if there is one on this machine.
    pub redis: Option<Redis>,
    /// The folders of WordPress.
    pub sites: Vec<Site>,
    /// The notes on what could not be seen, or is not there.
    pub notes: Vec<String>,
}

/// Says where a setting is written: a file, and in what style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingLocation {
    /// The file. It may not be there yet.
    pub file: PathBuf,
    /// The style in which it is written.
    pub style: Style,
    /// The section of the setting.
    pub section: Option<String>,
}

/// A value that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundValue {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// The place of the line that counts.
    pub place: SettingLocation,
}

/// A setting with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The place where it belongs.
    pub place: SettingLocation,
    /// The key.
    pub key: String,
    /// The value that it should have.
    pub value: String,
    /// The value that is written there now. `None`: the default of the program counts.
    pub now: Option<String>,
    /// The default of the program, if it is worth saying.
    pub default: Option<&'static str>,
    /// The reason why it should have the value.
    pub why: String,
    /// The service that reads it when it starts.
    pub service: String,
}

impl Setting {
    /// Returns whether what is there now is something else.
    #[must_use]
    pub fn is_change(&self) -> bool {
        let now = self.now.as_deref().or(self.default);
        let same_size = |now: &str| crate::size::read(now).is_some_and(|bytes| crate::size::read(&self.value) == Some(bytes));
        let same_switch = |now: &str| switch(now).is_some_and(|on| switch(&self.value) == Some(on));
        !now.is_some_and(|now| now == self.value || same_size(now) || same_switch(now))
    }
}

/// Reads a switch in any of its spellings.
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Some(true),
        "0" | "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// A php-fpm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Php {
    /// The version of PHP, as the system names it: `8.2`; empty if nothing says it.
    pub version: String,
    /// The file of its configuration.
    pub config: PathBuf,
    /// The program, to try a configuration with. `None`: it was not found.
    pub program: Option<PathBuf>,
    /// The name of its service.
    pub service: String,
    /// The pools of php-fpm; at least one.
    pub pools: Vec<Pool>,
    /// The values that its `php.ini` and the files beside it set, in the order in which they are read.
    pub ini: Vec<FoundValue>,
    /// The place where further settings of PHP go.
    pub ini_place: SettingLocation,
    /// Bytes that one request may take: `memory_limit`.
    pub memory_limit: u64,
    /// The children that run now. `None`: there are none that have done anything.
    pub children: Option<Children>,
}

/// A pool of php-fpm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The name of the pool.
    pub name: String,
    /// The place of its section.
    pub place: SettingLocation,
    /// The values that are set there.
    pub now: Vec<FoundValue>,
}

impl Pool {
    /// Returns the value of a key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.now.iter().rev().find(|given| given.key == key).map(|given| given.value.as_str())
    }
}

/// Children of php-fpm, as they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Children {
    /// The number of children.
    pub count: usize,
    /// Bytes of the largest that are its own: without OPcache, which all share, and without files.
    pub largest: u64,
    /// Bytes of what they share: OPcache, as far as it is used.
    pub shared: u64,
}

/// A MariaDB or MySQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// The flavour: which of the two it is.
    pub flavour: Flavour,
    /// The values that its files set for the server, in the order in which they are read.
    pub now: Vec<FoundValue>,
    /// The place where further settings go.
    pub place: SettingLocation,
    /// The program, to try a configuration with.
    pub program: Option<PathBuf>,
    /// The name of its service.
    pub service: String,
    /// The amount that it stores.
    pub size: DatabaseSize,
}

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// MariaDB.
    MariaDb,
    /// MySQL.
    MySql,
}

impl Flavour {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "MariaDB",
            Self::MySql => "MySQL",
        }
    }
}

/// Says how much a database stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseSize {
    /// Bytes of its tables.
    Bytes(u64),
    /// Its folder could not be read.
    Unknown,
}

/// A Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redis {
    /// The values that its file sets.
    pub now: Vec<FoundValue>,
    /// The file.
    pub place: SettingLocation,
    /// The name of its service.
    pub service: String,
}

/// A folder with a WordPress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The folder.
    pub folder: PathBuf,
    /// Scripts in it.
    pub scripts: usize,
    /// Bytes of these scripts.
    pub script_bytes: u64,
    /// Bytes of the files that are sent as they are.
    pub other_bytes: u64,
    /// Whether it keeps objects elsewhere than in its database (`wp-content/object-cache.php`).
    pub has_object_cache: bool,
    /// The host of its database, if that is another machine.
    pub remote_database: Option<String>,
}
