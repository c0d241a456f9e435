//! Knows who waits: the wakers of many readers behind one lock. Whoever has news takes them all under the lock and wakes them outside it,
//! so a thousand readers on other threads do not run into the lock they were woken from. The same goes for a waker that is merely dropped:
//! it may be the last handle of its task, and the task may hold a reader of this very body.

use std::task::Waker;

/// The slot of a waiter among the wakers, kept by the waiter between polls. It is `None` until the waiter first waits.
pub(crate) type WakerSlot = Option<usize>;

/// The wakers of waiters, by slot. There are as many slots as there are waiters at once (24 bytes each); the owner bounds those.
#[derive(Default)]
pub(crate) struct Wakers {
    slots: Vec<Option<Waker>>,
    free: Vec<usize>,
    waiting: usize,
}

impl Wakers {
    /// Begins to wait, or goes on waiting: a waiter polled many times holds one slot, with its latest waker. Returns the one before, to be
    /// dropped outside the lock.
    #[must_use]
    pub(crate) fn wait(&mut self, slot: &mut WakerSlot, waker: &Waker) -> Option<Waker> {
        let index = match *slot {
            Some(index) => index,
            None => self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            }),
        };
        *slot = Some(index);
        let held = &mut self.slots[index];
        if held.as_ref().is_some_and(|held| held.will_wake(waker)) {
            return None;
        }
        let before = held.replace(waker.clone());
        self.waiting += usize::from(before.is_none());
        before
    }

    /// Gives a slot back. Returns its waker, to be dropped outside the lock.
    #[must_use]
    pub(crate) fn leave(&mut self, slot: &mut WakerSlot) -> Option<Waker> {
        let index = slot.take()?;
        self.free.push(index);
        let waker = self.slots[index].take();
        self.waiting -= usize::from(waker.is_some());
        waker
    }

    /// Returns the wakers of all who wait, to be passed to [`wake`] once the lock is released.
    #[must_use]
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        if self.waiting == 0 {
            return Vec::new();
        }
        let mut woken = Vec::with_capacity(self.waiting);
        woken.extend(self.slots.iter_mut().filter_map(Option::take));
        self.waiting = 0;
        woken
    }
}

/// Wakes all of these.
pub(crate) fn wake(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_holds_one_place_however_often_it_polls() {
        let mut wakers = Wakers::default();
        let (mut a, mut b) = (None, None);
        for _ in 0..100 {
            drop(wakers.wait(&mut a, Waker::noop()));
            drop(wakers.wait(&mut b, Waker::noop()));
        }
        assert_eq!(wakers.take().len(), 2);
        assert_eq!(wakers.take().len(), 0);
        drop(wakers.wait(&mut a, Waker::noop()));
        drop(wakers.leave(&mut a));
        drop(wakers.leave(&mut a));
        assert_eq!(wakers.take().len(), 0);
        for _ in 0..100 {
            let mut passing = None;
            drop(wakers.wait(&mut passing, Waker::noop()));
            drop(wakers.leave(&mut passing));
        }
        assert_eq!(wakers.slots.len(), 2);
    }
}
