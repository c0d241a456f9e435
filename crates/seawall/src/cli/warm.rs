//! `seawall warm`.

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use clap::Args;
use operator::{
    terminal::has_colour,
    warm::{Options, Screen, warm},
};

use super::{
    Run,
    access::{Access, page},
    output::say,
    serve::Inherited,
};
use crate::stderr;

const EXAMPLES: &str = "\
Examples:
  seawall warm
      Every page in the sitemap of every site: named in its robots.txt, or /sitemap.xml.

  seawall warm --sitemap https://blog.example.org/sitemap-posts.xml
      Every page in this one.

  seawall warm --stored
      Pages that are stored and have become stale or were purged.

  seawall warm https://blog.example.org/ https://blog.example.org/hello/
      These pages.

All requests go to the running Seawall, which asks the server for pages that it does not have. Ctrl-C stops and shows what was done.";

/// Fill the cache before readers come
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Warm {
    /// Pages to ask for [default: those of the sitemaps]
    #[arg(value_name = "URL", value_parser = page)]
    urls: Vec<String>,

    /// A sitemap, or an index of sitemaps, to take pages from; can be given several times
    #[arg(long, value_name = "URL", value_parser = page)]
    sitemap: Vec<String>,

    /// Pages that are stored and have become stale or were purged
    #[arg(long)]
    stored: bool,

    /// Requests at the same time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: u16,

    /// The most requests a second, such as 5 or 0.5 [default: as many as are answered]
    #[arg(long, value_name = "N", value_parser = rate)]
    rate: Option<f64>,

    /// Only pages of this host; needed if Seawall serves every host, and the sitemap names pages of another host than its own
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// The running Seawall.
    #[command(flatten)]
    access: Access,
}

fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).parse::<f64>().ok();
    number.filter(|rate| (0.001..=10_000.0).contains(rate)).ok_or_else(|| "write a number of requests a second, 0.001 to 10000".to_owned())
}

impl Run for Warm {
    const NAME: &'static str = "warm";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let client = self.access.client()?;
        let options = Options {
            urls: self.urls,
            sitemaps: self.sitemap,
            stored: self.stored,
            host: self.host,
            concurrency: usize::from(self.concurrency),
            rate: self.rate,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let colour = has_colour(&io::stdout());
        let mut progress = Screen::new(stderr::is_terminal() && io::stdout().is_terminal(), colour);
        let summary = runtime.block_on(warm(&client, &options, &mut progress, async {
            // Without the signal, Ctrl-C ends the process at once: nothing is lost but the summary.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        }))?;
        progress.end();
        say(&format!("\n{}", summary.table(colour)))?;
        Ok(if summary.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    #[test]
    fn warm_takes_a_pace_that_a_server_can_bear() {
        let warm: Warm = typed("seawall warm --rate 0.5/s --admin 127.0.0.1:1").expect("warm");
        assert_eq!((warm.concurrency, warm.rate, warm.access.admin.as_deref()), (2, Some(0.5), Some("127.0.0.1:1")));
        for wrong in ["--concurrency 0", "--concurrency 65", "--rate 0", "--rate fast", "--rate NaN"] {
            assert!(typed::<Warm>(&format!("seawall warm {wrong}")).is_err(), "{wrong}");
        }
    }
}
