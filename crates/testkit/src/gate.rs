//! A gate on the way of a reply: the test sees who waits in front of it, and opens it.

use tokio::sync::watch;

use std::sync::Arc;

use crate::patiently;

/// A gate that holds back tasks until the test opens it; tests use it instead of sleeping.
///
/// Clones are the same gate. It works across threads and runtimes.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<State>>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    open: bool,
    arrived: usize,
}

impl Gate {
    /// Creates a closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }

    /// Lets all tasks through, those that wait and those that come later.
    pub fn open(&self) {
        self.0.send_modify(|state| state.open = true);
    }

    /// Closes the gate for tasks that come later.
    pub fn close(&self) {
        self.0.send_modify(|state| state.open = false);
    }

    /// Returns once a task has come to the gate.
    ///
    /// # Panics
    /// Panics if none comes within [`PATIENCE`](crate::PATIENCE).
    pub async fn arrived(&self) {
        self.arrived_count(1).await;
    }

    /// Returns once tasks have come to the gate `n` times since it was made.
    ///
    /// # Panics
    /// Panics if that does not happen within [`PATIENCE`](crate::PATIENCE).
    pub async fn arrived_count(&self, n: usize) {
        let mut state = self.0.subscribe();
        let enough = state.wait_for(|state| state.arrived >= n);
        let what = format!("for {n} to arrive at a gate");
        patiently(&what, enough).await.expect("the sender lives in self");
    }

    /// Returns how many times tasks have come to the gate so far.
    #[must_use]
    pub fn arrivals(&self) -> usize {
        self.0.borrow().arrived
    }

    /// Comes to the gate and waits, without bound, until it is open.
    pub async fn pass(&self) {
        let mut state = self.0.subscribe();
        self.0.send_modify(|state| state.arrived += 1);
        state.wait_for(|state| state.open).await.expect("the sender lives in self");
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "awaited below")]
    async fn holds_everyone_until_it_is_opened_and_nobody_after() {
        let gate = Gate::new();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let gate = gate.clone();
                tokio::spawn(async move { gate.pass().await })
            })
            .collect();
        gate.arrived_count(3).await;
        assert!(waiting.iter().all(|task| !task.is_finished()));
        gate.open();
        for task in waiting {
            task.await.expect("passes");
        }
        gate.pass().await;
        assert_eq!(gate.arrivals(), 4);
    }
}
