//! What PHP was asked, as the script that runs before any other wrote it down; and answers that are held back.

use std::{fs, path::PathBuf};

use serde_json::Value;

use super::crowd::until;

/// A folder that `witness.php` writes into.
pub(crate) struct Witness {
    folder: PathBuf,
}

/// A request that reached PHP.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    sent: Value,
}

impl Seen {
    /// Returns the parameter of this name, such as `HTTP_COOKIE`.
    pub(crate) fn sent(&self, name: &str) -> Option<&str> {
        self.sent[name].as_str()
    }
}

/// The answer to the next request for a target: PHP makes it at once, and gives it when it is released.
pub(crate) struct HeldAnswer {
    mark: PathBuf,
}

impl Witness {
    pub(crate) fn new(folder: PathBuf) -> Self {
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("asked"), "").expect("written");
        Self { folder }
    }

    /// Returns all requests, in the order in which they came, without the looks that Seawall itself takes at a WordPress now and then.
    pub(crate) fn all(&self) -> Vec<Seen> {
        let text = fs::read_to_string(self.folder.join("asked")).expect("readable");
        let seen = |line: &str| {
            let value: Value = serde_json::from_str(line).expect("JSON");
            Seen {
                method: value["method"].as_str().unwrap().into(),
                target: value["target"].as_str().unwrap().into(),
                sent: value["sent"].clone(),
            }
        };
        text.lines().map(seen).filter(|seen| !(seen.method == "HEAD" && seen.target.ends_with("&doing_wp_cron"))).collect()
    }

    pub(crate) fn total(&self) -> usize {
        self.all().len()
    }

    /// Returns how many requests for exactly this target have reached PHP.
    pub(crate) fn count(&self, target: &str) -> usize {
        self.all().iter().filter(|seen| seen.target == target).count()
    }

    /// Returns how many requests for this path, with whatever query, have reached PHP.
    pub(crate) fn count_of_path(&self, path: &str) -> usize {
        self.all().iter().filter(|seen| seen.target.split('?').next() == Some(path)).count()
    }

    /// Returns the last request for this target.
    pub(crate) fn last(&self, target: &str) -> Seen {
        self.all().into_iter().rfind(|seen| seen.target == target).unwrap_or_else(|| panic!("nothing has asked PHP for {target}"))
    }

    /// Holds the answer to the next request for this target back, and no other.
    pub(crate) fn hold(&self, target: &str) -> HeldAnswer {
        // As `md5` of PHP names it; there is no need for another crate.
        let output = std::process::Command::new("php").args(["-r", "echo md5($argv[1]);", target]).output().expect("php");
        let mark = self.folder.join(format!("hold-{}", String::from_utf8_lossy(&output.stdout)));
        fs::write(&mark, "").expect("written");
        HeldAnswer { mark }
    }
}

impl HeldAnswer {
    fn also(&self, end: &str) -> PathBuf {
        let mut name = self.mark.clone().into_os_string();
        name.push(end);
        name.into()
    }

    /// Waits until PHP has made the answer, with what is true at that time.
    ///
    /// # Panics
    /// If nobody asks.
    pub(crate) fn is_answered(&self) {
        until("an answer to hold back", || self.also("-answered").exists());
    }

    pub(crate) fn release(self) {
        drop(self);
    }
}

impl Drop for HeldAnswer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.mark);
        let _ = fs::remove_file(self.also("-taken"));
        let _ = fs::remove_file(self.also("-answered"));
    }
}
