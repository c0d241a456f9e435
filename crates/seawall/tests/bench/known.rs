//! Small things that tests here need to know about each other: free ports, certificates, programs that end with the test.

use std::{
    net::TcpStream,
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

/// The time that anything may take to start.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something listens there.
pub(crate) fn wait_for(port: u16, what: &str) {
    until(&format!("{what} listens on {port}"), || TcpStream::connect(("127.0.0.1", port)).is_ok());
}

/// Waits until it is so.
#[expect(clippy::disallowed_methods, reason = "other programs do not say when they are ready")]
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes a certificate of 127.0.0.1 that nobody trusts, and its key, as files.
pub(crate) fn write_pair(folder: &Path) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]).expect("a certificate can be made");
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).expect("written");
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
}

/// A program that is ended with the test.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(self.0.id()).expect("a process id")) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::yield_now();
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
