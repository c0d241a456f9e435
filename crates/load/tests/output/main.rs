//! What results look like: to people, to programs, and as pictures. The pages and pictures that these tests look at are left in `target/tmp/output`.

mod beside;
mod report;
mod samples;
mod text;
