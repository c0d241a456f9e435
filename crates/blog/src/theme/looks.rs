//! The looks in the binary: the theme itself, and three that change some of its templates and end with a style of their own.

use std::{fmt, hash};

use super::Colour;

/// A look in the binary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EmbeddedLook {
    pub(crate) name: &'static str,
    /// The style that follows that of the theme.
    pub(super) style: &'static str,
    /// The templates that replace those of the theme with the same names.
    pub(super) templates: &'static [(&'static str, &'static str)],
    /// The colours on which text stands, in light and in dark: the paper and the wash.
    pub(super) papers: [[Colour; 2]; 2],
}

const fn papers(light: [u32; 2], dark: [u32; 2]) -> [[Colour; 2]; 2] {
    const fn colour(rgb: u32) -> Colour {
        let [_, red, green, blue] = rgb.to_be_bytes();
        Colour::new(red, green, blue)
    }
    [[colour(light[0]), colour(light[1])], [colour(dark[0]), colour(dark[1])]]
}

macro_rules! of_example {
    ($look:literal, $file:literal) => {
        include_str!(concat!("../../../../examples/looks/", $look, "/theme/", $file))
    };
}

/// Every look, the default first. The others are in `examples/looks` too, for those who want to begin from one.
pub(crate) static LOOKS: [EmbeddedLook; 4] = [
    EmbeddedLook { name: "seawall", style: "", templates: &[], papers: papers([0xfc_fbf8, 0xf3_f1ea], [0x12_191f, 0x1a_232b]) },
    EmbeddedLook {
        name: "plain",
        style: of_example!("plain", "custom.css"),
        templates: &[("index.html", of_example!("plain", "index.html"))],
        papers: papers([0xff_ffff, 0xf6_f6f6], [0x18_1818, 0x24_2424]),
    },
    EmbeddedLook {
        name: "magazine",
        style: of_example!("magazine", "custom.css"),
        templates: &[],
        papers: papers([0xff_fdfa, 0xf5_f0e8], [0x17_1412, 0x22_1e1b]),
    },
    EmbeddedLook {
        name: "terminal",
        style: of_example!("terminal", "custom.css"),
        templates: &[("brand.html", of_example!("terminal", "brand.html"))],
        papers: papers([0xf4_f1e6, 0xe9_e5d6], [0x0c_110d, 0x15_1c16]),
    },
];

/// The name of a look that exists.
#[derive(Clone, Copy)]
pub(crate) struct LookName(&'static EmbeddedLook);

impl LookName {
    pub(crate) fn find(name: &str) -> Option<Self> {
        LOOKS.iter().find(|look| look.name == name).map(Self)
    }

    pub(super) const fn get(self) -> &'static EmbeddedLook {
        self.0
    }
}

impl Default for LookName {
    fn default() -> Self {
        Self(&LOOKS[0])
    }
}

impl PartialEq for LookName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for LookName {}

impl hash::Hash for LookName {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for LookName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        super::{STYLE, colour::READABLE, style::minified},
        *,
    };

    type Variables = BTreeMap<String, String>;

    /// Reads the variables of the first rule for `:root` in `css`.
    fn declared(css: &str) -> Variables {
        let body = css.split_once(":root{").and_then(|(_, rest)| rest.split_once('}')).map_or("", |(body, _)| body);
        body.split(';')
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim_start_matches('-').to_owned(), value.to_owned()))
            .collect()
    }

    /// Returns the variables of a look in light and in dark.
    fn variables(look: &EmbeddedLook) -> [Variables; 2] {
        let (base, own) = (minified(STYLE), minified(look.style));
        let parts = |css: &str| {
            let (light, dark) = css.split_once("@media (prefers-color-scheme:dark){").unwrap_or((css, ""));
            [declared(light), declared(dark)]
        };
        let ([light, dark], [own_light, own_dark]) = (parts(&base), parts(&own));
        let mut all = light;
        all.extend(own_light.clone());
        // In the file, the light colours of the look follow the dark ones of the theme.
        let mut all_dark = all.clone();
        all_dark.extend(dark);
        all_dark.extend(own_light);
        all_dark.extend(own_dark);
        [all, all_dark]
    }

    /// WCAG 2.2, 1.4.3: everything that is read has a contrast of 4.5 on everything on which it can stand.
    #[test]
    fn every_colour_of_every_look_can_be_read_in_light_and_in_dark() {
        for look in &LOOKS {
            for (scheme, variables) in ["light", "dark"].into_iter().zip(variables(look)) {
                let colour = |name: &str| {
                    let value = variables.get(name).unwrap_or_else(|| panic!("{}: no --{name}", look.name));
                    Colour::parse(value).unwrap_or_else(|| panic!("{}: --{name} is {value}", look.name))
                };
                let papers = look.papers[usize::from(scheme == "dark")];
                assert_eq!(
                    papers,
                    [colour("paper"), colour("wash")],
                    "{}, {scheme}: the papers of the table are those of the style",
                    look.name
                );
                let mut pairs = Vec::new();
                for text in ["ink", "soft", "accent", "k", "s", "n", "f", "t", "a", "m", "tip", "caution"] {
                    pairs.extend([(text, "paper"), (text, "wash")]);
                }
                for text in ["ink", "soft", "k", "s", "n", "f", "t", "a", "m", "tip", "caution"] {
                    pairs.push((text, "mark"));
                }
                for tone in ["note", "tip", "important", "warning", "caution"] {
                    // On 7 % of itself, which is darker or lighter than the wash of any look is not; measured below.
                    let (front, paper) = (colour(tone), colour("paper"));
                    assert!(front.contrast(paper.mixed(front, 0.07)) >= READABLE, "{}, {scheme}: title of an alert, {tone}", look.name);
                    assert!(colour("ink").contrast(paper.mixed(front, 0.07)) >= READABLE);
                    assert!(
                        colour("accent").contrast(paper.mixed(front, 0.07)) >= READABLE,
                        "{}, {scheme}: a link in an alert, {tone}: {:.2}",
                        look.name,
                        colour("accent").contrast(paper.mixed(front, 0.07))
                    );
                }
                for (front, back) in pairs {
                    let contrast = colour(front).contrast(colour(back));
                    assert!(contrast >= READABLE, "{}, {scheme}: {front} on {back} has {contrast:.2}", look.name);
                }
            }
        }
    }

    #[test]
    fn styles_are_small() {
        for look in &LOOKS {
            let bytes = minified(&format!("{STYLE}\n{}", look.style)).len();
            let bound = if look.style.is_empty() { 15_000 } else { 17_500 };
            assert!(bytes < bound, "{}: {bytes} bytes", look.name);
        }
    }
}
