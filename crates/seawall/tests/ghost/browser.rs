//! Journeys in a real browser, beside a crowd without cookies. They run in `make spec-ghost` only.
