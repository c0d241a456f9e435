//! `seawall reload`: the running server reads its configuration again.

use std::time::Duration;

use admin_api::ReloadDone;

use crate::admin_client::{AdminClient, AdminError};

/// The time for the whole exchange. A large blog takes a while to be read again; the server waits a little less.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Has the configuration read again, and says what came of it.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses: then everything stays as it was.
pub fn run(client: AdminClient) -> Result<String, AdminError> {
    let ReloadDone { needs_restart } = client.within(TIMEOUT).post("/reload", "")?;
    Ok(match needs_restart.as_slice() {
        [] => "Reloaded.\n".to_owned(),
        keys => format!("Reloaded. Needs a restart to take effect: {}.\n", keys.join(", ")),
    })
}
