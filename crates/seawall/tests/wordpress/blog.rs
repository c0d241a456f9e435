//! A blog as its owner runs it: a WordPress of its own with the filled blog, and Seawall, which runs it or is in front of its nginx.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::free_port;

use super::{
    client::{Answer, Client, PATIENCE},
    crowd::{pause, until},
    database::Database,
    editor::Editor,
    process::Process,
    witness::Witness,
};

/// This folder.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wordpress");

/// Returns where `make wordpress` put the WordPress and the blog.
fn installed() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").unwrap_or_else(|| variable("HOME").expect("a home").join(".cache"));
    let folder = variable("SEAWALL_WORDPRESS_DIR").unwrap_or_else(|| cache().join("seawall-wordpress"));
    assert!(
        folder.join("blog/made-from").exists(),
        "there is no WordPress in {}: run `make wordpress`, which installs one",
        folder.display()
    );
    folder
}

pub(crate) static INSTALLED: LazyLock<PathBuf> = LazyLock::new(installed);

/// The folder of the tests' copies of the WordPress. What a run left there that was killed is removed.
static SITES: LazyLock<PathBuf> = LazyLock::new(|| {
    let sites = INSTALLED.join("sites");
    fs::create_dir_all(&sites).expect("a folder");
    for site in fs::read_dir(&sites).expect("a folder").map_while(Result::ok) {
        let name = site.file_name().to_string_lossy().into_owned();
        if !name.split_once('-').is_some_and(|(process, _)| Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir_all(site.path());
        }
    }
    sites
});

/// The facts that the seeder gives about the blog: numbers, addresses, passwords.
pub(crate) static FACTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_slice(&fs::read(INSTALLED.join("blog/blog.json")).expect("readable")).expect("JSON"));

/// Whether the tests judge themselves: readers ask an nginx without a cache. What is said about pages must hold then, too; what is said about
/// the cache cannot.
pub(crate) static WITHOUT_SEAWALL: LazyLock<bool> = LazyLock::new(|| std::env::var_os("SEAWALL_WORDPRESS_WITHOUT_SEAWALL").is_some());

/// Tells whether the long tests run: `make spec-wordpress`.
pub(crate) fn long_tests_run() -> bool {
    std::env::var_os("SEAWALL_WORDPRESS_LONG").is_some()
}

/// Returns the path of a post or a page of the seeder's.
pub(crate) fn path_of(slug: &str) -> &'static str {
    let posts = FACTS["posts"][slug]["path"].as_str();
    posts.or_else(|| FACTS["pages"][slug]["path"].as_str()).unwrap_or_else(|| panic!("{slug} is in the blog"))
}

/// Says how Seawall comes to the WordPress.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// Seawall has the folder, and talks to php-fpm itself.
    #[default]
    Folder,
    /// Seawall is in front of an nginx that has the folder.
    Server,
}

/// Says how a blog differs from one that is set up as the manual says.
#[derive(Default)]
pub(crate) struct Setup {
    form: Form,
    seawall: String,
    cron: Option<&'static str>,
    mu_plugins: Vec<&'static str>,
    theme: Option<&'static str>,
    has_plugin: bool,
    is_guessed: bool,
    has_no_seawall_yet: bool,
}

impl Setup {
    /// Puts Seawall in front of an nginx.
    pub(crate) fn server(mut self) -> Self {
        self.form = Form::Server;
        self
    }

    pub(crate) fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Adds these lines to `seawall.toml`, below what every test has.
    pub(crate) fn seawall(mut self, lines: &str) -> Self {
        self.seawall += lines;
        self.seawall += "\n";
        self
    }

    /// Has Seawall run WordPress's schedule so often. Otherwise nobody does, or what is due would come into a test's way.
    pub(crate) fn cron(mut self, period: &'static str) -> Self {
        self.cron = Some(period);
        self
    }

    /// Adds a plugin of the folder `mu-plugins`.
    pub(crate) fn mu_plugin(mut self, name: &'static str) -> Self {
        self.mu_plugins.push(name);
        self
    }

    pub(crate) fn theme(mut self, name: &'static str) -> Self {
        self.theme = Some(name);
        self
    }

    /// Installs and activates Seawall's plugin.
    pub(crate) fn plugin(mut self) -> Self {
        self.has_plugin = true;
        self
    }

    /// Does not tell Seawall what the source is.
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
        Blog::start(self)
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

/// A WordPress, and Seawall with it, each in a folder of this test.
pub(crate) struct Blog {
    seawall: Option<Seawall>,
    nginx: Option<Process>,
    php: Option<Process>,
    pub(crate) witness: Witness,
    pub(crate) database: Database,
    setup: Setup,
    site: SocketAddr,
    admin: SocketAddr,
    nginx_address: SocketAddr,
    /// The blog's address, without a slash at its end.
    pub(crate) url: String,
    owner: OnceLock<Client>,
    /// A folder on the same disk as the WordPress, whose files are linked into it.
    htdocs: TempDir,
    folder: TempDir,
}

impl Blog {
    /// Makes a blog as the manual sets it up.
    pub(crate) fn new() -> Self {
        Setup::default().start()
    }

    fn start(setup: Setup) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let sites = &*SITES;
        let htdocs = tempfile::Builder::new().prefix(&format!("{}-", std::process::id())).tempdir_in(sites).expect("a folder");
        let address = || SocketAddr::from(([127, 0, 0, 1], free_port()));
        let nginx_address = address();
        let site = if *WITHOUT_SEAWALL { nginx_address } else { address() };
        let url = format!("http://{site}");
        let witness = Witness::new(folder.path().join("witness"));
        let database = Database::new(&url);
        let has_plugin = setup.has_plugin;
        let mut blog = Self {
            seawall: None,
            nginx: None,
            php: None,
            witness,
            database,
            setup,
            site,
            admin: address(),
            nginx_address,
            url,
            owner: OnceLock::new(),
            htdocs,
            folder,
        };
        blog.write_wordpress();
        blog.write_php();
        blog.write_nginx();
        blog.write_seawall();
        blog.start_php();
        blog.start_nginx();
        if !blog.setup.has_no_seawall_yet {
            blog.start_seawall();
        }
        if has_plugin {
            let activate = serde_json::json!({"status": "active"});
            let seen = blog.editor().send("POST", "plugins/seawall/seawall", &activate);
            assert_eq!(seen["status"], "active", "{seen}");
        }
        blog
    }

    /// Returns the folder of the WordPress.
    pub(crate) fn root(&self) -> PathBuf {
        self.htdocs.path().join("htdocs")
    }

    fn write_wordpress(&self) {
        let (setup, root) = (&self.setup, self.root());
        let copy = |option: &str, from: PathBuf, to: PathBuf| {
            let copied = Command::new("cp").arg(option).arg(&from).arg(to).status().expect("cp");
            assert!(copied.success(), "{} is copied", from.display());
        };
        // Links to the files, which nothing writes into.
        copy("-rl", fs::canonicalize(INSTALLED.join("current")).expect("a WordPress"), root.clone());
        let content = root.join("wp-content");
        fs::remove_dir(content.join("uploads")).expect("an empty folder");
        copy("-a", INSTALLED.join("blog/uploads"), content.join("uploads"));
        copy("-a", Path::new(HERE).join("theme"), content.join("themes/seaside"));
        for name in ["testing"].iter().chain(&setup.mu_plugins) {
            let file = format!("mu-plugins/{name}.php");
            fs::copy(Path::new(HERE).join(&file), content.join(&file)).expect("copied");
        }
        if setup.has_plugin {
            copy("-a", Path::new(HERE).join("../../../../integrations/wordpress/seawall"), content.join("plugins/seawall"));
        }
        self.tell_address(&self.url);
        if setup.cron.is_none() {
            fs::write(root.join("wp-config-more.php"), "<?php\ndefine( 'DISABLE_WP_CRON', true );\n").expect("written");
        }
        if let Some(theme) = setup.theme {
            self.database.run(&format!("UPDATE wp_options SET option_value = '{theme}' WHERE option_name IN ('template', 'stylesheet')"));
        }
    }

    /// Gives the WordPress this address, as its owner does in `wp-config.php`.
    pub(crate) fn tell_address(&self, url: &str) {
        let config = fs::read_to_string(Path::new(HERE).join("wp-config.php")).expect("readable");
        let socket = Database::socket();
        let config = config
            .replace("@URL@", url)
            .replace("@DATABASE@", &self.database.name)
            .replace("@SOCKET@", socket.to_str().expect("a plain name"));
        fs::write(self.root().join("wp-config.php"), config).expect("written");
    }

    /// Returns the address of the server itself, past Seawall.
    pub(crate) fn own_address(&self) -> String {
        format!("http://{}", self.nginx_address)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self, name: &str) -> Stdio {
        Stdio::from(fs::File::options().create(true).append(true).open(self.place(name)).expect("a log"))
    }

    fn write_php(&self) {
        let owner = if rustix::process::geteuid().is_root() { "user = root\ngroup = root\n" } else { "" };
        let text = format!(
            "[global]\nerror_log = {place}/php.log\ndaemonize = no\n[blog]\n{owner}listen = {place}/php.sock\nlisten.backlog = 511\n\
             pm = static\npm.max_children = 4\nenv[SEAWALL_WITNESS] = {place}/witness\n\
             php_admin_value[auto_prepend_file] = {HERE}/witness.php\nphp_admin_value[memory_limit] = 256M\n\
             php_admin_value[upload_max_filesize] = 32M\nphp_admin_value[post_max_size] = 32M\nphp_admin_value[sendmail_path] = /bin/true\n\
             php_admin_value[opcache.memory_consumption] = 64\nphp_admin_value[session.save_path] = {place}\n",
            place = self.folder.path().display(),
        );
        fs::write(self.place("php.conf"), text).expect("written");
    }

    /// Writes the configuration of a plain nginx for a WordPress, as its manual has it: without a cache.
    fn write_nginx(&self) {
        let text = include_str!("nginx.conf")
            .replace("@PLACE@", self.folder.path().to_str().expect("a plain name"))
            .replace("@ROOT@", self.root().to_str().expect("a plain name"))
            .replace("@LISTEN@", &self.nginx_address.to_string());
        fs::write(self.place("nginx.conf"), text).expect("written");
    }

    fn write_seawall(&self) {
        let setup = &self.setup;
        let kind = if setup.is_guessed { "" } else { "kind = \"wordpress\"\n" };
        let source = match setup.form {
            Form::Folder => self.root().display().to_string(),
            Form::Server => format!("http://{}", self.nginx_address),
        };
        let php = match setup.form {
            Form::Folder => format!("[php]\nserver = \"unix:{}\"\n", self.place("php.sock").display()),
            Form::Server => String::new(),
        };
        let cron = if setup.is_guessed && setup.cron.is_none() {
            String::new()
        } else {
            format!("[wordpress]\ncron = \"{}\"\n", setup.cron.unwrap_or("off"))
        };
        let text = format!(
            "source = \"{source}\"\n{kind}\n{php}{cron}[server]\nlisten = [\"{}\"]\nadmin = \"{}\"\nadmin_token_file = \"{}\"\nworkers = 2\n{}\n",
            self.site,
            self.admin,
            self.place("token").display(),
            setup.seawall,
        );
        fs::write(self.place("seawall.toml"), text).expect("written");
    }

    /// Starts php-fpm, or starts it again, and returns when it takes connections.
    pub(crate) fn start_php(&mut self) {
        let mut command = Command::new(INSTALLED.join("php-fpm"));
        command.args(["-F", "-y"]).arg(self.place("php.conf"));
        if rustix::process::geteuid().is_root() {
            command.arg("-R");
        }
        self.php = Some(Process::start(&command, || self.log("php.out")));
        let socket = self.place("php.sock");
        until("php-fpm answers", || UnixStream::connect(&socket).is_ok());
    }

    /// Ends php-fpm and all its children at once.
    pub(crate) fn stop_php(&mut self) {
        self.php = None;
    }

    fn start_nginx(&mut self) {
        let mut command = Command::new("sh");
        command.args(["-c", "PATH=$PATH:/usr/sbin; exec nginx -e \"$1/nginx.log\" -c \"$1/nginx.conf\"", "nginx"]).arg(self.folder.path());
        self.nginx = Some(Process::start(&command, || self.log("nginx.out")));
        let address = self.nginx_address;
        until("nginx answers", || TcpStream::connect(address).is_ok());
    }

    /// Starts Seawall, or starts it again, and returns when it listens.
    pub(crate) fn start_seawall(&mut self) {
        if *WITHOUT_SEAWALL {
            return;
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .args(["serve", "--config"])
            .arg(self.place("seawall.toml"))
            .arg("--cache-dir")
            .arg(self.place("cache"))
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

    /// Waits until what is stored is also on the disk: the number of its files stays the same.
    pub(crate) fn wait_for_the_disk(&self) {
        let files =
            || Command::new("find").arg(self.place("cache")).args(["-type", "f", "-printf", "%p %s\n"]).output().expect("find").stdout;
        let (mut before, mut calm) = (files(), 0);
        until("what is stored is on the disk", || {
            let now = files();
            calm = if now == before { calm + 1 } else { 0 };
            before = now;
            calm > 25
        });
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
            .arg(self.place("token"))
            .env("HOME", self.folder.path())
            .output()
            .expect("it runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    /// Returns what an operator is shown of the traffic: `GET /seen`.
    pub(crate) fn seen(&self) -> Value {
        let answer = Client::new(self.admin, "127.0.0.1").get("/seen").status(200);
        serde_json::from_slice(&answer.content).expect("JSON")
    }

    /// Runs PHP in this WordPress, past every server, as WP-CLI does, and returns what it prints.
    #[track_caller]
    pub(crate) fn php(&self, code: &str) -> String {
        let host = self.site.to_string();
        let code = format!(
            "$_SERVER += ['HTTP_HOST' => '{host}', 'REQUEST_METHOD' => 'GET', 'REQUEST_URI' => '/']; require 'wp-load.php'; {code}"
        );
        let output =
            Command::new("php").args(["-d", "sendmail_path=/bin/true", "-r", &code]).current_dir(self.root()).output().expect("php");
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
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

    /// Returns somebody who asks the WordPress without Seawall.
    pub(crate) fn wordpress(&self) -> Client {
        Client::new(self.nginx_address, &self.site.to_string())
    }

    /// Returns the owner, who signs in once.
    pub(crate) fn owner(&self) -> Client {
        self.owner.get_or_init(|| Editor::sign_in(&self.reader(), "owner")).clone()
    }

    pub(crate) fn editor(&self) -> Editor {
        Editor::new(self.owner())
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
