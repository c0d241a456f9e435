//! A php-fpm of a test's own, on a socket in a folder of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use origins::{
    fastcgi::{FastCgi, FastCgiServer},
    php::{Php, PhpFolder, PhpOptions},
    server::{Address, Budget, ServerOptions, tls_config},
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The names of the program, by version; distributions differ.
const PROGRAMS: [&str; 9] =
    ["php-fpm", "php-fpm8.5", "php-fpm8.4", "php-fpm8.3", "php-fpm8.2", "php-fpm8.1", "php-fpm8.0", "php-fpm7.4", "php-fpm84"];

/// A running php-fpm, and the site that it runs.
pub(crate) struct Fpm {
    folder: TempDir,
    /// The port on which it listens, if that is not a socket in the folder.
    port: Option<u16>,
    running: Option<Child>,
}

fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]).collect();
    PROGRAMS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|program| program.is_file())
        .expect("php-fpm is missing: `make php` installs it")
}

impl Fpm {
    /// Starts a php-fpm with so many children, and these scripts.
    pub(crate) async fn start(children: usize, scripts: &[(&str, &str)]) -> Self {
        Self::start_at(None, children, scripts).await
    }

    /// Starts one on a port, as it is in a container of its own.
    pub(crate) async fn start_on_a_port(children: usize, scripts: &[(&str, &str)]) -> Self {
        Self::start_at(Some(testkit::free_port()), children, scripts).await
    }

    async fn start_at(port: Option<u16>, children: usize, scripts: &[(&str, &str)]) -> Self {
        let mut fpm = Self { folder: TempDir::new().expect("a folder"), port, running: None };
        fs::create_dir(fpm.root()).expect("a folder");
        for (name, text) in scripts {
            fs::write(fpm.root().join(name), format!("<?php {text}")).expect("a script");
        }
        let owner = if rustix::process::geteuid().is_root() { "user = root\ngroup = root\n" } else { "" };
        let place = fpm.folder.path().display().to_string();
        let listen = port.map_or_else(|| fpm.socket().display().to_string(), |port| format!("127.0.0.1:{port}"));
        let configuration = format!(
            "[global]\nerror_log = {place}/fpm.log\ndaemonize = no\n[site]\n{owner}listen = {listen}\nlisten.backlog = 2\npm = static\n\
             pm.max_children = {children}\nphp_admin_value[post_max_size] = 0\nphp_admin_value[upload_max_filesize] = 4G\n\
             php_admin_value[max_execution_time] = 60\nphp_admin_flag[log_errors] = on\nphp_admin_flag[display_errors] = off\n\
             php_admin_value[output_buffering] = 0\n"
        );
        fs::write(fpm.folder.path().join("fpm.conf"), configuration).expect("a configuration");
        fpm.run().await;
        fpm
    }

    async fn run(&mut self) {
        let mut command = Command::new(program());
        command
            .arg("-F")
            .arg("-y")
            .arg(self.folder.path().join("fpm.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.arg("-R");
        }
        self.running = Some(command.spawn().expect("php-fpm runs"));
        let (socket, port) = (self.socket(), self.port);
        testkit::patiently("php-fpm's socket", async {
            while match port {
                Some(port) => tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err(),
                None => tokio::net::UnixStream::connect(&socket).await.is_err(),
            } {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    /// Ends it, and all its children at once.
    pub(crate) fn stop(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let pid = i32::try_from(running.id()).ok().and_then(Pid::from_raw).expect("a process");
        let _ = kill_process(pid, Signal::TERM);
        let _ = running.wait();
    }

    /// Has it start its children anew, as its package does after an update. Those that are at work are killed.
    pub(crate) fn reload(&self) {
        let running = self.running.as_ref().expect("it runs");
        let pid = i32::try_from(running.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::USR2).expect("a signal");
    }

    /// Ends it and starts it again, with the same socket and the same site.
    pub(crate) async fn restart(&mut self) {
        self.stop();
        let _ = fs::remove_file(self.socket());
        self.run().await;
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("fpm.sock")
    }

    /// Makes the mark that a script waits for.
    pub(crate) fn mark(&self, name: &str) {
        fs::write(self.root().join(name), "").expect("a mark");
    }

    /// Waits for what a script writes.
    pub(crate) async fn written(&self, name: &str) -> String {
        let path: &Path = &self.root().join(name);
        testkit::patiently("what a script writes", async {
            loop {
                match fs::read_to_string(path) {
                    Ok(text) if !text.is_empty() => return text,
                    _ => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        })
        .await
    }

    /// Makes the server, to be shared by workers.
    pub(crate) fn server(&self, set: impl FnOnce(&mut ServerOptions)) -> Arc<FastCgiServer> {
        let address = match self.port {
            Some(port) => format!("http://127.0.0.1:{port}").parse().expect("an address"),
            None => Address::Unix(self.socket()),
        };
        let mut options = ServerOptions::new(vec![address], tls_config(None).expect("TLS"));
        set(&mut options);
        Arc::new(FastCgiServer::new(Arc::new(options)))
    }

    /// Makes the origin of one worker.
    pub(crate) fn worker(&self, server: &Arc<FastCgiServer>) -> Php {
        self.impatient(server, Duration::from_secs(10))
    }

    /// Makes the origin of one worker, whose requests wait so long for a child.
    pub(crate) fn impatient(&self, server: &Arc<FastCgiServer>, queue_timeout: Duration) -> Php {
        let folder = PhpFolder::open(self.root(), PhpOptions::default()).expect("a folder");
        let budget = Arc::new(Budget::new(256, 1024, queue_timeout));
        Php::new(Arc::new(folder), FastCgi::new(Arc::clone(server), Some(budget)))
    }

    /// Makes the origin of the only worker.
    pub(crate) fn site(&self) -> Php {
        self.worker(&self.server(|_| {}))
    }
}

impl Drop for Fpm {
    fn drop(&mut self) {
        self.stop();
    }
}
