//! A program of the operator's that writes a TXT record (DNS-01), for names that cannot be reached from outside, and for wildcards.

use std::{path::PathBuf, process::Stdio, time::Duration};

use tokio::process::Command;

use crate::failure::Failure;

/// The number of bytes of a hook's standard error that go to the log.
const COMPLAINT_BYTES_MAX: usize = 400;

/// A program that writes TXT records. It is called as `PROGRAM present _acme-challenge.example.org VALUE`, and later with `cleanup`.
///
/// It must return 0 only when the authority can read the record, which may take its DNS provider a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsHook {
    /// The program to run, without a shell.
    pub program: PathBuf,
    /// The time after which it is killed.
    pub timeout: Duration,
}

impl DnsHook {
    pub(crate) async fn present(&self, name: &str, value: &str) -> Result<(), Failure> {
        self.run("present", name, value).await
    }

    /// Removes a record. A record that stays behind is harmless, so a failure is only logged.
    pub(crate) async fn clean_up(&self, name: &str, value: &str) {
        if let Err(failure) = self.run("cleanup", name, value).await {
            tracing::warn!("the dns_hook could not remove a TXT record: {failure}");
        }
    }

    async fn run(&self, verb: &str, name: &str, value: &str) -> Result<(), Failure> {
        let record = format!("_acme-challenge.{}", name.strip_prefix("*.").unwrap_or(name));
        let shown = format!("{} {verb} {record} {value}", self.program.display());
        let mut command = Command::new(&self.program);
        command.args([verb, &record, value]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let output = match tokio::time::timeout(self.timeout, command.output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => return Err(Failure::ours(format!("`{shown}` cannot be run: {error}")).hint("see acme.dns_hook")),
            Err(_) => return Err(Failure::ours(format!("`{shown}` took longer than {:?} and was killed", self.timeout))),
        };
        if output.status.success() {
            return Ok(());
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint: String = complaint.trim().chars().take(COMPLAINT_BYTES_MAX).collect();
        Err(Failure::ours(format!("`{shown}` failed ({}): {complaint}", output.status)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn hook(folder: &std::path::Path, script: &str) -> DnsHook {
        let program = folder.join("hook");
        testkit::write_program(&program, &format!("#!/bin/sh\n{script}\n"));
        DnsHook { program, timeout: Duration::from_secs(10) }
    }

    #[tokio::test]
    async fn the_hook_is_told_the_record() {
        let place = tempfile::tempdir().expect("a folder");
        let log = place.path().join("log");
        let hook = hook(place.path(), &format!("echo \"$@\" >> {}", log.display()));
        hook.present("*.example.org", "VALUE").await.expect("done");
        hook.clean_up("example.org", "VALUE").await;
        let said = fs::read_to_string(log).expect("written");
        assert_eq!(said, "present _acme-challenge.example.org VALUE\ncleanup _acme-challenge.example.org VALUE\n");
    }

    #[tokio::test]
    async fn a_hook_that_fails_is_quoted() {
        let place = tempfile::tempdir().expect("a folder");
        let failure = hook(place.path(), "echo no such zone >&2; exit 3").present("a.example.org", "V").await.expect_err("failed");
        assert!(failure.to_string().contains("no such zone") && failure.to_string().contains("exit status: 3"), "{failure}");
        let missing = DnsHook { program: place.path().join("absent"), timeout: Duration::from_secs(10) };
        let failure = missing.present("a.example.org", "V").await.expect_err("failed");
        assert!(failure.to_string().contains("cannot be run") && failure.to_string().contains("acme.dns_hook"), "{failure}");
    }

    #[tokio::test]
    async fn a_hook_that_hangs_is_killed() {
        let place = tempfile::tempdir().expect("a folder");
        let hook = DnsHook { timeout: Duration::from_millis(50), ..hook(place.path(), "exec tail -f /dev/null") };
        let failure = hook.present("a.example.org", "V").await.expect_err("killed");
        assert!(failure.to_string().contains("took longer than 50ms"), "{failure}");
    }
}
