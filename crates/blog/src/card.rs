//! The picture of a post that has none, for those who share it: its title, the name of the blog and the date, 1200 by 630 pixels.
//!
//! A card is drawn when somebody asks for it: one at a time and off the worker's loop ([`Studio`]). Its address changes with what is on it, so
//! caches keep it for as long as they like. It is drawn with a font that is part of the program, and with fonts of the system for scripts
//! that this font lacks. Where no font has the letters of a title, the title is left out, as a row of empty boxes helps nobody, and its author
//! is told ([`warnings`]).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write as _,
    iter,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;
use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{
        Node, Options, Tree,
        fontdb::{Database, Source},
    },
};
use skrifa::{FontRef, MetadataProvider as _};
use tokio::sync::Semaphore;
use unicode_normalization::UnicodeNormalization as _;

use crate::{digest::digest, error::Problem, escape::escape, model::Model, post::Post, theme::Colour};

pub(crate) const MEDIA_TYPE: &str = "image/png";
pub(crate) const WIDTH: u32 = 1200;
pub(crate) const HEIGHT: u32 = 630;

/// A number to raise when cards of the same content are drawn differently.
const VERSION: u32 = 1;

/// Inter, SIL Open Font License 1.1 (`fonts/OFL.txt`), reduced to Latin, Greek and Cyrillic.
const FONT: &[u8] = include_bytes!("../fonts/Inter-SemiBold.ttf");
const FAMILY: &str = "Inter";

/// The length at which a title is cut before it is measured.
const TITLE_CHARS_MAX: usize = 180;

/// The space for the title, in pixels.
const TITLE_WIDTH: f32 = 1040.0;
const TITLE_LINES_MAX: usize = 4;

/// Sizes of the title, largest first. The first one in which the title takes few enough lines is used.
const SIZES: [(f32, usize); 5] = [(84.0, 2), (76.0, 3), (68.0, 3), (60.0, TITLE_LINES_MAX), (52.0, TITLE_LINES_MAX)];

/// The accent of a blog that has chosen none: the colour of the sea in Seawall's mark.
const ACCENT: &str = "#2aa7b8";

/// The letters of a title without a font that are told.
const TOLD_LETTERS_MAX: usize = 5;

/// Cards that are kept after they were drawn. A card takes about 60 KiB.
const KEPT_MAX: usize = 16;

/// Cards that are waited for at one time. Whoever asks for a further one is told to come again.
const WAITING_MAX: usize = 32;

/// A picture of 1200 by 630 pixels that stands for a post where it is shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Card {
    title: String,
    site: String,
    /// The text below the title: the date, or the description of the blog.
    line: String,
    accent: String,
}

impl Card {
    pub(crate) fn of_post(model: &Model, post: &Post) -> Self {
        let settings = &model.settings;
        let line = if post.is_page { String::new() } else { post.words(settings).long_date(post.date.day) };
        Self { title: post.title.clone(), site: settings.title.clone(), line, accent: accent(model) }
    }

    pub(crate) fn of_site(model: &Model) -> Self {
        let settings = &model.settings;
        Self {
            title: settings.title.clone(),
            site: String::new(),
            line: settings.description.clone().unwrap_or_default(),
            accent: accent(model),
        }
    }

    /// Returns the title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the address, which changes with the content. It is the same on every machine.
    #[must_use]
    pub fn path(&self) -> String {
        let Self { title, site, line, accent } = self;
        format!("/cards/{}.png", digest(format!("{VERSION}\0{title}\0{site}\0{line}\0{accent}").as_bytes()))
    }

    /// Draws the card, as a PNG file. It takes about 50 ms, so do not call it on a worker's loop.
    #[must_use]
    pub fn draw(&self) -> Bytes {
        png(&self.svg(written_with)).expect("a picture of ours, of this size, is drawn and encoded")
    }

    /// Writes the card as SVG, with the fonts that it needs.
    fn svg(&self, fonts: fn(&str) -> Option<MeasuredText>) -> (String, Fonts) {
        let Self { title, site, line, accent } = self;
        let title: String = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = match title.char_indices().nth(TITLE_CHARS_MAX) {
            Some((at, _)) => format!("{}…", &title[..at]),
            None => title,
        };
        let mut all_fonts = Fonts::Ours;
        let mut written = |text: &str| {
            let written = fonts(text)?;
            all_fonts = all_fonts.max(written.fonts);
            Some(written)
        };
        let (title, site, line) = (written(&title), written(site), written(line));

        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\"><defs><linearGradient id=\"sky\" x1=\"0\" y1=\"0\" \
             x2=\"1\" y2=\"1\"><stop offset=\"0\" stop-color=\"#0c1f2e\"/><stop offset=\"1\" stop-color=\"#153d52\"/></linearGradient></defs>\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"url(#sky)\"/>\
             <path d=\"M0 566c100 0 100-34 200-34s100 34 200 34 100-34 200-34 100 34 200 34 100-34 200-34 100 34 200 34v64H0z\" fill=\"{accent}\" \
             fill-opacity=\".35\"/>\
             <path d=\"M0 596c100 0 100-26 200-26s100 26 200 26 100-26 200-26 100 26 200 26 100-26 200-26 100 26 200 26v34H0z\" fill=\"{accent}\"/>\
             <g transform=\"translate(76 60) scale(2)\"><path fill=\"#fff\" d=\"M22 6h5.500v21H22z\"/><path fill=\"none\" stroke=\"{accent}\" \
             stroke-width=\"2.600\" stroke-linecap=\"round\" d=\"M3 27h14.500M3 20.500c2.400 0 2.400-2 4.800-2s2.400 2 4.800 2 2.400-2 4.900-2M3 \
             13.500c5.500 0 6-6.500 11.500-6.500 2.500 0 4 1.800 4 3.600 0 1.700-1.300 2.900-2.800 2.900\"/></g>",
            accent = escape(accent),
        );
        if let Some(site) = site {
            push_text(&mut svg, &shortened(&site, 34.0, 900.0), 34.0, (160.0, 112.0), ".9", false);
        }
        if let Some(line) = line {
            push_text(&mut svg, &shortened(&line, 32.0, TITLE_WIDTH), 32.0, (80.0, 492.0), ".8", is_right_to_left(&line.text));
        }
        if let Some(title) = title {
            let (size, lines) = set_title(&title);
            let is_right_to_left = is_right_to_left(&title.text);
            // The lines stand in the middle between the name of the blog and the date.
            let step = size * 1.16;
            #[expect(clippy::cast_precision_loss, reason = "at most four lines")]
            let first = 300.0 - step * (lines.len() as f32 - 1.0) / 2.0 + size * 0.36;
            let mut y = first;
            for line in &lines {
                push_text(&mut svg, line, size, (80.0, y), "1", is_right_to_left);
                y += step;
            }
        }
        svg.push_str("</svg>");
        (svg, all_fonts)
    }
}

/// Returns the accent of the blog.
fn accent(model: &Model) -> String {
    model.settings.look.accent.map_or_else(|| ACCENT.to_owned(), Colour::css)
}

/// The fonts with which a text is written. Those of the system are looked for when a text needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fonts {
    Ours,
    OfTheSystem,
}

impl Fonts {
    fn database(self) -> &'static Arc<Database> {
        static OURS: OnceLock<Arc<Database>> = OnceLock::new();
        static ALL: OnceLock<Arc<Database>> = OnceLock::new();
        let ours = OURS.get_or_init(|| {
            let mut database = Database::new();
            database.load_font_source(Source::Binary(Arc::new(FONT)));
            Arc::new(database)
        });
        match self {
            Self::Ours => ours,
            Self::OfTheSystem => ALL.get_or_init(|| {
                let mut database = Database::clone(ours);
                database.load_system_fonts();
                Arc::new(database)
            }),
        }
    }

    fn options(self) -> Options<'static> {
        Options { font_family: FAMILY.to_owned(), fontdb: Arc::clone(self.database()), ..Options::default() }
    }
}

/// Letters, and whether a font has each of them.
type Letters = BTreeMap<char, bool>;

/// Warns of every title that its card lacks, because no font has its letters: pairs of a file and its title. Each font is read once for
/// letters that no title had before.
pub(crate) fn warnings<'t>(titles: impl Iterator<Item = (&'t str, &'t str)>) -> Vec<Problem> {
    static LETTERS: Mutex<Letters> = Mutex::new(Letters::new());
    warnings_with(titles, &[Fonts::Ours, Fonts::OfTheSystem], &mut LETTERS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn warnings_with<'t>(titles: impl Iterator<Item = (&'t str, &'t str)>, choice: &[Fonts], known: &mut Letters) -> Vec<Problem> {
    let letters = |title: &'t str| title.chars().take(TITLE_CHARS_MAX).filter(|c| !c.is_ascii() && c.is_alphanumeric());
    let titles: Vec<_> = titles.collect();
    let new: BTreeSet<char> = titles.iter().flat_map(|&(_, title)| letters(title)).filter(|letter| !known.contains_key(letter)).collect();
    let mut missing = new.clone();
    for fonts in choice {
        if !missing.is_empty() {
            drop_found(&mut missing, *fonts);
        }
    }
    known.extend(new.into_iter().map(|letter| (letter, !missing.contains(&letter))));
    let warning = |(file, title): (&str, &'t str)| {
        let mut seen = BTreeSet::new();
        let missing: Vec<char> = letters(title).filter(|letter| known.get(letter) == Some(&false) && seen.insert(*letter)).collect();
        let package = if missing.iter().copied().any(is_cjk) { "fonts-noto-cjk" } else { "fonts-noto-core" };
        let told: String = missing.iter().take(TOLD_LETTERS_MAX).collect();
        let message = format!(
            "no font on this machine has the letters \"{told}\" of the title, so the card for previews is without it; install a font that has \
             them, such as Debian's {package}, and start Seawall again"
        );
        (!missing.is_empty()).then(|| Problem::warning(Path::new(file), None, message))
    };
    titles.into_iter().filter_map(warning).collect()
}

/// Takes out of `letters` those that one of these fonts has, whole or in parts that are written over each other.
fn drop_found(letters: &mut BTreeSet<char>, fonts: Fonts) {
    let database = fonts.database();
    for face in database.faces() {
        if letters.is_empty() {
            return;
        }
        database.with_face_data(face.id, |data, index| {
            let Ok(font) = FontRef::from_index(data, index) else { return };
            let charmap = font.charmap();
            let has = |letter: char| charmap.map(letter).is_some();
            letters.retain(|&letter| !has(letter) && !iter::once(letter).nfd().all(has));
        });
    }
}

/// Tells whether `c` belongs to the scripts of China, Japan and Korea.
const fn is_cjk(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{a4cf}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// A text whose letters are all there, in pieces between which a line can break.
#[derive(Debug, Clone)]
struct MeasuredText {
    text: String,
    pieces: Vec<Piece>,
    fonts: Fonts,
}

#[derive(Debug, Clone, PartialEq)]
struct Piece {
    text: String,
    /// Whether a space stands before it.
    is_spaced: bool,
    /// The width at a size of 100 pixels.
    width: f32,
}

/// The width of a space at a size of 100 pixels, about as in most fonts.
const SPACE: f32 = 27.0;

/// Finds fonts for `text`: ours, or those of the system if ours lack a letter. Signs that no font has, such as emoji, are left out. Returns
/// `None` if a letter is missing everywhere, or nothing is left.
fn written_with(text: &str) -> Option<MeasuredText> {
    written(text, &[Fonts::Ours, Fonts::OfTheSystem])
}

fn written(text: &str, choice: &[Fonts]) -> Option<MeasuredText> {
    for &fonts in choice {
        let mut pieces = pieces(text);
        let missing = measure(&mut pieces, fonts);
        if missing.is_empty() {
            return (!pieces.is_empty()).then(|| MeasuredText { text: text.to_owned(), pieces, fonts });
        }
        if !missing.contains(char::is_alphanumeric) {
            let rest: String = text.chars().filter(|&c| c == ' ' || !missing.contains(c)).collect();
            let rest = rest.split_whitespace().collect::<Vec<_>>().join(" ");
            // The words that are left need no letter that the fonts lack.
            let mut pieces = self::pieces(&rest);
            let missing = measure(&mut pieces, fonts);
            return (!pieces.is_empty() && missing.is_empty()).then_some(MeasuredText { text: rest, pieces, fonts });
        }
    }
    None
}

/// Splits a text where a line can break: at spaces, and between signs of scripts that have none.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for word in text.split_whitespace() {
        let mut is_spaced = !pieces.is_empty();
        let mut before = None;
        for c in word.chars() {
            match pieces.last_mut().filter(|_| before.is_some_and(|before| !can_break(before, c))) {
                Some(last) => last.text.push(c),
                None => pieces.push(Piece { text: c.to_string(), is_spaced, width: 0.0 }),
            }
            (is_spaced, before) = (false, Some(c));
        }
    }
    pieces
}

/// Tells whether a line can break between two signs that no space parts.
fn can_break(before: char, after: char) -> bool {
    const NOT_FIRST: &str = "、。，．・：；！？」』）】〉》…ーっゃゅょッャュョ々";
    const NOT_LAST: &str = "「『（【〈《";
    (is_unspaced(before) || is_unspaced(after)) && !NOT_FIRST.contains(after) && !NOT_LAST.contains(before)
}

/// Tells whether `c` belongs to a script that puts no spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
        && !is_mark(c)
}

/// Tells whether `c` stands on the sign before it.
fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

fn is_right_to_left(text: &str) -> bool {
    text.chars()
        .find(|c| c.is_alphabetic())
        .is_some_and(|c| matches!(c, '\u{0590}'..='\u{08ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'))
}

/// Measures the pieces at a size of 100 pixels. Returns the signs for which there is no font.
fn measure(pieces: &mut [Piece], fonts: Fonts) -> String {
    let mut svg = String::from("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"100\">");
    for (index, piece) in pieces.iter().enumerate() {
        let _ = write!(svg, "<text id=\"p{index}\" font-size=\"100\" font-weight=\"600\">{}</text>", escape(&piece.text));
    }
    svg.push_str("</svg>");
    let Ok(tree) = Tree::from_str(&svg, &fonts.options()) else { return pieces.iter().map(|piece| piece.text.as_str()).collect() };
    let mut missing = String::new();
    for (index, piece) in pieces.iter_mut().enumerate() {
        // A text without any outline is not a node: there is no font for it at all, or it is invisible.
        let Some(Node::Text(text)) = tree.node_by_id(&format!("p{index}")) else {
            missing.push_str(&piece.text);
            continue;
        };
        piece.width = text.bounding_box().width();
        let glyphs = text.layouted().iter().flat_map(|span| &span.positioned_glyphs);
        missing.extend(glyphs.filter(|glyph| glyph.id.0 == 0).map(|glyph| glyph.text.as_str()));
    }
    missing
}

/// Sets a title in the largest size in which it takes few enough lines.
fn set_title(title: &MeasuredText) -> (f32, Vec<String>) {
    let (smallest, _) = SIZES[SIZES.len() - 1];
    for (size, lines_max) in SIZES {
        if title.pieces.iter().any(|piece| piece.width * size / 100.0 > TITLE_WIDTH) {
            continue;
        }
        let lines = lines(&title.pieces, size);
        if lines.len() <= lines_max {
            return (size, lines.iter().map(|line| joined(line)).collect());
        }
    }
    // Too long even for the smallest: the words that are too long break anywhere, and the rest is cut.
    let pieces: Vec<Piece> = title.pieces.iter().flat_map(|piece| broken(piece, smallest)).collect();
    let mut lines = lines(&pieces, smallest);
    let is_cut = lines.len() > TITLE_LINES_MAX;
    lines.truncate(TITLE_LINES_MAX);
    let mut texts: Vec<String> = lines.iter().map(|line| joined(line)).collect();
    if let (true, Some(last), Some(text)) = (is_cut, lines.last_mut(), texts.last_mut()) {
        while last.len() > 1 && width(last) * smallest / 100.0 > TITLE_WIDTH - smallest {
            last.pop();
        }
        *text = format!("{}…", joined(last).trim_end_matches(['…', ',', ';', ':', '.']));
    }
    (smallest, texts)
}

fn lines(pieces: &[Piece], size: f32) -> Vec<Vec<Piece>> {
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if (width(line) + space(piece) + piece.width) * size / 100.0 <= TITLE_WIDTH => line.push(piece.clone()),
            _ => lines.push(vec![piece.clone()]),
        }
    }
    lines
}

fn width(line: &[Piece]) -> f32 {
    line.iter().enumerate().map(|(index, piece)| piece.width + if index > 0 { space(piece) } else { 0.0 }).sum()
}

const fn space(piece: &Piece) -> f32 {
    if piece.is_spaced { SPACE } else { 0.0 }
}

fn joined(line: &[Piece]) -> String {
    let mut text = String::new();
    for (index, piece) in line.iter().enumerate() {
        if index > 0 && piece.is_spaced {
            text.push(' ');
        }
        text.push_str(&piece.text);
    }
    text
}

/// Breaks a piece that is wider than a line into pieces that are not, all of which are taken to be equally wide.
fn broken(piece: &Piece, size: f32) -> Vec<Piece> {
    let lines = piece.width * size / 100.0 / TITLE_WIDTH;
    if lines <= 1.0 {
        return vec![piece.clone()];
    }
    let chars: Vec<char> = piece.text.chars().collect();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a title has at most 181 characters"
    )]
    let step = ((chars.len() as f32 / lines * 0.9) as usize).max(1);
    let parts = chars.chunks(step);
    #[expect(clippy::cast_precision_loss, reason = "as above")]
    let width = |part: &[char]| piece.width * part.len() as f32 / chars.len() as f32;
    let part = |(index, part): (usize, &[char])| Piece {
        text: part.iter().collect(),
        is_spaced: piece.is_spaced && index == 0,
        width: width(part),
    };
    parts.enumerate().map(part).collect()
}

/// Returns the text, cut where it would be wider than `room`.
fn shortened(text: &MeasuredText, size: f32, room: f32) -> String {
    if width(&text.pieces) * size / 100.0 <= room {
        return text.text.clone();
    }
    let mut pieces = text.pieces.clone();
    while pieces.len() > 1 && width(&pieces) * size / 100.0 > room - size {
        pieces.pop();
    }
    // A single word can still be too wide.
    let first: String = joined(&pieces).chars().take(60).collect();
    format!("{first}…")
}

fn push_text(svg: &mut String, text: &str, size: f32, (x, y): (f32, f32), opacity: &str, is_right_to_left: bool) {
    #[expect(clippy::cast_precision_loss, reason = "1200 is exact")]
    let (x, anchor) = if is_right_to_left { (WIDTH as f32 - 80.0, "end") } else { (x, "start") };
    let _ = write!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" font-weight=\"600\" fill=\"#fff\" fill-opacity=\"{opacity}\" \
         text-anchor=\"{anchor}\">{}</text>",
        escape(text),
    );
}

fn png((svg, fonts): &(String, Fonts)) -> Option<Bytes> {
    let tree = Tree::from_str(svg, &fonts.options()).ok()?;
    let mut pixmap = Pixmap::new(WIDTH, HEIGHT)?;
    resvg::render(&tree, Transform::identity(), &mut pixmap.as_mut());
    pixmap.encode_png().ok().map(Bytes::from)
}

/// Draws cards, one at a time, and keeps the last ones.
#[derive(Debug)]
pub(crate) struct Studio {
    drawing: Arc<Semaphore>,
    waiting: Semaphore,
    /// The newest last.
    kept: Mutex<VecDeque<(Card, Bytes)>>,
}

impl Default for Studio {
    fn default() -> Self {
        Self { drawing: Arc::new(Semaphore::new(1)), waiting: Semaphore::new(WAITING_MAX), kept: Mutex::default() }
    }
}

impl Studio {
    /// Returns the card as a PNG file, drawn if it is not kept. Returns `None` if too many cards are waited for already.
    ///
    /// Dropping the future leaves a drawing that has begun to its end, and the next one waits for it.
    pub(crate) async fn draw(&self, card: Card) -> Option<Bytes> {
        if let Some(drawn) = self.kept(&card) {
            return Some(drawn);
        }
        let _waiting = self.waiting.try_acquire().ok()?;
        let permit = Arc::clone(&self.drawing).acquire_owned().await.ok()?;
        // Somebody else may have waited for the same.
        if let Some(drawn) = self.kept(&card) {
            return Some(drawn);
        }
        let drawing = card.clone();
        let drawn = tokio::task::spawn_blocking(move || {
            let drawn = drawing.draw();
            drop(permit);
            drawn
        });
        let drawn = drawn.await.ok()?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(other, _)| *other != card);
        kept.push_back((card, drawn.clone()));
        if kept.len() > KEPT_MAX {
            kept.pop_front();
        }
        Some(drawn)
    }

    fn kept(&self, card: &Card) -> Option<Bytes> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(other, _)| other == card).map(|(_, drawn)| drawn.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(title: &str) -> Card {
        Card { title: title.to_owned(), site: "By the sea".to_owned(), line: "1 March 2026".to_owned(), accent: ACCENT.to_owned() }
    }

    /// Returns the texts of the card as drawn with our font alone.
    fn texts(card: &Card) -> Vec<String> {
        let (svg, _) = card.svg(|text| written(text, &[Fonts::Ours]));
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        document
            .descendants()
            .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")))
            .filter_map(|node| node.text())
            .map(str::to_owned)
            .collect()
    }

    /// PNG (W3C), §5.2 and §11.2.1: the signature, then IHDR with width and height.
    #[test]
    fn a_card_is_a_png_of_1200_by_630_pixels() {
        let png = card("Tides & <waves>").draw();
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!((&png[16..20], &png[20..24]), (&1200_u32.to_be_bytes()[..], &630_u32.to_be_bytes()[..]));
        assert!(png.len() < 200_000, "{}", png.len());
    }

    #[test]
    fn a_title_is_there_whole_and_within_the_picture() {
        for title in
            ["Tides", "A title of a middling length that takes a few lines", "Ærø, Łódź, Çeşme, Αθήνα, Київ, Việt Nam", &"word ".repeat(16)]
        {
            let found = texts(&card(title));
            let lines = &found[2..];
            assert_eq!(lines.join(" "), title.trim(), "{found:?}");
            assert!(lines.len() <= TITLE_LINES_MAX, "{found:?}");
            for line in lines {
                let mut all = pieces(line);
                assert!(measure(&mut all, Fonts::Ours).is_empty());
                assert!(width(&all) * SIZES[SIZES.len() - 1].0 / 100.0 <= TITLE_WIDTH, "{line}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        for title in ["word ".repeat(2_000), "w".repeat(2_000), format!("https://blog.test/{}", "a/".repeat(200))] {
            let found = texts(&card(&title));
            assert!(found.len() <= 2 + TITLE_LINES_MAX && found.last().is_some_and(|last| last.ends_with('…')), "{found:?}");
        }
    }

    /// Empty boxes (U+25A1-like `.notdef` glyphs) are never drawn: signs without a letter are left out, a title whose letters are missing is.
    #[test]
    fn there_are_no_empty_boxes() {
        assert_eq!(texts(&card("Tides 🌊 rise 👩‍💻")), ["By the sea", "1 March 2026", "Tides rise"]);
        // Linear B, for which our font has nothing.
        assert_eq!(texts(&card("Tides \u{10000}\u{10001}")), ["By the sea", "1 March 2026"]);
        assert_eq!(texts(&card("🌊")), ["By the sea", "1 March 2026"]);
        assert!(!card("\u{10000}").draw().is_empty());
    }

    /// The machine has no fonts, as is usual for servers. Debian's list of packages says which package has which scripts.
    #[test]
    fn a_title_without_a_font_is_told_once_with_its_file_and_the_remedy() {
        let titles = [
            ("a.md", "Tides, Αθήνα, Київ, Việt Nam 🌊"),
            ("posts/b.md", "海の話 and 海"),
            ("c.md", "바다"),
            ("d.md", "समुद्र"),
            ("e.md", "Nin\u{303}o"),
        ];
        let mut known = Letters::new();
        let mut told = || {
            let problems = warnings_with(titles.into_iter(), &[Fonts::Ours], &mut known);
            problems.iter().map(|problem| (problem.is_warning(), problem.to_string())).collect::<Vec<_>>()
        };
        let first = told();
        let expected = [
            ("posts/b.md: ", "\"海の話\"", "fonts-noto-cjk"),
            ("c.md: ", "\"바다\"", "fonts-noto-cjk"),
            ("d.md: ", "स", "fonts-noto-core"),
        ];
        assert_eq!(first.len(), expected.len(), "{first:?}");
        for ((is_warning, text), (file, letters, package)) in first.iter().zip(expected) {
            assert!(*is_warning && text.starts_with(file) && text.contains(letters) && text.contains(package), "{text}");
        }
        assert_eq!(told(), first, "what is known already is said again");
        // A title is told if and only if its letters are not drawn.
        for (_, title) in titles {
            let is_told = first.iter().any(|(_, text)| title.chars().any(|c| !c.is_ascii() && text.contains(c)));
            assert_eq!(texts(&card(title)).len() == 2, is_told, "{title}");
        }
    }

    #[test]
    fn lines_break_between_signs_where_words_have_no_spaces() {
        let split = |text: &str| pieces(text).into_iter().map(|piece| piece.text).collect::<Vec<_>>();
        assert_eq!(split("a bc"), ["a", "bc"]);
        assert_eq!(split("「海」とRustの話。"), ["「海」", "と", "Rust", "の", "話。"]);
    }

    #[test]
    fn the_address_changes_with_what_is_on_the_card() {
        let cards = [card("A"), card("B"), Card { line: String::new(), ..card("A") }, Card { site: "C".to_owned(), ..card("A") }];
        let paths: std::collections::BTreeSet<_> = cards.iter().map(Card::path).collect();
        assert_eq!(paths.len(), cards.len());
        assert_eq!(card("A").path(), card("A").path());
    }

    #[test]
    fn a_studio_keeps_what_it_drew_and_refuses_crowds() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let studio = Studio::default();
            let first = studio.draw(card("A")).await.expect("drawn");
            assert_eq!(studio.draw(card("A")).await.map(|again| again.as_ptr()), Some(first.as_ptr()));
            let _all = studio.waiting.acquire_many(u32::try_from(WAITING_MAX).expect("small")).await.expect("open");
            assert!(studio.draw(card("B")).await.is_none());
            assert!(studio.draw(card("A")).await.is_some());
        });
    }
}
