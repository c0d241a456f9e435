//! Certificates whose key is no longer to be trusted: replaced first, and then revoked.

use instant_acme::{RevocationReason, RevocationRequest};
use rustls_pki_types::CertificateDer;
use semantics::Timestamp;

use super::{Keeper, together::OrderReason};
use crate::{
    failure::Failure,
    name::{Issuer, issuer},
    transport::RetryFieldsHeard,
};

impl Keeper {
    /// Replaces the certificate for `name`, whose key is no longer to be trusted, and then has the old one revoked. The folder says which
    /// one to revoke until that is done. When it is called again after a failure or a restart, it goes on where it stopped.
    ///
    /// # Errors
    /// Fails when no new certificate can be had; the old one is then neither revoked nor withdrawn. It also fails when the old one cannot
    /// be revoked.
    pub async fn revoke_and_replace(&self, name: &str, now: Timestamp) -> Result<(), Failure> {
        let old = self.entries.lock().get(name).and_then(|entry| entry.certificate.clone());
        let old = old.ok_or_else(|| Failure::ours(format!("there is no certificate for {name}")))?;
        if !self.folder.is_ours() {
            let hint = "revoke it by the Seawall that has the folder";
            return Err(Failure::ours("another Seawall orders the certificates of this folder").hint(hint));
        }
        if issuer(name) == Issuer::Local {
            // A local root has no list of revoked certificates.
            return self.obtain(name, OrderReason::Replace, now).await;
        }
        let Some(present) = old.key.cert.first() else { return self.obtain(name, OrderReason::Replace, now).await };
        let compromised = self.folder.compromised(name).map_or_else(|| present.clone(), CertificateDer::from);
        if compromised == *present {
            self.folder.write_compromised(name, present).map_err(|error| Failure::ours(crate::failure::chain(&error)))?;
            if let Err(failure) = self.obtain(name, OrderReason::Replace, now).await {
                self.folder.forget_compromised(name);
                return Err(failure);
            }
        }
        let heard = RetryFieldsHeard::default();
        let account = self.account(&heard).await?;
        let request = RevocationRequest { certificate: &compromised, reason: Some(RevocationReason::KeyCompromise) };
        let revoked = account.revoke(&request).await;
        match revoked {
            // Another machine replaced it at the same time.
            Err(instant_acme::Error::Api(problem)) if problem.r#type.as_deref().is_some_and(|kind| kind.ends_with(":alreadyRevoked")) => {}
            revoked => revoked.map_err(|error| Failure::of(&error, "the old certificate was not revoked", heard.wait()))?,
        }
        self.folder.forget_compromised(name);
        Ok(())
    }
}
