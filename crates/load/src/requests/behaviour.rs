//! The things that visitors do beyond sending a request as it stands.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    Request,
    check::Checks,
    choice::Choice,
    leak::{LeakCheck, Leaks},
    page::{Library, Validators},
    template::{Braces, Template, TemplateError},
};

/// Says what visitors do beyond sending a request as it stands. The default is nothing.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// The kinds of visitors.
    pub(super) classes: Vec<Class>,
    /// The templates that are filled in, for each request.
    pub(super) templates: Vec<Option<Box<Templates>>>,
    /// Requests are asked in the order of the set, by all visitors together: the number of the next one.
    pub(super) in_order: Option<Arc<AtomicU64>>,
    /// Whether visitors take cookies and send them back.
    pub(super) cookies: bool,
    /// The checks that answers must pass.
    pub(super) checks: Checks,
    /// Whether answers are searched for what belongs to other clients.
    pub(super) leak: Option<LeakCheck>,
    pub(super) leaks: Arc<Leaks>,
    pub(super) library: Arc<Library>,
    /// The validators that were last received for the requests of conditional visitors.
    pub(super) validators: Arc<RwLock<std::collections::HashMap<u32, Arc<Validators>>>>,
    /// The shape of the crowd, if there is one: its name, and where it is from.
    pub(super) shape: Option<(String, Vec<String>)>,
    /// A number that only this run has.
    pub(super) run: u32,
    /// The beginning of the run: milliseconds since 1970.
    pub(super) began: u64,
}

/// A kind of visitors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Class {
    /// The weight of the arrivals beside the others', at moments from the beginning and along straight lines between them. Empty: as many
    /// come all the time.
    pub(crate) arrivals: Vec<(Duration, f64)>,
    /// The steps of a visit.
    pub(crate) steps: Vec<Step>,
}

/// A part of a visit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    /// The requests of which one is asked.
    pub(crate) requests: Vec<u32>,
    /// The choice among them.
    pub(crate) choice: Choice,
    /// Whether what belongs to a page is asked with it.
    pub(crate) page: bool,
    /// Whether it is asked as by someone who has an earlier answer.
    pub(crate) conditional: bool,
    /// The least and the largest number of times that it is done.
    pub(crate) times: (u32, u32),
}

impl Step {
    /// Makes a step that asks one of some requests once, chosen by weight.
    pub(crate) fn of(requests: Vec<u32>, all: &[Request]) -> Self {
        let weights: Vec<f64> = requests.iter().map(|at| all.get(*at as usize).map_or(0.0, |request| f64::from(request.weight))).collect();
        Self { requests, choice: Choice::new(&weights), page: false, conditional: false, times: (1, 1) }
    }
}

/// The parts of a request that are filled in.
#[derive(Debug, Clone)]
pub(crate) struct Templates {
    pub(super) target: Template,
    pub(super) fields: Vec<(String, Template)>,
    pub(super) body: Option<Template>,
}

impl Templates {
    /// Reads the placeholders of a request. Where nothing differs, the request is changed to what it stands for, and there are none.
    pub(crate) fn read(request: &mut Request, body: bool) -> Result<Option<Box<Self>>, TemplateError> {
        let target = Template::read(&request.target, Braces::Target)?;
        let fields = request.fields.iter().map(|(name, value)| Ok((name.clone(), Template::read(value, Braces::Field)?)));
        let fields = fields.collect::<Result<Vec<_>, TemplateError>>()?;
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) if body => Some(Template::read(text, Braces::Content)?).filter(|template| template.fixed().is_none()),
            _ => None,
        };
        if let Some(fixed) = target.fixed() {
            fixed.clone_into(&mut request.target);
        }
        for ((_, value), (_, template)) in request.fields.iter_mut().zip(&fields) {
            if let Some(fixed) = template.fixed() {
                fixed.clone_into(value);
            }
        }
        let fixed = target.fixed().is_some() && body.is_none() && fields.iter().all(|(_, template)| template.fixed().is_some());
        Ok((!fixed).then(|| Box::new(Self { target, fields, body })))
    }
}

impl Class {
    /// Returns how many of these come at a moment, beside others.
    fn weight(&self, now: Duration) -> f64 {
        let Some(after) = self.arrivals.iter().position(|(at, _)| *at > now) else {
            return self.arrivals.last().map_or(1.0, |(_, weight)| *weight);
        };
        let Some(before) = after.checked_sub(1) else { return self.arrivals[0].1 };
        let ((begin, from), (end, to)) = (self.arrivals[before], self.arrivals[after]);
        let part = (now - begin).as_secs_f64() / (end - begin).as_secs_f64();
        from + (to - from) * part
    }
}

impl Behaviour {
    /// Chooses what kind of visitor comes at a moment.
    pub(super) fn class(&self, now: Duration, random: &mut fastrand::Rng) -> usize {
        if self.classes.len() < 2 {
            return 0;
        }
        let sum: f64 = self.classes.iter().map(|class| class.weight(now)).sum();
        let mut left = random.f64() * sum;
        for (at, class) in self.classes.iter().enumerate() {
            left -= class.weight(now);
            if left < 0.0 {
                return at;
            }
        }
        0
    }

    /// Returns the next request in the order of the set.
    pub(super) fn next_in_order(&self, requests: usize) -> Option<u32> {
        let next = self.in_order.as_ref()?.fetch_add(1, Ordering::Relaxed);
        u32::try_from(next % requests.max(1) as u64).ok()
    }

    /// Returns the validators of the last answer to a request.
    pub(super) fn validators(&self, request: u32) -> Option<Arc<Validators>> {
        self.validators.read().unwrap_or_else(PoisonError::into_inner).get(&request).cloned()
    }

    /// Remembers what an answer says.
    pub(super) fn learn(&self, request: u32, validators: Option<Validators>) {
        let Some(validators) = validators else { return };
        if self.validators(request).is_none_or(|known| *known != validators) {
            self.validators.write().unwrap_or_else(PoisonError::into_inner).insert(request, Arc::new(validators));
        }
    }

    /// Returns whether answers are searched for what belongs to other clients.
    #[must_use]
    pub const fn checks_leaks(&self) -> bool {
        self.leak.is_some()
    }

    /// Returns the shape of the crowd, if there is one: its name, and where it is from.
    #[must_use]
    pub fn shape(&self) -> Option<(&str, &[String])> {
        self.shape.as_ref().map(|(name, sources)| (name.as_str(), sources.as_slice()))
    }

    /// Returns the leaks that were found.
    #[must_use]
    pub fn leaks(&self) -> &Leaks {
        &self.leaks
    }

    /// Returns how many parts of pages were not asked, because they belong to other origins.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.library.left_out()
    }

    /// Returns whether a visitor keeps anything between requests.
    pub(super) fn has_state(&self) -> bool {
        self.cookies || self.leak.is_some() || self.classes.iter().flat_map(|class| &class.steps).any(|step| step.page)
    }
}
