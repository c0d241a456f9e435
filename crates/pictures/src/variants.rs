//! Decides which variants there are of a picture: a pure function of what its head says.
//!
//! Every width is there in WebP, which all browsers of the last years read, and in a form that older ones read. AVIF is smaller by a fifth, and takes
//! twenty times as long to make: too long for a server that does it beside serving.

use crate::{Facts, Format, PIXELS_MAX, SIDE_MAX};

/// The widths of variants. A column of text has 600 to 800 pixels, a phone's screen 360 to 430; both are asked for one to three times as wide, as
/// their pixels are small. The widest is for looks whose pictures fill the window.
const WIDTHS: [u32; 5] = [480, 800, 1200, 1600, 2400];

/// The widest variants that are made before anybody asks.
const WIDTH_MADE_AHEAD: u32 = 1600;

/// The largest side of a WebP (RFC 9649 §2.6).
const WEBP_SIDE_MAX: u32 = 16_383;

/// A form in which variants are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// WebP, with loss for photographs, without for graphics where that is smaller.
    WebP,
    /// JPEG, for what was JPEG.
    Jpeg,
    /// PNG, for what came without loss.
    Png,
}

impl Form {
    /// Returns the extension of files of this form.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::WebP => "webp",
            Self::Jpeg => "jpg",
            Self::Png => "png",
        }
    }

    /// Returns the media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::WebP => "image/webp",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
        }
    }
}

/// A picture in one width and form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant {
    /// The form.
    pub form: Form,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}

impl Variant {
    /// Tells whether the variant is made before anybody asks: those that nearly all browsers choose.
    #[must_use]
    pub fn is_made_ahead(&self) -> bool {
        self.form == Form::WebP && self.width <= WIDTH_MADE_AHEAD
    }
}

/// Lists the variants of a picture, by form and then by width. None is larger than the picture. There are none of pictures that move, are
/// drawn, cannot be decoded, or are too large to be.
#[must_use]
pub fn variants(facts: &Facts) -> Vec<Variant> {
    if facts.animated || !is_decoded(facts.format) || is_too_large(facts) {
        return Vec::new();
    }
    let forms: &[Form] = match facts.format {
        Format::Jpeg => &[Form::WebP, Form::Jpeg],
        Format::Png | Format::Gif | Format::Bmp => &[Form::WebP, Form::Png],
        // Whoever reads the original reads WebP.
        Format::WebP => &[Form::WebP],
        Format::Avif | Format::Svg => &[],
    };
    let widest = WIDTHS[WIDTHS.len() - 1].min(facts.width);
    // A width that saves less than an eighth of the next one is not worth its place.
    let smaller = WIDTHS.into_iter().filter(|width| u64::from(*width) * 8 <= u64::from(widest) * 7);
    let widths: Vec<_> = smaller.chain([widest]).collect();
    let variant = |form: Form, width: u32| {
        let height = (u64::from(facts.height) * u64::from(width) + u64::from(facts.width) / 2) / u64::from(facts.width);
        Variant { form, width, height: u32::try_from(height).unwrap_or(u32::MAX).max(1) }
    };
    let all = forms.iter().flat_map(|&form| widths.iter().map(move |&width| variant(form, width)));
    all.filter(|variant| variant.form != Form::WebP || variant.width.max(variant.height) <= WEBP_SIDE_MAX).collect()
}

/// Tells whether pictures of this format can be decoded here.
pub(crate) const fn is_decoded(format: Format) -> bool {
    !matches!(format, Format::Avif | Format::Svg)
}

/// Tells whether a picture is too large to be decoded.
pub(crate) fn is_too_large(facts: &Facts) -> bool {
    facts.width.max(facts.height) > SIDE_MAX || u64::from(facts.width) * u64::from(facts.height) > PIXELS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(format: Format, width: u32, height: u32) -> Facts {
        Facts { format, width, height, orientation: 1, animated: false, alpha: false }
    }

    fn widths(facts: &Facts, form: Form) -> Vec<(u32, u32)> {
        variants(facts).into_iter().filter(|variant| variant.form == form).map(|variant| (variant.width, variant.height)).collect()
    }

    #[test]
    fn a_photograph_has_every_useful_width_in_webp_and_in_its_own_format() {
        let photo = facts(Format::Jpeg, 4000, 3000);
        let expected = [(480, 360), (800, 600), (1200, 900), (1600, 1200), (2400, 1800)];
        assert_eq!(widths(&photo, Form::WebP), expected);
        assert_eq!(widths(&photo, Form::Jpeg), expected);
        assert!(widths(&photo, Form::Png).is_empty());
    }

    #[test]
    fn no_variant_is_larger_than_the_picture() {
        let cases: [(u32, &[u32]); 8] = [
            (1, &[1]),
            (300, &[300]),
            (480, &[480]),
            (520, &[520]),
            (900, &[480, 900]),
            (1000, &[480, 800, 1000]),
            (1600, &[480, 800, 1200, 1600]),
            (2500, &[480, 800, 1200, 1600, 2400]),
        ];
        for (width, expected) in cases {
            let got: Vec<_> = widths(&facts(Format::Png, width, 100), Form::WebP).into_iter().map(|(width, _)| width).collect();
            assert_eq!(got, expected, "{width}");
        }
    }

    #[test]
    fn what_moves_is_drawn_or_cannot_be_decoded_is_left_as_it_is() {
        for format in [Format::Svg, Format::Avif] {
            assert!(variants(&facts(format, 800, 600)).is_empty(), "{format:?}");
        }
        for format in [Format::Gif, Format::Png, Format::WebP] {
            assert!(variants(&Facts { animated: true, ..facts(format, 800, 600) }).is_empty(), "{format:?}");
        }
        let webp = variants(&facts(Format::WebP, 600, 300));
        assert_eq!(webp.iter().map(|variant| (variant.form, variant.width)).collect::<Vec<_>>(), [(Form::WebP, 480), (Form::WebP, 600)]);
    }

    #[test]
    fn pictures_beyond_the_bounds_have_no_variants() {
        for (width, height) in [(50_000, 100), (100, 50_000), (30_001, 1), (10_000, 5_001)] {
            assert!(variants(&facts(Format::Png, width, height)).is_empty(), "{width} × {height}");
        }
        assert!(!variants(&facts(Format::Png, 10_000, 5_000)).is_empty());
    }

    /// A comic strip of one column: WebP ends at 16,383 pixels.
    #[test]
    fn a_very_high_picture_has_no_webp_that_cannot_exist() {
        let strip = facts(Format::Png, 900, 25_000);
        assert_eq!(widths(&strip, Form::WebP), [(480, 13_333)]);
        assert_eq!(widths(&strip, Form::Png), [(480, 13_333), (900, 25_000)]);
        assert_eq!(widths(&facts(Format::Jpeg, 20_000, 5), Form::WebP), [(480, 1), (800, 1), (1200, 1), (1600, 1), (2400, 1)]);
    }
}
