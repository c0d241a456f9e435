//! Takes content codings off an answer's content.

use std::{
    borrow::Cow,
    io::{self, Read},
};

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use crate::answer::Field;

/// The reason why a content cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It has a coding that is not known here.
    #[error("the content coding {0:?} is not known here")]
    Coding(String),
    /// It is not what its coding says.
    #[error("the content is not {0}")]
    Damaged(&'static str),
    /// It is larger than what is read.
    #[error("the content is larger than {0} bytes")]
    TooLarge(usize),
}

/// Returns the content without its codings: gzip and deflate, for these alone are asked for. What is behind the first `most` bytes is left out, and the end
/// of a content that was cut is not an error.
///
/// # Errors
/// When there is another coding, or the content is none.
pub(crate) fn decoded<'a>(fields: &[Field<'_>], content: &'a [u8], most: usize) -> Result<Cow<'a, [u8]>, Unreadable> {
    let codings = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"content-encoding"));
    let mut content = Cow::Borrowed(content);
    // Applied in their order, so taken off from the last.
    let codings: Vec<_> = codings.flat_map(|(_, value)| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii).collect();
    for coding in codings.iter().rev() {
        if coding.is_empty() || coding.eq_ignore_ascii_case(b"identity") || content.is_empty() {
            continue;
        }
        content = Cow::Owned(if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") {
            read(MultiGzDecoder::new(&*content), most, "gzip")?
        } else if coding.eq_ignore_ascii_case(b"deflate") {
            read(ZlibDecoder::new(&*content), most, "deflate")?
        } else {
            return Err(Unreadable::Coding(String::from_utf8_lossy(coding).into_owned()));
        });
    }
    Ok(content)
}

/// Reads all of a gzip file, at most `most` bytes of it.
///
/// # Errors
/// When it is none, or larger.
pub(crate) fn gunzip(file: &[u8], most: usize) -> Result<Vec<u8>, Unreadable> {
    let content = read(MultiGzDecoder::new(file), most.saturating_add(1), "gzip")?;
    if content.len() > most { Err(Unreadable::TooLarge(most)) } else { Ok(content) }
}

fn read(decoder: impl Read, most: usize, name: &'static str) -> Result<Vec<u8>, Unreadable> {
    let mut content = Vec::new();
    match decoder.take(most as u64).read_to_end(&mut content) {
        Ok(_) => Ok(content),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !content.is_empty() => Ok(content),
        Err(_) => Err(Unreadable::Damaged(name)),
    }
}

#[cfg(test)]
pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_are_taken_off_within_a_bound() {
        let text = b"hello hello hello".as_slice();
        let zipped = gzip(text);
        let coding = |value: &'static str| [(b"Content-Encoding".as_slice(), value.as_bytes())];
        assert_eq!(decoded(&[], text, 100).as_deref(), Ok(text));
        assert_eq!(decoded(&coding("identity"), text, 100).as_deref(), Ok(text));
        assert_eq!(decoded(&coding("GZIP"), &zipped, 100).as_deref(), Ok(text));
        assert_eq!(decoded(&coding("gzip, gzip"), &gzip(&zipped), 100).as_deref(), Ok(text));
        assert_eq!(decoded(&coding("gzip"), &zipped, 5).as_deref(), Ok(b"hello".as_slice()));
        assert_eq!(decoded(&coding("gzip"), &zipped[..zipped.len() - 8], 100).as_deref(), Ok(text), "the end is missing");
        assert_eq!((gunzip(&zipped, 5), gunzip(&zipped, 17).as_deref()), (Err(Unreadable::TooLarge(5)), Ok(text)));
        assert_eq!(decoded(&coding("gzip"), text, 100), Err(Unreadable::Damaged("gzip")));
        assert_eq!(decoded(&coding("br"), text, 100), Err(Unreadable::Coding("br".to_owned())));
        assert_eq!(decoded(&coding("gzip"), b"", 100).as_deref(), Ok(b"".as_slice()));
    }
}
