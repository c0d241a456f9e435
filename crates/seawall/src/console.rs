//! What the admin API shows and commands: snapshots of the server's state, and purges.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use admin::{
    CacheHealth, CertificateState, Console, ExplainCommand, ExplainRefused, Health, ListenerHealth, Metric, OriginHealth, PurgeCommand,
    PurgeDone, PurgeRefused, PurgeTarget, ReloadDone, ReloadRefused, RevokeRefused, SiteHealth, StoredCommand,
};
use edge::Socket;
use http::Uri;
use pipeline::OUTCOMES;
use semantics::{
    Scheme,
    target::{canonical_authority, host_without_port},
};
use store::{DiskState, Hardness, PurgeTarget as StoreTarget};

use tokio::runtime::Builder;

use crate::{
    automatic, explain, metrics,
    plan::{ServerState, SitePlan},
    server::{Reloader, State},
};

/// Stored responses in one list: some 10 MB of JSON.
const STORED_MAX: usize = 50_000;

/// Stored target URIs that are looked at to count what a purge covers: a tenth of a second's work.
const COUNTED_MAX: usize = 200_000;

/// How long a new certificate is waited for; the admin listener ends its connections after a minute.
const REVOKE_WAIT: Duration = Duration::from_secs(50);

/// The console of a running server.
#[derive(Debug)]
pub(crate) struct ServerConsole(Arc<State>);

impl ServerConsole {
    pub(crate) const fn new(state: Arc<State>) -> Self {
        Self(state)
    }

    /// What a target means in keys: every site that serves the host.
    fn targets(&self, command: &PurgeCommand) -> Result<(Vec<StoreTarget>, String), PurgeRefused> {
        let plan = self.0.plan.load();
        match &command.target {
            PurgeTarget::All => Ok((vec![StoreTarget::All], "everything that was stored".to_owned())),
            PurgeTarget::Tag(tag) => {
                let targets = plan.sites.iter().map(|site| StoreTarget::Tag { site: site.id, tag: tag.clone() }).collect();
                Ok((targets, format!("every page with the tag {tag}")))
            }
            PurgeTarget::Host(host) => {
                let (name, prefixes) = host_prefixes(host)?;
                let sites: Vec<&SitePlan> = plan.sites.iter().filter(|site| serves(site, &name)).collect();
                if sites.is_empty() {
                    return Err(PurgeRefused::new(format!("no site is served under {name}")));
                }
                let all = sites.iter().flat_map(|site| prefixes.iter().map(|url| StoreTarget::Prefix { site: site.id, url: url.clone() }));
                Ok((all.collect(), format!("every page of {name}")))
            }
            PurgeTarget::Url(url) | PurgeTarget::Prefix(url) => {
                let (scheme, authority, path) = parts(url)?;
                let key =
                    policy::purge_url(scheme, &authority, &path).ok_or_else(|| PurgeRefused::new(format!("{url} has no valid path")))?;
                let sites: Vec<&SitePlan> = plan.sites.iter().filter(|site| serves(site, &authority)).collect();
                if sites.is_empty() {
                    return Err(PurgeRefused::new(format!("no site is served under {authority}")));
                }
                let is_prefix = matches!(command.target, PurgeTarget::Prefix(_));
                let target = |site: &&SitePlan| {
                    let (site, url) = (site.id, key.clone());
                    if is_prefix { StoreTarget::Prefix { site, url } } else { StoreTarget::Url { site, url } }
                };
                let shown = String::from_utf8_lossy(&key);
                let covered = if is_prefix { format!("every page below {shown}") } else { format!("{shown} in all its forms") };
                Ok((sites.iter().map(target).collect(), covered))
            }
        }
    }
}

fn socket_name(socket: &Socket) -> String {
    match socket {
        Socket::Tcp(address) | Socket::Tls(address) => address.to_string(),
        Socket::Quic(address) => format!("udp:{address}"),
        Socket::Unix(path) => format!("unix:{}", path.display()),
    }
}

fn listener(socket: &Socket) -> ListenerHealth {
    let (address, protocol) = match socket {
        Socket::Tcp(address) => (address.to_string(), "http"),
        Socket::Tls(address) => (address.to_string(), "https"),
        Socket::Quic(address) => (address.to_string(), "http3"),
        Socket::Unix(path) => (format!("unix:{}", path.display()), "http"),
    };
    ListenerHealth { address, protocol: protocol.to_owned() }
}

fn site_health(site: &SitePlan) -> SiteHealth {
    let settings = site.settings();
    SiteHealth {
        name: site.name().to_owned(),
        hosts: site.hosts().to_vec(),
        redirect_from: settings.redirect_from.clone(),
        source: settings.source.to_string(),
        kind: settings.kind.as_str().to_owned(),
        origin_up: site.origin_up(),
    }
}

fn cache_health(state: &State) -> CacheHealth {
    let usage = state.shared.store.usage();
    let settings = &state.plan.load().settings;
    let counted = state.snapshot();
    let of = |names: &[&str]| {
        let counted = OUTCOMES.iter().zip(counted.outcomes).filter(|(name, _)| names.contains(name));
        counted.map(|(_, count)| count).sum::<u64>()
    };
    CacheHealth {
        memory_bytes: usage.bytes,
        memory_bytes_max: settings.cache_memory,
        resources: usage.resources as u64,
        disk: match usage.disk {
            DiskState::Off => "off",
            DiskState::Working => "working",
            DiskState::Full => "full",
            DiskState::ReadOnly => "read-only",
            DiskState::Failing => "failing",
        }
        .to_owned(),
        disk_bytes: usage.disk_bytes,
        disk_bytes_max: settings.disk_tier().map_or(0, |(_, size_max)| size_max),
        disk_objects: usage.disk_objects,
        requests: of(&["hit", "updating", "stale", "revalidated", "expired", "miss", "bypass"]),
        hits: of(&["hit", "updating", "stale"]),
    }
}

fn parts(url: &str) -> Result<(Scheme, String, String), PurgeRefused> {
    let refused = || PurgeRefused::new(format!("{url} is not an address; write it as http://blog.example.org/hello/"));
    let uri: Uri = url.parse().map_err(|_| refused())?;
    let scheme = match uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        _ => return Err(refused()),
    };
    let authority = uri.authority().ok_or_else(refused)?.as_str().to_owned();
    Ok((scheme, authority, uri.path().to_owned()))
}

/// What the keys of a host begin with: with a port, that port's alone; without one, every port's.
fn host_prefixes(host: &str) -> Result<(String, Vec<Vec<u8>>), PurgeRefused> {
    let refused = || PurgeRefused::new(format!("{host} is no host name; write it without a scheme and a path, such as blog.example.org"));
    let authority: http::uri::Authority = host.parse().map_err(|_| refused())?;
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return Err(refused());
    }
    let spelling = |scheme| canonical_authority(scheme, authority.as_str()).into_owned();
    let (name, over_https) = (spelling(Scheme::Http), spelling(Scheme::Https));
    let prefixes = if authority.port().is_none() {
        vec![format!("{name}/"), format!("{name}:")]
    } else if name == over_https {
        vec![format!("{name}/")]
    } else {
        // A scheme's own port is not in its keys, and the other one's is.
        let (with_port, bare) = if name.len() > over_https.len() { (&name, &over_https) } else { (&over_https, &name) };
        vec![format!("{with_port}/"), format!("{bare}/")]
    };
    Ok((name, prefixes.into_iter().map(String::into_bytes).collect()))
}

fn serves(site: &SitePlan, authority: &str) -> bool {
    let authority = canonical_authority(Scheme::Http, authority);
    let host = host_without_port(&authority);
    site.hosts().is_empty()
        || site.hosts().iter().any(|name| match name.strip_prefix('*') {
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            None => name == host,
        })
}

impl Console for ServerConsole {
    fn metrics(&self) -> Vec<Metric> {
        metrics::all(&self.0)
    }

    fn health(&self) -> Health {
        let state = &self.0;
        let plan = state.plan.load();
        Health {
            ready: !state.draining.load(Ordering::Relaxed),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: state.began.elapsed(),
            workers: state.counters.len(),
            listening: state.listening.iter().map(socket_name).collect(),
            listeners: state.listening.iter().map(listener).collect(),
            trusts_loopback: plan.settings.server.trusted_proxies.iter().any(|net| net.contains(&IpAddr::from(Ipv4Addr::LOCALHOST))),
            sites: plan.sites.iter().map(site_health).collect(),
            cache: cache_health(state),
        }
    }

    fn origins(&self) -> Vec<OriginHealth> {
        let plan = self.0.plan.load();
        let mut origins = Vec::new();
        for site in &plan.sites {
            for ServerState { route, addresses, .. } in site.servers() {
                let of = |(address, up)| OriginHealth { site: site.name().to_owned(), route: route.clone(), address, up };
                origins.extend(addresses.into_iter().map(of));
            }
        }
        origins
    }

    fn reload(&self) -> Result<ReloadDone, ReloadRefused> {
        self.0.reload.get().map_or(Err(ReloadRefused::Busy), Reloader::reload)
    }

    fn purge(&self, command: &PurgeCommand) -> Result<PurgeDone, PurgeRefused> {
        let (targets, covered) = self.targets(command)?;
        let hardness = if command.hard { Hardness::Hard } else { Hardness::Soft };
        // Before it: afterwards all of it is purged.
        let counted = self.0.shared.covered(&targets, COUNTED_MAX);
        let mut done = PurgeDone {
            generation: 0,
            variants: counted.map(|counted| counted.responses),
            complete: counted.is_some_and(|counted| counted.complete),
            covered,
        };
        for target in &targets {
            done.generation = self.0.shared.purge(target, hardness).generation.number();
        }
        tracing::info!(covered = %done.covered, hard = command.hard, "purged");
        Ok(done)
    }

    fn explain(&self, command: &ExplainCommand) -> Result<serde_json::Value, ExplainRefused> {
        explain::answer(&self.0, command)
    }

    fn stored(&self, command: &StoredCommand) -> serde_json::Value {
        let host = command.host.as_deref().map(|host| canonical_authority(Scheme::Http, host).into_owned());
        let wanted = |key: &policy::ShownKey| host.as_deref().is_none_or(|host| key.host == host || host_without_port(&key.host) == host);
        serde_json::to_value(self.0.shared.stale(STORED_MAX, wanted)).unwrap_or_default()
    }

    fn certificates(&self) -> Vec<CertificateState> {
        let of_files = automatic::of_files(self.0.tls.certificates());
        let kept = self.0.keeper.load_full().map(|keeper| automatic::kept(&keeper, self.0.shared.clock.now())).unwrap_or_default();
        let mut all: Vec<CertificateState> = kept.into_iter().chain(of_files).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn revoke(&self, name: &str) -> Result<CertificateState, RevokeRefused> {
        let unknown = || RevokeRefused::Unknown(name.to_owned());
        let name = name.to_ascii_lowercase();
        let keeper = self.0.keeper.load_full().ok_or_else(unknown)?;
        let state = || automatic::kept(&keeper, self.0.shared.clock.now()).into_iter().find(|state| state.name == name);
        state().filter(|state| state.not_after.is_some()).ok_or_else(unknown)?;
        let runtime = Builder::new_current_thread().enable_time().build().map_err(|error| RevokeRefused::Failed(error.to_string()))?;
        let replaced = runtime.block_on(async { tokio::time::timeout(REVOKE_WAIT, keeper.replace(&name)).await });
        replaced.map_err(|_| RevokeRefused::Slow)?.map_err(|failure| RevokeRefused::Failed(failure.to_string()))?;
        state().ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_everything_under_its_name() {
        let cases = [
            ("Blog.example", &["blog.example/", "blog.example:"][..]),
            ("blog.example:8080", &["blog.example:8080/"]),
            // Under http the key of port 80 has no port; under https it has.
            ("blog.example:80", &["blog.example:80/", "blog.example/"]),
            ("blog.example.:0443", &["blog.example:443/", "blog.example/"]),
            ("Blog.example.", &["blog.example/", "blog.example:"]),
            ("[2001:DB8::1]", &["[2001:db8::1]/", "[2001:db8::1]:"]),
        ];
        for (host, expected) in cases {
            let (_, prefixes) = host_prefixes(host).expect(host);
            assert_eq!(prefixes, expected.iter().map(|prefix| prefix.as_bytes().to_vec()).collect::<Vec<_>>(), "{host}");
        }
        for host in ["", "https://blog.example", "blog.example/hello", "me@blog.example", "a b"] {
            let refused = host_prefixes(host).expect_err(host).to_string();
            assert!(refused.contains("is no host name"), "{refused}");
        }
    }
}
