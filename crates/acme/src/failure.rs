//! The failures that can occur on the way to a certificate, by who can mend it.

use std::time::Duration;

use instant_acme::{Error, Problem};

/// The party at fault for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The authority cannot be reached, or its answers make no sense: it is likely to pass.
    Server,
    /// The authority allows no more requests for now.
    RateLimit,
    /// The authority could not verify the name: DNS, firewall, CDN.
    Validation,
    /// The authority refuses: the name, the profile, the account, CAA.
    Refused,
    /// The authority does not know the account any more.
    Account,
    /// The authority does not accept the replaced certificate that the order named.
    Replaces,
    /// Another machine with the same certificates is at it: this one waits for what comes of it.
    Elsewhere,
    /// The failure is on our side: disk, hook or configuration.
    Ours,
}

/// The reason why there is no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", hint.map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct Failure {
    /// The party at fault.
    pub fault: Fault,
    /// The failure in words, for the log.
    pub message: String,
    /// The advice what the operator could do.
    pub hint: Option<&'static str>,
    /// The time for which the authority wants no further request.
    pub wait: Option<Duration>,
}

impl Failure {
    pub(crate) fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), hint: None, wait: None }
    }

    pub(crate) fn ours(message: impl Into<String>) -> Self {
        Self::new(Fault::Ours, message)
    }

    pub(crate) const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    pub(crate) const fn wait(mut self, wait: Option<Duration>) -> Self {
        self.wait = wait;
        self
    }

    /// Returns whether the authority refused a number that was used before: the next try has a new one (RFC 8555 §6.5).
    pub(crate) fn is_nonce(&self) -> bool {
        self.fault == Fault::Server && self.message.ends_with("(badNonce)")
    }

    /// Classifies the authority's answer. `wait` is its `Retry-After`.
    pub(crate) fn of(error: &Error, doing: &str, wait: Option<Duration>) -> Self {
        let failure = match error {
            Error::Api(problem) => Self::of_problem(problem, doing),
            Error::Timeout(_) => Self::new(Fault::Server, format!("{doing}: the authority took too long")),
            Error::Unsupported(what) => Self::new(Fault::Refused, format!("{doing}: the authority has no {what}")),
            error => Self::new(Fault::Server, format!("{doing}: {}", chain(error))),
        };
        failure.wait(wait)
    }

    pub(crate) fn of_problem(problem: &Problem, doing: &str) -> Self {
        let kind = kind(problem);
        let detail = problem.detail.as_deref().unwrap_or("it gave no reason");
        let mut message = format!("{doing}: {detail} ({kind})");
        for sub in &problem.subproblems {
            message.push_str(&format!("; {sub}"));
        }
        let (fault, hint) = meaning(kind, detail);
        Self { fault, message, hint, wait: None }
    }
}

/// Returns the last word of a problem's type (RFC 8555 §6.7).
fn kind(problem: &Problem) -> &str {
    problem.r#type.as_deref().and_then(|kind| kind.rsplit(':').next()).unwrap_or("unknown")
}

fn meaning(kind: &str, detail: &str) -> (Fault, Option<&'static str>) {
    match kind {
        "rateLimited" => (Fault::RateLimit, Some("until then nothing is ordered for this name; restarts change nothing about it")),
        "connection" => (
            Fault::Validation,
            Some(
                "the authority must reach ports 80 and 443 of this machine from outside, over IPv6 as well if the name has an AAAA record",
            ),
        ),
        "unauthorized" | "incorrectResponse" => {
            (Fault::Validation, Some("somebody else answered: does the name point to this machine, or to a CDN or another server?"))
        }
        "dns" => (Fault::Validation, Some("the name needs an A or AAAA record with this machine's address")),
        "tls" => {
            (Fault::Validation, Some("port 443 of the name is answered by something else; does a CDN end TLS in front of this machine?"))
        }
        "caa" => (Fault::Refused, Some("a CAA record of the name, or of one above it, forbids this authority")),
        "rejectedIdentifier" => (Fault::Refused, Some("this authority does not certify this name")),
        "unsupportedIdentifier" => (Fault::Refused, None),
        "externalAccountRequired" => {
            (Fault::Refused, Some("this authority wants acme.eab_key_id and acme.eab_key_file, from its web site"))
        }
        "invalidProfile" => (Fault::Refused, Some("`acme.profile` names a profile that this authority does not have")),
        "accountDoesNotExist" => (Fault::Account, None),
        // RFC 9773 §5, and the word that Boulder sends instead.
        "alreadyReplaced" => (Fault::Replaces, None),
        "malformed" | "conflict" | "notFound" if detail.contains("replace") => (Fault::Replaces, None),
        "badNonce" | "serverInternal" => (Fault::Server, None),
        _ => (Fault::Refused, None),
    }
}

/// Returns an error and its causes as one text.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
