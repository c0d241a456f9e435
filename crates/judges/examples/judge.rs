//! Starts one of the servers, and serves until its standard input ends. Its first line on standard output is where it listens; its last one, what it counted.
//!
//!     judge truth h1|h1s|h2|h2s|h3 DELAY [BYTES]     DELAY: fixed:20, bimodal:5:200:50, stall:5:4000:2000 (ms; one of 50)
//!     judge bucket RATE refuse:503|delay
//!     judge proxy HOST:PORT CONNECT_MS REPLY_MS
//!     judge leaking EVERY
//!     judge expect DELAY RATE REQUESTS CONNECTIONS   prints the percentiles that even arrivals find, in ms, and ends

use std::{
    error::Error,
    io::{Read as _, Write as _},
    time::Duration,
};

use judges::{Bucket, Delay, Leaking, Proxy, Speaks, Truth, WhenEmpty};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn delay(text: &str) -> Result<Delay> {
    let (kind, numbers) = text.split_once(':').ok_or("a delay is as fixed:20")?;
    let numbers = numbers.split(':').map(str::parse).collect::<std::result::Result<Vec<u64>, _>>()?;
    let ms = Duration::from_millis;
    Ok(match (kind, numbers.as_slice()) {
        ("fixed", [delay]) => Delay::Fixed(ms(*delay)),
        ("bimodal", [fast, slow, every]) => Delay::Bimodal { fast: ms(*fast), slow: ms(*slow), every: *every },
        ("stall", [usual, begins, lasts]) => Delay::Stall { usual: ms(*usual), begins: ms(*begins), lasts: ms(*lasts) },
        _ => return Err("a delay is fixed:MS, bimodal:MS:MS:EVERY or stall:MS:MS:MS".into()),
    })
}

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Waits until whoever started this closes its standard input.
fn wait() -> Result<()> {
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["truth", speaks, how, more @ ..] => {
            let speaks = match *speaks {
                "h1" => Speaks::Http1,
                "h1s" => Speaks::Http1Tls,
                "h2" => Speaks::Http2,
                "h2s" => Speaks::Http2Tls,
                "h3" => Speaks::Http3,
                _ => return Err("it speaks h1, h1s, h2, h2s or h3".into()),
            };
            let bytes = more.first().map_or(Ok(1024), |bytes| bytes.parse())?;
            let server = Truth::start_on(0, speaks, delay(how)?, bytes);
            say(&server.address().to_string())?;
            wait()?;
            let late = server.lateness();
            say(&format!(
                "requests {} late_p50_us {} late_p99_9_us {}",
                server.requests(),
                late.at(0.5).as_micros(),
                late.at(0.999).as_micros()
            ))
        }
        ["bucket", rate, when] => {
            let when = match when.split_once(':') {
                Some(("refuse", status)) => WhenEmpty::Refuse(status.parse()?),
                _ => WhenEmpty::Delay,
            };
            let server = Bucket::start(rate.parse()?, when);
            say(&server.address().to_string())?;
            wait()?;
            say(&format!("served {} refused {}", server.counts().0, server.counts().1))
        }
        ["proxy", server, connect, reply] => {
            let proxy = Proxy::start(server.parse()?, Duration::from_millis(connect.parse()?), Duration::from_millis(reply.parse()?));
            say(&proxy.address().to_string())?;
            wait()?;
            say(&format!("connections {}", proxy.connections()))
        }
        ["leaking", every] => {
            let server = Leaking::start(every.parse()?);
            say(&server.address().to_string())?;
            wait()?;
            say(&format!("requests {} leaked {}", server.counts().0, server.counts().1))
        }
        ["expect", how, rate, requests, connections] => {
            let (due, sent) = delay(how)?.percentiles(rate.parse()?, requests.parse()?, connections.parse()?);
            for (name, quantile) in
                [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99_9", 0.999), ("max", 1.0)]
            {
                say(&format!("{name} {:.3} {:.3}", due.at(quantile).as_secs_f64() * 1e3, sent.at(quantile).as_secs_f64() * 1e3))?;
            }
            Ok(())
        }
        _ => Err("see the head of crates/judges/examples/judge.rs".into()),
    }
}
