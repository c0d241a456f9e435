use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::Child,
    thread,
};

/// Where a server that somebody started says that it listens: `listening  http://127.0.0.1:8080/` on its standard error, which must be piped.
///
/// What else it says there is read and dropped until it ends.
///
/// # Panics
///
/// If it ends without having said so.
pub fn told_address(server: &mut Child) -> SocketAddr {
    let mut lines = BufReader::new(server.stderr.take().expect("its standard error")).lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.trim().strip_prefix("listening")?.trim().strip_prefix("http://")?.trim_end_matches('/').parse().ok())
        .expect("it says where it listens");
    // Read on, or it would be stopped by a full pipe.
    thread::spawn(move || lines.for_each(drop));
    address
}
