//! The cache view equals nginx's own log, request for request.

use std::{collections::BTreeMap, fs, process::Command};

use testkit::free_port;

use super::{
    known::{Ended, until, wait_for},
    tool::{bare, bench, program},
};

/// Returns the result's word for nginx's word for what its cache did.
fn outcome(said: &str) -> &'static str {
    match said {
        "HIT" => "hit",
        "MISS" | "EXPIRED" => "miss",
        "STALE" | "UPDATING" => "stale",
        "BYPASS" => "bypass",
        other => panic!("nginx logged {other:?}"),
    }
}

#[test]
fn outcomes_are_those_of_nginxs_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let (at, port, origin) = (folder.path().display(), free_port(), free_port());
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|kind| format!("{kind}_temp_path {at}/{kind};")).concat();
    fs::write(
        folder.path().join("nginx.conf"),
        format!(
            "{user} worker_processes 1; daemon off; pid {at}/nginx.pid; error_log {at}/error.log;
             events {{ worker_connections 1024; }}
             http {{ {temporary} default_type text/plain; log_format outcome '$upstream_cache_status $status $uri $http_x_client';
               proxy_cache_path {at}/cache keys_zone=pages:1m;
               server {{ listen 127.0.0.1:{origin}; access_log off;
                 location /long {{ add_header Cache-Control max-age=600; return 200 long; }}
                 location /short {{ add_header Cache-Control max-age=1; return 200 short; }}
                 location /old {{ add_header Cache-Control 'max-age=1, stale-while-revalidate=600'; return 200 old; }}
                 location /never {{ add_header Cache-Control no-store; return 200 never; }} }}
               server {{ listen 127.0.0.1:{port}; access_log {at}/access.log outcome;
                 location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_cache pages; proxy_cache_key $uri; proxy_cache_background_update on; proxy_cache_use_stale updating;
                   proxy_cache_bypass $http_x_bypass; add_header X-Cache $upstream_cache_status always; }} }} }}"
        ),
    )
    .expect("written");
    let mut command = Command::new(program("nginx"));
    bare(&mut command).arg("-e").arg(folder.path().join("error.log")).arg("-c").arg(folder.path().join("nginx.conf"));
    let _nginx = Ended(command.spawn().expect("nginx"));
    wait_for(port, "nginx");
    wait_for(origin, "nginx");

    let page = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let urls = ["/long/1", "/long/2", "/short", "/old", "/never"].map(page);
    let all: Vec<&str> = urls.iter().map(String::as_str).collect();
    let told = bench(&[&["-c", "4", "--rate", "200/3s", "--seed", "1"], &all[..]].concat());
    let bypassing = bench(&["-c", "2", "-n", "40", "-H", "X-Bypass: 1", &page("/long/1")]);
    assert_eq!((told.errors(), bypassing.errors()), (Vec::new(), Vec::new()));
    assert_eq!((told.count("requests"), bypassing.count("requests")), (600, 40));

    let log = || fs::read_to_string(folder.path().join("access.log")).unwrap_or_default();
    until("nginx has logged all", || log().lines().count() >= 640);
    let mut logged = BTreeMap::<&str, u64>::new();
    for line in log().lines() {
        *logged.entry(outcome(line.split(' ').next().expect("an outcome"))).or_default() += 1;
    }
    let mut viewed = BTreeMap::<&str, u64>::new();
    for result in [&told, &bypassing] {
        for name in ["hit", "miss", "stale", "bypass", "unknown"] {
            let requests = result.at(&format!("cache.{name}.requests")).as_u64().unwrap_or_default();
            if requests > 0 {
                *viewed.entry(name).or_default() += requests;
            }
        }
    }
    assert_eq!(viewed, logged);
    assert!(["hit", "miss", "stale", "bypass"].iter().all(|name| logged[name] > 0), "each outcome occurs: {logged:?}");
}
