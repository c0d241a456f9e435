//! `[purge]` and `[refill]`: who may purge on the sites' own addresses, and what comes back by itself.

use std::{net::IpAddr, str::FromStr};

use ipnet::IpNet;
use toml::Spanned;

use super::{
    error::Mistake,
    file,
    resolve::{Resolver, as_usize},
    settings::{Purge, Refill},
    units::Count,
};

/// A network whose members may send purge requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeSource(pub IpNet);

impl FromStr for PurgeSource {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = || {
            Mistake::new(
                format!("\"{text}\" is not a network"),
                "write an address such as \"192.0.2.7\", or one with the length of its prefix, such as \"192.0.2.0/24\"",
            )
        };
        // One machine is a network of one.
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(IpNet::from(address)));
        }
        let network = text.parse::<IpNet>().map_err(|_| if text == "localhost" { mistake().meant("127.0.0.0/8") } else { mistake() })?;
        if network.prefix_len() == 0 {
            return Err(Mistake::new(
                format!("\"{text}\" is everybody: any visitor could empty the cache"),
                "write the addresses of your own servers, or use the admin token",
            ));
        }
        Ok(Self(network.trunc()))
    }
}

/// The path below which a GET is a purge request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgePath(pub String);

impl FromStr for PurgePath {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake =
            || Mistake::new(format!("\"{text}\" is not a path for purge requests"), "write it as the plugin sends it: \"/purge\"");
        let path = text.trim_end_matches('/');
        let is_plain = |segment: &str| {
            !matches!(segment, "" | "." | "..") && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b))
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if !path[1..].split('/').all(is_plain) {
            return Err(mistake());
        }
        if path == text { Ok(Self(path)) } else { Err(mistake().meant(path)) }
    }
}

impl Resolver<'_> {
    pub(super) fn purge(&self, file: &file::Purge) -> Purge {
        let allow = match &file.allow {
            Some(list) => list.get_ref().iter().map(|network| network.get_ref().0).collect(),
            None => vec![IpNet::new_assert([127, 0, 0, 0].into(), 8), IpNet::new_assert(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]), 128)],
        };
        Purge { allow, path: file.path.as_ref().map(Spanned::get_ref).map(|path| path.0.clone()) }
    }

    pub(super) fn refill(&mut self, file: &file::Refill) -> Refill {
        let concurrency = self.said(&file.concurrency);
        Refill { concurrency: as_usize(self.within("concurrency", concurrency, Count(2), Count(0)..=Count(64)).0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_networks_and_never_everybody() {
        assert_eq!("10.0.0.1".parse::<PurgeSource>().map(|network| network.0.to_string()), Ok("10.0.0.1/32".to_owned()));
        assert_eq!("10.1.2.3/8".parse::<PurgeSource>().map(|network| network.0.to_string()), Ok("10.0.0.0/8".to_owned()));
        for (text, expected) in [("localhost", "127.0.0.0/8"), ("0.0.0.0/0", ""), ("x", "")] {
            let mistake = text.parse::<PurgeSource>().expect_err(text);
            assert!(mistake.meant.unwrap_or_default().contains(expected), "{text}");
        }
    }

    #[test]
    fn a_purge_path_is_a_path_and_never_the_whole_site() {
        for text in ["/purge", "/-/purge", "/cache.purge"] {
            assert_eq!(text.parse(), Ok(PurgePath(text.to_owned())));
        }
        for (text, expected) in
            [("purge", "/purge"), ("/purge/", "/purge"), ("/", ""), ("", ""), ("/a/../b", ""), ("/a?b", ""), ("/a b", "")]
        {
            let mistake = text.parse::<PurgePath>().expect_err(text);
            assert!(mistake.meant.unwrap_or_default().contains(expected), "{text}");
        }
    }
}
