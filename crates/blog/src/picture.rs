//! Pictures as pages show them: addresses of every size and form, the place that they take, and what stands there until they have come.

use serde::Serialize;
use unicode_normalization::UnicodeNormalization;

use crate::{
    escape::escape,
    feed::BASE,
    markdown::{join, scheme},
    slug,
    targets::Targets,
};

/// The width at which the theme shows the pictures of a text: that of the column, or of the screen without its margins.
pub(crate) const TEXT_SIZES: &str = "(min-width: 42rem) 38.5rem, calc(100vw - 2.3rem)";

/// A picture as templates see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Picture {
    /// The address for programs that cannot choose, percent-encoded. It begins with a slash, or names another site.
    pub(crate) src: String,
    /// The width in pixels of what is at `src`; 0 if it is not known.
    pub(crate) src_width: u32,
    /// The height in pixels of what is at `src`; 0 if it is not known.
    pub(crate) src_height: u32,
    /// Addresses in the form of `src`, each with its width. Empty if there is no choice.
    pub(crate) srcset: String,
    /// Addresses in WebP, each with its width. Empty if there are none.
    pub(crate) webp: String,
    /// The width at which the picture is shown in a text, for browsers that choose by it.
    pub(crate) sizes: &'static str,
    /// The width in pixels, as it is shown; 0 if it is not known.
    pub(crate) width: u32,
    /// The height in pixels, as it is shown; 0 if it is not known.
    pub(crate) height: u32,
    /// The words for those who do not see the picture.
    pub(crate) alt: String,
    /// A `data:` address of a few bytes that shows the colours, if they are known already.
    pub(crate) placeholder: Option<String>,
}

impl Picture {
    /// Makes a picture of an address of which nothing is known.
    pub(crate) fn elsewhere(src: &str, alt: &str) -> Self {
        Self { src: src.to_owned(), alt: alt.to_owned(), ..Self::default() }
    }

    /// Finds the picture at the head of a post: `src` is an address, or a path relative to `folder`, the folder of the post's file. Returns
    /// `Some(None)` if it is left out because of a fault, and `None` if there is no such file.
    pub(crate) fn cover(src: &str, alt: &str, folder: &str, targets: &Targets) -> Option<Option<Self>> {
        if src.starts_with("//") || scheme(src).is_some() {
            return Some(Some(Self::elsewhere(src, alt)));
        }
        let decoded = slug::decode_path(src).unwrap_or_else(|| src.to_owned());
        let name = join(if src.starts_with('/') { "" } else { folder }, &decoded)?;
        // File systems keep `ü` as one character or as two.
        let forms = [name.nfc().collect(), name.nfd().collect()];
        let name = forms.into_iter().find(|form: &String| targets.file(form).is_some()).unwrap_or(name);
        match (targets.picture(&name, alt), targets.file(&name)) {
            (Some(picture), _) => Some(Some(picture)),
            (None, Some(target)) if target.is_left_out => Some(None),
            (None, Some(target)) => Some(Some(Self::elsewhere(&slug::encode_path(&target.address), alt))),
            // What is at an address need not be a file.
            (None, None) => src.starts_with('/').then(|| Some(Self::elsewhere(src, alt))),
        }
    }

    /// Writes the picture for a text, as the template `picture.html` does for all others. The first picture of a page comes at once, the
    /// others when a reader gets near them.
    pub(crate) fn html(&self, title: &str, is_first: bool) -> String {
        let loading = if is_first { " fetchpriority=\"high\"" } else { " loading=\"lazy\"" };
        let placeholder = self
            .placeholder
            .as_ref()
            .map_or_else(String::new, |data| format!(" style=\"background:url({}) center/100% 100% no-repeat\"", escape(data)));
        let choice = if self.srcset.is_empty() {
            String::new()
        } else {
            format!(" srcset=\"{}\" sizes=\"{}\"", escape(&self.srcset), escape(self.sizes))
        };
        let src = escape(&self.src);
        let img = format!("<img src=\"{src}\"{}{choice}{loading} decoding=\"async\"{placeholder}>", self.described(title));
        if self.webp.is_empty() {
            return img;
        }
        let (webp, sizes) = (escape(&self.webp), escape(self.sizes));
        format!("<picture><source type=\"image/webp\" srcset=\"{webp}\" sizes=\"{sizes}\">{img}</picture>")
    }

    /// Writes the picture for feeds, whose readers choose among nothing. The address is absolute.
    pub(crate) fn feed_html(&self, title: &str) -> String {
        let base = if self.src.starts_with('/') && !self.src.starts_with("//") { BASE } else { "" };
        format!("<img src=\"{base}{}\"{}>", escape(&self.src), self.described(title))
    }

    fn described(&self, title: &str) -> String {
        let title = if title.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(title)) };
        let place = if self.width == 0 { String::new() } else { format!(" width=\"{}\" height=\"{}\"", self.width, self.height) };
        format!(" alt=\"{}\"{title}{place}", escape(&self.alt))
    }
}

#[cfg(test)]
mod tests {
    use minijinja::{Environment, UndefinedBehavior, context};

    use super::*;

    /// Returns what the template `picture.html` of the theme makes of a picture.
    fn drawn(picture: &Picture, is_first: bool) -> String {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_formatter(|out, _, value| out.write_str(&escape(&value.to_string())).map_err(minijinja::Error::from));
        environment.add_template("picture.html", include_str!("../theme/picture.html")).expect("well-formed");
        let drawn = environment.get_template("picture.html").and_then(|template| template.render(context! { picture, is_first }));
        drawn.expect("it uses what it is given").trim().to_owned()
    }

    #[test]
    fn texts_and_templates_write_pictures_alike() {
        let photo = Picture {
            src: "/pictures/0123456789abcdef/cat-800.jpg".to_owned(),
            srcset: "/pictures/0123456789abcdef/cat-480.jpg 480w, /pictures/0123456789abcdef/cat-800.jpg 800w".to_owned(),
            webp: "/pictures/0123456789abcdef/cat-480.webp 480w".to_owned(),
            sizes: TEXT_SIZES,
            width: 800,
            height: 600,
            alt: "\"Tom\" & <Jerry>".to_owned(),
            placeholder: Some("data:image/webp;base64,UklGRg==".to_owned()),
            ..Picture::default()
        };
        let small = Picture { srcset: String::new(), placeholder: None, ..photo.clone() };
        let drawing = Picture { webp: String::new(), ..small.clone() };
        for picture in [photo, small, drawing, Picture::elsewhere("https://other.test/x.png?a=1&b=2", "")] {
            for is_first in [true, false] {
                assert_eq!(drawn(&picture, is_first), picture.html("", is_first));
            }
        }
    }
}
