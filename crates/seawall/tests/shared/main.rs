//! Certificates and sessions of three machines that share a Valkey or Redis: the real binary three times, a real certificate authority (Pebble), and a load balancer
//! that leads whoever asks to a machine of its choice.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod front;
mod scene;

use std::{collections::BTreeSet, fs};

use scene::{Scene, until};

const NAMES: [&str; 3] = ["a.example.org", "b.example.org", "c.example.org"];

/// All three are started at the same moment, with nothing on their disks.
#[test]
fn three_machines_that_start_at_once_order_each_name_once_and_each_of_them_answers_the_authority() {
    let scene = Scene::start(&NAMES);
    scene.all_have(&NAMES);
    assert_eq!(scene.orders(), NAMES.len(), "{}", scene.logs());
    // The load balancer asked all of them for each proof, and at least two of the three had not ordered.
    let asked = scene.front.asked();
    assert!(asked.len() >= NAMES.len(), "{asked:?}");
    for (path, answers) in asked {
        let token = path.rsplit('/').next().expect("a token");
        for (machine, answer) in answers.iter().enumerate() {
            let (status, content) = answer.as_ref().expect("it runs");
            assert!(*status == 200 && content.starts_with(token), "machine {machine} answered {status} {content} for {path}");
        }
    }
    // One certificate for each name, the same on each disk, and one account.
    for name in NAMES {
        let kept: BTreeSet<String> = scene.machines.iter().map(|machine| machine.kept(&format!("{name}.pem"))).collect();
        assert_eq!(kept.len(), 1, "{name}");
        assert!(kept.first().expect("one").contains("PRIVATE KEY"));
    }
    until("all of them keep the account", || scene.machines.iter().all(|machine| machine.keeps("account.json")));
    let accounts: BTreeSet<String> = scene.machines.iter().map(|machine| machine.kept("account.json")).collect();
    assert_eq!(accounts.len(), 1);
    assert_eq!(scene.accounts(), 1);
}

/// The orderer is killed while the authority waits for its proof.
#[test]
fn when_the_orderer_is_killed_midway_another_machine_orders_and_all_the_others_have_the_certificate() {
    let mut scene = Scene::start_holding(&NAMES[..1]);
    scene.front.arrived();
    let orderer = scene.orderer(NAMES[0]).expect("somebody ordered");
    scene.kill(orderer);
    scene.front.open();
    scene.all_have(&NAMES[..1]);
    assert!((1..=2).contains(&scene.orders()), "one was begun and one was finished: {}", scene.logs());
    assert_eq!(scene.issued(), 1, "{}", scene.logs());
    // Back from its crash it takes what the others have.
    scene.start_again(orderer);
    scene.all_have(&NAMES[..1]);
    assert_eq!(scene.issued(), 1, "{}", scene.logs());
}

/// RFC 8446 §2.2, RFC 5077: a ticket of one machine is good at the others.
#[test]
fn a_session_of_one_machine_resumes_at_another() {
    let scene = Scene::start(&NAMES[..1]);
    scene.all_have(&NAMES[..1]);
    for version in ["-tls1_3", "-tls1_2"] {
        until("a session of each machine resumes at each other one", || {
            (0..3).all(|from| {
                let session = scene.session_of(from, NAMES[0], version);
                (0..3).all(|to| scene.resumes(to, NAMES[0], version, &session))
            })
        });
    }
    // Without the server they go on with the keys that they have.
    let mut scene = scene;
    scene.valkey.kill();
    let session = scene.session_of(0, NAMES[0], "-tls1_3");
    assert!(scene.resumes(2, NAMES[0], "-tls1_3", &session));
}

#[test]
fn what_the_server_holds_and_dumps_shows_no_key() {
    let scene = Scene::start(&NAMES[..1]);
    scene.all_have(&NAMES[..1]);
    until("the account is on all disks", || scene.machines.iter().all(|machine| machine.keeps("account.json")));
    // A session from before the keys were there resumes at its own machine alone.
    until("the keys of tickets are there", || scene.resumes(1, NAMES[0], "-tls1_3", &scene.session_of(0, NAMES[0], "-tls1_3")));
    assert_eq!(scene.valkey.ask(&["CONFIG", "SET", "rdbcompression", "no"]), "OK");
    assert_eq!(scene.valkey.ask(&["SAVE"]), "OK");
    let dump = fs::read(scene.valkey.folder().join("dump.rdb")).expect("a dump");
    let keys = scene.valkey.ask(&["KEYS", "*"]);
    assert!(keys.contains(NAMES[0]) && keys.contains("tickets"), "{keys}");
    assert!(keys.lines().all(|key| key.starts_with("seawall:")), "{keys}");
    for key in keys.lines().filter(|key| !key.ends_with(":purges")) {
        let left: i64 = scene.valkey.ask(&["TTL", key]).parse().expect("a number");
        assert!(left > 0, "{key} does not expire");
    }
    let pem = scene.machines[0].kept(&format!("{}.pem", NAMES[0]));
    let account = scene.machines[0].kept("account.json");
    let secrets = scene::secrets(&pem, &account);
    assert!(secrets.len() >= 6, "keys as base64 and as bytes");
    for secret in secrets {
        assert!(!dump.windows(secret.len()).any(|window| window == secret), "{}", String::from_utf8_lossy(&secret));
    }
    for word in ["PRIVATE KEY", "BEGIN CERTIFICATE", "key_pkcs8"] {
        assert!(!dump.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
    }
}
