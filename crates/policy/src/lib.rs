//! What a kind of site means: request to verdict, response to storing
