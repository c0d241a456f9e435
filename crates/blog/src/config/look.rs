//! The table `theme` of `blog.toml`: colours, fonts and pictures of the look.

use serde::Deserialize;

use crate::theme::{Colour, LOOKS, LookName};

/// Says how a blog looks. A field that is `None` has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LookOptions {
    /// The look: `seawall`, `plain`, `magazine` or `terminal`. Default: `seawall`.
    pub look: Option<String>,
    /// The colour of links and buttons, as CSS writes it: `"#0b6e75"`, `"tomato"`, `"rgb(11, 110, 117)"`, `"hsl(184, 83%, 25%)"`. Where it
    /// could not be read on the paper of the look, light or dark, the nearest shade that can be read is used. Default: that of the look.
    pub accent: Option<String>,
    /// The font of texts and headings: `"serif"`, `"sans"`, `"mono"`, or names of fonts that readers have, such as `"Charter, Georgia"`.
    /// Default: that of the look.
    pub font: Option<String>,
    /// A file in the folder with the font of texts and headings, such as `"theme/literata.woff2"`. Readers load it from the blog.
    pub font_file: Option<String>,
    /// A file in the folder with the font of code.
    pub code_font_file: Option<String>,
    /// A picture in the folder that stands before the title at the top of each page. Default: Seawall's mark.
    pub logo: Option<String>,
    /// A picture in the folder for tabs and bookmarks. Default: `favicon.svg`, `favicon.ico` or `favicon.png` in the folder, else Seawall's mark.
    pub favicon: Option<String>,
    /// The width of the text: `"narrow"`, `"normal"`, `"wide"`, or a length such as `"42rem"`. Default: that of the look.
    pub width: Option<String>,
}

/// [`LookOptions`] as they are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct LookSettings {
    pub(crate) look: LookName,
    pub(crate) accent: Option<Colour>,
    /// Families of CSS, quoted where they need to be.
    pub(crate) font: Option<String>,
    pub(crate) font_file: Option<String>,
    pub(crate) code_font_file: Option<String>,
    pub(crate) logo: Option<String>,
    pub(crate) favicon: Option<String>,
    /// A length of CSS.
    pub(crate) width: Option<String>,
}

/// The narrowest and the widest text, in `rem`. A line of fewer letters or more is hard to read, and beyond that a slip.
const WIDTHS: std::ops::RangeInclusive<f64> = 20.0..=90.0;

const FONT_EXTENSIONS: [&str; 4] = ["otf", "ttf", "woff", "woff2"];
const PICTURE_EXTENSIONS: [&str; 8] = ["avif", "gif", "ico", "jpeg", "jpg", "png", "svg", "webp"];

/// The name of a family and the list of fonts that stands for it. System fonts come first; the last one every system has.
const FAMILIES: [(&str, &str); 3] = [
    ("serif", "\"Iowan Old Style\",\"Palatino Linotype\",Palatino,\"URW Palladio L\",Georgia,serif"),
    ("sans", "system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",\"Helvetica Neue\",Arial,sans-serif"),
    ("mono", "ui-monospace,\"SF Mono\",\"Cascadia Code\",\"JetBrains Mono\",Menlo,Consolas,\"DejaVu Sans Mono\",monospace"),
];

impl LookOptions {
    /// Fills what is not set with the values of `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            look: self.look.or(other.look),
            accent: self.accent.or(other.accent),
            font: self.font.or(other.font),
            font_file: self.font_file.or(other.font_file),
            code_font_file: self.code_font_file.or(other.code_font_file),
            logo: self.logo.or(other.logo),
            favicon: self.favicon.or(other.favicon),
            width: self.width.or(other.width),
        }
    }
}

impl LookSettings {
    /// Checks every value. Calls `wrong` with the key and the message for each that cannot be used.
    pub(super) fn new(options: LookOptions, mut wrong: impl FnMut(&'static str, String)) -> Self {
        let LookOptions { look, accent, font, font_file, code_font_file, logo, favicon, width } = options;
        let mut checked = |key: &'static str, given: Option<String>, check: fn(&str) -> Result<String, String>| {
            let given = given?;
            check(given.trim()).map_err(|remedy| wrong(key, format!("`theme.{key}` is {given:?}; {remedy}"))).ok()
        };
        let font = checked("font", font, font_list);
        let width = checked("width", width, length);
        let font_file = checked("font_file", font_file, |name| file(name, &FONT_EXTENSIONS));
        let code_font_file = checked("code_font_file", code_font_file, |name| file(name, &FONT_EXTENSIONS));
        let logo = checked("logo", logo, |name| file(name, &PICTURE_EXTENSIONS));
        let favicon = checked("favicon", favicon, |name| file(name, &PICTURE_EXTENSIONS));
        let accent = checked("accent", accent, |text| {
            let remedy = "write a colour of CSS, such as \"#0b6e75\", \"tomato\" or \"hsl(184, 83%, 25%)\"";
            Colour::parse(text).map(Colour::css).ok_or_else(|| remedy.to_owned())
        });
        let look = look.map_or_else(LookName::default, |given| {
            LookName::find(given.trim()).unwrap_or_else(|| {
                let names: Vec<_> = LOOKS.iter().map(|look| format!("\"{}\"", look.name)).collect();
                wrong("look", format!("`theme.look` is {given:?}; the looks are {}", names.join(", ")));
                LookName::default()
            })
        });
        let accent = accent.as_deref().and_then(Colour::parse);
        Self { look, accent, font, font_file, code_font_file, logo, favicon, width }
    }

    /// Lists the files that are named, with the keys that name them.
    pub(crate) fn files_mut(&mut self) -> [(&'static str, &mut Option<String>); 4] {
        [
            ("font_file", &mut self.font_file),
            ("code_font_file", &mut self.code_font_file),
            ("logo", &mut self.logo),
            ("favicon", &mut self.favicon),
        ]
    }
}

fn font_list(text: &str) -> Result<String, String> {
    if let Some((_, fonts)) = FAMILIES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)) {
        return Ok((*fonts).to_owned());
    }
    let names: Vec<_> = text.split(',').map(|name| name.trim().trim_matches(['"', '\'']).trim()).collect();
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || " -_.".contains(c));
    if text.len() > 200 || !names.iter().all(is_name) {
        return Err("write \"serif\", \"sans\", \"mono\", or names of fonts such as \"Charter, Georgia\"".to_owned());
    }
    let generic = ["serif", "sans-serif", "monospace", "system-ui", "ui-serif", "ui-sans-serif", "ui-monospace", "ui-rounded", "cursive"];
    let quoted = |name: &&str| if generic.contains(name) { (*name).to_owned() } else { format!("\"{name}\"") };
    let mut fonts: Vec<_> = names.iter().map(quoted).collect();
    if !names.iter().any(|name| generic.contains(name)) {
        fonts.push("serif".to_owned());
    }
    Ok(fonts.join(","))
}

fn length(text: &str) -> Result<String, String> {
    let named = [("narrow", "34rem"), ("normal", "38.5rem"), ("wide", "46rem")];
    if let Some((_, length)) = named.iter().find(|(name, _)| *name == text) {
        return Ok((*length).to_owned());
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let in_rem = match unit.trim() {
        "rem" | "em" => 1.0,
        "px" => 1.0 / 16.0,
        "ch" => 0.5,
        _ => 0.0,
    };
    match number.parse::<f64>() {
        Ok(number) if WIDTHS.contains(&(number * in_rem)) => Ok(format!("{number}{}", unit.trim())),
        _ => Err(format!(
            "write \"narrow\", \"normal\", \"wide\", or a length from {}rem to {}rem, such as \"42rem\"",
            WIDTHS.start(),
            WIDTHS.end()
        )),
    }
}

/// Returns the path of a file in the folder, without a slash or a dot at its beginning.
fn file(name: &str, extensions: &[&str]) -> Result<String, String> {
    let remedy = || format!("name a file in the blog's folder that ends in {}", extensions.join(", "));
    let name = name.strip_prefix("./").unwrap_or(name).trim_start_matches('/');
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_inside = !name.contains([':', '\\']) && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if is_inside && extension.is_some_and(|extension| extensions.contains(&extension.as_str())) {
        Ok(name.to_owned())
    } else {
        Err(remedy())
    }
}
