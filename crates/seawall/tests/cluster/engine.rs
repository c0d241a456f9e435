//! A real Valkey or Redis, with or without Sentinels, and a client of its own for it.

use std::{
    fs,
    io::{BufRead as _, BufReader, Error, ErrorKind, Read as _, Result, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    network::NetworkHost,
    process::{Process, program, until},
};

/// The port of every server.
pub(crate) const PORT: u16 = 6379;
/// The port of every Sentinel.
pub(crate) const SENTINEL_PORT: u16 = 26379;
/// The password of every server.
pub(crate) const PASSWORD: &str = "a-password-of-valkey";
/// The time that a server may take for an answer to the test itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// Finds the server program: that of `SEAWALL_CLUSTER_ENGINE`, or a Valkey, or else a Redis.
fn server_program() -> PathBuf {
    let wanted = std::env::var("SEAWALL_CLUSTER_ENGINE").ok().map(|name| vec![format!("{name}-server")]);
    let names = wanted.unwrap_or_else(|| vec!["valkey-server".to_owned(), "redis-server".to_owned()]);
    let found = names.iter().find_map(|name| program(name));
    found.unwrap_or_else(|| panic!("{} is missing: `make cluster` installs it", names.join(" or ")))
}

/// A server at a place of its own.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) place: NetworkHost,
    folder: TempDir,
    program: PathBuf,
    replica_of: Option<Ipv4Addr>,
    process: Option<Process>,
}

impl Engine {
    /// Starts an empty one.
    pub(crate) fn start(place: NetworkHost) -> Self {
        Self::run(place, server_program(), None)
    }

    /// Starts an empty Redis, if there is one beside the Valkey.
    pub(crate) fn start_redis(place: NetworkHost) -> Option<Self> {
        Some(Self::run(place, program("redis-server")?, None))
    }

    /// Starts a replica of another one.
    pub(crate) fn start_replica(place: NetworkHost, primary: &Self) -> Self {
        Self::run(place, server_program(), Some(primary.place.back()))
    }

    fn run(place: NetworkHost, program: PathBuf, replica_of: Option<Ipv4Addr>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut engine = Self { place, folder, program, replica_of, process: None };
        engine.start_again();
        engine
    }

    /// Starts it again, with the dump that is in its folder, if there is one.
    pub(crate) fn start_again(&mut self) {
        assert!(self.process.is_none(), "it runs");
        let output = fs::OpenOptions::new().create(true).append(true).open(self.folder.path().join("output")).expect("a file");
        let mut command = self.place.command(&self.program);
        command.args(["--bind", "0.0.0.0", "--port", &PORT.to_string(), "--save", "", "--appendonly", "no", "--requirepass", PASSWORD]);
        command.args(["--masterauth", PASSWORD, "--repl-diskless-sync-delay", "0", "--dir"]).arg(self.folder.path());
        command.args(["--repl-timeout", "5", "--repl-ping-replica-period", "1"]);
        if let Some(primary) = self.replica_of {
            command.args(["--replicaof", &primary.to_string(), &PORT.to_string()]);
        }
        self.process = Some(Process::start(command.stdout(output.try_clone().expect("a file")).stderr(output)));
        let address = self.place.back();
        until("Valkey answers", || matches!(say_to(address, PORT, &["PING"]), Ok(Reply::Status(_))));
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        drop(self.process.take());
    }

    /// Stops it without killing it: its connections stay.
    pub(crate) fn freeze(&self) {
        self.process.as_ref().expect("it runs").freeze();
    }

    /// Lets it run again.
    pub(crate) fn thaw(&self) {
        self.process.as_ref().expect("it runs").thaw();
    }

    /// Says something to it, and returns the reply, which is not an error.
    pub(crate) fn say(&self, words: &[&str]) -> Reply {
        match say_to(self.place.back(), PORT, words) {
            Ok(Reply::Error(error)) => panic!("{words:?}: {error}"),
            Ok(reply) => reply,
            Err(error) => panic!("{words:?}: {error}"),
        }
    }

    /// Connects to it for several words, whatever the password is meanwhile.
    pub(crate) fn session(&self) -> Session {
        Session::with(self.place.back(), PORT).expect("it runs")
    }

    /// Returns the full name of a key of the cluster.
    pub(crate) fn key(&self, name: &str) -> String {
        match self.say(&["KEYS", &format!("seawall:*:{name}")]) {
            Reply::List(keys) => match keys.into_iter().next() {
                Some(Reply::Bulk(Some(key))) => key,
                other => panic!("there is no key {name}: {other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Returns a number of `INFO`.
    pub(crate) fn info(&self, name: &str) -> Option<String> {
        let Reply::Bulk(Some(text)) = self.say(&["INFO"]) else { return None };
        text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
    }
}

/// Sentinels that watch a primary named `seawall`, each at a place of its own.
#[derive(Debug)]
pub(crate) struct Sentinels(Vec<(NetworkHost, Process, TempDir)>);

impl Sentinels {
    /// Starts one at each place. They agree by majority that the primary is gone after a second.
    pub(crate) fn watch(primary: &Engine, places: Vec<NetworkHost>) -> Self {
        let majority = (places.len() / 2 + 1).to_string();
        let sentinels = places.into_iter().map(|place| {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("sentinel.conf");
            let address = primary.place.back();
            let text = format!(
                "port {SENTINEL_PORT}\nbind 0.0.0.0\nprotected-mode no\ndir {}\nsentinel monitor seawall {address} {PORT} {majority}\n\
                 sentinel auth-pass seawall {PASSWORD}\nsentinel down-after-milliseconds seawall 1000\n\
                 sentinel failover-timeout seawall 6000\n",
                folder.path().display()
            );
            fs::write(&file, text).expect("written");
            let output = fs::File::create(folder.path().join("output")).expect("a file");
            let mut command = place.command(server_program());
            command.arg(&file).arg("--sentinel").stdout(output.try_clone().expect("a file")).stderr(output);
            let process = Process::start(&mut command);
            let back = place.back();
            until("Sentinel answers", || matches!(say_to(back, SENTINEL_PORT, &["PING"]), Ok(Reply::Status(_))));
            (place, process, folder)
        });
        let sentinels = Self(sentinels.collect());
        until("the Sentinels know each other and the replica", || {
            sentinels.0.iter().all(|(place, ..)| {
                let told =
                    say_to(place.back(), SENTINEL_PORT, &["SENTINEL", "MASTER", "seawall"]).ok().map(Reply::into_pairs).unwrap_or_default();
                let number = |name: &str| told.iter().find(|(own, _)| own == name).and_then(|(_, n)| n.parse::<usize>().ok()).unwrap_or(0);
                number("num-other-sentinels") + 1 == sentinels.0.len() && number("num-slaves") >= 1
            })
        });
        sentinels
    }

    /// Returns the address under which seawall finds them.
    pub(crate) fn url(&self) -> String {
        let places: Vec<String> = self.0.iter().map(|(place, ..)| format!("{}:{SENTINEL_PORT}", place.back())).collect();
        format!("redis+sentinel://:{PASSWORD}@{}/seawall", places.join(","))
    }

    /// Returns the place of each.
    pub(crate) fn places(&self) -> impl Iterator<Item = &NetworkHost> {
        self.0.iter().map(|(place, ..)| place)
    }

    /// Returns the primary that most would name.
    pub(crate) fn primary(&self) -> Option<String> {
        self.0.iter().find_map(|(place, ..)| {
            let told = say_to(place.back(), SENTINEL_PORT, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "seawall"]).ok()?;
            let Reply::List(list) = told else { return None };
            if let Reply::Bulk(address) = list.into_iter().next()? { address } else { None }
        })
    }
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Status(String),
    Error(String),
    Number(i64),
    Bulk(Option<String>),
    List(Vec<Self>),
}

impl Reply {
    /// Returns the number that this is.
    pub(crate) fn number(&self) -> i64 {
        if let Self::Number(number) = self { *number } else { panic!("{self:?} is not a number") }
    }

    fn into_pairs(self) -> Vec<(String, String)> {
        let Self::List(list) = self else { return Vec::new() };
        let texts: Vec<String> = list.into_iter().filter_map(|reply| if let Self::Bulk(text) = reply { text } else { None }).collect();
        texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }
}

/// Says something to a server, on a connection of its own.
pub(crate) fn say_to(address: Ipv4Addr, port: u16, words: &[&str]) -> Result<Reply> {
    Session::with(address, port)?.say(words)
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Session {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Session {
    fn with(address: Ipv4Addr, port: u16) -> Result<Self> {
        let writer = TcpStream::connect_timeout(&(address, port).into(), Duration::from_secs(2))?;
        writer.set_read_timeout(Some(PATIENCE))?;
        let mut session = Self { reader: BufReader::new(writer.try_clone()?), writer };
        if port == PORT {
            session.say(&["AUTH", PASSWORD])?;
        }
        Ok(session)
    }

    /// Says something, and returns the reply.
    pub(crate) fn say(&mut self, words: &[&str]) -> Result<Reply> {
        write(&mut self.writer, words)?;
        read(&mut self.reader)
    }

    fn wait(&mut self) -> Result<Reply> {
        self.reader.get_ref().set_read_timeout(None)?;
        read(&mut self.reader)
    }
}

fn write(stream: &mut TcpStream, words: &[&str]) -> Result<()> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    stream.write_all(&bytes)
}

fn read(reader: &mut BufReader<TcpStream>) -> Result<Reply> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| Error::from(ErrorKind::InvalidData))?;
    let number = || rest.parse::<i64>().map_err(|_| Error::from(ErrorKind::InvalidData));
    Ok(match kind {
        "+" => Reply::Status(rest.to_owned()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Number(number()?),
        "$" => match usize::try_from(number()?) {
            Err(_) => Reply::Bulk(None),
            Ok(length) => {
                let mut bytes = vec![0; length + 2];
                reader.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Reply::Bulk(Some(String::from_utf8_lossy(&bytes).into_owned()))
            }
        },
        "*" => Reply::List((0..number()?.max(0)).map(|_| read(reader)).collect::<Result<_>>()?),
        _ => return Err(ErrorKind::InvalidData.into()),
    })
}

/// Subscribes to a channel; each call of the returned function waits for one message.
pub(crate) fn subscribe(address: Ipv4Addr, channel: &str) -> Result<impl FnMut() -> Result<String>> {
    let mut session = Session::with(address, PORT)?;
    session.say(&["SUBSCRIBE", channel])?;
    Ok(move || match session.wait()? {
        Reply::List(list) => match list.into_iter().nth(2) {
            Some(Reply::Bulk(Some(text))) => Ok(text),
            _ => Err(ErrorKind::InvalidData.into()),
        },
        _ => Err(ErrorKind::InvalidData.into()),
    })
}
