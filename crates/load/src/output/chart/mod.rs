//! Charts as SVG that need neither script nor style sheet nor font.
//!
//! Two looks share all drawing code. In a page ([`ChartStyle::page`]), colours are variables that the page sets for light and dark. Alone
//! ([`ChartStyle::alone`]), all is in presentation attributes, with a background of its own, so that editors that strip styles leave the picture whole.

mod bars;
mod canvas;
mod curve;
mod rounds;
mod scale;
mod time;

pub(super) use self::{
    bars::{Bar, Bars, bars},
    canvas::{COLOURS, ChartStyle, Colour},
    curve::{Curve, percentiles},
    rounds::rounds,
    time::{Over, over_time},
};
