//! `tier = "s3://..."` of `[cluster]`: the bucket where the machines share pages, and how it is reached.

use std::{ops::Range, str::FromStr};

use cluster::tier::bucket::BucketOptions;
use toml::Spanned;

use super::{
    error::{Mistake, Place},
    file,
    ghost::NOT_SHOWN,
    overrides::WithPlace,
    resolve::Resolver,
    settings::Tier,
    words::choose,
};

/// The region if nobody names one. Storage that is not Amazon's usually takes any.
const REGION: &str = "us-east-1";
/// The longest name of a bucket, and of all that objects' names begin with.
const BUCKET_BYTES_MAX: usize = 63;
const PREFIX_BYTES_MAX: usize = 512;
/// The longest name of a region or an access key.
const WORD_BYTES_MAX: usize = 256;
const REMEDY: &str = "write the name of a bucket, and what the names of Seawall's objects begin with, such as \"s3://my-bucket/seawall\"";

/// The place of the tier that the machines share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierWord {
    /// There is none.
    None,
    /// The tier is in the server of the cluster.
    Valkey,
    /// The tier is in a bucket.
    Bucket {
        /// The name of the bucket.
        name: String,
        /// The prefix of the names of objects.
        prefix: String,
    },
}

impl FromStr for TierWord {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        if let Some(place) = text.strip_prefix("s3://") {
            return bucket(text, place);
        }
        let word = choose(text, "place for a tier", &[("none", false), ("valkey", true)]).map_err(|mistake| {
            let mistake = Mistake { remedy: "possible values: \"none\", \"valkey\", \"s3://BUCKET/PREFIX\"".to_owned(), ..mistake };
            match text.split_once("://") {
                Some(("s3a" | "s3n" | "S3", place)) => mistake.meant(format!("s3://{place}")),
                _ if text == "redis" => mistake.meant("valkey"),
                _ => mistake,
            }
        })?;
        Ok(if word { Self::Valkey } else { Self::None })
    }
}

fn bucket(text: &str, place: &str) -> Result<TierWord, Mistake> {
    let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let is_name = (3..=BUCKET_BYTES_MAX).contains(&name.len())
        && name.chars().all(is_letter)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !is_name {
        let problem =
            format!("\"{name}\" in \"{text}\" is not the name of a bucket: lower-case letters, digits, \"-\" and \".\", 3 to 63 of them");
        return Err(Mistake::new(problem, REMEDY));
    }
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..") && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '='))
    };
    if !prefix.is_empty() && (prefix.len() > PREFIX_BYTES_MAX || !prefix.split('/').all(is_part)) {
        let problem = format!(
            "\"{prefix}\" in \"{text}\" cannot begin the names of objects: letters, digits, \"-\", \"_\", \".\", \"=\" and \"/\" can"
        );
        return Err(Mistake::new(problem, REMEDY));
    }
    Ok(TierWord::Bucket { name: name.to_owned(), prefix: prefix.to_owned() })
}

/// The address of a storage that speaks S3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageAddress(pub String);

impl FromStr for StorageAddress {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = || {
            let remedy = "write scheme, host and port alone, such as \"http://10.0.0.9:9000\" or \"https://s3.example.org\"";
            Mistake::new(format!("\"{text}\" is not the address of a storage"), remedy)
        };
        let address = text.trim_end_matches('/');
        let Ok(uri) = address.parse::<http::Uri>() else { return Err(mistake()) };
        if uri.scheme().is_none() && text.contains(':') && !text.contains('/') {
            return Err(mistake().meant(format!("http://{text}")));
        }
        let is_plain = |authority: &http::uri::Authority| !authority.as_str().contains('@') && !authority.host().is_empty();
        let is_address = matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some_and(is_plain)
            && uri.path().trim_matches('/').is_empty()
            && uri.query().is_none();
        if is_address { Ok(Self(address.to_owned())) } else { Err(mistake()) }
    }
}

/// A word that goes into requests as it is: the name of a region or of an access key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageWord(pub String);

impl FromStr for StorageWord {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let is_word =
            !text.is_empty() && text.len() <= WORD_BYTES_MAX && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '/' | ','));
        is_word.then(|| Self(text.to_owned())).ok_or_else(|| {
            Mistake::new(
                format!("\"{text}\" cannot stand in a request to a bucket"),
                "write it as the storage shows it, such as \"eu-central-1\"",
            )
        })
    }
}

impl Resolver<'_> {
    /// Resolves where the tier is. Returns `None` if there is an error.
    ///
    /// The file goes before Amazon's variables: those are often set for all programs of a machine.
    pub(super) fn tier(&mut self, file: &file::Cluster, env: &impl Fn(&str) -> Option<String>) -> Option<Tier> {
        let (name, prefix, place) = match self.said(&file.tier) {
            Some(WithPlace { value: TierWord::Bucket { name, prefix }, place }) => (name, prefix, place),
            other => {
                if let Some((key, span)) = first_key(file) {
                    let remedy = "name a bucket, such as tier = \"s3://my-bucket/seawall\", or remove this line";
                    self.wrong_at(Mistake::new(format!("{key} has no effect without a bucket"), remedy), span);
                }
                return Some(if other.is_some_and(|said| said.value == TierWord::Valkey) { Tier::Valkey } else { Tier::None });
            }
        };
        let variable = |names: &[&'static str]| {
            names.iter().find_map(|name| {
                let value = env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())?;
                Some(WithPlace { place: Place::Environment(name, NOT_SHOWN.to_owned()), value })
            })
        };
        let endpoint = match (self.said(&file.tier_endpoint), variable(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])) {
            (Some(said), _) => Some(said.value.0),
            (None, Some(WithPlace { value, place })) => Some(self.read_variable::<StorageAddress>(&value, place)?.0),
            (None, None) => None,
        };
        let region = match (self.said(&file.tier_region), variable(&["AWS_REGION", "AWS_DEFAULT_REGION"])) {
            (Some(said), _) => said.value.0,
            (None, Some(WithPlace { value, place })) => self.read_variable::<StorageWord>(&value, place)?.0,
            (None, None) => REGION.to_owned(),
        };
        let authorities = self.roots_of(&file.tier_ca_file);
        if let Some(ca) = file.tier_ca_file.as_ref().filter(|_| endpoint.as_ref().is_some_and(|address| address.starts_with("http://"))) {
            self.wrong_at(Mistake::new("tier_ca_file has no effect without TLS", "write https:// in tier_endpoint"), ca.span());
        }
        let is_in_file = file.tier_key_id.is_some() || file.tier_secret_key.is_some() || file.tier_secret_key_file.is_some();
        let (key_id, secret_key, token) = if is_in_file {
            let secret = self.one_secret(
                ("tier_secret_key", self.said(&file.tier_secret_key)),
                ("tier_secret_key_file", self.said(&file.tier_secret_key_file)),
            );
            (self.said(&file.tier_key_id).map(|said| said.value.0), secret.map(|said| said.value), None)
        } else {
            let key_id = variable(&["AWS_ACCESS_KEY_ID"]);
            let key_id = match key_id {
                Some(WithPlace { value, place }) => Some(self.read_variable::<StorageWord>(&value, place)?.0),
                None => None,
            };
            (key_id, variable(&["AWS_SECRET_ACCESS_KEY"]).map(|said| said.value), variable(&["AWS_SESSION_TOKEN"]).map(|said| said.value))
        };
        let (Some(key_id), Some(secret_key)) = (key_id, secret_key) else {
            if !self.has_errors() {
                let remedy =
                    "write tier_key_id, and tier_secret_key or tier_secret_key_file; or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
                self.wrong(Mistake::new("the bucket has no access key", remedy), place);
            }
            return None;
        };
        let options = BucketOptions { name, prefix, endpoint, region, key_id, secret_key, token, authorities: None };
        Some(Tier::Bucket { options: Box::new(options), ca_file: authorities })
    }

    fn read_variable<T: FromStr<Err = Mistake>>(&mut self, text: &str, place: Place) -> Option<T> {
        text.parse().map_err(|mistake| self.wrong(mistake, place)).ok()
    }
}

/// Finds a key that means nothing without a bucket.
fn first_key(file: &file::Cluster) -> Option<(&'static str, Range<usize>)> {
    let keys = [
        ("tier_endpoint", file.tier_endpoint.as_ref().map(Spanned::span)),
        ("tier_region", file.tier_region.as_ref().map(Spanned::span)),
        ("tier_key_id", file.tier_key_id.as_ref().map(Spanned::span)),
        ("tier_secret_key", file.tier_secret_key.as_ref().map(Spanned::span)),
        ("tier_secret_key_file", file.tier_secret_key_file.as_ref().map(Spanned::span)),
        ("tier_ca_file", file.tier_ca_file.as_ref().map(Spanned::span)),
    ];
    keys.into_iter().find_map(|(key, span)| Some((key, span?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_named_as_everywhere() {
        let bucket = |name: &str, prefix: &str| TierWord::Bucket { name: name.to_owned(), prefix: prefix.to_owned() };
        for (text, expected) in [
            ("none", TierWord::None),
            ("valkey", TierWord::Valkey),
            ("s3://pages", bucket("pages", "")),
            ("s3://pages/", bucket("pages", "")),
            ("s3://my-pages.example.org/seawall/blog/", bucket("my-pages.example.org", "seawall/blog")),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for (text, meant) in [
            ("redis", "did you mean \"valkey\"?"),
            ("s3a://pages/x", "did you mean \"s3://pages/x\"?"),
            ("s3://", ""),
            ("s3://Pages", ""),
            ("s3://-pages", ""),
            ("s3://pages/a//b", ""),
            ("s3://pages/../b", ""),
            ("s3://pages/a b", ""),
            ("pages", ""),
        ] {
            let mistake = text.parse::<TierWord>().expect_err(text);
            assert_eq!(mistake.meant.as_deref().unwrap_or_default(), meant, "{text}");
            assert!(mistake.remedy.contains("s3://"), "{mistake:?}");
        }
    }

    #[test]
    fn a_storage_has_an_address_without_a_path() {
        for text in ["http://10.0.0.9:9000", "https://s3.example.org", "http://[::1]:8333"] {
            assert_eq!(text.parse(), Ok(StorageAddress(text.to_owned())));
        }
        assert_eq!("https://s3.example.org/".parse(), Ok(StorageAddress("https://s3.example.org".to_owned())));
        for (text, meant) in [
            ("minio:9000", "did you mean \"http://minio:9000\"?"),
            ("https://s3.example.org/bucket", ""),
            ("https://key:hush@s3.example.org", ""),
            ("s3.example.org", ""),
            ("ftp://a", ""),
            ("", ""),
        ] {
            let mistake = text.parse::<StorageAddress>().expect_err(text);
            assert_eq!(mistake.meant.as_deref().unwrap_or_default(), meant, "{text}");
        }
    }
}
