//! `seawall explain`.

use std::{io, process::ExitCode};

use clap::Args;
use operator::{explain, foreign::visible_json, terminal::has_colour};

use super::{
    Run,
    access::{Access, page},
    output::say,
    serve::Inherited,
};

const EXAMPLES: &str = "\
Examples:
  seawall explain https://blog.example.org/hello/
      Which rules looked at the request, what is stored for it, and what would happen now.

  seawall explain https://blog.example.org/ -H 'Cookie: session=1'
      For a reader who is logged in.

  seawall explain https://blog.example.org/hello/ --json
      For scripts.

  seawall explain https://blog.example.org/hello/ -H 'Accept-Encoding: identity'
      For a client that accepts no compression. Without this, the request accepts what browsers accept.

Nothing is fetched and nothing is changed. Values of cookies never appear in the answer.";

/// Show why a page is, or is not, answered from the cache
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The page, as readers see its address
    #[arg(value_name = "URL", value_parser = page)]
    url: String,

    /// A field that the request carries, such as 'Accept: application/json'; can be given several times
    #[arg(short = 'H', long = "field", value_name = "'FIELD: VALUE'")]
    fields: Vec<String>,

    /// The request's method
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,

    /// Write JSON instead of text
    #[arg(long)]
    json: bool,

    /// The running Seawall.
    #[command(flatten)]
    access: Access,
}

impl Run for Explain {
    const NAME: &'static str = "explain";

    fn run(self, _: Option<Inherited>) -> anyhow::Result<ExitCode> {
        let command = explain::command(&self.url, &self.method, &self.fields).map_err(anyhow::Error::msg)?;
        let explanation = explain::run(&self.access.client()?, &command)?;
        if self.json {
            say(&format!("{}\n", visible_json(&serde_json::to_string_pretty(&explanation)?)))?;
        } else {
            say(&explain::text(&explanation, has_colour(&io::stdout())))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::typed;

    #[test]
    fn explain_takes_fields_and_a_method() {
        let line = ["seawall", "explain", "https://a/", "-H", "Cookie: a=1", "--field", "Accept: text/html", "--method", "HEAD", "--json"];
        let explain: Explain = crate::cli::typed_words(line).expect("explain");
        assert_eq!(explain.fields, ["Cookie: a=1", "Accept: text/html"]);
        assert_eq!((explain.method.as_str(), explain.json, explain.access), ("HEAD", true, Access::default()));
        assert!(typed::<Explain>("seawall explain").is_err());
    }
}
