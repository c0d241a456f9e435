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
