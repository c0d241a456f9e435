//! Session tickets (RFC 8446 §4.6.1, RFC 5077): a client that has one resumes its session without a certificate, here or at another machine.
//!
//! Alone, a machine has keys of its own, which change by themselves. Machines that act as one share theirs ([`TicketKeys`]): a ticket of one is
//! then valid at all. Tickets that were made with keys of its own stay valid at the machine that made them.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwapOption;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use rustls::{crypto::aws_lc_rs::Ticketer, server::ProducesTickets};

/// The length of a key's name, which begins each ticket that it sealed.
pub const TICKET_KEY_NAME_LEN: usize = 16;
/// The length of a key.
pub const TICKET_KEY_LEN: usize = 32;

/// The name of a key, and the key.
pub type TicketKey = ([u8; TICKET_KEY_NAME_LEN], [u8; TICKET_KEY_LEN]);

/// The keys that machines share for their tickets.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketKeys {
    /// The key that seals new tickets.
    pub current: TicketKey,
    /// Further keys whose tickets are accepted: the one before, and the one that comes next, which other machines may use already.
    pub accepted: Vec<TicketKey>,
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys").field("accepted", &self.accepted.len()).finish_non_exhaustive()
    }
}

/// Seals and opens tickets.
pub(super) struct Tickets {
    own: Arc<dyn ProducesTickets>,
    shared: ArcSwapOption<Ring>,
}

/// Shared keys, ready for use. The first one seals.
struct Ring(Vec<Sealer>);

struct Sealer {
    name: [u8; TICKET_KEY_NAME_LEN],
    key: RandomizedNonceKey,
}

impl Tickets {
    /// Makes keys of its own.
    pub(super) fn new() -> Result<Arc<Self>, rustls::Error> {
        Ok(Arc::new(Self { own: Ticketer::new()?, shared: ArcSwapOption::empty() }))
    }

    /// Seals new tickets with shared keys, and accepts theirs. `None`: with keys of its own again.
    pub(super) fn share(&self, keys: Option<&TicketKeys>) {
        let ring = keys.map(|keys| {
            let all = std::iter::once(&keys.current).chain(&keys.accepted);
            Arc::new(Ring(all.filter_map(Sealer::new).collect()))
        });
        self.shared.store(ring);
    }
}

impl Sealer {
    fn new((name, key): &TicketKey) -> Option<Self> {
        Some(Self { name: *name, key: RandomizedNonceKey::new(&AES_256_GCM, key).ok()? })
    }

    /// Returns name, nonce and sealed content.
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = plain.to_vec();
        let nonce = self.key.seal_in_place_append_tag(Aad::from(self.name), &mut sealed).ok()?;
        let mut ticket = Vec::with_capacity(self.name.len() + NONCE_LEN + sealed.len());
        ticket.extend_from_slice(&self.name);
        ticket.extend_from_slice(nonce.as_ref());
        ticket.extend_from_slice(&sealed);
        Some(ticket)
    }

    fn open(&self, after_name: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = after_name.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut plain = sealed.to_vec();
        let len = self.key.open_in_place(nonce, Aad::from(self.name), &mut plain).ok()?.len();
        plain.truncate(len);
        Some(plain)
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.own.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.own.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        match self.shared.load().as_deref().and_then(|ring| ring.0.first()) {
            Some(sealer) => sealer.seal(plain),
            None => self.own.encrypt(plain),
        }
    }

    /// Opens a ticket. It is no longer than a client's hello may be, see [`shake`](super::shake).
    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if let Some(ring) = self.shared.load().as_deref()
            && let Some((name, rest)) = ticket.split_at_checked(TICKET_KEY_NAME_LEN)
            && let Some(sealer) = ring.0.iter().find(|sealer| sealer.name == name)
        {
            return sealer.open(rest);
        }
        self.own.decrypt(ticket)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("are_shared", &self.shared.load().is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(number: u8) -> TicketKey {
        ([number; TICKET_KEY_NAME_LEN], [number; TICKET_KEY_LEN])
    }

    fn keys(current: u8, accepted: &[u8]) -> TicketKeys {
        TicketKeys { current: key(current), accepted: accepted.iter().copied().map(key).collect() }
    }

    #[test]
    fn a_ticket_of_one_machine_is_valid_at_the_others_while_they_share_keys() {
        let [one, other] = [(), ()].map(|()| Tickets::new().expect("randomness"));
        let before = one.encrypt(b"before").expect("sealed");
        assert_eq!(other.decrypt(&before), None);
        one.share(Some(&keys(1, &[2])));
        other.share(Some(&keys(1, &[2])));
        let ticket = one.encrypt(b"session").expect("sealed");
        assert_eq!(other.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        assert_eq!(one.decrypt(&before).as_deref(), Some(&b"before"[..]), "its own tickets stay valid");
        other.share(None);
        assert_eq!(other.decrypt(&ticket), None);
    }

    /// One machine has heard of the change of keys, and the other has not.
    #[test]
    fn a_change_of_keys_costs_no_session() {
        let [one, other] = [(), ()].map(|()| Tickets::new().expect("randomness"));
        one.share(Some(&keys(1, &[2])));
        other.share(Some(&keys(2, &[3, 1])));
        for (from, to) in [(&one, &other), (&other, &one)] {
            let ticket = from.encrypt(b"session").expect("sealed");
            assert_eq!(to.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        }
        // Two changes later nobody accepts it any more: who finds the key then can read no session from before.
        let ticket = one.encrypt(b"session").expect("sealed");
        other.share(Some(&keys(3, &[4, 2])));
        assert_eq!(other.decrypt(&ticket), None);
    }

    #[test]
    fn a_changed_cut_or_foreign_ticket_is_refused() {
        let tickets = Tickets::new().expect("randomness");
        tickets.share(Some(&keys(1, &[])));
        let ticket = tickets.encrypt(b"session").expect("sealed");
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(tickets.decrypt(&changed), None, "byte {at}");
            assert_eq!(tickets.decrypt(&ticket[..at]), None, "cut at {at}");
        }
        let foreign = Tickets::new().expect("randomness");
        foreign.share(Some(&TicketKeys { current: (key(1).0, key(9).1), accepted: Vec::new() }));
        assert_eq!(tickets.decrypt(&foreign.encrypt(b"session").expect("sealed")), None);
    }
}
