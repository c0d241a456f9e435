//! A folder of Markdown becomes a site in memory
