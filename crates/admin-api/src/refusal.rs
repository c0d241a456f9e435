//! Every answer that is not what was asked for.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The content of every answer whose status is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal<'a> {
    /// What is wrong.
    pub error: Cow<'a, str>,
    /// What to do about it.
    pub remedy: Cow<'a, str>,
}
