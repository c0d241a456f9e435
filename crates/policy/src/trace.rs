//! Rules that can tell what they said.
//!
//! A rule is written once, as a question to a [`Trace`] that answers what it was told. To [`Silent`] nothing is told: that is what a
//! request's way through the cache costs nothing with, and the details are never made. [`Steps`] writes everything down, for an operator
//! who asks why. So the explanation cannot drift from the rules: it is their own.

/// A listener to the results of rules.
pub trait Trace {
    /// Hears of a rule that ends the judgement if it `applies`, and returns `applies`.
    fn decides(&mut self, rule: &'static str, applies: bool, detail: impl FnOnce() -> String) -> bool;

    /// Hears of something that was found on the way and ends nothing.
    fn notes(&mut self, rule: &'static str, detail: impl FnOnce() -> String);
}

/// A listener that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Trace for Silent {
    #[inline(always)]
    fn decides(&mut self, _: &'static str, applies: bool, _: impl FnOnce() -> String) -> bool {
        applies
    }

    #[inline(always)]
    fn notes(&mut self, _: &'static str, _: impl FnOnce() -> String) {}
}

/// One rule that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedRule {
    /// The name of the rule, to show to people.
    pub rule: &'static str,
    /// Whether it ended the judgement.
    pub decided: bool,
    /// The values that the rule saw.
    pub detail: String,
}

/// A listener that writes down every rule that was tried, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps(pub Vec<TracedRule>);

impl Trace for Steps {
    fn decides(&mut self, rule: &'static str, applies: bool, detail: impl FnOnce() -> String) -> bool {
        self.0.push(TracedRule { rule, decided: applies, detail: detail() });
        applies
    }

    fn notes(&mut self, rule: &'static str, detail: impl FnOnce() -> String) {
        self.0.push(TracedRule { rule, decided: false, detail: detail() });
    }
}
