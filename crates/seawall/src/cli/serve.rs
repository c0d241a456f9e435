//! `seawall serve`.

use std::{io, path::PathBuf, process::ExitCode};

use clap::Args;

use super::{Run, env};
use crate::{
    config::flags,
    passed::PassedSockets,
    process::{self, Configuration},
    signals::Signals,
    try_next::Reach,
};

const EXAMPLES: &str = "\
Examples:
  seawall serve http://127.0.0.1:2368
      Put Seawall in front of Ghost, of WordPress behind nginx or Apache, or of any other server on this machine.

  seawall serve /srv/wordpress --listen 0.0.0.0:80
      Serve the folder of a WordPress: Seawall sends its files, and has its PHP run by php-fpm.

  seawall serve ./posts
      Turn a folder of Markdown into a blog, and serve it.

  seawall serve http://127.0.0.1:2368 --listen 0.0.0.0:80 --memory 512MiB
      Let visitors in from everywhere, and keep up to 512 MiB of pages in memory.

  seawall serve ./public --tls-listen 0.0.0.0:443 --tls-cert fullchain.pem --tls-key privkey.pem
      HTTPS, with a certificate that you have.

  seawall serve --config /etc/seawall.toml
      Everything from a file. Without --config and SOURCE, ./seawall.toml is read if there is one.";

/// Writes what `seawall serve --help` ends with: the examples, and every variable.
fn after_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nVariables:\n");
    for flag in flags::ALL {
        text += &format!("  {:<25} {}\n", flag.variable, flag.name);
    }
    for flag in flags::VARIABLES {
        text += &format!("  {:<30} {}, in place of the file\n", flag.variable, flag.key);
    }
    text += "  PORT                      --listen 0.0.0.0:$PORT\n";
    text += "  SEAWALL_LOG               how much Seawall writes to standard error: error, warn, info or debug\n\n";
    text + "A flag overrides its variable, and both override the configuration file. Several values are separated by commas. --http3, --https-redirect and --drafts \
            take true or false."
}

/// Serve a site: a server such as Ghost or WordPress, a folder of files, of WordPress or of Markdown
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = after_help())]
pub struct Serve {
    /// What to serve: the address of a server (http://127.0.0.1:2368), a folder with an index.html, a folder with
    /// Markdown files, or a folder with an application in PHP (an index.php)
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

    /// What SOURCE is, if what Seawall finds out is wrong: generic (a server), ghost (a Ghost), wordpress (a WordPress), static (files), blog (Markdown) or php (an application in PHP)
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,

    /// Where php-fpm listens, for a folder with an application in PHP: unix:SOCKET or HOST:PORT [default: where distributions put it]
    #[arg(long, value_name = "ADDR")]
    pub php: Option<String>,

    /// The address of the admin API (status, metrics, purging), or "off" [default: 127.0.0.1:9180, which only this machine can reach]
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,

    /// How much memory stored pages may take [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,

    /// The folder in which stored pages survive a restart [default: ~/.cache/seawall]
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

    /// Also show a blog's drafts and the posts whose time has not come, marked as what they are
    #[arg(long)]
    pub drafts: bool,
}

/// The sockets and signals that a server takes over from whoever started it.
#[derive(Debug)]
pub(crate) struct Inherited {
    passed: anyhow::Result<PassedSockets>,
    signals: io::Result<Signals>,
}

impl Inherited {
    /// Takes the sockets first: that changes the environment, which no other thread may read meanwhile.
    pub(crate) fn take() -> Self {
        let passed = PassedSockets::from_env();
        Self { passed, signals: Signals::take() }
    }
}

impl Run for Serve {
    const NAME: &'static str = "serve";

    fn run(self, taken: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let taken = taken.unwrap_or_else(Inherited::take);
        let (passed, signals) = (taken.passed?, taken.signals?);
        let reach = Reach::new(&self, env);
        process::serve_until_stopped(signals, passed, Configuration::read(self), &reach)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::BTreeSet};

    use super::*;
    use crate::{
        cli::{definition, typed},
        config,
    };

    #[test]
    fn serve_takes_a_source_and_flags() {
        let line = "seawall serve http://127.0.0.1:2368 --listen 127.0.0.1:1 --listen [::1]:2 --memory 1GiB --hold 5m";
        let expected = Serve {
            source: Some("http://127.0.0.1:2368".to_owned()),
            listen: vec!["127.0.0.1:1".to_owned(), "[::1]:2".to_owned()],
            memory: Some("1GiB".to_owned()),
            hold: Some("5m".to_owned()),
            ..Serve::default()
        };
        assert_eq!(typed::<Serve>(line).expect("serve"), expected);
        assert_eq!(typed::<Serve>("seawall serve").expect("serve"), Serve::default());
    }

    /// What can be typed, what the list names, what is read from the environment, and what the help says are the same.
    #[test]
    fn help_names_every_variable_that_is_read() {
        let mut command = definition();
        command.build();
        let serve = command.find_subcommand_mut("serve").expect("serve");
        let typed = serve.get_arguments().filter(|arg| arg.get_id() != "help").map(|arg| match arg.get_long() {
            Some(long) => format!("--{long}"),
            None => "SOURCE".to_owned(),
        });
        assert_eq!(typed.collect::<BTreeSet<_>>(), flags::ALL.map(|flag| flag.name.to_owned()).into());
        let asked = RefCell::new(BTreeSet::new());
        let env = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            None
        };
        drop(config::load(&Serve::default(), env));
        let ours = asked.into_inner().into_iter().filter(|name| name.starts_with("SEAWALL_"));
        assert_eq!(
            ours.collect::<BTreeSet<_>>(),
            flags::ALL.iter().chain(&flags::VARIABLES).map(|flag| flag.variable.to_owned()).collect()
        );
        let help = serve.render_long_help().to_string();
        for flag in flags::ALL {
            assert!(help.contains(&format!("{:<25} {}\n", flag.variable, flag.name)), "{} in {help}", flag.name);
        }
    }
}
