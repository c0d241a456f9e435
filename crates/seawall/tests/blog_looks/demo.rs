//! A blog with everything that a page can show.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::browser::judged;

/// Audits of Lighthouse that may fail here, each with its reason beside it. There is none.
pub(crate) const EXPLAINED: [&str; 0] = [];

/// The pages of which screenshots are taken.
pub(crate) const SHOTS: [(&str, &str); 10] = [
    ("index", "/"),
    ("post", "/what-a-wall-is-for/"),
    ("text", "/everything-a-text-can-hold/"),
    ("photographs", "/photographs/"),
    ("tag", "/tags/coast/"),
    ("tags", "/tags/"),
    ("archive", "/archive/"),
    ("author", "/authors/ann-example/"),
    ("search", "/search/?q=wall"),
    ("404", "/nothing/here/"),
];

/// The folder of the blog. It goes when it is dropped.
pub(crate) struct Demo {
    root: tempfile::TempDir,
}

const EVERYTHING: &str = r##"
A first paragraph with *stress*, **strength**, ~~a mistake~~, `code`, [a link](2026-03-12-what-a-wall-is-for.md), a footnote[^1] and <kbd>Ctrl</kbd>. It goes on for some lines, so that
one sees how long they are, how far apart they stand, and whether one would like to read a whole page of them.

## Code

```rust title="src/main.rs" {3} linenos
/// Returns the height of the water.
fn height(hour: u32) -> f64 {
    let tide = (f64::from(hour) / 12.4 * std::f64::consts::TAU).sin();
    2.5 + 1.8 * tide // in metres
}
```

```toml
source = "public"
listen = "127.0.0.1:8080"
```

```diff
- old = true
+ new = "yes"
```

## Lists

- One
- Two
  - Two and a half
- Three

1. First
2. Second

- [x] Done
- [ ] To do

Ebb
: The water goes.

Flood
: The water comes.

## Alerts

> [!NOTE]
> Something to know, with [a link](#code) and `code`.

> [!TIP]
> Something that helps.

> [!IMPORTANT]
> Something that matters.

> [!WARNING]
> Something that can go wrong.

> [!CAUTION]
> Something that will.

> The sea, once it casts its spell, holds one in its net of wonder forever.

## A table

| place | height | note |
|---|---:|---|
| Harbour | 4.3 m | at six |
| Wall | 6.1 m | `never` reached |

## Formulas

Inline $a^2 + b^2 = c^2$, and on its own:

$$ \int_0^1 x^2 \, dx = \frac{1}{3} $$

### A card

https://www.youtube.com/watch?v=dQw4w9WgXcQ

---

The end.

[^1]: A footnote has its say here.
"##;

impl Demo {
    pub(crate) fn written() -> Self {
        let demo = Self { root: tempfile::tempdir().expect("a folder") };
        let words = "The wall stands where the road meets the water. Twice a year the water comes to it, and twice a year it goes again.";
        let long = format!("{words}\n\n## Before the storm\n\n{words} {words}\n\n## During\n\n{words} {words}\n\n## After\n\n{words}\n");
        for (at, (day, slug, title, tags)) in [
            ("2026-03-12", "what-a-wall-is-for", "What a wall is for", "\"coast\", \"walls\""),
            ("2026-02-27", "the-night-of-the-long-tide", "The night of the long tide", "\"coast\", \"storms\""),
            (
                "2026-02-14",
                "letters-from-the-harbour-master",
                "Letters from the harbour master, found in a box that nobody had opened for forty years",
                "\"letters\"",
            ),
            ("2025-12-01", "wood-and-stone", "Wood and stone", "\"walls\""),
            ("2025-11-20", "maps", "Maps", "\"coast\""),
            ("2024-05-05", "a-boat-of-ones-own", "A boat of one’s own", "\"boats\", \"coast\""),
        ]
        .into_iter()
        .enumerate()
        {
            let author = if at % 2 == 0 { "Ann Example" } else { "Bo Example" };
            let series = if at < 3 { "series = \"High water\"\n" } else { "" };
            let cover = if at == 2 { "" } else { "cover = \"cover.svg\"\ncover_alt = \"A wall before the sea\"\n" };
            demo.write(
                &format!("posts/{day}-{slug}.md"),
                &format!("+++\ntitle = \"{title}\"\ntags = [{tags}]\nauthor = \"{author}\"\n{series}{cover}+++\n{long}"),
            );
        }
        demo.write(
            "posts/2026-01-08-everything-a-text-can-hold.md",
            &format!("+++\ntitle = \"Everything a text can hold\"\ntags = [\"looks\"]\n+++\n{EVERYTHING}"),
        );
        demo.write(
            "posts/2026-01-02-ein-deutscher-text.md",
            "+++\ntitle = \"Ein deutscher Text\"\nlang = \"de\"\ntags = [\"letters\"]\n+++\nAuch das geht.\n",
        );
        demo.write(
            "posts/cover.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1200 675\" width=\"1200\" height=\"675\"><rect width=\"1200\" height=\"675\" fill=\"#bcd7de\"/>\
             <circle cx=\"880\" cy=\"230\" r=\"90\" fill=\"#f3d7a2\"/><path d=\"M0 400h820v275H0z\" fill=\"#357a88\"/>\
             <path d=\"M0 480c110-44 220 44 330 0s220 44 330 0 110 10 160 0v195H0z\" fill=\"#2a6370\"/><path d=\"M820 250h380v425H820z\" fill=\"#55606b\"/>\
             <path d=\"M820 250h380v36H820z\" fill=\"#78848f\"/></svg>",
        );
        demo.write("pages/about.md", "+++\ntitle = \"About\"\n+++\nA blog to look at.\n");
        demo
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder().join(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("blog")
    }

    /// Adds a post with photographs, as a camera would write them.
    pub(crate) fn with_photographs(&self, count: usize) {
        let folder = self.folder().join("posts/2026-03-20-photographs");
        fs::create_dir_all(&folder).expect("made");
        let wrong = judged(json!({ "photographs": { "folder": folder.display().to_string(), "count": count } }));
        assert!(wrong.is_empty(), "{wrong:?}");
        let mut text = "+++\ntitle = \"Photographs\"\ntags = [\"coast\"]\ncover = \"1.jpg\"\ncover_alt = \"The first of them\"\n+++\nSome photographs.\n".to_owned();
        for number in 1..=count {
            let _ = write!(text, "\n![Photograph {number}]({number}.jpg)\n\nWhat one sees on it.\n");
        }
        fs::write(folder.join("index.md"), text).expect("written");
    }

    /// Returns a copy of the blog in a look.
    pub(crate) fn in_look(&self, look: &str) -> PathBuf {
        let folder = self.root.path().join(look);
        copied(&self.folder(), &folder);
        let settings = format!(
            "title = \"High water\"\ndescription = \"Letters from the coast, about walls, boats, and those who look after them.\"\nauthor = \"Ann Example\"\n\
             [theme]\nlook = \"{look}\"\n[authors.\"Ann Example\"]\nbio = \"Looks after a wall, and writes when the water is low.\"\nurl = \"https://ann.example.org/\"\n"
        );
        fs::write(folder.join("blog.toml"), settings).expect("written");
        folder
    }
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder").map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}
