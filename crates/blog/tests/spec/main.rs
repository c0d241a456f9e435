//! What authors and readers see of a blog when its folder changes.

mod changes;
mod drafts;
mod feeds;
mod folder;
mod looks;
mod head;
mod languages;
mod mistakes;
mod oracle;
mod pictures;
mod search;
mod sitemap;
