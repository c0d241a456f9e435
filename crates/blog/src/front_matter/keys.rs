//! The keys of front matter: ours, those of other generators that mean the same, and those that are told or passed over.

// The names of each key. The first is ours, the others are those of Jekyll, Hugo, Zola, Ghost, Eleventy, Pelican and Hexo.
pub(super) const TITLE: &[&str] = &["title"];
pub(super) const DATE: &[&str] = &["date", "published_at", "publishDate", "publish_date", "pubDate", "created", "created_at"];
pub(super) const UPDATED: &[&str] =
    &["updated", "lastmod", "last_modified_at", "modified", "updated_at", "last_updated", "lastUpdated", "updatedDate"];
pub(super) const DRAFT: &[&str] = &["draft"];
pub(super) const TAGS: &[&str] = &["tags", "tag", "categories", "category"];
pub(super) const SLUG: &[&str] = &["slug"];
pub(super) const SUMMARY: &[&str] = &["summary", "description", "excerpt", "custom_excerpt", "meta_description"];
pub(super) const PAGE: &[&str] = &["page"];
pub(super) const AUTHORS: &[&str] = &["authors", "author"];
pub(super) const SERIES: &[&str] = &["series"];
pub(super) const COVER: &[&str] = &[
    "cover",
    "image",
    "feature_image",
    "featured_image",
    "featuredImage",
    "cover_image",
    "coverImage",
    "images",
    "heroImage",
    "banner",
    "thumbnail",
];
pub(super) const COVER_ALT: &[&str] = &["cover_alt", "feature_image_alt", "image_alt", "featured_image_alt"];
pub(super) const ALIASES: &[&str] = &["aliases", "redirect_from", "alias"];
pub(super) const PERMALINK: &[&str] = &["permalink", "url", "path"];
pub(super) const NOINDEX: &[&str] = &["noindex"];
pub(super) const LANG: &[&str] = &["lang", "language", "locale"];
pub(super) const TRANSLATION: &[&str] = &["translation", "translationKey", "translation_key"];
pub(super) const MATH: &[&str] = &["math", "katex", "mathjax", "use_math"];
pub(super) const TOC: &[&str] = &["toc", "showToc", "ShowToc"];

/// Keys whose misspelling is an error.
pub(super) const OURS: [&[&str]; 20] = [
    TITLE,
    DATE,
    UPDATED,
    DRAFT,
    TAGS,
    SLUG,
    SUMMARY,
    PAGE,
    AUTHORS,
    SERIES,
    COVER,
    COVER_ALT,
    ALIASES,
    PERMALINK,
    NOINDEX,
    LANG,
    TRANSLATION,
    MATH,
    TOC,
    &["published", "status", "robots", "taxonomies"],
];

/// Keys that say in other generators that a post is not for everybody.
pub(super) const HIDING: [&str; 8] =
    ["private", "hidden", "unlisted", "visibility", "password", "headless", "email_only", "eleventyExcludeFromCollections"];

/// Keys whose values say in Hugo and Zola whether there is a page, and whether it is listed.
pub(super) const BUILDING: [&str; 3] = ["build", "_build", "render"];

/// Keys that say in other generators when a post goes away.
pub(super) const EXPIRING: [&str; 4] = ["expiryDate", "expires", "expiry_date", "unpublishDate"];

/// Keys about how other generators work, or what only their themes show. They have no effect.
pub(super) const PASSED_OVER: [&str; 66] = [
    "cascade",
    "class",
    "classes",
    "comment",
    "comments",
    "comment_id",
    "commentable",
    "css",
    "eleventyComputed",
    "eleventyNavigation",
    "excerpt_separator",
    "extra",
    "featured",
    "guid",
    "hasCJKLanguage",
    "header",
    "id",
    "in_search_index",
    "insert_anchor_links",
    "isCJKLanguage",
    "js",
    "keywords",
    "last_modified",
    "layout",
    "license",
    "linkTitle",
    "link_title",
    "markup",
    "menu",
    "menus",
    "meta",
    "meta_title",
    "nav_order",
    "og_description",
    "og_image",
    "og_title",
    "outputs",
    "page_template",
    "paginate_by",
    "params",
    "parent",
    "pin",
    "pinned",
    "post_id",
    "reading_time",
    "readtime",
    "render_with_liquid",
    "resources",
    "share",
    "show_reading_time",
    "sidebar",
    "sitemap",
    "sort_by",
    "source",
    "sticky",
    "subtitle",
    "tagline",
    "template",
    "theme",
    "toc_label",
    "toc_sticky",
    "transparent",
    "type",
    "uuid",
    "weight",
    "wordpress_id",
];
