//! The link and the shelf before real servers: each test runs with Valkey and with Redis, as far as they are installed (`make cluster`).

mod bucket;
mod found;
mod hostile;
mod rounds;
mod shelf;
mod tier;
mod together;
mod waiting;

use std::time::Duration;

use cluster::{
    link::{Address, Append, Ask, Confirmation, Confirmed, Engine, EngineOptions, Link, Member, Round, Secret},
    stream::{EntryId, EntryMaker, Position, Run},
};
use policy::purge::{Order, What};
use testkit::Valkey;

/// The time that a round trip may take in tests that are not about that: a machine that compiles beside is not a failure.
const DEADLINE: Duration = Duration::from_secs(20);

/// Returns the options of one cluster at one address.
fn options(url: &str) -> EngineOptions {
    EngineOptions {
        address: Address::read(&[url]).expect("an address"),
        cluster: "seawall".to_owned(),
        secret: Secret::new("a secret of the tests").expect("a secret"),
        replicas: 0,
        deadline: DEADLINE,
        authorities: None,
    }
}

fn engine(server: &Valkey) -> Engine {
    Engine::new(options(&server.url())).expect("an engine")
}

/// Returns a cluster of the same name, whose secret is another one.
fn engine_of_others(server: &Valkey) -> Engine {
    let secret = Secret::new("another secret of the tests").expect("a secret");
    Engine::new(EngineOptions { secret, ..options(&server.url()) }).expect("an engine")
}

fn member(session: &str, beat: u64) -> Member {
    Member { session: session.to_owned(), beat, confirmed: None, lease_ms: 2000, hold_ms: 5000, version: "0.1.0".to_owned(), leased: true }
}

/// Returns a confirmation of a machine.
fn confirmation(field: &str, id: EntryId) -> Confirmation {
    let confirmed = Confirmed { run: Run("r/h".to_owned()), born: "b".to_owned(), id };
    Confirmation { field: field.to_owned(), confirmed }
}

/// Returns an order, sealed as the entry of a session.
fn entry(engine: &Engine, session: &str, number: u64) -> Append {
    engine.seals().purge(EntryMaker { session: session.to_owned(), number }, &order(number)).expect("short")
}

fn order(number: u64) -> Order {
    Order::by_operator(What::Tag(format!("post-{number}")), true)
}

/// Makes a round of machine `a`.
async fn round(link: &Link, position: Option<&Position>) -> Round {
    link.round(Ask { field: "a", member: &member("5e55", 1), position, entries_max: 100 }).await.expect("a round")
}

/// Returns the position at the end of what a round has found.
fn at_end_of(round: &Round) -> Position {
    let last = round.entries.last().unwrap_or(&round.end);
    Position { run: round.run.clone(), id: last.id, made: last.made.clone() }
}
