//! The order: a purge as it is said by whoever wants it.
//!
//! Everybody who can have something purged makes this same value: the operator, a plugin, an origin, the answer to an unsafe method, a
//! folder that changed. An order names a site by its name and a host as people write it. Numbers of sites and bytes of keys belong to one
//! process and are found when the order is carried out, so an order can be sent to another machine and means the same there.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Address, Dialect, HostName};

/// A purge, as somebody ordered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The sites that it may touch.
    pub sites: Sites,
    /// The things that it covers: always at least one.
    pub what: Vec<What>,
    /// Whether what it covers is never served again. Otherwise that becomes stale: it may be served while it is refreshed, or if the origin
    /// is down.
    pub hard: bool,
    /// The one who ordered it.
    pub by: Maker,
}

impl Order {
    /// Makes an order for one site.
    #[must_use]
    pub fn for_site(name: &str, what: Vec<What>, hard: bool, by: Maker) -> Self {
        Self { sites: Sites::Named(name.to_owned()), what, hard, by }
    }

    /// Makes the order of an operator, who may purge every site.
    #[must_use]
    pub fn by_operator(what: What, hard: bool) -> Self {
        Self { sites: Sites::All, what: vec![what], hard, by: Maker::Operator }
    }
}

/// The sites that an order may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sites {
    /// Every site. Hosts say which of them is meant.
    All,
    /// The site with this name. A host of another site is refused.
    Named(String),
}

/// One thing to be purged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// One page: an address in every variant and with every query.
    Url(Address),
    /// Every page whose address begins so.
    Prefix(Address),
    /// Every page of a host; without a port, on every port.
    Host(HostName),
    /// Every page that carries this tag.
    Tag(String),
    /// Every page of the order's sites.
    Everything,
}

impl What {
    /// Reads the address of a page, such as `https://blog.example.org/hello/`.
    ///
    /// # Errors
    /// When the text is not an address with a scheme and a host.
    pub fn url(text: &str) -> Result<Self, BadWhat> {
        text.parse().map(Self::Url)
    }

    /// Reads the beginning of addresses, such as `https://blog.example.org/2026/`.
    ///
    /// # Errors
    /// When the text is not an address with a scheme and a host.
    pub fn prefix(text: &str) -> Result<Self, BadWhat> {
        text.parse().map(Self::Prefix)
    }

    /// Reads a host, with or without a port.
    ///
    /// # Errors
    /// When the text is not a host name.
    pub fn host(text: &str) -> Result<Self, BadWhat> {
        text.parse().map(Self::Host)
    }

    /// Takes a tag.
    ///
    /// # Errors
    /// When it is empty.
    pub fn tag(text: &str) -> Result<Self, BadWhat> {
        if text.is_empty() { Err(BadWhat::Empty) } else { Ok(Self::Tag(text.to_owned())) }
    }
}

/// The reason why a text names nothing that could be purged, in words for whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadWhat {
    /// It has no characters.
    Empty,
    /// It should be an address.
    Address(String),
    /// It should be a host.
    Host(String),
}

impl fmt::Display for BadWhat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::Address(text) => write!(f, "{text} is not an address; write it as http://blog.example.org/hello/"),
            Self::Host(text) => {
                write!(f, "{text} is not a host name; write it without a scheme and a path, such as blog.example.org")
            }
        }
    }
}

impl std::error::Error for BadWhat {}

/// The maker of an order: the one who wants something purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Maker {
    /// The operator, through the admin API.
    Operator,
    /// A plugin, by a request on the site's own address.
    Plugin(Dialect),
    /// The site's origin, by a field of a response.
    Origin,
    /// The site's origin, by a webhook.
    Webhook,
    /// The answer to an unsafe method, as the request may have changed pages (RFC 9111 §4.4, RFC 9875 §3). Anybody can send such a request.
    UnsafeMethod,
    /// The site's folder: files in it changed.
    Folder,
    /// A reload: the site's folder was opened anew, and nobody has seen what changed in it meanwhile.
    Reload,
    /// Seawall itself: it saw at the origin that the site was upgraded, or changed past Seawall.
    Watch,
    /// A write that the origin accepted from somebody who may write: an editor, or a program of the site.
    Write,
}

impl Maker {
    /// The names of all makers, in the order of [`index`](Self::index).
    pub const NAMES: [&str; 9] = ["operator", "plugin", "origin", "webhook", "unsafe-method", "folder", "reload", "watch", "write"];

    /// Returns the place of this maker in [`NAMES`](Self::NAMES).
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Operator => 0,
            Self::Plugin(_) => 1,
            Self::Origin => 2,
            Self::Webhook => 3,
            Self::UnsafeMethod => 4,
            Self::Folder => 5,
            Self::Reload => 6,
            Self::Watch => 7,
            Self::Write => 8,
        }
    }

    /// Returns the name of this maker in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Returns whether the site's own software says so: by an answer, by a webhook, or by what it accepts.
    #[must_use]
    pub const fn is_signal(self) -> bool {
        matches!(self, Self::Origin | Self::Webhook | Self::Write)
    }

    /// Returns whether a stranger can have caused the order: it must fill no list and no log, and announces no page.
    #[must_use]
    pub const fn may_be_stranger(self) -> bool {
        matches!(self, Self::UnsafeMethod)
    }

    /// Returns whether each machine of a cluster finds it out by itself: it looks after its own folders, configuration and origins.
    #[must_use]
    pub const fn is_own_observation(self) -> bool {
        matches!(self, Self::Folder | Self::Reload | Self::Watch)
    }

    /// Returns whether somebody with permission said that something changed: it is neither a stranger's request nor Seawall's own observation.
    #[must_use]
    pub const fn is_announcement(self) -> bool {
        !self.may_be_stranger() && !self.is_own_observation()
    }

    /// Returns the dialect of a plugin.
    #[must_use]
    pub const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Plugin(dialect) => Some(dialect),
            Self::Operator
            | Self::Origin
            | Self::Webhook
            | Self::UnsafeMethod
            | Self::Folder
            | Self::Reload
            | Self::Watch
            | Self::Write => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use semantics::Scheme;

    use super::*;

    /// An order means the same in another process: it names sites, and has no numbers.
    #[test]
    fn an_order_can_be_sent_and_read_again() {
        let what = || {
            vec![
                What::Url(Address::over(Scheme::Https, "blog.example", "/a?b")),
                What::Prefix(Address::over_either("blog.example:80", "/2026/")),
                What::Host("[::1]:8080".parse().expect("a host")),
                What::Tag("post-1".to_owned()),
                What::Everything,
            ]
        };
        for by in [
            Maker::Operator,
            Maker::Plugin(Dialect::ProxyCachePurge),
            Maker::Origin,
            Maker::Webhook,
            Maker::UnsafeMethod,
            Maker::Folder,
            Maker::Reload,
            Maker::Watch,
            Maker::Write,
        ] {
            for sites in [Sites::All, Sites::Named("blog".to_owned())] {
                let order = Order { sites, what: what(), hard: false, by };
                let sent = serde_json::to_string(&order).expect("JSON");
                assert_eq!(serde_json::from_str::<Order>(&sent).expect("an order"), order, "{sent}");
            }
        }
        let order = Order::for_site("blog", what(), true, Maker::Plugin(Dialect::Varnish));
        let sent = serde_json::to_value(&order).expect("JSON");
        let expected = serde_json::json!({
            "sites": {"named": "blog"},
            "what": [
                {"url": "https://blog.example/a?b"},
                {"prefix": "//blog.example:80/2026/"},
                {"host": "[::1]:8080"},
                {"tag": "post-1"},
                "everything",
            ],
            "hard": true,
            "by": {"plugin": "varnish"},
        });
        assert_eq!(sent, expected);
        assert!(serde_json::from_str::<What>(r#"{"url": "foo"}"#).is_err());
    }

    #[test]
    fn every_maker_has_a_name_of_its_own() {
        for by in [
            Maker::Operator,
            Maker::Plugin(Dialect::Xkey),
            Maker::Origin,
            Maker::Webhook,
            Maker::UnsafeMethod,
            Maker::Folder,
            Maker::Reload,
            Maker::Watch,
            Maker::Write,
        ] {
            assert_eq!(Maker::NAMES.iter().position(|name| *name == by.name()), Some(by.index()));
        }
        for dialect in Dialect::ALL {
            assert_eq!(serde_json::to_value(dialect).expect("JSON"), dialect.name());
        }
    }
}
