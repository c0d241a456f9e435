//! A blog that has moved in: what `seawall import` made of an export, checked and served.

use std::{
    collections::BTreeSet,
    fs,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::free_port;

use super::{
    client::{Answer, Client, PATIENCE},
    crowd::pause,
};

pub(crate) struct Moved {
    /// The report on what became of every item, as `--report` writes it.
    pub(crate) report: Value,
    site: SocketAddr,
    server: Child,
    folder: TempDir,
}

impl Drop for Moved {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn run(arguments: &[&str], folder: &Path) -> (bool, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_seawall")).args(arguments).current_dir(folder).env("HOME", folder).output().expect("it runs");
    (output.status.success(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

impl Moved {
    /// Imports an export with the files of the old site, and serves the blog.
    pub(crate) fn new(export: &str, name: &str, content: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(name), export).expect("written");
        let content = content.to_str().expect("a plain name");
        let (is_done, told) = run(&["import", name, "blog", "--content", content, "--report", "report.json"], folder.path());
        assert!(is_done, "{told}");
        let (is_well, told) = run(&["check", "blog"], folder.path());
        assert!(is_well, "{told}");
        let report = serde_json::from_slice(&fs::read(folder.path().join("report.json")).expect("a report")).expect("JSON");

        let address = || SocketAddr::from(([127, 0, 0, 1], free_port()));
        let (site, admin) = (address(), address());
        let config = format!(
            "source = \"blog\"\nkind = \"blog\"\n[server]\nlisten = [\"{site}\"]\nadmin = \"{admin}\"\nadmin_token_file = \"token\"\nworkers = 1\n"
        );
        fs::write(folder.path().join("seawall.toml"), config).expect("written");
        let mut server = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .args(["serve", "--config", "seawall.toml"])
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log")).expect("a log"))
            .spawn()
            .expect("Seawall starts");
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(site).is_err() {
            let has_ended = server.try_wait().expect("a child").is_some();
            assert!(!has_ended && Instant::now() < end, "{}", fs::read_to_string(folder.path().join("log")).unwrap_or_default());
            pause();
        }
        Self { report, site, server, folder }
    }

    /// Returns the folder of the blog.
    pub(crate) fn blog(&self) -> PathBuf {
        self.folder.path().join("blog")
    }

    /// Asks for an address, and follows one redirect.
    #[track_caller]
    pub(crate) fn get(&self, target: &str) -> Answer {
        let reader = Client::new(self.site, &self.site.to_string());
        let answer = reader.get(target);
        match answer.value("location").filter(|_| answer.status == 301 || answer.status == 308) {
            Some(location) => {
                let path =
                    location.find("://").map_or(location, |at| location[at + 3..].find('/').map_or("/", |path| &location[at + 3 + path..]));
                reader.get(path)
            }
            None => answer,
        }
    }

    /// Returns what became of a text.
    #[track_caller]
    pub(crate) fn text(&self, id: &str) -> &Value {
        self.texts().find(|text| text["id"] == id).unwrap_or_else(|| panic!("{id} is not accounted for"))
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &Value> {
        self.report["texts"].as_array().expect("a list").iter()
    }

    /// Returns the names in a list of the report that are in the blog.
    pub(crate) fn written(&self, list: &str) -> BTreeSet<&str> {
        let entries = self.report[list].as_array().expect("a list").iter();
        entries.filter(|entry| entry["outcome"] == "written").filter_map(|entry| entry["name"].as_str()).collect()
    }

    /// Tells how many comments are kept, and of which address each is.
    pub(crate) fn comments(&self) -> Vec<Value> {
        let file = self.report["comments"]["file"].as_str().map(|file| self.blog().join(file));
        let text = file.map(|file| fs::read_to_string(file).expect("comments")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}
