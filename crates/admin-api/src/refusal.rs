//! Every answer that is not what was asked for.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Stands in the content of every answer whose status is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal<'a> {
    /// The words for what is wrong.
    pub error: Cow<'a, str>,
    /// The words for what to do about it.
    pub remedy: Cow<'a, str>,
}
