//! Pictures of a blog in the sizes and forms that readers need, made in the background and kept.
