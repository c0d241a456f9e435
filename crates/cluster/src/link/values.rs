//! Single values by name, with an expiry, read within bounds and a deadline.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use redis::{Cmd, cmd};
use tokio::{runtime::Handle, sync::watch, task::JoinSet, time::timeout};

use super::{LinkError, connection::Connection, engine::Engine, reply};

/// The time during which nobody looks for the server after it could not be reached.
const PAUSE: Duration = Duration::from_millis(500);

/// Single values of the cluster, by name: `tier:...`, `lock:...`, `shelf:...`. They are not sealed here. A clone is the same one; any runtime may
/// use it. At most [`AT_ONCE_MAX`](Self::AT_ONCE_MAX) steps are under way at a time; others wait for them within their deadline. While the server
/// cannot be reached, everything fails at once; it is looked for every half second.
#[derive(Debug, Clone)]
pub struct Values(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Engine,
    /// The runtime that drives the connection.
    runtime: Handle,
    state: Mutex<State>,
    /// Connects. At most one task is in it.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
enum State {
    /// There is none, and somebody may look for the server from this moment on; until then, this is why not.
    Without(Option<(Instant, LinkError)>),
    /// Somebody connects. What is watched changes when that is done.
    Connecting(watch::Receiver<()>),
    With(Arc<Connection>, Instant),
}

/// A value as it stands under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// There is nothing.
    None,
    /// All of it.
    Whole(Bytes),
    /// It is longer than was asked for, and was not read.
    TooLong,
}

/// One of the values that a script returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A number.
    Number(i64),
    /// A text.
    Text(Bytes),
}

impl Values {
    /// The most steps that are under way at a time.
    pub const AT_ONCE_MAX: usize = 16;
    /// The most bytes that a value may have.
    pub const BYTES_MAX: usize = 1024 * 1024 + 64 * 1024;
    /// The most bytes that replies may have together until one is complete: all that may be asked for, and those that nobody waited for.
    const REPLIES_BYTES_MAX: usize = 2 * Self::AT_ONCE_MAX * Self::BYTES_MAX;

    pub(super) fn new(engine: Engine, runtime: Handle) -> Self {
        let state = Mutex::new(State::Without(None));
        Self(Arc::new(Inner { engine, runtime, state, tasks: Mutex::new(JoinSet::new()) }))
    }

    /// Reads a value of at most `bytes_max` bytes (and never more than [`BYTES_MAX`](Self::BYTES_MAX)). A longer one is not read.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses.
    pub async fn get(&self, name: &str, bytes_max: usize, deadline: Duration) -> Result<Value, LinkError> {
        let bytes_max = bytes_max.min(Self::BYTES_MAX);
        let mut command = cmd("GETRANGE");
        // One byte more tells that it is longer.
        command.arg(self.key(name)).arg(0).arg(bytes_max);
        let (reply, connection) = self.step(command, deadline).await?;
        let value = reply::bytes(reply).ok_or_else(|| connection.garbled("a value"))?;
        Ok(match value.len() {
            // An empty value is never written.
            0 => Value::None,
            length if length > bytes_max => Value::TooLong,
            _ => Value::Whole(value),
        })
    }

    /// Writes a value, whatever is there; it must not be empty. It expires after `lifetime`.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been written.
    pub async fn put(&self, name: &str, value: &[u8], lifetime: Duration, deadline: Duration) -> Result<(), LinkError> {
        self.fits(name, value)?;
        let mut command = cmd("SET");
        command.arg(self.key(name)).arg(value).arg("PX").arg(millis(lifetime));
        self.step(command, deadline).await.map(drop)
    }

    /// Writes a value if there is none; it must not be empty. Returns whether it did.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been written.
    pub async fn put_if_absent(&self, name: &str, value: &[u8], lifetime: Duration, deadline: Duration) -> Result<bool, LinkError> {
        self.fits(name, value)?;
        let mut command = cmd("SET");
        command.arg(self.key(name)).arg(value).arg("NX").arg("PX").arg(millis(lifetime));
        let (reply, _) = self.step(command, deadline).await?;
        Ok(reply != redis::Value::Nil)
    }

    /// Removes a value, whatever it is. Returns whether there was one.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been removed.
    pub async fn remove(&self, name: &str, deadline: Duration) -> Result<bool, LinkError> {
        let mut command = cmd("DEL");
        command.arg(self.key(name));
        self.count(command, deadline).await.map(|removed| removed > 0)
    }

    /// Removes a value if it begins with `beginning`. Returns whether it did.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been removed.
    pub async fn remove_if(&self, name: &str, beginning: &[u8], deadline: Duration) -> Result<bool, LinkError> {
        self.run(REMOVE_IF, &[name], &[beginning], deadline).await.map(|removed| removed > 0)
    }

    /// Lets a value that begins with `beginning` live for `lifetime` from now. Returns whether it is there.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been done.
    pub async fn renew_if(&self, name: &str, beginning: &[u8], lifetime: Duration, deadline: Duration) -> Result<bool, LinkError> {
        let lifetime = millis(lifetime).to_string();
        self.run(RENEW_IF, &[name], &[beginning, lifetime.as_bytes()], deadline).await.map(|renewed| renewed > 0)
    }

    /// Writes a value in place of one that begins with `beginning`, in one step; it must not be empty. Returns whether it did.
    ///
    /// # Errors
    /// When the server did not answer in time, or refuses. It may have been written.
    pub async fn put_if(
        &self,
        name: &str,
        beginning: &[u8],
        value: &[u8],
        lifetime: Duration,
        deadline: Duration,
    ) -> Result<bool, LinkError> {
        self.fits(name, value)?;
        let lifetime = millis(lifetime).to_string();
        let done = self.run(PUT_IF, &[name], &[beginning, value, lifetime.as_bytes()], deadline).await?;
        Ok(done > 0)
    }

    /// Writes a value if there is none, and raises a number that lives for 30 days after that. Returns the number, or `None` if there is a value.
    pub(crate) async fn put_numbered(
        &self,
        name: &str,
        number: &str,
        value: &[u8],
        lifetime: Duration,
        deadline: Duration,
    ) -> Result<Option<u64>, LinkError> {
        let lifetime = millis(lifetime).to_string();
        let number = self.run(PUT_NUMBERED, &[name, number], &[value, lifetime.as_bytes()], deadline).await?;
        Ok(Some(number).filter(|number| *number > 0))
    }

    /// Runs a script with these names and arguments, and returns the values of its reply.
    pub(crate) async fn script(
        &self,
        script: &str,
        names: &[String],
        arguments: &[Bytes],
        deadline: Duration,
    ) -> Result<Vec<Reply>, LinkError> {
        let mut command = cmd("EVAL");
        command.arg(script).arg(names.len());
        for name in names {
            command.arg(self.key(name));
        }
        for argument in arguments {
            command.arg(&argument[..]);
        }
        let (reply, connection) = self.step(command, deadline).await?;
        let values = reply::list(reply).ok_or_else(|| connection.garbled("the values of a script"))?;
        let value = |value| match value {
            redis::Value::Int(number) => Some(Reply::Number(number)),
            value => reply::bytes(value).map(Reply::Text),
        };
        values.into_iter().map(value).collect::<Option<_>>().ok_or_else(|| connection.garbled("numbers and texts"))
    }

    fn key(&self, name: &str) -> String {
        self.0.engine.keys().value(name)
    }

    /// Refuses a value that nobody would read.
    fn fits(&self, name: &str, value: &[u8]) -> Result<(), LinkError> {
        if (1..=Self::BYTES_MAX).contains(&value.len()) {
            return Ok(());
        }
        let server = self.0.engine.address().to_string();
        Err(LinkError::TooLong { server, what: format!("what is to be written as {name}"), bytes_max: Self::BYTES_MAX })
    }

    async fn run(&self, script: &str, names: &[&str], arguments: &[&[u8]], deadline: Duration) -> Result<u64, LinkError> {
        let mut command = cmd("EVAL");
        command.arg(script).arg(names.len());
        for name in names {
            command.arg(self.key(name));
        }
        for argument in arguments {
            command.arg(*argument);
        }
        self.count(command, deadline).await
    }

    async fn count(&self, command: Cmd, deadline: Duration) -> Result<u64, LinkError> {
        let (reply, connection) = self.step(command, deadline).await?;
        reply::number(&reply).ok_or_else(|| connection.garbled("a number"))
    }

    /// Sends one command, over a connection that is made if there is none.
    async fn step(&self, command: Cmd, deadline: Duration) -> Result<(redis::Value, Arc<Connection>), LinkError> {
        let begun = Instant::now();
        let connection = match timeout(deadline, self.connection()).await {
            Ok(connection) => connection?,
            Err(_) => return Err(LinkError::TooLate { server: self.0.engine.address().to_string(), after: deadline }),
        };
        let result = connection.one(command, deadline.saturating_sub(begun.elapsed())).await;
        let mut state = self.0.state.lock();
        if let State::With(current, heard) = &mut *state
            && Arc::ptr_eq(current, &connection)
        {
            match &result {
                Ok(_) => *heard = Instant::now(),
                // A short deadline says nothing about the connection. Nothing heard for a long one does.
                Err(LinkError::TooLate { .. }) if heard.elapsed() < self.0.engine.deadline() => {}
                Err(error) if error.ends_link() => *state = State::Without(None),
                Err(_) => {}
            }
        }
        drop(state);
        result.map(|reply| (reply, connection))
    }

    async fn connection(&self) -> Result<Arc<Connection>, LinkError> {
        loop {
            let mut connecting = match &mut *self.0.state.lock() {
                State::With(connection, _) if !connection.is_closed() => return Ok(Arc::clone(connection)),
                State::Without(Some((until, error))) if Instant::now() < *until => return Err(error.clone()),
                State::Connecting(done) => done.clone(),
                state @ (State::Without(_) | State::With(..)) => {
                    let (done, connecting) = watch::channel(());
                    *state = State::Connecting(connecting.clone());
                    self.connect(done);
                    connecting
                }
            };
            // The sender is only dropped: that is when it is done.
            let _ = connecting.changed().await;
            let mut state = self.0.state.lock();
            if let State::Connecting(done) = &*state
                && done.has_changed().is_err()
            {
                // The runtime ended the task.
                let error =
                    LinkError::Unreachable { server: self.0.engine.address().to_string(), why: "the cluster is stopping".to_owned() };
                *state = State::Without(Some((Instant::now() + PAUSE, error)));
            }
        }
    }

    /// Begins to connect, whoever leaves meanwhile. The task is bounded by the engine's deadlines.
    fn connect(&self, done: watch::Sender<()>) {
        let mut tasks = self.0.tasks.lock();
        while tasks.try_join_next().is_some() {}
        let (inner, engine) = (Arc::downgrade(&self.0), self.0.engine.clone());
        let connecting = async move {
            let connected = engine.primary(Self::AT_ONCE_MAX, Self::REPLIES_BYTES_MAX).await;
            if let Some(inner) = Weak::upgrade(&inner) {
                *inner.state.lock() = match connected {
                    Ok((connection, _)) => State::With(Arc::new(connection), Instant::now()),
                    Err(error) => State::Without(Some((Instant::now() + PAUSE, error))),
                };
            }
            drop(done);
        };
        tasks.spawn_on(connecting, &self.0.runtime);
    }
}

const REMOVE_IF: &str = "if redis.call('GETRANGE', KEYS[1], 0, string.len(ARGV[1]) - 1) ~= ARGV[1] then return 0 end \
    return redis.call('DEL', KEYS[1])";

const RENEW_IF: &str = "if redis.call('GETRANGE', KEYS[1], 0, string.len(ARGV[1]) - 1) ~= ARGV[1] then return 0 end \
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])";

const PUT_IF: &str = "if redis.call('GETRANGE', KEYS[1], 0, string.len(ARGV[1]) - 1) ~= ARGV[1] then return 0 end \
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) \
    return 1";

const PUT_NUMBERED: &str = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end \
    local number = redis.call('INCR', KEYS[2]) \
    redis.call('PEXPIRE', KEYS[2], 2592000000) \
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) \
    return number";

fn millis(duration: Duration) -> u64 {
    // 0 is refused.
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 53)
}
