//! Who asks a running Seawall through its admin API.

use std::{io, net::SocketAddr, sync::mpsc::sync_channel, thread};

use ::operator::AdminClient;
use tokio::sync::oneshot;

use crate::site::Site;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The admin API of a site, on a thread of its own as in the real process.
pub(crate) struct Operator {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<io::Result<()>>>,
}

impl Operator {
    /// Makes the operator of a site that runs.
    pub(crate) fn of(site: &Site) -> Self {
        let console = site.server.console();
        let (stop, stopped) = oneshot::channel::<()>();
        let (bound, listening) = sync_channel(1);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
                bound.send(listener.local_addr()?).expect("the test waits");
                let token = admin::Token::new(TOKEN).expect("long enough");
                admin::serve(listener, console, token, async { drop(stopped.await) }).await
            })
        });
        let address = listening.recv().expect("bound");
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns a client that has the token.
    pub(crate) fn client(&self) -> AdminClient {
        AdminClient::new(self.address, TOKEN).expect("a token")
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(thread::JoinHandle::join);
        if !thread::panicking() {
            assert!(matches!(ended, Some(Ok(Ok(())))), "{ended:?}");
        }
    }
}
