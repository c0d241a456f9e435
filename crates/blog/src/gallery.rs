//! The pictures of the folder: what is known of each, the addresses of its variants, and who makes them.
//!
//! Building a site reads the heads of pictures and decodes none: pages never wait for pictures. Variants are made in the background, or when
//! somebody asks; until one is there, the author's own file is sent in its place, without its metadata.

use std::{
    cmp::Ordering,
    collections::HashMap,
    io::Read as _,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use pictures::{Desk, Fault, Form, Shelf, Source, Variant, Workshop};
use tokio::sync::oneshot;

use crate::{
    error::Problem,
    folder::Stamp,
    large_file::blocking,
    parallel,
    picture::{Picture, TEXT_SIZES},
    slug,
    static_file::StaticFile,
};

/// The first segment of the addresses of variants.
const PREFIX: &str = "/pictures/";

/// The variant that is shown where nothing can be chosen, such as in feeds: the widest one up to this width.
const ONE_WIDTH: u32 = 1200;

/// The addresses under which a picture was known before that are remembered.
const FORMER_MAX: usize = 8;

/// The pixels of a screen for each of a page, on a side. Few screens have more, and nobody sees it in a picture of an inch.
const DENSITY_MAX: u32 = 3;

/// The longest time that a request waits for a variant to be made.
const PATIENCE: Duration = Duration::from_secs(10);

/// The room for variants where there is no folder to keep them in.
const MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The extensions of files that may be pictures. What they are is told by their content.
const EXTENSIONS: [&str; 8] = ["avif", "bmp", "gif", "jpeg", "jpg", "png", "svg", "webp"];

/// The pictures of one blog, from one build to the next.
#[derive(Debug)]
pub(crate) struct Gallery {
    desk: Desk,
    seen: Mutex<HashMap<String, ReadPicture>>,
}

/// A file whose head was read.
#[derive(Debug)]
struct ReadPicture {
    stamp: Stamp,
    found: Result<Arc<PagePicture>, Fault>,
    placeholder: Option<String>,
    /// The reason why there are no variants, if that is a mistake in the file. It is said once.
    fault: Option<Fault>,
}

/// A picture that can be shown on pages.
#[derive(Debug)]
pub(crate) struct PagePicture {
    source: Arc<Source>,
    /// The text that stands for the file's name in addresses.
    stem: String,
    /// The digests of the pictures that were in the file before, newest last.
    former: Vec<String>,
    workshop: Arc<Workshop>,
    modified: SystemTime,
    /// Whether a text shows it, or did.
    is_shown: AtomicBool,
}

/// Holds what a text is told of a picture.
#[derive(Debug, Clone)]
pub(crate) struct PictureOfText {
    picture: Arc<Picture>,
    shown: Arc<PagePicture>,
    has_variants: bool,
}

impl PartialEq for PictureOfText {
    fn eq(&self, other: &Self) -> bool {
        self.picture == other.picture
    }
}

impl Eq for PictureOfText {}

/// One variant of a picture, as it is asked for.
#[derive(Debug, Clone)]
pub struct WantedVariant {
    shown: Arc<PagePicture>,
    variant: Variant,
}

impl Default for Gallery {
    fn default() -> Self {
        Self::new(&Arc::new(Workshop::new(Shelf::in_memory(MEMORY_BYTES_MAX))))
    }
}

impl Gallery {
    pub(crate) fn new(workshop: &Arc<Workshop>) -> Self {
        Self { desk: workshop.desk(), seen: Mutex::default() }
    }

    /// Looks at the pictures among `files`, and reads the heads of those that are new or have changed. Returns what is known of each, by path in the folder.
    /// Without `variants`, that is the file itself and its size.
    pub(crate) fn look(&self, files: &[StaticFile], variants: bool, problems: &mut Vec<Problem>) -> HashMap<String, PictureOfText> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *seen);
        let may_be_picture = |file: &&StaticFile| file.name.rsplit_once('.').is_some_and(|(_, extension)| is_extension(extension));
        let files: Vec<_> = files.iter().filter(may_be_picture).collect();
        let (known, new): (Vec<&StaticFile>, Vec<&StaticFile>) =
            files.into_iter().partition(|file| before.get(&file.name).is_some_and(|seen| seen.stamp == file.stamp));
        let read = parallel::map(&new, |file| Source::read(&file.path));
        for (file, source) in new.iter().zip(read) {
            let former = before.get(&file.name).and_then(|seen| seen.found.as_ref().ok()).map_or_else(Vec::new, |shown| shown.digests());
            let found = source.map(|source| Arc::new(self.shown(file, source, former)));
            before.insert(file.name.clone(), ReadPicture { stamp: file.stamp, found, placeholder: None, fault: None });
        }
        let mut drawn = HashMap::new();
        for file in known.into_iter().chain(new) {
            let Some(mut found) = before.remove(&file.name) else { continue };
            let fault = match &found.found {
                Err(fault) => Some(fault.clone()),
                Ok(shown) => shown.source.fault(),
            };
            if let Some(fault) = fault.filter(|fault| is_mistake(fault, &file.name)) {
                // Without variants, readers get every file as it is.
                let remedy = if variants { fault.remedy() } else { "copy it here again, or save it anew" };
                problems.push(Problem::warning(Path::new(&file.name), None, format!("{fault}; {remedy}")));
                found.fault = Some(fault);
            }
            if let Ok(shown) = &found.found {
                if found.placeholder.is_none() {
                    found.placeholder = self.desk.workshop().placeholder(&shown.source);
                }
                let placeholder = found.placeholder.clone().filter(|_| variants);
                let has_variants = variants && found.fault.is_none() && !shown.source.variants().is_empty();
                let picture = Arc::new(shown.picture(file, has_variants, placeholder));
                drawn.insert(file.name.clone(), PictureOfText { picture, shown: Arc::clone(shown), has_variants });
            }
            seen.insert(file.name.clone(), found);
        }
        drawn
    }

    fn shown(&self, file: &StaticFile, source: Source, mut former: Vec<String>) -> PagePicture {
        let leaf = file.name.rsplit('/').next().unwrap_or(&file.name);
        let stem = slug::slugify(leaf.rsplit_once('.').map_or(leaf, |(stem, _)| stem));
        let stem = if stem.is_empty() { "picture".to_owned() } else { stem };
        let workshop = Arc::clone(self.desk.workshop());
        former.retain(|digest| digest != source.digest());
        former.drain(..former.len().saturating_sub(FORMER_MAX));
        PagePicture { source: Arc::new(source), stem, former, workshop, modified: file.modified, is_shown: AtomicBool::new(false) }
    }

    /// Makes what most readers will ask for of these pictures, when there is nothing else to do.
    pub(crate) fn make_ahead(&self, shown: &[Arc<PagePicture>]) {
        self.desk.make_ahead(shown.iter().map(|shown| Arc::clone(&shown.source)));
    }

    /// Sets what is called when something became known of pictures that pages should show.
    pub(crate) fn on_news(&self, call: impl Fn() + Send + Sync + 'static) {
        self.desk.on_rest(call);
    }
}

impl PictureOfText {
    /// Returns the picture for a text, which shows it from now on.
    pub(crate) fn show(&self, alt: &str) -> Picture {
        self.shown.is_shown.store(true, Relaxed);
        Picture { alt: alt.to_owned(), ..Picture::clone(&self.picture) }
    }

    /// Returns the picture for a place of `width` by `height` pixels on every page, which it may fill on a screen of small pixels, too.
    pub(crate) fn show_small(&self, (width, height): (u32, u32)) -> Picture {
        let picture = self.show("");
        if !self.has_variants {
            return picture;
        }
        let fills = |variant: &&Variant| variant.width >= width * DENSITY_MAX && variant.height >= height * DENSITY_MAX;
        let address_of = |is_form: fn(Form) -> bool| {
            let all = || self.shown.source.variants().iter().filter(|variant| is_form(variant.form));
            all().find(fills).or_else(|| all().next_back()).map(|variant| slug::encode_path(&self.shown.address(variant)))
        };
        let (webp, own) = (address_of(|form| form == Form::WebP), address_of(|form| form != Form::WebP));
        match (webp, own) {
            (Some(webp), Some(own)) => Picture { src: own, webp, srcset: String::new(), ..picture },
            (Some(one), None) | (None, Some(one)) => Picture { src: one, webp: String::new(), srcset: String::new(), ..picture },
            (None, None) => picture,
        }
    }

    /// Returns the picture if a text shows it and it has variants.
    pub(crate) fn of_texts(&self) -> Option<&Arc<PagePicture>> {
        Some(&self.shown).filter(|shown| self.has_variants && shown.is_shown.load(Relaxed))
    }
}

impl PagePicture {
    /// Compares pictures by the time of their files.
    pub(crate) fn newest_first(one: &Arc<Self>, other: &Arc<Self>) -> Ordering {
        other.modified.cmp(&one.modified).then_with(|| one.source.path().cmp(other.source.path()))
    }

    /// Lists the digests under which pages named the file, the present one last.
    fn digests(&self) -> Vec<String> {
        self.former.iter().cloned().chain([self.source.digest().to_owned()]).collect()
    }

    /// Returns the variant that is most like one of this width in a form with this extension.
    fn nearest(&self, width: u32, extension: &str) -> Option<&Variant> {
        // Whoever asked for another form need not read WebP.
        let unlikeness =
            |variant: &&Variant| (variant.form.extension() != extension, variant.form == Form::WebP, variant.width.abs_diff(width));
        self.source.variants().iter().min_by_key(unlikeness)
    }

    /// Returns the address of a variant, not percent-encoded.
    fn address(&self, variant: &Variant) -> String {
        format!("{PREFIX}{}/{}-{}.{}", self.source.digest(), self.stem, variant.width, variant.form.extension())
    }

    /// Lists the addresses of all variants.
    pub(crate) fn addresses(self: &Arc<Self>) -> impl Iterator<Item = (String, WantedVariant)> {
        self.source.variants().iter().map(|variant| (self.address(variant), WantedVariant { shown: Arc::clone(self), variant: *variant }))
    }

    fn picture(&self, file: &StaticFile, variants: bool, placeholder: Option<String>) -> Picture {
        let facts = self.source.facts();
        let of = |is_form: &dyn Fn(Form) -> bool| {
            self.source.variants().iter().filter(|variant| variants && is_form(variant.form)).collect::<Vec<_>>()
        };
        let list = |variants: &[&Variant]| {
            let one = |variant: &&Variant| format!("{} {}w", slug::encode_path(&self.address(variant)), variant.width);
            variants.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let (webp, mut own) = (of(&|form| form == Form::WebP), of(&|form| form != Form::WebP));
        let mut webp_list = list(&webp);
        if own.is_empty() {
            // The author's own file was WebP.
            (own, webp_list) = (webp, String::new());
        }
        let one = own.iter().rfind(|variant| variant.width <= ONE_WIDTH).or_else(|| own.first());
        let (src_width, src_height) = one.map_or((facts.width, facts.height), |variant| (variant.width, variant.height));
        Picture {
            src_width,
            src_height,
            src: slug::encode_path(&one.map_or_else(|| file.address(), |variant| self.address(variant))),
            srcset: if own.len() > 1 { list(&own) } else { String::new() },
            webp: webp_list,
            sizes: TEXT_SIZES,
            width: facts.width,
            height: facts.height,
            alt: String::new(),
            placeholder,
        }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.source.path()
    }

    /// Tells whether the next look at the folder tells that there are no variants.
    pub(crate) fn is_known_to_fail(&self) -> bool {
        self.source.fault().is_some()
    }

    /// Makes all variants that are missing, on the calling thread.
    pub(crate) fn make_all(&self) -> Result<(), Fault> {
        self.workshop.make_all(&self.source, |_, _| {})
    }
}

impl WantedVariant {
    /// Returns an entity tag with its quotes.
    pub(crate) fn etag(&self) -> String {
        format!("\"{}-{}-{}\"", self.shown.source.digest(), self.variant.width, self.variant.form.extension())
    }

    /// Returns the media type.
    pub(crate) const fn content_type(&self) -> &'static str {
        self.variant.form.media_type()
    }

    /// Returns the variant: one that was made before, or else makes it before everything that nobody waits for. Waits for that, but not forever.
    pub(crate) async fn content(&self) -> Result<Bytes, Fault> {
        let wanted = self.clone();
        let made = blocking(move || wanted.shown.workshop.made(&wanted.shown.source, &wanted.variant)).await;
        if let Ok(Some(made)) = made {
            return Ok(made);
        }
        let (tell, told) = oneshot::channel();
        self.shown.workshop.ask(&self.shown.source, self.variant, |made| {
            let _ = tell.send(made);
        });
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(made)) => made,
            Ok(Err(_)) | Err(_) => Err(Fault::Busy),
        }
    }

    /// Returns the variant, and makes it on the calling thread if need be.
    ///
    /// # Errors
    /// When nothing can be made of the picture.
    pub fn make(&self) -> Result<Bytes, Fault> {
        if let Some(made) = self.shown.workshop.made(&self.shown.source, &self.variant) {
            return Ok(made);
        }
        let mut found = Err(Fault::Changed);
        self.shown.workshop.make_all(&self.shown.source, |variant, made| {
            if *variant == self.variant {
                found = Ok(made);
            }
        })?;
        found
    }

    /// Returns the author's own file without its metadata, and its media type.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn instead(&self) -> Result<(Bytes, &'static str), Fault> {
        let source = &self.shown.source;
        let file = std::fs::File::open(source.path())?;
        let mut content = Vec::new();
        pictures::clean(&file)?.read(&file).take(pictures::FILE_BYTES_MAX).read_to_end(&mut content)?;
        Ok((content.into(), source.facts().format.media_type()))
    }
}

/// Returns where a picture is now that pages named at `path`, not percent-encoded, before its file was replaced: the address of the variant that is most like
/// the one that was there. Returns `None` for addresses that no picture can have had.
pub(crate) fn replaced(pictures: &[Arc<PagePicture>], path: &str) -> Option<String> {
    let (digest, name) = path.strip_prefix(PREFIX)?.split_once('/')?;
    let (name, extension) = name.rsplit_once('.')?;
    let (stem, width) = name.rsplit_once('-')?;
    let is_digest = digest.len() == 16 && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_extension = [Form::WebP, Form::Jpeg, Form::Png].iter().any(|form| form.extension() == extension);
    let width = width.parse().ok().filter(|_| is_digest && is_extension)?;
    let of_name = || pictures.iter().filter(|shown| shown.stem == stem);
    let mut known = of_name().filter(|shown| shown.former.iter().any(|former| former == digest));
    let shown = match known.next() {
        Some(shown) => shown,
        // It was replaced before this start. Of two pictures of one name, nobody knows which one it was.
        None => {
            let mut all = of_name();
            all.next().filter(|_| all.next().is_none())?
        }
    };
    // An address of the present picture that is not there never was.
    let is_present = pictures.iter().any(|shown| shown.source.digest() == digest);
    shown.nearest(width, extension).filter(|_| !is_present).map(|variant| shown.address(variant))
}

/// Tells whether a fault is one that the author of the file should mend.
fn is_mistake(fault: &Fault, name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    match fault {
        // Browsers show more kinds of AVIF, and drawings that begin later.
        Fault::Unknown => !matches!(extension.as_str(), "svg" | "avif"),
        // A drawing need not say how large it is.
        Fault::NoSize => extension != "svg",
        _ => true,
    }
}

fn is_extension(extension: &str) -> bool {
    EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Tells whether files of this media type are pictures, which may have metadata, or others within them that do.
pub(crate) fn is_picture(content_type: &str) -> bool {
    content_type.starts_with("image/")
}
