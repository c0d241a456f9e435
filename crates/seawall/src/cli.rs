//! The command line: what can be typed, and the help for it.
//!
//! Values stay text here. [`config`](crate::config) reads them with the same words, and the same errors, as the file and the environment.

use std::path::PathBuf;

use clap::{
    ArgGroup, Args, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use clap_complete::Shell;
use policy::purge::What;

/// Keeps your site fast, correct, and up when the crowd comes.
#[derive(Clone, Debug, Parser)]
#[command(name = "seawall", version, disable_help_subcommand = true, help_template = TOP_HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of other programs, each with what to type here instead.
const OTHER_FLAGS: [(&str, &str); 14] = [
    ("--port", "--listen 0.0.0.0:80 says where visitors reach Seawall, address and port"),
    ("-p", "--listen 0.0.0.0:80 says where visitors reach Seawall, address and port"),
    ("--bind", "--listen 127.0.0.1:8080 says where visitors reach Seawall"),
    ("--address", "--listen 127.0.0.1:8080 says where visitors reach Seawall"),
    ("--host", "--domain NAME is the site's public name; --listen ADDR says where visitors reach Seawall"),
    ("--hostname", "--domain NAME is the site's public name"),
    ("--root", "the folder stands by itself: seawall serve FOLDER"),
    ("--dir", "the folder stands by itself: seawall serve FOLDER"),
    ("--to", "the server's address stands by itself: seawall serve http://127.0.0.1:2368"),
    ("--upstream", "the server's address stands by itself: seawall serve http://127.0.0.1:2368"),
    ("--cert", "--tls-cert FILE is the certificate"),
    ("--key", "--tls-key FILE is the certificate's key"),
    ("--ttl", "--hold DURATION keeps pages for that long"),
    ("--header", "-H 'FIELD: VALUE', or --field, is a field of the request"),
];

impl Cli {
    /// Reads the command line. A mistake ends the process, with a guess at what was meant.
    #[must_use]
    pub fn of_the_process() -> Self {
        Self::read(std::env::args_os()).unwrap_or_else(|mistake| mistake.exit())
    }

    fn read(arguments: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>) -> Result<Self, clap::Error> {
        Self::try_parse_from(arguments).map_err(|mut mistake| {
            if let (ErrorKind::UnknownArgument, Some(ContextValue::String(typed))) = (mistake.kind(), mistake.get(ContextKind::InvalidArg))
                && let Some((_, tip)) = OTHER_FLAGS.iter().find(|(other, _)| other == typed)
            {
                // What it is called is known: that goes before the flag that is spelled most like it.
                mistake.remove(ContextKind::SuggestedArg);
                mistake.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
            }
            mistake
        })
    }
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Serve a site: a server such as Ghost, a folder of files, or a folder of Markdown
    Serve(Box<Serve>),
    /// Check what `serve` would do, and show every error: in flags, file, and folder
    Check(Box<Check>),
    /// Write an example blog to start from
    New(New),
    /// Take pages out of the cache of a running Seawall
    Purge(Purge),
    /// Show why a page is, or is not, answered from the cache
    Explain(Explain),
    /// Fill the cache before readers come
    Warm(Warm),
    /// List the certificates of a running Seawall, or replace and revoke one
    Certificates(Certificates),
    /// Show what runs: sites, the servers behind them, the cache, certificates
    Status(Status),
    /// Have a running Seawall read its configuration again
    Reload(Reload),
    /// Check that a running Seawall serves; for containers and monitors
    Health(Health),
    /// Write what a shell needs to complete commands and flags
    Completions(Completions),
    /// Explain a command
    Help(Help),
    /// Write the manual page, made of these help texts; for packages
    #[command(hide = true)]
    Manual,
}

/// The commands stand in groups, in the order in which they are needed. A test holds the list complete.
const TOP_HELP: &str = "\
{about}

Usage: seawall COMMAND [ARGUMENTS]

Begin:
  serve         Serve a site: a server such as Ghost, a folder of files, or a folder of Markdown
  check         Check what `serve` would do, and show every error: in flags, file, and folder
  new           Write an example blog to start from

Look after what runs:
  status        Show what runs: sites, the servers behind them, the cache, certificates
  reload        Have it read its configuration again
  certificates  List the certificates, or have one replaced and revoked
  health        Say whether it is well; for containers and monitors

Look after the cache:
  explain       Say why a page is, or is not, answered from the cache
  purge         Take pages out of the cache
  warm          Fill the cache before readers come

More:
  help          Explain a command: seawall help serve
  completions   Write what a shell needs to complete commands and flags

Options:
{options}

Examples:
  seawall serve http://127.0.0.1:2368    in front of Ghost
  seawall serve ./public                 a folder with an index.html
  seawall serve ./public --domain blog.example.org
                                         for everybody, with a certificate that comes by itself
  seawall new my-blog                    write an example blog ...
  seawall serve my-blog                  ... and serve it: http://127.0.0.1:8080

`seawall help COMMAND` shows what can be changed, with examples.
";

const SERVE_EXAMPLES: &str = "\
Examples:
  seawall serve http://127.0.0.1:2368
      Put Seawall in front of Ghost, or of any other server on this machine.

  seawall serve ./posts
      Turn a folder of Markdown into a blog, and serve it.

  seawall serve http://127.0.0.1:2368 --listen 0.0.0.0:80 --memory 512MiB
      Let visitors in from everywhere, and keep up to 512 MiB of pages in memory.

  seawall serve ./public --tls-listen 0.0.0.0:443 --tls-cert fullchain.pem --tls-key privkey.pem
      HTTPS, with a certificate that you have.

  seawall serve --config /etc/seawall.toml
      Everything from a file. Without --config and SOURCE, ./seawall.toml is read if there is one.";

/// SOURCE and the flags of `seawall serve`. Each can be said by a variable, too: see [`variable`].
const SERVE_WORDS: [&str; 20] = [
    "SOURCE",
    "--listen",
    "--domain",
    "--redirect-from",
    "--route",
    "--tls-listen",
    "--tls-cert",
    "--tls-key",
    "--http3",
    "--config",
    "--kind",
    "--admin",
    "--memory",
    "--cache-dir",
    "--workers",
    "--access-log",
    "--log-format",
    "--trusted-proxies",
    "--https-redirect",
    "--hold",
];

/// The variable that says the same as a flag: `SEAWALL_TLS_LISTEN` for `--tls-listen`.
fn variable(word: &str) -> String {
    format!("SEAWALL_{}", word.trim_start_matches('-').replace('-', "_").to_uppercase())
}

/// What `seawall serve --help` ends with: the examples, and every variable.
fn serve_help() -> String {
    let mut text = format!("{SERVE_EXAMPLES}\n\nVariables:\n");
    for word in SERVE_WORDS {
        text += &format!("  {:<25} {word}\n", variable(word));
    }
    text += "  PORT                      --listen 0.0.0.0:$PORT\n";
    text += "  SEAWALL_LOG               how much Seawall writes to standard error: error, warn, info or debug\n\n";
    text + "A flag overrides its variable, and both override the configuration file. Several values are separated by commas. --http3 and --https-redirect take \
            true or false."
}

/// Serve a site.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = serve_help())]
pub struct Serve {
    /// What to serve: the address of a server (http://127.0.0.1:2368), a folder with an index.html, or a folder with Markdown files
    #[arg(value_name = "SOURCE")]
    pub source: Option<String>,

    /// The address for visitors; can be given several times [default: 127.0.0.1:8080, which only this machine can reach]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,

    /// The public name of the site; can be given several times. Listens on ports 80 and 443 of every address, unless --listen and --tls-listen say otherwise, and sends visitors to https once there is a certificate
    #[arg(long, value_name = "NAME")]
    pub domain: Vec<String>,

    /// A name whose visitors are sent to the (first) --domain, such as www.example.org; it gets a certificate too. Can be given several times
    #[arg(long, value_name = "NAME")]
    pub redirect_from: Vec<String>,

    /// A part of the site that another server answers for, such as /api=http://127.0.0.1:3000; can be given several times
    #[arg(long, value_name = "PATH=URL")]
    pub route: Vec<String>,

    /// The address for visitors over HTTPS; can be given several times [default, with a certificate: 127.0.0.1:8443]
    #[arg(long, value_name = "ADDR")]
    pub tls_listen: Vec<String>,

    /// The file with the certificate and its chain (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,

    /// The file with the key of the certificate (PEM) [default: the key is in the file of --tls-cert]
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,

    /// Also speak HTTP/3, over UDP at the addresses of --tls-listen
    #[arg(long)]
    pub http3: bool,

    /// The configuration file [default: ./seawall.toml, if there is one and no SOURCE is given]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// What SOURCE is, if the guess is wrong: generic (a server), static (files) or blog (Markdown)
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,

    /// The address of the admin API (status, metrics, purging), or "off" [default: 127.0.0.1:9180, which only this machine can reach]
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,

    /// How much memory stored pages may take [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,

    /// The folder for stored pages, which survive a restart there [default: ~/.cache/seawall]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<String>,

    /// Number of threads [default: one for each processor core]
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,

    /// Where the access log goes: stdout, off, or a file [default: stdout]
    #[arg(long, value_name = "PATH")]
    pub access_log: Option<String>,

    /// The format of the access log: combined (as Apache and nginx write it) or json [default: combined]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// Networks of proxies in front of Seawall that may say who the client is and whether it uses https, separated by commas; "private" stands
    /// for all private networks, for a platform whose router has such an address
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    pub trusted_proxies: Vec<String>,

    /// Send visitors to https if a trusted proxy says that they came over http
    #[arg(long)]
    pub https_redirect: bool,

    /// Keep pages for this long, whatever the server says, such as 30s, 5m or 1h [default: as long as the server says]
    #[arg(long, value_name = "DURATION")]
    pub hold: Option<String>,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  seawall check
      ./seawall.toml: every error with its line, and what to do about it.

  seawall check --config /etc/seawall.toml
      Another file.

  seawall check ./posts
      What `seawall serve ./posts` would do: also the front matter of its Markdown, or the lines of _redirects and _headers.

  seawall check --acme --domain blog.example.org
      Whether a certificate can be had for this name.

Everything that `seawall serve` takes can be given here, too. Nothing is started, and no server is asked. Exit code 0: all is well; 1: something is wrong.";

/// Check what `seawall serve` would do with the same words.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct Check {
    /// Look at what certificates depend on instead: the names' DNS, ports, CAA records, the clock, the authority
    #[arg(long)]
    pub acme: bool,

    /// What would be served, and how.
    #[command(flatten)]
    pub serve: Serve,
}

/// Write an example blog.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct New {
    /// The folder to write to; it must be empty or not exist yet
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

const PURGE_EXAMPLES: &str = "\
Examples:
  seawall purge --url https://blog.example.org/hello/     one page
  seawall purge --prefix https://blog.example.org/2026/   everything below an address
  seawall purge --host blog.example.org                   all pages of a host
  seawall purge --tag post-12                             everything that carries a tag
  seawall purge --all --soft                              everything, but old copies may be shown until new ones are there

A purge is hard unless --soft is given: the next visitor gets the page that the server has now.";

/// Take pages out of the cache.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = PURGE_EXAMPLES)]
#[command(group = ArgGroup::new("target").required(true).multiple(false).args(["url", "prefix", "host", "tag", "all"]))]
pub struct Purge {
    /// The page at this address
    #[arg(long, value_name = "URL", value_parser = What::url)]
    url: Option<What>,

    /// All pages whose address begins like this
    #[arg(long, value_name = "URL", value_parser = What::prefix)]
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
    pub access: Access,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  seawall explain https://blog.example.org/hello/
      Which rules looked at the request, what is stored for it, and what would happen now.

  seawall explain https://blog.example.org/ -H 'Cookie: session=1'
      For a reader who is logged in.

  seawall explain https://blog.example.org/hello/ --json
      For scripts.

  seawall explain https://blog.example.org/hello/ -H 'Accept-Encoding: identity'
      For a client that accepts no compression. Without this, the request accepts what browsers accept.

Nothing is fetched and nothing is changed. Values of cookies never appear in the answer.";

/// Say why a page is, or is not, answered from the cache.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct Explain {
    /// The page, as readers see its address
    #[arg(value_name = "URL")]
    pub url: String,

    /// A field that the request carries, such as 'Accept: application/json'; can be given several times
    #[arg(short = 'H', long = "field", value_name = "'FIELD: VALUE'")]
    pub fields: Vec<String>,

    /// The request's method
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub method: String,

    /// Write JSON instead of text
    #[arg(long)]
    pub json: bool,

    /// The running Seawall.
    #[command(flatten)]
    pub access: Access,
}

const WARM_EXAMPLES: &str = "\
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

/// Fill the cache before readers come.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(after_help = WARM_EXAMPLES)]
pub struct Warm {
    /// Pages to ask for [default: those of the sitemaps]
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,

    /// A sitemap, or an index of sitemaps, to take pages from; can be given several times
    #[arg(long, value_name = "URL")]
    pub sitemap: Vec<String>,

    /// Pages that are stored and have become stale or were purged
    #[arg(long)]
    pub stored: bool,

    /// Requests at the same time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub concurrency: u16,

    /// The most requests a second, such as 5 or 0.5 [default: as many as are answered]
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// Only pages of this host; needed if Seawall serves every host, and the sitemap names pages of another host than its own
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,

    /// The running Seawall.
    #[command(flatten)]
    pub access: Access,
}

fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).parse::<f64>().ok();
    number.filter(|rate| (0.001..=10_000.0).contains(rate)).ok_or_else(|| "write a number of requests a second, 0.001 to 10000".to_owned())
}

const CERTIFICATES_EXAMPLES: &str = "\
Examples:
  seawall certificates
      Each name: until when its certificate is valid, when it is renewed, who certifies it, and what went wrong.

  seawall certificates revoke blog.example.org
      If somebody else may have the key: gets a certificate with a new key, uses it, and has the old one revoked.";

/// List certificates.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = CERTIFICATES_EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Certificates {
    /// Write JSON instead of text
    #[arg(long)]
    pub json: bool,

    /// The running Seawall.
    #[command(flatten)]
    pub access: Access,

    /// What to do with one.
    #[command(subcommand)]
    pub action: Option<CertificateAction>,
}

/// What can be done with a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum CertificateAction {
    /// Get a certificate with a new key for a name, and have the old one revoked, because somebody else may have its key
    Revoke {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,

        /// The running Seawall.
        #[command(flatten)]
        access: Access,
    },
}

const STATUS_EXAMPLES: &str = "\
Examples:
  seawall status
      Version, sites, whether the servers behind them are up, the cache and how often it was enough, certificates.

  seawall status --json
      The same and all metrics, for scripts.";

/// Show what runs.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    /// Write JSON instead of text
    #[arg(long)]
    pub json: bool,

    /// The running Seawall.
    #[command(flatten)]
    pub access: Access,
}

const RELOAD_EXAMPLES: &str = "\
Examples:
  seawall reload
      After an edit of seawall.toml. No connection is dropped. Errors are shown with their lines, and everything stays as it was.

It is the same as a SIGHUP, and says what came of it. Exit code 0: done; 1: refused.";

/// Have a running Seawall read its configuration again.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = RELOAD_EXAMPLES)]
pub struct Reload {
    /// The running Seawall.
    #[command(flatten)]
    pub access: Access,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  seawall completions bash > ~/.local/share/bash-completion/completions/seawall
  seawall completions zsh > ~/.zfunc/_seawall
  seawall completions fish > ~/.config/fish/completions/seawall.fish";

/// Write what a shell needs to complete commands and flags.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Explain a command.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Help {
    /// The command, such as serve, or certificates revoke
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Check that a running Seawall serves: exit code 0 if it does, 1 if it does not.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The running Seawall.
    #[command(flatten)]
    pub access: Access,
}

/// How to reach the running Seawall.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The address of the running Seawall's admin API [default: as in the configuration file, or 127.0.0.1:9180]
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,

    /// The file with the secret of the admin API [default: as in the configuration file, or the one that `seawall serve` made]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// The configuration file of the running Seawall [default: ./seawall.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Purge {
    /// Returns the one target that was named.
    #[must_use]
    pub fn what(&self) -> What {
        let named = self.url.as_ref().or(self.prefix.as_ref()).or(self.host.as_ref()).or(self.tag.as_ref());
        // The argument group lets nothing through without exactly one of the five.
        named.cloned().unwrap_or(What::Everything)
    }

    /// Tells whether old copies are never shown again. They are not, unless `--soft` was given: what is published is live, and an old page
    /// after a purge would look like a purge that failed. `--hard` says the same aloud.
    #[must_use]
    pub const fn is_hard(&self) -> bool {
        !self.soft
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::BTreeSet};

    use clap::{CommandFactory, error::ErrorKind};

    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        Cli::try_parse_from(line.split_whitespace()).map(|cli| cli.command)
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    /// Whoever comes from another program is told what it is called here.
    #[test]
    fn the_flags_of_other_programs_lead_to_ours() {
        for (line, expected) in [
            ("seawall serve public --port 80", "--listen 0.0.0.0:80"),
            ("seawall serve public -p 80", "--listen 0.0.0.0:80"),
            ("seawall serve --root public", "seawall serve FOLDER"),
            ("seawall check public --lisen 1", "'--listen'"),
        ] {
            let shown = Cli::read(line.split_whitespace()).expect_err(line).to_string();
            assert!(shown.contains(expected) && !shown.contains("as a value"), "{line}\n{shown}");
        }
    }

    /// The groups are written by hand.
    #[test]
    fn the_groups_of_the_help_name_every_command_and_nothing_else() {
        let named: Vec<&str> = TOP_HELP
            .lines()
            .take_while(|line| !line.starts_with("Options"))
            .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
            .collect();
        let mut all: Vec<String> = Cli::command()
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| command.get_name().to_owned())
            .collect();
        let mut listed: Vec<String> = named.into_iter().map(str::to_owned).collect();
        all.sort();
        listed.sort();
        assert_eq!(listed, all);
    }

    #[test]
    fn check_takes_whatever_serve_takes() {
        let line = "./public --route /api=http://127.0.0.1:1 --domain a.example --redirect-from www.a.example --kind static";
        let (Ok(Command::Check(check)), Ok(Command::Serve(serve))) =
            (parse(&format!("seawall check {line}")), parse(&format!("seawall serve {line}")))
        else {
            panic!("both")
        };
        assert_eq!(check.serve, *serve);
        assert!(!check.acme);
    }

    #[test]
    fn serve_takes_a_source_and_flags() {
        let Ok(Command::Serve(serve)) =
            parse("seawall serve http://127.0.0.1:2368 --listen 127.0.0.1:1 --listen [::1]:2 --memory 1GiB --hold 5m")
        else {
            panic!("serve")
        };
        let expected = Serve {
            source: Some("http://127.0.0.1:2368".to_owned()),
            listen: vec!["127.0.0.1:1".to_owned(), "[::1]:2".to_owned()],
            memory: Some("1GiB".to_owned()),
            hold: Some("5m".to_owned()),
            ..Serve::default()
        };
        assert_eq!(*serve, expected);
        assert!(matches!(parse("seawall serve"), Ok(Command::Serve(serve)) if *serve == Serve::default()));
    }

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
            ("--all --soft --hard", Err(ErrorKind::ArgumentConflict)),
        ];
        for (arguments, expected) in cases {
            match (parse(&format!("seawall purge {arguments}")), expected) {
                (Ok(Command::Purge(purge)), Ok(expected)) => assert_eq!((Ok(purge.what()), purge.is_hard()), expected, "{arguments}"),
                (Err(error), Err(expected)) => assert_eq!(error.kind(), expected, "{arguments}"),
                (outcome, _) => panic!("{arguments}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn explain_and_warm_take_their_flags() {
        let line = ["seawall", "explain", "https://a/", "-H", "Cookie: a=1", "--field", "Accept: text/html", "--method", "HEAD", "--json"];
        let Ok(Command::Explain(explain)) = Cli::try_parse_from(line).map(|cli| cli.command) else { panic!("explain") };
        assert_eq!(explain.fields, ["Cookie: a=1", "Accept: text/html"]);
        assert_eq!((explain.method.as_str(), explain.json, explain.access), ("HEAD", true, Access::default()));
        assert!(parse("seawall explain").is_err());
        let Ok(Command::Warm(warm)) = parse("seawall warm --rate 0.5/s --admin 127.0.0.1:1") else { panic!("warm") };
        assert_eq!((warm.concurrency, warm.rate, warm.access.admin.as_deref()), (2, Some(0.5), Some("127.0.0.1:1")));
        for wrong in ["--concurrency 0", "--concurrency 65", "--rate 0", "--rate fast", "--rate NaN"] {
            assert!(parse(&format!("seawall warm {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn certificates_are_listed_unless_one_is_to_be_revoked() {
        let Ok(Command::Certificates(list)) = parse("seawall certificates --json --admin 127.0.0.1:1") else { panic!("a list") };
        assert_eq!((list.json, list.access.admin.as_deref(), list.action), (true, Some("127.0.0.1:1"), None));
        let Ok(Command::Certificates(revoke)) = parse("seawall certificates revoke a.example --admin 127.0.0.1:1") else {
            panic!("revoke")
        };
        let access = Access { admin: Some("127.0.0.1:1".to_owned()), ..Access::default() };
        assert_eq!(revoke.action, Some(CertificateAction::Revoke { name: "a.example".to_owned(), access }));
        assert!(parse("seawall certificates revoke").is_err());
    }

    #[test]
    fn a_slip_in_a_flag_or_command_is_recognised() {
        for (line, expected) in [("seawall serve --lisen a", "--listen"), ("seawall sreve", "serve")] {
            assert!(parse(line).expect_err(line).to_string().contains(expected), "{line}");
        }
    }

    /// A flag that is added gets its variable, and both are in the help.
    #[test]
    fn help_names_every_variable_that_is_read() {
        let mut command = Cli::command();
        command.build();
        let serve = command.find_subcommand_mut("serve").expect("serve");
        let words = serve.get_arguments().filter(|arg| arg.get_id() != "help").map(|arg| match arg.get_long() {
            Some(long) => format!("--{long}"),
            None => "SOURCE".to_owned(),
        });
        assert_eq!(words.collect::<BTreeSet<_>>(), SERVE_WORDS.map(str::to_owned).into());
        let help = serve.render_long_help().to_string();
        let asked = RefCell::new(BTreeSet::new());
        let env = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            None
        };
        drop(crate::config::load(&Serve::default(), env));
        let of_serve = |name: &String| name.starts_with("SEAWALL_");
        assert_eq!(asked.into_inner().into_iter().filter(of_serve).collect::<BTreeSet<_>>(), SERVE_WORDS.map(variable).into());
        for word in SERVE_WORDS {
            assert!(help.contains(&format!("{:<25} {word}", variable(word))), "{word} in {help}");
        }
    }
}
