//! Parts of a site that other servers answer for: `[[route]]`, `[[site.route]]`, and `--route`.

use std::str::FromStr;

use semantics::target::normal_path;
use toml::Spanned;

use super::{
    error::Mistake,
    file,
    overrides::WithPlace,
    resolve::Resolver,
    settings::{Cache, Headers, OriginAddress, Route},
};

/// The largest number of parts of one site.
const ROUTES_MAX: usize = 64;

const REMEDY: &str = "write a path such as \"/api\": it covers everything below it, too";

/// The path of a part, in normal form and without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePath(pub String);

impl FromStr for RoutePath {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = || Mistake::new(format!("\"{text}\" is not the path of a route"), REMEDY);
        let bare = text.strip_suffix("/*").or_else(|| text.strip_suffix('*')).unwrap_or(text).trim_end_matches('/');
        if bare.is_empty() && text.starts_with('/') {
            return Err(Mistake::new(
                format!("\"{text}\" is the whole site"),
                "what answers for the whole site is its source; a route is for a part of it",
            ));
        }
        let rooted = if bare.starts_with('/') { bare.to_owned() } else { format!("/{bare}") };
        let normal = normal_path(&rooted).ok().filter(|path| path.len() > 1 && !path.contains(['*', ';']) && !path.contains("//"));
        match normal {
            // A slash at the end means the same.
            Some(normal) if normal == text.trim_end_matches('/') => Ok(Self(normal.into_owned())),
            Some(normal) if !text.contains("://") => Err(mistake().meant(normal)),
            _ => Err(mistake()),
        }
    }
}

/// A route written as one word: `/api=http://127.0.0.1:3000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RouteWord {
    path: RoutePath,
    source: OriginAddress,
}

impl FromStr for RouteWord {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let Some((path, source)) = text.split_once('=') else {
            let remedy = "write the path, an equals sign, and the address of the server: /api=http://127.0.0.1:3000";
            return Err(Mistake::new(format!("\"{text}\" is not a route"), remedy));
        };
        let (path_read, source_read) = (path.parse::<RoutePath>(), source.parse::<OriginAddress>());
        if let (Ok(path), Ok(source)) = (&path_read, &source_read) {
            return Ok(Self { path: path.clone(), source: source.clone() });
        }
        // What was meant is the whole word again, with both halves put right.
        let meant = |mistake: &Mistake| mistake.meant.as_deref().and_then(|meant| meant.split('"').nth(1)).map(str::to_owned);
        let path_meant = path_read.as_ref().map_or_else(&meant, |path| Some(path.0.clone()));
        let source_meant = source_read.as_ref().map_or_else(&meant, |_| Some(source.to_owned()));
        let mistake = path_read.err().or_else(|| source_read.err()).expect("one of the two was not read");
        Err(match path_meant.zip(source_meant) {
            Some((path, source)) => Mistake::new(mistake.problem, mistake.remedy).meant(format!("{path}={source}")),
            None => Mistake { meant: None, ..mistake },
        })
    }
}

/// A route in one of the two forms in which it can be written.
pub(super) enum WrittenRoute<'a> {
    Section(&'a Spanned<file::Route>),
    Word(WithPlace<RouteWord>),
}

impl Resolver<'_> {
    /// Resolves the parts of a site. `rules` says what is stored of the responses there, and which fields are added or removed.
    pub(super) fn routes(&mut self, written: &[WrittenRoute<'_>], common: &file::Origin, rules: (&Cache, &Headers)) -> Vec<Route> {
        let mut routes: Vec<Route> = Vec::with_capacity(written.len());
        let none = file::Origin::default();
        for route in written {
            let (path, mut addresses, section) = match route {
                WrittenRoute::Word(WithPlace { value: RouteWord { path, source }, place }) => {
                    (WithPlace { value: path.clone(), place: place.clone() }, vec![source.clone()], None)
                }
                WrittenRoute::Section(section) => {
                    let route = section.get_ref();
                    let Some(path) = self.said(&route.path) else {
                        let place = self.place(section.span());
                        self.absent(Mistake::new("this route has no path", "write path = \"/api\" below it"), place);
                        continue;
                    };
                    let Some(source) = &route.source else {
                        let place = self.place(section.span());
                        let remedy = "write source = \"http://127.0.0.1:3000\" below it: the address of a server";
                        self.absent(Mistake::new("this route has no source", remedy), place);
                        continue;
                    };
                    (path, vec![source.get_ref().clone()], Some(route))
                }
            };
            if routes.iter().any(|known| known.path == path.value.0) {
                let mistake = Mistake::new(format!("{} is taken by a route before it", path.value.0), "remove one of the two");
                self.wrong(mistake, path.place);
                continue;
            }
            if routes.len() >= ROUTES_MAX {
                let mistake = Mistake::new("these are too many routes", format!("at most {ROUTES_MAX} are possible for a site"));
                self.wrong(mistake, path.place);
                break;
            }
            let layers = [section.map_or(&none, |section| &section.origin), common];
            let origin = self.origin(layers);
            self.more_addresses(&mut addresses, &layers[0].addresses);
            self.refuse_contradictions(layers, &addresses, &origin);
            let flag = |given: Option<&Spanned<bool>>, default: bool| given.map_or(default, |given| *given.get_ref());
            routes.push(Route {
                path: path.value.0,
                addresses,
                strip_prefix: flag(section.and_then(|section| section.strip_prefix.as_ref()), false),
                sends_cookies: true,
                is_cached: flag(section.and_then(|section| section.cache.as_ref()), true),
                origin,
                cache: rules.0.clone(),
                headers: rules.1.clone(),
            });
        }
        routes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_it_is_compared() {
        for (text, path) in [("/api", "/api"), ("/api/", "/api"), ("/.ghost/activitypub", "/.ghost/activitypub"), ("/a%20b", "/a%20b")] {
            assert_eq!(text.parse(), Ok(RoutePath(path.to_owned())));
        }
        for (text, expected) in [
            ("api", "\"/api\""),
            ("/api/*", "\"/api\""),
            ("/api*", "\"/api\""),
            ("/%61pi", "\"/api\""),
            ("/a/../b", "\"/b\""),
            ("/", ""),
            ("", ""),
            ("/a//b", ""),
            ("/a b", ""),
            ("/a?b", ""),
            ("https://a.example/", ""),
        ] {
            assert!(text.parse::<RoutePath>().expect_err(text).meant.unwrap_or_default().contains(expected), "{text}");
        }
    }

    #[test]
    fn a_route_is_one_word() {
        let route = "/api=http://127.0.0.1:3000".parse::<RouteWord>().expect("a route");
        assert_eq!((route.path.0.as_str(), route.source.to_string().as_str()), ("/api", "http://127.0.0.1:3000"));
        for (text, expected) in [
            ("/api=127.0.0.1:3000", "\"/api=http://127.0.0.1:3000\""),
            ("api=http://a", "\"/api=http://a\""),
            ("api/*=127.0.0.1:3000", "\"/api=http://127.0.0.1:3000\""),
            ("/api", ""),
            ("/=http://a", ""),
            ("/api=public", ""),
        ] {
            assert!(text.parse::<RouteWord>().expect_err(text).meant.unwrap_or_default().contains(expected), "{text}");
        }
    }
}
