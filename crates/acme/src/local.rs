//! Certificates for names that no public authority certifies: `localhost`, `nas.local`, `127.0.0.1`. From a root of our own, which the
//! operator may tell their own browser to trust.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, NameConstraints,
};
use semantics::Timestamp;

use crate::{
    certificate::Certificate,
    failure::Failure,
    folder::{read, write},
    transport::system_time,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const ROOT_LIFETIME: Duration = Duration::from_secs(3650 * 24 * 60 * 60);
/// The lifetime of a leaf certificate. Browsers accept none that is valid much longer than a year, and a renewal costs nothing.
const LEAF_LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The names that the root may certify: if its key is stolen, it is of no use against any site on the internet.
const DNS: [&str; 8] = ["localhost", "local", "internal", "test", "example", "invalid", "home.arpa", "lan"];
const NETWORKS: [(&str, u8); 8] = [
    ("127.0.0.0", 8),
    ("10.0.0.0", 8),
    ("172.16.0.0", 12),
    ("192.168.0.0", 16),
    ("169.254.0.0", 16),
    ("::1", 128),
    ("fc00::", 7),
    ("fe80::", 10),
];

/// A root certificate that belongs to this machine.
#[derive(Debug)]
pub struct LocalRoot {
    certificate: PathBuf,
    key: PathBuf,
}

impl LocalRoot {
    /// Creates a root that is stored in these two files. It is generated when it is first needed.
    #[must_use]
    pub(crate) const fn new(certificate: PathBuf, key: PathBuf) -> Self {
        Self { certificate, key }
    }

    /// Returns the path of the certificate that clients have to trust.
    #[must_use]
    pub fn certificate_file(&self) -> &Path {
        &self.certificate
    }

    /// Issues a certificate for `name`, valid from yesterday on.
    pub(crate) fn issue(&self, name: &str, now: Timestamp) -> Result<Certificate, Failure> {
        let (certificate, key) = self.root(now)?;
        let ours = |error: rcgen::Error| Failure::ours(format!("the local root: {error}"));
        let issuer = Issuer::new(root_params(now), KeyPair::from_pem(&key).map_err(ours)?);
        let leaf_key = KeyPair::generate().map_err(ours)?;
        let mut params = CertificateParams::new([name.to_owned()]).map_err(ours)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = system_time(now - DAY).into();
        params.not_after = system_time(now + LEAF_LIFETIME).into();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&leaf_key, &issuer).map_err(ours)?;
        Certificate::from_pem(format!("{}{}{certificate}", leaf_key.serialize_pem(), leaf.pem()))
            .map_err(|error| Failure::ours(error.to_string()))
    }

    fn root(&self, now: Timestamp) -> Result<(String, String), Failure> {
        let disk = |error| Failure::ours(format!("{} cannot be used: {error}", self.key.display()));
        if let (Some(certificate), Some(key)) = (read(&self.certificate).map_err(disk)?, read(&self.key).map_err(disk)?)
            && Certificate::from_pem(format!("{key}{certificate}")).is_ok_and(|root| root.left(now) > LEAF_LIFETIME)
        {
            return Ok((certificate, key));
        }
        let (certificate, key) = make_root(now).map_err(|error| Failure::ours(format!("the local root: {error}")))?;
        write(&self.key, &key).and_then(|()| write(&self.certificate, &certificate)).map_err(disk)?;
        tracing::info!("made a root certificate for local names: {}", self.certificate.display());
        Ok((certificate, key))
    }
}

fn make_root(now: Timestamp) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = root_params(now).self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// Returns the parameters of a root. They differ only in their dates, which no leaf repeats.
fn root_params(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Seawall, local names of this machine");
    params.not_before = system_time(now - DAY).into();
    params.not_after = system_time(now + ROOT_LIFETIME).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let names = DNS.iter().map(|name| GeneralSubtree::DnsName((*name).to_owned()));
    let networks = NETWORKS.iter().filter_map(|(address, prefix)| {
        let address: IpAddr = address.parse().ok()?;
        Some(GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, *prefix)))
    });
    params.name_constraints = Some(NameConstraints { permitted_subtrees: names.chain(networks).collect(), excluded_subtrees: Vec::new() });
    params
}

/// Returns instructions for browsers and tools on this machine to trust the root in this file.
#[must_use]
pub fn trust_instructions(file: &Path) -> String {
    let file = file.display();
    format!(
        "Browsers warn about this site until they trust the root certificate of this machine:\n  \
         Debian, Ubuntu   sudo cp '{file}' /usr/local/share/ca-certificates/seawall.crt && sudo update-ca-certificates\n  \
         Fedora           sudo trust anchor '{file}'\n  \
         macOS            sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain '{file}'\n  \
         Firefox, Chrome  settings, certificates, authorities: import the file\n  \
         curl             curl --cacert '{file}' ...\n\
         This root can certify only local names and private addresses.\n"
    )
}
