//! What goes wrong: each test is one fault, under load and while everybody purges. Readers get no errors, no purge is falsely said to hold
//! everywhere, and as long as the origin answers, what was purged is not shown for longer than a lease and a hold in doubt.

mod failover;
mod machines;
mod random;
mod server;
mod strangers;
