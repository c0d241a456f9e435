//! The binary as somebody runs it who knows nothing of it: `seawall serve FOLDER`.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

/// A running server. Dropping it ends it.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(folder: &Path, cache: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .arg("serve")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0", "--admin", "off", "--workers", "2", "--cache-dir"])
            .arg(cache)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(child.stderr.take().expect("its standard error")).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.trim().strip_prefix("listening")?.trim().strip_prefix("http://")?.trim_end_matches('/').parse().ok())
            .expect("it says where it listens");
        // Read on, or it would be stopped by a full pipe.
        thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
