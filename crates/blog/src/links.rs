//! The links of all texts to addresses of the site, checked when the site is there.

use std::collections::{HashMap, HashSet};

use crate::{
    error::Problem,
    markdown::{OutLink, join},
    post::Post,
};

/// The largest number of links that lead to nothing that are told.
const PROBLEMS_MAX: usize = 100;

/// A text that has a mistake, so that readers see its version before or nothing, and the links in it.
#[derive(Debug)]
pub(crate) struct LeftOutText {
    /// The path of the file in the folder.
    pub(crate) name: String,
    /// The address at which the text would be.
    pub(crate) path: String,
    pub(crate) links: Vec<OutLink>,
    /// The anchors in the text, if it could be read.
    pub(crate) anchors: Option<Vec<String>>,
}

/// Returns what is wrong with the links of `texts`, which readers see, and of `left_out` ones. Links may lead to the addresses of both. `is_there`
/// tells whether there is something at a path of the site.
///
/// Such a link may still be right, as another program may answer at its address in front of the blog: so it is a warning.
pub(crate) fn check<'p>(
    texts: impl Iterator<Item = &'p Post> + Clone,
    left_out: &'p [LeftOutText],
    is_there: impl Fn(&str) -> bool,
) -> Vec<Problem> {
    // One mistake must not become as many as there are links to its file.
    let awaited: HashSet<&str> = left_out.iter().map(|text| text.path.as_str()).collect();
    let is_there = |path: &str| is_there(path) || awaited.contains(path);
    // Readers may still see the version before, but its author sees the file.
    let by_name: HashMap<&str, &LeftOutText> = left_out.iter().map(|text| (text.name.as_str(), text)).collect();
    // An anchor is there if the version that readers see has it, or the file. Nobody knows the anchors of a file that cannot be read.
    let anchors_of = |text: &'p Post| match by_name.get(text.name.as_str()) {
        None => Some([text.anchors.as_slice(), &[]]),
        Some(file) => Some([text.anchors.as_slice(), file.anchors.as_deref()?]),
    };
    let anchors: HashMap<&str, [&[String]; 2]> = texts.clone().filter_map(|text| Some((text.path.as_str(), anchors_of(text)?))).collect();
    let published = texts.filter(|text| !by_name.contains_key(text.name.as_str()));
    let mut problems = Vec::new();
    let all = published.map(|text| (&text.name, &text.path, &text.links));
    let all = all.chain(left_out.iter().map(|text| (&text.name, &text.path, &text.links)));
    for (name, base, link) in all.flat_map(|(name, base, links)| links.iter().map(move |link| (name, base, link))) {
        if problems.len() == PROBLEMS_MAX {
            break;
        }
        let OutLink { path: written, fragment, line } = link;
        let file = std::path::Path::new(name);
        let Some(path) = absolute(base, written) else {
            problems.push(Problem::warning(file, *line, format!("link to {written:?}: it leads out of the blog")));
            continue;
        };
        let missing_anchor = |path: &str| {
            let anchors = anchors.get(path)?;
            let is_there = |fragment: &String| anchors.iter().any(|anchors| anchors.binary_search(fragment).is_ok());
            fragment.as_ref().filter(|fragment| !fragment.eq_ignore_ascii_case("top") && !is_there(fragment))
        };
        if !is_there(&path) && !is_there(&format!("{path}/")) {
            let hint = if is_mail(written) { format!("; write mailto:{written} if it is a mail address") } else { String::new() };
            problems.push(Problem::warning(file, *line, format!("link to {written:?}: there is nothing at {path}{hint}")));
        } else if let Some(anchor) = missing_anchor(&path).or_else(|| missing_anchor(&format!("{path}/"))) {
            problems.push(Problem::warning(file, *line, format!("link to {written:?}: no section there has the anchor \"#{anchor}\"")));
        }
    }
    problems
}

/// Tells whether a link that leads to nothing looks like a mail address.
fn is_mail(written: &str) -> bool {
    !written.contains('/') && written.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
}

/// Returns the path to which a link leads from the text at `base`, as a browser does (RFC 3986 §5.2).
fn absolute(base: &str, path: &str) -> Option<String> {
    let folder = if path.starts_with('/') { "" } else { base.rsplit_once('/').map_or("", |(folder, _)| folder) };
    let joined = join(folder, path)?;
    let is_folder = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..") || matches!(path, "." | "..");
    Some(if is_folder && !joined.is_empty() { format!("/{joined}/") } else { format!("/{joined}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_where_a_browser_goes() {
        let cases = [
            ("/a/", "/b/", Some("/b/")),
            ("/a/", "/", Some("/")),
            ("/a/", "b", Some("/a/b")),
            ("/a/", "../b/", Some("/b/")),
            ("/a/", "..", Some("/")),
            ("/a/b.html", "c.html", Some("/a/c.html")),
            ("/a/", "../../b/", None),
            ("/a/", ".", Some("/a/")),
        ];
        for (base, path, expected) in cases {
            assert_eq!(absolute(base, path).as_deref(), expected, "{base} {path}");
        }
    }

    #[test]
    fn links_that_lead_to_nothing_are_told_and_the_text_is_published() {
        let good = "[x](/b/) [y](/b) [z](b.md#here) [w](../b/#here) [v](/tags/) [u](/feed.xml) [t](/b/#top)";
        let texts = [
            ("a.md", format!("# A\n\n{good}\n\n[x](/gone/) [y](b.md#part) [z](more) [m](me@b.org)\n")),
            ("b.md", "# B\n\n## Here\n".to_owned()),
        ];
        let texts: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let site =
            crate::build_texts(&texts, &crate::BlogOptions::default(), semantics::Timestamp::from_secs(1_790_812_800)).expect("builds");
        let told: Vec<_> = site.problems().iter().map(ToString::to_string).collect();
        let expected = [
            "a.md:5: link to \"/gone/\": there is nothing at /gone/",
            "a.md:5: link to \"/b/\": no section there has the anchor \"#part\"",
            "a.md:5: link to \"more\": there is nothing at /a/more",
            "a.md:5: link to \"me@b.org\": there is nothing at /a/me@b.org; write mailto:me@b.org if it is a mail address",
        ];
        assert_eq!(told, expected);
        assert!(site.contains("/a/"));
    }
}
