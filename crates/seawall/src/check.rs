//! `seawall check`: what `seawall serve` would do with the same words, without doing it.
//!
//! The settings are valid already; what is left is what only opening the sources shows: front matter that cannot be read, lines of
//! `_redirects` and `_headers` that mean nothing. Nothing is listened on, and no server is asked.

use std::fmt::Write as _;

use blog::Blog;
use origins::files::Files;

use crate::{
    banner::site_line,
    config::settings::{Route, Settings, Site, Source},
    plan::{blog_options, files_options},
};

/// The result of a check.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Tells a person what would be served.
    pub(crate) text: String,
    /// Lists the faults of the sources, each with its place.
    pub(crate) faults: Vec<String>,
}

/// Looks at every source of the settings, which were read from what is called `name`.
pub(crate) fn check(name: &str, settings: &Settings) -> Checked {
    let faults: Vec<String> = settings.sites.iter().flat_map(faults).collect();
    let mut text = match faults.len() {
        0 => format!("{name} is fine.\n"),
        1 => format!("{name} has a fault.\n"),
        count => format!("{name} has {count} faults.\n"),
    };
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    for site in &settings.sites {
        line("site", &site_line(site));
        for route in &site.routes {
            line("route", &route_line(route));
        }
        if let Some(there) = site.redirect_to().filter(|_| !site.redirect_from.is_empty()) {
            line("redirect", &format!("{} -> {there}", site.redirect_from.join(", ")));
        }
        if let Some(auth) = &site.auth {
            line("", &format!("asks for a password from {}", auth.file.display()));
        }
    }
    for warning in &settings.warnings {
        line("warning", warning);
    }
    Checked { text, faults }
}

/// Writes what answers for a part of a site.
pub(crate) fn route_line(route: &Route) -> String {
    let addresses = route.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let stripped = if route.strip_prefix { ", without the prefix" } else { "" };
    let passed = if route.is_cached { "" } else { ", not cached" };
    format!("{} <- {addresses}{stripped}{passed}", route.path)
}

fn faults(site: &Site) -> Vec<String> {
    match &site.source {
        Source::Http(_) => Vec::new(),
        Source::Files(folder) => match Files::open(folder, files_options(site)) {
            Ok(files) => files.mistakes().iter().map(|mistake| format!("{}/{mistake}", folder.display())).collect(),
            Err(error) => vec![format!("{}: {error}", folder.display())],
        },
        Source::Blog(folder) => match Blog::open(folder, blog_options(site)) {
            Ok(_) => Vec::new(),
            Err(error) => error.problems.iter().map(|problem| format!("{}/{problem}", folder.display())).collect(),
        },
    }
}
