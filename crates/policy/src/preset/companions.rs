//! Companions: servers that answer for some paths of a site's software, as its own set-up would have it.
//!
//! A path of this table is a path below the software's base path. Which server it is, an operator says; nothing of what it answers is stored.

/// A server that stands beside a kind's software.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompanionServer {
    /// The one for the social web (ActivityPub).
    Social,
    /// The one that counts visitors.
    Analytics,
}

/// A path for which a companion answers, with everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Companion {
    /// The path, without a slash at its end.
    pub path: &'static str,
    /// The server that answers.
    pub server: CompanionServer,
    /// Whether the server is asked for what follows the path.
    pub strip_prefix: bool,
}

/// The companions of a Ghost: what its own set-up for nginx and Caddy sends elsewhere.
pub(super) const OF_GHOST: &[Companion] = &[
    Companion { path: "/.ghost/activitypub", server: CompanionServer::Social, strip_prefix: false },
    Companion { path: "/.well-known/webfinger", server: CompanionServer::Social, strip_prefix: false },
    Companion { path: "/.well-known/nodeinfo", server: CompanionServer::Social, strip_prefix: false },
    Companion { path: "/.ghost/analytics", server: CompanionServer::Analytics, strip_prefix: true },
];
