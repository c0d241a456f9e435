//! Reads what editors make of their cards and blocks: Ghost's classes begin with `kg-`, WordPress's with `wp-block-`.

use markup5ever_rcdom::Handle;

use super::{
    Around, Writer, as_paragraph, card_of, destination,
    dom::{all, attribute, children, first, has_class, tag, text},
    folded, quoted,
    raw::{raw, raw_block},
};

impl Writer<'_> {
    /// Writes an element that is a card or a block of a known kind.
    pub(super) fn card(&self, node: &Handle) -> Option<Vec<String>> {
        let class = attribute(node, "class")?;
        let kind = class.split_whitespace().find(|class| {
            class.starts_with("kg-") && (class.ends_with("-card") && *class != "kg-card") || class.starts_with("wp-block-")
        })?;
        match kind {
            "kg-bookmark-card" => Some(self.bookmark(node)),
            "kg-gallery-card" | "wp-block-gallery" => Some(self.gallery(node)),
            "kg-callout-card" => Some(self.callout(node)),
            "kg-toggle-card" => Some(self.toggle(node)),
            "kg-button-card" | "wp-block-button" => Some(self.button(node)),
            "kg-product-card" => Some(self.product(node)),
            "kg-file-card" => Some(self.file(node)),
            "kg-video-card" => self.with_player(node, "video"),
            "kg-audio-card" => self.with_player(node, "audio"),
            "kg-embed-card" => self.embed(node),
            "kg-signup-card" | "kg-email-card" | "kg-email-cta-card" => {
                self.targets.note("had a form for signing up, which is left out".to_owned());
                Some(Vec::new())
            }
            "wp-block-embed" => self.wordpress_embed(node),
            "wp-block-file" => Some(self.wordpress_file(node)),
            "wp-block-spacer" => Some(Vec::new()),
            "wp-block-pullquote" if tag(node) == "figure" => {
                let quotation = first(node, |node| tag(node) == "blockquote")?;
                Some(quoted(&self.blocks(&children(&quotation))).into_iter().collect())
            }
            _ => None,
        }
    }

    /// Returns the text of the element with a class, on one line.
    fn line(&self, node: &Handle, class: &str) -> Option<String> {
        let found = first(node, |node| has_class(node, class))?;
        let line = self.inline(&children(&found), Around { is_line: true, ..Around::default() });
        Some(line.trim().to_owned()).filter(|line| !line.is_empty())
    }

    fn bookmark(&self, node: &Handle) -> Vec<String> {
        let Some(href) = first(node, |node| tag(node) == "a").and_then(|link| attribute(&link, "href")) else { return Vec::new() };
        let target = self.targets.link(&href);
        let title = self.line(node, "kg-bookmark-title").unwrap_or_else(|| super::escaped(&href, Around::default()));
        let mut lines = vec![format!("**[{title}]({})**", destination(&target))];
        lines.extend(self.line(node, "kg-bookmark-description"));
        let by = [self.line(node, "kg-bookmark-author"), self.line(node, "kg-bookmark-publisher")];
        let by = by.into_iter().flatten().collect::<Vec<_>>().join(", ");
        lines.extend((!by.is_empty()).then(|| format!("<small>{by}</small>")));
        let caption = first(node, |node| tag(node) == "figcaption")
            .and_then(|caption| as_paragraph(&self.inline(&children(&caption), Around::default())));
        quoted(&[lines.join("\\\n")]).into_iter().chain(caption).collect()
    }

    fn gallery(&self, node: &Handle) -> Vec<String> {
        let images = all(node, |node| tag(node) == "img");
        let captions = all(node, |node| tag(node) == "figcaption");
        let holds = |outer: &Handle, inner: &Handle| first(outer, |node| std::rc::Rc::ptr_eq(node, inner)).is_some();
        let figures = all(node, |inner| tag(inner) == "figure" && !std::rc::Rc::ptr_eq(inner, node));
        let is_of_picture = |caption: &Handle| figures.iter().any(|figure| holds(figure, caption)) || is_in_item(node, caption);
        if captions.iter().any(is_of_picture) {
            // Each picture has its own caption.
            let mut blocks = Vec::new();
            for image in &images {
                let item = figures.iter().find(|figure| holds(figure, image)).cloned().or_else(|| item_of(node, image));
                let caption = item.as_ref().and_then(|item| first(item, |node| tag(node) == "figcaption"));
                blocks.extend(
                    self.linked_picture(item.as_ref().unwrap_or(node), image)
                        .map(|image| self.pictures(&[image], caption.as_ref()))
                        .into_iter()
                        .flatten(),
                );
            }
            let whole = captions.iter().find(|caption| !is_of_picture(caption));
            blocks.extend(whole.and_then(|caption| as_paragraph(&self.inline(&children(caption), Around::default()))));
            return blocks;
        }
        let pictures: Vec<String> = images.iter().filter_map(|image| self.linked_picture(node, image)).collect();
        self.pictures(&pictures, captions.first())
    }

    fn callout(&self, node: &Handle) -> Vec<String> {
        let emoji = first(node, |node| has_class(node, "kg-callout-emoji"))
            .map(|emoji| text(&emoji).trim().to_owned())
            .filter(|text| !text.is_empty());
        let kind = match class_after(node, "kg-callout-card-").as_deref() {
            Some("green") => "TIP",
            Some("yellow") => "WARNING",
            Some("red") => "CAUTION",
            Some("purple" | "pink" | "accent") => "IMPORTANT",
            _ => "NOTE",
        };
        let Some(words) = first(node, |node| has_class(node, "kg-callout-text")) else { return self.blocks(&children(node)) };
        let mut blocks = self.blocks(&children(&words));
        if let (Some(emoji), Some(first)) = (emoji, blocks.first_mut()) {
            *first = format!("{emoji} {first}");
        }
        quoted(&[format!("[!{kind}]\n{}", blocks.join("\n\n"))]).into_iter().collect()
    }

    fn toggle(&self, node: &Handle) -> Vec<String> {
        let heading = first(node, |node| has_class(node, "kg-toggle-heading-text"));
        let heading = heading.map(|heading| children(&heading).iter().map(|node| raw(node, self.targets)).collect::<String>());
        let content = first(node, |node| has_class(node, "kg-toggle-content")).map(|content| self.blocks(&children(&content)));
        vec![folded(&heading.unwrap_or_default(), &content.unwrap_or_default())]
    }

    fn button(&self, node: &Handle) -> Vec<String> {
        let Some(link) = first(node, |node| tag(node) == "a") else { return Vec::new() };
        let words = self.inline(&children(&link), Around { is_line: true, ..Around::default() });
        let Some(href) = attribute(&link, "href").filter(|href| !href.is_empty()) else {
            return as_paragraph(&words).into_iter().collect();
        };
        if words.trim().is_empty() {
            return Vec::new();
        }
        vec![format!("**[{}]({})**", words.trim(), destination(&self.targets.link(&href)))]
    }

    fn product(&self, node: &Handle) -> Vec<String> {
        let mut blocks = Vec::new();
        blocks.extend(first(node, |node| tag(node) == "img").and_then(|image| self.image(&image)));
        blocks.extend(self.line(node, "kg-product-card-title").map(|title| format!("**{title}**")));
        let stars = all(node, |node| has_class(node, "kg-product-card-rating-active")).len();
        blocks.extend((stars > 0).then(|| "★".repeat(stars.min(5)) + &"☆".repeat(5 - stars.min(5))));
        if let Some(description) = first(node, |node| has_class(node, "kg-product-card-description")) {
            blocks.extend(self.blocks(&children(&description)));
        }
        if let Some(link) = first(node, |node| tag(node) == "a" && has_class(node, "kg-product-card-button")) {
            let words = self.inline(&children(&link), Around { is_line: true, ..Around::default() });
            let href = attribute(&link, "href").unwrap_or_default();
            blocks.push(format!("**[{}]({})**", words.trim(), destination(&self.targets.link(&href))));
        }
        blocks
    }

    fn file(&self, node: &Handle) -> Vec<String> {
        let Some(href) = first(node, |node| tag(node) == "a").and_then(|link| attribute(&link, "href")) else { return Vec::new() };
        let name = self.line(node, "kg-file-card-filename").unwrap_or_default();
        let title = self.line(node, "kg-file-card-title").unwrap_or_else(|| name.clone());
        let title = if title.is_empty() { super::escaped(href.rsplit('/').next().unwrap_or(&href), Around::default()) } else { title };
        let about = self.line(node, "kg-file-card-caption").map(|about| format!("\\\n{about}")).unwrap_or_default();
        vec![format!("**[{title}]({})**{about}", destination(&self.targets.link(&href)))]
    }

    fn with_player(&self, node: &Handle, kind: &str) -> Option<Vec<String>> {
        let player = first(node, |node| tag(node) == kind)?;
        let caption = first(node, |node| tag(node) == "figcaption").or_else(|| first(node, |node| has_class(node, "kg-audio-title")));
        Some(vec![self.player(&player, caption.as_ref())])
    }

    fn embed(&self, node: &Handle) -> Option<Vec<String>> {
        if first(node, |node| matches!(tag(node), "iframe" | "blockquote" | "script")).is_some() {
            return None;
        }
        // A card of a site of its own kind: its words are in the figure.
        let link = first(node, |node| tag(node) == "a").and_then(|link| attribute(&link, "href"))?;
        let content = self.blocks(&children(node).into_iter().filter(|child| tag(child) != "figcaption").collect::<Vec<_>>());
        Some(if content.is_empty() { vec![card_of(&link)] } else { content })
    }

    fn wordpress_embed(&self, node: &Handle) -> Option<Vec<String>> {
        let wrapper = first(node, |node| has_class(node, "wp-block-embed__wrapper"))?;
        let url = text(&wrapper).trim().to_owned();
        if !url.starts_with("http") || url.contains(char::is_whitespace) {
            return None;
        }
        let caption = first(node, |node| tag(node) == "figcaption")
            .and_then(|caption| as_paragraph(&self.inline(&children(&caption), Around::default())));
        Some(std::iter::once(card_of(&url)).chain(caption).collect())
    }

    fn wordpress_file(&self, node: &Handle) -> Vec<String> {
        let link = first(node, |node| tag(node) == "a" && !text(node).trim().is_empty() && !has_class(node, "wp-block-file__button"));
        match link {
            Some(link) => as_paragraph(&self.inline(&[link], Around::default())).into_iter().collect(),
            None => vec![raw_block(node, self.targets)],
        }
    }
}

/// Returns the item of a gallery that holds a picture, in WordPress's older form.
fn item_of(gallery: &Handle, inner: &Handle) -> Option<Handle> {
    all(gallery, |node| tag(node) == "li").into_iter().find(|item| first(item, |node| std::rc::Rc::ptr_eq(node, inner)).is_some())
}

fn is_in_item(gallery: &Handle, caption: &Handle) -> bool {
    item_of(gallery, caption).is_some()
}

fn class_after(node: &Handle, prefix: &str) -> Option<String> {
    attribute(node, "class")?.split_whitespace().find_map(|class| class.strip_prefix(prefix).map(str::to_owned))
}
