//! Every schedule over every version of HTTP against nginx, h2o, Caddy and Seawall: what the run counted is what the server's log has.

use std::fs;

use super::{
    servers::{Over, Server},
    tool::bench,
};

/// Says what is known of a schedule's requests before it runs.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// There are exactly so many.
    Exactly(u64),
    /// There are as many as came in a time; requests that were under way at its end may be in the log and not in the result, at most so
    /// many.
    UnderWay(u64),
}

/// Each schedule. 500 ms are enough to see whether all is counted.
const SCHEDULES: [(&str, &[&str], Known); 8] = [
    ("clients-and-requests", &["-c", "5", "-n", "100"], Known::Exactly(100)),
    ("clients-and-time", &["-c", "5", "-d", "300ms"], Known::UnderWay(20)),
    ("ramp-of-clients", &["--ramp", "0..10/500ms"], Known::UnderWay(40)),
    ("arrivals", &["--arrivals", "100/500ms"], Known::Exactly(50)),
    ("ramp-of-arrivals", &["--arrivals", "0..200/500ms"], Known::Exactly(50)),
    ("rate", &["-c", "8", "--rate", "200/500ms"], Known::Exactly(100)),
    ("ramp-of-rate", &["-c", "8", "--rate", "0..400/500ms"], Known::Exactly(100)),
    ("no-keepalive", &["-c", "4", "-n", "40", "--no-keepalive"], Known::Exactly(40)),
];

fn judge(server: &Server) {
    for over in server.over {
        for (name, words, known) in SCHEDULES {
            let run = format!("{name}-{over:?}");
            let what = format!("{} {run}", server.name);
            // Streams beside each other, and a connection for each request: that contradicts itself.
            let flags: Vec<_> = over.flags().iter().copied().take(if name == "no-keepalive" { 2 } else { usize::MAX }).collect();
            let told = bench(&[words, flags.as_slice(), &[server.url(*over, &run).as_str()]].concat());
            let (requests, answered) = (told.count("requests"), told.count("answered"));
            assert_eq!((told.code, told.errors()), (Some(0), Vec::new()), "{what}: {}", told.complaints);
            assert_eq!(told.at("statuses.200").as_u64(), Some(answered), "{what}");
            let logged = server.logged(&run, requests);
            match known {
                Known::Exactly(expected) => assert_eq!((requests, answered, logged), (expected, expected, expected), "{what}"),
                Known::UnderWay(most) => {
                    assert!(requests > 0 && requests == answered, "{what}: {requests} requests, {answered} answered");
                    assert!(logged - answered <= most, "{what}: {answered} answered, and the log has {logged}");
                }
            }
        }
        poisson_and_a_log(server, *over);
    }
}

/// Random arrivals have a number that is not known before; a log has its own.
fn poisson_and_a_log(server: &Server, over: Over) {
    let run = format!("poisson-{over:?}");
    let told = bench(&[&["-c", "8", "--rate", "200/500ms", "--poisson"], over.flags(), &[server.url(over, &run).as_str()]].concat());
    assert_eq!(told.errors(), Vec::new());
    // 100 are expected; six times the standard deviation, which is ten, are enough for ever.
    assert!((40..=160).contains(&told.count("requests")), "{}", told.count("requests"));
    assert_eq!(server.logged(&run, told.count("requests")), told.count("requests"), "{} {run}", server.name);

    let run = format!("replay-{over:?}");
    let line = |second: u32| {
        format!("10.0.0.{second} - - [01/Jan/2026:00:00:{second:02} +0000] \"GET /page?run={run} HTTP/1.1\" 200 8400 \"-\" \"-\"\n")
    };
    let log = server.folder().join(format!("{run}.log"));
    fs::write(&log, (0..30).map(line).collect::<String>()).expect("written");
    let url = server.url(over, &run);
    let root = &url[..=url.find("/page").expect("a path")];
    let told = bench(&[&["--replay", log.to_str().expect("text"), "--speed", "60"], over.flags(), &[root]].concat());
    assert_eq!((told.count("requests"), told.errors()), (30, Vec::new()), "{} {run}", server.name);
    assert_eq!(server.logged(&run, 30), 30, "{} {run}", server.name);
}

#[test]
fn nginx_has_logged_what_was_counted() {
    judge(&Server::nginx());
}

#[test]
fn h2o_has_logged_what_was_counted() {
    judge(&Server::h2o());
}

#[test]
fn caddy_has_logged_what_was_counted() {
    judge(&Server::caddy());
}

#[test]
fn seawall_has_logged_what_was_counted() {
    judge(&Server::seawall());
}
