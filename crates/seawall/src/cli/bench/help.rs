//! Examples for `seawall help bench`. Each works as it is printed, if Seawall serves http://127.0.0.1:8080.

pub(super) const EXAMPLES: &str = "\
Examples:
  seawall bench http://127.0.0.1:8080/
      50 clients for 10 seconds.

  seawall bench http://127.0.0.1:8080/ -c 5 --compare --direct --html proof.html
      Before and after: past the cache of the running Seawall and with it, alternately, with a report.

  seawall bench http://127.0.0.1:8080/ -c 500 -n 5000
      500 clients, 5,000 requests, as ab -k and wrk do it; with --no-keepalive as ab without -k.

  seawall bench http://127.0.0.1:8080/ --ramp 0..500/20s
      Clients that become more.

  seawall bench http://127.0.0.1:8080/ --arrivals 100/10s --page
      100 new readers each second, who fetch the page with all that belongs to it.

  seawall bench http://127.0.0.1:8080/ --find-limit --limit-p99 200ms
      The highest rate at which 99 % of the answers come within 200 ms.

  seawall bench --sitemap http://127.0.0.1:8080/ --rate 200 -d 10s
      200 requests a second, for every page of the sitemap.

  seawall bench http://127.0.0.1:8080/ --shape hacker-news --over 1m
      A front page of Hacker News, in a minute.

  seawall bench http://127.0.0.1:8080 --replay access.log --speed 10
      What a log says, ten times as fast.

  seawall bench http://127.0.0.1:8080/ -n 5000 --fail-if 'p99>200ms' --fail-if 'errors>0'
      For continuous integration: exit code 3 if a bound is exceeded.

  seawall bench compare old.json new.json
      Two results that --output has written.

Ctrl-C ends a run and shows what it has found. Exit code 0: the run was made; 1: it could not be, or nothing was answered; 2: mistyped; 3: a bound of
--fail-if was exceeded; 4: --leak-check found a leak.";
