//! Bytes to one request type and back: listeners, HTTP/1.1
