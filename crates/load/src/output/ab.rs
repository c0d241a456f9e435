//! The result in the layout of ApacheBench, for scripts that read its lines.
//!
//! Lines about what is not measured are left out: the server's software, and lengths of contents without their heads.

use crate::{
    record::{Distribution, ErrorClass},
    results::{Encoded, Results, Times},
};

/// Writes the result as `ab` does.
#[must_use]
pub fn ab(results: &Results) -> String {
    let Results { duration, requests, answered, rate, bytes, .. } = *results;
    let url: http::Uri = results.run.urls.first().and_then(|url| url.rsplit(' ').next()?.parse().ok()).unwrap_or_default();
    let port = url.port_u16().unwrap_or(if results.run.tls { 443 } else { 80 });
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let clients = u64::from(results.clients.max(1));
    let mut text = String::new();
    let mut line = |name: &str, value: String| text += &format!("{name:<24}{value}\n");
    line("Server Hostname:", url.host().unwrap_or_default().to_owned());
    line("Server Port:", port.to_string());
    line("Document Path:", path.to_owned());
    line("Concurrency Level:", clients.to_string());
    line("Time taken for tests:", format!("{duration:.3} seconds"));
    line("Complete requests:", requests.to_string());
    // It does not count an answer as failed for its status: those have a line of their own.
    let errors = |classes: &[ErrorClass]| classes.iter().filter_map(|class| results.errors.get(class)).sum::<u64>();
    let failed = results.errors_count() - errors(&[ErrorClass::Status]);
    line("Failed requests:", failed.to_string());
    if failed > 0 {
        let connect = errors(&[ErrorClass::Resolve, ErrorClass::Refused, ErrorClass::Connect, ErrorClass::Tls]);
        let receive = errors(&[ErrorClass::Reset, ErrorClass::Timeout, ErrorClass::Unfinished]);
        let length = errors(&[ErrorClass::Truncated, ErrorClass::Body]);
        let exceptions = failed - connect - receive - length;
        text += &format!("   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: {exceptions})\n");
    }
    let mut line = |name: &str, value: String| text += &format!("{name:<24}{value}\n");
    let other = results.statuses.iter().filter(|(status, _)| !(200..300).contains(*status)).map(|(_, times)| times).sum::<u64>();
    if other > 0 {
        line("Non-2xx responses:", other.to_string());
    }
    line("Total transferred:", format!("{bytes} bytes"));
    let each = |of: u64| if answered > 0 { duration * 1e3 * of as f64 / answered as f64 } else { 0.0 };
    line("Requests per second:", format!("{rate:.2} [#/sec] (mean)"));
    line("Time per request:", format!("{:.3} [ms] (mean)", if results.run.open { results.latency.mean } else { each(clients) }));
    line("Time per request:", format!("{:.3} [ms] (mean, across all concurrent requests)", each(1)));
    line("Transfer rate:", format!("{:.2} [Kbytes/sec] received", if duration > 0.0 { bytes as f64 / 1024.0 / duration } else { 0.0 }));
    text += "\nConnection Times (ms)\n              min  mean[+/-sd] median   max\n";
    let connect = of_each_request(&results.connect, requests);
    for (name, times) in [
        ("Connect:", &connect),
        ("Processing:", &results.latency_uncorrected),
        ("Waiting:", &results.first_byte),
        ("Total:", &results.latency),
    ] {
        let Times { min, mean, stdev, p50, max, .. } = times;
        text += &format!("{name:<12} {min:4.0} {mean:5.0} {stdev:6.1} {p50:6.0} {max:7.0}\n");
    }
    text += "\nPercentage of the requests served within a certain time (ms)\n";
    let latency = distribution(&results.histograms.latency);
    for percent in [50_u32, 66, 75, 80, 90, 95, 98, 99] {
        text += &format!(" {percent:3}%  {:5.0}\n", at(&latency, f64::from(percent) / 100.0));
    }
    text += &format!(" 100%  {:5.0} (longest request)\n", results.latency.max);
    text
}

/// Spreads the times of connecting over all requests: one on a connection that was there already took none, and `ab` counts it so.
fn of_each_request(connect: &Times, requests: u64) -> Times {
    if connect.count >= requests {
        return *connect;
    }
    let part = connect.count as f64 / requests as f64;
    let mean = connect.mean * part;
    let stdev = (part * (connect.stdev.powi(2) + connect.mean.powi(2)) - mean.powi(2)).max(0.0).sqrt();
    Times { min: 0.0, mean, stdev, p50: if part > 0.5 { connect.p50 } else { 0.0 }, ..*connect }
}

/// Reads a histogram; one that is not readable is as one that is empty.
pub(super) fn distribution(encoded: &Encoded) -> Distribution {
    let mut times = Distribution::new(3);
    if encoded.add_to(&mut times).is_err() {
        times = Distribution::new(3);
    }
    times
}

/// Returns the time within which a part of the requests ended, in milliseconds.
pub(super) fn at(times: &Distribution, quantile: f64) -> f64 {
    let times = times.nanoseconds();
    if times.is_empty() { 0.0 } else { times.value_at_quantile(quantile) as f64 / 1e6 }
}
