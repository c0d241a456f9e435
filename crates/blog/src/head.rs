//! The head of a page: what search engines, other sites and feed readers are told (Open Graph, JSON-LD, canonical addresses, translations,
//! feeds).
//!
//! Templates see it as `head`. The JSON-LD follows from the rest, so it is written when the page is drawn and is not part of the fingerprint.

use std::borrow::Cow;

use origins::media_type;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::{
    card::{self, Card},
    feed::{BASE, Format},
    json::{self, Container, clean},
    markup,
    model::{Model, author_path},
    post::{Post, Visibility},
    slug::encode_path,
    words::Words,
};

/// Says what a page is, as far as its head is concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About<'m> {
    /// The front page, and those that continue it.
    Site,
    /// The posts of the tag whose page has this address.
    Tag(&'m str),
    /// Another list.
    List,
    /// The posts of the author of this name.
    Author(&'m str),
    /// A post or a page.
    Text(&'m Post),
    /// A page that search engines have no use for: the search, and the answer for addresses that do not exist.
    Nothing,
}

/// Holds what programs read in the head of a page. Templates see [`Facts`], and `json_ld`: a text for a `script` element.
#[derive(Debug, Hash)]
pub(crate) struct Head<'m>(Facts<'m>);

/// The facts about a page, all of which templates see.
#[derive(Debug, Hash, Serialize)]
struct Facts<'m> {
    /// The scheme and authority of the site, to be put before addresses that begin with a slash.
    base: &'static str,
    site: &'m str,
    /// The title for those who share the page: without the name of the site.
    title: String,
    description: Option<&'m str>,
    /// The type of Open Graph: `website`, `article` or `profile`.
    kind: &'static str,
    /// The address of the page, percent-encoded.
    path: Option<String>,
    /// Whether search engines are asked to leave the page out.
    noindex: bool,
    language: &'m str,
    /// The language and territory, such as `de_DE`.
    locale: Option<String>,
    /// The languages and territories of the translations.
    other_locales: Vec<String>,
    /// All translations of the text, itself included.
    translations: Vec<Alternate<'m>>,
    /// The address of the translation for readers of other languages.
    default_translation: Option<String>,
    picture: Option<SharePicture>,
    /// The times at which the post was published and last changed (RFC 3339).
    published: Option<String>,
    modified: Option<String>,
    authors: Vec<Writer<'m>>,
    tags: &'m [String],
    feeds: Vec<FeedLink>,
    /// The address that receives webmentions.
    webmention: Option<&'m str>,
    /// The profile of the blog or its author in the fediverse: `@ann@social.example`, and its address.
    fediverse: Option<&'m str>,
    profile: Option<String>,
    /// The way from the front page to this one.
    #[serde(skip)]
    trail: Vec<Step>,
    #[serde(skip)]
    thing: SchemaType,
}

/// Says what the page is in the terms of schema.org.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SchemaType {
    Blog,
    Posting,
    Page,
    Profile,
    Collection,
    Nothing,
}

/// A text in one of its languages.
#[derive(Debug, Hash, Serialize)]
struct Alternate<'m> {
    language: &'m str,
    path: String,
}

/// The picture that is shown where the page is shared.
#[derive(Debug, Hash, Serialize)]
struct SharePicture {
    /// The scheme and authority, or nothing if `url` has its own.
    base: &'static str,
    url: String,
    media_type: Option<&'static str>,
    width: Option<u32>,
    height: Option<u32>,
    alt: String,
}

#[derive(Debug, Hash, Serialize)]
struct Writer<'m> {
    name: &'m str,
    /// The address of the page with the author's posts, if there is one.
    path: Option<String>,
    /// The author's own site.
    website: Option<&'m str>,
}

#[derive(Debug, Hash, Serialize)]
struct FeedLink {
    title: String,
    media_type: &'static str,
    path: String,
}

#[derive(Debug, Hash)]
struct Step {
    title: String,
    path: String,
}

/// The picture at the head of a post.
#[derive(Debug)]
pub(crate) struct Cover<'p> {
    /// The address; one of this site begins with [`BASE`].
    pub(crate) url: Cow<'p, str>,
    width: Option<u32>,
    height: Option<u32>,
    alt: &'p str,
}

/// The extensions of pictures that are shown where a page is shared.
const SHOWN: [&str; 6] = ["avif", "gif", "jpeg", "jpg", "png", "webp"];

/// Returns the picture at the head of `post`, if it can be shown where the post is shared. An SVG cannot: hardly any preview draws one.
pub(crate) fn cover(post: &Post) -> Option<Cover<'_>> {
    let picture = post.cover.as_ref()?;
    let known = |side: u32| Some(side).filter(|&side| side > 0);
    let url = Cow::Owned(markup::resolve(&picture.src, &post.path));
    let cover = Cover { url, width: known(picture.src_width), height: known(picture.src_height), alt: &picture.alt };
    Some(cover).filter(|cover| cover.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("svg")))
}

impl Cover<'_> {
    fn extension(&self) -> Option<&str> {
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        path.rsplit_once('.').map(|(_, extension)| extension)
    }

    /// Returns the media type, as the name tells it, if those who show a page that is shared know such pictures.
    pub(crate) fn media_type(&self) -> Option<&'static str> {
        let extension = self.extension()?;
        let is_shown = SHOWN.iter().any(|shown| extension.eq_ignore_ascii_case(shown));
        media_type::of_extension(extension).filter(|_| is_shown)
    }
}

impl<'m> Head<'m> {
    /// Describes the page at `path`, which is percent-encoded, with this title if it has another than the site.
    pub(crate) fn new(model: &'m Model, about: About<'m>, title: Option<&str>, path: Option<&str>, summary: Option<&'m str>) -> Self {
        let settings = &model.settings;
        let mut facts = Facts {
            base: BASE,
            site: &settings.title,
            title: title.unwrap_or(&settings.title).to_owned(),
            description: summary,
            kind: "website",
            path: path.map(str::to_owned),
            noindex: false,
            language: &settings.language,
            locale: None,
            other_locales: Vec::new(),
            translations: Vec::new(),
            default_translation: None,
            picture: None,
            published: None,
            modified: None,
            authors: vec![Writer::new(model, &settings.author)],
            tags: &[],
            feeds: feeds(model, about),
            webmention: settings.webmention.as_deref(),
            fediverse: settings.activitypub.as_deref(),
            profile: settings.activitypub.as_deref().and_then(profile),
            trail: trail(model, title, path),
            thing: SchemaType::Collection,
        };
        match about {
            About::Site => facts.thing = SchemaType::Blog,
            About::Tag(_) | About::List => {}
            About::Author(name) => {
                facts.kind = "profile";
                facts.thing = SchemaType::Profile;
                facts.authors = vec![Writer::new(model, name)];
            }
            About::Text(post) => facts.show(model, post),
            About::Nothing => {
                facts.noindex = true;
                facts.thing = SchemaType::Nothing;
                facts.authors.clear();
            }
        }
        facts.locale = locale(facts.language);
        if facts.picture.is_none() && !facts.noindex {
            facts.picture = Some(SharePicture::card(&Card::of_site(model)));
        }
        Self(facts)
    }
}

impl<'m> Facts<'m> {
    fn show(&mut self, model: &'m Model, post: &'m Post) {
        let settings = &model.settings;
        self.kind = "article";
        self.thing = if post.is_page { SchemaType::Page } else { SchemaType::Posting };
        // The address of a draft is private, so its page does not name it.
        let is_published = post.standing == Visibility::Published;
        self.noindex = post.front.noindex || !is_published;
        if !is_published {
            self.path = None;
            self.trail.clear();
            self.thing = SchemaType::Nothing;
        }
        self.language = post.language(&settings.language);
        for translation in model.translations(post) {
            let language = translation.language(&settings.language);
            let path = encode_path(&translation.path);
            if language == settings.language {
                self.default_translation = Some(path.clone());
            }
            if language != self.language {
                self.other_locales.extend(locale(language));
            }
            self.translations.push(Alternate { language, path });
        }
        if !post.is_page {
            self.published = Some(format!("{:.0}", post.date.instant));
            self.modified = Some(format!("{:.0}", post.changed()));
            self.tags = &post.tags;
        }
        self.authors = post.authors(settings).into_iter().map(|name| Writer::new(model, name)).collect();
        self.picture = match cover(post) {
            Some(cover) => Some(SharePicture::cover(&cover, &post.title)),
            None if is_published => Some(SharePicture::card(&Card::of_post(model, post))),
            None => None,
        };
    }

    /// Describes the page in the words of schema.org, as search engines read it.
    fn json_ld(&self) -> Option<String> {
        let url = self.path.as_ref().map(|path| format!("{BASE}{path}"));
        let blog = json!({ "@type": "Blog", "@id": format!("{BASE}/#blog"), "name": clean(self.site), "url": format!("{BASE}/") });
        let mut thing = Map::new();
        let mut set = |key: &str, value: Value| thing.insert(key.to_owned(), value);
        let authors: Vec<Value> = self.authors.iter().map(Writer::json_ld).collect();
        let authors = if let [author] = &authors[..] { author.clone() } else { Value::Array(authors) };
        match self.thing {
            SchemaType::Nothing => return None,
            SchemaType::Blog => {
                set("@type", "Blog".into());
                set("@id", format!("{BASE}/#blog").into());
                set("name", clean(self.site).into());
                set("author", authors);
            }
            SchemaType::Posting => {
                set("@type", "BlogPosting".into());
                set("headline", clean(&self.title).into());
                set("datePublished", self.published.clone().into());
                set("dateModified", self.modified.clone().into());
                set("author", authors);
                set("mainEntityOfPage", url.clone().into());
                set("isPartOf", blog);
                if !self.tags.is_empty() {
                    set("keywords", self.tags.iter().map(|tag| Value::from(clean(tag))).collect());
                }
            }
            SchemaType::Page => {
                set("@type", "WebPage".into());
                set("name", clean(&self.title).into());
                set("isPartOf", blog);
            }
            SchemaType::Profile => {
                set("@type", "ProfilePage".into());
                set("name", clean(&self.title).into());
                set("mainEntity", authors);
            }
            SchemaType::Collection => {
                set("@type", "CollectionPage".into());
                set("name", clean(&self.title).into());
                set("isPartOf", blog);
            }
        }
        if let Some(url) = url {
            set("url", url.into());
        }
        if let Some(description) = self.description {
            set("description", clean(description).into());
        }
        set("inLanguage", self.language.into());
        if let Some(SharePicture { base, url, .. }) = &self.picture {
            set("image", format!("{base}{url}").into());
        }
        let mut graph = vec![Value::Object(thing)];
        if self.trail.len() > 1 {
            let item = |(index, Step { title, path }): (usize, &Step)| json!({ "@type": "ListItem", "position": index + 1, "name": clean(title), "item": format!("{BASE}{path}") });
            let items: Vec<Value> = self.trail.iter().enumerate().map(item).collect();
            graph.push(json!({ "@type": "BreadcrumbList", "itemListElement": items }));
        }
        Some(json::write(&json!({ "@context": "https://schema.org", "@graph": graph }), Container::Script))
    }
}

impl Serialize for Head<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Seen<'a> {
            #[serde(flatten)]
            facts: &'a Facts<'a>,
            json_ld: Option<String>,
        }
        Seen { facts: &self.0, json_ld: self.0.json_ld() }.serialize(serializer)
    }
}

impl SharePicture {
    fn card(card: &Card) -> Self {
        Self {
            base: BASE,
            url: card.path(),
            media_type: Some(card::MEDIA_TYPE),
            width: Some(card::WIDTH),
            height: Some(card::HEIGHT),
            alt: card.title().to_owned(),
        }
    }

    fn cover(cover: &Cover<'_>, title: &str) -> Self {
        let (base, url) = cover.url.strip_prefix(BASE).map_or(("", &*cover.url), |path| (BASE, path));
        let alt = if cover.alt.is_empty() { title } else { cover.alt };
        Self { base, url: url.to_owned(), media_type: cover.media_type(), width: cover.width, height: cover.height, alt: alt.to_owned() }
    }
}

impl<'m> Writer<'m> {
    fn new(model: &'m Model, name: &'m str) -> Self {
        let path = author_path(name);
        let has_page = model.has_authors() && model.authors.contains_key(&path);
        let known = model.settings.author_named(name);
        Self {
            name: model.settings.author_name(name),
            path: has_page.then(|| encode_path(&path)),
            website: known.and_then(|known| known.url.as_deref()),
        }
    }

    fn json_ld(&self) -> Value {
        let Self { name, path, website } = self;
        let mut person = Map::new();
        person.insert("@type".to_owned(), "Person".into());
        person.insert("name".to_owned(), clean(name).into());
        match (path, website) {
            (Some(path), _) => drop(person.insert("url".to_owned(), format!("{BASE}{path}").into())),
            (None, Some(website)) => drop(person.insert("url".to_owned(), markup::resolve(website, "/").into())),
            (None, None) => {}
        }
        if let (Some(_), Some(website)) = (path, website) {
            person.insert("sameAs".to_owned(), markup::resolve(website, "/").into());
        }
        person.into()
    }
}

/// Lists the feeds that a page names: those of the blog, and those of the tag that the page is about.
fn feeds(model: &Model, about: About<'_>) -> Vec<FeedLink> {
    let title = &model.settings.title;
    let links = |title: String, home: String| {
        Format::ALL.map(|format| FeedLink {
            title: title.clone(),
            media_type: format.media_type(),
            path: format!("{home}{}", format.file_name()),
        })
    };
    let mut feeds = Vec::from(links(title.clone(), "/".to_owned()));
    if let About::Tag(path) = about
        && let Some(group) = model.tags.get(path)
    {
        feeds.extend(links(format!("{} · {title}", group.title), encode_path(path)));
    }
    feeds
}

/// Returns the way from the front page to the page at `path`, itself included.
fn trail(model: &Model, title: Option<&str>, path: Option<&str>) -> Vec<Step> {
    let (Some(title), Some(path)) = (title, path) else { return Vec::new() };
    let words = Words::of(&model.settings.language);
    let step = |title: &str, path: &str| Step { title: title.to_owned(), path: path.to_owned() };
    let mut trail = vec![step(words.home, "/")];
    let lists = [("/tags/", words.tags), ("/archive/", words.archive), ("/authors/", words.authors)];
    trail.extend(lists.into_iter().filter(|(list, _)| path.starts_with(list) && path != *list).map(|(list, title)| step(title, list)));
    trail.push(step(title, path));
    trail
}

/// Returns the language and territory as Open Graph writes them. The territory is the one in the tag, or that in which most who speak the
/// language live; without either, there is no locale.
fn locale(language: &str) -> Option<String> {
    let mut parts = language.split('-');
    let primary = parts.next()?.to_ascii_lowercase();
    let territory = parts.take_while(|part| part.len() > 1).find(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_alphabetic()));
    match territory {
        Some(territory) => Some(format!("{primary}_{}", territory.to_ascii_uppercase())),
        None => Words::find(language).map(|words| words.locale.to_owned()),
    }
}

/// Returns the address of a profile in the fediverse, of which `@ann@social.example` is the name. Every server answers there.
fn profile(handle: &str) -> Option<String> {
    let (name, host) = handle.strip_prefix('@')?.split_once('@')?;
    Some(format!("https://{host}/@{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_have_a_territory() {
        let cases = [
            ("de", Some("de_DE")),
            ("de-AT", Some("de_AT")),
            ("zh-Hant", Some("zh_TW")),
            ("zh-Hant-HK", Some("zh_HK")),
            ("en", Some("en_US")),
            ("pt-br", Some("pt_BR")),
            ("es-419", Some("es_ES")),
            ("de-x-at", Some("de_DE")),
            ("tlh", None),
        ];
        for (language, expected) in cases {
            assert_eq!(locale(language).as_deref(), expected, "{language}");
        }
    }

    #[test]
    fn a_cover_that_previews_cannot_draw_gives_way_to_a_card() {
        let texts = [("a.md", "---\ncover: https://x.test/a.svg\n---\n# A\n"), ("b.md", "---\ncover: https://x.test/b.png\n---\n# B\n")];
        let options = crate::BlogOptions::default();
        let site = crate::build_texts(&texts, &options, semantics::Timestamp::from_secs(1_790_812_800)).expect("builds");
        let shared = |path: &str| {
            let Some(crate::SiteResource::Page(page)) = site.find(path, "https://blog.test") else { panic!("no {path}") };
            let html = String::from_utf8(page.body.to_vec()).expect("text");
            let (_, rest) = html.split_once("<meta property=\"og:image\" content=\"").expect("a picture");
            rest.split_once('"').expect("an end").0.to_owned()
        };
        let card = shared("/a/");
        assert!(card.starts_with("https://blog.test/cards/"), "{card}");
        assert!(site.contains(card.trim_start_matches("https://blog.test")), "{card}");
        assert_eq!(shared("/b/"), "https://x.test/b.png");
    }

    #[test]
    fn profiles_have_an_address() {
        assert_eq!(profile("@ann@social.example").as_deref(), Some("https://social.example/@ann"));
        assert_eq!(profile("ann"), None);
    }
}
