//! `seawall check`: what `seawall serve` would do with the same words, without doing it.
//!
//! The settings are valid already; what is left is what only opening the sources shows: front matter that cannot be read, lines of
//! `_redirects` and `_headers` that mean nothing. Nothing is listened on, and no server of a site is asked; of php-fpm only whether it listens is seen.
//! The Valkey of a cluster is asked for its settings, as nobody sees what is wrong there before it hurts; into its bucket a small object is written.

use std::{fmt::Write as _, path::Path, process::ExitCode};

use ::cluster::{link::Examination, tier::bucket::BucketExamination};
use blog::{Blog, Problem, Severity};
use clap::Args;
use origins::{files::Files, php::PhpFolder};
use tracing::Level;

use super::{
    Run, env,
    output::say,
    serve::{Inherited, Serve},
};
use crate::{
    automatic,
    banner::site_line,
    blogs, cluster, companions,
    config::{
        self, flags,
        settings::{Cluster, Route, Settings, Site, Source, Tier},
    },
    php_server::{self, Trouble},
    plan::files_options,
    recognition::{Findings, how_known, memory},
    stderr,
};

const EXAMPLES: &str = "\
Examples:
  seawall check
      ./seawall.toml: every error with its line, and what to do about it.

  seawall check --config /etc/seawall.toml
      Another file.

  seawall check ./posts
      What `seawall serve ./posts` would do: also the front matter of its Markdown, links that lead nowhere, or the lines of _redirects and _headers.

  seawall check --acme --domain blog.example.org
      Check whether Seawall can get a certificate for this name.

Everything that `seawall serve` takes can be given here, too. Nothing is started, and no server of a site is asked: of php-fpm it is only seen whether it listens. The Valkey of a cluster is asked for settings that would hurt, and a small object is written into its bucket, read and removed. Exit code 0: all is well, or there are warnings alone; 1: something is wrong.";

/// Check what `serve` would do, and show every error: in flags, file, and folder
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    /// Look at what certificates depend on instead: the names' DNS, ports, CAA records, the clock, the authority
    #[arg(long)]
    acme: bool,

    /// What would be served, and how.
    #[command(flatten)]
    serve: Serve,
}

impl Run for Check {
    const NAME: &'static str = "check";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let is_well = if self.acme { self.look_at_acme()? } else { self.look_at_sources()? };
        Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Check {
    /// Says what would be served. Returns whether all is well.
    fn look_at_sources(&self) -> anyhow::Result<bool> {
        let written = config::read(&self.serve, env);
        let first = config::resolve(&written, &self.serve, env, &Findings::default())?;
        // What a start would begin with.
        let remembered = first.disk_tier().map(|(dir, _)| memory::read(dir)).unwrap_or_default();
        let Checked { text, faults, warnings } = look(&self.name(), &config::resolve(&written, &self.serve, env, &remembered)?);
        for fault in &faults {
            stderr::tell_all(Level::ERROR, &format!("error: {fault}\n"));
        }
        for warning in &warnings {
            stderr::tell_all(Level::WARN, &format!("warning: {warning}\n"));
        }
        say(&text)?;
        Ok(faults.is_empty())
    }

    /// Says what certificates depend on, in the environment of `seawall serve`, which decides where they are kept. Returns whether all is well.
    fn look_at_acme(mut self) -> anyhow::Result<bool> {
        let serve = &mut self.serve;
        if serve.config.is_none() && serve.source.is_none() && !serve.domain.is_empty() {
            // It does not matter here what is served.
            serve.source = Some("http://127.0.0.1".to_owned());
        }
        let (text, is_well) = automatic::check(&config::load(serve, env)?)?;
        say(&text)?;
        Ok(is_well)
    }

    /// Names what was read: the source, or else the file.
    fn name(&self) -> String {
        let said = |value: Option<String>, variable: &str| value.or_else(|| env(variable).filter(|value| !value.is_empty()));
        said(self.serve.source.clone(), flags::SOURCE.variable)
            .or_else(|| said(self.serve.config.as_ref().map(|path| path.display().to_string()), flags::CONFIG.variable))
            .unwrap_or_else(|| config::DEFAULT_FILE.to_owned())
    }
}

/// The result of a check.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Tells a person what would be served.
    pub(crate) text: String,
    /// Lists the faults of the sources, each with its place.
    pub(crate) faults: Vec<String>,
    /// Lists what the author of a folder should know, each with its place. It is served nevertheless.
    pub(crate) warnings: Vec<String>,
}

/// Looks at every source of the settings, which were read from what is called `name`.
pub(crate) fn look(name: &str, settings: &Settings) -> Checked {
    let found: Vec<_> = settings.sites.iter().map(|site| (site, found(site, settings))).collect();
    let engine = settings.cluster.as_ref().map(engine).unwrap_or_default();
    let all = || found.iter().map(|(_, found)| found).chain([&engine.found]);
    let faults: Vec<String> = all().flat_map(|found| found.faults.iter().cloned()).collect();
    let warnings: Vec<String> = all().flat_map(|found| found.warnings.iter().cloned()).collect();
    let mut text = match (faults.len(), warnings.len()) {
        (0, 0) => format!("{name} is fine.\n"),
        (0, 1) => format!("{name} is fine, with a warning.\n"),
        (0, count) => format!("{name} is fine, with {count} warnings.\n"),
        (1, _) => format!("{name} has a fault.\n"),
        (count, _) => format!("{name} has {count} faults.\n"),
    };
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    for (site, found) in &found {
        line("site", &site_line(site));
        for draft in &found.drafts {
            line("", draft);
        }
        if let Some(php) = &site.php {
            let heard = if php_server::trouble(php).is_none() { "somebody listens there" } else { "it cannot be reached" };
            line("", &format!("PHP by {}: {heard}", php.address()));
        }
        if let Some(known) = how_known(site) {
            line("", &known);
        } else if site.source.is_server() {
            line("", "asked at the start whether it is a Ghost or a WordPress, as no kind is given");
        }
        for route in site.routes.iter().chain(&companions::routes(site)) {
            line("route", &route_line(route));
        }
        if let Some(there) = site.redirect_to().filter(|_| !site.redirect_from.is_empty()) {
            line("redirect", &format!("{} -> {there}", site.redirect_from.join(", ")));
        }
        if let Some(auth) = &site.auth {
            line("", &format!("asks for a password from {}", auth.file.display()));
        }
    }
    for (at, said) in engine.lines.iter().enumerate() {
        line(if at == 0 { "cluster" } else { "" }, said);
    }
    for warning in &settings.warnings {
        line("warning", warning);
    }
    Checked { text, faults, warnings }
}

/// Writes what answers for a part of a site.
pub(crate) fn route_line(route: &Route) -> String {
    let addresses = route.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let stripped = if route.strip_prefix { ", without the prefix" } else { "" };
    let passed = if route.is_cached { "" } else { ", not cached" };
    format!("{} <- {addresses}{stripped}{passed}", route.path)
}

/// What opening one source shows.
#[derive(Debug, Default)]
struct SourceReport {
    faults: Vec<String>,
    warnings: Vec<String>,
    /// A line for each text of a blog that readers do not see yet.
    drafts: Vec<String>,
}

/// What the Valkey or the Redis of a cluster says.
#[derive(Debug, Default)]
struct EngineFound {
    found: SourceReport,
    lines: Vec<String>,
}

/// Asks the server of a cluster. One that is away is not a fault: Seawall starts all the same, and goes on when the server is there.
fn engine(settings: &Cluster) -> EngineFound {
    let part = format!("{} of {}, by {}", settings.machine, settings.name, settings.address);
    let mut found = match cluster::examine(settings) {
        Ok(Examination { server, latency, warnings }) => {
            let took = latency.as_secs_f64() * 1e3;
            let said = format!("{} {}, a round trip takes {took:.1} ms", server.software, server.version);
            let warnings = warnings.into_iter().map(|warning| format!("{}: {warning}", server.address)).collect();
            EngineFound { found: SourceReport { warnings, ..SourceReport::default() }, lines: vec![part, said] }
        }
        Err(error) => {
            let warning = format!("[cluster] {error:#}; until it answers, each machine validates what it has stored before it shows it");
            let found = SourceReport { warnings: vec![warning], ..SourceReport::default() };
            EngineFound { found, lines: vec![part] }
        }
    };
    if let Tier::Bucket { options, ca_file } = &settings.tier {
        match cluster::examine_bucket(options, ca_file.as_deref()) {
            Ok(BucketExamination { read, warnings }) => {
                found.lines.push(format!("shares pages in {options}, a read takes {:.1} ms", read.as_secs_f64() * 1e3));
                found.found.warnings.extend(warnings.into_iter().map(|warning| format!("{options}: {warning}")));
            }
            Err(error) => {
                found.lines.push(format!("shares pages in {options}"));
                found
                    .found
                    .warnings
                    .push(format!("[cluster] {options}: {error:#}; until then, pages that are not on a machine come from the origin"));
            }
        }
    }
    found
}

fn found(site: &Site, settings: &Settings) -> SourceReport {
    let faults = match &site.source {
        Source::Http(_) => Vec::new(),
        Source::Php(folder) => match PhpFolder::open(folder, site.php.as_ref().map(|php| php.folder.clone()).unwrap_or_default()) {
            Ok(_) => {
                let trouble = site.php.as_ref().and_then(php_server::trouble);
                // A php-fpm that is only away may be there when Seawall starts.
                let (faults, warnings): (Vec<_>, Vec<_>) = trouble.into_iter().partition(|trouble| trouble.is_mistake);
                let texts = |troubles: Vec<Trouble>| troubles.into_iter().map(|trouble| trouble.text).collect();
                return SourceReport { faults: texts(faults), warnings: texts(warnings), ..SourceReport::default() };
            }
            Err(error) => vec![format!("{}: {error}", folder.display())],
        },
        Source::Files(folder) => match Files::open(folder, files_options(site)) {
            Ok(files) => files.mistakes().iter().map(|mistake| format!("{}/{mistake}", folder.display())).collect(),
            Err(error) => vec![format!("{}: {error}", folder.display())],
        },
        Source::Blog(folder) => return in_blog(folder, site, settings),
    };
    SourceReport { faults, ..SourceReport::default() }
}

#[expect(clippy::disallowed_methods, reason = "which posts are to come depends on the machine's time")]
fn in_blog(folder: &Path, site: &Site, settings: &Settings) -> SourceReport {
    let (problems, drafts) = match Blog::open(folder, blogs::options(site), std::time::SystemTime::now().into()) {
        Ok(blog) => {
            // Where there is no secret yet, the first start makes it.
            if let Ok(secret) = admin::Token::load(&blogs::secret_file(settings)) {
                blogs::give_links(&blog, &secret);
            }
            (blog.problems(), blogs::drafts(&blog, ""))
        }
        Err(error) => (error.problems, Vec::new()),
    };
    let (faults, warnings): (Vec<_>, Vec<_>) = problems.iter().partition(|problem| problem.severity == Severity::Error);
    let lines = |problems: Vec<&Problem>| problems.iter().map(|problem| format!("{}/{problem}", folder.display())).collect();
    SourceReport { faults: lines(faults), warnings: lines(warnings), drafts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    #[test]
    fn check_takes_whatever_serve_takes() {
        let line = "./public --route /api=http://127.0.0.1:1 --domain a.example --redirect-from www.a.example --kind static";
        let check: Check = typed(&format!("seawall check {line}")).expect("check");
        assert_eq!(check.serve, typed::<Serve>(&format!("seawall serve {line}")).expect("serve"));
        assert!(!check.acme);
    }
}
