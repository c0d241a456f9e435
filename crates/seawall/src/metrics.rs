//! Every metric: its name, what it means, what to do when it moves, and where its values come from.
//!
//! This table is the only place where metrics are described. `/metrics` is made from it, and a test holds that `doc/metrics.md` says the
//! same.
//!
//! The answer has at most 2,000 lines, whatever the configuration and whatever clients and origins send: labels have bounded values. The busiest
//! 50 sites have lines of their own, and the others are `other`. Metrics with many lines for each site are by site only where sites
//! are few, and `all` where they are many. A test with 256 sites counts the lines. A new metric with lines for each site has to fit, too.

mod leading;
mod shown;

use std::sync::{Arc, atomic::Ordering::Relaxed};

use admin::{
    AlertLine, ClusterState, Histogram, LimitsState, Metric,
    MetricKind::{self, Counter, Gauge},
    Sample,
};
use insight::alerts::Kind;
use pipeline::{
    BUCKET_MICROS, CLASSES, CacheOutcome, CookieCount, Durations, LOGIN_REFUSALS, OUTCOMES, PROOF_RESULTS, RuleCount, SiteSnapshot,
    Snapshot, Tally,
};
use semantics::Timestamp;

pub(crate) use self::shown::ShownNames;
use self::shown::{ALL, Boards, OTHER};
use crate::{
    cluster::Joined,
    own_process,
    plan::{Plan, SitePlan},
    server::State,
    stderr,
    writer::Sink,
};

/// The classes of status codes, in the order of [`Snapshot::responses`].
const STATUSES: [&str; 6] = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The bounds of the buckets that are shown of how long responses took, in microseconds: some of [`BUCKET_MICROS`].
const RESPONSE_BOUNDS: [u64; 8] = [25, 100, 1_000, 10_000, 100_000, 500_000, 2_500_000, 10_000_000];

/// The bounds of the buckets that are shown of how long origins took, in microseconds: some of [`BUCKET_MICROS`].
const ORIGIN_BOUNDS: [u64; 8] = [10_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000];

/// The lines of a histogram with eight bounds.
const HISTOGRAM_LINES: usize = 11;

/// The lines that one metric may have in which each site has several. Beyond, it is not by site, or not by class.
const LINES_MAX: usize = 530;

/// The origins that have lines of their own among those that machines share.
const ORIGIN_LINES_MAX: usize = 25;

/// The lines that a metric may have which is by site where sites are few, and is of less use than those of [`LINES_MAX`].
const MINOR_LINES_MAX: usize = 66;

/// The addresses of origins that have lines of their own.
const ADDRESSES_SHOWN: usize = 60;

/// The certificates that have lines of their own.
const CERTIFICATES_SHOWN: usize = 25;

/// The alerts that have lines of their own.
const ALERTS_SHOWN: usize = 25;

/// The state from which all metrics of one answer are read.
pub(crate) struct MetricsView<'a> {
    state: &'a State,
    plan: Arc<Plan>,
    counted: Snapshot,
    boards: Boards,
    /// All sites together, those that are no longer there included, and what reached none.
    all: SiteSnapshot,
    usage: store::Usage,
    certificates: Vec<acme::Status>,
    cluster: Option<ClusterState>,
}

impl<'a> MetricsView<'a> {
    /// Returns the limits that are shared with other machines, if there are any.
    fn limits(&self) -> Option<&LimitsState> {
        self.cluster.as_ref()?.limits.as_ref()
    }

    fn of(state: &'a State) -> Self {
        let plan = state.plan.load_full();
        let (counted, boards) = state.shown.boards(&plan, || (state.snapshot(), state.shared.cookies_of_all()));
        let mut all = counted.siteless.clone();
        counted.sites.values().for_each(|site| all.combine(site, u64::wrapping_add));
        Self {
            state,
            plan,
            counted,
            boards,
            all,
            usage: state.shared.store.usage(),
            cluster: state.cluster.as_ref().map(Joined::state),
            certificates: state.keeper.load().as_ref().map(|keeper| keeper.status(state.shared.clock.now())).unwrap_or_default(),
        }
    }

    /// Returns every site that is shown with its counters, and the others.
    fn sites(&self) -> impl Iterator<Item = (&str, &SiteSnapshot)> {
        self.boards.sites.iter().map(|(name, of)| (name.as_str(), of))
    }

    /// Returns the same where they are few enough that so many lines for each are at most `max`, else all sites together as one.
    fn sites_within(&self, max: usize, lines: usize) -> Vec<(&str, &SiteSnapshot)> {
        if self.fit(max, lines) { self.sites().collect() } else { vec![(ALL, &self.all)] }
    }

    /// Returns whether so many lines for each site that is shown are at most `max`.
    fn fit(&self, max: usize, lines: usize) -> bool {
        self.boards.sites.len() * lines <= max
    }

    /// Returns the sums of what `of` takes from each tally, by class, or all classes as one if sites are too many for `max` lines.
    fn by_class<'b>(
        &self,
        max: usize,
        lines: usize,
        tallies: impl Iterator<Item = (usize, &'b Tally)>,
        of: fn(&Tally) -> u64,
    ) -> Vec<(&'static str, u64)> {
        let mut sums = [0; CLASSES.len()];
        tallies.for_each(|(class, tally)| sums[class] += of(tally));
        if self.fit(max, lines) { CLASSES.into_iter().zip(sums).collect() } else { vec![(ALL, sums.iter().sum())] }
    }
}

/// Returns the tallies of a site that have an outcome, by class.
fn of_outcome(site: &SiteSnapshot, outcome: usize) -> impl Iterator<Item = (usize, &Tally)> {
    site.tallies.iter().filter(move |((of, _), _)| *of == outcome).map(|((_, class), tally)| (*class, tally))
}

/// Returns the outcomes by which requests of sites are counted: all but those that were refused before they were requests.
fn outcomes() -> impl Iterator<Item = (usize, &'static str)> {
    let of_sites = OUTCOMES.into_iter().filter(|outcome| *outcome != CacheOutcome::Refused);
    of_sites.map(|outcome| (outcome.place(), outcome.name()))
}

/// Returns what was counted of each site's cookies, where it is more than nothing.
fn cookies(seen: &MetricsView<'_>, of: impl Fn(&CookieCount) -> u64) -> Vec<Sample> {
    let counted = seen.boards.cookies.iter().map(|((site, cookie), count)| (site, cookie, of(count))).filter(|(_, _, n)| *n > 0);
    counted.map(|(site, cookie, n)| Sample::labelled("site", site, n).and("cookie", cookie)).collect()
}

/// Returns what was counted of each site's rules.
fn rules<V: Into<admin::Value>>(seen: &MetricsView<'_>, of: impl Fn(&RuleCount) -> V) -> Vec<Sample> {
    seen.boards.rules.iter().map(|((site, rule), count)| Sample::labelled("site", site, of(count)).and("rule", *rule)).collect()
}

/// Returns 1 for each alert that stands, the oldest ones first, and for each name of which there are more; and 0 for each name of which there is none.
fn alerts(seen: &MetricsView<'_>) -> Vec<Sample> {
    let mut standing = seen.state.alerts.standing();
    standing.sort_by_key(|alert| alert.from);
    let sample = |name: &str, about: &str, stands: u64| Sample::labelled("name", name, stands).and("about", about);
    let (shown, others) = standing.split_at(standing.len().min(ALERTS_SHOWN));
    let mut samples: Vec<Sample> = shown.iter().map(|alert| sample(&alert.name, &alert.about, 1)).collect();
    for name in Kind::ALL.map(Kind::name) {
        let has = |alerts: &[AlertLine]| alerts.iter().any(|alert| alert.name == name);
        if has(others) {
            samples.push(sample(name, OTHER, 1));
        } else if !has(shown) {
            samples.push(sample(name, "", 0));
        }
    }
    samples
}

/// Returns the certificates that are shown with a value of each: those that end first. The others are one, with the value that `worst` chooses.
fn certificates(seen: &MetricsView<'_>, of: fn(&acme::Status) -> u64, worst: fn(u64, u64) -> u64) -> Vec<Sample> {
    let mut by_end: Vec<&acme::Status> = seen.certificates.iter().collect();
    by_end.sort_by_key(|of| (of.not_after, &of.name));
    let (shown, others) = by_end.split_at(by_end.len().min(CERTIFICATES_SHOWN));
    let other = others.iter().map(|status| of(status)).reduce(worst);
    let shown = shown.iter().map(|status| Sample::labelled("name", &status.name, of(status)));
    shown.chain(other.map(|value| Sample::labelled("name", OTHER, value))).collect()
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
    samples: fn(&MetricsView<'_>) -> Vec<Sample>,
}

/// Returns all metrics with their present values.
pub(crate) fn all(state: &State) -> Vec<Metric> {
    let seen = MetricsView::of(state);
    let definitions = GROUPS.iter().flat_map(|group| group.metrics);
    definitions.map(|of| Metric::new(of.name, of.help, of.kind, (of.samples)(&seen))).collect()
}

/// The metrics, in the order of the page.
pub(crate) static GROUPS: [Group; 12] = [
    Group {
        title: "Requests and responses",
        metrics: &[
            Definition {
                name: "seawall_requests_total",
                kind: Counter,
                labels: &["site", "cache"],
                help: "Requests that have ended, by site and by what the cache did.",
                advice: "The share of `hit` is the hit ratio. If it falls, look at `seawall_rule_origin_seconds_total`, and ask `seawall explain` about one such \
                         address. `stale` rises while an origin fails. `refused` and `none` with an empty `site` are requests that never reached a site.",
                samples: |seen| {
                    let of_site = |name: &str, of: &SiteSnapshot| {
                        outcomes()
                            .map(|(at, outcome)| Sample::labelled("site", name, of.outcomes[at]).and("cache", outcome))
                            .collect::<Vec<_>>()
                    };
                    let siteless = [CacheOutcome::Refused, CacheOutcome::None].into_iter().map(|outcome| {
                        Sample::labelled("site", "", seen.counted.siteless.outcomes[outcome.place()]).and("cache", outcome.name())
                    });
                    seen.sites().flat_map(|(name, of)| of_site(name, of)).chain(siteless).collect()
                },
            },
            Definition {
                name: "seawall_response_bytes_total",
                kind: Counter,
                labels: &["site", "cache", "class"],
                help: "Bytes of content sent, without heads and encryption, by site, by what the cache did, and by the class of the content.",
                advice: "The share of `hit` is the hit ratio in bytes. If the bytes rise much more than the requests, look for large files in the log. `class` is `all` if \
                         there are more than eight sites.",
                samples: |seen| {
                    let lines = (OUTCOMES.len() - 1) * CLASSES.len();
                    let of_site = |name: &str, of: &SiteSnapshot| {
                        let by_class = |at| seen.by_class(LINES_MAX, lines, of_outcome(of, at), |tally| tally.body_bytes);
                        let sample = |outcome, (class, n)| Sample::labelled("site", name, n).and("cache", outcome).and("class", class);
                        outcomes().flat_map(|(at, outcome)| by_class(at).into_iter().map(move |of| sample(outcome, of))).collect::<Vec<_>>()
                    };
                    seen.sites().flat_map(|(name, of)| of_site(name, of)).collect()
                },
            },
            Definition {
                name: "seawall_request_duration_seconds",
                kind: MetricKind::Histogram,
                labels: &["site", "cache"],
                help: "Time from a request's arrival until its response was handed to the system or its client had left, by site and by what the cache did.",
                advice: "Compare outcomes: `hit` should stay below a millisecond or so. It rises with the processor's load and with clients that read slowly; \
                         `miss`, `expired` and `bypass` follow the origin. WebSockets count under `bypass` when they end. `site` is `all` if there are more than six sites.",
                samples: |seen| {
                    let of_site = |name: &str, of: &SiteSnapshot| {
                        let durations = |at| histogram(&of.durations_of_outcome(at), &RESPONSE_BOUNDS);
                        outcomes()
                            .map(|(at, outcome)| Sample::labelled("site", name, durations(at)).and("cache", outcome))
                            .collect::<Vec<_>>()
                    };
                    let lines = (OUTCOMES.len() - 1) * HISTOGRAM_LINES;
                    seen.sites_within(LINES_MAX, lines).into_iter().flat_map(|(name, of)| of_site(name, of)).collect()
                },
            },
            Definition {
                name: "seawall_class_duration_seconds",
                kind: MetricKind::Histogram,
                labels: &["class"],
                help: "Time from a request's arrival until its response was handed to the system or its client had left, by the class of the content: document, feed, script, style, picture, media, api, other.",
                advice: "Its `_count` says how many requests there were of each class. If only `document` is slow, the origin is; if `media` is, clients read slowly.",
                samples: |seen| {
                    let durations = |at| histogram(&seen.all.durations_of_class(at), &RESPONSE_BOUNDS);
                    CLASSES.iter().enumerate().map(|(at, class)| Sample::labelled("class", *class, durations(at))).collect()
                },
            },
            Definition {
                name: "seawall_rule_requests_total",
                kind: Counter,
                labels: &["site", "rule"],
                help: "Requests that were not plain hits, by site and by the rule or the failure that decided, as `Cache-Status` and `seawall explain` name it.",
                advice: "Why requests are not answered from the cache. `cold`: nothing was stored yet. The 25 most frequent pairs of a site and a rule have lines, the others \
                         are `other`. The dashboard and `seawall top` say more: a page for each rule, and what would end it.",
                samples: |seen| rules(seen, |count| count.requests),
            },
            Definition {
                name: "seawall_rule_origin_seconds_total",
                kind: Counter,
                labels: &["site", "rule"],
                help: "Time that origins took until the heads of their responses for requests that were not plain hits, by site and by the rule or the failure that decided.",
                advice: "What each rule costs. Begin with the one that costs most.",
                samples: |seen| rules(seen, |count| seconds(count.origin_micros)),
            },
            Definition {
                name: "seawall_responses_total",
                kind: Counter,
                labels: &["status"],
                help: "Responses, by class of status; other means that the connection was closed without one.",
                advice: "`5xx` should be rare: the log names the targets, and Seawall's own log the origin's error. `4xx` rises with scanners and with broken links. \
                         What was refused is counted here, too, by the status with which it was answered.",
                samples: |seen| labelled("status", &STATUSES, &seen.counted.responses),
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
                name: "seawall_requests_limited_total",
                kind: Counter,
                labels: &[],
                help: "Requests that were answered with 429, because their address sends more than `requests_per_second` in `[limits]`.",
                advice: "Seawall's log names such an address once a minute. If they are honest visitors (an office, a proxy that is not in `trusted_proxies`), \
                         raise `requests_per_second` or `requests_burst`.",
                samples: |seen| one(seen.state.shared.rates.refusals()),
            },
            Definition {
                name: "seawall_logins_refused_total",
                kind: Counter,
                labels: &["site", "reason"],
                help: "Attempts to sign in at the site that were answered with 429 instead of by its origin.",
                advice: "`address`: too many wrong passwords came from one address; Seawall's log names it. `busy`: more came at once than have a place. Both rise while \
                         somebody guesses passwords. If people are turned away, raise `login_attempts` or `login_concurrency` in `[limits]`. `site` is `all` if there are more than 33 sites.",
                samples: |seen| {
                    let of_site = |name: &str, of: &SiteSnapshot| {
                        let counts = LOGIN_REFUSALS.iter().zip(of.logins_refused);
                        counts.map(|(reason, n)| Sample::labelled("site", name, n).and("reason", *reason)).collect::<Vec<_>>()
                    };
                    let lines = LOGIN_REFUSALS.len();
                    seen.sites_within(MINOR_LINES_MAX, lines).into_iter().flat_map(|(name, of)| of_site(name, of)).collect()
                },
            },
            Definition {
                name: "seawall_refused_total",
                kind: Counter,
                labels: &["reason"],
                help: "Messages and connections refused before they were a request, by reason.",
                advice: "Malformed messages, floods and slow heads. A steady trickle comes from scanners. If real clients are refused, the reason says which of \
                         the `[limits]` to raise.",
                samples: |seen| seen.boards.refusals.iter().map(|(reason, count)| Sample::labelled("reason", *reason, *count)).collect(),
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
                         last value. `route` is empty for the server of the whole site. Beyond 60 addresses, `other` is at 0 if one of the others is.",
                samples: |seen| {
                    let (mut samples, mut other) = (Vec::new(), None);
                    for site in &seen.plan.sites {
                        for server in site.servers() {
                            let route = server.route.as_deref().unwrap_or_default();
                            for (address, up) in &server.addresses {
                                if samples.len() < ADDRESSES_SHOWN && seen.boards.shows(site.id) {
                                    let sample = Sample::labelled("site", site.name(), u64::from(*up));
                                    samples.push(sample.and("route", route).and("address", address.as_str()));
                                } else {
                                    other = Some(other.unwrap_or(true) && *up);
                                }
                            }
                        }
                    }
                    let other = other.map(|up| Sample::labelled("site", OTHER, u64::from(up)).and("route", "").and("address", ""));
                    samples.into_iter().chain(other).collect()
                },
            },
            Definition {
                name: "seawall_cron_runs_total",
                kind: Counter,
                labels: &["site", "result"],
                help: "Runs of WordPress's schedule (`wp-cron.php`) by Seawall: `done`, or `failed`.",
                advice: "`done` grows once a minute for each WordPress, unless `cron` in `[wordpress]` says otherwise. If `failed` grows, scheduled posts stay away: \
                         `seawall status` says why. `site` is `all` if there are more than 33 sites.",
                samples: |seen| {
                    let of = |name: &str, runs: [u64; 2]| {
                        let samples = ["done", "failed"]
                            .into_iter()
                            .zip(runs)
                            .map(|(result, n)| Sample::labelled("site", name, n).and("result", result));
                        samples.collect::<Vec<_>>()
                    };
                    if !seen.fit(MINOR_LINES_MAX, 2) {
                        return of(ALL, seen.state.schedule_runs.each_ref().map(|runs| runs.load(Relaxed)));
                    }
                    let noted = seen.state.schedules.lock();
                    noted.iter().flat_map(|(name, noted)| of(name, [noted.runs, noted.failures])).collect()
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
                    let total = |of: &SiteSnapshot| of.origin_durations.count() + of.origin_failures + of.origin_given_up;
                    seen.sites().map(|(site, of)| Sample::labelled("site", site, total(of))).collect()
                },
            },
            Definition {
                name: "seawall_origin_failures_total",
                kind: Counter,
                labels: &["site"],
                help: "Requests to the origin that got no response.",
                advice: "Should not rise. If it rises, the origin is down, too slow, or `queue` is full: Seawall's log names the error and the target.",
                samples: |seen| seen.sites().map(|(site, of)| Sample::labelled("site", site, of.origin_failures)).collect(),
            },
            Definition {
                name: "seawall_origin_seconds_total",
                kind: Counter,
                labels: &["site", "class"],
                help: "The time that the origin took for requests that waited for it until the heads of its responses, by site and by the class of the content.",
                advice: "What a site costs its origin. If `document` takes nearly all of it, look at `seawall_rule_origin_seconds_total`; if `picture` or `script` does, the origin \
                         does not let them be stored. `class` is `all` if there are more than eight sites.",
                samples: |seen| {
                    let of_site = |name: &str, of: &SiteSnapshot| {
                        let tallies = of.tallies.iter().map(|((_, class), tally)| (*class, tally));
                        let by_class = seen.by_class(MINOR_LINES_MAX, CLASSES.len(), tallies, |tally| tally.origin_micros);
                        let sample = |(class, micros)| Sample::labelled("site", name, seconds(micros)).and("class", class);
                        by_class.into_iter().map(sample).collect::<Vec<_>>()
                    };
                    seen.sites().flat_map(|(name, of)| of_site(name, of)).collect()
                },
            },
            Definition {
                name: "seawall_two_visitor_proofs_total",
                kind: Counter,
                labels: &["site", "result"],
                help: "Pages that were to be fetched a second time before they are stored, by site and by what came of it.",
                advice: "`same` and `warm-up` (only the first response was different) are stored. `differs` is not: `seawall explain` shows for the address what two \
                         visitors were given. If the difference does not matter, set `two_visitor_proof = false`. `failed` (the origin failed at the second time) is stored \
                         without a proof, unless a difference was seen before. `skipped` (there was no time for it, or the page is longer than 2 MiB) is \
                         stored only if the page was proven before; `overtaken` is not stored, because the page was purged meanwhile. It stays at zero where `two_visitor_proof` is off. `site` is `all` if there are more than eleven sites.",
                samples: |seen| {
                    let of_site = |name: &str, of: &SiteSnapshot| {
                        let counts = PROOF_RESULTS.iter().zip(of.proofs);
                        counts.map(|(result, n)| Sample::labelled("site", name, n).and("result", *result)).collect::<Vec<_>>()
                    };
                    let lines = PROOF_RESULTS.len();
                    seen.sites_within(MINOR_LINES_MAX, lines).into_iter().flat_map(|(name, of)| of_site(name, of)).collect()
                },
            },
            Definition {
                name: "seawall_responses_not_stored_for_cookie_total",
                kind: Counter,
                labels: &["site", "cookie"],
                help: "Responses that were not stored because they set a cookie, by site and by the cookie that they set.",
                advice: "A cookie that grows as fast as the misses keeps the site from being cached: `seawall explain` says whose it is. If its readers do not need it, name it in `drop_set_cookies`. \
                         The names come from the origin. The 25 worst pairs of a site and a cookie have lines, the others are `other`.",
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
                         more, or give it more power. `site` is `all` if there are more than twelve sites: the mean of each is \
                         `seawall_origin_seconds_total` by `seawall_origin_requests_total`.",
                samples: |seen| {
                    let sites = seen.sites_within(2 * MINOR_LINES_MAX, HISTOGRAM_LINES).into_iter();
                    sites.map(|(site, of)| Sample::labelled("site", site, histogram(&of.origin_durations, &ORIGIN_BOUNDS))).collect()
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
                help: "Stored responses and files that were damaged or not Seawall's, and were removed.",
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
                advice: "Alert when it is less than a week away: renewal begins long before. `seawall certificates` says what went wrong. \
                         The 25 that end first have lines; `other` is the first of the others.",
                samples: |seen| certificates(seen, |of| of.not_after.map_or(0, Timestamp::as_secs), u64::min),
            },
            Definition {
                name: "seawall_certificate_failures",
                kind: Gauge,
                labels: &["name"],
                help: "Failed attempts to get the certificate since the last success.",
                advice: "Above 0: `seawall certificates` and Seawall's log say why; `seawall check --acme` finds what is wrong.",
                samples: |seen| certificates(seen, |of| u64::from(of.failures), u64::max),
            },
        ],
    },
    Group {
        title: "The cluster",
        metrics: &[
            Definition {
                name: "seawall_cluster_leased",
                kind: Gauge,
                labels: &[],
                help: "1 if this machine has a lease, 0 if it is in doubt; no value without `[cluster]`.",
                advice: "Alert when it is 0 for a minute: pages are validated before they are shown, and purges are not known to hold everywhere. `seawall cluster` \
                         says why.",
                samples: |seen| of_cluster(seen, |state| u64::from(state.leased)),
            },
            Definition {
                name: "seawall_cluster_doubts_total",
                kind: Counter,
                labels: &[],
                help: "How often this machine lost its lease.",
                advice: "Should not rise. Look at the server's latency and memory, and at the network to it; a longer `[cluster] lease` bridges short gaps.",
                samples: |seen| of_cluster(seen, |state| state.doubts),
            },
            Definition {
                name: "seawall_cluster_breaks_total",
                kind: Counter,
                labels: &[],
                help: "How often this machine could not go on from where it was in the stream of purges, so that everything stored was validated anew.",
                advice: "Rises with each restart, fail-over or flush of the server. Otherwise the machine was away for more than 65,536 purges.",
                samples: |seen| of_cluster(seen, |state| state.breaks),
            },
            Definition {
                name: "seawall_cluster_applied_total",
                kind: Counter,
                labels: &[],
                help: "Purges of the stream that were carried out here.",
                advice: "Nothing to do; for comparison between machines.",
                samples: |seen| of_cluster(seen, |state| state.applied),
            },
            Definition {
                name: "seawall_cluster_refused_total",
                kind: Counter,
                labels: &[],
                help: "Entries of the stream that were refused, as they bore no seal of this cluster or could not be read.",
                advice: "Should not rise: a machine has another secret, or another program writes into the cluster's keys. The log names it.",
                samples: |seen| of_cluster(seen, |state| state.refused),
            },
            Definition {
                name: "seawall_cluster_pending",
                kind: Gauge,
                labels: &[],
                help: "Purges that were ordered here and are on their way to the other machines.",
                advice: "Above 0 for long: the server cannot be reached, or takes no writes. They are sent until it has them.",
                samples: |seen| of_cluster(seen, |state| state.pending),
            },
            Definition {
                name: "seawall_cluster_machines",
                kind: Gauge,
                labels: &["leased"],
                help: "Machines of the cluster that this one knows of, this one included, by whether they said that they have a lease.",
                advice: "Compare with the number of machines that should run. A dead one is listed until a purge has waited for it.",
                samples: |seen| {
                    let of = |leased| move |state: &ClusterState| state.machines.iter().filter(|of| of.leased == leased).count() as u64;
                    let mut samples = Vec::new();
                    for (name, leased) in [("yes", true), ("no", false)] {
                        samples.extend(of_cluster(seen, of(leased)).into_iter().map(|sample| sample.and("leased", name)));
                    }
                    samples
                },
            },
            Definition {
                name: "seawall_cluster_purges_total",
                kind: Counter,
                labels: &["everywhere"],
                help: "Purges that were ordered here and told to the other machines, by whether they were known to hold everywhere when they were answered.",
                advice: "`no` should not rise. Such a purge still reaches every machine, but whoever ordered it was told so without knowing when.",
                samples: |seen| {
                    let cluster = seen.state.cluster.as_ref();
                    cluster.map(|cluster| labelled("everywhere", &["yes", "no"], &cluster.counts().purges())).unwrap_or_default()
                },
            },
            Definition {
                name: "seawall_cluster_purge_seconds_total",
                kind: Counter,
                labels: &[],
                help: "Time that such purges took until they were answered.",
                advice: "Divided by `seawall_cluster_purges_total`: milliseconds are usual. Near `[cluster] lease`, a machine that is listed does not answer.",
                samples: |seen| {
                    let cluster = seen.state.cluster.as_ref();
                    cluster.map(|cluster| vec![Sample::plain(cluster.counts().millis() as f64 / 1e3)]).unwrap_or_default()
                },
            },
            Definition {
                name: "seawall_cluster_tier_total",
                kind: Counter,
                labels: &["result"],
                help: "Questions to the shared tier and what was written there, by result: `hit`, `miss` (not there, or not in time), `refused` (damaged, of another version, purged since), `written`.",
                advice: "`refused` should not rise much more than purges do. Many `miss` with few `written`: `[cluster] tier_memory` is full, or pages are too large.",
                samples: |seen| {
                    let Some(tier) = seen.cluster.as_ref().and_then(|state| state.tier.as_ref()) else { return Vec::new() };
                    let values = [tier.hits, tier.misses, tier.refused, tier.written];
                    labelled("result", &["hit", "miss", "refused", "written"], &values)
                },
            },
            Definition {
                name: "seawall_cluster_tier_open",
                kind: Gauge,
                labels: &[],
                help: "1 while the shared tier is left alone, because it was too slow or failed.",
                advice: "Should be 0: look at the latency of the server or the bucket; `seawall cluster` says why. Pages come from the origin meanwhile.",
                samples: |seen| {
                    let tier = seen.cluster.as_ref().and_then(|state| state.tier.as_ref());
                    tier.map(|tier| vec![Sample::plain(u64::from(tier.open))]).unwrap_or_default()
                },
            },
            Definition {
                name: "seawall_cluster_limit_exchanges_total",
                kind: Counter,
                labels: &["result"],
                help: "Questions to the server about shared limits, by result: `answered` or `failed`. Ten a second for clients are usual, and failures for places at origins count, too.",
                advice: "`failed` should not rise: each machine takes but its part of a limit when nothing is answered for a second.",
                samples: |seen| {
                    let limits = seen.limits();
                    limits.map(|limits| labelled("result", &["answered", "failed"], &[limits.answered, limits.failed])).unwrap_or_default()
                },
            },
            Definition {
                name: "seawall_cluster_limits_apart",
                kind: Gauge,
                labels: &[],
                help: "1 while this machine hears nothing of the limits of the others, and takes its part of each.",
                advice: "Should be 0: look at the server and at the network to it.",
                samples: |seen| seen.limits().map(|limits| vec![Sample::plain(u64::from(limits.apart))]).unwrap_or_default(),
            },
            Definition {
                name: "seawall_cluster_limits_refused_total",
                kind: Counter,
                labels: &[],
                help: "Reports of other machines, and lines about places at origins, that were refused, as they bore no seal of this cluster or could not be read.",
                advice: "Should not rise: a machine has another secret, or another program writes into the cluster's keys. The log names it.",
                samples: |seen| seen.limits().map(|limits| vec![Sample::plain(limits.refused)]).unwrap_or_default(),
            },
            Definition {
                name: "seawall_cluster_origin_places",
                kind: Gauge,
                labels: &["origin", "places"],
                help: "Requests that this machine may send at once to an origin that the machines share (`granted`), and those that are there or wait (`needed`). The 25 that need most.",
                advice: "The sum of `granted` of all machines is at most `[origin] concurrency`. If `needed` is above `granted` everywhere, the origin is slow, or the limit is low.",
                samples: |seen| {
                    let mut origins = seen.limits().map(|limits| limits.origins.clone()).unwrap_or_default();
                    origins.sort_by_key(|origin| std::cmp::Reverse(origin.needed));
                    let lines = origins.iter().take(ORIGIN_LINES_MAX).flat_map(|of| {
                        [("granted", of.granted), ("needed", of.needed)]
                            .map(|(places, count)| Sample::labelled("origin", &of.origin, count).and("places", places))
                    });
                    lines.collect()
                },
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
                help: "1: an alert stands that has this name, about this site, certificate or folder. 0, about nothing: no alert with this name stands.",
                advice: "`seawall alerts` says what is wrong, and alerts.md what to do about it. The 25 that have stood longest have lines, `other` is about the others.",
                samples: alerts,
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
                samples: |_| one(stderr::lost()),
            },
        ],
    },
    Group {
        title: "Traces",
        metrics: &[
            Definition {
                name: "seawall_trace_spans_total",
                kind: Counter,
                labels: &["result"],
                help: "Spans, by what became of them.",
                advice: "`sent`: the collector has them. `full` means that more came than the collector took: lower `[traces] sample`, or look at the collector. \
                         `refused`: it does not want them; the log says why. `lost`: it could not be reached in time.",
                samples: |seen| {
                    let traces::CountsSnapshot { sent, full, refused, lost, .. } = seen.state.span_counts.read();
                    labelled("result", &["sent", "full", "refused", "lost"], &[sent, full, refused, lost])
                },
            },
            Definition {
                name: "seawall_trace_spans_waiting",
                kind: Gauge,
                labels: &[],
                help: "Spans that wait to be sent, or are on their way.",
                advice: "At 2048, further ones are dropped: the collector is slow, or away.",
                samples: |seen| one(seen.state.span_counts.read().waiting),
            },
        ],
    },
];

/// Returns a value of the cluster, if there is one.
fn of_cluster(seen: &MetricsView<'_>, of: impl Fn(&ClusterState) -> u64) -> Vec<Sample> {
    seen.cluster.iter().map(|state| Sample::plain(of(state))).collect()
}

fn one(value: u64) -> Vec<Sample> {
    vec![Sample::plain(value)]
}

fn labelled(label: &'static str, names: &[&'static str], values: &[u64]) -> Vec<Sample> {
    names.iter().zip(values).map(|(name, value)| Sample::labelled(label, *name, *value)).collect()
}

fn loads(seen: &MetricsView<'_>, which: fn((usize, usize)) -> usize) -> Vec<Sample> {
    let load = |site: &SitePlan| Some(which(site.origin_load()?) as u64);
    let (shown, others): (Vec<&SitePlan>, Vec<&SitePlan>) = seen.plan.sites.iter().partition(|site| seen.boards.shows(site.id));
    let shown = shown.into_iter().filter_map(|site| Some(Sample::labelled("site", site.name(), load(site)?)));
    let other = others.into_iter().filter_map(load).reduce(|sum, more| sum + more);
    shown.chain(other.map(|n| Sample::labelled("site", OTHER, n))).collect()
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Makes a histogram with these bounds, which are some of those by which the durations were counted.
fn histogram(durations: &Durations, bounds: &[u64]) -> Histogram {
    let mut count = 0;
    let mut buckets = Vec::with_capacity(bounds.len());
    for (bound, n) in BUCKET_MICROS.iter().zip(durations.buckets) {
        count += n;
        if bounds.contains(bound) {
            buckets.push((seconds(*bound), count));
        }
    }
    Histogram { buckets, sum: seconds(durations.micros), count: durations.count() }
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
    fn the_bounds_that_are_shown_are_bounds_by_which_durations_are_counted() {
        for bounds in [RESPONSE_BOUNDS, ORIGIN_BOUNDS] {
            assert!(bounds.is_sorted() && bounds.iter().all(|bound| BUCKET_MICROS.contains(bound)), "{bounds:?}");
            let durations = Durations { buckets: std::array::from_fn(|_| 1), micros: 3_000_000 };
            let Histogram { buckets, sum, count } = histogram(&durations, &bounds);
            let below = |bound: &u64| BUCKET_MICROS.iter().filter(|other| *other <= bound).count() as u64;
            assert_eq!(buckets.iter().map(|(_, n)| *n).collect::<Vec<_>>(), bounds.iter().map(below).collect::<Vec<_>>());
            assert_eq!((sum, count, buckets.len() + 3), (3.0, BUCKET_MICROS.len() as u64 + 1, HISTOGRAM_LINES));
        }
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
