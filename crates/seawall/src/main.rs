//! The `seawall` command.

use std::process::ExitCode;

/// As small as the system's, and with fewer instructions where much is allocated: whatever is not a hit.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    seawall::run()
}
