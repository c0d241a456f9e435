//! Loads one address over HTTP/1.1, to see what the engine itself costs: `hammer HOST:PORT PATH CLIENTS SECONDS [WORKERS [RATE | -ARRIVALS [tls]]]`.

#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers from the command line")]

use std::{io::Write as _, sync::Arc, time::Duration};

use bytes::Bytes;
use load::{
    Plan, Protocol, Schedule, Stop,
    plan::{Connections, TIMEOUT},
    requests::{Origin, Request, RequestSet},
    schedule::{Profile, Spacing},
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: f64| arguments.get(at).and_then(|argument| argument.parse().ok()).unwrap_or(otherwise);
    let (host, port) = arguments[0].split_once(':').expect("HOST:PORT");
    let request = Request {
        origin: 0,
        method: "GET".to_owned(),
        target: arguments[1].clone(),
        fields: vec![("User-Agent".to_owned(), "hammer".to_owned())],
        body: Bytes::new(),
        weight: 1,
    };
    let origin =
        Origin { tls: arguments.get(6).is_some_and(|word| word == "tls"), host: host.to_owned(), port: port.parse().expect("a port") };
    let (clients, seconds, rate) = (number(2, 1.0), Duration::from_secs_f64(number(3, 1.0)), number(5, 0.0));
    let plan = Plan {
        requests: Arc::new(RequestSet { origins: vec![origin], requests: vec![request], ..RequestSet::default() }),
        schedule: if rate > 0.0 {
            Schedule::Rate { rate: Profile::constant(rate, None), spacing: Spacing::Even, clients: clients as u32 }
        } else if rate < 0.0 {
            Schedule::Arrivals { rate: Profile::constant(-rate, Some(seconds)), spacing: Spacing::Even }
        } else {
            Schedule::Closed { clients: Profile::constant(clients, None) }
        },
        protocol: Protocol::Http1 { pipeline: 1 },
        stop: Stop { requests: None, after: (rate >= 0.0).then_some(seconds) },
        connections: Connections { insecure: true, ..Connections::default() },
        timeout: TIMEOUT,
        warm_up: Duration::ZERO,
        workers: number(4, 1.0) as usize,
        seed: 0,
        cap: None,
    };
    let mut results = load::run(&plan, &mut ()).expect("the run is made");
    results.seconds.clear();
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&results).expect("results are JSON")).expect("standard output");
}
