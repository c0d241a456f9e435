//! The binary as somebody runs it who knows nothing of it: `seawall serve FOLDER`.

use std::{
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

/// A running server. Dropping it ends it.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    pub(crate) fn start(folder: &Path, cache: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .arg("serve")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0", "--admin", "off", "--workers", "1", "--cache-dir"])
            .arg(cache)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the server starts");
        let address = testkit::told_address(&mut child);
        Self { child, address }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
