//! The `seawall` command.

use std::process::ExitCode;

/// Measured against the system allocator: less memory held after a crowd, and fewer instructions for a miss.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    seawall::run()
}
