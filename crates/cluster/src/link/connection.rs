//! One connection to one server: commands go out, replies come in, both within bounds and in time.
//!
//! The crate `redis` writes commands, reads replies, and lets many callers use one connection. The socket is ours: a reply that grows beyond its
//! bound ends the connection, where the crate alone would read a gigabyte.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use redis::{AsyncConnectionConfig, Pipeline, RedisConnectionInfo, ServerError, Value, aio::MultiplexedConnection};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{
    LinkError,
    address::{Host, Login},
};

/// The number of bytes of a password that keep a message of the server from being shown if they are in it.
const REPEATED_BYTES: usize = 6;

/// Holds the bounds of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The number of steps that are under way at a time.
    pub(super) at_once: usize,
    /// The number of bytes that may come in until a step is complete.
    pub(super) reply_bytes_max: usize,
    /// The time that connecting may take.
    pub(super) deadline: Duration,
}

/// A connection. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Connection {
    steps: MultiplexedConnection,
    budget: Arc<Budget>,
    server: String,
    /// Reads and writes. It ends with the connection.
    driver: AbortHandle,
    _drivers: JoinSet<()>,
}

impl Connection {
    /// Connects to a server and logs in. The runtime in which this is called drives the connection.
    pub(super) async fn open(
        host: &Host,
        login: Option<&Login>,
        tls: Option<&Arc<ClientConfig>>,
        bounds: Bounds,
    ) -> Result<Self, LinkError> {
        let server = format!("{}://{host}", if tls.is_some() { "rediss" } else { "redis" });
        let opening = Self::open_in_time(host, login, tls, bounds, &server);
        timeout(bounds.deadline, opening)
            .await
            .unwrap_or_else(|_| Err(LinkError::TooLate { server: server.clone(), after: bounds.deadline }))
    }

    async fn open_in_time(
        host: &Host,
        login: Option<&Login>,
        tls: Option<&Arc<ClientConfig>>,
        bounds: Bounds,
        server: &str,
    ) -> Result<Self, LinkError> {
        let unreachable = |error: &dyn std::fmt::Display| LinkError::Unreachable { server: server.to_owned(), why: error.to_string() };
        let stream = TcpStream::connect((host.name.as_str(), host.port)).await.map_err(|error| unreachable(&error))?;
        stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
        let budget = Arc::new(Budget { bytes_max: bounds.reply_bytes_max, ..Budget::default() });
        let connection = match tls {
            None => Self::over(Bounded { stream, budget: Arc::clone(&budget) }, budget, bounds, server).await?,
            Some(config) => {
                let name = ServerName::try_from(host.name.clone()).map_err(|error| unreachable(&error))?;
                let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
                let stream = stream.map_err(|error| unreachable(&format!("TLS failed: {error}")))?;
                Self::over(Bounded { stream, budget: Arc::clone(&budget) }, budget, bounds, server).await?
            }
        };
        if let Some(login) = login {
            connection.log_in(login, bounds.deadline).await?;
        }
        Ok(connection)
    }

    async fn over<S>(stream: Bounded<S>, budget: Arc<Budget>, bounds: Bounds, server: &str) -> Result<Self, LinkError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // Deadlines are the caller's; logging in is ours, as its errors are to be told apart.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_concurrency_limit(bounds.at_once)
            .set_pipeline_buffer_size(bounds.at_once);
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        let opened = MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (steps, driver) =
            opened.map_err(|error| LinkError::Unreachable { server: server.to_owned(), why: error.category().to_owned() })?;
        let mut drivers = JoinSet::new();
        let driver = drivers.spawn(driver);
        Ok(Self { steps, budget, server: server.to_owned(), driver, _drivers: drivers })
    }

    async fn log_in(&self, login: &Login, deadline: Duration) -> Result<(), LinkError> {
        let mut commands = Pipeline::new();
        if let Some(password) = &login.password {
            let command = commands.cmd("AUTH");
            if let Some(user) = &login.user {
                command.arg(user);
            }
            command.arg(password);
        }
        if login.database != 0 {
            commands.cmd("SELECT").arg(login.database);
        }
        if commands.is_empty() {
            return Ok(());
        }
        let replies = self.step(&commands, deadline).await?;
        // What a server says to a wrong login differs with its version.
        replies.iter().try_for_each(|reply| match (self.fine(reply), &login.password) {
            (Err(LinkError::Refused { server, why }), Some(password)) if !why.starts_with("LOADING") => {
                Err(LinkError::Denied { server, why: without_password(why, password) })
            }
            (Err(LinkError::Denied { server, why }), Some(password)) => {
                Err(LinkError::Denied { server, why: without_password(why, password) })
            }
            (fine, _) => fine,
        })
    }

    /// Returns whether it was closed by the server.
    pub(super) fn is_closed(&self) -> bool {
        self.driver.is_finished()
    }

    /// Returns the server's URL, without secrets.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Sends commands together and returns their replies, one each. A reply may be an error: see [`fine`](Self::fine).
    ///
    /// If it is dropped, the commands may be carried out nevertheless; later replies are not mistaken for others.
    pub(super) async fn step(&self, commands: &Pipeline, deadline: Duration) -> Result<Vec<Value>, LinkError> {
        let mut steps = self.steps.clone();
        let count = commands.len();
        let answered = timeout(deadline, steps.send_packed_commands(commands, 0, count)).await;
        let replies = match answered {
            Err(_) => return Err(LinkError::TooLate { server: self.server.clone(), after: deadline }),
            Ok(replies) => replies.map_err(|error| self.lost(&error))?,
        };
        self.budget.renew();
        if replies.len() == count { Ok(replies) } else { Err(self.garbled("one reply for each command")) }
    }

    /// Sends one command and returns its reply, unless that is an error.
    pub(super) async fn one(&self, command: redis::Cmd, deadline: Duration) -> Result<Value, LinkError> {
        let mut commands = Pipeline::with_capacity(1);
        commands.add_command(command);
        let reply = self.step(&commands, deadline).await?.pop().unwrap_or_default();
        self.fine(&reply)?;
        Ok(reply)
    }

    /// Takes the replies to commands whose first is `MULTI` and whose `EXEC` is the one at `exec`, and returns what the commands between them came to.
    pub(super) fn executed(&self, commands: &Pipeline, replies: &mut [Value], exec: usize) -> Result<Vec<Value>, LinkError> {
        // What the server says to a command that it does not accept says more than what it says to EXEC.
        replies.iter().take(exec).try_for_each(|reply| self.fine(reply))?;
        let whole = replies.get_mut(exec).map(std::mem::take).unwrap_or_default();
        self.fine(&whole)?;
        let Value::Array(results) = whole else { return Err(self.garbled("what a transaction came to")) };
        if results.len() + 1 != exec {
            return Err(self.garbled("one result for each command of a transaction"));
        }
        for (command, result) in commands.cmd_iter().skip(1).zip(&results) {
            self.fine(result).map_err(|error| at_key(command, error))?;
        }
        Ok(results)
    }

    /// Returns an error if a reply is one.
    pub(super) fn fine(&self, reply: &Value) -> Result<(), LinkError> {
        match reply {
            Value::ServerError(error) => Err(self.said(error)),
            _ => Ok(()),
        }
    }

    /// Returns the error for a reply that has another form than its command's.
    pub(super) fn garbled(&self, expected: &str) -> LinkError {
        LinkError::Garbled { server: self.server.clone(), why: format!("{expected} was expected") }
    }

    fn said(&self, error: &ServerError) -> LinkError {
        let server = self.server.clone();
        let code = error.code();
        // An error's text may repeat what was written: a kilobyte of it is enough. Some end with a full stop, in the middle of our sentence.
        let why = format!("{code} {}", error.details().unwrap_or_default());
        let why: String = why.trim_end().trim_end_matches('.').chars().take(1000).collect();
        match code {
            "READONLY" | "MOVED" | "MASTERDOWN" => LinkError::NotPrimary { server, why },
            "NOAUTH" | "WRONGPASS" | "NOPERM" => LinkError::Denied { server, why },
            _ => LinkError::Refused { server, why },
        }
    }

    fn lost(&self, error: &redis::RedisError) -> LinkError {
        let server = self.server.clone();
        if self.budget.is_exceeded.load(Ordering::Relaxed) {
            return LinkError::TooLong { server, what: "a reply".to_owned(), bytes_max: self.budget.bytes_max };
        }
        match error.kind() {
            redis::ErrorKind::Parse => LinkError::Garbled { server, why: "it is not the protocol of Valkey and Redis".to_owned() },
            _ => LinkError::Unreachable { server, why: "the connection was lost".to_owned() },
        }
    }
}

/// Returns what the server says to a login, but for a text that repeats the password or a part of it: a server that does not know the command `AUTH`
/// repeats how its arguments begin.
fn without_password(why: String, password: &str) -> String {
    let length = password.len().clamp(1, REPEATED_BYTES);
    let is_repeated = |part: &[u8]| why.as_bytes().windows(length).any(|said| said == part);
    if !password.as_bytes().windows(length).any(is_repeated) {
        return why;
    }
    match why.split(' ').next() {
        Some(code @ ("ERR" | "NOAUTH" | "WRONGPASS" | "NOPERM")) => format!("{code}, and more that has a part of the password in it"),
        _ => "its words have a part of the password in them".to_owned(),
    }
}

/// Adds the key to what the server says of a key of another kind. The key is the first argument of a command.
fn at_key(command: &redis::Cmd, error: LinkError) -> LinkError {
    match (error, command.args_iter().nth(1)) {
        (LinkError::Refused { server, why }, Some(redis::Arg::Simple(key))) if why.starts_with("WRONGTYPE") => {
            LinkError::Refused { server, why: format!("{why}: {}", String::from_utf8_lossy(key)) }
        }
        (error, _) => error,
    }
}

/// Counts the bytes that come in, up to a bound.
#[derive(Debug, Default)]
struct Budget {
    bytes_max: usize,
    /// The number of bytes that came since the last step was complete.
    bytes: AtomicUsize,
    is_exceeded: AtomicBool,
}

impl Budget {
    fn renew(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Returns whether so many bytes more are too many.
    fn exceeds(&self, bytes: usize) -> bool {
        let exceeds = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.bytes_max;
        if exceeds {
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        exceeds
    }
}

/// A stream that ends when more comes in than its budget.
struct Bounded<S> {
    stream: S,
    budget: Arc<Budget>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if self.budget.exceeds(buffer.filled().len() - before) {
            // The crate takes this kind as the end of the connection, and others as something to try again.
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "a reply is too long")));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
