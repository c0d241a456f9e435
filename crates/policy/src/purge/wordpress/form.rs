//! The form in the content of a request, as PHP reads it.
//!
//! A stranger must not have Seawall read another form than PHP does. So a form in parts is understood where it is written as browsers and curl
//! write it. Whatever else PHP makes sense of, and what was not seen to its end, is not known.

use http::header;

use super::{WriteAnswer, parameters};
use crate::pass::php_name;

/// The most fields of a form of which PHP reads all (`max_input_vars`).
const FIELDS_MAX: usize = 1_000;
/// The most parts of a form of which PHP reads all, files among them (`max_multipart_body_parts`: 1,020 unless it is set).
const PARTS_MAX: usize = FIELDS_MAX;
/// The most bytes of a line of a part's head that are surely one line for PHP: it takes byte 5,121 for the beginning of the next one.
const HEAD_LINE_BYTES_MAX: usize = 4_096;

/// Returns the fields of the form in a request's content, in their order, with their names as PHP has them. `None`: they are not known.
pub(super) fn fields(answer: &WriteAnswer<'_>) -> Option<Vec<(String, String)>> {
    let mut types = answer.request.get_all(header::CONTENT_TYPE).iter();
    let (Some(content), Some(content_type)) = (answer.content, types.next()) else { return Some(Vec::new()) };
    let content_type = content_type.to_str().ok().filter(|_| types.next().is_none())?;
    let media_type = content_type.split([';', ',', ' ']).next().unwrap_or_default().to_ascii_lowercase();
    let parameters_of_type = &content_type[media_type.len()..];
    let fields = match media_type.as_str() {
        "application/x-www-form-urlencoded" if content.is_whole => parameters(&String::from_utf8_lossy(content.bytes)).collect(),
        "multipart/form-data" if content.is_whole => parts(content.bytes, boundary(parameters_of_type)?)?,
        "application/x-www-form-urlencoded" | "multipart/form-data" => return None,
        // PHP makes no form of anything else.
        _ => Vec::new(),
    };
    (fields.len() <= FIELDS_MAX).then_some(fields)
}

fn boundary(parameters: &str) -> Option<&str> {
    let boundary = parameters.strip_prefix(';')?.trim_start_matches(' ').strip_prefix("boundary=")?;
    let is_plain = boundary.bytes().all(|byte| byte.is_ascii_graphic() && !b"\",;".contains(&byte));
    (is_plain && !boundary.is_empty()).then_some(boundary)
}

/// Splits a form in parts. Files are not fields.
fn parts(content: &[u8], boundary: &str) -> Option<Vec<(String, String)>> {
    let mark = format!("--{boundary}");
    let mut fields = Vec::new();
    let mut rest = content.strip_prefix(mark.as_bytes())?;
    for _ in 0..=PARTS_MAX {
        if matches!(rest, b"--" | b"--\r\n") {
            return Some(fields);
        }
        let begun = rest.strip_prefix(b"\r\n")?;
        // PHP takes some marks for the end of a part that are none, and the other way round: each must be one.
        let end = find(begun, mark.as_bytes())?;
        let part = begun[..end].strip_suffix(b"\r\n")?;
        rest = &begun[end + mark.len()..];
        let head_end = find(part, b"\r\n\r\n")?;
        if let Some(name) = name(std::str::from_utf8(&part[..head_end]).ok()?)? {
            fields.push((name, String::from_utf8_lossy(&part[head_end + 4..]).into_owned()));
        }
    }
    None
}

/// Returns the name of the field that a part's head begins. The inner `None`: it is a file.
fn name(head: &str) -> Option<Option<String>> {
    let (first, others) = head.split_once("\r\n").unwrap_or((head, ""));
    let has_control = |line: &str| line.contains(char::is_control);
    let is_one_line = first.len().max(others.len()) <= HEAD_LINE_BYTES_MAX;
    let is_known = is_one_line && (others.is_empty() || others.starts_with("Content-Type: ") && !has_control(others));
    let (name, behind) = first.strip_prefix("Content-Disposition: form-data; name=\"")?.split_once('"')?;
    if !is_known || has_control(first) || name.contains(['\\', '%', '+', '=']) {
        return None;
    }
    if behind.is_empty() {
        return Some(Some(php_name(name)));
    }
    let file = behind.strip_prefix("; filename=\"")?.strip_suffix('"')?;
    (!file.contains(['"', '\\'])).then_some(None)
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
