//! Programs that are started for a test, and end with it.

use std::{
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The time that a program has to do what it is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Finds a program that `bring-up` installs.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/bin".into()]);
    let found = places.find_map(|place| Some(place.join(name)).filter(|file| file.is_file()));
    found.unwrap_or_else(|| panic!("{name} is missing: `make seeing` installs it"))
}

/// Makes a command without anything of whoever runs the tests, but for what programs need to be found.
pub(crate) fn bare(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env_clear().env("PATH", format!("{path}:/usr/sbin:/sbin")).env("HOME", "/nonexistent").stdin(Stdio::null());
    command
}

/// Waits until something listens there.
pub(crate) fn wait_for(port: u16, what: &str) {
    until(&format!("{what} listens on {port}"), || TcpStream::connect(("127.0.0.1", port)).is_ok());
}

/// Waits until it is so.
pub(crate) fn until(what: &str, so: impl FnMut() -> bool) {
    within(PATIENCE, what, so);
}

/// Waits until it is so, for at most this time.
#[expect(clippy::disallowed_methods, reason = "other programs do not say when they are ready")]
pub(crate) fn within(time: Duration, what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + time;
    while !so() {
        assert!(Instant::now() < end, "waited in vain for {} s: {what}", time.as_secs());
        std::thread::sleep(Duration::from_millis(100));
    }
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
