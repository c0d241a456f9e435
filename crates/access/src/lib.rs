//! Who may see what: files of passwords, and the paths for which one is asked.
//!
//! [`Lock`] is a file of users with everything that makes asking it safe: what was right once is not computed again, who guesses is slowed
//! down, and the file is read again when it changes. [`Protected`] says which paths a lock is for.
//!
//! Absent from this room: messages, sockets, async, and the clock. Checking a password takes as long as its hash wants it to; on which
//! thread is the caller's business.

mod apr1;
mod attempts;
mod credentials;
mod hash;
mod htpasswd;
mod lock;
mod memo;
mod paths;

pub use attempts::{Attempts, SPARE, group};
pub use credentials::Credentials;
pub use htpasswd::{BadLine, FileError};
pub use lock::Lock;
pub use paths::{BadPath, Protected};
