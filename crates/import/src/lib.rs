//! What other engines wrote becomes a folder of Markdown.
