//! How the primary is found, and who is let in.

use std::{collections::BTreeSet, path::Path, time::Duration};

use cluster::{
    link::{Address, Ask, Engine, EngineOptions, LinkError, USER_RULES},
    stream::EntryId,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use testkit::{Software, Valkey, free_port};
use tokio::runtime::Handle;

use super::{DEADLINE, at_end_of, confirmation, engine, entry, member, options, round, rounds::until};

fn engine_at(urls: &[String]) -> Engine {
    Engine::new(EngineOptions { address: Address::read(urls).expect("an address"), ..options("redis://unused") }).expect("an engine")
}

#[tokio::test]
async fn nobody_listens_and_that_is_said() {
    let port = free_port();
    let error = engine_at(&[format!("redis://user:s3cret@127.0.0.1:{port}")]).connect().await.expect_err("nobody listens");
    assert!(matches!(error, LinkError::Unreachable { .. }) && error.ends_link());
    let said = error.to_string();
    assert!(said.contains(&format!("redis://127.0.0.1:{port}")) && said.contains("refused") && !said.contains("s3cret"), "{said}");
}

#[tokio::test]
async fn a_wrong_password_is_told_from_a_missing_one_and_neither_is_shown() {
    for software in Software::installed() {
        let server = Valkey::start_with(software, &["--requirepass", "right"]);
        for (login, fine) in [("", false), (":wr0ng@", false), ("nobody:wr0ng@", false), (":right@", true), ("default:right@", true)] {
            let connected = engine_at(&[format!("redis://{login}127.0.0.1:{}", server.port())]).connect().await;
            match connected {
                Ok(_) => assert!(fine, "{login}"),
                Err(error) => {
                    assert!(!fine && matches!(error, LinkError::Denied { .. }), "{login}: {error:?}");
                    assert!(!error.to_string().contains("wr0ng"), "{error}");
                }
            }
        }
    }
}

/// A password that the server does not have is no reason to go on without one: it may be another server.
#[tokio::test]
async fn a_server_without_a_password_does_not_let_in_whoever_has_one() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let error = engine_at(&[format!("redis://:s3cret@127.0.0.1:{}", server.port())]).connect().await.expect_err("it has none");
        assert!(matches!(error, LinkError::Denied { .. }), "{error:?}");
    }
}

/// What is too long is removed under these rules, too.
#[tokio::test]
async fn a_user_with_our_keys_and_commands_alone_is_enough() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let user = ["ACL", "SETUSER", "seawall", "on", ">s3cret"].into_iter().chain(USER_RULES.split_whitespace());
        assert_eq!(server.ask(&user.collect::<Vec<_>>()), "OK");
        let url = format!("redis://seawall:s3cret@127.0.0.1:{}", server.port());
        let engine = Engine::new(EngineOptions { replicas: 1, ..options(&url) }).expect("an engine");
        let link = engine.connect().await.expect("a link");
        let begun = round(&link, None).await;
        link.append(&[entry(&engine, "b0b", 1)]).await.expect("appended");
        link.confirm(&confirmation("a/5e55", EntryId::default())).await.expect("confirmed");
        assert_eq!(round(&link, Some(&at_end_of(&begun))).await.entries.len(), 1);
        assert!(engine.waiter().await.expect("a waiter").wait(EntryId::default(), DEADLINE).await.expect("woken").entries);
        assert!(link.remove_member_of("a", "5e55").await.expect("removed"));
        let shelf = engine.shelf(Handle::current());
        let lock = shelf.lock("l", DEADLINE).await.expect("an answer").expect("nobody has it");
        let first = shelf.put("v", b"0", DEADLINE).await.expect("put");
        shelf.put_instead_of("v", first, b"1", DEADLINE).await.expect("put").expect("it is there");
        assert!(shelf.get("v").await.expect("an answer").is_some());
        assert!(shelf.remove("v").await.expect("removed"));
        assert!(lock.renew(DEADLINE).await.expect("an answer") && lock.release().await.expect("an answer"));
        engine.examine().await.expect("looked at");
        server.ask(&[b"HSET", &b"seawall:{seawall}:machines"[..], b"x", &vec![b'x'; 5 * 1024 * 1024]]);
        assert!(link.append(&[entry(&engine, "b0b", 2)]).await.is_err());
        let link = engine.connect().await.expect("a link");
        link.append(&[entry(&engine, "b0b", 2)]).await.expect("it is gone");

        server.ask(&["ACL", "SETUSER", "seawall", "-xadd"]);
        let error = link.append(&[entry(&engine, "b0b", 2)]).await.expect_err("not allowed any more");
        assert!(matches!(error, LinkError::Denied { .. }) && error.to_string().contains("xadd"), "{error}");
    }
}

#[test]
fn the_page_about_clusters_shows_the_rules_of_that_user() {
    let page = include_str!("../../../../doc/cluster.md");
    let (_, shown) = page.split_once("ACL SETUSER seawall on >A-LONG-PASSWORD ").expect("the command");
    let mut shown: Vec<_> = shown.split("\n\n").next().expect("its end").split_whitespace().collect();
    let mut rules: Vec<_> = USER_RULES.split_whitespace().collect();
    shown.sort_unstable();
    rules.sort_unstable();
    assert_eq!(shown, rules);
}

/// A command that is not among them would only fail at those who follow the page.
#[test]
fn every_command_in_our_sources_is_among_the_rules_of_that_user() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut sources = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { sources.push_str(&std::fs::read_to_string(path).expect("a text")) }
        }
    }
    let mut commands = BTreeSet::new();
    for (before, after) in [("cmd(\"", '"'), ("redis.call('", '\'')] {
        commands.extend(sources.split(before).skip(1).filter_map(|rest| rest.split(after).next()));
    }
    // Sentinels are other servers, with other users.
    commands.remove("SENTINEL");
    assert!(commands.contains("XADD") && commands.contains("HSTRLEN"), "{commands:?}");
    let rules: BTreeSet<_> = USER_RULES.split_whitespace().collect();
    commands.retain(|command| !rules.contains(&*format!("+{}", command.to_lowercase())));
    assert!(commands.is_empty(), "{commands:?}");
}

#[tokio::test]
async fn databases_are_apart() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let [one, two] = [1, 2].map(|database| engine_at(&[format!("{}/{database}", server.url())]));
        one.shelf(Handle::current()).put("v", b"1", DEADLINE).await.expect("put");
        assert_eq!(two.shelf(Handle::current()).get("v").await, Ok(None));
        assert!(engine_at(&[format!("{}/99", server.url())]).connect().await.is_err(), "there are 16");
    }
}

#[tokio::test]
async fn a_replica_is_no_primary_and_of_several_servers_the_primary_is_found() {
    for software in Software::installed() {
        let primary = Valkey::start(software);
        let replica = Valkey::start_with(software, &["--replicaof", "127.0.0.1", &primary.port().to_string()]);
        let error = engine(&replica).connect().await.expect_err("a replica");
        assert!(matches!(error, LinkError::NotPrimary { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("a replica of 127.0.0.1:{}", primary.port())), "{error}");
        let away = format!("redis://127.0.0.1:{}", free_port());
        let link = engine_at(&[away.clone(), replica.url(), primary.url()]).connect().await.expect("one is the primary");
        assert_eq!(link.server().address, primary.url());
        let error = engine_at(&[away, replica.url()]).connect().await.expect_err("there is none");
        assert!(matches!(error, LinkError::NotPrimary { .. }), "what is known of a replica says more: {error:?}");
    }
}

/// A primary that becomes a replica takes no writes any more.
#[tokio::test]
async fn a_primary_that_is_one_no_more_ends_the_link() {
    for software in Software::installed() {
        let (server, other) = (Valkey::start(software), Valkey::start(software));
        let link = engine(&server).connect().await.expect("a link");
        round(&link, None).await;
        server.ask(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
        let ask = Ask { field: "a", member: &member("5e55", 2), position: None, entries_max: 1 };
        let error = link.round(ask).await.expect_err("it takes no writes");
        assert!(error.ends_link() && matches!(error, LinkError::NotPrimary { .. } | LinkError::Unreachable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn sentinels_name_the_primary_and_after_a_failover_the_next_one() {
    let software = Software::any();
    let mut primary = Valkey::start(software);
    let replica = Valkey::start_with(software, &["--replicaof", "127.0.0.1", &primary.port().to_string()]);
    until(|| replica.ask(&["INFO", "replication"]).contains("master_link_status:up"));
    let sentinel = Valkey::start_sentinel(software, "main", primary.port());
    let engine = engine_at(&[format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port())]);
    assert_eq!(engine.connect().await.expect("a link").server().address, primary.url());
    let unknown = engine_at(&[format!("redis+sentinel://127.0.0.1:{}/other", sentinel.port())]);
    let error = unknown.connect().await.expect_err("no such name");
    assert!(error.to_string().contains("knows no primary named other"), "{error}");

    // It learns of replicas from the primary, every ten seconds.
    until(|| sentinel.ask(&["SENTINEL", "REPLICAS", "main"]).contains(&replica.port().to_string()));
    primary.kill();
    let begun = std::time::Instant::now();
    let link = loop {
        match engine.connect().await {
            Ok(link) => break link,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(30), "{error}"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(link.server().address, replica.url());
    round(&link, None).await;
}

/// The primary that was replaced still answers whoever is cut off with it. One Sentinel may be cut off, too.
#[tokio::test]
async fn what_most_sentinels_say_counts_with_every_round() {
    let software = Software::any();
    let [old, next] = [(); 2].map(|()| Valkey::start(software));
    let mut sentinels = [(); 3].map(|()| Valkey::start_sentinel(software, "main", old.port()));
    let hosts: Vec<_> = sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
    let engine = engine_at(&[format!("redis+sentinel://{}/main", hosts.join(","))]);
    let link = engine.connect().await.expect("a link");
    assert_eq!(link.server().address, old.url());
    round(&link, None).await;
    let again = || async {
        let ask = Ask { field: "a", member: &member("5e55", 2), position: None, entries_max: 1 };
        link.round(ask).await
    };
    let replace = |sentinel: &Valkey| {
        sentinel.ask(&["SENTINEL", "REMOVE", "main"]);
        assert_eq!(sentinel.ask(&["SENTINEL", "MONITOR", "main", "127.0.0.1", &next.port().to_string(), "1"]), "OK");
    };
    replace(&sentinels[0]);
    assert!(again().await.is_ok(), "two of three say that it is the primary");
    replace(&sentinels[1]);
    let error = again().await.expect_err("two of three say that another one is");
    assert!(matches!(error, LinkError::NotPrimary { .. }) && error.ends_link(), "{error:?}");
    assert!(error.to_string().contains(&next.port().to_string()), "{error}");
    assert_eq!(engine.connect().await.expect("a link").server().address, next.url());

    sentinels[0].kill();
    assert!(engine.connect().await.is_err(), "the two others do not agree");
    replace(&sentinels[2]);
    assert_eq!(engine.connect().await.expect("they agree").server().address, next.url());
    sentinels[1].kill();
    let error = engine.connect().await.expect_err("one of three is not enough");
    assert!(error.to_string().contains("2 of 3 Sentinels cannot be reached"), "{error}");
}

/// The primary that was replaced takes entries, too, until it hears of that. The machines have gone on at the next one and never read them.
#[tokio::test]
async fn what_is_appended_to_a_primary_that_was_replaced_is_not_taken_as_told() {
    let software = Software::any();
    let [old, next] = [(); 2].map(|()| Valkey::start(software));
    let sentinel = Valkey::start_sentinel(software, "main", old.port());
    let engine = engine_at(&[format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port())]);
    let link = engine.connect().await.expect("a link");
    round(&link, None).await;
    link.append(&[entry(&engine, "b0b", 1)]).await.expect("appended");
    sentinel.ask(&["SENTINEL", "REMOVE", "main"]);
    assert_eq!(sentinel.ask(&["SENTINEL", "MONITOR", "main", "127.0.0.1", &next.port().to_string(), "1"]), "OK");
    let error = link.append(&[entry(&engine, "b0b", 2)]).await.expect_err("nobody reads it there");
    assert!(matches!(error, LinkError::NotPrimary { .. }) && error.ends_link(), "{error:?}");
    let link = engine.connect().await.expect("a link");
    assert_eq!(link.server().address, next.url());
    round(&link, None).await;
    link.append(&[entry(&engine, "b0b", 2)]).await.expect("appended where it is read");
}

#[tokio::test]
async fn sentinels_may_have_the_password_or_none() {
    let software = Software::any();
    let primary = Valkey::start_with(software, &["--requirepass", "right"]);
    let sentinel = Valkey::start_sentinel(software, "main", primary.port());
    let engine = engine_at(&[format!("redis+sentinel://:right@127.0.0.1:{}/main", sentinel.port())]);
    engine.connect().await.expect("it has none");
    assert_eq!(sentinel.ask(&["ACL", "SETUSER", "default", "resetpass", ">right"]), "OK");
    let engine = engine_at(&[format!("redis+sentinel://:right@127.0.0.1:{}/main", sentinel.port())]);
    engine.connect().await.expect("it has the same");
}

#[tokio::test]
async fn a_cluster_leads_to_the_server_that_has_our_keys() {
    for software in Software::installed() {
        let node = || {
            let bus = free_port().to_string();
            Valkey::start_with(software, &["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-announce-bus-port", &bus])
        };
        let nodes = [node(), node()];
        assert_eq!(nodes[0].ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]), "OK");
        assert_eq!(nodes[1].ask(&["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]), "OK");
        let bus = nodes[1].ask(&["CONFIG", "GET", "cluster-port"]);
        let bus = bus.lines().last().expect("a port");
        nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &nodes[1].port().to_string(), bus]);
        until(|| nodes.iter().all(|node| node.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok")));
        let slot: u32 = nodes[0].ask(&["CLUSTER", "KEYSLOT", "seawall:{seawall}:machines"]).parse().expect("a slot");
        let (owner, other) = if slot < 8192 { (&nodes[0], &nodes[1]) } else { (&nodes[1], &nodes[0]) };
        for seed in &nodes {
            let engine = engine_at(&[format!("redis+cluster://127.0.0.1:{}", seed.port())]);
            let link = engine.connect().await.expect("a link");
            assert_eq!(link.server().address, owner.url());
            round(&link, None).await;
            link.append(&[entry(&engine, "b0b", 1)]).await.expect("appended");
            let shelf = engine.shelf(Handle::current());
            let first = shelf.put("v", b"1", DEADLINE).await.expect("put");
            let lock = shelf.lock("l", DEADLINE).await.expect("an answer").expect("nobody has it");
            shelf.put_instead_of("v", first, b"2", DEADLINE).await.expect("put").expect("it is there");
            lock.release().await.expect("released");
        }
        // A link that is at the wrong server says so.
        let link = engine(other).connect().await.expect("it is a primary");
        let ask = Ask { field: "a", member: &member("5e55", 1), position: None, entries_max: 1 };
        assert!(matches!(link.round(ask).await, Err(LinkError::NotPrimary { .. })));
    }
}

#[tokio::test]
async fn tls_trusts_whom_it_is_told_to_and_checks_the_name() {
    let key = || KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, key()).expect("an authority");
    let identity = |name: &str| {
        let key = key();
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        (params.signed_by(&key, &authority).expect("a certificate").pem(), key.serialize_pem())
    };
    for software in Software::installed() {
        let (certificate, key) = identity("127.0.0.1");
        let server = Valkey::start_with_tls(software, &certificate, &key);
        let trusting = |url: &str, authorities: Option<String>| {
            let authorities = authorities.map(String::into_bytes);
            Engine::new(EngineOptions { authorities, ..options(url) }).expect("an engine")
        };
        let engine = trusting(&server.url(), Some(authority.pem()));
        let link = engine.connect().await.expect("a link");
        assert!(link.server().address.starts_with("rediss://"), "{:?}", link.server());
        round(&link, None).await;
        let error = trusting(&server.url(), None).connect().await.expect_err("nobody knows this authority");
        assert!(error.to_string().contains("TLS failed"), "{error}");
        let plain = format!("redis://127.0.0.1:{}", server.port());
        assert!(trusting(&plain, None).connect().await.is_err(), "it speaks TLS alone");

        let (certificate, key) = identity("other.example");
        let server = Valkey::start_with_tls(software, &certificate, &key);
        let error = trusting(&server.url(), Some(authority.pem())).connect().await.expect_err("another name");
        assert!(error.to_string().contains("TLS failed"), "{error}");
    }
}

#[tokio::test]
async fn a_look_at_the_server_says_what_would_hurt() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let examined = engine(&server).examine().await.expect("looked at");
        assert!(examined.latency < DEADLINE);
        let slow = |warning: &&String| !warning.starts_with("A round trip takes");
        assert_eq!(examined.warnings.iter().filter(slow).count(), 0, "{:?}", examined.warnings);
        assert_eq!(server.ask(&["DBSIZE"]), "0", "it writes nothing");

        server.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
        let replica = Valkey::start_with(software, &["--replicaof", "127.0.0.1", &server.port().to_string()]);
        until(|| replica.ask(&["INFO", "replication"]).contains("master_link_status:up"));
        let warned = engine(&server).examine().await.expect("looked at").warnings;
        assert!(warned.iter().any(|warning| warning.contains("allkeys-lru")), "{warned:?}");
        assert!(warned.iter().any(|warning| warning.contains("min-replicas-to-write")), "{warned:?}");
        server.ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        let warned = engine(&server).examine().await.expect("looked at").warnings;
        assert!(!warned.iter().any(|warning| warning.contains("min-replicas-to-write")), "{warned:?}");
    }
}
