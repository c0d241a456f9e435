//! A blog as its owner runs it: a Ghost of its own with the filled blog, and Seawall in front, with a tap in between.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::free_port;

pub(crate) use super::crowd::{pause, until, while_a_crowd_reads};
use super::{
    client::{Answer, Client, PATIENCE},
    editor::Editor,
    tap::Tap,
};

/// Returns where `make ghost` put the Ghost and the blog.
fn installed() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").unwrap_or_else(|| variable("HOME").expect("a home").join(".cache"));
    let folder = variable("SEAWALL_GHOST_DIR").unwrap_or_else(|| cache().join("seawall-ghost"));
    assert!(folder.join("blog/made-from").exists(), "there is no Ghost in {}: run `make ghost`, which installs one", folder.display());
    folder
}

pub(crate) static INSTALLED: LazyLock<PathBuf> = LazyLock::new(installed);

/// The facts that the seeder gives about the blog: identities, keys, addresses.
pub(crate) static FACTS: LazyLock<Value> = LazyLock::new(|| read_json(&INSTALLED.join("blog/blog.json")));

/// Whether the tests judge themselves: readers ask the Ghost without Seawall. What is said about pages must hold then, too; what is said about
/// the cache cannot.
pub(crate) static WITHOUT_SEAWALL: LazyLock<bool> = LazyLock::new(|| std::env::var_os("SEAWALL_GHOST_WITHOUT_SEAWALL").is_some());

/// Tells whether the long tests run: `make spec-ghost`.
pub(crate) fn long_tests_run() -> bool {
    std::env::var_os("SEAWALL_GHOST_LONG").is_some()
}

fn read_json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))).expect("JSON")
}

/// A running Ghost. Dropping it ends it; so does the end of the tests, however that comes about, as it reads the pipe to its standard input.
struct Ghost {
    child: Child,
    _alive: Option<ChildStdin>,
}

impl Drop for Ghost {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running Seawall. Dropping it kills it.
struct Seawall {
    child: Child,
    told: Arc<Mutex<String>>,
}

impl Drop for Seawall {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says how a blog differs from one that is set up as the manual says.
#[derive(Default)]
pub(crate) struct Setup {
    ghost: Option<Value>,
    seawall: String,
    path: &'static str,
    scheme: Option<&'static str>,
    is_guessed: bool,
    has_no_seawall_yet: bool,
}

impl Setup {
    /// Lays more over the Ghost's configuration.
    pub(crate) fn ghost(mut self, config: Value) -> Self {
        self.ghost = Some(config);
        self
    }

    /// Adds these lines to `seawall.toml`, below what every test has.
    pub(crate) fn seawall(mut self, lines: &str) -> Self {
        self.seawall += lines;
        self.seawall += "\n";
        self
    }

    /// Puts the blog below a path.
    pub(crate) fn below(mut self, path: &'static str) -> Self {
        self.path = path;
        self
    }

    /// Makes the blog's own address one with https, as behind a front end that does TLS.
    pub(crate) fn https(mut self) -> Self {
        self.scheme = Some("https");
        self
    }

    /// Does not tell Seawall that the server is a Ghost.
    pub(crate) fn guessed(mut self) -> Self {
        self.is_guessed = true;
        self
    }

    /// Leaves the start of Seawall to the test.
    pub(crate) fn without_seawall_yet(mut self) -> Self {
        self.has_no_seawall_yet = true;
        self
    }

    pub(crate) fn start(self) -> Blog {
        Blog::start(&self)
    }
}

/// A Ghost, and Seawall in front of it, each in a folder of this test.
pub(crate) struct Blog {
    ghost: Option<Ghost>,
    seawall: Option<Seawall>,
    pub(crate) tap: Tap,
    folder: TempDir,
    ghost_address: SocketAddr,
    site: SocketAddr,
    admin: SocketAddr,
    /// The blog's address, without a slash at its end.
    pub(crate) url: String,
    path: &'static str,
    owner: OnceLock<(String, String)>,
}

impl Blog {
    /// Makes a blog as the manual sets it up.
    pub(crate) fn new() -> Self {
        Setup::default().start()
    }

    fn start(setup: &Setup) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ghost_address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let tap = Tap::start(SocketAddr::from(([127, 0, 0, 1], free_port())), ghost_address);
        let site = if *WITHOUT_SEAWALL { tap.address } else { SocketAddr::from(([127, 0, 0, 1], free_port())) };
        let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let url = format!("{}://{site}{}", setup.scheme.unwrap_or("http"), setup.path);
        let mut blog =
            Self { ghost: None, seawall: None, tap, folder, ghost_address, site, admin, url, path: setup.path, owner: OnceLock::new() };
        blog.write_ghost(setup.ghost.as_ref());
        blog.write_seawall(setup);
        blog.start_ghost();
        if !setup.has_no_seawall_yet {
            blog.start_seawall();
        }
        blog
    }

    fn write_ghost(&self, more: Option<&Value>) {
        let folder = self.folder.path().join("ghost");
        let copied = Command::new("cp").arg("-a").arg(INSTALLED.join("blog")).arg(&folder).status().expect("cp");
        assert!(copied.success(), "the blog is copied");
        let content = folder.join("content");
        let mut config = read_json(&folder.join("config.json"));
        lay_over(
            &mut config,
            &json!({
                "url": self.url,
                "server": {"host": "127.0.0.1", "port": self.ghost_address.port()},
                "database": {"connection": {"filename": content.join("data/ghost.db")}},
                "paths": {"contentPath": format!("{}/", content.display())},
                "logging": {"path": format!("{}/logs/", content.display())},
            }),
        );
        if let Some(more) = more {
            lay_over(&mut config, more);
        }
        fs::write(folder.join("config.production.json"), config.to_string()).expect("written");
        // Ghost finds its configuration in its folder and its code in `current`.
        std::os::unix::fs::symlink(fs::canonicalize(INSTALLED.join("current")).expect("a Ghost"), folder.join("current")).expect("a link");
    }

    fn write_seawall(&self, setup: &Setup) {
        let kind = if setup.is_guessed { "" } else { "kind = \"ghost\"\n" };
        let text = format!(
            "source = \"http://{}\"\n{kind}\n[server]\nlisten = [\"{}\"]\nadmin = \"{}\"\nadmin_token_file = \"{}\"\nworkers = 2\n{}\n",
            self.tap.address,
            self.site,
            self.admin,
            self.folder.path().join("token").display(),
            setup.seawall,
        );
        fs::write(self.config(), text).expect("written");
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("seawall.toml")
    }

    /// Starts the Ghost, or starts it again, and returns when it answers.
    pub(crate) fn start_ghost(&mut self) {
        let folder = self.folder.path().join("ghost");
        let log = || Stdio::from(fs::File::options().create(true).append(true).open(folder.join("log")).expect("a log"));
        let mut child = Command::new(INSTALLED.join("node"))
            .arg("--require")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ghost/loopback.cjs"))
            .arg("current/index.js")
            .current_dir(&folder)
            .env("NODE_ENV", "production")
            // Ghost starts in half of the time when its code is compiled already.
            .env("NODE_COMPILE_CACHE", INSTALLED.join("compiled"))
            .stdin(Stdio::piped())
            .stdout(log())
            .stderr(log())
            .spawn()
            .expect("Ghost starts");
        let alive = child.stdin.take();
        self.tap.listen();
        self.ghost = Some(Ghost { child, _alive: alive });
        // Ghost answers 503 while it starts.
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(self.ghost_address).is_err() || self.ghost().get(&self.path("/ghost/api/admin/site/")).status != 200 {
            let ghost = self.ghost.as_mut().expect("it has just started");
            let has_ended = ghost.child.try_wait().expect("a child").is_some();
            assert!(
                !has_ended && Instant::now() < end,
                "Ghost does not start: {}",
                fs::read_to_string(folder.join("log")).unwrap_or_default()
            );
            pause();
        }
    }

    /// Ends the Ghost at once.
    pub(crate) fn stop_ghost(&mut self) {
        self.tap.refuse();
        self.ghost = None;
    }

    /// Starts Seawall, or starts it again, and returns when it listens.
    pub(crate) fn start_seawall(&mut self) {
        if *WITHOUT_SEAWALL {
            return;
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .args(["serve", "--config"])
            .arg(self.config())
            .arg("--cache-dir")
            .arg(self.folder.path().join("cache"))
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("Seawall starts");
        let stderr = child.stderr.take().expect("piped");
        let told = Arc::new(Mutex::new(String::new()));
        let writer = Arc::clone(&told);
        // Reading goes on, or a full pipe would stop the server.
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut told = writer.lock().unwrap_or_else(PoisonError::into_inner);
                told.push_str(&line);
                told.push('\n');
            }
        });
        self.seawall = Some(Seawall { child, told });
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(self.site).is_err() {
            let seawall = self.seawall.as_mut().expect("it has just started");
            let has_ended = seawall.child.try_wait().expect("a child").is_some();
            assert!(!has_ended && Instant::now() < end, "Seawall does not start: {}", self.told());
            pause();
        }
    }

    /// Kills Seawall, as a power cut does.
    pub(crate) fn kill_seawall(&mut self) {
        self.seawall = None;
    }

    /// Returns what Seawall has said on its standard error.
    pub(crate) fn told(&self) -> String {
        let Some(seawall) = &self.seawall else { return String::new() };
        seawall.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a command of Seawall's for this blog, such as `status`, and returns what it prints.
    pub(crate) fn command(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .args(arguments)
            .args(["--admin", &self.admin.to_string(), "--token-file"])
            .arg(self.folder.path().join("token"))
            .env("HOME", self.folder.path())
            .output()
            .expect("it runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a page of the blog, wherever the blog is.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.path)
    }

    /// Returns a reader without cookies, with a browser that asks for pages.
    pub(crate) fn reader(&self) -> Client {
        self.anybody()
            .with("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
            .with("User-Agent", "Mozilla/5.0 (X11; Linux x86_64)")
    }

    /// Returns a client that sends nothing of its own.
    pub(crate) fn anybody(&self) -> Client {
        Client::new(self.site, &self.site.to_string())
    }

    /// Returns somebody who asks Ghost without Seawall.
    pub(crate) fn ghost(&self) -> Client {
        let client = Client::new(self.ghost_address, &self.site.to_string());
        if self.url.starts_with("https:") { client.with("X-Forwarded-Proto", "https") } else { client }
    }

    /// Returns the owner, at `/ghost/` of the blog's address.
    pub(crate) fn editor(&self) -> Editor {
        Editor::new(self.signed_in(self.anybody()), self.path)
    }

    /// Returns the owner, on the port of Ghost: past Seawall.
    pub(crate) fn editor_past_seawall(&self) -> Editor {
        Editor::new(self.signed_in(self.ghost()), self.path)
    }

    /// Returns the client as the owner, who signs in once: Ghost takes a tenth of a second for that.
    fn signed_in(&self, client: Client) -> Client {
        let origin = self.url.strip_suffix(self.path).unwrap_or(&self.url);
        let owner = self.owner.get_or_init(|| {
            let login = json!({"username": FACTS["owner"]["email"], "password": FACTS["owner"]["password"]});
            let answer = self.ghost().with("Origin", origin).send_json("POST", &self.path("/ghost/api/admin/session/"), &login).status(201);
            let cookie = answer.value("set-cookie").and_then(|line| line.split(';').next()).expect("a cookie");
            cookie.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).expect("a pair")
        });
        client.with("Origin", origin).with_cookie(&owner.0, &owner.1)
    }

    /// Returns a member who has just signed in with a link, as out of a mail.
    pub(crate) fn member(&self, name: &str) -> Client {
        let id = FACTS["members"][name]["id"].as_str().expect("a member");
        let link =
            self.editor().get(&format!("members/{id}/signin_urls/"))["member_signin_urls"][0]["url"].as_str().expect("a link").to_owned();
        let target = link.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| rest[at..].to_owned())).expect("a path");
        let answer = self.reader().get(&target).status(302);
        let member = self.reader().after(&answer);
        assert!(member.cookie_names().contains(&"ghost-members-ssr"), "{answer}");
        member
    }

    /// Reads a page until it is stored, and returns it.
    #[track_caller]
    pub(crate) fn stored(&self, target: &str) -> Answer {
        let reader = self.reader();
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let answer = reader.get(target);
            if answer.is_hit() || *WITHOUT_SEAWALL {
                return answer;
            }
            assert!(Instant::now() < end, "never stored:\n{answer}");
            pause();
        }
    }
}

/// Lays one JSON object over another, part by part.
fn lay_over(config: &mut Value, more: &Value) {
    match (config, more) {
        (Value::Object(config), Value::Object(more)) => {
            for (key, value) in more {
                lay_over(config.entry(key).or_insert(Value::Null), value);
            }
        }
        (config, more) => *config = more.clone(),
    }
}
