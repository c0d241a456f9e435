//! Every metric: its name, what it means, what to do when it moves, and where its values come from.
//!
//! This table is the only place where metrics are described. `/metrics` is made from it, and a test holds that `doc/metrics.md` says the
//! same. Labels have bounded values: sites, addresses and certificate names come from the configuration, at most 256 names
//! of cookies from the origins, everything else from lists in the program.

use std::sync::Arc;

use admin::{
    Histogram, Metric,
    MetricKind::{self, Counter, Gauge},
    Sample,
};
use pipeline::{BUCKET_MICROS, CookieCount, Durations, LOGIN_REFUSALS, OUTCOMES, PROOF_RESULTS, SiteSnapshot, Snapshot};
use semantics::Timestamp;

use crate::{
    own_process,
    plan::{Plan, SitePlan},
    server::State,
    told,
    writer::Sink,
};

/// The classes of status codes, in the order of [`Snapshot::responses`].
const CLASSES: [&str; 6] = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The state from which all metrics of one answer are read.
pub(crate) struct Seen<'a> {
    state: &'a State,
    plan: Arc<Plan>,
    counted: Snapshot,
    usage: store::Usage,
    certificates: Vec<acme::Status>,
}

impl<'a> Seen<'a> {
    fn of(state: &'a State) -> Self {
        Self {
            state,
            plan: state.plan.load_full(),
            counted: state.snapshot(),
            usage: state.shared.store.usage(),
            certificates: state.keeper.load().as_ref().map(|keeper| keeper.status(state.shared.clock.now())).unwrap_or_default(),
        }
    }

    /// Returns every configured site with its counters.
    fn sites(&self) -> impl Iterator<Item = (&SitePlan, SiteSnapshot)> {
        self.plan.sites.iter().map(|site| (site, self.counted.sites.get(&site.id).cloned().unwrap_or_default()))
    }
}

/// Returns what was counted of each site's cookies, where it is more than nothing.
fn cookies(seen: &Seen<'_>, of: impl Fn(&CookieCount) -> u64) -> Vec<Sample> {
    let of_site = |site: &SitePlan| {
        let counts = seen.state.shared.cookies(site.id).into_iter().map(|(name, count)| (name.to_string(), of(&count)));
        counts.filter(|(_, n)| *n > 0).map(|(name, n)| Sample::labelled("site", site.name(), n).and("cookie", name)).collect::<Vec<_>>()
    };
    seen.plan.sites.iter().flat_map(of_site).collect()
}

/// A group of metrics: one heading of the page in `doc/`.
pub(crate) struct Group {
    #[cfg_attr(not(test), expect(dead_code, reason = "for the page in doc, which a test makes of it"))]
    pub(crate) title: &'static str,
    pub(crate) metrics: &'static [Definition],
}

/// The definition of one metric.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) kind: MetricKind,
    /// The names of its labels.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the page in doc, which a test makes of it"))]
    pub(crate) labels: &'static [&'static str],
    /// The meaning in one sentence; `# HELP` has the same text.
    pub(crate) help: &'static str,
    /// The advice for operators.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the page in doc, which a test makes of it"))]
    pub(crate) advice: &'static str,
    samples: fn(&Seen<'_>) -> Vec<Sample>,
}

/// Returns all metrics with their present values.
pub(crate) fn all(state: &State) -> Vec<Metric> {
    let seen = Seen::of(state);
    let definitions = GROUPS.iter().flat_map(|group| group.metrics);
    definitions.map(|of| Metric::new(of.name, of.help, of.kind, (of.samples)(&seen))).collect()
}

/// The metrics, in the order of the page.
pub(crate) static GROUPS: [Group; 10] = [
    Group {
        title: "Requests and responses",
        metrics: &[
            Definition {
                name: "seawall_requests_total",
                kind: Counter,
                labels: &["site", "cache"],
                help: "Requests that have ended, by site and by what the cache did.",
                advice: "The share of `hit` is the hit ratio. If it falls, look at `miss`, `expired` and `bypass`, and ask `seawall explain` about one such \
                         address. `stale` rises while an origin fails. `refused` and `none` with an empty `site` are requests that never reached a site.",
                samples: |seen| {
                    let of_site = |name: &str, of: &SiteSnapshot| {
                        let counts = OUTCOMES.iter().zip(of.outcomes).filter(|(outcome, _)| **outcome != "refused");
                        counts.map(|(outcome, n)| Sample::labelled("site", name, n).and("cache", *outcome)).collect::<Vec<_>>()
                    };
                    let siteless =
                        OUTCOMES.iter().zip(seen.counted.siteless.outcomes).filter(|(outcome, _)| ["refused", "none"].contains(outcome));
                    let siteless = siteless.map(|(outcome, n)| Sample::labelled("site", "", n).and("cache", *outcome));
                    seen.sites().flat_map(|(site, of)| of_site(site.name(), &of)).chain(siteless).collect()
                },
            },
            Definition {
                name: "seawall_request_duration_seconds",
                kind: MetricKind::Histogram,
                labels: &["cache"],
                help: "Time from a request's arrival until its response was handed to the system or its client had left.",
                advice: "Compare outcomes: `hit` should stay below a millisecond or so. It rises with the processor's load and with clients that read slowly; \
                         `miss`, `expired` and `bypass` follow the origin. WebSockets count under `bypass` when they end.",
                samples: |seen| {
                    let timed = OUTCOMES.iter().zip(&seen.counted.durations).filter(|(outcome, _)| **outcome != "refused");
                    timed.map(|(outcome, durations)| Sample::labelled("cache", *outcome, histogram(durations))).collect()
                },
            },
            Definition {
                name: "seawall_responses_total",
                kind: Counter,
                labels: &["status"],
                help: "Responses, by class of status; other means that the connection was closed without one.",
                advice: "`5xx` should be rare: the log names the targets, and Seawall's own log the origin's error. `4xx` rises with scanners and with broken links.",
                samples: |seen| labelled("status", &CLASSES, &seen.counted.responses),
            },
            Definition {
                name: "seawall_response_body_bytes_total",
                kind: Counter,
                labels: &[],
                help: "Bytes of content sent, without heads and encryption.",
                advice: "Shows the traffic. If it rises much more than the requests, look for large files in the log.",
                samples: |seen| one(seen.counted.body_bytes),
            },
            Definition {
                name: "seawall_coded_responses_total",
                kind: Counter,
                labels: &["coding"],
                help: "Responses sent with a content coding.",
                advice: "If it stays at zero, `[compress]` is off, or the media types of the site are not in `types`.",
                samples: |seen| labelled("coding", &["gzip", "br", "zstd"], &seen.counted.coded),
            },
            Definition {
                name: "seawall_early_hints_total",
                kind: Counter,
                labels: &[],
                help: "Requests whose browser got early hints while the origin was asked for the page.",
                advice: "Nothing to do. It stays at zero where `early_hints` is off, and rises with misses of pages over HTTP/2 and 3.",
                samples: |seen| one(seen.counted.hinted),
            },
            Definition {
                name: "seawall_direct_total",
                kind: Counter,
                labels: &[],
                help: "Requests that went past the cache because `seawall bench --direct` had them signed.",
                advice: "Nothing to do. They count as `bypass`, too: leave them out of the hit ratio.",
                samples: |seen| one(seen.counted.direct),
            },
            Definition {
                name: "seawall_collapsed_total",
                kind: Counter,
                labels: &[],
                help: "Requests that shared the fetch of another request.",
                advice: "Nothing to do: these requests did not reach the origin. A jump means that a crowd asked for something that was not stored.",
                samples: |seen| one(seen.counted.collapsed),
            },
            Definition {
                name: "seawall_aborted_total",
                kind: Counter,
                labels: &[],
                help: "Responses that did not reach their end: the client left, or the origin broke off.",
                advice: "Some are normal, because people close pages. If the log has many lines with `\"complete\":false` and an `origin_time`, the origin \
                         probably breaks off.",
                samples: |seen| one(seen.counted.aborted),
            },
            Definition {
                name: "seawall_logins_refused_total",
                kind: Counter,
                labels: &["site", "reason"],
                help: "Attempts to sign in at the site that were answered with 429 instead of by its origin.",
                advice: "`address`: too many wrong passwords came from one address; Seawall's log names it. `busy`: more came at once than have a place. Both rise while \
                         somebody guesses passwords. If people are turned away, raise `login_attempts` or `login_concurrency` in `[limits]`.",
                samples: |seen| {
                    let of_site = |name: &str, of: &SiteSnapshot| {
                        let counts = LOGIN_REFUSALS.iter().zip(of.logins_refused);
                        counts.map(|(reason, n)| Sample::labelled("site", name, n).and("reason", *reason)).collect::<Vec<_>>()
                    };
                    seen.sites().flat_map(|(site, of)| of_site(site.name(), &of)).collect()
                },
            },
            Definition {
                name: "seawall_refused_total",
                kind: Counter,
                labels: &["reason"],
                help: "Messages and connections refused before they were a request, by reason.",
                advice: "Malformed messages, floods and slow heads. A steady trickle comes from scanners. If real clients are refused, the reason says which of \
                         the `[limits]` to raise.",
                samples: |seen| seen.counted.refusals.iter().map(|(reason, count)| Sample::labelled("reason", *reason, *count)).collect(),
            },
        ],
    },
    Group {
        title: "Origins",
        metrics: &[
            Definition {
                name: "seawall_origin_up",
                kind: Gauge,
                labels: &["site", "route", "address"],
                help: "1: the address of the origin is in use; 0: it counts as down.",
                advice: "At 0, look at the server at `address`; Seawall's log says what went wrong. If there is one address, it is at 0 after a failed attempt to \
                         connect. One of several is at 0 after several failed attempts in a row; the others are then asked first. An address that nobody asks keeps its \
                         last value. `route` is empty for the server of the whole site.",
                samples: |seen| {
                    let mut samples = Vec::new();
                    for site in &seen.plan.sites {
                        for server in site.servers() {
                            let route = server.route.as_deref().unwrap_or_default();
                            for (address, up) in &server.addresses {
                                let sample = Sample::labelled("site", site.name(), u64::from(*up));
                                samples.push(sample.and("route", route).and("address", address.as_str()));
                            }
                        }
                    }
                    samples
                },
            },
            Definition {
                name: "seawall_cron_runs_total",
                kind: Counter,
                labels: &["site", "result"],
                help: "Runs of WordPress's schedule (`wp-cron.php`) by Seawall: `done`, or `failed`.",
                advice: "`done` grows once a minute for each WordPress, unless `cron` in `[wordpress]` says otherwise. If `failed` grows, scheduled posts stay away: \
                         `seawall status` says why.",
                samples: |seen| {
                    let noted = seen.state.schedules.lock();
                    let of = |name: &String, result: &'static str, value: u64| Sample::labelled("site", name, value).and("result", result);
                    let samples = noted.iter().flat_map(|(name, noted)| [of(name, "done", noted.runs), of(name, "failed", noted.failures)]);
                    samples.collect()
                },
            },
            Definition {
                name: "seawall_origin_requests_total",
                kind: Counter,
                labels: &["site"],
                help: "Requests sent to the origin, with and without a response. A folder and a blog are origins, too.",
                advice: "This is the load that the cache does not take from the origin. If it rises while `seawall_requests_total` does not, less is stored than before, or \
                         something was purged.",
                samples: |seen| {
                    let total = |of: &SiteSnapshot| of.origin_durations.count() + of.origin_failures;
                    seen.sites().map(|(site, of)| Sample::labelled("site", site.name(), total(&of))).collect()
                },
            },
            Definition {
                name: "seawall_origin_failures_total",
                kind: Counter,
                labels: &["site"],
                help: "Requests to the origin that got no response.",
                advice: "Should not rise. If it rises, the origin is down, too slow, or `queue` is full: Seawall's log names the error and the target.",
                samples: |seen| seen.sites().map(|(site, of)| Sample::labelled("site", site.name(), of.origin_failures)).collect(),
            },
            Definition {
                name: "seawall_two_visitor_proofs_total",
                kind: Counter,
                labels: &["site", "result"],
                help: "Pages that were to be fetched a second time before they are stored, by site and by what came of it.",
                advice: "`same` and `warm-up` (only the first response was different) are stored. `differs` is not: `seawall explain` shows for the address what two \
                         visitors were given. If the difference does not matter, set `two_visitor_proof = false`. `failed` (the origin failed at the second time) is stored \
                         without a proof, unless a difference was seen before. `skipped` (there was no time for it, or the page is longer than 2 MiB) is \
                         stored only if the page was proven before; `overtaken` is not stored, because the page was purged meanwhile. It stays at zero where `two_visitor_proof` is off.",
                samples: |seen| {
                    let of_site = |name: &str, of: &SiteSnapshot| {
                        let counts = PROOF_RESULTS.iter().zip(of.proofs);
                        counts.map(|(result, n)| Sample::labelled("site", name, n).and("result", *result)).collect::<Vec<_>>()
                    };
                    seen.sites().flat_map(|(site, of)| of_site(site.name(), &of)).collect()
                },
            },
            Definition {
                name: "seawall_responses_not_stored_for_cookie_total",
                kind: Counter,
                labels: &["site", "cookie"],
                help: "Responses that were not stored because they set a cookie, by site and by the cookie that they set.",
                advice: "A cookie that grows as fast as the misses keeps the site from being cached: `seawall explain` says whose it is. If its readers do not need it, name it in `drop_set_cookies`. \
                         The names come from the origin. There are at most 256 of them; the others are counted as `(another)`.",
                samples: |seen| cookies(seen, |count| count.answers),
            },
            Definition {
                name: "seawall_requests_passed_by_cookie_total",
                kind: Counter,
                labels: &["site", "cookie"],
                help: "Requests that passed because of a cookie, by site and by the cookie, as the rules of the site's kind name it.",
                advice: "Readers who have signed in or have something in a cart. If nearly all of a site's readers pass by one cookie, a plugin gives it to everybody.",
                samples: |seen| cookies(seen, |count| count.requests),
            },
            Definition {
                name: "seawall_origin_first_byte_seconds",
                kind: MetricKind::Histogram,
                labels: &["site"],
                help: "Time from a request to the origin until the head of its response, including the wait for its turn.",
                advice: "How slow the origin is. If it rises together with `seawall_origin_waiting`, the origin gets more at once than it can do: lower `concurrency`, store \
                         more, or give it more power.",
                samples: |seen| {
                    seen.sites().map(|(site, of)| Sample::labelled("site", site.name(), histogram(&of.origin_durations))).collect()
                },
            },
            Definition {
                name: "seawall_origin_in_flight",
                kind: Gauge,
                labels: &["site"],
                help: "Requests that the origin works on now.",
                advice: "At most `[origin] concurrency`. If it stays there, further requests wait.",
                samples: |seen| loads(seen, |(in_flight, _)| in_flight),
            },
            Definition {
                name: "seawall_origin_waiting",
                kind: Gauge,
                labels: &["site"],
                help: "Requests that wait for their turn at the origin.",
                advice: "Should be 0 most of the time. Beyond `[origin] queue`, and after `queue_timeout`, visitors get a stale copy or 503.",
                samples: |seen| loads(seen, |(_, waiting)| waiting),
            },
        ],
    },
    Group {
        title: "Connections",
        metrics: &[
            Definition {
                name: "seawall_connections",
                kind: Gauge,
                labels: &[],
                help: "Open connections of clients.",
                advice: "Compare with `seawall_connections_limit`. Slow clients and scanners keep connections open; `[limits]` says for how long they may.",
                samples: |seen| one(seen.state.gauges.open() as u64),
            },
            Definition {
                name: "seawall_connections_limit",
                kind: Gauge,
                labels: &[],
                help: "Open connections that are allowed: `connections` in `[limits]`.",
                advice: "Nothing to do; for comparison.",
                samples: |seen| one(seen.plan.settings.limits.connections as u64),
            },
            Definition {
                name: "seawall_connections_refused_total",
                kind: Counter,
                labels: &[],
                help: "Connections that were refused, because there were too many in all or from one address.",
                advice: "If it rises with honest visitors (many people behind one address), raise `connections_per_address`, or name their proxy in `trusted_proxies`.",
                samples: |seen| one(seen.state.gauges.refused() as u64),
            },
        ],
    },
    Group {
        title: "The cache in memory",
        metrics: &[
            Definition {
                name: "seawall_store_bytes",
                kind: Gauge,
                labels: &[],
                help: "Bytes of stored responses in memory, overhead included.",
                advice: "It grows to `seawall_store_limit_bytes` and stays there; that is normal.",
                samples: |seen| one(seen.usage.bytes),
            },
            Definition {
                name: "seawall_store_limit_bytes",
                kind: Gauge,
                labels: &[],
                help: "Bytes that stored responses may take in memory: `memory` in `[cache]`.",
                advice: "Nothing to do; for comparison.",
                samples: |seen| one(seen.state.store_max.0),
            },
            Definition {
                name: "seawall_store_resources",
                kind: Gauge,
                labels: &[],
                help: "Addresses (target URIs) for which something is stored in memory.",
                advice: "If it rises all the time, addresses with random queries are being stored: see `ignore_query`.",
                samples: |seen| one(seen.usage.resources as u64),
            },
            Definition {
                name: "seawall_store_evicted_total",
                kind: Counter,
                labels: &[],
                help: "Stored responses that were removed from memory to make room.",
                advice: "If it rises steadily and the hit ratio is low, raise `memory` in `[cache]`.",
                samples: |seen| one(seen.usage.evicted),
            },
            Definition {
                name: "seawall_store_growing_bytes",
                kind: Gauge,
                labels: &[],
                help: "Bytes of responses that are still arriving from origins.",
                advice: "Follows the misses. If it stays high, large responses arrive slowly.",
                samples: |seen| one(seen.usage.growing_bytes),
            },
            Definition {
                name: "seawall_store_flights",
                kind: Gauge,
                labels: &[],
                help: "Fetches under way that other requests may share.",
                advice: "Follows the misses. If it stays high, the origin is slow.",
                samples: |seen| one(seen.usage.flights as u64),
            },
            Definition {
                name: "seawall_store_followers",
                kind: Gauge,
                labels: &[],
                help: "Requests that wait for the beginning of such a fetch.",
                advice: "A crowd waits for one page. If it stays high, the origin is slow for a page that many want.",
                samples: |seen| one(seen.usage.followers as u64),
            },
        ],
    },
    Group {
        title: "The cache on disk",
        metrics: &[
            Definition {
                name: "seawall_disk_up",
                kind: Gauge,
                labels: &[],
                help: "1: the disk takes stored responses; 0: it is off, full or failing.",
                advice: "At 0 although `[cache] disk` is not \"0\": Seawall's log says why. Pages are then kept in memory alone, and a restart forgets them.",
                samples: |seen| one(u64::from(seen.usage.disk == store::DiskState::Working)),
            },
            Definition {
                name: "seawall_disk_bytes",
                kind: Gauge,
                labels: &[],
                help: "Bytes of stored responses on the disk.",
                advice: "It grows to `seawall_disk_limit_bytes` and stays there; that is normal.",
                samples: |seen| one(seen.usage.disk_bytes),
            },
            Definition {
                name: "seawall_disk_limit_bytes",
                kind: Gauge,
                labels: &[],
                help: "Bytes that stored responses may take on the disk: `disk` in `[cache]`; 0: there is no disk tier.",
                advice: "Nothing to do; for comparison.",
                samples: |seen| one(seen.state.store_max.1),
            },
            Definition {
                name: "seawall_disk_objects",
                kind: Gauge,
                labels: &[],
                help: "Stored responses on the disk.",
                advice: "Nothing to do.",
                samples: |seen| one(seen.usage.disk_objects),
            },
            Definition {
                name: "seawall_disk_loading",
                kind: Gauge,
                labels: &[],
                help: "1: the folder is still being listed after a start; 0: it is known.",
                advice: "Is 1 for some seconds after a start. If it stays 1, the disk is very slow.",
                samples: |seen| one(u64::from(seen.usage.disk_is_loading)),
            },
            Definition {
                name: "seawall_disk_writes_total",
                kind: Counter,
                labels: &[],
                help: "Responses written to the disk.",
                advice: "Follows the misses.",
                samples: |seen| one(seen.usage.disk_writes),
            },
            Definition {
                name: "seawall_disk_loads_total",
                kind: Counter,
                labels: &[],
                help: "Responses read back from the disk into memory.",
                advice: "High after a restart. If it stays high, `memory` is smaller than what people read.",
                samples: |seen| one(seen.usage.disk_loads),
            },
            Definition {
                name: "seawall_disk_write_failures_total",
                kind: Counter,
                labels: &[],
                help: "Responses that the disk did not take.",
                advice: "The disk is full or failing: see Seawall's log.",
                samples: |seen| one(seen.usage.disk_write_failures),
            },
            Definition {
                name: "seawall_disk_dropped_total",
                kind: Counter,
                labels: &[],
                help: "Responses that were not written, because too many waited or the disk had just failed.",
                advice: "The disk is slower than what is fetched. They stay in memory; only a restart would forget them.",
                samples: |seen| one(seen.usage.disk_dropped),
            },
            Definition {
                name: "seawall_disk_damaged_total",
                kind: Counter,
                labels: &[],
                help: "Files that were damaged or not Seawall's, and were removed.",
                advice: "Some are normal after a power loss. If it rises at other times, check the disk, and check that nothing else writes to the folder.",
                samples: |seen| one(seen.usage.disk_damaged),
            },
        ],
    },
    Group {
        title: "Purging and refilling",
        metrics: &[
            Definition {
                name: "seawall_purges_total",
                kind: Counter,
                labels: &["by"],
                help: "Purges that were carried out, by who ordered them: `operator`, `plugin` (a purge request), `origin` (a field of its response), `webhook` (its origin sent one), `unsafe-method` (a POST or the like was answered), `folder` (its files changed), `reload`, `watch` (a Ghost or a WordPress was upgraded, or something was published past Seawall or by WordPress's schedule), or `write` (a WordPress without the plugin accepted a write).",
                advice: "Shows why pages are purged. If one of them keeps rising, something purges all the time, and the origin is asked for the same pages again.",
                samples: |seen| seen.state.shared.purging.by_maker().map(|(by, n)| Sample::labelled("by", by, n)).collect(),
            },
            Definition {
                name: "seawall_purge_requests_total",
                kind: Counter,
                labels: &["dialect"],
                help: "Purge requests on the addresses of sites that were obeyed, by dialect. The admin API is not counted here.",
                advice: "Shows that a plugin works. If it keeps rising, something purges with every page view.",
                samples: |seen| {
                    seen.state.shared.purging.by_dialect().map(|(dialect, n)| Sample::labelled("dialect", dialect, n)).collect()
                },
            },
            Definition {
                name: "seawall_purge_requests_refused_total",
                kind: Counter,
                labels: &[],
                help: "Purge requests on the addresses of sites from somebody who may not purge.",
                advice: "If a plugin of yours is refused, add its address to `[purge] allow`, or give it the admin token. Otherwise strangers try.",
                samples: |seen| one(seen.state.shared.purging.refused()),
            },
            Definition {
                name: "seawall_refilled_total",
                kind: Counter,
                labels: &[],
                help: "Pages that were fetched again after a soft purge, before anybody asked for them.",
                advice: "Nothing to do.",
                samples: |seen| one(seen.state.shared.refilling.refilled()),
            },
            Definition {
                name: "seawall_refill_pending",
                kind: Gauge,
                labels: &[],
                help: "Pages that are still to be fetched again.",
                advice: "Falls to 0 after a purge. If it does not, the origin is busy or down: refilling waits for it.",
                samples: |seen| one(seen.state.shared.refilling.pending()),
            },
        ],
    },
    Group {
        title: "Compression",
        metrics: &[
            Definition {
                name: "seawall_codings_total",
                kind: Counter,
                labels: &[],
                help: "Forms of stored responses that were compressed, or found not to be smaller.",
                advice: "Follows what is stored.",
                samples: |seen| one(seen.state.shared.workshop.counts().done),
            },
            Definition {
                name: "seawall_codings_waiting",
                kind: Gauge,
                labels: &[],
                help: "Forms of stored responses that are being compressed or wait for it.",
                advice: "Falls to 0 when nothing new is stored. If it does not, the processor is busy.",
                samples: |seen| one(seen.state.shared.workshop.counts().waiting as u64),
            },
            Definition {
                name: "seawall_codings_refused_total",
                kind: Counter,
                labels: &[],
                help: "Forms that were put off, because too many waited to be compressed.",
                advice: "Nothing is lost: those pages are sent in another form until there is time.",
                samples: |seen| one(seen.state.shared.workshop.counts().refused),
            },
            Definition {
                name: "seawall_packed_total",
                kind: Counter,
                labels: &[],
                help: "Stored responses that were reduced to their compressed forms, as for a minute nobody had read them uncompressed.",
                advice: "Follows what is stored: text takes a third of the memory then, or less.",
                samples: |seen| one(seen.state.shared.packing.packed()),
            },
            Definition {
                name: "seawall_unpacked_total",
                kind: Counter,
                labels: &[],
                help: "Times that such a response was decompressed for a client that takes no compression, or that asked for a range.",
                advice: "Small beside the hits. If it is not, many clients without `Accept-Encoding` read pages that few others read.",
                samples: |seen| one(seen.state.shared.packing.unpacked()),
            },
        ],
    },
    Group {
        title: "Certificates",
        metrics: &[
            Definition {
                name: "seawall_certificate_end_seconds",
                kind: Gauge,
                labels: &["name"],
                help: "When a certificate that Seawall renews ends, in seconds since 1970; 0: there is none.",
                advice: "Alert when it is less than a week away: renewal begins long before. `seawall certificates` says what went wrong.",
                samples: |seen| {
                    let end = |of: &acme::Status| of.not_after.map_or(0, Timestamp::as_secs);
                    seen.certificates.iter().map(|of| Sample::labelled("name", &of.name, end(of))).collect()
                },
            },
            Definition {
                name: "seawall_certificate_failures",
                kind: Gauge,
                labels: &["name"],
                help: "Failed attempts to get the certificate since the last success.",
                advice: "Above 0: `seawall certificates` and Seawall's log say why; `seawall check --acme` finds what is wrong.",
                samples: |seen| seen.certificates.iter().map(|of| Sample::labelled("name", &of.name, u64::from(of.failures))).collect(),
            },
        ],
    },
    Group {
        title: "Alerts",
        metrics: &[
            Definition {
                name: "seawall_alert",
                kind: Gauge,
                labels: &["name", "about"],
                help: "1 for each alert that stands: its name, and the site, the certificate or the folder that it is about.",
                advice: "`seawall alerts` says what is wrong, and alerts.md what to do about it. At most 256 of them stand at once.",
                samples: |seen| {
                    let standing = seen.state.alerts.standing().into_iter();
                    standing.map(|alert| Sample::labelled("name", alert.name, 1).and("about", alert.about)).collect()
                },
            },
            Definition {
                name: "seawall_alerts_sent_total",
                kind: Counter,
                labels: &["way", "result"],
                help: "Alerts that were to be sent, once when they began and once when they ended, by way (`webhook`, `command`) and result: `sent`, `failed` (after all attempts), or `lost` (64 others were waiting).",
                advice: "`failed` and `lost` should not rise: `seawall alerts` shows why the last one failed, and `seawall alerts test` tries it again.",
                samples: |seen| {
                    let of_way = |(way, counts): (&'static str, [(&'static str, u64); 3])| {
                        counts.map(|(result, n)| Sample::labelled("way", way, n).and("result", result))
                    };
                    seen.state.alerts.sent().flat_map(of_way).collect()
                },
            },
        ],
    },
    Group {
        title: "The process",
        metrics: &[
            Definition {
                name: "seawall_build_info",
                kind: Gauge,
                labels: &["version", "architecture"],
                help: "Always 1; the labels say which Seawall this is.",
                advice: "Shows what runs where after an update.",
                samples: |_| vec![Sample::labelled("version", env!("CARGO_PKG_VERSION"), 1).and("architecture", std::env::consts::ARCH)],
            },
            Definition {
                name: "process_start_time_seconds",
                kind: Gauge,
                labels: &[],
                help: "When Seawall began to serve, in seconds since 1970.",
                advice: "A new value means that it was restarted. After a restart that nobody asked for, look at the end of Seawall's log.",
                samples: |seen| vec![Sample::plain(seen.state.started.as_millis() as f64 / 1000.0)],
            },
            Definition {
                name: "process_resident_memory_bytes",
                kind: Gauge,
                labels: &[],
                help: "Memory that the process has from the system.",
                advice: "Expect some 20 MiB, `seawall_store_bytes` and a quarter more, and up to 32 KiB for each connection. If it grows beyond that, report it.",
                samples: |_| own_process::resident_bytes().map(Sample::plain).into_iter().collect(),
            },
            Definition {
                name: "process_open_fds",
                kind: Gauge,
                labels: &[],
                help: "Open file descriptors: connections, files, listeners.",
                advice: "Compare with `process_max_fds`; near it, connections fail. Raise `LimitNOFILE` (systemd) or `ulimit -n`.",
                samples: |_| own_process::open_files().map(Sample::plain).into_iter().collect(),
            },
            Definition {
                name: "process_max_fds",
                kind: Gauge,
                labels: &[],
                help: "File descriptors that the process may have open.",
                advice: "Should be well above `[limits] connections` and the connections to origins.",
                samples: |_| own_process::open_files_max().map(Sample::plain).into_iter().collect(),
            },
            Definition {
                name: "seawall_workers",
                kind: Gauge,
                labels: &[],
                help: "Threads that serve.",
                advice: "Nothing to do; for comparison.",
                samples: |seen| one(seen.state.counters.len() as u64),
            },
            Definition {
                name: "seawall_log_lost_total",
                kind: Counter,
                labels: &[],
                help: "Lines of the access log that were lost, because the disk, or the reader of standard output, took no more.",
                advice: "Should not rise. Move the log to a faster disk, or turn it off.",
                samples: |seen| one(seen.state.log.as_ref().map_or(0, Sink::lost)),
            },
            Definition {
                name: "seawall_messages_lost_total",
                kind: Counter,
                labels: &[],
                help: "Messages that were lost, because the reader of standard error took no more.",
                advice: "Should not rise. Look at what reads standard error. Seawall goes on serving without it.",
                samples: |_| one(told::lost()),
            },
        ],
    },
];

fn one(value: u64) -> Vec<Sample> {
    vec![Sample::plain(value)]
}

fn labelled(label: &'static str, names: &[&'static str], values: &[u64]) -> Vec<Sample> {
    names.iter().zip(values).map(|(name, value)| Sample::labelled(label, *name, *value)).collect()
}

fn loads(seen: &Seen<'_>, which: fn((usize, usize)) -> usize) -> Vec<Sample> {
    let loads = seen.plan.sites.iter().filter_map(|site| Some((site.name(), which(site.origin_load()?))));
    loads.map(|(site, n)| Sample::labelled("site", site, n as u64)).collect()
}

fn histogram(durations: &Durations) -> Histogram {
    let mut count = 0;
    let cumulative = durations.buckets.map(|n| {
        count += n;
        count
    });
    let buckets = BUCKET_MICROS.iter().map(|micros| *micros as f64 / 1e6).zip(cumulative).collect();
    Histogram { buckets, sum: durations.micros as f64 / 1e6, count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page;

    fn tables() -> String {
        let mut text = String::new();
        for Group { title, metrics } in &GROUPS {
            text += &format!("\n## {title}\n\n| metric | type | labels | what it is | what to do |\n|---|---|---|---|---|\n");
            for Definition { name, kind, labels, help, advice, .. } in *metrics {
                let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
                text += &format!("| `{name}` | {} | {labels} | {help} | {advice} |\n", kind.name());
            }
        }
        text
    }

    #[test]
    fn the_page_in_doc_is_made_of_this_table() {
        page::holds("metrics.md", "metrics", &tables());
    }

    #[test]
    fn every_metric_says_what_to_do() {
        for of in GROUPS.iter().flat_map(|group| group.metrics) {
            for text in [of.help, of.advice] {
                assert!(text.ends_with('.') && !text.contains('|') && !text.contains("  "), "{}: {text}", of.name);
            }
        }
    }
}
