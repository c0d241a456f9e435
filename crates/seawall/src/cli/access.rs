//! How a command finds the Seawall that it talks to.

use std::{net::SocketAddr, path::PathBuf};

use admin::Token;
use clap::Args;
use operator::AdminClient;

use super::env;
use crate::config;

/// Reads the address of a page, so that a slip is told before a server is looked for.
pub(super) fn page(text: &str) -> Result<String, String> {
    operator::address::check(text).map(|()| text.to_owned())
}

/// How to reach the running Seawall.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The address of the running Seawall's admin API [default: as in the configuration file, or 127.0.0.1:9180]
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,

    /// The file with the secret of the admin API [default: as in the configuration file, or the one that `seawall serve` made]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// The configuration file of the running Seawall [default: ./seawall.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Access {
    /// Looks up where the running server's admin API listens, and reads its token.
    ///
    /// # Errors
    /// When flags, environment or file are wrong, or the token cannot be read.
    pub(crate) fn address_and_token(&self) -> anyhow::Result<(SocketAddr, Token)> {
        let access = config::admin_access(self, env)?;
        Ok((access.address, Token::load(&access.token_file)?))
    }

    /// Makes a client of the running server's admin API.
    ///
    /// # Errors
    /// As [`address_and_token`](Self::address_and_token).
    pub(crate) fn client(&self) -> anyhow::Result<AdminClient> {
        let (address, token) = self.address_and_token()?;
        Ok(AdminClient::new(address, token.as_str())?)
    }
}
