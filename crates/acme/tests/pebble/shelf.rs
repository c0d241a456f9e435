//! A shelf in memory, that several keepers share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use acme::{Shelf, ShelfError, ShelfLock, Shelved, Shelving, Version};

/// A shelf that forgets, and that can be out of reach, when the test says so. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    values: HashMap<String, (Vec<u8>, Version)>,
    locks: HashMap<String, u64>,
    last: u64,
    is_cut: bool,
}

impl Memory {
    fn state(&self) -> Result<MutexGuard<'_, State>, ShelfError> {
        let state = self.0.lock().expect("no panic");
        if state.is_cut { Err(ShelfError::Unreachable("cut off".to_owned())) } else { Ok(state) }
    }

    /// Puts the shelf out of reach, or within it again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.0.lock().expect("no panic").is_cut = is_cut;
    }

    /// Forgets everything.
    pub(crate) fn flush(&self) {
        let mut state = self.0.lock().expect("no panic");
        state.values.clear();
        state.locks.clear();
    }

    /// Lets all locks end, as when their holders sleep for too long.
    pub(crate) fn end_locks(&self) {
        self.0.lock().expect("no panic").locks.clear();
    }

    /// Returns the names and values.
    pub(crate) fn all(&self) -> Vec<(String, Vec<u8>)> {
        let state = self.0.lock().expect("no panic");
        state.values.iter().map(|(name, (value, _))| (name.clone(), value.clone())).collect()
    }

    /// Puts garbage in the place of every value.
    pub(crate) fn spoil(&self) {
        for (value, _) in self.0.lock().expect("no panic").values.values_mut() {
            *value = b"\xff garbage".to_vec();
        }
    }
}

impl State {
    fn put(&mut self, name: &str, value: Vec<u8>) {
        self.last += 1;
        let mut version = [0; 12];
        version[..8].copy_from_slice(&self.last.to_le_bytes());
        self.values.insert(name.to_owned(), (value, Version(version)));
    }
}

impl Shelf for Memory {
    fn get<'a>(&'a self, name: &'a str) -> Shelving<'a, Option<Shelved>> {
        Box::pin(
            async move { Ok(self.state()?.values.get(name).map(|(value, version)| Shelved { value: value.clone(), version: *version })) },
        )
    }

    fn put<'a>(&'a self, name: &'a str, value: Vec<u8>, _keep: Duration) -> Shelving<'a, ()> {
        Box::pin(async move {
            self.state()?.put(name, value);
            Ok(())
        })
    }

    fn swap<'a>(&'a self, name: &'a str, before: Option<&'a Version>, value: Vec<u8>, _keep: Duration) -> Shelving<'a, bool> {
        Box::pin(async move {
            let mut state = self.state()?;
            let is_same = state.values.get(name).map(|(_, version)| version) == before;
            if is_same {
                state.put(name, value);
            }
            Ok(is_same)
        })
    }

    fn lock<'a>(&'a self, name: &'a str, _keep: Duration) -> Shelving<'a, Option<Box<dyn ShelfLock>>> {
        Box::pin(async move {
            let mut state = self.state()?;
            if state.locks.contains_key(name) {
                return Ok(None);
            }
            state.last += 1;
            let number = state.last;
            state.locks.insert(name.to_owned(), number);
            Ok(Some(Box::new(Locked { shelf: self.clone(), name: name.to_owned(), number }) as _))
        })
    }
}

struct Locked {
    shelf: Memory,
    name: String,
    number: u64,
}

impl ShelfLock for Locked {
    fn number(&self) -> u64 {
        self.number
    }

    fn renew(&self, _keep: Duration) -> Shelving<'_, bool> {
        Box::pin(async move { Ok(self.shelf.state()?.locks.get(&self.name) == Some(&self.number)) })
    }

    fn release(self: Box<Self>) -> Shelving<'static, ()> {
        Box::pin(async move {
            let mut state = self.shelf.state()?;
            if state.locks.get(&self.name) == Some(&self.number) {
                state.locks.remove(&self.name);
            }
            Ok(())
        })
    }
}
