//! This machine, as the cluster sees it: what it has stored, and its fence.

use std::time::Instant;

use policy::purge::Order;

use crate::stream::Position;

/// Carries out on this machine what the cluster has done. All calls come from the cluster's own thread, in the order of the stream.
///
/// None of them may wait for the cluster, and each should return within milliseconds: nothing else of the cluster goes on meanwhile.
pub trait Local: Send + Sync + 'static {
    /// Carries out the order of another machine. When this returns, nothing that it covers is shown as fresh any more, and whatever is fetched and
    /// was begun before is covered, too. It may be called twice for one order.
    ///
    /// # Errors
    /// When it was not carried out, in words. Then [`doubt`](Self::doubt) is called. An order for a site that this machine does not have is no
    /// error.
    fn apply(&self, order: &Order) -> Result<(), String>;

    /// Puts everything that is stored in doubt, also what is being fetched: it is validated before it is shown. `why` is a sentence without a full
    /// stop, for the log.
    fn doubt(&self, why: &str);

    /// Gives a lease until that instant. A lease is never shortened by this.
    fn lease(&self, until: Instant);

    /// Takes the lease away at once.
    fn give_up(&self);

    /// Keeps the position beside what is stored on the disk. Everything up to it was carried out before. Called at most once a round; it may be
    /// written late, or not at all: an older one costs only that entries are carried out twice.
    fn keep(&self, position: &Position);

    /// Returns the generation of the store, and whether the cluster was told of every order that was carried out here up to it. It is for those
    /// alone who share a [tier](crate::tier).
    fn told_up_to(&self) -> (u64, bool) {
        (0, false)
    }
}
