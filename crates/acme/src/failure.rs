//! What can go wrong on the way to a certificate, by who can mend it.

use std::time::Duration;

use instant_acme::{Error, Problem};

/// Who, or what, stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The authority cannot be reached, or answers nonsense: it will pass.
    Server,
    /// The authority has had enough of us.
    RateLimit,
    /// The authority could not verify the name: DNS, firewall, CDN.
    Validation,
    /// The authority does not want to: the name, the profile, the account, CAA.
    Refused,
    /// The account is not known there any more.
    Account,
    /// It does not take the replaced certificate that the order named.
    Replaces,
    /// Our disk, our hook, our configuration.
    Ours,
}

/// Why there is no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", hint.map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct Failure {
    /// By whom.
    pub fault: Fault,
    /// In words, for the log.
    pub message: String,
    /// What could be done.
    pub hint: Option<&'static str>,
    /// How long the authority wants to be left alone.
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

    /// Whether the authority was asked too often for numbers that it had used: the next try has new ones (RFC 8555 §6.5).
    pub(crate) fn is_nonce(&self) -> bool {
        self.fault == Fault::Server && self.message.ends_with("(badNonce)")
    }

    /// What the authority's answer means. `wait` is its `Retry-After`.
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

/// The last word of a problem's type (RFC 8555 §6.7).
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
        // RFC 9773 §5, and what Boulder says instead of it.
        "alreadyReplaced" => (Fault::Replaces, None),
        "malformed" | "conflict" | "notFound" if detail.contains("replace") => (Fault::Replaces, None),
        "badNonce" | "serverInternal" => (Fault::Server, None),
        _ => (Fault::Refused, None),
    }
}

/// An error and its causes.
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
