//! `seawall purge`.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use operator::purge;
use policy::purge::What;

use super::{Run, access::Access, output::confirm, serve::Inherited};

const EXAMPLES: &str = "\
Examples:
  seawall purge --url https://blog.example.org/hello/     one page
  seawall purge --prefix https://blog.example.org/2026/   everything below an address
  seawall purge --host blog.example.org                   all pages of a host
  seawall purge --tag post-12                             everything that carries a tag
  seawall purge --all --soft                              everything, but old copies may be shown until new ones are there

A purge is hard unless --soft is given: the next visitor gets the page that the server has now.

In a cluster, the purge is carried out on all machines, and waits until it holds there. Exit code 0: it holds everywhere; 3: it is done here, and not known to hold on every machine yet; they are told until they have it.";

/// The exit code if a purge is not known to hold on every machine.
const NOT_EVERYWHERE: u8 = 3;

/// Take pages out of the cache of a running Seawall
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("target").required(true).multiple(false).args(["url", "prefix", "host", "tag", "all"]))]
pub(crate) struct Purge {
    /// The page at this address
    #[arg(long, value_name = "URL", value_parser = url)]
    url: Option<What>,

    /// All pages whose address begins like this
    #[arg(long, value_name = "URL", value_parser = prefix)]
    prefix: Option<What>,

    /// All pages of this host
    #[arg(long, value_name = "NAME", value_parser = What::host)]
    host: Option<What>,

    /// All pages that carry this tag
    #[arg(long, value_name = "TAG", value_parser = What::tag)]
    tag: Option<What>,

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

fn url(text: &str) -> Result<What, String> {
    operator::address::check_whole(text)?;
    What::url(text).map_err(|error| error.to_string())
}

fn prefix(text: &str) -> Result<What, String> {
    operator::address::check_whole(text)?;
    What::prefix(text).map_err(|error| error.to_string())
}

impl Purge {
    /// Returns the one target that was named.
    fn what(&self) -> What {
        let named = self.url.as_ref().or(self.prefix.as_ref()).or(self.host.as_ref()).or(self.tag.as_ref());
        // The argument group lets nothing through without exactly one of the five.
        named.cloned().unwrap_or(What::Everything)
    }

    /// Tells whether old copies are never shown again. They are not, unless `--soft` was given: what is published is live, and an old page after a
    /// purge would look like a purge that failed. `--hard` says the same aloud.
    const fn is_hard(&self) -> bool {
        !self.soft
    }
}

impl Run for Purge {
    const NAME: &'static str = "purge";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let (address, token) = self.access.address_and_token()?;
        let purged = purge::run(address, token.as_str(), &self.what(), self.is_hard())?;
        confirm(&format!("{}\n", purged.said));
        Ok(if purged.everywhere { ExitCode::SUCCESS } else { NOT_EVERYWHERE.into() })
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;
    use crate::cli::typed;

    #[test]
    fn purge_takes_exactly_one_target() {
        let cases = [
            ("--url https://a/b", Ok((What::url("https://a/b"), true))),
            ("--prefix https://a/ --soft", Ok((What::prefix("https://a/"), false))),
            ("--host a.example", Ok((What::host("a.example"), true))),
            ("--host a --all", Err(ErrorKind::ArgumentConflict)),
            ("--tag t --hard", Ok((What::tag("t"), true))),
            ("--all", Ok((Ok(What::Everything), true))),
            ("", Err(ErrorKind::MissingRequiredArgument)),
            ("--soft", Err(ErrorKind::MissingRequiredArgument)),
            ("--all --tag t", Err(ErrorKind::ArgumentConflict)),
            ("--url http://a --prefix http://b", Err(ErrorKind::ArgumentConflict)),
            ("--url a", Err(ErrorKind::ValueValidation)),
            // As lists show it: it would purge nothing.
            ("--url https://a/orders/…/", Err(ErrorKind::ValueValidation)),
            ("--prefix https://a/?p=…", Err(ErrorKind::ValueValidation)),
            ("--all --soft --hard", Err(ErrorKind::ArgumentConflict)),
        ];
        for (arguments, expected) in cases {
            match (typed::<Purge>(&format!("seawall purge {arguments}")), expected) {
                (Ok(purge), Ok(expected)) => assert_eq!((Ok(purge.what()), purge.is_hard()), expected, "{arguments}"),
                (Err(error), Err(expected)) => assert_eq!(error.kind(), expected, "{arguments}"),
                (outcome, _) => panic!("{arguments}: {outcome:?}"),
            }
        }
    }
}
