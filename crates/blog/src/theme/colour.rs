//! Colours: what an author writes as CSS, and what of it can be read on a page.

use svgtypes::Color;

/// A colour without transparency, in sRGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Colour([u8; 3]);

/// The contrast that text needs (WCAG 2.2, success criterion 1.4.3).
pub(crate) const READABLE: f64 = 4.5;

impl Colour {
    pub(crate) const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self([red, green, blue])
    }

    /// Reads a CSS colour: a name, `#rgb`, `#rrggbb`, `rgb(…)` or `hsl(…)`. Returns `None` for anything else, transparent colours included.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.strip_prefix('#').is_some_and(|digits| !matches!(digits.len(), 3 | 6) || !digits.bytes().all(|b| b.is_ascii_hexdigit())) {
            return None;
        }
        let colour: Color = text.to_ascii_lowercase().parse().ok()?;
        (colour.alpha == 255).then_some(Self([colour.red, colour.green, colour.blue]))
    }

    /// Writes the colour as CSS.
    pub(crate) fn css(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// Returns the contrast of two colours, 1 to 21 (WCAG 2.2, "contrast ratio").
    pub(crate) fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Returns the nearest lighter or darker colour of the same hue that can be read on all of `papers`.
    pub(crate) fn readable_on(self, papers: &[Self]) -> Self {
        let is_readable = |colour: Self| papers.iter().all(|paper| colour.contrast(*paper) >= READABLE);
        if is_readable(self) {
            return self;
        }
        let is_dark = papers.iter().map(|paper| paper.luminance()).sum::<f64>() < 0.18 * papers.len() as f64;
        let [lightness, a, b] = self.oklab();
        let end = if is_dark { 1.0 } else { 0.0 };
        let step = |step: u8| {
            let way = f64::from(step) / 100.0;
            // White and black have no hue: it fades on the way.
            Self::of_oklab([lightness + (end - lightness) * way, a * (1.0 - way * way), b * (1.0 - way * way)])
        };
        (1..=100).map(step).find(|colour| is_readable(*colour)).unwrap_or_else(|| step(100))
    }

    /// Returns this colour with `part` of the other, as `color-mix(in srgb, …)` does.
    #[cfg(test)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
    pub(crate) fn mixed(self, other: Self, part: f64) -> Self {
        let mix = |a: u8, b: u8| (f64::from(a) * (1.0 - part) + f64::from(b) * part).round() as u8;
        Self([mix(self.0[0], other.0[0]), mix(self.0[1], other.0[1]), mix(self.0[2], other.0[2])])
    }

    fn linear(self) -> [f64; 3] {
        self.0.map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn luminance(self) -> f64 {
        let [red, green, blue] = self.linear();
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// Returns lightness and two axes of hue in Oklab (Björn Ottosson, 2020), in which equal steps look equal.
    fn oklab(self) -> [f64; 3] {
        let [r, g, b] = self.linear();
        let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
        let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
        let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
        ]
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=255 before")]
    fn of_oklab([lightness, a, b]: [f64; 3]) -> Self {
        let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
        let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
        let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
        let linear = [
            4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
            -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
            -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701 * s,
        ];
        Self(linear.map(|value| {
            let value = value.clamp(0.0, 1.0);
            let value = if value <= 0.003_130_8 { value * 12.92 } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 };
            (value * 255.0).round().clamp(0.0, 255.0) as u8
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Colour = Colour::new(255, 255, 255);
    const BLACK: Colour = Colour::new(0, 0, 0);

    #[test]
    fn colours_are_read_as_css_writes_them() {
        let cases = [
            ("#0b6e75", Some("#0b6e75")),
            ("#FA0", Some("#ffaa00")),
            (" rebeccapurple ", None),
            ("tomato", Some("#ff6347")),
            ("Tomato", Some("#ff6347")),
            ("rgb(0, 128, 255)", Some("#0080ff")),
            ("hsl(120, 100%, 25%)", Some("#008000")),
            ("#12", None),
            ("#zzzzzz", None),
            ("#12345678", None),
            ("red; } body { display: none", None),
            ("url(x)", None),
            ("", None),
        ];
        for (text, expected) in cases {
            // The list of names is that of CSS 3.
            assert_eq!(Colour::parse(text).map(Colour::css).as_deref(), expected, "{text:?}");
        }
    }

    /// The examples of WCAG's own texts: white on black has 21, and #767676 is the lightest grey with 4.5 on white.
    #[test]
    fn contrast_is_that_of_wcag() {
        assert!((WHITE.contrast(BLACK) - 21.0).abs() < 1e-9);
        assert!((WHITE.contrast(WHITE) - 1.0).abs() < 1e-9);
        assert!(Colour::new(0x76, 0x76, 0x76).contrast(WHITE) >= READABLE);
        assert!(Colour::new(0x77, 0x77, 0x77).contrast(WHITE) < READABLE);
    }

    #[test]
    fn every_accent_becomes_readable_on_light_and_on_dark() {
        let (light, dark) = ([Colour::new(252, 251, 248), Colour::new(243, 241, 234)], [Colour::new(18, 25, 31), Colour::new(26, 35, 43)]);
        for (red, green, blue) in [(255, 255, 0), (0, 0, 139), (255, 255, 255), (0, 0, 0), (128, 128, 128), (255, 0, 0), (11, 110, 117)] {
            let accent = Colour::new(red, green, blue);
            for papers in [&light, &dark] {
                let adjusted = accent.readable_on(papers);
                assert!(papers.iter().all(|paper| adjusted.contrast(*paper) >= READABLE), "{} on {}", adjusted.css(), papers[0].css());
            }
        }
        let readable = Colour::new(11, 104, 118);
        assert_eq!(readable.readable_on(&light), readable, "what can be read stays as it is");
    }

    #[test]
    fn oklab_there_and_back_is_the_same_colour() {
        for colour in [WHITE, BLACK, Colour::new(255, 99, 71), Colour::new(11, 104, 118), Colour::new(0, 0, 255)] {
            assert_eq!(Colour::of_oklab(colour.oklab()), colour);
        }
    }
}
