use std::io::Cursor;

use image::{Rgba, RgbaImage};

use super::*;
use crate::sample;

fn of(content: &[u8]) -> Result<Facts, Fault> {
    Facts::read(Cursor::new(content))
}

fn plain(format: Format, width: u32, height: u32) -> Facts {
    Facts::plain(format, width, height)
}

#[test]
fn every_format_tells_its_size() {
    let photo = sample::photo(31, 17);
    let clear = RgbaImage::from_pixel(31, 17, Rgba([1, 2, 3, 4]));
    let mut bmp = Vec::new();
    photo.write_to(&mut Cursor::new(&mut bmp), image::ImageFormat::Bmp).expect("encoded");
    let exact = ::webp::Encoder::from_rgba(clear.as_raw(), 31, 17).encode_lossless().to_vec();
    let cases = [
        (sample::jpeg(&photo), plain(Format::Jpeg, 31, 17)),
        (sample::png_of(&photo), plain(Format::Png, 31, 17)),
        (sample::png(&clear), Facts { alpha: true, ..plain(Format::Png, 31, 17) }),
        (sample::webp(&photo), plain(Format::WebP, 31, 17)),
        (exact, Facts { alpha: true, ..plain(Format::WebP, 31, 17) }),
        (bmp, Facts { alpha: true, ..plain(Format::Bmp, 31, 17) }),
        (sample::avif(31, 17, 0), Facts { alpha: true, ..plain(Format::Avif, 31, 17) }),
        (sample::avif(17, 31, 1), Facts { alpha: true, ..plain(Format::Avif, 31, 17) }),
        (sample::avif_of(b"mif1\0\0\0\0mif1miafavif", 31, 17, 0), Facts { alpha: true, ..plain(Format::Avif, 31, 17) }),
    ];
    for (content, expected) in cases {
        assert_eq!(of(&content), Ok(expected));
    }
    // HEIC is not a format of the web.
    for brands in [b"mif1\0\0\0\0mif1heic".as_slice(), b"heic\0\0\0\0", b"mif1"] {
        assert_eq!(of(&sample::avif_of(brands, 31, 17, 0)), Err(Fault::Unknown));
    }
    let still = of(&sample::gif(31, 17, 1)).expect("a picture");
    assert_eq!((still.format, still.width, still.height, still.animated), (Format::Gif, 31, 17, false));
}

/// Exif §4.6.4: from 5 on, width and height change places.
#[test]
fn a_picture_has_the_size_in_which_it_is_shown() {
    let (jpeg, png, webp) =
        (sample::jpeg(&sample::photo(30, 20)), sample::png_of(&sample::photo(30, 20)), sample::webp(&sample::photo(30, 20)));
    for orientation in 1..=8 {
        let exif = sample::exif(orientation);
        let files = [
            sample::with_exif(&jpeg, orientation),
            sample::with_chunk(&png, b"eXIf", &exif),
            sample::with_chunks(&webp, 30, 20, 0x08, &[(b"EXIF", &exif)]),
        ];
        for file in files {
            let facts = of(&file).expect("a picture");
            let expected = if orientation >= 5 { (20, 30) } else { (30, 20) };
            assert_eq!((facts.width, facts.height, facts.orientation), (expected.0, expected.1, orientation), "{facts:?}");
        }
    }
    // What no camera writes means nothing.
    assert_eq!(of(&sample::with_exif(&jpeg, 9)).expect("a picture").orientation, 1);
}

#[test]
fn what_moves_is_known_by_its_head() {
    assert!(of(&sample::gif(8, 8, 2)).expect("a picture").animated);
    let png = sample::png_of(&sample::photo(8, 8));
    assert!(of(&sample::with_chunk(&png, b"acTL", &[0; 8])).expect("a picture").animated);
    let webp = sample::webp(&sample::photo(8, 8));
    assert!(of(&sample::with_chunks(&webp, 8, 8, 0x02, &[])).expect("a picture").animated);
}

#[test]
fn drawings_have_the_size_that_they_ask_for() {
    let cases = [
        ("<svg width='40' height=\"30\">", Some((40, 30))),
        ("\u{feff}<?xml version='1.0'?>\n<!-- width='1' -->\n<!DOCTYPE svg [<!ENTITY a '<svg>'>]>\n<svg viewBox='0 0 4 3'/>", Some((4, 3))),
        ("<svg xmlns='x' viewBox='0,0,200,100' width='100%'>", Some((200, 100))),
        ("<svg viewBox='0 0 200 100' width='50'>", Some((50, 25))),
        ("<svg viewBox='0 0 200 100' height='50px' id=\"a>b\">", Some((100, 50))),
        ("<svg width='1in' height='72pt'>", Some((96, 96))),
        ("<svg width='10em' height='2em'>", None),
        ("<svg width='-1' height='0'>", None),
        ("<svg width='1e99' height='1e99'>", None),
        ("<svg viewBox='0 0 NaN inf'>", None),
        ("<svg>", None),
    ];
    for (text, expected) in cases {
        assert_eq!(of(text.as_bytes()).map(|facts| (facts.width, facts.height)).ok(), expected, "{text}");
    }
    for text in ["<html><svg width='1' height='1'>", "<svgfoo width='1' height='1'>", "<", "<!--", "<!DOCTYPE", "<?xml", "<!x["] {
        assert_eq!(of(text.as_bytes()), Err(Fault::Unknown), "{text}");
    }
}

#[test]
fn the_name_of_a_file_says_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("photo.png");
    std::fs::write(&path, sample::jpeg(&sample::photo(20, 10))).expect("written");
    assert_eq!(crate::Source::read(&path).expect("a picture").facts().format, Format::Jpeg);
    std::fs::write(&path, "text").expect("written");
    assert_eq!(crate::Source::read(&path).expect_err("text"), Fault::Unknown);
}

#[test]
fn heads_that_are_cut_off_or_lie_are_told() {
    let photo = sample::photo(20, 10);
    let files = [sample::jpeg(&photo), sample::png_of(&photo), sample::webp(&photo), sample::avif(20, 10, 0), sample::gif(20, 10, 2)];
    for file in &files {
        for length in 12..file.len().min(400) {
            // Never a panic, and never another size.
            if let Ok(facts) = of(&file[..length]) {
                assert_eq!((facts.width, facts.height), (20, 10), "{:?} {length}", facts.format);
            }
        }
    }
    assert_eq!(of(&files[0][..22]), Err(Fault::Truncated));
    assert_eq!(of(b"\xff\xd8\xff\xd9"), Err(Fault::NoSize));
    assert_eq!(of(b"\xff\xd8\xff\xe1\0\x01"), Err(Fault::damaged("a segment is shorter than its own length")));
    let mut nothing = sample::png_of(&photo);
    nothing[16..20].fill(0);
    assert_eq!(of(&nothing), Err(Fault::NoSize));
}

/// The file would be read for minutes, for a size that does not come.
#[test]
fn a_head_of_a_million_parts_is_given_up() {
    let segments = [b"\xff\xd8".as_slice(), &b"\xff\xfe\0\x02".repeat(1_000_000)].concat();
    assert!(matches!(of(&segments), Err(Fault::Damaged(_))));
    let chunks = [&sample::png_of(&sample::photo(2, 2))[..33], &[0; 12].repeat(1_000_000)].concat();
    assert!(matches!(of(&chunks), Err(Fault::Damaged(_))));
    let boxes = [boxed_ftyp().as_slice(), &b"\0\0\0\x08free".repeat(1_000_000)].concat();
    assert!(matches!(of(&boxes), Err(Fault::Damaged(_))));
}

fn boxed_ftyp() -> Vec<u8> {
    sample::boxed(b"ftyp", b"avif\0\0\0\0")
}
