//! `[acme]`: certificates that come by themselves.

use std::{fs, path::PathBuf, time::Duration};

use acme::{Account, DemandOptions, DnsHook, LETS_ENCRYPT, LETS_ENCRYPT_STAGING, Method, Options, twin};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use toml::Spanned;

use super::{
    error::{Mistake, Place},
    file::{self, File, Given},
    overrides::{Overrides, WithPlace},
    resolve::{Resolver, whole, xdg},
    settings::Acme,
    words::HostPattern,
};

/// The largest number of names that are ordered on demand.
const NAMES_MAX: usize = 1000;
const NAMES_AN_HOUR: usize = 20;
/// The seconds in which a program must write a DNS record, and the record must be visible everywhere.
const HOOK_TIMEOUT: u64 = 120;

impl Resolver<'_> {
    /// Resolves `[acme]`. Returns `None` if it is off, or if there is no name to certify.
    pub(super) fn acme(
        &mut self,
        file: &File,
        overrides: &Overrides,
        has_files: bool,
        env: &impl Fn(&str) -> Option<String>,
    ) -> Option<Acme> {
        let keys = &file.acme;
        let configured =
            file.site.iter().flat_map(|site| site.get_ref().hosts.iter().flat_map(Spanned::get_ref)).map(|host| host.get_ref().0.clone());
        let names: Vec<String> = overrides.domain.iter().map(|domain| domain.value.0.clone()).chain(configured).collect();
        let on_demand = keys.on_demand.as_ref().is_some_and(|given| *given.get_ref());
        let enabled = keys.enabled.as_ref().map_or(!has_files, |given| *given.get_ref());
        if !enabled || (names.is_empty() && !on_demand) {
            return None;
        }
        let (patterns, names): (Vec<String>, Vec<String>) = names.into_iter().partition(|name| on_demand && name.starts_with("*."));
        let hook = self.hook(keys);
        if let Some(wildcard) = names.iter().find(|name| name.starts_with("*.") && hook.is_none()) {
            let text = "a certificate for this pattern needs dns_hook in [acme]; or set on_demand there, and each name gets a certificate of its own";
            self.warnings.push(format!("{wildcard}: {text}"));
        }
        let with_twins = keys.www.as_ref().is_none_or(|given| *given.get_ref());
        let twins = names.iter().filter(|_| with_twins).filter_map(|name| Some((twin(name)?, name.clone())));
        let moved = match &overrides.redirect_from[..] {
            [] => file.redirect_from.iter().chain(file.site.iter().filter_map(|site| site.get_ref().redirect_from.as_ref())).collect(),
            _ => Vec::new(),
        };
        let moved = moved.into_iter().flat_map(|list: &Spanned<Vec<_>>| list.get_ref()).map(|host: &Spanned<HostPattern>| host.get_ref());
        let moved: Vec<String> = moved.chain(overrides.redirect_from.iter().map(|said| &said.value)).map(|host| host.0.clone()).collect();
        let twins = twins.filter(|(twin, _)| !names.contains(twin) && !moved.contains(twin)).collect();
        let names: Vec<String> = names.iter().chain(&moved).cloned().collect();
        let ask = self.ask(&keys.ask);
        if let Some(given) = keys.on_demand.as_ref().filter(|_| on_demand && ask.is_none() && patterns.is_empty()) {
            let remedy = "set ask to an address that is asked about each name, or give a site a host such as \"*.example.org\"";
            self.wrong_at(Mistake::new("on_demand does not say which names may get a certificate", remedy), given.span());
        }
        let demand = on_demand.then_some(DemandOptions { patterns, ask, names_max: NAMES_MAX, names_an_hour: NAMES_AN_HOUR });
        let options = Options {
            directory: self.directory(&keys.directory),
            account: self.account(keys),
            profile: text(&keys.profile),
            methods: if hook.is_some() { vec![Method::Dns01] } else { vec![Method::Http01, Method::TlsAlpn01] },
            hook,
            folder: match &keys.dir {
                Some(dir) => self.file_folder().join(dir.get_ref()),
                None => xdg(env, "XDG_STATE_HOME", ".local/state").unwrap_or_else(|| PathBuf::from("/var/lib")).join("seawall/acme"),
            },
            demand,
        };
        Some(Acme { options, ca_file: self.file_of(&keys.ca_file, "a file with certificates (PEM)"), names, twins })
    }

    fn directory(&mut self, given: &Given<String>) -> String {
        let Some(given) = given else { return LETS_ENCRYPT.to_owned() };
        match given.get_ref().as_str() {
            "letsencrypt" => LETS_ENCRYPT.to_owned(),
            "letsencrypt-staging" => LETS_ENCRYPT_STAGING.to_owned(),
            url => {
                if !url.starts_with("https://") {
                    let remedy = "write \"letsencrypt\", \"letsencrypt-staging\", or the https:// address of a directory";
                    self.wrong_at(Mistake::new(format!("\"{url}\" is not a certificate authority"), remedy), given.span());
                }
                url.to_owned()
            }
        }
    }

    fn account(&mut self, keys: &file::Acme) -> Account {
        if let Some(email) = keys.email.as_ref().filter(|email| !email.get_ref().contains('@')) {
            let mistake = Mistake::new(
                format!("\"{}\" is not an e-mail address", email.get_ref()),
                "write one such as \"me@example.org\", or leave email out",
            );
            self.wrong_at(mistake, email.span());
        }
        let external = match (&keys.eab_key_id, &keys.eab_key_file) {
            (Some(id), Some(key)) => {
                self.file_of(&keys.eab_key_file, "a file with the key, base64url as the authority gave it").and_then(|path| {
                    let read = fs::read_to_string(&path)
                        .ok()
                        .and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('=')).ok());
                    if read.is_none() {
                        let problem = format!("{} holds no key", path.display());
                        self.wrong_at(Mistake::new(problem, "write the key into it, base64url as the authority gave it"), key.span());
                    }
                    Some((id.get_ref().clone(), read?))
                })
            }
            (Some(one), None) | (None, Some(one)) => {
                self.wrong_at(
                    Mistake::new("an account key needs both an id and a file", "eab_key_id and eab_key_file belong together"),
                    one.span(),
                );
                None
            }
            (None, None) => None,
        };
        Account { email: text(&keys.email), external }
    }

    fn hook(&mut self, keys: &file::Acme) -> Option<DnsHook> {
        let program = self.file_of(&keys.dns_hook, "a program that writes TXT records");
        let said = self.said(&keys.dns_hook_timeout);
        let timeout: Duration = self.wait_for("dns_hook_timeout", said, HOOK_TIMEOUT);
        Some(DnsHook { program: whole(program?), timeout })
    }

    fn ask(&mut self, given: &Given<String>) -> Option<String> {
        let given = given.as_ref()?;
        let url = given.get_ref();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let mistake = Mistake::new(format!("\"{url}\" cannot be asked"), "write an address such as \"http://127.0.0.1:9000/ask\"");
            self.wrong_at(mistake, given.span());
        }
        Some(url.clone())
    }

    fn file_of(&mut self, given: &Given<String>, what: &str) -> Option<PathBuf> {
        let WithPlace { value, place } = self.said(given)?;
        let path = self.folder_of(&place).join(value);
        if !path.is_file() {
            let mistake = Mistake::new(format!("there is no file \"{}\"", path.display()), format!("write the path of {what}"));
            self.wrong(
                mistake,
                match place {
                    Place::Default => self.file_place(),
                    place => place,
                },
            );
        }
        Some(path)
    }
}

fn text(given: &Given<String>) -> Option<String> {
    given.as_ref().map(|given| given.get_ref().clone())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{error::Document, read::read};

    /// A hook is found like the program of alerts: a bare name would be looked for in `PATH` when it is run.
    #[test]
    fn a_hook_beside_the_file_is_run_from_there() {
        let document = Document { path: "seawall.toml".into(), text: "[acme]\ndns_hook = \"Cargo.toml\"\n".to_owned() };
        let (file, _) = read(&document);
        let hook = Resolver::new(Some(&document), Path::new(""), Vec::new()).hook(&file.acme).expect("a hook");
        assert!(hook.program.is_absolute(), "{:?}", hook.program);
    }
}
