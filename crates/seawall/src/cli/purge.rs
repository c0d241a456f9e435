//! `seawall purge`.

use std::process::ExitCode;

use admin::{PurgeCommand, PurgeTarget};
use clap::{ArgGroup, Args};
use operator::purge;

use super::{
    Run,
    access::{Access, page},
    output::confirm,
    serve::Taken,
};

const EXAMPLES: &str = "\
Examples:
  seawall purge --url https://blog.example.org/hello/     one page
  seawall purge --prefix https://blog.example.org/2026/   everything below an address
  seawall purge --host blog.example.org                   all pages of a host
  seawall purge --tag post-12                             everything that carries a tag
  seawall purge --all --soft                              everything, but old copies may be shown until new ones are there

A purge is hard unless --soft is given: the next visitor gets the page that the server has now.";

/// Take pages out of the cache of a running Seawall
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("target").required(true).multiple(false).args(["url", "prefix", "host", "tag", "all"]))]
pub(crate) struct Purge {
    /// The page at this address
    #[arg(long, value_name = "URL", value_parser = page)]
    url: Option<String>,

    /// All pages whose address begins like this
    #[arg(long, value_name = "URL", value_parser = page)]
    prefix: Option<String>,

    /// All pages of this host
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// All pages that carry this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// All pages
    #[arg(long)]
    all: bool,

    /// Mark old copies stale: they may be shown while new ones are fetched, and while the server is down
    #[arg(long)]
    soft: bool,

    /// Never show old copies again, not even when the server is down [this is the default]
    #[arg(long, conflicts_with = "soft")]
    hard: bool,

    /// The running Seawall.
    #[command(flatten)]
    pub(crate) access: Access,
}

impl Purge {
    /// Makes a command of what was typed. It is hard unless `--soft` was given: what is published is live, and an old page after a purge would look
    /// like a purge that failed. `--hard` says the same aloud.
    fn command(self) -> PurgeCommand {
        let target = match (self.url, self.prefix, self.host, self.tag) {
            (Some(url), ..) => PurgeTarget::Url(url),
            (_, Some(prefix), ..) => PurgeTarget::Prefix(prefix),
            (_, _, Some(host), _) => PurgeTarget::Host(host),
            (.., Some(tag)) => PurgeTarget::Tag(tag),
            // The argument group lets nothing through without exactly one of the five.
            (None, None, None, None) => PurgeTarget::All,
        };
        PurgeCommand { target, hard: !self.soft }
    }
}

impl Run for Purge {
    const NAME: &'static str = "purge";

    fn run(self, _: Option<Taken>) -> anyhow::Result<ExitCode> {
        let (address, token) = self.access.address_and_token()?;
        let said = purge::run(address, token.as_str(), &self.command())?;
        confirm(&format!("{said}\n"));
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;
    use crate::cli::typed;

    #[test]
    fn purge_takes_exactly_one_target() {
        let of = |text: &str| text.to_owned();
        let cases = [
            ("--url https://a/b", Ok((PurgeTarget::Url(of("https://a/b")), true))),
            ("--prefix https://a/ --soft", Ok((PurgeTarget::Prefix(of("https://a/")), false))),
            ("--host a.example", Ok((PurgeTarget::Host(of("a.example")), true))),
            ("--host a --all", Err(ErrorKind::ArgumentConflict)),
            ("--tag t --hard", Ok((PurgeTarget::Tag(of("t")), true))),
            ("--all", Ok((PurgeTarget::All, true))),
            ("", Err(ErrorKind::MissingRequiredArgument)),
            ("--soft", Err(ErrorKind::MissingRequiredArgument)),
            ("--all --tag t", Err(ErrorKind::ArgumentConflict)),
            ("--url https://a/ --prefix https://b/", Err(ErrorKind::ArgumentConflict)),
            ("--all --soft --hard", Err(ErrorKind::ArgumentConflict)),
        ];
        for (arguments, expected) in cases {
            match (typed::<Purge>(&format!("seawall purge {arguments}")), expected) {
                (Ok(purge), Ok((target, hard))) => assert_eq!(purge.command(), PurgeCommand { target, hard }, "{arguments}"),
                (Err(error), Err(expected)) => assert_eq!(error.kind(), expected, "{arguments}"),
                (outcome, _) => panic!("{arguments}: {outcome:?}"),
            }
        }
    }
}
