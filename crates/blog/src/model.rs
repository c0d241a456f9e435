//! What a blog consists of once its folder has been read: the settings, the posts, the pages, and who belongs together.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    config::Settings,
    post::Post,
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
    /// The tags by the address of their page.
    pub(crate) tags: BTreeMap<String, Group>,
    /// The address of the author's own icon.
    pub(crate) icon: Option<String>,
}

/// Posts that belong together, and what they have in common as the newest of them spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) title: String,
    /// Indexes into [`Model::posts`], newest first.
    pub(crate) posts: Vec<usize>,
}

impl Model {
    pub(crate) fn new(settings: Settings, theme: Arc<Theme>, posts: Vec<Arc<Post>>, pages: Vec<Arc<Post>>, icon: Option<String>) -> Self {
        let tags = grouped(&posts, |post| &post.tags, tag_path);
        Self { settings, theme, posts, pages, tags, icon }
    }

    /// Returns the number of pages of the index; at least one.
    pub(crate) fn index_pages(&self) -> usize {
        self.posts.len().div_ceil(self.settings.posts_per_page).max(1)
    }

    pub(crate) fn posts_of<'m>(&'m self, group: &'m Group) -> impl Iterator<Item = &'m Arc<Post>> {
        group.posts.iter().map(|&index| &self.posts[index])
    }
}

/// Groups posts by names such as their tags, under the addresses that `path` makes of the names.
fn grouped(posts: &[Arc<Post>], names: impl Fn(&Post) -> &[String], path: impl Fn(&str) -> String) -> BTreeMap<String, Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for (index, post) in posts.iter().enumerate() {
        for name in names(post) {
            groups.entry(path(name)).or_insert_with(|| Group { title: name.clone(), posts: Vec::new() }).posts.push(index);
        }
    }
    groups
}
