//! The expression of `seawall log --where`: `status >= 500 or rule = cookie`.
//!
//! Comparisons of the fields of a [`RequestLine`], with `and`, `or`, `not` and parentheses. Text is compared without regard to the case of ASCII letters,
//! and `~` asks whether it contains something. Nothing in it can take long: a text is searched once for each comparison.

use std::ops::Range;

use admin_api::RequestLine;

use crate::facts::{CLASSES, RESULT_NAMES};

/// Bytes of the longest expression.
pub const EXPRESSION_BYTES_MAX: usize = 4_096;
/// The deepest nesting of parentheses and `not`.
const DEPTH_MAX: usize = 64;

/// An expression over the fields of a [`RequestLine`].
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(Expression);

/// Says what is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FilterError {
    /// The text about what is wrong, in a sentence without the place.
    pub message: String,
    /// The place in the expression, in bytes.
    pub at: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    /// A field of text, in small letters.
    Text(TextField, TextTest, String),
    Number(NumberField, NumberTest, u64),
    /// Whether a field has a value at all.
    Has(NumberField),
    Flag(FlagField),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TextTest {
    Is,
    Contains,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum NumberTest {
    Is,
    Less,
    LessOrIs,
    More,
    MoreOrIs,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TextField {
    Id,
    Trace,
    Site,
    Scheme,
    Host,
    Method,
    Path,
    Url,
    Result,
    Rule,
    Detail,
    Class,
    Agent,
    Referrer,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum NumberField {
    Number,
    At,
    Status,
    /// The version of HTTP in tenths.
    Version,
    Bytes,
    Micros,
    OriginMicros,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FlagField {
    Collapsed,
    Complete,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Text(TextField),
    Number(NumberField),
    /// A time that is written with its unit.
    Time(NumberField),
    Flag(FlagField),
}

/// The fields by their names, which are those of a line in JSON, and shorter ones.
const FIELDS: &[(&str, Field)] = &[
    ("status", Field::Number(NumberField::Status)),
    ("result", Field::Text(TextField::Result)),
    ("rule", Field::Text(TextField::Rule)),
    ("detail", Field::Text(TextField::Detail)),
    ("site", Field::Text(TextField::Site)),
    ("host", Field::Text(TextField::Host)),
    ("path", Field::Text(TextField::Path)),
    ("url", Field::Text(TextField::Url)),
    ("method", Field::Text(TextField::Method)),
    ("scheme", Field::Text(TextField::Scheme)),
    ("class", Field::Text(TextField::Class)),
    ("agent", Field::Text(TextField::Agent)),
    ("referrer", Field::Text(TextField::Referrer)),
    ("took", Field::Time(NumberField::Micros)),
    ("origin", Field::Time(NumberField::OriginMicros)),
    ("micros", Field::Number(NumberField::Micros)),
    ("origin_micros", Field::Number(NumberField::OriginMicros)),
    ("bytes", Field::Number(NumberField::Bytes)),
    ("version", Field::Number(NumberField::Version)),
    ("collapsed", Field::Flag(FlagField::Collapsed)),
    ("complete", Field::Flag(FlagField::Complete)),
    ("id", Field::Text(TextField::Id)),
    ("trace", Field::Text(TextField::Trace)),
    ("number", Field::Number(NumberField::Number)),
    ("at", Field::Number(NumberField::At)),
];

/// The comparisons, the longer ones first.
const OPERATORS: [&str; 8] = ["==", "!=", "<=", ">=", "=", "<", ">", "~"];

/// The characters of comparisons, and of what is taken for one elsewhere: `=~`, `=>`, `<>`.
const OPERATOR_CHARACTERS: [char; 5] = ['=', '!', '<', '>', '~'];

/// The remedy where comparisons are joined with something else.
const WORDS: &str = "The words are \"and\", \"or\" and \"not\".";

impl Filter {
    /// Reads an expression.
    ///
    /// # Errors
    /// The fault, and its place.
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        if expression.len() > EXPRESSION_BYTES_MAX {
            let message = format!("The expression has more than {EXPRESSION_BYTES_MAX} bytes.");
            return Err(FilterError { message, at: 0..expression.len() });
        }
        let mut parser = Parser { text: expression, at: 0 };
        parser.skip_space();
        if parser.rest().is_empty() {
            return Err(parser.error("The expression is empty; an example: status >= 500 or rule = cookie.", 0));
        }
        let parsed = parser.any(0)?;
        match parser.peek() {
            None => Ok(Self(parsed)),
            Some(")") => Err(parser.error("This parenthesis was not opened.", 1)),
            Some("&" | "|") => Err(parser.error(WORDS, parser.rest().len() - parser.rest().trim_start_matches(['&', '|']).len())),
            Some(word) => Err(parser.error("Two comparisons need \"and\" or \"or\" between them.", word.len())),
        }
    }

    /// Returns whether a request is one of those that the expression means.
    #[must_use]
    pub fn matches(&self, line: &RequestLine) -> bool {
        self.0.matches(line)
    }

    /// Returns the names of the fields, in the order in which a help text should have them.
    pub fn fields() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().map(|(name, _)| *name)
    }
}

impl Expression {
    fn matches(&self, line: &RequestLine) -> bool {
        match self {
            Self::All(all) => all.iter().all(|of| of.matches(line)),
            Self::Any(any) => any.iter().any(|of| of.matches(line)),
            Self::Not(not) => !not.matches(line),
            Self::Text(field, test, wanted) => field.with(line, |value| match test {
                TextTest::Is => value.eq_ignore_ascii_case(wanted),
                TextTest::Contains => value.to_ascii_lowercase().contains(wanted),
            }),
            Self::Number(field, test, wanted) => field.of(line).is_some_and(|value| match test {
                NumberTest::Is => value == *wanted,
                NumberTest::Less => value < *wanted,
                NumberTest::LessOrIs => value <= *wanted,
                NumberTest::More => value > *wanted,
                NumberTest::MoreOrIs => value >= *wanted,
            }),
            Self::Has(field) => field.of(line).is_some(),
            Self::Flag(FlagField::Collapsed) => line.collapsed,
            Self::Flag(FlagField::Complete) => line.complete,
        }
    }
}

impl TextField {
    fn with(self, line: &RequestLine, test: impl Fn(&str) -> bool) -> bool {
        test(match self {
            Self::Id => &line.id,
            Self::Trace => &line.trace,
            Self::Site => &line.site,
            Self::Scheme => &line.scheme,
            Self::Host => &line.host,
            Self::Method => &line.method,
            Self::Path => &line.path,
            Self::Url => return test(&format!("{}://{}{}", line.scheme, line.host, line.path)),
            Self::Result => &line.result,
            Self::Rule => &line.rule,
            Self::Detail => &line.detail,
            Self::Class => &line.class,
            Self::Agent => &line.agent,
            Self::Referrer => &line.referrer,
        })
    }

    /// Returns the only values that a field has, if they are known.
    const fn values(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Result => Some(&RESULT_NAMES),
            Self::Class => Some(&CLASSES),
            Self::Scheme => Some(&["https", "http"]),
            Self::Id
            | Self::Trace
            | Self::Site
            | Self::Host
            | Self::Method
            | Self::Path
            | Self::Url
            | Self::Rule
            | Self::Detail
            | Self::Agent
            | Self::Referrer => None,
        }
    }
}

impl NumberField {
    fn of(self, line: &RequestLine) -> Option<u64> {
        match self {
            Self::Number => Some(line.number),
            Self::At => Some(line.at),
            Self::Status => Some(u64::from(line.status)),
            Self::Version => tenths(&line.version),
            Self::Bytes => Some(line.bytes),
            Self::Micros => Some(line.micros),
            Self::OriginMicros => line.origin_micros,
        }
    }

    /// Returns the units that a value may have, and how much each of them is.
    const fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Bytes => {
                &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)]
            }
            Self::Micros | Self::OriginMicros => {
                &[("us", 1), ("µs", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000), ("min", 60_000_000)]
            }
            Self::Number | Self::At | Self::Status | Self::Version => &[],
        }
    }
}

/// Returns a version in tenths: `2` and `2.0` are 20.
fn tenths(version: &str) -> Option<u64> {
    let (whole, rest) = version.split_once('.').unwrap_or((version, "0"));
    match (whole.parse::<u64>(), rest.parse::<u64>()) {
        (Ok(whole), Ok(rest)) if rest < 10 && whole < 100 => Some(whole * 10 + rest),
        _ => None,
    }
}

/// Reads an expression from left to right.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Makes an error about the next bytes.
    fn error(&self, message: impl Into<String>, length: usize) -> FilterError {
        FilterError { message: message.into(), at: self.at..(self.at + length).min(self.text.len()) }
    }

    /// Returns the next word, parenthesis or operator without taking it.
    fn peek(&mut self) -> Option<&'a str> {
        self.skip_space();
        let rest = self.rest();
        let first = rest.chars().next()?;
        if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
            return Some(&rest[..operator.len()]);
        }
        if is_word(first) {
            return Some(&rest[..rest.find(|character| !is_word(character)).unwrap_or(rest.len())]);
        }
        Some(&rest[..first.len_utf8()])
    }

    /// Takes the next word if it is this one.
    fn take(&mut self, word: &str) -> bool {
        let is = self.peek().is_some_and(|next| next.eq_ignore_ascii_case(word));
        if is {
            self.at += word.len();
        }
        is
    }

    fn any(&mut self, depth: usize) -> Result<Expression, FilterError> {
        let mut parts = vec![self.all(depth)?];
        while self.take("or") {
            parts.push(self.all(depth)?);
        }
        Ok(one_or(parts, Expression::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Expression, FilterError> {
        let mut parts = vec![self.one(depth)?];
        while self.take("and") {
            parts.push(self.one(depth)?);
        }
        Ok(one_or(parts, Expression::All))
    }

    fn one(&mut self, depth: usize) -> Result<Expression, FilterError> {
        if depth > DEPTH_MAX {
            return Err(self.error("Parentheses are nested too deeply here.", 1));
        }
        if self.take("not") {
            return Ok(Expression::Not(Box::new(self.one(depth + 1)?)));
        }
        let start = {
            self.skip_space();
            self.at
        };
        if self.take("(") {
            let inner = self.any(depth + 1)?;
            if !self.take(")") {
                return Err(FilterError { message: "This parenthesis is not closed.".to_owned(), at: start..start + 1 });
            }
            return Ok(inner);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expression, FilterError> {
        let Some(name) = self.peek() else {
            return Err(self.error("The expression ends where a comparison should follow, such as status >= 500.", 0));
        };
        let field = FIELDS.iter().find(|(field, _)| name.eq_ignore_ascii_case(field)).map(|(_, field)| *field);
        let Some(field) = field else {
            let fields = Self::all_fields();
            let message = match name {
                "&" | "|" | "!" => WORDS.to_owned(),
                _ => format!("{name} is not a field. The fields are {fields}."),
            };
            return Err(self.error(message, name.len()));
        };
        self.at += name.len();
        self.skip_space();
        let rest = self.rest();
        let run = &rest[..rest.find(|character| !OPERATOR_CHARACTERS.contains(&character)).unwrap_or(rest.len())];
        if !run.is_empty() && !OPERATORS.contains(&run) {
            return Err(self.error(format!("{run} compares nothing: = != < <= > >= and ~ (contains) do."), run.len()));
        }
        let Some(operator) = OPERATORS.into_iter().find(|operator| *operator == run) else {
            // What is true or false can stand alone.
            if let Field::Flag(flag) = field {
                return Ok(Expression::Flag(flag));
            }
            let length = self.peek().map_or(0, str::len);
            return Err(self.error(format!("After {name} one of = != < <= > >= ~ has to follow."), length));
        };
        let operator_at = self.at..self.at + operator.len();
        self.at += operator.len();
        let operator = if operator == "==" { "=" } else { operator };
        let (value, value_at) = self.value()?;
        let at_operator = |message: String| FilterError { message, at: operator_at.clone() };
        let at_value = |message: String| FilterError { message, at: value_at.clone() };
        let is_not = operator == "!=";
        let compared = match field {
            Field::Text(field) => {
                let test = match operator {
                    "=" | "!=" => TextTest::Is,
                    "~" => TextTest::Contains,
                    _ => return Err(at_operator(format!("{name} is text: = != and ~ (contains) compare it."))),
                };
                let value = value.to_ascii_lowercase();
                if let (TextTest::Is, Some(values)) = (test, field.values())
                    && !values.contains(&value.as_str())
                {
                    return Err(at_value(format!("{name} is one of {}.", values.join(", "))));
                }
                Expression::Text(field, test, value)
            }
            Field::Number(number) | Field::Time(number) => {
                if number == NumberField::OriginMicros && value.eq_ignore_ascii_case("none") {
                    return match operator {
                        "=" => Ok(Expression::Not(Box::new(Expression::Has(number)))),
                        "!=" => Ok(Expression::Has(number)),
                        _ => Err(at_operator(format!("Only = and != compare {name} with none."))),
                    };
                }
                let test = match operator {
                    "=" | "!=" => NumberTest::Is,
                    "<" => NumberTest::Less,
                    "<=" => NumberTest::LessOrIs,
                    ">" => NumberTest::More,
                    ">=" => NumberTest::MoreOrIs,
                    _ => return Err(at_operator(format!("{name} is a number: = != < <= > >= compare it."))),
                };
                let value =
                    number_of(number, &value, matches!(field, Field::Time(_))).map_err(|why| at_value(why.replace("NAME", name)))?;
                Expression::Number(number, test, value)
            }
            Field::Flag(flag) => {
                let wanted = match value.to_ascii_lowercase().as_str() {
                    "true" | "yes" => true,
                    "false" | "no" => false,
                    _ => return Err(at_value(format!("{name} is true or false."))),
                };
                if operator != "=" && operator != "!=" {
                    return Err(at_operator(format!("{name} is true or false: = and != compare it.")));
                }
                if wanted { Expression::Flag(flag) } else { Expression::Not(Box::new(Expression::Flag(flag))) }
            }
        };
        Ok(if is_not { Expression::Not(Box::new(compared)) } else { compared })
    }

    fn all_fields() -> String {
        Filter::fields().collect::<Vec<_>>().join(", ")
    }

    /// Reads a value: to the next space or closing parenthesis, or in quotation marks of either kind, where `\` keeps the next character as it is.
    fn value(&mut self) -> Result<(String, Range<usize>), FilterError> {
        self.skip_space();
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Err(self.error("A value has to follow here.", 0)) };
        if first == '"' || first == '\'' {
            let (mut value, mut is_escaped) = (String::new(), false);
            for (at, character) in rest.char_indices().skip(1) {
                match character {
                    '\\' if !is_escaped => is_escaped = true,
                    _ if character == first && !is_escaped => {
                        self.at += at + 1;
                        return Ok((value, start..self.at));
                    }
                    _ => {
                        value.push(character);
                        is_escaped = false;
                    }
                }
            }
            return Err(self.error("This quotation mark is not closed.", 1));
        }
        if matches!(first, '“' | '”' | '„' | '‘' | '’' | '«' | '»') {
            return Err(self.error("Quotation marks are \" or ' here.", first.len_utf8()));
        }
        let end = rest.find(|character: char| character.is_whitespace() || character == ')').unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error("A value has to follow here; parentheses in it need quotation marks.", 1));
        }
        self.at += end;
        Ok((rest[..end].to_owned(), start..self.at))
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '-'
}

fn one_or(mut parts: Vec<Expression>, several: impl FnOnce(Vec<Expression>) -> Expression) -> Expression {
    if parts.len() == 1 { parts.remove(0) } else { several(parts) }
}

/// Reads a number with its unit. In an error, `NAME` stands for the name of the field.
fn number_of(field: NumberField, value: &str, needs_unit: bool) -> Result<u64, String> {
    if field == NumberField::Version {
        return tenths(value).ok_or_else(|| "NAME is 1.0, 1.1, 2 or 3.".to_owned());
    }
    let units = field.units();
    let end = value.find(|character: char| !character.is_ascii_digit() && character != '.' && character != '_').unwrap_or(value.len());
    let (digits, unit) = (value[..end].replace('_', ""), &value[end..]);
    let names = || units.iter().map(|(name, _)| *name).filter(|name| *name != "µs" && *name != "min").collect::<Vec<_>>().join(", ");
    let factor = match units.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name)) {
        Some((_, factor)) => *factor,
        None if unit.is_empty() && !needs_unit => 1,
        None if unit.is_empty() => {
            return Err(format!("NAME needs a unit ({}), as in {}ms.", names(), if digits.is_empty() { "500" } else { &digits }));
        }
        None if units.is_empty() => return Err(format!("NAME is a number, and {value} is not one.")),
        None => return Err(format!("The units of NAME are {}.", names())),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let wrong = || format!("NAME is a number, and {value} is not one.");
    let whole_number: u64 = if whole.is_empty() && !fraction.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    let mut sum = whole_number.checked_mul(factor).ok_or_else(wrong)?;
    if digits.contains('.') {
        let places = u32::try_from(fraction.len()).ok().filter(|places| (1..=9).contains(places)).ok_or_else(wrong)?;
        let tenths: u64 = fraction.parse().map_err(|_| wrong())?;
        let parts = u128::from(tenths) * u128::from(factor);
        if parts % 10_u128.pow(places) != 0 {
            return Err(format!("{value} is finer than NAME is counted."));
        }
        sum = sum.checked_add(u64::try_from(parts / 10_u128.pow(places)).map_err(|_| wrong())?).ok_or_else(wrong)?;
    }
    Ok(sum)
}

impl FilterError {
    /// Returns the expression with the place marked below it, in two lines, and the message in a third.
    #[must_use]
    pub fn shown(&self, expression: &str) -> String {
        let visible = |text: &str| text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect::<String>();
        let at = |place: usize| expression.get(..place).map_or(0, |before| before.chars().count());
        let marks = "^".repeat(at(self.at.end).saturating_sub(at(self.at.start)).max(1));
        format!("  {}\n  {}{marks}\n{}", visible(expression), " ".repeat(at(self.at.start)), self.message)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line() -> RequestLine {
        RequestLine {
            number: 7,
            at: 1_000,
            id: "0a1b".into(),
            site: "blog".into(),
            scheme: "https".into(),
            host: "blog.example".into(),
            method: "GET".into(),
            path: "/cart/?add-to-cart=…".into(),
            version: "2.0".into(),
            status: 503,
            result: "bypass".into(),
            rule: "php-session".into(),
            detail: "PHPSESSID".into(),
            class: "document".into(),
            complete: true,
            bytes: 20_480,
            micros: 1_500_000,
            origin_micros: Some(1_400_000),
            agent: "Chrome".into(),
            ..RequestLine::default()
        }
    }

    #[test]
    fn an_expression_chooses_requests_by_their_fields() {
        for (expression, expected) in [
            ("status >= 500 or rule = cookie", true),
            ("status >= 500 and rule = cookie", false),
            ("status=503", true),
            ("status == 503", true),
            // As in most languages: = and == are one, and so are the two kinds of quotation marks.
            ("rule == php-session", true),
            ("rule==php-session", true),
            ("rule == 'php-session'", true),
            ("rule = \"php-session\"", true),
            ("rule = 'php-session'", true),
            ("rule == cookie or rule == 'no-store'", false),
            ("status == '503'", true),
            ("status != 503", false),
            ("status < 503", false),
            ("status <= 503 and status > 502", true),
            ("rule = PHP-Session", true),
            ("detail ~ sess", true),
            ("path ~ \"/cart/\"", true),
            ("path = '/cart/?add-to-cart=…'", true),
            ("path = /cart/?add-to-cart=…", true),
            ("url = https://blog.example/cart/?add-to-cart=…", true),
            ("method = get and scheme = https", true),
            // `and` binds closer than `or`, and `not` closest.
            ("rule = x and rule = x or status = 503", true),
            ("rule = x and (rule = x or status = 503)", false),
            ("not rule = x and status = 503", true),
            ("not (rule = x or status = 503)", false),
            ("NOT NOT status = 503", true),
            ("took > 1s", true),
            ("took > 1.5s", false),
            ("took >= 1.5s", true),
            ("took = 1500ms", true),
            ("micros = 1_500_000", true),
            ("micros > 1.4s", true),
            ("origin < 2s", true),
            ("origin = none", false),
            ("origin != none", true),
            ("origin_micros >= 1400000us", true),
            ("bytes = 20KiB", true),
            ("bytes >= 20.48kB", true),
            ("bytes > 1MB", false),
            ("version >= 2", true),
            ("version = 1.1", false),
            ("complete", true),
            ("not collapsed", true),
            ("collapsed = no", true),
            ("complete != true", false),
            ("trace = \"\"", true),
            ("referrer != ''", false),
            ("site = blog and class = document", true),
        ] {
            let filter = Filter::parse(expression).unwrap_or_else(|error| panic!("{}", error.shown(expression)));
            assert_eq!(filter.matches(&line()), expected, "{expression}");
        }
    }

    #[test]
    fn what_was_not_asked_of_the_origin_has_no_time_there() {
        let line = RequestLine { origin_micros: None, ..line() };
        for (expression, expected) in [("origin < 1s", false), ("origin >= 0s", false), ("origin = none", true), ("origin != 1s", true)] {
            assert_eq!(Filter::parse(expression).map(|filter| filter.matches(&line)), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_points_at_the_place() {
        for (expression, marked, message) in [
            ("", "", "The expression is empty; an example: status >= 500 or rule = cookie."),
            ("status >= x", "x", "status is a number, and x is not one."),
            ("status ~ 5", "~", "status is a number: = != < <= > >= compare it."),
            ("path < /a", "<", "path is text: = != and ~ (contains) compare it."),
            ("stauts = 5", "stauts", "stauts is not a field. The fields are"),
            ("status = 5 rule = a", "rule", "Two comparisons need \"and\" or \"or\" between them."),
            ("status = 5 && rule = a", "&&", "The words are \"and\", \"or\" and \"not\"."),
            ("status = 5 || rule = a", "||", "The words are \"and\", \"or\" and \"not\"."),
            ("!complete", "!", "The words are \"and\", \"or\" and \"not\"."),
            ("path =~ /a", "=~", "=~ compares nothing: = != < <= > >= and ~ (contains) do."),
            ("status => 500", "=>", "=> compares nothing: = != < <= > >= and ~ (contains) do."),
            ("rule === a", "===", "=== compares nothing: = != < <= > >= and ~ (contains) do."),
            ("rule !~ a", "!~", "!~ compares nothing: = != < <= > >= and ~ (contains) do."),
            ("rule == ~a b", "b", "Two comparisons need \"and\" or \"or\" between them."),
            ("rule = “cookie”", "“", "Quotation marks are \" or ' here."),
            ("rule == 'cookie", "'", "This quotation mark is not closed."),
            ("result == mis", "mis", "result is one of hit,"),
            ("path == 'a' 'b'", "'", "Two comparisons need \"and\" or \"or\" between them."),
            ("status == ~", "~", "status is a number, and ~ is not one."),
            ("(status = 5", "(", "This parenthesis is not closed."),
            ("status = 5)", ")", "This parenthesis was not opened."),
            ("status = 5 or", "", "The expression ends where a comparison should follow"),
            ("status", "", "After status one of = != < <= > >= ~ has to follow."),
            ("status 5", "5", "After status one of = != < <= > >= ~ has to follow."),
            ("path = \"a", "\"", "This quotation mark is not closed."),
            ("took > 500", "500", "took needs a unit (us, ms, s, m), as in 500ms."),
            ("took > 5h", "5h", "The units of took are us, ms, s, m."),
            ("bytes > 10k", "10k", "The units of bytes are B, kB, MB, GB, KiB, MiB, GiB."),
            ("micros = 1.5", "1.5", "1.5 is finer than micros is counted."),
            ("result = mis", "mis", "result is one of hit, updating, stale, revalidated, expired, miss, bypass, refused, none."),
            ("complete = maybe", "maybe", "complete is true or false."),
            ("status =", "", "A value has to follow here."),
            ("origin > none", ">", "Only = and != compare origin with none."),
            ("version = 2.x", "2.x", "version is 1.0, 1.1, 2 or 3."),
        ] {
            let error = Filter::parse(expression).expect_err(expression);
            assert_eq!(&expression[error.at.clone()], marked, "{expression}: {error}");
            assert!(error.message.starts_with(message), "{expression}: {error}");
        }
        let shown = Filter::parse("é = 5 or x").expect_err("no field").shown("é = 5 or x");
        assert!(shown.starts_with("  é = 5 or x\n  ^\n"), "{shown}");
    }

    #[test]
    fn an_expression_has_bounds() {
        assert!(Filter::parse(&"(".repeat(EXPRESSION_BYTES_MAX)).is_err());
        assert!(Filter::parse(&"not ".repeat(EXPRESSION_BYTES_MAX / 4)).is_err());
        assert!(Filter::parse(&"x".repeat(EXPRESSION_BYTES_MAX + 1)).is_err());
        let long = vec!["status = 1"; 250].join(" or ");
        assert!(Filter::parse(&long).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_an_expression_or_an_error_with_a_place(text in any::<String>()) {
            if let Err(error) = Filter::parse(&text) {
                prop_assert!(text.get(error.at.clone()).is_some());
                let _ = error.shown(&text);
            }
        }

        #[test]
        fn any_words_of_the_language_are_an_expression_or_an_error(
            words in prop::collection::vec(prop::sample::select(vec!["status", "rule", "took", "and", "or", "not", "(", ")", "=", ">", "~", "5", "5ms", "\"a\"", "complete"]), 0..20)
        ) {
            let text = words.join(" ");
            if let Ok(filter) = Filter::parse(&text) {
                let _ = filter.matches(&line());
            }
        }

        /// A text in quotation marks is found as it is, whatever is in it.
        #[test]
        fn a_quoted_value_is_taken_as_it_is(path in "[^\\p{C}]{0,30}") {
            let quoted = path.replace('\\', "\\\\").replace('"', "\\\"");
            let filter = Filter::parse(&format!("path = \"{quoted}\"")).expect("a comparison");
            let matches = filter.matches(&RequestLine { path, ..RequestLine::default() });
            prop_assert!(matches);
        }
    }
}
