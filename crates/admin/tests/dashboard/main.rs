//! The dashboard in Chromium, before a console with invented numbers: each panel empty, on a calm day, in a crowd, with the origin gone, and before strangers
//! who mean harm; judged by axe; signing in, commands, the keyboard; pages of others that try to command.
//!
//! It is long and needs tools of npm: `make spec-seeing`. Without SEAWALL_SEEING_LONG, nothing here runs; what must always hold is in crates/admin/src.
//!
//!   SEAWALL_SEEING_PICTURES=DIR   keeps screenshots of every scene: light and dark, from a phone to a wide screen
#![expect(clippy::expect_used, reason = "tests")]

mod scenes;

use std::{
    env,
    future::pending,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    thread,
};

use admin::Token;
use serde_json::{Map, Value, json};

use self::scenes::{Fake, HOSTILE, Scene};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn long_tests_run() -> bool {
    env::var_os("SEAWALL_SEEING_LONG").is_some()
}

/// Starts the listener of a scene; it lasts as long as the tests do.
fn shown(scene: Scene, address: &'static str) -> (SocketAddr, Arc<Fake>) {
    let fake = Arc::new(Fake::new(scene));
    let console = Arc::clone(&fake);
    let (bound, listening) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind(address).await.expect("a free port");
            bound.send(listener.local_addr().expect("bound")).expect("the test waits");
            admin::serve(listener, console, Token::new(TOKEN).expect("long enough"), pending()).await
        })
    });
    (listening.recv().expect("bound"), fake)
}

/// Runs a journey of `browser.mjs`, and returns what is wrong.
fn journey(name: &str, mut facts: Value) -> Vec<String> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").unwrap_or_else(|| variable("HOME").expect("a home").join(".cache"));
    let tools = variable("SEAWALL_BLOG_DIR").unwrap_or_else(|| cache().join("seawall-blog"));
    assert!(tools.join("node_modules/axe-core").exists(), "the tools are not there: run `make spec-seeing`, which installs them");
    facts["modules"] = tools.display().to_string().into();
    facts["chromium"] = "/usr/bin/chromium".into();
    facts["token"] = TOKEN.into();
    facts["pictures"] = env::var("SEAWALL_SEEING_PICTURES").ok().into();
    let mut node = Command::new(tools.join("node"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard/browser.mjs"))
        .arg(name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node");
    // It reads all of it before it says anything.
    node.stdin.take().expect("piped").write_all(facts.to_string().as_bytes()).expect("taken");
    let output = node.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).expect("text").lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn url(address: SocketAddr) -> String {
    format!("http://127.0.0.1:{}", address.port())
}

#[test]
fn every_scene_is_shown_without_a_finding_of_axe_a_foreign_request_or_a_breach_of_the_policy() {
    if !long_tests_run() {
        return;
    }
    let scenes: Map<String, Value> =
        Scene::ALL.into_iter().map(|(name, scene)| (name.to_owned(), url(shown(scene, "127.0.0.1:0").0).into())).collect();
    assert_eq!(journey("scenes", json!({"scenes": scenes, "hostile": HOSTILE})), Vec::<String>::new());
}

#[test]
fn an_operator_signs_in_explains_purges_warms_and_signs_out_in_a_browser() {
    if !long_tests_run() {
        return;
    }
    let (address, fake) = shown(Scene::Crowd, "127.0.0.1:0");
    assert_eq!(journey("commands", json!({"url": url(address)})), Vec::<String>::new());
    let purges: Vec<String> =
        fake.purges.lock().expect("no panic").iter().map(|order| format!("{:?} {}", order.what[0], order.hard)).collect();
    assert_eq!(purges.len(), 2, "{purges:?}");
    assert!(purges[0].contains("/product/tide-clock") && purges[0].ends_with("false"), "{purges:?}");
    assert!(purges[1].contains("Everything") && purges[1].ends_with("true"), "{purges:?}");
    let explained = fake.explained.lock().expect("no panic");
    assert!(explained.iter().any(|command| command.fields.contains(&("Cookie".to_owned(), "session=1".to_owned()))), "{explained:?}");
    assert_eq!(*fake.warmed.lock().expect("no panic"), ["shop.example"]);
}

/// A listener that others can reach shows nothing before the token was shown.
#[test]
fn a_listener_that_others_can_reach_asks_for_the_token_first() {
    if !long_tests_run() {
        return;
    }
    let (address, _) = shown(Scene::Calm, "0.0.0.0:0");
    assert_eq!(journey("gate", json!({"url": url(address)})), Vec::<String>::new());
}

#[test]
fn pages_of_others_command_nothing_read_nothing_and_frame_nothing() {
    if !long_tests_run() {
        return;
    }
    let (address, fake) = shown(Scene::Crowd, "127.0.0.1:0");
    assert_eq!(journey("strangers", json!({"url": url(address)})), Vec::<String>::new());
    assert!(fake.purges.lock().expect("no panic").is_empty());
}
