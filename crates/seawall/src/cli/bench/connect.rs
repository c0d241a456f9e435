//! A first look at the servers, before the load begins: whether they can be reached, and whether their certificates are trusted. A typo is then told
//! in a line, and not after a minute of errors. No request is made, so a server's log has those of the run alone.

use std::{
    io::{self, ErrorKind},
    net::{SocketAddr, TcpStream, ToSocketAddrs as _},
    os::unix::net::UnixStream,
    sync::Arc,
    time::Duration,
};

use load::{
    Plan, Protocol,
    engine::{NotMet, Tls, look_over_http3, untrusted},
    plan::Connections,
    requests::Origin,
};
use rustls::{ClientConnection, pki_types::ServerName};

/// The longest wait for a server. Whoever waits for longer under load is counted; here nobody else asks.
const WAIT: Duration = Duration::from_secs(5);

/// The servers that are looked at. A list may name thousands, and the errors of the others are counted.
const SERVERS_MAX: usize = 8;

/// Looks whether the servers of a plan can be reached.
///
/// # Errors
/// When one cannot be, in words with what to do.
pub(super) fn reachable(plan: &Plan) -> Result<(), String> {
    let wait = WAIT.min(plan.timeout);
    if let Some(socket) = &plan.connections.unix {
        let error = |error: io::Error| format!("{}: {}", socket.display(), in_words(&error, "a server", wait));
        return UnixStream::connect(socket).map(drop).map_err(error);
    }
    let tls = Tls::new(plan).map_err(|error| with_causes(&error))?;
    if let (Protocol::Http3 { .. }, Some(tls)) = (plan.protocol, &tls) {
        return look_over_http3(plan, tls, SERVERS_MAX, wait).map_err(|(at, error)| {
            let origin = plan.requests.origins.get(at).map_or_else(String::new, ToString::to_string);
            format!("{origin}: {}", not_met_in_words(&error, &plan.connections))
        });
    }
    for (number, origin) in plan.requests.origins.iter().enumerate().take(SERVERS_MAX) {
        let stream = connected(plan, number, origin, wait)?;
        if let Some(tls) = tls.as_ref().filter(|_| origin.tls) {
            let number = u16::try_from(number).unwrap_or_default();
            let config = Arc::clone(tls.configs()[1]);
            let protocol = plan.protocol;
            shake_hands(&stream, config, tls.name(number).clone(), wait, &plan.connections)
                .and_then(|alpn| speaks(protocol, alpn.as_deref()))
                .map_err(|error| format!("{origin}: {error}"))?;
        }
    }
    Ok(())
}

fn connected(plan: &Plan, number: usize, origin: &Origin, wait: Duration) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = match (plan.connections.connect_to, plan.connections.addresses.get(number)) {
        (Some(address), _) => vec![address],
        (None, Some(known)) if !known.is_empty() => known.clone(),
        (None, _) => (origin.host.as_str(), origin.port)
            .to_socket_addrs()
            .map_err(|_| {
                format!(
                    "{origin}: there is no address for the name {}\n  Is it spelled right? --connect-to ADDR:PORT names an address.",
                    origin.host
                )
            })?
            .collect(),
    };
    let mut last = None;
    for address in &addresses {
        match TcpStream::connect_timeout(address, wait) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some((address, error)),
        }
    }
    let Some((address, error)) = last else { return Err(format!("{origin}: there is no address for the name {}", origin.host)) };
    Err(format!("{origin}: {}", in_words(&error, &address.to_string(), wait)))
}

fn in_words(error: &io::Error, at: &str, wait: Duration) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => format!("{at} refuses connections\n  Is a server running there?"),
        ErrorKind::NotFound => "there is no such socket\n  Is a server running there?".to_owned(),
        ErrorKind::PermissionDenied => "this user may not connect to it".to_owned(),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            format!("{at} does not answer within {} s\n  Is there a firewall in between?", wait.as_secs_f64())
        }
        _ => format!("{at} cannot be reached: {error}"),
    }
}

/// Makes a TLS handshake. Returns the protocol that the server has chosen.
fn shake_hands(
    stream: &TcpStream,
    config: Arc<rustls::ClientConfig>,
    name: ServerName<'static>,
    wait: Duration,
    connections: &Connections,
) -> Result<Option<Vec<u8>>, String> {
    let mut tls = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
    let mut stream = stream;
    let shaken =
        stream.set_read_timeout(Some(wait)).and_then(|()| stream.set_write_timeout(Some(wait))).and_then(|()| tls.complete_io(&mut stream));
    match shaken {
        Ok(_) => Ok(tls.alpn_protocol().map(<[u8]>::to_vec)),
        Err(error) => Err(handshake_in_words(&error, wait, connections)),
    }
}

fn not_met_in_words(error: &NotMet, connections: &Connections) -> String {
    match error {
        NotMet::Silent(_) => format!("{error}\n  Is a server with HTTP/3 running there? Is UDP let through?"),
        NotMet::Lacks => format!("{error}\n  Leave --http3 out."),
        NotMet::Handshake(reason) => match reason.split_once("invalid peer certificate: ") {
            Some((_, why)) => untrusted(why, connections.ca.is_some()),
            None => format!("the handshake failed: {reason}"),
        },
        NotMet::Unable(_) => error.to_string(),
    }
}

fn handshake_in_words(error: &io::Error, wait: Duration, connections: &Connections) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => untrusted(&why.to_string(), connections.ca.is_some()),
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS\n  Is it http://?".to_owned(),
        Some(error @ rustls::Error::NoApplicationProtocol) => format!("{error}\n  Try --http1."),
        Some(other) => format!("the TLS handshake failed: {other}"),
        None if error.kind() == ErrorKind::UnexpectedEof => {
            "it ends the TLS handshake\n  Does it have a certificate for this name?".to_owned()
        }
        None if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
            format!("the TLS handshake takes longer than {} s\n  Does it speak TLS?", wait.as_secs_f64())
        }
        None => format!("the TLS handshake failed: {error}"),
    }
}

fn speaks(protocol: Protocol, alpn: Option<&[u8]>) -> Result<(), String> {
    if matches!(protocol, Protocol::Http2 { .. }) && alpn != Some(b"h2") {
        return Err("it does not speak HTTP/2\n  Leave --http2 out.".to_owned());
    }
    Ok(())
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!("\n  because: {error}"));
        cause = error.source();
    }
    text
}
