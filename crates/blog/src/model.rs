//! The model of a blog once its folder has been read: the settings, the posts, the pages, and who belongs together.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    config::Settings,
    picture::Picture,
    post::Post,
    related::related,
    slug::tag_slug,
    theme::{Theme, tag_path},
};

/// Everything of which answers are made. Views and machine-readable texts are made of nothing else.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) settings: Settings,
    pub(crate) theme: Arc<Theme>,
    /// The published posts, newest first.
    pub(crate) posts: Vec<Arc<Post>>,
    /// The pages, by file name.
    pub(crate) pages: Vec<Arc<Post>>,
    /// The texts that readers do not see yet: drafts and posts whose time has not come. They are drawn for their authors alone, and nothing
    /// else depends on them. Newest first.
    pub(crate) drafts: Vec<Arc<Post>>,
    /// The tags by the address of their page.
    pub(crate) tags: BTreeMap<String, Group>,
    /// The authors by the address of their page: those whom posts name, and the blog's own for posts that name none.
    pub(crate) authors: BTreeMap<String, Group>,
    /// The series by the address of their page.
    pub(crate) series: BTreeMap<String, Group>,
    /// The posts of each year, newest first, as indexes into [`Model::posts`].
    pub(crate) years: BTreeMap<i16, Vec<usize>>,
    /// The address of the author's own icon.
    pub(crate) icon: Option<String>,
    /// The logo and the pictures of the authors, by what the settings call them. They are as small as the theme shows them.
    pub(crate) pictures: BTreeMap<String, Picture>,
    /// The posts that share most with each of [`Model::posts`], closest first.
    related: Vec<Vec<usize>>,
    /// Texts that are translations of each other, by their key ([`Post::translation`]). Each has at least two.
    translations: BTreeMap<String, Vec<Arc<Post>>>,
}

/// Posts that belong together, and what they have in common as the newest of them spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) title: String,
    /// Indexes into [`Model::posts`], newest first; those of a series in the order in which they are read, oldest first.
    pub(crate) posts: Vec<usize>,
}

/// The texts of a blog, sorted.
#[derive(Debug, Default)]
pub(crate) struct Library {
    pub(crate) posts: Vec<Arc<Post>>,
    pub(crate) pages: Vec<Arc<Post>>,
    pub(crate) drafts: Vec<Arc<Post>>,
}

impl Model {
    pub(crate) fn new(
        settings: Settings,
        theme: Arc<Theme>,
        library: Library,
        icon: Option<String>,
        pictures: BTreeMap<String, Picture>,
    ) -> Self {
        let Library { posts, pages, drafts } = library;
        let tags = grouped(&posts, |post| post.tags.iter().map(String::as_str).collect(), tag_path);
        let authors = grouped(&posts, |post| post.authors(&settings), author_path);
        let mut series = grouped(&posts, |post| post.front.series.as_deref().into_iter().collect(), series_path);
        for group in series.values_mut() {
            group.posts.reverse();
        }
        let mut years: BTreeMap<i16, Vec<usize>> = BTreeMap::new();
        for (index, post) in posts.iter().enumerate() {
            years.entry(post.date.day.year()).or_default().push(index);
        }
        let related = related(&posts, &tags);
        let translations = translations(posts.iter().chain(&pages), &settings.language);
        Self { settings, theme, posts, pages, drafts, tags, authors, series, years, icon, pictures, related, translations }
    }

    /// Tells whether posts are by several authors. If not, the name of the one on every post would tell nothing.
    pub(crate) fn has_authors(&self) -> bool {
        self.authors.len() > 1
    }

    pub(crate) fn posts_of<'m>(&'m self, group: &'m Group) -> impl Iterator<Item = &'m Arc<Post>> {
        group.posts.iter().map(|&index| &self.posts[index])
    }

    /// Returns the posts that share most with the one at `index` in [`Model::posts`], closest first.
    pub(crate) fn related(&self, index: usize) -> impl Iterator<Item = &Arc<Post>> {
        self.related.get(index).into_iter().flatten().map(|&index| &self.posts[index])
    }

    /// Returns all translations of `post`, itself included, by language; none if it has no translation.
    pub(crate) fn translations<'m>(&'m self, post: &Post) -> &'m [Arc<Post>] {
        self.translations.get(&post.translation).map_or(&[], Vec::as_slice)
    }

    /// Returns the series of `post`, with its address and the place of the post in it, counted from 0.
    pub(crate) fn series_of(&self, post: &Post) -> Option<(&str, &Group, usize)> {
        let (path, group) = self.series.get_key_value(&series_path(post.front.series.as_deref()?))?;
        let place = self.posts_of(group).position(|other| other.name == post.name)?;
        Some((path, group, place))
    }
}

/// Returns the address of an author's page.
pub(crate) fn author_path(author: &str) -> String {
    format!("/authors/{}/", tag_slug(author))
}

/// Returns the address of the page of a series.
pub(crate) fn series_path(series: &str) -> String {
    format!("/series/{}/", tag_slug(series))
}

/// Returns the address of the page of a year.
pub(crate) fn year_path(year: i16) -> String {
    format!("/archive/{year}/")
}

/// Groups posts by names such as their tags, under the addresses that `path` makes of the names.
fn grouped<'p>(posts: &'p [Arc<Post>], names: impl Fn(&'p Post) -> Vec<&'p str>, path: impl Fn(&str) -> String) -> BTreeMap<String, Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for (index, post) in posts.iter().enumerate() {
        for name in names(post) {
            let group = groups.entry(path(name)).or_insert_with(|| Group { title: name.to_owned(), posts: Vec::new() });
            // Two spellings of one name in one post.
            if group.posts.last() != Some(&index) {
                group.posts.push(index);
            }
        }
    }
    groups
}

/// Joins texts that say the same in different languages. Of two in one language, the first counts.
fn translations<'p>(texts: impl Iterator<Item = &'p Arc<Post>>, language: &str) -> BTreeMap<String, Vec<Arc<Post>>> {
    let mut joined: BTreeMap<String, Vec<Arc<Post>>> = BTreeMap::new();
    for text in texts {
        let others = joined.entry(text.translation.clone()).or_default();
        if others.iter().all(|other| other.language(language) != text.language(language)) {
            others.push(Arc::clone(text));
        }
    }
    joined.retain(|_, texts| texts.len() > 1);
    for texts in joined.values_mut() {
        texts.sort_by(|a, b| a.language(language).cmp(b.language(language)));
    }
    joined
}

#[cfg(test)]
mod tests {
    use semantics::Timestamp;

    use super::*;
    use crate::{Site, build_texts, config::BlogOptions};

    fn site(texts: &[(&str, &str)]) -> Site {
        let options = BlogOptions { author: Some("Ann".to_owned()), ..BlogOptions::default() };
        let site = build_texts(texts, &options, Timestamp::from_secs(1_790_812_800)).expect("builds");
        assert_eq!(site.problems(), []);
        site
    }

    fn titles<'m>(posts: impl IntoIterator<Item = &'m Arc<Post>>) -> Vec<&'m str> {
        posts.into_iter().map(|post| post.title.as_str()).collect()
    }

    fn groups<'m>(model: &'m Model, groups: &'m BTreeMap<String, Group>) -> Vec<(&'m str, &'m str, Vec<&'m str>)> {
        groups.iter().map(|(path, group)| (path.as_str(), group.title.as_str(), titles(model.posts_of(group)))).collect()
    }

    #[test]
    fn posts_are_grouped_by_tag_author_series_and_year() {
        let site = site(&[
            ("2025-12-31-a.md", "---\ntags: [Sea, C++]\nseries: Tides\n---\n# A"),
            ("2026-01-01-b.md", "---\ntags: [sea, SEA]\nauthors: [Bob, Ann]\n---\n# B"),
            ("2026-01-02-c.md", "---\nseries: tides\nauthor: Bob\n---\n# C"),
            ("pages/about.md", "---\ntags: [sea]\nseries: Tides\n---\n# About"),
        ]);
        let model = site.model();
        let tags = groups(model, &model.tags);
        assert_eq!(tags, [("/tags/c-plus-plus/", "C++", vec!["A"]), ("/tags/sea/", "sea", vec!["B", "A"])]);
        let authors = groups(model, &model.authors);
        assert_eq!(authors, [("/authors/ann/", "Ann", vec!["B", "A"]), ("/authors/bob/", "Bob", vec!["C", "B"])]);
        // In the order in which it is read.
        assert_eq!(groups(model, &model.series), [("/series/tides/", "tides", vec!["A", "C"])]);
        let (path, _, place) = model.series_of(&model.posts[0]).expect("a series");
        assert_eq!((path, place), ("/series/tides/", 1));
        let years: Vec<_> = model.years.iter().map(|(year, posts)| (*year, posts.clone())).collect();
        assert_eq!(years, [(2025, vec![2]), (2026, vec![0, 1])]);
    }

    #[test]
    fn translations_find_each_other_by_name_or_by_key() {
        let site = site(&[
            ("hello.md", "# Hello"),
            ("hello.de.md", "# Hallo"),
            ("hello.fr.md", "# Bonjour"),
            ("other.md", "# Another"),
            ("sea.md", "---\ntranslation: sea\n---\n# Sea"),
            ("meer.md", "---\ntranslation: sea\nlang: de\n---\n# Meer"),
            ("ozean.md", "---\ntranslation: sea\nlang: de\nslug: ozean\n---\n# Ozean"),
            ("alone.md", "---\ntranslation: alone\n---\n# Alone"),
        ]);
        let model = site.model();
        let of = |path: &str| {
            let post = model.posts.iter().find(|post| post.path == path).expect("a post");
            model.translations(post).iter().map(|post| (post.language("en"), post.title.as_str())).collect::<Vec<_>>()
        };
        let hello = [("de", "Hallo"), ("en", "Hello"), ("fr", "Bonjour")];
        assert_eq!(of("/hello/"), hello);
        assert_eq!(of("/hello-de/"), hello);
        assert_eq!((of("/sea/").len(), of("/sea/")[1]), (2, ("en", "Sea")));
        assert_eq!((of("/alone/").len(), of("/other/").len()), (0, 0));
    }
}
