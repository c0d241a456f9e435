//! Sites: which source answers for which hosts, and each site's own values over the common ones.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    ops::Range,
    path::{Component, Path, PathBuf},
};

use origins::php::PhpOptions;
use pipeline::Redirect;
use policy::{EarlyHints, SourceForm};
use toml::Spanned;

use super::{
    error::{Mistake, Place, in_words_of},
    file::{self, File, Given, Listed},
    ghost::{self, SecretText, Secrets},
    overrides::{Overrides, WithPlace},
    php::{self, PhpServer},
    resolve::{Resolver, as_usize, seconds},
    routes::WrittenRoute,
    settings::{BlogSettings, Cache, FilesSettings, Headers, Kind, OriginAddress, OriginHost, OriginSettings, PhpSettings, Site, Source},
    source::{Misfit, NamedSource, doubt, find, fit},
    units::{ByteSize, Count, Period},
    wordpress,
    words::{HostPattern, KindWord},
};
use crate::recognition::{Finding, Question, may_be};

const OBJECT_MAX: u64 = 16 << 20;
/// The largest response that is stored on the disk by default.
const DISK_OBJECT_MAX: u64 = 1 << 30;
const ADDRESSES_MAX: usize = 16;
const YEAR: Period = seconds(365 * 86_400);

/// The sections that apply to one site, from the short form or from a `[[site]]`.
struct SiteSections<'a> {
    hosts: Vec<String>,
    source: WithPlace<String>,
    /// The folder in which a relative source begins.
    base: PathBuf,
    kind: Option<WithPlace<KindWord>>,
    php_server: Option<WithPlace<PhpServer>>,
    php: [&'a file::Php; 2],
    /// The site's own sections, then the common ones.
    cache: [&'a file::Cache; 2],
    origin: [&'a file::Origin; 2],
    blog: [&'a file::Blog; 2],
    ghost: [&'a file::Ghost; 2],
    secrets: Secrets,
    wordpress: [&'a file::WordPress; 2],
    wordpress_secret: Option<WithPlace<SecretText>>,
    files: [&'a file::Static; 2],
    https: [&'a file::Https; 2],
    headers: [&'a file::Headers; 2],
    auth: [&'a file::Auth; 2],
    compress: [&'a file::Compress; 2],
    addresses: &'a Listed<OriginAddress>,
    redirect_from: Vec<String>,
    routes: Vec<WrittenRoute<'a>>,
    /// The section for the origins of all sites.
    common_origin: &'a file::Origin,
}

impl SiteSections<'_> {
    /// Returns the kind that was set. Whoever says where PHP runs has a folder with an application in PHP.
    fn wanted_kind(&self, found: &NamedSource) -> Option<Kind> {
        let runs_php = || match found {
            NamedSource::Folder { product, .. } if self.php_server.is_some() => {
                Some(product.unwrap_or_else(|| SourceForm::Php.usual_kind()))
            }
            NamedSource::Folder { .. } | NamedSource::Server(..) => None,
        };
        self.kind.as_ref().map(|kind| kind.value.0).or_else(runs_php)
    }

    /// Fills in what is set nowhere and depends on the kind.
    fn fill_in(&self, cache: &mut Cache, kind: Kind) {
        let preset = kind.preset();
        let said = |given: [&Given<bool>; 2]| first(given).map(|said| *said.get_ref());
        cache.honour_request_directives =
            said(self.cache.map(|cache| &cache.honour_request_directives)).unwrap_or(preset.honours_request_directives);
        cache.two_visitor_proof = said(self.cache.map(|cache| &cache.two_visitor_proof)).unwrap_or(preset.two_visitor_proof);
        cache.early_hints = said(self.cache.map(|cache| &cache.early_hints)).unwrap_or(preset.early_hints != EarlyHints::Off);
    }
}

impl Resolver<'_> {
    /// Resolves every site that can be understood. The result is empty only if there is an error.
    pub(super) fn sites(&mut self, file: &File, overrides: &Overrides, memory: u64) -> Vec<Site> {
        // Sections that the site does not have.
        let none = file::Site::default();
        let sites = if file.site.is_empty() {
            let written = self.short_form(file, overrides, &none);
            written.and_then(|written| self.site(&written, overrides, memory)).into_iter().collect()
        } else {
            self.exclude_short_form(file, overrides);
            self.site_sections(file, overrides, memory)
        };
        self.refuse_unused(file, overrides, &sites);
        sites
    }

    fn short_form<'a>(&mut self, file: &'a File, overrides: &Overrides, none: &'a file::Site) -> Option<SiteSections<'a>> {
        let replaced = overrides.source.is_some();
        let hosts: Vec<String> = overrides.domain.iter().map(|domain| domain.value.0.clone()).collect();
        let redirect_from = match &overrides.redirect_from[..] {
            [] => file.redirect_from.iter().flat_map(Spanned::get_ref).map(|host| self.said_of(host)).collect(),
            said => said.to_vec(),
        };
        let Some(source) = self.pick(overrides.source.clone(), &file.source) else {
            let mistake = Mistake::new(
                "nothing to serve: there is no source",
                "seawall serve http://127.0.0.1:2368 (a server), seawall serve ./folder (files or Markdown),\nor a line source = \"...\" in seawall.toml",
            );
            let place = self.file_place();
            self.absent(mistake, place);
            return None;
        };
        Some(SiteSections {
            redirect_from: self.redirect_from(redirect_from, &hosts, &mut HashMap::new()),
            hosts,
            source,
            base: if replaced { self.working_folder.to_owned() } else { self.file_folder() },
            kind: if replaced { overrides.kind.clone() } else { self.pick(overrides.kind.clone(), &file.kind) },
            php_server: if replaced { overrides.php.clone() } else { self.pick(overrides.php.clone(), &file.php.server) },
            php: [&none.php, &file.php],
            cache: [&none.cache, &file.cache],
            origin: [&none.origin, &file.origin],
            blog: [&none.blog, &file.blog],
            ghost: [&none.ghost, &file.ghost],
            secrets: self.secrets([&none.ghost, &file.ghost]).or_overridden(overrides),
            wordpress: [&none.wordpress, &file.wordpress],
            wordpress_secret: overrides.wordpress_secret.clone().or_else(|| self.wordpress_secret([&none.wordpress, &file.wordpress])),
            files: [&none.r#static, &file.r#static],
            https: [&none.https, &file.https],
            headers: [&none.headers, &file.headers],
            auth: [&none.auth, &file.auth],
            compress: [&none.compress, &file.compress],
            addresses: if replaced { &None } else { &file.origin.addresses },
            routes: match &overrides.route[..] {
                [] => file.route.iter().map(WrittenRoute::Section).collect(),
                said => said.iter().cloned().map(WrittenRoute::Word).collect(),
            },
            common_origin: &file.origin,
        })
    }

    /// Refuses settings for a single site beside `[[site]]`.
    fn exclude_short_form(&mut self, file: &File, overrides: &Overrides) {
        if let Some(source) = &file.source {
            let mistake =
                Mistake::new("source and [[site]] exclude each other", "move source into a [[site]] of its own, or remove the [[site]]s");
            self.wrong_at(mistake, source.span());
        }
        if let Some(kind) = &file.kind {
            self.wrong_at(
                Mistake::new("kind at the top has no meaning beside [[site]]", "write kind in the [[site]] that it is for"),
                kind.span(),
            );
        }
        if let Some(addresses) = &file.origin.addresses {
            let mistake = Mistake::new("sites cannot share addresses", "write addresses in the [site.origin] of the site they belong to");
            self.wrong_at(mistake, addresses.span());
        }
        if let Some(source) = &overrides.source {
            let mistake =
                Mistake::new("the file has [[site]]s, so one source cannot replace them", "leave the source out, or name another file");
            self.wrong(mistake, source.place.clone());
        }
        if let Some(domain) = overrides.domain.first() {
            self.wrong(
                Mistake::new("the file has [[site]]s, so a domain has no site to belong to", "write it into the hosts of its [[site]]"),
                domain.place.clone(),
            );
        }
        if let Some(kind) = &overrides.kind {
            self.wrong(
                Mistake::new("the file has [[site]]s, so one ‹kind› cannot be for all", "write kind in the [[site]] in the file"),
                kind.place.clone(),
            );
        }
        if let Some(place) = overrides.ghost.first_place() {
            let mistake = Mistake::new(
                "the file has [[site]]s, so one Ghost's secret cannot be for all",
                "write it in the [site.ghost] of its [[site]]",
            );
            self.wrong(mistake, place);
        }
        if let Some(secret) = &overrides.wordpress_secret {
            let mistake = Mistake::new(
                "the file has [[site]]s, so one WordPress's secret cannot be for all",
                "write it in the [site.wordpress] of its [[site]]",
            );
            self.wrong(mistake, secret.place.clone());
        }
        if let Some(php) = &overrides.php {
            let mistake = Mistake::new("the file has [[site]]s, so one --php cannot be for all", "write server below its [site.php]");
            self.wrong(mistake, php.place.clone());
        }
        if let Some(host) = overrides.redirect_from.first() {
            let mistake = Mistake::new(
                "the file has [[site]]s, so this name could be sent to any of them",
                "write it into redirect_from of its [[site]]",
            );
            self.wrong(mistake, host.place.clone());
        }
        if let Some(list) = &file.redirect_from {
            let mistake = Mistake::new(
                "redirect_from at the top has no meaning beside [[site]]",
                "write it in the [[site]] to which those visitors are sent",
            );
            self.wrong_at(mistake, list.span());
        }
        if let Some(route) = overrides.route.first() {
            let mistake =
                Mistake::new("the file has [[site]]s, so a route has no site to belong to", "write a [[site.route]] below its [[site]]");
            self.wrong(mistake, route.place.clone());
        }
        if let Some(route) = file.route.first() {
            let mistake =
                Mistake::new("[[route]] has no meaning beside [[site]]", "write [[site.route]] below the [[site]] that it is for");
            self.wrong_at(mistake, route.span());
        }
    }

    fn site_sections(&mut self, file: &File, overrides: &Overrides, memory: u64) -> Vec<Site> {
        let mut taken = HashMap::new();
        let mut sites = Vec::with_capacity(file.site.len());
        for section in &file.site {
            let site = section.get_ref();
            let hosts = self.hosts(section, file.site.len() == 1, &mut taken);
            let redirect_from = site.redirect_from.iter().flat_map(Spanned::get_ref).map(|host| self.said_of(host)).collect();
            let redirect_from = self.redirect_from(redirect_from, &hosts, &mut taken);
            let spans =
                [("memory", &site.cache.memory), ("disk", &site.cache.disk)].map(|(key, given)| (key, given.as_ref().map(Spanned::span)));
            for (key, span) in spans.into_iter().chain([("dir", site.cache.dir.as_ref().map(Spanned::span))]) {
                if let Some(span) = span {
                    self.wrong_at(
                        Mistake::new(format!("{key} belongs to the whole process, not to one site"), "write it in [cache]"),
                        span,
                    );
                }
            }
            if let Some(listen) = &site.tls.listen {
                let mistake = Mistake::new("listen belongs to the whole process, not to one site", "write it in [tls]");
                self.wrong_at(mistake, listen.span());
            }
            let Some(source) = self.said(&site.source) else {
                let mistake =
                    Mistake::new("this site has no source", "write source = \"...\" below [[site]]: a server's address or a folder");
                let place = self.place(section.span());
                self.absent(mistake, place);
                continue;
            };
            let written = SiteSections {
                hosts,
                source,
                base: self.file_folder(),
                kind: self.said(&site.kind),
                php_server: self.layered([&site.php.server, &None]),
                php: [&site.php, &file.php],
                cache: [&site.cache, &file.cache],
                origin: [&site.origin, &file.origin],
                blog: [&site.blog, &file.blog],
                ghost: [&site.ghost, &file.ghost],
                secrets: self.secrets([&site.ghost, &file.ghost]),
                wordpress: [&site.wordpress, &file.wordpress],
                wordpress_secret: self.wordpress_secret([&site.wordpress, &file.wordpress]),
                files: [&site.r#static, &file.r#static],
                https: [&site.https, &file.https],
                headers: [&site.headers, &file.headers],
                auth: [&site.auth, &file.auth],
                compress: [&site.compress, &file.compress],
                addresses: &site.origin.addresses,
                redirect_from,
                routes: site.route.iter().map(WrittenRoute::Section).collect(),
                common_origin: &file.origin,
            };
            let Some(site) = self.site(&written, overrides, memory) else { continue };
            self.refuse_foreign_sections(section.get_ref(), &site);
            sites.push(site);
        }
        sites
    }

    /// Resolves the names whose visitors are sent to the first of `hosts`. No other site may use such a name.
    fn redirect_from(&mut self, said: Vec<WithPlace<HostPattern>>, hosts: &[String], taken: &mut HashMap<String, usize>) -> Vec<String> {
        let mut names: Vec<String> = Vec::with_capacity(said.len());
        for WithPlace { value: HostPattern(name), place } in said {
            let line = if let Place::Line { line, .. } = place { line } else { 0 };
            if name.starts_with('*') {
                let mistake = Mistake::new(format!("\"{name}\" stands for many names"), "write each name that is to be redirected");
                self.wrong(mistake, place);
            } else if !hosts.iter().any(|host| !host.starts_with('*')) {
                let remedy = "name the site: --domain NAME on the command line, or hosts in a [[site]]";
                self.absent(Mistake::new(format!("there is no name to which visitors of \"{name}\" could be sent"), remedy), place);
            } else if hosts.contains(&name) || names.contains(&name) || taken.insert(name.clone(), line).is_some() {
                let problem = format!("\"{name}\" is the name of a site, so its visitors cannot be sent elsewhere");
                let problem = if names.contains(&name) { format!("\"{name}\" is in the list twice") } else { problem };
                self.wrong(Mistake::new(problem, "remove one of the two"), place);
            } else {
                names.push(name);
            }
        }
        names
    }

    /// Resolves the site's hosts. No other site may use them: `taken` has those of the sites before it.
    fn hosts(&mut self, section: &Spanned<file::Site>, single: bool, taken: &mut HashMap<String, usize>) -> Vec<String> {
        let list = match &section.get_ref().hosts {
            Some(list) if !list.get_ref().is_empty() => list,
            None if single => return Vec::new(),
            empty => {
                let span = empty.as_ref().map_or_else(|| section.span(), Spanned::span);
                let remedy = if single {
                    "name its hosts, or leave hosts out: then it answers for every host"
                } else {
                    "write hosts = [\"blog.example.org\"]"
                };
                let place = self.place(span);
                self.absent(Mistake::new("this site has no hosts, so no request would reach it", remedy), place);
                return Vec::new();
            }
        };
        let mut hosts = Vec::with_capacity(list.get_ref().len());
        for host in list.get_ref() {
            let name = host.get_ref().0.clone();
            let place = self.place(host.span());
            let line = if let Place::Line { line, .. } = place { line } else { 0 };
            if let Some(before) = taken.insert(name.clone(), line) {
                let problem = format!("the host \"{name}\" is already taken in line {before}");
                self.wrong(Mistake::new(problem, "a host belongs to one site: remove one of the two"), place);
            }
            hosts.push(name);
        }
        hosts
    }

    fn site(&mut self, written: &SiteSections<'_>, overrides: &Overrides, memory: u64) -> Option<Site> {
        // The other sections are looked at even if the source is wrong: all errors at once.
        let mut cache = self.cache(written, overrides, memory);
        let origin = self.origin(written.origin);
        let blog = BlogSettings {
            title: first(written.blog.map(|blog| &blog.title)).map(|title| title.get_ref().clone()),
            base_url: first(written.blog.map(|blog| &blog.base_url)).map(|url| url.get_ref().0.clone()),
            drafts: match &overrides.drafts {
                Some(said) => said.value,
                None => first(written.blog.map(|blog| &blog.drafts)).is_some_and(|drafts| *drafts.get_ref()),
            },
        };
        let text = &written.source.value;
        let found = find(text, &written.base).map_err(Misfit::Source);
        let (mut finding, mut source_path) = (Finding::Unasked, None);
        if let Ok(NamedSource::Server(address, path)) = &found {
            finding = self.known.of(&Question::new(address, &written.hosts, &origin.host));
            source_path.clone_from(path);
        }
        let fitted = found.and_then(|found| {
            let kind = written.wanted_kind(&found);
            fit(text, found, kind, &finding)
        });
        let (mut source, kind) = match fitted {
            Ok(fitted) => fitted,
            Err(misfit) => {
                let (mistake, place) = match (misfit, &written.kind) {
                    (Misfit::Kind(mistake), Some(kind)) => (mistake, &kind.place),
                    (Misfit::Kind(mistake) | Misfit::Source(mistake), _) => (mistake, &written.source.place),
                };
                self.wrong(mistake, place.clone());
                return None;
            }
        };
        self.warnings.extend(doubt(&source, kind).map(|doubt| in_words_of(&written.source.place, &doubt)));
        if let Source::Php(folder) = &source
            && kind.product().is_some()
        {
            finding = self.known.of(&Question::of_folder(folder, &written.hosts));
        }
        let php = self.php(&source, written);
        let mut files = FilesSettings::default();
        if let Source::Files(folder) = &source {
            files.listing = first(written.files.map(|files| &files.listing)).is_some_and(|listing| *listing.get_ref());
            files.fallback = first(written.files.map(|files| &files.fallback)).and_then(|name| self.fallback(name, folder));
        }
        if let Source::Http(addresses) = &mut source {
            self.more_addresses(addresses, written.addresses);
            self.refuse_contradictions(written.origin, addresses, &origin);
        }
        let headers_of_servers =
            if written.routes.is_empty() { Headers::default() } else { self.headers(written.https, written.headers, SourceForm::Server) };
        written.fill_in(&mut cache, SourceForm::Server.usual_kind());
        let routes = self.routes(&written.routes, written.common_origin, (&cache, &headers_of_servers));
        written.fill_in(&mut cache, kind);
        // What comes from a disk need not be written to one.
        if !source.is_server() && first(written.cache.map(|cache| &cache.disk_object_max)).is_none() {
            cache.disk_object_max = 0;
        }
        let ghost = ghost::settings(written.ghost, &written.secrets, source_path.clone(), &finding);
        let cron = self.wordpress_cron(written.wordpress);
        let wordpress = wordpress::settings(written.wordpress, (written.wordpress_secret.clone(), cron), source_path, &finding);
        let name = written.hosts.first().map_or("default", String::as_str).to_owned();
        let redirect =
            overrides.https_redirect.or_else(|| first(written.https.map(|https| &https.redirect)).map(|redirect| *redirect.get_ref()));
        let https_redirect = match redirect {
            Some(true) => Redirect::Always,
            None if !overrides.domain.is_empty() => Redirect::OnceCertified,
            Some(false) | None => Redirect::Never,
        };
        let headers = self.headers(written.https, written.headers, source.form());
        let auth = self.auth(written.auth);
        let compress = self.compress(written.compress);
        let (hosts, redirect_from) = (written.hosts.clone(), written.redirect_from.clone());
        Some(Site {
            name,
            hosts,
            source,
            kind,
            kind_is_given: written.kind.is_some(),
            finding,
            cache,
            origin,
            blog,
            ghost,
            wordpress,
            files,
            php,
            https_redirect,
            headers,
            auth,
            compress,
            redirect_from,
            routes,
        })
    }

    /// Resolves where PHP runs, for a folder with an application in PHP.
    fn php(&mut self, source: &Source, written: &SiteSections<'_>) -> Option<PhpSettings> {
        let is_php = matches!(source, Source::Php(_));
        let folder = php_options(written.php);
        let temporary_folder =
            first(written.php.map(|php| &php.temporary_folder)).filter(|_| is_php).map(|path| self.folder_for_files(path));
        let said = written.php_server.clone().or_else(|| self.layered(written.php.map(|php| &php.server)).filter(|_| is_php));
        match said {
            Some(said) if is_php => {
                Some(PhpSettings { server: said.value.0, is_found: false, also_found: Vec::new(), folder, temporary_folder })
            }
            Some(said) => {
                let mistake = Mistake::new(
                    "the address of php-fpm is for a folder with an application in PHP, and this source is none",
                    "leave it out",
                );
                self.wrong(mistake, said.place);
                None
            }
            None if is_php => match php::find(Path::new("/")) {
                Ok((server, also_found)) => Some(PhpSettings { server, is_found: true, also_found, folder, temporary_folder }),
                Err(mistake) => {
                    self.wrong(mistake, written.source.place.clone());
                    None
                }
            },
            None => None,
        }
    }

    /// Resolves `temporary_folder`: a folder that is there.
    fn folder_for_files(&mut self, path: &Spanned<String>) -> PathBuf {
        let folder = self.file_folder().join(path.get_ref());
        if !folder.is_dir() {
            let mistake =
                Mistake::new(format!("there is no folder {}", folder.display()), "make it, or name another one for temporary files");
            self.wrong_at(mistake, path.span());
        }
        folder
    }

    /// Resolves `fallback`: the plain name of a file that exists below the folder.
    fn fallback(&mut self, given: &Spanned<String>, folder: &Path) -> Option<PathBuf> {
        let name = given.get_ref().trim_start_matches('/');
        let is_plain =
            Path::new(name).components().all(|part| matches!(part, Component::Normal(name) if !name.as_encoded_bytes().starts_with(b".")));
        if is_plain && folder.join(name).is_file() {
            return Some(name.into());
        }
        let mistake = Mistake::new(
            format!("there is no file \"{name}\" in {}", folder.display()),
            "fallback names a file in the folder that is served, mostly \"index.html\"",
        );
        self.wrong_at(mistake, given.span());
        None
    }

    fn cache(&mut self, written: &SiteSections<'_>, overrides: &Overrides, memory: u64) -> Cache {
        let cache = written.cache;
        let hold = overrides.hold.clone().or_else(|| self.layered(cache.map(|cache| &cache.hold)));
        let object_max = self.layered(cache.map(|cache| &cache.object_max));
        let place = object_max.as_ref().map(|said| said.place.clone());
        let ByteSize(object_max) =
            self.within("object_max", object_max, ByteSize(OBJECT_MAX.min(memory / 2)), ByteSize(1 << 10)..=ByteSize(u64::MAX / 2));
        if let Some(place) = place.filter(|_| object_max > memory / 2) {
            let problem = format!("object_max ({}) is more than half of memory ({})", ByteSize(object_max), ByteSize(memory));
            self.wrong(Mistake::new(problem, "one response would push out all the others: lower object_max, or raise memory"), place);
        }
        let disk_object_max = self.layered(cache.map(|cache| &cache.disk_object_max));
        let ByteSize(disk_object_max) =
            self.within("disk_object_max", disk_object_max, ByteSize(DISK_OBJECT_MAX), ByteSize(0)..=ByteSize(1 << 40));
        let ignored = first(cache.map(|cache| &cache.ignore_query));
        let kept = first(cache.map(|cache| &cache.keep_query));
        for name in kept.iter().flat_map(|list| list.get_ref()) {
            if ignored.is_some_and(|ignored| ignored.get_ref().iter().any(|other| other.get_ref() == name.get_ref())) {
                let mistake = Mistake::new(
                    format!("\"{}\" stands in keep_query and in ignore_query", name.get_ref().0),
                    "remove it from one of them",
                );
                self.wrong_at(mistake, name.span());
            }
        }
        let texts = |list: Option<&Spanned<Vec<Spanned<super::words::NamePattern>>>>| {
            list.into_iter().flat_map(Spanned::get_ref).map(|name| name.get_ref().0.clone()).collect()
        };
        let cookies = first(cache.map(|cache| &cache.ignore_cookies)).into_iter().flat_map(Spanned::get_ref);
        let dropped = first(cache.map(|cache| &cache.drop_set_cookies)).into_iter().flat_map(Spanned::get_ref);
        Cache {
            object_max,
            disk_object_max,
            hold: hold.map(|hold| self.hold(hold)),
            stale_if_error: self.stale("stale_if_error", cache.map(|cache| &cache.stale_if_error)),
            stale_while_revalidate: self.stale("stale_while_revalidate", cache.map(|cache| &cache.stale_while_revalidate)),
            ignore_cookies: cookies.map(|name| name.get_ref().0.clone()).collect(),
            ignore_query: texts(ignored),
            keep_query: texts(kept),
            // Both depend on the kind: see `SiteSections::fill_in`.
            honour_request_directives: false,
            two_visitor_proof: false,
            store_set_cookie: first(cache.map(|cache| &cache.store_set_cookie)).is_some_and(|store| *store.get_ref()),
            drop_set_cookies: dropped.map(|name| name.get_ref().0.clone()).collect(),
            early_hints: false,
            early_hints_http1: first(cache.map(|cache| &cache.early_hints_http1)).is_some_and(|hints| *hints.get_ref()),
        }
    }

    fn hold(&mut self, hold: WithPlace<Period>) -> std::time::Duration {
        let value = hold.value;
        if value.0.is_zero() {
            let remedy = "leave ‹hold› out to keep responses as long as they say themselves, or write at least \"1ms\"";
            self.wrong(Mistake::new("a hold of zero would keep nothing", remedy), hold.place);
        } else if value > YEAR {
            self.wrong(Mistake::new(format!("{value} is too much for ‹hold›"), "possible: up to 365d"), hold.place);
        }
        value.0
    }

    fn stale(&mut self, key: &str, layers: [&Given<Period>; 2]) -> Option<std::time::Duration> {
        let said = self.layered(layers)?;
        Some(self.within(key, Some(said), seconds(0), seconds(0)..=YEAR).0)
    }

    /// Resolves how a server is treated. Its own values take precedence over the common ones.
    pub(super) fn origin(&mut self, origin: [&file::Origin; 2]) -> OriginSettings {
        let concurrency = self.layered(origin.map(|origin| &origin.concurrency));
        let queue = self.layered(origin.map(|origin| &origin.queue));
        let waits = [
            ("queue_timeout", self.layered(origin.map(|origin| &origin.queue_timeout)), 10),
            ("collapse_wait", self.layered(origin.map(|origin| &origin.collapse_wait)), 5),
            ("connect_timeout", self.layered(origin.map(|origin| &origin.connect_timeout)), 5),
            ("first_byte_timeout", self.layered(origin.map(|origin| &origin.first_byte_timeout)), 60),
            ("between_bytes_timeout", self.layered(origin.map(|origin| &origin.between_bytes_timeout)), 60),
        ];
        let [queue_timeout, collapse_wait, connect_timeout, first_byte_timeout, between_bytes_timeout] =
            waits.map(|(key, said, default)| self.wait_for(key, said, default));
        OriginSettings {
            concurrency: as_usize(self.within("concurrency", concurrency, Count(256), Count(1)..=Count(65_535)).0),
            queue: as_usize(self.within("queue", queue, Count(1024), Count(0)..=Count(1_000_000)).0),
            queue_timeout,
            collapse_wait,
            connect_timeout,
            first_byte_timeout,
            between_bytes_timeout,
            host: first(origin.map(|origin| &origin.host)).map_or(OriginHost::Client, |host| host.get_ref().clone()),
            ca_file: first(origin.map(|origin| &origin.ca_file)).map(|path| self.ca_file(path)),
        }
    }

    fn ca_file(&mut self, path: &Spanned<String>) -> PathBuf {
        let full = self.file_folder().join(path.get_ref());
        if !full.is_file() {
            let mistake =
                Mistake::new(format!("there is no file \"{}\"", full.display()), "write the path of a file with certificates (PEM)");
            self.wrong_at(mistake, path.span());
        }
        full
    }

    /// Adds the addresses that are tried if the source cannot be reached.
    pub(super) fn more_addresses(&mut self, addresses: &mut Vec<OriginAddress>, more: &Listed<OriginAddress>) {
        let Some(more) = more else { return };
        if more.get_ref().len() > ADDRESSES_MAX {
            let mistake =
                Mistake::new(format!("{} addresses are too many", more.get_ref().len()), format!("at most {ADDRESSES_MAX} are possible"));
            self.wrong_at(mistake, more.span());
        }
        for (n, address) in more.get_ref().iter().enumerate() {
            if more.get_ref()[..n].iter().any(|before| before.get_ref() == address.get_ref()) {
                self.wrong_at(Mistake::new(format!("{} is in the list twice", address.get_ref()), "remove one of the two"), address.span());
            } else if !addresses.contains(address.get_ref()) {
                addresses.push(address.get_ref().clone());
            }
        }
    }

    /// Refuses a source at which Seawall itself listens (RFC 9110 §7.6): each request would wait for itself. A source that is asked for another host
    /// may be another site of the same Seawall.
    pub(super) fn refuse_itself(&mut self, file: &File, overrides: &Overrides, sites: &[Site], listening: &[SocketAddr]) {
        let is_listened_on = |host: &str, port: u16| {
            let is_same = |address: &SocketAddr| match host.parse::<IpAddr>() {
                Ok(ip) => address.ip() == ip || address.ip().is_unspecified() && ip.is_loopback(),
                Err(_) => host.eq_ignore_ascii_case("localhost") && (address.ip().is_loopback() || address.ip().is_unspecified()),
            };
            port != 0 && listening.iter().any(|address| address.port() == port && is_same(address))
        };
        for (n, site) in sites.iter().enumerate() {
            let Source::Http(addresses) = &site.source else { continue };
            if matches!(site.origin.host, OriginHost::Name(_)) {
                continue;
            }
            let itself = addresses.iter().find(|address| match address {
                OriginAddress::Http { host, port } | OriginAddress::Https { host, port } => is_listened_on(host, *port),
                OriginAddress::Unix(_) => false,
            });
            let Some(itself) = itself else { continue };
            let written = match file.site.get(n) {
                Some(section) => section.get_ref().source.as_ref().map(|source| self.place(source.span())),
                None => self.pick(overrides.source.clone(), &file.source).map(|source| source.place),
            };
            let mistake = Mistake::new(
                format!("at {itself} Seawall itself listens, so each request would come back to it"),
                "name the address of the site's own server; or give Seawall another one, as with --listen 127.0.0.1:8081",
            );
            self.wrong(mistake, written.unwrap_or(Place::Default));
        }
    }

    /// Refuses settings of an origin that mean nothing for its addresses.
    pub(super) fn refuse_contradictions(&mut self, layers: [&file::Origin; 2], addresses: &[OriginAddress], origin: &OriginSettings) {
        let nameless = addresses.iter().any(|address| matches!(address, OriginAddress::Unix(_)));
        if let Some(host) = first(layers.map(|origin| &origin.host)).filter(|_| nameless && origin.host == OriginHost::Origin) {
            let mistake =
                Mistake::new("a Unix socket has no host name for requests to the origin", "write \"client\", or the host name itself");
            self.wrong_at(mistake, host.span());
        }
        let encrypted = addresses.iter().any(|address| matches!(address, OriginAddress::Https { .. }));
        // A common ca_file may be for the other sites.
        if let Some(path) = layers[0].ca_file.as_ref().filter(|_| !encrypted) {
            self.wrong_at(Mistake::new("ca_file is for https, and no address here begins with https://", "remove it"), path.span());
        }
    }

    /// Refuses a `[site.origin]`, `[site.blog]` or `[site.static]` that the site's source cannot use: its author expected an effect.
    fn refuse_foreign_sections(&mut self, section: &file::Site, site: &Site) {
        let source = &site.source;
        self.refuse_ghost("[site.ghost]", &section.ghost, may_be(site, Kind::Ghost));
        self.refuse_wordpress("[site.wordpress]", &section.wordpress, may_be(site, Kind::WordPress));
        if let Some(span) = first_key_of_origin(&section.origin).filter(|_| !source.is_server()) {
            self.wrong_at(Mistake::new("[site.origin] is for a server, and this site's source is a folder", "remove the section"), span);
        }
        if let Some(span) = first_key_of_blog(&section.blog).filter(|_| !matches!(source, Source::Blog(_))) {
            self.wrong_at(
                Mistake::new("[site.blog] is for a folder of Markdown, and this site's source is not one", "remove the section"),
                span,
            );
        }
        if let Some(span) = first_key_of_php(&section.php).filter(|_| !matches!(source, Source::Php(_))) {
            let mistake = Mistake::new(
                "[site.php] is for a folder with an application in PHP, and this site's source is not one",
                "remove the section",
            );
            self.wrong_at(mistake, span);
        }
        if let Some(span) = first_key_of_static(&section.r#static).filter(|_| !matches!(source, Source::Files(_))) {
            self.wrong_at(
                Mistake::new("[site.static] is for a folder of finished files, and this site's source is not one", "remove the section"),
                span,
            );
        }
    }

    /// Refuses common sections that no site can use, unless a SOURCE from outside replaced the source for which they were written.
    fn refuse_unused(&mut self, file: &File, overrides: &Overrides, sites: &[Site]) {
        let understood = sites.len() == file.site.len().max(1);
        if let Some(said) = overrides.drafts.as_ref().filter(|said| understood && said.value)
            && !sites.iter().any(|site| matches!(site.source, Source::Blog(_)))
        {
            self.wrong(
                Mistake::new("‹drafts› is for folders of Markdown, and there is none among the sources", "leave ‹drafts› out"),
                said.place.clone(),
            );
        }
        if !understood || overrides.source.is_some() {
            return;
        }
        if let Some(span) = first_key_of_origin(&file.origin).filter(|_| !sites.iter().any(Site::has_server)) {
            self.wrong_at(Mistake::new("[origin] is for servers, and there is none among the sources", "remove the section"), span);
        }
        self.refuse_ghost("[ghost]", &file.ghost, sites.iter().any(|site| may_be(site, Kind::Ghost)));
        self.refuse_wordpress("[wordpress]", &file.wordpress, sites.iter().any(|site| may_be(site, Kind::WordPress)));
        if let Some(span) = first_key_of_blog(&file.blog).filter(|_| !sites.iter().any(|site| matches!(site.source, Source::Blog(_)))) {
            self.wrong_at(
                Mistake::new("[blog] is for folders of Markdown, and there is none among the sources", "remove the section"),
                span,
            );
        }
        if let Some(span) = first_key_of_php(&file.php).filter(|_| !sites.iter().any(|site| matches!(site.source, Source::Php(_)))) {
            let mistake =
                Mistake::new("[php] is for folders with an application in PHP, and there is none among the sources", "remove the section");
            self.wrong_at(mistake, span);
        }
        if let Some(span) =
            first_key_of_static(&file.r#static).filter(|_| !sites.iter().any(|site| matches!(site.source, Source::Files(_))))
        {
            self.wrong_at(
                Mistake::new("[static] is for folders of finished files, and there is none among the sources", "remove the section"),
                span,
            );
        }
    }

    pub(super) fn layered<T: Clone>(&self, layers: [&Given<T>; 2]) -> Option<WithPlace<T>> {
        first(layers).map(|given| self.said_of(given))
    }
}

/// Returns the site's own value, or else the common one.
pub(super) fn first<T>([own, common]: [&Given<T>; 2]) -> Option<&Spanned<T>> {
    own.as_ref().or(common.as_ref())
}

fn php_options(written: [&file::Php; 2]) -> PhpOptions {
    let default = PhpOptions::default();
    let never_run = first(written.map(|php| &php.never_run));
    let send_files = first(written.map(|php| &php.send_files));
    PhpOptions {
        document_root: first(written.map(|php| &php.document_root)).map(|path| path.get_ref().trim_end_matches('/').to_owned()),
        not_run: never_run
            .map_or(default.not_run, |list| list.get_ref().iter().map(|folders| folders.get_ref().trim_matches('/').into()).collect()),
        links: first(written.map(|php| &php.links)).map_or(default.links, |links| links.get_ref().0),
        handed_over: send_files
            .into_iter()
            .flat_map(Spanned::get_ref)
            .map(|place| place.get_ref().clone())
            .map(|place| (place.prefix, place.folder))
            .collect(),
        params: default.params,
    }
}

fn first_key_of_php(php: &file::Php) -> Option<Range<usize>> {
    let file::Php { server, document_root, never_run, links, send_files, temporary_folder } = php;
    let spans = [span(server), span(document_root), span(never_run), span(links), span(send_files), span(temporary_folder)];
    spans.into_iter().flatten().min_by_key(|span| span.start)
}

fn first_key_of_origin(origin: &file::Origin) -> Option<Range<usize>> {
    let file::Origin {
        concurrency,
        queue,
        queue_timeout,
        collapse_wait,
        connect_timeout,
        first_byte_timeout,
        between_bytes_timeout,
        host,
        ca_file,
        addresses,
    } = origin;
    let spans = [
        span(concurrency),
        span(queue),
        span(queue_timeout),
        span(collapse_wait),
        span(connect_timeout),
        span(first_byte_timeout),
        span(between_bytes_timeout),
        span(host),
        span(ca_file),
        span(addresses),
    ];
    first_span(spans)
}

fn first_key_of_blog(file::Blog { title, base_url, drafts }: &file::Blog) -> Option<Range<usize>> {
    first_span([span(title), span(base_url), span(drafts)])
}

fn first_key_of_static(file::Static { listing, fallback }: &file::Static) -> Option<Range<usize>> {
    first_span([span(listing), span(fallback)])
}

/// Returns where the first of these keys is written.
pub(super) fn first_span<const N: usize>(spans: [Option<Range<usize>>; N]) -> Option<Range<usize>> {
    spans.into_iter().flatten().min_by_key(|span| span.start)
}

fn span<T>(given: &Given<T>) -> Option<Range<usize>> {
    given.as_ref().map(Spanned::span)
}
