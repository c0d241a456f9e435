//! Finds where Hugo shows a text, and where it redirects to it.

use super::{Site, Text};
use crate::front_matter::text;

/// Returns the addresses at which Hugo redirects to a text that it shows at `own`, both below the site's path.
///
/// A relative alias stands beside the text. What is not an HTML file becomes a folder with one: `/old` is at `/old/`.
pub(super) fn alias_addresses(alias: &str, own: &str, site: &Site) -> Vec<String> {
    let folder = own.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut names: Vec<&str> = Vec::new();
    for name in folder.split('/').filter(|_| !alias.starts_with('/')).chain(alias.split('/')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    let Some((leaf, folders)) = names.split_last() else { return Vec::new() };
    let folder = folders.iter().fold(site.base.clone(), |path, name| path + "/" + name);
    match *leaf {
        "index.html" if folders.is_empty() => Vec::new(),
        "index.html" => vec![format!("{folder}/"), format!("{folder}/index.html")],
        leaf if leaf.ends_with(".html") => vec![format!("{folder}/{leaf}")],
        leaf if site.is_ugly => vec![format!("{folder}/{leaf}.html")],
        leaf => vec![format!("{folder}/{leaf}/")],
    }
}

/// Returns the path at which Hugo shows a text.
pub(super) fn address(text_of: &Text, site: &Site) -> String {
    let Text { source, path, .. } = text_of;
    let prefix = source.lang.as_ref().map(|lang| format!("/{lang}")).unwrap_or_default();
    if let Some(url) = text(&source.front, &["url"]) {
        let url = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..])).to_owned();
        return if url.starts_with('/') { url } else { format!("{prefix}/{url}") };
    }
    let (folder, leaf) = path.rsplit_once('/').unwrap_or(("", path));
    let clean = |path: &str| path.to_lowercase().replace(' ', "-");
    if leaf == "_index" {
        return if folder.is_empty() { format!("{prefix}/") } else { format!("{prefix}/{}/", clean(folder)) };
    }
    let (folder, leaf) = if leaf == "index" { folder.rsplit_once('/').unwrap_or(("", folder)) } else { (folder, leaf) };
    let section = path.split_once('/').map_or("", |(section, _)| section);
    let slug = text(&source.front, &["slug"]);
    if let Some(form) = site.permalinks.get(section).or_else(|| site.permalinks.get("/").filter(|_| section.is_empty())) {
        let date = source.date.as_deref().unwrap_or("0001-01-01T00:00:00Z");
        let part = |from: usize, to: usize| date.get(from..to).unwrap_or_default().to_owned();
        let own = slug.clone().unwrap_or_else(|| leaf.to_owned());
        let of_title = crate::slug::slugify(&source.title);
        let sections = folder.to_owned();
        let contents: [(&str, String); 14] = [
            (":slugorcontentbasename", own.clone()),
            (":slugorfilename", own),
            (":contentbasename", leaf.to_owned()),
            (":filename", leaf.to_owned()),
            (":sections", sections),
            (":section", section.to_owned()),
            (":slug", slug.unwrap_or_else(|| of_title.clone())),
            (":title", of_title),
            (":year", part(0, 4)),
            (":monthname", String::new()),
            (":month", part(5, 7)),
            (":day", part(8, 10)),
            (":weekday", String::new()),
            (":yearday", String::new()),
        ];
        let filled = contents.iter().fold(form.clone(), |form, (key, value)| form.replace(key, value));
        let filled = filled.trim_matches('/').to_owned();
        return format!("{prefix}/{}/", clean(&filled));
    }
    let leaf = slug.unwrap_or_else(|| leaf.to_owned());
    let whole = if folder.is_empty() { clean(&leaf) } else { format!("{}/{}", clean(folder), clean(&leaf)) };
    if site.is_ugly { format!("{prefix}/{whole}.html") } else { format!("{prefix}/{whole}/") }
}
