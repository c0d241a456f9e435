//! Scriptable origin, client and clock for tests
