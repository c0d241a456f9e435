//! `[cluster]`: several Seawalls that act as one, by way of Valkey or Redis.

use std::{fmt, fs, path::PathBuf, str::FromStr, time::Duration};

use cluster::link::{Address, BadAddress};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use toml::Spanned;

use super::{
    alerts::own_name,
    error::{Mistake, Place},
    file,
    ghost::{NOT_SHOWN, SecretText},
    overrides::{Overrides, WithPlace},
    resolve::{Resolver, seconds},
    settings::Cluster,
    units::{ByteSize, Count, Period},
};

/// The most addresses of a list.
const URLS_MAX: usize = 32;
/// The longest name of a cluster or a machine.
const NAME_BYTES_MAX: usize = 64;
/// The fewest characters of a secret: whoever has a copy of the server's memory can guess at their leisure.
const SECRET_CHARS_MIN: usize = 16;
/// The largest file of a secret.
const SECRET_FILE_BYTES_MAX: u64 = 4096;
/// Other names of what a Valkey or a Redis is reached by, each with the one that is meant.
const OTHER_SCHEMES: [(&str, &str); 6] = [
    ("tcp", "redis"),
    ("tls", "rediss"),
    ("http", "redis"),
    ("sentinel", "redis+sentinel"),
    ("redis-sentinel", "redis+sentinel"),
    ("redis-cluster", "redis+cluster"),
];
const URL_REMEDY: &str = "write it as \"redis://127.0.0.1:6379\", \"rediss://user:password@valkey.example.org:6379\", \
                          \"redis+sentinel://host:26379,host:26379/NAME\" or \"redis+cluster://host:6379,host:6379\"";

/// The address of a Valkey or a Redis. There may be a password in it, so it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterUrl(pub String);

impl fmt::Debug for ClusterUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterUrl {NOT_SHOWN}")
    }
}

impl FromStr for ClusterUrl {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        Address::read(&[text]).map_err(|BadAddress(problem)| {
            let mistake = Mistake::new(problem, URL_REMEDY);
            match scheme {
                None if !text.is_empty() && !text.contains(['/', '@', ' ']) => mistake.meant(format!("redis://{text}")),
                scheme => match OTHER_SCHEMES.iter().find(|(other, _)| scheme == Some(*other)) {
                    Some((_, meant)) => Mistake { meant: Some(format!("did you mean {meant}://?")), ..mistake },
                    None => mistake,
                },
            }
        })?;
        Ok(Self(text.to_owned()))
    }
}

/// One address or a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterUrls(pub Vec<ClusterUrl>);

impl ClusterUrls {
    fn checked(urls: Vec<ClusterUrl>) -> Result<Self, Mistake> {
        if urls.is_empty() || urls.len() > URLS_MAX {
            let problem = format!("{} addresses are not from one to {URLS_MAX}", urls.len());
            return Err(Mistake::new(problem, URL_REMEDY));
        }
        let urls = Self(urls);
        urls.address()?;
        Ok(urls)
    }

    /// Returns what all of them mean together.
    fn address(&self) -> Result<Address, Mistake> {
        let texts: Vec<&str> = self.0.iter().map(|url| url.0.as_str()).collect();
        let remedy = "a list has plain addresses alone, of a primary and its replicas; Sentinels, or the nodes of a cluster, are one address with \
                      commas";
        Address::read(&texts).map_err(|BadAddress(problem)| Mistake::new(problem, remedy))
    }
}

/// Reads what a variable says: addresses separated by blanks, as there are commas in some of them.
impl FromStr for ClusterUrls {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        Self::checked(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }
}

impl<'de> Deserialize<'de> for ClusterUrls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = ClusterUrls;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address such as \"redis://127.0.0.1:6379\", or a list of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ClusterUrls, E> {
                text.parse().map(|url| vec![url]).and_then(ClusterUrls::checked).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ClusterUrls, A::Error> {
                let mut urls = Vec::new();
                while let Some(text) = list.next_element::<String>()? {
                    urls.push(text.parse().map_err(A::Error::custom)?);
                }
                ClusterUrls::checked(urls).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

/// The name of a cluster or of a machine in it. It is a part of keys, so it has letters, digits and a few marks alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterName(pub String);

impl FromStr for ClusterName {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let is_name = !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(is_part_of_name);
        // The hash of machines has a field of this name that is none.
        if text == "born" {
            return Err(Mistake::new("\"born\" has a meaning of its own", "write another name"));
        }
        is_name.then(|| Self(text.to_owned())).ok_or_else(|| {
            let remedy = format!("write letters, digits, \"-\", \"_\" and \".\", such as \"web1\"; at most {NAME_BYTES_MAX}");
            Mistake::new(format!("\"{text}\" is not a name here"), remedy)
        })
    }
}

const fn is_part_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The values of `[cluster]` that variables can set.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    pub(super) url: Option<WithPlace<ClusterUrls>>,
    pub(super) name: Option<WithPlace<ClusterName>>,
    pub(super) machine: Option<WithPlace<ClusterName>>,
    pub(super) secret: Option<WithPlace<SecretText>>,
    pub(super) secret_file: Option<WithPlace<String>>,
}

impl Resolver<'_> {
    /// Resolves `[cluster]`. Returns `None` if no server is named: this machine stands alone.
    pub(super) fn cluster(
        &mut self,
        file: &file::Cluster,
        overrides: &Overrides,
        env: &impl Fn(&str) -> Option<String>,
    ) -> Option<Cluster> {
        let variables = &overrides.cluster;
        let url = variables.url.clone().or_else(|| self.said(&file.url));
        let secret = self.cluster_secret(file, variables);
        let said = self.said(&file.lease);
        let lease = self.within("lease", said, seconds(2), Period(Duration::from_millis(500))..=seconds(30)).0;
        let said = self.said(&file.doubt_hold);
        let doubt_hold = self.within("doubt_hold", said, seconds(5), seconds(0)..=seconds(30)).0;
        let said = self.said(&file.replicas);
        let replicas = self.within("replicas", said, Count(0), Count(0)..=Count(16)).0;
        let said = self.said(&file.tier_memory);
        let tier_memory = self.within("tier_memory", said, ByteSize(256 << 20), ByteSize(1 << 20)..=ByteSize(16 << 40)).0;
        let ca_file = self.roots_of(&file.ca_file);
        let name = self.pick(variables.name.clone(), &file.name).map_or_else(|| "seawall".to_owned(), |said| said.value.0);
        let machine = self.pick(variables.machine.clone(), &file.machine).map(|said| said.value.0);
        let Some(WithPlace { value: urls, place }) = url else {
            if let Some((key, span)) = first_key(file) {
                let remedy = "write the address of a Valkey or a Redis too, such as url = \"redis://127.0.0.1:6379\"";
                // A url that is wrong is not called absent, too.
                let place = self.place(span);
                self.absent(Mistake::new(format!("{key} has no effect without url"), remedy), place);
            }
            return None;
        };
        let Some(secret) = secret else {
            // A secret that is wrong is not called absent, too.
            if file.secret.is_none() && file.secret_file.is_none() && variables.secret.is_none() && variables.secret_file.is_none() {
                let remedy = "write secret = \"...\" with the same text on every machine; `openssl rand -hex 32` makes one. It seals what the \
                              machines tell each other";
                let place = if matches!(place, Place::Environment(..)) { Place::Default } else { place };
                self.absent(Mistake::new("a cluster needs a secret", remedy), place);
            }
            return None;
        };
        let address = match urls.address() {
            Ok(address) => address,
            Err(mistake) => {
                self.wrong(mistake, place);
                return None;
            }
        };
        if let Some(ca) = file.ca_file.as_ref().filter(|_| !address.has_tls()) {
            self.wrong_at(Mistake::new("ca_file has no effect without TLS", "write rediss:// in url"), ca.span());
        }
        let tier = self.tier(file, env)?;
        Some(Cluster {
            address,
            name,
            machine: machine.unwrap_or_else(machine_name),
            secret,
            lease,
            doubt_hold,
            replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
            tier,
            tier_memory,
            ca_file,
        })
    }

    /// Takes the secret, or reads its file. Returns `None` if there is none; then either none is wanted, or there is an error.
    fn cluster_secret(&mut self, file: &file::Cluster, variables: &Variables) -> Option<String> {
        let (text, file_text) = match (&variables.secret, &variables.secret_file) {
            (None, None) => (self.said(&file.secret), self.said(&file.secret_file)),
            (text, file) => (text.clone(), file.clone()),
        };
        let said = self.one_secret(("secret", text), ("secret_file", file_text))?;
        if said.value.trim().chars().count() < SECRET_CHARS_MIN {
            let remedy = format!("write at least {SECRET_CHARS_MIN} characters that nobody can guess; `openssl rand -hex 32` makes them");
            self.wrong(Mistake::new("this secret is too short", remedy), said.place);
            return None;
        }
        Some(said.value.trim().to_owned())
    }

    /// Takes a secret, or reads its file; both with their keys. Returns `None` if there is none; then either none was given, or there is an error.
    pub(super) fn one_secret(
        &mut self,
        (key, text): (&str, Option<WithPlace<SecretText>>),
        (file_key, file): (&str, Option<WithPlace<String>>),
    ) -> Option<WithPlace<String>> {
        let WithPlace { value, place } = match (text, file) {
            (Some(_), Some(WithPlace { place, .. })) => {
                self.wrong(Mistake::new(format!("there are both {key} and {file_key}"), "remove one of the two"), place);
                return None;
            }
            (Some(WithPlace { value, place }), None) => return Some(WithPlace { value: value.0, place }),
            (None, file) => file?,
        };
        let path = self.folder_of(&place).join(value);
        let size = fs::metadata(&path).map_or(0, |file| if file.is_file() { file.len() } else { 0 });
        match (size <= SECRET_FILE_BYTES_MAX).then(|| fs::read_to_string(&path)) {
            Some(Ok(text)) => Some(WithPlace { value: text.trim().to_owned(), place }),
            Some(Err(error)) => {
                let problem = format!("cannot read {}: {error}", path.display());
                self.wrong(Mistake::new(problem, "write the path of a file with the secret, which Seawall's user may read"), place);
                None
            }
            None => {
                let problem = format!("{} is too large for a secret", path.display());
                self.wrong(
                    Mistake::new(problem, format!("at most {SECRET_FILE_BYTES_MAX} bytes, which are the secret and nothing else")),
                    place,
                );
                None
            }
        }
    }

    /// Returns the path of a file with certificates to trust.
    pub(super) fn roots_of(&mut self, given: &file::Given<String>) -> Option<PathBuf> {
        let WithPlace { value, place } = self.said(given)?;
        let path = self.folder_of(&place).join(value);
        if !path.is_file() {
            let problem = format!("there is no file \"{}\"", path.display());
            self.wrong(Mistake::new(problem, "write the path of a file with the certificates to trust (PEM)"), place);
        }
        Some(path)
    }
}

/// Finds a key that means nothing without the address of a server.
fn first_key(file: &file::Cluster) -> Option<(&'static str, std::ops::Range<usize>)> {
    let file::Cluster {
        url: _,
        name,
        machine,
        secret,
        secret_file,
        lease,
        doubt_hold,
        replicas,
        tier,
        tier_memory,
        tier_endpoint,
        tier_region,
        tier_key_id,
        tier_secret_key,
        tier_secret_key_file,
        tier_ca_file,
        ca_file,
    } = file;
    let keys = [
        ("name", name.as_ref().map(Spanned::span)),
        ("machine", machine.as_ref().map(Spanned::span)),
        ("secret", secret.as_ref().map(Spanned::span)),
        ("secret_file", secret_file.as_ref().map(Spanned::span)),
        ("lease", lease.as_ref().map(Spanned::span)),
        ("doubt_hold", doubt_hold.as_ref().map(Spanned::span)),
        ("replicas", replicas.as_ref().map(Spanned::span)),
        ("tier", tier.as_ref().map(Spanned::span)),
        ("tier_memory", tier_memory.as_ref().map(Spanned::span)),
        ("tier_endpoint", tier_endpoint.as_ref().map(Spanned::span)),
        ("tier_region", tier_region.as_ref().map(Spanned::span)),
        ("tier_key_id", tier_key_id.as_ref().map(Spanned::span)),
        ("tier_secret_key", tier_secret_key.as_ref().map(Spanned::span)),
        ("tier_secret_key_file", tier_secret_key_file.as_ref().map(Spanned::span)),
        ("tier_ca_file", tier_ca_file.as_ref().map(Spanned::span)),
        ("ca_file", ca_file.as_ref().map(Spanned::span)),
    ];
    keys.into_iter().find_map(|(key, span)| Some((key, span?)))
}

/// Returns the host name of this machine, as far as a name in a cluster can have its characters.
fn machine_name() -> String {
    let name: String = own_name().chars().map(|c| if is_part_of_name(c) { c } else { '-' }).take(NAME_BYTES_MAX).collect();
    if name == "born" { "born-1".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_server_and_its_password_is_shown_nowhere() {
        for text in [
            "redis://127.0.0.1:6379",
            "redis://valkey",
            "redis://:hush@valkey:6379/2",
            "rediss://ada:hush@valkey.example.org:6380",
            "redis://[::1]:6379",
            "redis+sentinel://:hush@a:26379,b:26379/mymaster",
            "redis+cluster://ada:hush@a:6379,b:6379",
        ] {
            let url = text.parse::<ClusterUrl>().expect(text);
            assert_eq!(url.0, text);
            assert!(!format!("{url:?}").contains("hush"), "{url:?}");
        }
        for (text, expected) in [
            ("valkey:6379", "did you mean \"redis://valkey:6379\"?"),
            ("tcp://:hush@a:1", "did you mean redis://?"),
            ("sentinel://a:1/m", "did you mean redis+sentinel://?"),
            ("https://a", ""),
            ("redis://", ""),
            ("redis://:hush@:6379", ""),
            ("redis://a:99999", ""),
            ("redis+sentinel://a:1", ""),
            ("", ""),
        ] {
            let mistake = text.parse::<ClusterUrl>().expect_err(text);
            assert_eq!(mistake.meant.as_deref().unwrap_or_default(), expected, "{text}");
            assert!(!mistake.problem.contains("hush") && mistake.remedy.contains("redis://127.0.0.1:6379"), "{mistake:?}");
        }
    }

    #[test]
    fn a_list_has_plain_addresses() {
        let urls = "redis://a:1 redis://b:1".parse::<ClusterUrls>().expect("two");
        assert_eq!(urls.0.len(), 2);
        for text in ["", "redis://a:1 redis+cluster://b:1"] {
            assert!(text.parse::<ClusterUrls>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_parts_of_keys() {
        for text in ["seawall", "web-1.example.org", "A_2"] {
            assert_eq!(text.parse(), Ok(ClusterName(text.to_owned())));
        }
        for text in ["", "a b", "a:b", "{a}", "ä", "born", &"x".repeat(65)] {
            assert!(text.parse::<ClusterName>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_machine_that_nobody_named_has_a_name_all_the_same() {
        assert!(machine_name().parse::<ClusterName>().is_ok());
    }
}
