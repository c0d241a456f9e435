//! `seawall certificates`, and `seawall certificates revoke`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use operator::certificates;

use super::{
    Run,
    access::Access,
    output::{confirm, say},
    serve::Inherited,
};

const EXAMPLES: &str = "\
Examples:
  seawall certificates
      Each name: until when its certificate is valid, when it is renewed, who certifies it, and what went wrong.

  seawall certificates revoke blog.example.org
      If somebody else may have the key: gets a certificate with a new key, uses it, and has the old one revoked.";

/// List the certificates of a running Seawall, or replace and revoke one
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Certificates {
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,

    /// The running Seawall.
    #[command(flatten)]
    access: Access,

    /// What to do with one.
    #[command(subcommand)]
    action: Option<CertificateAction>,
}

/// What can be done with a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum CertificateAction {
    /// Replace the certificate of a name by one with a new key, and revoke the old one, because somebody else may have its key
    Revoke {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,

        /// The running Seawall.
        #[command(flatten)]
        access: Access,
    },
}

impl Run for Certificates {
    const NAME: &'static str = "certificates";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        match self.action {
            Some(CertificateAction::Revoke { name, access }) => confirm(&certificates::revoke(access.client()?, &name)?),
            None if self.json => {
                let all: serde_json::Value = self.access.client()?.get("/certificates")?;
                say(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
            }
            None => say(&certificates::list(&self.access.client()?)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    #[test]
    fn certificates_are_listed_unless_one_is_to_be_revoked() {
        let list: Certificates = typed("seawall certificates --json --admin 127.0.0.1:1").expect("a list");
        assert_eq!((list.json, list.access.admin.as_deref(), list.action), (true, Some("127.0.0.1:1"), None));
        let revoke: Certificates = typed("seawall certificates revoke a.example --admin 127.0.0.1:1").expect("revoke");
        let access = Access { admin: Some("127.0.0.1:1".to_owned()), ..Access::default() };
        assert_eq!(revoke.action, Some(CertificateAction::Revoke { name: "a.example".to_owned(), access }));
        assert!(typed::<Certificates>("seawall certificates revoke").is_err());
    }
}
