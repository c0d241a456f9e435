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

/// Browsers take the first.
#[test]
fn the_first_of_two_blocks_of_exif_says_how_to_turn_a_picture() {
    let jpeg = sample::jpeg(&sample::photo(64, 48));
    let twice = sample::with_exif(&sample::with_exif(&jpeg, 3), 6);
    let png = sample::png_of(&sample::photo(64, 48));
    let png = sample::with_chunk(&sample::with_chunk(&png, b"eXIf", &sample::exif(3)), b"eXIf", &sample::exif(6));
    for twice in [twice, png] {
        let orientation = |content: &[u8]| Facts::read(Cursor::new(content)).expect("a picture").orientation;
        assert_eq!((orientation(&twice), orientation(&cleaned(&twice))), (6, 6));
    }
}

#[test]
fn what_says_how_colours_are_meant_stays() {
    let jpeg = sample::jpeg(&sample::photo(8, 8));
    let profile = [b"ICC_PROFILE\0\x01\x01".as_slice(), &[0; 36], b"acsp", b"colours"].concat();
    let with = sample::with_segment(&jpeg, 0xe2, &profile);
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
    let files = [sample::jpeg(&photo), sample::png_of(&photo), sample::webp(&photo), sample::gif(9, 9, 3), svg];
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
        let avif = [
            sample::avif_of(brands, 20, 10, 0),
            sample::boxed(b"uuid", b"0123456789abcdefSECRET HISTORY"),
            sample::boxed(b"free", b"SECRET REST"),
            sample::boxed(b"moov", &sample::boxed(b"trak", &sample::boxed(b"udta", b"SECRET PLACE OF A FILM"))),
            b"SECRET".to_vec(),
        ]
        .concat();
        let copy = cleaned(&avif);
        assert!(has(&avif, "SECRET PLACE") && !has(&copy, "SECRET") && has(&copy, "PIXELS"));
        assert_eq!(copy.len(), avif.len(), "positions in the file still hold");
        // ISO/IEC 23008-12 §A.2.1: where TIFF data begins, and then TIFF data. libavif shows no picture without it.
        assert!(has(&copy, "PIXELS\0\0\0\0II\x2a\0\x08\0\0\0"));
        assert_eq!(Facts::read(Cursor::new(&copy)), Facts::read(Cursor::new(&avif)));
        assert!(cleaned(&copy) == copy, "there is nothing left to take out");
    }
}

/// The boxes of ISO/IEC 14496-12 §8.11 and ISO/IEC 23008-12 §6 that hold words, times or places, and one that nobody has heard of.
#[test]
fn what_describes_an_avif_is_told_by_a_list() {
    let property = |kind: &[u8; 4]| sample::boxed(kind, b"\0\0\0\0SECRET\0\0");
    let ispe = sample::boxed(b"ispe", &[0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 10]);
    let more: Vec<u8> =
        [b"xml ", b"bxml", b"uuid", b"ipro", b"dinf", b"what"].iter().flat_map(|kind| sample::boxed(kind, b"SECRET WORDS")).collect();
    let idat = sample::boxed(b"idat", b"SECRET LEFT OVER");
    let group = sample::boxed(b"grpl", &[sample::boxed(b"altr", &[0; 12]), sample::boxed(b"brst", b"SECRET GROUP")].concat());
    for kind in [b"udes", b"altt", b"itai", b"crtt", b"mdft", b"cmin", b"uuid", b"what"] {
        let avif = sample::Heif {
            brands: b"avif\0\0\0\0avif",
            items: &[(b"av01", sample::PIXELS), (b"mime", b"SECRET XMP"), (b"jpeg", b"SECRET EXIF OF A PREVIEW"), (b"uri ", b"SECRET")],
            properties: &[property(kind), ispe.clone(), property(b"colr")].concat(),
            more: &[more.clone(), idat.clone(), group.clone()].concat(),
        };
        for file in [avif.file(), avif.pixels_first()] {
            let copy = cleaned(&file);
            let colours = copy.windows(16).filter(|window| *window == b"colr\0\0\0\0SECRET\0\0".as_slice()).count();
            let secrets = copy.windows(6).filter(|window| *window == b"SECRET").count();
            assert_eq!((colours, secrets), (1, 1), "{:?}", String::from_utf8_lossy(&copy));
            assert!(has(&copy, "PIXELS") && has(&copy, "altr") && !has(&copy, "what") && copy.len() == file.len());
            assert_eq!(Facts::read(Cursor::new(&copy)), Facts::read(Cursor::new(&file)));
            assert!(cleaned(&copy) == copy, "there is nothing left to take out");
        }
    }
}

/// exiftool leaves such items where it has removed metadata.
#[test]
fn items_without_bytes_are_nothing() {
    let avif = sample::avif(20, 10, 0);
    // The length of the second item of two, with its 14 bytes in the `iloc` box.
    let iloc = avif.windows(4).position(|window| window == b"iloc").expect("a box") + 4;
    let mut removed = avif;
    removed[iloc + 8 + 14 + 10..iloc + 8 + 2 * 14].fill(0);
    let copy = cleaned(&removed);
    assert!(has(&removed, "SECRET") && !has(&copy, "SECRET") && has(&copy, "PIXELS"));
    removed[iloc + 8 + 10..iloc + 8 + 14].fill(0);
    assert!(matches!(clean(Cursor::new(&removed)), Err(Fault::Damaged(_))), "nobody knows which bytes are pixels");
}

#[test]
fn an_avif_that_moves_shows_its_pixels_and_nothing_else() {
    let film = |handler: &[u8; 4]| {
        let more = [sample::boxed(b"udta", b"SECRET PLACE"), sample::boxed(b"meta", b"\0\0\0\0SECRET WORDS")].concat();
        let start =
            [sample::boxed(b"ftyp", b"avis\0\0\0\0avis"), sample::boxed(b"mdat", &[b"SECRET", sample::SAMPLES, b"SECRET"].concat())]
                .concat();
        [start, sample::moov(handler, 20 + 8 + 6, 10, &more)].concat()
    };
    for (handler, shows) in [(b"pict", true), (b"auxv", true), (b"meta", false), (b"soun", false)] {
        let (film, copy) = (film(handler), cleaned(&film(handler)));
        assert!(!has(&copy, "SECRET") && has(&copy, "PIXELS") == shows, "{:?}", String::from_utf8_lossy(&copy));
        assert_eq!((copy.len(), has(&copy, "av1C")), (film.len(), shows));
        assert!(cleaned(&copy) == copy, "there is nothing left to take out");
    }
    let film = film(b"pict");
    for kind in [b"stco", b"stsz", b"stsc", b"av01"] {
        let at = film.windows(4).position(|window| window == kind).expect("a box");
        let mut unreadable = film.clone();
        unreadable[at] = b'x';
        assert!(clean(Cursor::new(&unreadable)).is_err(), "nobody knows which bytes are pixels");
    }
}

/// AV1 §5.3 to §5.8: beside frames, coded pixels may have words of programs and cameras (ITU-T T.35), a time, padding, and parts that no standard knows.
#[test]
fn coded_pixels_of_an_avif_have_frames_alone() {
    let part = |head: u8, content: &[u8]| [&[head, u8::try_from(content.len()).expect("short")], content].concat();
    let padding = |length: usize| part(0x7a, &[vec![0; length - 1], vec![0x80]].concat());
    let light = [part(0x2a, b"\x01abcd\x80"), part(0x2a, &[b"\x02".as_slice(), &[7; 24], b"\x80"].concat())].concat();
    let needed = [b"\x12\0".as_slice(), &part(0x0a, b"SEQUENCE"), &light, sample::PIXELS].concat();
    let file = |pixels: &[u8], settings: &[u8]| {
        let properties = sample::boxed(b"av1C", &[b"\x81\0\0\0", settings].concat());
        let avif = sample::Heif { brands: b"avif\0\0\0\0avif", items: &[(b"av01", pixels)], properties: &properties, more: &[] };
        cleaned(&avif.file())
    };
    assert!(file(&needed, &part(0x0a, b"SEQUENCE")).ends_with(&needed));
    let words = [
        part(0x2a, b"\x04\xb5SECRET"),
        part(0x2a, b"\x05SECRET"),
        part(0x2a, b"\x01abcdSECRET"),
        part(0x7a, b"SECRET"),
        part(0x4a, b"SECRET"),
        part(0x12, b"SECRET"),
    ];
    for words in words {
        let with = file(&[&needed, &words, sample::PIXELS].concat(), &words);
        assert!(with.ends_with(&[&needed, &padding(words.len() - 2), sample::PIXELS].concat()), "{:?}", String::from_utf8_lossy(&with));
        let settings = with.windows(9).find(|window| window.starts_with(b"av1C"));
        assert!(!has(&with, "SECRET") && settings == Some(b"av1C\x81\0\0\0\x7a"));
    }
    // One with an extension, one without a length, and what nobody can decode.
    let with = |rest: &[u8]| file(&[&needed, rest].concat(), b"");
    assert!(with(b"\x2e\x08\x08\x04\xb5SECRET").ends_with(&[&needed, b"\x7e\x08\x08\0\0\0\0\0\0\0\x80".as_slice()].concat()));
    for rest in [b"\x28\x04\xb5SECRET".as_slice(), b"\xb2\x06SECRET", b"\x32\x7fSECRET", b"\x32\xff\xff\xffSECRET"] {
        let padding = [b"\x78".as_slice(), &vec![0; rest.len() - 2], b"\x80"].concat();
        assert!(with(rest).ends_with(&[&needed, padding.as_slice()].concat()));
    }

    // Each sample of a film has its own parts, of which the last need not have a length.
    let film = |first: &[u8; 2]| {
        let mdat = [first.as_slice(), b"\x30PIXELS"].concat();
        let start = [sample::boxed(b"ftyp", b"avis\0\0\0\0avis"), sample::boxed(b"mdat", &mdat)].concat();
        cleaned(&[start, sample::moov(b"pict", 28, 9, &[])].concat())
    };
    let mdat = |film: &[u8]| film[20..].windows(13).find(|window| window.starts_with(b"mdat")).expect("a box")[4..].to_vec();
    assert_eq!(mdat(&film(b"\x12\0")), b"\x12\0\x30PIXELS");
    assert_eq!(mdat(&film(b"\x28S")), b"\x78\x80\x30PIXELS");
}

/// A box that ends before its parent does hides what follows.
#[test]
fn a_film_whose_boxes_do_not_fill_each_other_is_not_published() {
    let film = sample::moov(b"pict", 20 + 8, 10, &sample::boxed(b"udta", b"SECRET"));
    let start = [sample::boxed(b"ftyp", b"avis\0\0\0\0avis"), sample::boxed(b"mdat", sample::SAMPLES)].concat();
    assert!(!has(&cleaned(&[start.clone(), film.clone()].concat()), "SECRET"));
    for kind in [b"mvhd", b"trak", b"mdia", b"minf", b"stbl", b"stsd"] {
        let at = film.windows(4).position(|window| window == kind).expect("a box");
        for change in [1, 255] {
            let mut wrong = film.clone();
            wrong[at - 1] = wrong[at - 1].wrapping_add(change);
            let plan = clean(Cursor::new([start.clone(), wrong].concat()));
            assert!(matches!(plan, Err(Fault::Damaged(_))), "{kind:?} {change}: {plan:?}");
        }
    }
}

/// Bytes that are overwritten take no memory, however many they are.
#[test]
fn zeros_are_counted_and_not_held() {
    let avif = [sample::avif(20, 10, 0), sample::boxed(b"mpvd", &vec![b'S'; 40 << 20])].concat();
    let plan = clean(Cursor::new(&avif)).expect("planned");
    let held: usize = plan.pieces.iter().map(|piece| if let Piece::New(bytes) = piece { bytes.len() } else { 0 }).sum();
    assert!(held < 100 && plan.bytes() == avif.len() as u64);
    assert!(cleaned(&avif)[avif.len() - (40 << 20)..].iter().all(|&byte| byte == 0));
}

/// Where a description cannot be read, nobody knows which bytes are pixels.
#[test]
fn an_avif_whose_parts_cannot_be_told_apart_is_not_published() {
    let exif = [[0; 4].as_slice(), &sample::exif(1)].concat();
    let file =
        sample::Heif { brands: b"avif\0\0\0\0avif", items: &[(b"av01", sample::PIXELS), (b"Exif", &exif)], properties: &[], more: &[] };
    let avif = file.file();
    let of = |kind: &[u8; 4]| avif.windows(4).position(|window| window == kind).expect("a box");
    for kind in [b"iinf", b"iloc"] {
        let mut unreadable = avif.clone();
        unreadable[of(kind)] = b'x';
        assert!(matches!(clean(Cursor::new(&unreadable)), Err(Fault::Damaged(_))));
    }
    let pixels_first = file.pixels_first();
    assert!(has(&cleaned(&pixels_first), "PIXELS") && !has(&cleaned(&pixels_first), "SECRET"));
    // Cut off behind the pixels and anywhere in the description, which comes after them.
    let end = pixels_first.windows(4).position(|window| window == b"meta").expect("a box") - 4;
    assert!(has(&pixels_first[..end], "SECRET PLACE"));
    for length in end..pixels_first.len() {
        assert!(clean(Cursor::new(&pixels_first[..length])).is_err(), "{length}");
    }
    let jpeg = sample::Heif { items: &[(b"jpeg", b"SECRET")], ..file };
    assert!(matches!(clean(Cursor::new(jpeg.file())), Err(Fault::Damaged(_))), "what is shown would be gone");
    let fragments = [avif, sample::boxed(b"moof", b"")].concat();
    assert!(matches!(clean(Cursor::new(&fragments)), Err(Fault::Damaged(_))));
}

/// The beginnings of TIFF, of raw pictures that are TIFF, of Photoshop, JPEG 2000 and Fujifilm's raw pictures. They have Exif data, whatever they are called.
#[test]
fn a_file_of_a_kind_whose_metadata_is_not_known_is_not_published() {
    for start in
        [b"II*\0\x08\0\0\0".as_slice(), b"MM\0*\0\0\0\x08", b"II\x2b\0", b"8BPS\0\x01", b"\0\0\0\x0cjP  \r\n\x87\n", b"FUJIFILMCCD-RAW \0"]
    {
        let plan = clean(Cursor::new([start, b"SECRET PLACE"].concat()));
        assert_eq!(plan.expect_err("not known"), Fault::Unknown);
    }
    // What begins as an icon does, and formats that begin with words.
    let behind_words = |words: &str| [words.repeat(100).as_bytes(), b"\xff\0"].concat();
    for content in [b"\0\0\x02\0\x01\0".to_vec(), behind_words("%PDF-1.7\n"), behind_words("#?RADIANCE\nGPS= 47.1 8.5\n")] {
        assert_eq!(clean(Cursor::new(content)).expect_err("no picture"), Fault::Unknown);
    }
    // A bare JPEG XL, a page that was saved instead of a picture, and nothing.
    for content in [b"\xff\x0a\0\0".as_slice(), "<!doctype html>\r\n<title>Ö</title>".as_bytes(), b""] {
        assert!(cleaned(content) == content);
    }
}

/// JFIF 1.02 and Adobe's technical note 5116: what follows their fields, a small picture for one, is not part of the picture. ITU-T T.81 knows no other
/// segments than frames, tables and scans.
#[test]
fn segments_of_a_jpeg_have_what_is_listed_and_nothing_else() {
    let jpeg = sample::jpeg(&sample::photo(40, 30));
    assert_eq!(jpeg[2..6], *b"\xff\xe0\0\x10");
    let without = [&jpeg[..2], &jpeg[20..]].concat();
    let density = b"JFIF\0\x01\x02\x01\0H\0H";
    let with_thumbnail = sample::with_segment(&without, 0xe0, &[density.as_slice(), b"\x01\x01SECRET"].concat());
    assert!(cleaned(&with_thumbnail) == sample::with_segment(&without, 0xe0, &[density.as_slice(), b"\0\0"].concat()));
    let adobe = b"Adobe\0d\0\0\0\0\x01";
    assert!(
        cleaned(&sample::with_segment(&jpeg, 0xee, &[adobe.as_slice(), b"SECRET"].concat())) == sample::with_segment(&jpeg, 0xee, adobe)
    );
    for marker in [0x02, 0x47, 0xc8, 0xde, 0xf0, 0xfd] {
        assert!(cleaned(&sample::with_segment(&jpeg, marker, b"SECRET")) == jpeg, "{marker:x}");
    }
    for marker in [0xdc, 0xdd] {
        assert!(cleaned(&sample::with_segment(&jpeg, marker, b"\0\x10SECRET")) == jpeg, "{marker:x}");
    }
    assert!(cleaned(&sample::with_segment(&jpeg, 0xe2, b"ICC_PROFILE\0\x01\x01SECRET")) == jpeg);
}

/// PNG §11 and GIF89a say how long the parts are that say how a picture looks.
#[test]
fn parts_of_known_length_have_no_more() {
    let png = sample::png_of(&sample::photo(8, 8));
    for kind in [b"pHYs", b"bKGD", b"gAMA", b"sPLT"] {
        assert!(cleaned(&sample::with_chunk(&png, kind, b"SECRET PLACE")) == png);
    }
    let (start, end) = png.split_at(png.len() - 12);
    let content = b"SECRET";
    let sum = crc32fast::hash(&[b"IEND".as_slice(), content].concat()).to_be_bytes();
    assert!(cleaned(&[start, &6_u32.to_be_bytes(), b"IEND", content, &sum].concat()) == png);
    assert_eq!(end, b"\0\0\0\0IEND\xae\x42\x60\x82");

    let gif = sample::gif(9, 9, 1);
    // Behind the head and its colours, if it has some for all frames.
    let at = 13 + if gif[10] & 0x80 == 0 { 0 } else { 3 << ((gif[10] & 7) + 1) };
    let with = |extension: &[u8]| [&gif[..at], extension, &gif[at..]].concat();
    let circle = b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0";
    assert!(cleaned(&with(&[circle.as_slice(), b"\x06SECRET\0"].concat())) == with(&[circle.as_slice(), b"\0"].concat()));
    assert!(cleaned(&with(b"!\xf9\x04\0\0\0\0\x06SECRET\0")) == with(b"!\xf9\x04\0\0\0\0\0"));
    for extension in
        [b"!\x01\x0c\0\0\0\0\0\0\0\0\0\0\0\0\x06SECRET\0".as_slice(), b"!\xff\x0bICCRGBG1012\x06SECRET\0", b"!\xf9\x06SECRET\0"]
    {
        assert!(cleaned(&with(extension)) == gif);
    }
}

/// Some cameras write no end. Nothing says then where the pixels end but the pixels themselves (ITU-T T.81, annex F).
#[test]
fn a_jpeg_without_its_end_ends_with_its_pixels() {
    let photo = sample::photo(70, 45);
    let whole = sample::jpeg(&photo);
    let cut = &whole[..whole.len() - 2];
    assert!(cleaned(cut) == cut, "it is as long as its pixels");
    assert!(cleaned(&cut[..cut.len() - 200]) == cut[..cut.len() - 200], "some are missing");
    for text in ["SECRET", "\n\u{feff}SECRET \u{ff}\u{da}\0\u{8}"] {
        assert!(cleaned(&[cut, text.as_bytes()].concat()) == whole);
    }
    // What follows has segments, which a picture may have.
    assert!(cleaned(&[cut, b"SECRET\xff\xdb\0\x08SECRET\xff\xfe\0\x08SECRET".as_slice()].concat()) == whole);
    // With restarts, one component, and an end that is not there where pixels cannot be read.
    let mut grey = Vec::new();
    let encoded = image::codecs::jpeg::JpegEncoder::new(&mut grey).encode(&[90; 700], 35, 20, image::ExtendedColorType::L8);
    assert!(encoded.is_ok() && cleaned(&[&grey[..grey.len() - 2], b"SECRET"].concat()) == grey);
    let mut damaged = whole.clone();
    let at = damaged.len() - 300;
    damaged.splice(at.., b"\xff\xd3SECRET".to_vec());
    let copy = cleaned(&damaged);
    assert!(copy.len() > 1000 && copy.ends_with(b"\xff\xd9") && whole.starts_with(&copy[..copy.len() - 2]), "{}", copy.len());
    // How scans that refine others are coded is told by all of them together.
    let scans = b"\xff\xd8\xff\xc2\0\x0b\x08\0\x10\0\x10\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\0\0abc";
    let refined = [scans, b"\xff\xda\0\x08\x01\x01\0\x01\x3f\x10SECRET".as_slice()].concat();
    assert!(cleaned(&refined) == [scans, b"\xff\xd9".as_slice()].concat());
}

/// PNG §10.1: the pixels are one zlib stream in chunks that may be split anywhere, and each frame of a picture that moves has one of its own.
#[test]
fn the_compressed_pixels_of_a_png_end_with_their_stream() {
    let compressed = |bytes: &[u8]| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, bytes).and_then(|()| encoder.finish()).expect("compressed")
    };
    let chunk = |kind: &[u8; 4], content: &[u8]| {
        let sum = crc32fast::hash(&[kind, content].concat()).to_be_bytes();
        [&u32::try_from(content.len()).expect("short").to_be_bytes(), kind.as_slice(), content, &sum].concat()
    };
    // Two by two grey pixels, with the filter of each line.
    let (lines, more) = ([0, 10, 20, 0, 30, 40], [0, 10, 20, 0, 30, 40, b'S', b'E', b'C', b'R', b'E', b'T']);
    let png = |chunks: &[Vec<u8>]| {
        let header = chunk(b"IHDR", &[0, 0, 0, 2, 0, 0, 0, 2, 8, 0, 0, 0, 0]);
        [b"\x89PNG\r\n\x1a\n".as_slice(), &header, &chunks.concat(), &chunk(b"IEND", b"")].concat()
    };
    let idat = |content: &[u8]| chunk(b"IDAT", content);
    let stream = compressed(&lines);
    let whole = png(&[idat(&stream)]);
    assert_eq!(pixels(&whole), [10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40]);
    let (start, end) = stream.split_at(7);
    let split = png(&[idat(start), idat(b""), idat(end)]);
    assert!(cleaned(&whole) == whole && cleaned(&split) == split);
    let behind = [&stream, b"SECRET".as_slice()].concat();
    assert!(cleaned(&png(&[idat(&behind)])) == whole);
    assert!(cleaned(&png(&[idat(&behind), idat(b"SECRET")])) == whole);
    assert!(cleaned(&png(&[idat(&stream), idat(b"SECRET")])) == whole);
    assert!(cleaned(&png(&[idat(start), idat(b""), idat(&[end, b"SECRET"].concat())])) == split);
    // More pixels than there are, and a stream that cannot be read any further.
    let copy = cleaned(&png(&[idat(&compressed(&more))]));
    assert!(pixels(&copy) == pixels(&whole) && !has(&copy, "SECRET"));
    let mut broken = compressed(&more.repeat(50));
    broken[2] = 0xff;
    assert!(!has(&cleaned(&png(&[idat(&[&broken, b"SECRET".as_slice()].concat())])), "SECRET"));

    let part = |number: u8, content: &[u8]| chunk(b"fdAT", &[&[0, 0, 0, number], content].concat());
    let frame = |number: u8| chunk(b"fcTL", &[[0, 0, 0, number, 0, 0, 0, 2, 0, 0, 0, 2].as_slice(), &[0; 14]].concat());
    let film = |secret: &[u8]| {
        let (idat, fdat) = ([&stream, secret].concat(), [end, secret].concat());
        png(&[
            chunk(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]),
            frame(0),
            chunk(b"IDAT", &idat),
            frame(1),
            part(2, start),
            part(3, &fdat),
            frame(4),
            part(5, &idat),
        ])
    };
    assert!(cleaned(&film(b"")) == film(b"") && cleaned(&film(b"SECRET")) == film(b""));
}

/// GIF89a, appendix F: a code says where the pixels of a frame end, and no decoder reads on when it has them all.
#[test]
fn a_frame_of_a_gif_ends_with_its_pixels() {
    let gif = |rest: &[u8]| [b"GIF89a\x04\0\x02\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x04\0\x02\0\0\x02".as_slice(), rest].concat();
    // Codes of three bits, and of four when there are seven: clear (4), 0, 6, 7 and 6 (eight pixels in all), and the end (5).
    let whole = gif(b"\x03\x84\x6f\x05\0;");
    assert_eq!(pixels(&whole), [0; 24]);
    for rest in [b"\x09\x84\x6f\x05SECRET\0;".as_slice(), b"\x03\x84\x6f\x05\x06SECRET\0;", b"\x03\x84\x6f\x05\x07SECRET\0\x03OFF\0;"] {
        let copy = cleaned(&gif(rest));
        assert!(copy == whole, "{:?}", String::from_utf8_lossy(&copy));
    }
    // Each byte is a block of its own, the end does not come, there is no code, and one has no meaning.
    let split = b"\x01\x84\x01\x6f\x01\x05\0;";
    assert!(cleaned(&gif(&[&split[..6], b"\x06SECRET\0;"].concat())) == gif(split));
    assert!(cleaned(&gif(b"\x08\x84\x6fSECRET\0;")) == gif(b"\x02\x84\x6f\0;"));
    assert!(cleaned(&gif(b"\x07\xffSECRET\0;")) == gif(b"\0;"));
    assert!(cleaned(&gif(b"\x08\xc4\x01SECRET\0;")) == gif(b"\x01\xc4\0;"));
    let wide = |rest: &[u8]| [&gif(b"")[..29], b"\x0d", rest].concat();
    assert!(cleaned(&wide(b"\x06SECRET\0;")) == wide(b"\0;"));
}

/// RFC 9649 §2.7.1.5: unknown chunks may stand within a frame.
#[test]
fn frames_of_a_webp_have_pixels_alone() {
    let chunk = |kind: &[u8; 4], content: &[u8]| {
        let length = u32::try_from(content.len()).expect("short").to_le_bytes();
        [kind.as_slice(), &length, content, &vec![0; content.len() % 2]].concat()
    };
    let still = sample::webp(&sample::photo(8, 8));
    let file = |chunks: &[Vec<u8>]| {
        let content = [b"WEBP".to_vec(), chunks.concat()].concat();
        [b"RIFF".as_slice(), &u32::try_from(content.len()).expect("short").to_le_bytes(), &content].concat()
    };
    let frame = |rest: &[Vec<u8>]| chunk(b"ANMF", &[vec![0; 16], still[12..].to_vec(), rest.concat()].concat());
    let (head, anim) = (chunk(b"VP8X", &[2, 0, 0, 0, 7, 0, 0, 7, 0, 0]), chunk(b"ANIM", &[0; 6]));
    let clean_file = file(&[head.clone(), anim.clone(), frame(&[]), frame(&[])]);
    assert!(cleaned(&clean_file) == clean_file);
    let secret = chunk(b"prVt", b"SECRET!");
    let with = file(&[head, anim, frame(&[secret.clone(), chunk(b"EXIF", b"SECRET")]), secret, frame(&[])]);
    assert!(cleaned(&with) == clean_file);
}

/// Windows Imaging: the head of the file says where pixels begin, and the head of the picture how many they are.
#[test]
fn a_bitmap_has_heads_colours_and_pixels() {
    let encoded = |bits: image::ExtendedColorType, pixels: &[u8]| {
        let mut bitmap = Vec::new();
        image::codecs::bmp::BmpEncoder::new(&mut bitmap).encode(pixels, 5, 3, bits).expect("encoded");
        bitmap
    };
    for bitmap in [
        encoded(image::ExtendedColorType::Rgb8, &[7; 45]),
        encoded(image::ExtendedColorType::L8, &[7; 15]),
        encoded(image::ExtendedColorType::Rgba8, &[7; 60]),
    ] {
        assert!(cleaned(&bitmap) == bitmap);
        assert!(cleaned(&[&bitmap, b"SECRET".as_slice()].concat()) == bitmap);
        // Something stands before the pixels.
        let pixels = u32::from_le_bytes(bitmap[10..14].try_into().expect("four bytes"));
        let at = usize::try_from(pixels).expect("short");
        let with = |between: &[u8]| [&bitmap[..10], &(pixels + 6).to_le_bytes(), &bitmap[14..at], between, &bitmap[at..]].concat();
        assert!(cleaned(&with(b"SECRET")) == with(&[0; 6]));
        let mut linked = [&bitmap[..14], &[0; 124], &bitmap[at..]].concat();
        linked[14] = 124;
        linked[70..74].copy_from_slice(b"KNIL");
        assert!(matches!(clean(Cursor::new(linked)), Err(Fault::Damaged(_))));
    }
}

#[test]
fn pictures_within_icons_are_cleaned() {
    let png = sample::png_of(&sample::photo(8, 8));
    let icon = |pictures: &[&[u8]]| {
        let mut icon = [0, 0, 1, 0, u8::try_from(pictures.len()).expect("few"), 0].to_vec();
        let mut offset = 6 + 16 * pictures.len();
        for picture in pictures {
            icon.extend([8, 8, 0, 0, 1, 0, 32, 0]);
            icon.extend(u32::try_from(picture.len()).expect("short").to_le_bytes());
            icon.extend(u32::try_from(offset).expect("short").to_le_bytes());
            offset += picture.len();
        }
        [icon, pictures.concat()].concat()
    };
    let plain = icon(&[&png, b"a bitmap"]);
    assert!(cleaned(&plain) == plain);
    let dirty = sample::with_chunk(&png, b"tEXt", b"SECRET");
    assert!(cleaned(&[icon(&[&dirty, b"a bitmap"]), b"SECRET".to_vec()].concat()) == plain);
}

/// The pictures are embedded as drawing programs do it (RFC 2397).
#[test]
fn pictures_within_drawings_are_cleaned() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    let jpeg = sample::jpeg(&sample::photo(40, 30));
    let dirty = STANDARD.encode(sample::with_segment(&jpeg, 0xe1, b"Exif\0\0SECRET"));
    let lines = |separator: &str| {
        dirty.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).expect("ASCII")).collect::<Vec<_>>().join(separator)
    };
    let drawing =
        |data: &str| format!("<svg><metadata>mine</metadata><image href=\"data:image/jpeg;base64,{data}\"/><text>base64,</text></svg>");
    let clean_drawing = drawing(&STANDARD.encode(&jpeg));
    for data in [dirty.clone(), lines("\n"), lines("&#10;"), lines("%0A"), dirty.replace('+', "%2B")] {
        assert_eq!(String::from_utf8(cleaned(drawing(&data).as_bytes())).expect("text"), clean_drawing);
    }
    assert!(cleaned(clean_drawing.as_bytes()) == clean_drawing.as_bytes());
    // A picture that says that it is something else, a drawing in a drawing, and a font.
    let hidden = format!("<svg><a href='data:;base64,{dirty}'/></svg>");
    assert_eq!(
        String::from_utf8(cleaned(hidden.as_bytes())).expect("text"),
        format!("<svg><a href='data:;base64,{}'/></svg>", STANDARD.encode(&jpeg))
    );
    let inner = |data: &str| format!("<svg><image href=\"data:image/svg+xml;base64,{}\"/></svg>", STANDARD.encode(drawing(data)));
    assert_eq!(String::from_utf8(cleaned(inner(&dirty).as_bytes())).expect("text"), inner(&STANDARD.encode(&jpeg)));
    let font = "<svg><style>src: url(data:font/woff2;base64,d09GMgABAAA=)</style></svg>";
    assert!(cleaned(font.as_bytes()) == font.as_bytes());
    for data in ["?", "AAAA,AAAA", "A"] {
        assert!(clean(Cursor::new(drawing(data))).is_err(), "it could be anything");
    }
    // Each byte is looked at once: many beginnings of data are no more work than one.
    let beginnings = format!("<svg><!-- {} --></svg>", "data:;base64,".repeat(150_000));
    assert!(cleaned(beginnings.as_bytes()) == beginnings.as_bytes());
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

/// ISO/IEC 14496-12 §4.2.2: a length of 0 means up to the end of the file, and one of 1 that 64 bits follow the kind.
#[test]
fn boxes_of_a_jpeg_xl_may_be_of_any_length() {
    let start = [sample::boxed(b"JXL ", b"\r\n\x87\n"), sample::boxed(b"ftyp", b"jxl \0\0\0\0jxl ")].concat();
    let with = |rest: &[u8]| [start.as_slice(), rest].concat();
    let picture = with(b"\0\0\0\x01jxlc\0\0\0\0\0\0\0\x16PIXELS");
    assert!(cleaned(&picture) == picture);
    let to_the_end = with(b"\0\0\0\0jxlcPIXELS\0\0\0\x0eExifSECRET");
    assert!(cleaned(&to_the_end) == to_the_end, "all of that is coded pixels");
    assert!(cleaned(&with(b"\0\0\0\x01Exif\0\0\0\0\0\0\0\x16SECRET\0\0\0\x0ejxlcPIXELS")) == with(b"\0\0\0\x0ejxlcPIXELS"));
    assert!(cleaned(&with(b"\0\0\0\0xml SECRET\0\0\0\x0ejxlcPIXELS")) == start);
    assert!(cleaned(&with(b"\0\0\0\x01xml \xff\xff\xff\xff\xff\xff\xff\xffSECRET")) == start);
    for short in [b"\0\0\0\x07jxlcSECRET".as_slice(), b"\0\0\0\x01jxlc\0\0\0\0\0\0\0\x0fSECRET"] {
        assert!(matches!(clean(Cursor::new(with(short))), Err(Fault::Damaged(_))));
    }
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
    for file in with_metadata() {
        assert!(has(&file, "SECRET"));
        for length in 0..file.len() {
            let cut = &file[..length];
            let copy = clean(Cursor::new(cut)).map(|_| cleaned(cut));
            let Ok(copy) = copy else { continue };
            assert!(!has(&copy, "SECRET"), "{length}: {:?}", String::from_utf8_lossy(&copy));
            // Too little may be left to tell its kind.
            let again = clean(Cursor::new(&copy)).and_then(|plan| plan.of(&copy));
            assert!(matches!(&again, Err(Fault::Unknown)) || again == Ok(copy), "{length}: cleaned twice, it is another");
        }
    }
}

/// Returns a file of every kind, with as much metadata as fits.
fn with_metadata() -> Vec<Vec<u8>> {
    let photo = sample::photo(40, 30);
    let exif = sample::exif(3);
    let items: &[(&[u8; 4], &[u8])] = &[(b"av01", sample::PIXELS), (b"Exif", &exif), (b"mime", b"SECRET")];
    let words = [sample::boxed(b"xml ", b"SECRET"), sample::boxed(b"idat", b"SECRET")].concat();
    let heif = sample::Heif { brands: b"avif\0\0\0\0avif", items, properties: &sample::boxed(b"udes", b"SECRET"), more: &words };
    let film = sample::moov(b"pict", 34, 10, &sample::boxed(b"udta", b"SECRET"));
    let film_first = sample::moov(b"pict", 34 + u32::try_from(film.len()).expect("short"), 10, &sample::boxed(b"udta", b"SECRET"));
    let (avis, mdat) =
        (sample::boxed(b"ftyp", b"avis\0\0\0\0avis"), sample::boxed(b"mdat", &[b"SECRET", sample::SAMPLES, b"SECRET"].concat()));
    let (gif, jxl) = (sample::gif(9, 9, 2), sample::boxed(b"JXL ", b"\r\n\x87\n"));
    vec![
        sample::with_segment(&sample::with_exif(&sample::jpeg(&photo), 3), 0xfe, b"SECRET"),
        sample::with_chunk(&sample::with_chunk(&sample::png_of(&photo), b"eXIf", &exif), b"tEXt", b"SECRET"),
        sample::with_chunks(&sample::webp(&photo), 40, 30, 0x0c, &[(b"EXIF", &exif), (b"XMP ", b"SECRET")]),
        [&gif[..gif.len() - 1], b"!\xfe\x06SECRET\0;SECRET"].concat(),
        heif.file(),
        heif.pixels_first(),
        [avis.clone(), mdat.clone(), film].concat(),
        [avis, film_first, mdat].concat(),
        [jxl, sample::boxed(b"Exif", b"SECRET"), sample::boxed(b"jxlc", b"PIXELS"), sample::boxed(b"xml ", b"SECRET")].concat(),
    ]
}

#[test]
fn a_plan_is_bounded() {
    let segments = [b"\xff\xd8".as_slice(), &b"\xff\xfe\0\x02\xff\xdb\0\x02".repeat(100_000), b"\xff\xd9"].concat();
    assert!(matches!(clean(Cursor::new(&segments)), Err(Fault::Damaged(_))));
    // Within the pixels, which are not read to see whether a file can be cleaned, the copy ends.
    let scan = b"\xff\xda\0\x08\x01\x01\0\0\x3f\0abc";
    let segments = [b"\xff\xd8".as_slice(), scan, &b"\xff\xfe\0\x02\xff\xdb\0\x02".repeat(100_000), b"\xff\xd9"].concat();
    assert!(segments.starts_with(&cleaned(&segments)[..15]) && clean(Cursor::new(&segments)).expect("planned").pieces.len() <= PIECES_MAX);
}

/// A reader that fails when it reads behind a place.
struct Until<'f>(Cursor<&'f [u8]>, u64);

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(self.0.position() < self.1, "it reads at {}", self.0.position());
        self.0.read(buffer)
    }
}

impl Seek for Until<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// A blog with a thousand photographs must start all the same.
#[test]
fn whether_a_picture_can_be_cleaned_is_known_before_its_pixels_are_read() {
    let zeros = vec![0; 4 << 20];
    let photo = sample::photo(40, 30);
    let jpeg = [&sample::with_exif(&sample::jpeg(&photo), 3), zeros.as_slice()].concat();
    let png = [&sample::with_chunk(&sample::png_of(&photo), b"IDAT", &zeros), zeros.as_slice()].concat();
    let gif = [&sample::gif(9, 9, 1), zeros.as_slice()].concat();
    let webp = sample::with_chunks(&sample::webp(&photo), 40, 30, 0, &[(b"ALPH", &zeros)]);
    let avif = [sample::avif(20, 10, 0), sample::boxed(b"mpvd", &zeros)].concat();
    for file in [&jpeg, &png, &gif, &webp, &avif] {
        assert_eq!(check_clean(Until(Cursor::new(file), 1 << 20)), Ok(()));
    }
    let tiff = [b"II*\0\x08\0\0\0".as_slice(), &zeros].concat();
    assert_eq!(check_clean(Until(Cursor::new(&tiff), 1 << 20)), Err(Fault::Unknown));
    for file in with_metadata() {
        for length in 0..file.len() {
            let cut = &file[..length];
            assert_eq!(check_clean(Cursor::new(cut)), clean(Cursor::new(cut)).map(drop), "{length}");
        }
    }
}

/// Files that were damaged in thousands of ways: what is left shows the same, and cleaning it again changes nothing.
#[test]
fn damaged_files_are_cleaned_as_well() {
    let mut files = with_metadata();
    files.push(sample::avif(12, 9, 1));
    // One that has no end, so that its pixels are read.
    let jpeg = sample::jpeg(&sample::photo(24, 16));
    files.push([&jpeg[..jpeg.len() - 2], b"SECRET"].concat());
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
            let again = clean(Cursor::new(&copy)).and_then(|plan| plan.of(&copy));
            // Too little may be left to tell its kind.
            assert!(matches!(&again, Err(Fault::Unknown)) || again.as_ref() == Ok(&copy), "{damaged:?}");
            let facts = Facts::read(Cursor::new(&damaged));
            let Some(facts) = facts.ok().filter(|facts| facts.format != Format::Avif) else { continue };
            let shown = |facts: Facts| (facts.format, facts.width, facts.height, facts.orientation);
            assert_eq!(Facts::read(Cursor::new(&copy)).map(shown), Ok(shown(facts)), "{damaged:?}");
        }
    }
}
