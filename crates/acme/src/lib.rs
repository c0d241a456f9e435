//! Certificates for names: got, kept on disk, and renewed before they end.
//!
//! The [`Keeper`] is told which names are wanted. For each it asks an ACME server (RFC 8555), or a root of its own for names that no
//! authority would certify (`localhost`), proves that the name is ours by [`Challenges`] that somebody else serves, and hands what it got
//! to a [`Sink`]. When to try, and when to try again, is decided by [`Schedule`], a value without a clock.
//!
//! What the users of other servers suffered from is designed out: attempts are written down, so that a restart loop cannot use up a rate
//! limit; nothing is ordered that could not be kept; one name is one certificate, so that a name whose DNS is wrong spoils no other; and
//! whatever goes wrong, the certificate that is there stays.
//!
//! Several machines that are one site share a [`Shelf`]: each certificate is then ordered once, and any of them answers the challenge.
//!
//! Deliberately not here: the request path and sockets that listen.

mod board;
mod certificate;
mod challenges;
mod check;
mod demand;
mod dns;
mod failure;
mod folder;
mod hook;
mod keeper;
mod local;
mod lookups;
mod name;
mod options;
mod order;
mod schedule;
mod shelf;
mod sink;
mod transport;
mod waiting;

pub use certificate::{Certificate, CertificateError, not_after};
pub use challenges::Challenges;

pub use check::{Checker, Finding, Severity};
pub use demand::{Demand, DemandOptions, Refused};
pub use failure::{Failure, Fault};
pub use folder::{Folder, FolderError};
pub use hook::DnsHook;
pub use keeper::{Keeper, Status};
pub use local::{LocalRoot, trust_instructions};
pub use lookups::Lookup;
pub use name::{Issuer, issuer, twin};
pub use options::{Account, LETS_ENCRYPT, LETS_ENCRYPT_STAGING, Method, Options};
pub use schedule::{History, Schedule, Validity, Window};
pub use shelf::{Shelf, ShelfError, ShelfLock, Shelved, Shelving, Version};
pub use sink::Sink;
pub use transport::{Answer, Https, Transport, TransportError};
