//! What authors and readers see of a blog when its folder changes.

mod changes;
mod drafts;
mod folder;
mod looks;
mod mistakes;
mod oracle;
