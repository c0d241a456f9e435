//! Gets ready for a run: permits its servers, reads the sitemap, and makes the set of requests.
//!
//! The order matters: nothing is sent to a server before it is permitted.

use std::net::SocketAddr;

use crate::{
    fetch::Fetcher,
    permission::{Ask, Cap, Permission, Permitted, Refused, Resolve, permit, resolve},
    plan::Connections,
    requests::{Origin, RequestOptions, RequestOptionsError, RequestSet, SITEMAP_MAX, Sitemap, SitemapError, Url, UrlError, read_sitemap},
};

/// Holds what a run needs of the servers.
#[derive(Debug)]
pub struct Prepared {
    /// The requests to make.
    pub requests: RequestSet,
    /// The addresses of the servers: [`Connections::addresses`].
    pub addresses: Vec<Vec<SocketAddr>>,
    /// The most load that is permitted; none: any.
    pub cap: Option<Cap>,
    /// The sitemap that was read; its URLs are part of the requests.
    pub sitemap: Option<Sitemap>,
}

/// The reason why a run cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Says that what is to be asked cannot be asked.
    #[error(transparent)]
    Asking(#[from] RequestOptionsError),
    /// The sitemap's URL is not valid.
    #[error("the sitemap: {0}")]
    Url(UrlError),
    /// A server is not permitted.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The sitemap cannot be read.
    #[error(transparent)]
    Sitemap(#[from] SitemapError),
}

/// Permits the servers of `asking` and of the sitemap, reads the sitemap, and makes the set of requests.
///
/// # Errors
/// When what is to be asked is wrong, a server is not permitted, or the sitemap cannot be read.
pub fn prepare(
    asking: &RequestOptions,
    sitemap: Option<&str>,
    connections: &Connections,
    permission: &Permission,
) -> Result<Prepared, PrepareError> {
    let fetcher = Fetcher::new(connections);
    let ask = |origin: &Origin, address: SocketAddr, target: &str, most: usize| fetcher.get(origin, &[address], target, most);
    prepare_with(asking, sitemap, connections, permission, &resolve, &ask)
}

/// Prepares a run like [`prepare`], with another way to resolve names and to ask, so that a test can watch both.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_with(
    asking: &RequestOptions,
    sitemap: Option<&str>,
    connections: &Connections,
    permission: &Permission,
    resolve: Resolve<'_>,
    ask: Ask<'_>,
) -> Result<Prepared, PrepareError> {
    let map = sitemap.map(Url::read).transpose().map_err(PrepareError::Url)?;
    let mut origins = asking.origins()?;
    if let Some(map) = map.as_ref().filter(|map| !origins.contains(&map.origin)) {
        origins.push(map.origin.clone());
    }
    let Permitted { addresses, cap } = permit(&origins, connections, permission, resolve, ask)?;
    let of =
        |origin: &Origin| origins.iter().position(|other| other == origin).and_then(|at| addresses.get(at)).cloned().unwrap_or_default();
    let mut asking = asking.clone();
    let sitemap = match &map {
        None => None,
        Some(map) => {
            // A socket of the system has no address, and needs none.
            let address = of(&map.origin).first().copied().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], map.origin.port)));
            let found = read_sitemap(map, &|url| ask(&url.origin, address, &url.target, SITEMAP_MAX))?;
            asking.found.clone_from(&found.urls);
            Some(found)
        }
    };
    let requests = asking.set()?;
    let addresses = if addresses.is_empty() { addresses } else { requests.origins.iter().map(of).collect() };
    Ok(Prepared { requests, addresses, cap, sitemap })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::fetch::Fetched;

    fn prepare(
        urls: &[&str],
        sitemap: Option<&str>,
        connections: &Connections,
        log: &RefCell<Vec<String>>,
    ) -> Result<Prepared, PrepareError> {
        let asking = RequestOptions { urls: urls.iter().map(|url| (*url).to_owned()).collect(), ..RequestOptions::default() };
        let resolve = |host: &str, port: u16| {
            log.borrow_mut().push(format!("resolve {host}"));
            let address = if host == "public.example" { [192, 0, 2, 1] } else { [10, 0, 0, 1] };
            Ok(vec![SocketAddr::from((address, port))])
        };
        let ask = |origin: &Origin, address: SocketAddr, target: &str, _: usize| {
            log.borrow_mut().push(format!("ask {address} for {origin}{target}"));
            let body = b"<urlset><url><loc>https://blog.example/a</loc></url></urlset>".to_vec();
            Ok(Fetched { status: 200, fields: Vec::new(), body })
        };
        prepare_with(&asking, sitemap, connections, &Permission::default(), &resolve, &ask)
    }

    #[test]
    fn a_sitemap_is_asked_at_the_address_that_was_permitted() {
        let log = RefCell::default();
        let prepared =
            prepare(&["http://home.example/"], Some("http://home.example/map.xml"), &Connections::default(), &log).expect("permitted");
        assert_eq!(*log.borrow(), ["resolve home.example", "ask 10.0.0.1:80 for http://home.example/map.xml"]);
        let targets: Vec<_> = prepared.requests.requests.iter().map(|request| request.target.as_str()).collect();
        assert_eq!((targets.as_slice(), prepared.requests.origins.len()), (["/", "/a"].as_slice(), 1));
        assert_eq!(prepared.addresses, [[SocketAddr::from(([10, 0, 0, 1], 80))]]);
        assert_eq!(prepared.sitemap.map(|sitemap| sitemap.elsewhere), Some(1));
    }

    #[test]
    fn nothing_is_sent_to_a_server_that_is_refused() {
        for (urls, sitemap) in [
            (&["http://public.example/"][..], None),
            (&["http://home.example/", "https://public.example/"], Some("http://home.example/map.xml")),
            (&["http://home.example/"], Some("http://public.example/map.xml")),
            (&[], Some("http://192.0.2.1/map.xml")),
        ] {
            let log = RefCell::default();
            let error = prepare(urls, sitemap, &Connections::default(), &log).expect_err("refused").to_string();
            assert!(error.contains("Nothing was sent to it"), "{error}");
            assert!(log.borrow().iter().all(|line| line.starts_with("resolve ")), "{:?}", log.borrow());
        }
    }

    #[test]
    fn what_is_wrong_is_told_before_any_name_is_resolved() {
        for (urls, sitemap) in [(&["http://h/{x}"][..], Some("nonsense")), (&["nonsense"], None)] {
            let log = RefCell::default();
            assert!(prepare(urls, sitemap, &Connections::default(), &log).is_err());
            assert_eq!(*log.borrow(), [""; 0]);
        }
    }
}
