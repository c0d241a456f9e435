//! Programs that are started for a test, stopped, frozen, and ended with it; and waiting.

use std::{
    ffi::OsStr,
    fs,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// The time that anything has to happen that is waited for, on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running program. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Self {
        let shown = format!("{command:?}");
        Self(command.stdin(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{shown}: {error}")))
    }

    fn send(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("a process id")).expect("not zero");
        kill_process(pid, signal).expect("it was not waited for yet");
    }

    /// Stops it as the system does that runs short of time: everything waits, and nothing is told. When this returns, none of its threads runs.
    pub(crate) fn freeze(&self) {
        self.send(Signal::STOP);
        until("all threads have stopped", || {
            let threads = fs::read_dir(format!("/proc/{}/task", self.0.id())).expect("it lives");
            threads.flatten().all(|thread| {
                let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
                stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with(['T', 't']) || rest.is_empty())
            })
        });
    }

    /// Lets it run again.
    pub(crate) fn thaw(&self) {
        self.send(Signal::CONT);
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.send(Signal::TERM);
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < end, "it does not end");
            rest(Duration::from_millis(10));
        }
    }

    /// Returns how it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child")
    }

    /// Returns the bytes of memory that it has.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) << 10
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Also what is frozen dies of this.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Finds a program that the bring-up installs.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into(), "/usr/local/bin".into()]);
    places.find_map(|place| Some(place.join(name)).filter(|file| file.is_file()))
}

/// Makes a command without anything of whoever runs the tests, but for what programs need to be found.
pub(crate) fn bare(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env_clear().env("PATH", format!("{path}:/usr/sbin:/sbin")).env("HOME", "/dev/null").stdin(Stdio::null());
    command
}

/// Lets time pass: readers take theirs, and faults last.
#[expect(clippy::disallowed_methods, reason = "real programs run in real time, and do not say when a fault has had its effect")]
pub(crate) fn rest(time: Duration) {
    std::thread::sleep(time);
}

/// Waits until it is so, and returns how long that took.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {} s: {what}", PATIENCE.as_secs());
        rest(Duration::from_millis(20));
    }
    begun.elapsed()
}
