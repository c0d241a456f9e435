//! The account at the authority: read from the folder, or made at the first order.

use std::sync::Arc;

use instant_acme::{AccountCredentials, ExternalAccountKey, NewAccount};

use super::Keeper;
use crate::{
    failure::Failure,
    transport::{AcmeClient, Heard},
};

impl Keeper {
    /// Returns the account at the authority, which is registered at the first order.
    pub(super) async fn account(&self, heard: &Heard) -> Result<instant_acme::Account, Failure> {
        let client = || Box::new(AcmeClient { transport: Arc::clone(&self.transport), heard: heard.clone() });
        let failed = |error: instant_acme::Error, doing: &str| Failure::of(&error, doing, heard.wait());
        let _one = self.registering.lock().await;
        let kept = self.folder.account().map_err(|error| Failure::ours(crate::failure::chain(&error)))?;
        if let Some(credentials) = kept.and_then(|kept| serde_json::from_str::<AccountCredentials>(&kept).ok()) {
            let builder = instant_acme::Account::builder_with_http(client());
            return builder.from_credentials(credentials).await.map_err(|error| failed(error, "the authority cannot be used"));
        }
        let contact = self.options.account.email.as_ref().map(|email| format!("mailto:{email}"));
        let new = NewAccount {
            contact: &contact.as_slice().iter().map(String::as_str).collect::<Vec<_>>(),
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = self.options.account.external.as_ref().map(|(id, key)| ExternalAccountKey::new(id.clone(), key));
        let builder = instant_acme::Account::builder_with_http(client());
        let made = builder.create(&new, self.options.directory.clone(), external.as_ref()).await;
        let (account, credentials) = made.map_err(|error| failed(error, "no account could be made"))?;
        let json = serde_json::to_string(&credentials).map_err(|error| Failure::ours(error.to_string()))?;
        self.folder.write_account(&json).map_err(|error| Failure::ours(crate::failure::chain(&error)))?;
        tracing::info!("made an account at {}", self.options.directory);
        Ok(account)
    }
}
