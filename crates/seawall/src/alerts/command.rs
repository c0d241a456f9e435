//! A notice to a program: JSON on its standard input. It is run without a shell, in a process group of its own, once, and for a bounded time.

use std::{io, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStderr, Command},
    time::timeout,
};

use super::outbox::Failure;
use crate::config::settings::AlertCommand;

/// The bytes of a program's standard error that are shown; the rest is read and dropped.
const COMPLAINT_BYTES_MAX: usize = 400;

/// The time after a program's end in which the last of its standard error is read: what it has left running may hold that open.
const COMPLAINT_WITHIN: Duration = Duration::from_millis(200);

/// Runs the program with this on its standard input.
pub(super) async fn run(command: &AlertCommand, input: &str) -> Result<(), Failure> {
    let shown = command.program.display();
    let mut program = Command::new(&command.program);
    program.args(&command.arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    program.process_group(0).kill_on_drop(true);
    let child = program.spawn().map_err(|error| Failure::last(format!("`{shown}` cannot be run: {error}")))?;
    let group = Group::of(&child);
    let mut complaint = Vec::new();
    let status = match timeout(command.timeout, end(child, input, &mut complaint)).await {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => return Err(Failure::last(format!("`{shown}` cannot be waited for: {error}"))),
        Err(_) => return Err(Failure::last(format!("`{shown}` took longer than {:?} and was killed", command.timeout))),
    };
    group.has_ended();
    if status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&complaint);
    let complaint: String = complaint.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Err(Failure::last(format!("`{shown}` failed ({status}): {complaint}")))
}

/// Gives the program its input, and waits until it ends.
async fn end(mut child: Child, input: &str, complaint: &mut Vec<u8>) -> io::Result<std::process::ExitStatus> {
    if let Some(mut stdin) = child.stdin.take() {
        // A program may end without having read it.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let stderr = child.stderr.take();
    let mut reading = std::pin::pin!(gather(stderr, complaint));
    let mut is_read = false;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            () = &mut reading, if !is_read => is_read = true,
        }
    };
    if !is_read {
        let _ = timeout(COMPLAINT_WITHIN, reading).await;
    }
    Ok(status)
}

/// Reads to the end, and keeps the beginning.
async fn gather(stderr: Option<ChildStderr>, kept: &mut Vec<u8>) {
    let Some(mut stderr) = stderr else { return };
    let mut piece = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        let room = COMPLAINT_BYTES_MAX - kept.len();
        kept.extend_from_slice(&piece[..read.min(room)]);
    }
}

/// The processes that a program has started. Those that still run when it is dropped are killed, unless the program itself has ended.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Leaves to themselves what the program has left running: it may have meant that.
    fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn command(folder: &Path, script: &str) -> AlertCommand {
        let program = folder.join("notify");
        testkit::write_program(&program, &format!("#!/bin/sh\n{script}\n"));
        let arguments = vec!["a b".to_owned(), "$(touch x)".to_owned()];
        AlertCommand { program, arguments, timeout: Duration::from_secs(10) }
    }

    #[tokio::test]
    async fn the_program_gets_json_on_its_standard_input_and_its_arguments_as_they_are() {
        let place = tempfile::tempdir().expect("a folder");
        let said = place.path().join("said");
        let command = command(place.path(), &format!("printf '%s|' \"$@\" >{0}; cat >>{0}", said.display()));
        run(&command, "{\"name\":\"disk\"}").await.expect("done");
        assert_eq!(fs::read_to_string(said).expect("written"), "a b|$(touch x)|{\"name\":\"disk\"}");
    }

    #[tokio::test]
    async fn a_program_that_fails_is_quoted_and_not_run_again() {
        let place = tempfile::tempdir().expect("a folder");
        let long = "i=0; while [ $i -lt 20000 ]; do echo xxxxxxxxxx; i=$((i+1)); done >&2";
        let failure = run(&command(place.path(), &format!("echo no such room >&2; {long}; exit 3")), "{}").await.expect_err("failed");
        assert!(failure.why.contains("no such room") && failure.why.contains("exit status: 3"), "{failure:?}");
        assert!(failure.again.is_none() && failure.why.len() < 600, "{failure:?}");
        let missing = AlertCommand { program: place.path().join("absent"), ..command(place.path(), "") };
        let failure = run(&missing, "{}").await.expect_err("failed");
        assert!(failure.why.contains("cannot be run") && failure.again.is_none(), "{failure:?}");
    }

    #[tokio::test]
    async fn a_program_that_reads_nothing_or_leaves_something_running_is_done_when_it_ends() {
        let place = tempfile::tempdir().expect("a folder");
        run(&command(place.path(), "exit 0"), &"x".repeat(60_000)).await.expect("done");
        let pid = place.path().join("pid");
        let leaves = format!("tail -f /dev/null & echo $! >{}; exit 0", pid.display());
        run(&command(place.path(), &leaves), "{}").await.expect("done");
        let left = fs::read_to_string(pid).expect("written").trim().parse().ok().and_then(Pid::from_raw).expect("a process");
        rustix::process::kill_process(left, Signal::KILL).expect("it still ran");
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_killed_with_all_that_it_has_started() {
        let place = tempfile::tempdir().expect("a folder");
        let pid = place.path().join("pid");
        let hangs = format!("tail -f /dev/null & echo $! >{}; wait", pid.display());
        let command = AlertCommand { timeout: Duration::from_millis(500), ..command(place.path(), &hangs) };
        let failure = run(&command, "{}").await.expect_err("killed");
        assert!(failure.why.contains("took longer than 500ms") && failure.again.is_none(), "{failure:?}");
        let started = fs::read_to_string(pid).expect("written").trim().to_owned();
        let state = || fs::read_to_string(format!("/proc/{started}/stat")).unwrap_or_default();
        let is_dead = || state().is_empty() || state().contains(") Z ");
        for _ in 0..1_000 {
            if is_dead() {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(is_dead(), "{}", state());
    }
}
