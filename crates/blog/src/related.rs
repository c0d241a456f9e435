//! Which posts share most with a post: those with the same tags, rare tags first.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::{model::Group, post::Post, theme::tag_path};

/// The number of related posts.
const RELATED_MAX: usize = 3;

/// The number of posts with the same tag that are looked at, half of them older and half newer than the post: without a bound, a tag on every
/// one of 10,000 posts would cost 100 million comparisons.
const NEIGHBOURS_MAX: usize = 32;

/// The number of tags of one post that are looked at, rare ones first.
const TAGS_MAX: usize = 16;

/// Returns for each post the indexes of its related ones, closest first. Posts that translate each other are not related.
pub(crate) fn related(posts: &[Arc<Post>], tags: &BTreeMap<String, Group>) -> Vec<Vec<usize>> {
    posts.iter().enumerate().map(|(index, post)| of_one(index, post, posts, tags)).collect()
}

fn of_one(index: usize, post: &Post, posts: &[Arc<Post>], tags: &BTreeMap<String, Group>) -> Vec<usize> {
    let mut groups: Vec<&Group> = post.tags.iter().filter_map(|tag| tags.get(&tag_path(tag))).collect();
    groups.sort_by_key(|group| group.posts.len());
    let mut scores: HashMap<usize, u32> = HashMap::new();
    for group in groups.into_iter().take(TAGS_MAX) {
        let at = group.posts.partition_point(|&other| other < index);
        let first = at.saturating_sub(NEIGHBOURS_MAX / 2).min(group.posts.len().saturating_sub(NEIGHBOURS_MAX + 1));
        for &other in group.posts.iter().skip(first).take(NEIGHBOURS_MAX + 1).filter(|&&other| other != index) {
            *scores.entry(other).or_default() += weight(group.posts.len(), posts.len());
        }
    }
    let mut found: Vec<(usize, u32)> = scores.into_iter().filter(|(other, _)| posts[*other].translation != post.translation).collect();
    // Among equals, those that were written at about the same time.
    found.sort_by_key(|&(other, score)| (std::cmp::Reverse(score), other.abs_diff(index), other));
    found.truncate(RELATED_MAX);
    found.into_iter().map(|(other, _)| other).collect()
}

/// Returns what a tag on `count` of `total` posts says about two that have it. It goes by powers of two: one more post with a tag must not give
/// other relatives to all posts that have it.
fn weight(count: usize, total: usize) -> u32 {
    let log = |number: usize| number.checked_ilog2().unwrap_or(0);
    1 + log(total).saturating_sub(log(count))
}
