//! The words for the products that are recognised: their names, what is said of them at the start, and how each of them gets another address.

use std::time::Duration;

use crate::config::settings::{Kind, Product};

/// Returns the name of a kind's product, as it writes itself, or of the kind.
pub(crate) fn name_of(kind: Kind) -> &'static str {
    kind.product().unwrap_or_else(|| kind.name())
}

/// Says how the pages of a product are kept while it says itself what has changed, or is seen doing it.
pub(crate) fn kept(kind: Kind) -> String {
    let name = name_of(kind);
    match kind {
        Kind::Ghost => format!("pages are kept until {name} says that they changed; members and staff go to {name}"),
        Kind::WordPress | Kind::Generic | Kind::Php | Kind::Blog | Kind::Static => format!("pages are kept until {name} changes them"),
    }
}

/// Says how the pages of a product are kept while nothing says that they changed.
pub(crate) fn kept_a_while(kind: Kind) -> String {
    const HOUR: Duration = Duration::from_hours(1);
    let hold = match kind.preset().hold {
        Some(HOUR) => "an hour".to_owned(),
        Some(hold) if hold == 24 * HOUR => "a day".to_owned(),
        Some(hold) => format!("{} minutes", hold.as_secs() / 60),
        None => "as long as they say themselves".to_owned(),
    };
    format!("pages are kept for {hold} at most, as nothing will say that they changed")
}

/// Says what to set in a product so that it tells its readers the address `url`.
pub(crate) fn to_have_address(product: Product<'_>, url: &str) -> String {
    match product {
        Product::WordPress(_) => format!(
            "set both addresses in WordPress (Settings, General; or define WP_HOME and WP_SITEURL in wp-config.php) to {}",
            url.trim_end_matches('/')
        ),
        Product::Ghost(_) => {
            format!("set \"url\" in Ghost's config.production.json, or its environment variable url, to {url}, and restart Ghost")
        }
        Product::Any => format!("set the address of the site to {url} in the settings of the software that makes it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hold_of_each_product_has_words() {
        for (kind, words) in [(Kind::Ghost, "for a day at most"), (Kind::WordPress, "for an hour at most")] {
            assert!(kept_a_while(kind).contains(words), "{}", kept_a_while(kind));
        }
    }
}
