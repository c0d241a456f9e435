//! Measures what an album of photographs takes: `cargo run --release -p pictures --example album -- [PICTURES] [WIDTH] [HEIGHT]`.

#![expect(clippy::print_stdout, clippy::disallowed_macros, reason = "it is a program for people")]

use std::{collections::BTreeMap, error::Error, fs, sync::Arc, time::Instant};

use image::{ExtendedColorType, Rgb, RgbImage, codecs::jpeg::JpegEncoder};
use pictures::{Shelf, Source, Workshop};

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u32> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let &[count, width, height] = numbers.as_slice() else { return Err("PICTURES WIDTH HEIGHT".into()) };
    let folder = tempfile::tempdir()?;
    // A landscape of soft hills and fine grain, in eight versions that differ.
    let photographs: Vec<Vec<u8>> = (0..8.min(count)).map(|seed| photograph(width, height, seed)).collect();
    for (number, photograph) in (0..count).zip(photographs.iter().cycle()) {
        let mut content = photograph.clone();
        // Each is a file of its own.
        content.splice(2..2, [0xff, 0xfe, 0, 6].into_iter().chain(number.to_be_bytes()));
        fs::write(folder.path().join(format!("{number}.jpg")), content)?;
    }
    let start = Instant::now();
    let paths = (0..count).map(|number| folder.path().join(format!("{number}.jpg")));
    let sources: Vec<_> = paths.map(|path| Source::read(path).map(Arc::new)).collect::<Result<_, _>>()?;
    println!("{count} heads and digests: {:?}", start.elapsed());

    let start = Instant::now();
    let workshop = Arc::new(Workshop::new(Shelf::open(folder.path().join("kept"), u64::MAX)?));
    let desk = workshop.desk();
    desk.make_ahead(sources.iter().cloned());
    workshop.wait_until_idle();
    println!("made ahead: {:?}, {:?}, {} MB kept", start.elapsed(), workshop.counts(), workshop.kept_bytes() / 1_000_000);
    println!("{}", fs::read_to_string("/proc/self/status")?.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());

    let mut bytes: BTreeMap<_, usize> = BTreeMap::new();
    for source in sources.iter().take(10) {
        *bytes.entry("the author's own".to_owned()).or_default() += usize::try_from(source.bytes())?;
        workshop
            .make_all(source, |variant, made| *bytes.entry(format!("{:?} {}", variant.form, variant.width)).or_default() += made.len())?;
    }
    for (what, bytes) in bytes {
        println!("ten of {what}: {} KB", bytes / 1000);
    }
    Ok(())
}

fn photograph(width: u32, height: u32, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(77_777) + 1;
    let mut noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(u8::try_from(state >> 24).unwrap_or(0)) / 255.0 - 0.5
    };
    let turn = 1.0 + f32::from(u8::try_from(seed).unwrap_or(0));
    let picture = RgbImage::from_fn(width, height, |x, y| {
        let part = |of: u32, all: u32| f32::from(u16::try_from(of * 1000 / all).unwrap_or(0)) / 1000.0;
        let (x, y) = (part(x, width), part(y, height));
        let hill = ((x * 9.0 * turn).sin() * 0.5 + (x * 41.0 + turn).sin() * 0.1 + (y * 63.0).sin() * 0.08).mul_add(0.2, y);
        let grain = noise() * if hill > 0.5 { 0.14 } else { 0.03 };
        let light = |base: f32| {
            let value = ((base * (0.4 + hill) + grain) * 255.0).clamp(0.0, 255.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
            let value = value as u8;
            value
        };
        if hill > 0.5 { Rgb([light(0.35), light(0.45), light(0.2)]) } else { Rgb([light(0.5), light(0.65), light(0.9)]) }
    });
    let mut jpeg = Vec::new();
    let encoded = JpegEncoder::new_with_quality(&mut jpeg, 93).encode(picture.as_raw(), width, height, ExtendedColorType::Rgb8);
    encoded.map_or_else(|_| Vec::new(), |()| jpeg)
}
