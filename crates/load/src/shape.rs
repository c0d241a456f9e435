//! Shapes of crowds: who comes when, and what they ask.
//!
//! A shape is a TOML file. Some are built in ([`NAMES`]), and users write their own. It has `[[class]]`es of visitors, each with its share of all
//! arrivals, a course over time, fields, and the `[[class.step]]`s of a visit. A visitor makes one visit on connections of its own: a page that somebody
//! opens minutes later is another arrival. Whatever number stands in a shape is either that of a `[[source]]`, or said to be assumed.
//!
//! ```toml
//! name = "mine"
//! about = "What it is, in a sentence"
//! peak = 20.0                      # arrivals a second at the peak; --peak overrides it
//! over = "10m"                     # how long they come: s, m or h; --over overrides it
//!
//! [[source]]                       # any number of them
//! title = "Who: what"
//! url = "https://..."
//! says = "The numbers"
//!
//! [[class]]
//! name = "readers"
//! share = 0.9                      # of all arrivals
//! why = "where this comes from"
//! arrivals = [[0.0, 0.1], [0.2, 1.0], [1.0, 0.2]]  # part of the time, part of the class's own peak; straight lines between; none: even
//! fields = ["User-Agent: x"]       # with placeholders; fields of the command line go first
//! cookies = true                   # take cookies and send them back
//!
//! [[class.step]]
//! ask = "first"                    # the first URL of the command line; "any": one of all, by weight; "/path": this one of the first URL's server
//! method = "GET"
//! query = "utm_id={unique}"        # behind the URL's own query
//! page = false                     # with all that belongs to the page
//! conditional = false              # as by someone who has an earlier answer
//! times = [0, 2]                   # how often, at least and at most; a number: so often; none: once
//! ```

use std::{fmt::Write as _, fs, path::Path, time::Duration};

use serde::Deserialize;

use crate::requests::{Class, Request, RequestOptions, RequestOptionsError, Step, Templates, Url, read_field};
use crate::schedule::{Profile, Schedule, Spacing};

/// The shapes that are built in.
pub const NAMES: [&str; 5] = ["hacker-news", "newsletter", "fediverse", "crawler", "feed-readers"];

/// The largest file.
const BYTES_MAX: u64 = 1 << 20;

/// The most classes of a shape, steps of a class, points of a course.
const PARTS_MAX: usize = 100;

/// The most times that a step is done.
const TIMES_MAX: u32 = 1000;

/// The shape of a crowd.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// The name of the shape.
    pub name: String,
    /// The description of the shape.
    pub about: String,
    /// Arrivals a second at the peak.
    pub peak: f64,
    over: String,
    #[serde(default, rename = "source")]
    sources: Vec<Source>,
    #[serde(rename = "class")]
    classes: Vec<ClassFile>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    title: String,
    url: String,
    says: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassFile {
    name: String,
    share: f64,
    #[serde(default)]
    why: String,
    #[serde(default)]
    arrivals: Vec<(f64, f64)>,
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default)]
    cookies: bool,
    #[serde(rename = "step")]
    steps: Vec<StepFile>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    ask: String,
    method: Option<String>,
    query: Option<String>,
    #[serde(default)]
    page: bool,
    #[serde(default)]
    conditional: bool,
    times: Option<Times>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Times {
    Always(u32),
    Between(u32, u32),
}

impl Times {
    const fn bounds(self) -> (u32, u32) {
        match self {
            Self::Always(times) => (times, times),
            Self::Between(least, most) => (least, most),
        }
    }
}

/// The reason why a text is not a shape.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// There is none of that name.
    #[error("there is no shape {0:?}: there are {names}, and files of your own (with a / or a .toml in the name)", names = NAMES.join(", "))]
    Unknown(String),
    /// The file cannot be read.
    #[error("{0}: cannot be read")]
    Read(String, #[source] std::io::Error),
    /// The file is too large.
    #[error("{0}: a shape has at most {BYTES_MAX} bytes")]
    TooLarge(String),
    /// The file is not a shape.
    #[error("{0}: {1}")]
    Toml(String, String),
    /// A value makes no sense.
    #[error("{0}: {1}")]
    Value(String, String),
}

impl Shape {
    /// Names where its figures are from.
    #[must_use]
    pub fn sources(&self) -> Vec<String> {
        self.sources.iter().map(|source| format!("{}, {}", source.title, source.url)).collect()
    }

    /// Reads a built-in shape by its name, or a file by its path.
    ///
    /// # Errors
    /// When there is no such shape, or the file is none.
    pub fn load(name: &str) -> Result<Self, ShapeError> {
        if let Some(text) = built_in(name) {
            return Self::read(name, text);
        }
        let path = Path::new(name);
        if !name.contains('/') && path.extension().is_none_or(|extension| extension != "toml") {
            return Err(ShapeError::Unknown(name.to_owned()));
        }
        let error = |error| ShapeError::Read(name.to_owned(), error);
        if fs::metadata(path).map_err(error)?.len() > BYTES_MAX {
            return Err(ShapeError::TooLarge(name.to_owned()));
        }
        Self::read(name, &fs::read_to_string(path).map_err(error)?)
    }

    fn read(file: &str, text: &str) -> Result<Self, ShapeError> {
        let shape: Self =
            toml::from_str(text).map_err(|error| ShapeError::Toml(file.to_owned(), error.to_string().trim_end().to_owned()))?;
        shape.check().map_err(|what| ShapeError::Value(file.to_owned(), what))?;
        Ok(shape)
    }

    fn check(&self) -> Result<(), String> {
        let above = |value: f64| value.is_finite() && value > 0.0;
        let need = |holds: bool, what: String| if holds { Ok(()) } else { Err(what) };
        need(above(self.peak), format!("peak = {}: it must be above 0", self.peak))?;
        need(read_time(&self.over).is_some(), format!("over = {:?}: write a time like \"60s\", \"10m\" or \"2h\"", self.over))?;
        need((1..=PARTS_MAX).contains(&self.classes.len()), format!("there are {} classes: 1 to {PARTS_MAX}", self.classes.len()))?;
        for class in &self.classes {
            let name = &class.name;
            need(above(class.share), format!("class {name:?}: share = {}: it must be above 0", class.share))?;
            need(
                (1..=PARTS_MAX).contains(&class.steps.len()),
                format!("class {name:?}: there are {} steps: 1 to {PARTS_MAX}", class.steps.len()),
            )?;
            need(class.arrivals.len() <= PARTS_MAX, format!("class {name:?}: there are more than {PARTS_MAX} points in arrivals"))?;
            let valid = class.arrivals.iter().all(|(at, value)| (0.0..=1.0).contains(at) && value.is_finite() && *value >= 0.0);
            let ordered = class.arrivals.windows(2).all(|pair| pair[0].0 < pair[1].0);
            let whole = class.arrivals.is_empty() || class.arrivals[0].0 == 0.0 && area(&class.arrivals) > 0.0;
            need(
                valid && ordered && whole,
                format!("class {name:?}: arrivals are points [part of the time, value], from 0.0, in order, and not all 0"),
            )?;
            for field in &class.fields {
                read_field(field).map_err(|error| format!("class {name:?}: {error}"))?;
            }
            for step in &class.steps {
                let known = matches!(step.ask.as_str(), "first" | "any") || step.ask.starts_with('/');
                need(known, format!("class {name:?}: ask = {:?}: write \"first\", \"any\" or a path", step.ask))?;
                let method = step.method.as_deref().unwrap_or("GET");
                need(matches!(method, "GET" | "HEAD" | "OPTIONS"), format!("class {name:?}: method = {method:?}: GET, HEAD or OPTIONS"))?;
                need(!step.page || method == "GET", format!("class {name:?}: a page is asked with GET"))?;
                let (least, most) = step.times.map_or((1, 1), Times::bounds);
                need(least <= most && most <= TIMES_MAX, format!("class {name:?}: times: [least, most], at most {TIMES_MAX}"))?;
            }
            let idle = class.steps.iter().all(|step| step.times.is_some_and(|times| times.bounds().0 == 0));
            need(!idle, format!("class {name:?}: one step is to be done each time: its visitors might ask nothing"))?;
        }
        Ok(())
    }

    /// Returns how long the crowd comes, unless somebody says otherwise.
    #[must_use]
    pub fn over(&self) -> Duration {
        read_time(&self.over).expect("it was read before")
    }

    /// Returns the arrivals a second, all classes together: moments and rates with straight lines between. `peak` and `over` replace the shape's own.
    #[must_use]
    pub fn arrivals(&self, peak: Option<f64>, over: Option<Duration>) -> Vec<(Duration, f64)> {
        let over = over.unwrap_or_else(|| self.over());
        let mut moments: Vec<f64> =
            self.classes.iter().flat_map(|class| class.arrivals.iter().map(|(at, _)| *at)).chain([0.0, 1.0]).collect();
        moments.sort_by(f64::total_cmp);
        moments.dedup();
        let rates: Vec<f64> = moments.iter().map(|at| self.classes.iter().map(|class| class.rate(*at)).sum()).collect();
        let most = rates.iter().copied().fold(0.0, f64::max);
        let scale = peak.unwrap_or(self.peak) / most;
        moments.iter().zip(rates).map(|(at, rate)| (over.mul_f64(*at), rate * scale)).collect()
    }

    /// Returns the schedule of all visitors: each comes on connections of their own, independent of each other. `peak` and `over` replace the shape's own.
    #[must_use]
    pub fn schedule(&self, peak: Option<f64>, over: Option<Duration>) -> Schedule {
        Schedule::Arrivals { rate: Profile::through(&self.arrivals(peak, over)), spacing: Spacing::Poisson }
    }

    /// Returns whether some visitors take cookies.
    #[must_use]
    pub fn has_cookies(&self) -> bool {
        self.classes.iter().any(|class| class.cookies)
    }

    /// Returns whether some visitors ask for pages with all that belongs to them.
    #[must_use]
    pub fn has_pages(&self) -> bool {
        self.classes.iter().flat_map(|class| &class.steps).any(|step| step.page)
    }

    /// Returns whether some visitors ask for any of the site's pages, so that all of them should be known.
    #[must_use]
    pub fn walks(&self) -> bool {
        self.classes.iter().flat_map(|class| &class.steps).any(|step| step.ask == "any")
    }

    /// Says what the shape is, and where its numbers come from.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = format!("{}: {}\n\nUp to {} arrivals a second over {}. They are:\n", self.name, self.about, self.peak, self.over);
        let sum: f64 = self.classes.iter().map(|class| class.share).sum();
        for class in &self.classes {
            let why = if class.why.is_empty() { "no reason is given" } else { &class.why };
            let _ = writeln!(text, "  {:.0} % {} ({why})", class.share / sum * 100.0, class.name);
            for step in &class.steps {
                let what = match step.ask.as_str() {
                    "first" => "the first URL",
                    "any" => "one of the URLs",
                    path => path,
                };
                let times = match step.times.map(Times::bounds) {
                    None | Some((1, 1)) => String::new(),
                    Some((least, most)) if least == most => format!(", {least} times"),
                    Some((least, most)) => format!(", {least} to {most} times"),
                };
                let query = step.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
                let method = step.method.as_deref().unwrap_or("GET");
                let page = if step.page { ", with all that belongs to the page" } else { "" };
                let conditional = if step.conditional { ", with the validators of an earlier answer" } else { "" };
                let _ = writeln!(text, "    {method} {what}{query}{page}{conditional}{times}");
            }
        }
        if !self.sources.is_empty() {
            text.push_str("\nSources:\n");
        }
        for source in &self.sources {
            let _ = writeln!(text, "  {}\n    {}\n    {}", source.title, source.url, source.says);
        }
        text
    }

    /// Makes the classes of visitors, and adds what they ask to the requests.
    pub(crate) fn classes(
        &self,
        asking: &RequestOptions,
        requests: &mut Vec<Request>,
        templates: &mut Vec<Option<Box<Templates>>>,
    ) -> Result<Vec<Class>, RequestOptionsError> {
        let given = asking.fields.iter().map(|field| read_field(field)).collect::<Result<Vec<_>, _>>()?;
        let over = asking.over.unwrap_or_else(|| self.over());
        let all = requests.len();
        let mut classes = Vec::new();
        for class in &self.classes {
            let mut fields = class.fields.iter().map(|field| read_field(field)).collect::<Result<Vec<_>, _>>()?;
            fields.retain(|(name, _)| !given.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
            fields.extend(given.iter().filter(|(_, value)| !value.is_empty()).cloned());
            let mut steps = Vec::new();
            for step in &class.steps {
                let bases = if step.ask == "any" { 0..all } else { 0..1 };
                let first = u32::try_from(requests.len()).unwrap_or(u32::MAX);
                for base in bases {
                    let base = &requests[base];
                    let mut request =
                        Request { method: step.method.clone().unwrap_or_else(|| "GET".to_owned()), fields: fields.clone(), ..base.clone() };
                    if step.ask.starts_with('/') {
                        request.target = Url::read_with_placeholders(&format!("http://path{}", step.ask))?.target;
                    }
                    if let Some(query) = &step.query {
                        request.target.push(if request.target.contains('?') { '&' } else { '?' });
                        request.target.push_str(query);
                    }
                    templates.push(Templates::read(&mut request, false)?);
                    requests.push(request);
                }
                let last = u32::try_from(requests.len()).unwrap_or(u32::MAX);
                let times = step.times.map_or((1, 1), Times::bounds);
                steps.push(Step { page: step.page, conditional: step.conditional, times, ..Step::of((first..last).collect(), requests) });
            }
            let points: &[(f64, f64)] = if class.arrivals.is_empty() { &[(0.0, 1.0)] } else { &class.arrivals };
            let arrivals = points.iter().map(|(at, _)| (over.mul_f64(*at), class.rate(*at))).collect();
            classes.push(Class { arrivals, steps });
        }
        Ok(classes)
    }
}

impl ClassFile {
    /// Arrivals at a part of the time, so that all of them together are the class's share.
    fn rate(&self, at: f64) -> f64 {
        if self.arrivals.is_empty() {
            return self.share;
        }
        self.share * value(&self.arrivals, at) / area(&self.arrivals)
    }
}

/// Returns the value at a part of the time. What stands last stays.
fn value(points: &[(f64, f64)], at: f64) -> f64 {
    let Some(after) = points.iter().position(|(other, _)| *other > at) else { return points.last().map_or(0.0, |point| point.1) };
    let Some(before) = after.checked_sub(1) else { return points[0].1 };
    let ((begin, from), (end, to)) = (points[before], points[after]);
    from + (to - from) * (at - begin) / (end - begin)
}

fn area(points: &[(f64, f64)]) -> f64 {
    let rest = points.last().map_or(0.0, |(at, value)| (1.0 - at) * value);
    points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum::<f64>() + rest
}

fn read_time(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..unit].trim().parse().ok()?;
    let seconds = match &text[unit..] {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    (number > 0.0 && number < 1e6).then(|| Duration::from_secs_f64(number * seconds))
}

fn built_in(name: &str) -> Option<&'static str> {
    Some(match name {
        "hacker-news" => include_str!("../shapes/hacker-news.toml"),
        "newsletter" => include_str!("../shapes/newsletter.toml"),
        "fediverse" => include_str!("../shapes/fediverse.toml"),
        "crawler" => include_str!("../shapes/crawler.toml"),
        "feed-readers" => include_str!("../shapes/feed-readers.toml"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_shapes_are_valid_and_name_their_sources() {
        for name in NAMES {
            let shape = Shape::load(name).expect(name);
            assert_eq!(shape.name, name);
            assert!(!shape.sources.is_empty() && shape.classes.iter().all(|class| !class.why.is_empty()), "{name}");
            let explained = shape.explain();
            assert!(shape.sources.iter().all(|source| explained.contains(&source.url)), "{explained}");
            let asking = RequestOptions { urls: vec!["http://h/post?a=b".to_owned()], shape: Some(shape), ..RequestOptions::default() };
            asking.set().expect(name);
        }
    }

    #[test]
    fn arrivals_reach_the_peak_once_and_last_as_long_as_asked() {
        for name in NAMES {
            let shape = Shape::load(name).expect(name);
            let points = shape.arrivals(Some(100.0), Some(Duration::from_secs(60)));
            let most = points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
            assert!((most - 100.0).abs() < 1e-9, "{name}: {points:?}");
            assert_eq!((points[0].0, points.last().expect("points").0), (Duration::ZERO, Duration::from_secs(60)), "{name}");
            assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0), "{name}");
            let Schedule::Arrivals { rate, spacing: Spacing::Poisson } = shape.schedule(Some(100.0), Some(Duration::from_secs(60))) else {
                panic!("{name} is an open schedule");
            };
            assert_eq!(rate.end(), Some(Duration::from_secs(60)), "{name}");
            assert!(points.iter().all(|(at, value)| (rate.value(*at) - value).abs() < 1e-6), "{name}");
        }
        let shape = Shape::load("fediverse").expect("built in");
        assert_eq!(shape.arrivals(None, None).last().expect("points").0, Duration::from_secs(60));
    }

    /// Two classes of equal shares: one comes in the first half of the time alone, so there it is all that its area gives.
    #[test]
    fn the_courses_of_classes_add_up_to_their_shares() {
        let text = "name='x'\nabout='x'\npeak=3.0\nover='100s'\n[[class]]\nname='a'\nshare=0.5\narrivals=[[0.0,1.0],[0.5,1.0],[0.50001,0.0],[1.0,0.0]]\n\
                    [[class.step]]\nask='first'\n[[class]]\nname='b'\nshare=0.5\n[[class.step]]\nask='/b'\n";
        let shape = Shape::read("x.toml", text).expect("valid");
        // a: 0.5 / 0.5 = 1 in the first half; b: 0.5 all the time. 1.5 stands for the peak of 3.
        let points = shape.arrivals(None, None);
        assert!((points[0].1 - 3.0).abs() < 1e-3 && (points.last().expect("points").1 - 1.0).abs() < 1e-3, "{points:?}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        const GOOD: &str = "name='x'\nabout='x'\npeak=1.0\nover='1m'\n[[class]]\nname='a'\nshare=1.0\n[[class.step]]\nask='first'\n";
        assert!(Shape::read("x.toml", GOOD).is_ok());
        for (from, to, part) in [
            ("share=1.0", "shaer=1.0", "line 7"),
            ("share=1.0", "shaer=1.0", "shaer"),
            ("share=1.0", "share=0.0", "class \"a\": share = 0"),
            ("share=1.0", "share='a'", "line 7"),
            ("peak=1.0", "peak=-1.0", "it must be above 0"),
            ("over='1m'", "over='1 week'", "write a time like"),
            ("ask='first'", "ask='last'", "write \"first\""),
            ("ask='first'", "ask='first'\nmethod='POST'", "GET, HEAD or OPTIONS"),
            ("ask='first'", "ask='first'\ntimes=0", "might ask nothing"),
            ("ask='first'", "ask='first'\ntimes=[3,1]", "[least, most]"),
            ("ask='first'", "ask='first'\npage=true\nmethod='HEAD'", "a page is asked with GET"),
            ("share=1.0", "share=1.0\narrivals=[[0.5,1.0],[0.1,1.0]]", "arrivals are points"),
            ("share=1.0", "share=1.0\nfields=['nothing']", "is not a field"),
            ("share=1.0", "share=1.0\nfields=['Host: x']", "Host cannot be given"),
        ] {
            let error = Shape::read("x.toml", &GOOD.replace(from, to)).expect_err(to).to_string();
            assert!(error.starts_with("x.toml: ") && error.contains(part), "{to}: {error}");
        }
        assert!(Shape::load("slashdot").expect_err("none").to_string().contains("there are hacker-news, newsletter"));
        assert!(Shape::load("./none.toml").expect_err("none").to_string().contains("./none.toml: cannot be read"));
    }
}
