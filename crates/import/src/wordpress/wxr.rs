//! WordPress's export format (WXR), an extended RSS, read piece by piece.

use std::{collections::HashMap, fs::File, io::BufReader, path::Path};

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use crate::{
    error::ImportError,
    limit::{Mark, PIECE_BYTES_MAX, Pieces},
};

/// The depth to which elements may be nested: the format has six levels.
const DEPTH_MAX: usize = 16;

/// The size of all texts of one item with its comments.
const ITEM_BYTES_MAX: usize = 4 * PIECE_BYTES_MAX;

/// Simple elements by their names, such as `wp:post_id`.
pub(super) type Fields = HashMap<String, String>;

/// A post, a page, a picture, a line of a menu, …
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) fields: Fields,
    /// Taxonomy, slug and name of what it belongs to.
    pub(super) terms: Vec<(String, String, String)>,
    pub(super) meta: Vec<(String, String)>,
    pub(super) comments: Vec<Fields>,
}

/// A piece of the export.
#[derive(Debug)]
pub(super) enum Part {
    /// A value of the whole: its element and its text.
    Channel(String, String),
    /// An author, a category, a tag, or a term of another taxonomy: its element and its values.
    Term(String, Fields),
    Item(Box<Item>),
}

impl Item {
    pub(super) fn get(&self, key: &str) -> &str {
        self.fields.get(key).map_or("", String::as_str)
    }

    pub(super) fn meta(&self, key: &str) -> Option<&str> {
        self.meta.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// Reads an export, and hands over each piece of it.
pub(super) fn read(path: &Path, on_part: &mut dyn FnMut(Part) -> Result<(), ImportError>) -> Result<(), ImportError> {
    let file = File::open(path).map_err(ImportError::read(path))?;
    let (pieces, mark) = Pieces::new(BufReader::with_capacity(256 * 1024, file));
    let mut reader = Reader::from_reader(pieces);
    reader.config_mut().expand_empty_elements = true;
    let mut buffer = Vec::new();
    let mut state = State { open: Vec::new(), text: String::new(), item: None, item_bytes: 0, term: None, inner: None, attributes: None };
    loop {
        mark.reset();
        buffer.clear();
        let event = reader.read_event_into(&mut buffer).map_err(|error| broken(path, &mark, &error))?;
        match event {
            Event::Start(element) => state.start(&element, path, &mark)?,
            Event::End(_) => {
                if let Some(part) = state.end() {
                    on_part(part)?;
                }
            }
            Event::Text(text) => state.text(&text.xml10_content(), path, &mark)?,
            Event::CData(text) => state.text(&text.xml10_content(), path, &mark)?,
            Event::GeneralRef(reference) => {
                let resolved = reference.resolve_char_ref().ok().flatten();
                let name = reference.into_inner();
                let c = resolved.or(match &*name {
                    "amp" => Some('&'),
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "quot" => Some('"'),
                    "apos" => Some('\''),
                    _ => None,
                });
                match c {
                    Some(c) => state.text(c.encode_utf8(&mut [0; 4]), path, &mark)?,
                    // An entity of HTML in a title: it is shown as it was written.
                    None => state.text(&format!("&{name};"), path, &mark)?,
                }
            }
            Event::DocType(_) => {
                let message =
                    "declares a document type, which WordPress never does, and which could declare entities; remove the line <!DOCTYPE …>";
                return Err(ImportError::at_line(path, mark.line(), message));
            }
            Event::Decl(declaration) => check_encoding(path, declaration.encoding().and_then(Result::ok).as_deref())?,
            Event::Eof => break,
            Event::Empty(_) | Event::Comment(_) | Event::PI(_) => {}
        }
    }
    if state.open.is_empty() {
        Ok(())
    } else {
        Err(ImportError::at_line(path, mark.line(), "ends within an element: the file is not whole; export it again"))
    }
}

fn check_encoding(path: &Path, encoding: Option<&str>) -> Result<(), ImportError> {
    match encoding {
        None => Ok(()),
        Some(name) if name.eq_ignore_ascii_case("utf-8") || name.eq_ignore_ascii_case("us-ascii") => Ok(()),
        Some(name) => Err(ImportError::at_line(
            path,
            1,
            format!("is {name}, not UTF-8; convert it: iconv -f {name} -t UTF-8, and change its first line"),
        )),
    }
}

fn broken(path: &Path, mark: &Mark, error: &quick_xml::Error) -> ImportError {
    let text = error.to_string();
    let remedy = if text.to_lowercase().contains("utf-8") || text.to_lowercase().contains("utf8") {
        "convert it with `iconv -f UTF-8 -t UTF-8 -c OLD.xml > NEW.xml`, which leaves such bytes out"
    } else if matches!(error, quick_xml::Error::Io(_)) {
        "the file could not be read further"
    } else {
        "the file is broken from here on, or was cut off; export it again"
    };
    ImportError::at_line(path, mark.line(), format!("{text}; {remedy}"))
}

struct State {
    /// The names of the open elements.
    open: Vec<String>,
    text: String,
    item: Option<Box<Item>>,
    item_bytes: usize,
    term: Option<Fields>,
    /// The part that is open within the item: a comment, or a value of its own.
    inner: Option<Fields>,
    /// The taxonomy and slug of a term of an item.
    attributes: Option<(String, String)>,
}

impl State {
    fn start(&mut self, element: &BytesStart<'_>, path: &Path, mark: &Mark) -> Result<(), ImportError> {
        let name = element.name().0.to_owned();
        if self.open.len() == DEPTH_MAX {
            return Err(ImportError::at_line(
                path,
                mark.line(),
                format!("elements are nested more than {DEPTH_MAX} deep: it is not WordPress's export"),
            ));
        }
        self.text.clear();
        match (self.open.len(), name.as_str()) {
            (2, "item") => (self.item, self.item_bytes) = (Some(Box::default()), 0),
            (2, "wp:author" | "wp:category" | "wp:tag" | "wp:term") => self.term = Some(Fields::new()),
            (3, "wp:postmeta" | "wp:comment") if self.item.is_some() => self.inner = Some(Fields::new()),
            (3, "category") => {
                let of = |key: &str| {
                    let found = element.attributes().filter_map(Result::ok).find(|attribute| attribute.key.0 == key);
                    let raw = found.map(|attribute| attribute.value.to_string()).unwrap_or_default();
                    quick_xml::escape::unescape(&raw).map(|text| text.to_string()).unwrap_or(raw)
                };
                self.attributes = Some((of("domain"), of("nicename")));
            }
            _ => {}
        }
        self.open.push(name);
        Ok(())
    }

    fn text(&mut self, text: &str, path: &Path, mark: &Mark) -> Result<(), ImportError> {
        self.text.push_str(text);
        self.item_bytes += text.len();
        if self.text.len() > PIECE_BYTES_MAX || self.item_bytes > ITEM_BYTES_MAX && self.item.is_some() {
            return Err(ImportError::at_line(path, mark.line(), format!("one item is larger than {} MiB", PIECE_BYTES_MAX / 1024 / 1024)));
        }
        Ok(())
    }

    fn end(&mut self) -> Option<Part> {
        let name = self.open.pop()?;
        let text = std::mem::take(&mut self.text);
        match (self.open.len(), name.as_str()) {
            (2, "item") => self.item.take().map(Part::Item),
            (2, "wp:author" | "wp:category" | "wp:tag" | "wp:term") => self.term.take().map(|fields| Part::Term(name, fields)),
            (2, _) => Some(Part::Channel(name, text)),
            (3, _) => {
                if let Some(item) = &mut self.item {
                    match (name.as_str(), self.inner.take(), self.attributes.take()) {
                        ("wp:comment", Some(fields), _) => item.comments.push(fields),
                        ("wp:postmeta", Some(mut fields), _) => {
                            let mut take = |key: &str| fields.remove(key).unwrap_or_default();
                            item.meta.push((take("wp:meta_key"), take("wp:meta_value")));
                        }
                        ("category", _, Some((domain, slug))) => item.terms.push((domain, slug, text)),
                        _ => {
                            item.fields.insert(name, text);
                        }
                    }
                } else if let Some(term) = &mut self.term {
                    term.insert(name, text);
                }
                None
            }
            (4, _) => {
                if let Some(inner) = &mut self.inner {
                    inner.insert(name, text);
                }
                None
            }
            _ => None,
        }
    }
}
