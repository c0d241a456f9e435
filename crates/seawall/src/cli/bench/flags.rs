//! What can be typed after `seawall bench`, as it is typed.
//!
//! Values stay text here, or are read by the part of the load tester that knows their form. What they mean together is in `wanted`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::read::{address, bound, count, seed, share, share_of_errors, source, time};
use crate::cli::access::Access;

/// What is asked.
const WHAT: &str = "What is asked";
/// When, and for how long.
const WHEN: &str = "When, and for how long";
/// How connections are made and used.
const HOW: &str = "How";
/// What answers must be.
const CHECKS: &str = "What answers must be";
/// What is compared.
const COMPARED: &str = "Before and after";
/// What is written, and where.
const WRITTEN: &str = "What is written";
/// Servers that are not on this machine.
const ELSEWHERE: &str = "Servers elsewhere";
/// Where the running Seawall is.
const SEAWALL: &str = "The running Seawall, for --direct";

/// The flags of a run.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = WHAT)]
pub(crate) struct Flags {
    /// The pages to ask for; several are asked for at random. {unique} in one stands for another text each time, {client} for the client's number
    #[arg(value_name = "URL")]
    pub(super) urls: Vec<String>,

    /// A file with a URL in each line, such as 'http://127.0.0.1:8080/ weight=10'; can be given several times
    #[arg(long = "urls", value_name = "FILE")]
    pub(super) urls_from: Vec<PathBuf>,

    /// Every page in a sitemap, or in an index of sitemaps; an address without a path looks for the sitemap of that site
    #[arg(long, value_name = "URL")]
    pub(super) sitemap: Option<String>,

    /// Each page with its styles, scripts, fonts and pictures, as a browser fetches them
    #[arg(long)]
    pub(super) page: bool,

    /// Ask for the URLs in the order in which they are named, not at random
    #[arg(long)]
    pub(super) in_order: bool,

    /// With --page: another server from which parts of pages are fetched, such as http://127.0.0.1:8081; can be given several times
    #[arg(long, value_name = "URL")]
    pub(super) page_origin: Vec<String>,

    /// A crowd as it was seen elsewhere: hacker-news, newsletter, fediverse, crawler or feed-readers, or a file of your own
    #[arg(long, value_name = "NAME")]
    pub(super) shape: Option<String>,

    /// The most visitors a second of the shape
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count)]
    pub(super) peak: Option<u64>,

    /// The time that the shape is stretched or shrunk to, such as 10m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    pub(super) over: Option<Duration>,

    /// The method [default: GET, or POST with --body]
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub(super) method: Option<String>,

    /// The content that is sent; @FILE sends a file
    #[arg(long, value_name = "TEXT")]
    pub(super) body: Option<String>,

    /// Fill in {unique} and its like in the content, too
    #[arg(long)]
    pub(super) body_placeholders: bool,

    /// A field of each request, such as 'Accept: text/html'; can be given several times
    #[arg(short = 'H', long = "field", value_name = "'FIELD: VALUE'")]
    pub(super) fields: Vec<String>,

    /// Keep the cookies of each client, and send them with its next requests
    #[arg(long)]
    pub(super) cookies: bool,

    /// Clients that stay: each asks again as soon as it is answered. With --rate: the most connections [default: 50; with --rate 1000]
    #[arg(short = 'c', long, value_name = "N", allow_hyphen_values = true, value_parser = count, help_heading = WHEN)]
    pub(super) clients: Option<u64>,

    /// End after so many requests
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true, value_parser = count, help_heading = WHEN)]
    pub(super) requests: Option<u64>,

    /// End after this time: 10, 10s, 1m [default: 10s]
    #[arg(short = 'd', long, value_name = "TIME", allow_hyphen_values = true, value_parser = time, help_heading = WHEN)]
    pub(super) duration: Option<Duration>,

    /// Clients that stay, and become more: 0..5000/60s
    #[arg(long, value_name = "FROM..TO/TIME", allow_hyphen_values = true, help_heading = WHEN)]
    pub(super) ramp: Option<String>,

    /// New clients a second, each with a connection of its own, who come whether or not the server keeps up: 100, 100/60s, 0..1000/60s
    #[arg(long, value_name = "RATE[/TIME]", allow_hyphen_values = true, help_heading = WHEN)]
    pub(super) arrivals: Option<String>,

    /// Requests a second, which are made whether or not the server keeps up: 1000, 1000/60s, 0..5000/60s
    #[arg(short = 'R', long, value_name = "RATE[/TIME]", allow_hyphen_values = true, help_heading = WHEN)]
    pub(super) rate: Option<String>,

    /// Let --arrivals or --rate come at random moments, as strangers do, and not evenly
    #[arg(long, help_heading = WHEN)]
    pub(super) poisson: bool,

    /// The requests of an access log, in the order and at the times that it says; the URL is the server to ask
    #[arg(long, value_name = "FILE", help_heading = WHEN)]
    pub(super) replay: Option<PathBuf>,

    /// Replay what changes something, too: POST and its like, without the content, which is not in a log
    #[arg(long, help_heading = WHEN)]
    pub(super) writes: bool,

    /// How many times as fast the log is replayed, 1 to 100 [default: 1]
    #[arg(long, value_name = "TIMES", allow_hyphen_values = true, help_heading = WHEN)]
    pub(super) speed: Option<f64>,

    /// Find the highest rate that the server keeps up with, and hold it
    #[arg(long, help_heading = WHEN)]
    pub(super) find_limit: bool,

    /// What counts as keeping up: 99 % of the answers within this time [default: 500ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = bound, help_heading = WHEN)]
    pub(super) limit_p99: Option<Duration>,

    /// What counts as keeping up: at most this share of errors, such as 1% [default: 0.1%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = share_of_errors, help_heading = WHEN)]
    pub(super) limit_errors: Option<f64>,

    /// How long the limit is held once it is found [default: 1m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time, help_heading = WHEN)]
    pub(super) hold: Option<Duration>,

    /// Time at the beginning that does not count [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time, help_heading = WHEN)]
    pub(super) warm_up: Option<Duration>,

    /// Begin at this time, on several machines together: 2026-11-23T12:00:00Z, or 12:00
    #[arg(long, value_name = "TIME", help_heading = WHEN)]
    pub(super) start_at: Option<String>,

    /// HTTP/1.1 [the default, also over TLS]
    #[arg(long, help_heading = HOW)]
    pub(super) http1: bool,

    /// HTTP/2; without TLS, the server has to expect it
    #[arg(long, help_heading = HOW)]
    pub(super) http2: bool,

    /// HTTP/3, a preview
    #[arg(long, help_heading = HOW)]
    pub(super) http3: bool,

    /// Requests at a time on each connection of HTTP/2 or 3 [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count, help_heading = HOW)]
    pub(super) streams: Option<u64>,

    /// Requests that are sent on a connection of HTTP/1.1 before the first is answered [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count, help_heading = HOW)]
    pub(super) pipeline: Option<u64>,

    /// A new connection for each request, as ab does without -k
    #[arg(long, help_heading = HOW)]
    pub(super) no_keepalive: bool,

    /// The share of new TLS connections that resume an earlier one: 0 to 1 [default: 1]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = share, help_heading = HOW)]
    pub(super) tls_resume: Option<f64>,

    /// Accept any certificate
    #[arg(long, help_heading = HOW)]
    pub(super) insecure: bool,

    /// A file of certificates (PEM) to trust beside the system's
    #[arg(long, value_name = "FILE", help_heading = HOW)]
    pub(super) ca: Option<PathBuf>,

    /// Connect to this Unix socket
    #[arg(long, value_name = "SOCKET", help_heading = HOW)]
    pub(super) unix: Option<PathBuf>,

    /// Connect to this address, whatever the URL's name leads to
    #[arg(long, value_name = "ADDR:PORT", value_parser = address, help_heading = HOW)]
    pub(super) connect_to: Option<SocketAddr>,

    /// Connect from the addresses of this network in turns: each has some 28,000 ports. For a server on this machine: 127.0.1.0/24
    #[arg(long, value_name = "NET", value_parser = source, help_heading = HOW)]
    pub(super) source: Vec<ipnet::IpNet>,

    /// How long a client waits for its connection and for each answer [default: 30s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time, help_heading = HOW)]
    pub(super) timeout: Option<Duration>,

    /// Threads that make requests [default: one for each core]
    #[arg(short = 't', long, value_name = "N", allow_hyphen_values = true, value_parser = count, help_heading = HOW)]
    pub(super) threads: Option<u64>,

    /// The beginning of all random choices: the same number makes the same ones [default: another one each time]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = seed, help_heading = HOW)]
    pub(super) seed: Option<u64>,

    /// The statuses that are not an error, such as 200,304 or 2xx [default: all below 400]
    #[arg(long, value_name = "LIST", help_heading = CHECKS)]
    pub(super) expect_status: Option<String>,

    /// A text that each answer must have; can be given several times
    #[arg(long, value_name = "TEXT", help_heading = CHECKS)]
    pub(super) expect_body: Vec<String>,

    /// A field that each answer must have, such as 'X-Cache: HIT', or its name alone; can be given several times
    #[arg(long, value_name = "'FIELD: VALUE'", help_heading = CHECKS)]
    pub(super) expect_field: Vec<String>,

    /// Give each client a cookie of its own, and look for it in the answers to others [COOKIE, by default: seawall-bench={marker}]
    #[arg(long, value_name = "COOKIE", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = CHECKS)]
    pub(super) leak_check: Option<String>,

    /// Exit with code 3 if this holds, such as 'p99>200ms', 'errors>0' or 'rate<1000'; can be given several times
    #[arg(long, value_name = "BOUND", help_heading = CHECKS)]
    pub(super) fail_if: Vec<String>,

    /// Go past the cache: the running Seawall is asked for a field that lets requests do so. Before and after then come from the same Seawall
    #[arg(long, help_heading = COMPARED)]
    pub(super) direct: bool,

    /// Compare two URLs, in short rounds alternately; with --direct one URL, past the cache and with it
    #[arg(long, help_heading = COMPARED)]
    pub(super) compare: bool,

    /// What is written to standard output: text, json, ndjson, csv, ab, wrk or markdown [default: text]
    #[arg(long, value_name = "FORM", help_heading = WRITTEN)]
    pub(super) format: Option<String>,

    /// Write a report with charts to this file
    #[arg(long, value_name = "FILE", help_heading = WRITTEN)]
    pub(super) html: Option<PathBuf>,

    /// Write the charts to this folder, each as an SVG
    #[arg(long, value_name = "DIR", help_heading = WRITTEN)]
    pub(super) svg: Option<PathBuf>,

    /// Write the distribution of latencies to this file, as tools for HdrHistogram read it
    #[arg(long, value_name = "FILE", help_heading = WRITTEN)]
    pub(super) hgrm: Option<PathBuf>,

    /// Write the result as JSON to this file, for `seawall bench compare` and `merge`
    #[arg(short = 'o', long, value_name = "FILE", help_heading = WRITTEN)]
    pub(super) output: Option<PathBuf>,

    /// Show nothing but the result, and begin without a first look at the servers
    #[arg(short = 'q', long, help_heading = WRITTEN)]
    pub(super) quiet: bool,

    /// A secret of 16 characters or more that the server shows at /.well-known/seawall-bench. With it, a server on the internet is loaded
    #[arg(long, value_name = "SECRET", help_heading = ELSEWHERE)]
    pub(super) token: Option<String>,

    /// Load a server on the internet without a token, with at most 100 requests a second
    #[arg(long, help_heading = ELSEWHERE)]
    pub(super) i_own_this: bool,

    /// The running Seawall.
    #[command(flatten, next_help_heading = SEAWALL)]
    pub(super) access: Access,
}

/// What can be done with results that are there already.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub(crate) enum Action {
    /// Compare two results that --output has written; or show again what --compare has written
    Compare {
        /// The result before; or a file of --compare, alone
        #[arg(value_name = "OLD.json")]
        old: PathBuf,

        /// The result after
        #[arg(value_name = "NEW.json")]
        new: Option<PathBuf>,

        /// Exit with code 3 if this holds for the new result (for B), such as 'p99>200ms'; can be given several times
        #[arg(long, value_name = "BOUND")]
        fail_if: Vec<String>,

        /// text, json or markdown
        #[arg(long, value_name = "FORM")]
        format: Option<String>,

        /// Write a report with charts to this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },

    /// Add up the results of machines that loaded the same server at the same time (--start-at)
    Merge {
        /// Results that --output has written
        #[arg(value_name = "FILE.json", required = true, num_args = 2..)]
        files: Vec<PathBuf>,

        /// text, json, ab, wrk or markdown
        #[arg(long, value_name = "FORM")]
        format: Option<String>,

        /// Write the sum as JSON to this file
        #[arg(short = 'o', long, value_name = "FILE")]
        output: Option<PathBuf>,

        /// Write a report with charts to this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,

        /// Exit with code 3 if this holds for the sum; can be given several times
        #[arg(long, value_name = "BOUND")]
        fail_if: Vec<String>,
    },
}
