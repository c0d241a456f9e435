//! A look at the server, for `seawall check`: what would hurt later.

use std::time::Duration;

use super::{Engine, LinkError, Server};

/// What a look at the server found.
#[derive(Debug, Clone)]
pub struct Examination {
    /// The server.
    pub server: Server,
    /// How long a round trip took: the middle one of five.
    pub latency: Duration,
    /// What is to be mended, each a sentence with its remedy.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Looks at the server: whether it evicts keys, refuses writes without replicas, and who else can read and write there. Writes nothing.
    ///
    /// # Errors
    /// When there is no primary, or it does not answer.
    pub async fn examine(&self) -> Result<Examination, LinkError> {
        todo!()
    }
}
