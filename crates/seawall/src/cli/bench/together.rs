//! What cannot be typed together, and what needs something beside it: each with the reason and what to type instead.

use super::flags::Flags;

/// The ways to say when requests are made. One of them can be typed.
const SCHEDULES: [(&str, &str); 6] = [
    ("--ramp", "clients that stay and become more"),
    ("--arrivals", "new clients a second"),
    ("--rate", "requests a second"),
    ("--replay", "the requests of a log at its times"),
    ("--find-limit", "rates that Seawall chooses"),
    ("--shape", "the visitors of a crowd"),
];

/// Two flags that contradict each other, and what to do.
const NOT_TOGETHER: &[(&str, &str, &str)] = &[
    ("--clients", "--ramp", "a ramp says how many clients there are: leave --clients out"),
    ("--clients", "--arrivals", "each new client has a connection of its own: leave --clients out, or use --rate"),
    ("--clients", "--replay", "the log says who asks: leave --clients out"),
    ("--clients", "--shape", "the shape says who asks: leave --clients out, and use --peak for a larger crowd"),
    ("--clients", "--find-limit", "connections are opened as they are needed: leave --clients out"),
    ("--requests", "--find-limit", "the limit is found in steps of some seconds: leave --requests out"),
    ("--requests", "--compare", "each side gets rounds of equal time: use --duration for the whole comparison"),
    ("--duration", "--find-limit", "the limit is found in steps of some seconds: use --hold for the time at the limit"),
    ("--compare", "--find-limit", "run --find-limit for each of the URLs"),
    ("--compare", "--replay", "run the log against each, with --output, and use `seawall bench compare`"),
    ("--compare", "--shape", "run the shape against each, with --output, and use `seawall bench compare`"),
    ("--compare", "--arrivals", "compare with --clients or --rate"),
    ("--compare", "--ramp", "compare with --clients or --rate"),
    ("--compare", "--leak-check", "check for leaks in a run of its own"),
    ("--compare", "--urls", "compare two URLs; with --direct one URL, past the cache and with it"),
    ("--compare", "--sitemap", "compare two URLs; with --direct one URL, past the cache and with it"),
    ("--compare", "--start-at", "a comparison is made on one machine: leave --start-at out"),
    ("--find-limit", "--start-at", "the limit is found on one machine: leave --start-at out"),
    ("--compare", "--hgrm", "it holds one distribution: use --output, which has those of both sides"),
    ("--http1", "--http2", "choose one"),
    ("--http1", "--http3", "choose one"),
    ("--http2", "--http3", "choose one"),
    ("--pipeline", "--http2", "HTTP/2 has streams: use --streams"),
    ("--pipeline", "--http3", "HTTP/3 has streams: use --streams"),
    ("--pipeline", "--page", "browsers do not pipeline: leave --pipeline out"),
    ("--pipeline", "--no-keepalive", "a pipeline needs a connection that stays: leave one of them out"),
    ("--streams", "--no-keepalive", "streams need a connection that stays: leave one of them out"),
    ("--insecure", "--ca", "with --insecure every certificate is accepted: leave one of them out"),
    ("--unix", "--connect-to", "both say where to connect: leave one of them out"),
    ("--unix", "--source", "a Unix socket has no addresses: leave --source out"),
    ("--unix", "--http3", "HTTP/3 is spoken over UDP: leave one of them out"),
    ("--page", "--replay", "the log has the requests for what pages need: leave --page out"),
    ("--page", "--method", "a browser gets pages: leave --method out"),
    ("--page", "--body", "a browser gets pages: leave --body out"),
    ("--replay", "--urls", "the log says what is asked: leave --urls out"),
    ("--replay", "--sitemap", "the log says what is asked: leave --sitemap out"),
    ("--replay", "--method", "the log says what is asked: leave --method out"),
    ("--replay", "--body", "a log has no content: leave --body out"),
    ("--shape", "--urls", "a shape takes its pages from the URLs or from --sitemap: leave --urls out"),
    ("--in-order", "--shape", "the shape says what is asked: leave --in-order out"),
    ("--in-order", "--replay", "the log says what is asked: leave --in-order out"),
    ("--shape", "--page", "the shape says who fetches whole pages: leave --page out"),
    ("--shape", "--method", "the shape says what is asked: leave --method out"),
    ("--shape", "--body", "the shape says what is asked: leave --body out"),
    ("--shape", "--poisson", "a shape's visitors come at random moments already: leave --poisson out"),
    ("--ramp", "--poisson", "clients that stay come along the ramp: use --poisson with --arrivals or --rate"),
    ("--replay", "--poisson", "the log says when: use --poisson with --arrivals or --rate"),
    ("--find-limit", "--warm-up", "each step has a warm-up already: leave --warm-up out"),
    ("--direct", "--unix", "the field that goes past the cache is for the Seawall of this machine, by its URL: leave --unix out"),
];

/// A flag that means something only beside one of others, and what it is for.
const NEEDS: &[(&str, &[&str], &str)] = &[
    ("--speed", &["--replay"], "it says how many times as fast a log is replayed"),
    ("--writes", &["--replay"], "it says what of a log is replayed"),
    ("--page-origin", &["--page", "--shape"], "it says where parts of pages may be"),
    ("--body-placeholders", &["--body"], "it says how the content is read"),
    ("--peak", &["--shape"], "it says how large the shape's crowd is"),
    ("--over", &["--shape"], "it says how long the shape's crowd lasts"),
    ("--poisson", &["--arrivals", "--rate", "--find-limit", "--compare"], "clients that stay ask again as soon as they are answered"),
    ("--limit-p99", &["--find-limit"], "it says what counts as keeping up"),
    ("--limit-errors", &["--find-limit"], "it says what counts as keeping up"),
    ("--hold", &["--find-limit"], "it says how long the limit is held"),
    ("--streams", &["--http2", "--http3"], "HTTP/1.1 has no streams; --pipeline sends several requests at once"),
];

impl Flags {
    /// Lists the flags that were typed, by their long names.
    pub(super) fn typed(&self) -> Vec<&'static str> {
        let Self { clients, requests, duration, ramp, arrivals, rate, poisson, replay, speed, find_limit, .. } = self;
        let Self { urls_from, sitemap, page, shape, peak, over, method, body, limit_p99, limit_errors, hold, warm_up, .. } = self;
        let Self { http1, http2, http3, streams, pipeline, no_keepalive, tls_resume, insecure, ca, unix, connect_to, source, .. } = self;
        let Self { in_order, page_origin, body_placeholders, writes, .. } = self;
        let Self { leak_check, direct, compare, quiet, html, svg, hgrm, output, i_own_this, cookies, start_at, .. } = self;
        let all = [
            ("--clients", clients.is_some()),
            ("--requests", requests.is_some()),
            ("--duration", duration.is_some()),
            ("--ramp", ramp.is_some()),
            ("--arrivals", arrivals.is_some()),
            ("--rate", rate.is_some()),
            ("--poisson", *poisson),
            ("--replay", replay.is_some()),
            ("--speed", speed.is_some()),
            ("--find-limit", *find_limit),
            ("--urls", !urls_from.is_empty()),
            ("--in-order", *in_order),
            ("--page-origin", !page_origin.is_empty()),
            ("--body-placeholders", *body_placeholders),
            ("--writes", *writes),
            ("--sitemap", sitemap.is_some()),
            ("--page", *page),
            ("--shape", shape.is_some()),
            ("--peak", peak.is_some()),
            ("--over", over.is_some()),
            ("--method", method.is_some()),
            ("--body", body.is_some()),
            ("--cookies", *cookies),
            ("--limit-p99", limit_p99.is_some()),
            ("--limit-errors", limit_errors.is_some()),
            ("--hold", hold.is_some()),
            ("--warm-up", warm_up.is_some()),
            ("--start-at", start_at.is_some()),
            ("--http1", *http1),
            ("--http2", *http2),
            ("--http3", *http3),
            ("--streams", streams.is_some()),
            ("--pipeline", pipeline.is_some()),
            ("--no-keepalive", *no_keepalive),
            ("--tls-resume", tls_resume.is_some()),
            ("--insecure", *insecure),
            ("--ca", ca.is_some()),
            ("--unix", unix.is_some()),
            ("--connect-to", connect_to.is_some()),
            ("--source", !source.is_empty()),
            ("--leak-check", leak_check.is_some()),
            ("--direct", *direct),
            ("--compare", *compare),
            ("--quiet", *quiet),
            ("--html", html.is_some()),
            ("--svg", svg.is_some()),
            ("--hgrm", hgrm.is_some()),
            ("--output", output.is_some()),
            ("--i-own-this", *i_own_this),
        ];
        all.into_iter().filter(|(_, typed)| *typed).map(|(name, _)| name).collect()
    }

    /// Finds the first contradiction among the flags, in words.
    ///
    /// # Errors
    /// When there is one.
    pub(super) fn agree(&self) -> Result<(), String> {
        let typed = self.typed();
        let has = |name: &&str| typed.contains(name);
        let schedules: Vec<_> = SCHEDULES.iter().filter(|(name, _)| has(name)).collect();
        if let [(one, what), (other, what_else), ..] = schedules.as_slice() {
            return Err(format!(
                "{one} and {other} cannot be used together: one asks for {what}, the other for {what_else}\n  Choose one."
            ));
        }
        if let Some((one, other, remedy)) = NOT_TOGETHER.iter().find(|(one, other, _)| has(one) && has(other)) {
            return Err(format!("{one} and {other} cannot be used together\n  {}.", capital(remedy)));
        }
        if let Some((one, needed, why)) = NEEDS.iter().find(|(one, needed, _)| has(one) && !needed.iter().any(has)) {
            return Err(format!("{one} is for {}\n  {}.", list(needed), capital(why)));
        }
        // hey has -q N for requests a second of each client.
        if let Some(number) = self.urls.iter().find(|url| self.quiet && url.parse::<f64>().is_ok()) {
            let all = number.parse::<u64>().ok().and_then(|rate| rate.checked_mul(self.clients.unwrap_or(50)));
            let rate = all.map_or_else(|| "1000".to_owned(), |rate| rate.to_string());
            return Err(format!(
                "{number} is not a URL, and -q is --quiet here\n  --rate is the number of requests a second of all clients together: --rate {rate}."
            ));
        }
        if let (Some(clients), Some(requests)) = (self.clients, self.requests)
            && clients > requests
            && self.rate.is_none()
        {
            return Err(format!("{clients} clients cannot share {requests} requests\n  Use --clients {requests}, or more --requests."));
        }
        Ok(())
    }
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next()
        .map_or_else(String::new, |first| if text.starts_with("--") { text.to_owned() } else { first.to_uppercase().chain(rest).collect() })
}

fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bench::tests::flags;

    /// Each contradiction is told in words that name both flags and what to do.
    #[test]
    fn every_contradiction_names_both_flags_and_the_remedy() {
        let value = |name: &str| match name {
            "--clients" | "--requests" | "--peak" | "--streams" | "--pipeline" => "7",
            "--duration" | "--over" | "--hold" | "--warm-up" => "7s",
            "--limit-p99" => "700ms",
            "--ramp" => "0..7/7s",
            "--arrivals" | "--rate" | "--speed" => "7",
            "--tls-resume" | "--limit-errors" => "0.5",
            "--page-origin" => "http://127.0.0.1:7",
            "--connect-to" => "127.0.0.1:7",
            "--source" => "127.0.1.0/24",
            "--in-order"
            | "--body-placeholders"
            | "--writes"
            | "--poisson"
            | "--find-limit"
            | "--page"
            | "--http1"
            | "--http2"
            | "--http3"
            | "--no-keepalive"
            | "--insecure"
            | "--compare"
            | "--direct"
            | "--leak-check"
            | "--quiet" => "",
            _ => "x",
        };
        for (one, other, remedy) in NOT_TOGETHER {
            let line = format!("seawall bench http://127.0.0.1/ {one} {} {other} {}", value(one), value(other));
            let error = flags(&line).agree().expect_err(&line);
            assert!(error.contains(one) && error.contains(other), "{line}: {error}");
            let schedules = [one, other].iter().all(|flag| SCHEDULES.iter().any(|(name, _)| name == *flag));
            assert!(schedules || error.contains(&remedy[1..]), "{line}: {error}");
        }
        for (one, needed, _) in NEEDS {
            let line = format!("seawall bench http://127.0.0.1/ {one} {}", value(one));
            let error = flags(&line).agree().expect_err(&line);
            assert!(error.contains(one) && needed.iter().all(|needed| error.contains(needed)), "{line}: {error}");
        }
        let all: Vec<_> = SCHEDULES.iter().map(|(name, _)| *name).collect();
        for one in &all {
            for other in all.iter().filter(|other| *other != one) {
                let line = format!("seawall bench http://127.0.0.1/ {one} {} {other} {}", value(one), value(other));
                let error = flags(&line).agree().expect_err(&line);
                assert!(error.contains(one) && error.contains(other) && error.contains("Choose one"), "{line}: {error}");
            }
        }
    }

    /// A flag that is named here exists; and one that says when requests are made is in the list of those.
    #[test]
    fn every_flag_that_is_named_here_can_be_typed() {
        let command = <crate::cli::bench::Bench as clap::Args>::augment_args(clap::Command::new("bench"));
        let longs: Vec<String> = command.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
        let named = NOT_TOGETHER.iter().flat_map(|(one, other, _)| [*one, *other]).chain(NEEDS.iter().map(|(one, ..)| *one));
        for name in named.chain(SCHEDULES.iter().map(|(name, _)| *name)) {
            assert!(longs.iter().any(|long| long == name), "{name}");
        }
    }

    #[test]
    fn what_agrees_is_no_mistake() {
        for line in [
            "seawall bench http://127.0.0.1/",
            "seawall bench http://127.0.0.1/ -c 500 -n 5000",
            "seawall bench http://127.0.0.1/ --rate 1000/60s --clients 200 --poisson",
            "seawall bench http://127.0.0.1/ --compare --direct",
            "seawall bench https://127.0.0.1/ --http2 --streams 10 --insecure",
            "seawall bench http://127.0.0.1/ --find-limit --limit-p99 200ms --poisson",
            "seawall bench http://127.0.0.1/ --replay access.log --speed 10",
        ] {
            flags(line).agree().expect(line);
        }
        assert!(flags("seawall bench http://a/ -c 10 -n 5").agree().is_err_and(|error| error.contains("--clients 5")));
    }
}
