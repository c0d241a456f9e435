//! Decides which servers may be loaded.
//!
//! A load tester is a weapon in the wrong hands. Whoever runs one against an address of a private network or of this machine loads what is theirs. For any
//! other server they show that it is theirs: a token that stands in a file there, or their word, which is good for a small load. A refusal comes after
//! the name was resolved and before anything was sent to the server; a name with several addresses needs the permission of each.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
};

use crate::{
    fetch::{FetchError, Fetched},
    plan::Connections,
    requests::{Origin, decoded},
    schedule::Schedule,
};

/// The path of the token.
pub const TOKEN_PATH: &str = "/.well-known/seawall-bench";

/// The largest file of tokens.
const TOKEN_FILE_MAX: usize = 64 << 10;

/// The shortest token: nobody guesses it, and no file has it by chance.
const TOKEN_MIN: usize = 16;

/// The most addresses of a name that are asked for the token.
const ADDRESSES_MAX: usize = 16;

/// The load that is permitted on somebody's word: 100 requests a second over 50 connections. That measures a small site whose pages are
/// made on request, which the published "before" figures put at 37 to 137 a second, and it is about what two busy browsers do, so it harms
/// no server that it should not be sent to.
pub const CAP: Cap = Cap { rate: 100, clients: 50 };

/// Requests that a page is taken for, where only the visits are counted.
const REQUESTS_OF_A_PAGE: u32 = 50;

/// Holds what the user has shown or said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permission {
    /// A token that stands at [`TOKEN_PATH`] of each server.
    pub token: Option<String>,
    /// The user says that the servers are theirs.
    pub own_this: bool,
}

/// The most load that is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    /// Requests a second.
    pub rate: u32,
    /// Clients at a time.
    pub clients: u32,
}

/// A permission to load servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permitted {
    /// The addresses of each origin: [`Connections::addresses`]. Empty where a socket of the system or one address stands for all.
    pub addresses: Vec<Vec<SocketAddr>>,
    /// The most load; none: any.
    pub cap: Option<Cap>,
}

/// The reason why a server is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Its name leads nowhere.
    #[error("{0} leads to no address")]
    Resolve(String, #[source] Option<io::Error>),
    /// It is a public one, and nothing shows that it is the user's.
    #[error(
        "{host} is {at} on the internet, and not on this machine or in a private network. Nothing was sent to it.\n  To load it, let \
         {shown}{TOKEN_PATH} answer with a secret of {TOKEN_MIN} characters or more, and give the secret with --token.\n  Or give --i-own-this, for at \
         most {rate} requests a second.",
        at = at(host, *address),
        rate = CAP.rate
    )]
    Public {
        /// The name.
        host: String,
        /// One of its addresses.
        address: IpAddr,
        /// The beginning of the address at which a token is looked for.
        shown: String,
    },
    /// The token is too short or has other characters.
    #[error("a token has at least {TOKEN_MIN} letters, digits or punctuation marks, and no space")]
    Token,
    /// The server does not show the token.
    #[error("{host} at {address} does not show the token: {TOKEN_PATH} {found}")]
    NoToken {
        /// The name.
        host: String,
        /// The address that was asked.
        address: IpAddr,
        /// The text that the server sent instead of the token.
        found: String,
    },
    /// The name has too many addresses.
    #[error("{0} has more than {ADDRESSES_MAX} addresses: name one with --connect-to")]
    Addresses(String),
    /// The load is above what somebody's word is good for.
    #[error("--i-own-this is good for {rate} requests a second and {clients} clients: {0}", rate = CAP.rate, clients = CAP.clients)]
    Load(&'static str),
}

/// Says where a host is, if its name does not say it.
fn at(host: &str, address: IpAddr) -> String {
    if host.parse() == Ok(address) { "an address".to_owned() } else { format!("at {address}") }
}

/// Returns a host as it stands in a URL (RFC 3986 §3.2.2).
/// Returns the beginning of the address at which a token is looked for: over TLS, unless the server is at a port of its own without.
fn token_site(origin: &Origin) -> String {
    let host = in_url(&origin.host);
    match (origin.tls, origin.port) {
        (true, 443) | (false, 80) => format!("https://{host}"),
        (true, port) => format!("https://{host}:{port}"),
        (false, port) => format!("http://{host}:{port}"),
    }
}

fn in_url(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// Resolves a name. It is an argument so that a test can watch what is resolved and what is not.
pub type Resolve<'a> = &'a dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// Asks one address for a target of an origin, at most so many bytes.
pub type Ask<'a> = &'a dyn Fn(&Origin, SocketAddr, &str, usize) -> Result<Fetched, FetchError>;

/// Resolves as the system does.
///
/// # Errors
/// When the name leads nowhere.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// Permits the load of some servers, or refuses it.
///
/// # Errors
/// When a name leads nowhere, or a server is not permitted. Nothing was sent to any server then, unless a token was given.
pub fn permit(
    origins: &[Origin],
    connections: &Connections,
    permission: &Permission,
    resolve: Resolve<'_>,
    ask: Ask<'_>,
) -> Result<Permitted, Refused> {
    if permission.token.as_deref().is_some_and(|token| token.len() < TOKEN_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic())) {
        return Err(Refused::Token);
    }
    if connections.unix.is_some() {
        return Ok(Permitted { addresses: Vec::new(), cap: None });
    }
    let mut addresses = Vec::with_capacity(origins.len());
    for origin in origins {
        let mut of = match (connections.connect_to, origin.host.parse::<IpAddr>()) {
            (Some(address), _) => vec![address],
            (None, Ok(address)) => vec![SocketAddr::new(address, origin.port)],
            (None, Err(_)) => resolve(&origin.host, origin.port).map_err(|error| Refused::Resolve(origin.host.clone(), Some(error)))?,
        };
        of.dedup();
        if of.is_empty() {
            return Err(Refused::Resolve(origin.host.clone(), None));
        }
        addresses.push(of);
    }
    // All that can be said without sending anything is said before anything is sent.
    let public = |of: &[SocketAddr]| of.iter().map(SocketAddr::ip).find(|address| !is_own(*address));
    let mut cap = None;
    for (origin, of) in origins.iter().zip(&addresses) {
        let Some(address) = public(of) else { continue };
        if permission.token.is_none() && !permission.own_this {
            return Err(Refused::Public { host: origin.host.clone(), address, shown: token_site(origin) });
        }
        if of.len() > ADDRESSES_MAX {
            return Err(Refused::Addresses(origin.host.clone()));
        }
        if permission.token.is_none() {
            cap = Some(CAP);
        }
    }
    if let Some(token) = &permission.token {
        for (origin, of) in origins.iter().zip(&addresses) {
            for address in of.iter().filter(|address| !is_own(address.ip())) {
                shows_token(origin, *address, token, connections.connect_to.is_some(), ask)?;
            }
        }
    }
    Ok(Permitted { addresses, cap })
}

/// Looks whether a server shows the token: over TLS, where a certificate says who answers; a server without TLS at the scheme's port is asked as the run
/// asks it.
fn shows_token(origin: &Origin, address: SocketAddr, token: &str, fixed: bool, ask: Ask<'_>) -> Result<(), Refused> {
    let refused = |found: String| Refused::NoToken { host: origin.host.clone(), address: address.ip(), found };
    let secure = Origin { tls: true, port: 443, ..origin.clone() };
    let fetched = if origin.tls || fixed {
        ask(origin, address, TOKEN_PATH, TOKEN_FILE_MAX)
    } else {
        match ask(&secure, SocketAddr::new(address.ip(), 443), TOKEN_PATH, TOKEN_FILE_MAX) {
            Err(FetchError::Connect(_) | FetchError::Tls(_)) => ask(origin, address, TOKEN_PATH, TOKEN_FILE_MAX),
            other => other,
        }
    };
    let fetched = fetched.map_err(|error| refused(format!("was not answered ({error})")))?;
    if fetched.status != 200 {
        return Err(refused(format!("was answered with {}", fetched.status)));
    }
    let fields: Vec<_> = fetched.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_slice())).collect();
    let text = decoded(&fields, &fetched.body, TOKEN_FILE_MAX).map_err(|error| refused(format!("cannot be read: {error}")))?;
    let shown = text.split(|byte| *byte == b'\n').any(|line| line.trim_ascii() == token.as_bytes());
    if shown { Ok(()) } else { Err(refused("has another text".to_owned())) }
}

/// Returns whether an address is one of this machine or of a private network: loopback, RFC 1918, link-local, unique local. The shared addresses of RFC
/// 6598 (100.64.0.0/10) are not: they belong to a provider, whose other customers are there, too.
#[must_use]
pub fn is_own(address: IpAddr) -> bool {
    let own = |address: Ipv4Addr| address.is_loopback() || address.is_private() || address.is_link_local() || address.is_unspecified();
    match address {
        IpAddr::V4(address) => own(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => own(address),
            None => own_v6(address),
        },
    }
}

const fn own_v6(address: Ipv6Addr) -> bool {
    address.is_loopback() || address.is_unicast_link_local() || address.is_unique_local() || address.is_unspecified()
}

impl Cap {
    /// Looks whether a schedule wants more than the cap, so that it is refused before anything is sent. The engines keep to the cap whatever it wants.
    ///
    /// # Errors
    /// When the schedule could load more.
    pub fn check(&self, schedule: &Schedule, pages: bool) -> Result<(), Refused> {
        let of_a_visit = if pages { REQUESTS_OF_A_PAGE } else { 1 };
        let within = |rate: f64| rate * f64::from(of_a_visit) <= f64::from(self.rate);
        let load = |text| Err(Refused::Load(text));
        match schedule {
            Schedule::Closed { clients } if clients.most() > f64::from(self.clients) => load("give fewer clients"),
            Schedule::Rate { rate, .. } | Schedule::Arrivals { rate, .. } if !within(rate.most()) => load("give a lower rate"),
            Schedule::Rate { clients, .. } if *clients > self.clients => load("give fewer clients"),
            Schedule::Closed { .. } | Schedule::Rate { .. } | Schedule::Arrivals { .. } => Ok(()),
            Schedule::Replay { moments } => {
                let most = self.rate as usize;
                let busy = moments.windows(most + 1).any(|window| window[most].at.saturating_sub(window[0].at).as_secs() < 1);
                if busy { load("the log has more requests in a second; replay it more slowly") } else { Ok(()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, time::Duration};

    use super::*;
    use crate::{
        requests::gzip,
        schedule::{Profile, ReplayedLine, Spacing},
    };

    fn origin(host: &str) -> Origin {
        Origin { tls: false, host: host.to_owned(), port: 80 }
    }

    /// A network in which everything that is resolved and asked is written down.
    #[derive(Default)]
    struct Network {
        names: Vec<(&'static str, Vec<&'static str>)>,
        /// The answers of `https://` and `http://` at each address.
        tokens: Vec<(&'static str, Option<&'static str>, Option<&'static str>)>,
        log: RefCell<Vec<String>>,
    }

    impl Network {
        fn permit(&self, host: &str, connections: &Connections, token: Option<&str>, own_this: bool) -> Result<Permitted, Refused> {
            let resolve = |host: &str, port: u16| {
                self.log.borrow_mut().push(format!("resolve {host}"));
                let found = self.names.iter().find(|(name, _)| *name == host).map(|(_, found)| found).ok_or(io::ErrorKind::NotFound)?;
                Ok(found.iter().map(|address| SocketAddr::new(address.parse().expect("valid"), port)).collect())
            };
            let ask = |origin: &Origin, address: SocketAddr, target: &str, _: usize| {
                self.log.borrow_mut().push(format!("ask {address} {origin}{target}"));
                let found = self.tokens.iter().find(|(of, ..)| address.ip().to_string() == *of).expect("a known address");
                let body = if origin.tls { found.1 } else { found.2 };
                let body = body.ok_or_else(|| FetchError::Connect(io::ErrorKind::ConnectionRefused.into()))?;
                let status = if body.is_empty() { 404 } else { 200 };
                Ok(Fetched { status, fields: Vec::new(), body: body.as_bytes().to_vec() })
            };
            let permission = Permission { token: token.map(str::to_owned), own_this };
            permit(&[origin(host)], connections, &permission, &resolve, &ask)
        }
    }

    #[test]
    fn addresses_of_this_machine_and_of_private_networks_are_free() {
        for (address, own) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("172.31.255.255", true),
            ("192.168.1.1", true),
            ("169.254.1.1", true),
            ("0.0.0.0", true),
            ("::1", true),
            ("fd12::1", true),
            ("fe80::1", true),
            ("::ffff:10.0.0.1", true),
            ("172.32.0.1", false),
            ("100.64.0.1", false),
            ("192.0.2.1", false),
            ("8.8.8.8", false),
            ("2001:db8::1", false),
            ("64:ff9b::a00:1", false),
            ("::ffff:8.8.8.8", false),
            ("255.255.255.255", false),
        ] {
            assert_eq!(is_own(address.parse().expect("valid")), own, "{address}");
            let network = Network::default();
            assert_eq!(network.permit(address, &Connections::default(), None, false).is_ok(), own, "{address}");
            assert_eq!(*network.log.borrow(), [""; 0], "an address is neither resolved nor asked");
        }
    }

    #[test]
    fn a_public_server_is_refused_before_anything_is_sent() {
        let network = Network {
            names: vec![
                ("public.example", vec!["192.0.2.1"]),
                ("both.example", vec!["127.0.0.1", "2001:db8::1"]),
                ("home.example", vec!["10.0.0.1"]),
            ],
            ..Network::default()
        };
        let refused = |host| network.permit(host, &Connections::default(), None, false).expect_err("refused").to_string();
        assert!(refused("public.example").contains("public.example is at 192.0.2.1 on the internet"));
        assert!(refused("public.example").contains("Nothing was sent to it"));
        assert!(refused("both.example").contains("2001:db8::1"));
        assert!(refused("nowhere.example").contains("leads to no address"));
        assert!(network.permit("home.example", &Connections::default(), None, false).is_ok());
        assert!(network.log.borrow().iter().all(|line| line.starts_with("resolve ")), "{:?}", network.log.borrow());
    }

    #[test]
    fn the_url_of_a_token_has_brackets_around_an_ipv6_address() {
        let refused = Network::default().permit("2001:db8::1", &Connections::default(), None, false).expect_err("public").to_string();
        assert!(refused.contains("https://[2001:db8::1]/.well-known/seawall-bench"), "{refused}");
    }

    #[test]
    fn a_token_that_is_sent_with_gzip_is_read() {
        let token = "0123456789abcdef";
        let resolve = |_: &str, port: u16| Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))]);
        let permission = Permission { token: Some(token.to_owned()), own_this: false };
        let permitted = |coding: &str, body: Vec<u8>| {
            let ask = |_: &Origin, _: SocketAddr, _: &str, _: usize| {
                Ok(Fetched { status: 200, fields: vec![("content-encoding".to_owned(), coding.into())], body: body.clone() })
            };
            permit(&[origin("a.example")], &Connections::default(), &permission, &resolve, &ask).map_err(|error| error.to_string())
        };
        assert!(permitted("gzip", gzip(token.as_bytes())).is_ok());
        assert!(permitted("identity", token.into()).is_ok());
        assert!(permitted("gzip", gzip(b"another text")).expect_err("no token").contains("another text"));
        assert!(permitted("br", token.into()).expect_err("not known").contains("cannot be read"));
    }

    #[test]
    fn the_address_that_is_connected_to_counts() {
        let network = Network { names: vec![("public.example", vec!["192.0.2.1"])], ..Network::default() };
        let to = |address: &str| Connections { connect_to: Some(address.parse().expect("valid")), ..Connections::default() };
        assert!(network.permit("public.example", &to("127.0.0.1:8080"), None, false).is_ok());
        assert!(network.permit("localhost", &to("192.0.2.1:80"), None, false).is_err());
        let unix = Connections { unix: Some("/run/x".into()), ..Connections::default() };
        assert!(network.permit("public.example", &unix, None, false).is_ok());
        assert_eq!(*network.log.borrow(), [""; 0]);
    }

    #[test]
    fn a_token_must_stand_at_every_address() {
        const TOKEN: &str = "0123456789abcdef";
        let names = vec![("a.example", vec!["192.0.2.1", "192.0.2.2"])];
        for (tokens, permitted) in [
            ([("192.0.2.1", Some(TOKEN), None), ("192.0.2.2", Some("other\n 0123456789abcdef \n"), None)], true),
            ([("192.0.2.1", Some(TOKEN), None), ("192.0.2.2", None, Some(TOKEN))], true),
            ([("192.0.2.1", Some(TOKEN), None), ("192.0.2.2", Some("other"), Some(TOKEN))], false),
            ([("192.0.2.1", Some(TOKEN), None), ("192.0.2.2", Some(""), None)], false),
            ([("192.0.2.1", Some(TOKEN), None), ("192.0.2.2", None, None)], false),
            ([("192.0.2.1", Some(TOKEN), None), ("192.0.2.2", Some("x0123456789abcdef"), None)], false),
        ] {
            let network = Network { names: names.clone(), tokens: tokens.to_vec(), ..Network::default() };
            let result = network.permit("a.example", &Connections::default(), Some(TOKEN), false);
            assert_eq!(result.is_ok(), permitted, "{tokens:?}: {result:?}");
            if let Ok(Permitted { addresses, cap }) = result {
                assert_eq!((addresses[0].len(), cap), (2, None));
            }
        }
        let network = Network { names, ..Network::default() };
        assert!(matches!(network.permit("a.example", &Connections::default(), Some("short"), false), Err(Refused::Token)));
        assert_eq!(*network.log.borrow(), [""; 0]);
    }

    #[test]
    fn somebodys_word_is_good_for_a_small_load() {
        let network = Network { names: vec![("a.example", vec!["192.0.2.1"])], ..Network::default() };
        let permitted = network.permit("a.example", &Connections::default(), None, true).expect("permitted");
        assert_eq!(permitted.cap, Some(CAP));
        assert_eq!(network.permit("127.0.0.1", &Connections::default(), None, true).expect("free").cap, None);
        let rate = |rate, clients| Schedule::Rate { rate: Profile::constant(rate, None), spacing: Spacing::Even, clients };
        let arrivals = |rate| Schedule::Arrivals { rate: Profile::constant(rate, None), spacing: Spacing::Poisson };
        let replay = |every: u64| {
            let moment = |n: u32| ReplayedLine { at: Duration::from_millis(u64::from(n) * every), request: 0, visitor: 0 };
            Schedule::Replay { moments: (0..300).map(moment).collect() }
        };
        for (schedule, pages, allowed) in [
            (rate(100.0, 50), false, true),
            (rate(101.0, 50), false, false),
            (rate(100.0, 51), false, false),
            (arrivals(100.0), false, true),
            (arrivals(3.0), true, false),
            (arrivals(2.0), true, true),
            (Schedule::Closed { clients: Profile::constant(50.0, None) }, false, true),
            (Schedule::Closed { clients: Profile::constant(51.0, None) }, false, false),
            (replay(10), false, true),
            (replay(9), false, false),
        ] {
            assert_eq!(CAP.check(&schedule, pages).is_ok(), allowed, "{schedule:?}");
        }
    }
}
