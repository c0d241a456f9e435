//! What the flags mean together: when requests are made, how, and until when. What is asked is in `what`.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    thread,
    time::Duration,
};

use load::{
    Protocol, Schedule, Stop,
    plan::{Connections, TIMEOUT},
    requests::Origin,
    schedule::{Profile, Spacing},
};

use super::flags::Flags;

/// The clients that stay, unless another number is typed.
const CLIENTS: u64 = 50;

/// The most clients that stay: each needs a descriptor.
const CLIENTS_MAX: u64 = 1_000_000;

/// The most connections of `--rate`, unless another number is typed.
const CONNECTIONS: u64 = 1_000;

/// The time of a run that says nothing about its end.
const DURATION: Duration = Duration::from_secs(10);

/// The most requests at a time on a connection: servers allow some hundreds of streams.
const AT_A_TIME_MAX: u64 = 1_000;

/// The most addresses that connections come from.
const SOURCES_MAX: usize = 4_096;

/// The most threads.
const THREADS_MAX: u64 = 1_024;

impl Flags {
    /// Says when requests are made, and until when. A log is read elsewhere.
    ///
    /// # Errors
    /// When a profile is none.
    pub(super) fn schedule(&self) -> Result<(Schedule, Stop), String> {
        let spacing = if self.poisson { Spacing::Poisson } else { Spacing::Even };
        let schedule = if let Some(ramp) = &self.ramp {
            Schedule::Closed { clients: profile("--ramp", Profile::clients(ramp))? }
        } else if let Some(rate) = &self.arrivals {
            Schedule::Arrivals { rate: profile("--arrivals", Profile::rate(rate))?, spacing }
        } else if let Some(rate) = &self.rate {
            let clients = self.number_of_clients(CONNECTIONS)?;
            Schedule::Rate { rate: profile("--rate", Profile::rate(rate))?, spacing, clients }
        } else {
            let default = self.requests.map_or(CLIENTS, |requests| requests.min(CLIENTS));
            Schedule::Closed { clients: Profile::constant(f64::from(self.number_of_clients(default)?), None) }
        };
        let stop = self.stop(&schedule);
        Ok((schedule, stop))
    }

    fn number_of_clients(&self, default: u64) -> Result<u32, String> {
        let clients = self.clients.unwrap_or(default);
        let number = u32::try_from(clients).ok().filter(|_| clients <= CLIENTS_MAX);
        number.ok_or_else(|| format!("--clients {clients}: at most {CLIENTS_MAX} are possible\n  Use several machines with --start-at, and `seawall bench merge`."))
    }

    /// Says when a run by this schedule ends. Clients of a ramp stay when it is over, so a longer time holds for them; a schedule of requests or
    /// visitors has nothing to do after its end.
    pub(super) fn stop(&self, schedule: &Schedule) -> Stop {
        let end = schedule.end();
        let warm_up = self.warm_up.unwrap_or_default();
        let is_over = |duration: &Duration| schedule.is_open() && end.is_some_and(|end| warm_up + *duration >= end);
        let is_open_ended = self.requests.is_none() && end.is_none();
        let after = self.duration.filter(|duration| !is_over(duration));
        Stop { requests: self.requests, after: after.or_else(|| is_open_ended.then_some(DURATION)) }
    }

    /// Says how is asked.
    ///
    /// # Errors
    /// When more requests at a time are wanted than servers take.
    pub(super) fn protocol(&self) -> Result<Protocol, String> {
        let at_a_time = |name: &str, typed: Option<u64>| {
            let number = typed.unwrap_or(1);
            let short = u16::try_from(number).ok().filter(|_| number <= AT_A_TIME_MAX);
            short.ok_or_else(|| format!("{name} {number}: at most {AT_A_TIME_MAX} requests at a time are possible on a connection"))
        };
        Ok(if self.http3 {
            Protocol::Http3 { streams: at_a_time("--streams", self.streams)? }
        } else if self.http2 {
            Protocol::Http2 { streams: at_a_time("--streams", self.streams)? }
        } else {
            Protocol::Http1 { pipeline: at_a_time("--pipeline", self.pipeline)? }
        })
    }

    /// Says how connections are made and used.
    ///
    /// # Errors
    /// When connections would come from more addresses than can be kept.
    pub(super) fn connections(&self) -> Result<Connections, String> {
        let sources: Vec<IpAddr> = self.source.iter().flat_map(ipnet::IpNet::hosts).take(SOURCES_MAX + 1).collect();
        if sources.len() > SOURCES_MAX {
            return Err(format!("--source: at most {SOURCES_MAX} addresses are possible, as 127.0.16.0/20 has"));
        }
        if sources.iter().any(IpAddr::is_ipv4) && sources.iter().any(IpAddr::is_ipv6) {
            return Err(
                "--source: the addresses are of both versions of IP\n  Use those of the version by which the server is reached.".to_owned()
            );
        }
        Ok(Connections {
            no_keepalive: self.no_keepalive,
            resumed: self.tls_resume.unwrap_or(1.0),
            insecure: self.insecure,
            ca: self.ca.clone(),
            unix: self.unix.clone(),
            connect_to: self.connect_to,
            sources,
            ..Connections::default()
        })
    }

    /// How long a client waits.
    pub(super) fn patience(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// The number of threads: no more than there are clients.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn workers(&self, schedule: &Schedule) -> Result<usize, String> {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let typed = self.threads.unwrap_or(cores);
        if typed > THREADS_MAX {
            return Err(format!("--threads {typed}: at most {THREADS_MAX} are possible; this machine has {cores} cores"));
        }
        let most = schedule.clients_max().map_or(u64::MAX, |clients| u64::from(clients.max(1)));
        Ok(usize::try_from(typed.min(most)).unwrap_or(1))
    }

    /// The number of threads where nothing says how many clients there are.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn threads_typed(&self) -> Result<usize, String> {
        self.workers(&Schedule::Replay { moments: Vec::new().into() })
    }

    /// The beginning of all random choices. It has 32 bits, so that every reader of JSON reads it exactly.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| RandomState::new().hash_one(0) >> 32)
    }

    /// Finds what cannot be asked of these servers.
    ///
    /// # Errors
    /// When a flag does not fit the scheme of a URL.
    pub(super) fn fit(&self, origins: &[Origin]) -> Result<(), String> {
        let (tls, plain) = (origins.iter().find(|origin| origin.tls), origins.iter().find(|origin| !origin.tls));
        if tls.is_none() {
            for (name, typed) in [("--insecure", self.insecure), ("--ca", self.ca.is_some()), ("--tls-resume", self.tls_resume.is_some())] {
                if typed {
                    return Err(format!("{name} is for https\n  No URL begins with https://."));
                }
            }
        }
        if let (true, Some(plain)) = (self.http3, plain) {
            return Err(format!("HTTP/3 always has TLS, and {plain} begins with http://\n  Use https://, or --http1 or --http2."));
        }
        if let (Some(socket), Some(tls)) = (&self.unix, tls) {
            return Err(format!("--unix {} has no TLS, and {tls} begins with https://\n  Use http://.", socket.display()));
        }
        let (first, others) = (origins.first(), origins.len().saturating_sub(1));
        if let (Some(first), 1..) = (first, others) {
            let one =
                [("--unix", self.unix.is_some()), ("--connect-to", self.connect_to.is_some()), ("--direct", self.direct && !self.compare)];
            if let Some((name, _)) = one.iter().find(|(_, typed)| *typed) {
                return Err(format!(
                    "{name} leads to one server, and there are URLs of {others} more than {first}\n  Name URLs of one host."
                ));
            }
        }
        Ok(())
    }
}

fn profile(name: &str, read: Result<Profile, load::schedule::ProfileError>) -> Result<Profile, String> {
    read.map_err(|error| format!("{name} {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bench::tests::flags;

    fn schedule(line: &str) -> Result<(Schedule, Stop), String> {
        flags(format!("seawall bench http://127.0.0.1/ {line}")).schedule()
    }

    fn clients(number: f64) -> Schedule {
        Schedule::Closed { clients: Profile::constant(number, None) }
    }

    #[test]
    fn a_run_without_flags_is_fifty_clients_for_ten_seconds() {
        let after = |secs| Stop { requests: None, after: Some(Duration::from_secs(secs)) };
        let requests = |n| Stop { requests: Some(n), after: None };
        assert_eq!(schedule(""), Ok((clients(50.0), after(10))));
        assert_eq!(schedule("-c 500 -n 5000"), Ok((clients(500.0), requests(5_000))));
        assert_eq!(schedule("-n 7"), Ok((clients(7.0), requests(7))));
        assert_eq!(schedule("-c 500 -d 30"), Ok((clients(500.0), after(30))));
        let both = Stop { requests: Some(5_000), after: Some(Duration::from_mins(1)) };
        assert_eq!(schedule("-c 500 -n 5000 -d 1m"), Ok((clients(500.0), both)));
    }

    /// A schedule that ends by itself needs no other end.
    #[test]
    fn each_schedule_ends() {
        let secs = Duration::from_secs;
        let ramp = Schedule::Closed { clients: Profile::ramp(0.0, 5_000.0, secs(60)) };
        assert_eq!(schedule("--ramp 0..5000/60s"), Ok((ramp, Stop::default())));
        // Clients that have come stay until then.
        assert_eq!(schedule("--ramp 0..5000/60s -d 90").map(|it| it.1.after), Ok(Some(secs(90))));
        let arrivals = Schedule::Arrivals { rate: Profile::constant(10_000.0, Some(secs(60))), spacing: Spacing::Even };
        assert_eq!(schedule("--arrivals 10000/60s"), Ok((arrivals, Stop::default())));
        let rate = Schedule::Rate { rate: Profile::constant(1_000.0, None), spacing: Spacing::Poisson, clients: 1_000 };
        assert_eq!(schedule("--rate 1000 --poisson"), Ok((rate, Stop { requests: None, after: Some(secs(10)) })));
        assert!(matches!(schedule("--rate 1000 -c 20"), Ok((Schedule::Rate { clients: 20, .. }, _))));
        for (line, expected) in
            [("--ramp 5..", "--ramp"), ("--arrivals none", "--arrivals"), ("--rate 1000/s", "per second already"), ("-c 2000000", "merge")]
        {
            let error = schedule(line).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    /// Of several ends, the first is the end.
    #[test]
    fn a_schedule_ends_with_itself_or_with_the_time_whichever_is_first() {
        let stop = |line: &str| schedule(line).expect("a schedule").1;
        for (line, after) in [
            ("--rate 1000/10s -d 20s", None),
            ("--rate 1000/10s -d 10s", None),
            ("--arrivals 0..100/1m -d 2m", None),
            ("--rate 1000/10s -d 4s", Some(4)),
            // The time of the warm-up is part of the schedule's.
            ("--rate 1000/10s --warm-up 3s -d 8s", None),
            ("--rate 1000/10s --warm-up 3s -d 6s", Some(6)),
        ] {
            assert_eq!(stop(line), Stop { requests: None, after: after.map(Duration::from_secs) }, "{line}");
        }
        assert_eq!(stop("--rate 1000/10s -d 20s -n 50"), Stop { requests: Some(50), after: None });
    }

    #[test]
    fn protocols_and_connections_have_bounds() {
        let of = |line: &str| flags(format!("seawall bench http://127.0.0.1/ {line}"));
        assert_eq!(of("").protocol(), Ok(Protocol::Http1 { pipeline: 1 }));
        assert_eq!(of("--pipeline 16").protocol(), Ok(Protocol::Http1 { pipeline: 16 }));
        assert_eq!(of("--http2 --streams 10").protocol(), Ok(Protocol::Http2 { streams: 10 }));
        assert_eq!(of("--http3").protocol(), Ok(Protocol::Http3 { streams: 1 }));
        assert!(of("--http2 --streams 1001").protocol().is_err());
        let connections = of("--source 127.0.1.0/24 --no-keepalive").connections().expect("sound");
        assert_eq!((connections.sources.len(), connections.no_keepalive), (254, true));
        assert!(of("--source 127.0.0.0/8").connections().is_err() && of("--source 127.0.0.1 --source ::1").connections().is_err());
        let (schedule, _) = of("-c 1 -t 8").schedule().expect("sound");
        assert_eq!(of("-t 8").workers(&schedule), Ok(1), "no more than there are clients");
        assert!(of("-t 2000").workers(&schedule).is_err());
        assert_eq!(of("--seed 7").seed(), 7);
        assert!(of("").seed() <= u64::from(u32::MAX));
    }

    #[test]
    fn flags_for_tls_need_https() {
        let origin = |tls| Origin { tls, host: "a".to_owned(), port: 8080 };
        for (line, tls, expected) in [
            ("--insecure", false, "--insecure is for https"),
            ("--ca a.pem", false, "--ca is for https"),
            ("--tls-resume 0", false, "--tls-resume is for https"),
            ("--http3", false, "http://a:8080 begins with http://"),
            ("--unix s", true, "https://a:8080 begins with https://"),
        ] {
            let flags = flags(format!("seawall bench http://127.0.0.1/ {line}"));
            let error = flags.fit(&[origin(tls)]).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
            assert_eq!(flags.fit(&[origin(!tls)]), Ok(()), "{line}");
        }
        let two = [origin(false), Origin { host: "b".to_owned(), ..origin(false) }];
        for line in ["--unix s", "--connect-to 127.0.0.1:1", "--direct"] {
            assert!(
                flags(format!("seawall bench http://127.0.0.1/ {line}")).fit(&two).is_err_and(|error| error.contains("one host")),
                "{line}"
            );
        }
    }
}
