//! The targets that the links of a text can have, and the record of what a text has asked for.
//!
//! A text is rendered again when one of its questions has another answer than before, and not because of anything else in the folder.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use unicode_normalization::UnicodeNormalization;

use crate::{gallery::PictureOfText, picture::Picture};

/// Everything in the folder to which a link can lead, by path in the folder.
#[derive(Debug, Default)]
pub(crate) struct LinkTargets {
    /// The Markdown files, those that are left out included: a mistake in one file must not become a broken link in others.
    pub(crate) texts: HashMap<String, Target>,
    /// The other files.
    pub(crate) files: HashMap<String, Target>,
}

/// Says what is at the end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The address, not percent-encoded. It begins with a slash, or is relative where the text is only seen under a private address.
    pub(crate) address: String,
    /// Whether readers find something there. If not, it is a draft, or its time has not come.
    pub(crate) is_published: bool,
    /// Whether it is a picture that is not published because of a fault. Its fault is told, and texts are shown without it.
    pub(crate) is_left_out: bool,
    /// A number that differs if the content of a file does. A text that shows a picture is rendered again when the picture changes.
    pub(crate) version: u128,
    /// The picture, if the target is one.
    pub(crate) picture: Option<PictureOfText>,
}

/// The answers that a text got: whoever asks again gets the same ones, as long as nothing has changed.
pub(crate) type ResolvedLinks = BTreeMap<String, Option<Target>>;

/// Holds what the links of one text can lead to. It records every question.
#[derive(Debug)]
pub(crate) struct Targets {
    known: Arc<LinkTargets>,
    /// The number of slashes within the address of a draft.
    depth: Option<usize>,
    asked: RefCell<ResolvedLinks>,
}

impl LinkTargets {
    fn find(&self, name: &str) -> Option<&Target> {
        self.texts.get(name).or_else(|| self.files.get(name))
    }

    /// Tells whether every question has the answer that it had.
    pub(crate) fn still_answers(&self, asked: &ResolvedLinks) -> bool {
        asked.iter().all(|(name, answer)| self.find(name) == answer.as_ref())
    }
}

impl Targets {
    pub(crate) fn new(known: Arc<LinkTargets>) -> Self {
        Self { known, depth: None, asked: RefCell::default() }
    }

    /// Makes the targets of a draft, which is seen under a private address in front of its `address`: so its links to other drafts and to
    /// files beside them are relative.
    pub(crate) fn of_draft(known: Arc<LinkTargets>, address: &str) -> Self {
        let depth = address.matches('/').count().saturating_sub(1);
        Self { depth: Some(depth), ..Self::new(known) }
    }

    /// Returns where the post or page is that the Markdown file with this path in the folder has become.
    pub(crate) fn text(&self, name: &str) -> Option<Target> {
        self.answer(name, self.known.texts.get(name))
    }

    /// Returns where the file with this path in the folder is. It is not a Markdown file.
    pub(crate) fn file(&self, name: &str) -> Option<Target> {
        self.answer(name, self.known.files.get(name))
    }

    /// Returns a name that differs from `name` only in large and small letters, or in how a file system keeps them.
    pub(crate) fn similar(&self, name: &str) -> Option<String> {
        let folded = |name: &str| name.nfc().collect::<String>().to_lowercase();
        let wanted = folded(name);
        let is_similar =
            |known: &&String| if known.is_ascii() && name.is_ascii() { known.eq_ignore_ascii_case(name) } else { folded(known) == wanted };
        self.known.texts.keys().chain(self.known.files.keys()).filter(is_similar).min().cloned()
    }

    /// Returns the picture in the file with this path in the folder, to be shown with these words for those who do not see it. Returns `None` for
    /// files that are not pictures, or that readers do not find yet.
    pub(crate) fn picture(&self, name: &str, alt: &str) -> Option<Picture> {
        let target = self.file(name)?;
        Some(target.picture.filter(|_| target.is_published)?.show(alt))
    }

    /// Returns the record of all questions.
    pub(crate) fn into_asked(self) -> ResolvedLinks {
        self.asked.into_inner()
    }

    fn answer(&self, name: &str, found: Option<&Target>) -> Option<Target> {
        // The record has what is known under this name, whichever of the two lists was asked first.
        self.asked.borrow_mut().entry(name.to_owned()).or_insert_with(|| self.known.find(name).cloned());
        let mut target = found?.clone();
        if let Some(depth) = self.depth.filter(|_| !target.is_published) {
            target.address = "../".repeat(depth) + target.address.trim_start_matches('/');
        }
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str, is_published: bool) -> Target {
        Target { address: address.to_owned(), is_published, is_left_out: false, version: 0, picture: None }
    }

    fn known(texts: &[(&str, Target)], files: &[(&str, Target)]) -> Arc<LinkTargets> {
        let list = |list: &[(&str, Target)]| list.iter().map(|(name, target)| ((*name).to_owned(), target.clone())).collect();
        Arc::new(LinkTargets { texts: list(texts), files: list(files) })
    }

    #[test]
    fn a_text_is_rendered_again_when_an_answer_differs_and_not_otherwise() {
        let before = known(&[("b.md", target("/b/", true))], &[("cat.png", target("/cat.png", true))]);
        let targets = Targets::new(Arc::clone(&before));
        assert_eq!(targets.text("b.md"), Some(target("/b/", true)));
        assert_eq!((targets.text("gone.md"), targets.file("gone.md")), (None, None));
        assert_eq!(targets.file("cat.png"), Some(target("/cat.png", true)));
        let asked = targets.into_asked();
        assert!(before.still_answers(&asked));

        let cat = || [("cat.png", target("/cat.png", true))];
        let cases = [
            ("nothing that was asked for", known(&[("b.md", target("/b/", true)), ("c.md", target("/c/", true))], &cat()), true),
            ("another address", known(&[("b.md", target("/bee/", true))], &cat()), false),
            ("no longer published", known(&[("b.md", target("/b/", false))], &cat()), false),
            ("gone", known(&[], &cat()), false),
            ("a file has come", known(&[("b.md", target("/b/", true)), ("gone.md", target("/gone/", true))], &cat()), false),
            (
                "another picture",
                known(&[("b.md", target("/b/", true))], &[("cat.png", Target { version: 1, ..target("/cat.png", true) })]),
                false,
            ),
        ];
        for (what, after, expected) in cases {
            assert_eq!(after.still_answers(&asked), expected, "{what}");
        }
    }

    #[test]
    fn links_from_draft_to_draft_stay_below_the_private_address() {
        let known = known(
            &[("b.md", target("/b/", true)), ("d.md", target("/d/", false))],
            &[("drafts/cat.png", target("/drafts/cat.png", false))],
        );
        let cases = [
            ("/draft/", "../d/", "../drafts/cat.png"),
            ("/2026/a.html", "../d/", "../drafts/cat.png"),
            ("/a.html", "d/", "drafts/cat.png"),
        ];
        for (address, draft, picture) in cases {
            let targets = Targets::of_draft(Arc::clone(&known), address);
            assert_eq!(targets.text("b.md").map(|target| target.address).as_deref(), Some("/b/"), "{address}");
            assert_eq!(targets.text("d.md").map(|target| target.address).as_deref(), Some(draft), "{address}");
            assert_eq!(targets.file("drafts/cat.png").map(|target| target.address).as_deref(), Some(picture), "{address}");
        }
        assert_eq!(Targets::new(known).text("d.md"), Some(target("/d/", false)));
    }
}
