//! One connection to the origin: reads requests strictly, one after the other, and does what their replies say.
//!
//! What comes in is the proxy's own work, so a request that is not well-formed fails the test just as an unexpected one does.

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use std::net::Ipv6Addr;
use std::sync::Arc;

use super::record::{Mode, Record, SeenRequest};
use super::reply::{Reply, Step, status};
use crate::Fields;
use crate::fields::is_token;
use crate::wire::{Fault, Rest, Wire, framing, malformed};

/// Answers requests on `stream` until it is closed, by either side.
pub(super) async fn serve(stream: TcpStream, record: Arc<Record>) {
    let open = record.connect();
    // There is no delay: data that a step sends must be on its way when the next one waits.
    let _ = stream.set_nodelay(true);
    let mut wire = Wire::new(stream);
    loop {
        match exchange(&mut wire, open.number, &record).await {
            Ok(After::NextRequest) => {}
            Ok(After::Close) => return close(wire).await,
            Ok(After::Gone) => return,
            Err(Fault::Malformed(what)) => {
                record.complain(format!("something that is not a well-formed request, on connection {}: {what}\n", open.number));
                // The peer may be gone already.
                let _ = send(&mut wire, status(400).field("connection", "close").close(), "GET").await;
                return close(wire).await;
            }
            // The proxy may give up a request at any point, for instance because its own client left.
            Err(Fault::BrokenOff | Fault::Lost(_)) => return,
        }
    }
}

/// The state of a connection after an exchange.
enum After {
    NextRequest,
    Close,
    /// The connection was reset, or closed by the peer.
    Gone,
}

async fn exchange(wire: &mut Wire<TcpStream>, connection: usize, record: &Record) -> Result<After, Fault> {
    let Some((start, fields)) = wire.head().await? else { return Ok(After::Gone) };
    let mut request = request_line(&start)?;
    let rest = checked_framing(&request, &fields)?;
    request.connection = connection;
    request.fields = fields;

    let mut close = request.fields.lists("connection", "close") || request.version == "HTTP/1.0";
    if rest != Rest::Nothing && record.mode() == Mode::Answering && record.answers_before_content(&request) {
        close = true;
    } else {
        if request.fields.lists("expect", "100-continue") && record.mode() == Mode::Answering {
            wire.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        request.body = wire.content(rest).await?;
    }

    let method = request.method.clone();
    let line = format!("{} {}", request.method, request.target);
    let reply = match record.answer(request) {
        Some(reply) => reply,
        None if record.mode() == Mode::Silent => {
            wire.peer_closed().await;
            return Ok(After::Gone);
        }
        // This answer cannot be stored, so that the test's later steps do not fail in more confusing ways.
        None => {
            let body = format!("the origin did not expect: {line}");
            status(500).body(body).field("cache-control", "no-store").field("connection", "close").close()
        }
    };
    match send(wire, reply, &method).await? {
        After::NextRequest if close => Ok(After::Close),
        after => Ok(after),
    }
}

/// Does what `reply` says, step by step.
async fn send(wire: &mut Wire<TcpStream>, reply: Reply, method: &str) -> Result<After, Fault> {
    for step in reply.steps(method) {
        match step {
            Step::Send(bytes) => wire.send(&bytes).await?,
            Step::Wait(gate) => tokio::select! {
                () = gate.pass() => {}
                () = wire.peer_closed() => return Ok(After::Gone),
            },
            Step::Close => return Ok(After::Close),
            Step::Reset => {
                wire.stream.set_zero_linger()?;
                return Ok(After::Gone);
            }
            Step::Echo => {
                while let Some(bytes) = wire.some().await? {
                    wire.send(&bytes).await?;
                }
                return Ok(After::Close);
            }
        }
    }
    Ok(After::NextRequest)
}

/// Closes the connection so that the last data arrives: closing while the peer still sends would reset the connection and lose it.
async fn close(mut wire: Wire<TcpStream>) {
    if wire.stream.shutdown().await.is_ok() {
        wire.peer_closed().await;
    }
}

/// Reads a request line as a gateway has to send it (RFC 9112 §3): a token, one space, a target, one space, the version.
fn request_line(line: &[u8]) -> Result<SeenRequest, Fault> {
    let bad = || malformed(format!("request line {:?}", String::from_utf8_lossy(line)));
    let text = str::from_utf8(line).map_err(|_| bad())?;
    let parts: Vec<&str> = text.split(' ').collect();
    let [method, target, version] = parts[..] else { return Err(bad()) };
    let method_is_token = !method.is_empty() && method.bytes().all(is_token);
    // A gateway sends the origin form or, for OPTIONS, the asterisk form: this is not a proxy. A fragment is never sent (RFC 9110 §7.1).
    let target_fits = (target.starts_with('/') || (target == "*" && method == "OPTIONS"))
        && target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    // CONNECT makes a tunnel, which a gateway has no reason to ask for.
    if !method_is_token || method == "CONNECT" || !target_fits || !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(bad());
    }
    Ok(SeenRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        version: version.to_owned(),
        fields: Fields::default(),
        body: Bytes::new(),
        connection: 0,
    })
}

/// Returns where the content ends, if `Host` (RFC 9112 §3.2) and the framing fields are correct.
fn checked_framing(request: &SeenRequest, fields: &Fields) -> Result<Rest, Fault> {
    let hosts: Vec<&str> = fields.all("host").collect();
    let host_fits = match hosts[..] {
        [] => request.version == "HTTP/1.0",
        [host] => host_is_authority(host),
        _ => false,
    };
    if !host_fits {
        return Err(malformed(format!("{} {} {} with host {hosts:?}", request.method, request.target, request.version)));
    }
    if request.version == "HTTP/1.0" && fields.has("transfer-encoding") {
        return Err(malformed("transfer-encoding in an HTTP/1.0 request"));
    }
    Ok(framing(fields)?.unwrap_or(Rest::Nothing))
}

/// Returns whether a `Host` is `uri-host [":" port]` (RFC 9110 §7.2), with names of letters, digits and what DNS and registries add to
/// them.
fn host_is_authority(host: &str) -> bool {
    let port_fits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if let Some((address, rest)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return address.parse::<Ipv6Addr>().is_ok() && (rest.is_empty() || rest.strip_prefix(':').is_some_and(port_fits));
    }
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) && port.is_none_or(port_fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
        for host in ["blog.example", "blog.example:80", "127.0.0.1:8080", "[::1]", "[::1]:80", "a_b~c"] {
            assert!(host_is_authority(host), "{host}");
        }
        for host in [
            "", ":80", "a b", "a:", "a:x", "a:+1", "a:65536", "a:1:2", "[::1", "[::1]x", "[::1]:", "[a]", "u@a", "a,b", "a/b", "a?",
            "http://a",
        ] {
            assert!(!host_is_authority(host), "{host}");
        }
    }

    #[test]
    fn a_request_line_has_three_parts_and_asks_a_server_and_no_proxy() {
        for line in ["GET / HTTP/1.1", "PURGE /a?b HTTP/1.0", "OPTIONS * HTTP/1.1", "get //a HTTP/1.1"] {
            assert!(request_line(line.as_bytes()).is_ok(), "{line}");
        }
        for line in [
            "",
            "GET",
            "GET /",
            "GET  / HTTP/1.1",
            "GET / HTTP/1.1 ",
            " GET / HTTP/1.1",
            "GET * HTTP/1.1",
            "GET a HTTP/1.1",
            "GET /#a HTTP/1.1",
            "GET http://a/ HTTP/1.1",
            "CONNECT /a HTTP/1.1",
            "CONNECT a:1 HTTP/1.1",
            "G:T / HTTP/1.1",
            "GET / HTTP/2",
            "GET /\u{e9} HTTP/1.1",
        ] {
            assert!(request_line(line.as_bytes()).is_err(), "{line}");
        }
    }
}
