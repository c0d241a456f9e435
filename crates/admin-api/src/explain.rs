//! Commands that only look, as JSON: what `POST /explain` and `POST /stored` take, and what `seawall explain` and `seawall warm` send.
//!
//! They are POST although they are safe: a command names cookies and credentials, which have no place in a target that ends up in logs;
//! and so the token is needed, which a list of everything that is stored deserves. Unknown keys are refused.

use serde::{Deserialize, Serialize};

/// The most fields that a command may have. A browser sends some fifteen.
const FIELDS_MAX: usize = 64;

/// Asks for an explanation of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainCommand {
    /// The address of the request, as a reader sees it.
    pub url: String,
    /// The method of the request.
    #[serde(default = "get")]
    pub method: String,
    /// The fields of the request, besides `Host`.
    #[serde(default)]
    pub fields: Vec<(String, String)>,
}

fn get() -> String {
    "GET".to_owned()
}

/// Says why a text is not a command that only looks.
#[derive(Debug, thiserror::Error)]
pub enum BadQuestion {
    /// It is not JSON, not an object, or has a key that means nothing here.
    #[error("the body is not a valid explain command: {0}")]
    Json(#[from] serde_json::Error),
    /// It has more fields than any client sends.
    #[error("the command has more than {FIELDS_MAX} fields")]
    Fields,
}

impl BadQuestion {
    /// Says what to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        "send {\"url\": \"https://…\", \"method\": \"GET\", \"fields\": [[\"name\", \"value\"]]}, or {\"host\": \"…\"} to list what is stored"
    }
}

impl ExplainCommand {
    /// Reads a command.
    ///
    /// # Errors
    /// When it is not JSON, has unknown keys, or no URL.
    pub fn from_json(json: &[u8]) -> Result<Self, BadQuestion> {
        let command: Self = serde_json::from_slice(json)?;
        if command.fields.len() > FIELDS_MAX { Err(BadQuestion::Fields) } else { Ok(command) }
    }

    /// Writes what [`from_json`](Self::from_json) reads.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings are always JSON")
    }
}

/// Says why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainRefused {
    /// The command has an address at which nothing can be asked, and this is why.
    #[error("{0}")]
    Address(String),
    /// The command has this method, which is not valid.
    #[error("\"{0}\" is not a method")]
    Method(String),
    /// The command has a field of this name, which has something in its name or its value that neither can have. Its value may be a secret.
    #[error("\"{0}: ...\" is not a field: its name or its value has what neither can have")]
    Field(String),
    /// The command has a field for the host.
    #[error("the host is part of the address and has no field of its own here")]
    Host,
    /// No site has that host.
    #[error("no site is served under {host}")]
    NoSite {
        /// The host, as it was asked for.
        host: String,
        /// The hosts that are served. There is at least one, as a site without hosts serves every host.
        hosts: Vec<String>,
    },
    /// The server stops, or its workers have no time.
    #[error("no worker answered in time")]
    Busy,
}

impl ExplainRefused {
    /// Says what to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Address(_) => "write the address as visitors see it, such as https://blog.example.org/hello/".to_owned(),
            Self::Method(_) => "write a method as it stands in a request, such as GET or HEAD".to_owned(),
            Self::Field(_) => {
                "write the field as it stands in a request, such as \"Accept: text/html\": the name without spaces, the value on one line"
                    .to_owned()
            }
            Self::Host => "leave the field out, and write the host in the address, such as https://blog.example.org/hello/".to_owned(),
            Self::NoSite { hosts, .. } => format!("served are: {}", hosts.join(", ")),
            Self::Busy => "try again; if this goes on, the server is overloaded or stopping".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoredCommand;

    /// A remedy is about what is wrong, and not about something else of the command.
    #[test]
    fn each_remedy_speaks_of_what_is_wrong() {
        for (refused, said, remedy) in [
            (ExplainRefused::Address("\"a\" names no host".to_owned()), "names no host", "the address as visitors see it"),
            (ExplainRefused::Method("G T".to_owned()), "\"G T\" is not a method", "such as GET"),
            (ExplainRefused::Field("a b".to_owned()), "\"a b: ...\" is not a field", "write the field"),
            (ExplainRefused::Host, "the host is part of the address", "leave the field out"),
        ] {
            assert!(refused.to_string().contains(said), "{refused}");
            assert!(refused.remedy().contains(remedy), "{refused}: {}", refused.remedy());
        }
    }

    #[test]
    fn a_command_survives_its_json() {
        let command = ExplainCommand {
            url: "https://a/b".to_owned(),
            method: "HEAD".to_owned(),
            fields: vec![("cookie".to_owned(), "a=\"1\"".to_owned())],
        };
        assert_eq!(ExplainCommand::from_json(command.to_json().as_bytes()).expect("a command"), command);
        let plain = ExplainCommand::from_json(br#"{"url": "https://a/b"}"#).expect("a command");
        assert_eq!((plain.method.as_str(), plain.fields.len()), ("GET", 0));
        let stored = StoredCommand { host: Some("a".to_owned()) };
        assert_eq!(StoredCommand::from_json(stored.to_json().as_bytes()).expect("a command"), stored);
        let many = vec![("a".to_owned(), "b".to_owned()); FIELDS_MAX + 1];
        for bad in ["", "{}", r#"{"url": "a", "cookie": "b"}"#, &ExplainCommand { fields: many, ..plain }.to_json()] {
            assert!(ExplainCommand::from_json(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
