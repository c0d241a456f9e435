//! Tells what the colours of a file are: those of sRGB, or others, which are converted to it.
//!
//! A PNG may say so in four ways, of which the first that is understood counts (PNG §4.3): the numbers of a standard for films (`cICP`), a profile, a mark that it is
//! sRGB, and the brightness and the hues of its colours (`gAMA`, `cHRM`). Films of a high dynamic range have colours that sRGB has no place for at all; what else their
//! file says counts then.

use moxcms::{
    Chromaticity, CicpColorPrimaries, CicpProfile, ColorPrimaries, ColorProfile, DataColorSpace, Layout, MatrixCoefficients, ToneReprCurve,
    TransferCharacteristics, TransformOptions, XyY,
};

use super::Pixels;

/// The gamma of sRGB, as a `gAMA` chunk tells it, and how much others may differ: nobody sees less.
const SRGB_GAMMA: u32 = 45_455;
const GAMMA_TOLERANCE: u32 = 2_273;

/// The gammas that pictures may have: those of screens and of light itself are far within.
const GAMMAS: std::ops::RangeInclusive<u32> = 10_000..=500_000;

/// White, red, green and blue of sRGB, as a `cHRM` chunk tells them, and how much others may differ.
const SRGB_CHROMATICITIES: [u32; 8] = [31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000];
const CHROMATICITY_TOLERANCE: u32 = 1_000;

/// The hues are given in units of this.
const UNIT: f64 = 100_000.0;

/// The content of a `cICP` chunk that says the same.
const SRGB_NUMBERS: [u8; 4] = [1, 13, 0, 1];

/// The transfer functions of a high dynamic range (ITU-T H.273, table 3).
const HIGH_RANGES: [u8; 2] = [16, 18];

/// Returns the profile of a picture's colours if they are not those of sRGB. `icc` is the one within the file. One that cannot be read is left out: the
/// colours are paler then, and still the picture's.
pub(super) fn profile(png: Option<&[u8]>, icc: Option<&[u8]>) -> Option<ColorProfile> {
    let chunks = png.map(Chunks::read).unwrap_or_default();
    match chunks.cicp {
        Some(SRGB_NUMBERS) => return None,
        Some(numbers) if let Some(profile) = film(numbers) => return Some(profile),
        _ => {}
    }
    if icc.is_some() || chunks.is_srgb {
        return ColorProfile::new_from_slice(icc?).ok();
    }
    measured(chunks.gamma, chunks.chromaticities)
}

/// Holds what the chunks of a PNG before its pixels say of its colours.
#[derive(Default)]
struct Chunks {
    cicp: Option<[u8; 4]>,
    is_srgb: bool,
    gamma: Option<u32>,
    chromaticities: Option<[u32; 8]>,
}

impl Chunks {
    fn read(png: &[u8]) -> Self {
        let mut chunks = Self::default();
        let mut rest = png.get(8..).unwrap_or_default();
        while let Some((&[a, b, c, d, ref kind @ ..], after)) = rest.split_first_chunk::<8>() {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            let Some((content, next)) = after.split_at_checked(length).filter(|_| kind != b"IDAT") else { break };
            match kind {
                b"cICP" => chunks.cicp = chunks.cicp.or_else(|| content.try_into().ok()),
                b"sRGB" => chunks.is_srgb = true,
                b"gAMA" => chunks.gamma = chunks.gamma.or_else(|| content.try_into().map(u32::from_be_bytes).ok()),
                b"cHRM" => chunks.chromaticities = chunks.chromaticities.or_else(|| eight(content)),
                _ => {}
            }
            rest = next.get(4..).unwrap_or_default();
        }
        chunks
    }
}

fn eight(content: &[u8]) -> Option<[u32; 8]> {
    let (numbers, rest) = content.as_chunks::<4>();
    let numbers: Vec<u32> = numbers.iter().map(|number| u32::from_be_bytes(*number)).collect();
    rest.is_empty().then(|| numbers.try_into().ok()).flatten()
}

/// Returns the profile for the content of a `cICP` chunk, if it can be converted.
fn film([primaries, transfer, matrix, is_full]: [u8; 4]) -> Option<ColorProfile> {
    if (matrix, is_full) != (0, 1) || HIGH_RANGES.contains(&transfer) {
        return None;
    }
    let profile = ColorProfile::new_from_cicp(CicpProfile {
        color_primaries: CicpColorPrimaries::try_from(primaries).ok()?,
        transfer_characteristics: TransferCharacteristics::try_from(transfer).ok()?,
        matrix_coefficients: MatrixCoefficients::Identity,
        full_range: true,
    });
    profile.red_trc.is_some().then_some(profile)
}

/// Returns the profile for a gamma and hues, if they are not those of sRGB.
fn measured(gamma: Option<u32>, chromaticities: Option<[u32; 8]>) -> Option<ColorProfile> {
    let gamma = gamma.filter(|gamma| GAMMAS.contains(gamma) && gamma.abs_diff(SRGB_GAMMA) > GAMMA_TOLERANCE);
    let chromaticities = chromaticities
        .filter(|own| own.iter().zip(SRGB_CHROMATICITIES).any(|(own, srgb)| own.abs_diff(srgb) > CHROMATICITY_TOLERANCE))
        .filter(are_colours);
    if gamma.is_none() && chromaticities.is_none() {
        return None;
    }
    let mut profile = ColorProfile::new_srgb();
    let [white @ .., red_x, red_y, green_x, green_y, blue_x, blue_y] =
        chromaticities.unwrap_or(SRGB_CHROMATICITIES).map(|number| f64::from(number) / UNIT);
    #[expect(clippy::cast_possible_truncation, reason = "they are fractions of five digits")]
    let hue = |x: f64, y: f64| Chromaticity::new(x as f32, y as f32);
    let primaries = ColorPrimaries { red: hue(red_x, red_y), green: hue(green_x, green_y), blue: hue(blue_x, blue_y) };
    profile.update_rgb_colorimetry(XyY { x: white[0], y: white[1], yb: 1.0 }, primaries);
    if let Some(gamma) = gamma {
        #[expect(clippy::cast_possible_truncation, reason = "it is between a fifth and ten")]
        let curve = ToneReprCurve::Parametric(vec![(UNIT / f64::from(gamma)) as f32]);
        (profile.red_trc, profile.green_trc, profile.blue_trc) = (Some(curve.clone()), Some(curve.clone()), Some(curve));
    }
    Some(profile)
}

/// Tells whether hues are three corners of a triangle with white in it, so that colours can be made of them.
fn are_colours(numbers: &[u32; 8]) -> bool {
    let [white_x, white_y, red_x, red_y, green_x, green_y, blue_x, blue_y] = numbers.map(|number| f64::from(number) / UNIT);
    let area = |a: (f64, f64), b: (f64, f64), c: (f64, f64)| (b.0 - a.0).mul_add(c.1 - a.1, -((c.0 - a.0) * (b.1 - a.1)));
    let (white, red, green, blue) = ((white_x, white_y), (red_x, red_y), (green_x, green_y), (blue_x, blue_y));
    let parts = [area(red, green, white), area(green, blue, white), area(blue, red, white)];
    // Those of ProPhoto lie beside the colours that there are, and none is further out than that.
    let are_plain = [white_x, white_y, red_x, red_y, green_x, green_y, blue_x, blue_y].iter().all(|number| *number <= 1.0) && white_y > 0.1;
    are_plain && (parts.iter().all(|part| *part > 0.01) || parts.iter().all(|part| *part < -0.01))
}

impl Pixels {
    /// Converts the colours to sRGB. Those whose profile cannot be used stay as they are.
    pub(super) fn convert(&mut self, profile: &ColorProfile) {
        let (grey, colours) = if self.has_alpha { (Layout::GrayAlpha, Layout::Rgba) } else { (Layout::Gray, Layout::Rgb) };
        let channels = if self.has_alpha { 4 } else { 3 };
        let converted = || {
            let single: Vec<u8>;
            let (layout, from) = match profile.color_space {
                DataColorSpace::Rgb => (colours, &self.bytes),
                DataColorSpace::Gray if self.is_grey => {
                    // Red, green and blue are the same.
                    single =
                        self.bytes.chunks_exact(channels).flat_map(|pixel| [pixel[0]].into_iter().chain(pixel.get(3).copied())).collect();
                    (grey, &single)
                }
                _ => return None,
            };
            let transform = profile.create_transform_8bit(layout, &ColorProfile::new_srgb(), colours, TransformOptions::default()).ok()?;
            let mut bytes = vec![0; self.bytes.len()];
            transform.transform(from, &mut bytes).ok()?;
            Some(bytes)
        };
        if let Some(bytes) = converted() {
            self.bytes = bytes;
        }
    }
}
