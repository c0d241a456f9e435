//! Interim responses (RFC 9110 §15.2) on their way to the one client whose request brought them. They are neither stored nor shared.

use std::{fmt, rc::Rc};

use origins::OnInterim;

/// The way of the interim responses to a request.
#[derive(Clone)]
pub struct Interim(Rc<OnInterim<'static>>);

impl Interim {
    /// Sends them through a function of the connection.
    #[must_use]
    pub fn new(tell: Rc<OnInterim<'static>>) -> Self {
        Self(tell)
    }

    pub(crate) fn tell(&self) -> &OnInterim<'static> {
        &*self.0
    }
}

impl fmt::Debug for Interim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interim")
    }
}
