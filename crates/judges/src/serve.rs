//! A thread with a runtime for each server.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    rc::Rc,
    thread::JoinHandle,
};

use tokio::{net::TcpStream, sync::oneshot, task::JoinSet};

use crate::alarm::Alarm;

/// Connections that may wait to be accepted: more than any test opens at once.
const BACKLOG: i32 = 16_384;

/// A server's thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Runs `work` on a thread with a runtime of its own, until this is dropped.
    pub(crate) fn start<F, W>(work: F) -> Self
    where
        F: FnOnce(Rc<Alarm>) -> W + Send + 'static,
        W: Future<Output = ()>,
    {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("judge".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
                let local = tokio::task::LocalSet::new();
                local.block_on(&runtime, async move {
                    let mut tasks = JoinSet::new();
                    let alarm = Alarm::start(&mut tasks);
                    tokio::select! {
                        () = work(alarm) => {}
                        _ = stopped => {}
                    }
                });
            })
            .expect("a thread can be started");
        Self { stop: Some(stop), thread: Some(thread) }
    }

    /// Accepts connections, and runs what `each` makes of each of them beside each other.
    pub(crate) fn connections<F, W>(listener: TcpListener, each: F) -> Self
    where
        F: Fn(TcpStream, Rc<Alarm>) -> W + Send + 'static,
        W: Future<Output = ()> + 'static,
    {
        listener.set_nonblocking(true).expect("a socket can be set so");
        Self::start(move |alarm| async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime has its I/O on");
            let mut tasks = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let Ok((stream, _)) = accepted else { continue };
                        let _ = stream.set_nodelay(true);
                        tasks.spawn_local(each(stream, Rc::clone(&alarm)));
                    }
                    Some(_) = tasks.join_next() => {}
                }
            }
        })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let failed = thread.join().is_err();
            assert!(!failed || std::thread::panicking(), "the server's thread has panicked");
        }
    }
}

/// Makes a listener on a free port of the loopback address, or on `port`.
pub(crate) fn listener(port: u16) -> (TcpListener, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket can be made");
    socket.set_reuse_address(true).expect("a socket can be set so");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()).expect("the port is free");
    socket.listen(BACKLOG).expect("a bound socket can listen");
    let listener = TcpListener::from(socket);
    let at = listener.local_addr().expect("a bound socket has an address");
    (listener, at)
}
