//! HTTPS: where, and with which certificates.

use std::{net::SocketAddr, path::Path};

use edge::tls::{CertificateError, read_pair};

use super::{
    error::{Mistake, Place},
    file::{self, File},
    overrides::{Overrides, WithPlace},
    resolve::{Resolver, collide, every_address},
    settings::{CertificateFiles, Http3, Listen, Server, Tls},
    units::Count,
};

const LISTEN_ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 8443);
/// The port of `--domain` for HTTPS.
const DOMAIN_PORT: u16 = 443;

impl Resolver<'_> {
    /// Resolves HTTPS, and HTTP/3 with it. Returns `None` if nothing asks for it.
    pub(super) fn tls(
        &mut self,
        file: &File,
        overrides: &Overrides,
        server: &Server,
        env: &impl Fn(&str) -> Option<String>,
    ) -> Option<Tls> {
        let mut tls = self.https(file, overrides, server, env);
        let wanted = self.pick(overrides.http3.clone(), &file.server.http3).filter(|wanted| wanted.value);
        let port = self.said(&file.server.http3_port);
        let port = port.map(|said| self.within("http3_port", Some(said), Count(443), Count(1)..=Count(65_535)));
        match (&mut tls, wanted) {
            (Some(tls), Some(_)) => tls.http3 = Some(Http3 { port: port.and_then(|port| u16::try_from(port.0).ok()) }),
            (None, Some(wanted)) if !self.has_errors() => {
                let remedy = "name the site's domain (--domain NAME), and Seawall gets a certificate by itself; or name a certificate's files: cert and key in [tls], or --tls-cert FILE";
                self.wrong(Mistake::new("HTTP/3 is always encrypted, and nothing here speaks HTTPS", remedy), wanted.place);
            }
            _ => {}
        }
        tls
    }

    fn https(&mut self, file: &File, overrides: &Overrides, server: &Server, env: &impl Fn(&str) -> Option<String>) -> Option<Tls> {
        let common = (self.pick(overrides.tls_cert.clone(), &file.tls.cert), self.pick(overrides.tls_key.clone(), &file.tls.key));
        let mut certificates: Vec<CertificateFiles> = self.pair(common, true).into_iter().collect();
        for site in &file.site {
            let site = &site.get_ref().tls;
            let own = (self.said(&site.cert), self.said(&site.key));
            // Two sites may share a certificate.
            certificates.extend(self.pair(own, false).filter(|pair| !certificates.iter().any(|known| known.key == pair.key)));
        }
        let listen = self.tls_addresses(&file.tls, overrides, !certificates.is_empty());
        let first = listen.first()?;
        let acme = self.acme(file, overrides, !certificates.is_empty(), env);
        if certificates.is_empty() && acme.is_none() {
            let place = overrides.domain.first().filter(|_| first.place == Place::Default).map_or(&first.place, |domain| &domain.place);
            if !self.has_errors() {
                let remedy = "name the site's hosts or --domain NAME, and Seawall gets one by itself; or name its files: cert and key in [tls], or --tls-cert FILE";
                self.wrong(Mistake::new("HTTPS needs a certificate", remedy), place.clone());
            }
            return None;
        }
        Some(Tls { listen: self.tls_listen(listen, server), certificates, acme, http3: None })
    }

    fn tls_addresses(&self, file: &file::Tls, overrides: &Overrides, has_certificate: bool) -> Vec<WithPlace<Listen>> {
        match &file.listen {
            _ if !overrides.tls_listen.is_empty() => overrides.tls_listen.clone(),
            Some(list) => list.get_ref().iter().map(|listen| self.said_of(listen)).collect(),
            None if !overrides.domain.is_empty() => every_address(DOMAIN_PORT),
            None if has_certificate => vec![WithPlace { value: Listen::Tcp(LISTEN_ADDRESS.into()), place: Place::Default }],
            None => Vec::new(),
        }
    }

    fn tls_listen(&mut self, said: Vec<WithPlace<Listen>>, server: &Server) -> Vec<SocketAddr> {
        let mut listen: Vec<SocketAddr> = Vec::with_capacity(said.len());
        for WithPlace { value, place } in said {
            let Listen::Tcp(address) = value else {
                let remedy = "write an address and a port, such as \"0.0.0.0:443\"; a Unix socket belongs in listen of [server]";
                self.wrong(Mistake::new("TLS is not spoken on a Unix socket", remedy), place);
                continue;
            };
            if server.listen.iter().any(|plain| collide(plain, &value)) {
                let problem = format!("{address} is already used for plain HTTP");
                self.wrong(Mistake::new(problem, "give one of them another port: one port cannot serve both HTTP and HTTPS"), place);
            } else if listen.iter().any(|&other| collide(&Listen::Tcp(other), &value)) {
                self.wrong(
                    Mistake::new(format!("{address} conflicts with an earlier address in the list"), "remove one of the two"),
                    place,
                );
            } else if server.admin.is_some_and(|admin| collide(&Listen::Tcp(admin), &value)) {
                let remedy = "give one of them another port; visitors and the admin API cannot share one";
                self.wrong(Mistake::new(format!("{address} is already used by the admin API"), remedy), place);
            }
            listen.push(address);
        }
        listen
    }

    /// Checks a certificate and its key. Returns them if they can be used.
    fn pair(&mut self, said: (Option<WithPlace<String>>, Option<WithPlace<String>>), is_default: bool) -> Option<CertificateFiles> {
        let (certificate, key) = match said {
            (Some(certificate), key) => (certificate, key),
            (None, Some(key)) => {
                self.wrong(Mistake::new("a key without its certificate", "name the certificate's file too: ‹cert›"), key.place);
                return None;
            }
            (None, None) => return None,
        };
        let key_file = key.as_ref().unwrap_or(&certificate);
        let files = CertificateFiles {
            certificate: self.folder_of(&certificate.place).join(&certificate.value),
            key: self.folder_of(&key_file.place).join(&key_file.value),
            is_default,
        };
        match read_pair(&files.certificate, &files.key) {
            Ok(_) => Some(files),
            Err(error) => {
                let at_fault = |path: &Path| if path == files.certificate { &certificate.place } else { &key_file.place };
                let (place, remedy) = match &error {
                    CertificateError::Unreadable { path, .. } => (at_fault(path), "check the path, and that Seawall's user may read it"),
                    CertificateError::Mismatch { .. } => (&key_file.place, "name the key that the certificate was made with"),
                    CertificateError::Content { path, .. } => {
                        (at_fault(path), "‹cert› is the file with the certificates, ‹key› the one with the key")
                    }
                    CertificateError::Unusable { path, .. } => {
                        (at_fault(path), "RSA (2048 bits or more), ECDSA (P-256, P-384, P-521) and Ed25519 can be used")
                    }
                };
                self.wrong(Mistake::new(error.to_string(), remedy), place.clone());
                None
            }
        }
    }
}
