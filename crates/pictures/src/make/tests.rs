use std::{fs, path::PathBuf};

use image::{GenericImageView as _, Rgb, RgbImage, Rgba, RgbaImage};

use super::*;
use crate::sample;

struct Fixture {
    folder: tempfile::TempDir,
}

fn fixture() -> Fixture {
    Fixture { folder: tempfile::tempdir().expect("a folder") }
}

impl Fixture {
    fn path(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).expect("written");
        path
    }

    fn source(&self, content: &[u8]) -> Source {
        Source::read(self.path("picture", content)).expect("a picture")
    }
}

fn all(source: &Source) -> Vec<(Variant, Vec<u8>)> {
    let master = Master::new(source).expect("decoded");
    source.variants().iter().map(|variant| (*variant, master.make(variant).expect("made"))).collect()
}

fn has(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn every_variant_has_its_size_and_form_and_no_metadata() {
    let fixture = fixture();
    let photo = sample::with_exif(&sample::jpeg(&sample::photo(1000, 500)), 1);
    let source = fixture.source(&photo);
    let made = all(&source);
    assert_eq!(made.len(), 6);
    for (variant, content) in made {
        let format = image::guess_format(&content).expect("a picture");
        let expected = if variant.form == Form::WebP { ImageFormat::WebP } else { ImageFormat::Jpeg };
        assert_eq!(format, expected);
        let picture = image::load_from_memory(&content).expect("decoded");
        assert_eq!((picture.width(), picture.height()), (variant.width, variant.height));
        assert!(!has(&content, "SECRET") && !has(&content, "Exif"), "{variant:?}");
    }
    assert!(fs::read(source.path()).expect("read") == photo, "the author's file is untouched");
}

/// A picture whose upper left quarter is red, as it should be seen, stored in each of the eight ways in which a camera can be held.
#[test]
fn pictures_are_turned_as_the_camera_was_held() {
    let fixture = fixture();
    let seen = RgbImage::from_fn(64, 32, |x, y| if x < 32 && y < 16 { Rgb([250, 10, 10]) } else { Rgb([10, 10, 250]) });
    // Exif §4.6.4: what has to be done to what is seen to get what is stored.
    let stored = [
        seen.clone(),
        image::imageops::flip_horizontal(&seen),
        image::imageops::rotate180(&seen),
        image::imageops::flip_vertical(&seen),
        image::imageops::flip_horizontal(&image::imageops::rotate90(&seen)),
        image::imageops::rotate270(&seen),
        image::imageops::flip_horizontal(&image::imageops::rotate270(&seen)),
        image::imageops::rotate90(&seen),
    ];
    for (orientation, stored) in (1_u8..).zip(stored) {
        let source = fixture.source(&sample::with_exif(&sample::jpeg(&stored), orientation));
        for (variant, content) in all(&source) {
            let picture = image::load_from_memory(&content).expect("decoded");
            assert_eq!((picture.width(), picture.height()), (64, 32), "{orientation} {variant:?}");
            let is_red = |x, y| picture.get_pixel(x, y)[0] > 150;
            assert!(is_red(8, 8) && !is_red(56, 8) && !is_red(8, 28) && !is_red(56, 28), "{orientation} {variant:?}");
        }
    }
}

#[test]
fn transparency_stays() {
    let fixture = fixture();
    let picture = RgbaImage::from_fn(600, 300, |x, _| if x < 300 { Rgba([200, 0, 0, 255]) } else { Rgba([0, 0, 0, 0]) });
    let source = fixture.source(&sample::png(&picture));
    for (variant, content) in all(&source) {
        let made = image::load_from_memory(&content).expect("decoded");
        assert_eq!((made.get_pixel(10, 10)[3], made.get_pixel(variant.width - 10, 10)[3]), (255, 0), "{variant:?}");
    }
    let master = Master::new(&source).expect("decoded");
    assert_eq!(master.placeholder(), Ok(None), "it would be seen through the picture");
}

#[test]
fn a_placeholder_is_a_few_bytes_with_the_colours_of_the_picture() {
    let fixture = fixture();
    for (width, height) in [(640, 480), (480, 640), (5000, 3), (1, 1)] {
        let source = fixture.source(&sample::png_of(&RgbImage::from_pixel(width, height, Rgb([200, 100, 50]))));
        let master = Master::new(&source).expect("decoded");
        let data = master.placeholder().expect("made").expect("nothing is transparent");
        assert!(data.len() < 200, "{}", data.len());
        let encoded = data.strip_prefix("data:image/webp;base64,").expect("an address");
        let tiny = image::load_from_memory(&base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64")).expect("decoded");
        let pixel = tiny.get_pixel(0, 0);
        for (got, expected) in pixel.0.into_iter().zip([200_u8, 100, 50]) {
            assert!(got.abs_diff(expected) < 12, "{pixel:?}");
        }
    }
}

#[test]
fn graphics_are_encoded_without_loss_where_that_is_smaller() {
    let fixture = fixture();
    // Lines and areas of a few colours, as on a screen.
    let chart = RgbImage::from_fn(480, 320, |x, y| match (x % 60, y % 40) {
        (0, _) | (_, 0) => Rgb([0, 0, 0]),
        (x, y) if x > 20 && y > 20 => Rgb([30, 120, 200]),
        _ => Rgb([255, 255, 255]),
    });
    let source = fixture.source(&sample::png_of(&chart));
    let (_, webp) = all(&source).into_iter().find(|(variant, _)| variant.form == Form::WebP).expect("one");
    assert_eq!(image::load_from_memory(&webp).expect("decoded").into_rgb8().into_raw(), chart.into_raw(), "to the bit");
    assert!((webp.len() as u64) < source.bytes());
    // A photograph stays one in a format without loss.
    let photo = fixture.source(&sample::png_of(&sample::photo(480, 320)));
    let (_, webp) = all(&photo).into_iter().find(|(variant, _)| variant.form == Form::WebP).expect("one");
    assert!((webp.len() as u64) * 4 < photo.bytes(), "{} of {}", webp.len(), photo.bytes());
}

#[test]
fn no_variant_has_more_bytes_than_the_authors_own_file_of_that_size() {
    let fixture = fixture();
    let mut small = Vec::new();
    let picture = sample::photo(400, 300);
    JpegEncoder::new_with_quality(&mut small, 15).encode(picture.as_raw(), 400, 300, ExtendedColorType::Rgb8).expect("encoded");
    let source = fixture.source(&sample::with_exif(&small, 1));
    for (variant, content) in all(&source).into_iter().filter(|(variant, _)| variant.form == Form::Jpeg) {
        assert!(content.len() as u64 <= source.bytes() && !has(&content, "SECRET"), "{variant:?}");
    }
}

/// Display P3, as telephones write it, has greens that sRGB has not; the same numbers without their profile are paler.
#[test]
fn colours_of_cameras_become_those_of_the_web() {
    let fixture = fixture();
    let profile = ColorProfile::new_display_p3().encode().expect("encoded");
    let plain = sample::jpeg(&RgbImage::from_pixel(64, 64, Rgb([200, 80, 80])));
    let with = sample::with_segment(&plain, 0xe2, &[b"ICC_PROFILE\0\x01\x01".as_slice(), &profile].concat());
    let red = |content: &[u8]| {
        let (_, made) = all(&fixture.source(content)).remove(0);
        let pixel = image::load_from_memory(&made).expect("decoded").get_pixel(30, 30);
        (pixel[0], pixel[1])
    };
    let (converted, unconverted) = (red(&with), red(&plain));
    // By the matrices of both spaces and the curve that they share, this red is (216, 69, 75) in sRGB.
    assert!(converted.0.abs_diff(216) < 8 && converted.1.abs_diff(69) < 8, "{converted:?}");
    assert!(unconverted.0.abs_diff(200) < 6, "{unconverted:?}");
}

/// PNG §4.3: the numbers of a standard go before a profile, that before the mark of sRGB, and that before brightness and hues.
#[test]
fn colours_of_a_png_become_those_of_the_web() {
    let fixture = fixture();
    let grey = sample::png_of(&RgbImage::from_pixel(64, 64, Rgb([100, 100, 100])));
    let red = sample::png_of(&RgbImage::from_pixel(64, 64, Rgb([200, 80, 80])));
    let pixel = |png: &[u8], chunks: &[(&[u8; 4], &[u8])]| {
        let with = chunks.iter().rev().fold(png.to_vec(), |png, (kind, content)| sample::with_chunk(&png, kind, content));
        let (_, made) = all(&fixture.source(&with)).remove(0);
        let Rgba([red, green, blue, _]) = image::load_from_memory(&made).expect("decoded").get_pixel(30, 30);
        [red, green, blue]
    };
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
    let near = |got: [u8; 3], expected: [u8; 3]| {
        assert!(got.iter().zip(expected).all(|(one, other)| one.abs_diff(other) < 6), "{got:?} {expected:?}")
    };
    let (linear, of_screens) = (numbers(&[100_000]), numbers(&[45_455]));
    let srgb = numbers(&[31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000]);
    let p3 = numbers(&[31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000]);
    // 100/255 of light is 168/255 in sRGB, and that to the power of 1.8 is 119/255.
    near(pixel(&grey, &[(b"gAMA", &linear)]), [168; 3]);
    near(pixel(&grey, &[(b"gAMA", &numbers(&[55_556]))]), [119; 3]);
    near(pixel(&red, &[(b"gAMA", &of_screens), (b"cHRM", &p3)]), [216, 69, 75]);
    near(pixel(&red, &[(b"cHRM", &p3)]), [216, 69, 75]);
    near(pixel(&red, &[(b"cICP", &[12, 13, 0, 1]), (b"sRGB", &[0])]), [216, 69, 75]);
    // Those of sRGB, by whichever way, and what makes no sense.
    let unchanged: [&[(&[u8; 4], &[u8])]; 8] = [
        &[],
        &[(b"gAMA", &of_screens), (b"cHRM", &srgb)],
        &[(b"sRGB", &[0]), (b"gAMA", &linear), (b"cHRM", &p3)],
        &[(b"cICP", &[1, 13, 0, 1]), (b"gAMA", &linear)],
        &[(b"cICP", &[9, 16, 0, 1])],
        &[(b"gAMA", &[0; 4]), (b"cHRM", &[0; 32])],
        &[(b"gAMA", &[0xff; 4]), (b"cHRM", &[0xff; 32])],
        &[(b"cICP", &[2, 2, 0, 1])],
    ];
    for chunks in unchanged {
        near(pixel(&red, chunks), [200, 80, 80]);
    }
}

#[test]
fn greys_of_a_profile_become_those_of_the_web() {
    let fixture = fixture();
    let profile = ColorProfile::new_gray_with_gamma(1.0).encode().expect("encoded");
    let mut jpeg = Vec::new();
    JpegEncoder::new(&mut jpeg).encode(&[100; 64 * 64], 64, 64, ExtendedColorType::L8).expect("encoded");
    let with = sample::with_segment(&jpeg, 0xe2, &[b"ICC_PROFILE\0\x01\x01".as_slice(), &profile].concat());
    let mut png = Vec::new();
    let mut encoder = PngEncoder::new(&mut png);
    encoder.set_icc_profile(profile.clone()).expect("kept");
    encoder.write_image(&[100, 50].repeat(64 * 64), 64, 64, ExtendedColorType::La8).expect("encoded");
    for (content, alpha) in [(with, 255), (png, 50)] {
        let (_, made) = all(&fixture.source(&content)).remove(0);
        let Rgba([red, green, blue, opacity]) = image::load_from_memory(&made).expect("decoded").get_pixel(30, 30);
        // 100/255 of light.
        assert!([red, green, blue].iter().all(|grey| grey.abs_diff(168) < 6), "{red} {green} {blue}");
        assert_eq!(opacity, alpha);
    }
    // In a picture with colours, it means nothing.
    let colours = sample::with_segment(
        &sample::jpeg(&RgbImage::from_pixel(64, 64, Rgb([200, 80, 80]))),
        0xe2,
        &[b"ICC_PROFILE\0\x01\x01".as_slice(), &profile].concat(),
    );
    let (_, made) = all(&fixture.source(&colours)).remove(0);
    assert!(image::load_from_memory(&made).expect("decoded").get_pixel(30, 30)[0].abs_diff(200) < 6);
}

#[test]
fn hostile_files_are_faults_and_nothing_worse() {
    let fixture = fixture();
    let photo = sample::photo(600, 400);
    let fault = |content: &[u8]| match Source::read(fixture.path("bad", content)) {
        Ok(source) => Master::new(&source).err(),
        Err(fault) => Some(fault),
    };
    let png = sample::png_of(&photo);
    assert!(matches!(fault(&png[..png.len() / 2]), Some(Fault::Truncated | Fault::Damaged(_))), "cut off");

    // A bomb: 50,000 pixels a side are announced in a few bytes.
    let mut bomb = png;
    bomb[16..24].copy_from_slice(&[50_000_u32.to_be_bytes(), 50_000_u32.to_be_bytes()].concat());
    let sum = crc32fast::hash(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(fault(&bomb), Some(Fault::TooLarge { width: 50_000, height: 50_000 }));

    let wide = sample::png_of(&RgbImage::new(50_000, 2));
    assert_eq!(fault(&wide), Some(Fault::TooLarge { width: 50_000, height: 2 }));
    assert_eq!((fault(b""), fault(b"<html>")), (Some(Fault::Empty), Some(Fault::Unknown)));
    assert!(matches!(fault(b"\xff\xd8\xff\xc0\0\x0b\x08\0\x10\0\x10\x01\x01\x11\0\xff\xd9"), Some(Fault::Damaged(_) | Fault::Truncated)));
}

#[test]
fn a_file_that_changes_is_not_mixed_up() {
    let fixture = fixture();
    let source = fixture.source(&sample::jpeg(&sample::photo(600, 400)));
    let mut other = sample::jpeg(&sample::photo(600, 401));
    fixture.path("picture", &other);
    assert_eq!(Master::new(&source).err(), Some(Fault::Changed));
    other.resize(usize::try_from(source.bytes()).expect("small"), 0);
    fixture.path("picture", &other);
    assert_eq!(Master::new(&source).err(), Some(Fault::Changed), "one of the same length, too");
    fs::remove_file(source.path()).expect("removed");
    assert_eq!(Master::new(&source).err(), Some(Fault::Unreadable(std::io::ErrorKind::NotFound)));
}
