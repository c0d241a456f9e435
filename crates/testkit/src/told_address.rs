use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::Child,
    thread,
};

/// Returns the address that a server reports: `listening  http://127.0.0.1:8080/` on its standard error, which must be piped.
///
/// Other lines are read and dropped until the server ends.
///
/// # Panics
///
/// Panics if the server ends without that line.
pub fn told_address(server: &mut Child) -> SocketAddr {
    let mut lines = BufReader::new(server.stderr.take().expect("its standard error")).lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.trim().strip_prefix("listening")?.trim().strip_prefix("http://")?.trim_end_matches('/').parse().ok())
        .expect("it says where it listens");
    // Reading goes on, or a full pipe would stop the server.
    thread::spawn(move || lines.for_each(drop));
    address
}
