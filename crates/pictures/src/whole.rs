//! Tells whether a file is there to the end of its picture: a copy that broke off looks like a picture by its head.

use std::io::{BufReader, Read, Seek, SeekFrom};

use crate::{Fault, Format, clean::has_jpeg_end};

/// The number of bytes at the end of a file that are looked at first. Nearly every picture ends within them.
const TAIL_BYTES: u64 = 4 * 1024;

/// The end of a PNG: a chunk without content, and its checksum (PNG §11.2.5).
const PNG_END: &[u8] = b"IEND\xae\x42\x60\x82";

/// The end of a JPEG (ITU T.81, table B.1). In coded pixels a zero would follow the first byte.
const JPEG_END: &[u8] = b"\xff\xd9";

/// Tells whether the picture in a file has its end. Only JPEG and PNG are looked at: the others are told by decoding them.
///
/// Where the end is not at the end of the file, as telephones put films behind it, the file is read up to it.
pub(crate) fn is_whole(mut file: impl Read + Seek, bytes: u64, format: Format) -> Result<bool, Fault> {
    let end = match format {
        Format::Jpeg => JPEG_END,
        Format::Png => PNG_END,
        Format::Gif | Format::WebP | Format::Avif | Format::Bmp | Format::Svg => return Ok(true),
    };
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL_BYTES)))?;
    file.by_ref().take(TAIL_BYTES).read_to_end(&mut tail)?;
    if tail.windows(end.len()).any(|window| window == end) {
        return Ok(true);
    }
    file.seek(SeekFrom::Start(0))?;
    match format {
        Format::Jpeg => has_jpeg_end(file),
        _ => has_png_end(BufReader::new(file)),
    }
}

/// Walks from chunk to chunk up to the last one.
fn has_png_end(mut file: BufReader<impl Read + Seek>) -> Result<bool, Fault> {
    file.seek_relative(8)?;
    let mut head = [0; 8];
    while file.read_exact(&mut head).is_ok() {
        let [a, b, c, d, kind @ ..] = head;
        if &kind == b"IEND" {
            return Ok(file.read_exact(&mut [0; 4]).is_ok());
        }
        file.seek_relative(i64::from(u32::from_be_bytes([a, b, c, d])) + 4)?;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::sample;

    fn whole(content: &[u8], format: Format) -> bool {
        is_whole(Cursor::new(content), content.len() as u64, format).expect("readable")
    }

    #[test]
    fn a_picture_without_its_end_is_not_whole() {
        let photo = sample::photo(300, 200);
        let (jpeg, png) = (sample::jpeg(&photo), sample::png_of(&photo));
        for (content, format, end) in [(&jpeg, Format::Jpeg, 2), (&png, Format::Png, 12)] {
            assert!(whole(content, format), "{format:?}");
            for length in [content.len() - 1, content.len() - end, content.len() / 2, 40] {
                assert!(!whole(&content[..length], format), "{length} of {} bytes, {format:?}", content.len());
            }
        }
    }

    /// Cameras write a small picture, with an end of its own, into the head of the large one, and films behind it.
    #[test]
    fn the_end_of_the_picture_counts_and_not_that_of_another_in_the_file() {
        let photo = sample::photo(300, 200);
        let thumbnail = sample::jpeg(&sample::photo(16, 12));
        let jpeg = sample::with_segment(&sample::jpeg(&photo), 0xe1, &[b"Exif\0\0", thumbnail.as_slice()].concat());
        assert!(whole(&jpeg, Format::Jpeg) && !whole(&jpeg[..jpeg.len() - 5], Format::Jpeg));
        let film = vec![b'f'; 100_000];
        assert!(whole(&[jpeg.as_slice(), &film].concat(), Format::Jpeg));
        assert!(whole(&[sample::png_of(&photo).as_slice(), &film].concat(), Format::Png));
    }
}
