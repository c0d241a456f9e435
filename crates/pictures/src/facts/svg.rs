//! SVG: the attributes of its first element. No entity is expanded, and nothing is drawn.

use std::io::{Read, Seek};

use super::{Facts, Format, head::Head};
use crate::fault::Fault;

/// The first element begins within so many bytes: behind comments of the program that drew it.
const HEAD_BYTES: u64 = 64 * 1024;

/// Sizes above are mistakes.
const SIDE_MAX: f64 = 1e6;

pub(super) fn read<R: Read + Seek>(head: &mut Head<R>) -> Result<Facts, Fault> {
    let start = head.peek(HEAD_BYTES)?;
    let text = String::from_utf8_lossy(&start);
    let element = element(&text).ok_or(Fault::Unknown)?;
    let attribute = |name: &str| attributes(element).find(|(other, _)| *other == name).map(|(_, value)| value.trim());
    let (width, height) = (attribute("width").and_then(pixels), attribute("height").and_then(pixels));
    let view = attribute("viewBox").and_then(view);
    let (width, height) = match (width, height, view) {
        (Some(width), Some(height), _) => (width, height),
        (Some(width), None, Some(view)) => (width, width / view.0 * view.1),
        (None, Some(height), Some(view)) => (height / view.1 * view.0, height),
        (None, None, Some(view)) => view,
        _ => return Err(Fault::NoSize),
    };
    Ok(Facts { alpha: true, ..Facts::plain(Format::Svg, whole(width), whole(height)) })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
fn whole(number: f64) -> u32 {
    number.round().clamp(1.0, SIDE_MAX) as u32
}

/// Returns what stands in the tag of the first element, if that is `svg`.
fn element(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->")?.1.trim_start();
        } else if let Some(instruction) = rest.strip_prefix("<?") {
            rest = instruction.split_once("?>")?.1.trim_start();
        } else if let Some(declaration) = rest.strip_prefix("<!") {
            // What is declared inside is passed over.
            let end = declaration.find(['>', '['])?;
            let after = &declaration[end..];
            let after = if after.starts_with('[') { after.split_once(']')?.1.split_once('>')?.1 } else { &after[1..] };
            rest = after.trim_start();
        } else {
            let tag = rest.strip_prefix("<svg:svg").or_else(|| rest.strip_prefix("<svg"))?;
            return tag.starts_with(|c: char| c.is_whitespace() || c == '>' || c == '/').then_some(tag);
        }
    }
}

/// Lists the attributes at the beginning of `tag`.
fn attributes(mut tag: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let rest = tag.trim_start();
        let end = rest.find(|c: char| c == '=' || c == '>' || c == '<' || c == '/' || c.is_whitespace())?;
        let (name, rest) = rest.split_at(end);
        let rest = rest.trim_start().strip_prefix('=')?.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, rest) = rest[1..].split_once(quote)?;
        tag = rest;
        Some((name, value))
    })
}

/// Reads a length that does not depend on what is around it (CSS Values §6.2).
fn pixels(value: &str) -> Option<f64> {
    let end = value.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E' || c == '%').unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let scale = match unit.trim() {
        "" | "px" => 1.0,
        "pt" => 96.0 / 72.0,
        "pc" => 16.0,
        "in" => 96.0,
        "cm" => 96.0 / 2.54,
        "mm" => 96.0 / 25.4,
        _ => return None,
    };
    number.trim().parse::<f64>().ok().map(|number| number * scale).filter(|&number| number > 0.0 && number <= SIDE_MAX)
}

fn view(value: &str) -> Option<(f64, f64)> {
    let mut numbers = value.split([' ', ',', '\t', '\n', '\r']).filter(|part| !part.is_empty()).map(|part| part.parse::<f64>().ok());
    let (_, _, width, height) = (numbers.next()??, numbers.next()??, numbers.next()??, numbers.next()??);
    let is_size = |side: f64| side > 0.0 && side <= SIDE_MAX;
    (is_size(width) && is_size(height)).then_some((width, height))
}
