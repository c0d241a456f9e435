//! A server of a test's own, which ends with the test, however that ends.

use std::process::{Child, ChildStdin, Command, Stdio};

/// Runs the program, and ends it when nobody holds the other end of the standard input any more.
const KEEPER: &str = r#""$@" </dev/null & pid=$!; cat >/dev/null; kill -TERM $pid 2>/dev/null; wait $pid"#;

/// A running program. Dropping it ends it and waits for that; so does the end of the tests, however that comes about.
pub(crate) struct Process {
    keeper: Child,
    alive: Option<ChildStdin>,
}

impl Process {
    /// Starts a program. `output` takes what it says.
    pub(crate) fn start(command: &Command, output: impl Fn() -> Stdio) -> Self {
        let mut kept = Command::new("sh");
        kept.args(["-c", KEEPER, "keeper"])
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::piped())
            .stdout(output())
            .stderr(output());
        let mut keeper = kept.spawn().expect("a shell");
        let alive = keeper.stdin.take();
        Self { keeper, alive }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.alive.take());
        let _ = self.keeper.wait();
    }
}
