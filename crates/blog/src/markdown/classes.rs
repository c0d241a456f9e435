//! The classes of what texts become. A theme styles these, and overriding templates and styles rely on them: change them as an interface.
//!
//! | HTML | what it is |
//! |---|---|
//! | `figure.code > figcaption, pre > code.language-NAME` | a block of code; `figcaption.language` if the caption is only the language |
//! | `figure.code pre.numbered` | the same with line numbers: a counter on `.l` |
//! | `.l`, `.l.x` | a line of such a block, or of one with marks; a marked line |
//! | `.k .s .n .c .f .t .a .m .e .h .i .d` | the kinds of words below, inside of `pre` alone |
//! | `figure.picture > img, figcaption` | a picture with a caption |
//! | `div.table > table` | a table that scrolls sideways if it has to |
//! | `div.alert.note`, `.tip`, `.important`, `.warning`, `.caution` | an alert, with `p.alert-title` first |
//! | `li.task > label > input` | an item of a list of tasks |
//! | `nav.toc > p, ul > li > a` | a table of contents |
//! | `a.anchor` | the link of a heading to itself, inside of the heading |
//! | `sup.fnref > a`, `section.footnotes > ol > li`, `a.back` | footnotes |
//! | `p.embed > a > span.embed-kind, span.embed-title` | a card that leads to a video, a message or code elsewhere |
//! | `math`, `div.math > math[display="block"]` | a formula; classes in it begin with `menv-`, `cell-` and `mop-` |

/// Keywords: `fn`, `if`, `return`.
pub(crate) const KEYWORD: &str = "k";
/// Strings.
pub(crate) const STRING: &str = "s";
/// Numbers and constants: `42`, `true`.
pub(crate) const NUMBER: &str = "n";
/// Comments.
pub(crate) const COMMENT: &str = "c";
/// Names of functions.
pub(crate) const FUNCTION: &str = "f";
/// Names of types and of elements.
pub(crate) const TYPE: &str = "t";
/// Names of attributes, properties and keys.
pub(crate) const ATTRIBUTE: &str = "a";
/// Macros, annotations and directives.
pub(crate) const MACRO: &str = "m";
/// Escapes and placeholders in strings.
pub(crate) const ESCAPE: &str = "e";
/// Headings and names of sections.
pub(crate) const HEADING: &str = "h";
/// Lines that came, in a diff.
pub(crate) const INSERTED: &str = "i";
/// Lines that went, in a diff.
pub(crate) const DELETED: &str = "d";

/// A line, where lines are numbered or marked.
pub(crate) const LINE: &str = "l";
/// A marked line, beside [`LINE`].
pub(crate) const MARKED: &str = "x";
