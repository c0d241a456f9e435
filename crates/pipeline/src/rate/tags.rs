//! The numbers that stand for addresses.

use std::{net::IpAddr, sync::OnceLock};

use siphasher::sip::SipHasher24;

/// Makes numbers of addresses by a secret (SipHash, which is made for that). Who has the number and not the secret cannot tell the address.
#[derive(Debug, Default)]
pub(crate) struct Tags(OnceLock<Secret>);

struct Secret([u8; 16]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Tags {
    /// Sets the secret. Only the first call counts, and only before the first number. Otherwise the secret is random.
    pub(super) fn set(&self, secret: [u8; 16]) {
        let _ = self.0.set(Secret(secret));
    }

    /// Returns the number of an address for its requests.
    pub(super) fn of_requests(&self, address: IpAddr) -> u64 {
        self.of(0, address)
    }

    /// Returns the number of an address for its wrong passwords: another one, so that nobody can join the two.
    pub(crate) fn of_passwords(&self, address: IpAddr) -> u64 {
        self.of(1, address)
    }

    fn of(&self, purpose: u8, address: IpAddr) -> u64 {
        let mut bytes = [purpose; 17];
        match address {
            IpAddr::V4(address) => bytes[1..].copy_from_slice(&address.to_ipv6_mapped().octets()),
            IpAddr::V6(address) => bytes[1..].copy_from_slice(&address.octets()),
        }
        SipHasher24::new_with_key(&self.secret().0).hash(&bytes)
    }

    fn secret(&self) -> &Secret {
        self.0.get_or_init(|| {
            let mut secret = [0; 16];
            aws_lc_rs::rand::fill(&mut secret).expect("the system has random numbers");
            Secret(secret)
        })
    }
}
