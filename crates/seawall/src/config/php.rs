//! The server that runs PHP: where it is said to be, and where distributions put it.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    str::FromStr,
};

use origins::files::Links;

use super::{error::Mistake, settings::OriginAddress, words::choose};

/// Folders of sockets: those of Debian and Ubuntu, of Fedora and Arch, and of Alpine.
const FOLDERS: [&str; 3] = ["run/php", "run/php-fpm", "run/php-fpm8"];
/// Sockets that lie elsewhere: of FreeBSD, and of macOS with Homebrew.
const SOCKETS: [&str; 3] = ["run/php-fpm.sock", "var/run/php-fpm.sock", "opt/homebrew/var/run/php-fpm.sock"];
/// Folders with the pools of php-fpm: those of Debian and Ubuntu (below a folder for each version), of Fedora and Arch, and of Alpine.
const POOLS: [&str; 3] = ["etc/php-fpm.d", "etc/php/php-fpm.d", "usr/local/etc/php-fpm.d"];
const POOLS_OF_VERSIONS: &str = "etc/php";
/// The most bytes of a pool's file that are read.
const POOL_BYTES_MAX: u64 = 256 << 10;
/// The most names that are looked at in a folder.
const NAMES_MAX: usize = 100;

/// The address of a server that runs PHP: `unix:/path`, a path, or `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhpServer(pub OriginAddress);

impl FromStr for PhpServer {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = || {
            Mistake::new(
                format!("\"{text}\" is not the address of php-fpm"),
                "write its socket, such as \"unix:/run/php/php8.2-fpm.sock\", or its host and port, such as \"127.0.0.1:9000\"",
            )
        };
        if text.starts_with('/') {
            return format!("unix:{text}").parse().map(Self);
        }
        let is_relative = |path: &str| !path.starts_with('/') && (path.ends_with(".sock") || path.contains('/') && !path.contains(':'));
        if is_relative(text.strip_prefix("unix:").unwrap_or(text)) {
            return Err(Mistake::new(
                format!("\"{text}\" is not the full path of a socket"),
                "write the full path, such as \"unix:/run/php/php8.2-fpm.sock\"",
            ));
        }
        if text.starts_with("unix:") {
            return text.parse().map(Self);
        }
        if text.contains("://") {
            return Err(match text.split_once("://") {
                Some(("http" | "https" | "tcp" | "fastcgi" | "fcgi", rest)) => mistake().meant(rest.trim_end_matches('/')),
                _ => mistake(),
            });
        }
        let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
        match format!("http://{text}").parse() {
            Ok(address @ OriginAddress::Http { .. }) if has_port => Ok(Self(address)),
            _ => Err(mistake()),
        }
    }
}

/// The symbolic links that are followed, by a word: `beneath` or `owner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinksWord(pub Links);

impl FromStr for LinksWord {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        choose(text, "choice of links", &[("beneath", Links::Beneath), ("owner", Links::OfOneOwner)]).map(Self)
    }
}

/// A folder whose files a script may have sent, and the prefix of the paths by which it names them: `/private=/srv/private`, or a folder alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendFiles {
    /// The prefix, with a slash at both ends.
    pub prefix: Option<String>,
    /// The folder.
    pub folder: PathBuf,
}

impl FromStr for SendFiles {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let (prefix, folder) = text.split_once('=').map_or((None, text), |(prefix, folder)| (Some(prefix), folder));
        if !folder.starts_with('/') || prefix.is_some_and(|prefix| !prefix.starts_with('/')) {
            let remedy = "write the whole path of a folder, \"/srv/private\", or a prefix before it, \"/private=/srv/private\"";
            return Err(Mistake::new(format!("\"{text}\" is not a folder whose files can be sent"), remedy));
        }
        let prefix = prefix.map(|prefix| format!("{}/", prefix.trim_end_matches('/')));
        Ok(Self { prefix, folder: folder.into() })
    }
}

/// Finds the socket of php-fpm where distributions put it, below the root of the file system; that of the newest version if there are several. Returns
/// the others too.
///
/// # Errors
/// When none is there, with what to do.
pub(super) fn find(root: &Path) -> Result<(OriginAddress, Vec<PathBuf>), Mistake> {
    let mut found: Vec<PathBuf> = FOLDERS.iter().flat_map(|folder| sockets(&root.join(folder))).collect();
    found.extend(SOCKETS.iter().map(|socket| root.join(socket)).filter(|socket| socket.exists()));
    found.sort_by_key(|socket| version(socket));
    if let (true, Some(address)) = (found.is_empty(), configured(root)) {
        return Ok((address, Vec::new()));
    }
    match found.pop() {
        // Debian's own name leads to one of the others.
        Some(socket) => {
            let is_same =
                |other: &PathBuf| other.canonicalize().is_ok_and(|other| socket.canonicalize().is_ok_and(|socket| socket == other));
            found.retain(|other| !is_same(other));
            Ok((OriginAddress::Unix(socket), found))
        }
        None => Err(Mistake::new(
            "the folder has an application in PHP, and no php-fpm was found to run it (looked in /run/php, /run/php-fpm, /var/run)",
            "install php-fpm and start it, or name its socket or port: --php unix:/run/php/php8.2-fpm.sock, or --php 127.0.0.1:9000 (in the file, below [php]: server = \"...\")",
        )),
    }
}

/// Returns where php-fpm is set up to listen, though nothing is there yet: it may be started after Seawall. That of the newest version if there are
/// several.
fn configured(root: &Path) -> Option<OriginAddress> {
    let mut folders: Vec<PathBuf> = names(&root.join(POOLS_OF_VERSIONS)).map(|version| version.join("fpm/pool.d")).collect();
    folders.sort_by_key(|folder| numbers(&folder.to_string_lossy()));
    folders.extend(POOLS.iter().map(|folder| root.join(folder)));
    let pools = folders.iter().rev().flat_map(|folder| {
        let mut pools: Vec<_> = names(folder).filter(|path| path.extension().is_some_and(|extension| extension == "conf")).collect();
        pools.sort();
        pools
    });
    pools.filter_map(|pool| listens_at(&pool)).next()
}

/// Reads where a pool listens.
fn listens_at(pool: &Path) -> Option<OriginAddress> {
    let mut text = String::new();
    File::open(pool).ok()?.take(POOL_BYTES_MAX).read_to_string(&mut text).ok()?;
    let value = text.lines().find_map(|line| line.trim().strip_prefix("listen")?.trim_start().strip_prefix('='))?;
    let value = value.split(';').next()?.trim().trim_matches('"');
    let address = if value.bytes().all(|b| b.is_ascii_digit()) { format!("127.0.0.1:{value}") } else { value.to_owned() };
    address.parse::<PhpServer>().ok().map(|server| server.0)
}

fn names(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().take(NAMES_MAX).map(|item| item.path())
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    names(folder).filter(|path| path.extension().is_some_and(|extension| extension == "sock")).collect()
}

fn numbers(text: &str) -> Vec<u32> {
    text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// Returns the numbers in the name of a socket: `php8.2-fpm.sock` is 8 and 2. A name without numbers is a distribution's own choice and goes first.
fn version(socket: &Path) -> (bool, Vec<u32>, PathBuf) {
    let name = socket.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let numbers = numbers(&name);
    (numbers.is_empty(), numbers, socket.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_socket_or_a_host_with_a_port() {
        let unix = || OriginAddress::Unix("/run/php/php8.2-fpm.sock".into());
        let tcp = |host: &str, port| OriginAddress::Http { host: host.to_owned(), port };
        for (text, address) in [
            ("unix:/run/php/php8.2-fpm.sock", unix()),
            ("/run/php/php8.2-fpm.sock", unix()),
            ("127.0.0.1:9000", tcp("127.0.0.1", 9000)),
            ("php:9000", tcp("php", 9000)),
            ("[::1]:9000", tcp("::1", 9000)),
        ] {
            assert_eq!(text.parse::<PhpServer>(), Ok(PhpServer(address)), "{text}");
        }
        for text in
            ["", "php", "127.0.0.1", "http://127.0.0.1:9000", "tcp://127.0.0.1:9000", "127.0.0.1:0", "127.0.0.1:9000/x", "unix:run/x"]
        {
            assert!(text.parse::<PhpServer>().is_err(), "{text}");
        }
        for text in ["run/php/php8.2-fpm.sock", "php.sock", "./php.sock", "unix:php.sock", "unix:run/php/x"] {
            let told = text.parse::<PhpServer>().expect_err("it is relative").to_string();
            assert!(told.contains("full path"), "{told}");
        }
    }

    #[test]
    fn files_are_sent_from_a_folder_with_or_without_a_prefix() {
        let sent = |prefix: Option<&str>| SendFiles { prefix: prefix.map(str::to_owned), folder: "/srv/private".into() };
        for (text, meant) in [
            ("/srv/private", sent(None)),
            ("/private=/srv/private", sent(Some("/private/"))),
            ("/private/=/srv/private", sent(Some("/private/"))),
        ] {
            assert_eq!(text.parse(), Ok(meant), "{text}");
        }
        for text in ["", "private", "private=/srv", "/private=srv"] {
            assert!(text.parse::<SendFiles>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_newest_socket_of_the_distribution_is_found() {
        let root = tempfile::tempdir().expect("a folder");
        assert!(find(root.path()).expect_err("nothing there").remedy.contains("--php"));
        let touch = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, "").expect("a file");
        };
        for (made, found) in [("run/php-fpm/www.sock", "run/php-fpm/www.sock"), ("run/php/php7.4-fpm.sock", "run/php-fpm/www.sock")] {
            touch(made);
            assert_eq!(find(root.path()).map(|(socket, _)| socket), Ok(OriginAddress::Unix(root.path().join(found))), "{made}");
        }
        fs::remove_file(root.path().join("run/php-fpm/www.sock")).expect("removed");
        for (made, found) in [
            ("run/php/php8.2-fpm.sock", "run/php/php8.2-fpm.sock"),
            ("run/php/php8.10-fpm.sock", "run/php/php8.10-fpm.sock"),
            ("run/php/php8.10-fpm.pid", "run/php/php8.10-fpm.sock"),
            // What Debian's alternatives point to.
            ("run/php/php-fpm.sock", "run/php/php-fpm.sock"),
        ] {
            touch(made);
            assert_eq!(find(root.path()).map(|(socket, _)| socket), Ok(OriginAddress::Unix(root.path().join(found))), "{made}");
        }
    }

    /// At the start of a machine Seawall may be first.
    #[test]
    fn a_php_fpm_that_is_set_up_and_not_started_is_found_where_it_will_listen() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        let found = || find(root.path()).map(|(address, _)| address.to_string());
        write("etc/php-fpm.d/www.conf", "[www]\n;listen = 1\nlisten.owner = nobody\nlisten = 9000 ; all\n");
        assert_eq!(found(), Ok("http://127.0.0.1:9000".to_owned()));
        write("etc/php/7.4/fpm/pool.d/www.conf", "listen = /run/php/php7.4-fpm.sock\n");
        fs::remove_file(root.path().join("etc/php-fpm.d/www.conf")).expect("removed");
        write("etc/php/8.2/fpm/pool.d/www.conf", "[www]\nuser = www-data\nlisten = /run/php/php8.2-fpm.sock\n");
        assert_eq!(found(), Ok("unix:/run/php/php8.2-fpm.sock".to_owned()));
        write("run/php/php7.4-fpm.sock", "");
        assert!(found().expect("found").ends_with("run/php/php7.4-fpm.sock"), "what is there goes first");
    }
}
