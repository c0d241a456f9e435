//! Interim responses (RFC 9110 §15.2) on their way from the service to a client: they are hints, so that only so many get through.

use std::{cell::Cell, rc::Rc};

use http::{HeaderMap, StatusCode};

use crate::service::Interim;

/// The most interim responses that a client gets for one request. Those beyond are left out.
pub(crate) const INTERIMS_MAX: usize = 16;

/// Makes what the service tells its interim responses to: `tell` is called for the first [`INTERIMS_MAX`], and returns whether it took one.
pub(crate) fn counted(tell: impl Fn(StatusCode, &HeaderMap) -> bool + 'static) -> Interim {
    let left = Cell::new(INTERIMS_MAX);
    Rc::new(move |status, fields| {
        if left.get() > 0 && tell(status, fields) {
            left.set(left.get() - 1);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_are_told_and_those_that_were_not_taken_do_not_count() {
        let (asked, taken) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let interim = counted({
            let (asked, taken) = (Rc::clone(&asked), Rc::clone(&taken));
            move |_, _| {
                asked.set(asked.get() + 1);
                let takes = asked.get() % 2 == 0;
                taken.set(taken.get() + usize::from(takes));
                takes
            }
        });
        for _ in 0..5 * INTERIMS_MAX {
            interim(StatusCode::EARLY_HINTS, &HeaderMap::new());
        }
        assert_eq!((asked.get(), taken.get()), (2 * INTERIMS_MAX, INTERIMS_MAX));
    }
}
