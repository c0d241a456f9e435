//! The maker of the pictures of blogs, and the place where they are kept: one workshop for the whole process, with a folder in the cache's.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use blog::{Shelf, Workshop};

use crate::config::settings::{Disk, Settings, Source};

/// The folder with pictures, in the folder of the cache.
const FOLDER: &str = "pictures";

/// The bytes of pictures that are kept in memory, where there is no folder for them.
const MEMORY_BYTES_MAX: u64 = 64 << 20;

/// The workshop of a process, if it serves a blog.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pictures {
    disk: Option<Disk>,
    workshop: Option<Arc<Workshop>>,
}

impl Pictures {
    /// Returns the workshop for these settings: the one of `before`, if it keeps its pictures in the same place.
    pub(crate) fn of(settings: &Settings, before: Option<&Self>) -> Self {
        if let Some(same) = before.filter(|before| before.workshop.is_some() && before.disk == settings.cache_disk) {
            return same.clone();
        }
        let is_needed = settings.sites.iter().any(|site| matches!(site.source, Source::Blog(_)));
        let disk = settings.cache_disk.clone();
        let shelf = |disk: Option<&Disk>| match disk.and_then(|disk| Some((disk.dir.as_deref()?, disk.size_max))) {
            Some((dir, size_max)) => kept_in(dir, size_max),
            None => Shelf::in_memory(MEMORY_BYTES_MAX),
        };
        let workshop = is_needed.then(|| Arc::new(Workshop::new(shelf(disk.as_ref()))));
        Self { disk, workshop }
    }

    /// Returns the workshop. Without one, pictures are made and kept for this caller alone.
    pub(crate) fn workshop(&self) -> Arc<Workshop> {
        self.workshop.clone().unwrap_or_else(|| Arc::new(Workshop::new(Shelf::in_memory(MEMORY_BYTES_MAX))))
    }
}

/// Opens the shelf in a cache's folder, and one in memory if that cannot be done.
fn kept_in(dir: &Path, size_max: u64) -> Shelf {
    let folder = dir.join(FOLDER);
    Shelf::open(&folder, size_max).unwrap_or_else(|error| {
        tracing::warn!("pictures are kept in memory alone: {} cannot be used: {error}", folder.display());
        Shelf::in_memory(MEMORY_BYTES_MAX)
    })
}

/// Returns the workshop of a command that has no settings: it keeps its pictures where a server without settings does.
pub(crate) fn workshop_of_command(dir: Option<PathBuf>) -> Arc<Workshop> {
    let shelf = dir.map_or_else(|| Shelf::in_memory(MEMORY_BYTES_MAX), |dir| kept_in(&dir, 4 << 30));
    Arc::new(Workshop::new(shelf))
}
