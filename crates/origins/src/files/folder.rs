//! A folder of which somebody else says what a path stands for: the files in it are found and sent as those of any folder.
//!
//! Nobody watches it. What is sent is to be looked at again after a second.

use std::{
    io,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use http::{Response, request::Parts};
use parking_lot::{Mutex, RwLock};

use super::{
    FilesOptions, Shared, Version, answer,
    root::{Entry, Links, Root},
    rules::Rules,
};
use crate::Body;

/// The time after which the folder is looked at again: another one may have been put in its place.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// An opened folder.
#[derive(Debug)]
pub(crate) struct Folder {
    shared: Shared,
    links: Links,
    looked: Mutex<Instant>,
}

impl Folder {
    /// Opens the folder that `given` leads to.
    ///
    /// # Errors
    /// Fails when it is not a folder that can be read.
    pub(crate) fn open(given: &Path, links: Links) -> io::Result<Self> {
        let shared = Shared {
            given: given.to_owned(),
            options: FilesOptions::default(),
            version: RwLock::new(version(Root::open_with(given, links)?)),
            watched: AtomicBool::new(false),
            folders: Mutex::default(),
            opened: Mutex::default(),
        };
        Ok(Self { shared, links, looked: Mutex::new(Instant::now()) })
    }

    /// Returns the root of the folder that is in place now, or was a second ago. Blocks.
    pub(crate) fn root(&self) -> Arc<Root> {
        let now = Instant::now();
        let looks = {
            let mut looked = self.looked.lock();
            let looks = now >= *looked + LOOK_AGAIN;
            if looks {
                *looked = now;
            }
            looks
        };
        let root = Arc::clone(&self.shared.version.read().root);
        if looks
            && root.is_replaced() == Some(true)
            && let Ok(root) = Root::open_with(&self.shared.given, self.links)
        {
            let version = version(root);
            *self.shared.version.write() = Arc::clone(&version);
            return Arc::clone(&version.root);
        }
        root
    }

    /// Has the next request look at the folder again.
    #[cfg(test)]
    pub(crate) fn forget_look(&self) {
        let mut looked = self.looked.lock();
        *looked = looked.checked_sub(LOOK_AGAIN).expect("the machine has been up for a second");
    }

    /// Answers a GET or HEAD with a file that was found below the root. Blocks.
    pub(crate) fn send(&self, root: &Arc<Root>, entry: Entry, parts: &Parts) -> io::Result<Response<Body>> {
        let version = Version { root: Arc::clone(root), rules: Rules::default(), rules_were: [None; 2] };
        answer::send(&version, &self.shared, parts, entry)
    }
}

fn version(root: Root) -> Arc<Version> {
    Arc::new(Version { root: Arc::new(root), rules: Rules::default(), rules_were: [None; 2] })
}
