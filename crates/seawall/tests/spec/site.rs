//! One origin, and one Seawall in front of it.

use std::{fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use edge::Socket;
use parking_lot::Mutex;
use pipeline::Clock;
use policy::purge::{Maker, Order, Sites, What};
use seawall::{
    cli::Serve,
    config::{self, ConfigErrors, Settings},
    recognition::Findings,
    server::Server,
};
use store::{Hardness, PurgeTarget};
use tempfile::TempDir;
use testkit::{Answer, Client, Origin, Req, TestClock};
use toml::{Table, Value};

/// The host that clients ask for.
pub(crate) const HOST: &str = "blog.example";

/// A running Seawall, and the clock by which it lives.
pub(crate) struct Site {
    pub(crate) clock: TestClock,
    pub(crate) server: Server,
    folder: TempDir,
}

/// Starts an origin, and a server with default settings in front of it.
pub(crate) async fn site() -> (Origin, Site) {
    site_with("").await
}

/// Starts an origin, and a server in front of it with settings as they stand in `seawall.toml`; `FOLDER` in them is a folder of the site's
/// own.
pub(crate) async fn site_with(toml: &str) -> (Origin, Site) {
    let origin = Origin::start();
    let site = Site::start(&format!("source = \"{}\"\n{toml}", origin.url()));
    (origin, site)
}

impl Site {
    /// Starts a server whose settings are all in `toml`, its sources too.
    pub(crate) fn start(toml: &str) -> Self {
        Self::start_with(|_| toml.to_owned())
    }

    /// Starts a server for which `prepare` fills the folder, and returns the settings.
    pub(crate) fn start_with(prepare: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = TestClock::new();
        let settings = settings(folder.path(), &prepare(folder.path())).expect("valid settings");
        let server = Server::start(settings, Clock::Simulated(clock.cell())).expect("a server");
        Self { clock, server, folder }
    }

    /// Starts a server for which `known` says what is known of the servers behind it, and which keeps asking and watching them.
    pub(crate) fn start_knowing(toml: &str, known: impl FnOnce(&Settings) -> Findings) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = TestClock::new();
        let plain = settings(folder.path(), toml).expect("valid settings");
        let known = known(&plain);
        let serve = Serve { config: Some(folder.path().join("seawall.toml")), ..Serve::default() };
        let settings = config::resolve(&config::read(&serve, |_| None), &serve, |_| None, &known).expect("valid settings");
        let mut server = Server::start(settings, Clock::Simulated(clock.cell())).expect("a server");
        server.keep_recognising(Arc::new(Mutex::new(known)), || ()).expect("a thread");
        Self { clock, server, folder }
    }

    /// Returns the address of the first listener.
    pub(crate) fn address(&self) -> SocketAddr {
        match &self.server.listening()[0] {
            Socket::Tcp(address) => *address,
            Socket::Tls(address) | Socket::Quic(address) => panic!("{address} speaks TLS"),
            Socket::Unix(path) => panic!("{} is not a TCP listener", path.display()),
        }
    }

    /// Returns a folder for the test: where `seawall.toml` is, and what it names relatively.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a new connection.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address()).await.with_host(HOST)
    }

    /// Sends a GET over a new connection.
    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.request(Req::get(target)).await
    }

    /// Sends a request over a new connection.
    pub(crate) async fn request(&self, request: Req) -> Answer {
        self.client().await.request(request).await
    }

    /// Purges, by an order of the operator that comes to this target.
    pub(crate) fn purge(&self, target: &PurgeTarget, hardness: Hardness) {
        let address = |url: &[u8]| format!("http://{}", String::from_utf8_lossy(url));
        let (sites, what) = match target {
            PurgeTarget::Url { url, .. } => (Sites::All, What::url(&address(url)).expect("an address")),
            PurgeTarget::Prefix { url, .. } => (Sites::All, What::prefix(&address(url)).expect("an address")),
            PurgeTarget::Tag { tag, .. } => (Sites::All, What::Tag(tag.clone())),
            PurgeTarget::All => (Sites::All, What::Everything),
            PurgeTarget::Site(number) => {
                let sites = self.server.console().health().sites;
                let Some(site) = sites.get(usize::from(*number)) else { return };
                (Sites::Named(site.name.clone()), What::Everything)
            }
        };
        let order = Order { sites, what: vec![what], hard: hardness == Hardness::Hard, by: Maker::Operator };
        self.server.purge(&order).expect("the site is served");
    }

    /// Returns when a single worker has read everything that was sent before. It takes what is ready in the order in which that became
    /// ready, so it is enough to be answered afterwards, by the cache itself; twice, as one turn may have begun already.
    pub(crate) async fn has_read_all(&self) {
        let mut client = self.client().await;
        for _ in 0..2 {
            client.request(Req::get("/turn").field("cache-control", "only-if-cached")).await.status(504);
        }
    }

    /// Returns what `toml` means, in the folder of this site.
    pub(crate) fn settings(&self, toml: &str) -> Result<Settings, ConfigErrors> {
        settings(self.folder.path(), toml)
    }

    /// Reloads. On a thread without a runtime, as the server's own signals are handled.
    pub(crate) fn reload(&mut self, toml: &str) -> Result<Vec<&'static str>, String> {
        let settings = self.settings(toml).map_err(|errors| errors.to_string())?;
        let server = &mut self.server;
        std::thread::scope(|scope| scope.spawn(|| server.reload(settings)).join().expect("no panic")).map_err(|error| format!("{error:#}"))
    }

    /// Stops. Returns the folder, which goes when it is dropped.
    pub(crate) fn stop(self, grace: Duration) -> TempDir {
        self.server.stop(grace);
        self.folder
    }
}

/// Returns what `toml` means, with what all tests have in common: port 0, one worker, neither admin API nor access log, and nothing on the
/// disk unless the test names a folder for it.
pub(crate) fn settings(folder: &Path, toml: &str) -> Result<Settings, ConfigErrors> {
    let toml = toml.replace("FOLDER", folder.to_str().expect("a path in UTF-8"));
    let mut table: Table = toml.parse().expect("TOML");
    let mut default = |section: &str, key: &str, value: Value| {
        let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
        section.as_table_mut().expect("a section").entry(key).or_insert(value);
    };
    default("server", "listen", Value::Array(vec!["127.0.0.1:0".into()]));
    default("server", "admin", "off".into());
    default("server", "workers", 1.into());
    default("log", "access", "off".into());
    default("cache", "disk", 0.into());
    let file = folder.join("seawall.toml");
    fs::write(&file, table.to_string()).expect("written");
    config::check(&file)
}
