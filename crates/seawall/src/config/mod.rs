//! Turns what an operator wrote into [`Settings`]: flags over environment over file over defaults.
//!
//! Two types carry it. [`file::File`] is what was typed, [`settings::Settings`] what is meant, valid by construction; nothing after
//! this module checks a setting again. All errors are collected and shown together, each with its line and its remedy. The environment
//! is an argument, so that tests need none; the file system is looked at for sources and named files, and nothing is written.

pub mod acme;
mod addresses;
pub mod alerts;
pub mod auth;
pub mod bucket;
pub mod cluster;
pub mod compress;
pub mod error;
pub mod file;
pub(crate) mod flags;
pub mod ghost;
mod headers;
mod keys;
#[cfg(test)]
mod manual;
mod overrides;
pub mod php;
pub mod purge;
mod read;
mod resolve;
pub mod routes;
pub mod settings;
mod sites;
pub mod source;
mod suggest;
mod tls;
pub mod traces;
pub mod units;
pub mod wordpress;
pub mod words;

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

pub(crate) use self::resolve::cache_dir;
pub use self::{
    error::{ConfigError, ConfigErrors},
    settings::Settings,
};
use self::{
    error::{Document, Mistake, Place},
    overrides::Overrides,
    read::FILE_BYTES_MAX,
    resolve::Resolver,
};
use crate::{
    cli::{Access, Serve},
    recognition::Findings,
};

/// The file that is read if none is named.
pub const DEFAULT_FILE: &str = "seawall.toml";

/// Reads the settings of `seawall serve` from its flags, the environment and the file.
///
/// # Errors
/// Every error in file, flags and environment, the file's first.
pub fn load(flags: &Serve, env: impl Fn(&str) -> Option<String>) -> Result<Settings, ConfigErrors> {
    load_in(Path::new(""), flags, env)
}

/// The file, as it was read, if there is one. Settings can be made of it again when more is known of the servers.
#[derive(Clone, Debug)]
pub struct ConfigFile(Result<Option<Document>, ConfigErrors>);

/// Reads the file for `seawall serve` with these flags.
pub fn read(flags: &Serve, env: impl Fn(&str) -> Option<String>) -> ConfigFile {
    ConfigFile(find_document(Path::new(""), flags.config.as_deref(), flags.source.is_none(), &env))
}

/// Makes the settings of `seawall serve` from its flags, the environment, the file as it was read, and what is known of the servers.
///
/// # Errors
/// As [`load`].
pub fn resolve(
    written: &ConfigFile,
    flags: &Serve,
    env: impl Fn(&str) -> Option<String>,
    known: &Findings,
) -> Result<Settings, ConfigErrors> {
    resolve_in(Path::new(""), written.0.clone(), flags, env, known)
}

/// Reads the settings in the file at `path`, without flags and environment.
///
/// # Errors
/// Every error in it.
pub fn check(path: &Path) -> Result<Settings, ConfigErrors> {
    load(&Serve { config: Some(path.to_owned()), ..Serve::default() }, |_| None)
}

/// Address and token of the admin API of a running Seawall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAccess {
    /// The address on which it listens.
    pub address: SocketAddr,
    /// The file of its token.
    pub token_file: PathBuf,
}

/// Finds the admin API for `seawall purge` and similar commands: by flags, then the environment, then the server's file, then defaults.
/// Other parts of the file may be wrong.
///
/// # Errors
/// When one of the values is wrong, the file cannot be read, or the admin API is off.
pub fn admin_access(flags: &Access, env: impl Fn(&str) -> Option<String>) -> Result<AdminAccess, ConfigErrors> {
    admin_access_in(Path::new(""), flags, env)
}

fn load_in(folder: &Path, typed: &Serve, env: impl Fn(&str) -> Option<String>) -> Result<Settings, ConfigErrors> {
    let document = find_document(folder, typed.config.as_deref(), typed.source.is_none(), &env);
    resolve_in(folder, document, typed, env, &Findings::default())
}

fn resolve_in(
    folder: &Path,
    document: Result<Option<Document>, ConfigErrors>,
    typed: &Serve,
    env: impl Fn(&str) -> Option<String>,
    known: &Findings,
) -> Result<Settings, ConfigErrors> {
    let mut errors = Vec::new();
    let document = match document {
        Ok(document) => document,
        Err(unreadable) => {
            errors.extend(unreadable.0);
            None
        }
    };
    let named_file_is_missing = !errors.is_empty();
    let (file, faults) = document.as_ref().map(read::read).unwrap_or_default();
    errors.extend(faults);
    let overrides = overrides::gather(typed, &env, &mut errors);
    // Without its file a configuration has no meaning to judge: "no source" would only hide the one real error.
    if named_file_is_missing {
        return Err(ConfigErrors(errors));
    }
    let mut resolver = Resolver::new(document.as_ref(), folder, errors).knowing(known);
    let settings = resolver.settings(&file, &overrides, &env);
    let errors = resolver.into_errors();
    if errors.0.is_empty() { settings.ok_or(errors) } else { Err(errors) }
}

fn admin_access_in(folder: &Path, typed: &Access, env: impl Fn(&str) -> Option<String>) -> Result<AdminAccess, ConfigErrors> {
    let document = find_document(folder, typed.config.as_deref(), true, &env)?;
    let (file, _) = document.as_ref().map(read::read).unwrap_or_default();
    let mut errors = Vec::new();
    let as_server = Serve { admin: typed.admin.clone(), ..Serve::default() };
    // Only the admin address matters here; mistakes in other variables are the server's to report.
    let admin_only = |name: &str| if name == flags::ADMIN.variable { env(name) } else { None };
    let overrides: Overrides = overrides::gather(&as_server, admin_only, &mut errors);
    let mut resolver = Resolver::new(document.as_ref(), folder, errors);
    let (address, place) = resolver.admin(&file.server, &overrides);
    let token_file = match &typed.token_file {
        Some(path) => folder.join(path),
        None => resolver.token_file(&file.server, &env),
    };
    if address.is_none() {
        let off = Mistake::new(
            "the admin API is off, and this command goes through it",
            "name its address with --admin, or turn it on in the server's configuration",
        );
        resolver.wrong(off, place);
    }
    let errors = resolver.into_errors();
    match address {
        Some(address) if errors.0.is_empty() => Ok(AdminAccess { address, token_file }),
        _ => Err(errors),
    }
}

/// Returns the file that was named. If none was and `default_is_wanted`, returns the default file if it exists.
fn find_document(
    folder: &Path,
    flag: Option<&Path>,
    default_is_wanted: bool,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Document>, ConfigErrors> {
    let named = match flag {
        Some(path) => Some((path.to_owned(), Place::Flag(flags::CONFIG.name, path.display().to_string()))),
        None => env(flags::CONFIG.variable)
            .filter(|path| !path.is_empty())
            .map(|path| (PathBuf::from(&path), Place::Environment(flags::CONFIG.variable, path))),
    };
    match named {
        Some((path, place)) => document(folder, &path).map(Some).map_err(|mistake| ConfigErrors(vec![mistake.at(place)])),
        None if default_is_wanted && folder.join(DEFAULT_FILE).exists() => {
            let path = Path::new(DEFAULT_FILE);
            document(folder, path).map(Some).map_err(|mistake| ConfigErrors(vec![mistake.at(Place::File(path.to_owned()))]))
        }
        None => Ok(None),
    }
}

fn document(folder: &Path, path: &Path) -> Result<Document, Mistake> {
    let shown = path.display();
    let full = folder.join(path);
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            Mistake::new(format!("there is no file \"{shown}\""), "check the path; `seawall serve SOURCE` needs no file at all")
        }
        _ => Mistake::new(format!("cannot read \"{shown}\": {error}"), "give Seawall's user the right to read it"),
    };
    let metadata = fs::metadata(&full).map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(Mistake::new(
            format!("\"{shown}\" is a folder"),
            format!("name the file in it; to serve the folder: seawall serve {shown}"),
        ));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(Mistake::new(format!("\"{shown}\" is larger than 1 MiB"), "this is hardly a configuration file: check the path"));
    }
    let bytes = fs::read(&full).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count() + 1;
        Mistake::new(format!("\"{shown}\" is not UTF-8 text (line {line})"), "save it as UTF-8")
    })?;
    Ok(Document { path: path.to_owned(), text })
}

#[cfg(test)]
mod tests;
