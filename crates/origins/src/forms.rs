//! Forms of a response that its origin has at hand.

use bytes::Bytes;
use semantics::coding::Coding;

use crate::FileRegion;

/// Other forms of a response's content, ready-made: what lies coded beside a file. An origin puts them into the extensions of a response
/// whose own content has no coding; whoever stores the response stores them with it.
///
/// Each coding at most once, and each the exact content in that coding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forms(pub Vec<(Coding, Bytes)>);

/// Other forms of a response whose content is a [`Body::File`](crate::Body::File), as files too: whoever sends the response chooses one.
#[derive(Debug, Clone)]
pub struct FileForms(pub Vec<(Coding, FileRegion)>);
