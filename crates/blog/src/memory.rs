//! The things that are remembered from one build of a site to the next.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
    time::SystemTime,
};

use semantics::Timestamp;

use crate::{
    config::{BlogOptions, LookSettings, Settings},
    context::{FACE_SIDE, LOGO_HEIGHT},
    error::{BuildError, Problem},
    folder::{self, Folder, Listed, ReadFailure, Stamp},
    gallery::{Gallery, PagePicture, PictureOfText},
    model::Model,
    picture::Picture,
    post::Manner,
    site::Site,
    slug,
    static_file::{Files, StaticFile},
    targets::Target,
    texts::{Published, Texts},
    theme::{self, Theme, ThemeFiles},
    view::try_theme,
};

/// A folder and everything that was read of it. Building a site again reads and renders only what has changed.
#[derive(Debug)]
pub(crate) struct Memory {
    folder: PathBuf,
    options: BlogOptions,
    /// The last settings that were right.
    settings: Option<Settings>,
    theme: RememberedTheme,
    texts: Texts,
    files: Files,
    gallery: Arc<Gallery>,
}

/// The theme, and what it was made of.
#[derive(Debug)]
struct RememberedTheme {
    theme: Arc<Theme>,
    /// The files that it was made of. `None` if it has to be made again in any case.
    source: Option<ThemeSource>,
    problems: Vec<Problem>,
}

/// Holds what a theme is made of.
#[derive(Debug, PartialEq, Eq)]
struct ThemeSource {
    look: LookSettings,
    /// Whether pictures are read without their metadata.
    cleans: bool,
    stamps: Vec<(String, Stamp)>,
}

/// Counts what a build had to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// The number of texts whose content was not known.
    pub(crate) read: usize,
    /// The number of texts that were rendered.
    pub(crate) rendered: usize,
}

impl Memory {
    pub(crate) fn new(folder: PathBuf, options: BlogOptions) -> Self {
        let (texts, files, gallery) = (Texts::default(), Files::default(), Arc::default());
        let (theme, problems) = Theme::new(&LookSettings::default(), &ThemeFiles::new(), None);
        let theme = RememberedTheme { theme: Arc::new(theme), source: None, problems };
        Self { folder, options, settings: None, theme, texts, files, gallery }
    }

    /// Has pictures made by the workshop of this gallery.
    pub(crate) fn with_gallery(self, gallery: Arc<Gallery>) -> Self {
        Self { gallery, ..self }
    }

    /// Forgets everything that was read.
    pub(crate) fn clear(&mut self) {
        let gallery = Arc::clone(&self.gallery);
        *self = Self::new(std::mem::take(&mut self.folder), std::mem::take(&mut self.options)).with_gallery(gallery);
    }

    /// Builds the site as it is at `now`.
    ///
    /// # Errors
    /// When the folder cannot be listed, or `blog.toml` is wrong and there were never right settings.
    pub(crate) fn build(&mut self, now: Timestamp) -> Result<(Site, Work), BuildError> {
        let folder = folder::look(&self.folder).map_err(|problem| BuildError::new(vec![problem]))?;
        self.build_of(folder, folder::read, now)
    }

    /// Builds the site of texts that are not files: pairs of a path and a text.
    pub(crate) fn build_texts(&mut self, texts: &[(&str, &str)], now: Timestamp) -> Result<(Site, Work), BuildError> {
        let listed = |(name, text): &(&str, &str)| Listed {
            name: (*name).to_owned(),
            path: PathBuf::new(),
            stamp: Stamp::of_text(text),
            modified: SystemTime::UNIX_EPOCH,
            is_draft: false,
        };
        let folder = Folder { texts: texts.iter().map(listed).collect(), ..Folder::default() };
        let given: HashMap<&str, &str> = texts.iter().copied().collect();
        let read = |file: &Listed| given.get(file.name.as_str()).map(|text| (*text).to_owned()).ok_or(ReadFailure::Gone);
        self.build_of(folder, read, now)
    }

    #[expect(clippy::disallowed_methods, reason = "the stamps of files carry the machine's time, and are compared with it")]
    fn build_of(
        &mut self,
        mut folder: Folder,
        read: impl Fn(&Listed) -> Result<String, ReadFailure> + Sync,
        now: Timestamp,
    ) -> Result<(Site, Work), BuildError> {
        let clock = SystemTime::now();
        let mut problems = std::mem::take(&mut folder.problems);
        let mut settings = self.settings(&folder, &read, &mut problems)?;
        let millis = i64::try_from(now.as_millis()).ok();
        let now = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()).unwrap_or(jiff::Timestamp::MAX);

        self.files.clean(settings.pictures);
        let files = self.files.read(std::mem::take(&mut folder.files), clock, &mut problems);
        settings.drop_files(|name| self.files.is_left_out(name));
        let drawn = self.gallery.look(&files, settings.pictures, &mut problems);
        let target = |file: &StaticFile| Target { picture: drawn.get(&file.name).cloned(), ..file.target(settings.drafts) };
        let targets = files.iter().map(|file| (file.name.clone(), target(file))).chain(self.files.left_out()).collect();
        let read = self.texts.read(&folder, read, now, clock);
        let published = self.texts.publish(&targets, &Manner::of(&settings), settings.drafts, now);
        let Published { library, problems: more, left_out, next_due, rendered } = published;
        problems.extend(more);
        let small = small(&settings, &files, &drawn);
        let mut pictures: Vec<_> = drawn.values().filter_map(PictureOfText::of_texts).cloned().collect();
        // In the order in which readers come upon them, as far as that is known: what was added last is read first.
        pictures.sort_by(PagePicture::newest_first);
        let (look, cleans) = (settings.look.clone(), settings.pictures);
        let model = self.themed(&folder.theme, clock, (&look, cleans), |theme| Model::new(settings, theme, library, icon(&files), small));
        problems.extend(self.theme.problems.iter().cloned());
        Ok((Site::new(model, files, pictures, problems, &left_out, next_due), Work { read, rendered }))
    }

    /// Makes the model with its theme. A theme whose settings and files are the same is not made again; one that was made is tried on the
    /// pages of the model.
    fn themed(
        &mut self,
        listed: &[Listed],
        clock: SystemTime,
        (look, cleans): (&LookSettings, bool),
        model: impl FnOnce(Arc<Theme>) -> Model,
    ) -> Model {
        let stamps = listed.iter().map(|file| (file.name.clone(), file.stamp)).collect();
        let is_settled = listed.iter().all(|file| !file.stamp.is_fresh(clock));
        let source = Some(ThemeSource { look: look.clone(), cleans, stamps });
        if self.theme.source == source {
            return model(Arc::clone(&self.theme.theme));
        }
        let mut problems = Vec::new();
        let files = theme::read(listed, cleans, &mut problems);
        let (theme, wrong) = Theme::new(look, &files, Some(&self.theme.theme));
        problems.extend(wrong);
        let mut model = model(Arc::new(theme));
        problems.extend(try_theme(&mut model));
        self.theme = RememberedTheme { theme: Arc::clone(&model.theme), source: source.filter(|_| is_settled), problems };
        model
    }

    /// Reads the settings. If they are wrong, the last ones that were right stay.
    fn settings(
        &mut self,
        folder: &Folder,
        read: impl Fn(&Listed) -> Result<String, ReadFailure>,
        problems: &mut Vec<Problem>,
    ) -> Result<Settings, BuildError> {
        let text = match folder.config.as_ref().map(read) {
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(ReadFailure::Gone)) if self.settings.is_some() => Err(Vec::new()),
            None | Some(Err(ReadFailure::Gone)) => Ok(None),
            Some(Err(ReadFailure::Wrong(problem))) => Err(vec![problem]),
        };
        let is_there = |name: &str| folder.files.iter().map(|(file, _)| file).chain(&folder.theme).any(|file| file.name == name);
        let new = text.and_then(|text| {
            let mut settings = Settings::new(&self.options, text.as_deref(), &self.folder)?;
            problems.extend(settings.drop_missing(text.as_deref(), is_there));
            problems.extend(settings.words_warning(text.as_deref()));
            Ok(settings)
        });
        match (new, &self.settings) {
            (Ok(settings), _) => {
                self.settings = Some(settings.clone());
                Ok(settings)
            }
            (Err(wrong), Some(last)) => {
                let kept = |problem: Problem| Problem { message: format!("{}. The settings before stay", problem.message), ..problem };
                problems.extend(wrong.into_iter().map(kept));
                Ok(last.clone())
            }
            (Err(wrong), None) => Err(BuildError::new(wrong)),
        }
    }
}

/// Returns the pictures that the settings name, as small as the theme shows them, by what the settings call them.
fn small(settings: &Settings, files: &[StaticFile], drawn: &HashMap<String, PictureOfText>) -> BTreeMap<String, Picture> {
    let faces = settings.authors.values().filter_map(|author| Some((author.picture.as_ref()?, (FACE_SIDE, FACE_SIDE))));
    // How wide a logo is, the height tells.
    let logo = settings.look.logo.iter().map(|logo| (logo, (0, LOGO_HEIGHT)));
    let is_public = |name: &str| files.iter().any(|file| file.name == name && (settings.drafts || !file.is_draft));
    let small = |(called, size): (&String, (u32, u32))| {
        let name = called.strip_prefix('/').map_or_else(|| Some(called.clone()), slug::decode_path).filter(|name| is_public(name))?;
        Some((called.clone(), drawn.get(&name)?.show_small(size)))
    };
    faces.chain(logo).filter_map(small).collect()
}

/// Returns the address of the author's own icon.
fn icon(files: &[StaticFile]) -> Option<String> {
    let is_there = |name: &&str| files.iter().any(|file| file.name == *name);
    ["favicon.svg", "favicon.ico", "favicon.png"].into_iter().find(is_there).map(|name| format!("/{name}"))
}
