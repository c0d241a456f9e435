//! What must hold for every input, whoever sends it: one function per subject, each of which panics if it does not hold.
//!
//! The fuzzer calls them with inputs that it makes up (`fuzz/fuzz_targets`), the tests with those that once taught something
//! (`fuzz/corpus`). Every function asserts more than the absence of panics: a second reading that must agree, a model, a law.
//!
//! Absent from this room: the fuzzer, so that everything here is built and tested with the stable compiler.

mod accept_class;
mod accept_encoding;
mod blog_text;
mod cache_control;
mod cache_key;
mod collapsing;
mod conditional;
mod config_toml;
mod cookies;
mod early_hints;
mod fastcgi_response;
mod files_path;
mod files_rules;
mod h2_frames;
mod h3_streams;
mod hpack;
mod http2_connection;
mod http_date;
mod input;
mod origin_response;
mod picture_file;
mod protected_path;
mod query_filter;
mod range;
mod rebuild;
mod reference;
mod request_head;
mod store_ops;
mod structured;
mod target_path;
mod trace_context;
mod vary;

pub use accept_class::accept_class;
pub use accept_encoding::accept_encoding;
pub use blog_text::blog_text;
pub use cache_control::cache_control;
pub use cache_key::cache_key;
pub use collapsing::collapsing;
pub use conditional::conditional;
pub use config_toml::config_toml;
pub use cookies::cookies;
pub use early_hints::early_hints;
pub use fastcgi_response::fastcgi_response;
pub use files_path::files_path;
pub use files_rules::files_rules;
pub use h2_frames::h2_frames;
pub use h3_streams::h3_streams;
pub use hpack::hpack;
pub use http_date::http_date;
pub use origin_response::origin_response;
pub use picture_file::picture_file;
pub use protected_path::protected_path;
pub use query_filter::query_filter;
pub use range::range;
pub use rebuild::rebuild_fields;
pub use reference::reference;
pub use request_head::request_head;
pub use store_ops::store_ops;
pub use structured::structured;
pub use target_path::target_path;
pub use trace_context::trace_context;
pub use vary::vary;

/// What must hold for any input; it panics if it does not.
pub type Check = fn(&[u8]);

/// Every check, with the name of its target and of its folder of inputs.
pub const CHECKS: [(&str, Check); 30] = [
    ("accept_class", accept_class),
    ("accept_encoding", accept_encoding),
    ("blog_text", blog_text),
    ("cache_control", cache_control),
    ("cache_key", cache_key),
    ("collapsing", collapsing),
    ("conditional", conditional),
    ("config_toml", config_toml),
    ("cookies", cookies),
    ("early_hints", early_hints),
    ("fastcgi_response", fastcgi_response),
    ("files_path", files_path),
    ("files_rules", files_rules),
    ("h2_frames", h2_frames),
    ("h3_streams", h3_streams),
    ("hpack", hpack),
    ("http_date", http_date),
    ("origin_response", origin_response),
    ("picture_file", picture_file),
    ("protected_path", protected_path),
    ("query_filter", query_filter),
    ("range", range),
    ("rebuild", rebuild_fields),
    ("reference", reference),
    ("request_head", request_head),
    ("store_ops", store_ops),
    ("structured", structured),
    ("target_path", target_path),
    ("trace_context", trace_context),
    ("vary", vary),
];
