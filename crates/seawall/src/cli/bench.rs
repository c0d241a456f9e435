//! `seawall bench`.

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use clap::Args;
use load::{
    Plan, Protocol, Schedule, Stop,
    plan::{Connections, TIMEOUT},
    requests::{Origin, Request, RequestSet},
    schedule::Profile,
};

use super::{Run, output::say, serve::Taken};

/// Load a site as a crowd does, and say what it can take
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bench {
    /// What to ask
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,

    /// Clients that stay
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1)]
    clients: u32,

    /// End after so many requests
    #[arg(short = 'n', long, value_name = "N")]
    requests: Option<u64>,

    /// End after so many seconds
    #[arg(short = 'd', long, value_name = "TIME")]
    duration: Option<u64>,

    /// The form of the result: text or json
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: String,
}

impl Run for Bench {
    const NAME: &'static str = "bench";

    fn run(self, _: Option<Taken>) -> anyhow::Result<ExitCode> {
        let url: http::Uri = self.urls[0].parse().with_context(|| format!("{:?} is not a URL", self.urls[0]))?;
        let Some(host) = url.host() else { bail!("{url}: a URL begins with http:// or https://") };
        let tls = url.scheme_str() == Some("https");
        let requests = RequestSet {
            origins: vec![Origin { tls, host: host.to_owned(), port: url.port_u16().unwrap_or(if tls { 443 } else { 80 }) }],
            requests: vec![Request {
                origin: 0,
                method: "GET".to_owned(),
                target: url.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
                fields: Vec::new(),
                body: bytes::Bytes::new(),
                weight: 1,
            }],
        };
        let plan = Plan {
            requests: Arc::new(requests),
            schedule: Schedule::Closed { clients: Profile::constant(f64::from(self.clients), None) },
            protocol: Protocol::Http1 { pipeline: 1 },
            stop: Stop { requests: self.requests, after: self.duration.map(Duration::from_secs) },
            connections: Connections::default(),
            timeout: TIMEOUT,
            warm_up: Duration::ZERO,
            workers: 1,
            seed: 0,
        };
        let results = load::run(&plan, &mut ())?;
        if self.format == "json" {
            say(&format!("{}\n", serde_json::to_string_pretty(&results)?))?;
        } else {
            say(&load::output::summary(&results))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
