//! Finds the posts that share most with a post: those with the same tags, rare tags first.

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

#[cfg(test)]
mod tests {
    use semantics::Timestamp;

    use crate::{Site, build_texts, config::BlogOptions};

    fn site(posts: &[(String, String)]) -> Site {
        let texts: Vec<_> = posts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        build_texts(&texts, &BlogOptions::default(), Timestamp::from_secs(1_790_812_800)).expect("builds")
    }

    fn post(name: &str, tags: &str) -> (String, String) {
        (format!("{name}.md"), format!("---\ntitle: {name}\ntags: [{tags}]\n---\n"))
    }

    fn related(site: &Site, title: &str) -> Vec<String> {
        let model = site.model();
        let index = model.posts.iter().position(|post| post.title == title).expect("a post");
        model.related(index).map(|post| post.title.clone()).collect()
    }

    #[test]
    fn rare_tags_and_many_of_them_make_relatives() {
        let mut posts = vec![
            post("2026-01-01-a", "news, tide, gull"),
            post("2026-01-02-b", "news, tide, gull"),
            post("2026-01-03-c", "news, tide"),
            post("2026-01-04-d", "cats"),
        ];
        posts.extend((1..21).map(|day| post(&format!("2026-02-{day:02}-news-{day}"), "news")));
        let site = site(&posts);
        let relatives = related(&site, "2026-01-01-a");
        assert_eq!(relatives[..2], ["2026-01-02-b", "2026-01-03-c"]);
        assert_eq!(relatives.len(), 3);
        assert!(related(&site, "2026-01-04-d").is_empty());
    }

    #[test]
    fn translations_are_not_relatives() {
        let site = site(&[post("2026-01-01-a", "tide"), post("2026-01-01-a.de", "tide"), post("2026-01-02-b", "tide")]);
        assert_eq!(related(&site, "2026-01-01-a"), ["2026-01-02-b"]);
    }

    /// With a tag on every post, the relatives are those around it: others are not even looked at.
    #[test]
    fn a_tag_on_all_posts_costs_no_more_than_its_neighbours() {
        let posts: Vec<_> = (0..400)
            .map(|day| post(&format!("{}-{:02}-{:02}-p{day}", 2000 + day / 200, day % 200 / 20 + 1, day % 20 + 1), "all"))
            .collect();
        let site = site(&posts);
        for (index, of) in site.model().posts.iter().enumerate() {
            for other in site.model().related(index) {
                let place = site.model().posts.iter().position(|post| post.path == other.path).expect("a post");
                assert!(place.abs_diff(index) <= super::NEIGHBOURS_MAX, "{} and {}", of.title, other.title);
            }
        }
    }
}
