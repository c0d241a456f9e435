//! One order, from the names to the certificate (RFC 8555 §7.4).

use std::{sync::Arc, time::Duration};

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeHandle, ChallengeType, Error, Identifier, NewOrder, Order, OrderStatus,
    RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::{crypto::aws_lc_rs::sign::any_supported_type, sign::CertifiedKey};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::{
    board::{Board, Posted},
    challenges::{Challenges, Guard, OwnName},
    failure::{Failure, Fault},
    hook::DnsHook,
    options::Method,
    sink::Sink,
    transport::RetryFieldsHeard,
};

/// Says how long to wait for the authority to check an answer, and again to make a certificate.
const POLL: RetryPolicy = RetryPolicy::new().initial_delay(Duration::from_millis(250)).backoff(1.6).timeout(Duration::from_secs(90));

/// One order: the name, and how it is proven.
pub(crate) struct Ordering<'a> {
    pub(crate) account: &'a Account,
    pub(crate) heard: &'a RetryFieldsHeard,
    pub(crate) name: &'a str,
    pub(crate) profile: Option<&'a str>,
    pub(crate) replaces: Option<CertificateIdentifier<'static>>,
    pub(crate) method: Method,
    pub(crate) challenges: &'a Challenges,
    /// The board where the answers are posted for other machines.
    pub(crate) board: Option<&'a Board>,
    pub(crate) sink: &'a Arc<dyn Sink>,
    pub(crate) hook: Option<&'a DnsHook>,
}

/// The answer to a challenge, which stays until the order is done with it.
enum Answer {
    Http { _guard: Guard, posted: Posted },
    Handshake { _guard: ChallengeShown, posted: Posted },
    Record(String),
}

/// Removes the certificate of a challenge when it is dropped.
struct ChallengeShown {
    sink: Arc<dyn Sink>,
    name: String,
    _own: OwnName,
}

impl Drop for ChallengeShown {
    fn drop(&mut self) {
        self.sink.end_challenge(&self.name);
    }
}

impl Ordering<'_> {
    /// Orders a certificate, with a new key each time. Returns the key and the chain, PEM.
    pub(crate) async fn certificate(&self) -> Result<String, Failure> {
        let identifiers = [Identifier::Dns(self.name.to_owned())];
        let mut new = NewOrder::new(&identifiers);
        if let Some(profile) = self.profile {
            new = new.profile(profile);
        }
        if let Some(replaces) = self.replaces.clone() {
            new = new.replaces(replaces);
        }
        let mut order = self.account.new_order(&new).await.map_err(|error| self.failure(&error, "the order was refused"))?;
        let mut answers = Vec::new();
        let proven = self.prove(&mut order, &mut answers).await;
        for answer in answers {
            match (answer, self.hook, self.board) {
                (Answer::Record(value), Some(hook), _) => hook.clean_up(self.name, &value).await,
                (Answer::Http { posted, .. } | Answer::Handshake { posted, .. }, _, Some(board)) => {
                    // What stays there answers a question that nobody asks any more.
                    let _ = board.take_away(&posted).await;
                }
                _ => {}
            }
        }
        proven?;
        let (key, request) = self.request()?;
        let doing = "the certificate was not made";
        order.finalize_csr(&request).await.map_err(|error| self.failure(&error, doing))?;
        let chain = order.poll_certificate(&POLL).await.map_err(|error| self.failure(&error, doing))?;
        Ok(format!("{key}{chain}"))
    }

    async fn prove(&self, order: &mut Order, answers: &mut Vec<Answer>) -> Result<(), Failure> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| self.failure(&error, "the authority gave no challenge"))?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let kind = match self.method {
                Method::Http01 => ChallengeType::Http01,
                Method::TlsAlpn01 => ChallengeType::TlsAlpn01,
                Method::Dns01 => ChallengeType::Dns01,
            };
            let mut challenge = authorization
                .challenge(kind)
                .ok_or_else(|| Failure::new(Fault::Refused, format!("the authority does not offer {} for it", self.method.as_str())))?;
            answers.push(self.answer(&challenge).await?);
            self.post(answers.last()).await;
            challenge.set_ready().await.map_err(|error| self.failure(&error, "the authority did not take the answer"))?;
        }
        let outcome = order.poll_ready(&POLL).await;
        match outcome {
            Ok(OrderStatus::Ready | OrderStatus::Valid) => Ok(()),
            Ok(_) => Err(self.why_invalid(order).await.unwrap_or_else(|| Failure::new(Fault::Validation, "the order became invalid"))),
            Err(error) => {
                let general = self.failure(&error, "the name was not verified");
                Err(self.why_invalid(order).await.unwrap_or(general))
            }
        }
    }

    async fn answer(&self, challenge: &ChallengeHandle<'_>) -> Result<Answer, Failure> {
        let proof = challenge.key_authorization();
        match self.method {
            Method::Http01 => {
                let posted = Posted::Http { token: challenge.token.clone(), content: proof.as_str().to_owned() };
                Ok(Answer::Http { _guard: self.challenges.answer(challenge.token.clone(), proof.as_str()), posted })
            }
            Method::TlsAlpn01 => {
                let digest = proof.digest();
                let key = validation_certificate(self.name, digest.as_ref()).map_err(|error| Failure::ours(error.to_string()))?;
                let own = self.challenges.answer_handshakes(self.name);
                self.sink.answer_challenge(self.name, Arc::new(key));
                let guard = ChallengeShown { sink: Arc::clone(self.sink), name: self.name.to_owned(), _own: own };
                Ok(Answer::Handshake { _guard: guard, posted: Posted::handshake(self.name, digest.as_ref()) })
            }
            Method::Dns01 => {
                let hook = self.hook.ok_or_else(|| Failure::ours("it needs dns-01, and there is no acme.dns_hook"))?;
                let value = proof.dns_value();
                hook.present(self.name, &value).await?;
                Ok(Answer::Record(value))
            }
        }
    }

    /// Posts an answer for the other machines. Without them this one is perhaps not the one that is asked, and the authority says so.
    async fn post(&self, answer: Option<&Answer>) {
        if let (Some(board), Some(Answer::Http { posted, .. } | Answer::Handshake { posted, .. })) = (self.board, answer)
            && let Err(error) = board.post(posted).await
        {
            tracing::warn!("the other machines cannot answer the challenge for {}: {error}", self.name);
        }
    }

    /// Returns what the authority says about the challenge that failed: the order itself only says that it is invalid.
    async fn why_invalid(&self, order: &mut Order) -> Option<Failure> {
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            let state = authorization.refresh().await.ok()?;
            if let Some(problem) = state.challenges.iter().find_map(|challenge| challenge.error.as_ref()) {
                let doing = format!("the authority could not verify it by {}", self.method.as_str());
                return Some(Failure::of_problem(problem, &doing));
            }
        }
        None
    }

    fn request(&self) -> Result<(String, Vec<u8>), Failure> {
        let make = || {
            let key = KeyPair::generate()?;
            let mut params = CertificateParams::new([self.name.to_owned()])?;
            params.distinguished_name = DistinguishedName::new();
            let request = params.serialize_request(&key)?;
            Ok((key.serialize_pem(), request.der().to_vec()))
        };
        make().map_err(|error: rcgen::Error| Failure::ours(format!("no request could be made: {error}")))
    }

    fn failure(&self, error: &Error, doing: &str) -> Failure {
        Failure::of(error, doing, self.heard.wait())
    }
}

/// Returns the certificate that answers a TLS-ALPN-01 challenge (RFC 8737 §3): for the name, and with the digest in an extension.
pub(crate) fn validation_certificate(name: &str, digest: &[u8]) -> Result<CertifiedKey, Box<dyn std::error::Error + Send + Sync>> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let certificate = params.self_signed(&key)?;
    let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok(CertifiedKey::new(vec![certificate.der().clone()], any_supported_type(&der)?))
}

#[cfg(test)]
mod tests {
    use x509_parser::parse_x509_certificate;

    use super::*;

    /// RFC 8737 §3: the name is the only subjectAltName; acmeIdentifier, 1.3.6.1.5.5.7.1.31, is critical and holds an OCTET STRING.
    #[test]
    fn the_validation_certificate_is_as_rfc_8737_says() {
        let key = validation_certificate("blog.example.org", &[7; 32]).expect("made");
        let (_, certificate) = parse_x509_certificate(&key.cert[0]).expect("a certificate");
        let names = &certificate.subject_alternative_name().expect("one").expect("there").value.general_names;
        assert!(matches!(names[..], [x509_parser::extensions::GeneralName::DNSName("blog.example.org")]), "{names:?}");
        let identifier = certificate.extensions().iter().find(|e| e.oid.to_id_string() == "1.3.6.1.5.5.7.1.31").expect("acmeIdentifier");
        let mut expected = vec![0x04, 32];
        expected.extend([7; 32]);
        assert!(identifier.critical && identifier.value == expected);
    }
}
