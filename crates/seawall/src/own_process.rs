//! Reads what the system says about this process: memory and open files, from `/proc`.
//!
//! What cannot be read is left out: on some systems `/proc` is hidden.

use std::fs;

/// Returns the memory that the process has from the system, in bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes: u64 = field(&status, "VmRSS:")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns the number of open files and sockets.
pub(crate) fn open_files() -> Option<u64> {
    // The folder itself is open while it is listed.
    u64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()?.checked_sub(1)
}

/// Returns the number of files that may be open, or `None` if there is no limit.
pub(crate) fn open_files_max() -> Option<u64> {
    field(&fs::read_to_string("/proc/self/limits").ok()?, "Max open files")?.parse().ok()
}

/// Returns the first word after the name with which a line begins.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_something_about_this_process() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
        let open = open_files().expect("/proc");
        assert!(open >= 3, "{open}");
        assert!(open_files_max().is_some_and(|max| max > open));
    }
}
