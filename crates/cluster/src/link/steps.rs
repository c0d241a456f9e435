//! The steps of the stream: a round, entries appended, confirmations, members removed.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use redis::{Pipeline, Value, cmd};

use super::{
    Append, Appended, Ask, CONFIRMATION, Confirmation, ENTRIES_AT_ONCE_MAX, ENTRY, ENTRY_BYTES_MAX, LinkError, Member, Round, Stranger,
    connection::Connection,
    engine::{Engine, Server},
    mend::mended,
    reply,
    seal::random_word,
};
use crate::stream::{ENTRIES_MAX, Entry, EntryId, EntryMaker, Run};

/// The time that the hash of machines lives without a round.
const MACHINES_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The time that confirmations live without another one.
const CONFIRMED_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// About how many confirmations are kept.
const CONFIRMED_MAX: usize = 4096;
/// The time that replicas may take to have an entry.
const REPLICAS_WAIT: Duration = Duration::from_millis(100);
/// The field with the word of whoever made the hash of machines.
const BORN: &str = "born";
/// The prefix of the field of a machine, so that none can be named like another field.
const MACHINE: &str = "m:";

/// A connection to the primary that has this cluster's keys. One step is under way at a time, in the order in which they were begun; each has
/// the deadline of [`EngineOptions::deadline`](super::EngineOptions::deadline), with the wait for those before it. After an error whose
/// [`ends_link`](LinkError::ends_link) is `true`, it is of no use any more. A clone is the same one.
#[derive(Debug, Clone)]
pub struct Link {
    engine: Engine,
    connection: Arc<Connection>,
    server: Arc<Server>,
}

impl Link {
    pub(super) fn new(engine: Engine, connection: Connection, server: Server) -> Self {
        Self { engine, connection: Arc::new(connection), server: Arc::new(server) }
    }

    /// Returns the server that it leads to.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Makes a round: one step in which the machine is written among the members and the stream is read. If there is no stream, it is begun. Where
    /// there are Sentinels, more than half of them have to say meanwhile that this is still the primary.
    ///
    /// It is cancel-safe: the step may happen, and nothing waits for it.
    ///
    /// # Errors
    /// When that did not happen, or is not known to have happened.
    pub async fn round(&self, ask: Ask<'_>) -> Result<Round, LinkError> {
        if let Some(round) = mended(&self.engine, self.try_round(&ask)).await? {
            return Ok(round);
        }
        self.begin().await?;
        mended(&self.engine, self.try_round(&ask)).await?.ok_or_else(|| self.connection.garbled("the stream that was just begun"))
    }

    /// Begins the stream, and the list of machines with it: what was confirmed of another stream says nothing of this one. Two machines may begin it
    /// at the same time: a second beginning is an entry without effect, and machines that it forgets are written again within a round.
    async fn begin(&self) -> Result<(), LinkError> {
        let begun = self.engine.seals().begun(EntryMaker { session: random_word(), number: 0 });
        let mut commands = Pipeline::new();
        commands.cmd("MULTI");
        commands.cmd("DEL").arg(&self.engine.keys().machines);
        commands.add_command(self.add(&begun, true));
        commands.cmd("EXEC");
        let mut replies = self.connection.step(&commands, self.engine.deadline()).await?;
        self.connection.executed(&commands, &mut replies, 3).map(drop)
    }

    /// Makes a round, or returns `None` if there is no stream.
    async fn try_round(&self, ask: &Ask<'_>) -> Result<Option<Round>, LinkError> {
        let keys = self.engine.keys();
        let mut commands = Pipeline::new();
        commands.cmd("MULTI");
        commands.cmd("HSETNX").arg(&keys.machines).arg(BORN).arg(random_word());
        let member = self.engine.seals().member(ask.field, ask.member);
        commands.cmd("HSET").arg(&keys.machines).arg(format!("{MACHINE}{}", ask.field)).arg(member);
        commands.cmd("PEXPIRE").arg(&keys.machines).arg(millis(MACHINES_LIFETIME));
        commands.cmd("XREVRANGE").arg(&keys.purges).arg("+").arg("-").arg("COUNT").arg(1);
        let count = ask.entries_max.clamp(1, ENTRIES_AT_ONCE_MAX);
        if let Some(position) = ask.position {
            let id = position.id.to_string();
            commands.cmd("XRANGE").arg(&keys.purges).arg(&id).arg(&id).arg("COUNT").arg(1);
            commands.cmd("XRANGE").arg(&keys.purges).arg(format!("({id}")).arg("+").arg("COUNT").arg(count);
        } else {
            commands.cmd("XRANGE").arg(&keys.purges).arg("-").arg("+").arg("COUNT").arg(count);
        }
        let exec = self.finish(&mut commands);
        // The lease counts from before both questions: a primary that was replaced answers, too.
        let sent = Instant::now();
        let (replies, still) =
            tokio::join!(self.connection.step(&commands, self.engine.deadline()), self.engine.is_still_primary(self.connection.server()));
        still?;
        let mut replies = replies?;
        let replicated = self.replicated(replies.get(exec + 1))?;
        let mut results = self.connection.executed(&commands, &mut replies, exec)?;
        let Group { run, members, strangers, born } = self.group(&mut results)?;
        let mut streams = results.drain(3..).map(|result| self.entries(result));
        let Some(end) = streams.next().transpose()?.and_then(|mut last| last.pop()) else { return Ok(None) };
        let (there, after) = match ask.position {
            Some(_) => (streams.next().transpose()?, streams.next().transpose()?),
            None => (None, streams.next().transpose()?),
        };
        let continuous = ask.position.is_some_and(|position| {
            position.run == run && there.as_ref().and_then(|there| there.first()).is_some_and(|entry| entry.made == position.made)
        });
        let entries = if continuous || ask.position.is_none() { after.unwrap_or_default() } else { Vec::new() };
        Ok(Some(Round { sent, run, continuous, entries, end, members, strangers, born, replicated }))
    }

    /// Appends entries in one step, at most [`ENTRIES_AT_ONCE_MAX`]. Where there are Sentinels, more than half of them have to say meanwhile that this is
    /// still the primary: the stream of one that was replaced is read by nobody.
    ///
    /// # Errors
    /// When that is not known to have happened; it may have happened. Also when there is no stream: the next round begins it.
    pub async fn append(&self, entries: &[Append]) -> Result<Appended, LinkError> {
        let longest = entries.iter().map(|entry| entry.sealed.len()).max().unwrap_or(0);
        if entries.len() > ENTRIES_AT_ONCE_MAX || longest > ENTRY_BYTES_MAX {
            let (what, bytes_max) = ("what is appended".to_owned(), ENTRY_BYTES_MAX * ENTRIES_AT_ONCE_MAX);
            return Err(LinkError::TooLong { server: self.connection.server().to_owned(), what, bytes_max });
        }
        mended(&self.engine, self.try_append(entries)).await
    }

    async fn try_append(&self, entries: &[Append]) -> Result<Appended, LinkError> {
        let mut commands = Pipeline::new();
        commands.cmd("MULTI");
        for entry in entries {
            commands.add_command(self.add(entry, false));
        }
        let exec = self.finish(&mut commands);
        // Both are asked after the orders were carried out here. So whoever goes on at another primary does so later, and doubts what it stored before.
        let (replies, still) =
            tokio::join!(self.connection.step(&commands, self.engine.deadline()), self.engine.is_still_primary(self.connection.server()));
        still?;
        let mut replies = replies?;
        let replied = Instant::now();
        let replicated = self.replicated(replies.get(exec + 1))?;
        let mut results = self.connection.executed(&commands, &mut replies, exec)?;
        let Group { run, members, strangers, born } = self.group(&mut results)?;
        if results.iter().any(|id| matches!(id, Value::Nil)) {
            return Err(LinkError::Refused {
                server: self.connection.server().to_owned(),
                why: "it has lost the stream of purges".to_owned(),
            });
        }
        let ids = results.into_iter().map(reply::id).collect::<Option<Vec<_>>>().ok_or_else(|| self.connection.garbled("an id"))?;
        Ok(Appended { replied, run, ids, members, strangers, born, replicated })
    }

    /// Tells the others that a machine has applied everything up to an entry.
    ///
    /// # Errors
    /// When that is not known to have happened.
    pub async fn confirm(&self, confirmation: &Confirmation) -> Result<(), LinkError> {
        let key = &self.engine.keys().confirmed;
        let sealed = self.engine.seals().confirmation(confirmation);
        let mut commands = Pipeline::new();
        commands.cmd("XADD").arg(key).arg("MAXLEN").arg("~").arg(CONFIRMED_MAX).arg("*").arg(CONFIRMATION).arg(sealed);
        commands.cmd("PEXPIRE").arg(key).arg(millis(CONFIRMED_LIFETIME));
        let replies = self.connection.step(&commands, self.engine.deadline()).await?;
        replies.iter().try_for_each(|reply| self.connection.fine(reply))
    }

    /// Removes a machine from the members if it is still of the same session and beat. Returns whether it did.
    ///
    /// # Errors
    /// When that is not known to have happened.
    pub async fn remove_member_if_unchanged(&self, field: &str, member: &Member) -> Result<bool, LinkError> {
        let beginning = format!("{} {} ", member.session, member.beat);
        self.remove(format!("{MACHINE}{field}").as_bytes(), beginning.as_bytes(), false).await
    }

    /// Removes a machine from the members if it is still of the same session, whatever its beat: its own clean stop. Returns whether it did.
    ///
    /// # Errors
    /// When that is not known to have happened.
    pub async fn remove_member_of(&self, field: &str, session: &str) -> Result<bool, LinkError> {
        self.remove(format!("{MACHINE}{field}").as_bytes(), format!("{session} ").as_bytes(), false).await
    }

    /// Removes a field that does not bear the seal, if it is still the same. Returns whether it did.
    ///
    /// # Errors
    /// When that is not known to have happened.
    pub async fn remove_stranger_if_unchanged(&self, stranger: &Stranger) -> Result<bool, LinkError> {
        self.remove(&stranger.field, &stranger.written, true).await
    }

    /// Removes a field of the hash of machines if it is so, or begins so.
    async fn remove(&self, field: &[u8], written: &[u8], whole: bool) -> Result<bool, LinkError> {
        let mut command = cmd("EVAL");
        command.arg(REMOVE).arg(1).arg(&self.engine.keys().machines).arg(field).arg(written).arg(i32::from(whole));
        let reply = self.connection.one(command, self.engine.deadline()).await?;
        reply::number(&reply).map(|removed| removed > 0).ok_or_else(|| self.connection.garbled("a number"))
    }

    /// Returns the command that appends an entry, and begins the stream only if it may.
    fn add(&self, entry: &Append, begins: bool) -> redis::Cmd {
        let mut command = cmd("XADD");
        command.arg(&self.engine.keys().purges);
        if !begins {
            command.arg("NOMKSTREAM");
        }
        command.arg("MAXLEN").arg("=").arg(ENTRIES_MAX).arg("*").arg(ENTRY).arg(&entry.sealed[..]);
        command
    }

    /// Ends a step: what the server is, and who is there; then the wait for replicas, if any are wanted. Returns the place of `EXEC`.
    fn finish(&self, commands: &mut Pipeline) -> usize {
        commands.cmd("HGETALL").arg(&self.engine.keys().machines);
        commands.cmd("INFO").arg("server").cmd("INFO").arg("replication");
        commands.cmd("EXEC");
        let exec = commands.len() - 1;
        if self.engine.replicas() > 0 {
            commands.cmd("WAIT").arg(self.engine.replicas()).arg(millis(REPLICAS_WAIT));
        }
        exec
    }

    /// Returns whether so many replicas as are wanted have it.
    fn replicated(&self, reply: Option<&Value>) -> Result<bool, LinkError> {
        let Some(reply) = reply else { return Ok(true) };
        self.connection.fine(reply)?;
        let replicas = reply::number(reply).ok_or_else(|| self.connection.garbled("a number of replicas"))?;
        Ok(replicas >= u64::from(self.engine.replicas()))
    }

    /// Takes what [`finish`](Self::finish) asked for from the end of the results.
    fn group(&self, results: &mut Vec<Value>) -> Result<Group, LinkError> {
        let garbled = |what: &str| self.connection.garbled(what);
        let mut info = || results.pop().and_then(reply::info).ok_or_else(|| garbled("what INFO says"));
        let (replication, server) = (info()?, info()?);
        let (Some(run), Some(history)) = (server.get("run_id"), replication.get("master_replid")) else {
            return Err(garbled("a run id"));
        };
        // A primary that was replaced and is the primary again has the same run and what another one wrote meanwhile. Its history has a name of
        // its own, which each promotion changes.
        let run = Run(format!("{run}/{history}"));
        let fields = results.pop().and_then(reply::pairs).ok_or_else(|| garbled("the fields of a hash"))?;
        let mut group = Group { run, members: BTreeMap::new(), strangers: Vec::new(), born: String::new() };
        for (field, written) in fields {
            if field == BORN {
                group.born = String::from_utf8_lossy(&written).into_owned();
                continue;
            }
            let name = field.strip_prefix(MACHINE.as_bytes()).and_then(|name| std::str::from_utf8(name).ok());
            match name.and_then(|name| Some((name, self.engine.seals().read_member(name, &written)?))) {
                Some((name, member)) => drop(group.members.insert(name.to_owned(), member)),
                None => group.strangers.push(Stranger {
                    name: name.map_or_else(|| String::from_utf8_lossy(&field).into_owned(), str::to_owned),
                    field: field.clone(),
                    written,
                }),
            }
        }
        Ok(group)
    }

    fn entries(&self, result: Value) -> Result<Vec<Entry>, LinkError> {
        let entries = reply::entries(result, ENTRY).ok_or_else(|| self.connection.garbled("a list of entries"))?;
        let read = |(id, sealed): (EntryId, Option<Bytes>)| {
            let (made, said) = self.engine.seals().read_entry(&sealed.unwrap_or_default());
            Entry { id, made, said }
        };
        Ok(entries.into_iter().map(read).collect())
    }
}

/// Holds what each step finds beside its own results.
struct Group {
    run: Run,
    members: BTreeMap<String, Member>,
    strangers: Vec<Stranger>,
    born: String,
}

/// Removes a field of a hash if it is what is given, or begins so.
const REMOVE: &str = "local written = redis.call('HGET', KEYS[1], ARGV[1]) \
    if not written then return 0 end \
    if ARGV[3] == '0' then written = string.sub(written, 1, string.len(ARGV[2])) end \
    if written ~= ARGV[2] then return 0 end \
    return redis.call('HDEL', KEYS[1], ARGV[1])";

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
