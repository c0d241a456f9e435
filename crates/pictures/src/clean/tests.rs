use std::io::Cursor;

use super::*;
use crate::{Facts, sample};

fn cleaned(content: &[u8]) -> Vec<u8> {
    let plan = clean(Cursor::new(content)).expect("planned");
    let copy = plan.of(content).expect("copied");
    assert_eq!(plan.bytes(), copy.len() as u64);
    assert!(!plan.is_whole(content.len() as u64) || copy == content);
    let mut read = Vec::new();
    plan.read(Cursor::new(content)).read_to_end(&mut read).expect("read");
    assert!(read == copy, "read in pieces, it is another");
    copy
}

fn has(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|window| window == text.as_bytes())
}

fn pixels(content: &[u8]) -> Vec<u8> {
    image::load_from_memory(content).expect("a picture").into_rgb8().into_raw()
}

/// The one thing about which all of this is: nobody publishes by accident where they live.
#[test]
fn a_photograph_does_not_say_where_it_was_taken() {
    let jpeg = sample::jpeg(&sample::photo(64, 48));
    let mut photo = sample::with_exif(&jpeg, 6);
    photo = sample::with_segment(&photo, 0xe1, b"http://ns.adobe.com/xap/1.0/\0<x>SECRET XMP</x>");
    photo = sample::with_segment(&photo, 0xed, b"Photoshop 3.0\0SECRET IPTC");
    photo = sample::with_segment(&photo, 0xfe, b"SECRET COMMENT");
    photo = sample::with_segment(&photo, 0xe2, b"MPF\0SECRET PREVIEW");
    photo = sample::with_segment(&photo, 0xeb, b"SECRET PROVENANCE");
    photo.extend(b"SECRET FILM behind the picture");
    assert!(has(&photo, "SECRET PLACE"));
    let copy = cleaned(&photo);
    assert!(!has(&copy, "SECRET"));
    assert_eq!(pixels(&copy), pixels(&jpeg), "the pixels are the same, to the bit");
    assert_eq!(Facts::read(Cursor::new(&copy)).expect("a picture").orientation, 6, "it is still shown upright");
    // Exif §4.6.3: the pointer to where the camera was.
    assert!(!copy.windows(2).take(60).any(|tag| tag == 0x8825_u16.to_le_bytes()));
}

#[test]
fn what_says_how_colours_are_meant_stays() {
    let jpeg = sample::jpeg(&sample::photo(8, 8));
    let with = sample::with_segment(&jpeg, 0xe2, b"ICC_PROFILE\0\x01\x01colours");
    let with = sample::with_segment(&with, 0xee, b"Adobe\0\x64\0\0\0\0\0");
    assert!(cleaned(&with) == with);
    let png = sample::png_of(&sample::photo(8, 8));
    let with = sample::with_chunk(&png, b"gAMA", &45455_u32.to_be_bytes());
    assert!(cleaned(&with) == with);
}

#[test]
fn files_without_metadata_are_copied_as_they_are() {
    let photo = sample::photo(40, 30);
    let svg = b"<svg width='1' height='1'><metadata>mine</metadata></svg>".to_vec();
    let files =
        [sample::jpeg(&photo), sample::png_of(&photo), sample::webp(&photo), sample::gif(9, 9, 3), svg, b"no picture".to_vec(), Vec::new()];
    for file in files {
        assert!(cleaned(&file) == file && clean(Cursor::new(&file)).expect("planned").is_whole(file.len() as u64));
    }
}

#[test]
fn no_format_carries_metadata_out() {
    let photo = sample::photo(40, 30);
    let exif = sample::exif(8);
    let (png, webp, gif) = (sample::png_of(&photo), sample::webp(&photo), sample::gif(9, 9, 3));
    let mut dirty_png = sample::with_chunk(&png, b"eXIf", &exif);
    for kind in [b"tEXt", b"zTXt", b"iTXt", b"tIME", b"prVt"] {
        dirty_png = sample::with_chunk(&dirty_png, kind, b"SECRET");
    }
    dirty_png.extend(b"SECRET after the end");
    let dirty_webp = sample::with_chunks(&webp, 40, 30, 0x0c, &[(b"EXIF", &exif), (b"XMP ", b"SECRET"), (b"mine", b"SECRET")]);
    let (before, after) = gif.split_at(gif.len() - 1);
    let mut dirty_gif = before.to_vec();
    dirty_gif.extend(b"!\xfe\x06SECRET\0!\xff\x0bXMP DataXMP\x06SECRET\0");
    dirty_gif.extend(after);
    dirty_gif.extend(b"SECRET");
    for (dirty, clean, orientation) in [(dirty_png, png, 8), (dirty_webp, webp, 8), (dirty_gif, gif, 1)] {
        let copy = cleaned(&dirty);
        assert!(has(&dirty, "SECRET") && !has(&copy, "SECRET"));
        assert_eq!(pixels(&copy), pixels(&clean));
        assert_eq!(Facts::read(Cursor::new(&copy)).expect("a picture").orientation, orientation);
        assert!(cleaned(&copy) == copy, "there is nothing left to take out");
    }
    let avif = sample::avif(20, 10, 0);
    let copy = cleaned(&avif);
    assert!(has(&avif, "SECRET") && !has(&copy, "SECRET") && has(&copy, "PIXELS"));
    assert_eq!(copy.len(), avif.len(), "positions in the file still hold");
    assert_eq!(Facts::read(Cursor::new(&copy)), Facts::read(Cursor::new(&avif)));
}

/// Cameras and converters call the same file by a general name, and put what they know into boxes of their own.
#[test]
fn an_avif_of_any_brand_does_not_say_where_it_was_taken() {
    for brands in [b"mif1\0\0\0\0mif1miafavif".as_slice(), b"msf1\0\0\0\0avis", b"avif\0\0\0\0", b"heic\0\0\0\0mif1heic"] {
        let words = [sample::boxed(b"hdlr", b"KIND OF WORDS"), sample::boxed(b"ilst", b"SECRET WORDS")].concat();
        let words = sample::boxed(b"meta", &[[0; 4].as_slice(), &words].concat());
        let avif = [
            sample::avif_of(brands, 20, 10, 0),
            sample::boxed(b"uuid", b"0123456789abcdefSECRET HISTORY"),
            sample::boxed(b"free", b"SECRET REST"),
            sample::boxed(b"moov", &sample::boxed(b"trak", &[sample::boxed(b"udta", b"SECRET PLACE OF A FILM"), words].concat())),
        ]
        .concat();
        let copy = cleaned(&avif);
        assert!(has(&avif, "SECRET PLACE") && !has(&copy, "SECRET") && has(&copy, "PIXELS"));
        assert_eq!(copy.len(), avif.len(), "positions in the file still hold");
        assert!(has(&copy, "KIND OF WORDS"), "a film stays one");
        // ISO/IEC 23008-12 §A.2.1: where TIFF data begins, and then TIFF data. libavif shows no picture without it.
        assert!(has(&copy, "PIXELS\0\0\0\0II\x2a\0\x08\0\0\0"));
        assert_eq!(Facts::read(Cursor::new(&copy)), Facts::read(Cursor::new(&avif)));
    }
}

/// Where a description cannot be read, nobody knows which bytes are pixels.
#[test]
fn an_avif_whose_parts_cannot_be_told_apart_is_not_published() {
    let avif = sample::avif(20, 10, 0);
    let of = |kind: &[u8; 4]| avif.windows(4).position(|window| window == kind).expect("a box");
    for kind in [b"iinf", b"iloc"] {
        let mut unreadable = avif.clone();
        unreadable[of(kind)] = b'x';
        assert!(matches!(clean(Cursor::new(&unreadable)), Err(Fault::Damaged(_))));
    }
    let pixels_first = [&avif[..of(b"meta") - 4], &avif[of(b"mdat") - 4..], b"\0\0\0\x40meta\0\0"].concat();
    assert!(clean(Cursor::new(&pixels_first)).is_err());
}

#[test]
fn a_jpeg_xl_keeps_its_picture_alone() {
    let boxes = |metadata: &[Vec<u8>]| {
        let start = [sample::boxed(b"JXL ", b"\r\n\x87\n"), sample::boxed(b"ftyp", b"jxl \0\0\0\0jxl ")].concat();
        [start, metadata.concat(), sample::boxed(b"jxlc", b"PIXELS")].concat()
    };
    let metadata: Vec<_> =
        [b"Exif", b"xml ", b"jumb", b"brob", b"jbrd", b"uuid"].iter().map(|kind| sample::boxed(kind, b"SECRET")).collect();
    assert!(cleaned(&boxes(&metadata)) == boxes(&[]));
}

#[test]
fn a_progressive_photograph_keeps_all_its_scans() {
    // Two scans with tables and a restart between them, and stuffed bytes: what a decoder needs, though none is asked here.
    let scans = b"\xff\xd8\xff\xc2\0\x0b\x08\0\x10\0\x10\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0abc\xff\0def\xff\xd0ghi\
        \xff\xc4\0\x05tab\xff\xfe\0\x08SECRET\xff\xda\0\x08\x01\x01\0\0\x3f\0jkl\xff\xff\xd9SECRET";
    let copy = cleaned(scans);
    let expected = b"\xff\xd8\xff\xc2\0\x0b\x08\0\x10\0\x10\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0abc\xff\0def\xff\xd0ghi\
        \xff\xc4\0\x05tab\xff\xda\0\x08\x01\x01\0\0\x3f\0jkl\xff\xff\xd9";
    assert!(copy == expected || copy == [&expected[..expected.len() - 3], b"\xff\xd9"].concat(), "{:?}", String::from_utf8_lossy(&copy));
}

#[test]
fn files_that_are_cut_off_give_nothing_away() {
    let photo = sample::photo(40, 30);
    let exif = sample::exif(3);
    let files = [
        sample::with_exif(&sample::jpeg(&photo), 3),
        sample::with_chunk(&sample::png_of(&photo), b"eXIf", &exif),
        sample::with_chunks(&sample::webp(&photo), 40, 30, 0x08, &[(b"EXIF", &exif)]),
    ];
    for file in files {
        for length in 0..file.len() {
            assert!(!has(&cleaned(&file[..length]), "SECRET"), "{length}");
        }
    }
}

#[test]
fn a_plan_is_bounded() {
    let segments = [b"\xff\xd8".as_slice(), &b"\xff\xfe\0\x02\xff\xdb\0\x02".repeat(100_000), b"\xff\xd9"].concat();
    assert!(matches!(clean(Cursor::new(&segments)), Err(Fault::Damaged(_))));
}

/// Files that were damaged in thousands of ways: what is left shows the same, and cleaning it again changes nothing.
#[test]
fn damaged_files_are_cleaned_as_well() {
    let photo = sample::photo(12, 9);
    let exif = sample::exif(6);
    let files = [
        sample::with_segment(&sample::with_exif(&sample::jpeg(&photo), 6), 0xfe, b"SECRET"),
        sample::with_chunk(&sample::with_chunk(&sample::png_of(&photo), b"eXIf", &exif), b"tEXt", b"SECRET"),
        sample::with_chunks(&sample::webp(&photo), 12, 9, 0x0c, &[(b"EXIF", &exif), (b"XMP ", b"SECRET")]),
        sample::gif(9, 9, 3),
        sample::avif(12, 9, 1),
    ];
    let mut seed = 3_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("31 bits") % below
    };
    for file in &files {
        for _ in 0..4_000 {
            let mut damaged = file.clone();
            for _ in 0..=random(3) {
                let at = random(damaged.len().min(400));
                match random(4) {
                    0 => damaged[at] = u8::try_from(random(256)).expect("a byte"),
                    1 => damaged.truncate(random(damaged.len()).max(12)),
                    2 => drop(damaged.drain(at..(at + random(8)).min(damaged.len()))),
                    _ => damaged.splice(at..at, [0xff, 0xe1, 0, 9, b'S']).for_each(drop),
                }
                damaged.resize(damaged.len().max(12), 0);
            }
            let Ok(plan) = clean(Cursor::new(&damaged)) else { continue };
            let copy = plan.of(&damaged).expect("copied");
            let again = cleaned(&copy);
            let facts = Facts::read(Cursor::new(&damaged));
            let Some(facts) = facts.ok().filter(|facts| facts.format != Format::Avif) else { continue };
            let shown = |facts: Facts| (facts.format, facts.width, facts.height, facts.orientation);
            assert_eq!(Facts::read(Cursor::new(&copy)).map(shown), Ok(shown(facts)), "{damaged:?}");
            assert!(again == copy, "{damaged:?}");
        }
    }
}
