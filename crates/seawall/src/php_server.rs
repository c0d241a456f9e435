//! A look at where php-fpm should listen, for whoever reads the banner, `status` or `check`.

use std::{
    fs,
    io::ErrorKind,
    net::{IpAddr, SocketAddr, TcpStream},
    os::unix::{fs::FileTypeExt, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::config::settings::{OriginAddress, PhpSettings};

/// The most bytes of a Unix socket's path that every system takes.
const SOCKET_PATH_BYTES_MAX: usize = 103;
/// The longest wait for an address of this machine, which answers at once if it does.
const PATIENCE: Duration = Duration::from_millis(200);

/// A reason why php-fpm cannot be reached, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// Tells a person.
    pub(crate) text: String,
    /// Whether it stays so when php-fpm is started.
    pub(crate) is_mistake: bool,
}

/// Looks whether php-fpm listens where it should. Returns `None` if it does, and for other machines, which are not asked.
pub(crate) fn trouble(php: &PhpSettings) -> Option<Trouble> {
    match &php.server {
        OriginAddress::Unix(socket) => of_socket(socket),
        OriginAddress::Http { host, port } => {
            let ip: IpAddr = if host == "localhost" { [127, 0, 0, 1].into() } else { host.trim_matches(['[', ']']).parse().ok()? };
            let is_away = ip.is_loopback() && TcpStream::connect_timeout(&SocketAddr::new(ip, *port), PATIENCE).is_err();
            is_away.then(|| nobody(&php.address(), "php-fpm"))
        }
        OriginAddress::Https { .. } => None,
    }
    .map(|trouble| with_others(trouble, &php.also_found))
}

fn of_socket(socket: &Path) -> Option<Trouble> {
    let shown = socket.display();
    let mistake = |what: String| {
        Some(Trouble {
            text: format!(
                "{what}: give the full path of the socket at which php-fpm listens (listen in its pool) with --php, such as --php /run/php/php8.2-fpm.sock"
            ),
            is_mistake: true,
        })
    };
    if socket.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return mistake(format!("{shown} is too long for a socket ({SOCKET_PATH_BYTES_MAX} bytes)"));
    }
    match fs::metadata(socket) {
        Ok(there) if there.is_dir() => return mistake(format!("{shown} is a folder")),
        Ok(there) if !there.file_type().is_socket() => return mistake(format!("{shown} is a file and no socket")),
        Err(error) if error.kind() == ErrorKind::NotADirectory => return mistake(format!("{shown} is below a file")),
        _ => {}
    }
    match UnixStream::connect(socket).err()?.kind() {
        ErrorKind::PermissionDenied => Some(Trouble {
            text: format!(
                "{shown} is not open to the user of Seawall: add that user to the group of the socket, or set listen.acl_users in the pool of php-fpm"
            ),
            is_mistake: false,
        }),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Some(nobody(&shown.to_string(), &unit(socket))),
        // A full queue is nothing that lasts.
        _ => None,
    }
}

fn nobody(address: &str, unit: &str) -> Trouble {
    let text = format!("Nobody listens at {address}: start php-fpm (systemctl start {unit}), or say where it listens with --php");
    Trouble { text, is_mistake: false }
}

/// Returns the name of the service that makes a socket: Debian's sockets are called as the service is.
fn unit(socket: &Path) -> String {
    let name = socket.file_stem().unwrap_or_default().to_string_lossy();
    let is_debians = name
        .strip_prefix("php")
        .and_then(|rest| rest.strip_suffix("-fpm"))
        .is_some_and(|version| !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    if is_debians { name.into_owned() } else { "php-fpm".to_owned() }
}

fn with_others(mut trouble: Trouble, others: &[PathBuf]) -> Trouble {
    if let Some(other) = others.iter().find(|other| UnixStream::connect(other).is_ok()) {
        trouble.text += &format!(". Somebody listens at {}", other.display());
    }
    trouble
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::net::UnixListener, path::Path};

    use super::*;

    fn at(socket: &Path) -> PhpSettings {
        PhpSettings {
            server: OriginAddress::Unix(socket.to_owned()),
            is_found: false,
            also_found: Vec::new(),
            folder: origins::php::PhpOptions::default(),
            temporary_folder: None,
        }
    }

    #[test]
    fn a_php_fpm_that_listens_is_no_trouble_and_another_one_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let (there, gone) = (folder.path().join("php8.4-fpm.sock"), folder.path().join("php8.2-fpm.sock"));
        let _listener = UnixListener::bind(&there).expect("a listener");
        assert_eq!(trouble(&at(&there)), None);
        let found = trouble(&PhpSettings { also_found: vec![there.clone()], ..at(&gone) }).expect("trouble");
        let remedy = "start php-fpm (systemctl start php8.2-fpm), or say where it listens with --php";
        let expected = format!("Nobody listens at {}: {remedy}. Somebody listens at {}", gone.display(), there.display());
        assert_eq!(found, Trouble { text: expected, is_mistake: false });
    }

    #[test]
    fn nobody_listens_at_a_socket_that_was_left_behind_or_at_a_closed_port() {
        let folder = tempfile::tempdir().expect("a folder");
        let left = folder.path().join("www.sock");
        drop(UnixListener::bind(&left).expect("a listener"));
        let found = trouble(&at(&left)).expect("trouble");
        assert!(found.text.contains("(systemctl start php-fpm)") && !found.is_mistake, "{found:?}");
        let bound = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let port = bound.local_addr().expect("an address").port();
        let php = PhpSettings { server: OriginAddress::Http { host: "127.0.0.1".to_owned(), port }, ..at(&left) };
        assert_eq!(trouble(&php), None);
        drop(bound);
        let found = trouble(&php).expect("trouble");
        assert!(found.text.starts_with(&format!("Nobody listens at 127.0.0.1:{port}: ")), "{found:?}");
    }

    #[test]
    fn what_can_be_no_socket_is_a_mistake() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        let long = folder.path().join("x".repeat(120));
        for (path, what) in [
            (folder.path(), " is a folder: "),
            (&file, " is a file and no socket: "),
            (&file.join("x"), " is below a file: "),
            (&long, " is too long for a socket"),
        ] {
            let found = trouble(&at(path)).expect("trouble");
            assert!(found.is_mistake && found.text.contains(what) && found.text.contains("give the full path"), "{found:?}");
        }
    }
}
