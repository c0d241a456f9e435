use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

/// Writes a script that can be run at once.
///
/// Another process writes it: a file that is open for writing cannot be run, and a program that another test starts meanwhile inherits, for
/// a moment, the files that are open in this process (`ETXTBSY`).
///
/// # Panics
///
/// Panics if it cannot be written.
pub fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "umask 077 && cat > \"$0\" && chmod 700 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh");
    writer.stdin.take().expect("piped").write_all(text.as_bytes()).expect("taken");
    assert!(writer.wait().expect("it ends").success(), "{} cannot be written", path.display());
}
