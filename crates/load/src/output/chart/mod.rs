//! Charts as SVG that need neither script nor style sheet nor font.
//!
//! Two looks share all drawing code. In a page ([`Look::page`]), colours are variables that the page sets for light and dark. Alone
//! ([`Look::alone`]), all is in presentation attributes, with a background of its own, so that editors that strip styles leave the picture whole.

mod bars;
mod canvas;
mod curve;
mod rounds;
mod scale;
mod time;

pub(super) use self::{
    bars::{Bar, Bars, bars},
    canvas::{COLOURS, Colour, Look},
    curve::{Curve, percentiles},
    rounds::rounds,
    time::{Over, over_time},
};
