//! A first look at a server over HTTP/3: one handshake, and no request.

use std::{io, net::SocketAddr, time::Duration};

use quinn::ConnectionError;
use tokio::{net::UdpSocket, time::timeout};

use super::endpoint::{self, Endpoints};
use crate::{
    engine::{
        Tls,
        target::{Target, targets},
    },
    plan::Plan,
};

/// The reason why a server cannot be asked over HTTP/3.
#[derive(Debug, thiserror::Error)]
pub enum NotMet {
    /// Nobody answers, or nobody is there.
    #[error("it does not answer over HTTP/3 (UDP {0})")]
    Silent(u16),
    /// A server is there, and does not offer HTTP/3.
    #[error("it does not offer HTTP/3 (h3 by ALPN)")]
    Lacks,
    /// The handshake failed, in the words of TLS.
    #[error("{0}")]
    Handshake(String),
    /// The system does not let us ask.
    #[error("HTTP/3 cannot be spoken: {0}")]
    Unable(String),
}

/// Makes a handshake with each of the first `most` servers of a plan.
///
/// # Errors
/// When one fails, or takes longer than `wait`: with the index of the server.
pub fn look(plan: &Plan, tls: &Tls, most: usize, wait: Duration) -> Result<(), (usize, NotMet)> {
    let unable = |error: &dyn ToString| (0, NotMet::Unable(error.to_string()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| unable(&error))?;
    let targets = targets(plan).map_err(|error| unable(&error))?;
    runtime.block_on(async {
        let endpoints = Endpoints::new(plan, Some(tls)).map_err(|error| unable(&error))?;
        for (at, (target, origin)) in targets.iter().zip(&plan.requests.origins).enumerate().take(most) {
            let Target::Address(address) = target else { continue };
            let met = tokio::select! {
                met = timeout(wait, greet(&endpoints, *address, &origin.host)) => met.unwrap_or_else(|_| Err(NotMet::Silent(address.port()))),
                () = refused(*address) => Err(NotMet::Silent(address.port())),
            };
            met.map_err(|error| (at, error))?;
        }
        endpoints.close();
        Ok(())
    })
}

async fn greet(endpoints: &Endpoints, address: SocketAddr, host: &str) -> Result<(), NotMet> {
    let connecting = endpoints.connect(address, host, 0, false);
    let connecting =
        connecting.map_err(|error| NotMet::Unable(error.map_or_else(|| "no connection".to_owned(), |error| error.to_string())))?;
    match connecting.await {
        Ok(connection) => {
            connection.close(endpoint::NO_ERROR, b"");
            Ok(())
        }
        Err(error) if endpoint::lacks_http3(&error) => Err(NotMet::Lacks),
        Err(ConnectionError::TimedOut) => Err(NotMet::Silent(address.port())),
        Err(ConnectionError::TransportError(error)) => Err(NotMet::Handshake(error.reason)),
        Err(error) => Err(NotMet::Handshake(error.to_string())),
    }
}

/// Ends when the system says that nobody listens at an address. QUIC is not told so, because its sockets are connected to nobody.
async fn refused(address: SocketAddr) {
    let asked = async {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(address).await?;
        // No packet of QUIC is as short as this, so it is dropped (RFC 9000 §10.3).
        socket.send(&[0]).await?;
        socket.recv(&mut [0; 1]).await
    };
    let answer: io::Result<usize> = asked.await;
    if !answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        std::future::pending::<()>().await;
    }
}
