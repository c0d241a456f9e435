//! A look at the server, for `seawall check`: what would hurt later.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use redis::{Pipeline, cmd};

use super::{Engine, LinkError, REPLY_BYTES_MAX, Server, reply};

/// The number of times that the round trip is measured.
const MEASURED: usize = 5;
/// The round trip from which on purges are slow.
const SLOW: Duration = Duration::from_millis(20);

/// The rights that a user of the server must have, as `ACL SETUSER` takes them: our keys, and the commands that are used. Nothing else is
/// needed.
pub const USER_RULES: &str = "~seawall:* -@all +auth +select +ping +info +time +wait +multi +exec +eval +exists +type +del +pexpire +pttl \
    +hset +hsetnx +hget +hdel +hlen +hkeys +hstrlen +hgetall +xadd +xdel +xrange +xrevrange +xread \
    +set +get +getrange +incr +incrby +decrby +zadd +zrem +zpopmin +zrangebyscore";

/// Holds what a look at the server found.
#[derive(Debug, Clone)]
pub struct Examination {
    /// The server.
    pub server: Server,
    /// The time that a round trip took: the middle one of five.
    pub latency: Duration,
    /// The things to mend, each as a sentence with its remedy.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Looks at the server: whether it evicts keys, accepts writes that a failover would lose, and who else can read and write there. Writes nothing.
    ///
    /// # Errors
    /// When there is no primary, or it does not answer.
    pub async fn examine(&self) -> Result<Examination, LinkError> {
        let (connection, server) = self.primary(1, REPLY_BYTES_MAX).await?;
        let mut trips = Vec::with_capacity(MEASURED);
        for _ in 0..MEASURED {
            let begun = Instant::now();
            connection.one(cmd("PING"), self.deadline()).await?;
            trips.push(begun.elapsed());
        }
        trips.sort_unstable();
        let latency = trips[MEASURED / 2];
        let mut commands = Pipeline::new();
        commands.cmd("INFO").arg("memory").cmd("INFO").arg("replication");
        let replies = connection.step(&commands, self.deadline()).await?;
        replies.iter().try_for_each(|reply| connection.fine(reply))?;
        let mut replies = replies.into_iter().map(reply::info);
        let (Some(Some(memory)), Some(Some(replication))) = (replies.next(), replies.next()) else {
            return Err(connection.garbled("what INFO says"));
        };
        let facts = Facts {
            is_this_machine: self.address().is_this_machine(),
            has_tls: self.address().has_tls(),
            has_password: self.address().has_password(),
            may_have_replicas: self.address().has_replicas(),
            has_sentinels: self.address().has_sentinels(),
            replicas_wanted: self.replicas(),
            latency,
        };
        Ok(Examination { server, latency, warnings: warnings(&facts, &memory, &replication) })
    }
}

/// The facts that are known without asking the server.
struct Facts {
    is_this_machine: bool,
    has_tls: bool,
    has_password: bool,
    may_have_replicas: bool,
    has_sentinels: bool,
    replicas_wanted: u32,
    latency: Duration,
}

fn warnings(facts: &Facts, memory: &BTreeMap<String, String>, replication: &BTreeMap<String, String>) -> Vec<String> {
    let number = |fields: &BTreeMap<String, String>, name: &str| fields.get(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let mut warnings = Vec::new();
    let policy = memory.get("maxmemory_policy").map_or("noeviction", String::as_str);
    if policy != "noeviction" {
        warnings.push(format!(
            "Its maxmemory-policy is {policy}: when its memory is full, it drops keys of the cluster, and every machine doubts what it has stored. \
             Set maxmemory-policy to noeviction, and bound what others keep there."
        ));
    }
    let replicas = number(replication, "connected_slaves");
    let has_replicas = facts.may_have_replicas || replicas > 0;
    // Sentinels are asked with each round, so that a replaced primary is known to be one. The field is there only if writes without replicas are
    // refused.
    if has_replicas && !facts.has_sentinels && facts.replicas_wanted == 0 && !replication.contains_key("min_slaves_good_slaves") {
        warnings.push(
            "It has replicas and accepts writes without them: after a failover, machines that still reach the old primary do not hear of purges. \
             Set `replicas` in [cluster] to the number of replicas that must have each purge, or min-replicas-to-write to 1 on the server."
                .to_owned(),
        );
    }
    if u64::from(facts.replicas_wanted) > replicas {
        warnings.push(format!(
            "`replicas` is {}, and {replicas} are connected: until there are so many, no machine has a lease, and each validates what it has stored.",
            facts.replicas_wanted
        ));
    }
    if !facts.is_this_machine && !facts.has_password {
        warnings.push(
            "It asks for no password: whoever reaches it can remove purges and read what is not sealed. \
             Make a user for Seawall with ACL SETUSER, as doc/cluster.md shows, and write redis://USER:PASSWORD@HOST."
                .to_owned(),
        );
    }
    if !facts.is_this_machine && !facts.has_tls {
        warnings.push(
            "The connection is not encrypted: whoever is between can read the password. Use rediss://, or a network that nobody else is on.".to_owned(),
        );
    }
    if facts.latency > SLOW {
        warnings.push(format!(
            "A round trip takes {} ms: a purge takes three of them until it holds everywhere. Use a server that is nearer.",
            facts.latency.as_millis()
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far() -> Facts {
        Facts {
            is_this_machine: false,
            has_tls: true,
            has_password: true,
            may_have_replicas: false,
            has_sentinels: false,
            replicas_wanted: 0,
            latency: Duration::from_millis(1),
        }
    }

    fn fields(text: &[(&str, &str)]) -> BTreeMap<String, String> {
        text.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn each_thing_that_would_hurt_is_said_once() {
        let keeps = fields(&[("maxmemory_policy", "noeviction")]);
        let alone = fields(&[("connected_slaves", "0")]);
        let followed = fields(&[("connected_slaves", "1")]);
        let careful = fields(&[("connected_slaves", "1"), ("min_slaves_good_slaves", "1")]);
        for (facts, memory, replication, said) in [
            (far(), &keeps, &alone, None),
            (far(), &fields(&[("maxmemory_policy", "allkeys-lru")]), &alone, Some("allkeys-lru")),
            (far(), &fields(&[("maxmemory_policy", "volatile-ttl")]), &alone, Some("volatile-ttl")),
            (far(), &keeps, &followed, Some("accepts writes without them")),
            (far(), &keeps, &careful, None),
            (Facts { replicas_wanted: 1, ..far() }, &keeps, &followed, None),
            (Facts { replicas_wanted: 2, ..far() }, &keeps, &followed, Some("`replicas` is 2, and 1 are connected")),
            (Facts { may_have_replicas: true, ..far() }, &keeps, &alone, Some("accepts writes without them")),
            (Facts { may_have_replicas: true, has_sentinels: true, ..far() }, &keeps, &followed, None),
            (Facts { has_password: false, ..far() }, &keeps, &alone, Some("no password")),
            (Facts { has_tls: false, ..far() }, &keeps, &alone, Some("not encrypted")),
            (Facts { has_tls: false, has_password: false, is_this_machine: true, ..far() }, &keeps, &alone, None),
            (Facts { latency: Duration::from_millis(80), ..far() }, &keeps, &alone, Some("80 ms")),
        ] {
            let warnings = warnings(&facts, memory, replication);
            match said {
                None => assert!(warnings.is_empty(), "{warnings:?}"),
                Some(said) => assert!(warnings.len() == 1 && warnings[0].contains(said), "{said}: {warnings:?}"),
            }
        }
    }
}
