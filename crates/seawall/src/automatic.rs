//! Certificates that come by themselves: the keeper of `acme`, its thread, and where its certificates are shown.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
};

use acme::{Challenges, Checker, Finding, Https, Issuer, Keeper, Severity, Sink, issuer, trust_instructions};
use admin::{CertificateState, OWN_ROOT};
use anyhow::Context;
use edge::tls::{Bundle, Certificates};
use pipeline::Clock;
use rustls::sign::CertifiedKey;
use semantics::Timestamp;
use tokio::{runtime::Builder, sync::oneshot};

use crate::config::settings::{Acme, Listen, Settings};

/// The certificates that Seawall gets by itself. Dropping it ends its thread; certificates in use stay.
#[derive(Debug)]
pub(crate) struct Automatic {
    keeper: Arc<Keeper>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Automatic {
    /// Puts the certificates on the disk into use, and orders those that are missing and that other machines with the same `shelf` do not have.
    pub(crate) fn start(
        acme: &Acme,
        certificates: &Arc<Certificates>,
        challenges: Challenges,
        shelf: Option<Arc<dyn acme::Shelf>>,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let proofs = challenges.clone();
        let keeper = Keeper::open(acme.options.clone(), transport(acme)?, challenges, Arc::new(CertificateSink(Arc::clone(certificates))))?;
        let is_shared = shelf.is_some();
        let keeper = Arc::new(match shelf {
            Some(shelf) => keeper.together(shelf),
            None => keeper,
        });
        want(&keeper, acme, certificates);
        let asked = Arc::clone(&keeper);
        certificates.when_missed(Some(Box::new(move |name| asked.missed(name))));
        certificates.when_challenged(is_shared.then(|| Box::new(move |name: &str| proofs.look_up_name(name)) as _));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let working = Arc::clone(&keeper);
        let thread = thread::Builder::new().name("acme".to_owned()).spawn(move || {
            runtime.block_on(working.run(|| wall(&clock), async { drop(stopped.await) }));
        })?;
        Ok(Self { keeper, stop: Some(stop), thread: Some(thread) })
    }

    /// Changes the names, after a reload.
    pub(crate) fn want(&self, acme: &Acme, certificates: &Certificates) {
        want(&self.keeper, acme, certificates);
    }

    pub(crate) const fn keeper(&self) -> &Arc<Keeper> {
        &self.keeper
    }
}

impl Drop for Automatic {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Tells the keeper which names need a certificate. A name with a certificate in files needs no other.
fn want(keeper: &Keeper, acme: &Acme, certificates: &Certificates) {
    let by_file = |name: &str| {
        let files = certificates.all().into_iter().filter(|(id, _)| !id.starts_with(ID));
        files.into_iter().any(|(_, bundle)| bundle.names.iter().any(|own| own == name))
    };
    let names: Vec<String> = acme.names.iter().filter(|name| !by_file(name)).cloned().collect();
    keeper.want(&names, &acme.twins);
}

/// Reads the wall clock itself, because a certificate ends by it, even if the machine slept or its clock was set.
#[expect(clippy::disallowed_methods, reason = "certificates begin and end by the wall clock, also after it was set")]
fn wall(clock: &Clock) -> Timestamp {
    match clock {
        Clock::System { .. } => std::time::SystemTime::now().into(),
        Clock::Simulated(_) => clock.now(),
    }
}

fn transport(acme: &Acme) -> anyhow::Result<Arc<Https>> {
    let tls = origins::server::tls_config(acme.ca_file.as_deref()).context("whom to trust as a certificate authority")?;
    Ok(Arc::new(Https::new(&tls)))
}

/// Returns the certificates that the keeper has, and those that it has not got yet.
pub(crate) fn kept(keeper: &Keeper, now: Timestamp) -> Vec<CertificateState> {
    let state = |status: acme::Status| CertificateState {
        authority: match status.issuer {
            Issuer::Acme => keeper.directory().to_owned(),
            Issuer::Local => OWN_ROOT.to_owned(),
        },
        name: status.name,
        not_after: status.not_after.map(Timestamp::as_secs),
        next: Some(status.next.as_secs()),
        last_error: status.last_error,
    };
    keeper.status(now).into_iter().map(state).collect()
}

/// Returns the state of the certificates that are read from files.
pub(crate) fn of_files(certificates: &Certificates) -> Vec<CertificateState> {
    let of_file = |(id, bundle): (String, Bundle)| {
        let file = id.strip_prefix("file:")?.to_owned();
        let not_after = bundle.key.cert.first().and_then(|leaf| acme::not_after(leaf)).map(Timestamp::as_secs);
        let state =
            |name: &String| CertificateState { name: name.clone(), authority: file.clone(), not_after, next: None, last_error: None };
        Some(bundle.names.iter().map(state).collect::<Vec<_>>())
    };
    certificates.all().into_iter().filter_map(of_file).flatten().collect()
}

/// Takes certificates for names that are no longer wanted out of use.
pub(crate) fn withdraw_others(certificates: &Certificates, acme: Option<&Acme>) {
    let is_wanted = |name: &str| {
        acme.is_some_and(|acme| acme.names.iter().any(|wanted| wanted == name) || acme.twins.iter().any(|(twin, _)| twin == name))
    };
    for (id, _) in certificates.all() {
        if id.strip_prefix(ID).is_some_and(|name| !is_wanted(name)) {
            certificates.remove(&id);
        }
    }
}

/// The prefix of the ids of these certificates: each source of certificates has ids of its own.
const ID: &str = "acme:";

struct CertificateSink(Arc<Certificates>);

impl Sink for CertificateSink {
    fn show(&self, name: &str, names: Vec<String>, key: Arc<CertifiedKey>) {
        self.0.put(&format!("{ID}{name}"), Bundle { names, key, is_default: false });
    }

    fn withdraw(&self, name: &str) {
        self.0.remove(&format!("{ID}{name}"));
    }

    fn answer_challenge(&self, name: &str, key: Arc<CertifiedKey>) {
        self.0.answer_challenge(name, key);
    }

    fn end_challenge(&self, name: &str) {
        self.0.end_challenge(name);
    }
}

/// Explains how to trust the certificates of local names, if there are any.
pub(crate) fn trust(settings: &Settings) -> Option<String> {
    let acme = settings.tls.as_ref()?.acme.as_ref()?;
    acme.names.iter().any(|name| issuer(name) == Issuer::Local).then(|| trust_instructions(&acme.options.folder.join("local-root.pem")))
}

/// Checks what orders depend on. Returns the text to show, and whether all of them may succeed.
pub(crate) fn check(settings: &Settings) -> anyhow::Result<(String, bool)> {
    let Some((tls, acme)) = settings.tls.as_ref().and_then(|tls| Some((tls, tls.acme.as_ref()?))) else {
        return Ok(("No certificate is got by itself here: name a domain (--domain), or see [acme].\n".to_owned(), false));
    };
    let plain = settings.server.listen.iter().filter_map(|listen| match listen {
        Listen::Tcp(address) => Some(*address),
        Listen::Unix(_) => None,
    });
    let checker = Checker::new(acme.options.clone(), transport(acme)?, plain.collect(), tls.listen.clone());
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(checker.check(&acme.names, wall(&Clock::system())));
    let is_well = found.iter().flat_map(|(_, findings)| findings).all(|finding| finding.severity != Severity::Wrong);
    Ok((text(&found), is_well))
}

fn text(found: &[(String, Vec<Finding>)]) -> String {
    let mut text = String::new();
    for (name, findings) in found {
        text.push_str(&format!("\n{}\n", if name.is_empty() { "This machine" } else { name }));
        for Finding { severity, text: what } in findings {
            let word = match severity {
                Severity::Fine => "ok",
                Severity::Doubt => "look",
                Severity::Wrong => "WRONG",
            };
            text.push_str(&format!("  {word:<6} {what}\n"));
        }
    }
    text
}
