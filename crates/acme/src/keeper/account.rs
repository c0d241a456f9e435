//! The account at the authority: read from the folder, shared with other machines, or made at the first order.

use std::{sync::Arc, time::Duration};

use instant_acme::{AccountCredentials, ExternalAccountKey, NewAccount};

use super::{Keeper, together::SharedShelf};
use crate::{
    failure::{Failure, Fault, chain},
    shelf::ShelfError,
    transport::{AcmeClient, RetryFieldsHeard},
};

/// The time between two looks at whether another machine has made the account.
const LOOK: Duration = Duration::from_millis(250);
/// The number of such looks that are made. The other machine's lock has ended by then, if it died.
const LOOKS: usize = 120;

impl Keeper {
    /// Returns the account at the authority, which is registered at the first order.
    pub(super) async fn account(&self, heard: &RetryFieldsHeard) -> Result<instant_acme::Account, Failure> {
        let _one = self.registering.lock().await;
        let kept = self.folder.account().map_err(|error| Failure::ours(chain(&error)))?;
        let kept = kept.filter(|kept| serde_json::from_str::<AccountCredentials>(kept).is_ok());
        let Some(together) = &self.together else {
            return match kept {
                Some(kept) => self.account_of(&kept, heard).await,
                None => Ok(self.make_account(heard).await?.0),
            };
        };
        for _ in 0..LOOKS {
            match self.shared_account(together, kept.as_deref()).await {
                Ok(Some(account)) => return self.account_of(&account, heard).await,
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!("the account of the other machines is not known: {error}");
                    return match kept {
                        Some(kept) => self.account_of(&kept, heard).await,
                        None => Ok(self.make_account(heard).await?.0),
                    };
                }
            }
            // Nobody has one: one machine makes it.
            let lock = together.lock_account().await.unwrap_or_default();
            let Some(lock) = lock else {
                tokio::time::sleep(LOOK).await;
                continue;
            };
            let made = async {
                // Another machine may have made it between the look and the lock.
                if let Ok(Some(account)) = self.shared_account(together, None).await {
                    return self.account_of(&account, heard).await;
                }
                let (account, json) = self.make_account(heard).await?;
                match self.shared_account(together, Some(&json)).await {
                    Ok(Some(theirs)) if theirs != json => self.account_of(&theirs, heard).await,
                    _ => Ok(account),
                }
            };
            let made = made.await;
            // It ends by itself if it cannot be given back.
            let _ = lock.release().await;
            return made;
        }
        Err(Failure::new(Fault::Elsewhere, "another machine is making the account"))
    }

    /// Forgets the account, which its authority does not know.
    pub(super) async fn retire_account(&self) {
        if let (Some(together), Ok(Some(own))) = (&self.together, self.folder.account())
            && let Err(error) = together.retire_account(&own).await
        {
            tracing::debug!("the account stays where the machines share it: {error}");
        }
        self.folder.retire_account();
    }

    /// Returns the account that the machines share, and keeps it on this disk too. `own` becomes theirs if they have none.
    async fn shared_account(&self, together: &SharedShelf, own: Option<&str>) -> Result<Option<String>, ShelfError> {
        let Some(shared) = together.account(own).await? else { return Ok(None) };
        if serde_json::from_str::<AccountCredentials>(&shared).is_err() {
            return Err(ShelfError::Foreign("the account cannot be read".to_owned()));
        }
        if own != Some(&shared) {
            if own.is_some() {
                tracing::info!("the account of the other machines is used from here on; this machine's own is kept as account.json.old");
                self.folder.retire_account();
            }
            if let Err(error) = self.folder.write_account(&shared) {
                tracing::warn!("the account works, but could not be saved: {}", chain(&error));
            }
        }
        Ok(Some(shared))
    }

    async fn account_of(&self, credentials: &str, heard: &RetryFieldsHeard) -> Result<instant_acme::Account, Failure> {
        let credentials: AccountCredentials = serde_json::from_str(credentials).map_err(|error| Failure::ours(error.to_string()))?;
        let builder = instant_acme::Account::builder_with_http(self.client(heard));
        let account = builder.from_credentials(credentials).await;
        account.map_err(|error| Failure::of(&error, "the authority cannot be used", heard.wait()))
    }

    /// Makes an account, and keeps it on the disk. Returns its credentials too.
    async fn make_account(&self, heard: &RetryFieldsHeard) -> Result<(instant_acme::Account, String), Failure> {
        let contact = self.options.account.email.as_ref().map(|email| format!("mailto:{email}"));
        let new = NewAccount {
            contact: &contact.as_slice().iter().map(String::as_str).collect::<Vec<_>>(),
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = self.options.account.external.as_ref().map(|(id, key)| ExternalAccountKey::new(id.clone(), key));
        let builder = instant_acme::Account::builder_with_http(self.client(heard));
        let made = builder.create(&new, self.options.directory.clone(), external.as_ref()).await;
        let (account, credentials) = made.map_err(|error| Failure::of(&error, "no account could be made", heard.wait()))?;
        let json = serde_json::to_string(&credentials).map_err(|error| Failure::ours(error.to_string()))?;
        self.folder.write_account(&json).map_err(|error| Failure::ours(chain(&error)))?;
        tracing::info!("made an account at {}", self.options.directory);
        Ok((account, json))
    }

    fn client(&self, heard: &RetryFieldsHeard) -> Box<AcmeClient> {
        Box::new(AcmeClient { transport: Arc::clone(&self.transport), heard: heard.clone() })
    }
}
