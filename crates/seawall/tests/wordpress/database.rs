//! One MariaDB for all tests of this run, with a database for each.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use tempfile::TempDir;

use super::{blog::INSTALLED, crowd::until, process::Process};

static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

struct Server {
    folder: TempDir,
    tables: Vec<String>,
    next: AtomicU32,
    _process: Process,
}

impl Server {
    /// Starts a MariaDB on a copy of the blog's database. It need not survive a power cut.
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("db");
        let copied = Command::new("cp").arg("-a").arg(INSTALLED.join("blog/db")).arg(&data).status().expect("cp");
        assert!(copied.success(), "the database is copied");
        let mut command = Command::new("sh");
        // Statics are never dropped: what ends the server also removes its folder.
        command.args([
            "-c",
            "trap 'kill -KILL $pid; rm -rf \"$1\"; exit' TERM; PATH=$PATH:/usr/sbin; mariadbd --no-defaults --user=\"$(id -un)\" --datadir=\"$1/db\" \
             --socket=\"$1/socket\" --pid-file=\"$1/pid\" --skip-networking --performance-schema=OFF --character-set-server=utf8mb4 \
             --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0 --innodb-flush-method=nosync --innodb-doublewrite=0 \
             --innodb-log-file-size=32M --tmpdir=\"$1\" & pid=$!; wait $pid",
            "mariadb",
        ]);
        command.arg(folder.path());
        let log = folder.path().join("log");
        let process = Process::start(&command, || Stdio::from(fs::File::options().create(true).append(true).open(&log).expect("a log")));
        let mut server = Self { folder, tables: Vec::new(), next: AtomicU32::new(0), _process: process };
        until("MariaDB answers", || server.ask("SELECT 1").is_some());
        let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'pristine'";
        server.tables = server.ask(tables).expect("an answer").lines().map(str::to_owned).collect();
        server
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Asks, and returns what comes, a row a line; nothing if it fails.
    fn ask(&self, sql: &str) -> Option<String> {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--user=root", "--skip-column-names", "--raw", "--default-character-set=utf8mb4"]);
        let output = command.arg("--socket").arg(self.socket()).args(["-e", sql]).stderr(Stdio::piped()).output().expect("mariadb");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A database with the filled blog in it.
pub(crate) struct Database {
    pub(crate) name: String,
}

impl Database {
    /// Copies the filled blog, and moves it to its address.
    pub(crate) fn new(url: &str) -> Self {
        let name = format!("blog_{}", SERVER.next.fetch_add(1, Ordering::Relaxed));
        let mut sql = String::new();
        for table in &SERVER.tables {
            sql +=
                &format!("CREATE TABLE {name}.{table} LIKE pristine.{table}; INSERT INTO {name}.{table} SELECT * FROM pristine.{table};");
        }
        let database = Self { name };
        database.run(&sql);
        let old = "http://blog.example";
        database.run(&format!(
            "UPDATE wp_posts SET post_content = REPLACE(post_content, '{old}', '{url}'), guid = REPLACE(guid, '{old}', '{url}'); \
             UPDATE wp_options SET option_value = '{url}' WHERE option_name IN ('home', 'siteurl')"
        ));
        database
    }

    /// Returns the socket of the server.
    pub(crate) fn socket() -> PathBuf {
        SERVER.socket()
    }

    #[track_caller]
    pub(crate) fn run(&self, sql: &str) -> String {
        SERVER
            .ask(&format!("CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4; USE {name}; {sql}", name = self.name))
            .unwrap_or_else(|| panic!("MariaDB does not take: {sql}"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = SERVER.ask(&format!("DROP DATABASE {}", self.name));
    }
}
